// SPDX-License-Identifier: Apache-2.0
// Catalogue: GPU types with the numbers of their data sheets, and language models with their dimensions.
#pragma once

#include <gpusched/core/fields.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

namespace detail {
inline constexpr double smallest_positive = std::numeric_limits<double>::min();
inline constexpr double largest_finite = std::numeric_limits<double>::max();
/// The ranges of finite numbers: above 0, and from 0 on.
inline constexpr auto positive = within(smallest_positive, largest_finite);
inline constexpr auto not_negative = within(0.0, largest_finite);
}  // namespace detail

/// One GPU type and its machines. All rates are peaks; estimates multiply them by fitted efficiencies.
struct GpuType {
    std::string name{};         ///< unique, not empty
    double tflops = 0;          ///< dense 16-bit tensor peak, TFLOPS, > 0
    double bandwidth_gb_s = 0;  ///< memory bandwidth, 10^9 B/s, > 0
    double memory_gb = 0;       ///< memory, 10^9 B, > 0
    double link_gb_s = 0;       ///< to each GPU of the machine, 10^9 B/s per direction; 0 = no link, degree 1
    double network_gb_s = 0;    ///< to other machines, 10^9 B/s per GPU pair; 0 = no network, one machine
    int per_machine = 1;        ///< GPUs in a machine, >= 1: the largest tensor-parallel degree
    std::optional<double> price{};  ///< $/h, >= 0; absent = unknown
    std::string source{};           ///< the source of the numbers
    std::string region{};           ///< region of the machines; a replica uses one region
    double fp8_tflops = 0;  ///< dense FP8 tensor peak, TFLOPS; 0 = FP8 weights are computed in 16 bits
    double fp4_tflops = 0;  ///< dense FP4 tensor peak, TFLOPS; 0 = FP4 weights are computed in 16 bits
    /// Family of the architecture, in any case: volta, turing, ampere, ada, hopper, blackwell or cdna3. Selects
    /// the coefficients and errors of estimates; empty = none.
    std::string family{};
    bool operator==(const GpuType&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<GpuType>, F&& field) {
    field("name", &GpuType::name);
    field("tflops", &GpuType::tflops, detail::positive);
    field("bandwidth_gb_s", &GpuType::bandwidth_gb_s, detail::positive);
    field("memory_gb", &GpuType::memory_gb, detail::positive);
    field("link_gb_s", &GpuType::link_gb_s, detail::not_negative);
    field("network_gb_s", &GpuType::network_gb_s, detail::not_negative);
    field("per_machine", &GpuType::per_machine, at_least(1));
    field("price", &GpuType::price, detail::not_negative);
    field("source", &GpuType::source);
    field("region", &GpuType::region, Since{2}, UnlessDefault{});
    field("fp8_tflops", &GpuType::fp8_tflops, Since{2}, UnlessDefault{}, detail::not_negative);
    field("fp4_tflops", &GpuType::fp4_tflops, Since{2}, UnlessDefault{}, detail::not_negative);
    field("family", &GpuType::family, Since{2}, UnlessDefault{});
}

/// @throws InvalidInput with every name that is empty or appears twice and every number out of range
void validate(const std::vector<GpuType>& gpus);

/// Returns Table 1 of arXiv 2502.00722 as printed: A6000, A40, L40, A100, H100, 4090.
///
/// Links (NVLink 300, PCIe 60 GB/s, Ethernet 5 Gb/s) are from its section 5.1. Eight GPUs per machine are an
/// assumption. The printed FLOPS are not comparable: the number of H100 counts sparsity (dense: 989), and the
/// numbers of A6000 and 4090 are not from the tensor cores. The bandwidths of A6000 (960 GB/s; other sources
/// 768) and A100 (1555 GB/s, the 40 GB part) differ from other sources. Use `paper_gpus_dense` for estimates.
[[nodiscard]] std::vector<GpuType> paper_gpus();

/// Returns the types, prices and links of `paper_gpus` with the dense tensor peaks and bandwidths of
/// `gpu_catalogue`.
[[nodiscard]] std::vector<GpuType> paper_gpus_dense();

/// Returns GPU types with dense peaks, without prices: V100 to GB300, workstation and consumer cards, MI300X.
///
/// `source` names the source of peak, bandwidth, memory and link. Network speeds and GPUs per machine are
/// typical values.
[[nodiscard]] std::vector<GpuType> gpu_catalogue();

/// Returns a type of `gpu_catalogue` by name. @throws InvalidInput for an unknown name
[[nodiscard]] GpuType gpu_type(std::string_view name);

/// Returns a type of `gpu_catalogue`, else of `paper_gpus_dense`, by name; none for an unknown name.
[[nodiscard]] std::optional<GpuType> find_gpu_type(std::string_view name);

/// Number format of a checkpoint. Numbers of 4 bits take 4.5 bits with their scales.
enum class Precision : std::uint8_t { bf16, fp8, fp4, int4 };

/// A decoder-only transformer with gated MLPs, without biases. Numbers are 0 if the model lacks the part.
struct LanguageModel {
    std::string name{};           ///< such as `Llama-3-8B`
    int layers = 0;               ///< transformer layers, >= 1
    int hidden = 0;               ///< width of the residual stream, >= 1
    int heads = 0;                ///< query heads, >= 1
    int kv_heads = 0;             ///< key and value heads, 1 .. heads
    int head_size = 0;            ///< numbers per head, >= 1
    int intermediate = 0;         ///< width of the MLP of a layer without experts, >= 1 if there is one
    int vocabulary = 0;           ///< tokens, >= 1
    double bytes_per_weight = 2;  ///< bytes per weight in memory, 0.1 .. 8
    /// Bytes per number in the KV cache, 0.1 .. 8. In documents and Python 1 if absent with
    /// `bytes_per_weight` below 1.5.
    double bytes_per_kv = 2;

    bool gated = false;         ///< whether queries have an output gate
    int experts = 0;            ///< experts of a layer
    int top_k = 0;              ///< experts of a token
    int moe_intermediate = 0;   ///< width of an expert
    double shared_experts = 0;  ///< experts that every token meets, in widths of the others
    int first_dense = 0;        ///< layers without experts in a model with experts
    int q_lora_rank = 0;        ///< rank of the queries of latent attention; 0 = they are not compressed
    int kv_lora_rank = 0;       ///< rank of keys and values; above 0 the attention is latent
    int rope_size = 0, nope_size = 0, value_size = 0;  ///< numbers per head of latent attention
    int window = 0;                                    ///< tokens of a sliding window
    int window_layers = 0;                             ///< layers with a sliding window
    int linear_layers = 0;                             ///< layers of linear attention (gated delta rule)
    int linear_key_heads = 0, linear_value_heads = 0, linear_size = 0;  ///< heads of linear attention
    int index_heads = 0, index_size = 0;  ///< heads of the index of sparse attention, and their size
    int index_top_k = 0;                  ///< tokens that sparse attention reads
    /// Format of the attention matrices in checkpoints of 4 bits.
    Precision attention_of_fp4 = Precision::fp4, attention_of_int4 = Precision::int4;
    std::string source{};  ///< the source of the numbers
    bool operator==(const LanguageModel&) const = default;

    /// Returns the weights in the matrices of one layer, experts included; the mean if layers differ. Without
    /// experts and latent attention: 2 hidden (heads + kv_heads) head_size + 3 hidden intermediate.
    [[nodiscard]] double layer_matrix_parameters() const noexcept;
    /// Returns the weights of one layer: its matrices and its two norms.
    [[nodiscard]] double layer_parameters() const noexcept;
    /// Returns all weights: layers, input and output embedding (not tied), last norm.
    [[nodiscard]] double parameters() const noexcept;
};
template <class F>
constexpr void visit_fields(std::type_identity<LanguageModel>, F&& field) {
    field("name", &LanguageModel::name);
    field("layers", &LanguageModel::layers, at_least(1));
    field("hidden", &LanguageModel::hidden, at_least(1));
    field("heads", &LanguageModel::heads, at_least(1));
    field("kv_heads", &LanguageModel::kv_heads);
    field("head_size", &LanguageModel::head_size, at_least(1));
    field("intermediate", &LanguageModel::intermediate, at_least(0));
    field("vocabulary", &LanguageModel::vocabulary, at_least(1));
    field("bytes_per_weight", &LanguageModel::bytes_per_weight, within(0.1, 8.0));
    field("bytes_per_kv", &LanguageModel::bytes_per_kv, within(0.1, 8.0));
    const auto part = [&](const char* name, auto member) {
        field(name, member, Since{2}, UnlessDefault{}, at_least(0));
    };
    field("gated", &LanguageModel::gated, Since{2}, UnlessDefault{});
    part("experts", &LanguageModel::experts);
    part("top_k", &LanguageModel::top_k);
    part("moe_intermediate", &LanguageModel::moe_intermediate);
    field("shared_experts", &LanguageModel::shared_experts, Since{2}, UnlessDefault{}, within(0.0, 1e6));
    part("first_dense", &LanguageModel::first_dense);
    part("q_lora_rank", &LanguageModel::q_lora_rank);
    part("kv_lora_rank", &LanguageModel::kv_lora_rank);
    part("rope_size", &LanguageModel::rope_size);
    part("nope_size", &LanguageModel::nope_size);
    part("value_size", &LanguageModel::value_size);
    part("window", &LanguageModel::window);
    part("window_layers", &LanguageModel::window_layers);
    part("linear_layers", &LanguageModel::linear_layers);
    part("linear_key_heads", &LanguageModel::linear_key_heads);
    part("linear_value_heads", &LanguageModel::linear_value_heads);
    part("linear_size", &LanguageModel::linear_size);
    part("index_heads", &LanguageModel::index_heads);
    part("index_size", &LanguageModel::index_size);
    part("index_top_k", &LanguageModel::index_top_k);
    field("attention_of_fp4", &LanguageModel::attention_of_fp4, Since{2}, UnlessDefault{});
    field("attention_of_int4", &LanguageModel::attention_of_int4, Since{2}, UnlessDefault{});
    field("source", &LanguageModel::source, Since{2}, UnlessDefault{});
}

/// @throws InvalidInput with every number out of range
void validate(const LanguageModel& model);

[[nodiscard]] LanguageModel llama3_8b();   ///< 8,030,261,248 parameters
[[nodiscard]] LanguageModel llama3_70b();  ///< 70,553,706,496 parameters
[[nodiscard]] LanguageModel llama2_70b();  ///< 68,976,648,192 parameters

/// Returns the models that a request can name without giving their dimensions: three of Llama 2 and 3, and
/// those of the measurements behind `predict`.
[[nodiscard]] std::vector<LanguageModel> known_language_models();

}  // namespace gpusched::serving

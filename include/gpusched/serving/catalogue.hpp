// SPDX-License-Identifier: Apache-2.0
// Catalogue: GPU types with the numbers of their data sheets, and language models with their dimensions.
#pragma once

#include <gpusched/core/fields.hpp>

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

/// One GPU type and its machines. All rates are peaks; estimates multiply them by an efficiency.
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

/// Returns GPU types with dense peaks, without prices: V100 to B200, workstation and consumer cards, MI300X.
///
/// `source` names the source of peak, bandwidth, memory and link. Network speeds and GPUs per machine are
/// typical values.
[[nodiscard]] std::vector<GpuType> gpu_catalogue();

/// Returns a type of `gpu_catalogue` by name. @throws InvalidInput for an unknown name
[[nodiscard]] GpuType gpu_type(std::string_view name);

/// Returns a type of `gpu_catalogue`, else of `paper_gpus_dense`, by name; none for an unknown name.
[[nodiscard]] std::optional<GpuType> find_gpu_type(std::string_view name);

/// A dense decoder-only transformer with gated MLPs and grouped-query attention, without biases.
struct LanguageModel {
    std::string name{};           ///< such as `Llama-3-8B`
    int layers = 0;               ///< transformer layers, >= 1
    int hidden = 0;               ///< width of the residual stream, >= 1
    int heads = 0;                ///< query heads, >= 1
    int kv_heads = 0;             ///< key and value heads, 1 .. heads
    int head_size = 0;            ///< numbers per head, >= 1
    int intermediate = 0;         ///< width of the MLP, >= 1
    int vocabulary = 0;           ///< tokens, >= 1
    double bytes_per_weight = 2;  ///< bytes per weight in memory, 0.1 .. 8
    double bytes_per_kv = 2;      ///< bytes per number in the KV cache, 0.1 .. 8
    bool operator==(const LanguageModel&) const = default;

    /// Returns the weights in the matrices of one layer: 2 hidden (heads + kv_heads) head_size + 3 hidden
    /// intermediate.
    [[nodiscard]] double layer_matrix_parameters() const noexcept;
    /// Returns the weights of one layer: its matrices and its two norms.
    [[nodiscard]] double layer_parameters() const noexcept;
    /// Returns all weights: layers, input and output embedding (not tied), last norm.
    [[nodiscard]] double parameters() const noexcept;
    /// Returns the bytes of the KV cache of one token in one layer.
    [[nodiscard]] double kv_bytes_per_layer() const noexcept;
};
template <class F>
constexpr void visit_fields(std::type_identity<LanguageModel>, F&& field) {
    field("name", &LanguageModel::name);
    field("layers", &LanguageModel::layers, at_least(1));
    field("hidden", &LanguageModel::hidden, at_least(1));
    field("heads", &LanguageModel::heads, at_least(1));
    field("kv_heads", &LanguageModel::kv_heads);
    field("head_size", &LanguageModel::head_size, at_least(1));
    field("intermediate", &LanguageModel::intermediate, at_least(1));
    field("vocabulary", &LanguageModel::vocabulary, at_least(1));
    field("bytes_per_weight", &LanguageModel::bytes_per_weight, within(0.1, 8.0));
    field("bytes_per_kv", &LanguageModel::bytes_per_kv, within(0.1, 8.0));
}

/// @throws InvalidInput with every number out of range
void validate(const LanguageModel& model);

[[nodiscard]] LanguageModel llama3_8b();   ///< 8,030,261,248 parameters
[[nodiscard]] LanguageModel llama3_70b();  ///< 70,553,706,496 parameters
[[nodiscard]] LanguageModel llama2_70b();  ///< 68,976,648,192 parameters

/// Returns the three models that a request can name without giving their dimensions.
[[nodiscard]] std::vector<LanguageModel> known_language_models();

}  // namespace gpusched::serving

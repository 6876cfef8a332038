// SPDX-License-Identifier: Apache-2.0
// The shape of a dense decoder-only language model: what decides its memory and its work.
#pragma once

#include <gpusched/core/fields.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// A transformer with gated MLPs and grouped-query attention, without biases.
struct LanguageModel {
    std::string name{};           ///< such as `Llama-3-8B`
    int layers = 0;               ///< transformer layers, >= 1
    int hidden = 0;               ///< width of the residual stream, >= 1
    int heads = 0;                ///< query heads, >= 1
    int kv_heads = 0;             ///< key and value heads, 1 .. heads
    int head_size = 0;            ///< numbers per head, >= 1
    int intermediate = 0;         ///< width of the MLP, >= 1
    int vocabulary = 0;           ///< tokens, >= 1
    double bytes_per_weight = 2;  ///< in memory, 0.1 .. 8
    double bytes_per_kv = 2;      ///< per number of the KV cache, 0.1 .. 8
    bool operator==(const LanguageModel&) const = default;

    /// Weights of the matrices of one layer: 2 hidden (heads + kv_heads) head_size + 3 hidden intermediate.
    [[nodiscard]] double layer_matrix_parameters() const noexcept;
    /// The same with its two norms.
    [[nodiscard]] double layer_parameters() const noexcept;
    /// Everything: layers, input and output embedding (not tied), last norm.
    [[nodiscard]] double parameters() const noexcept;
    /// Bytes of the KV cache of one token in one layer.
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

/// These three, which requests may name.
[[nodiscard]] std::vector<LanguageModel> known_language_models();

}  // namespace gpusched::serving

// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/language_model.hpp>

#include <limits>

namespace gpusched::serving {

GPUSCHED_EXPORT double LanguageModel::layer_matrix_parameters() const noexcept {
    return 2.0 * hidden * (heads + kv_heads) * head_size + 3.0 * hidden * intermediate;
}

GPUSCHED_EXPORT double LanguageModel::layer_parameters() const noexcept {
    return layer_matrix_parameters() + 2.0 * hidden;
}

GPUSCHED_EXPORT double LanguageModel::parameters() const noexcept {
    return layers * layer_parameters() + 2.0 * vocabulary * hidden + hidden;
}

GPUSCHED_EXPORT double LanguageModel::kv_bytes_per_layer() const noexcept {
    return 2.0 * kv_heads * head_size * bytes_per_kv;
}

GPUSCHED_EXPORT void validate(const LanguageModel& model) {
    Problems problems;
    const auto owner = "model " + gpusched::quoted(model.name);
    check_fields(problems, model, owner);
    check_range(problems, "kv_heads", model.kv_heads, 1, model.heads, owner);
    problems.throw_if_any();
}

GPUSCHED_EXPORT LanguageModel llama3_8b() {
    return {.name = "Llama-3-8B",
            .layers = 32,
            .hidden = 4096,
            .heads = 32,
            .kv_heads = 8,
            .head_size = 128,
            .intermediate = 14336,
            .vocabulary = 128256};
}

GPUSCHED_EXPORT LanguageModel llama3_70b() {
    return {.name = "Llama-3-70B",
            .layers = 80,
            .hidden = 8192,
            .heads = 64,
            .kv_heads = 8,
            .head_size = 128,
            .intermediate = 28672,
            .vocabulary = 128256};
}

GPUSCHED_EXPORT LanguageModel llama2_70b() {
    auto model = llama3_70b();
    model.name = "Llama-2-70B";
    model.vocabulary = 32000;
    return model;
}

GPUSCHED_EXPORT std::vector<LanguageModel> known_language_models() {
    return {llama3_8b(), llama3_70b(), llama2_70b()};
}

}  // namespace gpusched::serving

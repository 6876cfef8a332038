// SPDX-License-Identifier: Apache-2.0
// Tables of the model of an engine step: models, GPUs, coefficients and errors.
#pragma once

#include <gpusched/serving/predict.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::serving::detail {

struct KnownModel {
    std::vector<std::string> ids;  ///< on Hugging Face
    LanguageModel model;
};

/// A GPU as the model of a step sees it: dense peaks, in operations and bytes per second.
struct StepGpu {
    std::string_view family;
    double bandwidth, bf16, fp8, fp4, memory;
    double link, network;  ///< to GPUs of the machine or rack, and to others
    double linked;         ///< GPUs of the machine or rack
};

struct KnownGpu {
    std::vector<std::string> names;  ///< the first one for messages
    bool measured;                   ///< whether some measurement of the fit is of this GPU
    StepGpu gpu;
    std::string source;
};

/// Coefficients of a step; benchmarks/serving/estimates/coefficients.json has their meaning.
struct Coefficients {
    double gemm_bandwidth, gemm_compute, expert_bandwidth, expert_compute, cache_bandwidth, attention_compute,
        token_bandwidth, link, collective_s, collective_growth, layer_s, expert_layer_s, step_s, interference,
        request_s, transfer_s, stream, start, memory;
};

/// The properties of a deployment on which coefficients depend.
struct CoefficientKeys {
    std::string_view kind{}, engine{}, release{}, family{}, attention{}, precision{};
};

/// A factor of a coefficient for deployments with these keys; an empty key fits all.
struct CoefficientFactor {
    double Coefficients::*coefficient;
    CoefficientKeys keys;
    double factor;
};

/// 10th and 90th percentile of measured / estimated in a cell.
struct CellError {
    std::string_view cell;  ///< kind of model, family, engine, precision, or the first of these
    int n;
    double tpot_low, tpot_high, ttft_low, ttft_high, rate_low, rate_high;
};

[[nodiscard]] const std::vector<KnownModel>& known_models();
[[nodiscard]] const std::vector<KnownGpu>& known_gpus();
[[nodiscard]] const Coefficients& base_coefficients();
[[nodiscard]] std::span<const CoefficientFactor> coefficient_factors();
/// Coarser cells come first.
[[nodiscard]] std::span<const CellError> cell_errors();

/// The family of GPUs with this name in any case; empty if there is none.
[[nodiscard]] std::string_view known_family(std::string_view name);

/// Whether two names of a model or GPU differ at most in case and in separators.
[[nodiscard]] bool is_same_name(std::string_view name, std::string_view known);

}  // namespace gpusched::serving::detail

// SPDX-License-Identifier: Apache-2.0
// Times to tokens of a serving engine, from a model of its steps that was fitted to measurements of engines.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/model_config.hpp>

#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// The GPUs of one replica: tensor x pipeline x attention data parallel.
struct Parallelism {
    int tensor_parallel = 1;    ///< GPUs that share the attention heads; divides the heads
    int pipeline_parallel = 1;  ///< only 1: pipelines were not measured
    /// Groups among which the experts are distributed; divides the GPUs. Each group splits its experts by
    /// tensor.
    int expert_parallel = 1;
    int attention_data_parallel = 1;  ///< copies of the attention layers, each for its own requests
    bool operator==(const Parallelism&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Parallelism>, F&& field) {
    field("tensor_parallel", &Parallelism::tensor_parallel, within(1, 1024));
    field("pipeline_parallel", &Parallelism::pipeline_parallel);
    field("expert_parallel", &Parallelism::expert_parallel, within(1, 1024));
    field("attention_data_parallel", &Parallelism::attention_data_parallel, within(1, 1024));
}

/// Equal workers that prefill, or that decode.
struct Workers {
    int workers = 1;            ///< number of workers
    Parallelism parallelism{};  ///< GPUs of each worker
    bool operator==(const Workers&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Workers>, F&& field) {
    field("workers", &Workers::workers, within(1, 1024));
    field("parallelism", &Workers::parallelism, Inlined{});
}

/// The engine and its load: clients that send their next request as soon as the last one is answered.
struct EngineLoad {
    Engine engine = Engine::vllm;           ///< the engine; `trtllm` is TensorRT-LLM
    std::string engine_version{};           ///< such as `0.12.0`; empty = a recent release
    Precision precision = Precision::bf16;  ///< of the checkpoint
    int concurrency = 64;                   ///< clients of the whole replica
    int input = 1024;                       ///< tokens of the prompt, without hits of the prefix cache
    int output = 1024;                      ///< tokens generated
    bool operator==(const EngineLoad&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<EngineLoad>, F&& field) {
    field("engine", &EngineLoad::engine);
    field("engine_version", &EngineLoad::engine_version);
    field("precision", &EngineLoad::precision);
    field("concurrency", &EngineLoad::concurrency, within(1, 1'000'000));
    field("input", &EngineLoad::input, within(1, 10'000'000));
    field("output", &EngineLoad::output, within(1, 10'000'000));
}

/// The errors of a prediction.
struct PredictionErrors {
    ErrorBand ttft{};            ///< error of the time to the first token
    ErrorBand tpot{};            ///< error of the time per token
    ErrorBand requests_per_s{};  ///< error of the requests per second
    bool operator==(const PredictionErrors&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PredictionErrors>, F&& field) {
    field("ttft", &PredictionErrors::ttft);
    field("tpot", &PredictionErrors::tpot);
    field("requests_per_s", &PredictionErrors::requests_per_s);
}

/// Predicted times of a replica.
struct Prediction {
    bool fits = false;          ///< whether weights and the longest request fit; if not, times are NaN
    double ttft_s = 0;          ///< mean seconds to the first token, seen by the client
    double tpot_s = 0;          ///< mean seconds per further token
    double requests_per_s = 0;  ///< answered requests per second
    double running = 0;         ///< mean number of requests that decode
    int gpus = 0;               ///< GPUs in use
    PredictionErrors error{};   ///< errors of comparable measurements
    /// Seconds of `tpot_s` by term: dense, experts, attention, activations, collectives, fixed, and prompts
    /// (time lost to the prompts of other requests).
    std::map<std::string, double> parts{};
    std::vector<std::string> assumptions{};  ///< the conditions of the prediction, in sentences
    bool operator==(const Prediction&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Prediction>, F&& field) {
    field("fits", &Prediction::fits);
    field("ttft_s", &Prediction::ttft_s);
    field("tpot_s", &Prediction::tpot_s);
    field("requests_per_s", &Prediction::requests_per_s);
    field("running", &Prediction::running);
    field("gpus", &Prediction::gpus);
    field("error", &Prediction::error);
    field("parts", &Prediction::parts);
    field("assumptions", &Prediction::assumptions);
}

/// Predicts the times to tokens of a replica that prefills and decodes.
///
/// The model of a step and its coefficients are those of benchmarks/serving/step_model.py, fitted to published
/// measurements of vLLM, SGLang and TensorRT-LLM. `estimate_throughput` and `plan_serving` use them, too.
/// @param gpu a name such as `H100`, `GB200` or `h100_sxm`; case does not count
/// @throws InvalidInput for unknown names and with every value out of range
[[nodiscard]] Prediction predict(const LanguageModel& model, std::string_view gpu,
                                 const Parallelism& parallelism = {}, const EngineLoad& load = {});

/// Predicts the same for separate workers that prefill and that decode, which share `concurrency` clients.
/// @throws InvalidInput as `predict`
[[nodiscard]] Prediction predict_disaggregated(const LanguageModel& model, std::string_view gpu,
                                               const Workers& prefill = {}, const Workers& decode = {},
                                               const EngineLoad& load = {});

}  // namespace gpusched::serving

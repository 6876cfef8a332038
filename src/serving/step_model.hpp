// SPDX-License-Identifier: Apache-2.0
// The time of one step of a serving engine, from coefficients that were fitted to measurements. The functions
// are those of benchmarks/serving/step_model.py, which explains them; tests compare both.
#pragma once

#include "serving/engine_tables.hpp"

#include <gpusched/serving/predict.hpp>

#include <string>

namespace gpusched::serving::detail {

/// A replica or worker: degrees of attention and of experts, bytes per number and peaks by kind of matrix.
struct Replica {
    double tensor, data, expert, expert_tensor;
    double attention_bytes, attention_peak, mlp_bytes, mlp_peak, expert_bytes, expert_peak, cache_bytes;
};

[[nodiscard]] double bytes_of(Precision precision);
[[nodiscard]] double peak_of(const StepGpu& gpu, Precision precision);
/// The format of the attention matrices in a checkpoint of some precision.
[[nodiscard]] Precision attention_precision(const LanguageModel& model, Precision precision);

/// The cache of a sequence on each GPU of a tensor-parallel group.
struct CacheSize {
    /// @param tensor  tensor-parallel degree
    /// @param bytes   bytes per number of keys and values
    CacheSize(const LanguageModel& model, double tensor, double bytes);

    /// Bytes of all layers for a sequence of `tokens` tokens: windows hold at most their size.
    [[nodiscard]] double bytes(double tokens) const;

    double full, window_layers;  ///< layers that see the whole context, and a sliding window
    double window;               ///< tokens
    double entry, index;         ///< bytes per token in a softmax layer, and in the index of sparse attention
    double state;                ///< bytes of the states of linear attention
};

/// Seconds of the parts of a step.
struct StepParts {
    double dense, experts, decode, prefill, other, collectives, fixed;
    [[nodiscard]] double total() const {
        return dense + experts + decode + prefill + other + collectives + fixed;
    }
};

/// The work of a step.
///
/// On each of `ranks` ranks of data-parallel attention the step computes `prompt` new tokens of prompts. They
/// attend to `context` tokens on average. For each of `sequences` sequences of the replica, which have
/// `cached` tokens in the cache, it computes one token.
struct StepWork {
    double prompt = 0, ranks = 0, context = 0, sequences = 0, cached = 0;
};

/// A model on a replica of GPUs, with the coefficients of an engine. Everything that does not depend on the
/// work of a step is computed once.
class StepModel {
  public:
    StepModel(const LanguageModel& model, const StepGpu& gpu, const Coefficients& coefficients,
              const Replica& replica);

    /// Seconds of the parts of one step.
    [[nodiscard]] StepParts parts(const StepWork& work) const;
    /// Seconds of all layers in one step, without the output embedding and the fixed time of the step.
    [[nodiscard]] double layers_seconds(const StepWork& work) const { return layers(work).total(); }
    /// Seconds of the output embedding for so many sequences per rank; included in `dense`.
    [[nodiscard]] double head_seconds(double sequences) const;
    /// Bytes per GPU of the weights.
    [[nodiscard]] double weight_bytes() const { return weight_bytes_; }
    /// Sequences of the replica whose cache fits into `memory` bytes per GPU with `tokens` tokens each.
    [[nodiscard]] double sequences_in(double memory, double tokens) const;

    [[nodiscard]] const Coefficients& coefficients() const { return c_; }
    [[nodiscard]] const Replica& replica() const { return r_; }

  private:
    /// The parts of a step without the output embedding and the fixed time of the step.
    [[nodiscard]] StepParts layers(const StepWork& work) const;
    /// Tokens that attention reads, over all softmax layers.
    [[nodiscard]] double seen(double context) const;

    Coefficients c_;
    Replica r_;
    double bandwidth_, bf16_;
    double attention_, mlp_, expert_, head_;  ///< parameters per GPU; `mlp_` with shared experts
    double expert_layers_;                    ///< layers with experts
    CacheSize cache_;
    double index_top_k_;
    double missed_ = 0;  ///< logarithm of the probability that a token does not meet an expert
    double experts_, top_k_;
    double state_;  ///< operations or bytes of the states of linear attention, read and written
    double decode_width_, prefill_width_, index_width_;  ///< operations per token that is seen
    double moved_width_, moved_experts_;                 ///< numbers that activations move per token
    double collective_s_ = 0, collective_token_s_ = 0;   ///< per step, and per token of a rank
    double fixed_, weight_bytes_;
};

/// Weights in the matrices of all layers of a model, experts included.
[[nodiscard]] double matrix_parameters(const LanguageModel& model);

/// The coefficients of an engine on a GPU family, for a kind of attention and a precision.
[[nodiscard]] Coefficients coefficients_of(const CoefficientKeys& of);
/// The kind of model and the kind of attention, as in the keys of coefficients.
[[nodiscard]] const char* kind_of(const LanguageModel& model);
[[nodiscard]] const char* attention_of(const LanguageModel& model);
/// The errors of the closest cell.
/// @param cell kind of model, family, engine, precision
[[nodiscard]] PredictionErrors errors_of(const std::string& cell);

}  // namespace gpusched::serving::detail

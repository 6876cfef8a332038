// SPDX-License-Identifier: Apache-2.0
// The model of an engine step.
#include "serving/step_model.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace gpusched::serving::detail {

double bytes_of(Precision precision) {
    return precision == Precision::bf16 ? 2 : precision == Precision::fp8 ? 1 : 0.5625;
}

double peak_of(const StepGpu& g, Precision precision) {
    return precision == Precision::fp8 ? g.fp8 : precision == Precision::fp4 ? g.fp4 : g.bf16;
}

Precision attention_precision(const LanguageModel& m, Precision precision) {
    return precision == Precision::fp4    ? m.attention_of_fp4
           : precision == Precision::int4 ? m.attention_of_int4
                                          : precision;
}

/// Seconds of a kernel that is bound by arithmetic or by memory, rounded if both take as long.
static double roofline(double operations, double peak, double size, double bandwidth) {
    const double compute = operations / peak, memory = size / bandwidth;
    return std::sqrt(compute * compute + memory * memory);  // of seconds no square overflows
}

/// Parameters per GPU of the projections of a softmax attention layer.
static double attention_parameters(const LanguageModel& m, double tensor) {
    const double hidden = m.hidden, heads = m.heads, kv_heads = m.kv_heads;
    if (m.kv_lora_rank == 0)
        return hidden * m.head_size *
               (heads * (2.0 + (m.gated ? 1 : 0)) / tensor + 2 * kv_heads / std::min(tensor, kv_heads));
    const double q_rank = m.q_lora_rank, kv_rank = m.kv_lora_rank, nope = m.nope_size, value = m.value_size;
    const double rope = m.rope_size, index_heads = m.index_heads, index_size = m.index_size;
    const double every_gpu =
        hidden * (q_rank + kv_rank + rope + index_size + index_heads) + q_rank * index_heads * index_size;
    const double queries = q_rank > 0 ? q_rank : hidden;
    return every_gpu + heads / tensor * (queries * (nope + rope) + kv_rank * (nope + value) + value * hidden);
}

/// Parameters per GPU.
struct Parameters {
    double attention, mlp, expert, head;  ///< `mlp` with shared experts; `expert` is one expert
};

static Parameters parameters(const LanguageModel& m, double tensor, double expert_tensor) {
    const double layers = m.layers, hidden = m.hidden, linear_layers = m.linear_layers;
    const double dense_layers = m.experts > 0 ? m.first_dense : m.layers;
    const double linear =
        hidden * m.linear_size * (2.0 * m.linear_key_heads + 3.0 * m.linear_value_heads) / tensor;
    const double shared = (layers - dense_layers) * m.shared_experts * m.moe_intermediate;
    return {(layers - linear_layers) * attention_parameters(m, tensor) + linear_layers * linear,
            3 * hidden * (dense_layers * m.intermediate + shared) / tensor,
            3 * hidden * m.moe_intermediate / expert_tensor, m.vocabulary * hidden / tensor};
}

static double expert_layers(const LanguageModel& m) { return m.experts > 0 ? m.layers - m.first_dense : 0; }

double matrix_parameters(const LanguageModel& m) {
    const auto p = parameters(m, 1, 1);
    return p.attention + p.mlp + expert_layers(m) * m.experts * p.expert;
}

/// Numbers per token in a latent cache; 0 = attention is not latent.
static double latent_size(const LanguageModel& m) {
    return m.kv_lora_rank > 0 ? double(m.kv_lora_rank) + m.rope_size : 0;
}

CacheSize::CacheSize(const LanguageModel& m, double tensor, double bytes)
    : full(double(m.layers) - m.linear_layers - m.window_layers), window_layers(m.window_layers),
      window(m.window), index(m.index_size) {
    // Latent caches are on every GPU. With fewer KV heads than GPUs, each GPU holds the cache of its head.
    const double latent = latent_size(m), kv_heads = m.kv_heads;
    entry = (latent > 0 ? latent : 2 * kv_heads * m.head_size / std::min(tensor, kv_heads)) * bytes;
    // In FP32.
    state = 4.0 * m.linear_layers * m.linear_value_heads * m.linear_size * m.linear_size / tensor;
}

double CacheSize::bytes(double tokens) const {
    return (full * tokens + window_layers * std::min(tokens, window)) * entry + full * tokens * index + state;
}

StepModel::StepModel(const LanguageModel& m, const StepGpu& g, const Coefficients& c, const Replica& r)
    : c_(c), r_(r), bandwidth_(g.bandwidth), bf16_(g.bf16), cache_(m, r.tensor, r.cache_bytes),
      index_top_k_(m.index_top_k), experts_(m.experts), top_k_(m.top_k) {
    const double layers = m.layers, hidden = m.hidden, heads = m.heads, latent = latent_size(m);
    expert_layers_ = expert_layers(m);
    const auto per_gpu = parameters(m, r.tensor, r.expert_tensor);
    attention_ = per_gpu.attention, mlp_ = per_gpu.mlp, expert_ = per_gpu.expert, head_ = per_gpu.head;
    if (m.experts > 0) missed_ = std::log1p(-top_k_ / experts_);

    state_ = 2 * cache_.state;
    decode_width_ = 2 * heads * (latent > 0 ? m.kv_lora_rank + latent : 2.0 * m.head_size) / r.tensor;
    prefill_width_ = 2 * heads *
                     (latent > 0 ? double(m.nope_size) + m.rope_size + m.value_size : 2.0 * m.head_size) /
                     r.tensor;
    index_width_ = 2 * cache_.full * m.index_heads * m.index_size;

    // Norms, residuals and rotations read or write the hidden vector about 8 times a layer; activations enter
    // and leave each matrix. 2 bytes a number.
    moved_width_ = 8 * layers * hidden + (attention_ + mlp_) / hidden;
    moved_experts_ = top_k_ / r.expert * expert_layers_ * expert_ / hidden;

    // Two all-reduces a layer; with data-parallel attention, tokens go to their experts and back (FP8, BF16).
    if (const double gpus = r.tensor * r.data; gpus > 1) {
        const double link = (gpus > g.linked ? g.network : g.link) * c.link;
        // Switches of NVLink add up the numbers that they receive, so that each crosses a link once.
        const double all_reduce = g.link >= 4.5e11 ? 1 : 2 * (gpus - 1) / gpus;
        const double copies = r.data > 1 ? 0.75 * std::min(top_k_, gpus - 1) : all_reduce;
        collective_s_ = 2 * layers * c.collective_s * std::pow(gpus / 2, c.collective_growth);
        collective_token_s_ = 2 * layers * copies * hidden * 2 / link;
    }
    fixed_ = c.layer_s * layers + c.expert_layer_s * expert_layers_;
    weight_bytes_ = attention_ * r.attention_bytes + mlp_ * r.mlp_bytes + 2 * head_ * 2 +
                    expert_layers_ * experts_ / r.expert * expert_ * r.expert_bytes;
}

double StepModel::seen(double context) const {
    const double best = index_top_k_ > 0 ? std::min(context, index_top_k_) : context;
    return cache_.full * best + cache_.window_layers * std::min(context, cache_.window);
}

double StepModel::head_seconds(double sequences) const {
    return roofline(2 * head_ * sequences, bf16_ * c_.gemm_compute, head_ * 2,
                    bandwidth_ * c_.gemm_bandwidth);
}

StepParts StepModel::parts(const StepWork& work) const {
    auto parts = layers(work);
    parts.dense += head_seconds(work.sequences / r_.data);
    parts.fixed += c_.step_s;
    return parts;
}

StepParts StepModel::layers(const StepWork& work) const {
    const double running = work.sequences / r_.data;
    const double tokens = work.prompt * work.ranks + work.sequences;  // of the replica
    const double own = work.prompt + running;                         // of a rank

    const double bandwidth = bandwidth_ * c_.gemm_bandwidth;
    StepParts parts{};
    parts.dense = roofline(2 * attention_ * own, r_.attention_peak * c_.gemm_compute,
                           attention_ * r_.attention_bytes, bandwidth) +
                  roofline(2 * mlp_ * own, r_.mlp_peak * c_.gemm_compute, mlp_ * r_.mlp_bytes, bandwidth);

    // A token meets top_k of the experts; a GPU reads those of its experts that at least one token meets.
    if (expert_layers_ > 0) {
        const double touched = experts_ / r_.expert * -std::expm1(tokens * missed_);
        parts.experts =
            expert_layers_ * roofline(2 * expert_ * top_k_ * tokens / r_.expert,
                                      r_.expert_peak * c_.expert_compute, touched * expert_ * r_.expert_bytes,
                                      bandwidth_ * c_.expert_bandwidth);
    }

    // With an index, attention reads the best index_top_k tokens, after a pass over the index (in FP8).
    const double peak = bf16_ * c_.attention_compute;
    if (running > 0) {
        const double seen_tokens = seen(work.cached);
        const double read = seen_tokens * cache_.entry + cache_.full * work.cached * cache_.index + state_;
        parts.decode = running * roofline(decode_width_ * seen_tokens + index_width_ * work.cached, peak,
                                          read, bandwidth_ * c_.cache_bandwidth);
    }
    if (work.prompt > 0)
        parts.prefill =
            work.prompt *
            (prefill_width_ * seen(work.context) + index_width_ * work.context / r_.tensor + state_) / peak;

    parts.other = 2 * (own * moved_width_ + tokens * moved_experts_) / (bandwidth_ * c_.token_bandwidth);
    parts.collectives = collective_s_ + collective_token_s_ * own;
    parts.fixed = fixed_;
    return parts;
}

double StepModel::sequences_in(double memory, double tokens) const {
    return (memory - weight_bytes_) / cache_.bytes(tokens) * r_.data;
}

const char* kind_of(const LanguageModel& m) { return m.experts > 0 ? "moe" : "dense"; }

const char* attention_of(const LanguageModel& m) {
    return m.index_top_k > 0     ? "sparse"
           : m.linear_layers > 0 ? "linear"
           : m.kv_lora_rank > 0  ? "latent"
                                 : "grouped";
}

Coefficients coefficients_of(const CoefficientKeys& of) {
    const auto fits = [](std::string_view key, std::string_view value) {
        return key.empty() || key == value;
    };
    auto result = base_coefficients();
    for (const auto& [coefficient, keys, factor] : coefficient_factors())
        if (fits(keys.kind, of.kind) && fits(keys.engine, of.engine) && fits(keys.release, of.release) &&
            fits(keys.family, of.family) && fits(keys.attention, of.attention) &&
            fits(keys.precision, of.precision))
            result.*coefficient *= factor;
    return result;
}

PredictionErrors errors_of(const std::string& cell) {
    const CellError* found = nullptr;
    for (const auto& row : cell_errors())
        if (row.cell.empty() || (cell + " ").starts_with(std::string(row.cell) + " ")) found = &row;
    const auto band = [&](double low, double high) {
        return ErrorBand{low, high, found->cell.empty() ? "all" : std::string(found->cell), found->n};
    };
    return {band(found->ttft_low, found->ttft_high), band(found->tpot_low, found->tpot_high),
            band(found->rate_low, found->rate_high)};
}

}  // namespace gpusched::serving::detail

// SPDX-License-Identifier: Apache-2.0
// Times to tokens of a serving engine. The functions of a step are those of benchmarks/serving/step_model.py,
// which explains them; tests compare both.
#include "serving/engine_tables.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/serving/predict.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

namespace detail {

namespace {

/// Most tokens of prompts in a step.
constexpr double step_tokens = 8192;
/// The largest fraction of the memory that engines are usually set to use.
constexpr double largest_memory_fraction = 0.95;

/// A replica or worker: degrees of attention and of experts, bytes per number and peaks by kind of matrix.
struct Replica {
    double tensor, data, expert, expert_tensor;
    double attention_bytes, attention_peak, mlp_bytes, mlp_peak, expert_bytes, expert_peak, cache_bytes;
};

double bytes_of(Precision precision) {
    return precision == Precision::bf16 ? 2 : precision == Precision::fp8 ? 1 : 0.5625;
}

double peak_of(const KnownGpu& g, Precision precision) {
    return precision == Precision::fp8 ? g.fp8 : precision == Precision::fp4 ? g.fp4 : g.bf16;
}

Precision attention_precision(const ModelShape& m, Precision precision) {
    return precision == Precision::fp4    ? m.attention_of_fp4
           : precision == Precision::int4 ? m.attention_of_int4
                                          : precision;
}

Replica replica_of(const ModelShape& m, const KnownGpu& g, const Parallelism& p, Precision precision) {
    const auto attention = attention_precision(m, precision);
    const double bytes = bytes_of(precision), peak = peak_of(g, precision);
    const double gpus = double(p.tensor_parallel) * p.attention_data_parallel;
    return {.tensor = double(p.tensor_parallel),
            .data = double(p.attention_data_parallel),
            .expert = double(p.expert_parallel),
            .expert_tensor = gpus / p.expert_parallel,
            .attention_bytes = bytes_of(attention),
            .attention_peak = peak_of(g, attention),
            .mlp_bytes = bytes,
            .mlp_peak = peak,
            .expert_bytes = bytes,
            .expert_peak = peak,
            .cache_bytes = precision == Precision::bf16 ? 2.0 : 1.0};
}

/// Seconds of a kernel that is bound by arithmetic or by memory, rounded if both take as long.
double roofline(double operations, double peak, double size, double bandwidth) {
    return std::hypot(operations / peak, size / bandwidth);
}

/// Parameters per GPU of the projections of a softmax attention layer.
double attention_parameters(const ModelShape& m, double tensor) {
    if (m.kv_lora_rank == 0)
        return m.hidden * m.head_size *
               (m.heads * (2 + m.gated) / tensor + 2 * m.kv_heads / std::min(tensor, m.kv_heads));
    const double every_gpu =
        m.hidden * (m.q_lora_rank + m.kv_lora_rank + m.rope_size + m.index_size + m.index_heads) +
        m.q_lora_rank * m.index_heads * m.index_size;
    const double queries = m.q_lora_rank > 0 ? m.q_lora_rank : m.hidden;
    const double heads =
        queries * (m.nope_size + m.rope_size) + m.kv_lora_rank * (m.nope_size + m.value_size);
    return every_gpu + m.heads / tensor * (heads + m.value_size * m.hidden);
}

/// Parameters per GPU.
struct Parameters {
    double attention, mlp, expert, head;  ///< `mlp` with shared experts; `expert` is one expert
};

Parameters parameters(const ModelShape& m, const Replica& r) {
    const double dense_layers = m.experts > 0 ? m.first_dense : m.layers;
    const double linear =
        m.hidden * m.linear_size * (2 * m.linear_key_heads + 3 * m.linear_value_heads) / r.tensor;
    const double shared = (m.layers - dense_layers) * m.shared_experts * m.moe_intermediate;
    return {(m.layers - m.linear_layers) * attention_parameters(m, r.tensor) + m.linear_layers * linear,
            3 * m.hidden * (dense_layers * m.intermediate + shared) / r.tensor,
            3 * m.hidden * m.moe_intermediate / r.expert_tensor, m.vocabulary * m.hidden / r.tensor};
}

double expert_layers(const ModelShape& m) { return m.experts > 0 ? m.layers - m.first_dense : 0; }

/// Layers whose attention sees the whole context.
double softmax_layers(const ModelShape& m) { return m.layers - m.linear_layers - m.window_layers; }

/// Bytes per GPU that a token leaves in the cache of a softmax layer; latent caches are on every GPU.
double cache_entry_bytes(const ModelShape& m, const Replica& r) {
    const double latent = m.kv_lora_rank + m.rope_size;
    return (latent > 0 ? latent : 2 * m.kv_heads * m.head_size / std::min(r.tensor, m.kv_heads)) *
           r.cache_bytes;
}

/// Numbers per GPU in the state of a sequence in a layer of linear attention.
double linear_state(const ModelShape& m, const Replica& r) {
    return m.linear_value_heads * m.linear_size * m.linear_size / r.tensor;
}

/// Seconds of the parts of a step.
struct StepParts {
    double dense, experts, decode, prefill, other, collectives, fixed;
    [[nodiscard]] double total() const {
        return dense + experts + decode + prefill + other + collectives + fixed;
    }
};

/// A model on a GPU with the coefficients of an engine.
struct Setting {
    const ModelShape& m;
    const KnownGpu& g;
    Coefficients c;
    double input, output;
};

/// Seconds of the parts of one step.
///
/// On each of `ranks` ranks of data-parallel attention the step computes `prompt` new tokens of prompts, which
/// attend to `context` tokens on average. For each of `sequences` sequences of the replica, which have
/// `cached` tokens in the cache, it computes one token.
StepParts step_parts(const Setting& s, const Replica& r, double prompt, double ranks, double context,
                     double sequences, double cached) {
    const auto& [m, g, c, input, output] = s;
    const double gpus = r.tensor * r.data;
    const double tokens = prompt * ranks + sequences;  // of the replica
    const double own = prompt + sequences / r.data;    // of a rank
    const double running = sequences / r.data;

    const auto [attention, mlp, expert, head] = parameters(m, r);
    const double bandwidth = g.bandwidth * c.gemm_bandwidth;
    const double dense = roofline(2 * attention * own, r.attention_peak * c.gemm_compute,
                                  attention * r.attention_bytes, bandwidth) +
                         roofline(2 * mlp * own, r.mlp_peak * c.gemm_compute, mlp * r.mlp_bytes, bandwidth) +
                         roofline(2 * head * running, g.bf16 * c.gemm_compute, head * 2, bandwidth);

    // A token meets top_k of the experts; a GPU reads those of its experts that at least one token meets.
    const double missed = m.experts > 0 ? tokens * std::log1p(-m.top_k / m.experts) : 0;
    const double touched = m.experts / r.expert * -std::expm1(missed);
    const double experts =
        expert_layers(m) * roofline(2 * expert * m.top_k * tokens / r.expert,
                                    r.expert_peak * c.expert_compute, touched * expert * r.expert_bytes,
                                    g.bandwidth * c.expert_bandwidth);

    // With an index, attention reads the best index_top_k tokens, after a pass over the index (in FP8).
    const double peak = g.bf16 * c.attention_compute;
    const double full = softmax_layers(m), latent = m.kv_lora_rank + m.rope_size;
    const double state = 8 * m.linear_layers * linear_state(m, r);  // read and written in FP32
    const auto seen = [&](double context_tokens) {
        const double best = m.index_top_k > 0 ? std::min(context_tokens, m.index_top_k) : context_tokens;
        return full * best + m.window_layers * std::min(context_tokens, m.window);
    };
    const double read = seen(cached) * cache_entry_bytes(m, r) + full * cached * m.index_size + state;
    const double decode_width = latent > 0 ? m.kv_lora_rank + latent : 2 * m.head_size;
    const double decode_operations = 2 * m.heads * decode_width / r.tensor * seen(cached) +
                                     2 * full * cached * m.index_heads * m.index_size;
    const double decode = running * roofline(decode_operations, peak, read, g.bandwidth * c.cache_bandwidth);

    const double prefill_width = latent > 0 ? m.nope_size + m.rope_size + m.value_size : 2 * m.head_size;
    const double prefill_operations = 2 * m.heads * prefill_width / r.tensor * seen(context) +
                                      2 * full * context * m.index_heads * m.index_size / r.tensor;
    const double prefill = prompt * (prefill_operations + state) / peak;

    // Norms, residuals and rotations read or write the hidden vector about 8 times a layer; activations enter
    // and leave each matrix. 2 bytes a number.
    const double width = 8 * m.layers * m.hidden + (attention + mlp) / m.hidden;
    const double moved = own * width + tokens * m.top_k / r.expert * expert_layers(m) * expert / m.hidden;
    const double other = 2 * moved / (g.bandwidth * c.token_bandwidth);

    // Two all-reduces a layer; with data-parallel attention, tokens go to their experts and back (FP8, BF16).
    double collectives = 0;
    if (gpus > 1) {
        const double link = (gpus > g.linked ? g.network : g.link) * c.link;
        const double start = c.collective_s * std::pow(gpus / 2, c.collective_growth);
        const double copies = r.data > 1 ? 0.75 * std::min(m.top_k, gpus - 1) : 2 * (gpus - 1) / gpus;
        collectives = 2 * m.layers * (start + copies * own * m.hidden * 2 / link);
    }

    const double fixed = c.step_s + c.layer_s * m.layers + c.expert_layer_s * expert_layers(m);
    return {dense, experts, decode, prefill, other, collectives, fixed};
}

StepParts decode_parts(const Setting& s, const Replica& r, double sequences) {
    return step_parts(s, r, 0, 0, 0, sequences, s.input + s.output / 2);
}

/// Seconds of a step that computes `prompts` prompts on each of `ranks` ranks.
double prompt_seconds(const Setting& s, const Replica& r, double prompts, double ranks) {
    return step_parts(s, r, prompts * s.input, ranks, s.input / 2, prompts * ranks, 0).total();
}

/// Seconds of a replica per prompt if every step is full of prompts.
double full_batch_seconds(const Setting& s, const Replica& r) {
    const double prompts = std::max(1.0, step_tokens / s.input);
    return prompt_seconds(s, r, prompts, r.data) / (prompts * r.data);
}

/// Bytes per GPU of the weights.
double weight_bytes(const ModelShape& m, const Replica& r) {
    const auto [attention, mlp, expert, head] = parameters(m, r);
    return attention * r.attention_bytes + mlp * r.mlp_bytes + 2 * head * 2 +
           expert_layers(m) * m.experts / r.expert * expert * r.expert_bytes;
}

/// Sequences of a replica whose cache fits into `memory` bytes per GPU with `tokens` tokens each.
double sequences_in(double memory, const Setting& s, const Replica& r, double tokens) {
    const auto& m = s.m;
    const double full = softmax_layers(m);
    const double each =
        (full * tokens + m.window_layers * std::min(tokens, m.window)) * cache_entry_bytes(m, r) +
        full * tokens * m.index_size + 4 * m.linear_layers * linear_state(m, r);
    return (memory - weight_bytes(m, r)) / each * r.data;
}

/// Sequences of a replica whose cache fits into memory on average, at least 1.
double most_sequences(const Setting& s, const Replica& r) {
    return std::max(1.0, sequences_in(s.g.memory * s.c.memory, s, r, s.input + s.output / 2));
}

/// Seconds of a request, and the step and load that lead to them.
struct Times {
    double first, token, running, most;
    StepParts step;
};

/// Times of a replica that prefills and decodes.
///
/// Each running request loses time to the prompts of the others: one prompt of each in the life of a request.
/// Requests beyond the memory wait for a place.
Times aggregated(const Setting& s, const Replica& r, double concurrency) {
    const auto& c = s.c;
    const double batched = full_batch_seconds(s, r);
    Times t{};
    t.most = std::min(concurrency, most_sequences(s, r));
    double batch = t.most, load = 0.5, life = 0;  // running requests; share of the time that prompts take
    for (int i = 0; i < 4; ++i) {
        const double ranks = 1 + (r.data - 1) * load;  // that compute a prompt at the same time
        const double prompt = prompt_seconds(s, r, 1, ranks);
        const double lost = c.interference * prompt / ranks;
        t.running = batch;
        t.step = decode_parts(s, r, batch);
        t.token = t.step.total() + std::max(batch - 1, 0.0) * lost / s.output;
        load = std::min(batch * lost / (s.output * t.token), 1.0);
        const double wait = c.start * std::max(t.most - 1, 0.0) / 2 * batched;
        t.first = c.request_s + prompt + c.stream * t.token + wait;
        life = t.first + s.output * t.token;
        batch = t.most * s.output * t.token / life;
    }
    t.first += (concurrency / t.most - 1) * life;
    return t;
}

/// The same for prefill workers p and decode workers d. If prompts are the bottleneck, requests wait for them
/// and fewer are running.
Times disaggregated(const Setting& s, const Replica& p, const Replica& d, double concurrency,
                    double prefill_workers, double decode_workers) {
    const auto& c = s.c;
    const double batched = full_batch_seconds(s, p);
    Times t{};
    t.most = std::min(concurrency, decode_workers * most_sequences(s, d));
    double batch = t.most, load = 0.5, life = 0;
    for (int i = 0; i < 6; ++i) {
        const double ranks = 1 + (p.data - 1) * load;
        const double prompt = prompt_seconds(s, p, 1, ranks);
        t.running = batch;
        t.step = decode_parts(s, d, batch / decode_workers);
        t.token = t.step.total();
        load = std::min(batch / prefill_workers * batched / (s.output * t.token), 1.0);
        const double wait = c.start * std::max(t.most / prefill_workers - 1, 0.0) / 2 * batched;
        t.first = c.request_s + c.transfer_s + prompt + c.stream * t.token + wait;
        const double starved = std::max(t.most / prefill_workers * batched - s.output * t.token, 0.0);
        t.first = std::hypot(t.first, starved);
        life = t.first + s.output * t.token;
        batch = (batch + t.most * s.output * t.token / life) / 2;
    }
    t.first += (concurrency / t.most - 1) * life;
    return t;
}

const KnownGpu& find_gpu(std::string_view name) {
    std::vector<std::string> names;
    for (const auto& gpu : known_gpus()) {
        for (const auto& known : gpu.names)
            if (is_same_name(name, known)) return gpu;
        names.push_back(gpu.names.front());
    }
    throw InvalidInput(bad_name("gpu", name, names));
}

/// Whether a version precedes the last change of the engine's defaults; a version without number is new.
bool is_old(Engine engine, std::string_view version) {
    std::vector<int> numbers;
    while (!version.empty() && numbers.size() < 3) {
        int number = 0;
        if (version.front() >= '0' && version.front() <= '9' && take_number(version, number))
            numbers.push_back(number);
        else
            version.remove_prefix(1);
    }
    const std::vector<int> change = engine == Engine::trtllm ? std::vector{1, 1}
                                    : engine == Engine::vllm ? std::vector{0, 13}
                                                             : std::vector{0, 5, 2};
    // 0.x of TensorRT-LLM are versions of the server around the engine.
    const bool server = engine == Engine::trtllm && !numbers.empty() && numbers[0] == 0;
    return !numbers.empty() && numbers < change && !server;
}

const char* attention_of(const ModelShape& m) {
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
        if (fits(keys.engine, of.engine) && fits(keys.release, of.release) && fits(keys.family, of.family) &&
            fits(keys.attention, of.attention) && fits(keys.precision, of.precision))
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

void check(Problems& problems, const ModelShape& m) {
    const auto owner = "model " + gpusched::quoted(m.name);
    for (const auto& [name, value] :
         {std::pair("layers", m.layers), std::pair("hidden", m.hidden), std::pair("heads", m.heads),
          std::pair("kv_heads", m.kv_heads), std::pair("vocabulary", m.vocabulary)})
        check_range(problems, name, value, 1.0, 1e9, owner);
}

void check(Problems& problems, const ModelShape& m, const Parallelism& p, std::string_view owner) {
    const auto before = problems.count();
    check_fields(problems, p, owner);
    if (problems.count() > before) return;
    if (p.pipeline_parallel != 1)
        problems.add(bad_value("pipeline_parallel", number_text(p.pipeline_parallel),
                               "1: no pipeline is among the measurements", owner));
    if (std::fmod(m.heads, p.tensor_parallel) != 0)
        problems.add(bad_value("tensor_parallel", number_text(p.tensor_parallel),
                               "a divisor of the " + number_text(m.heads) + " attention heads", owner));
    const int gpus = p.tensor_parallel * p.attention_data_parallel;
    if (m.experts == 0 && p.expert_parallel > 1)
        problems.add(bad_value("expert_parallel", number_text(p.expert_parallel),
                               "1 for a model without experts", owner));
    else if (p.expert_parallel > 1 && (gpus % p.expert_parallel != 0 || p.expert_parallel > m.experts))
        problems.add(bad_value("expert_parallel", number_text(p.expert_parallel),
                               "a divisor of the " + number_text(gpus) + " GPUs, at most the " +
                                   number_text(m.experts) + " experts",
                               owner));
}

/// Workers of one kind.
struct Role {
    const Parallelism& parallelism;
    double tokens;     ///< of the longest request in its cache
    const char* name;  ///< in sentences
};

std::string gigabytes(double bytes) { return number_text(std::round(bytes / 1e8) / 10) + " GB"; }

/// The common part of both modes. `times(setting, gpu)` computes the times if all workers fit.
template <class F>
Prediction predict_with(const ModelShape& m, std::string_view gpu_name, const EngineLoad& load,
                        const std::vector<Role>& roles, const F& times) {
    const auto& gpu = find_gpu(gpu_name);
    const auto engine = std::string(enum_name(load.engine)),
               precision = std::string(enum_name(load.precision));
    const bool old = is_old(load.engine, load.engine_version);
    const auto release = engine + (old ? "-old" : "");
    const Setting s{m, gpu, coefficients_of({engine, release, gpu.family, attention_of(m), precision}),
                    double(load.input), double(load.output)};

    Prediction result;
    result.error =
        errors_of((m.experts > 0 ? "moe " : "dense ") + gpu.family + " " + engine + " " + precision);
    auto& notes = result.assumptions;
    notes.push_back(engine + (load.engine_version.empty() ? "" : " " + load.engine_version) + ": " +
                    (old ? "defaults of old releases" : "defaults of recent releases") +
                    ", prompts in steps of up to 8192 tokens");
    notes.push_back(
        number_text(load.concurrency) + " clients send the next request when the last one is answered: " +
        number_text(load.input) + " tokens in, " + number_text(load.output) + " out, without prefix hits");
    notes.push_back("weights in " + precision + ", attention matrices in " +
                    std::string(enum_name(attention_precision(m, load.precision))) + ", KV cache with " +
                    (load.precision == Precision::bf16 ? "2 bytes" : "1 byte") + " per number");
    if (load.precision != Precision::bf16 && peak_of(gpu, load.precision) == gpu.bf16)
        notes.push_back("weights in " + precision + " are computed at the BF16 peak of " + gpu.names.front());
    if (!gpu.measured)
        notes.push_back(gpu.names.front() + " was not measured: the coefficients are those of other GPUs");
    notes.push_back("no pipeline, because none was measured");

    result.fits = true;
    for (const auto& [p, tokens, name] : roles) {
        const auto r = replica_of(m, gpu, p, load.precision);
        if (r.tensor > 1 && r.data > 1)
            notes.push_back(name + std::string(" has tensor and data parallel attention, which together "
                                               "were not measured"));
        if (r.tensor * r.data > gpu.linked)
            notes.push_back(name + std::string(" uses the network between machines of ") +
                            number_text(gpu.linked) + " GPUs");
        if (sequences_in(gpu.memory * largest_memory_fraction, s, r, tokens) >= r.data) continue;
        result.fits = false;
        notes.push_back(name + std::string(" does not fit: ") + gigabytes(weight_bytes(m, r)) +
                        " of weights per GPU and a request of " + number_text(tokens) +
                        " tokens exceed 95 % of its " + gigabytes(gpu.memory));
    }
    if (!result.fits) {
        result.ttft_s = result.tpot_s = result.requests_per_s = result.running =
            std::numeric_limits<double>::quiet_NaN();
        return result;
    }

    const Times t = times(s, gpu);
    result.ttft_s = t.first;
    result.tpot_s = t.token;
    result.requests_per_s = load.concurrency / (t.first + load.output * t.token);
    result.running = t.running;
    const auto& parts = t.step;
    result.parts = {{"dense", parts.dense},
                    {"experts", parts.experts},
                    {"attention", parts.decode},
                    {"activations", parts.other},
                    {"collectives", parts.collectives},
                    {"fixed", parts.fixed},
                    {"prompts", t.token - parts.total()}};
    if (t.most < load.concurrency)
        notes.push_back("memory holds " + number_text(std::floor(t.most)) +
                        " requests; the others wait for a place");
    return result;
}

}  // namespace

}  // namespace detail

GPUSCHED_EXPORT Prediction predict(const ModelShape& model, std::string_view gpu,
                                   const Parallelism& parallelism, const EngineLoad& load) {
    Problems problems;
    detail::check(problems, model);
    check_fields(problems, load);
    detail::check(problems, model, parallelism, {});
    collect(problems, [&] { static_cast<void>(detail::find_gpu(gpu)); });
    problems.throw_if_any();
    auto result = detail::predict_with(
        model, gpu, load, {{parallelism, double(load.input) + load.output, "the replica"}},
        [&](const detail::Setting& s, const detail::KnownGpu& g) {
            return detail::aggregated(s, detail::replica_of(model, g, parallelism, load.precision),
                                      load.concurrency);
        });
    result.gpus = parallelism.tensor_parallel * parallelism.attention_data_parallel;
    return result;
}

GPUSCHED_EXPORT Prediction predict_disaggregated(const ModelShape& model, std::string_view gpu,
                                                 const Workers& prefill, const Workers& decode,
                                                 const EngineLoad& load) {
    Problems problems;
    detail::check(problems, model);
    check_fields(problems, load);
    for (const auto& [workers, owner] : {std::pair(&prefill, "prefill"), std::pair(&decode, "decode")}) {
        check_range(problems, "workers", workers->workers, 1, 1024, owner);
        detail::check(problems, model, workers->parallelism, owner);
    }
    collect(problems, [&] { static_cast<void>(detail::find_gpu(gpu)); });
    problems.throw_if_any();
    auto result = detail::predict_with(
        model, gpu, load,
        {{prefill.parallelism, double(load.input), "a prefill worker"},
         {decode.parallelism, double(load.input) + load.output, "a decode worker"}},
        [&](const detail::Setting& s, const detail::KnownGpu& g) {
            return detail::disaggregated(s, detail::replica_of(model, g, prefill.parallelism, load.precision),
                                         detail::replica_of(model, g, decode.parallelism, load.precision),
                                         load.concurrency, prefill.workers, decode.workers);
        });
    for (const auto* workers : {&prefill, &decode})
        result.gpus += workers->workers * workers->parallelism.tensor_parallel *
                       workers->parallelism.attention_data_parallel;
    return result;
}

}  // namespace gpusched::serving

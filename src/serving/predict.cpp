// SPDX-License-Identifier: Apache-2.0
// Times to tokens of a serving engine: its load in steady state, on the model of a step.
#include "serving/step_model.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/serving/predict.hpp>

#include <algorithm>
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

Replica replica_of(const LanguageModel& m, const StepGpu& g, const Parallelism& p, Precision precision) {
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

/// A model on a replica, and the lengths of its requests.
struct Worker : StepModel {
    double input, output;
};

StepParts decode_parts(const Worker& w, double sequences) {
    return w.parts({.sequences = sequences, .cached = w.input + w.output / 2});
}

/// Seconds of a step that computes `prompts` prompts on each of `ranks` ranks.
double prompt_seconds(const Worker& w, double prompts, double ranks) {
    return w
        .parts({.prompt = prompts * w.input,
                .ranks = ranks,
                .context = w.input / 2,
                .sequences = prompts * ranks})
        .total();
}

/// Seconds of a replica per prompt if every step is full of prompts.
double full_batch_seconds(const Worker& w) {
    const double prompts = std::max(1.0, step_tokens / w.input), ranks = w.replica().data;
    return prompt_seconds(w, prompts, ranks) / (prompts * ranks);
}

/// Sequences of a replica whose cache fits into memory on average, at least 1.
/// @param memory bytes of a GPU
double most_sequences(const Worker& w, double memory) {
    return std::max(1.0, w.sequences_in(memory * w.coefficients().memory, w.input + w.output / 2));
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
Times aggregated(const Worker& w, double memory, double concurrency) {
    const auto& c = w.coefficients();
    const double batched = full_batch_seconds(w);
    Times t{};
    t.most = std::min(concurrency, most_sequences(w, memory));
    double batch = t.most, load = 0.5, life = 0;  // running requests; share of the time that prompts take
    for (int i = 0; i < 4; ++i) {
        const double ranks = 1 + (w.replica().data - 1) * load;  // that compute a prompt at the same time
        const double prompt = prompt_seconds(w, 1, ranks);
        const double lost = c.interference * prompt / ranks;
        t.running = batch;
        t.step = decode_parts(w, batch);
        t.token = t.step.total() + std::max(batch - 1, 0.0) * lost / w.output;
        load = std::min(batch * lost / (w.output * t.token), 1.0);
        const double wait = c.start * std::max(t.most - 1, 0.0) / 2 * batched;
        t.first = c.request_s + prompt + c.stream * t.token + wait;
        life = t.first + w.output * t.token;
        batch = t.most * w.output * t.token / life;
    }
    t.first += (concurrency / t.most - 1) * life;
    return t;
}

/// The same for prefill workers p and decode workers d. If prompts are the bottleneck, requests wait for them
/// and fewer are running.
Times disaggregated(const Worker& p, const Worker& d, double memory, double concurrency,
                    double prefill_workers, double decode_workers) {
    const auto& c = p.coefficients();
    const double batched = full_batch_seconds(p);
    Times t{};
    t.most = std::min(concurrency, decode_workers * most_sequences(d, memory));
    double batch = t.most, load = 0.5, life = 0;
    for (int i = 0; i < 6; ++i) {
        const double ranks = 1 + (p.replica().data - 1) * load;
        const double prompt = prompt_seconds(p, 1, ranks);
        t.running = batch;
        t.step = decode_parts(d, batch / decode_workers);
        t.token = t.step.total();
        load = std::min(batch / prefill_workers * batched / (d.output * t.token), 1.0);
        const double wait = c.start * std::max(t.most / prefill_workers - 1, 0.0) / 2 * batched;
        t.first = c.request_s + c.transfer_s + prompt + c.stream * t.token + wait;
        const double starved = std::max(t.most / prefill_workers * batched - d.output * t.token, 0.0);
        t.first = std::hypot(t.first, starved);
        life = t.first + d.output * t.token;
        batch = (batch + t.most * d.output * t.token / life) / 2;
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

void check(Problems& problems, const LanguageModel& m, const Parallelism& p, std::string_view owner) {
    const auto before = problems.count();
    check_fields(problems, p, owner);
    if (problems.count() > before) return;
    if (p.pipeline_parallel != 1)
        problems.add(bad_value("pipeline_parallel", number_text(p.pipeline_parallel),
                               "1: no pipeline is among the measurements", owner));
    if (m.heads % p.tensor_parallel != 0)
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

/// The common part of both modes. `times(workers, memory)` computes the times if all workers fit; they are in
/// the order of `roles`, `memory` is in bytes per GPU.
template <class F>
Prediction predict_with(const LanguageModel& m, std::string_view gpu_name, const EngineLoad& load,
                        const std::vector<Role>& roles, const F& times) {
    const auto& known = find_gpu(gpu_name);
    const auto& gpu = known.gpu;
    const auto engine = std::string(enum_name(load.engine)),
               precision = std::string(enum_name(load.precision));
    const bool old = is_old(load.engine, load.engine_version);
    const auto release = engine + (old ? "-old" : "");
    const auto coefficients =
        coefficients_of({kind_of(m), engine, release, gpu.family, attention_of(m), precision});

    Prediction result;
    result.error =
        errors_of(kind_of(m) + std::string(" ") + std::string(gpu.family) + " " + engine + " " + precision);
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
        notes.push_back("weights in " + precision + " are computed at the BF16 peak of " +
                        known.names.front());
    if (!known.measured)
        notes.push_back(known.names.front() + " was not measured: the coefficients are those of other GPUs");
    notes.push_back("no pipeline, because none was measured");

    result.fits = true;
    std::vector<Worker> workers;
    for (const auto& [p, tokens, name] : roles) {
        const auto r = replica_of(m, gpu, p, load.precision);
        const auto& worker =
            workers.emplace_back(Worker{{m, gpu, coefficients, r}, double(load.input), double(load.output)});
        if (r.tensor > 1 && r.data > 1)
            notes.push_back(name + std::string(" has tensor and data parallel attention, which together "
                                               "were not measured"));
        if (r.tensor * r.data > gpu.linked)
            notes.push_back(name + std::string(" uses the network between machines of ") +
                            number_text(gpu.linked) + " GPUs");
        if (worker.sequences_in(gpu.memory * largest_memory_fraction, tokens) >= r.data) continue;
        result.fits = false;
        notes.push_back(name + std::string(" does not fit: ") + gigabytes(worker.weight_bytes()) +
                        " of weights per GPU and a request of " + number_text(tokens) +
                        " tokens exceed 95 % of its " + gigabytes(gpu.memory));
    }
    if (!result.fits) {
        result.ttft_s = result.tpot_s = result.requests_per_s = result.running =
            std::numeric_limits<double>::quiet_NaN();
        return result;
    }

    const Times t = times(workers, gpu.memory);
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

GPUSCHED_EXPORT Prediction predict(const LanguageModel& model, std::string_view gpu,
                                   const Parallelism& parallelism, const EngineLoad& load) {
    Problems problems;
    collect(problems, [&] { validate(model); });
    check_fields(problems, load);
    detail::check(problems, model, parallelism, {});
    collect(problems, [&] { static_cast<void>(detail::find_gpu(gpu)); });
    problems.throw_if_any();
    auto result = detail::predict_with(model, gpu, load,
                                       {{parallelism, double(load.input) + load.output, "the replica"}},
                                       [&](const std::vector<detail::Worker>& workers, double memory) {
                                           return detail::aggregated(workers[0], memory, load.concurrency);
                                       });
    result.gpus = parallelism.tensor_parallel * parallelism.attention_data_parallel;
    return result;
}

GPUSCHED_EXPORT Prediction predict_disaggregated(const LanguageModel& model, std::string_view gpu,
                                                 const Workers& prefill, const Workers& decode,
                                                 const EngineLoad& load) {
    Problems problems;
    collect(problems, [&] { validate(model); });
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
        [&](const std::vector<detail::Worker>& workers, double memory) {
            return detail::disaggregated(workers[0], workers[1], memory, load.concurrency, prefill.workers,
                                         decode.workers);
        });
    for (const auto* workers : {&prefill, &decode})
        result.gpus += workers->workers * workers->parallelism.tensor_parallel *
                       workers->parallelism.attention_data_parallel;
    return result;
}

}  // namespace gpusched::serving

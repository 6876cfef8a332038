#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/autoscale.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace GPUSCHED_NAMESPACE::serving {

namespace detail {

/// Probability that one who comes must wait for c servers under a load of a < c (Erlang's C).
inline double erlang_c(int servers, double load) {
    double blocked = 1;
    for (int k = 1; k <= servers; ++k) blocked = load * blocked / (k + load * blocked);
    return blocked / (1 - load / servers * (1 - blocked));
}

/// Of a standard normal, the value that is exceeded with this probability (at most 1/2): Abramowitz and Stegun 26.2.23, to 4.5e-4.
inline double normal_quantile(double exceeded) {
    const double t = std::sqrt(-2 * std::log(exceeded));
    return t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                   (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
}

/// How much of the requests may be late, by the plan: a fifth of what the percentile allows.
inline double planned_late(const AutoscaleOptions& o) { return (1 - o.percent / 100) / 5; }

/// The largest batch whose step is within the target.
inline double target_batch(const AutoscaleOptions& o) {
    const auto& t = o.times;
    const double most = t.max_batch;
    if (!(t.step_s_per_request > 0)) return t.step_base_s <= o.tpot_s ? most : 0;
    return std::clamp((o.tpot_s - t.step_base_s) / t.step_s_per_request, 0.0, most);
}

/// The smallest number from 1 to `most` for which `enough` holds, which must hold from some number on; `most` where it never does.
template <class F>
int smallest(int most, F&& enough) {
    int high = 1;
    while (high < most && !enough(high)) high = std::min(most, 2 * high);
    int low = high / 2;  // not enough, or 0
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        (enough(middle) ? high : low) = middle;
    }
    return high;
}

inline int prefill_replicas(std::span<const Arrival> sample, double rate, const AutoscaleOptions& o,
                            double variation) {
    double sum = 0, squares = 0;
    std::size_t always_late = 0;
    std::vector<double> slack;  // seconds that each request may wait
    for (const auto& r : sample) {
        const double s = o.times.prefill_base_s + o.times.prefill_s_per_token * r.input;
        sum += s;
        squares += s * s;
        if (s > o.ttft_s)
            ++always_late;
        else
            slack.push_back(o.ttft_s - s);
    }
    const auto n = static_cast<double>(sample.size());
    const double mean = sum / n, load = rate * mean;
    if (!(load > 0)) return 1;
    const double service_variation = std::max(0.0, squares / n / (mean * mean) - 1);
    // Requests that are late by themselves leave less room for others, but some always: nobody else should pay for them.
    const double planned = planned_late(o);
    const double allowed = std::max(planned - static_cast<double>(always_late) / n, planned / 5);
    return smallest(o.max_replicas, [&](int servers) {
        if (load >= servers) return false;
        const double waits = erlang_c(servers, load);
        const double decay = (servers - load) / (mean * (variation + service_variation) / 2);
        double late = 0;
        for (const double s : slack) late += waits * std::exp(-decay * s);
        return late / n <= allowed;
    });
}

inline int decode_replicas(std::span<const Arrival> sample, double rate, const AutoscaleOptions& o,
                           double variation) {
    double tokens = 0;
    for (const auto& r : sample) tokens += r.output - 1;
    const double all = rate * tokens / static_cast<double>(sample.size());
    if (!(all > 0)) return 1;
    const double most = target_batch(o), z = normal_quantile(planned_late(o));
    return smallest(o.max_replicas, [&](int replicas) {
        const double x = all / replicas;
        if (x * o.times.step_s_per_request >= 1) return false;
        const double batch = x * o.times.step_base_s / (1 - x * o.times.step_s_per_request);
        // The requests of all replicas vary together, because each goes where the fewest are.
        const double spread = std::sqrt(batch * replicas * std::max(1.0, variation)) / replicas;
        return batch + z * spread <= most;
    });
}

}  // namespace detail

GPUSCHED_INLINE PoolSizes pool_sizes(std::span<const Arrival> sample, double rate,
                                     const AutoscaleOptions& options, double variation) {
    validate(options);
    Problems problems;
    check_range(problems, "rate", rate, 0.0, 1e9);
    check_range(problems, "variation", variation, 0.0, 1000.0);
    if (sample.empty()) problems.add("sample: no requests; expected at least one");
    for (const auto& r : sample)
        if (r.input < 1 || r.output < 1) {
            problems.add("sample: expected at least one token of prompt and answer in each request");
            break;
        }
    problems.throw_if_any();
    return {detail::prefill_replicas(sample, rate, options, variation),
            detail::decode_replicas(sample, rate, options, variation)};
}

GPUSCHED_INLINE ReplicaTimes replica_times(const LanguageModel& model, std::span<const GpuType> gpus,
                                           const Deployment& prefill, const Deployment& decode,
                                           const RequestShape& shape, int longest_input,
                                           const EstimateOptions& options) {
    Problems problems;
    if (longest_input < 2)
        problems.add(bad_value("longest_input", std::to_string(longest_input), "at least 2"));
    for (const auto& [name, d] : {std::pair("prefill", &prefill), std::pair("decode", &decode)})
        if (d->stages.size() != 1)
            problems.add(bad_value(name, gpusched::quoted(d->name), "a deployment of one stage"));
    check_fields(problems, shape);
    problems.throw_if_any();
    const auto needs_room = [](const ThroughputEstimate& e, const Deployment& d) {
        if (!(e.batch >= 1))
            throw InvalidInput("deployment " + gpusched::quoted(d.name) + ": does not hold one such request");
        return e;
    };
    const auto prompt = [&](int tokens) {
        return needs_room(estimate_throughput(model, gpus, prefill, {tokens, 1}, options), prefill)
            .first_token_s;
    };
    const auto all = needs_room(estimate_throughput(model, gpus, decode, shape, options), decode);
    auto alone = options;
    alone.max_batch = 1;
    const auto one = estimate_throughput(model, gpus, decode, shape, alone);

    ReplicaTimes t;
    const double shortest_s = prompt(1);
    t.prefill_s_per_token = (prompt(longest_input) - shortest_s) / (longest_input - 1);
    t.prefill_base_s = std::max(0.0, shortest_s - t.prefill_s_per_token);
    t.max_batch = static_cast<int>(all.batch);
    t.step_s_per_request = t.max_batch > 1 ? std::max(0.0, (all.step_s - one.step_s) / (t.max_batch - 1)) : 0;
    t.step_base_s = one.step_s - t.step_s_per_request;
    t.prefill_gpus = prefill.stages.front().degree;
    t.decode_gpus = decode.stages.front().degree;
    // The KV cache of a prompt goes over the slower of both networks, from all GPUs of the group at once.
    const auto rate = [&](const Deployment& d) {
        const auto& gpu = gpus[static_cast<std::size_t>(d.stages.front().gpu)];
        return gpu.network_gb_s * 1e9 * options.efficiency.network * d.stages.front().degree;
    };
    const double bytes_s = std::min(rate(prefill), rate(decode));
    t.transfer_s_per_token = bytes_s > 0 ? model.kv_bytes_per_layer() * model.layers / bytes_s : 0;
    return t;
}

}  // namespace GPUSCHED_NAMESPACE::serving

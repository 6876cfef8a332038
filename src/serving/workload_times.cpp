// SPDX-License-Identifier: Apache-2.0
// The lengths of a workload's requests, and the times that a replica needs for them.
#include "serving/workload_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

namespace gpusched::serving::detail {

static std::int64_t tokens(const RequestShape& shape) { return std::int64_t{shape.input} + shape.output; }

RequestMix::RequestMix(const ServingWorkload& workload)
    : prefix_hits_(workload.prefix_hits), lengths_(workload.lengths) {
    if (lengths_.empty()) lengths_ = {{workload.shape, 1}};
    double sum = 0;
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
        until_.push_back(sum += lengths_[i].weight);
        if (tokens(lengths_[i].shape) > tokens(longest())) longest_ = i;
        by_prompt_.push_back(i);
        if (lengths_[i].shape.output > 1) by_context_.push_back(i);
    }
    const auto sort_by = [&](std::vector<std::size_t>& indices, const auto& key) {
        std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
            return key(lengths_[a].shape) < key(lengths_[b].shape);
        });
    };
    sort_by(by_prompt_, [](const RequestShape& shape) { return shape.input; });
    sort_by(by_context_, [](const RequestShape& shape) { return shape.input + shape.output / 2.0; });
    find_buckets();
}

/// Calls `each(group)` for the groups of indices between these percentiles of their weight. A length belongs to
/// the group of its middle.
template <std::size_t Cuts, class F>
static void split(std::span<const std::size_t> indices, const std::vector<WeightedShape>& lengths,
                  const std::array<double, Cuts>& percentiles, const F& each) {
    double all = 0, sum = 0;
    for (const auto i : indices) all += lengths[i].weight;
    std::size_t first = 0, cut = 0;
    for (std::size_t k = 0; k < indices.size(); ++k) {
        const double weight = lengths[indices[k]].weight;
        const auto before = cut;
        while (cut < Cuts && sum + weight / 2 > percentiles[cut] / 100 * all) ++cut;
        if (cut > before && k > first) each(indices.subspan(first, k - first)), first = k;
        sum += weight;
    }
    if (first < indices.size()) each(indices.subspan(first));
}

void RequestMix::find_buckets() {
    constexpr std::size_t few = 24;
    const double all = until_.back();
    if (lengths_.size() <= few) {
        for (const auto& each : lengths_) buckets_.push_back({each.shape, each.shape, each.weight / all});
        return;
    }
    constexpr std::array prompts{25.0, 50.0, 75.0, 90.0, 95.0, 99.0};
    constexpr std::array answers{50.0, 90.0};
    split(by_prompt_, lengths_, prompts, [&](std::span<const std::size_t> group) {
        std::vector<std::size_t> by_answer(group.begin(), group.end());
        std::stable_sort(by_answer.begin(), by_answer.end(), [&](std::size_t a, std::size_t b) {
            return lengths_[a].shape.output < lengths_[b].shape.output;
        });
        split(std::span<const std::size_t>(by_answer), lengths_, answers,
              [&](std::span<const std::size_t> bucket) {
                  double weight = 0, input = 0, output = 0;
                  auto least = lengths_[bucket.front()].shape;
                  for (const auto i : bucket) {
                      const auto& [shape, each] = lengths_[i];
                      weight += each;
                      input += each * shape.input;
                      output += each * shape.output;
                      least = {std::min(least.input, shape.input), std::min(least.output, shape.output)};
                  }
                  buckets_.push_back({{std::max(1, static_cast<int>(std::lround(input / weight))),
                                       std::max(1, static_cast<int>(std::lround(output / weight)))},
                                      least,
                                      weight / all});
              });
    });
}

std::size_t RequestMix::draw(Rng& rng) const {
    if (lengths_.size() == 1) return 0;
    const auto at = std::upper_bound(until_.begin(), until_.end(), rng.uniform() * until_.back());
    return std::min<std::size_t>(static_cast<std::size_t>(at - until_.begin()), lengths_.size() - 1);
}

std::size_t RequestMix::at_percentile(const LatencyPercentile& percentile) const {
    const bool by_prompt = percentile.time == TokenTime::first || by_context_.empty();
    const auto& order = by_prompt ? by_prompt_ : by_context_;
    double all = 0, sum = 0;
    for (const auto i : order) all += lengths_[i].weight;
    for (const auto i : order)
        if ((sum += lengths_[i].weight) >= percentile.percent / 100 * all * (1 - 1e-9)) return i;
    return order.back();
}

ThroughputEstimate RequestMix::estimate(const Estimator& estimator, const Deployment& deployment,
                                        const RequestShape& shape, std::optional<int> max_batch) const {
    auto found = estimator.estimate(deployment, shape, max_batch);
    if (prefix_hits_ <= 0 || found.batch < 1) return found;
    // Only the rest of the prompt is computed; the cache holds all of it.
    const auto rest = std::max(1, static_cast<int>(std::lround(shape.input * (1 - prefix_hits_))));
    const auto prompt = estimator.estimate(deployment, {rest, shape.output}, max_batch);
    found.prefill_s = prompt.prefill_s;
    found.first_token_s = prompt.first_token_s;
    found.requests_per_s = 1 / (found.prefill_s + (shape.output - 1) * found.step_s / found.batch);
    return found;
}

ThroughputEstimate RequestMix::estimate(const Estimator& estimator, const Deployment& deployment,
                                        std::optional<int> max_batch) const {
    const auto most = estimate(estimator, deployment, longest(), max_batch);
    if (lengths_.size() == 1 || most.batch < 1) return most;
    ThroughputEstimate found;
    double seconds = 0;
    for (const auto& bucket : buckets_) {
        const auto one = estimate(estimator, deployment, bucket.mean, max_batch);
        seconds += bucket.part / one.requests_per_s;
        found.batch += bucket.part * one.batch;
        found.prefill_s += bucket.part * one.prefill_s;
        found.step_s += bucket.part * one.step_s;
        found.first_token_s += bucket.part * one.first_token_s;
    }
    found.requests_per_s = 1 / seconds;
    return found;
}

WorkloadTimes::WorkloadTimes(const Estimator& estimator, const Deployment& deployment, const RequestMix& mix,
                             double rate)
    : estimator_(&estimator), deployment_(&deployment), mix_(&mix), rate_(rate) {
    if (mix.lengths().size() == 1) return;
    const double estimated = mix.estimate(estimator, deployment).requests_per_s;
    if (estimated > 0) scale_ = rate / estimated;
}

KindTimes WorkloadTimes::at(const RequestShape& shape) const {
    const auto one = mix_->estimate(*estimator_, *deployment_, shape, 1);
    const auto full = mix_->estimate(*estimator_, *deployment_, shape);
    return kind_times(one, full, shape.output, scale_ > 0 ? scale_ * full.requests_per_s : rate_);
}

double WorkloadTimes::idle(const LatencyPercentile& percentile) const {
    if (percentile.time != TokenTime::last) {
        const auto t = at(mix_->at_percentile(percentile));
        return percentile.time == TokenTime::first ? t.prefill_s + t.lag_s : t.steps > 0 ? t.step_s : 0;
    }
    std::vector<std::pair<double, double>> seconds;  // of each bucket, with its part
    for (const auto& bucket : mix_->buckets()) {
        const auto t = at(bucket.least);
        seconds.emplace_back(t.prefill_s + t.lag_s + t.steps * t.step_s, bucket.part);
    }
    std::sort(seconds.begin(), seconds.end());
    double sum = 0;
    for (const auto& [value, part] : seconds)
        if ((sum += part) >= percentile.percent / 100 * (1 - 1e-9)) return value;
    return seconds.back().first;
}

void ReplicaTimes::add(std::optional<WorkloadTimes> workload) {
    entry_.emplace_back(workload ? workload->mix().lengths().size() : 0, 0U);
    workloads_.push_back(std::move(workload));
}

std::size_t ReplicaTimes::draw(std::size_t w, Rng& rng, std::optional<std::size_t> lengths) {
    const auto& times = *workloads_[w];
    if (!lengths) lengths = times.mix().draw(rng);
    auto& entry = entry_[w][*lengths];
    if (entry == 0) {
        all_.push_back(times.at(*lengths));
        workload_of_.push_back(w);
        entry = static_cast<std::uint32_t>(all_.size());
    }
    return entry - 1;
}

Arrivals::Arrivals(const std::vector<Kind>& kinds, double rate, Rng& rng) : rng_(rng), rate_(rate) {
    double sum = 0;
    for (const auto& kind : kinds) sum += kind.weight;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        const auto& [workload, weight, part] = kinds[k];
        const auto& times = workload->arrivals;
        const bool own = rate > 0 && weight > 0 && !times.empty();
        weights_.push_back(own ? 0 : weight);
        all_ += weights_.back();
        if (!own) continue;
        const auto n = static_cast<double>(times.size());
        const double mean = (times.back() - times.front()) / (n - 1), each = weight / sum * rate / part;
        streams_.push_back({k, times, part, 1 / (each * mean), static_cast<std::size_t>(rng.uniform() * n)});
    }
    if (!streams_.empty()) rate_ *= all_ / sum;
}

void Arrivals::advance(Stream& stream) {
    const auto& times = stream.times;
    do {
        const auto n = times.size();
        const double gap = stream.at + 1 < n ? times[stream.at + 1] - times[stream.at]
                                             : (times.back() - times.front()) / static_cast<double>(n - 1);
        stream.at = stream.at + 1 < n ? stream.at + 1 : 0;
        stream.next += stream.scale * gap;
    } while (stream.part < 1 && rng_.uniform() >= stream.part);
}

Arrivals::Request Arrivals::next(bool start) {
    const auto draw_time = [&] {
        return rate_ <= 0 || start ? now_ : now_ - std::log1p(-rng_.uniform()) / rate_;
    };
    if (streams_.empty()) {
        now_ = draw_time();
    } else {
        auto& soonest = *std::min_element(streams_.begin(), streams_.end(),
                                          [](const Stream& a, const Stream& b) { return a.next < b.next; });
        if (!poisson_ && all_ > 0) poisson_ = draw_time();
        if (!poisson_ || soonest.next <= *poisson_) {
            now_ = soonest.next;
            const Request request{now_, soonest.kind, soonest.at};
            advance(soonest);
            return request;
        }
        now_ = *poisson_;
        start = false;
        poisson_ = draw_time();
    }
    double pick = rng_.uniform() * all_;
    std::size_t k = 0, last = 0;
    for (; k < weights_.size(); ++k) {
        if (weights_[k] <= 0) continue;
        last = k;
        if (pick < weights_[k]) break;
        pick -= weights_[k];
    }
    return {now_, last};
}

}  // namespace gpusched::serving::detail

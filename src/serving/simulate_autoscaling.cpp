// SPDX-License-Identifier: Apache-2.0
// Simulation of autoscaling: events of prompts, transfers, decode steps and starting replicas.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/simulate_autoscaling.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

namespace gpusched::serving {

namespace detail {

/// A replica from the decision to start it until its release.
struct ReplicaLife {
    enum class State : std::uint8_t { starting, ready, draining, gone };
    State state = State::starting;
    double from_s = 0, until_s = std::numeric_limits<double>::infinity();
};

struct PrefillReplica : ReplicaLife {
    bool busy = false;
    [[nodiscard]] std::size_t load() const { return busy ? 1 : 0; }
};

/// A decode replica. All its requests get their next token together.
struct DecodeReplica : ReplicaLife {
    using Running = std::pair<double, std::size_t>;  // value of `tokens` at its end, request
    std::priority_queue<Running, std::vector<Running>, std::greater<>> running{};
    double tokens = 0;     // tokens of a request that has been here since the replica was empty
    double updated_s = 0;  // time of the last update of `tokens`
    std::uint64_t version = 0;
    [[nodiscard]] std::size_t load() const { return running.size(); }
};

/// A percentile of values in any order: the smallest value that `percent` of them do not exceed; NaN without
/// values.
static double unsorted_percentile(std::vector<double>& values, double percent) {
    if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
    const auto n = static_cast<double>(values.size());
    const auto rank = static_cast<std::size_t>(std::max(1.0, std::ceil(percent / 100 * n - 1e-9)));
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

class AutoscalingSimulation {
  public:
    AutoscalingSimulation(std::span<const Arrival> arrivals, const AutoscaleOptions& o,
                          const ScalingPolicy& policy, const AutoscalingWorld& world)
        : arrivals_(arrivals), o_(o), policy_(policy), world_(world), first_token_s_(arrivals.size()),
          ttft_(arrivals.size()), tpot_(arrivals.size()) {
        end_ = arrivals.empty() ? 0 : o.interval_s * (std::floor(arrivals.back().time_s / o.interval_s) + 1);
        for (int k = 0; k < std::max(1, o.start.prefill); ++k)
            prefill_.emplace_back().state = ReplicaLife::State::ready;
        for (int k = 0; k < std::max(1, o.start.decode); ++k)
            decode_.emplace_back().state = ReplicaLife::State::ready;
        for (std::size_t k = prefill_.size(); k > 0; --k) idle_.push_back(k - 1);
    }

    AutoscalingResult run() {
        std::size_t next = 0;
        double tick = o_.interval_s;
        while (next < arrivals_.size() || !events_.empty() || tick <= end_) {
            const double arrival = next < arrivals_.size() ? arrivals_[next].time_s : infinity;
            const double event = events_.empty() ? infinity : std::get<0>(events_.top());
            const double due = tick <= end_ ? tick : infinity;
            if (event <= arrival && event <= due) {
                const auto [time, kind, what, version] = events_.top();
                events_.pop();
                now_ = time;
                handle(kind, what, version);
            } else if (arrival < due) {
                now_ = arrival;
                queue_.push(next);
                window_.arrived.push_back(arrivals_[next++]);
                feed_prefill();
            } else {
                now_ = tick;
                decide();
                tick += o_.interval_s;
            }
        }
        return finish();
    }

  private:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    enum class Kind : std::uint8_t { prefill_ready, decode_ready, prefilled, transferred, decoded };
    using Event = std::tuple<double, Kind, std::size_t, std::uint64_t>;
    using State = ReplicaLife::State;

    void handle(Kind kind, std::size_t what, std::uint64_t version) {
        if (kind == Kind::prefill_ready) {
            if (prefill_[what].state != State::starting) return;
            prefill_[what].state = State::ready;
            idle_.push_back(what);
            feed_prefill();
        } else if (kind == Kind::decode_ready) {
            if (decode_[what].state != State::starting) return;
            decode_[what].state = State::ready;
            decode_[what].updated_s = now_;
            feed_decode();
        } else if (kind == Kind::prefilled) {
            auto& r = prefill_[what];
            r.busy = false;
            const auto request = static_cast<std::size_t>(version);
            first_token_s_[request] = now_;
            ttft_[request] = now_ - arrivals_[request].time_s;
            window_ttft_.push_back(ttft_[request]);
            if (o_.times.idle_ttft_s(arrivals_[request]) <= o_.ttft_s)
                possible_ttft_.push_back(ttft_[request]);
            if (arrivals_[request].output > 1)
                events_.emplace(now_ + world_.slowdown * o_.times.transfer_s_per_token *
                                           arrivals_[request].input,
                                Kind::transferred, request, 0);
            if (r.state == State::draining)
                release(r);
            else
                idle_.push_back(what);
            feed_prefill();
        } else if (kind == Kind::transferred) {
            to_decode_.push(what);
            feed_decode();
        } else if (decode_[what].version == version) {
            auto& r = decode_[what];
            progress(r);
            while (!r.running.empty() && r.running.top().first <= r.tokens + 1e-7) {
                const auto request = r.running.top().second;
                r.running.pop();
                tpot_[request] = (now_ - first_token_s_[request]) / (arrivals_[request].output - 1);
                window_tpot_.push_back(tpot_[request]);
                if (o_.times.idle_tpot_s(arrivals_[request]) <= o_.tpot_s)
                    possible_tpot_.push_back(tpot_[request]);
            }
            if (r.running.empty()) {
                r.tokens = 0;  // drops rounding errors
                if (r.state == State::draining) release(r);
            }
            schedule(what);
            feed_decode();
        }
    }

    void feed_prefill() {
        while (!queue_.empty() && !idle_.empty()) {
            const auto k = idle_.back();
            idle_.pop_back();
            auto& r = prefill_[k];
            if (r.state != State::ready || r.busy) continue;
            const auto request = queue_.front();
            queue_.pop();
            r.busy = true;
            const double took = world_.slowdown * (o_.times.prefill_base_s +
                                                   o_.times.prefill_s_per_token * arrivals_[request].input);
            // Work that crosses the end of an interval is split there in decide().
            busy_prefill_.emplace_back(now_, now_ + took);
            events_.emplace(now_ + took, Kind::prefilled, k, request);
        }
    }

    [[nodiscard]] double step_s(const DecodeReplica& r) const {
        return world_.slowdown *
               (o_.times.step_base_s + static_cast<double>(r.running.size()) * o_.times.step_s_per_request);
    }

    void progress(DecodeReplica& r) {
        if (!r.running.empty()) {
            const double passed = now_ - r.updated_s, made = passed / step_s(r);
            const auto batch = static_cast<double>(r.running.size());
            r.tokens += made;
            in_decode_s_ += batch * passed;
            made_tokens_ += batch * made;
            decode_busy_s_ += std::max(0.0, std::min(now_, end_) - std::min(r.updated_s, end_));
        }
        r.updated_s = now_;
    }

    void schedule(std::size_t k) {
        auto& r = decode_[k];
        ++r.version;
        if (!r.running.empty())
            events_.emplace(now_ + std::max(0.0, r.running.top().first - r.tokens) * step_s(r), Kind::decoded,
                            k, r.version);
    }

    void feed_decode() {
        while (!to_decode_.empty()) {
            std::size_t best = decode_.size();
            for (std::size_t k = 0; k < decode_.size(); ++k)
                if (decode_[k].state == State::ready &&
                    decode_[k].load() < static_cast<std::size_t>(o_.times.max_batch) &&
                    (best == decode_.size() || decode_[k].load() < decode_[best].load()))
                    best = k;
            if (best == decode_.size()) return;
            const auto request = to_decode_.front();
            to_decode_.pop();
            auto& r = decode_[best];
            progress(r);
            r.running.emplace(r.tokens + arrivals_[request].output - 1, request);
            schedule(best);
        }
    }

    void release(ReplicaLife& r) {
        r.state = State::gone;
        r.until_s = now_;
    }

    template <class R>
    static int count(const std::vector<R>& pool, State state) {
        return static_cast<int>(
            std::count_if(pool.begin(), pool.end(), [&](const R& r) { return r.state == state; }));
    }

    template <class R>
    void resize(std::vector<R>& pool, int wanted, Kind ready) {
        int more = std::max(1, wanted) - count(pool, State::ready) - count(pool, State::starting);
        for (std::size_t k = 0; k < pool.size() && more > 0; ++k)
            if (pool[k].state == State::draining) {
                pool[k].state = State::ready;
                --more;
            }
        for (; more > 0; --more) {
            auto& r = pool.emplace_back();
            r.from_s = now_;
            events_.emplace(now_ + o_.start_s, ready, pool.size() - 1, 0);
            ++result_.starts;
        }
        for (std::size_t k = pool.size(); k > 0 && more < 0; --k)
            if (pool[k - 1].state == State::starting) {
                release(pool[k - 1]);
                ++result_.stops;
                ++more;
            }
        for (; more < 0; ++more) {
            auto least = pool.end();
            for (auto r = pool.begin(); r != pool.end(); ++r)
                if (r->state == State::ready && (least == pool.end() || r->load() < least->load())) least = r;
            least->state = State::draining;
            if (least->load() == 0) release(*least);
            ++result_.stops;
        }
    }

    void decide() {
        for (auto& r : decode_) progress(r);
        const double from = now_ - o_.interval_s;
        double busy = 0;
        std::erase_if(busy_prefill_, [&](auto& work) {
            const double until = std::min(work.second, now_);
            busy += until - std::max(work.first, from);
            return work.second <= now_;
        });
        prefill_busy_s_ += busy;
        window_.time_s = now_;
        window_.seconds = o_.interval_s;
        window_.prefill_waiting = static_cast<std::int64_t>(queue_.size());
        window_.decode_waiting = static_cast<std::int64_t>(to_decode_.size());
        window_.prefill_busy = busy / o_.interval_s;
        window_.decode_requests = in_decode_s_ / o_.interval_s;
        window_.tokens_per_s = made_tokens_ / o_.interval_s;
        window_.ttft_s = unsorted_percentile(possible_ttft_, o_.percent);
        window_.tpot_s = unsorted_percentile(possible_tpot_, o_.percent);
        window_.ready = {count(prefill_, State::ready), count(decode_, State::ready)};
        window_.starting = {count(prefill_, State::starting), count(decode_, State::starting)};
        const auto wanted = policy_(window_);
        result_.time_s.push_back(now_);
        result_.rate.push_back(static_cast<double>(window_.arrived.size()) / o_.interval_s);
        result_.window_ttft_s.push_back(unsorted_percentile(window_ttft_, o_.percent));
        result_.window_tpot_s.push_back(unsorted_percentile(window_tpot_, o_.percent));
        result_.wanted_prefill.push_back(wanted.prefill);
        result_.wanted_decode.push_back(wanted.decode);
        result_.ready_prefill.push_back(window_.ready.prefill);
        result_.ready_decode.push_back(window_.ready.decode);
        resize(prefill_, wanted.prefill, Kind::prefill_ready);
        resize(decode_, wanted.decode, Kind::decode_ready);
        // Draining replicas that returned to the pool can be idle.
        idle_.clear();
        for (std::size_t k = prefill_.size(); k > 0; --k)
            if (prefill_[k - 1].state == State::ready && !prefill_[k - 1].busy) idle_.push_back(k - 1);
        feed_prefill();
        feed_decode();
        window_.arrived.clear();
        for (auto* values : {&window_ttft_, &window_tpot_, &possible_ttft_, &possible_tpot_}) values->clear();
        in_decode_s_ = made_tokens_ = 0;
    }

    template <class R>
    [[nodiscard]] double hours(const std::vector<R>& pool) const {
        double sum = 0;
        for (const auto& r : pool) sum += std::max(0.0, std::min(r.until_s, end_) - r.from_s);
        return sum / 3600;
    }

    AutoscalingResult finish() {
        auto& out = result_;
        const auto n = arrivals_.size();
        out.requests = static_cast<std::int64_t>(n);
        out.prefill_h = hours(prefill_);
        out.decode_h = hours(decode_);
        out.gpu_h = out.prefill_h * o_.times.prefill_gpus + out.decode_h * o_.times.decode_gpus;
        out.busy_gpu_h =
            (prefill_busy_s_ * o_.times.prefill_gpus + decode_busy_s_ * o_.times.decode_gpus) / 3600;
        if (n == 0) return std::move(out);
        std::size_t first = 0, last = 0, both = 0;
        std::size_t windows = 0, met = 0;
        std::vector<double> ttft, tpot;
        const auto score = [&] {
            if (ttft.empty()) return;
            ++windows;
            const double a = unsorted_percentile(ttft, o_.percent), b = unsorted_percentile(tpot, o_.percent);
            met += a <= o_.ttft_s && !(b > o_.tpot_s) ? 1 : 0;
            ttft.clear();
            tpot.clear();
        };
        double window = std::floor(arrivals_.front().time_s / world_.score_s);
        for (std::size_t i = 0; i < n; ++i) {
            if (const double w = std::floor(arrivals_[i].time_s / world_.score_s); w != window) {
                score();
                window = w;
            }
            const bool in_time = ttft_[i] <= o_.ttft_s, fast = tpot_[i] <= o_.tpot_s;
            first += in_time ? 1 : 0;
            last += fast ? 1 : 0;
            both += in_time && fast ? 1 : 0;
            ttft.push_back(ttft_[i]);
            if (arrivals_[i].output > 1) tpot.push_back(tpot_[i]);
        }
        score();
        const auto all = static_cast<double>(n);
        out.ttft_met = static_cast<double>(first) / all;
        out.tpot_met = static_cast<double>(last) / all;
        out.both_met = static_cast<double>(both) / all;
        out.windows_met = static_cast<double>(met) / static_cast<double>(windows);
        out.ttft_s = unsorted_percentile(ttft_, o_.percent);
        std::vector<double> further;
        for (std::size_t i = 0; i < n; ++i)
            if (arrivals_[i].output > 1) further.push_back(tpot_[i]);
        out.tpot_s = further.empty() ? 0 : unsorted_percentile(further, o_.percent);
        return std::move(out);
    }

    std::span<const Arrival> arrivals_;
    const AutoscaleOptions& o_;
    const ScalingPolicy& policy_;
    const AutoscalingWorld& world_;
    AutoscalingResult result_{};
    double now_ = 0, end_ = 0;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    std::vector<PrefillReplica> prefill_;
    std::vector<DecodeReplica> decode_;
    std::vector<std::size_t> idle_;              // prefill replicas
    std::queue<std::size_t> queue_, to_decode_;  // requests
    // Seconds from and to, also of work that continues in the next interval.
    std::vector<std::pair<double, double>> busy_prefill_;
    std::vector<double> first_token_s_, ttft_, tpot_;  // by request
    PoolWindow window_{};
    std::vector<double> window_ttft_, window_tpot_;      // of all requests
    std::vector<double> possible_ttft_, possible_tpot_;  // without those that idle replicas serve too late
    double in_decode_s_ = 0, made_tokens_ = 0;           // in the interval
    double prefill_busy_s_ = 0, decode_busy_s_ = 0;
};

/// @throws InvalidInput unless the arrivals can be simulated with decisions at equal intervals
static void check_arrivals(std::span<const Arrival> arrivals, double interval_s) {
    Problems problems;
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
        const auto& r = arrivals[i];
        if (!(r.time_s >= 0 && std::isfinite(r.time_s)) || (i > 0 && arrivals[i - 1].time_s > r.time_s) ||
            r.input < 1 || r.output < 1) {
            problems.add("arrivals[" + std::to_string(i) +
                         "]: expected a time >= 0, not before the one before, and at least one token of "
                         "prompt and answer");
            break;
        }
        if (r.time_s / interval_s > most_intervals) {
            problems.add("arrivals[" + std::to_string(i) + "]: a request at " + number_text(r.time_s) +
                         " s; expected at most " + std::to_string(most_intervals) + " intervals of " +
                         number_text(interval_s) + " s");
            break;
        }
    }
    problems.throw_if_any();
}

/// Problems if idle replicas miss targets in too many windows, so that no number of replicas suffices.
static Problems missed_by_idle_replicas(std::span<const Arrival> arrivals, const AutoscaleOptions& o,
                                        double windows_met, const AutoscalingWorld& world) {
    struct Latency {
        const char *field, *of;
        double target;
        std::vector<double> values{};  ///< of the requests of the current window
        int missed = 0;                ///< windows that miss the target
        double most_late = 0;          ///< largest percentage of late requests in a window
    };
    Latency first{"ttft_s", "prompts", o.ttft_s}, further{"tpot_s", "requests", o.tpot_s};
    int windows = 0, missed = 0;
    const auto score = [&](Latency& l) {
        const auto late = std::count_if(l.values.begin(), l.values.end(),
                                        [&](double value) { return value > l.target * (1 + 1e-9); });
        const bool misses = unsorted_percentile(l.values, o.percent) > l.target * (1 + 1e-9);
        if (misses) {
            ++l.missed;
            l.most_late = std::max(l.most_late,
                                   100.0 * static_cast<double>(late) / static_cast<double>(l.values.size()));
        }
        l.values.clear();
        return misses;
    };
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
        const auto& r = arrivals[i];
        const auto& t = o.times;
        first.values.push_back(world.slowdown * t.idle_ttft_s(r));
        if (r.output > 1) further.values.push_back(world.slowdown * t.idle_tpot_s(r));
        const auto window = [&](const Arrival& of) { return std::floor(of.time_s / world.score_s); };
        if (i + 1 < arrivals.size() && window(arrivals[i + 1]) == window(r)) continue;
        ++windows;
        const bool late_first = score(first), late_further = score(further);
        missed += late_first || late_further ? 1 : 0;
    }
    Problems problems;
    if (windows - missed >= windows_met * windows) return problems;
    for (const auto* l : {&first, &further})
        if (l->missed > 0)
            problems.add(bad_value(
                l->field, number_text(l->target),
                "a target that idle replicas meet in " + number_text(100 * windows_met) +
                    " % of the windows; in " + std::to_string(l->missed) + " of " + std::to_string(windows) +
                    " up to " + number_text(std::round(10 * l->most_late) / 10) + " % of the " + l->of +
                    " always take longer; at most " + number_text(100 - o.percent) + " % are allowed"));
    return problems;
}

}  // namespace detail

GPUSCHED_EXPORT AutoscalingResult simulate_autoscaling(std::span<const Arrival> arrivals,
                                                       const AutoscaleOptions& options,
                                                       const ScalingPolicy& policy,
                                                       const AutoscalingWorld& world) {
    validate(options);
    Problems problems;
    check_fields(problems, world);
    problems.throw_if_any();
    detail::check_arrivals(arrivals, options.interval_s);
    return detail::AutoscalingSimulation(arrivals, options, policy, world).run();
}

GPUSCHED_EXPORT AutoscalingResult simulate_autoscaling(std::span<const Arrival> arrivals,
                                                       const AutoscaleOptions& options,
                                                       const AutoscalingWorld& world) {
    Autoscaler scaler(options);
    return simulate_autoscaling(
        arrivals, options, [&](const PoolWindow& w) { return scaler.step(w); }, world);
}

GPUSCHED_EXPORT PoolSizes fewest_fixed(std::span<const Arrival> arrivals, const AutoscaleOptions& options,
                                       double windows_met, const AutoscalingWorld& world) {
    Problems problems;
    check_range(problems, "windows_met", windows_met, 0.0, 1.0);
    check_fields(problems, world);
    problems.throw_if_any();
    validate(options);
    detail::check_arrivals(arrivals, options.interval_s);
    detail::missed_by_idle_replicas(arrivals, options, windows_met, world).throw_if_any();
    auto o = options;
    const auto enough = [&](int prefill, int decode) {
        o.start = {prefill, decode};
        const auto r = simulate_autoscaling(
            arrivals, o, [&](const PoolWindow&) { return o.start; }, world);
        return r.windows_met >= windows_met;
    };
    // The smallest sufficient number; 0 if even the largest does not suffice. Not shared with the policies.
    const auto fewest = [&](int most, const std::function<bool(int)>& does) {
        int high = 1, low = 0;
        while (!does(high)) {
            if (high == most) return 0;
            low = high;
            high = std::min(most, 2 * high);
        }
        while (high - low > 1) {
            const int middle = (low + high) / 2;
            (does(middle) ? high : low) = middle;
        }
        return high;
    };
    const int most = options.max_replicas;
    int decode = fewest(most, [&](int d) { return enough(most, d); });
    for (; decode > 0 && decode <= most; ++decode)
        if (const int prefill = fewest(most, [&](int p) { return enough(p, decode); }); prefill > 0)
            return {prefill, decode};
    throw InvalidInput(
        bad_value("max_replicas", std::to_string(most), "enough replicas for these arrivals and targets"));
}

}  // namespace gpusched::serving

// SPDX-License-Identifier: Apache-2.0
// Greedy plans of the serving problem, and the search over their makespan.
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/serving/solve_serving_plan.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace gpusched::serving {

namespace detail {

/// One run of the greedy algorithm.
class GreedyServing {
  public:
    /// @param time  limit, or null
    GreedyServing(const ServingProblem& problem, double makespan, Budget* time)
        : problem_(problem), makespan_(makespan), time_(time), costs_(configuration_costs(problem)),
          budget_(problem.budget), left_(problem.workloads.size(), 0.0) {
        for (const auto& gpu : problem.gpus) gpus_.push_back(gpu.available);
        for (std::size_t w = 0; w < left_.size(); ++w) left_[w] = problem.workloads[w].requests > 0 ? 1 : 0;
        allocation_.replicas.assign(costs_.size(), 0);
        allocation_.share.assign(costs_.size(), std::vector<double>(left_.size(), 0.0));
    }

    std::optional<ServingAllocation> run() {
        while (std::any_of(left_.begin(), left_.end(), [](double share) { return share > 1e-12; }))
            if ((time_ != nullptr && time_->exhausted()) || !buy()) return std::nullopt;
        return std::move(allocation_);
    }

  private:
    /// The price of a replica: its cost and GPUs as parts of the remaining budget and GPUs.
    [[nodiscard]] double price(std::size_t c) const {
        double sum = budget_ > 0 ? costs_[c] / budget_ : 0;
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            if (gpus_[n] > 0) sum += static_cast<double>(problem_.configurations[c].gpus[n]) / gpus_[n];
        return sum;
    }
    [[nodiscard]] bool affordable(std::size_t c) const {
        if (costs_[c] > budget_ * (1 + 1e-9) + 1e-12) return false;
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            if (problem_.configurations[c].gpus[n] > gpus_[n]) return false;
        return true;
    }

    bool buy() {
        const auto C = costs_.size(), W = left_.size();
        // The worth of a workload: the lowest current price of serving all of it.
        std::vector<double> worth(W, milp::infinity), prices(C, 0.0);
        std::vector<bool> can(C, false);
        for (std::size_t c = 0; c < C; ++c) {
            can[c] = affordable(c);
            if (!can[c]) continue;
            prices[c] = price(c);
            for (std::size_t w = 0; w < W; ++w)
                if (problem_.configurations[c].throughput[w] > 0)
                    worth[w] = std::min(worth[w], problem_.workloads[w].requests * prices[c] /
                                                      problem_.configurations[c].throughput[w]);
        }
        std::size_t best = C;
        double best_value = 0;
        std::vector<double> best_fill, fill(W, 0.0);
        for (std::size_t c = 0; c < C; ++c) {
            if (!can[c]) continue;
            const auto& rate = problem_.configurations[c].throughput;
            const auto seconds = [&](std::size_t w) { return problem_.workloads[w].requests / rate[w]; };
            // The workloads with the most worth per second come first.
            const auto order = order_by(W, [&](std::size_t w) {
                return rate[w] > 0 && left_[w] > 0 ? -worth[w] / seconds(w) : milp::infinity;
            });
            double room = makespan_, value = 0;
            std::fill(fill.begin(), fill.end(), 0.0);
            for (const auto w : order) {
                if (room <= 0 || rate[w] <= 0 || left_[w] <= 0) continue;
                fill[w] = std::min(left_[w], room / seconds(w));
                room -= fill[w] * seconds(w);
                value += fill[w] * worth[w];
            }
            value /= prices[c];
            if (value > best_value) {
                best_value = value;
                best = c;
                best_fill = fill;
            }
        }
        if (best == C) return false;
        const int count = at_once(best, best_fill);
        allocation_.replicas[best] += count;
        budget_ -= count * costs_[best];
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            gpus_[n] -= count * problem_.configurations[best].gpus[n];
        for (std::size_t w = 0; w < W; ++w) {
            allocation_.share[best][w] += count * best_fill[w];
            left_[w] -= count * best_fill[w];
            if (left_[w] < 1e-12) left_[w] = 0;
        }
        return true;
    }

    /// The number of replicas to add at once: one, or a part if hundreds of equal ones would follow, so that
    /// millions of replicas take no longer.
    [[nodiscard]] int at_once(std::size_t c, const std::vector<double>& fill) const {
        double most = 1e9;
        if (costs_[c] > 0) most = std::min(most, budget_ / costs_[c]);
        for (std::size_t n = 0; n < gpus_.size(); ++n)
            if (const int needs = problem_.configurations[c].gpus[n]; needs > 0)
                most = std::min(most, static_cast<double>(gpus_[n] / needs));
        for (std::size_t w = 0; w < fill.size(); ++w)
            if (fill[w] > 0) most = std::min(most, left_[w] / fill[w]);
        return most >= 256 ? static_cast<int>(most / 64) : 1;
    }

    const ServingProblem& problem_;
    double makespan_;
    Budget* time_;
    std::vector<double> costs_;
    double budget_;
    std::vector<int> gpus_;
    std::vector<double> left_;  // unserved share of each workload
    ServingAllocation allocation_;
};

std::optional<ServingAllocation> greedy_plan_within(const ServingProblem& problem, double makespan,
                                                    Budget& budget) {
    return GreedyServing(problem, makespan, &budget).run();
}

static std::optional<ServingAllocation> search_greedily(const ServingProblem& problem, Budget* budget) {
    double high = slowest_makespan(problem), low = closed_form_bound(problem);
    auto best = GreedyServing(problem, std::max(high, 1e-9), nullptr).run();
    if (!best || high <= 0 || !std::isfinite(low)) return best;
    high = std::min(high, makespan(problem, *best));
    while (high - low > 1e-3 * high && (budget == nullptr || !budget->exhausted())) {
        const double middle = low > 0 && high > 4 * low ? std::sqrt(low * high) : (low + high) / 2;
        if (auto found = GreedyServing(problem, middle, budget).run()) {
            high = std::min(middle, makespan(problem, *found));
            best = std::move(found);
        } else {
            low = middle;
        }
    }
    return best;
}

std::optional<ServingAllocation> best_greedy_plan(const ServingProblem& problem, Budget& budget) {
    return search_greedily(problem, &budget);
}

}  // namespace detail

GPUSCHED_EXPORT std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem, double makespan) {
    validate(problem);
    if (!(makespan > 0)) throw InvalidInput(bad_value("makespan", number_text(makespan), "a number above 0"));
    return detail::GreedyServing(problem, makespan, nullptr).run();
}

GPUSCHED_EXPORT std::optional<ServingAllocation> greedy_plan(const ServingProblem& problem) {
    validate(problem);
    return detail::search_greedily(problem, nullptr);
}

}  // namespace gpusched::serving

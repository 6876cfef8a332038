// SPDX-License-Identifier: Apache-2.0
// How many pods of one job go under each switch: entropy_greedy() and least_entropy().
#include "allocation/tied_switches.hpp"

#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpusched::allocation {
namespace detail {

/// Checks the arguments and returns the sum of the capacities.
static std::int64_t checked_capacity(std::span<const std::int64_t> capacity, std::int64_t pods) {
    Problems problems;
    check_at_least(problems, "pods", pods, 0);
    std::int64_t sum = 0;
    for (const auto c : capacity) {
        if (c < 0) check_at_least(problems, "capacity", c, 0);
        if (c >= (std::int64_t{1} << 62) - sum) {
            problems.add(bad_value("capacity", number_text(c), "a sum below 2^62"));
            break;
        }
        sum += std::max<std::int64_t>(c, 0);
    }
    problems.throw_if_any();
    return sum;
}

static double x_log_x(double x) { return x > 0 ? x * std::log(x) : 0; }

/// The counts if switches are filled in order of falling capacity.
struct LargestFirst {
    SwitchCounts counts{};
    std::int64_t boundary = 0;   // capacity of the last full switch; 0 = none is full
    std::int64_t tied = 0;       // how many full switches have that capacity
    std::int64_t remainder = 0;  // pods for one more switch
};

static LargestFirst largest_first(std::span<const std::int64_t> capacity, std::int64_t pods) {
    LargestFirst result{.counts = SwitchCounts(capacity.size(), 0)};
    // A heap of the switches that can give something: the largest first, the lower index first among equals.
    std::vector<std::uint32_t> heap;
    heap.reserve(capacity.size());
    for (std::uint32_t s = 0; s < capacity.size(); ++s)
        if (capacity[s] > 0) heap.push_back(s);
    const auto later = [&](std::uint32_t a, std::uint32_t b) {
        return capacity[a] != capacity[b] ? capacity[a] < capacity[b] : a > b;
    };
    std::make_heap(heap.begin(), heap.end(), later);
    auto left = pods;
    while (left > 0 && !heap.empty() && capacity[heap.front()] <= left) {
        std::pop_heap(heap.begin(), heap.end(), later);
        const auto s = heap.back();
        heap.pop_back();
        result.tied = capacity[s] == result.boundary ? result.tied + 1 : 1;
        result.boundary = result.counts[s] = capacity[s];
        left -= capacity[s];
    }
    result.remainder = left;
    return result;
}

}  // namespace detail

GPUSCHED_EXPORT std::optional<SwitchCounts> entropy_greedy(std::span<const std::int64_t> capacity,
                                                           std::int64_t pods) {
    if (detail::checked_capacity(capacity, pods) < pods) return std::nullopt;
    SwitchCounts counts(capacity.size(), 0);
    // Entropy of the plan so far: H = ln(sum) - sum_log / sum.
    std::int64_t sum = 0;
    double sum_log = 0;
    while (sum < pods) {
        std::size_t best = capacity.size();
        double least = 0;
        for (std::size_t s = 0; s < capacity.size(); ++s) {
            if (capacity[s] == 0 || counts[s] > 0) continue;
            const auto n = std::min(capacity[s], pods - sum);
            const auto all = static_cast<double>(sum + n);
            const double h =
                sum == 0 ? 0 : std::log(all) - (sum_log + detail::x_log_x(static_cast<double>(n))) / all;
            if (best < capacity.size() && h > least - 1e-12) continue;
            best = s;
            least = h;
        }
        counts[best] = std::min(capacity[best], pods - sum);
        sum += counts[best];
        sum_log += detail::x_log_x(static_cast<double>(counts[best]));
    }
    return counts;
}

GPUSCHED_EXPORT std::optional<SwitchCounts> least_entropy(std::span<const std::int64_t> capacity,
                                                          std::int64_t pods) {
    if (detail::checked_capacity(capacity, pods) < pods) return std::nullopt;
    auto plan = detail::largest_first(capacity, pods);
    if (plan.remainder > 0) {
        std::size_t tightest = capacity.size();
        for (std::size_t s = 0; s < capacity.size(); ++s)
            if (plan.counts[s] == 0 && capacity[s] >= plan.remainder &&
                (tightest == capacity.size() || capacity[s] < capacity[tightest]))
                tightest = s;
        plan.counts[tightest] = plan.remainder;
    }
    return std::move(plan.counts);
}

GPUSCHED_EXPORT std::optional<SwitchCounts>
least_entropy(std::span<const std::int64_t> capacity, std::int64_t pods,
              std::span<const std::vector<std::uint32_t>> groups) {
    for (const auto& level : groups)
        if (level.size() != capacity.size())
            throw InvalidInput(
                bad_value("groups", number_text(level.size()) + " entries", number_text(capacity.size())));
    if (groups.empty()) return least_entropy(capacity, pods);
    require_range("pods", pods, 0, std::int64_t{1} << 31);  // larger values could overflow the fixed point
    if (detail::checked_capacity(capacity, pods) < pods) return std::nullopt;
    auto plan = detail::largest_first(capacity, pods);
    detail::TiedSwitches(capacity, groups, plan.boundary, plan.tied, plan.remainder).choose(plan.counts);
    return std::move(plan.counts);
}

}  // namespace gpusched::allocation

// SPDX-License-Identifier: Apache-2.0
// How many pods of one job go under each switch: entropy_greedy() and least_entropy().
#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/order.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gpusched::allocation {

namespace detail {

/// A tree knapsack over the groups of switches. Every group has a table over (full tied switches, whether it
/// takes the remainder). Its values are vectors that add up: the sum of x ln x over the groups of each level,
/// in order of importance (entropy falls as it grows), then minus the capacity that the remainder breaks
/// into. Sums preserve the order of vectors, so the best of every part makes the best whole.
class TiedSwitches {
  public:
    /// @param boundary capacity of the tied switches, of which `tied` are full; all larger ones are full
    TiedSwitches(std::span<const std::int64_t> capacity, std::span<const std::vector<std::uint32_t>> groups,
                 std::int64_t boundary, std::int64_t tied, std::int64_t remainder)
        : capacity_(capacity), groups_(groups), boundary_(boundary), tied_(tied), remainder_(remainder),
          width_(groups.size() + 1) {
        // From the finest partition to the coarsest, with a root above all.
        std::vector<std::uint32_t> size(groups.size(), 0);
        for (std::size_t l = 0; l < groups.size(); ++l)
            for (const auto g : groups[l]) size[l] = std::max(size[l], g + 1);
        const auto used = [&](std::size_t l) {
            std::vector<std::uint8_t> seen(size[l], 0);
            for (const auto g : groups[l]) seen[g] = 1;
            return std::count(seen.begin(), seen.end(), std::uint8_t{1});
        };
        const auto by_size = order_by(groups.size(), [&](std::size_t l) { return -used(l); });
        std::vector<std::size_t> first;  // index of a level's group 0 among the nodes
        for (const auto l : by_size) {
            first.push_back(nodes_.size());
            for (std::uint32_t g = 0; g < size[l]; ++g) nodes_.push_back({.level = l});
        }
        root_ = nodes_.size();
        nodes_.push_back({.level = groups.size()});
        for (std::size_t i = 0; i < by_size.size(); ++i)
            for (std::size_t s = 0; s < capacity.size(); ++s) {
                auto& node = nodes_[first[i] + groups[by_size[i]][s]];
                const auto above = i + 1 < by_size.size() ? first[i + 1] + groups[by_size[i + 1]][s] : root_;
                if (node.parent == no_parent) {
                    node.parent = above;
                    nodes_[above].children.push_back(first[i] + groups[by_size[i]][s]);
                }
                if (node.parent != above)
                    throw InvalidInput("groups: switch " + number_text(s) +
                                       " is in groups that overlap; expected nested ones");
                if (i == 0) add_switch(node, s);
            }
    }

    /// Sets the counts of the tied switches and of the one that takes the remainder.
    void choose(std::vector<std::int64_t>& counts) {
        solve(root_);
        distribute(root_, tied_, remainder_ > 0, counts);
    }

  private:
    static constexpr std::size_t no_parent = SIZE_MAX;
    using Value = std::vector<std::int64_t>;  // empty = impossible
    struct Choice {
        std::int64_t tied = 0;
        bool rest = false;
    };
    struct Node {
        std::size_t level = 0, parent = no_parent;
        std::vector<std::size_t> children{};
        std::int64_t base = 0;                     // GPUs of switches that are full in any case
        std::vector<std::uint32_t> tied{};         // switches of the boundary's capacity
        std::uint32_t tightest = UINT32_MAX;       // the tightest smaller switch that can hold the remainder
        std::int64_t most = 0;                     // tied switches below
        std::vector<Value> best{};                 // [2 * tied + rest]
        std::vector<std::vector<Choice>> taken{};  // per child: its part of the best so far
    };

    void add_switch(Node& node, std::size_t s) {
        const auto c = capacity_[s];
        if (boundary_ > 0 && c > boundary_)
            node.base += c;
        else if (boundary_ > 0 && c == boundary_)
            node.tied.push_back(static_cast<std::uint32_t>(s));
        else if (c >= remainder_ && (node.tightest == UINT32_MAX || c < capacity_[node.tightest]))
            node.tightest = static_cast<std::uint32_t>(s);
    }

    [[nodiscard]] static std::size_t at(std::int64_t tied, bool rest) {
        return static_cast<std::size_t>(2 * tied + rest);
    }

    // Fixed point: sums are exact, so equal spreads have equal values in any order.
    [[nodiscard]] static std::int64_t x_log_x(std::int64_t x) {
        return x > 1 ? std::llround(std::ldexp(static_cast<double>(x) * std::log(static_cast<double>(x)), 20))
                     : 0;
    }

    void solve(std::size_t n) {
        auto& node = nodes_[n];
        if (node.children.empty()) {
            node.most = std::min<std::int64_t>(tied_, static_cast<std::int64_t>(node.tied.size()));
            node.best.assign(at(node.most, true) + 1, {});
            for (std::int64_t k = 0; k <= node.most; ++k)
                for (const bool rest : {false, true}) {
                    if (rest && remainder_ == 0) continue;
                    const bool free = k < static_cast<std::int64_t>(node.tied.size());
                    if (rest && node.tightest == UINT32_MAX && !free) continue;
                    Value value(width_, 0);
                    if (rest)
                        value.back() = node.tightest != UINT32_MAX ? -capacity_[node.tightest] : -boundary_;
                    node.best[at(k, rest)] = std::move(value);
                }
        } else {
            node.best.assign(2, {});
            node.best[0] = Value(width_, 0);
            for (const auto child : node.children) {
                solve(child);
                merge(node, nodes_[child]);
            }
        }
        if (n == root_) return;
        for (std::int64_t k = 0; k <= node.most; ++k)
            for (const bool rest : {false, true})
                if (auto& value = node.best[at(k, rest)]; !value.empty())
                    value[node.level] += x_log_x(node.base + k * boundary_ + (rest ? remainder_ : 0));
    }

    void merge(Node& node, const Node& child) const {
        node.base += child.base;
        const auto most = std::min(tied_, node.most + child.most);
        std::vector<Value> best(at(most, true) + 1);
        std::vector<Choice> taken(best.size());
        Value sum(width_);
        for (std::int64_t k = 0; k <= node.most; ++k)
            for (const bool rest : {false, true}) {
                const auto& mine = node.best[at(k, rest)];
                if (mine.empty()) continue;
                for (std::int64_t c = 0; c <= child.most && k + c <= most; ++c)
                    for (const bool there : {false, true}) {
                        const auto& theirs = child.best[at(c, there)];
                        if (theirs.empty() || (rest && there)) continue;
                        for (std::size_t i = 0; i < width_; ++i) sum[i] = mine[i] + theirs[i];
                        auto& so_far = best[at(k + c, rest || there)];
                        if (!so_far.empty() && !(so_far < sum)) continue;
                        so_far = sum;
                        taken[at(k + c, rest || there)] = {c, there};
                    }
            }
        node.most = most;
        node.best = std::move(best);
        node.taken.push_back(std::move(taken));
    }

    void distribute(std::size_t n, std::int64_t tied, bool rest, std::vector<std::int64_t>& counts) const {
        const auto& node = nodes_[n];
        if (node.children.empty()) {
            for (std::size_t i = 0; i < node.tied.size(); ++i)
                counts[node.tied[i]] = static_cast<std::int64_t>(i) < tied ? boundary_ : 0;
            if (rest)
                counts[node.tightest != UINT32_MAX ? node.tightest
                                                   : node.tied[static_cast<std::size_t>(tied)]] = remainder_;
            return;
        }
        for (std::size_t i = node.children.size(); i-- > 0;) {
            const auto share = node.taken[i][at(tied, rest)];
            distribute(node.children[i], share.tied, share.rest, counts);
            tied -= share.tied;
            rest = rest && !share.rest;
        }
    }

    std::span<const std::int64_t> capacity_;
    std::span<const std::vector<std::uint32_t>> groups_;
    std::int64_t boundary_, tied_, remainder_;
    std::size_t width_;
    std::vector<Node> nodes_;
    std::size_t root_ = 0;
};

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

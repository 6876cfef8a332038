// SPDX-License-Identifier: Apache-2.0
// The most that any valid plan can vacate, or make of a goal of slots, by exhaustive search. For tiny clusters only.
#pragma once

#include "support/catch.hpp"
#include "support/reference.hpp"

#include <gpusched/model/plan.hpp>

namespace testing_support {

struct Optimum {
    std::int64_t nodes = 0;  ///< most nodes that a plan can vacate
    std::int64_t gpus = 0;   ///< most healthy GPUs that a plan can vacate; perhaps by another plan
    /// If nodes may be opened: the highest values of plans at a price of 0, by either objective, in thousandths.
    std::int64_t nodes_milli = 0, gpus_milli = 0;
    bool complete = true;  ///< false: the state limit was hit, the values are lower bounds
    std::size_t states = 0;
};

/// What plans can make of a goal of slots.
struct SlotOptimum {
    std::map<std::int64_t, std::int64_t>
        cost{};            ///< by slots in all: the least `move_cost` of tasks that end elsewhere
    bool complete = true;  ///< false: the state limit was hit
    std::size_t states = 0;

    [[nodiscard]] std::int64_t most() const { return cost.rbegin()->first; }
    /// The least that at least so many slots cost; there must be a way.
    [[nodiscard]] std::int64_t least_cost(std::int64_t slots) const {
        auto least = INT64_MAX;
        for (auto at = cost.lower_bound(slots); at != cost.end(); ++at) least = std::min(least, at->second);
        return least;
    }
};

/// The state up to swapping GPUs of a node that differ in nothing (health and locality).
/// @param home if given, the key also says which tasks are exactly where they are in it
inline std::string state_key(const reference::ClusterSpec& spec, const reference::State& s,
                             const reference::State* home = nullptr) {
    std::vector<std::string> where(spec.nodes.size());
    std::vector<std::vector<std::string>> cards(spec.nodes.size());
    for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
        const auto& node = spec.nodes[n];
        for (int g = 0; g < node.gpu_count; ++g)
            cards[n].push_back(std::to_string(reference::locality(node, true, g)) +
                               (reference::has_failed(node, g) ? "!" : ":"));
        for (const auto& group : node.devices)
            for (std::int64_t d = 0; d < group.count; ++d)
                cards[n].push_back(
                    group.device_class +
                    (reference::has_failed(node, static_cast<int>(cards[n].size())) ? "!" : ":"));
    }
    for (std::size_t i = 0; i < s.copies.size(); ++i) {  // always in the order of tasks
        const auto& c = s.copies[i];
        where[c.node] += std::to_string(c.task) + (home != nullptr && c == home->copies[i] ? "=" : ",");
        for (const int g : c.gpus) cards[c.node][static_cast<std::size_t>(g)] += std::to_string(c.task) + ",";
    }
    std::string text;
    for (std::size_t n = 0; n < where.size(); ++n) {
        std::sort(cards[n].begin(), cards[n].end());
        text += where[n] + "|";
        for (const auto& card : cards[n]) text += card + "|";
    }
    return text;
}

/// Searches the states that valid plans can reach.
///
/// Which nodes a plan vacates decides where its moves may lead, so each set V of nodes is searched on its own: nothing
/// moves into V or onto a node that was empty from the start, V ends empty, and every other node that was in use ends in use
/// (or it would belong to V); in between it may run empty. With an open price, each set O of nodes that were empty is tried beside
/// each V: moves may lead onto them, and all of O is paid for.
///
/// Waves of one move are enough. Take any valid wave and run its moves one by one. Each then finds fewer copies of other tasks
/// than in the wave (those that moved have left their source, those yet to move have not taken their destination), and
/// fewer copies never break a constraint: less is used, fewer members count, fewer limits apply, fewer domains hold members.
class ExhaustiveSearch {
  public:
    /// @param clear by node: the only ones that may be vacated, which receive nothing; empty = any may be vacated
    /// @param open_price thousandths of its weight that a node costs that is opened; none = no node is
    ExhaustiveSearch(const reference::ClusterSpec& spec, std::vector<bool> clear, std::size_t state_limit,
                     std::optional<std::int64_t> open_price)
        : spec_(spec), start_(reference::initial(spec)), clear_(std::move(clear)), state_limit_(state_limit),
          open_price_(open_price), opened_(spec.nodes.size()) {
        for (const auto& task : spec.tasks) {
            auto limit = INT64_MAX;
            for (const auto& job : spec.jobs)
                if (!task.job.empty() && job.name == task.job) limit = job.max_disrupted.value_or(INT64_MAX);
            most_at_once_.push_back(limit);
        }
    }

    Optimum run() {
        const auto [open, empty] = choices();
        for (std::size_t subset = (std::size_t{1} << open.size()) - 1; subset > 0; --subset) {
            vacate_.assign(spec_.nodes.size(), false);
            std::int64_t nodes = 0, gpus = 0;
            for (std::size_t i = 0; i < open.size(); ++i) {
                if ((subset >> i & 1) == 0) continue;
                const auto& node = spec_.nodes[open[i]];
                vacate_[open[i]] = true;
                ++nodes;
                for (int g = 0; g < node.gpu_count; ++g) gpus += reference::has_failed(node, g) ? 0 : 1;
            }
            if (open_price_) {
                open_some(empty, nodes, gpus);
                continue;
            }
            if (nodes <= best_.nodes && gpus <= best_.gpus) continue;
            if (!reachable()) continue;
            best_.nodes = std::max(best_.nodes, nodes);
            best_.gpus = std::max(best_.gpus, gpus);
        }
        return best_;
    }

    /// @param counts by node: whether it counts for the goal
    SlotOptimum slots(const gpusched::SlotShape& shape, const std::vector<bool>& counts) {
        SlotOptimum found;
        const auto open = choices().first;
        tell_home_ = true;
        for (std::size_t subset = 0; subset < std::size_t{1} << open.size(); ++subset) {
            vacate_.assign(spec_.nodes.size(), false);
            for (std::size_t i = 0; i < open.size(); ++i) vacate_[open[i]] = (subset >> i & 1) != 0;
            (void)explore([&](const State& state) {
                if (!done(state)) return false;
                if (!returned_as_it_was(state)) return false;
                std::int64_t sum = 0, cost = 0;
                for (std::size_t n = 0; n < counts.size(); ++n)
                    if (counts[n]) sum += slots_on(state, n, shape);
                for (std::size_t i = 0; i < state.copies.size(); ++i)
                    if (state.copies[i].node != start_.copies[i].node)
                        cost += spec_.tasks[state.copies[i].task].move_cost;
                const auto [at, is_new] = found.cost.try_emplace(sum, cost);
                at->second = std::min(at->second, cost);
                return false;
            });
        }
        found.complete = best_.complete;
        found.states = best_.states;
        return found;
    }

  private:
    using State = reference::State;
    using Copy = reference::Copy;

    // Nodes that might be vacated, and nodes that might be opened.
    std::pair<std::vector<std::size_t>, std::vector<std::size_t>> choices() {
        std::vector<std::size_t> open, empty;
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
            const bool stuck = std::any_of(start_.copies.begin(), start_.copies.end(), [&](const auto& c) {
                return c.node == n && !spec_.tasks[c.task].daemon && !movable(c.task);
            });
            in_use_.push_back(reference::occupants(start_, n) > 0);
            if (!stuck && in_use_[n] && (clear_.empty() || clear_[n])) open.push_back(n);
            if (open_price_ && !in_use_[n] && (clear_.empty() || !clear_[n])) empty.push_back(n);
        }
        return {open, empty};
    }

    [[nodiscard]] bool is_home(const State& s, std::size_t copy) const {
        return s.copies[copy] == start_.copies[copy];
    }
    // No task is on other GPUs of the node that it was on: that would be a move, too, but no plan of ours has it.
    [[nodiscard]] bool returned_as_it_was(const State& s) const {
        for (std::size_t i = 0; i < s.copies.size(); ++i)
            if (s.copies[i].node == start_.copies[i].node && !is_home(s, i)) return false;
        return true;
    }

    static std::int64_t slots_on(const State& s, std::size_t node, const gpusched::SlotShape& shape) {
        std::int64_t idle = 0, most = INT64_MAX;
        for (int g = 0; g < s.node(node).gpu_count; ++g)
            if (!reference::has_failed(s.node(node), g) &&
                std::none_of(s.copies.begin(), s.copies.end(),
                             [&](const Copy& c) { return c.node == node && reference::holds(c, g); }))
                ++idle;
        const auto limit = [&](std::int64_t free, std::int64_t each) {
            if (each > 0) most = std::min(most, std::max<std::int64_t>(0, free) / each);
        };
        limit(idle, shape.gpu_count);
        limit(reference::cpu_free_milli(s, node, false), shape.cpu_milli);
        limit(reference::memory_free_mib(s, node), shape.memory_mib);
        return most;
    }

    void open_some(const std::vector<std::size_t>& empty, std::int64_t nodes, std::int64_t gpus) {
        for (std::size_t subset = 0; subset < std::size_t{1} << empty.size(); ++subset) {
            opened_.assign(spec_.nodes.size(), false);
            auto nodes_milli = 1000 * nodes, gpus_milli = 1000 * gpus;
            for (std::size_t i = 0; i < empty.size(); ++i) {
                if ((subset >> i & 1) == 0) continue;
                const auto& node = spec_.nodes[empty[i]];
                opened_[empty[i]] = true;
                nodes_milli -= *open_price_;
                for (int g = 0; g < node.gpu_count; ++g)
                    gpus_milli -= reference::has_failed(node, g) ? 0 : *open_price_;
            }
            if (nodes_milli <= best_.nodes_milli && gpus_milli <= best_.gpus_milli) continue;
            if (!reachable()) continue;
            best_.nodes_milli = std::max(best_.nodes_milli, nodes_milli);
            best_.gpus_milli = std::max(best_.gpus_milli, gpus_milli);
        }
    }

    // Consolidation does not move tasks with local cores.
    [[nodiscard]] bool movable(std::size_t task) const {
        const auto& t = spec_.tasks[task];
        return !t.locked && !t.standby && !t.daemon && !t.cpu_local;
    }

    [[nodiscard]] bool done(const State& s) const {
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n)
            if (!opened_[n] && (reference::occupants(s, n) > 0) != (in_use_[n] && !vacate_[n])) return false;
        return true;
    }
    [[nodiscard]] bool receives(std::size_t node) const {
        return opened_[node] || (in_use_[node] && !vacate_[node] && (clear_.empty() || !clear_[node]));
    }

    bool reachable() {
        return explore([&](const State& state) { return done(state); });
    }
    // Visits what can be reached until `visit` says that it is enough, which is returned. Depth first, what moves off V first.
    template <class Visit>
    bool explore(Visit&& visit) {
        std::unordered_set<std::string> seen;
        std::vector<State> stack{start_};
        seen.insert(key(start_));
        while (!stack.empty()) {
            const auto state = std::move(stack.back());
            stack.pop_back();
            if (visit(state)) return true;
            if (++best_.states > state_limit_) {
                best_.complete = false;
                return false;
            }
            std::vector<State> next;
            single_moves(state, next);
            for (auto& s : next)
                if (seen.insert(key(s)).second) stack.push_back(std::move(s));
        }
        return false;
    }

    void single_moves(const State& s, std::vector<State>& next) const {
        for (const bool off_vacated : {false, true}) {
            for (std::size_t i = 0; i < s.copies.size(); ++i) {
                const auto& c = s.copies[i];
                if (!movable(c.task) || vacate_[c.node] != off_vacated || most_at_once_[c.task] < 1) continue;
                for (std::size_t to = 0; to < spec_.nodes.size(); ++to) {
                    if (to == c.node || !receives(to)) continue;
                    if (reference::obstacle(s, c.task, to) != "none") continue;
                    for (auto& gpus : reference::gpu_sets(s, c.task, to)) {
                        next.push_back(s);
                        next.back().copies[i] = {c.task, to, std::move(gpus)};
                    }
                }
            }
        }
    }

    [[nodiscard]] std::string key(const State& s) const {
        return state_key(spec_, s, tell_home_ ? &start_ : nullptr);
    }

    const reference::ClusterSpec& spec_;
    State start_;
    std::vector<bool> clear_, in_use_;  // by node; in use before the plan
    std::size_t state_limit_;
    std::optional<std::int64_t> open_price_;
    std::vector<bool> opened_;                // O
    std::vector<std::int64_t> most_at_once_;  // by task: its job's max_disrupted
    std::vector<bool> vacate_;                // V
    bool tell_home_ = false;
    Optimum best_;
};

/// @param clear by node: the only ones that may be vacated, which receive nothing; empty = any may be vacated
inline Optimum exhaustive_optimum(const reference::ClusterSpec& spec, std::vector<bool> clear = {},
                                  std::size_t state_limit = 20'000,
                                  std::optional<std::int64_t> open_price = {}) {
    return ExhaustiveSearch(spec, std::move(clear), state_limit, open_price).run();
}

/// @param counts by node: whether it counts for the goal
inline SlotOptimum exhaustive_slots(const reference::ClusterSpec& spec, const gpusched::SlotShape& shape,
                                    const std::vector<bool>& counts, std::size_t state_limit = 20'000) {
    return ExhaustiveSearch(spec, {}, state_limit, {}).slots(shape, counts);
}

}  // namespace testing_support

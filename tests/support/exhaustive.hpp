// SPDX-License-Identifier: Apache-2.0
// The most that any valid plan can vacate, by exhaustive search. For tiny clusters only.
#pragma once

#include "support/reference.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace testing_support {

struct Optimum {
    std::int64_t nodes = 0;  ///< most nodes that a plan can vacate
    std::int64_t gpus = 0;   ///< most healthy GPUs that a plan can vacate; perhaps by another plan
    /// Where nodes may be opened: the highest values of plans at a price of 0, by either objective, in thousandths.
    std::int64_t nodes_milli = 0, gpus_milli = 0;
    bool complete = true;  ///< false: the state limit was hit, the values are lower bounds
    std::size_t states = 0;
};

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
        std::vector<std::size_t> open;   // nodes that might be vacated
        std::vector<std::size_t> empty;  // nodes that might be opened
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
            const bool stuck = std::any_of(start_.copies.begin(), start_.copies.end(), [&](const auto& c) {
                return c.node == n && !spec_.tasks[c.task].daemon && !movable(c.task);
            });
            in_use_.push_back(reference::occupants(start_, n) > 0);
            if (!stuck && in_use_[n] && (clear_.empty() || clear_[n])) open.push_back(n);
            if (open_price_ && !in_use_[n] && (clear_.empty() || !clear_[n])) empty.push_back(n);
        }
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

  private:
    using State = reference::State;
    using Copy = reference::Copy;

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

    // Consolidation keeps tasks with local cores where they are.
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

    // Depth first, what moves off V first.
    bool reachable() {
        std::unordered_set<std::string> seen;
        std::vector<State> stack{start_};
        seen.insert(key(start_));
        while (!stack.empty()) {
            const auto state = std::move(stack.back());
            stack.pop_back();
            if (done(state)) return true;
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

    // The state up to swapping GPUs of a node that differ in nothing (health and locality).
    [[nodiscard]] std::string key(const State& s) const {
        std::vector<std::string> where(spec_.nodes.size());
        std::vector<std::vector<std::string>> cards(spec_.nodes.size());
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
            const auto& node = spec_.nodes[n];
            for (int g = 0; g < node.gpu_count; ++g)
                cards[n].push_back(std::to_string(reference::locality(node, true, g)) +
                                   (reference::has_failed(node, g) ? "!" : ":"));
            for (const auto& group : node.devices)
                for (std::int64_t d = 0; d < group.count; ++d)
                    cards[n].push_back(
                        group.device_class +
                        (reference::has_failed(node, static_cast<int>(cards[n].size())) ? "!" : ":"));
        }
        for (const auto& c : s.copies) {  // always in the order of tasks
            where[c.node] += std::to_string(c.task) + ",";
            for (const int g : c.gpus)
                cards[c.node][static_cast<std::size_t>(g)] += std::to_string(c.task) + ",";
        }
        std::string text;
        for (std::size_t n = 0; n < where.size(); ++n) {
            std::sort(cards[n].begin(), cards[n].end());
            text += where[n] + "|";
            for (const auto& card : cards[n]) text += card + "|";
        }
        return text;
    }

    const reference::ClusterSpec& spec_;
    State start_;
    std::vector<bool> clear_, in_use_;  // by node; in use before the plan
    std::size_t state_limit_;
    std::optional<std::int64_t> open_price_;
    std::vector<bool> opened_;                // O
    std::vector<std::int64_t> most_at_once_;  // by task: its job's max_disrupted
    std::vector<bool> vacate_;                // V
    Optimum best_;
};

/// @param clear by node: the only ones that may be vacated, which receive nothing; empty = any may be vacated
inline Optimum exhaustive_optimum(const reference::ClusterSpec& spec, std::vector<bool> clear = {},
                                  std::size_t state_limit = 20'000,
                                  std::optional<std::int64_t> open_price = {}) {
    return ExhaustiveSearch(spec, std::move(clear), state_limit, open_price).run();
}

}  // namespace testing_support

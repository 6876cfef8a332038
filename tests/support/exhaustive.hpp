// SPDX-License-Identifier: Apache-2.0
// The most that any valid plan can vacate, by exhaustive search. For tiny clusters only.
#pragma once

#include "support/reference.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace testing_support {

struct Optimum {
    std::int64_t nodes = 0;  ///< most nodes that a plan can vacate
    std::int64_t gpus = 0;   ///< most healthy GPUs that a plan can vacate; perhaps by another plan
    bool complete = true;    ///< false: the state limit was hit, the values are lower bounds
    std::size_t states = 0;
};

/// Searches the states that valid plans can reach.
///
/// Which nodes a plan vacates decides where its moves may lead, so each set V of nodes is searched on its own: nothing
/// moves into V or onto an empty node, V ends empty, and every other occupied node stays occupied, since a node that
/// runs empty stays empty (nothing may move there) and would belong to V.
///
/// Waves of one move are enough, but for one exception. Take any valid wave and run its moves one by one. Each then
/// finds fewer copies of other tasks than in the wave (those that moved have left their source, those yet to move have
/// not taken their destination), and fewer copies never break a constraint: less is used, fewer members count, fewer
/// limits apply, fewer domains hold members. What may break is that a destination outside V has run empty. So run
/// first every move that does not empty a node outside V. Then each remaining move takes the last task off its node,
/// and each of these nodes must be entered by a remaining move, or emptying it would be wrong in the wave as well. With
/// as many moves as nodes, each is entered exactly once: what remains are cycles through nodes with one task each. They
/// are tried as waves of their own.
class ExhaustiveSearch {
  public:
    ExhaustiveSearch(const reference::ClusterSpec& spec, std::size_t state_limit)
        : spec_(spec), start_(reference::initial(spec)), state_limit_(state_limit) {
        for (const auto& task : spec.tasks) {
            auto limit = INT64_MAX;
            for (const auto& job : spec.jobs)
                if (!task.job.empty() && job.name == task.job) limit = job.max_disrupted.value_or(INT64_MAX);
            most_at_once_.push_back(limit);
        }
    }

    Optimum run() {
        std::vector<std::size_t> open;  // nodes that might be vacated
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n) {
            const bool stuck = std::any_of(start_.copies.begin(), start_.copies.end(), [&](const auto& c) {
                return c.node == n && !spec_.tasks[c.task].daemon && !movable(c.task);
            });
            if (!stuck && reference::occupants(start_, n) > 0) open.push_back(n);
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

    // Consolidation keeps tasks with local cores where they are.
    [[nodiscard]] bool movable(std::size_t task) const {
        const auto& t = spec_.tasks[task];
        return !t.locked && !t.standby && !t.daemon && !t.cpu_local;
    }

    [[nodiscard]] bool done(const State& s) const {
        for (std::size_t n = 0; n < spec_.nodes.size(); ++n)
            if (vacate_[n] && reference::occupants(s, n) > 0) return false;
        return true;
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
            cycles(state, next);
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
                if (!vacate_[c.node] && reference::occupants(s, c.node) == 1) continue;
                for (std::size_t to = 0; to < spec_.nodes.size(); ++to) {
                    if (to == c.node || vacate_[to] || reference::occupants(s, to) == 0) continue;
                    if (reference::obstacle(s, c.task, to) != "none") continue;
                    for (auto& gpus : reference::gpu_sets(s, c.task, to)) {
                        next.push_back(s);
                        next.back().copies[i] = {c.task, to, std::move(gpus)};
                    }
                }
            }
        }
    }

    // Waves that turn the tasks of nodes with one task each in a circle.
    void cycles(const State& s, std::vector<State>& next) const {
        std::vector<std::size_t> lonely;  // copies that are the only occupant of a node outside V
        for (std::size_t i = 0; i < s.copies.size(); ++i)
            if (movable(s.copies[i].task) && !vacate_[s.copies[i].node] &&
                reference::occupants(s, s.copies[i].node) == 1)
                lonely.push_back(i);
        std::vector<std::size_t> circle;
        const auto extend = [&](const auto& self) -> void {
            if (circle.size() >= 2) turn(s, circle, next);
            for (const auto i : lonely) {
                // The smallest comes first, so that each circle is seen once.
                if (!circle.empty() &&
                    (i <= circle.front() || std::count(circle.begin(), circle.end(), i) > 0))
                    continue;
                circle.push_back(i);
                self(self);
                circle.pop_back();
            }
        };
        extend(extend);
    }

    void turn(const State& s, const std::vector<std::size_t>& circle, std::vector<State>& next) const {
        std::map<std::string, std::int64_t> disturbed;
        for (const auto i : circle) {
            const auto task = s.copies[i].task;
            if (++disturbed[spec_.tasks[task].job] > most_at_once_[task] && !spec_.tasks[task].job.empty())
                return;
        }
        const auto goal = [&](std::size_t k) { return s.copies[circle[(k + 1) % circle.size()]].node; };
        // Each node is entered once, so GPUs can be chosen node by node; then all together must be right.
        std::vector<std::vector<std::vector<int>>> choices;
        for (std::size_t k = 0; k < circle.size(); ++k) {
            if (reference::obstacle(s, s.copies[circle[k]].task, goal(k)) != "none") return;
            choices.push_back(reference::gpu_sets(s, s.copies[circle[k]].task, goal(k)));
        }
        auto both = s;
        for (std::size_t k = 0; k < circle.size(); ++k)
            both.copies.push_back({s.copies[circle[k]].task, goal(k), {}});
        for (std::size_t k = 0; k < circle.size(); ++k)
            if (reference::group_obstacle(both, s.copies[circle[k]].task, goal(k)) != "none") return;
        std::vector<State> results{s};
        for (std::size_t k = 0; k < circle.size(); ++k) {
            std::vector<State> more;
            for (const auto& partial : results)
                for (const auto& gpus : choices[k]) {
                    more.push_back(partial);
                    more.back().copies[circle[k]] = {s.copies[circle[k]].task, goal(k), gpus};
                }
            results = std::move(more);
        }
        next.insert(next.end(), results.begin(), results.end());
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
    std::size_t state_limit_;
    std::vector<std::int64_t> most_at_once_;  // by task: its job's max_disrupted
    std::vector<bool> vacate_;                // V
    Optimum best_;
};

inline Optimum exhaustive_optimum(const reference::ClusterSpec& spec, std::size_t state_limit = 20'000) {
    return ExhaustiveSearch(spec, state_limit).run();
}

}  // namespace testing_support

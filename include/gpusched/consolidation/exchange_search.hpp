// SPDX-License-Identifier: Apache-2.0
// ExchangeSearch: refills some vacated nodes of a group to vacate nodes that are worth more.
#pragma once

#include <gpusched/consolidation/chain_search.hpp>
#include <gpusched/consolidation/opening_search.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/result.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::consolidation::detail {

/// Any tasks that suffice, even if they are harder to place than the task itself, in random order. With
/// `frugal` the cheapest to move come first. For one thread, which owns the random numbers.
struct RandomVictims {
    Rng* rng = nullptr;
    bool frugal = false;

    [[nodiscard]] bool takes_cheapest_first() const noexcept { return frugal; }
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const;
};

/// Clusters of at most this many nodes are searched as one group, and their plans are judged after the moves
/// are ordered into waves.
inline constexpr std::size_t exchanged_together = 1000;

/// Ruin and recreate (G. Schrimpf et al., Record breaking optimization results using the ruin and recreate
/// principle, 2000). Each attempt takes a few vacated nodes whose tasks went to common destinations. Their
/// tasks return, tasks that moved for them return, and these nodes and a few others are tried in random
/// order. The result is kept if it has a higher value, or the same value at no higher cost. The number of
/// steps depends on the size of the group.
template <class Policies>
class ExchangeSearch {
  public:
    /// @param options price of values, and limits of waves
    /// @param depth maximum nesting of moves
    /// @param joined the steps that lead to the current state
    ExchangeSearch(Workspace& work, const Policies& policies, const Options& options, int depth,
                   std::span<const Step> joined, Budget& budget, Statistics& stats)
        : work_(work), cluster_(work.cluster), policies_(policies), options_(options), depth_(depth),
          budget_(budget), stats_(stats), any_victims_(with_any_victims(policies, rng_)),
          chains_(work, policies, depth, budget, stats),
          wide_chains_(work, any_victims_, depth, budget, stats), history_(joined.begin(), joined.end()) {}

    /// @param vacated by NodeId, as the joined chains leave it
    /// @param steps_per_node requests for a place plus destinations considered, for each node that may be
    ///     vacated (beyond a thousand, for each fifth node)
    /// @return chains that lead from the current state to a better one; empty if none was found
    std::vector<Vacated> run(std::span<const NodeId> group, std::span<const std::uint8_t> vacated,
                             std::int64_t steps_per_node, Rng start) {
        auto& rng = rng_ = start;
        std::vector<Vacated> found;
        work_.index.reset(cluster_, group, work_.scope);
        at_.assign(cluster_.node_slots(), 0);
        vacated_.assign(vacated.begin(), vacated.end());
        for (auto& list : lists_) list.clear();
        for (const auto node : group) {
            if (vacated[index(node)]) work_.index.close(node);
            if (!work_.scope.may_vacate[index(node)] || (!vacated[index(node)] && !may_be_worth(node)))
                continue;
            auto& list = lists_[vacated[index(node)]];
            at_[index(node)] = list.size();
            list.push_back(node);
        }
        if (lists_[0].empty() && lists_[1].empty()) return found;
        empty_ = EmptyNodes(work_, group, policies_.node_weight);
        chains_.offer(empty_);
        wide_chains_.offer(empty_);
        in_waves_ = work_.snapshot.node_count() <= exchanged_together;
        if (in_waves_) std::tie(worth_, dropped_) = worth_in_waves();
        const auto nodes = static_cast<std::int64_t>(lists_[0].size() + lists_[1].size());
        const auto most_steps = steps_per_node * (std::min(nodes, counted_fully) +
                                                  std::max<std::int64_t>(0, nodes - counted_fully) / 5);
        const auto first_step = steps();
        while (steps() - first_step < most_steps && !budget_.exhausted()) {
            ++stats_.exchanges_tried;
            ++stats_.destinations_scanned;  // so that the loop ends if nothing can be tried
            if (attempt(rng)) {
                ++stats_.exchanges_made;
                std::move(made_.begin(), made_.end(), std::back_inserter(found));
            } else {
                undo_attempt();
            }
            made_.clear();
        }
        return found;
    }

  private:
    static constexpr std::int64_t counted_fully = 1000;
    using Worth = std::array<std::int64_t, 3>;

    static auto with_any_victims(const Policies& policies, Rng& rng) {
        return with_ejection_rule(policies, RandomVictims{&rng});
    }
    [[nodiscard]] std::int64_t steps() const {
        return stats_.eject_calls + stats_.destinations_scanned + waves_steps_;
    }
    [[nodiscard]] std::int64_t weight(NodeId node) const {
        return static_cast<std::int64_t>(policies_.node_weight(cluster_, node));
    }
    [[nodiscard]] bool may_be_worth(NodeId node) const {
        return weight(node) > 0 && is_worth(weight(node), cost_of_own_moves(work_, node), options_.price);
    }

    bool attempt(Rng& rng) {
        gained_ = {};
        left_.clear();
        recreate_.clear();
        avoided_.clear();
        if (!empty_.empty()) put_on_trial(rng);
        ruin(rng);
        if (rng.below(2) == 0) shift(rng);
        if (rng.below(2) == 0) avoid_places(rng);
        go_home();
        const auto& others = lists_[0];
        for (auto tries = 1 + rng.below(3); tries > 0 && !others.empty(); --tries)
            recreate_.push_back(pick(others, rng));
        rng.shuffle(std::span(recreate_));
        work_.forget_failures();
        const int depth = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(depth_)));
        const bool any_victims = rng.below(2) == 0;
        any_victims_.ejection_rule.frugal = rng.below(2) == 0;
        any_victims_.switches.shortest_chains_first = rng.below(2) == 0;
        for (const auto node : recreate_) {
            if (is_vacated(node)) continue;
            if (any_victims)
                recreate(wide_chains_, node, depth);
            else
                recreate(chains_, node, depth);
        }
        for (const auto node : avoided_)
            if (!is_vacated(node) && !work_.index.is_open(node)) work_.index.open(cluster_, node);
        go_home();
        if (work_.on_trial != none<NodeId>) end_trial();
        return is_no_loss();
    }
    // Sometimes offers an empty node as if opening it cost nothing: it may be worth it for several nodes
    // together.
    void put_on_trial(Rng& rng) {
        if (rng.below(4) != 0) return;
        const auto node = pick(empty_.all, rng);
        if (cluster_.occupants(node) > 0) return;
        work_.on_trial = node;
        work_.index.open(cluster_, node);
    }
    void end_trial() {
        const auto node = std::exchange(work_.on_trial, none<NodeId>);
        work_.usage_changed(node);
        if (cluster_.occupants(node) == 0) return;
        const auto cost = chains_.moves().cost_of_opening(node);
        gained_.opening += cost;
        made_.back().chains.opening += cost;
    }
    // Closes some of the places that tasks have left for this attempt, so that others are found.
    void avoid_places(Rng& rng) {
        for (const auto node : left_)
            if (work_.index.is_open(node) && rng.below(2) == 0) {
                work_.index.close(node);
                avoided_.push_back(node);
            }
    }
    template <class Chains>
    void recreate(Chains& chains, NodeId node, int depth) {
        if (!chains.vacate(node, depth)) return;
        for (const auto& step : chains.moves().steps()) left_.push_back(step.from);
        keep(chains.moves().close());
    }
    // Small clusters are judged after the moves are ordered, which may drop chains.
    bool is_no_loss() {
        const auto change = value_milli(gained_.gain, gained_.cost, options_.price) - gained_.opening;
        const bool loss = change < 0 || (change == 0 && gained_.cost > 0);
        if (loss && dropped_ == 0) return false;
        bool changed = false;
        for (const auto& part : made_)
            for (const auto& step : part.steps) {
                if (cluster_.occupants(step.from) == 0 && !is_vacated(step.from) &&
                    !work_.scope.opens(step.from))
                    return false;  // this node must stay in use
                changed = changed || first_place(step.task) != cluster_.node_of(step.task);
            }
        if (!changed || !in_waves_) return changed && !loss;
        const auto known = history_.size();
        for (const auto& part : made_) history_.insert(history_.end(), part.steps.begin(), part.steps.end());
        const auto [worth, dropped] = worth_in_waves();
        if (worth < worth_) {
            history_.resize(known);
            return false;
        }
        worth_ = worth;
        dropped_ = dropped;
        if (history_.size() > 8 * work_.snapshot.task_slots() + 64) keep_last_steps();
        return true;
    }
    // Orders the steps so far into waves. Returns the plan's value, its negative cost and its negative number
    // of moves, and the number of dropped chains.
    [[nodiscard]] std::pair<Worth, std::int64_t> worth_in_waves() {
        closed_.assign(cluster_.node_slots(), 0);
        for (const auto node : cluster_.nodes())
            closed_[index(node)] = is_vacated(node) || !work_.scope.receives(node);
        const auto order =
            order_into_waves(work_.snapshot, history_, closed_, options_, work_.scope.may_vacate);
        waves_steps_ += static_cast<std::int64_t>(order.moves.size()) * 4;
        std::int64_t gain = 0, cost = 0;
        for (const auto node : vacated_nodes(work_.snapshot, order.after)) gain += weight(node);
        for (const auto& move : order.moves)
            if (order.after.node_of(move.task) == move.to)
                cost += cluster_.inventory().tasks.move_cost[index(move.task)];
        auto value = value_milli(gain, cost, options_.price);
        if (!empty_.empty())
            for (const auto node : opened_nodes(work_.snapshot, order.moves))
                value -= opening_milli(weight(node), work_.scope.open_price);
        return {{value, -cost, -static_cast<std::int64_t>(order.moves.size())}, order.dropped_chains};
    }
    // Only the last step of a task counts.
    void keep_last_steps() {
        std::vector<std::uint8_t> seen(work_.snapshot.task_slots());
        std::vector<Step> last;
        for (auto step = history_.rbegin(); step != history_.rend(); ++step)
            if (!std::exchange(seen[index(step->task)], std::uint8_t{1})) last.push_back(*step);
        history_.assign(last.rbegin(), last.rend());
    }
    // The task's node before the attempt.
    [[nodiscard]] NodeId first_place(TaskId task) const {
        for (const auto& part : made_)
            for (const auto& step : part.steps)
                if (step.task == task) return step.from;
        return none<NodeId>;
    }
    // Returns the tasks of a few vacated nodes. Each node but the first shares a destination with one before
    // it.
    void ruin(Rng& rng) {
        const auto& nodes = lists_[1];
        if (nodes.empty()) return;
        auto count = 1 + rng.below(3);
        if (rng.below(8) == 0) count += rng.below(8);
        auto next = pick(nodes, rng);
        for (; count > 0; --count) {
            if (!is_vacated(next) || !reopen(next)) return;
            next = related(rng);
            if (next == none<NodeId>) return;
        }
    }
    bool reopen(NodeId node) {
        auto& moves = chains_.moves();
        work_.index.open(cluster_, node);
        for (const auto task : work_.snapshot.tasks_on(node)) {
            if (work_.snapshot.inventory().tasks.daemon[index(task)]) continue;
            const auto from = cluster_.node_of(task);
            if (!moves.send_home(task, true)) {
                moves.drop();
                work_.index.close(node);
                return false;
            }
            left_.push_back(from);
        }
        auto back = moves.close();
        back.chains.gain = -weight(node);
        back.reopened.push_back(node);
        keep(std::move(back));
        recreate_.push_back(node);
        return true;
    }
    // Returns a vacated node that had a task in a place which tasks of a reopened node have left.
    [[nodiscard]] NodeId related(Rng& rng) {
        if (left_.empty()) return none<NodeId>;
        const auto at = pick(left_, rng);
        auto found = none<NodeId>;
        std::uint64_t seen = 0;
        for (const auto task : cluster_.tasks_on(at))
            if (const auto home = work_.snapshot.node_of(task); home != at && is_vacated(home))
                if (rng.below(++seen) == 0) found = home;
        return found;
    }
    // Moves one task of a vacated node to another place.
    void shift(Rng& rng) {
        if (lists_[1].empty()) return;
        auto& moves = chains_.moves();
        const auto home = pick(lists_[1], rng);
        std::uint64_t seen = 0;
        auto chosen = none<TaskId>;
        for (const auto task : work_.snapshot.tasks_on(home))
            if (work_.scope.movable[index(task)] && rng.below(++seen) == 0) chosen = task;
        if (chosen == none<TaskId>) return;
        const auto from = cluster_.node_of(chosen);
        const auto receivers = work_.index.receivers_for(cluster_, chosen);
        for (int tries = 0; tries < 8 && !receivers.empty(); ++tries) {
            const auto to = receivers[static_cast<std::size_t>(rng.below(receivers.size()))];
            ++stats_.destinations_scanned;
            if (to == from || !work_.index.is_open(to) || !moves.place(chosen, to)) continue;
            left_.push_back(from);
            keep(moves.close());
            return;
        }
    }
    // Returns tasks to nodes that others have just left, if possible: they had moved for those.
    void go_home() {
        auto& moves = chains_.moves();
        for (std::size_t i = 0; i < left_.size(); ++i) {
            const auto node = left_[i];
            if (is_vacated(node)) continue;
            for (const auto task : work_.snapshot.tasks_on(node)) {
                const auto from = cluster_.node_of(task);
                if (from == node || !work_.scope.movable[index(task)]) continue;
                ++stats_.destinations_scanned;
                if (moves.send_home(task, false)) left_.push_back(from);
            }
        }
        if (!moves.steps().empty()) keep(moves.close());
        left_.clear();
    }

    [[nodiscard]] bool is_vacated(NodeId node) const { return vacated_[index(node)] != 0; }
    void set_vacated(NodeId node, bool now) {
        auto& from = lists_[now ? 0 : 1];
        auto& to = lists_[now ? 1 : 0];
        const auto at = at_[index(node)];
        from[at] = from.back();
        at_[index(from[at])] = at;
        from.pop_back();
        at_[index(node)] = to.size();
        to.push_back(node);
        vacated_[index(node)] = now;
    }
    void keep(Vacated part) {
        gained_ += part.chains;
        for (const auto node : part.reopened) set_vacated(node, false);
        if (part.chains.node != none<NodeId>) set_vacated(part.chains.node, true);
        made_.push_back(std::move(part));
    }
    void undo_attempt() {
        for (; !made_.empty(); made_.pop_back()) {
            const auto& part = made_.back();
            work_.undo(part.steps);
            if (part.chains.node != none<NodeId>) {
                work_.index.open(cluster_, part.chains.node);
                set_vacated(part.chains.node, false);
            }
            for (const auto node : part.reopened) {
                work_.index.close(node);
                set_vacated(node, true);
            }
        }
    }

    template <class T>
    [[nodiscard]] static T pick(const std::vector<T>& from, Rng& rng) {
        return from[static_cast<std::size_t>(rng.below(from.size()))];
    }

    Workspace& work_;
    Cluster& cluster_;
    const Policies& policies_;
    const Options& options_;
    int depth_;
    Budget& budget_;
    Statistics& stats_;
    Rng rng_;
    decltype(with_any_victims(std::declval<const Policies&>(), std::declval<Rng&>())) any_victims_;
    ChainSearch<Policies> chains_;
    ChainSearch<decltype(any_victims_)> wide_chains_;
    std::vector<Step> history_;
    bool in_waves_ = false;
    Worth worth_{};             // of the current state, in waves
    std::int64_t dropped_ = 0;  // chains, in waves
    std::int64_t waves_steps_ = 0;
    std::vector<std::uint8_t> closed_;
    std::array<std::vector<NodeId>, 2> lists_;  // nodes worth trying that are not vacated; vacated nodes
    std::vector<std::size_t> at_;               // by node: position in its list
    std::vector<std::uint8_t> vacated_;         // by node
    EmptyNodes empty_;                          // that may be opened
    // Of the current attempt:
    std::vector<Vacated> made_;
    ChainSet gained_;
    std::vector<NodeId> recreate_;  // nodes to try
    std::vector<NodeId> left_;      // nodes that tasks have left
    std::vector<NodeId> avoided_;   // nodes that are not offered
};

}  // namespace gpusched::consolidation::detail

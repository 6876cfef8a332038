// SPDX-License-Identifier: Apache-2.0
// Orders moves into waves: those of a search, and those of a caller's heuristic.
#include "consolidation/explain_parts.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/consolidation/waves.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

class WaveBuilder {
  public:
    WaveBuilder(Cluster cluster, std::span<const std::uint8_t> closed, const Options& options,
                std::span<const std::uint8_t> may_vacate, std::span<const TaskId> evictions)
        : closed_(closed), may_vacate_(may_vacate), options_(options), evictions_(evictions),
          tried_(cluster.node_slots()), touched_(cluster.node_slots()),
          disrupted_(cluster.inventory().job_names.size()), down_(cluster.inventory().budgets.size()),
          leaving_(cluster.node_slots()), arriving_(cluster.node_slots()), used_(cluster.node_slots()),
          in_set_(cluster.inventory().group_sets.size()), cluster_(std::move(cluster)) {
        for (const auto node : cluster_.nodes())
            used_[index(node)] = cluster_.occupants(node) > 0 || options.open_price;
        for (const auto task : evictions) {
            for (const auto budget : cluster_.inventory().budgets_of(task)) ++down_[budget];
            if (options.rule) evicted_from_.push_back(cluster_.node_of(task));
            cluster_.remove(task);
        }
        start_rule();
        if (!evictions.empty()) cluster_.commit();
        always_down_ = down_;
    }

    WaveOrder run(std::span<const Step> steps) {
        // A dropped chain may leave a node empty that must stay in use. Then everything is ordered again
        // without that chain. In the last attempt no such node may run empty, even for a moment.
        for (int attempt = 1; !order(steps); ++attempt) {
            for (auto home = left_.rbegin(); home != left_.rend(); ++home)
                cluster_.assign(home->task, home->node, home->gpus);
            cluster_.commit();
            left_.clear();
            start_rule();
            moves_.clear();
            waves_ = 0;
            hops_ = 0;
            dropped_chains_ = static_cast<std::int64_t>(left_out_.size());
            may_run_empty_ = attempt < most_attempts;
        }
        return {std::move(moves_), waves_, hops_, dropped_chains_, std::move(cluster_)};
    }

  private:
    // Resets the caller's rule to its state before the first wave.
    void start_rule() {
        if (!options_.rule) return;
        rule_ = options_.rule;
        for (std::size_t i = 0; i < evictions_.size(); ++i)
            rule_.leave(cluster_, evictions_[i], evicted_from_[i]);
    }
    // A rule that depends on placements may have allowed moves of this wave only because the last one was not
    // there yet.
    bool rule_rejects_earlier() {
        if (rule_.is_static()) return false;
        return std::any_of(wave_.begin(), wave_.end(), [&](const Move& earlier) {
            rule_.leave(cluster_, earlier.task, earlier.to);
            const bool allowed = rule_.allows(cluster_, earlier.task, earlier.to);
            rule_.enter(cluster_, earlier.task, earlier.to);
            return !allowed;
        });
    }

    struct Waiting : Step {
        bool hopped = false;
    };

    /// @return false if dropped chains left nodes empty that must stay in use; these chains are added to
    ///     `left_out_`
    bool order(std::span<const Step> steps) {
        join(steps);
        const auto known = left_out_.size();
        while (!waiting_.empty()) {
            if (take_all(false) || take_all(true) || hop())
                end_wave();
            else
                drop();
        }
        const bool done = left_out_.size() == known;
        std::sort(left_out_.begin(), left_out_.end());
        return done;
    }

    // The last step of a task leads to its final node. Earlier steps are not needed, unless moves wait in a
    // circle.
    void join(std::span<const Step> steps) {
        waiting_.clear();
        std::fill(arriving_.begin(), arriving_.end(), 0);
        std::vector<std::uint8_t> seen(cluster_.task_slots());
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
            if (std::binary_search(left_out_.begin(), left_out_.end(), step->chain)) continue;
            if (std::exchange(seen[index(step->task)], std::uint8_t{1}) ||
                step->to == cluster_.node_of(step->task))
                continue;
            waiting_.push_back({*step});
            ++arriving_[index(step->to)];
        }
        std::reverse(waiting_.begin(), waiting_.end());
    }

    [[nodiscard]] bool must_stay_used(NodeId node) const {
        return !may_vacate_.empty() && !may_vacate_[index(node)];
    }

    [[nodiscard]] bool within_limits(TaskId task, NodeId to) const {
        if (options_.limits.max_moves_per_wave &&
            static_cast<std::int64_t>(wave_.size()) >= *options_.limits.max_moves_per_wave)
            return false;
        if (options_.limits.max_moves_per_node) {
            const auto limit = *options_.limits.max_moves_per_node;
            if (touched_[index(to)] >= limit || touched_[index(cluster_.node_of(task))] >= limit)
                return false;
        }
        const auto& inv = cluster_.inventory();
        if (inv.tasks.how(task) != Mobility::copy)
            for (const auto budget : inv.budgets_of(task))
                if (down_[budget] >= inv.budgets[budget].allows()) return false;
        const auto job = cluster_.inventory().tasks.job[index(task)];
        if (job == none<JobId>) return true;
        auto limit = cluster_.inventory().job_max_disrupted[index(job)];
        if (options_.limits.max_disrupted) limit = std::min(limit, *options_.limits.max_disrupted);
        return disrupted_[index(job)] < limit;
    }

    // Returns whether this move makes an earlier move of the wave impossible. Anti-affinity: a task that
    // moves within a domain counts there twice, and only its own copies ignore that. Other kinds: the earlier
    // move was allowed while a domain was not yet full, or while no task of a `near` set was running.
    bool crowds_out_earlier(TaskId task, NodeId from, NodeId to) {
        const auto& inv = cluster_.inventory();
        const auto doubled = [&](const Membership& m) {
            const auto level = inv.group_sets[m.set].level;
            const auto domain = inv.domain_at(level, from);
            return domain == inv.domain_at(level, to) && domain != none<DomainId>;
        };
        // Only moves of tasks that share a set with it are concerned.
        for (const auto& m : inv.memberships(task)) {
            const auto kind = inv.group_sets[m.set].kind;
            if (kind == GroupKind::affinity || kind == GroupKind::network) continue;
            if (kind == GroupKind::anti_affinity && !doubled(m)) continue;
            for (auto at = in_set_[m.set].first; at != no_link; at = links_[at].next) {
                const auto& earlier = wave_[links_[at].move];
                cluster_.unreserve(earlier.task, earlier.to, earlier.gpus);
                const auto found = find_group_obstacle(cluster_, earlier.task, earlier.to);
                cluster_.reserve(earlier.task, earlier.to, earlier.gpus);
                if (found != Obstacle::none) return true;
            }
        }
        return false;
    }

    // Adds the last move of the wave to the sets of its task.
    void enter_sets() {
        const auto& inv = cluster_.inventory();
        const auto task = wave_.back().task;
        const bool restarts = inv.tasks.how(task) != Mobility::copy;
        for (const auto& m : inv.memberships(task)) {
            auto& set = in_set_[m.set];
            links_.push_back({static_cast<std::uint32_t>(wave_.size() - 1), set.first, m.set});
            set.first = static_cast<std::uint32_t>(links_.size() - 1);
            if (inv.group_sets[m.set].kind < GroupKind::near) continue;
            set.bound += m.is_bound();
            set.restarting += restarts && m.is_member();
        }
    }

    // A task that restarts leaves its source when the wave starts. Tasks with a `near` or `spread` constraint
    // on it were allowed while it still counted there, so they arrive in another wave.
    [[nodiscard]] bool conflicts_with_restart(TaskId task) const {
        const auto& inv = cluster_.inventory();
        const auto sets = inv.selection_memberships(task);
        if (sets.empty()) return false;
        const bool restarts = inv.tasks.how(task) != Mobility::copy;
        return std::any_of(sets.begin(), sets.end(), [&](const Membership& m) {
            const auto& wave = in_set_[m.set];
            return inv.group_sets[m.set].kind >= GroupKind::near &&
                   ((restarts && m.is_member() && wave.bound > 0) || (m.is_bound() && wave.restarting > 0));
        });
    }

    bool take(const Waiting& waiting, NodeId to, GpuMask planned, bool other_gpus) {
        const auto task = waiting.task;
        if (!used_[index(to)] || !within_limits(task, to) || conflicts_with_restart(task)) return false;
        if (find_obstacle(cluster_, task, to) != Obstacle::none) return false;
        if (rule_ && !rule_.allows(cluster_, task, to)) return false;
        auto gpus = planned;
        if (!gpus_fit(cluster_, task, to, planned)) {
            if (to == waiting.to && (waiting.these_gpus || (planned != 0 && !other_gpus))) return false;
            gpus = allocation::pick_gpus(allocation::TightestGpu{}, cluster_, task, to);
        }
        const auto from = cluster_.node_of(task);
        // A node that must stay in use runs empty only while another task is on its way there.
        const auto arrived = touched_[index(from)] - leaving_[index(from)];
        if (must_stay_used(from) && cluster_.occupants(from) - leaving_[index(from)] + arrived <= 1 &&
            (!may_run_empty_ || arriving_[index(from)] == 0))
            return false;
        cluster_.reserve(task, to, gpus);
        rule_.enter(cluster_, task, to);
        if (crowds_out_earlier(task, from, to) || (rule_ && rule_rejects_earlier())) {
            cluster_.unreserve(task, to, gpus);
            rule_.leave(cluster_, task, to);
            return false;
        }
        const auto how = move_mode(cluster_.inventory().tasks.how(task));
        wave_.push_back({task, from, to, gpus, waves_, how,
                         options_.search.record_chains ? waiting.chain : Move::no_chain});
        enter_sets();
        if (how == MoveMode::restart)
            for (const auto budget : cluster_.inventory().budgets_of(task)) ++down_[budget];
        ++touched_[index(from)];
        ++touched_[index(to)];
        ++leaving_[index(from)];
        if (to == waiting.to) --arriving_[index(to)];
        if (const auto job = cluster_.inventory().tasks.job[index(task)]; job != none<JobId>)
            ++disrupted_[index(job)];
        return true;
    }

    bool take_all(bool other_gpus) {
        std::erase_if(waiting_, [&](const Waiting& w) { return take(w, w.to, w.gpus, other_gpus); });
        return !wave_.empty();
    }

    // Sends one waiting task that blocks another one to a temporary place.
    bool hop() {
        std::vector<std::uint8_t> wanted(cluster_.node_slots());
        for (const auto& w : waiting_) wanted[index(w.to)] = 1;
        const auto moved = static_cast<std::int64_t>(moves_.size() + waiting_.size());
        if (options_.max_moves && moved >= *options_.max_moves) return false;
        std::int64_t cost = 0;
        if (options_.max_move_cost) {
            for (const auto& move : moves_) cost += cluster_.inventory().tasks.move_cost[index(move.task)];
            for (const auto& w : waiting_) cost += cluster_.inventory().tasks.move_cost[index(w.task)];
        }
        // Stops are nodes that no waiting move needs, so that the hop blocks nothing, and on which some task
        // stays: a node that is empty in the end must not have received tasks.
        std::vector<int> waits(cluster_.node_slots());
        for (const auto& w : waiting_) ++waits[index(cluster_.node_of(w.task))];
        std::vector<NodeId> stops;
        for (const auto node : cluster_.nodes())
            if (!closed_[index(node)] && !wanted[index(node)] && !tried_[index(node)] &&
                cluster_.occupants(node) > waits[index(node)])
                stops.push_back(node);
        bool over_budget = false;
        for (auto& w : waiting_) {
            const auto from = cluster_.node_of(w.task);
            if (w.hopped || !wanted[index(from)] || !within_limits(w.task, from)) continue;
            if (options_.max_move_cost &&
                cost + cluster_.inventory().tasks.move_cost[index(w.task)] > *options_.max_move_cost) {
                over_budget = true;
                continue;
            }
            for (const auto node : stops) {
                if (!take(w, node, 0, true)) continue;
                w.hopped = true;
                ++hops_;
                return true;
            }
        }
        // No stop is tried again before the next move: only then fewer moves wait, and fewer stops are
        // blocked.
        if (!over_budget)
            for (const auto node : stops) tried_[index(node)] = 1;
        return false;
    }

    void drop() {
        const auto chain = waiting_.front().chain;
        bool left_empty = false;
        std::erase_if(waiting_, [&](const Waiting& w) {
            if (w.chain != chain) return false;
            --arriving_[index(w.to)];
            left_empty = left_empty || (must_stay_used(w.to) && cluster_.occupants(w.to) == 0 &&
                                        arriving_[index(w.to)] == 0);
            return true;
        });
        ++dropped_chains_;
        if (left_empty) left_out_.push_back(chain);
    }

    void end_wave() {
        for (const auto& move : wave_) cluster_.unreserve(move.task, move.to, move.gpus);
        for (const auto& move : wave_) {
            left_.push_back({move.task, move.from, cluster_.gpus_of(move.task)});
            cluster_.assign(move.task, move.to, move.gpus);
            rule_.leave(cluster_, move.task, move.from);
            touched_[index(move.from)] = touched_[index(move.to)] = 0;
            leaving_[index(move.from)] = 0;
            if (const auto job = cluster_.inventory().tasks.job[index(move.task)]; job != none<JobId>)
                disrupted_[index(job)] = 0;
        }
        cluster_.commit();
        down_ = always_down_;
        std::fill(tried_.begin(), tried_.end(), std::uint8_t{0});
        moves_.insert(moves_.end(), wave_.begin(), wave_.end());
        wave_.clear();
        for (const auto& link : links_) in_set_[link.set] = {};
        links_.clear();
        ++waves_;
    }

    std::span<const std::uint8_t> closed_, may_vacate_;
    const Options& options_;
    std::span<const TaskId> evictions_;
    std::vector<NodeId> evicted_from_;  // if there is a rule
    AnyPlacementRule rule_;             // with both copies of each task of the wave
    std::vector<std::uint8_t> tried_;   // by node: no waiting task can hop there in this wave
    std::vector<std::int64_t> touched_, disrupted_;
    std::vector<std::int64_t> down_;         // by budget: tasks that restart in this wave or are evicted
    std::vector<std::int64_t> always_down_;  // by budget: evicted tasks
    std::vector<int> leaving_;               // by node: tasks that this wave takes away
    std::vector<int> arriving_;              // by node: waiting moves that lead there
    std::vector<std::uint8_t> used_;  // by node: held a task other than daemons before, or may be opened
    static constexpr int most_attempts = 8;
    bool may_run_empty_ = true;            // nodes that must stay in use, temporarily
    std::vector<std::uint32_t> left_out_;  // chains, sorted
    std::vector<Placement> left_;          // places that the moves of the waves so far have left
    static constexpr std::uint32_t no_link = 0xFFFFFFFFu;
    // The moves of this wave whose tasks belong to a set of a group.
    struct InSet {
        std::uint32_t first = no_link;  // index into `links_`
        std::uint32_t bound = 0;        // of kinds near and spread: tasks with the constraint
        std::uint32_t restarting = 0;   // of these kinds: members that restart
    };
    struct Link {
        std::uint32_t move, next, set;  // index into `wave_`; into `links_`
    };
    std::vector<InSet> in_set_;  // by set
    std::vector<Link> links_;
    std::vector<Waiting> waiting_;
    std::vector<Move> wave_;
    std::vector<Move> moves_;
    std::uint32_t waves_ = 0;
    std::int64_t hops_ = 0, dropped_chains_ = 0;
    Cluster cluster_;
};

}  // namespace detail

GPUSCHED_EXPORT WaveOrder order_into_waves(Cluster cluster, std::span<const Step> steps,
                                           std::span<const std::uint8_t> closed, const Options& options,
                                           std::span<const std::uint8_t> may_vacate,
                                           std::span<const TaskId> evictions) {
    return detail::WaveBuilder(std::move(cluster), closed, options, may_vacate, evictions).run(steps);
}

namespace detail {

static void validate_requests(const Cluster& cluster, std::span<const WantedMove> moves) {
    Problems problems;
    for (std::size_t i = 0; i < moves.size() && !problems.full(); ++i) {
        const auto owner = "move #" + std::to_string(i);
        const auto& move = moves[i];
        if (!cluster.contains(move.task))
            problems.add(owner + ": there is no task " + std::to_string(index(move.task)));
        if (!cluster.contains(move.to))
            problems.add(owner + ": there is no node " + std::to_string(index(move.to)));
        else if ((move.gpus & ~first_gpus(cluster.gpu_count(move.to)) & ~cluster.devices(move.to)) != 0)
            problems.add(owner + ": names GPUs that node " + gpusched::quoted(cluster.name(move.to)) +
                         " lacks; it has " + std::to_string(cluster.gpu_count(move.to)));
    }
    problems.throw_if_any();
}

// Returns whether the move has been made.
static bool is_made(const Cluster& after, const Step& step) {
    return after.node_of(step.task) == step.to && (!step.these_gpus || after.gpus_of(step.task) == step.gpus);
}

// Explains why a requested move is not made after the others. Nodes that the plan vacates may receive: only
// its moves vacate them.
static MoveExplanation explain_dropped(const Cluster& cluster, Cluster& after, const Scope& scope,
                                       std::span<const ClosedBy> closed, const AnyPlacementRule& rule,
                                       const WantedMove& move, const Options& options) {
    auto why = explain_move(cluster, after, scope, closed, rule, move.task, move.to, options);
    const bool possible = why.fate == MoveFate::possible;
    if (possible && move.gpus != 0 && !gpus_fit(after, move.task, move.to, move.gpus)) {
        why.fate = MoveFate::obstacle;
        why.obstacle = Obstacle::gpu;
        why.text = "task " + gpusched::quoted(cluster.name(move.task)) + " cannot move to node " +
                   gpusched::quoted(cluster.name(move.to)) +
                   " (gpu): the requested GPUs do not fit it or are in use";
        return why;
    }
    if (possible) why.fate = MoveFate::no_turn;
    why.text = move_text(cluster, why, options, true);
    if (possible)
        why.text += after.occupants(why.from_node) == 1 && !scope.may_vacate[index(why.from_node)]
                        ? "; its node must stay in use"
                        : "; limits of waves, jobs and disruption budgets admit only other moves";
    return why;
}

// Returns the positions of moves that would be impossible even if all other waiting tasks had left their
// nodes. They only block others.
static std::vector<std::size_t> find_impossible(Cluster cluster, const AnyPlacementRule& rule,
                                                const std::vector<Step>& waiting) {
    for (const auto& step : waiting) cluster.remove(step.task);
    std::vector<std::size_t> impossible;
    for (const auto& step : waiting) {
        // With fewer tasks, only `near` and `spread` constraints are harder to satisfy.
        const auto group = find_group_obstacle(cluster, step.task, step.to);
        const bool possible =
            cluster.inventory().eligible(step.task, step.to) &&
            find_resource_obstacle(cluster, step.task, step.to) == Obstacle::none &&
            (group == Obstacle::none || group == Obstacle::near || group == Obstacle::spread) &&
            (!step.these_gpus || gpus_fit(cluster, step.task, step.to, step.gpus)) &&
            (!rule.is_static() || rule.allows(cluster, step.task, step.to));
        if (!possible) impossible.push_back(step.chain);
    }
    return impossible;
}

}  // namespace detail

GPUSCHED_EXPORT OrderedMoves order_into_waves(const Cluster& cluster, std::span<const WantedMove> moves,
                                              const Options& options) {
    validate(options, cluster);
    detail::validate_requests(cluster, moves);
    const auto scope = make_scope(cluster, options);
    std::vector<std::uint8_t> closed(cluster.node_slots());
    for (const auto node : cluster.nodes()) closed[index(node)] = !scope.receives(node);
    std::vector<std::size_t> last(cluster.task_slots());  // position of the task's last move
    for (std::size_t i = 0; i < moves.size(); ++i) last[index(moves[i].task)] = i;

    std::vector<Step> waiting;
    std::vector<std::size_t> impossible;
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto& move = moves[i];
        if (last[index(move.task)] != i) continue;
        const auto from = cluster.is_placed(move.task) ? cluster.node_of(move.task) : none<NodeId>;
        if (scope.movable[index(move.task)] && from != move.to && !closed[index(move.to)])
            waiting.push_back(
                {move.task, from, move.to, move.gpus, static_cast<std::uint32_t>(i), move.gpus != 0});
        else
            impossible.push_back(i);
    }

    OrderedMoves ordered;
    auto& plan = ordered.result.plan;
    auto& stats = ordered.result.stats;
    auto after = cluster;
    auto limits = options;
    // If moves are impossible, or a task hops and then fits into no wave, all is ordered again without these
    // moves.
    for (auto requested = waiting;;) {
        plan = {};
        stats = {};
        after = cluster;
        limits = options;
        waiting = requested;
        auto may_vacate = scope.may_vacate;
        while (!waiting.empty()) {
            auto order = order_into_waves(after, waiting, closed, limits, may_vacate);
            if (order.moves.empty()) break;
            for (auto move : order.moves) {
                move.wave += plan.waves;
                plan.moves.push_back(move);
                limits.rule.move(order.after, move.task, move.from, move.to);
                may_vacate[index(move.to)] = 0;  // a node that receives is not vacated later
            }
            plan.waves += order.waves;
            stats.hops += order.hops;
            after = std::move(order.after);
            std::erase_if(waiting, [&](const Step& step) { return detail::is_made(after, step); });
        }
        if (waiting.empty()) break;
        auto left_out = detail::find_impossible(after, limits.rule, waiting);
        const auto is_stray = [&](const Step& step) {
            return after.node_of(step.task) != step.from &&
                   std::any_of(waiting.begin(), waiting.end(),
                               [&](const Step& left) { return left.task == step.task; });
        };
        if (left_out.empty())
            if (const auto stray = std::find_if(requested.begin(), requested.end(), is_stray);
                stray != requested.end())
                left_out.push_back(stray->chain);
        if (left_out.empty()) break;
        impossible.insert(impossible.end(), left_out.begin(), left_out.end());
        std::erase_if(requested, [&](const Step& step) {
            return std::find(left_out.begin(), left_out.end(), step.chain) != left_out.end();
        });
    }
    for (const auto& step : waiting) impossible.push_back(step.chain);
    std::sort(impossible.begin(), impossible.end());

    plan.vacated_nodes = vacated_nodes(cluster, after);
    plan.opened_nodes = opened_nodes(cluster, plan.moves);
    static_cast<PlanStatistics&>(stats) = plan_statistics(cluster, after, plan);
    stats.dropped_chains = static_cast<std::int64_t>(impossible.size());
    const auto weight = [&](const Cluster& of, NodeId node) { return detail::weight_of(of, node, options); };
    detail::appraise(cluster, weight, options.price, options.open_price, ordered.result);
    auto closed_by = detail::closed_nodes(cluster, after, options);
    std::replace(closed_by.begin(), closed_by.end(), ClosedBy::emptied, ClosedBy::none);
    for (const auto i : impossible)
        ordered.dropped.push_back(
            {i, detail::explain_dropped(cluster, after, scope, closed_by, limits.rule, moves[i], options)});
    return ordered;
}

}  // namespace gpusched::consolidation

// SPDX-License-Identifier: Apache-2.0
// Joins the moves of the groups and makes the plan.
#include <gpusched/config.hpp>
#include <gpusched/consolidation/rounds.hpp>
#include <gpusched/model/feasibility.hpp>

namespace gpusched::consolidation::detail {

GPUSCHED_EXPORT Joiner::Joiner(const Cluster& cluster, const Options& options, const Scope& scope)
    : snapshot_(cluster), options_(options), scope_(scope), cluster_(cluster), rule_(options.rule),
      vacated_(cluster.node_slots()) {
    cluster_.commit();
}

bool Joiner::try_join(const Vacated& vacated) {
    const auto mark = cluster_.checkpoint();
    const auto& inv = cluster_.inventory();
    for (auto step = vacated.steps.begin(); step != vacated.steps.end(); ++step) {
        // Groups of nodes share only group constraints that reach beyond one node, and the caller's rule.
        const bool conflicts = (!inv.anti_affinity_memberships(step->task).empty() ||
                                !inv.selection_memberships(step->task).empty()) &&
                               find_group_obstacle(cluster_, step->task, step->to) != Obstacle::none;
        if (conflicts || (rule_ && !rule_.allows(cluster_, step->task, step->to))) {
            cluster_.rollback(mark);
            while (step != vacated.steps.begin()) {
                --step;
                rule_.move(cluster_, step->task, step->to, step->from);
            }
            return false;
        }
        cluster_.assign(step->task, step->to, step->gpus);
        rule_.move(cluster_, step->task, step->from, step->to);
    }
    for (auto step : vacated.steps) {
        step.chain = static_cast<std::uint32_t>(chains_.size());
        steps_.push_back(step);
    }
    chains_.push_back(
        {vacated.chains.node, vacated.reopened, steps_.size(), sums(chains_.size()) += vacated.chains});
    for (const auto node : vacated.reopened) vacated_[index(node)] = 0;
    if (vacated.chains.node != none<NodeId>) vacated_[index(vacated.chains.node)] = 1;
    return true;
}

GPUSCHED_EXPORT bool Joiner::join(const std::vector<std::vector<Vacated>>& found,
                                  std::span<const Statistics> counters) {
    RoundStatistics round;
    for (const auto& c : counters) stats_ += c;
    const auto take = [&](const Vacated& vacated) {
        if (!try_join(vacated)) return false;
        round.moves += vacated.chains.moves;
        for (const auto node : vacated.reopened) {
            --round.vacated_nodes;
            round.vacated_gpus -= gpu_count(snapshot_.healthy_gpus(node));
        }
        if (vacated.chains.node == none<NodeId>) return true;
        ++round.vacated_nodes;
        round.vacated_gpus += gpu_count(snapshot_.healthy_gpus(vacated.chains.node));
        return true;
    };
    if (!options_.max_moves && !options_.max_move_cost) {
        for (const auto& group : found)
            for (const auto& vacated : group)
                if (!take(vacated)) break;
    } else {
        std::vector<std::size_t> next(found.size());
        for (;;) {
            const auto joined = sums(chains_.size());
            auto best = found.size();
            for (std::size_t g = 0; g < found.size(); ++g) {
                if (next[g] == found[g].size()) continue;
                const auto& c = found[g][next[g]].chains;
                if ((options_.max_moves && joined.moves + c.moves > *options_.max_moves) ||
                    (options_.max_move_cost && joined.cost + c.cost > *options_.max_move_cost)) {
                    out_of_budget_ = true;
                    continue;
                }
                if (best == found.size()) {
                    best = g;
                    continue;
                }
                const auto& b = found[best][next[best]].chains;
                const auto price = [&](const ChainSet& s) { return options_.max_moves ? s.moves : s.cost; };
                if (c.gain * price(b) > b.gain * price(c)) best = g;
            }
            if (best == found.size()) break;
            if (take(found[best][next[best]]))
                ++next[best];
            else
                next[best] = found[best].size();
        }
        for (std::size_t g = 0; g < found.size(); ++g)
            stats_.refused_by_budget += static_cast<std::int64_t>(found[g].size() - next[g]);
    }
    stats_.rounds.push_back(round);
    return round.vacated_nodes > 0 && !out_of_budget_;
}

Result Joiner::plan_on(Cluster cluster, const Budget& budget, std::size_t chains) const {
    Result result;
    result.stop_reason = stop_reason(budget);

    std::vector<std::uint8_t> closed(cluster.node_slots());
    for (const auto node : cluster.nodes()) closed[index(node)] = !scope_.receives(node);
    for (const auto& chain : std::span(chains_).first(chains)) {
        for (const auto node : chain.reopened) closed[index(node)] = !scope_.may_receive[index(node)];
        if (chain.node != none<NodeId>) closed[index(chain.node)] = 1;
    }
    const auto steps = std::span(steps_).first(chains == 0 ? 0 : chains_[chains - 1].steps);
    auto order = order_into_waves(std::move(cluster), steps, closed, options_, scope_.may_vacate);
    auto& plan = result.plan;
    plan.waves = order.waves;
    plan.moves = std::move(order.moves);
    plan.vacated_nodes = vacated_nodes(snapshot_, order.after);
    plan.opened_nodes = opened_nodes(snapshot_, plan.moves);
    // The node of a dropped chain is not vacated.
    for (auto& move : plan.moves)
        if (move.chain != Move::no_chain &&
            std::binary_search(plan.vacated_nodes.begin(), plan.vacated_nodes.end(),
                               chains_[move.chain].node))
            move.serves = chains_[move.chain].node;
    // The rest of dropped chains alone is not worth a move.
    if (plan.vacated_nodes.empty() && !plan.moves.empty()) {
        plan.moves.clear();
        plan.opened_nodes.clear();
        plan.waves = 0;
        order.hops = 0;
        order.after = snapshot_;
    }

    result.stats = stats_;
    static_cast<PlanStatistics&>(result.stats) = plan_statistics(snapshot_, order.after, plan);
    result.stats.hops = order.hops;
    result.stats.dropped_chains = order.dropped_chains;
    return result;
}

GPUSCHED_EXPORT Result Joiner::plan(const Budget& budget, std::size_t chains) const {
    return plan_on(snapshot_, budget, chains);
}

GPUSCHED_EXPORT Result Joiner::finish(const Budget& budget) {
    cluster_.rollback(0);
    return plan_on(std::move(cluster_), budget, chains_.size());
}

GPUSCHED_EXPORT std::unique_ptr<Workspace> WorkspacePool::acquire(std::span<const Step> applied) {
    std::unique_ptr<Workspace> work;
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            work = std::move(idle_.back());
            idle_.pop_back();
        }
    }
    if (!work) work = std::make_unique<Workspace>(snapshot_, scope_, rule_);
    for (; work->applied < applied.size(); ++work->applied) {
        const auto& step = applied[work->applied];
        work->cluster.assign(step.task, step.to, step.gpus);
        work->rule.move(work->cluster, step.task, step.from, step.to);
    }
    work->cluster.commit();
    return work;
}

GPUSCHED_EXPORT void WorkspacePool::release(std::unique_ptr<Workspace> work) {
    if (work->rule) return;  // it no longer has the state of the cluster
    work->cluster.rollback(0);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(work));
}

}  // namespace gpusched::consolidation::detail

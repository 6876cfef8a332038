// SPDX-License-Identifier: Apache-2.0
// Applies the search of a policy to a node, and builds the decision.
#include "preemption/node_evaluator.hpp"

#include <gpusched/core/errors.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

namespace gpusched::preemption::detail {

template <class Set>
Choice<Set> best_of_node(const Cluster& cluster, const NodeProblem<Set>& node, const Request& request,
                         const Options& options, Search<Set>& search) {
    const auto& traits = traits_of(options.policy);
    const auto keys_by = [&](auto&& key) {
        std::vector<std::int64_t> keys;
        for (int i = 0; i < node.size(); ++i) keys.push_back(key(i));
        return keys;
    };
    const auto policy = options.policy.named();
    if (!policy) {
        const auto keys =
            keys_by([&](int i) { return options.policy.key(cluster, node.victim(i).task, request.now); });
        return search.first_needed(node, request, keys, traits.objective);
    }
    if (traits.searches)
        return options.engine == Engine::plain ? search.plain(node, request, traits.objective)
                                               : search.best(node, request, traits.objective);
    switch (*policy) {  // no default, so that the compiler reports a missing policy
    case Policy::spot:
        return search.first_that_suffice(node, request, keys_by([&](int i) { return node.first_cost(i); }),
                                         traits.objective);
    case Policy::first_fit:
        return search.first_that_suffice(
            node, request, keys_by([&](int i) { return node.victim(i).priority; }), traits.objective);
    case Policy::reprieve:
        return search.reprieve(cluster, node, request);
    case Policy::imp:
    case Policy::exhaustive:
    case Policy::spot_exact:
        break;
    }
    throw InternalError("no search for victim policy " + std::string(enum_name(*policy)));
}

void NodeEvaluator::read(const Cluster& cluster, const Request& request, const CostFunction& cost,
                         NodeId node, const GangTable* gangs) {
    cluster_ = &cluster;
    request_ = &request;
    has_many_ = !problem_.read(cluster, request, cost, node, gangs);
    if (!has_many_) return;
    if (many_ == nullptr) {
        many_ = std::make_unique<Many>();
        many_->search.watch(budget_);
    }
    (void)many_->problem.read(cluster, request, cost, node, gangs);
}

void NodeEvaluator::forget() noexcept {
    problem_.forget();
    if (many_ != nullptr) many_->problem.forget();
}

void NodeEvaluator::watch(Budget* budget) noexcept {
    budget_ = budget;
    search_.watch(budget);
    if (many_ != nullptr) many_->search.watch(budget);
}

Answer NodeEvaluator::best(const Options& options) {
    if (!has_many_) return {best_of_node(*cluster_, problem_, *request_, options, search_), {}};
    auto found = best_of_node(*cluster_, many_->problem, *request_, options, many_->search);
    return {{static_cast<const Candidate&>(found), 0}, std::move(found.victims)};
}

void NodeEvaluator::minimal_sets(std::vector<std::vector<TaskId>>& sets) {
    const auto list = [&](const auto& node, auto& search, auto found) {
        search.minimal_sets(node, *request_, found);
        for (const auto& set : found) {
            auto& victims = sets.emplace_back();
            for_each_victim(set, [&](int i) { victims.push_back(node.victim(i).task); });
            node.for_each_elsewhere(set, [&](TaskId task) { victims.push_back(task); });
            std::sort(victims.begin(), victims.end());
        }
    };
    sets.clear();
    if (has_many_)
        list(many_->problem, many_->search, std::vector<ManyVictims>{});
    else
        list(problem_, search_, std::vector<VictimSet>{});
    std::sort(sets.begin(), sets.end());
}

Shortage NodeEvaluator::shortage(bool without_victims) const {
    return with_problem([&](const auto& node) {
        return node.shortage(without_victims ? node.all() : decltype(node.all()){});
    });
}

std::int64_t NodeEvaluator::longest_running(const Answer& answer) const {
    std::int64_t since = INT64_MAX;
    const auto& started = cluster_->inventory().tasks.start_time;
    const auto look = [&](const auto& node, const auto& victims) {
        for_each_victim(victims, [&](int i) {
            const auto& v = node.victim(i);
            if (v.priority == answer.max_priority) since = std::min(since, started[index(v.task)]);
        });
        node.for_each_elsewhere(victims, [&](TaskId task) {
            if (cluster_->inventory().tasks.priority[index(task)] == answer.max_priority)
                since = std::min(since, started[index(task)]);
        });
    };
    if (has_many_)
        look(many_->problem, answer.many);
    else
        look(problem_, answer.victims);
    return since;
}

void NodeEvaluator::decide(const Answer& answer, bool spot, Decision& d) const {
    d.victims.clear();  // its memory stays
    d.score.reset();
    d.priority_sum = d.cost = 0;
    d.vacated_nodes.clear();
    d.broken_budgets.clear();
    d.replaced.clear();
    const auto fill = [&](const auto& node, const auto& victims) {
        d.node = node.node();
        for_each_victim(victims, [&](int i) { d.victims.push_back(node.victim(i).task); });
        node.for_each_elsewhere(victims, [&](TaskId task) { d.victims.push_back(task); });
        node.for_each_broken_budget(victims, [&](std::uint32_t budget, std::int64_t over) {
            d.broken_budgets.push_back({budget, over});
        });
        d.gpus = node.choose_gpus(victims);
    };
    if (has_many_)
        fill(many_->problem, answer.many);
    else
        fill(problem_, answer.victims);
    std::sort(d.victims.begin(), d.victims.end());
    std::sort(d.broken_budgets.begin(), d.broken_budgets.end(),
              [](const BrokenBudget& a, const BrokenBudget& b) { return a.budget < b.budget; });
    const bool daemon = cluster_->inventory().tasks.daemon[index(request_->task)] != 0;
    list_vacated_nodes(
        *cluster_, d.victims, [&](NodeId node) { return node == d.node && !daemon; }, d.vacated_nodes);
    d.topology = static_cast<topology::GpuLocality>(answer.locality);
    if (answer.count == 0) return;
    if (!spot) d.score = answer.score;
    d.priority_sum = answer.priority_sum;
    d.cost = answer.cost;
}

std::int64_t NodeEvaluator::steps() const noexcept {
    return search_.steps() + (many_ == nullptr ? 0 : many_->search.steps());
}

bool NodeEvaluator::proven() const noexcept {
    return search_.proven() && (many_ == nullptr || many_->search.proven());
}

}  // namespace gpusched::preemption::detail

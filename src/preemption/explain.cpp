// SPDX-License-Identifier: Apache-2.0
#include "preemption/node_answer.hpp"

#include <gpusched/config.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/preempt.hpp>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace gpusched::preemption {

GPUSCHED_EXPORT Explanation explain(const Cluster& cluster, TaskId task, const Options& options) {
    validate(options);
    const detail::Request request(cluster, task, options);
    const auto& inv = cluster.inventory();
    const auto problem = std::make_unique_for_overwrite<detail::NodeQuestion>();
    const auto describe = [&](NodeId node, const std::string& what) {
        return "node " + gpusched::quoted(cluster.name(node)) + " comes closest: " + what;
    };
    detail::GangTable gangs;
    if (inv.job_names.size() > 0) gangs.read(cluster);
    const bool keeps_budgets = !inv.tasks.budgets.empty() && !options.break_budgets;
    Explanation result;
    std::optional<std::tuple<int, int, std::int64_t, std::int64_t>> least;
    for (const auto node : cluster.nodes()) {
        if (!inv.nodes.receives(node) || !request.may_run_on(inv, node) ||
            (options.filter && !(*options.filter)(cluster, task, node)))
            continue;
        problem->read(cluster, request, options.cost, node, &gangs);
        if (problem->locality_now() != detail::infeasible)
            return {node, Obstacle::none, 0, "fits without evictions"};
        const bool none_leaves = request.spot && request.borrows;
        const auto missing = problem->shortage(!none_leaves);
        const auto kinds = (missing.cpu_milli > 0) + (missing.memory_mib > 0) + (missing.gpus > 0) +
                           static_cast<int>(missing.locality) + (missing.extras != Obstacle::none) +
                           (missing.group != Obstacle::none);
        if (kinds == 0 && (!problem->is_bound() || problem->best(options).found()))
            return {node, Obstacle::none, 0, "fits after evictions"};
        const std::tuple key(kinds, missing.gpus, missing.memory_mib, missing.cpu_milli);
        if (least && *least <= key) continue;
        least = key;
        result.node = node;
        std::string what = none_leaves
                               ? std::string("spot tasks evict nobody, and ")
                               : "with its " + std::to_string(problem->size()) + " potential victims gone ";
        if (missing.gpus > 0) {
            result.obstacle = Obstacle::gpu;
            result.missing = missing.gpus;
            what += std::to_string(missing.gpus) + " of the " + std::to_string(request.gpus) +
                    " GPUs are missing";
        } else if (missing.memory_mib > 0) {
            result.obstacle = Obstacle::memory;
            result.missing = missing.memory_mib;
            what += std::to_string(missing.memory_mib) + " MiB of memory are missing";
        } else if (missing.cpu_milli > 0) {
            result.obstacle = Obstacle::cpu;
            result.missing = missing.cpu_milli;
            what += std::to_string(missing.cpu_milli) + " thousandths of a core are missing";
        } else if (missing.extras != Obstacle::none) {
            result.obstacle = missing.extras;
            result.missing = missing.resource ? missing.resource->amount : 0;
            if (missing.resource) {
                what += std::to_string(result.missing) + " of resource " +
                        gpusched::quoted(inv.resource_names[missing.resource->resource]) + " are missing";
            } else {
                const auto& extras = inv.extras[request.extras];
                std::vector<std::string> classes;
                for (const auto c : extras.device_classes) classes.push_back(inv.device_classes[c]);
                what += "fewer than " + std::to_string(extras.device_count) + " devices of class " +
                        either_of(classes) + " are left";
            }
        } else if (missing.locality) {
            result.obstacle = Obstacle::hardware;
            result.missing = 0;
            what += request.level ? "no " + std::string(enum_name(*request.level)) + " has " +
                                        std::to_string(request.gpus) + " GPUs for it"
                                  : std::string("no GPUs with enough local cores are left");
            if (request.level && request.cpu_local) what += " with enough local cores";
        } else if (kinds == 0) {
            result.missing = 0;
            result.obstacle = Obstacle::gang;
            what += "it would fit, but some are of gangs of which other members may not leave";
        } else {
            result.missing = 0;
            result.obstacle = missing.group;
            what += std::string("its groups forbid it (") + enum_name(missing.group) + ")";
        }
        result.text = describe(node, what);
    }
    if (keeps_budgets && result.node) {
        auto breaking = options;
        breaking.break_budgets = true;
        if (const auto found = preempt(cluster, task, breaking).decision) {
            result = {found->node, Obstacle::disruption_budget, 0, ""};
            std::string budgets;
            for (const auto& broken : found->broken_budgets) {
                result.missing += broken.over;
                budgets += (budgets.empty() ? "" : ", ") + gpusched::quoted(inv.budget_names[broken.budget]) +
                           " by " + std::to_string(broken.over) + (broken.over == 1 ? " task" : " tasks");
            }
            result.text = describe(found->node, "evictions would make room, but break budgets: " + budgets);
        }
    }
    if (!result.node)
        result = {std::nullopt, Obstacle::not_eligible, 0,
                  std::string("no schedulable node has an accepted GPU model, the labels and no taint that "
                              "keeps the task away") +
                      (options.filter ? ", and passes the filter" : "")};
    return result;
}

}  // namespace gpusched::preemption

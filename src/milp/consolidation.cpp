// SPDX-License-Identifier: Apache-2.0
#include "milp/consolidation_builder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/consolidation.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace gpusched::milp {

GPUSCHED_EXPORT ConsolidationModel consolidation(const Cluster& cluster,
                                                 const ConsolidationOptions& options) {
    Problems problems;
    check_fields(problems, options);
    if (options.occupied_at_least)
        check_range(problems, "occupied_at_least", *options.occupied_at_least, std::int64_t{0},
                    static_cast<std::int64_t>(cluster.node_slots()));
    if (options.vacated_gpus_at_least) {
        std::int64_t gpus = 0;
        for (const auto node : cluster.nodes())
            if (cluster.occupants(node) > 0) gpus += gpu_count(cluster.healthy_gpus(node));
        check_range(problems, "vacated_gpus_at_least", *options.vacated_gpus_at_least, std::int64_t{0}, gpus);
    }
    problems.throw_if_any();
    return detail::ConsolidationBuilder(cluster, options).build();
}

GPUSCHED_EXPORT std::vector<NodeId> ConsolidationModel::decode(std::span<const double> values) const {
    require_values(*this, values);
    auto placement = home;
    const auto& x = index("x");
    for (std::size_t k = 0; k < classes.size(); ++k) {
        std::vector<long> room(nodes.size(), 0);
        for (std::size_t j = 0; j < nodes.size(); ++j)
            if (x(k, j) >= 0) room[j] = std::lround(values[static_cast<std::size_t>(x(k, j))]);
        std::vector<TaskId> leaving;
        // Who may stay stays.
        for (const auto task : classes[k]) {
            const auto at = static_cast<std::size_t>(
                std::find(nodes.begin(), nodes.end(), home[gpusched::index(task)]) - nodes.begin());
            if (room[at] > 0)
                --room[at];
            else
                leaving.push_back(task);
        }
        std::size_t j = 0;
        for (const auto task : leaving) {
            while (j < room.size() && room[j] <= 0) ++j;
            if (j == room.size()) break;  // the vector is no solution; nothing is made up
            --room[j];
            placement[gpusched::index(task)] = nodes[j];
        }
    }
    return placement;
}

GPUSCHED_EXPORT std::vector<double> ConsolidationModel::encode(const std::vector<NodeId>& placement) const {
    if (placement.size() != task_count)
        throw InvalidInput(
            bad_value("entries of placement", std::to_string(placement.size()), std::to_string(task_count)));
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    const auto& x = index("x");
    const auto& y = index("y");
    const auto refuse = [](TaskId task) {
        throw InvalidInput("placement: task " + std::to_string(gpusched::index(task)) +
                           ": expected a node that the model has a column for");
    };
    const auto position = [&](TaskId task) {
        const auto at = std::find(nodes.begin(), nodes.end(), placement[gpusched::index(task)]);
        if (at == nodes.end()) refuse(task);
        return static_cast<std::size_t>(at - nodes.begin());
    };
    for (std::size_t k = 0; k < classes.size(); ++k) {
        for (const auto task : classes[k]) {
            const auto j = position(task);
            if (x(k, j) < 0) refuse(task);
            values[static_cast<std::size_t>(x(k, j))] += 1;
            values[static_cast<std::size_t>(y(j))] = 1;
        }
        if (form == ConsolidationForm::plain) continue;
        const auto& moved = index("moved");
        for (std::size_t j = 0; j < nodes.size(); ++j) {
            if (moved(k, j) < 0) continue;
            double here = 0;
            for (const auto task : classes[k]) here += home[gpusched::index(task)] == nodes[j] ? 1 : 0;
            values[static_cast<std::size_t>(moved(k, j))] =
                std::max(0.0, here - values[static_cast<std::size_t>(x(k, j))]);
        }
    }
    for (const auto task : fixed) {
        if (placement[gpusched::index(task)] != home[gpusched::index(task)]) refuse(task);
        values[static_cast<std::size_t>(y(position(task)))] = 1;
    }
    return values;
}

GPUSCHED_EXPORT std::int64_t ConsolidationModel::occupied(const std::vector<NodeId>& placement) const {
    std::vector<NodeId> used;
    for (const auto& members : classes)
        for (const auto task : members) used.push_back(placement.at(gpusched::index(task)));
    for (const auto task : fixed) used.push_back(placement.at(gpusched::index(task)));
    std::sort(used.begin(), used.end());
    return std::unique(used.begin(), used.end()) - used.begin();
}

GPUSCHED_EXPORT std::int64_t ConsolidationModel::moves(const std::vector<NodeId>& placement) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < task_count; ++i) count += placement.at(i) != home[i] ? 1 : 0;
    return count;
}

}  // namespace gpusched::milp

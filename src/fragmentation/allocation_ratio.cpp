// SPDX-License-Identifier: Apache-2.0
// Computes allocation ratios of clusters and servers.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>

#include <map>
#include <utility>

namespace gpusched::fragmentation {

GPUSCHED_EXPORT std::vector<ServerRatios> server_ratios(const Cluster& cluster) {
    const auto& inventory = cluster.inventory();
    const auto share = [](std::int64_t part, std::int64_t whole) {
        return static_cast<double>(part) / static_cast<double>(whole);
    };
    std::map<std::size_t, ServerRatios> by_model;  // models are numbered by first appearance
    ServerRatios all{.gpu_model = "*"};
    for (const auto node : cluster.nodes()) {
        const auto n = requests_on(cluster, node);
        if (n.gpus == 0) continue;
        const auto model = detail::model_index(inventory, node);
        auto& own = by_model[model];
        own.gpu_model = detail::model_name(inventory, model);
        for (auto* row : {&own, &all}) {
            ++row->servers;
            row->hp += share(n.hp_active + n.unborrowed(), n.gpus);
            row->hp_and_lp += share(n.held(), n.gpus);
            if (n.hp_standby == 0) continue;
            ++row->standby_servers;
            row->standby_used += share(n.lp, n.hp_standby);
        }
    }
    std::vector<ServerRatios> rows;
    for (auto& [model, row] : by_model) rows.push_back(std::move(row));
    rows.push_back(all);
    for (auto& row : rows) {
        if (row.servers > 0) row.hp /= static_cast<double>(row.servers);
        if (row.servers > 0) row.hp_and_lp /= static_cast<double>(row.servers);
        if (row.standby_servers > 0) row.standby_used /= static_cast<double>(row.standby_servers);
    }
    return rows;
}

}  // namespace gpusched::fragmentation

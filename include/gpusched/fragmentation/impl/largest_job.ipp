#pragma once

#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/largest_job.hpp>

namespace GPUSCHED_NAMESPACE::fragmentation {
namespace detail {

inline SlotSums slot_sums(const Inventory& inventory, const LargestJobOptions& options) {
    require_fields(options);
    return {inventory,
            checked_level(inventory, options.level),
            options.include_cordoned,
            std::nullopt,
            options.gpus_per_pod,
            options.cores_per_gpu};
}

}  // namespace detail

GPUSCHED_INLINE LargestJobMetric::LargestJobMetric(const Inventory& inventory,
                                                   const LargestJobOptions& options)
    : sums_(detail::slot_sums(inventory, options)), inventory_(&inventory) {}

GPUSCHED_INLINE std::vector<LargestJobRow> LargestJobMetric::result(const Total& total) const {
    std::vector<LargestJobRow> rows;
    for (const auto& name : sums_.rows()) rows.push_back({.gpu_model = name});
    std::vector<DomainId> cluster(rows.size()), domain(rows.size());
    for (std::size_t c = 0; c < total.size(); ++c) {
        const auto& cell = sums_.cells()[c];
        auto& best = cell.within ? rows[cell.row].within : rows[cell.row].across;
        if (total[c] <= best) continue;
        best = total[c];
        (cell.within ? domain : cluster)[cell.row] = cell.domain;
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
        if (rows[r].across > 0) rows[r].cluster = inventory_->domain_name(sums_.cluster_level(), cluster[r]);
        if (rows[r].within > 0) rows[r].domain = inventory_->domain_name(sums_.switch_level(), domain[r]);
    }
    return rows;
}

GPUSCHED_INLINE std::vector<LargestJobRow> largest_job(const Cluster& cluster,
                                                       const LargestJobOptions& options) {
    return evaluate(LargestJobMetric(cluster.inventory(), options), cluster);
}

}  // namespace GPUSCHED_NAMESPACE::fragmentation

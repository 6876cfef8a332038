// SPDX-License-Identifier: Apache-2.0
// Computes the largest job from the slot sums of domains.
#include <gpusched/config.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/largest_job.hpp>

namespace gpusched::fragmentation {
namespace detail {

static SlotSums slot_sums(const Inventory& inventory, const LargestJobOptions& options) {
    require_fields(options);
    return {inventory,
            checked_level(inventory, options.level),
            options.include_cordoned,
            std::nullopt,
            options.gpus_per_pod,
            options.cores_per_gpu};
}

}  // namespace detail

GPUSCHED_EXPORT LargestJobMetric::LargestJobMetric(const Inventory& inventory,
                                                   const LargestJobOptions& options)
    : options_(options), sums_(detail::slot_sums(inventory, options)) {
    for (std::uint32_t c = 0; c < sums_.cells().size(); ++c) names_.push_back(domain_name(inventory, c));
}

GPUSCHED_EXPORT const std::string& LargestJobMetric::domain_name(const Inventory& inventory,
                                                                 std::uint32_t cell) const {
    const auto& [row, within, domain] = sums_.cells()[cell];
    return inventory.domain_name(within ? sums_.switch_level() : sums_.cluster_level(), domain);
}

GPUSCHED_EXPORT void LargestJobMetric::renew(const Inventory& inventory) {
    if (!sums_.holds(inventory)) *this = LargestJobMetric(inventory, options_);
}
GPUSCHED_EXPORT bool LargestJobMetric::renew(const Inventory& inventory, NodeId node) {
    bool holds = sums_.holds(inventory, node);
    if (holds && sums_.counts(node))
        for (const auto cell : sums_.cells_of(node))
            holds = holds && names_[cell] == domain_name(inventory, cell);
    if (!holds) renew(inventory);
    return !holds;
}

GPUSCHED_EXPORT std::vector<LargestJobRow> LargestJobMetric::result(const Total& total) const {
    std::vector<LargestJobRow> rows;
    for (const auto& name : sums_.rows()) rows.push_back({.gpu_model = name});
    for (std::size_t c = 0; c < total.size(); ++c) {
        const auto& cell = sums_.cells()[c];
        auto& best = cell.within ? rows[cell.row].within : rows[cell.row].across;
        if (total[c] <= best) continue;
        best = total[c];
        (cell.within ? rows[cell.row].domain : rows[cell.row].cluster) = names_[c];
    }
    return rows;
}

GPUSCHED_EXPORT std::vector<LargestJobRow> largest_job(const Cluster& cluster,
                                                       const LargestJobOptions& options) {
    return evaluate(LargestJobMetric(cluster.inventory(), options), cluster);
}

}  // namespace gpusched::fragmentation

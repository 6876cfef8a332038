// SPDX-License-Identifier: Apache-2.0
// Checks options of switch slots and computes the rows.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/switch_slots.hpp>

namespace gpusched::fragmentation {
namespace detail {

static SlotSums slot_sums(const Inventory& inventory, const SwitchSlotOptions& options) {
    require_fields(options);
    SlotSums sums(inventory, checked_level(inventory, options.level), options.include_cordoned,
                  options.max_gpus_per_node, options.gpus_per_pod, options.cores_per_gpu, options.accounting);
    if (options.gpus_per_pod && options.accounting == Accounting::hp)
        throw InvalidInput(bad_value("gpus_per_pod", number_text(*options.gpus_per_pod),
                                     "none with accounting 'hp', whose slots are the paper's estimate"));
    if (options.gpus_per_pod && options.gpus % *options.gpus_per_pod != 0)
        throw InvalidInput(bad_value("gpus_per_pod", number_text(*options.gpus_per_pod),
                                     "a divisor of gpus, which is " + number_text(options.gpus)));
    return sums;
}

}  // namespace detail

GPUSCHED_EXPORT SwitchSlotMetric::SwitchSlotMetric(const Inventory& inventory,
                                                   const SwitchSlotOptions& options)
    : options_(options), sums_(detail::slot_sums(inventory, options)) {}

GPUSCHED_EXPORT void SwitchSlotMetric::renew(const Inventory& inventory) {
    if (!sums_.holds(inventory)) *this = SwitchSlotMetric(inventory, options_);
}
GPUSCHED_EXPORT bool SwitchSlotMetric::renew(const Inventory& inventory, NodeId node) {
    if (sums_.holds(inventory, node)) return false;
    renew(inventory);
    return true;
}

GPUSCHED_EXPORT std::vector<SwitchSlotRow> SwitchSlotMetric::result(const Total& total) const {
    std::vector<SwitchSlotRow> rows;
    for (const auto& name : sums_.rows()) rows.push_back({.gpu_model = name});
    for (std::size_t c = 0; c < total.size(); ++c) {
        const auto& cell = sums_.cells()[c];
        auto& row = rows[cell.row];
        (cell.within ? row.within : row.across) += total[c] / options_.gpus;
    }
    return rows;
}

GPUSCHED_EXPORT std::vector<SwitchSlotRow> switch_slots(const Cluster& cluster,
                                                        const SwitchSlotOptions& options) {
    return evaluate(SwitchSlotMetric(cluster.inventory(), options), cluster);
}

}  // namespace gpusched::fragmentation

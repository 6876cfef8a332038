// SPDX-License-Identifier: Apache-2.0
// Counts the slots of nodes and domains, and the jobs that they could run.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/fragmentation/detail/node_groups.hpp>
#include <gpusched/fragmentation/incremental.hpp>
#include <gpusched/fragmentation/switch_slots.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

namespace gpusched::fragmentation {

namespace detail {

GPUSCHED_EXPORT SlotSums::SlotSums(const Inventory& inventory, const SwitchSlotOptions& options)
    : options_(options), network_levels_(inventory.network_levels()), serial_(inventory.serial) {
    require_fields(options);
    cluster_level_ = top_level(inventory);
    switch_level_ = checked_level(inventory, options.level);
    const auto nodes = inventory.living_nodes();
    std::vector<std::size_t> models;
    facts_.resize(inventory.nodes.names.size());
    for (const auto node : nodes) {
        const auto& here = facts_[index(node)] = facts_of(inventory, node);
        if (here.shown) models.push_back(here.model);
    }
    std::sort(models.begin(), models.end());
    models.erase(std::unique(models.begin(), models.end()), models.end());
    for (const auto model : models) rows_.push_back(model_name(inventory, model));
    const auto all_together = rows_.size();
    rows_.push_back("*");

    std::map<std::tuple<std::size_t, bool, DomainId>, std::uint32_t> known;
    const auto cell = [&](std::size_t row, bool within, DomainId domain) {
        const auto [at, added] =
            known.try_emplace({row, within, domain}, static_cast<std::uint32_t>(cells_.size()));
        if (added) cells_.push_back({row, within, domain});
        return at->second;
    };
    // Nodes with adjacent ids usually share their switch and model. Their cells are looked up once.
    std::tuple<std::size_t, DomainId, DomainId> last{rows_.size(), {}, {}};
    std::array<std::uint32_t, 4> its_cells{};
    cells_of_node_.resize(inventory.nodes.names.size());
    for (const auto node : nodes) {
        const auto& [shown, counted, model, cluster, domain] = facts_[index(node)];
        if (counted) {
            const auto row = static_cast<std::size_t>(std::lower_bound(models.begin(), models.end(), model) -
                                                      models.begin());
            if (const std::tuple here{row, cluster, domain}; here != last) {
                its_cells = {cell(row, false, cluster), cell(row, true, domain),
                             cell(all_together, false, cluster), cell(all_together, true, domain)};
                last = here;
            }
        }
        cells_of_node_[index(node)] = its_cells;
    }
}

GPUSCHED_EXPORT SlotSums::NodeFacts SlotSums::facts_of(const Inventory& inventory, NodeId node) const {
    if (!counts(inventory.nodes, node, true, options_.max_gpus_per_node)) return {};
    return {true, counts(inventory.nodes, node, options_.include_cordoned, options_.max_gpus_per_node),
            model_index(inventory, node), inventory.domain(cluster_level_, node),
            inventory.domain(switch_level_, node)};
}

GPUSCHED_EXPORT bool SlotSums::holds(const Inventory& inventory, NodeId node) const {
    return inventory.network_levels() == network_levels_ && index(node) < facts_.size() &&
           facts_[index(node)] == facts_of(inventory, node);
}

GPUSCHED_EXPORT SlotSums::State SlotSums::state(const Cluster& cluster, NodeId node) const noexcept {
    if (!facts_[index(node)].counted) return 0;
    const auto cpu_each = std::int64_t{1000} * options_.cores_per_gpu;
    if (options_.accounting == Accounting::hp) {
        const auto requests = requests_on(cluster, node);
        const auto& inventory = cluster.inventory();
        if (!requests.has_hp ||
            inventory.network_depth(node) == 0 ||  // also at node level, because a node is not a switch
            !inventory.position_known(switch_level_, node))
            return 0;
        const auto requested = (requests.hp_active + requests.hp_standby) / whole_gpu_milli;
        const auto left = std::max<std::int64_t>(requests.gpus / whole_gpu_milli - requested, 0);
        return cpu_each > 0 ? std::min(left, requests.idle_cpu() / cpu_each) : left;
    }
    const auto cpu = std::max<std::int64_t>(0, cluster.cpu_free_milli(node));
    if (options_.gpus_per_pod) {
        const std::int64_t g = *options_.gpus_per_pod;
        auto pods = gpu_count(cluster.idle_gpus(node)) / g;
        if (cpu_each > 0) pods = std::min(pods, cpu / (g * cpu_each));
        return pods * g;
    }
    // GPUs minus the floor of the requested GPUs. Failed and claimed GPUs count as requested.
    const auto slots = (cluster.gpu_free_total_milli(node) + whole_gpu_milli - 1) / whole_gpu_milli;
    return cpu_each > 0 ? std::min(slots, cpu / cpu_each) : slots;
}

}  // namespace detail

GPUSCHED_EXPORT SwitchSlotMetric::SwitchSlotMetric(const Inventory& inventory,
                                                   const SwitchSlotOptions& options)
    : SlotSums(inventory, options) {
    if (options.gpus_per_pod && options.accounting == Accounting::hp)
        throw InvalidInput("gpus_per_pod cannot be combined with accounting 'hp'");
    if (options.gpus_per_pod && options.gpus % *options.gpus_per_pod != 0)
        throw InvalidInput(bad_value("gpus_per_pod", number_text(*options.gpus_per_pod),
                                     "a divisor of gpus, which is " + number_text(options.gpus)));
}

GPUSCHED_EXPORT void SwitchSlotMetric::renew(const Inventory& inventory) {
    if (inventory.serial != serial_) *this = SwitchSlotMetric(inventory, options_);
}
GPUSCHED_EXPORT bool SwitchSlotMetric::renew(const Inventory& inventory, NodeId node) {
    if (holds(inventory, node)) return false;
    renew(inventory);
    return true;
}

GPUSCHED_EXPORT std::vector<SwitchSlotRow> SwitchSlotMetric::result(const Total& total) const {
    std::vector<SwitchSlotRow> rows;
    for (const auto& name : rows_) rows.push_back({.gpu_model = name});
    for (std::size_t c = 0; c < total.size(); ++c) {
        auto& row = rows[cells_[c].row];
        (cells_[c].within ? row.within : row.across) += total[c] / options_.gpus;
    }
    return rows;
}

GPUSCHED_EXPORT std::vector<SwitchSlotRow> switch_slots(const Cluster& cluster,
                                                        const SwitchSlotOptions& options) {
    return evaluate(SwitchSlotMetric(cluster.inventory(), options), cluster);
}

namespace detail {

static SwitchSlotOptions slots_of(const LargestJobOptions& options) {
    require_fields(options);
    return {.cores_per_gpu = options.cores_per_gpu,
            .level = options.level,
            .gpus_per_pod = options.gpus_per_pod,
            .include_cordoned = options.include_cordoned};
}

}  // namespace detail

GPUSCHED_EXPORT LargestJobMetric::LargestJobMetric(const Inventory& inventory,
                                                   const LargestJobOptions& options)
    : SlotSums(inventory, detail::slots_of(options)), job_(options) {
    for (const auto& cell : cells_) names_.push_back(domain_name(inventory, cell));
}

GPUSCHED_EXPORT const std::string& LargestJobMetric::domain_name(const Inventory& inventory,
                                                                 const Cell& cell) const {
    return inventory.domain_name(cell.within ? switch_level_ : cluster_level_, cell.domain);
}

GPUSCHED_EXPORT void LargestJobMetric::renew(const Inventory& inventory) {
    if (inventory.serial != serial_) *this = LargestJobMetric(inventory, job_);
}
GPUSCHED_EXPORT bool LargestJobMetric::renew(const Inventory& inventory, NodeId node) {
    bool same = holds(inventory, node);
    if (same && facts_[index(node)].counted)
        for (const auto cell : cells_of_node_[index(node)])
            same = same && names_[cell] == domain_name(inventory, cells_[cell]);
    if (!same) renew(inventory);
    return !same;
}

GPUSCHED_EXPORT std::vector<LargestJobRow> LargestJobMetric::result(const Total& total) const {
    std::vector<LargestJobRow> rows;
    for (const auto& name : rows_) rows.push_back({.gpu_model = name});
    for (std::size_t c = 0; c < total.size(); ++c) {
        auto& row = rows[cells_[c].row];
        auto& best = cells_[c].within ? row.within : row.across;
        if (total[c] <= best) continue;
        best = total[c];
        (cells_[c].within ? row.domain : row.cluster) = names_[c];
    }
    return rows;
}

GPUSCHED_EXPORT std::vector<LargestJobRow> largest_job(const Cluster& cluster,
                                                       const LargestJobOptions& options) {
    return evaluate(LargestJobMetric(cluster.inventory(), options), cluster);
}

}  // namespace gpusched::fragmentation

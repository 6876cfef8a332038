// SPDX-License-Identifier: Apache-2.0
// The snapshot as data again.
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>

namespace gpusched {

GPUSCHED_EXPORT NodeSpec Cluster::node_spec(NodeId node) const {
    const auto i = index(node);
    const auto& n = inventory_->nodes;
    const auto& attributes = inventory_->node_attributes[n.attributes[i]];
    NodeSpec out{.name = name(node),
                 .gpu_count = n.gpu_count[i],
                 .cpu_milli = n.cpu_milli[i],
                 .memory_mib = n.memory_mib[i],
                 .schedulable = !n.is_cordoned(node),
                 .labels = attributes.labels,
                 .taints = attributes.taints,
                 .devices = inventory_->node_devices[n.devices[i]].written,
                 .eviction_count = n.eviction_count[i]};
    if (n.gpu_model[i] != none<GpuModelId>) out.gpu_model = inventory_->gpu_models[index(n.gpu_model[i])];
    if (n.gpu_memory_mib[i] >= 0) out.gpu_memory_mib = n.gpu_memory_mib[i];
    for (Level level = 0; level < inventory_->network_depth(node); ++level)
        out.network.push_back(inventory_->domain_name(level, inventory_->domain(level, node)));
    if (n.hardware[i] != NodeTable::no_hardware)
        out.hardware = inventory_->hardware[n.hardware[i]].description;
    out.failed_gpus = gpu_list(n.failed_gpus[i]);
    for (std::uint32_t r = 0; r < inventory_->resource_names.size(); ++r)
        if (const auto amount = inventory_->node_resources[i * inventory_->resource_names.size() + r];
            amount > 0)
            out.resources.emplace(inventory_->resource_names[r], amount);
    return out;
}

GPUSCHED_EXPORT TaskSpec Cluster::task_spec(TaskId task) const {
    const auto& inv = *inventory_;
    const auto i = index(task);
    const auto& t = inv.tasks;
    const auto& asked = inv.task_affinities[t.affinities[i]];
    const auto& requirement = inv.requirements[t.requirement[i]];
    TaskSpec out;
    out.name = name(task);
    if (t.job[i] != none<JobId>) out.job = inv.job_names[index(t.job[i])];
    if (const auto id = inv.subgroup_of(task); id != none<SubgroupId>)
        out.subgroup = inv.subgroups[index(id)].name;
    out.cpu_milli = t.cpu_milli[i];
    out.memory_mib = t.memory_mib[i];
    out.gpu_count = t.gpu_count[i];
    out.gpu_share_milli = t.gpu_share_milli[i];
    out.gpu_memory_mib = t.gpu_memory_mib[i];
    for (const auto model : requirement.gpu_models) out.gpu_models.push_back(inv.gpu_models[index(model)]);
    out.priority = t.priority[i];
    out.priority_class = t.priority_class[i];
    out.locked = t.locked[i] != 0;
    out.preemptible = t.preemptible[i] != 0;
    out.how = t.how(task);
    out.standby = t.standby[i] != 0;
    out.daemon = t.daemon[i] != 0;
    out.node_selector = inv.node_selector(task);
    out.node_affinity = inv.node_affinity(task);
    out.tolerations = requirement.tolerations;
    out.anti_affinity = asked.anti_affinity;
    out.affinity = asked.affinity;
    out.network_affinity = asked.network_affinity;
    out.hardware_affinity = asked.hardware_affinity;
    const auto& terms = inv.terms(task);
    out.groups = terms.groups;
    out.avoid = terms.avoid;
    out.near = terms.near;
    out.spread = terms.spread;
    out.cpu_local = asked.cpu_local;
    out.cores = asked.cores;
    out.move_cost = t.move_cost[i];
    out.start_time = t.start_time[i];
    if (t.last_checkpoint_time[i] != TaskTable::no_time) out.last_checkpoint_time = t.last_checkpoint_time[i];
    out.checkpoint_interval = t.checkpoint_interval[i];
    out.eviction_count = t.eviction_count[i];
    if (is_placed(task)) out.node = name(node_of(task));
    out.gpus = gpu_list(gpus_of(task));
    const auto& extras = inv.extras[t.extras[i]];
    for (const auto& [resource, amount] : extras.resources)
        out.resources.emplace(inv.resource_names[resource], amount);
    out.device_count = extras.device_count;
    for (const auto device_class : extras.device_classes)
        out.device_classes.push_back(inv.device_classes[device_class]);
    if (i < t.owner_kind.size() && t.owner_kind[i] != TaskTable::unknown_kind)
        out.owner_kind = inv.owner_kinds[t.owner_kind[i]];
    if (const auto waiting = inv.waiting.find(task); waiting != inv.waiting.end() && !is_placed(task))
        out.waiting = waiting->second;
    if (const auto note = inv.notes.find(task); note != inv.notes.end() && !is_placed(task))
        out.note = note->second;
    out.terminating = is_placed(task) && inv.terminating.contains(task);
    return out;
}

GPUSCHED_EXPORT JobSpec Cluster::job_spec(JobId job) const {
    const auto j = index(job);
    JobSpec out{.name = inventory_->job_names[j], .min_members = inventory_->job_min_members[j]};
    for (const auto id : inventory_->subgroups_of(job))
        out.subgroups.push_back(
            {inventory_->subgroups[index(id)].name, inventory_->subgroups[index(id)].min_members});
    if (inventory_->job_max_disrupted[j] != INT64_MAX) out.max_disrupted = inventory_->job_max_disrupted[j];
    if (const auto waiting = inventory_->job_waiting.find(job); waiting != inventory_->job_waiting.end())
        out.waiting = waiting->second;
    return out;
}

GPUSCHED_EXPORT BudgetSpec Cluster::budget_spec(std::uint32_t budget) const {
    const auto& b = inventory_->budgets[budget];
    BudgetSpec out{.name = inventory_->budget_names[budget],
                   .groups = b.groups,
                   .allowed_down = b.allowed_down,
                   .broken = b.broken};
    for (const auto task : b.tasks) out.tasks.push_back(name(task));
    return out;
}

namespace detail {

/// Calls `add(id)` for all slots: those listed first, the others after them.
template <class Add>
void for_each_listed(const std::vector<std::uint32_t>& listed, std::size_t slots, Add&& add) {
    for (const auto id : listed) add(id);
    for (auto id = listed.size(); id < slots; ++id) add(static_cast<std::uint32_t>(id));
}

}  // namespace detail

GPUSCHED_EXPORT ClusterSpec Cluster::to_spec() const {
    const auto& inv = *inventory_;
    ClusterSpec spec;
    spec.now = inv.now;
    detail::for_each_listed(inv.listed.nodes, node_slots(), [&](std::uint32_t id) {
        if (const auto node = make_id<NodeId>(id); contains(node)) spec.nodes.push_back(node_spec(node));
    });
    detail::for_each_listed(inv.listed.tasks, task_slots(), [&](std::uint32_t id) {
        if (const auto task = make_id<TaskId>(id); contains(task)) spec.tasks.push_back(task_spec(task));
    });
    detail::for_each_listed(inv.listed.jobs, inv.job_names.size(), [&](std::uint32_t id) {
        if (!inv.job_names[id].empty()) spec.jobs.push_back(job_spec(make_id<JobId>(id)));
    });
    detail::for_each_listed(inv.listed.budgets, inv.budgets.size(), [&](std::uint32_t id) {
        if (!inv.budget_names[id].empty()) spec.budgets.push_back(budget_spec(id));
    });
    for (const auto& level : inv.label_levels) spec.label_levels.push_back(level.key);
    return spec;
}

}  // namespace gpusched

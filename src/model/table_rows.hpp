// SPDX-License-Identifier: Apache-2.0
// Rows of the tables of nodes, tasks and subgroups, for whole snapshots and for single changes.
#pragma once

#include "model/check_specs.hpp"
#include "model/node_match.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Label keys that some task selects on. All other keys do not matter for node classes.
using LabelKeys = std::set<std::string, std::less<>>;

[[nodiscard]] inline NodeAttributes attributes_of(const NodeSpec& node) { return {node.labels, node.taints}; }

[[nodiscard]] inline NodeClass class_of(const NodeAttributes& attributes, GpuModelId model,
                                        const LabelKeys& selected) {
    NodeClass node_class{model, {}, {}};
    for (const auto& [key, value] : attributes.labels)
        if (selected.contains(key)) node_class.labels.emplace(key, value);
    for (const auto& taint : attributes.taints)
        if (taint.effect != "PreferNoSchedule") node_class.taints.push_back(taint);
    return node_class;
}

/// The deepest network level that the task names; `node_level` if it names none.
[[nodiscard]] inline Level deepest_level_named(const TaskSpec& task) {
    auto deepest = node_level;
    for_each_level(task, task, [&](const char*, Level level) {
        if (level < first_label_level) deepest = std::max(deepest, level);
    });
    return deepest;
}

[[nodiscard]] inline HardwareMasks masks_of(const Hardware& hardware) {
    auto description = hardware.preset.empty() ? hardware : *hardware_preset(hardware.preset);
    HardwareMasks masks{std::move(description), {}, {}};
    masks.socket = masks.description.socket_gpus();
    for (const auto& numa : masks.description.numa_nodes) masks.numa.push_back(numa.gpus);
    return masks;
}

/// Writes the requirement of a task on nodes. Gives an id to models that no node has yet.
inline void write_requirement(Requirement& out, const TaskSpec& task, NameTable& gpu_models) {
    out.gpu_models.clear();
    for (const auto& model : task.gpu_models)
        out.gpu_models.push_back(make_id<GpuModelId>(gpu_models.intern(model).first));
    std::sort(out.gpu_models.begin(), out.gpu_models.end());
    out.node_selector = task.node_selector;
    out.tolerations = task.tolerations;
    out.node_affinity = task.node_affinity;
}
[[nodiscard]] inline Requirement requirement_of(const TaskSpec& task, NameTable& gpu_models) {
    Requirement requirement;
    write_requirement(requirement, task, gpu_models);
    return requirement;
}

[[nodiscard]] inline bool has_group_terms(const TaskSpec& task) noexcept {
    return !task.groups.empty() || !task.avoid.empty() || !task.near.empty() || !task.spread.empty();
}
[[nodiscard]] inline GroupTerms group_terms_of(const TaskSpec& task) {
    auto groups = task.groups;
    std::sort(groups.begin(), groups.end());  // a set: its order has no meaning
    return {std::move(groups), task.avoid, task.near, task.spread};
}

[[nodiscard]] inline bool has_affinities(const TaskSpec& task) noexcept {
    return !task.anti_affinity.empty() || !task.affinity.empty() || task.network_affinity ||
           !task.hardware_affinity.empty() || task.cpu_local || task.cores || has_group_terms(task);
}
/// @param group_terms the index of the result of `group_terms_of`
inline void write_affinities(TaskAffinities& out, const TaskSpec& task, std::uint32_t group_terms) {
    out.anti_affinity = task.anti_affinity;
    out.affinity = task.affinity;
    out.network_affinity = task.network_affinity;
    out.hardware_affinity = task.hardware_affinity;
    out.cpu_local = task.cpu_local;
    out.group_terms = group_terms;
    out.cores = task.cores;
}
[[nodiscard]] inline TaskAffinities affinities_of(const TaskSpec& task, std::uint32_t group_terms) {
    TaskAffinities affinities;
    write_affinities(affinities, task, group_terms);
    return affinities;
}

/// Gives every column `size` rows. The caller fills in names, classes and other references.
inline void resize_rows(NodeTable& t, std::size_t size) {
    t.gpu_model.resize(size, none<GpuModelId>);
    t.gpu_count.resize(size);
    t.cpu_milli.resize(size);
    t.memory_mib.resize(size);
    t.gpu_memory_mib.resize(size, -1);
    t.eviction_count.resize(size);
    t.cordon.resize(size, Cordon::closed);
    t.failed_gpus.resize(size);
    t.first_gpu.resize(size);
    t.node_class.resize(size);
    t.hardware.resize(size, NodeTable::no_hardware);
    t.attributes.resize(size);
    t.devices.resize(size);
}

[[nodiscard]] inline Cordon cordon_of(const NodeSpec& node) {
    if (node.schedulable) return Cordon::none;
    const bool tainted = std::any_of(node.taints.begin(), node.taints.end(), [](const Taint& taint) {
        return taint.key == cordon_taint && taint.effect == "NoSchedule";
    });
    return tainted ? Cordon::by_taint : Cordon::closed;
}

/// Writes the quantities of node `i`, each within its range.
/// @param devices its number of GPUs and other devices
inline void write_row(NodeTable& t, std::size_t i, const NodeSpec& node, int devices) {
    t.gpu_count[i] = static_cast<std::uint8_t>(legal(node.gpu_count, 0, max_gpus_per_node));
    t.cpu_milli[i] = legal(node.cpu_milli);
    t.memory_mib[i] = legal(node.memory_mib);
    t.gpu_memory_mib[i] = node.gpu_memory_mib ? legal(*node.gpu_memory_mib) : -1;
    t.eviction_count[i] = legal(node.eviction_count);
    t.cordon[i] = cordon_of(node);
    t.failed_gpus[i] = gpu_mask(
        node.failed_gpus, devices, [](int) {}, [](int) {});
}

inline void resize_rows(TaskTable& t, std::size_t size) {
    t.job.resize(size, none<JobId>);
    t.cpu_milli.resize(size);
    t.memory_mib.resize(size);
    t.gpu_count.resize(size);
    t.gpu_share_milli.resize(size, whole_gpu_milli);
    t.gpu_memory_mib.resize(size);
    t.priority.resize(size);
    t.priority_class.resize(size);
    t.locked.resize(size);
    t.preemptible.resize(size);
    t.standby.resize(size);
    t.daemon.resize(size);
    t.requirement.resize(size);
    t.affinities.resize(size);
    t.extras.resize(size);
    t.traits.resize(size);
    t.profile.resize(size);
    t.move_cost.resize(size);
    t.start_time.resize(size);
    t.last_checkpoint_time.resize(size);
    t.checkpoint_interval.resize(size);
    t.eviction_count.resize(size);
}

/// Writes the quantities of task `i`, each within its range.
inline void write_row(TaskTable& t, std::size_t i, const TaskSpec& task) {
    t.cpu_milli[i] = legal(task.cpu_milli);
    t.memory_mib[i] = legal(task.memory_mib);
    t.gpu_count[i] = static_cast<std::uint8_t>(legal(task.gpu_count, 0, max_gpus_per_node));
    t.gpu_share_milli[i] = static_cast<std::uint16_t>(legal(task.gpu_share_milli, 1, whole_gpu_milli));
    t.gpu_memory_mib[i] = legal(task.gpu_memory_mib);
    t.priority[i] = legal(task.priority, -largest_quantity);
    t.priority_class[i] = task.priority_class;
    t.locked[i] = task.locked;
    t.preemptible[i] = task.preemptible.value_or(task.priority_class == PriorityClass::lp);
    t.standby[i] = task.standby;
    t.daemon[i] = task.daemon;
    const auto bit = [](bool set, TaskTrait trait) { return set ? static_cast<unsigned>(trait) : 0u; };
    t.traits[i] = static_cast<std::uint8_t>(
        bit(task.standby, TaskTrait::lends) |
        bit(task.priority_class == PriorityClass::lp, TaskTrait::borrows) |
        bit(t.gpu_share_milli[i] < whole_gpu_milli, TaskTrait::fraction) |
        bit(task.daemon, TaskTrait::daemon) |
        bit(t.preemptible[i] && !task.locked && !task.standby && !task.daemon, TaskTrait::evictable) |
        static_cast<unsigned>(task.how) << TaskTable::mobility_shift);
    t.move_cost[i] = legal(task.move_cost);
    t.start_time[i] = legal(task.start_time, -largest_quantity);
    t.last_checkpoint_time[i] =
        task.last_checkpoint_time ? legal(*task.last_checkpoint_time, -largest_quantity) : TaskTable::no_time;
    t.checkpoint_interval[i] = legal(task.checkpoint_interval);
    t.eviction_count[i] = legal(task.eviction_count);
}

/// Writes the kind of the task's controller, after its name.
inline void write_owner_kind(Inventory& out, std::size_t i, const TaskSpec& task) {
    auto& column = out.tasks.owner_kind;
    if (!task.owner_kind && column.size() <= i) return;
    if (column.size() <= i) column.resize(out.tasks.names.size(), TaskTable::unknown_kind);
    column[i] = task.owner_kind ? out.owner_kinds.intern(*task.owner_kind).first : TaskTable::unknown_kind;
}

/// Writes the extras of task `i` after its other quantities.
inline void write_extras(TaskTable& t, std::size_t i, std::uint32_t extras) {
    t.extras[i] = extras;
    if (extras != 0) t.traits[i] |= static_cast<std::uint8_t>(TaskTrait::extras);
}

/// Sets or removes an entry.
template <class Id>
void write_waiting(std::map<Id, WaitingReason>& all, Id id, const std::optional<WaitingReason>& waiting) {
    if (waiting)
        all.insert_or_assign(id, *waiting);
    else
        all.erase(id);
}

/// Writes what a task waits for, its note, and whether it is about to leave.
inline void write_state(Inventory& out, TaskId id, const TaskSpec& task) {
    write_waiting(out.waiting, id, task.waiting);
    if (task.terminating)
        out.terminating.insert(id);
    else
        out.terminating.erase(id);
    if (task.note.empty())
        out.notes.erase(id);
    else
        out.notes.insert_or_assign(id, task.note);
}

/// Keeps the subgroups of jobs and their tasks. Ids of subgroups are slots: a subgroup that a job keeps keeps
/// its id. The caller has checked the data.
class SubgroupEditor {
  public:
    explicit SubgroupEditor(Inventory& inventory) : out_(inventory) {}

    /// Replaces the subgroups of the job.
    void write_job(JobId job, const std::vector<SubgroupSpec>& subgroups) {
        if (subgroups.empty() && out_.subgroups_of(job).empty()) return;
        if (out_.job_subgroups.size() <= index(job)) out_.job_subgroups.resize(index(job) + 1);
        auto& list = out_.job_subgroups[index(job)];
        auto before = std::exchange(list, {});
        for (const auto& subgroup : subgroups) {
            const auto known = std::find_if(before.begin(), before.end(), [&](SubgroupId id) {
                return out_.subgroups[index(id)].name == subgroup.name;
            });
            list.push_back(known == before.end() ? open(subgroup.name) : *known);
            if (known != before.end()) before.erase(known);
            out_.subgroups[index(list.back())].min_members = subgroup.min_members;
        }
        for (const auto id : before) {
            out_.subgroups[index(id)] = {};
            out_.subgroup_free.give(index(id));
        }
    }

    /// Adds the task, which has its job but no subgroup yet, to the subgroup that it names.
    void enter(TaskId task, const std::string& name) {
        if (name.empty()) return;
        const auto id = out_.find_subgroup(out_.tasks.job[index(task)], name);
        if (id == none<SubgroupId>) return;  // only after a problem
        auto& column = out_.tasks.subgroup;
        if (column.size() <= index(task)) column.resize(out_.tasks.names.size(), none<SubgroupId>);
        column[index(task)] = id;
        ++out_.subgroups[index(id)].size;
    }

    void leave(TaskId task) {
        const auto id = out_.subgroup_of(task);
        if (id == none<SubgroupId>) return;
        out_.tasks.subgroup[index(task)] = none<SubgroupId>;
        --out_.subgroups[index(id)].size;
    }

  private:
    SubgroupId open(const std::string& name) {
        const auto slot = out_.subgroup_free.empty() ? out_.subgroups.size() : out_.subgroup_free.take();
        if (slot == out_.subgroups.size()) out_.subgroups.emplace_back();
        out_.subgroups[slot].name = name;
        return make_id<SubgroupId>(slot);
    }

    Inventory& out_;
};

/// Adds a row for a job that has no free slot to take.
/// @param listed false if only tasks name the job: it disappears with the last of them
inline JobId append_job(Inventory& out, const std::string& name, bool listed) {
    out.job_names.intern(name);
    out.job_min_members.push_back(0);
    out.job_max_disrupted.push_back(INT64_MAX);
    out.job_size.push_back(0);
    out.job_listed.push_back(listed);
    return make_id<JobId>(out.job_names.size() - 1);
}

/// Writes the quantities and subgroups of a job.
inline void write_row(Inventory& out, JobId id, const JobSpec& job) {
    out.job_min_members[index(id)] = job.min_members;
    out.job_max_disrupted[index(id)] = job.max_disrupted.value_or(INT64_MAX);
    SubgroupEditor(out).write_job(id, job.subgroups);
    write_waiting(out.job_waiting, id, job.waiting);
}

}  // namespace gpusched::detail

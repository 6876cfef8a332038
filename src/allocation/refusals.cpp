// SPDX-License-Identifier: Apache-2.0
// Refusals: asks each constraint of a task about a node, and describes the answers.
#include "allocation/tally.hpp"
#include "model/node_match.hpp"

#include <gpusched/allocation/refusals.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace gpusched::allocation {

namespace detail {

/// As kube-scheduler runs its filters: unschedulable, taints, affinity, ports, resources, volumes, spread, and
/// affinity between pods.
static constexpr std::array kube_order{
    Constraint::cordoned,      Constraint::taint,         Constraint::not_ready,  Constraint::node_selector,
    Constraint::node_affinity, Constraint::gpu_model,     Constraint::port,       Constraint::pods,
    Constraint::cpu,           Constraint::memory,        Constraint::resource,   Constraint::device,
    Constraint::gpu,           Constraint::failed_gpus,   Constraint::gpu_memory, Constraint::hardware,
    Constraint::volume_in_use, Constraint::volume,        Constraint::spread,     Constraint::avoid,
    Constraint::near,          Constraint::anti_affinity, Constraint::affinity,   Constraint::network};

/// The constraint that a taint is part of.
static Constraint constraint_of(const Taint& taint) {
    if (!gpusched::detail::is_state(taint)) return Constraint::taint;
    return taint.key == gpusched::detail::cordon_taint ? Constraint::cordoned : Constraint::not_ready;
}

/// The constraint that a named resource stands for.
static Constraint constraint_of(std::string_view resource) {
    return resource == "pods"                      ? Constraint::pods
           : gpusched::detail::is_volume(resource) ? Constraint::volume
                                                   : Constraint::resource;
}

/// The constraint that a conflict with a group stands for.
static Constraint constraint_of(const Inventory& inv, const gpusched::detail::GroupConflict& conflict) {
    switch (conflict.obstacle) {
    case Obstacle::anti_affinity:
        return Constraint::anti_affinity;
    case Obstacle::affinity:
        return Constraint::affinity;
    case Obstacle::network:
        return Constraint::network;
    case Obstacle::near:
        return Constraint::near;
    case Obstacle::spread:
        return Constraint::spread;
    default:
        break;
    }
    const std::string_view group = inv.group_sets[conflict.set].group;
    return group.starts_with("host port ") ? Constraint::port
           : group.starts_with("claim ")   ? Constraint::volume_in_use
                                           : Constraint::avoid;
}

}  // namespace detail

GPUSCHED_EXPORT Refusals::Refusals(const Cluster& cluster, TaskId task, ConstraintOrder order)
    : cluster_(cluster), inv_(cluster.inventory()), task_(task) {
    auto resources = inv_.extras[inv_.tasks.extras[index(task)]].resources;
    std::sort(resources.begin(), resources.end(), [&](const auto& a, const auto& b) {
        return inv_.resource_names[a.resource] < inv_.resource_names[b.resource];
    });
    const auto add = [&](Constraint constraint) {
        const bool named = constraint == Constraint::resource || constraint == Constraint::pods ||
                           constraint == Constraint::volume;
        if (!named) return rows_.push_back({constraint, 0});
        for (const auto& [resource, amount] : resources)
            if (detail::constraint_of(inv_.resource_names[resource]) == constraint)
                rows_.push_back({constraint, resource});
    };
    if (order == ConstraintOrder::kube)
        for (const auto constraint : detail::kube_order) add(constraint);
    else
        for (const auto& entry : enumerators<Constraint>()) add(entry.value);
}

GPUSCHED_EXPORT std::string Refusals::name(std::size_t row) const {
    const auto& [constraint, resource] = rows_[row];
    const std::string text(enum_name(constraint));
    if (constraint == Constraint::resource) return text + " " + std::string(inv_.resource_names[resource]);
    if (constraint == Constraint::cordoned) return std::string(words_of(inv_).closed);
    const bool exclusive = constraint == Constraint::avoid;
    const bool differs = exclusive || constraint == Constraint::anti_affinity;
    if (!differs || !gpusched::detail::is_slurm(inv_)) return text;
    return exclusive ? "exclusive_nodes" : "distinct_nodes";
}

GPUSCHED_EXPORT std::string Refusals::words(std::size_t row) const {
    const auto& [constraint, resource] = rows_[row];
    switch (constraint) {
    case Constraint::failed_gpus:
        return "failed GPUs";
    case Constraint::pods:
        return "too many pods";
    case Constraint::port:
        return "host port in use";
    case Constraint::volume:
        return "volume out of reach";
    case Constraint::volume_in_use:
        return "volume in use";
    case Constraint::resource:
        return concat("too little of ", inv_.resource_names[resource]);
    default:
        return std::string(gpusched::detail::obstacle_text(inv_, detail::obstacle_of(constraint)));
    }
}

/// What the node has for the task's GPUs.
struct Refusals::Gpus {
    int count = 0;    ///< requested
    int idle = 0;     ///< healthy GPUs that are entirely free, or have enough left for the fraction
    int fitting = 0;  ///< of these, those with enough memory
    int healthy = 0;
    int unheld_failed = 0;  ///< failed GPUs that no task holds; only if the healthy ones can never suffice
    bool memory_too_small = false;  ///< of the node's GPUs
    [[nodiscard]] bool failed_refuse(int all) const { return healthy < count && count <= all; }
};

GPUSCHED_EXPORT Refusals::Gpus Refusals::gpus(NodeId node) const {
    Gpus found{.count = inv_.tasks.gpu_count[index(task_)]};
    if (found.count == 0) return found;
    const auto lent = cluster_.lent_to(task_);
    const auto needs = inv_.tasks.gpu_memory_mib[index(task_)];
    const auto has = inv_.nodes.gpu_memory_mib[index(node)];
    found.fitting = gpu_count(candidate_gpus(cluster_, task_, node));
    found.memory_too_small = has >= 0 && has < needs;
    found.healthy = gpu_count(cluster_.healthy_gpus(node));
    if (cluster_.is_fraction(task_)) {
        for (int g = 0; g < cluster_.gpu_count(node); ++g)
            if (cluster_.gpu_free_milli(node, g, lent) >= inv_.tasks.gpu_share_milli[index(task_)])
                ++found.idle;
    } else {
        found.idle = gpu_count(cluster_.idle_gpus(node, lent));
    }
    if (found.failed_refuse(cluster_.gpu_count(node))) {
        auto failed =
            static_cast<GpuMask>(first_gpus(cluster_.gpu_count(node)) & ~cluster_.healthy_gpus(node));
        for (const auto task : cluster_.tasks_on(node)) failed &= ~cluster_.gpus_of(task);
        found.unheld_failed = gpu_count(failed);
    }
    return found;
}

GPUSCHED_EXPORT std::int64_t Refusals::amount(std::uint32_t resource) const {
    for (const auto& [known, amount] : inv_.extras[inv_.tasks.extras[index(task_)]].resources)
        if (known == resource) return amount;
    return 0;
}

GPUSCHED_EXPORT bool Refusals::refuses(const Row& row, NodeId node, const Gpus& gpus) const {
    const auto& t = inv_.tasks;
    const auto i = index(task_);
    const auto& requirement = inv_.requirements[t.requirement[i]];
    const auto& node_class = inv_.node_classes[inv_.nodes.node_class[index(node)]];
    const auto& attributes = inv_.node_attributes[inv_.nodes.attributes[index(node)]];
    const auto tainted = [&](Constraint constraint) {
        return std::any_of(node_class.taints.begin(), node_class.taints.end(), [&](const Taint& taint) {
            return detail::constraint_of(taint) == constraint &&
                   !Inventory::tolerates(requirement.tolerations, taint);
        });
    };
    // A closed node with a taint that says why is not ready; any other is cordoned.
    const auto closed_by = [&] {
        return gpusched::detail::is_not_ready(node_class.taints) ? Constraint::not_ready
                                                                 : Constraint::cordoned;
    };
    switch (row.constraint) {
    case Constraint::gpu_model:
        return !gpusched::detail::accepts_model(requirement, node_class);
    case Constraint::node_selector:
        return !gpusched::detail::holds(inv_.node_selector(task_), attributes.labels);
    case Constraint::node_affinity:
        return !gpusched::detail::holds(inv_.node_affinity(task_), attributes.labels, cluster_.name(node));
    case Constraint::taint:
        return tainted(Constraint::taint);
    case Constraint::cordoned:
    case Constraint::not_ready:
        return tainted(row.constraint) || (!inv_.nodes.receives(node) && closed_by() == row.constraint);
    case Constraint::failed_gpus:
        return gpus.failed_refuse(cluster_.gpu_count(node));
    case Constraint::gpu:
        return gpus.idle < gpus.count &&
               (!gpus.failed_refuse(cluster_.gpu_count(node)) || gpus.idle + gpus.unheld_failed < gpus.count);
    case Constraint::gpu_memory:
        return gpus.count > 0 &&
               (gpus.memory_too_small || (gpus.idle >= gpus.count && gpus.fitting < gpus.count));
    case Constraint::hardware: {
        if (gpus.count == 0) return false;
        const auto local = guaranteed_localities(cluster_, task_, node);
        if (local.unknown) return true;
        const auto none_holds = [&](GpuMask among) {
            return std::none_of(local.masks.begin(), local.masks.end(), [&](GpuMask mask) {
                return holds_at_least(static_cast<GpuMask>(mask & among), gpus.count);
            });
        };
        if (local.masks.empty()) return false;
        return none_holds(first_gpus(cluster_.gpu_count(node))) ||
               (gpus.fitting >= gpus.count && none_holds(candidate_gpus(cluster_, task_, node)));
    }
    case Constraint::device:
        return inv_.extras[t.extras[i]].device_count > 0 && free_devices_for(cluster_, task_, node) == 0;
    case Constraint::cpu:
        return t.cpu_milli[i] > cluster_.cpu_free_milli(node, cluster_.lent_to(task_));
    case Constraint::memory:
        return t.memory_mib[i] > cluster_.memory_free_mib(node);
    case Constraint::volume:
    case Constraint::resource:
    case Constraint::pods:
        return amount(row.resource) > cluster_.resource_free(node, row.resource);
    case Constraint::port:
    case Constraint::volume_in_use:
    case Constraint::anti_affinity:
    case Constraint::avoid:
    case Constraint::spread:
    case Constraint::near:
    case Constraint::affinity:
    case Constraint::network:
        break;
    }
    return false;
}

GPUSCHED_EXPORT std::vector<std::uint32_t> Refusals::of(NodeId node) const {
    std::vector<std::uint32_t> refusing;
    const auto gpus = this->gpus(node);
    std::uint32_t conflicts = 0;
    for (const auto& conflict : gpusched::detail::list_group_conflicts(cluster_, task_, node))
        conflicts |= 1u << static_cast<unsigned>(detail::constraint_of(inv_, conflict));
    for (std::uint32_t row = 0; row < rows_.size(); ++row)
        if (refuses(rows_[row], node, gpus) ||
            (conflicts >> static_cast<unsigned>(rows_[row].constraint) & 1) != 0)
            refusing.push_back(row);
    return refusing;
}

GPUSCHED_EXPORT bool Refusals::in_pool(NodeId node) const {
    return std::none_of(rows_.begin(), rows_.end(), [&](const Row& row) {
        return is_permanent(row.constraint) && refuses(row, node, {});
    });
}

GPUSCHED_EXPORT Refusals::Idle Refusals::idle(NodeId node) const {
    const auto lent = cluster_.lent_to(task_);
    Idle found;
    if (!cluster_.is_fraction(task_)) {
        found.most = found.milli = std::int64_t{whole_gpu_milli} * gpu_count(cluster_.idle_gpus(node, lent));
        return found;
    }
    for (int g = 0; g < cluster_.gpu_count(node); ++g) {
        const std::int64_t free = cluster_.gpu_free_milli(node, g, lent);
        found.milli += free;
        found.most = std::max(found.most, free);
    }
    return found;
}

GPUSCHED_EXPORT std::int64_t Refusals::missing(std::size_t row, NodeId node) const {
    const auto& t = inv_.tasks;
    const auto i = index(task_);
    const auto gpus = this->gpus(node);
    const auto& [constraint, resource] = rows_[row];
    switch (constraint) {
    case Constraint::node_selector: {
        const auto& labels = inv_.node_attributes[inv_.nodes.attributes[index(node)]].labels;
        const auto& selector = inv_.node_selector(task_);
        return std::count_if(selector.begin(), selector.end(), [&](const auto& label) {
            const auto found = labels.find(label.first);
            return found == labels.end() || found->second != label.second;
        });
    }
    case Constraint::failed_gpus:
        return gpus.count - gpus.healthy;
    case Constraint::gpu:
        return cluster_.is_fraction(task_) ? t.gpu_share_milli[i] - idle(node).most : gpus.count - gpus.idle;
    case Constraint::gpu_memory:
        return gpus.count - gpus.fitting;
    case Constraint::device: {
        const auto& extras = inv_.extras[t.extras[i]];
        int most = 0;
        for (const auto one : extras.device_classes)
            most = std::max(most, gpu_count(cluster_.free_devices(node) &
                                            gpusched::detail::devices_of_class(inv_, node, one)));
        return extras.device_count - most;
    }
    case Constraint::cpu:
        return t.cpu_milli[i] - cluster_.cpu_free_milli(node, cluster_.lent_to(task_));
    case Constraint::memory:
        return t.memory_mib[i] - cluster_.memory_free_mib(node);
    case Constraint::resource:
    case Constraint::pods:
        return amount(resource) - cluster_.resource_free(node, resource);
    default:
        break;
    }
    std::int64_t beyond = 0;
    for (const auto& conflict : gpusched::detail::list_group_conflicts(cluster_, task_, node))
        if (detail::constraint_of(inv_, conflict) == constraint)
            beyond += std::int64_t{conflict.members} - conflict.limit;
    return std::max<std::int64_t>(beyond, 0);
}

GPUSCHED_EXPORT bool Refusals::has_any(std::size_t row, NodeId node) const {
    const auto& [constraint, resource] = rows_[row];
    if (constraint == Constraint::gpu) return cluster_.gpu_count(node) > 0;
    if (constraint == Constraint::resource)
        return inv_.node_resources[index(node) * inv_.resource_names.size() + resource] > 0;
    const auto& classes = inv_.extras[inv_.tasks.extras[index(task_)]].device_classes;
    return constraint != Constraint::device || std::any_of(classes.begin(), classes.end(), [&](auto one) {
               return gpusched::detail::devices_of_class(inv_, node, one) != 0;
           });
}

GPUSCHED_EXPORT std::string Refusals::taints(Constraint constraint, NodeId node) const {
    const auto& tolerations = inv_.requirements[inv_.tasks.requirement[index(task_)]].tolerations;
    std::string text;
    for (const auto& taint : inv_.node_classes[inv_.nodes.node_class[index(node)]].taints)
        if (detail::constraint_of(taint) == constraint && !Inventory::tolerates(tolerations, taint))
            text += (text.empty() ? "" : ", ") + taint.key + (taint.value.empty() ? "" : "=") + taint.value +
                    ":" + taint.effect;
    return text;
}

GPUSCHED_EXPORT std::string Refusals::describe(std::size_t row, NodeId node) const {
    const auto of = [&](Obstacle obstacle) { return describe_obstacle(cluster_, task_, node, obstacle); };
    std::string empty = ", even if empty";
    for (const auto task : cluster_.tasks_on(node))
        if (!inv_.tasks.daemon[index(task)]) empty.clear();
    const auto& [constraint, resource] = rows_[row];
    switch (constraint) {
    case Constraint::gpu_model:
        return of(Obstacle::gpu_model);
    case Constraint::node_selector:
        return of(Obstacle::node_selector);
    case Constraint::node_affinity:
        return of(Obstacle::node_affinity);
    case Constraint::taint:
    case Constraint::not_ready: {
        const auto taints = this->taints(constraint, node);
        if (constraint == Constraint::taint) return "it lacks a toleration for " + taints;
        if (taints.empty() || gpusched::detail::is_slurm(inv_))
            return "the node is not ready" + gpusched::detail::closed_reason(inv_, node, ": ");
        return "not ready: " + taints;
    }
    case Constraint::volume:
        return "the node does not reach " + std::string(inv_.resource_names[resource]);
    case Constraint::cordoned:
        return of(Obstacle::cordoned);
    case Constraint::failed_gpus: {
        const auto found = gpus(node);
        return concat("needs ", found.count, " GPUs, but only ", found.healthy, " of ",
                      cluster_.gpu_count(node), " are healthy");
    }
    case Constraint::gpu:
        return of(Obstacle::gpu) + empty;
    case Constraint::gpu_memory:
        return of(Obstacle::gpu_memory);
    case Constraint::hardware:
        return of(Obstacle::hardware);
    case Constraint::device:
        return of(Obstacle::device) + empty;
    case Constraint::cpu:
        return of(Obstacle::cpu) + empty;
    case Constraint::memory:
        return of(Obstacle::memory) + empty;
    case Constraint::pods:
        return "the node's number of pods is at its limit";
    case Constraint::resource:
        return gpusched::detail::describe_resource(inv_.resource_names[resource], amount(resource),
                                                   cluster_.resource_free(node, resource)) +
               empty;
    case Constraint::port:
    case Constraint::volume_in_use:
    case Constraint::anti_affinity:
    case Constraint::avoid:
    case Constraint::spread:
    case Constraint::near:
    case Constraint::affinity:
    case Constraint::network:
        break;
    }
    for (const auto& conflict : gpusched::detail::list_group_conflicts(cluster_, task_, node))
        if (detail::constraint_of(inv_, conflict) == constraint)
            return gpusched::detail::describe_conflict(cluster_, task_, node, conflict);
    return {};
}

}  // namespace gpusched::allocation

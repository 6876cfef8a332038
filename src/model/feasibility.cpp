// SPDX-License-Identifier: Apache-2.0
// Feasibility of one task on one node.
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpusched::detail {

/// One membership of a task that looks at a node. The task's own old copy does not count.
struct SelectionView {
    const Cluster& cluster;
    const Membership& m;
    NodeId node, own;  ///< own: the node of the old copy
    const GroupSet& set = cluster.inventory().group_sets[m.set];
    DomainId domain = cluster.inventory().domain_at(set.level, node);
    DomainId own_domain =
        own == none<NodeId> ? none<DomainId> : cluster.inventory().domain_at(set.level, own);

    [[nodiscard]] std::uint32_t own_here(bool counts) const noexcept {
        return counts && own_domain != none<DomainId> && own_domain == domain ? 1 : 0;
    }

    [[nodiscard]] GroupConflict avoid() const noexcept {
        if (domain == none<DomainId>) return {};
        if (m.is_bound())
            if (const auto others = cluster.group_count(m.set, domain) - own_here(m.is_member()); others > 0)
                return {Obstacle::avoid, m.set, others, 0};
        if (m.is_member())
            if (const auto others = cluster.avoiders(m.set, domain) - own_here(m.is_bound()); others > 0)
                return {Obstacle::avoid, m.set, others, 1};
        return {};
    }

    /// Does another task with the required groups run in the domain?
    [[nodiscard]] bool has_neighbour() const noexcept {
        return cluster.group_count(m.set, domain) > own_here(m.is_member());
    }
    /// Does one run anywhere?
    [[nodiscard]] bool has_any() const noexcept {
        const bool only_own =
            m.is_member() && own_domain != none<DomainId> && cluster.group_count(m.set, own_domain) == 1;
        return cluster.group_domains(m.set) > (only_own ? 1u : 0u);
    }

    [[nodiscard]] GroupConflict spread() const noexcept {
        if (!m.is_bound()) return {};
        const auto& rule = cluster.inventory().spread_rules[set.rule];
        if (domain == none<DomainId>) return {Obstacle::spread, m.set, 0, 0};
        const bool own_counts = m.is_member() && own != none<NodeId> && rule.eligible[index(own)];
        const auto members =
            cluster.group_count(m.set, domain) - own_here(own_counts) + (m.is_member() ? 1 : 0);
        auto fewest = cluster.fewest_members(m.set);
        if (own_counts) fewest = std::min(fewest, cluster.group_count(m.set, own_domain) - 1);
        if (rule.domains < static_cast<std::uint32_t>(rule.min_domains)) fewest = 0;
        const auto limit = fewest + static_cast<std::uint32_t>(rule.max_skew);
        return members > limit ? GroupConflict{Obstacle::spread, m.set, members, limit} : GroupConflict{};
    }
};

/// Visits the groups that the task avoids, wants near or spreads, or that avoid it, and that keep it off the
/// node, until `visit` returns true.
/// @param ignored avoid, near or spread: the constraint that is skipped
template <class Visit>
inline void visit_selection_conflicts(const Cluster& cluster, TaskId task, NodeId node, Obstacle ignored,
                                      Visit&& visit) {
    const auto own = cluster.node_of(task);
    GroupConflict lonely;       // the first near set without a neighbour
    bool may_be_lonely = true;  // no matching task runs anywhere, and the task itself matches
    for (const auto& m : cluster.inventory().selection_memberships(task)) {
        const SelectionView view{cluster, m, node, own};
        GroupConflict found;
        switch (view.set.kind) {
        case GroupKind::avoid:
            if (ignored != Obstacle::avoid) found = view.avoid();
            break;
        case GroupKind::near:
            if (ignored == Obstacle::near || !m.is_bound()) break;
            if (view.domain == none<DomainId>) {
                found = {Obstacle::near, m.set, 0, 0};
                break;
            }
            may_be_lonely = may_be_lonely && m.is_member() && !view.has_any();
            if (lonely.obstacle == Obstacle::none && !view.has_neighbour())
                lonely = {Obstacle::near, m.set, 0, 0};
            break;
        default:
            if (lonely.obstacle != Obstacle::none && !may_be_lonely) {
                if (visit(lonely)) return;
                lonely = {};
            }
            if (ignored != Obstacle::spread) found = view.spread();
            break;
        }
        if (found.obstacle != Obstacle::none && visit(found)) return;
    }
    if (lonely.obstacle != Obstacle::none && !may_be_lonely) visit(lonely);
}

/// The first such conflict. Not inlined, since few tasks have groups of this kind.
[[gnu::noinline]] inline GroupConflict find_selection_conflict(const Cluster& cluster, TaskId task,
                                                               NodeId node, Obstacle ignored) noexcept {
    GroupConflict first;
    visit_selection_conflicts(cluster, task, node, ignored, [&](const GroupConflict& conflict) {
        first = conflict;
        return true;
    });
    return first;
}

}  // namespace gpusched::detail

namespace gpusched {

GPUSCHED_EXPORT Obstacle find_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    const auto& inv = cluster.inventory();
    if (!inv.nodes.receives(node)) {
        const auto& taints = inv.node_classes[inv.nodes.node_class[index(node)]].taints;
        return detail::is_not_ready(taints) ? Obstacle::not_ready : Obstacle::cordoned;
    }
    if (!inv.eligible(task, node)) return Obstacle::not_eligible;
    if (const auto found = find_resource_obstacle(cluster, task, node); found != Obstacle::none) return found;
    return find_group_obstacle(cluster, task, node);
}

GPUSCHED_EXPORT Obstacle find_eligibility_obstacle(const Cluster& cluster, TaskId task, NodeId node) {
    const auto& inv = cluster.inventory();
    const auto& requirement = inv.requirements[inv.tasks.requirement[index(task)]];
    const auto& node_class = inv.node_classes[inv.nodes.node_class[index(node)]];
    if (!detail::accepts_model(requirement, node_class)) return Obstacle::gpu_model;
    const auto& labels = inv.node_attributes[inv.nodes.attributes[index(node)]].labels;
    if (!detail::holds(inv.node_selector(task), labels)) return Obstacle::node_selector;
    if (!detail::holds(inv.node_affinity(task), labels, cluster.name(node))) return Obstacle::node_affinity;
    auto found = Obstacle::none;
    for (const auto& taint : node_class.taints) {
        if (Inventory::tolerates(requirement.tolerations, taint)) continue;
        if (!detail::is_state(taint)) return Obstacle::taint;
        if (taint.key == detail::cordon_taint)
            found = Obstacle::cordoned;
        else if (found == Obstacle::none)
            found = Obstacle::not_ready;
    }
    return found;
}

GPUSCHED_EXPORT Obstacle detail::find_permanent_obstacle(const Cluster& cluster, TaskId task, NodeId node) {
    const auto& inv = cluster.inventory();
    const auto found = find_eligibility_obstacle(cluster, task, node);
    if (found != Obstacle::cordoned && found != Obstacle::not_ready && found != Obstacle::none) return found;
    const auto& resources = inv.extras[inv.tasks.extras[index(task)]].resources;
    const bool reaches = std::none_of(resources.begin(), resources.end(), [&](const auto& held) {
        return is_volume(inv.resource_names[held.resource]) &&
               held.amount > cluster.resource_free(node, held.resource);
    });
    return reaches ? Obstacle::none : Obstacle::resource;
}

GPUSCHED_EXPORT GpuMask candidate_gpus(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    if (t.gpu_count[i] == 0) return 0;
    const auto lent = cluster.lent_to(task);
    GpuMask mask = 0;
    if (!cluster.is_fraction(task)) {
        mask = cluster.idle_gpus(node, lent);
    } else {
        for (int g = 0; g < cluster.gpu_count(node); ++g)
            if (cluster.gpu_free_milli(node, g, lent) >= t.gpu_share_milli[i]) mask |= gpu_bit(g);
    }
    if (t.gpu_memory_mib[i] == 0 || cluster.inventory().nodes.gpu_memory_mib[index(node)] < 0) return mask;
    GpuMask roomy = 0;
    for_each_gpu(mask, [&](int g) {
        if (cluster.gpu_memory_free_mib(node, g) >= t.gpu_memory_mib[i]) roomy |= gpu_bit(g);
    });
    return roomy;
}

namespace detail {

Obstacle find_extras_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    const auto& inv = cluster.inventory();
    const auto& extras = inv.extras[inv.tasks.extras[index(task)]];
    for (const auto& [resource, amount] : extras.resources)
        if (amount > cluster.resource_free(node, resource)) return Obstacle::resource;
    return extras.device_count > 0 && free_devices_for(cluster, task, node) == 0 ? Obstacle::device
                                                                                 : Obstacle::none;
}

}  // namespace detail

GPUSCHED_EXPORT Localities guaranteed_localities(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    const auto& inv = cluster.inventory();
    if (inv.tasks.gpu_count[index(task)] < 2) return {};  // one GPU is always local to itself
    const auto level = inv.task_affinities[inv.tasks.affinities[index(task)]].guaranteed_level();
    if (!level) return {};
    const auto hardware = inv.nodes.hardware[index(node)];
    if (hardware == NodeTable::no_hardware) return {{}, true};
    const auto& masks =
        *level == HardwareLevel::numa ? inv.hardware[hardware].numa : inv.hardware[hardware].socket;
    return {{masks.data(), masks.data() + masks.size()}, false};
}

GPUSCHED_EXPORT Obstacle find_resource_obstacle(const Cluster& cluster, TaskId task, NodeId node) noexcept {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    if (t.cpu_milli[i] > cluster.cpu_free_milli(node, cluster.lent_to(task))) return Obstacle::cpu;
    if (t.memory_mib[i] > cluster.memory_free_mib(node)) return Obstacle::memory;
    if (t.is(TaskTrait::extras, task))
        if (const auto found = detail::find_extras_obstacle(cluster, task, node); found != Obstacle::none)
            return found;
    if (t.gpu_count[i] == 0) return Obstacle::none;
    const auto candidates = candidate_gpus(cluster, task, node);
    if (!holds_at_least(candidates, t.gpu_count[i])) {
        if (t.gpu_memory_mib[i] == 0 || cluster.is_fraction(task)) return Obstacle::gpu;
        return gpu_count(cluster.idle_gpus(node, cluster.lent_to(task))) < t.gpu_count[i]
                   ? Obstacle::gpu
                   : Obstacle::gpu_memory;
    }
    const auto local = guaranteed_localities(cluster, task, node);
    if (local.unknown) return Obstacle::hardware;
    if (local.masks.empty()) return Obstacle::none;
    return std::any_of(local.masks.begin(), local.masks.end(),
                       [&](GpuMask mask) { return holds_at_least(mask & candidates, t.gpu_count[i]); })
               ? Obstacle::none
               : Obstacle::hardware;
}

GPUSCHED_EXPORT Obstacle find_group_obstacle(const Cluster& cluster, TaskId task, NodeId node,
                                             Obstacle ignored) noexcept {
    return detail::find_group_conflict(cluster, task, node, ignored).obstacle;
}

namespace detail {

/// Visits the limits, common domains and network levels that keep the task off the node, until `visit` returns
/// true. Returns whether it did.
template <class Visit>
inline bool visit_limit_conflicts(const Cluster& cluster, TaskId task, NodeId node, Obstacle ignored,
                                  Visit&& visit) {
    const auto& inv = cluster.inventory();
    const auto own = cluster.node_of(task);
    for (const auto& m : inv.anti_affinity_memberships(task)) {
        if (ignored == Obstacle::anti_affinity) break;
        const auto& set = inv.group_sets[m.set];
        const auto domain = inv.domain_at(set.level, node);
        if (set.level >= first_label_level && domain == none<DomainId>) continue;  // no limit there
        const bool own_here = own != none<NodeId> && inv.domain_at(set.level, own) == domain;
        const auto others = cluster.group_count(m.set, domain) - (own_here ? 1u : 0u);
        if (others == 0) continue;
        auto limit = m.limit;
        if (!set.uniform) {
            // Its own old copy cannot bring a limit below its own.
            for (std::size_t l = 0; l < set.limits.size() && set.limits[l] < limit; ++l)
                if (cluster.group_count(m.set, l, domain) > 0) limit = set.limits[l];
        }
        if (others + 1 > limit && visit(GroupConflict{Obstacle::anti_affinity, m.set, others + 1, limit}))
            return true;
    }
    for (const auto& m : inv.affinity_memberships(task)) {
        const auto& set = inv.group_sets[m.set];
        const bool is_network = set.kind == GroupKind::network;
        const auto kind = is_network ? Obstacle::network : Obstacle::affinity;
        if (kind == ignored) continue;
        const auto domain = inv.domain_at(set.level, node);
        if (set.level >= first_label_level && domain == none<DomainId>) {
            if (visit(GroupConflict{kind, m.set, 0, 0})) return true;
            continue;
        }
        const auto own_domain = own != none<NodeId> ? inv.domain_at(set.level, own) : none<DomainId>;
        auto elsewhere = cluster.group_domains(m.set) - (cluster.group_count(m.set, domain) > 0 ? 1u : 0u);
        // Its own old copy does not count against a group, but does against a gang's network domain.
        if (!is_network && own_domain != none<DomainId> && own_domain != domain &&
            cluster.group_count(m.set, own_domain) == 1)
            --elsewhere;
        if (elsewhere > 0 && visit(GroupConflict{kind, m.set, 0, 0})) return true;
    }
    return false;
}

GroupConflict find_group_conflict(const Cluster& cluster, TaskId task, NodeId node,
                                  Obstacle ignored) noexcept {
    GroupConflict first;
    if (visit_limit_conflicts(cluster, task, node, ignored, [&](const GroupConflict& conflict) {
            first = conflict;
            return true;
        }))
        return first;
    return cluster.inventory().selection_memberships(task).empty()
               ? first
               : find_selection_conflict(cluster, task, node, ignored);
}

GPUSCHED_EXPORT std::vector<GroupConflict> list_group_conflicts(const Cluster& cluster, TaskId task,
                                                                NodeId node) {
    std::vector<GroupConflict> all;
    const auto add = [&](const GroupConflict& conflict) {
        all.push_back(conflict);
        return false;
    };
    visit_limit_conflicts(cluster, task, node, Obstacle::none, add);
    visit_selection_conflicts(cluster, task, node, Obstacle::none, add);
    return all;
}

}  // namespace detail

GPUSCHED_EXPORT bool gpus_fit(const Cluster& cluster, TaskId task, NodeId node, GpuMask gpus) noexcept {
    const auto& inv = cluster.inventory();
    if (inv.tasks.is(TaskTrait::extras, task)) {
        const auto devices = gpus & cluster.devices(node);
        if (!detail::are_of_one_class(inv, inv.extras[inv.tasks.extras[index(task)]], node, devices) ||
            (devices & ~cluster.free_devices(node)) != 0)
            return false;
        gpus &= ~devices;
    }
    if (gpu_count(gpus) != inv.tasks.gpu_count[index(task)]) return false;
    if ((gpus & ~candidate_gpus(cluster, task, node)) != 0) return false;
    const auto local = guaranteed_localities(cluster, task, node);
    if (local.unknown) return false;
    return local.masks.empty() || std::any_of(local.masks.begin(), local.masks.end(),
                                              [&](GpuMask mask) { return (gpus & ~mask) == 0; });
}

}  // namespace gpusched

// SPDX-License-Identifier: Apache-2.0
// Whether groups that a task avoids, wants near or spreads keep it off a node, as kube-scheduler decides it.
#pragma once

#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstdint>

namespace gpusched::detail {

/// One membership of a task that looks at a node. The task's own old copy does not count.
struct SelectionView {
    const Cluster& cluster;
    const Membership& m;
    NodeId node, own;  ///< own: where the old copy is
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

    /// Does a task of the kind that is wanted near run in the domain?
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

/// The first of the groups that the task avoids, wants near or spreads, or that avoid it, that keeps it off the node.
/// @param ignored avoid, near or spread: as if nobody had asked for it
[[gnu::noinline]] inline GroupConflict find_selection_conflict(const Cluster& cluster, TaskId task,
                                                               NodeId node, Obstacle ignored) noexcept {
    const auto own = cluster.node_of(task);
    GroupConflict lonely;       // the first near set without a neighbour
    bool may_be_lonely = true;  // nobody wanted runs anywhere, and the task is wanted itself
    for (const auto& m : cluster.inventory().selection_memberships(task)) {
        const SelectionView view{cluster, m, node, own};
        GroupConflict found;
        switch (view.set.kind) {
        case GroupKind::avoid:
            if (ignored != Obstacle::avoid) found = view.avoid();
            break;
        case GroupKind::near:
            if (ignored == Obstacle::near || !m.is_bound()) break;
            if (view.domain == none<DomainId>) return {Obstacle::near, m.set, 0, 0};
            may_be_lonely = may_be_lonely && m.is_member() && !view.has_any();
            if (lonely.obstacle == Obstacle::none && !view.has_neighbour())
                lonely = {Obstacle::near, m.set, 0, 0};
            break;
        default:
            if (lonely.obstacle != Obstacle::none && !may_be_lonely) return lonely;
            if (ignored != Obstacle::spread) found = view.spread();
            break;
        }
        if (found.obstacle != Obstacle::none) return found;
    }
    return may_be_lonely ? GroupConflict{} : lonely;
}

}  // namespace gpusched::detail

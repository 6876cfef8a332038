// SPDX-License-Identifier: Apache-2.0
// Finds the kind of group constraint that keeps a gang from being placed.
#include "allocation/exact_packing.hpp"
#include "allocation/gang.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace gpusched::allocation::detail {

/// Uses the exact search in the cluster without the gang's pods.
bool Gang::fits_without(Obstacle kind) const {
    bool limits = false, together = false, selection = false;  // ties between the pods
    std::vector<PodShape> shapes;
    for (const auto& c : classes) {
        auto& shape = shapes.emplace_back();
        for (const auto p : c.pods) shape.pods.push_back(pods[p]);
        shape.level = inv.task_affinities[inv.tasks.affinities[index(c.sample)]].guaranteed_level();
        limits = limits || !inv.anti_affinity_memberships(c.sample).empty();
        selection = selection || !inv.selection_memberships(c.sample).empty();
        for (const auto& m : inv.affinity_memberships(c.sample))
            together = together || inv.group_sets[m.set].kind != GroupKind::network;
    }
    if (kind == Obstacle::network    ? !network_region
        : kind == Obstacle::affinity ? !together
        : kind >= Obstacle::avoid    ? !selection
                                     : !limits)
        return false;  // no pod has such a constraint
    std::map<DomainId, std::vector<NodeId>> parts;
    for (const auto node : cluster.nodes())
        if (inv.nodes.receives(node) && (closed.empty() || !closed[domain(node)]))
            parts[kind == Obstacle::network || !network_region ? none<DomainId>
                                                               : inv.domain(*network_region, node)]
                .push_back(node);
    const bool tied =
        selection || (limits && kind != Obstacle::anti_affinity) || (together && kind != Obstacle::affinity);
    auto steps = packing_steps / 4;
    std::vector<Placement> packed;
    return std::any_of(parts.begin(), parts.end(), [&](const auto& part) {
        return pack(cluster, shapes, part.second, tied, steps, packed, budget, kind) == Packed::yes;
    });
}

Obstacle Gang::binding_groups() const {
    // If a shape alone does not fit, groups are not the cause.
    const std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
    for (const auto& c : classes)
        if (room_without_groups(c, nodes) < static_cast<std::int64_t>(c.pods.size())) return Obstacle::none;
    for (const auto kind : {Obstacle::network, Obstacle::anti_affinity, Obstacle::affinity, Obstacle::avoid,
                            Obstacle::near, Obstacle::spread})
        if (fits_without(kind)) return kind;
    return Obstacle::none;
}

bool Gang::explain_groups(Allocation& result) const {
    const auto kind = binding_groups();
    if (kind == Obstacle::none) return false;
    result.obstacle = kind;
    result.reason = std::string(enum_name(kind)) + ": ";
    if (kind == Obstacle::network)
        result.reason += "no domain of level " + std::to_string(network_region.value_or(level)) +
                         " holds all groups, which must share one; the whole cluster does";
    else if (kind == Obstacle::affinity)
        result.reason += "no domain holds the pods that must share one; without that constraint all fit";
    else if (kind == Obstacle::near)
        result.reason += "what the pods want near is too far away; without that constraint all fit";
    else
        result.reason += "the pods' groups keep them too far apart; without that constraint all fit";
    return true;
}

}  // namespace gpusched::allocation::detail

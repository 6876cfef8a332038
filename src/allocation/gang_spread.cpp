// SPDX-License-Identifier: Apache-2.0
// Spreads a gang of one shape over domains, and explains failures.
#include "allocation/gang.hpp"
#include "allocation/tally.hpp"
#include "model/node_match.hpp"
#include "model/placement_order.hpp"
#include "model/pod_room.hpp"

#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/fragmentation/entropy.hpp>
#include <gpusched/model/waiting.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace gpusched::allocation::detail {

/// Returns the kind of the first group constraint that selects other tasks and binds the task; `network` if
/// there is none.
static Obstacle selection_obstacle(const Inventory& inv, TaskId task) {
    const auto sets = inv.selection_memberships(task);
    if (sets.empty()) return Obstacle::network;
    const auto kind = inv.group_sets[sets.front().set].kind;
    return kind == GroupKind::avoid  ? Obstacle::avoid
           : kind == GroupKind::near ? Obstacle::near
                                     : Obstacle::spread;
}

/// True if the pods can be placed one after another, each on its node. The search may have moved some after
/// placing others.
static bool holds_in_some_order(const Cluster& cluster, std::span<const TaskId> pods,
                                std::span<const Placement> placements) {
    const auto& inv = cluster.inventory();
    if (std::all_of(pods.begin(), pods.end(),
                    [&](TaskId pod) { return inv.selection_memberships(pod).empty(); }))
        return true;
    Cluster bare(cluster);
    for (const auto pod : pods)
        if (bare.is_placed(pod)) bare.remove(pod);
    return gpusched::detail::can_be_placed(bare, placements);
}

Allocation Gang::place() const {
    Allocation result;
    result.level = level;
    if (const auto waiting = find_waiting(cluster, pods)) {
        result.obstacle = Obstacle::waiting;
        result.reason = "does not wait for room: " + describe_waiting(*waiting);
        result.proven = true;
        return result;
    }
    if (classes.size() == 1)
        place_uniform(result);
    else
        place_mixed(*this, result);
    if (result.placed && !holds_in_some_order(cluster, pods, result.pods)) {
        result = {};
        result.level = level;
        result.obstacle = Obstacle::spread;
        result.reason = "spread: places exist for all, but no order in which each fits when it is placed";
        result.proven = false;
    }
    if (budget != nullptr && !result.proven) result.stop_reason = budget->reason();
    return result;
}

std::vector<std::vector<std::uint32_t>> Gang::preferred_groups(AllocatePolicy policy) const {
    std::vector<std::vector<std::uint32_t>> groups;
    if (policy == AllocatePolicy::exact)
        for (const auto l : preferred)
            if (!required_level || depth_of(*required_level) < depth_of(l)) groups.push_back(groups_at(l));
    return groups;
}

/// Spreads the pods within the region (domains of the required level) of the best spread. Ties go to the
/// tightest region. Algorithm 2 takes the first region.
std::optional<std::vector<std::int64_t>> Gang::spread(std::span<const std::int64_t> room, std::int64_t count,
                                                      AllocatePolicy policy) const {
    const bool literal = policy == AllocatePolicy::entropy;
    const auto groups = preferred_groups(policy);
    if (!required_level) return literal ? entropy_greedy(room, count) : least_entropy(room, count, groups);
    if (*required_level == count_level) {  // one domain for all
        std::size_t best = room.size();
        for (std::size_t d = 0; d < room.size(); ++d)
            if (room[d] >= count && (best == room.size() || (!literal && room[d] < room[best]))) best = d;
        if (best == room.size()) return std::nullopt;
        std::vector<std::int64_t> counts(room.size(), 0);
        counts[best] = count;
        return counts;
    }
    const auto region_of = groups_at(*required_level);
    const auto regions = inv.domain_count(*required_level);
    std::vector<std::vector<std::uint32_t>> members(regions);
    for (std::size_t d = 0; d < room.size(); ++d)
        if (room[d] > 0) members[region_of[d]].push_back(static_cast<std::uint32_t>(d));
    std::optional<std::vector<std::int64_t>> best;
    std::pair<std::vector<double>, std::int64_t> least;
    for (const auto& domains : members) {
        std::vector<std::int64_t> here;
        for (const auto d : domains) here.push_back(room[d]);
        const auto total = std::accumulate(here.begin(), here.end(), std::int64_t{0});
        if (total < count) continue;
        std::vector<std::vector<std::uint32_t>> groups_here(groups.size());
        for (std::size_t l = 0; l < groups.size(); ++l)
            for (const auto d : domains) groups_here[l].push_back(groups[l][d]);
        const auto counts = literal ? entropy_greedy(here, count) : least_entropy(here, count, groups_here);
        // Compared in steps of 1e-9, so that equal spreads are equal.
        const auto rounded = [](std::vector<std::int64_t> parts) {
            std::sort(parts.begin(), parts.end());
            return std::round(fragmentation::entropy(parts) * 1e9);
        };
        std::pair<std::vector<double>, std::int64_t> key{{rounded(*counts)}, total};
        for (const auto& level_groups : groups_here) {
            std::vector<std::int64_t> parts(
                level_groups.empty()
                    ? 0
                    : *std::max_element(level_groups.begin(), level_groups.end()) + std::size_t{1});
            for (std::size_t i = 0; i < counts->size(); ++i) parts[level_groups[i]] += (*counts)[i];
            key.first.push_back(rounded(std::move(parts)));
        }
        if (literal) key.second = 0;
        if (best && !(key < least)) continue;
        least = std::move(key);
        best.emplace(room.size(), 0);
        for (std::size_t i = 0; i < domains.size(); ++i) (*best)[domains[i]] = (*counts)[i];
    }
    return best;
}

/// Places the pods by these counts. If a domain holds fewer, stores its number in `room` and places none.
bool Gang::put_counts(const std::vector<std::int64_t>& counts, std::span<const std::int32_t> node_room,
                      std::vector<std::int64_t>& room) const {
    const auto& c = classes.front();
    // The nodes of used domains, domain by domain.
    std::vector<std::pair<std::uint32_t, NodeId>> nodes;
    for (const auto node : cluster.nodes())
        if (node_room[index(node)] > 0)
            if (const auto d = domain(node); counts[d] > 0)
                nodes.emplace_back(static_cast<std::uint32_t>(d), node);
    std::sort(nodes.begin(), nodes.end());
    const auto start = cluster.checkpoint();
    std::size_t next = 0;
    std::vector<NodeId> here;
    for (std::size_t i = 0; i < nodes.size();) {
        const auto d = nodes[i].first;
        for (here.clear(); i < nodes.size() && nodes[i].first == d; ++i) here.push_back(nodes[i].second);
        const auto put = fill(c, next, counts[d], here, node_room);
        if (put < counts[d]) {
            cluster.rollback(start);
            room[d] = put;
            return false;
        }
        next += static_cast<std::size_t>(put);
    }
    return true;
}

void Gang::place_uniform(Allocation& result) const {
    const auto& c = classes.front();
    const auto count = static_cast<std::int64_t>(c.pods.size());
    auto room = rooms(c);
    // If pods avoid, want near or spread others, the number that a domain can hold depends on the pods in
    // other domains. Then `room` proves nothing, except for one pod: no other pods come, and each node was asked.
    const bool selected = count > 1 && !inv.selection_memberships(c.sample).empty();
    bool sure = !selected;  // false, too, once a domain held fewer pods than it could alone
    while (const auto counts = spread(room.domain, count, options.policy)) {
        if (!put_counts(*counts, room.node, room.domain)) {
            sure = false;  // a group constraint across domains: try again with the corrected count
            if (out_of_time()) break;
            continue;
        }
        describe(result);
        result.proven = sure;
        if (options.policy == AllocatePolicy::entropy && sure && result.entropy > 0) {
            // The entropy may be the least nevertheless.
            const auto least = spread(room.domain, count, AllocatePolicy::exact);
            result.proven = result.entropy <= fragmentation::entropy(*least) + 1e-9;
        }
        return;
    }
    if (c.by_trial && was_cut()) sure = false;  // nodes may not have been asked
    // Without groups, the nodes hold at least as many pods.
    const std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
    if (selected && room_without_groups(c, nodes) < count) sure = true;
    result.proven = sure;
    explain(c, 0, result);
    if (selected && !sure && explains)
        result.reason += "; they were tried in one order, so a placement may exist (not proven)";
    else if (!sure && budget != nullptr && budget->reason() != StopReason::completed)
        say_unproven(result);
}

void Gang::say_unproven(Allocation& result) const {
    if (!explains) return;
    const auto end = budget != nullptr ? budget->reason() : StopReason::completed;
    result.reason += "; the search ended ";
    result.reason += end == StopReason::completed    ? "at its limit of steps"
                     : end == StopReason::time_limit ? "at its time limit"
                                                     : "when it was cancelled";
    result.reason += ", so a placement may exist (not proven)";
}

/// Names the constraints that keep off the next pod once as many as possible are placed.
void Gang::explain_room(const PodClass& c, std::size_t next, Allocation& result) const {
    const std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
    std::vector<std::uint8_t> fitted(cluster.node_slots());
    for (const auto node : nodes)
        fitted[index(node)] = find_obstacle(cluster, pods[c.pods[next]], node) == Obstacle::none;
    const auto start = cluster.checkpoint();
    const auto first = next;
    for (const auto node : nodes)
        while (next + 1 < c.pods.size() && try_put(pods[c.pods[next]], node)) ++next;
    const auto pod = pods[c.pods[next]];
    const Tally tally(cluster, pod, without_own_obstacles(cluster, pod, nodes, [&](NodeId node) {
                          return fitted[index(node)] != 0;
                      }));
    const auto blame = tally.blame(static_cast<std::int64_t>(c.pods.size() - next));
    if (!blame.rows.empty()) {
        result.obstacle = obstacle_of(tally.constraint(blame.rows.front()));
        std::vector<std::string> kinds;
        for (const auto row : blame.rows) {
            const auto kind = tally.refusals.words(row);
            if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
        }
        std::string names;
        for (const auto& kind : kinds)
            names += (names.empty() ? "" : &kind == &kinds.back() ? " and " : ", ") + kind;
        result.reason = names + result.reason + (next > first ? "; then " : "; ");
        const auto [count, pass] =
            blame.rows.size() == 1
                ? tally.passing(blame.rows.front())
                : std::pair(blame.nodes, std::string(" would take one without these constraints"));
        const bool one = count == 1;
        if (blame.nodes > 0)
            result.reason += std::to_string(count) + (one ? " node" : " nodes") + pass +
                             (one ? ": " : ", such as ") + gpusched::quoted(cluster.name(blame.node)) + ": ";
        result.reason += tally.describe(blame.rows, blame.node);
        if (blame.rows.size() == 1 && blame.nodes > 0 && is_permanent(tally.constraint(blame.rows.front())))
            result.reason += tally.describe_pool();
        // `why` may blame one of the others, because it computes what each costs to remove.
        for (std::uint32_t row = 0; row < tally.rows.size(); ++row) {
            const auto alone = tally.rows[row].alone;
            if (alone == 0 || blame.nodes == 0 || row == blame.rows.front() ||
                is_permanent(tally.constraint(row)))
                continue;
            result.reason += "; " + std::to_string(alone) +
                             (alone == 1 ? " other node is" : " other nodes are") +
                             (tally.constraint(row) == Constraint::cordoned ||
                                      tally.constraint(row) == Constraint::not_ready
                                  ? " only "
                                  : " refused only by ") +
                             tally.refusals.words(row);
        }
    }
    cluster.rollback(start);
}

void Gang::explain(const PodClass& c, std::size_t next, Allocation& result) const {
    if (!explains) return;
    const auto task = pods[c.pods[next]];
    const auto count = static_cast<std::int64_t>(c.pods.size() - next);
    std::int64_t held = 0;
    for (const auto node : cluster.nodes()) held += gpusched::detail::pod_room(cluster, task, node, count);
    const auto sample = gpusched::quoted(cluster.name(c.sample));
    const auto like = concat(next > 0 ? " remaining " : " ", words_of(inv).task, count == 1 ? "" : "s") +
                      (count == 1 && next == 0 ? " " : " like ") + sample;
    const auto of_pods = (count == 1 ? " of 1" : " of the " + std::to_string(count)) + like;
    if (pods.size() == 1) held = 0;  // what groups refuse is refused by each node alone
    if (cluster.node_count() == 0) {
        result.obstacle = Obstacle::gpu;
        result.reason = "the cluster has no nodes";
        return;
    }
    if (held < count) {
        result.obstacle = Obstacle::gpu;
        result.reason = count == 1 ? ": no node takes" + std::string(next > 0 ? " the" : "") + like
                                   : ": the nodes hold " + std::to_string(held) + of_pods;
        explain_room(c, next, result);
        return;
    }
    const auto kind = classes.size() == 1 && c.by_trial ? binding_groups() : Obstacle::none;
    const auto room = rooms(c, next);
    const auto all = std::accumulate(room.domain.begin(), room.domain.end(), std::int64_t{0});
    const auto of_region = required_by_affinity ? Obstacle::affinity : Obstacle::network;
    if (required_level && all >= count && (kind == Obstacle::none || kind == of_region)) {
        std::vector<std::int64_t> holds(inv.domain_count(*required_level), 0);
        for (const auto node : cluster.nodes())
            holds[index(inv.domain(*required_level, node))] += room.node[index(node)];
        const auto best =
            static_cast<std::size_t>(std::max_element(holds.begin(), holds.end()) - holds.begin());
        result.obstacle = of_region;
        result.reason =
            concat(gpusched::detail::obstacle_text(inv, result.obstacle), ": all ", words_of(inv).task,
                   "s must be in one ", describe_level(inv, *required_level), "; ");
        if (holds[best] >= count)  // the domain holds all, but not together with the other pods
            result.reason += concat("the domain of the placed ", words_of(inv).task, "s does not hold ") +
                             (count == 1 ? "the" + like : "all" + of_pods);
        else
            result.reason += gpusched::quoted(inv.domain_name(*required_level, make_id<DomainId>(best))) +
                             " comes closest and holds " + std::to_string(holds[best]) + of_pods +
                             ", all domains " + std::to_string(all);
        return;
    }
    // Only groups are left: name the kind from a pod that still does not fit.
    const auto groups = inv.affinity_memberships(task);
    const bool only_network = std::all_of(groups.begin(), groups.end(), [&](const Membership& m) {
        return inv.group_sets[m.set].kind == GroupKind::network;
    });
    result.obstacle = kind != Obstacle::none                         ? kind
                      : !inv.anti_affinity_memberships(task).empty() ? Obstacle::anti_affinity
                      : !only_network                                ? Obstacle::affinity
                      : groups.empty()                               ? selection_obstacle(inv, task)
                                                                     : Obstacle::network;
    result.reason = std::string(gpusched::detail::obstacle_text(inv, result.obstacle)) +
                    ": with group constraints, the nodes hold " +
                    (all < count ? std::to_string(all) : "fewer than all") + of_pods;
}

}  // namespace gpusched::allocation::detail

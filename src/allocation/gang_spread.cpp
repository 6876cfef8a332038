// SPDX-License-Identifier: Apache-2.0
// Spreads a gang of one shape over domains, and explains failures.
#include "allocation/gang.hpp"
#include "model/placement_order.hpp"
#include "model/pod_room.hpp"

#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/fragmentation/entropy.hpp>
#include <gpusched/model/waiting.hpp>

#include <algorithm>
#include <array>
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
        result.reason =
            "spread: places exist for all pods, but no order in which each pod fits when it is placed";
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
    // other domains. Then `room` proves nothing.
    const bool selected = !inv.selection_memberships(c.sample).empty();
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
    result.proven = sure;
    explain(c, 0, result);
    if (selected && explains)
        result.reason += "; the pods were tried in one order, so a placement may exist (not proven)";
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

void Gang::explain(const PodClass& c, std::size_t next, Allocation& result) const {
    if (!explains) return;
    const auto task = c.sample;
    const auto& t = inv.tasks;
    const auto i = index(task);
    const auto count = static_cast<std::int64_t>(c.pods.size() - next);
    const auto lent = cluster.lent_to(task);
    static constexpr std::array order{Obstacle::gpu,           Obstacle::cordoned,      Obstacle::gpu_model,
                                      Obstacle::node_selector, Obstacle::node_affinity, Obstacle::taint,
                                      Obstacle::gpu_memory,    Obstacle::hardware,      Obstacle::cpu,
                                      Obstacle::memory,        Obstacle::resource,      Obstacle::device};
    // How many pods the nodes hold with all constraints, with all but one, and with one and all before it.
    std::int64_t held = 0;
    std::array<std::int64_t, order.size()> without{}, stages{};
    for (const auto node : cluster.nodes()) {
        auto here = count, next_least = count;  // the fewest that a constraint allows, and the fewest but one
        std::size_t least = order.size();
        const auto stage = [&](std::size_t s, std::int64_t holds) {
            holds = std::max<std::int64_t>(holds, 0);
            if (holds < here) {
                next_least = std::exchange(here, holds);
                least = s;
            } else {
                next_least = std::min(next_least, holds);
            }
            stages[s] += here;
        };
        const auto unless = [&](std::size_t s, bool refused) { stage(s, refused ? 0 : count); };
        const int each = t.gpu_count[i];
        std::int64_t gpus = count, memory = count, local = count;
        if (each > 0) local = gpusched::detail::gpu_room(cluster, task, node);
        if (each > 0 && cluster.is_fraction(task)) {
            memory = local;
            gpus = 0;
            for (int g = 0; g < cluster.gpu_count(node); ++g)
                gpus += cluster.gpu_free_milli(node, g, lent) / t.gpu_share_milli[i];
        } else if (each > 0) {
            gpus = gpusched::gpu_count(cluster.idle_gpus(node, lent)) / each;
            memory = gpusched::gpu_count(candidate_gpus(cluster, task, node)) / each;
        }
        stage(0, gpus);
        unless(1, !inv.nodes.receives(node));
        const auto refused = find_eligibility_obstacle(cluster, task, node);
        for (std::size_t s = 2; s < 6; ++s) unless(s, refused == order[s]);
        stage(6, memory < gpus ? memory : count);  // only what they forbid in addition
        stage(7, local < memory ? local : count);
        stage(8, t.cpu_milli[i] > 0 ? cluster.cpu_free_milli(node, lent) / t.cpu_milli[i] : count);
        stage(9, t.memory_mib[i] > 0 ? cluster.memory_free_mib(node) / t.memory_mib[i] : count);
        const auto& extras = inv.extras[t.extras[i]];
        stage(10, gpusched::detail::resource_room(cluster, extras, node, count));
        stage(11, gpusched::detail::device_room(cluster, extras, node, count));
        held += here;
        for (std::size_t s = 0; s < order.size(); ++s) without[s] += s == least ? next_least : here;
    }
    const auto of_pods = " of the " + std::to_string(count) + (next > 0 ? " remaining pods" : " pods") +
                         " like " + gpusched::quoted(cluster.name(task));
    if (held < count) {
        const auto first_of = [&](auto&& is) {
            std::size_t s = 0;
            while (s < order.size() && !is(s)) ++s;
            return s;
        };
        // The first that is too much with those before it, unless more pods fit only without another one.
        auto blamed = first_of([&](std::size_t s) { return stages[s] < count; });
        if (without[blamed] <= held)
            if (const auto other = first_of([&](std::size_t s) { return without[s] > held; });
                other < order.size())
                blamed = other;
        result.obstacle = order[blamed];
        result.reason = std::string(result.obstacle == Obstacle::cordoned ? closed_word(inv)
                                                                          : in_words(result.obstacle)) +
                        ": the nodes hold " + std::to_string(held) + of_pods;
        if (blamed > 0 && without[blamed] > held)
            result.reason += "; without this constraint " + std::to_string(without[blamed]);
        else if (blamed == 0 && stages[0] < count && stages[0] != held)
            result.reason += "; " + std::to_string(stages[0]) + " if only idle GPUs counted";
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
        result.reason = std::string(in_words(result.obstacle)) + ": all pods must be in one " +
                        describe_level(inv, *required_level) + "; ";
        if (holds[best] >= count)  // the domain holds all, but not together with the other pods
            result.reason += "the domain of the placed pods does not hold all" + of_pods;
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
    result.reason = std::string(in_words(result.obstacle)) + ": with group constraints, the nodes hold " +
                    (all < count ? std::to_string(all) : "fewer than all") + of_pods;
}

}  // namespace gpusched::allocation::detail

// SPDX-License-Identifier: Apache-2.0
// Tally: counts refusals, and chooses the constraints to blame.
#include "allocation/tally.hpp"

#include "model/node_match.hpp"

#include <gpusched/core/text.hpp>

#include <algorithm>
#include <string_view>
#include <tuple>

namespace gpusched::allocation::detail {

Tally::Tally(const Cluster& snapshot, TaskId pod, std::span<const NodeId> nodes, ConstraintOrder order)
    : cluster(snapshot), refusals(snapshot, pod, order), rows(refusals.rows().size()) {
    for (const auto node : nodes) {
        const auto refusing = refusals.of(node);
        if (refusing.empty()) {
            ++fit;
            continue;
        }
        ++rows[refusing.front()].first;
        for (const auto row : refusing) ++rows[row].any;
        auto& group = sets[refusing];
        if (group.nodes++ == 0) group.first = node;
        if (refusing.size() > 1) continue;
        auto& row = rows[refusing.front()];
        ++row.alone;
        const bool has_any = refusals.has_any(refusing.front(), node);
        if (has_any) ++row.some;
        const auto missing = refusals.missing(refusing.front(), node);
        // Nodes come by name.
        if (row.best == none<NodeId> || missing < row.least ||
            (missing == row.least && has_any && !row.closest_has_any)) {
            row.closest = node;
            row.closest_has_any = has_any;
        }
        if (row.best != none<NodeId> && missing >= row.least) continue;
        row.best = node;
        row.least = missing;
    }
}

const Tally::Set* Tally::smallest() const {
    const Set* best = nullptr;
    const auto key = [&](const auto& set) {
        const auto count = [&](auto&& is) { return std::count_if(set.first.begin(), set.first.end(), is); };
        return std::tuple(set.first.size(), count([&](auto row) { return is_permanent(constraint(row)); }),
                          count([&](auto row) { return constraint(row) == Constraint::gpu_model; }),
                          -set.second.nodes);
    };
    for (const auto& set : sets)
        if (best == nullptr || key(set) < key(*best)) best = &set;
    return best;
}

std::optional<std::size_t> Tally::row_to_blame(const std::function<std::int64_t(std::size_t)>& cost) const {
    std::vector<std::size_t> found;
    for (std::size_t row = 0; row < rows.size(); ++row)
        if (rows[row].alone > 0) found.push_back(row);
    if (found.empty()) return std::nullopt;
    if (found.size() == 1) return found.front();
    std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t>> keys;
    for (const auto row : found) keys.emplace_back(cost(row), -rows[row].alone, row);
    return std::get<2>(*std::min_element(keys.begin(), keys.end()));
}

Tally::Blame Tally::blame(std::int64_t pods) const {
    const auto cost = [&](std::size_t row) -> std::int64_t {
        const auto of = constraint(row);
        return of == Constraint::cordoned && rows[row].alone >= pods ? 0 : effort_to_remove(of);
    };
    std::int64_t all = fit;
    for (const auto& [set, group] : sets) all += group.nodes;
    for (std::uint32_t row = 0; row < rows.size(); ++row)
        if (constraint(row) == Constraint::gpu_model && all > 0 && rows[row].any == all)
            return {{row}, smallest()->second.first, 0};
    if (const auto row = row_to_blame(cost))
        return {{static_cast<std::uint32_t>(*row)}, rows[*row].closest, rows[*row].alone};
    if (const auto* const set = smallest()) return {set->first, set->second.first, set->second.nodes};
    return {};
}

std::pair<std::int64_t, std::string> Tally::passing(std::size_t row) const {
    const auto [alone, some] = std::pair(rows[row].alone, rows[row].some);
    const auto nodes = some > 0 ? some : alone;
    const char* const of = constraint(row) == Constraint::gpu      ? " GPUs"
                           : constraint(row) == Constraint::device ? " such devices"
                                                                   : " any of it";
    return {nodes, concat(nodes == 1 ? " passes" : " pass", " every other constraint",
                          some == alone ? ""
                          : some == 0   ? ", but without"
                          : some == 1   ? " and has"
                                        : " and have",
                          some == alone ? "" : of)};
}

std::string Tally::describe_pool() const {
    const Set* like = nullptr;
    std::int64_t nodes = 0;
    for (const auto& set : sets) {
        const auto& [of, group] = set;
        if (std::any_of(of.begin(), of.end(), [&](auto row) { return is_permanent(constraint(row)); }))
            continue;
        nodes += group.nodes;
        if (like == nullptr || of.size() < like->first.size()) like = &set;
    }
    if (like == nullptr) return {};
    const auto of_nodes = nodes == 1 ? std::string("the only node that it may use is ")
                                     : concat("of the ", nodes, " nodes that it may use, the closest is ");
    return concat("; ", of_nodes, gpusched::quoted(cluster.name(like->second.first)), ": ",
                  describe(like->first, like->second.first));
}

Tally::Unusable Tally::describe_unusable(std::span<const NodeId> nodes) const {
    if (nodes.empty()) return {{}, "the cluster has no nodes"};
    std::map<std::vector<std::uint32_t>, std::vector<NodeId>> permanent;  // sets of constraints
    for (const auto node : nodes) {
        auto set = refusals.of(node);
        std::erase_if(set, [&](auto row) { return !is_permanent(constraint(row)); });
        permanent[set].push_back(node);
    }
    // The smallest set. Of equally small ones, a taint is easiest to remove, and the GPU model hardest.
    const auto& [of, with] =
        *std::min_element(permanent.begin(), permanent.end(), [&](const auto& a, const auto& b) {
            const auto key = [&](const auto& set) {
                const auto first = constraint(set.first.front());
                return std::tuple(set.first.size(), first == Constraint::gpu_model,
                                  first != Constraint::taint, -std::ssize(set.second));
            };
            return key(a) < key(b);
        });
    const auto first = of.front();
    const auto room = of.size() == 1 ? rows[first].alone : 0;
    const auto closest =
        room > 0 ? rows[first].best : *std::min_element(with.begin(), with.end(), [&](NodeId a, NodeId b) {
            const auto key = [&](NodeId node) {
                return std::pair(refusals.missing(first, node), refusals.of(node).size());
            };
            return key(a) < key(b);
        });
    if (nodes.size() == 1) return {of, "it may not use the node: " + describe(of, closest)};
    std::string names;
    for (const auto row : of) names += (names.empty() ? "" : " and ") + refusals.words(row);
    const bool taint =
        constraint(first) == Constraint::taint && !gpusched::detail::is_slurm(cluster.inventory());
    const auto taints = taint && of.size() == 1 ? refusals.taints(Constraint::taint, closest) : std::string();
    const bool same = !taints.empty() && std::all_of(with.begin(), with.end(), [&](NodeId node) {
        return refusals.taints(Constraint::taint, node) == taints;
    });
    const auto example = gpusched::quoted(cluster.name(closest));
    auto text = concat("it may use none of the ", nodes.size(), " nodes; for ", with.size(),
                       with.size() == 1 ? " node" : " nodes", " only the ", names, same ? " " + taints : "",
                       of.size() > 1 || names.ends_with('s') ? " forbid it" : " forbids it",
                       same ? std::string() : ", like " + example + ": " + describe(of, closest));
    if (room > 0)
        text += concat(taint ? "; if it tolerated every taint, " : "; otherwise, ", room,
                       room == 1 ? " has room now: " : " have room now, such as ", example);
    return {of, std::move(text)};
}

std::string Tally::describe(std::span<const std::uint32_t> of, NodeId node) const {
    std::string text;
    for (const auto row : of) text += (text.empty() ? "" : "; ") + refusals.describe(row, node);
    return text;
}

std::vector<NodeId> without_own_obstacles(const Cluster& cluster, TaskId pod, std::span<const NodeId> nodes,
                                          const std::function<bool(NodeId)>& fitted) {
    const Refusals refusals(cluster, pod);
    std::vector<NodeId> others;
    bool usable = false;
    for (const auto node : nodes) {
        if (fitted(node) && find_group_obstacle(cluster, pod, node) != Obstacle::none) continue;
        others.push_back(node);
        usable = usable || refusals.in_pool(node);
    }
    return usable ? others : std::vector<NodeId>(nodes.begin(), nodes.end());
}

std::int64_t effort_to_remove(Constraint constraint) noexcept {
    return constraint == Constraint::gpu_model                                            ? 4
           : is_permanent(constraint)                                                     ? 3
           : constraint == Constraint::not_ready || constraint == Constraint::failed_gpus ? 2
                                                                                          : 1;
}

Obstacle obstacle_of(Constraint constraint) noexcept {
    switch (constraint) {
    case Constraint::gpu_model:
        return Obstacle::gpu_model;
    case Constraint::node_selector:
        return Obstacle::node_selector;
    case Constraint::node_affinity:
        return Obstacle::node_affinity;
    case Constraint::taint:
        return Obstacle::taint;
    case Constraint::cordoned:
        return Obstacle::cordoned;
    case Constraint::not_ready:
        return Obstacle::not_ready;
    case Constraint::failed_gpus:
    case Constraint::gpu:
        return Obstacle::gpu;
    case Constraint::gpu_memory:
        return Obstacle::gpu_memory;
    case Constraint::hardware:
        return Obstacle::hardware;
    case Constraint::device:
        return Obstacle::device;
    case Constraint::cpu:
        return Obstacle::cpu;
    case Constraint::memory:
        return Obstacle::memory;
    case Constraint::volume:
    case Constraint::resource:
    case Constraint::pods:
        return Obstacle::resource;
    case Constraint::port:
    case Constraint::volume_in_use:
    case Constraint::avoid:
        return Obstacle::avoid;
    case Constraint::anti_affinity:
        return Obstacle::anti_affinity;
    case Constraint::spread:
        return Obstacle::spread;
    case Constraint::near:
        return Obstacle::near;
    case Constraint::affinity:
        return Obstacle::affinity;
    case Constraint::network:
        break;
    }
    return Obstacle::network;
}

}  // namespace gpusched::allocation::detail

// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/consolidation/partitioners.hpp>
#include <gpusched/consolidation/scope.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace gpusched::consolidation {

namespace detail {

// Consecutive groups of `size`; a short rest is shared out evenly rather than left alone.
static void cut(std::span<const NodeId> nodes, std::size_t size, Partition& out) {
    const auto parts = (nodes.size() + size - 1) / size;
    for (std::size_t i = 0; i < parts; ++i)
        out.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() * i / parts),
                         nodes.begin() + static_cast<std::ptrdiff_t>(nodes.size() * (i + 1) / parts));
}

// Sorts by position in the tree, root first; nodes of one domain keep their order.
static void sort_by_position(const Cluster& cluster, std::vector<NodeId>& nodes,
                             const std::vector<std::vector<std::uint64_t>>& rank) {
    const auto& inv = cluster.inventory();
    std::vector<std::size_t> order(nodes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        for (Level level = 0; level < inv.network_levels(); ++level) {
            const auto& r = rank[static_cast<std::size_t>(level)];
            const auto x = r[index(inv.domain(level, nodes[a]))], y = r[index(inv.domain(level, nodes[b]))];
            if (x != y) return x < y;
        }
        return a < b;
    });
    std::vector<NodeId> sorted;
    for (const auto i : order) sorted.push_back(nodes[i]);
    nodes = std::move(sorted);
}

}  // namespace detail

GPUSCHED_EXPORT Partition RandomGroups::operator()(const Cluster& cluster, std::size_t partition_size,
                                                   Rng& rng) const {
    std::vector<NodeId> nodes(cluster.nodes().begin(), cluster.nodes().end());
    rng.shuffle(std::span(nodes));
    Partition groups;
    for (std::size_t i = 0; i < nodes.size(); i += partition_size)
        groups.emplace_back(nodes.begin() + static_cast<std::ptrdiff_t>(i),
                            nodes.begin() +
                                static_cast<std::ptrdiff_t>(std::min(nodes.size(), i + partition_size)));
    return groups;
}

GPUSCHED_EXPORT Partition ByGpuModel::operator()(const Cluster& cluster, std::size_t, Rng&) const {
    Partition groups;
    for (const auto& pool : components(cluster)) {
        const auto parts = (pool.size() + largest_group - 1) / largest_group;
        const auto first = groups.size();
        groups.resize(first + parts);
        for (std::size_t i = 0; i < pool.size(); ++i)
            groups[first + i / dealt_together % parts].push_back(pool[i]);
    }
    return groups;
}

GPUSCHED_EXPORT Partition BySwitch::operator()(const Cluster& cluster, std::size_t partition_size,
                                               Rng&) const {
    const auto& inv = cluster.inventory();
    Partition groups;
    for (auto& pool : components(cluster)) {
        std::vector<std::vector<std::uint64_t>> rank(static_cast<std::size_t>(inv.network_levels()));
        for (std::size_t l = 0; l < rank.size(); ++l) {
            rank[l].resize(inv.domain_count(static_cast<Level>(l)));
            std::iota(rank[l].begin(), rank[l].end(), std::uint64_t{0});
        }
        detail::sort_by_position(cluster, pool, rank);
        const Level deepest = inv.network_levels() - 1;
        for (std::size_t i = 0; i < pool.size();) {
            auto end = i;
            while (end < pool.size()) {  // one whole domain more, unless the group would grow too large
                auto next = end + 1;
                while (deepest >= 0 && next < pool.size() &&
                       inv.domain(deepest, pool[next]) == inv.domain(deepest, pool[end]))
                    ++next;
                if (end > i && next - i > partition_size) break;
                end = next;
            }
            groups.emplace_back(pool.begin() + static_cast<std::ptrdiff_t>(i),
                                pool.begin() + static_cast<std::ptrdiff_t>(end));
            i = end;
        }
    }
    return groups;
}

GPUSCHED_EXPORT Partition ByLocality::operator()(const Cluster& cluster, std::size_t partition_size,
                                                 Rng& rng) const {
    const auto& inv = cluster.inventory();
    // A random walk over the tree's leaves: every level's domains in random order.
    std::vector<std::vector<std::uint64_t>> rank(static_cast<std::size_t>(inv.network_levels()));
    for (std::size_t l = 0; l < rank.size(); ++l) {
        rank[l].resize(inv.domain_count(static_cast<Level>(l)));
        for (auto& r : rank[l]) r = rng();
    }
    Partition groups;
    for (auto& pool : components(cluster)) {
        rng.shuffle(std::span(pool));
        detail::sort_by_position(cluster, pool, rank);
        detail::cut(pool, partition_size, groups);
    }
    return groups;
}

}  // namespace gpusched::consolidation

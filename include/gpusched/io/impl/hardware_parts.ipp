#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/io/detail/hardware_parts.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace gpusched::io::detail {

GPUSCHED_INLINE int CpuSet::count() const noexcept {
    int total = 0;
    for (const auto& [first, last] : ranges) total += last - first + 1;
    return total;
}

GPUSCHED_INLINE bool CpuSet::meets(const CpuSet& other) const noexcept {
    for (auto a = ranges.begin(), b = other.ranges.begin(); a != ranges.end() && b != other.ranges.end();) {
        if (a->second < b->first)
            ++a;
        else if (b->second < a->first)
            ++b;
        else
            return true;
    }
    return false;
}

GPUSCHED_INLINE void CpuSet::add(const std::vector<std::pair<int, int>>& more) {
    ranges.insert(ranges.end(), more.begin(), more.end());
    std::sort(ranges.begin(), ranges.end());
    std::vector<std::pair<int, int>> merged;
    for (const auto& range : ranges) {
        if (!merged.empty() && range.first <= merged.back().second + 1)
            merged.back().second = std::max(merged.back().second, range.second);
        else
            merged.push_back(range);
    }
    ranges = std::move(merged);
}

GPUSCHED_INLINE std::optional<CpuSet> cpu_list(std::string_view text) {
    std::vector<std::pair<int, int>> ranges;
    const auto number = [](std::string_view digits) -> std::optional<int> {
        int value = -1;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (error != std::errc() || end != digits.data() + digits.size() || value < 0 || value > largest_cpu)
            return std::nullopt;
        return value;
    };
    while (true) {
        const auto comma = std::min(text.find(','), text.size());
        const auto part = text.substr(0, comma);
        const auto dash = std::min(part.find('-'), part.size());
        const auto first = number(part.substr(0, dash));
        const auto last = dash == part.size() ? first : number(part.substr(dash + 1));
        if (!first || !last || *last < *first || ranges.size() == 4096) return std::nullopt;
        ranges.emplace_back(*first, *last);
        if (comma == text.size()) break;
        text.remove_prefix(comma + 1);
    }
    CpuSet set;
    set.add(ranges);
    return set;
}

GPUSCHED_INLINE std::optional<CpuSet> cpu_mask(std::string_view text) {
    std::vector<std::uint32_t> words;
    while (true) {
        const auto comma = std::min(text.find(','), text.size());
        auto word = text.substr(0, comma);
        if (word.starts_with("0x")) word.remove_prefix(2);
        std::uint32_t bits = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), bits, 16);
        if (!word.empty() && (error != std::errc() || end != word.data() + word.size())) return std::nullopt;
        words.push_back(bits);
        if (words.size() > (largest_cpu + 1) / 32) return std::nullopt;
        if (comma == text.size()) break;
        text.remove_prefix(comma + 1);
    }
    CpuSet set;
    for (std::size_t w = 0; w < words.size(); ++w) {
        const auto bits = words[words.size() - 1 - w];
        for (int b = 0; b < 32; ++b) {
            if ((bits >> b & 1u) == 0) continue;
            const int cpu = static_cast<int>(w) * 32 + b;
            if (!set.ranges.empty() && set.ranges.back().second == cpu - 1)
                set.ranges.back().second = cpu;
            else
                set.ranges.emplace_back(cpu, cpu);
        }
    }
    return set;
}

GPUSCHED_INLINE HardwareParts::Vertex HardwareParts::add(Kind kind, int id) {
    vertices_.push_back({.kind = kind, .id = id});
    return vertices_.size() - 1;
}

GPUSCHED_INLINE void HardwareParts::join(Vertex a, Vertex b, Relation relation, double gb_s) {
    links_.push_back({a, b, {relation, gb_s}});
}

GPUSCHED_INLINE bool HardwareParts::has_edge(Vertex a, Vertex b, Relation relation) const {
    return std::any_of(links_.begin(), links_.end(), [&](const Link& link) {
        return link.edge.relation == relation &&
               ((link.a == a && link.b == b) || (link.a == b && link.b == a));
    });
}

GPUSCHED_INLINE void HardwareParts::add_cores(Vertex socket, Vertex numa, const std::vector<int>& core_ids,
                                              int group_size) {
    if (core_ids.empty()) join(socket, numa, Relation::hosts);
    Vertex group = 0;
    for (std::size_t i = 0; i < core_ids.size(); ++i) {
        if (i % static_cast<std::size_t>(group_size) == 0) {
            group = add(Kind::core_group, next_group_++);
            join(socket, group, Relation::hosts);
            join(group, numa, Relation::localized);
        }
        join(group, add(Kind::core, core_ids[i]), Relation::contains);
    }
}

/// How many ranges of CPUs are threads of the same cores: Linux numbers first threads first, so that every NUMA node
/// has equally long ranges, the second ones all above the first ones.
inline int inferred_threads(const std::map<int, NumaReading>& numa_nodes) {
    std::size_t ranges = 0;
    for (const auto& [id, numa] : numa_nodes) {
        if (numa.cpus.empty() || numa.cores) continue;
        const auto& all = numa.cpus.ranges;
        const auto length = [](const std::pair<int, int>& r) { return r.second - r.first; };
        if (all.size() < 2 || (ranges != 0 && all.size() != ranges)) return 1;
        ranges = all.size();
        for (const auto& range : all)
            if (length(range) != length(all.front())) return 1;
    }
    for (std::size_t r = 1; r < ranges; ++r) {
        int below = -1, above = largest_cpu + 1;
        for (const auto& [id, numa] : numa_nodes) {
            if (numa.cpus.empty() || numa.cores) continue;
            below = std::max(below, numa.cpus.ranges[r - 1].second);
            above = std::min(above, numa.cpus.ranges[r].first);
        }
        if (below >= above) return 1;
    }
    return ranges == 0 ? 1 : static_cast<int>(ranges);
}

GPUSCHED_INLINE std::map<int, HardwareParts::Vertex>
HardwareParts::add_processors(const std::map<int, NumaReading>& numa_nodes,
                              const HardwareReadOptions& options, const std::string& source,
                              Problems& problems, std::vector<std::string>& notes) {
    std::map<int, Vertex> out;
    if (numa_nodes.empty()) return out;
    std::map<int, int> numa_of_cpu;
    for (const auto& [id, numa] : numa_nodes)
        for (const auto& [first, last] : numa.cpus.ranges)
            for (int cpu = first; cpu <= last; ++cpu)
                if (const auto [other, added] = numa_of_cpu.emplace(cpu, id); !added)
                    problems.add(problems.full()
                                     ? std::string()
                                     : source + ": CPU " + std::to_string(cpu) + " is near NUMA nodes " +
                                           std::to_string(other->second) + " and " + std::to_string(id) +
                                           "; expected one");
    const int inferred = inferred_threads(numa_nodes);
    const int threads = options.threads_per_core == 0 ? inferred : options.threads_per_core;
    if (options.threads_per_core == 0 && inferred > 1)
        notes.push_back("cores: " + std::to_string(inferred) +
                        " threads per core, told from how the CPUs are numbered");

    std::map<int, Vertex> sockets;
    bool guessed = false;
    int position = 0;
    std::map<int, int> socket_of;
    for (const auto& [id, numa] : numa_nodes) {
        guessed = guessed || !numa.socket;
        socket_of[id] = numa.socket ? *numa.socket : position / options.numa_nodes_per_socket;
        ++position;
    }
    for (const auto& [id, socket] : socket_of)
        if (!sockets.contains(socket)) sockets[socket] = add(Kind::socket, socket);
    for (auto i = sockets.begin(); i != sockets.end(); ++i)
        for (auto j = std::next(i); j != sockets.end(); ++j)
            join(i->second, j->second, Relation::interconnect, options.interconnect_gb_s);
    if (guessed)
        notes.push_back("sockets: not in the text; " +
                        (options.numa_nodes_per_socket == 1
                             ? std::string("every NUMA node counts as one")
                             : "each " + std::to_string(options.numa_nodes_per_socket) +
                                   " NUMA nodes, by ascending id, count as one"));
    for (const auto& [id, numa] : numa_nodes) {
        const auto vertex = out[id] = add(Kind::numa_node, id);
        // The first threads of the cores: what remains when the later ranges are taken as their siblings.
        std::vector<int> cores;
        const int wanted = numa.cores ? 0 : numa.cpus.count() / threads;
        for (const auto& [first, last] : numa.cpus.ranges)
            for (int cpu = first; cpu <= last && static_cast<int>(cores.size()) < wanted; ++cpu)
                cores.push_back(cpu);
        add_cores(sockets.at(socket_of.at(id)), vertex, numa.cores.value_or(cores), options.core_group_size);
    }
    return out;
}

GPUSCHED_INLINE void check_options(const HardwareReadOptions& options, Problems& problems) {
    check_fields(problems, options);
}

GPUSCHED_INLINE topology::HardwareGraph finish(const HardwareParts& parts, const std::string& source) {
    try {
        return topology::HardwareGraph::from_graph(parts);
    } catch (const InvalidInput& error) {
        Problems problems;
        for (const auto& problem : error.problems()) problems.add(source + ": " + problem);
        problems.throw_if_any();
        throw;
    }
}

}  // namespace gpusched::io::detail

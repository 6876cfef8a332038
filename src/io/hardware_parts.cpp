// SPDX-License-Identifier: Apache-2.0
// Bodies of hardware_parts.hpp.
#include "io/hardware_parts.hpp"

#include <gpusched/core/text.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace gpusched::io::detail {

HardwareParts::Vertex HardwareParts::add(Kind kind, int id) {
    vertices_.push_back({.kind = kind, .id = id});
    return vertices_.size() - 1;
}

void HardwareParts::join(Vertex a, Vertex b, Relation relation, double gb_s) {
    links_.push_back({a, b, {relation, gb_s}});
}

void HardwareParts::add_cores(Vertex socket, Vertex numa, const std::vector<int>& core_ids, int group_size) {
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

/// The number of threads per core. Linux numbers first threads first, so that every NUMA node has equally
/// long ranges of CPUs, the second ones all above the first ones.
static int inferred_threads(const std::map<int, NumaReading>& numa_nodes) {
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

std::map<int, HardwareParts::Vertex>
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
                    problems.add(problems.full() ? std::string()
                                                 : concat(source, ": CPU ", cpu, " is near NUMA nodes ",
                                                          other->second, " and ", id, "; expected one"));
    const int inferred = inferred_threads(numa_nodes);
    const int threads = options.threads_per_core == 0 ? inferred : options.threads_per_core;
    if (options.threads_per_core == 0 && inferred > 1)
        notes.push_back(concat("cores: ", inferred, " threads per core, inferred from the CPU numbers"));

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
    if (sockets.size() > most_sockets)
        throw InvalidInput(concat(source, ": ", sockets.size(), " sockets; expected at most ", most_sockets));
    for (auto i = sockets.begin(); i != sockets.end(); ++i)
        for (auto j = std::next(i); j != sockets.end(); ++j)
            join(i->second, j->second, Relation::interconnect, options.interconnect_gb_s);
    if (guessed)
        notes.push_back("sockets: not in the text; " +
                        (options.numa_nodes_per_socket == 1
                             ? std::string("every NUMA node counts as one")
                             : concat("each ", options.numa_nodes_per_socket,
                                      " NUMA nodes, by ascending id, count as one")));
    for (const auto& [id, numa] : numa_nodes) {
        const auto vertex = out[id] = add(Kind::numa_node, id);
        // The first threads of the cores; later ranges are their siblings.
        std::vector<int> cores;
        const int count = numa.cores ? 0 : numa.cpus.count() / threads;
        for (const auto& [first, last] : numa.cpus.ranges)
            for (int cpu = first; cpu <= last && static_cast<int>(cores.size()) < count; ++cpu)
                cores.push_back(cpu);
        add_cores(sockets.at(socket_of.at(id)), vertex, numa.cores.value_or(cores), options.core_group_size);
    }
    return out;
}

topology::HardwareGraph finish(const HardwareParts& parts, const std::string& source) {
    try {
        return topology::HardwareGraph::from_graph(parts);
    } catch (const InvalidInput& error) {
        Problems problems;
        for (const auto& problem : error.problems()) problems.add(source + ": " + problem);
        problems.throw_if_any();
        throw;
    }
}

void GpuLinks::between(int gpu, int other, double gb_s) {
    if (gpu < other)
        direct_[{gpu, other}].first += gb_s;
    else
        direct_[{other, gpu}].second += gb_s;
}

void GpuLinks::to_switch(int gpu, const std::string& name, double gb_s) { through_[name][gpu] += gb_s; }

std::string GpuLinks::fabric(std::string name) const {
    for (auto found = above_.find(name); found != above_.end(); found = above_.find(name))
        name = found->second;
    return name;
}

void GpuLinks::switches(const std::string& a, const std::string& b) {
    const auto one = fabric(a), other = fabric(b);
    if (one != other) above_[std::max(one, other)] = std::min(one, other);
}

void GpuLinks::join(HardwareParts& parts, const std::map<int, HardwareParts::Vertex>& gpus) const {
    std::map<std::pair<int, int>, double> total;
    for (const auto& [pair, ends] : direct_) {
        // If both ends report links, the smaller number counts; one end may report none.
        const auto& [low, high] = ends;
        total[pair] += low > 0 && high > 0 ? std::min(low, high) : std::max(low, high);
    }
    // Switches that share a GPU are one fabric, too.
    GpuLinks joined(*this);
    std::map<int, std::string> first;
    for (const auto& [name, ends] : through_)
        for (const auto& [gpu, gb_s] : ends)
            if (const auto [other, added] = first.emplace(gpu, name); !added)
                joined.switches(other->second, name);
    std::map<std::string, std::map<int, double>> fabrics;
    for (const auto& [name, ends] : through_)
        for (const auto& [gpu, gb_s] : ends) fabrics[joined.fabric(name)][gpu] += gb_s;
    for (const auto& [name, ends] : fabrics)
        for (auto a = ends.begin(); a != ends.end(); ++a)
            for (auto b = std::next(a); b != ends.end(); ++b)
                total[{a->first, b->first}] += std::min(a->second, b->second);
    for (const auto& [pair, gb_s] : total)
        if (gb_s > 0)
            parts.join(gpus.at(pair.first), gpus.at(pair.second), topology::HardwareRelation::nvlink, gb_s);
}

}  // namespace gpusched::io::detail

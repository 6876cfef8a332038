// SPDX-License-Identifier: Apache-2.0
// Random full nodes, and the fit of a preemptor by trying all sets of GPUs.
#pragma once

#include "support/catch.hpp"
#include "support/free_cores.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/model/feasibility.hpp>

namespace testing_support {

using namespace gpusched;

inline gpusched::Hardware random_hardware(Rng& rng, int gpus) {
    Hardware hardware;
    const int numa = static_cast<int>(rng.between(1, 4));
    for (int n = 0; n < numa; ++n)
        hardware.numa_nodes.push_back(
            {static_cast<int>(rng.below(2)), static_cast<int>(rng.between(2, 8)), 0});
    for (int g = 0; g < gpus; ++g)
        hardware.numa_nodes[rng.below(static_cast<std::uint64_t>(numa))].gpus |= gpu_bit(g);
    return hardware;
}

// Tasks are put on nodes at random wherever they fit.
inline gpusched::ClusterSpec random_spec(Rng& rng, int nodes, int most_tasks, bool cpu_local,
                                         int most_gpus = 6) {
    ClusterSpec spec;
    spec.now = 1000;
    for (int n = 0; n < nodes; ++n) {
        NodeSpec node{.name = "n" + std::to_string(rng.below(1000)) + "." + std::to_string(n),
                      .gpu_model = "A",
                      .gpu_count = rng.between(most_gpus == 6 ? 1 : most_gpus - 2, most_gpus),
                      .memory_mib = rng.between(8, 40)};
        node.cpu_milli = rng.between(2, 16) * 1000;
        if (rng.chance(0.9)) {
            node.hardware = random_hardware(rng, static_cast<int>(node.gpu_count));
            node.cpu_milli = std::min<std::int64_t>(node.cpu_milli, node.hardware->cores() * 1000);
        }
        if (most_gpus > 6) {
            node.cpu_milli = 100'000;
            node.memory_mib *= 4;
            if (node.hardware)
                for (auto& numa : node.hardware->numa_nodes) numa.cores += 100;
        }
        if (rng.chance(0.3)) node.gpu_memory_mib = rng.between(20, 40);
        if (rng.chance(0.1))
            node.failed_gpus = {static_cast<int>(rng.below(static_cast<std::uint64_t>(node.gpu_count)))};
        spec.nodes.push_back(node);
    }
    const bool plain = rng.chance(0.5) && !cpu_local;  // whole GPUs, nothing else matters
    const auto request = [&](TaskSpec& task) {
        task.gpu_count = rng.between(plain ? 1 : 0, 3);
        if (plain) return;
        if (rng.chance(0.4)) {
            task.gpu_count = 1;
            task.gpu_share_milli = rng.between(1, 4) * 200;
        }
        if (task.gpu_share_milli > 999) task.gpu_share_milli = 1000;
        task.cpu_milli = rng.between(0, 6) * 500;
        task.memory_mib = rng.between(0, 10);
        if (task.gpu_count > 0) task.gpu_memory_mib = rng.chance(0.3) ? rng.between(1, 20) : 0;
    };
    const auto tasks = rng.between(most_gpus == 6 ? 2 : most_tasks - 4, most_tasks);
    for (int i = 0; i < tasks; ++i) {
        TaskSpec task{.name = "t" + std::to_string(rng.below(100)) + "." + std::to_string(i)};
        request(task);
        task.priority = rng.chance(0.5) ? rng.between(0, 2) * 100 : rng.between(-2, 3);
        task.preemptible = rng.chance(0.9);
        task.locked = rng.chance(0.05);
        task.daemon = !task.locked && rng.chance(0.05);
        const auto kind = rng.below(10);
        task.priority_class = kind < 5   ? PriorityClass::lp
                              : kind < 8 ? PriorityClass::hp
                                         : PriorityClass::other;
        task.standby = task.priority_class == PriorityClass::hp && !task.locked && !task.daemon &&
                       rng.chance(cpu_local ? 0.8 : 0.3);
        task.start_time = rng.between(0, 3) * 100;
        if (rng.chance(0.5)) task.last_checkpoint_time = task.start_time + rng.between(0, 3) * 100;
        spec.tasks.push_back(task);
        auto pending = spec;
        auto& probe = pending.tasks.back();
        probe.locked = probe.standby = false;
        const auto cluster = Cluster::build(pending, IdOrder::as_listed);
        const auto id = make_id<TaskId>(static_cast<std::size_t>(i));
        const auto node = make_id<NodeId>(rng.below(static_cast<std::uint64_t>(nodes)));
        if (find_obstacle(cluster, id, node) != Obstacle::none) {
            spec.tasks.back().locked = spec.tasks.back().standby = false;
            continue;
        }
        auto candidates = gpu_list(candidate_gpus(cluster, id, node));
        rng.shuffle(std::span(candidates));
        candidates.resize(static_cast<std::size_t>(task.gpu_count));
        spec.tasks.back().node = cluster.name(node);
        spec.tasks.back().gpus = candidates;
        if (cpu_local && rng.chance(0.5)) {  // some cores from one on, not all of them on the machine
            auto& cores = spec.tasks.back().cores.emplace();
            const auto first = rng.between(0, 6);
            for (int c = 0; 1000 * c < task.cpu_milli; ++c) cores.push_back(static_cast<int>(first) + c);
        }
    }
    TaskSpec preemptor{.name = "preemptor"};
    request(preemptor);
    preemptor.gpu_count = std::max<std::int64_t>(preemptor.gpu_count, preemptor.gpu_memory_mib > 0 ? 1 : 0);
    preemptor.priority = rng.chance(0.7) ? 1000 : rng.between(-1, 101);
    preemptor.priority_class = rng.chance(0.2) ? PriorityClass::lp : PriorityClass::hp;
    if (rng.chance(0.6))
        preemptor.hardware_affinity.push_back(
            {rng.chance(0.5) ? HardwareLevel::numa : HardwareLevel::socket,
             rng.chance(0.5) ? HardwareQos::guaranteed : HardwareQos::best_effort});
    if (cpu_local && preemptor.gpu_count > 0) {
        preemptor.cpu_local = true;
        preemptor.cpu_milli = rng.between(1, 6) * 1000;
    }
    spec.tasks.push_back(preemptor);
    return spec;
}

inline constexpr int no_place = 3;

// The closest locality that the preemptor finds on the node once the victims are gone, by trying all sets of GPUs.
inline int place_after(const ClusterSpec& spec, const Cluster& cluster, const std::vector<TaskId>& victims,
                       TaskId task, NodeId node, GpuMask* some = nullptr) {
    Cluster after(cluster);
    for (const auto victim : victims) after.remove(victim);
    if (find_obstacle(after, task, node) != Obstacle::none) return no_place;
    const auto& t = spec.tasks[index(task)];
    const auto& n = spec.nodes[index(node)];
    if (t.gpu_count == 0) return 0;
    const auto candidates = candidate_gpus(after, task, node);
    int best = no_place;
    for (unsigned set = 1; set < (1u << n.gpu_count); ++set) {
        const auto mask = static_cast<GpuMask>(set);
        if (!gpus_fit(after, task, node, mask) || (mask & ~candidates) != 0) continue;
        int found = 2;
        std::int64_t cores = 0;
        if (t.gpu_count == 1) found = 0;
        if (n.hardware) {
            for (const auto& socket : n.hardware->socket_gpus())
                if ((mask & ~socket) == 0) found = std::min(found, 1);
            for (const auto& numa : n.hardware->numa_nodes)
                if ((mask & ~numa.gpus) == 0) found = 0;
            for (const auto& numa : n.hardware->numa_nodes) {
                if ((numa.gpus & mask) == 0) continue;
                const auto left = free_cores(spec, after, t, node, numa);
                cores += std::max<std::int64_t>(0, left);
            }
        }
        if (t.cpu_local && cores < t.cpu_milli) continue;
        if (found < best) {
            best = found;
            if (some != nullptr) *some = mask;
        }
    }
    return best;
}

}  // namespace testing_support

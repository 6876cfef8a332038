// SPDX-License-Identifier: Apache-2.0
// Measures a snapshot of 40,000 nodes, 160,000 GPUs and 200,000 tasks: memory, copies, changes.
//
// Prints two JSON lines. Memory includes the allocator's overhead. `move_ns` is one feasibility check and, if
// it succeeds, one change of a random task on a random node; `undo_ns` is one undo. The second line has the
// cost of membership changes, the shortest of ten rounds; `rebuild_ms` is the cost of building the cluster
// again for one such change.
#include "../support/command_line.hpp"
#include "../support/large_cluster.hpp"
#include "../support/memory.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gpusched;

double milliseconds(double since) { return 1e3 * (bench::processor_s() - since); }

// The large cluster, two fifths of its tasks locked.
ClusterSpec make(int nodes, int per_node) {
    auto spec = bench::large_cluster(nodes, per_node);
    for (std::size_t i = 0; i < spec.tasks.size(); ++i) spec.tasks[i].locked = i % 5 < 2;
    return spec;
}

struct MembershipCosts {
    double first_change_ms = 0, add_ns = 1e9, bind_ns = 1e9, unbind_ns = 1e9, remove_ns = 1e9,
           update_node_ns = 1e9;
    double copy_ms = 1e9;
};

// In each round random tasks end and similar tasks of new jobs replace them; nodes fail and are repaired.
MembershipCosts churn(Cluster& cluster, int tasks) {
    MembershipCosts costs;
    auto start = bench::processor_s();
    cluster.set_now(1);
    cluster.update_node(cluster.handle(NodeId{0}), cluster.node_spec(NodeId{0}));
    costs.first_change_ms = milliseconds(start);
    Rng rng(2);
    struct Ending {
        TaskHandle task;
        TaskSpec next;
        NodeHandle node;
        GpuMask gpus;
    };
    for (int round = 0; round < 10; ++round) {
        std::vector<Ending> endings;
        std::vector<bool> chosen(cluster.task_slots());
        while (static_cast<int>(endings.size()) < tasks) {
            const auto task = make_id<TaskId>(rng.below(cluster.task_slots()));
            if (chosen[index(task)]) continue;
            chosen[index(task)] = true;
            auto next = cluster.task_spec(task);
            next.job = "job of round " + std::to_string(round) + " " + std::to_string(endings.size() / 8);
            next.name = "round " + std::to_string(round) + " task " + std::to_string(endings.size());
            for (auto& term : next.anti_affinity) term.group = next.job;
            next.locked = false;
            next.node.reset();
            next.gpus.clear();
            endings.push_back({cluster.handle(task), std::move(next), cluster.handle(cluster.node_of(task)),
                               cluster.gpus_of(task)});
        }
        const auto each = [&](double& least, auto&& change) {
            const auto begin = bench::processor_s();
            for (auto& ending : endings) change(ending);
            least = std::min(least, milliseconds(begin) * 1e6 / tasks);
        };
        each(costs.remove_ns, [&](Ending& e) { cluster.remove_task(e.task); });
        each(costs.add_ns, [&](Ending& e) { e.task = cluster.add_task(e.next); });
        each(costs.bind_ns, [&](Ending& e) { cluster.bind(e.task, e.node, e.gpus); });
        each(costs.unbind_ns, [&](Ending& e) { cluster.unbind(e.task); });
        for (auto& e : endings) cluster.bind(e.task, e.node, e.gpus);
        std::vector<NodeSpec> nodes;
        for (int i = 0; i < tasks / 10; ++i)
            nodes.push_back(cluster.node_spec(make_id<NodeId>(rng.below(cluster.node_slots()))));
        const auto begin = bench::processor_s();
        for (auto& node : nodes) {
            node.failed_gpus = {0};
            cluster.update_node(cluster.handle(cluster.find_node(node.name)), node);
            node.failed_gpus = {};
            cluster.update_node(cluster.handle(cluster.find_node(node.name)), node);
        }
        costs.update_node_ns = std::min(costs.update_node_ns, milliseconds(begin) * 1e6 /
                                                                  (2.0 * static_cast<double>(nodes.size())));
        start = bench::processor_s();
        const auto copy = cluster;
        costs.copy_ms = std::min(costs.copy_ms, milliseconds(start));
    }
    return costs;
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Cost of a snapshot of a large cluster.", argc, argv);
    line.read();
    const bool smoke = line.smoke();
    const int nodes = smoke ? 1'000 : 40'000;
    const int attempts = smoke ? 10'000 : 2'000'000;
    const auto spec = make(nodes, 5);

    const auto empty = bench::heap_bytes();
    auto start = bench::processor_s();
    auto cluster = Cluster::build(spec);
    const auto build_ms = milliseconds(start);
    const auto built = bench::heap_bytes() - empty;

    start = bench::processor_s();
    const auto copy = cluster;
    const auto copy_ms = milliseconds(start);
    const auto copied = bench::heap_bytes() - empty - built;

    // Random feasible moves, all undone at the end.
    Rng rng(1);
    int moves = 0;
    start = bench::processor_s();
    for (int i = 0; i < attempts; ++i) {
        const auto task = make_id<TaskId>(rng.below(cluster.task_count()));
        const auto node = make_id<NodeId>(rng.below(cluster.node_count()));
        if (find_obstacle(cluster, task, node) != Obstacle::none) continue;
        const auto count = cluster.inventory().tasks.gpu_count[index(task)];
        cluster.assign(task, node, lowest_gpus(candidate_gpus(cluster, task, node), count));
        ++moves;
    }
    const auto moves_ms = milliseconds(start);
    start = bench::processor_s();
    cluster.rollback(0);
    const auto undo_ms = milliseconds(start);

    const auto per_node = static_cast<double>(copied) / nodes;
    const auto per_task = static_cast<double>(built) / static_cast<double>(cluster.task_count());
    const auto mib = [](std::size_t bytes) {
        return bench::rounded(static_cast<double>(bytes) / 1048576, 1);
    };
    bench::print({{"nodes", nodes},
                  {"gpus", 4 * nodes},
                  {"tasks", cluster.task_count()},
                  {"build_ms", bench::rounded(build_ms, 0)},
                  {"snapshot_mib", mib(built)},
                  {"snapshot_bytes_per_task", bench::rounded(per_task, 0)},
                  {"copy_mib", mib(copied)},
                  {"copy_bytes_per_node", bench::rounded(per_node, 0)},
                  {"copy_ms", bench::rounded(copy_ms, 2)},
                  {"questions", attempts},
                  {"moves", moves},
                  {"move_ns", bench::rounded(moves_ms * 1e6 / attempts, 0)},
                  {"undo_ns", bench::rounded(undo_ms * 1e6 / std::max(1, moves), 0)}});
    if (!cluster.same_placement(copy)) return 1;

    const int changed = smoke ? 200 : 10'000;
    cluster = Cluster::build(spec);
    const auto before = bench::heap_bytes();
    const auto costs = churn(cluster, changed);
    const auto lookups = bench::heap_bytes() - before;
    const auto& slow = cluster.inventory().changes;
    bench::print({{"changed", changed},
                  {"first_change_ms", bench::rounded(costs.first_change_ms, 1)},
                  {"remove_ns", bench::rounded(costs.remove_ns, 0)},
                  {"add_ns", bench::rounded(costs.add_ns, 0)},
                  {"bind_ns", bench::rounded(costs.bind_ns, 0)},
                  {"unbind_ns", bench::rounded(costs.unbind_ns, 0)},
                  {"update_node_ns", bench::rounded(costs.update_node_ns, 0)},
                  {"copy_ms", bench::rounded(costs.copy_ms, 2)},
                  {"lookups_mib", mib(lookups)},
                  {"regroupings", slow.regroupings},
                  {"reclassifications", slow.reclassifications},
                  {"rebuild_ms", bench::rounded(build_ms, 0)}});
    return 0;
}

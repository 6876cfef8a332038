// SPDX-License-Identifier: Apache-2.0
// Measures changes of a live cluster with 40,000 nodes, 160,000 GPUs and 200,000 tasks, alone and with all
// built-in followers in step after every change.
//
// Prints one JSON line per kind of change: nanoseconds of processor time without and with followers, the
// shortest of ten rounds, and allocations per change in the last round.
//
// `--soak` instead makes that many random changes with a steady population, followers in step every 16
// changes. It prints memory and the time per change at every tenth of them. At every hundredth of them it
// compares the cluster with a newly built one.
#include "../support/allocations.hpp"
#include "../support/command_line.hpp"
#include "../support/large_cluster.hpp"
#include "../support/memory.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/ranked_placement.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/consolidation/free_index.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/preemption/index.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gpusched;

double nanoseconds(double since) { return 1e9 * (bench::processor_s() - since); }

// The large cluster, with half of its tasks preemptible, and a pending task.
ClusterSpec make(int nodes, int per_node) {
    auto spec = bench::large_cluster(nodes, per_node);
    for (std::size_t i = 0; i < spec.tasks.size(); i += 2) spec.tasks[i].preemptible = true;
    spec.tasks.push_back({.name = "waits", .cpu_milli = 16'000, .gpu_count = 2, .priority = 100});
    return spec;
}

template <class M>
using Kept = Followed<fragmentation::Incremental<M>>;
template <class M>
Kept<M> kept(M metric) {
    return Kept<M>(fragmentation::Incremental<M>(std::move(metric)));
}

// All followers of a cluster that the library has.
struct Followers {
    explicit Followers(const Cluster& c)
        : waits(c.find_task("waits")),
          fgd(kept(fragmentation::Fgd(fragmentation::typical_workload(c), c.inventory()))),
          slots(kept(fragmentation::SwitchSlotMetric(c.inventory()))),
          largest(kept(fragmentation::LargestJobMetric(c.inventory()))),
          report(kept(fragmentation::ReportMetric(c.inventory(), fragmentation::asi_shapes))) {
        Rng rng(1);
        catch_up(c);
        (void)best_fit(c, waits, rng);
        (void)preemption.decide(c, waits);
    }
    void catch_up(const Cluster& c) {
        best_fit.catch_up(c);
        preemption.catch_up(c);
        (void)free.of(c);
        (void)fgd.of(c);
        (void)occupancy.of(c);
        (void)ratio.of(c);
        (void)slots.of(c);
        (void)largest.of(c);
        (void)report.of(c);
        (void)entropies.of(c);
    }

    TaskId waits;
    allocation::RankedPlacement<allocation::BestFit, allocation::TightestGpu> best_fit;
    preemption::PreemptionIndex preemption;
    Followed<consolidation::FreeIndex> free;
    Kept<fragmentation::Fgd> fgd;
    Kept<fragmentation::OccupancyMetric> occupancy = kept(fragmentation::OccupancyMetric{});
    Kept<fragmentation::AllocationRatioMetric> ratio = kept(fragmentation::AllocationRatioMetric{});
    Kept<fragmentation::SwitchSlotMetric> slots;
    Kept<fragmentation::LargestJobMetric> largest;
    Kept<fragmentation::ReportMetric> report;
    Followed<fragmentation::JobEntropies> entropies;
};

// A task that ends, and its replacement.
struct Ending {
    TaskHandle task;
    TaskSpec next;
    NodeHandle node;
    GpuMask gpus;
};

std::vector<Ending> draw(const Cluster& cluster, Rng& rng, int count, int round) {
    std::vector<Ending> endings;
    std::vector<bool> chosen(cluster.task_slots());
    while (static_cast<int>(endings.size()) < count) {
        const auto task = make_id<TaskId>(rng.below(cluster.task_slots()));
        if (chosen[index(task)] || !cluster.contains(task) || !cluster.is_placed(task)) continue;
        chosen[index(task)] = true;
        auto next = cluster.task_spec(task);
        next.job = "job of round " + std::to_string(round) + " " + std::to_string(endings.size() / 8);
        next.name = "round " + std::to_string(round) + " task " + std::to_string(endings.size());
        for (auto& term : next.anti_affinity) term.group = next.job;
        next.node.reset();
        next.gpus.clear();
        endings.push_back({cluster.handle(task), std::move(next), cluster.handle(cluster.node_of(task)),
                           cluster.gpus_of(task)});
    }
    return endings;
}

struct Cost {
    const char* change;
    double alone_ns = 1e12, followed_ns = 1e12, allocations = 0, followed_allocations = 0;
};

void churn(Cluster& cluster, int count) {
    Followers followers(cluster);
    Cost remove{"remove task"}, add{"add task"}, bind{"bind"}, unbind{"unbind"}, update{"update node"};
    Rng rng(2);
    for (int round = 0; round < 20; ++round) {
        const bool followed = round % 2 == 1;
        auto endings = draw(cluster, rng, count, round);
        const auto each = [&](Cost& cost, auto& items, auto&& change) {
            const auto before = bench::allocations;
            const auto begin = bench::processor_s();
            for (auto& item : items) {
                change(item);
                if (followed) followers.catch_up(cluster);
            }
            auto& least = followed ? cost.followed_ns : cost.alone_ns;
            least = std::min(least, nanoseconds(begin) / static_cast<double>(items.size()));
            (followed ? cost.followed_allocations : cost.allocations) =
                static_cast<double>(bench::allocations - before) / static_cast<double>(items.size());
        };
        each(remove, endings, [&](Ending& e) { cluster.remove_task(e.task); });
        each(add, endings, [&](Ending& e) { e.task = cluster.add_task(e.next); });
        each(bind, endings, [&](Ending& e) { cluster.bind(e.task, e.node, e.gpus); });
        each(unbind, endings, [&](Ending& e) { cluster.unbind(e.task); });
        for (auto& e : endings) cluster.bind(e.task, e.node, e.gpus);
        std::vector<NodeSpec> nodes;
        for (int i = 0; i < count / 10; ++i) {
            nodes.push_back(cluster.node_spec(make_id<NodeId>(rng.below(cluster.node_slots()))));
            nodes.push_back(nodes.back());
            nodes[nodes.size() - 2].failed_gpus = {0};
        }
        each(update, nodes, [&](NodeSpec& node) {
            cluster.update_node(cluster.handle(cluster.find_node(node.name)), node);
        });
        followers.catch_up(cluster);
        (void)followers.best_fit(cluster, followers.waits, rng);
        (void)followers.preemption.decide(cluster, followers.waits);
    }
    for (const auto& cost : {add, bind, unbind, remove, update})
        bench::print({{"change", cost.change},
                      {"alone_ns", bench::rounded(cost.alone_ns, 0)},
                      {"followed_ns", bench::rounded(cost.followed_ns, 0)},
                      {"allocations", bench::rounded(cost.allocations, 2)},
                      {"followed_allocations", bench::rounded(cost.followed_allocations, 2)}});
}

ClusterSpec normal(ClusterSpec spec) {
    const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
    std::sort(spec.nodes.begin(), spec.nodes.end(), by_name);
    std::sort(spec.tasks.begin(), spec.tasks.end(), by_name);
    std::sort(spec.jobs.begin(), spec.jobs.end(), by_name);
    for (auto& task : spec.tasks) std::sort(task.gpu_models.begin(), task.gpu_models.end());
    return spec;
}

bool soak(Cluster& cluster, std::uint64_t events) {
    Followers followers(cluster);
    Rng rng(3);
    std::uint64_t named = 0;
    auto start = bench::processor_s();
    const auto first = cluster.events()->version();
    for (std::uint64_t done = 0, told = 0, compared = 0; done < events;) {
        const auto task = make_id<TaskId>(rng.below(cluster.task_slots()));
        if (rng.below(8) == 0) {
            auto node = cluster.node_spec(make_id<NodeId>(rng.below(cluster.node_slots())));
            node.failed_gpus.clear();
            if (rng.chance(0.1)) node.failed_gpus = {static_cast<int>(rng.below(4))};
            cluster.update_node(cluster.handle(cluster.find_node(node.name)), node);
        } else if (cluster.contains(task) && cluster.is_placed(task)) {
            // The task ends; its replacement arrives, waits and starts.
            const auto node = cluster.handle(cluster.node_of(task));
            const auto gpus = cluster.gpus_of(task);
            auto next = cluster.task_spec(task);
            next.name = "soak " + std::to_string(named);
            next.job = "soak job " + std::to_string(named++ / 8);
            for (auto& term : next.anti_affinity) term.group = next.job;
            next.node.reset();
            next.gpus.clear();
            cluster.remove_task(cluster.handle(task));
            cluster.bind(cluster.add_task(next), node, gpus);
        }
        done = cluster.events()->version() - first;
        if (done / 16 > told / 16) followers.catch_up(cluster);
        if (done / 4'096 > told / 4'096) {
            (void)followers.best_fit(cluster, followers.waits, rng);
            (void)followers.preemption.decide(cluster, followers.waits);
        }
        told = done;
        if (done * 100 / events > compared) {
            compared = done * 100 / events;
            if (compared % 10 == 0)
                bench::print(
                    {{"events", done},
                     {"heap_mib", bench::rounded(static_cast<double>(bench::heap_bytes()) / 1048576, 1)},
                     {"ns_per_event",
                      bench::rounded(nanoseconds(start) / (static_cast<double>(events) / 10), 0)}});
            const auto begin = bench::processor_s();
            const auto spec = cluster.to_spec();
            if (normal(Cluster::build(spec).to_spec()) != normal(spec)) return false;
            start = compared % 10 == 0 ? bench::processor_s() : start + (bench::processor_s() - begin);
        }
    }
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Cost of changes of a large live cluster.", argc, argv);
    std::uint64_t events = 0;
    line.option("--soak", events, "random changes to make instead of measuring each kind");
    line.read();
    const bool smoke = line.smoke();
    auto cluster = Cluster::build(make(smoke ? 500 : 40'000, 5));
    cluster.keep_events();
    if (events > 0) return soak(cluster, events) ? 0 : 1;
    churn(cluster, smoke ? 100 : 10'000);
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A small scheduler out of the library's parts, on one snapshot that every step changes: filter and rank for single pods,
// allocate for a gang over switches; preempt where nothing fits; consolidate; every plan checked by code that shares nothing
// with the search. Then the same policies over days of HP and spot jobs.
#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/preemption/preempt_gang.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/sim/spot_replay.hpp>
#include <gpusched/verify/plan.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace gpusched;

namespace {

constexpr Level access_switch = 2;  // below cluster and aggregation switch

// Carries a plan out if the independent checker accepts it.
Cluster carry_out(const Cluster& cluster, const Plan& plan) {
    const auto report = verify::plan(cluster.to_spec(), to_spec(plan, cluster));
    if (!report.ok) {
        std::printf("not valid: %s\n", report.violations.front().c_str());
        std::exit(1);
    }
    return apply(cluster, plan);
}

// One pod: a free place by ASI's three criteria, or room made by evicting the spot tasks that lose the least work.
Plan schedule(const Cluster& cluster, TaskId pod, Rng& rng) {
    const auto no_failed_gpu = [](const Cluster& c, TaskId, NodeId node) {
        return gpu_count(c.healthy_gpus(node)) == c.gpu_count(node);
    };
    const allocation::Lexicographic asi(allocation::Packing{}, allocation::Homogeneous{},
                                        allocation::EvictionHistory{});
    if (const auto to = allocation::place(cluster, pod, asi, allocation::ByWish{}, rng, no_failed_gpu)) {
        Plan plan;
        plan.placements.push_back({pod, to->node, to->gpus});
        return plan;
    }
    const auto result = preemption::preempt(cluster, pod, {.policy = preemption::Policy::spot_exact});
    if (result.decision) return preemption::to_plan(*result.decision, pod);
    std::printf("%s\n", preemption::explain(cluster, pod).text.c_str());
    return {};
}

// A gang, all or nothing: under one access switch where it requires that, with evictions only if it does not fit else.
Plan schedule_gang(const Cluster& cluster, const std::string& job) {
    const auto pods = allocation::pending_pods(cluster, job);
    const auto free = allocation::allocate(cluster, pods);
    if (free.placed) return allocation::to_plan(free);
    std::printf("%s: %s\n", job.c_str(), free.reason.c_str());
    const auto room = preemption::preempt_gang(cluster, pods, {.policy = preemption::Policy::spot_exact});
    if (room.decision) return preemption::to_plan(*room.decision, pods);
    std::printf("%s: %s\n", job.c_str(), room.reason.c_str());
    return {};
}

double hours(double seconds) { return seconds / 3600; }

}  // namespace

int main() {
    // A loaded snapshot, to which come pods of a high-priority service, and two gangs that need an access switch each.
    auto spec = sim::generate_cluster({.nodes = 1000, .layout = sim::Layout::spread, .locked_fraction = 0.1});
    const auto add_pods = [&](const std::string& job, int count, std::int64_t gpus, bool together) {
        for (int i = 0; i < count; ++i) {
            TaskSpec pod;
            pod.name = job + "/" + std::to_string(i);
            pod.gpu_models = {"H20"};
            pod.gpu_count = gpus;
            pod.cpu_milli = 8'000 * gpus;
            pod.memory_mib = 64 * 1024 * gpus;
            pod.priority = 1000;
            pod.priority_class = PriorityClass::hp;
            if (together) {
                pod.job = job;
                pod.network_affinity = NetworkAffinity{access_switch, NetworkMode::required};
            }
            spec.tasks.push_back(pod);
        }
    };
    constexpr int pods = 22;
    add_pods("serving", pods, 4, false);
    add_pods("evaluation", 3, 2, true);
    add_pods("training", 6, 2, true);
    auto cluster = Cluster::build(spec);
    Rng rng(1);
    std::size_t placed = 0, evicted = 0;
    for (int i = 0; i < pods; ++i) {
        const auto plan = schedule(cluster, cluster.find_task("serving/" + std::to_string(i)), rng);
        placed += plan.placements.size();
        evicted += plan.evictions.size();
        cluster = carry_out(cluster, plan);
    }
    std::printf("serving: %zu of %d pods placed, %zu spot tasks evicted\n", placed, pods, evicted);
    for (const auto* job : {"evaluation", "training"}) {
        const auto plan = schedule_gang(cluster, job);
        std::printf("%s: %zu pods placed, %zu spot tasks evicted\n", job, plan.placements.size(),
                    plan.evictions.size());
        cluster = carry_out(cluster, plan);
    }
    const auto tidy = consolidation::consolidate(cluster);
    cluster = carry_out(cluster, tidy.plan);
    std::printf("consolidation: %zu moves vacate %zu nodes\n", tidy.plan.moves.size(),
                tidy.plan.vacated_nodes.size());

    // The same over time: four days of generated jobs, of which the middle two are measured.
    const auto trace = sim::generate_spot_trace({.nodes = 32, .hours = 96, .seed = 1});
    struct Arm {
        const char* name;
        sim::SpotReplayOptions options;
    };
    const Arm arms[] = {
        {"HP jobs alone", {.spot_jobs = false}},
        {"packing, random victims", {.rankers = {"packing"}, .victims = sim::Victims::random}},
        {"ASI", {}},
        {"ASI, exact, consolidated", {.victims = sim::Victims::spot_exact, .consolidate_every_h = 6}},
    };
    std::printf("\n%-26s %6s %8s %12s %18s %16s %18s %8s\n", "replay", "HP %", "HP+LP %", "lost GPU-h",
                "LP completion h", "HP wait p99 s", "decision p50 us", "p99 us");
    for (const auto& arm : arms) {
        auto options = arm.options;
        options.measure_from_s = 24 * 3600;
        options.measure_until_s = 72 * 3600;
        const auto r = sim::replay_spot(trace, options);
        std::printf("%-26s %6.1f %8.1f %12.1f %18.2f %16.0f %18.1f %8.1f\n", arm.name, 100 * r.hp_allocation,
                    100 * (r.hp_allocation + r.lp_allocation), r.lp_lost_gpu_h, hours(r.lp_completion_s.mean),
                    r.hp_wait_s.p99, r.decision_us.p50, r.decision_us.p99);
    }
    return 0;
}

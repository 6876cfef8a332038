// SPDX-License-Identifier: Apache-2.0
// Nodes of up to 64 GPUs in every algorithm: answers hold, plans are verified, nothing takes forever.
#include "algorithms.hpp"
#include "support/instances.hpp"

using namespace gpusched;
using testing_support::instances;

namespace {

NodeSpec random_node(Rng& rng, const std::string& name) {
    static constexpr std::array<std::int64_t, 8> counts{8, 16, 17, 24, 32, 48, 63, 64};
    NodeSpec node{.name = name,
                  .gpu_model = rng.chance(0.7) ? "A" : "B",
                  .gpu_count = rng.pick(std::span(counts)),
                  .cpu_milli = 1000 * rng.between(16, 256),
                  .memory_mib = 1024 * rng.between(16, 256)};
    if (rng.chance(0.3)) node.gpu_memory_mib = 40'960;
    if (rng.chance(0.6)) {
        Hardware hardware;
        const auto numa_nodes = rng.between(1, 16);
        for (int i = 0; i < numa_nodes; ++i) hardware.numa_nodes.push_back({i / 4, 256, 0});
        for (int g = 0; g < node.gpu_count; ++g)
            hardware
                .numa_nodes[static_cast<std::size_t>(rng.chance(0.8) ? g * numa_nodes / node.gpu_count
                                                                     : rng.between(0, numa_nodes - 1))]
                .gpus |= gpu_bit(g);
        node.hardware = hardware;
    }
    node.network = {rng.chance(0.5) ? "s0" : "s1"};
    for (int g = 0; g < node.gpu_count; ++g)
        if (rng.chance(0.03)) node.failed_gpus.push_back(g);
    return node;
}

TaskSpec random_task(Rng& rng, const std::string& name) {
    static constexpr std::array<std::int64_t, 9> counts{1, 1, 2, 4, 8, 17, 20, 32, 64};
    TaskSpec task{
        .name = name, .cpu_milli = 250 * rng.between(0, 32), .memory_mib = 256 * rng.between(0, 16)};
    task.gpu_count = rng.chance(0.1) ? 0 : rng.pick(std::span(counts));
    if (task.gpu_count == 1 && rng.chance(0.5)) task.gpu_share_milli = 100 * rng.between(1, 9);
    if (rng.chance(0.2)) task.gpu_memory_mib = 1024 * rng.between(1, 30);
    if (rng.chance(0.3)) task.gpu_models = {"A"};
    task.priority = rng.between(0, 50);
    task.priority_class = rng.chance(0.4)   ? PriorityClass::lp
                          : rng.chance(0.5) ? PriorityClass::hp
                                            : PriorityClass::other;
    task.standby = task.priority_class == PriorityClass::hp && rng.chance(0.2);
    task.preemptible = rng.chance(0.7);
    if (rng.chance(0.3))
        task.hardware_affinity.push_back(
            {rng.chance(0.5) ? HardwareLevel::numa : HardwareLevel::socket,
             rng.chance(0.5) ? HardwareQos::guaranteed : HardwareQos::best_effort});
    return task;
}

/// The GPUs that could each serve the task, and of a guaranteed locality the most, by what the spec says.
struct Offer {
    std::vector<int> gpus{};
    std::int64_t together = 0;
};
Offer offer(const ClusterSpec& spec, const NodeSpec& node, const TaskSpec& task) {
    Offer out;
    std::vector<bool> open;
    for (int g = 0; g < node.gpu_count; ++g) {
        std::int64_t used = 0, claimed = 0, memory = 0;
        for (const auto& other : spec.tasks) {
            if (other.node != node.name || std::count(other.gpus.begin(), other.gpus.end(), g) == 0) continue;
            if (!other.standby) used += other.gpu_share_milli;
            if (other.priority_class != PriorityClass::lp) claimed += other.gpu_share_milli;
            memory += other.gpu_memory_mib;
        }
        const auto taken = task.priority_class == PriorityClass::lp ? used : std::max(used, claimed);
        open.push_back(std::count(node.failed_gpus.begin(), node.failed_gpus.end(), g) == 0 &&
                       taken + task.gpu_share_milli <= 1000 && task.gpu_count > 0 &&
                       (task.gpu_memory_mib == 0 || !node.gpu_memory_mib ||
                        memory + task.gpu_memory_mib <= *node.gpu_memory_mib));
        if (open.back()) out.gpus.push_back(g);
    }
    out.together = static_cast<std::int64_t>(out.gpus.size());
    if (task.gpu_count < 2) return out;
    for (const auto& wish : task.hardware_affinity) {
        if (wish.qos != HardwareQos::guaranteed) continue;
        std::int64_t most = 0;
        for (int place = 0; node.hardware && place < 16; ++place) {
            std::int64_t here = 0;
            for (const int g : out.gpus)
                for (std::size_t i = 0; i < node.hardware->numa_nodes.size(); ++i) {
                    const auto& numa = node.hardware->numa_nodes[i];
                    const int at = wish.level == HardwareLevel::numa ? static_cast<int>(i) : numa.socket;
                    here += at == place && (numa.gpus >> g & 1) != 0;
                }
            most = std::max(most, here);
        }
        out.together = std::min(out.together, most);
    }
    return out;
}

/// Tasks placed one after the other by the naive rule on GPUs at random, about a quarter of them waiting.
ClusterSpec random_spec(Rng& rng) {
    ClusterSpec spec;
    const auto nodes = rng.between(2, 5);
    for (int n = 0; n < nodes; ++n) spec.nodes.push_back(random_node(rng, "n" + std::to_string(n)));
    const auto tasks = rng.between(10, 50);
    for (int t = 0; t < tasks; ++t) {
        auto task = random_task(rng, "t" + std::to_string(t));
        const auto& node = rng.pick(std::span(spec.nodes));
        std::int64_t cpu = node.cpu_milli, memory = node.memory_mib;
        for (const auto& other : spec.tasks)
            if (other.node == node.name) cpu -= other.cpu_milli, memory -= other.memory_mib;
        auto gpus = offer(spec, node, task).gpus;
        if (rng.chance(0.75) && cpu >= task.cpu_milli && memory >= task.memory_mib &&
            static_cast<std::int64_t>(gpus.size()) >= task.gpu_count) {
            rng.shuffle(std::span(gpus));
            gpus.resize(static_cast<std::size_t>(task.gpu_count));
            task.node = node.name;
            task.gpus = gpus;
        } else {
            task.standby = false;
        }
        spec.tasks.push_back(task);
    }
    return spec;
}

}  // namespace

TEST_CASE("64 GPUs: feasibility, placement, preemption, consolidation and models on random clusters") {
    std::size_t above_16 = 0, fills = 0;
    testing_support::Seen seen;
    for (std::uint64_t seed = 0; seed < instances(300u); ++seed) {
        Rng rng(seed);
        INFO("seed " << seed);
        const auto spec = random_spec(rng);
        const auto cluster = Cluster::build(spec);
        REQUIRE(Cluster::build(cluster.to_spec()).to_spec() == cluster.to_spec());
        const auto workload = fragmentation::typical_workload(spec.tasks);
        const fragmentation::Fgd fgd(workload, cluster.inventory());
        const fragmentation::ExpectedFill fill(workload, cluster.inventory());
        auto work = cluster;
        for (const auto task : cluster.tasks()) {
            const auto& asked = spec.tasks[index(task)];
            for (const auto node : cluster.nodes()) {
                if (cluster.node_of(task) == node) continue;
                const auto naive = offer(spec, spec.nodes[index(node)], asked);
                REQUIRE(gpu_list(candidate_gpus(cluster, task, node)) == naive.gpus);
                const auto found = find_resource_obstacle(cluster, task, node);
                if (found != Obstacle::cpu && found != Obstacle::memory)
                    REQUIRE((found == Obstacle::none) == (naive.together >= asked.gpu_count));
                // Nothing places a Standby task, so nothing weighs it.
                if (found != Obstacle::none || asked.gpu_count == 0 || asked.standby) continue;
                above_16 += asked.gpu_count > 16;
                const auto best = fgd.best(cluster, task, node, candidate_gpus(cluster, task, node));
                const auto before = fgd.state(work, node);
                const auto had = fill.fill(work, node);
                const auto checkpoint = work.checkpoint();
                work.reserve(task, node, best.gpus);
                REQUIRE(fgd.state(work, node) - before == best.delta);
                REQUIRE(fill.fill(work, node) <= had + 1e-9);
                fills += had > 0 && gpu_count(candidate_gpus(cluster, task, node)) > 16;
                work.rollback(checkpoint);
            }
            if (cluster.is_placed(task)) continue;
            for (const auto& picker : allocation::gpu_pickers().names()) {
                const auto found = allocation::place(
                    cluster, task, {.rankers = {"expected_fill", "fgd"}, .gpu_picker = std::string(picker)});
                INFO(picker << " for " << asked.name);
                if (!found) continue;
                Plan plan;
                plan.placements = {{task, found->node, found->gpus}};
                testing_support::require_valid(spec, cluster, plan);
            }
        }
        allocation::JobRequest job{"gang",
                                   {{2, random_task(rng, "")}, {rng.between(1, 3), random_task(rng, "")}}};
        for (auto& group : job.pods) group.pod.standby = false;
        auto with = allocation::with_job(cluster, job);
        testing_support::Algorithms(with.cluster.to_spec(), with.cluster, seed, seen).check_all();
        // The present placement satisfies the models.
        std::vector<NodeId> now;
        for (const auto task : cluster.tasks()) now.push_back(cluster.node_of(task));
        const auto model = milp::consolidation(cluster);
        REQUIRE(milp::evaluate(model, model.encode(now)).feasible());
        const auto packing = milp::packing_model(cluster, 0, {}, {.allow_moves = true});
        REQUIRE(packing.decode(cluster, packing.encode(cluster, now)) == now);
        // What Standby tasks lend is not in that model.
        if (std::none_of(spec.tasks.begin(), spec.tasks.end(), [](const TaskSpec& t) { return t.standby; }))
            REQUIRE(milp::evaluate(packing, packing.encode(cluster, now)).feasible());
    }
    CAPTURE(above_16, seen, fills);
    CHECK(above_16 > instances(830u));
    CHECK(seen["moves"] > instances(500u));
    CHECK(seen["evicted"] > instances(500u));
    CHECK(seen["gangs"] > instances(75u));
    CHECK(fills > instances(166u));
}

// SPDX-License-Identifier: Apache-2.0
// Every policy against exhaustive enumeration on random nodes: random hardware graphs, whole GPUs and fractions, CPU,
// memory, GPU memory, failed GPUs, Standby lenders, LP borrowers, daemons, locked tasks, priorities of any sign.
#include "support/catch.hpp"
#include "support/free_cores.hpp"

#include <gpusched/core/gpu_list.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

using namespace gpusched;
using namespace gpusched::preemption;

namespace {

Hardware random_hardware(Rng& rng, int gpus) {
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
ClusterSpec random_spec(Rng& rng, int nodes, int most_tasks, bool cpu_local, int most_gpus = 6) {
    ClusterSpec spec;
    spec.now = 1000;
    for (int n = 0; n < nodes; ++n) {
        NodeSpec node{.name = "n" + std::to_string(rng.below(1000)) + "." + std::to_string(n)};
        node.gpu_model = "A";
        node.gpu_count = rng.between(most_gpus == 6 ? 1 : most_gpus - 2, most_gpus);
        node.memory_mib = rng.between(8, 40);
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
        const auto cluster = Cluster::build(pending);
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

constexpr int no_place = 3;

// The closest locality that the preemptor finds on the node once the victims are gone, by trying all sets of GPUs.
int place_after(const ClusterSpec& spec, const Cluster& cluster, const std::vector<TaskId>& victims,
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
                const auto left = testing_support::free_cores(spec, after, t, node, numa);
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

struct Option {
    NodeId node;
    std::vector<TaskId> victims;
    int place;
    double score;
    std::int64_t count, max_priority, cost;
    std::vector<std::string> names;
};

struct Enumeration {
    bool fits = false;  // on some node without evictions
    std::vector<std::vector<Option>> by_node;
};

// Of priorities in 2^-44.
std::int64_t weight_of(std::int64_t priority) {
    return priority >= 1 ? priority << 44 : std::llround(std::ldexp(1.0L, 44) / (2.0L - static_cast<long double>(priority)));
}

Enumeration enumerate(const ClusterSpec& spec, const Cluster& cluster, TaskId task, bool spot,
                      ScoreForm form = ScoreForm::weighted) {
    Enumeration all;
    const auto& p = spec.tasks[index(task)];
    bool wishes = !p.hardware_affinity.empty();
    const double topology[] = {1, 0.5, 0};
    for (const auto node : cluster.nodes()) {
        all.by_node.emplace_back();
        std::vector<TaskId> open;
        for (const auto t : cluster.tasks()) {
            const auto& v = spec.tasks[index(t)];
            if (cluster.node_of(t) != node || !*v.preemptible || v.locked || v.standby || v.daemon) continue;
            if (spot ? v.priority_class == PriorityClass::lp : v.priority < p.priority) open.push_back(t);
        }
        for (unsigned set = 0; set < (1u << open.size()); ++set) {
            Option o{node, {}, 0, 0, 0, INT64_MIN, 0, {}};
            std::int64_t sum = 0, weights = 0;
            for (std::size_t i = 0; i < open.size(); ++i) {
                if ((set >> i & 1) == 0) continue;
                const auto& v = spec.tasks[index(open[i])];
                o.victims.push_back(open[i]);
                o.names.push_back(v.name);
                sum += v.priority;
                weights += weight_of(v.priority);
                ++o.count;
                o.max_priority = std::max(o.max_priority, v.priority);
                o.cost += v.gpu_count * v.gpu_share_milli *
                          (spec.now - v.last_checkpoint_time.value_or(v.start_time));
            }
            std::sort(o.names.begin(), o.names.end());
            o.place = place_after(spec, cluster, o.victims, task, node);
            if (o.place == no_place) continue;
            const double s = static_cast<double>(sum), t = wishes ? topology[o.place] : 0;
            const double w = std::ldexp(static_cast<double>(weights), -44);
            if (form == ScoreForm::paper)
                o.score = sum >= 1 ? 0.5 / s + (1 - 0.5) * t : 0.5 * (2 - 1 / (1 - s)) + (1 - 0.5) * t;
            else
                o.score = (w >= 1 ? 0.5 / w : 0.5 * (2 - w)) + (1 - 0.5) * t;
            if (set == 0) all.fits = true;
            all.by_node.back().push_back(o);
        }
    }
    return all;
}

auto by_score(const Cluster& c, const Option& o) {
    return std::tuple(-o.score, o.count, o.max_priority, o.cost, c.name(o.node), o.names);
}
auto by_cost(const Cluster& c, const Option& o) {
    return std::tuple(o.cost, o.count, o.max_priority, c.name(o.node), o.names);
}

std::vector<Option> fewest(const std::vector<Option>& options) {
    std::int64_t least = INT64_MAX;
    for (const auto& o : options)
        if (o.count > 0) least = std::min(least, o.count);
    std::vector<Option> out;
    for (const auto& o : options)
        if (o.count == least) out.push_back(o);
    return out;
}

void check_decision(const ClusterSpec& spec, const Cluster& cluster, TaskId task, const Result& result) {
    if (!result.decision) return;
    const auto& d = *result.decision;
    // Whatever the policy: nobody leaves in vain or for a placement that does not hold.
    REQUIRE(place_after(spec, cluster, d.victims, task, d.node) == static_cast<int>(d.topology));
    if (!spec.tasks[index(task)].cpu_local) {
        const auto report = verify::plan(spec, to_spec(to_plan(d, task), cluster));
        INFO((report.violations.empty() ? std::string() : report.violations.front()));
        REQUIRE(report.ok);
    }
    Cluster after(cluster);
    for (const auto victim : d.victims) after.remove(victim);
    REQUIRE((spec.tasks[index(task)].gpu_count == 0 || gpus_fit(after, task, d.node, d.gpus)));
}

}  // namespace

TEST_CASE("all engines choose what exhaustive enumeration chooses") {
    Rng rng(20261121);
    int evicting = 0, helpless = 0, fitting = 0;
    for (int round = 0; round < 6000; ++round) {
        const auto spec = random_spec(rng, static_cast<int>(rng.between(1, 3)), 9, round % 4 == 3);
        const auto cluster = Cluster::build(spec);
        const auto task = cluster.find_task("preemptor");
        const auto form = round % 3 == 0 ? ScoreForm::paper : ScoreForm::weighted;
        const auto truth = enumerate(spec, cluster, task, false, form);
        INFO("round " << round);

        std::optional<Option> best, best_imp;
        for (const auto& options : truth.by_node) {
            for (const auto& o : options)
                if (!best || by_score(cluster, o) < by_score(cluster, *best))
                    if (o.count > 0) best = o;
            for (const auto& o : fewest(options))
                if (!best_imp || by_score(cluster, o) < by_score(cluster, *best_imp)) best_imp = o;
        }
        for (const auto policy : {Policy::imp, Policy::exhaustive})
            for (const auto engine : {Engine::masks, Engine::plain}) {
                INFO(enum_name(policy) << " " << enum_name(engine));
                const auto result =
                    preempt(cluster, task, {.policy = policy, .engine = engine, .score = form});
                const auto& expected = policy == Policy::imp ? best_imp : best;
                REQUIRE(result.proven);
                check_decision(spec, cluster, task, result);
                if (truth.fits) {
                    REQUIRE(result.decision);
                    REQUIRE(result.decision->victims.empty());
                    REQUIRE(!result.decision->score);
                    continue;
                }
                REQUIRE(result.decision.has_value() == expected.has_value());
                if (!expected) continue;
                REQUIRE(result.decision->node == expected->node);
                REQUIRE(result.decision->victims == expected->victims);
                REQUIRE(*result.decision->score == expected->score);
                REQUIRE(result.decision->cost == expected->cost);
            }
        (truth.fits ? fitting : best ? evicting : helpless) += 1;

        for (const auto node : cluster.nodes()) {
            const auto& options = truth.by_node[index(node)];
            const auto found = minimal_victim_sets(cluster, task, node);
            std::vector<std::vector<TaskId>> expected;
            if (!options.empty() && options.front().count == 0)
                expected.push_back({});
            else
                for (const auto& o : fewest(options)) expected.push_back(o.victims);
            std::sort(expected.begin(), expected.end());
            REQUIRE(found.proven);
            REQUIRE(found.sets == expected);
        }
        // Baselines may choose otherwise, but find room exactly where there is some.
        for (const auto policy : {Policy::reprieve, Policy::first_fit}) {
            INFO(enum_name(policy));
            const auto result = preempt(cluster, task, {.policy = policy});
            check_decision(spec, cluster, task, result);
            REQUIRE(result.decision.has_value() == (truth.fits || best.has_value()));
        }
        const auto why = explain(cluster, task);
        REQUIRE((why.obstacle == Obstacle::none) == (truth.fits || best.has_value()));
    }
    CHECK(evicting > 1500);
    CHECK(helpless > 300);
    CHECK(fitting > 300);
}

TEST_CASE("with many victims the bounded search still finds what looking at every set finds") {
    Rng rng(4);
    int many = 0;
    for (int round = 0; round < 480; ++round) {
        auto spec = random_spec(rng, 1, 30, round % 4 == 3, 16);
        spec.tasks.back().gpu_count = spec.tasks.back().gpu_share_milli < 1000 ? 1 : rng.between(4, 8);
        const auto cluster = Cluster::build(spec);
        const auto task = cluster.find_task("preemptor");
        INFO("round " << round);
        for (const auto policy : {Policy::imp, Policy::exhaustive}) {
            const auto fast = preempt(cluster, task, {.policy = policy});
            const auto plain =
                preempt(cluster, task, {.policy = policy, .engine = Engine::plain, .search_limit = 1 << 22});
            REQUIRE(fast.proven);
            REQUIRE(plain.proven);
            check_decision(spec, cluster, task, fast);
            REQUIRE(fast.decision == plain.decision);
            many += plain.stats.sets_checked > 2000 ? 1 : 0;
        }
    }
    CHECK(many > 100);
}

TEST_CASE("spot policies lose the least work") {
    Rng rng(77);
    int evicting = 0, prefix_worse = 0;
    for (int round = 0; round < 3000; ++round) {
        const auto spec = random_spec(rng, static_cast<int>(rng.between(1, 3)), 9, round % 4 == 3);
        const auto cluster = Cluster::build(spec);
        const auto task = cluster.find_task("preemptor");
        const auto truth = enumerate(spec, cluster, task, true);
        INFO("round " << round);
        std::optional<Option> best;
        for (const auto& options : truth.by_node)
            for (const auto& o : options)
                if (o.count > 0 && (!best || by_cost(cluster, o) < by_cost(cluster, *best))) best = o;
        const bool spot_task = spec.tasks[index(task)].priority_class == PriorityClass::lp;
        const auto exact = preempt(cluster, task, {.policy = Policy::spot_exact});
        const auto prefix = preempt(cluster, task, {.policy = Policy::spot});
        for (const auto* const result : {&exact, &prefix}) {
            check_decision(spec, cluster, task, *result);
            REQUIRE(result->decision.has_value() == (truth.fits || (best && !spot_task)));
            if (result->decision) REQUIRE(result->decision->victims.empty() == truth.fits);
        }
        if (!exact.decision || truth.fits) continue;
        ++evicting;
        REQUIRE(exact.decision->node == best->node);
        REQUIRE(exact.decision->victims == best->victims);
        REQUIRE(exact.decision->cost == best->cost);
        REQUIRE(prefix.decision->cost >= best->cost);
        prefix_worse += prefix.decision->cost > best->cost ? 1 : 0;
    }
    CHECK(evicting > 500);
    CHECK(prefix_worse > 20);
}

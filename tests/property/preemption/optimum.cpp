// SPDX-License-Identifier: Apache-2.0
// Every policy against exhaustive enumeration on random nodes: random hardware graphs, whole GPUs and fractions, CPU,
// memory, GPU memory, failed GPUs, Standby lenders, LP borrowers, daemons, locked tasks, priorities of any sign.
#include "support/crowded_nodes.hpp"
#include "support/instances.hpp"

#include <gpusched/preemption/preemption.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using namespace testing_support;

namespace optimum_tests {

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
    return priority >= 1 ? priority << 44
                         : std::llround(std::ldexp(1.0L, 44) / (2.0L - static_cast<long double>(priority)));
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
    // With every policy: no needless eviction, and none for an invalid placement.
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

TEST_CASE("all engines agree with exhaustive enumeration") {
    Rng rng(20261121);
    int evicting = 0, helpless = 0, fitting = 0;
    for (int round = 0; round < 6000; ++round) {
        const auto spec = random_spec(rng, static_cast<int>(rng.between(1, 3)), 9, round % 4 == 3);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
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
            const auto found = minimal_victim_sets(cluster, task, node, {.qos = std::nullopt});
            std::vector<std::vector<TaskId>> expected;
            if (!options.empty() && options.front().count == 0)
                expected.push_back({});
            else
                for (const auto& o : fewest(options)) expected.push_back(o.victims);
            std::sort(expected.begin(), expected.end());
            REQUIRE(found.proven);
            REQUIRE(found.sets == expected);
        }
        // Baselines may choose otherwise, but succeed exactly if a choice exists.
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

TEST_CASE("with many victims the bounded search finds the same sets as enumeration") {
    Rng rng(4);
    int many = 0;
    for (int round = 0; round < instances(600); ++round) {
        auto spec = random_spec(rng, 1, 30, round % 4 == 3, 16);
        spec.tasks.back().gpu_count = spec.tasks.back().gpu_share_milli < 1000 ? 1 : rng.between(4, 8);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
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
    CHECK(many > instances(100));
}

TEST_CASE("spot policies lose the least work") {
    Rng rng(77);
    int evicting = 0, prefix_worse = 0;
    for (int round = 0; round < 3000; ++round) {
        const auto spec = random_spec(rng, static_cast<int>(rng.between(1, 3)), 9, round % 4 == 3);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
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

}  // namespace optimum_tests

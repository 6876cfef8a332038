// SPDX-License-Identifier: Apache-2.0
// 10,000 random small clusters: the checker accepts every plan of every preset, and applying it agrees.
#include "support/plans.hpp"
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/sim/generator.hpp>
#include <gpusched/verify/plan.hpp>

using namespace gpusched;
using testing_support::instances;

TEST_CASE("every plan is valid and reaches the state it claims") {
    using consolidation::Preset;
    std::int64_t vacated = 0, moves = 0, later_waves = 0, restarts = 0, serving = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(10'000); ++seed) {
        Rng rng(seed);
        const auto spec = testing_support::random_cluster(rng, {.budgets = seed % 3 == 2 ? 0.3 : 0,
                                                                .extras = seed % 4 == 3 ? 0.3 : 0,
                                                                .selected = seed % 5 == 2 ? 0.15 : 0});
        const auto cluster = Cluster::build(spec);
        for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
            INFO("seed " << seed << ", preset " << gpusched::enum_name(preset));
            consolidation::Options options;
            options.preset = preset;
            options.seed = seed;
            options.search.partition_size = 4;
            options.search.record_chains = seed % 2 == 1;
            const auto result = consolidation::consolidate(cluster, options);
            const auto plan = to_spec(result.plan, cluster);
            const auto report = testing_support::require_valid(spec, plan);
            REQUIRE(report.vacated_gpus == result.stats.vacated_gpus);
            REQUIRE(report.vacated_nodes == plan.vacated_nodes);
            for (const auto& move : plan.moves) {
                REQUIRE(move.chain.has_value() == options.search.record_chains);
                restarts += move.how == MoveMode::restart ? 1 : 0;
                serving += move.serves.empty() ? 0 : 1;
            }
            const auto after = apply(cluster, result.plan);
            for (const auto node : result.plan.vacated_nodes) REQUIRE(after.occupants(node) == 0);
            vacated += static_cast<std::int64_t>(report.vacated_nodes.size());
            moves += static_cast<std::int64_t>(plan.moves.size());
            later_waves += plan.waves > 1 ? 1 : 0;
        }
    }
    // Enough happens for the above to mean something.
    REQUIRE(vacated > instances(5'000));
    REQUIRE(moves > vacated);
    REQUIRE(later_waves > instances(100));
    REQUIRE(restarts > instances(500));
    REQUIRE(serving > instances(2'000));
}

TEST_CASE("plans keep to the options") {
    using consolidation::Preset;
    std::int64_t vacated = 0, cleared = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(8'000); ++seed) {
        Rng rng = Rng(seed).split(1);
        const auto spec = testing_support::random_cluster(rng, {.budgets = seed % 3 == 2 ? 0.3 : 0,
                                                                .extras = seed % 4 == 3 ? 0.3 : 0,
                                                                .selected = seed % 5 == 2 ? 0.15 : 0});
        const auto cluster = Cluster::build(spec);
        consolidation::Options options;
        options.preset =
            rng.pick(std::span<const Preset>(std::array{Preset::ipc, Preset::fast, Preset::best}));
        options.seed = seed;
        std::vector<NodeId> clear;
        for (const auto node : cluster.nodes()) {
            if (rng.chance(0.4)) clear.push_back(node);
            if (clear.empty() && rng.chance(0.2)) options.exempt.push_back(node);
        }
        if (rng.chance(0.7)) options.clear = std::move(clear);
        if (rng.chance(0.4)) options.limits.max_disrupted = rng.between(1, 2);
        if (rng.chance(0.3)) options.max_moves = rng.between(0, 6);
        if (rng.chance(0.2)) options.limits.max_moves_per_wave = rng.between(1, 3);
        if (rng.chance(0.2)) options.limits.max_moves_per_node = rng.between(1, 2);
        INFO("seed " << seed);
        const auto result = consolidation::consolidate(cluster, options);
        testing_support::require_valid(spec, cluster, result.plan);
        REQUIRE(result.stats.vacated_nodes <= result.plan.bound.vacated_nodes_at_most);
        REQUIRE(result.stats.vacated_gpus <= result.plan.bound.vacated_gpus_at_most);
        const auto is_in = [](const auto& list, NodeId node) {
            return std::find(list.begin(), list.end(), node) != list.end();
        };
        if (options.clear)
            for (const auto node : result.plan.vacated_nodes) REQUIRE(is_in(*options.clear, node));
        for (const auto& move : result.plan.moves) {
            REQUIRE(!is_in(options.exempt, move.from));
            REQUIRE(!is_in(options.exempt, move.to));
        }
        if (options.max_moves)
            REQUIRE(static_cast<std::int64_t>(result.plan.moves.size()) <= *options.max_moves);
        vacated += result.stats.vacated_nodes;
        cleared += !options.clear ? 0 : result.stats.vacated_nodes;
    }
    REQUIRE(vacated > instances(2'000));
    REQUIRE(cleared > instances(500));
}

namespace plans_tests {

/// A snapshot and a valid plan with at least one move, to be spoiled.
struct Case {
    ClusterSpec snapshot;
    PlanSpec plan;
    Rng rng;

    PlanSpec::Move& move() { return plan.moves[static_cast<std::size_t>(rng.below(plan.moves.size()))]; }
    TaskSpec& task(const std::string& name) {
        return *std::find_if(snapshot.tasks.begin(), snapshot.tasks.end(),
                             [&](const auto& t) { return t.name == name; });
    }
    NodeSpec& node(const std::string& name) {
        return *std::find_if(snapshot.nodes.begin(), snapshot.nodes.end(),
                             [&](const auto& n) { return n.name == name; });
    }
    bool occupied(const std::string& node) const {
        return std::any_of(snapshot.tasks.begin(), snapshot.tasks.end(),
                           [&](const auto& t) { return t.node == node && !t.daemon; });
    }
    /// A task that is where the move leads, and stays there.
    TaskSpec* neighbour(const PlanSpec::Move& m) {
        for (auto& t : snapshot.tasks)
            if (t.node == m.to && std::none_of(plan.moves.begin(), plan.moves.end(),
                                               [&](const auto& move) { return move.task == t.name; }))
                return &t;
        return nullptr;
    }
    bool vacated(const std::string& node) const {
        return std::count(plan.vacated_nodes.begin(), plan.vacated_nodes.end(), node) > 0;
    }
};

/// Makes a plan surely wrong, or leaves the case alone if that is impossible for this plan.
struct Spoiler {
    const char* name;
    void (*spoil)(Case&);
    const char* expected;  ///< part of some violation
};

const Spoiler spoilers[] = {
    {"wrong source",
     [](Case& c) {
         auto& m = c.move();
         m.from = m.to;
     },
     "from: the task is on"},
    {"no way to go",
     [](Case& c) {
         auto& m = c.move();
         m.to = m.from;
     },
     "to: the task is there already"},
    {"unknown task", [](Case& c) { c.move().task = "nobody"; }, "unknown task"},
    {"unknown destination", [](Case& c) { c.move().to = "nowhere"; }, "to: unknown node"},
    {"one GPU too many",
     [](Case& c) {
         auto& m = c.move();
         for (int g = 0; g < c.node(m.to).gpu_count; ++g)
             if (std::count(m.gpus.begin(), m.gpus.end(), g) == 0) return m.gpus.push_back(g);
     },
     "but the task asks for"},
    {"one GPU missing",
     [](Case& c) {
         auto& m = c.move();
         if (!m.gpus.empty()) m.gpus.pop_back();
     },
     "but the task asks for"},
    {"a GPU that is not there",
     [](Case& c) {
         auto& m = c.move();
         if (!m.gpus.empty()) m.gpus[0] = 64;
     },
     "gpus: names GPU 64"},
    {"a GPU twice",
     [](Case& c) {
         auto& m = c.move();
         if (!m.gpus.empty()) m.gpus.push_back(m.gpus[0]);
     },
     "twice"},
    {"a failed GPU",
     [](Case& c) {
         auto& m = c.move();
         if (!m.gpus.empty()) c.node(m.to).failed_gpus.push_back(m.gpus[0]);
     },
     "has failed"},
    {"a resource that the destination lacks",
     [](Case& c) {
         for (const auto& m : c.plan.moves)
             for (const auto& [name, amount] : c.task(m.task).resources)
                 if (amount > 0) return void(c.node(m.to).resources[name] = 0);
     },
     "resource '"},
    {"devices of another class",
     [](Case& c) {
         for (const auto& m : c.plan.moves)
             if (c.task(m.task).device_count > 0) return void(c.task(m.task).device_classes = {"other"});
     },
     "devices: names"},
    {"a device that another task holds",
     [](Case& c) {
         for (auto& m : c.plan.moves)
             for (const auto& other : c.snapshot.tasks)
                 if (c.task(m.task).device_count > 0 && other.device_count > 0 && other.node == m.to &&
                     std::none_of(c.plan.moves.begin(), c.plan.moves.end(),
                                  [&](const auto& move) { return move.task == other.name; }))
                     return void(m.gpus.back() = other.gpus.back());
     },
     "is held by another task"},
    {"a node that the affinity excludes",
     [](Case& c) {
         const auto& m = c.move();
         c.task(m.task).node_affinity = {{{}, {{"metadata.name", MatchOperator::not_in, {m.to}}}}};
     },
     "node affinity: the node satisfies none"},
    {"a task that it avoids",
     [](Case& c) {
         auto& m = c.move();
         auto* other = c.neighbour(m);
         if (other == nullptr) return;
         c.task(m.task).avoid.push_back({"spoiled", node_level});
         other->groups.push_back("spoiled");
     },
     "pod anti-affinity: members of group 'spoiled'"},
    {"a task that avoids it",
     [](Case& c) {
         auto& m = c.move();
         auto* other = c.neighbour(m);
         if (other == nullptr) return;
         c.task(m.task).groups.push_back("spoiled");
         other->avoid.push_back({"spoiled", node_level});
     },
     "pod anti-affinity: a task that avoids group 'spoiled'"},
    {"nobody that it wants near",
     [](Case& c) {
         c.task(c.move().task).near.push_back({"spoiled", node_level});
     },
     "pod affinity: no member of group"},
    {"near, at a level that no node has",
     [](Case& c) {
         c.snapshot.label_levels.push_back("spoiled");
         const auto level = first_label_level + static_cast<Level>(c.snapshot.label_levels.size()) - 1;
         auto& task = c.task(c.move().task);
         task.near = {{"spoiled", level}};
         task.groups.push_back("spoiled");
     },
     "pod affinity: the node has no domain at label 'spoiled'"},
    {"one member too many",
     [](Case& c) {
         auto& m = c.move();
         auto* other = c.neighbour(m);
         if (other == nullptr) return;
         auto& task = c.task(m.task);
         task.node_selector.clear();
         task.node_affinity.clear();
         task.spread = {{.group = "spoiled"}};
         task.groups.push_back("spoiled");
         other->groups.push_back("spoiled");
     },
     "topology spread: its domain at node would hold 2 members of group 'spoiled', another 0"},
    {"spread, at a level that no node has",
     [](Case& c) {
         c.snapshot.label_levels.push_back("spoiled");
         const auto level = first_label_level + static_cast<Level>(c.snapshot.label_levels.size()) - 1;
         c.task(c.move().task).spread = {{.group = "spoiled", .level = level}};
     },
     "topology spread: the node has no domain at label 'spoiled'"},
    {"the same move again",
     [](Case& c) {
         auto m = c.move();
         c.plan.moves.push_back(m);
     },
     "a second time in this wave"},
    {"a wave too late", [](Case& c) { c.move().wave = c.plan.waves; }, "wave: the plan has waves"},
    {"an empty wave", [](Case& c) { ++c.plan.waves; }, "no moves"},
    {"a vacated node hidden",
     [](Case& c) {
         if (!c.plan.vacated_nodes.empty()) c.plan.vacated_nodes.pop_back();
     },
     "is vacated, but not listed"},
    {"a vacated node made up",
     [](Case& c) {
         for (const auto& n : c.snapshot.nodes)
             if (!c.vacated(n.name)) return c.plan.vacated_nodes.push_back(n.name);
     },
     "vacated_nodes: node"},
    {"into a vacated node",
     [](Case& c) {
         auto& m = c.move();
         for (const auto& n : c.plan.vacated_nodes)
             if (n != m.from) return m.to = n, m.gpus.clear();
     },
     "to: the node is one of vacated_nodes"},
    {"into an empty node",
     [](Case& c) {
         auto& m = c.move();
         for (const auto& n : c.snapshot.nodes)
             if (!c.occupied(n.name) && n.name != m.from) return m.to = n.name, m.gpus.clear();
     },
     "to: the node was empty before the plan"},
    {"a locked task", [](Case& c) { c.task(c.move().task).locked = true; }, "locked: the task must stay"},
    {"a cordoned destination", [](Case& c) { c.node(c.move().to).schedulable = false; }, "cordoned"},
    {"a tainted destination",
     [](Case& c) {
         auto& m = c.move();
         c.task(m.task).tolerations.clear();
         c.node(m.to).taints.push_back({"spoiled", "", "NoSchedule"});
     },
     "taint: spoiled"},
    {"a label that no node has", [](Case& c) { c.task(c.move().task).node_selector["spoiled"] = ""; },
     "node selector"},
    {"a model that no node has", [](Case& c) { c.task(c.move().task).gpu_models = {"spoiled"}; },
     "GPU model"},
    {"memory that is taken",
     [](Case& c) {
         auto& m = c.move();
         if (c.task(m.task).memory_mib == 0) return;
         c.node(m.to).memory_mib = c.task(m.task).memory_mib - 1;
     },
     "memory_mib: needs"},
    {"cores that are taken",
     [](Case& c) {
         auto& m = c.move();
         if (c.task(m.task).cpu_milli == 0) return;
         c.node(m.to).cpu_milli = c.task(m.task).cpu_milli - 1;
     },
     "cpu_milli: needs"},
    {"a limit of none on a job",
     [](Case& c) {
         auto& t = c.task(c.move().task);
         if (t.job.empty()) return;
         std::erase_if(c.snapshot.jobs, [&](const auto& j) { return j.name == t.job; });
         c.snapshot.jobs.push_back({t.job, 0, 0});
     },
     "max_disrupted"},
    {"an eviction of what must stay",
     [](Case& c) {
         for (const auto& t : c.snapshot.tasks)
             if (t.locked && t.node) return c.plan.evictions.push_back(t.name);
     },
     "locked: the task must stay"},
    {"a copy of a task that restarts",
     [](Case& c) {
         for (auto& m : c.plan.moves)
             if (m.how == MoveMode::restart) return void(m.how = MoveMode::copy);
     },
     "how: is copy, but the task can move by"},
    {"a restart of a task that is copied",
     [](Case& c) {
         auto& m = c.move();
         if (m.how == MoveMode::copy) m.how = MoveMode::restart;
     },
     "how: is restart, but the task can move by copy"},
    {"a task that never moves", [](Case& c) { c.task(c.move().task).how = Mobility::none; },
     "how: the task never moves"},
    {"a budget that allows none",
     [](Case& c) {
         for (const auto& m : c.plan.moves)
             if (m.how == MoveMode::restart)
                 return c.snapshot.budgets.push_back({"spoiled", {m.task}, {}, 3, true});
     },
     " of 'spoiled' would be down, 0 may be"},
    {"a budget that allows one less",
     [](Case& c) {
         std::map<std::int64_t, std::int64_t> down;  // by wave
         BudgetSpec budget{.name = "spoiled"};
         for (const auto& m : c.plan.moves) {
             if (m.how != MoveMode::restart) continue;
             if (std::count(budget.tasks.begin(), budget.tasks.end(), m.task) == 0)
                 budget.tasks.push_back(m.task);
             budget.allowed_down = std::max(budget.allowed_down, ++down[m.wave] - 1);
         }
         if (!budget.tasks.empty()) c.snapshot.budgets.push_back(budget);
     },
     " of 'spoiled' would be down, "},
    {"for a node that is not vacated",
     [](Case& c) {
         auto& m = c.move();
         if (!c.vacated(m.to)) m.serves = m.to;
     },
     "is none of vacated_nodes"},
    {"a chain of two nodes",
     [](Case& c) {
         for (auto& m : c.plan.moves)
             for (const auto& other : c.plan.moves)
                 if (other.chain == m.chain && &other != &m) return void(m.serves = m.from + " and others");
     },
     "move of chain"},
    {"an opened node that was in use", [](Case& c) { c.plan.opened_nodes.push_back(c.move().to); },
     "held tasks other than daemons from the start"},
    {"a bound that is beaten",
     [](Case& c) {
         if (!c.plan.vacated_nodes.empty())
             c.plan.bound = {0, static_cast<std::int64_t>(c.plan.vacated_nodes.size()) - 1, 1'000,
                             "counting"};
     },
     "bound: vacated_nodes_at_most"},
};

TEST_CASE("valid plans that were spoiled are rejected, with the reason") {
    std::map<std::string, int> rejected;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(6'000); ++seed) {
        Rng rng(seed);
        Case valid{testing_support::random_cluster(rng, {.budgets = seed % 4 >= 2 ? 0.3 : 0,
                                                         .extras = seed % 2 == 1 ? 0.3 : 0,
                                                         .selected = seed % 3 == 1 ? 0.1 : 0}),
                   {},
                   rng};
        const auto cluster = Cluster::build(valid.snapshot);
        consolidation::Options options;
        options.preset = consolidation::Preset::fast;
        options.search.record_chains = true;
        valid.plan = to_spec(consolidation::consolidate(cluster, options).plan, cluster);
        if (valid.plan.moves.empty()) continue;
        for (const auto& spoiler : spoilers) {
            auto spoiled = valid;
            spoiler.spoil(spoiled);
            if (spoiled.snapshot == valid.snapshot && spoiled.plan == valid.plan) continue;
            const auto report = verify::plan(spoiled.snapshot, spoiled.plan);
            INFO("seed " << seed << ": " << spoiler.name);
            REQUIRE_FALSE(report.ok);
            REQUIRE(
                std::any_of(report.violations.begin(), report.violations.end(), [&](const std::string& v) {
                    return v.find(spoiler.expected) != std::string::npos;
                }));
            ++rejected[spoiler.name];
        }
    }
    for (const auto& spoiler : spoilers) {
        INFO(spoiler.name);
        CHECK(rejected[spoiler.name] >= instances(20));
    }
}

TEST_CASE("moves to a given state are ordered into a valid plan, with hops if they wait in a circle") {
    constexpr testing_support::RandomClusterOptions crowded{.min_nodes = 3,
                                                            .max_nodes = 6,
                                                            .min_tasks = 10,
                                                            .max_tasks = 24,
                                                            .max_gpus = 8,
                                                            .pending = 0,
                                                            .messy = 0,
                                                            .immovable = 0.1,
                                                            .grouped = 0.08,
                                                            .picky = 0.05};
    std::int64_t hops = 0, dropped = 0, ordered = 0, refilled = 0;
    for (std::uint64_t seed = 0; seed < 9'000; ++seed) {
        Rng rng = Rng(seed).split(2);
        auto how = crowded;
        if (seed % 5 == 4) how.extras = 0.2;
        if (seed % 3 == 2) how.budgets = 0.3;
        if (seed % 5 == 3) how.selected = 0.1;
        const auto spec = testing_support::random_cluster(rng, how);
        const auto cluster = Cluster::build(spec);
        // Tasks change places one after another, through states in between that no plan needs to pass.
        auto after = cluster;
        std::vector<consolidation::Step> steps;
        for (int attempt = 0; attempt < 120 && cluster.task_count() > 0; ++attempt) {
            const auto task = make_id<TaskId>(rng.below(cluster.task_count()));
            const auto to = make_id<NodeId>(rng.below(cluster.node_count()));
            if (!after.is_placed(task) || !after.is_movable(task) || cluster.occupants(to) == 0 ||
                after.node_of(task) == to || find_obstacle(after, task, to) != Obstacle::none)
                continue;
            const auto from = after.node_of(task);
            const auto gpus = allocation::TightestGpu{}(after, task, to) | free_devices_for(after, task, to);
            after.assign(task, to, gpus);
            steps.push_back({task, from, to, gpus, static_cast<std::uint32_t>(steps.size() / 2)});
        }
        // Some nodes must not be empty in the end.
        std::vector<std::uint8_t> may_vacate;
        if (seed % 2 == 1)
            for (std::size_t n = 0; n < cluster.node_count(); ++n)
                may_vacate.push_back(after.occupants(make_id<NodeId>(n)) == 0 || rng.chance(0.3));
        const auto order = consolidation::order_into_waves(
            cluster, steps, std::vector<std::uint8_t>(cluster.node_count()), {}, may_vacate);
        for (const auto node : cluster.nodes())
            if (cluster.occupants(node) > 0 && !may_vacate.empty() && !may_vacate[index(node)])
                REQUIRE(order.after.occupants(node) > 0);
        auto now = cluster;
        for (std::size_t first = 0, last; first < order.moves.size(); first = last) {
            for (last = first; last < order.moves.size() && order.moves[last].wave == order.moves[first].wave;
                 ++last)
                refilled += now.occupants(order.moves[last].to) == 0 ? 1 : 0;
            for (auto i = first; i < last; ++i)
                now.assign(order.moves[i].task, order.moves[i].to, order.moves[i].gpus);
        }
        Plan plan;
        plan.waves = order.waves;
        plan.moves = order.moves;
        for (const auto node : cluster.nodes())
            if (cluster.occupants(node) > 0 && order.after.occupants(node) == 0)
                plan.vacated_nodes.push_back(node);
        INFO("seed " << seed);
        testing_support::require_valid(spec, cluster, plan);
        hops += order.hops;
        dropped += order.dropped_chains;
        ordered += static_cast<std::int64_t>(order.moves.size());
    }
    CAPTURE(hops, dropped, ordered, refilled);
    REQUIRE(refilled > 50);
    REQUIRE(hops > 100);
    REQUIRE(dropped > 100);
    REQUIRE(ordered > 5'000);
}

TEST_CASE("a search may run out of time at any look at the clock") {
    const auto spec = sim::generate_cluster({.nodes = 300, .seed = 1});
    const auto cluster = Cluster::build(spec);
    for (std::int64_t looks = 1; looks < instances<std::int64_t>(12'000); looks += 37) {
        INFO(looks);
        ManualClock clock(1000);  // every look at the clock takes a microsecond
        const auto result = consolidation::consolidate(
            cluster, {.threads = 1, .time_limit = static_cast<double>(looks) * 1e-6}, {.clock = &clock});
        REQUIRE(verify::plan(spec, to_spec(result.plan, cluster)).ok);
    }
}

}  // namespace plans_tests

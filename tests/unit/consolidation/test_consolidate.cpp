// SPDX-License-Identifier: Apache-2.0
#include "example_clusters.hpp"

using namespace testing_support;
using con::Preset;

namespace {

con::Result run(const ClusterSpec& spec, con::Options options = {}, const Context& context = {}) {
    const auto cluster = Cluster::build(spec);
    auto result = con::consolidate(cluster, options, context);
    const auto report = check(spec, cluster, result.plan);
    INFO((report.ok ? "" : report.violations.front()));
    REQUIRE(report.ok);
    REQUIRE(static_cast<std::int64_t>(report.vacated_nodes.size()) == result.stats.vacated_nodes);
    REQUIRE(report.vacated_gpus == result.stats.vacated_gpus);
    return result;
}

}  // namespace

TEST_CASE("figure 15 takes three nested moves") {
    const auto preset = GENERATE(Preset::ipc, Preset::best);
    const auto cluster = Cluster::build(figure_15());
    const auto result = run(figure_15(), {.preset = preset, .search = {.depth = 3}});
    REQUIRE(result.plan.vacated_nodes == std::vector{cluster.find_node("node-0")});
    REQUIRE(result.plan.moves.size() == 3);
    REQUIRE(result.plan.waves == 3);
    const auto& moves = result.plan.moves;
    CHECK(cluster.name(moves[0].task) == "job-7");
    CHECK(cluster.name(moves[1].task) == "job-3");
    CHECK(cluster.name(moves[2].task) == "job-1");
    CHECK(cluster.name(moves[0].to) == "node-3");
    CHECK(cluster.name(moves[1].to) == "node-2");
    CHECK(cluster.name(moves[2].to) == "node-1");
    CHECK(result.plan.bound.vacated_nodes_at_most == 1);
    CHECK(result.plan.bound.vacated_gpus_at_most == 4);

    CHECK(run(figure_15(), {.preset = preset, .search = {.depth = 2}}).plan.moves.empty());
    CHECK(run(figure_15(), {.preset = preset, .search = {.depth = 1}}).plan.moves.empty());
}

TEST_CASE("snapshots with nothing to gain give empty plans") {
    const auto preset = GENERATE(Preset::ipc, Preset::fast, Preset::best);
    const con::Options options{.preset = preset};
    SECTION("empty snapshot") {
        const auto result = run({}, options);
        CHECK(result.plan.moves.empty());
        CHECK(result.stop_reason == StopReason::completed);
        CHECK(result.stats.first_wave_share() == 1.0);
    }
    SECTION("nodes without tasks") {
        ClusterSpec spec{.nodes = {node("a"), node("b")}};
        const auto result = run(spec, options);
        CHECK(result.plan.vacated_nodes.empty());
        CHECK(result.plan.bound.vacated_nodes_at_most == 0);
        CHECK(result.stats.not_fully_occupied_before == 0);
    }
    SECTION("all locked") {
        ClusterSpec spec{.nodes = {node("a"), node("b")},
                         .tasks = {task("x", "a", {0}, true), task("y", "b", {0}, true)}};
        const auto result = run(spec, options);
        CHECK(result.plan.moves.empty());
        CHECK(result.plan.bound.occupied_nodes_at_least == 2);
        CHECK(result.stats.not_fully_occupied_before == 2);
        CHECK(result.stats.nodes_tried == 0);
    }
    SECTION("one node") {
        CHECK(run({.nodes = {node("a")}, .tasks = {task("x", "a", {0})}}, options).plan.moves.empty());
    }
    SECTION("a task that fits nowhere else") {
        ClusterSpec spec{.nodes = {node("a", 8), node("b", 2)},
                         .tasks = {task("wide", "a", {0, 1, 2, 3}), task("locked", "b", {0}, true)}};
        CHECK(run(spec, options).plan.moves.empty());
    }
    SECTION("never onto an empty node") {
        ClusterSpec spec{.nodes = {node("a"), node("b")}, .tasks = {task("x", "a", {0})}};
        CHECK(run(spec, options).plan.moves.empty());
    }
}

TEST_CASE("a task moves off an otherwise unused node") {
    ClusterSpec spec{.nodes = {node("a"), node("b")},
                     .tasks = {task("x", "a", {5}), task("y", "b", {0}, true)}};
    const auto preset = GENERATE(Preset::ipc, Preset::fast, Preset::best);
    const auto result = run(spec, {.preset = preset});
    REQUIRE(result.plan.moves.size() == 1);
    CHECK(result.stats.vacated_gpus == 8);
    CHECK(result.stats.disturbed_jobs == 1);
    CHECK(result.stats.move_cost == 1);
    CHECK(result.stats.first_wave_moves == 1);
    CHECK(result.stats.not_fully_occupied_before == 2);
    CHECK(result.stats.not_fully_occupied_after == 1);
    CHECK(result.stats.rounds.front().vacated_nodes == 1);
}

TEST_CASE("a node that could not be vacated is a destination for the tasks of the next one") {
    const auto options = GENERATE(con::Options{.preset = Preset::ipc}, con::Options{.preset = Preset::fast},
                                  con::Options{.max_moves = 5}, con::Options{.max_move_cost = 5});
    // "large" is tried first, and "small" has no room for its task. A task like it then goes from "small" to "large".
    ClusterSpec spec;
    spec.nodes = {node("large", 4), node("small", 1)};
    spec.tasks = {task("a", "large", {0}), task("b", "small", {0})};
    const auto result = run(spec, options);
    const auto cluster = Cluster::build(spec);
    CHECK(result.plan.vacated_nodes == std::vector{cluster.find_node("small")});
    CHECK(result.plan.moves.size() == 1);
}

TEST_CASE("the objective decides which nodes are worth more") {
    // Room for one task: of the 8-GPU node or of one of 2 GPUs.
    ClusterSpec spec{.nodes = {node("big", 8), node("small", 2), node("host", 2)},
                     .tasks = {task("x", "big", {0}), task("y", "small", {0}), task("l", "host", {0}, true)}};
    spec.nodes[1].cpu_milli = 1000;  // nothing more fits on small
    const auto cluster = Cluster::build(spec);
    const auto gpus = run(spec, {.objective = con::Objective::gpus});
    CHECK(gpus.plan.vacated_nodes == std::vector{cluster.find_node("big")});
}

TEST_CASE("daemons do not move and do not keep a node occupied") {
    ClusterSpec spec{.nodes = {node("a"), node("b")},
                     .tasks = {task("x", "a", {0}), task("y", "b", {0}, true)}};
    TaskSpec daemon{.name = "agent", .cpu_milli = 500, .daemon = true, .node = "a"};
    spec.tasks.push_back(daemon);
    CHECK(run(spec).stats.vacated_nodes == 1);
}

TEST_CASE("the plan does not depend on the number of threads") {
    const auto spec = generated();
    const auto cluster = Cluster::build(spec);
    for (const auto preset : {Preset::ipc, Preset::fast, Preset::best}) {
        const auto one = con::consolidate(cluster, {.preset = preset, .threads = 1});
        REQUIRE(one.stats.vacated_nodes > 10);
        for (const std::size_t threads : {2u, 8u}) {
            const auto several = con::consolidate(cluster, {.preset = preset, .threads = threads});
            CHECK(several.plan == one.plan);
            CHECK(several.stats == one.stats);
        }
        SerialExecutor serial;
        CHECK(con::consolidate(cluster, {.preset = preset}, {.executor = serial}).plan == one.plan);
        CHECK(check(spec, cluster, one.plan).ok);
    }
    const auto a = con::consolidate(cluster, {.preset = Preset::ipc, .seed = 1});
    const auto b = con::consolidate(cluster, {.preset = Preset::ipc, .seed = 2});
    CHECK(a.plan != b.plan);
}

TEST_CASE("our presets vacate more than the paper's, with fewer moves each") {
    const auto spec = generated(3000, 3);
    const auto ipc = run(spec, {.preset = Preset::ipc});
    const auto fast = run(spec, {.preset = Preset::fast});
    const auto best =
        run(spec, {.preset = Preset::best, .search = {.bound_method = con::BoundMethod::counting}});
    CHECK(fast.stats.vacated_nodes > ipc.stats.vacated_nodes);
    CHECK(best.stats.vacated_gpus >= fast.stats.vacated_gpus);
    CHECK(fast.stats.moves_per_vacated_node() < ipc.stats.moves_per_vacated_node());
    CHECK(best.stats.vacated_nodes <= best.plan.bound.vacated_nodes_at_most);
    CHECK(best.stats.vacated_gpus <= best.plan.bound.vacated_gpus_at_most);
    CHECK(static_cast<double>(best.stats.vacated_gpus) >
          0.95 * static_cast<double>(best.plan.bound.vacated_gpus_at_most));
    // Counters stay far from (nodes x requests).
    CHECK(fast.stats.nodes_tried <= 2 * 3000);
    CHECK(fast.stats.destinations_scanned < 1'000'000);
    CHECK(best.stats.destinations_scanned < 10'000'000);
}

TEST_CASE("time limits and cancellation end the search with a valid plan") {
    const auto spec = generated();
    SECTION("no time at all") {
        const auto result = run(spec, {.time_limit = 0.0});
        CHECK(result.stop_reason == StopReason::time_limit);
        CHECK(result.plan.moves.empty());
    }
    SECTION("some time") {
        ManualClock clock(1000);  // every look at the clock takes a microsecond
        const auto full = run(spec, {.preset = Preset::fast, .threads = 1});
        const auto result =
            run(spec, {.preset = Preset::fast, .threads = 1, .time_limit = 300e-6}, {.clock = &clock});
        CHECK(result.stop_reason == StopReason::time_limit);
        CHECK(result.stats.vacated_nodes < full.stats.vacated_nodes);
        CHECK(result.stats.vacated_nodes > 0);
    }
    SECTION("some time, most of it for polishing") {
        ManualClock clock(1000);
        const auto began = clock.now_ns();
        const auto result = run(
            spec, {.preset = Preset::fast, .threads = 1, .time_limit = 0.05, .search = {.polish_time = 10.0}},
            {.clock = &clock});
        CHECK(result.stop_reason == StopReason::time_limit);
        CHECK(clock.now_ns() - began < 60'000'000);
    }
    SECTION("cancelled before it began") {
        std::stop_source stop;
        stop.request_stop();
        const auto result = run(spec, {}, {.stop = stop.get_token()});
        CHECK(result.stop_reason == StopReason::cancelled);
        CHECK(result.plan.moves.empty());
    }
    SECTION("cancelled by the progress hook") {
        ManualClock clock(1'000'000);
        std::stop_source stop;
        int calls = 0;
        const auto result = run(spec, {.threads = 1},
                                {.stop = stop.get_token(), .clock = &clock, .progress = [&](const Progress&) {
                                     if (++calls == 3) stop.request_stop();
                                 }});
        CHECK(result.stop_reason == StopReason::cancelled);
        CHECK(calls >= 3);
    }
}

TEST_CASE("a migration budget buys the cheapest gains and is never exceeded") {
    const auto spec = generated();
    const auto full = run(spec);
    std::int64_t last = 0;
    for (const std::int64_t budget : {0, 1, 5, 20, 60}) {
        const auto result = run(spec, {.max_moves = budget});
        CHECK(result.stats.moves <= budget);
        CHECK(result.stop_reason == StopReason::move_budget);
        CHECK(result.stats.vacated_gpus >= last);
        last = result.stats.vacated_gpus;
    }
    CHECK(last > 0);
    CHECK(last < full.stats.vacated_gpus);
    auto dear = spec;
    for (auto& t : dear.tasks) t.move_cost = 10;
    CHECK(run(dear, {.max_move_cost = 55}).stats.moves <= 5);
    CHECK(run(spec, {.preset = Preset::fast, .max_moves = 1'000'000}).plan.vacated_nodes ==
          run(spec, {.preset = Preset::fast}).plan.vacated_nodes);
}

TEST_CASE("limits per wave, per node and per job hold") {
    auto spec = generated();
    const con::Options options{
        .limits = {.max_disrupted = 1, .max_moves_per_wave = 7, .max_moves_per_node = 1}};
    const auto cluster = Cluster::build(spec);
    const auto result = run(spec, options);
    REQUIRE(result.plan.waves > 1);
    std::vector<int> in_wave(result.plan.waves);
    std::map<std::pair<std::uint32_t, NodeId>, int> on_node;
    std::map<std::pair<std::uint32_t, JobId>, int> of_job;
    for (const auto& move : result.plan.moves) {
        CHECK(++in_wave[move.wave] <= 7);
        CHECK(++on_node[{move.wave, move.from}] <= 1);
        CHECK(++on_node[{move.wave, move.to}] <= 1);
        const auto job = cluster.inventory().tasks.job[index(move.task)];
        if (job != none<JobId>) CHECK(++of_job[{move.wave, job}] <= 1);
    }
    CHECK(result.stats.vacated_nodes > 10);
    CHECK(run(spec, {.limits = {.max_disrupted = 0}}).plan.moves.empty());
}

TEST_CASE("only surplus members move when core members are protected") {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                     .tasks = {task("m0", "a", {0}), task("m1", "b", {0}), task("l", "c", {0}, true)},
                     .jobs = {{"gang", 1, {}}}};
    spec.tasks[0].job = spec.tasks[1].job = "gang";
    CHECK(run(spec).stats.vacated_nodes == 2);
    const auto guarded = run(spec, {.protect_core_members = true});
    REQUIRE(guarded.plan.moves.size() == 1);
    CHECK(guarded.plan.moves[0].task == Cluster::build(spec).find_task("m1"));
    spec.jobs[0].min_members = 2;
    CHECK(run(spec, {.protect_core_members = true}).plan.moves.empty());
}

TEST_CASE("core members are first those that subgroups need") {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c"), node("d")},
                     .tasks = {task("m0", "a", {0}), task("m1", "b", {0}), task("m2", "d", {0}),
                               task("l", "c", {0}, true)},
                     .jobs = {{"gang", 1, {}}}};
    for (int i = 0; i < 3; ++i) spec.tasks[static_cast<std::size_t>(i)].job = "gang";
    spec.jobs[0].subgroups = {{"s", 1}};
    spec.tasks[1].subgroup = spec.tasks[2].subgroup = "s";
    const auto stays = [&] {
        std::vector<std::string> names{"m0", "m1", "m2"};
        const auto cluster = Cluster::build(spec);
        for (const auto& move : run(spec, {.protect_core_members = true}).plan.moves)
            std::erase(names, cluster.name(move.task));
        return names;
    };
    CHECK(stays() == std::vector<std::string>{"m1"});
    spec.jobs[0].min_members = 2;
    CHECK(stays() == std::vector<std::string>{"m0", "m1"});
    spec.tasks[2].locked = true;  // it counts towards the core first
    CHECK(stays() == std::vector<std::string>{"m0", "m2"});
}

TEST_CASE("a node that runs empty takes the task of a node to be cleared") {
    // x fits on no node until y and z have left b, and nothing may move onto d.
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c"), node("d")},
                     .tasks = {task("x", "a", {0, 1, 2, 3, 4, 5, 6, 7}), task("y", "b", {0, 1}),
                               task("z", "b", {2}), task("l", "c", {0, 1, 2, 3}, true)}};
    const auto a = Cluster::build(spec).find_node("a"), b = Cluster::build(spec).find_node("b");
    for (const auto preset : {con::Preset::ipc, con::Preset::fast, con::Preset::best}) {
        const auto result = run(spec, {.preset = preset, .clear = std::vector{a}});
        CHECK(result.plan.vacated_nodes == std::vector{a});
        CHECK(result.plan.bound.vacated_nodes_at_most == 1);
        REQUIRE(result.plan.moves.size() == 3);
        CHECK(result.plan.waves == 2);
        CHECK(result.plan.moves.back().to == b);
        // If b may be vacated as well, it is, and stays empty.
        CHECK(run(spec, {.preset = preset}).plan.vacated_nodes == std::vector{b});
    }
}

TEST_CASE("clear vacates the named nodes only, and exempt nodes are left alone") {
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c"), node("d")},
                     .tasks = {task("x", "a", {0}), task("y", "b", {0}), task("z", "c", {0}),
                               task("l", "d", {0, 1, 2, 3, 4, 5}, true)}};
    const auto cluster = Cluster::build(spec);
    const auto a = cluster.find_node("a"), b = cluster.find_node("b"), c = cluster.find_node("c"),
               d = cluster.find_node("d");
    CHECK(run(spec, {.clear = std::vector{b}}).plan.vacated_nodes == std::vector{b});
    const auto cleared = run(spec, {.clear = std::vector{a, b, c}});
    CHECK(cleared.stats.vacated_nodes == 2);  // two idle GPUs on d, and cleared nodes do not receive
    CHECK(cleared.plan.bound.vacated_nodes_at_most >= 2);
    CHECK(run(spec, {.clear = std::vector<NodeId>()}).plan.moves.empty());  // none of no nodes, not any
    const auto spared = run(spec, {.exempt = {d, a}});
    CHECK(spared.stats.vacated_nodes == 1);
    for (const auto& move : spared.plan.moves) CHECK((move.to != d && move.to != a && move.from != a));
}

TEST_CASE("the search counts the reasons for refused moves") {
    // x fits on b except for its cores, and on c except for its memory.
    ClusterSpec spec{.nodes = {node("a"), node("b"), node("c")},
                     .tasks = {task("x", "a", {0}), task("l", "b", {0}, true), task("m", "c", {0}, true)}};
    spec.tasks[0].cpu_milli = spec.tasks[0].memory_mib = 20'000;
    spec.tasks[1].cpu_milli = spec.nodes[1].cpu_milli - 19'000;
    spec.tasks[2].memory_mib = spec.nodes[2].memory_mib - 19'000;
    const auto stats =
        con::consolidate(Cluster::build(spec), {.preset = Preset::ipc, .search = {.rounds = 1}}).stats;
    CHECK(stats.refused_by_cpu >= 1);
    CHECK(stats.refused_by_memory >= 1);
    CHECK(stats.refused_by_gpu == 0);
    CHECK(stats.refused_by_victims >= 2);
    CHECK(con::to_stats(stats).at("refused_by_cpu") == static_cast<double>(stats.refused_by_cpu));

    for (auto& t : spec.tasks) t.anti_affinity.push_back({"apart", node_level, 1});
    const auto apart =
        con::consolidate(Cluster::build(spec), {.preset = Preset::ipc, .search = {.rounds = 1}}).stats;
    CHECK(apart.refused_by_anti_affinity >= 2);

    const auto generated_cluster = Cluster::build(generated());
    con::Options options{.preset = Preset::fast, .search = {.bound_method = con::BoundMethod::none}};
    CHECK(con::consolidate(generated_cluster, options).stats.refused_by_price == 0);
    options.price = 2000;
    CHECK(con::consolidate(generated_cluster, options).stats.refused_by_price > 0);
    options.price = 0;
    options.max_moves = 10;
    const auto limited = con::consolidate(generated_cluster, options);
    CHECK(limited.stats.refused_by_budget > 0);
    CHECK(limited.stats.moves <= 10);
}

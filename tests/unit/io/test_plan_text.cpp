// SPDX-License-Identifier: Apache-2.0
// Plans as tables and as steps for schedulers, against stored texts.
#include "support/catch.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;

namespace plan_text_tests {

std::string golden(const std::string& file) { return read_file(GPUSCHED_TEST_DATA_DIR "/io/" + file); }

PlanSpec plan() {
    return {.waves = 2,
            .moves = {{"web-1", "n0", "n6", {1}, 1},
                      {"ml/train-0", "n0", "n5", {2, 3}, 0},
                      {"cpu-0", "n7", "n6", {}, 1}},
            .vacated_nodes = {"n0"},
            .evictions = {"spot-9"},
            .placements = {{"ml/train-8", "n5", {0}}, {"cpu-1", "n5", {}}}};
}

ClusterSpec cluster() {
    ClusterSpec spec;
    spec.tasks = {{.name = "web-1",
                   .cpu_milli = 500,
                   .memory_mib = 1024,
                   .gpu_count = 1,
                   .gpu_share_milli = 255,
                   .tolerations = {{"dedicated", "Equal", "web: \"front\"", "NoSchedule"}, {.op = "Exists"}}},
                  {.name = "ml/train-0", .cpu_milli = 16000, .memory_mib = 65536, .gpu_count = 2},
                  {.name = "cpu-0", .cpu_milli = 2000, .memory_mib = 4096}};
    return spec;
}

TEST_CASE("A plan as CSV", "[io]") {
    CHECK(io::plan_to_csv(plan()) == golden("plan.csv"));
    PlanSpec odd;
    odd.evictions = {"a,b", "say \"x\"", "two\nlines"};
    CHECK(io::plan_to_csv(odd) == "step,wave,task,from,to,gpus,how,chain,for,namespace,owner_kind,task_gpus\n"
                                  "evict,,\"a,b\",,,,evict,,,,,\n"
                                  "evict,,\"say \"\"x\"\"\",,,,evict,,,,,\n"
                                  "evict,,\"two\nlines\",,,,evict,,,,,\n");
    odd.evictions.clear();
    odd.opened_nodes = {"n7", "n,8"};
    CHECK(io::plan_to_csv(odd) == "step,wave,task,from,to,gpus,how,chain,for,namespace,owner_kind,task_gpus\n"
                                  "open,,,,n7,,,,,,,\n"
                                  "open,,,,\"n,8\",,,,,,,\n");
}

TEST_CASE("The rows of a plan have facts about tasks, if they are known", "[io]") {
    PlanSpec spec{.waves = 1,
                  .moves = {{"ml/a", "n0", "n1", {}, 0}},
                  .evictions = {"b"},
                  .placements = {{"b", "n1", {}}}};
    spec.tasks = {{"b", "", "", 2000}, {"ml/a", "ml/job", "Job", 500}};
    CHECK(io::plan_to_csv(spec) ==
          "step,wave,task,from,to,gpus,how,chain,for,namespace,owner_kind,task_gpus\n"
          "evict,,b,,,,restart,,,,,2\n"
          "move,0,ml/a,n0,n1,,copy,,,ml,Job,0.5\n"
          "place,,b,,n1,,,,,,,2\n");
}

TEST_CASE("A plan as Kubernetes steps", "[io]") {
    const auto script = io::plan_to_kubernetes_steps(plan());
    CHECK(script.starts_with("#!/bin/sh\n"
                             "# A plan: 1 eviction, 3 moves in 2 waves, 2 placements; vacates 1 node.\n"));
    const auto begin = script.find("\nsteps='\n") + 9;
    CHECK(script.substr(begin, script.find("\n'\n", begin) + 1 - begin) == golden("plan_kubernetes.txt"));
    CHECK_THAT(io::plan_to_kubernetes_steps(plan(), {.default_namespace = "gpu"}),
               Catch::Matchers::ContainsSubstring("\nM|gpu/web-1|n0|n6|wave 2"));
    // n2 is closed until all pods have left it; n6 is also moved to.
    const PlanSpec hop{.waves = 2,
                       .moves = {{"a", "n6", "n1", {}, 0}, {"b", "n2", "n6", {}, 1}},
                       .placements = {{"big", "n2", {}}}};
    CHECK_THAT(io::plan_to_kubernetes_steps(hop),
               Catch::Matchers::ContainsSubstring("\nH|n2\nM|default/a|n6|n1|wave 1\n"));
    CHECK_THAT(io::plan_to_kubernetes_steps({}), Catch::Matchers::ContainsSubstring("\nsteps='\n'\n"));
}

TEST_CASE("The script of a plan knows its own marks from those of another plan", "[io]") {
    const auto id = [](const PlanSpec& of) {
        const auto script = io::plan_to_kubernetes_steps(of);
        const auto begin = script.find("\nplan=") + 6;
        return script.substr(begin, script.find('\n', begin) - begin);
    };
    auto other = plan();
    other.moves[0].wave = 0;
    CHECK(id(plan()) == id(plan()));
    CHECK(id(plan()) != id(other));
    CHECK(id(plan()).find_first_not_of("0123456789abcdef") == std::string::npos);
}

/// Jobs 17 (two nodes), 20_4 and 31, which can be requeued, and 30 (heterogeneous) and 5, which cannot.
ClusterSpec slurm_cluster() {
    ClusterSpec spec;
    const auto add = [&](const char* name, const char* node, std::int64_t gpus, Mobility how) {
        TaskSpec task{.name = name, .gpu_count = gpus, .how = how};
        task.node = node;
        spec.tasks.push_back(task);
    };
    add("17/0", "gpu01", 4, Mobility::restart);
    add("17/1", "gpu02", 4, Mobility::restart);
    add("20_4", "gpu01", 2, Mobility::restart);
    add("31", "gpu03", 1, Mobility::restart);
    add("30+0", "gpu03", 1, Mobility::restart);
    add("30+1/0", "gpu04", 0, Mobility::restart);
    add("5", "gpu03", 1, Mobility::none);
    return spec;
}

TEST_CASE("A plan as Slurm steps, of whole jobs and the largest first", "[io]") {
    const PlanSpec plan{.waves = 2,
                        .moves = {{"20_4", "gpu01", "gpu03", {}, 0},
                                  {"17/1", "gpu02", "gpu05", {}, 0},
                                  {"17/0", "gpu01", "gpu04", {}, 1}},
                        .vacated_nodes = {"gpu01"},
                        .evictions = {"31"},
                        .placements = {{"40/0", "gpu01", {}}, {"40/1", "gpu02", {}}, {"31", "gpu05", {}}}};
    CHECK_THAT(io::plan_to_slurm_steps(plan, slurm_cluster()),
               Catch::Matchers::ContainsSubstring("\nsteps='\nV|gpu01\nH|gpu02\nM|17|gpu01,gpu02\n"
                                                  "M|20_4|gpu01\nE|31|gpu03\nW|40\n'\n"));
}

TEST_CASE("A plan that Slurm cannot carry out is an error that names the jobs", "[io]") {
    PlanSpec plan{.waves = 1,
                  .moves = {{"17/0", "gpu01", "gpu03", {}, 0}, {"5", "gpu03", "gpu04", {}, 0}},
                  .vacated_nodes = {"bad node"},
                  .evictions = {"30+0", "99", "ml/web-0"},
                  .placements = {{"pod", "gpu01", {}}}};
    CHECK_THAT(testing_support::problems_in<InvalidInput>(
                   [&] { (void)io::plan_to_slurm_steps(plan, slurm_cluster()); }),
               MentionsEach({"node 'bad node'", "job '17' 1 of its 2 whole jobs", "job '30' heterogeneous",
                             "job '5' cannot be requeued", "unknown task '99'", "unknown task 'ml/web-0'",
                             "task 'ml/web-0' Slurm job", "--exempt gpu01,gpu02", "task 'pod' Slurm job"}));
    const PlanSpec twice{.waves = 2,
                         .moves = {{"20_4", "gpu01", "gpu03", {}, 0}, {"20_4", "gpu03", "gpu04", {}, 1}}};
    CHECK_THROWS_MESSAGE(io::plan_to_slurm_steps(twice, slurm_cluster()), InvalidInput, "job '20_4' once");
}

TEST_CASE("A plan as PodMigrationJobs", "[io]") {
    CHECK(io::plan_to_pod_migration_jobs(plan(), cluster()) == golden("plan_koordinator.yaml"));
    auto without_evictions = plan();
    without_evictions.evictions.clear();
    const auto text = io::plan_to_pod_migration_jobs(without_evictions, cluster());
    CHECK(text.find("paused: false") < text.find("paused: true"));  // wave 0 starts at once
}

TEST_CASE("The fields of a move of version 2 are in every text", "[io]") {
    PlanSpec plan{.waves = 1,
                  .moves = {{"a", "n0", "n1", {}, 0, MoveMode::restart, 7, "n0"}, {"b", "n0", "n1", {}, 0}},
                  .vacated_nodes = {"n0"}};
    CHECK(io::plan_to_csv(plan) ==
          "step,wave,task,from,to,gpus,how,chain,for,namespace,owner_kind,task_gpus\n"
          "move,0,a,n0,n1,,restart,7,n0,,,\n"
          "move,0,b,n0,n1,,copy,,,,,\n"
          "vacate,,,n0,,,,,,,,\n");
    ClusterSpec tasks;
    tasks.tasks = {{.name = "a"}, {.name = "b"}};
    const auto jobs = io::plan_to_pod_migration_jobs(plan, tasks);
    CHECK_THAT(jobs, Catch::Matchers::ContainsSubstring("    gpusched/how: \"restart\"\n"
                                                        "    gpusched/chain: \"7\"\n"
                                                        "    gpusched/for: \"n0\"\n"));
}

TEST_CASE("A reservation requests named resources and devices of the chosen class", "[io]") {
    const PlanSpec plan{.waves = 1, .moves = {{"a", "n0", "n1", {0, 3, 4}, 0}}};
    ClusterSpec cluster;
    cluster.nodes = {{.name = "n1",
                      .gpu_count = 2,
                      .devices = {{.device_class = "nvidia.com/mig-1g.10gb"},
                                  {.device_class = "nvidia.com/mig-2g.20gb", .count = 2}}}};
    cluster.tasks = {{.name = "a",
                      .cpu_milli = 500,
                      .memory_mib = 64,
                      .gpu_count = 1,
                      .resources = {{"pods", 1}, {"rdma/hca", 2}},
                      .device_count = 2,
                      .device_classes = {"nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb"}}};
    const std::string indent(18, ' ');
    const auto requests = [&](const std::string& devices) {
        return indent + "cpu: \"500m\"\n" + indent + "memory: \"64Mi\"\n" + indent + "\"rdma/hca\": \"2\"\n" +
               indent + "\"" + devices + "\": \"2\"\n" + indent + "nvidia.com/gpu: \"1\"\n";
    };
    CHECK_THAT(io::plan_to_pod_migration_jobs(plan, cluster),
               Catch::Matchers::ContainsSubstring(requests("nvidia.com/mig-2g.20gb")));
    cluster.nodes.clear();  // which class is not known: the one that it prefers
    CHECK_THAT(io::plan_to_pod_migration_jobs(plan, cluster),
               Catch::Matchers::ContainsSubstring(requests("nvidia.com/mig-1g.10gb")));
}

TEST_CASE("Names that Kubernetes would not accept are all reported", "[io]") {
    PlanSpec bad{
        .waves = 1,
        .moves = {{"ok", "n0", "N1", {}, 0}, {"a/b/c", "n0", "n1", {}, 0}, {"$(reboot)", "n0", "n1", {}, 0}},
        .vacated_nodes = {"-n"},
        .evictions = {"", "a..b", "a/", "no_underscores", std::string(300, 'a'), "sp.ace/pod"},
        .placements = {{"line\nbreak", "n0", {}}}};
    const auto problems =
        testing_support::problems_in<InvalidInput>([&] { (void)io::plan_to_kubernetes_steps(bad); });
    CHECK(problems.size() == 11);
    for (const auto* name : {"'N1'", "'a/b/c'", "'$(reboot)'", "'-n'", "''", "'a..b'", "'a/'",
                             "'no_underscores'", "'sp.ace/pod'", "'line\\x0abreak'"})
        CHECK(std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
            return testing_support::mentions(problem, name);
        }));
    CHECK_THROWS_MESSAGE(io::plan_to_kubernetes_steps(plan(), {.default_namespace = "a.b"}), InvalidInput,
                         "default_namespace 'a.b'");
}

TEST_CASE("Koordinator options and tasks are checked together", "[io]") {
    auto unknown = plan();
    unknown.moves.push_back({"nobody", "n0", "n1", {}, 0});
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] {
                   (void)io::plan_to_pod_migration_jobs(
                       unknown, cluster(), {.name_prefix = "Bad", .scheduler_name = "", .ttl_s = 0});
               }),
               MentionsEach({"name_prefix 'Bad' Kubernetes 200", "scheduler_name '' Kubernetes", "ttl_s 0 1",
                             "unknown task 'nobody'"}));
}

}  // namespace plan_text_tests

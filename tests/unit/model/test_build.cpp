// SPDX-License-Identifier: Apache-2.0
// Every kind of invalid snapshot is refused with a message that names the culprit, and all problems come at once.
#include "support/catch.hpp"
#include "valid_cluster.hpp"

#include <functional>
#include <string>
#include <vector>

using namespace testing_support;

namespace {

struct Fault {
    std::function<void(ClusterSpec&)> make;
    std::string expected;
};

constexpr std::int64_t huge = 1'000'000'000'001;

const std::vector<Fault>& faults() {
    static const std::vector<Fault> all{
        // Nodes
        {[](auto& s) { s.nodes[1].name = ""; }, "node #1 empty"},
        {[](auto& s) { s.nodes[1].name = "n0"; }, "node 'n0' duplicate"},
        {[](auto& s) { s.nodes[0].gpu_count = 65; }, "node 'n0' gpu_count 65 0 64"},
        {[](auto& s) { s.nodes[0].gpu_count = -1; }, "node 'n0' gpu_count -1 0 64"},
        {[](auto& s) { s.nodes[0].cpu_milli = -1; }, "node 'n0' cpu_milli -1"},
        {[](auto& s) { s.nodes[0].cpu_milli = huge; }, "node 'n0' cpu_milli 1000000000001"},
        {[](auto& s) { s.nodes[0].memory_mib = INT64_MIN; }, "node 'n0' memory_mib -9223372036854775808"},
        {[](auto& s) { s.nodes[0].gpu_memory_mib = -5; }, "node 'n0' gpu_memory_mib -5"},
        {[](auto& s) { s.nodes[0].failed_gpus = {8}; }, "node 'n0' failed_gpus GPU 8"},
        {[](auto& s) { s.nodes[0].failed_gpus = {-1}; }, "node 'n0' failed_gpus GPU -1 8"},
        {[](auto& s) {
             s.nodes[0].taints = {{"", "v", "NoSchedule"}};
         },
         "node 'n0' taint"},
        {[](auto& s) {
             s.nodes[0].taints = {{"k", "v", "Never"}};
         },
         "node 'n0' taint 'k' 'Never'"},
        {[](auto& s) {
             s.nodes[0].network = {"root", ""};
         },
         "node 'n0' network empty domain level 1"},
        {[](auto& s) { s.nodes[0].network.assign(17, "x"); }, "node 'n0' network 17 16"},
        {[](auto& s) {
             s.nodes[1].network = {"other root", "rack of n0"};
         },
         "node 'n1' topology domain 'rack of n0' 'root' 'other root'"},
        {[](auto& s) {
             s.nodes[1].network = {"root", "root"};
         },
         "node 'n1' topology domain 'root' 0 1"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"dgx", {}};
         },
         "node 'n1' hardware preset 'dgx'"},
        {[](auto& s) {
             s.nodes[1].gpu_count = 4;
             s.nodes[1].hardware = Hardware{"a100x8", {}};
         },
         "node 'n1' gpu_count 4 hardware 'a100x8' 8"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{0, 64, 0xFF00}}};
         },
         "node 'n1' gpu_count 8 hardware"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{0, 32, 0x0F}, {1, 32, 0xF8}}};
         },
         "node 'n1' hardware NUMA 1 GPU"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{-1, 64, 0xFF}}};
         },
         "node 'n1' hardware NUMA 0 socket -1 63"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{0, 2'000'000'000, 0x0F}, {0, 2'000'000'000, 0xF0}}};
         },
         "node 'n1' hardware NUMA 1 cores 2000000000"},
        {[](auto& s) {
             s.nodes[1].cpu_milli = 64'001;
             s.nodes[1].hardware = Hardware{"rtx4090x8", {}};
         },
         "node 'n1' cpu_milli 64001 64 cores hardware"},
        {[](auto& s) { s.nodes[1].eviction_count = -1; }, "node 'n1' eviction_count -1"},
        // Tasks
        {[](auto& s) { s.tasks[1].name = ""; }, "task #1 empty"},
        {[](auto& s) { s.tasks[1].name = "t0"; }, "task 't0' duplicate"},
        {[](auto& s) { s.tasks[0].cpu_milli = -1; }, "task 't0' cpu_milli -1"},
        {[](auto& s) { s.tasks[0].cpu_milli = INT64_MAX; }, "task 't0' cpu_milli 9223372036854775807"},
        {[](auto& s) { s.tasks[0].memory_mib = -1; }, "task 't0' memory_mib -1"},
        {[](auto& s) { s.tasks[0].gpu_count = 65; }, "task 't0' gpu_count 65"},
        {[](auto& s) { s.tasks[1].gpu_share_milli = 0; }, "task 't1' gpu_share_milli 0 1 1000"},
        {[](auto& s) { s.tasks[1].gpu_share_milli = 1001; }, "task 't1' gpu_share_milli 1001"},
        {[](auto& s) { s.tasks[0].gpu_share_milli = 500; }, "task 't0' gpu_share_milli 500 gpu_count 1 2"},
        {[](auto& s) { s.tasks[0].gpu_memory_mib = -1; }, "task 't0' gpu_memory_mib -1"},
        {[](auto& s) { s.tasks[0].priority = huge; }, "task 't0' priority "},
        {[](auto& s) { s.tasks[0].move_cost = -1; }, "task 't0' move_cost -1"},
        {[](auto& s) { s.tasks[0].start_time = -huge; }, "task 't0' start_time "},
        {[](auto& s) { s.tasks[0].last_checkpoint_time = huge; }, "task 't0' last_checkpoint_time "},
        {[](auto& s) { s.tasks[0].checkpoint_interval = -1; }, "task 't0' checkpoint_interval -1"},
        {[](auto& s) { s.tasks[0].eviction_count = -1; }, "task 't0' eviction_count -1"},
        {[](auto& s) { s.tasks[0].standby = true; }, "task 't0' standby HP"},
        {[](auto& s) {
             s.tasks[0].cores = {0, -1};
         },
         "task 't0' cores -1"},
        {[](auto& s) {
             s.tasks[0].cores = {4, 3, 4};
         },
         "task 't0' cores 4"},
        {[](auto& s) {
             s.nodes[0].hardware = Hardware{"rtx4090x8", {}};
             s.tasks[0].cpu_local = true;
             s.tasks[0].cores = {63, 64};
         },
         "task 't0' cores 64 node 'n0'"},
        {[](auto& s) {
             for (auto& t : s.tasks) t.cpu_local = true;
             s.tasks[0].cores = {5};
             s.tasks[1].cores = {5};
         },
         "node 'n0' 5 't0' 't1'"},
        {[](auto& s) {
             s.tasks[0].tolerations = {{"k", "In", "v", ""}};
         },
         "task 't0' toleration operator 'In'"},
        {[](auto& s) {
             s.tasks[0].tolerations = {{"", "Equal", "v", ""}};
         },
         "task 't0' toleration operator 'Equal' Exists empty"},
        {[](ClusterSpec& s) {
             s.tasks[0].tolerations = {{"k", "Exists", "v", ""}};
         },
         "task 't0' toleration value 'v' Exists"},
        // A NUL, which ends C strings
        {[](auto& s) { s.nodes[1].name += '\0'; }, "node #1 name NUL"},
        {[](auto& s) { s.nodes[1].gpu_model += '\0'; }, "node 'n1' gpu_model NUL"},
        {[](auto& s) { s.nodes[1].network[1] += '\0'; }, "node 'n1' network NUL"},
        {[](auto& s) { s.tasks[0].name += '\0'; }, "task #0 name NUL"},
        {[](auto& s) { s.tasks[1].job += '\0'; }, "task 't1' job NUL"},
        {[](auto& s) { s.tasks[0].gpu_models = {std::string(1, '\0')}; }, "task 't0' gpu_models NUL"},
        {[](auto& s) {
             s.tasks[0].affinity = {{std::string(1, '\0'), 0}};
         },
         "task 't0' affinity group NUL"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{std::string(1, '\0'), 0, 1}};
         },
         "task 't0' anti_affinity group NUL"},
        {[](auto& s) { s.jobs[0].name += '\0'; }, "job #0 name NUL"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{"", node_level, 1}};
         },
         "task 't0' anti_affinity"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{"g", node_level, 0}};
         },
         "task 't0' anti_affinity 'g' limit 0 1 1000000000"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{"g", 16, 1}};
         },
         "task 't0' anti_affinity level 16"},
        {[](auto& s) {
             s.tasks[0].affinity = {{"", 0}};
         },
         "task 't0' affinity"},
        {[](auto& s) {
             s.tasks[0].affinity = {{"g", -2}};
         },
         "task 't0' affinity level -2"},
        {[](auto& s) {
             s.tasks[0].network_affinity = NetworkAffinity{99, NetworkMode::required};
         },
         "task 't0' network_affinity level 99"},
        {[](auto& s) { s.tasks[0].gpu_models = {""}; }, "task 't0' gpu_models empty"},
        // Jobs and the clock
        {[](auto& s) {
             s.jobs.push_back({"j", 0, {}});
         },
         "job 'j' duplicate"},
        {[](auto& s) {
             s.jobs.push_back({"", 0, {}});
         },
         "job #1 empty"},
        {[](auto& s) { s.jobs[0].min_members = -1; }, "job 'j' min_members -1"},
        {[](auto& s) { s.jobs[0].max_disrupted = -1; }, "job 'j' max_disrupted -1"},
        {[](auto& s) { s.now = huge; }, "cluster: now: "},
        // Placements
        {[](auto& s) { s.tasks[0].node = "nowhere"; }, "task 't0' unknown node 'nowhere'"},
        {[](auto& s) { s.tasks[0].gpus = {}; }, "task 't0' 2 GPUs 0 node 'n0'"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, 1, 3};
         },
         "task 't0' 2 GPUs 3 node 'n0'"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, 0};
         },
         "task 't0' GPU 0"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, 8};
         },
         "task 't0' GPU 8 node 'n0'"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, -8};
         },
         "task 't0' GPU -8 node 'n0' 8"},
        {[](auto& s) { s.tasks[0].node.reset(); }, "task 't0' GPUs"},
        {[](auto& s) {
             s.tasks[0].node.reset();
             s.tasks[0].gpus.clear();
             s.tasks[0].locked = true;
         },
         "task 't0' locked"},
        {[](auto& s) {
             s.tasks[0].node.reset();
             s.tasks[0].gpus.clear();
             s.tasks[0].standby = true;
             s.tasks[0].priority_class = PriorityClass::hp;
         },
         "task 't0' standby"},
        {[](auto& s) { s.tasks[1].gpus = {1}; }, "node 'n0' GPU 1 capacity 't0' 't1'"},
        {[](auto& s) { s.nodes[0].cpu_milli = 1'500; }, "node 'n0' 500 cpu_milli"},
        {[](auto& s) { s.nodes[0].memory_mib = 150; }, "node 'n0' 50 memory_mib"},
        {[](auto& s) {
             s.nodes[0].gpu_memory_mib = 10;
             s.tasks[1].gpu_memory_mib = 11;
         },
         "node 'n0' 1 gpu_memory_mib GPU 2"},
    };
    return all;
}

}  // namespace

TEST_CASE("a valid snapshot has no problems") {
    REQUIRE(problems_of(valid()).empty());
    REQUIRE(problems_of({}).empty());
    REQUIRE(Cluster().node_count() == 0);
}

TEST_CASE("each fault is reported by name") {
    for (const auto& fault : faults()) {
        auto spec = valid();
        fault.make(spec);
        const auto problems = problems_of(spec);
        INFO("expected: " << fault.expected);
        REQUIRE(problems.size() >= 1);
        const bool found = std::any_of(problems.begin(), problems.end(), [&](const std::string& p) {
            return testing_support::mentions(p, fault.expected);
        });
        INFO("found: " << problems.front());
        REQUIRE(found);
        REQUIRE(problems.size() <= 4);  // a few faults entail others
    }
}

TEST_CASE("faults of all kinds are reported at once") {
    ClusterSpec spec = valid();
    spec.nodes[0].cpu_milli = -1;
    spec.nodes.push_back(spec.nodes[1]);
    spec.tasks[0].move_cost = -1;
    spec.tasks[0].gpus = {7};
    spec.tasks[1].node = "nowhere";
    spec.jobs[0].min_members = -1;
    const auto problems = problems_of(spec);
    const std::vector<std::string> expected{"node 'n0' cpu_milli -1", "node 'n1' duplicate",
                                            "job 'j' min_members -1", "task 't0' move_cost -1",
                                            "task 't0' 2 GPUs 1",     "task 't1' unknown node 'nowhere'"};
    for (const auto& part : expected) {
        INFO(part);
        REQUIRE(std::any_of(problems.begin(), problems.end(),
                            [&](const std::string& p) { return testing_support::mentions(p, part); }));
    }
    REQUIRE(problems.size() == expected.size());
}

TEST_CASE("a flood of problems is cut off and counted") {
    ClusterSpec spec;
    for (int i = 0; i < 1'000; ++i) {
        NodeSpec n;
        n.name = "same";
        n.memory_mib = -1;
        spec.nodes.push_back(n);
    }
    const auto problems = problems_of(spec);
    REQUIRE(problems.size() == 101);
    REQUIRE_THAT(problems.back(), Mentions("1899"));
}

TEST_CASE("names that imitate the marks of duplicates do not confuse the ids") {
    ClusterSpec spec = valid();
    for (const char* name : {"n0\n", "n0", "n0\n1", "n0\n", "n0\n2"}) {
        spec.nodes.push_back(spec.nodes[1]);
        spec.nodes.back().name = name;
        spec.tasks.push_back(spec.tasks[1]);
        spec.tasks.back().name = std::string("t") + (name + 1);
        spec.tasks.back().gpus = {7};
    }
    const auto problems = problems_of(spec);
    for (const auto* words : {"node 'n0' duplicate", "task 't0' duplicate"})
        REQUIRE(std::count_if(problems.begin(), problems.end(), [&](const std::string& problem) {
                    return testing_support::mentions(problem, words);
                }) == 1);
}

TEST_CASE("odd but legal snapshots are accepted") {
    auto spec = valid();
    SECTION("a task on a failed GPU, reported as a warning") {
        spec.nodes[0].failed_gpus = {1, 5, 1};
        REQUIRE_THAT(Cluster::build(spec).warnings(), MentionsEach({"task 't0' failed GPU 1 node 'n0'"}));
    }
    SECTION("nodes without GPUs, cores or memory, and tasks without requests") {
        spec.nodes.push_back({.name = "bare"});
        spec.tasks.push_back({.name = "idle", .node = "bare"});
        REQUIRE(problems_of(spec).empty());
    }
    SECTION("LP tasks over a Standby claim") {
        spec.tasks[0].priority_class = PriorityClass::hp;
        spec.tasks[0].standby = true;
        spec.tasks[1].priority_class = PriorityClass::lp;
        spec.tasks[1].gpus = {1};
        REQUIRE(problems_of(spec).empty());
        spec.tasks[1].priority_class = PriorityClass::hp;  // others may not
        REQUIRE(problems_of(spec).size() == 1);
    }
    SECTION("placements that violate labels, taints and groups") {
        spec.nodes[0].taints = {{"k", "v", "NoExecute"}};
        spec.nodes[0].schedulable = false;
        spec.tasks[0].node_selector = {{"zone", "x"}};
        spec.tasks[0].gpu_models = {"B"};
        spec.tasks[0].anti_affinity = spec.tasks[1].anti_affinity = {{"g", node_level, 1}};
        REQUIRE(problems_of(spec).empty());
    }
    SECTION("paths of different depth, and levels deeper than any path") {
        spec.nodes[1].network = {"root"};
        spec.tasks[0].anti_affinity = {{"g", 7, 1}};
        REQUIRE(Cluster::build(spec).inventory().named_levels() == 8);
    }
    SECTION("the largest quantities") {
        spec.nodes[0].cpu_milli = spec.nodes[0].memory_mib = huge - 1;
        spec.tasks[0].cpu_milli = spec.tasks[0].memory_mib = huge - 1 - 1'000;
        spec.tasks[1].cpu_milli = spec.tasks[1].memory_mib = 1'000;
        REQUIRE(Cluster::build(spec).cpu_free_milli(NodeId{0}) == 0);
    }
}

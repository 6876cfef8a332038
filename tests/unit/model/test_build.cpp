// SPDX-License-Identifier: Apache-2.0
// Every kind of invalid snapshot is refused with a message that names the culprit, and all problems come at once.
#include "valid_cluster.hpp"

using namespace testing_support;

namespace {

constexpr std::int64_t huge = 1'000'000'000'001;

}  // namespace

TEST_CASE("a valid snapshot has no problems") {
    REQUIRE(problems_of(valid()).empty());
    REQUIRE(problems_of({}).empty());
    REQUIRE(Cluster().node_count() == 0);
}

TEST_CASE("each fault is reported by name") {
    const auto reported = [](const std::string& words, const std::function<void(ClusterSpec&)>& spoil) {
        auto spec = valid();
        spoil(spec);
        const auto problems = problems_of(spec);
        INFO("expected: " << words);
        REQUIRE(problems.size() >= 1);
        INFO("found: " << problems.front());
        REQUIRE(std::any_of(problems.begin(), problems.end(),
                            [&](const std::string& p) { return testing_support::mentions(p, words); }));
        REQUIRE(problems.size() <= 4);  // a few faults entail others
    };
    // Nodes
    reported("node #1 name empty", [](auto& s) { s.nodes[1].name = ""; });
    reported("node 'n0' duplicate", [](auto& s) { s.nodes[1].name = "n0"; });
    reported("node 'n0' gpu_count 65 0 64", [](auto& s) { s.nodes[0].gpu_count = 65; });
    reported("node 'n0' gpu_count -1 0 64", [](auto& s) { s.nodes[0].gpu_count = -1; });
    reported("node 'n0' cpu_milli -1", [](auto& s) { s.nodes[0].cpu_milli = -1; });
    reported("node 'n0' cpu_milli 1000000000001", [](auto& s) { s.nodes[0].cpu_milli = huge; });
    reported("node 'n0' memory_mib -9223372036854775808", [](auto& s) { s.nodes[0].memory_mib = INT64_MIN; });
    reported("node 'n0' gpu_memory_mib -5", [](auto& s) { s.nodes[0].gpu_memory_mib = -5; });
    reported("node 'n0' failed_gpus names GPU 8; has 8", [](auto& s) { s.nodes[0].failed_gpus = {8}; });
    reported("node 'n0' failed_gpus names GPU -1; has 8", [](auto& s) { s.nodes[0].failed_gpus = {-1}; });
    reported("node 'n0' taint no key", [](auto& s) { s.nodes[0].taints = {{"", "v", "NoSchedule"}}; });
    reported("node 'n0' effect taint 'k' 'Never'", [](auto& s) {
        s.nodes[0].taints = {{"k", "v", "Never"}};
    });
    reported("node 'n0' network empty domain level 1", [](auto& s) { s.nodes[0].network = {"root", ""}; });
    reported("node 'n0' levels network 17 at most 16", [](auto& s) { s.nodes[0].network.assign(17, "x"); });
    reported("node 'n1' inconsistent topology domain 'rack of n0' under 'root' and under 'other root'",
             [](auto& s) {
                 s.nodes[1].network = {"other root", "rack of n0"};
             });
    reported("node 'n1' inconsistent topology domain 'root' levels 0 1", [](auto& s) {
        s.nodes[1].network = {"root", "root"};
    });
    reported("node 'n1' hardware preset 'dgx'", [](auto& s) { s.nodes[1].hardware = Hardware{"dgx", {}}; });
    reported("node 'n1' gpu_count 4 hardware 'a100x8' 8", [](auto& s) {
        s.nodes[1].gpu_count = 4;
        s.nodes[1].hardware = Hardware{"a100x8", {}};
    });
    reported("node 'n1' gpu_count 8 hardware other indices", [](auto& s) {
        s.nodes[1].hardware = Hardware{"", {{0, 64, 0xFF00}}};
    });
    reported("node 'n1' hardware NUMA 1 shares GPU", [](auto& s) {
        s.nodes[1].hardware = Hardware{"", {{0, 32, 0x0F}, {1, 32, 0xF8}}};
    });
    reported("node 'n1' hardware NUMA 0: socket -1 63", [](auto& s) {
        s.nodes[1].hardware = Hardware{"", {{-1, 64, 0xFF}}};
    });
    reported("node 'n1' hardware NUMA 1 cores 2000000000", [](auto& s) {
        s.nodes[1].hardware = Hardware{"", {{0, 2'000'000'000, 0x0F}, {0, 2'000'000'000, 0xF0}}};
    });
    reported("node 'n1' cpu_milli 64001 above 64 cores hardware", [](auto& s) {
        s.nodes[1].cpu_milli = 64'001;
        s.nodes[1].hardware = Hardware{"rtx4090x8", {}};
    });
    reported("node 'n1' eviction_count -1", [](auto& s) { s.nodes[1].eviction_count = -1; });
    // Tasks
    reported("task #1 name empty", [](auto& s) { s.tasks[1].name = ""; });
    reported("task 't0' duplicate", [](auto& s) { s.tasks[1].name = "t0"; });
    reported("task 't0' cpu_milli -1", [](auto& s) { s.tasks[0].cpu_milli = -1; });
    reported("task 't0' cpu_milli 9223372036854775807", [](auto& s) { s.tasks[0].cpu_milli = INT64_MAX; });
    reported("task 't0' memory_mib -1", [](auto& s) { s.tasks[0].memory_mib = -1; });
    reported("task 't0' gpu_count 65", [](auto& s) { s.tasks[0].gpu_count = 65; });
    reported("task 't1' gpu_share_milli 0 1 1000", [](auto& s) { s.tasks[1].gpu_share_milli = 0; });
    reported("task 't1' gpu_share_milli 1001", [](auto& s) { s.tasks[1].gpu_share_milli = 1001; });
    reported("task 't0' gpu_share_milli 500 fraction gpu_count 1, not 2",
             [](auto& s) { s.tasks[0].gpu_share_milli = 500; });
    reported("task 't0' gpu_memory_mib -1", [](auto& s) { s.tasks[0].gpu_memory_mib = -1; });
    reported("task 't0' priority: 1000000000001", [](auto& s) { s.tasks[0].priority = huge; });
    reported("task 't0' move_cost -1", [](auto& s) { s.tasks[0].move_cost = -1; });
    reported("task 't0' start_time: -1000000000001", [](auto& s) { s.tasks[0].start_time = -huge; });
    reported("task 't0' last_checkpoint_time: 1000000000001",
             [](auto& s) { s.tasks[0].last_checkpoint_time = huge; });
    reported("task 't0' checkpoint_interval -1", [](auto& s) { s.tasks[0].checkpoint_interval = -1; });
    reported("task 't0' eviction_count -1", [](auto& s) { s.tasks[0].eviction_count = -1; });
    reported("task 't0' standby for HP", [](auto& s) { s.tasks[0].standby = true; });
    reported("task 't0' cores names core -1", [](auto& s) { s.tasks[0].cores = {0, -1}; });
    reported("task 't0' cores names core 4 twice", [](auto& s) { s.tasks[0].cores = {4, 3, 4}; });
    reported("task 't0' cores names core 64; node 'n0' has 64", [](auto& s) {
        s.nodes[0].hardware = Hardware{"rtx4090x8", {}};
        s.tasks[0].cpu_local = true;
        s.tasks[0].cores = {63, 64};
    });
    reported("node 'n0' core 5 wholly 't0' 't1'", [](auto& s) {
        for (auto& t : s.tasks) t.cpu_local = true;
        s.tasks[0].cores = {5};
        s.tasks[1].cores = {5};
    });
    reported("task 't0' toleration operator 'In'", [](auto& s) {
        s.tasks[0].tolerations = {{"k", "In", "v", ""}};
    });
    reported("task 't0' toleration operator 'Equal' Exists key empty", [](auto& s) {
        s.tasks[0].tolerations = {{"", "Equal", "v", ""}};
    });
    reported("task 't0' toleration value 'v' none Exists", [](ClusterSpec& s) {
        s.tasks[0].tolerations = {{"k", "Exists", "v", ""}};
    });
    // A NUL, which ends C strings
    reported("node #1 name NUL", [](auto& s) { s.nodes[1].name += '\0'; });
    reported("node 'n1' gpu_model NUL", [](auto& s) { s.nodes[1].gpu_model += '\0'; });
    reported("node 'n1' network NUL", [](auto& s) { s.nodes[1].network[1] += '\0'; });
    reported("task #0 name NUL", [](auto& s) { s.tasks[0].name += '\0'; });
    reported("task 't1' job NUL", [](auto& s) { s.tasks[1].job += '\0'; });
    reported("task 't0' gpu_models NUL", [](auto& s) { s.tasks[0].gpu_models = {std::string(1, '\0')}; });
    reported("task 't0' affinity group NUL", [](auto& s) {
        s.tasks[0].affinity = {{std::string(1, '\0'), 0}};
    });
    reported("task 't0' anti_affinity group NUL", [](auto& s) {
        s.tasks[0].anti_affinity = {{std::string(1, '\0'), 0, 1}};
    });
    reported("job #0 name NUL", [](auto& s) { s.jobs[0].name += '\0'; });
    reported("task 't0' anti_affinity no group", [](auto& s) {
        s.tasks[0].anti_affinity = {{"", node_level, 1}};
    });
    reported("task 't0' anti_affinity 'g' limit 0 1 1000000000", [](auto& s) {
        s.tasks[0].anti_affinity = {{"g", node_level, 0}};
    });
    reported("task 't0' anti_affinity level 16", [](auto& s) { s.tasks[0].anti_affinity = {{"g", 16, 1}}; });
    reported("task 't0' affinity no group", [](auto& s) { s.tasks[0].affinity = {{"", 0}}; });
    reported("task 't0' affinity level -2", [](auto& s) { s.tasks[0].affinity = {{"g", -2}}; });
    reported("task 't0' network_affinity level 99", [](auto& s) {
        s.tasks[0].network_affinity = NetworkAffinity{99, NetworkMode::required};
    });
    reported("task 't0' gpu_models empty name", [](auto& s) { s.tasks[0].gpu_models = {""}; });
    // Jobs and the clock
    reported("job 'j' duplicate", [](auto& s) { s.jobs.push_back({"j", 0, {}}); });
    reported("job #1 name empty", [](auto& s) { s.jobs.push_back({"", 0, {}}); });
    reported("job 'j' min_members -1", [](auto& s) { s.jobs[0].min_members = -1; });
    reported("job 'j' max_disrupted -1", [](auto& s) { s.jobs[0].max_disrupted = -1; });
    reported("cluster: now: ", [](auto& s) { s.now = huge; });
    // Placements
    reported("task 't0' unknown node 'nowhere'", [](auto& s) { s.tasks[0].node = "nowhere"; });
    reported("task 't0' asks 2 GPUs holds 0 node 'n0'", [](auto& s) { s.tasks[0].gpus = {}; });
    reported("task 't0' GPU 0 twice", [](auto& s) { s.tasks[0].gpus = {0, 0}; });
    reported("task 't0' holds GPU 8 node 'n0' which has 8", [](auto& s) { s.tasks[0].gpus = {0, 8}; });
    reported("task 't0' holds GPU -8 node 'n0' which has 8", [](auto& s) { s.tasks[0].gpus = {0, -8}; });
    reported("task 't0' holds GPUs on no node", [](auto& s) { s.tasks[0].node.reset(); });
    reported("task 't0' locked on no node", [](auto& s) {
        s.tasks[0].node.reset();
        s.tasks[0].gpus.clear();
        s.tasks[0].locked = true;
    });
    reported("task 't0' standby on no node", [](auto& s) {
        s.tasks[0].node.reset();
        s.tasks[0].gpus.clear();
        s.tasks[0].standby = true;
        s.tasks[0].priority_class = PriorityClass::hp;
    });
    reported("node 'n0' GPU 1 beyond capacity 't0' 't1'", [](auto& s) { s.tasks[1].gpus = {1}; });
    reported("node 'n0' 500 cpu_milli more than has", [](auto& s) { s.nodes[0].cpu_milli = 1'500; });
    reported("node 'n0' 50 memory_mib more than has", [](auto& s) { s.nodes[0].memory_mib = 150; });
    reported("node 'n0' 1 gpu_memory_mib GPU 2 more than has", [](auto& s) {
        s.nodes[0].gpu_memory_mib = 10;
        s.tasks[1].gpu_memory_mib = 11;
    });
    auto three = valid();
    three.tasks[0].gpus = {0, 1, 3};
    REQUIRE(problems_of(three).front() == "task 't0': asks for 2 GPUs, but holds 3 on node 'n0'");
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
    const std::vector<std::string> expected{
        "node 'n0' cpu_milli -1", "node 'n1' duplicate",           "job 'j' min_members -1",
        "task 't0' move_cost -1", "task 't0' asks 2 GPUs holds 1", "task 't1' unknown node 'nowhere'"};
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
        NodeSpec n{.name = "same", .memory_mib = -1};
        spec.nodes.push_back(n);
    }
    const auto problems = problems_of(spec);
    REQUIRE(problems.size() == 101);
    REQUIRE_THAT(problems.back(), Mentions("1899 more"));
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
        REQUIRE_THAT(Cluster::build(spec).warnings(),
                     MentionsEach({"task 't0' holds failed GPU 1 node 'n0'"}));
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

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
        {[](auto& s) { s.nodes[1].name = ""; }, "node #1: name is empty"},
        {[](auto& s) { s.nodes[1].name = "n0"; }, "node 'n0': duplicate node name"},
        {[](auto& s) { s.nodes[0].gpu_count = 65; }, "node 'n0': gpu_count: 65; expected 0 to 64"},
        {[](auto& s) { s.nodes[0].gpu_count = -1; }, "node 'n0': gpu_count: -1; expected 0 to 64"},
        {[](auto& s) { s.nodes[0].cpu_milli = -1; }, "node 'n0': cpu_milli: -1"},
        {[](auto& s) { s.nodes[0].cpu_milli = huge; }, "node 'n0': cpu_milli: 1000000000001"},
        {[](auto& s) { s.nodes[0].memory_mib = INT64_MIN; }, "node 'n0': memory_mib: -9223372036854775808"},
        {[](auto& s) { s.nodes[0].gpu_memory_mib = -5; }, "node 'n0': gpu_memory_mib: -5"},
        {[](auto& s) { s.nodes[0].failed_gpus = {8}; }, "node 'n0': failed_gpus names GPU 8; it has 8"},
        {[](auto& s) { s.nodes[0].failed_gpus = {-1}; }, "node 'n0': failed_gpus names GPU -1; it has 8"},
        {[](auto& s) {
             s.nodes[0].taints = {{"", "v", "NoSchedule"}};
         },
         "node 'n0': a taint has no key"},
        {[](auto& s) {
             s.nodes[0].taints = {{"k", "v", "Never"}};
         },
         "node 'n0': effect of taint 'k': 'Never'"},
        {[](auto& s) {
             s.nodes[0].network = {"root", ""};
         },
         "node 'n0': network has an empty domain name at level 1"},
        {[](auto& s) { s.nodes[0].network.assign(17, "x"); },
         "node 'n0': levels of network: 17; expected at most 16"},
        {[](auto& s) {
             s.nodes[1].network = {"other root", "rack of n0"};
         },
         "node 'n1': inconsistent topology: domain 'rack of n0' lies under 'root' and under 'other root'"},
        {[](auto& s) {
             s.nodes[1].network = {"root", "root"};
         },
         "node 'n1': inconsistent topology: domain 'root' appears at levels 0 and 1"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"dgx", {}};
         },
         "node 'n1': hardware preset: 'dgx'; expected"},
        {[](auto& s) {
             s.nodes[1].gpu_count = 4;
             s.nodes[1].hardware = Hardware{"a100x8", {}};
         },
         "node 'n1': gpu_count is 4 but its hardware 'a100x8' has 8"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{0, 64, 0xFF00}}};
         },
         "node 'n1': gpu_count is 8 but its hardware has 8 with other indices"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{0, 32, 0x0F}, {1, 32, 0xF8}}};
         },
         "node 'n1': hardware NUMA node 1 shares a GPU with another NUMA node"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{-1, 64, 0xFF}}};
         },
         "node 'n1': hardware NUMA node 0: socket: -1; expected 0 to 63"},
        {[](auto& s) {
             s.nodes[1].hardware = Hardware{"", {{0, 2'000'000'000, 0x0F}, {0, 2'000'000'000, 0xF0}}};
         },
         "node 'n1': hardware NUMA node 1: cores: 2000000000"},
        {[](auto& s) {
             s.nodes[1].cpu_milli = 64'001;
             s.nodes[1].hardware = Hardware{"rtx4090x8", {}};
         },
         "node 'n1': cpu_milli is 64001, above the 64 cores of its hardware"},
        {[](auto& s) { s.nodes[1].eviction_count = -1; }, "node 'n1': eviction_count: -1"},
        // Tasks
        {[](auto& s) { s.tasks[1].name = ""; }, "task #1: name is empty"},
        {[](auto& s) { s.tasks[1].name = "t0"; }, "task 't0': duplicate task name"},
        {[](auto& s) { s.tasks[0].cpu_milli = -1; }, "task 't0': cpu_milli: -1"},
        {[](auto& s) { s.tasks[0].cpu_milli = INT64_MAX; }, "task 't0': cpu_milli: 9223372036854775807"},
        {[](auto& s) { s.tasks[0].memory_mib = -1; }, "task 't0': memory_mib: -1"},
        {[](auto& s) { s.tasks[0].gpu_count = 65; }, "task 't0': gpu_count: 65"},
        {[](auto& s) { s.tasks[1].gpu_share_milli = 0; },
         "task 't1': gpu_share_milli: 0; expected 1 to 1000"},
        {[](auto& s) { s.tasks[1].gpu_share_milli = 1001; }, "task 't1': gpu_share_milli: 1001"},
        {[](auto& s) { s.tasks[0].gpu_share_milli = 500; },
         "task 't0': gpu_share_milli is 500, a fraction; it goes with gpu_count 1, not 2"},
        {[](auto& s) { s.tasks[0].gpu_memory_mib = -1; }, "task 't0': gpu_memory_mib: -1"},
        {[](auto& s) { s.tasks[0].priority = huge; }, "task 't0': priority: "},
        {[](auto& s) { s.tasks[0].move_cost = -1; }, "task 't0': move_cost: -1"},
        {[](auto& s) { s.tasks[0].start_time = -huge; }, "task 't0': start_time: "},
        {[](auto& s) { s.tasks[0].last_checkpoint_time = huge; }, "task 't0': last_checkpoint_time: "},
        {[](auto& s) { s.tasks[0].checkpoint_interval = -1; }, "task 't0': checkpoint_interval: -1"},
        {[](auto& s) { s.tasks[0].eviction_count = -1; }, "task 't0': eviction_count: -1"},
        {[](auto& s) { s.tasks[0].standby = true; }, "task 't0': standby is for HP tasks"},
        {[](auto& s) {
             s.tasks[0].cores = {0, -1};
         },
         "task 't0': cores names core -1"},
        {[](auto& s) {
             s.tasks[0].cores = {4, 3, 4};
         },
         "task 't0': cores names core 4 twice"},
        {[](auto& s) {
             s.nodes[0].hardware = Hardware{"rtx4090x8", {}};
             s.tasks[0].cpu_local = true;
             s.tasks[0].cores = {63, 64};
         },
         "task 't0': cores names core 64; node 'n0' has 64"},
        {[](auto& s) {
             for (auto& t : s.tasks) t.cpu_local = true;
             s.tasks[0].cores = {5};
             s.tasks[1].cores = {5};
         },
         "node 'n0': core 5 is used wholly by tasks 't0' and 't1'"},
        {[](auto& s) {
             s.tasks[0].tolerations = {{"k", "In", "v", ""}};
         },
         "task 't0': toleration operator: 'In'"},
        {[](auto& s) {
             s.tasks[0].tolerations = {{"", "Equal", "v", ""}};
         },
         "task 't0': toleration operator: 'Equal'; expected Exists"},
        {[](ClusterSpec& s) {
             s.tasks[0].tolerations = {{"k", "Exists", "v", ""}};
         },
         "task 't0': toleration value: 'v'; expected none with operator Exists"},
        // A NUL, which ends C strings
        {[](auto& s) { s.nodes[1].name += '\0'; },
         "node #1: name: text with a NUL character; expected text without"},
        {[](auto& s) { s.nodes[1].gpu_model += '\0'; }, "node 'n1': gpu_model: text with a NUL"},
        {[](auto& s) { s.nodes[1].network[1] += '\0'; }, "node 'n1': network: text with a NUL"},
        {[](auto& s) { s.tasks[0].name += '\0'; }, "task #0: name: text with a NUL"},
        {[](auto& s) { s.tasks[1].job += '\0'; }, "task 't1': job: text with a NUL"},
        {[](auto& s) { s.tasks[0].gpu_models = {std::string(1, '\0')}; },
         "task 't0': gpu_models: text with a NUL"},
        {[](auto& s) {
             s.tasks[0].affinity = {{std::string(1, '\0'), 0}};
         },
         "task 't0': affinity group: text with a NUL"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{std::string(1, '\0'), 0, 1}};
         },
         "task 't0': anti_affinity group: text with a NUL"},
        {[](auto& s) { s.jobs[0].name += '\0'; }, "job #0: name: text with a NUL"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{"", node_level, 1}};
         },
         "task 't0': anti_affinity has no group"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{"g", node_level, 0}};
         },
         "task 't0': anti_affinity to 'g': limit: 0; expected 1 to 1000000000"},
        {[](auto& s) {
             s.tasks[0].anti_affinity = {{"g", 16, 1}};
         },
         "task 't0': anti_affinity level: 16"},
        {[](auto& s) {
             s.tasks[0].affinity = {{"", 0}};
         },
         "task 't0': affinity has no group"},
        {[](auto& s) {
             s.tasks[0].affinity = {{"g", -2}};
         },
         "task 't0': affinity level: -2"},
        {[](auto& s) {
             s.tasks[0].network_affinity = NetworkAffinity{99, NetworkMode::required};
         },
         "task 't0': network_affinity level: 99"},
        {[](auto& s) { s.tasks[0].gpu_models = {""}; }, "task 't0': gpu_models holds an empty name"},
        // Jobs and the clock
        {[](auto& s) {
             s.jobs.push_back({"j", 0, {}});
         },
         "job 'j': duplicate job name"},
        {[](auto& s) {
             s.jobs.push_back({"", 0, {}});
         },
         "job #1: name is empty"},
        {[](auto& s) { s.jobs[0].min_members = -1; }, "job 'j': min_members: -1"},
        {[](auto& s) { s.jobs[0].max_disrupted = -1; }, "job 'j': max_disrupted: -1"},
        {[](auto& s) { s.now = huge; }, "cluster: now: "},
        // Placements
        {[](auto& s) { s.tasks[0].node = "nowhere"; }, "task 't0': runs on unknown node 'nowhere'"},
        {[](auto& s) { s.tasks[0].gpus = {}; }, "task 't0': asks for 2 GPUs, but holds 0 on node 'n0'"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, 1, 3};
         },
         "task 't0': asks for 2 GPUs, but holds 3 on node 'n0'"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, 0};
         },
         "task 't0': lists GPU 0 twice"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, 8};
         },
         "task 't0': holds GPU 8 of node 'n0', which has 8"},
        {[](auto& s) {
             s.tasks[0].gpus = {0, -8};
         },
         "task 't0': holds GPU -8 of node 'n0', which has 8"},
        {[](auto& s) { s.tasks[0].node.reset(); }, "task 't0': holds GPUs, but is on no node"},
        {[](auto& s) {
             s.tasks[0].node.reset();
             s.tasks[0].gpus.clear();
             s.tasks[0].locked = true;
         },
         "task 't0': locked, but on no node"},
        {[](auto& s) {
             s.tasks[0].node.reset();
             s.tasks[0].gpus.clear();
             s.tasks[0].standby = true;
             s.tasks[0].priority_class = PriorityClass::hp;
         },
         "task 't0': standby, but on no node"},
        {[](auto& s) { s.tasks[1].gpus = {1}; },
         "node 'n0': GPU 1 is held beyond its capacity by tasks 't0', 't1'"},
        {[](auto& s) { s.nodes[0].cpu_milli = 1'500; },
         "node 'n0': its tasks ask for 500 cpu_milli more than it has"},
        {[](auto& s) { s.nodes[0].memory_mib = 150; },
         "node 'n0': its tasks ask for 50 memory_mib more than it has"},
        {[](auto& s) {
             s.nodes[0].gpu_memory_mib = 10;
             s.tasks[1].gpu_memory_mib = 11;
         },
         "node 'n0': its tasks ask for 1 gpu_memory_mib of GPU 2 more than it has"},
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
            return p.find(fault.expected) != std::string::npos;
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
    const std::vector<std::string> expected{"node 'n0': cpu_milli: -1",
                                            "node 'n1': duplicate node name",
                                            "job 'j': min_members: -1",
                                            "task 't0': move_cost: -1",
                                            "task 't0': asks for 2 GPUs, but holds 1",
                                            "task 't1': runs on unknown node 'nowhere'"};
    for (const auto& part : expected) {
        INFO(part);
        REQUIRE(std::any_of(problems.begin(), problems.end(),
                            [&](const std::string& p) { return p.starts_with(part); }));
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
    REQUIRE(problems.back() == "... and 1899 more");
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
    REQUIRE(std::count(problems.begin(), problems.end(), "node 'n0': duplicate node name") == 1);
    REQUIRE(std::count(problems.begin(), problems.end(), "task 't0': duplicate task name") == 1);
}

TEST_CASE("what is odd but legal is accepted") {
    auto spec = valid();
    SECTION("a task on a failed GPU, reported as a warning") {
        spec.nodes[0].failed_gpus = {1, 5, 1};
        REQUIRE(Cluster::build(spec).warnings() ==
                std::vector<std::string>{"task 't0': holds failed GPU 1 of node 'n0'"});
    }
    SECTION("nodes without GPUs, cores or memory, and tasks that ask for nothing") {
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

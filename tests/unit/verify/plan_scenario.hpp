// SPDX-License-Identifier: Apache-2.0
// One snapshot with a valid plan, for the tests of the checker.
#pragma once

#include "support/catch.hpp"

#include <gpusched/verify/verify.hpp>

namespace testing_support {

using namespace gpusched;
/// Six machines under two switches. The plan evicts `spot`, empties n0 in two waves and starts `waiting`:
///
///   n0 (s0): a (2 GPUs), b (half of GPU 2)     a -> n1, then on to n2; b -> n1
///   n1 (s0): c (1 GPU)                         hop of a
///   n2 (s0): d (no GPU)                        a ends here
///   n3 (s1): spot (LP, 4 GPUs)                 evicted; waiting starts here
///   n4 (s1): empty
///   n5 (nowhere): h (locked), claim (Standby, GPUs 0 and 1), daemon
struct Scenario {
    ClusterSpec snapshot;
    PlanSpec plan;

    NodeSpec& node(const std::string& name) {
        for (auto& n : snapshot.nodes)
            if (n.name == name) return n;
        throw std::logic_error(name);
    }
    TaskSpec& task(const std::string& name) {
        for (auto& t : snapshot.tasks)
            if (t.name == name) return t;
        throw std::logic_error(name);
    }
};

inline Scenario scenario() {
    Scenario s;
    for (int i = 0; i < 6; ++i) {
        NodeSpec n;
        n.name = "n" + std::to_string(i);
        n.gpu_model = "A";
        n.gpu_count = 4;
        n.cpu_milli = 8000;
        n.memory_mib = 8192;
        n.gpu_memory_mib = 16384;
        if (i < 5) n.network = {"root", i < 3 ? "s0" : "s1"};
        n.hardware = Hardware{"", {{0, 4, 0b0011}, {1, 4, 0b1100}}};
        s.snapshot.nodes.push_back(n);
    }
    const auto add = [&](const char* name, const char* node, std::vector<int> gpus,
                         std::int64_t share = 1000) {
        TaskSpec t{.name = name,
                   .cpu_milli = 1000,
                   .memory_mib = 1024,
                   .gpu_count = static_cast<std::int64_t>(gpus.size()),
                   .gpu_share_milli = share};
        if (node[0] != '\0') {
            t.node = node;
            t.gpus = std::move(gpus);
        }
        s.snapshot.tasks.push_back(t);
        return &s.snapshot.tasks.back();
    };
    add("a", "n0", {0, 1})->job = "job";
    add("b", "n0", {2}, 500)->job = "job";
    add("c", "n1", {0});
    add("d", "n2", {});
    add("spot", "n3", {0, 1, 2, 3})->priority_class = PriorityClass::lp;
    add("h", "n5", {3})->locked = true;
    auto* claim = add("claim", "n5", {0, 1});
    claim->priority_class = PriorityClass::hp;
    claim->standby = true;
    add("daemon", "n5", {})->daemon = true;
    add("waiting", "", {0, 1, 2});
    s.snapshot.jobs.push_back({"job", 0, 2});

    s.plan.waves = 2;
    s.plan.evictions = {"spot"};
    s.plan.moves = {{"a", "n0", "n1", {2, 3}, 0}, {"b", "n0", "n1", {1}, 0}, {"a", "n1", "n2", {0, 1}, 1}};
    s.plan.placements = {{"waiting", "n3", {0, 1, 2}}};
    s.plan.vacated_nodes = {"n0"};
    s.plan.bound = {2, 2, 8, "counting"};
    return s;
}

struct Corruption {
    std::string name;
    std::function<void(Scenario&)> spoil;
    std::vector<std::string> expected;  ///< one part of each violation, in order
};

/// Spoils the valid plan in each way; the checker reports the expected violations and no others.
inline void check_corruptions(const std::vector<Corruption>& corruptions,
                              const std::function<Scenario()>& valid) {
    for (const auto& corruption : corruptions) {
        DYNAMIC_SECTION(corruption.name) {
            auto s = valid();
            REQUIRE(verify::plan(s.snapshot, s.plan).ok);
            corruption.spoil(s);
            const auto report = verify::plan(s.snapshot, s.plan);
            REQUIRE_FALSE(report.ok);
            for (const auto& violation : report.violations) UNSCOPED_INFO(violation);
            REQUIRE(report.violation_count == corruption.expected.size());
            REQUIRE(report.violations.size() == corruption.expected.size());
            for (std::size_t i = 0; i < corruption.expected.size(); ++i)
                CHECK_THAT(report.violations[i], Catch::Matchers::ContainsSubstring(corruption.expected[i]));
        }
    }
}

}  // namespace testing_support

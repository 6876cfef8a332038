// SPDX-License-Identifier: Apache-2.0
// May this task run on that node: the library against the naive rules of reference.hpp, one by one. Every rule is often the
// only one that refuses, so that a library (or a naive side) without it would be found out.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;
using reference::State;
using testing_support::instances;

namespace {

/// A naive rule: true if it accepts the task.
struct Rule {
    const char* name;
    std::function<bool(const State&, std::size_t task, std::size_t node)> admits;
};

bool accepts(const State& s, std::size_t t, std::size_t n, const char* refused_for) {
    // One of these at a time: the others are made to hold.
    auto task = s.task(t);
    if (std::string(refused_for) != "gpu_model") task.gpu_models = {};
    if (std::string(refused_for) != "node_selector") task.node_selector = {};
    if (std::string(refused_for) != "node_affinity") task.node_affinity = {};
    if (std::string(refused_for) != "taint") task.tolerations = {{"", "Exists", "", ""}};
    return reference::eligibility(task, s.node(n)) == "none";
}

bool tied(const State& s, std::size_t t, std::size_t n, const char* kind) {
    if (reference::group_obstacle(s, t, n) == "none") return true;
    // Groups of one kind at a time.
    auto spec = *s.spec;
    for (auto& task : spec.tasks) {
        if (std::string(kind) != "anti_affinity") task.anti_affinity.clear();
        if (std::string(kind) != "affinity") task.affinity.clear();
        if (std::string(kind) != "network") task.network_affinity.reset();
        task.avoid.clear();
        task.near.clear();
        task.spread.clear();
    }
    return reference::group_obstacle({&spec, s.copies}, t, n) == "none";
}

const std::array rules{
    Rule{"cordoned", [](const State& s, std::size_t, std::size_t n) { return s.node(n).schedulable; }},
    Rule{"gpu_model",
         [](const State& s, std::size_t t, std::size_t n) { return accepts(s, t, n, "gpu_model"); }},
    Rule{"node_selector",
         [](const State& s, std::size_t t, std::size_t n) { return accepts(s, t, n, "node_selector"); }},
    Rule{"node_affinity",
         [](const State& s, std::size_t t, std::size_t n) { return accepts(s, t, n, "node_affinity"); }},
    Rule{"taint", [](const State& s, std::size_t t, std::size_t n) { return accepts(s, t, n, "taint"); }},
    Rule{"cpu",
         [](const State& s, std::size_t t, std::size_t n) {
             return s.task(t).cpu_milli <= reference::cpu_free_milli(s, n, reference::is_lp(s.task(t)));
         }},
    Rule{"memory", [](const State& s, std::size_t t,
                      std::size_t n) { return s.task(t).memory_mib <= reference::memory_free_mib(s, n); }},
    Rule{"resource",
         [](const State& s, std::size_t t, std::size_t n) { return reference::enough_resources(s, t, n); }},
    Rule{"device",
         [](const State& s, std::size_t t, std::size_t n) { return reference::enough_devices(s, t, n); }},
    Rule{"gpu",
         [](const State& s, std::size_t t, std::size_t n) {
             return static_cast<std::int64_t>(reference::candidates(s, t, n, false).size()) >=
                    s.task(t).gpu_count;
         }},
    Rule{"gpu_memory",  // if there are GPUs at all
         [](const State& s, std::size_t t, std::size_t n) {
             const auto count = s.task(t).gpu_count;
             return static_cast<std::int64_t>(reference::candidates(s, t, n, false).size()) < count ||
                    static_cast<std::int64_t>(reference::candidates(s, t, n).size()) >= count;
         }},
    Rule{"hardware",  // if there are GPUs with enough memory
         [](const State& s, std::size_t t, std::size_t n) {
             if (!reference::is_guaranteed(s.task(t)) ||
                 static_cast<std::int64_t>(reference::candidates(s, t, n).size()) < s.task(t).gpu_count)
                 return true;
             auto without = *s.spec;
             without.tasks[t].device_count = 0;
             State only_gpus{&without, s.copies};
             return !reference::gpu_sets(only_gpus, t, n).empty();
         }},
    Rule{"anti_affinity",
         [](const State& s, std::size_t t, std::size_t n) { return tied(s, t, n, "anti_affinity"); }},
    Rule{"affinity", [](const State& s, std::size_t t, std::size_t n) { return tied(s, t, n, "affinity"); }},
    Rule{"network", [](const State& s, std::size_t t, std::size_t n) { return tied(s, t, n, "network"); }},
    Rule{"avoid", [](const State& s, std::size_t t, std::size_t n) { return !reference::avoids(s, t, n); }},
    Rule{"near", [](const State& s, std::size_t t, std::size_t n) { return !reference::lonely(s, t, n); }},
    Rule{"spread", [](const State& s, std::size_t t, std::size_t n) { return !reference::crowded(s, t, n); }},
};

}  // namespace

TEST_CASE("the library refuses a placement exactly if some rule refuses it, and each rule refuses alone") {
    std::size_t cases = 0, admitted = 0;
    std::array<std::size_t, rules.size()> alone{};
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(7'000); ++seed) {
        Rng rng = Rng(seed).split(14);
        auto spec = testing_support::random_cluster(rng, {.max_gpus = 8,
                                                          .pending = 0.3,
                                                          .grouped = 0.25,
                                                          .extras = rng.chance(0.5) ? 0.1 : 0.3,
                                                          .selected = rng.chance(0.5) ? 0 : 0.2});
        for (auto& task : spec.tasks)
            if (!task.node && task.gpu_count > 0 && rng.chance(0.4))
                task.gpu_memory_mib = 1024 * rng.between(8, 40);
        const auto cluster = Cluster::build(spec);
        const auto state = reference::initial(spec);
        for (const auto task : cluster.tasks())
            for (const auto node : cluster.nodes()) {
                const auto t = index(task), n = index(node);
                if (rng.chance(0.4)) continue;
                ++cases;
                std::size_t refusals = 0, last = 0;
                for (std::size_t r = 0; r < rules.size(); ++r)
                    if (!rules[r].admits(state, t, n)) ++refusals, last = r;
                INFO("seed " << seed << ", task " << spec.tasks[t].name << ", node " << spec.nodes[n].name);
                const auto found = find_obstacle(cluster, task, node);
                REQUIRE((found == Obstacle::none) == (refusals == 0));
                REQUIRE(std::string(enum_name(found)) == reference::obstacle(state, t, n));
                REQUIRE((describe_obstacle(cluster, task, node).empty()) == (refusals == 0));
                admitted += refusals == 0;
                // A naive side without that rule would have let the task in.
                if (refusals == 1) ++alone[last];
            }
    }
    CHECK(cases >= instances<std::size_t>(200'000));
    CHECK(admitted >= instances<std::size_t>(5'000));
    for (std::size_t r = 0; r < rules.size(); ++r) {
        INFO(rules[r].name << " refused alone " << alone[r] << " times");
        CHECK(alone[r] >= instances<std::size_t>(500));
    }
}

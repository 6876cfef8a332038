// SPDX-License-Identifier: Apache-2.0
// Node rankers: scores worked out by hand.
#include "support/specs.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;
using testing_support::node;
using testing_support::task;

namespace rankers_tests {

TaskSpec on(TaskSpec t, std::string where, std::vector<int> gpus) {
    t.node = std::move(where);
    t.gpus = std::move(gpus);
    return t;
}

// a: 8 GPUs, 128 cores; a 2-GPU task and a fraction of 400 run there. b: 4 GPUs, 32 cores, empty. c: no GPU.
ClusterSpec sample() {
    ClusterSpec spec;
    spec.nodes = {node("a", 8, 128, 512), node("b", 4, 32, 128), node("c", 0, 64, 256)};
    spec.tasks = {on(task("two", 2, 1000, 32, 128), "a", {0, 1}),
                  on(task("part", 1, 400, 8, 0), "a", {2}),
                  task("one", 1, 1000, 16, 64),
                  task("fraction", 1, 500, 4, 0),
                  task("small", 1, 700, 4, 0),
                  task("cpu", 0, 1000, 16, 64),
                  task("four", 4, 1000, 16, 0)};
    return spec;
}

struct Sample {
    Cluster cluster = Cluster::build(sample());
    template <class R>
    auto score(const R& ranker, const char* task, const char* node) {
        Rng rng(0);
        return allocation::detail::ask(ranker, cluster, cluster.find_task(task), cluster.find_node(node),
                                       rng);
    }
};

TEST_CASE("packing prefers the least idle GPU capacity") {
    Sample s;
    CHECK(s.score(Packing{}, "one", "a") == -5600);
    CHECK(s.score(Packing{}, "one", "b") == -4000);
    CHECK(s.score(Packing{}, "cpu", "c") == 0);
}

TEST_CASE("least and most allocated average over the resources that a node has") {
    Sample s;
    // a: CPU (88 - 16) / 128 = 56 %, memory (384 - 64) / 512 = 62 %, GPU (5.6 - 1) / 8 = 57 %; mean of 56, 62, 57.
    CHECK(s.score(LeastAllocated{}, "one", "a") == 58);
    // used: 56 / 128 = 43 %, 192 / 512 = 37 %, 3.4 / 8 = 42 %.
    CHECK(s.score(MostAllocated{}, "one", "a") == 40);
    // b: 16 / 32 = 50 %, 64 / 128 = 50 %, 3 / 4 = 75 %.
    CHECK(s.score(LeastAllocated{}, "one", "b") == 58);
    CHECK(s.score(MostAllocated{}, "one", "b") == 41);
    // c has no GPUs: (48 / 64 + 192 / 256) / 2.
    CHECK(s.score(LeastAllocated{}, "cpu", "c") == 75);
    CHECK(s.score(MostAllocated{}, "cpu", "c") == 25);
}

TEST_CASE("best fit and dot product are the published formulas in parts of the largest node") {
    Sample s;
    // a, task one: left 72 of 128 cores and 4.6 of 8 GPUs: 1 - (0.5625 + 0.575) / 2 = 0.43125.
    CHECK(s.score(BestFit{}, "one", "a") == 43);
    // b: left 16 / 128 and 3 / 8: 1 - (0.125 + 0.375) / 2 = 0.75.
    CHECK(s.score(BestFit{}, "one", "b") == 75);
    // a: free 88 / 128 and 5.6 / 8, asked 16 / 128 and 1 / 8: dot = 0.0859375 + 0.0875; 1 - dot / 2 = 0.91328.
    CHECK(s.score(DotProduct{}, "one", "a") == 91);
    // b: 0.25 x 0.125 + 0.5 x 0.125 = 0.09375; 1 - dot / 2 = 0.953125.
    CHECK(s.score(DotProduct{}, "one", "b") == 95);
    CHECK(s.score(BestFit{{64'000, 8'000}}, "one", "b") == 68);  // 16 / 64 instead of 16 / 128: 0.6875
}

TEST_CASE("GPU packing takes shared GPUs, then used nodes, then empty ones") {
    Sample s;
    CHECK(s.score(GpuPacking{}, "fraction", "a") == 94);  // 600 of 1000 free on GPU 2: 60 % / 10
    CHECK(s.score(GpuPacking{}, "small", "a") == 49);     // GPU 2 is too full: one idle GPU of a used node
    CHECK(s.score(GpuPacking{}, "one", "a") == 49);
    CHECK(s.score(GpuPacking{}, "four", "a") == 46);
    CHECK(s.score(GpuPacking{}, "four", "b") == 29);  // empty: 33 - 4 GPUs
    CHECK(s.score(GpuPacking{}, "cpu", "a") == 0);
}

TEST_CASE("GPU clustering has four bands, fuller nodes higher within") {
    Sample s;
    // Free GPUs: a 5.6, b 4 of at most 8: 25 x 2.4 / 8 = 7, 25 x 4 / 8 = 12.
    CHECK(s.score(GpuClustering{}, "fraction", "a") == 57);  // fractions among others
    CHECK(s.score(GpuClustering{}, "one", "a") == 7);        // only other classes
    CHECK(s.score(GpuClustering{}, "one", "b") == 37);       // empty
    CHECK(s.score(GpuClustering{}, "cpu", "a") == 0);
    s.cluster.remove(s.cluster.find_task("two"));
    CHECK(s.score(GpuClustering{}, "fraction", "a") == 76);  // fractions alone; 25 x 0.4 / 8 = 1
}

TEST_CASE("GPU clustering distinguishes tasks of more than 31 GPUs from fractions and small tasks") {
    ClusterSpec spec;
    spec.nodes = {node("a", 64, 128, 512), node("b", 64, 128, 512), node("c", 64, 128, 512)};
    spec.tasks = {on(task("one", 1, 1000, 1, 1), "a", {0}),
                  on(task("part", 1, 400, 1, 1), "b", {0}),
                  on(task("half", 32, 1000, 1, 1), "c", {}),
                  task("32", 32, 1000, 1, 1),
                  task("33", 33, 1000, 1, 1),
                  task("64", 64, 1000, 1, 1)};
    for (int gpu = 0; gpu < 32; ++gpu) spec.tasks[2].gpus.push_back(gpu);
    const auto cluster = Cluster::build(spec);
    const auto score = [&](const char* name, const char* where) {
        return GpuClustering{64'000}(cluster, cluster.find_task(name), cluster.find_node(where));
    };
    CHECK(score("33", "a") == 0);  // only another class, though 33 = 1 modulo 32
    CHECK(score("32", "b") == 0);  // likewise fractions
    CHECK(score("64", "b") == 0);
    CHECK(score("64", "c") == 12);       // 25 x 32 / 64 above other classes alone
    CHECK(score("32", "c") == 75 + 12);  // its class alone
}

TEST_CASE("FGD scores the sigmoid of the decrease of fragmentation, truncated") {
    Sample s;
    // The only expected task: 1 GPU, 8 cores. F(node) = 0 if every idle GPU is whole.
    fragmentation::Workload workload{{{.cpu_milli = 8000, .gpu_count = 1}}};
    const auto metric = std::make_shared<const fragmentation::Fgd>(workload, s.cluster.inventory());
    const LeastFragmentation fgd{metric};
    // A whole GPU of b leaves whole ones: no change, sigmoid(0) = 0.5.
    CHECK(s.score(fgd, "one", "b") == 50);
    // Half of an idle GPU of b makes the other half useless: F + 0.5, 100 / (1 + e^0.5) = 37.75.
    CHECK(s.score(fgd, "fraction", "b") == 37);
    // On a's GPU 2 the useless 0.6 become 0.1: F - 0.5, 100 / (1 + e^-0.5) = 62.2.
    CHECK(s.score(fgd, "fraction", "a") == 62);
}

TEST_CASE("homogeneous co-location and eviction history follow the task's class") {
    ClusterSpec spec;
    for (const char* name : {"hp", "spot", "mixed", "empty"}) spec.nodes.push_back(node(name, 8, 64, 64));
    spec.nodes[2].eviction_count = 1;
    spec.nodes[3].eviction_count = 4;
    const auto add = [&](const char* name, PriorityClass priority_class, std::int64_t evictions,
                         const char* where, int gpu) {
        auto t = task(name, gpu < 0 ? 0 : 1, 1000, 1, 1);
        t.priority_class = priority_class;
        t.eviction_count = evictions;
        if (where != nullptr) {
            t.node = where;
            if (gpu >= 0) t.gpus = {gpu};
        }
        spec.tasks.push_back(t);
    };
    add("h", PriorityClass::hp, 1, "hp", 0);
    add("s", PriorityClass::lp, 5, "spot", 0);
    add("m1", PriorityClass::hp, 0, "mixed", 0);
    add("m2", PriorityClass::lp, 2, "mixed", 1);
    add("daemon", PriorityClass::other, 0, "empty", -1);
    spec.tasks.back().daemon = true;
    add("new hp", PriorityClass::hp, 0, nullptr, 0);
    add("new spot", PriorityClass::lp, 0, nullptr, 0);
    add("new other", PriorityClass::other, 0, nullptr, 0);
    const auto cluster = Cluster::build(spec);
    const auto score = [&](const auto& ranker, const char* t, const char* n) {
        return ranker(cluster, cluster.find_task(t), cluster.find_node(n));
    };
    CHECK(score(Homogeneous{}, "new hp", "hp") == 1);
    CHECK(score(Homogeneous{}, "new hp", "mixed") == 1);
    CHECK(score(Homogeneous{}, "new hp", "empty") == 0);
    CHECK(score(Homogeneous{}, "new hp", "spot") == -1);
    CHECK(score(Homogeneous{}, "new spot", "spot") == 1);
    CHECK(score(Homogeneous{}, "new spot", "empty") == 0);
    CHECK(score(Homogeneous{}, "new spot", "mixed") == -1);
    CHECK(score(Homogeneous{}, "new spot", "hp") == -1);
    CHECK(score(Homogeneous{}, "new other", "hp") == 1);
    // A node has a past of its own: "empty" has one though nobody runs there, and what the task of "spot" remembers
    // happened elsewhere.
    CHECK(score(EvictionHistory{}, "new hp", "empty") == 4);
    CHECK(score(EvictionHistory{}, "new spot", "empty") == -4);
    CHECK(score(EvictionHistory{}, "new spot", "spot") == 0);
    CHECK(score(EvictionHistory{}, "new hp", "mixed") == 1);
}

TEST_CASE("of equal nodes, HP takes the one with most evictions and spot the one with fewest, empty or not") {
    ClusterSpec spec;
    for (const char* name : {"calm", "volatile", "middling"}) spec.nodes.push_back(node(name, 8, 64, 64));
    spec.nodes[1].eviction_count = 9;
    spec.nodes[2].eviction_count = 3;
    for (const char* name : {"hp", "spot"}) {
        auto t = task(name, 1, 1000, 1, 1);
        t.priority_class = name[0] == 'h' ? PriorityClass::hp : PriorityClass::lp;
        spec.tasks.push_back(t);
    }
    const auto cluster = Cluster::build(spec);
    const auto node_for = [&](const char* t) {
        return cluster.name(place(cluster, cluster.find_task(t), PlaceOptions{})->node);
    };
    CHECK(node_for("hp") == "volatile");
    CHECK(node_for("spot") == "calm");
}

TEST_CASE("lexicographic scores compare one after the other, weighted ones add up") {
    Sample s;
    const Lexicographic both(FirstFit{}, Packing{});
    CHECK(s.score(both, "one", "a") < s.score(both, "one", "b"));
    const Lexicographic first(BestFit{}, Packing{});
    CHECK(s.score(first, "one", "b") == std::tuple<std::int64_t, std::int64_t>(75, -4000));
    const Weighted sum(Part{2, BestFit{}}, Part{-3, DotProduct{}});
    CHECK(s.score(sum, "one", "a") == 2 * 43 - 3 * 91);
    STATIC_REQUIRE(is_node_local<Lexicographic<Packing, BestFit>>);
    STATIC_REQUIRE(!is_node_local<Lexicographic<Packing, Random>>);
}

}  // namespace rankers_tests

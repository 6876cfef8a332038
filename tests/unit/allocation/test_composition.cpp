// SPDX-License-Identifier: Apache-2.0
// Composition: every concept with an archetype, policies behind one type, filters, pickers and loads of one's own.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace composition_tests {

ClusterSpec nodes(int count) {
    ClusterSpec spec;
    for (int i = 0; i < count; ++i) {
        NodeSpec n;
        n.name = "n" + std::to_string(i);
        n.gpu_model = "M";
        n.gpu_count = 4;
        n.cpu_milli = 64'000;
        n.memory_mib = 512 * 1024;
        n.network = {"root", "sw" + std::to_string(i / 2)};
        spec.nodes.push_back(n);
    }
    return spec;
}

TaskSpec task(std::string name, std::int64_t gpus) {
    TaskSpec t{.name = std::move(name), .gpu_count = gpus};
    return t;
}

// Archetypes: what the concepts ask for and nothing else. None can be default-constructed or compared.
struct Score3 {  // an ordered type that is no number
    int value;
    auto operator<=>(const Score3&) const = default;
};
struct Ranker {
    explicit Ranker(int) {}
    Score3 operator()(const Cluster&, TaskId, NodeId node) const {
        return {static_cast<int>(index(node)) % 3};
    }
};
struct RandomRanker {
    explicit RandomRanker(int) {}
    int operator()(const Cluster&, TaskId, NodeId, Rng& rng) const { return static_cast<int>(rng.below(2)); }
};
struct Picker {
    explicit Picker(int) {}
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return TightestGpu{}(cluster, task, node);
    }
};
struct RandomPicker {
    explicit RandomPicker(int) {}
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node, Rng& rng) const {
        return RandomGpus{}(cluster, task, node, rng);
    }
};
struct Filter {
    explicit Filter(int) {}
    bool operator()(const Cluster&, TaskId, NodeId node) const { return index(node) != 2; }
};
struct Load {
    explicit Load(int) {}
    Score3 operator()(const Cluster&, NodeId node) const { return {10 - static_cast<int>(index(node))}; }
};
struct Policy {
    explicit Policy(int) {}
    std::optional<Destination> operator()(const Cluster&, TaskId, Rng&) { return Destination{}; }
};
static_assert(NodeRanker<Ranker> && NodeRanker<RandomRanker>);
static_assert(GpuPicker<Picker> && GpuPicker<RandomPicker>);
static_assert(NodeFilter<Filter> && NodeLoad<Load> && PlacementPolicy<Policy>);
static_assert(!NodeRanker<Policy> && !GpuPicker<Filter> && !NodeFilter<Picker> && !NodeLoad<Ranker> &&
              !PlacementPolicy<Ranker>);
// What is built from them models the concepts again.
static_assert(NodeRanker<Lexicographic<Ranker, RandomRanker>> && NodeRanker<Weighted<RandomRanker, Packing>>);
static_assert(NodeFilter<Both<Filter, AnyNode>>);
static_assert(PlacementPolicy<RankedPlacement<Ranker, RandomPicker, Filter>>);
static_assert(PlacementPolicy<PowerOfD<RandomPicker, Filter, Load>>);
static_assert(NodeRanker<AnyRanker> && NodeRanker<RankerList> && GpuPicker<AnyGpuPicker> &&
              NodeFilter<AnyFilter> && NodeFilter<FilterList> && PlacementPolicy<AnyPlacement>);

// Counts how often it is asked.
struct Counting {
    static constexpr bool node_local = true;
    int* asked;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        ++*asked;
        return Packing{}(cluster, task, node);
    }
};

TEST_CASE("archetypes are all that the algorithms need") {
    auto spec = nodes(6);
    spec.tasks = {task("t", 1)};
    const auto cluster = Cluster::build(spec);
    const auto t = make_id<TaskId>(0);
    Rng rng(0);
    CHECK(place(cluster, t, Ranker(0), Picker(0), rng, Filter(0)) == Destination{make_id<NodeId>(5), 0b1});
    RankedPlacement ranked(Ranker(0), RandomPicker(0), Filter(0));
    CHECK(ranked(cluster, t, rng)->node == make_id<NodeId>(5));
    CHECK(!ranked.keeps_scores());
    PowerOfD power({.choices = 100}, Picker(0), Filter(0), Load(0));
    CHECK(power(cluster, t, rng) == Destination{make_id<NodeId>(5), 0b1});
    const Lexicographic both(Ranker(0), RandomRanker(0));
    CHECK(index(place(cluster, t, both, Picker(0), rng)->node) % 3 == 2);
}

TEST_CASE("a filter narrows ranked placement and power of d as it narrows place") {
    auto spec = nodes(8);
    for (int i = 0; i < 60; ++i) spec.tasks.push_back(task("t" + std::to_string(i), 1 + i % 2));
    spec.tasks[0].node = "n4";
    spec.tasks[0].gpus = {0};
    const auto initial = Cluster::build(spec);
    const auto run = [&](const auto& filter, bool kept) {
        auto cluster = initial;
        cluster.keep_events();
        RankedPlacement policy(BestFit{}, TightestGpu{}, filter);
        PowerOfD power({}, TightestGpu{}, filter);
        CHECK(policy.keeps_scores() == kept);
        Rng rng(1);
        int placed = 0;
        for (std::size_t i = 1; i < 60; ++i) {
            const auto t = make_id<TaskId>(i);
            const auto to = policy(cluster, t, rng);
            REQUIRE(to == place(cluster, t, BestFit{}, TightestGpu{}, rng, filter));
            if (const auto other = power(cluster, t, rng)) {
                CHECK(filter(cluster, t, other->node));
                CHECK(to);
            }
            if (!to) continue;
            cluster.assign(t, to->node, to->gpus);
            cluster.commit();
            ++placed;
        }
        return placed;
    };
    const auto domain = initial.inventory().domain(1, make_id<NodeId>(2));
    CHECK(run(OccupiedNodes{}, true) == 2);  // three more GPUs on n4: one, and two
    const int two_nodes = run(WithinDomain{1, domain}, true);
    CHECK((two_nodes > 3 && two_nodes < 9));
    CHECK(run([](const Cluster&, TaskId task, NodeId) { return index(task) % 2 == 0; }, false) > 0);
    CHECK(run(Both<OccupiedNodes, WithinDomain>{{}, {1, domain}}, true) == 0);
    CHECK(run(FilterList{{OccupiedNodes{}, WithinDomain{1, domain}}}, true) == 0);
    CHECK(run(AnyFilter(AnyNode{}), true) > 10);
}

TEST_CASE("scores are kept behind one type too") {
    auto spec = nodes(50);
    for (int i = 0; i < 40; ++i) spec.tasks.push_back(task("t" + std::to_string(i), 1));
    const auto initial = Cluster::build(spec);
    const auto asked_by = [&](auto make) {
        int asked = 0;
        RankedPlacement policy(make(Counting{&asked}), TightestGpu{});
        auto cluster = initial;
        cluster.keep_events();
        Rng rng(0);
        for (std::size_t i = 0; i < 40; ++i) {
            const auto to = policy(cluster, make_id<TaskId>(i), rng);
            REQUIRE(to);
            cluster.assign(make_id<TaskId>(i), to->node, to->gpus);
            cluster.commit();
        }
        return asked;
    };
    const int plain = asked_by([](Counting c) { return c; });
    CHECK(plain < 50 + 40);
    CHECK(asked_by([](Counting c) { return AnyRanker(c); }) == plain);
    CHECK(asked_by([](Counting c) { return Lexicographic(AnyRanker(c), Homogeneous{}); }) == plain);
    CHECK(asked_by([](Counting c) { return RankerList{{c, Homogeneous{}}}; }) == plain);
    CHECK(asked_by([](Counting c) { return RankerList{{c, Random{}}}; }) > 1500);
    CHECK(asked_by([](Counting c) { return Weighted(Part{1, AnyRanker(c)}); }) == plain);
}

TEST_CASE("place by name takes filters, pickers and any number of rankers") {
    auto spec = nodes(4);
    spec.tasks = {task("running", 1), task("new", 1)};
    spec.tasks[0].node = "n3";
    spec.tasks[0].gpus = {0};
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const auto fresh = make_id<TaskId>(1);
    CHECK(place(cluster, fresh, {.rankers = {"least_allocated"}})->node == make_id<NodeId>(0));
    CHECK(place(cluster, fresh, {.rankers = {"least_allocated"}, .filters = {"any", "occupied"}})->node ==
          make_id<NodeId>(3));
    CHECK(place(cluster, fresh, {.rankers = std::vector<std::string>(20, "packing")})->node ==
          make_id<NodeId>(3));
    const fragmentation::Workload workload{{{.cpu_milli = 0, .gpu_count = 4}}};
    CHECK(place(cluster, fresh, {.rankers = {"fgd"}, .workload = workload})->node == make_id<NodeId>(3));
    for (const auto& name : gpu_pickers().names())
        CHECK(gpu_count(place(cluster, fresh, {.gpu_picker = std::string(name)})->gpus) == 1);
    for (const auto& name : filters().names()) CHECK(place(cluster, fresh, {.filters = {std::string(name)}}));
    REQUIRE_THROWS_MESSAGE(place(cluster, fresh, {.filters = {"none"}}), InvalidInput,
                           "filter: 'none'; expected any, occupied");
    REQUIRE_THROWS_MESSAGE(place(cluster, make_id<TaskId>(2)), InvalidInput,
                           "task: #2; expected cluster's 2");
    REQUIRE_THROWS_MESSAGE(place(cluster, fresh, {.rankers = {"fgd"}, .workload = fragmentation::Workload{}}),
                           InvalidInput, "workload has no shapes");
}

TEST_CASE("rankers by name measure in parts of the inventory's largest node") {
    auto spec = nodes(2);
    spec.nodes[0].gpu_count = 16;
    spec.nodes[0].cpu_milli = 256'000;
    spec.tasks = {task("own", 1), task("new", 1)};
    spec.tasks[0].node = "n1";
    spec.tasks[0].gpus = {0};
    const auto cluster = Cluster::build(spec);
    const auto& inventory = cluster.inventory();
    CHECK(largest_node(inventory) == LargestNode{256'000, 16'000});
    Rng rng(0);
    const auto score = [&](const char* name, std::size_t node) {
        return rankers().make(name, inventory, {})(cluster, make_id<TaskId>(1), make_id<NodeId>(node), rng);
    };
    CHECK(score("gpu_clustering", 0) == 25);       // empty, all of the largest node free
    CHECK(score("gpu_clustering", 1) == 75 + 20);  // the class alone, 3 of 16 free: 25 x 13 / 16
    // n0 left: 256 of 256 cores, 15 of 16 GPUs: 1 - (1 + 0.9375) / 2 = 0.03.
    CHECK(score("best_fit", 0) == 3);
    // free . request = 1 x 0 + 1 x 1/16: 1 - 0.0625 / 2 = 0.96875.
    CHECK(score("dot_product", 0) == 96);
    // As a whole policy too, an empty node of 16 GPUs stays in its band: n1, which runs the class, wins.
    auto policy = placements().make("gpu_clustering", inventory, {});
    CHECK(policy(cluster, make_id<TaskId>(1), rng)->node == make_id<NodeId>(1));
}

TEST_CASE("large nodes of other classes stay below empty ones in the published GPU clustering") {
    // In parts of 8 GPUs an empty node of 16 would score 25 - 25 = 0, as one of another class that is full.
    auto spec = nodes(2);
    spec.nodes[0].gpu_count = 16;
    spec.tasks = {task("other", 3), task("new", 1)};
    spec.tasks[0].node = "n1";
    spec.tasks[0].gpus = {0, 1, 2};
    const auto cluster = Cluster::build(spec);
    auto policy = placements().make("gpu_clustering", cluster.inventory(), {});
    Rng rng(0);
    CHECK(policy(cluster, make_id<TaskId>(1), rng)->node == make_id<NodeId>(0));
}

}  // namespace composition_tests

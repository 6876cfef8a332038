// SPDX-License-Identifier: Apache-2.0
#include "support/admissions.hpp"

#include <gpusched/allocation/allocate.hpp>

using namespace gpusched;
using namespace gpusched::admission;
using testing_support::run;
using testing_support::waiting;

namespace moves_tests {

ClusterSpec switches(const std::vector<std::pair<std::string, int>>& nodes) {
    ClusterSpec spec;
    for (const auto& [name, gpus] : nodes) {
        NodeSpec node{.name = name, .gpu_model = "A", .gpu_count = gpus};
        node.network = {name.substr(0, 1)};
        spec.nodes.push_back(node);
    }
    return spec;
}

/// By moves alone, with prices that count them by `move_cost`.
Options moves_only(std::optional<NetworkMode> mode = {}) {
    Options options;
    options.evictions = false;
    options.mode = mode;
    return options;
}

Admission by_moves(const allocation::ClusterWithJob& with, const Options& options) {
    auto made = testing_support::verified(with, options);
    REQUIRE(made.plan.evictions.empty());
    return made;
}

char switch_of(const allocation::ClusterWithJob& with, const Placement& placement) {
    return with.cluster.name(placement.node)[0];
}

constexpr auto required = NetworkMode::required;

TEST_CASE("space under one switch is made by the cheapest moves") {
    auto spec = switches({{"a0", 4}, {"a1", 4}, {"b0", 4}, {"b1", 4}, {"c0", 8}});
    run(spec, "x", "a0", 0, 1);
    run(spec, "y", "a1", 0, 2);
    run(spec, "z", "b0", 0, 3);
    run(spec, "w", "b1", 0, 3);
    run(spec, "v", "c0", 0, 4);
    const auto with = waiting(spec, 2, 4);
    REQUIRE_FALSE(allocation::allocate(with.cluster, with.pods, {.mode = required}).placed);
    const auto made = by_moves(with, moves_only(required));
    REQUIRE(made.admitted);
    // x and y leave switch a; for b six GPUs would have to move, and c has one node.
    CHECK(made.plan.moves.size() == 2);
    CHECK(made.cost.moves == 3 * 30 * 1000);
    CHECK(made.proven);
    CHECK(made.plan.vacated_nodes.empty());
    for (const auto& p : made.plan.placements) CHECK(switch_of(with, p) == 'a');

    SECTION("a costly task stays") {
        spec.tasks[0].move_cost = 10;
        const auto dear = waiting(spec, 2, 4);
        const auto other = by_moves(dear, moves_only(required));
        REQUIRE(other.admitted);
        CHECK(other.cost.moves == 6 * 30 * 1000);
        for (const auto& move : other.plan.moves) CHECK(dear.cluster.name(move.task) != "x");
    }
    SECTION("limits and locks") {
        auto limited = moves_only(required);
        limited.max_moves = 1;
        CHECK_FALSE(by_moves(with, limited).admitted);
        limited = moves_only(required);
        limited.max_cost_s = 89;
        CHECK_FALSE(by_moves(with, limited).admitted);
        for (auto& task : spec.tasks) task.locked = true;
        const auto locked = waiting(spec, 2, 4);
        const auto none = by_moves(locked, moves_only(required));
        CHECK_FALSE(none.admitted);
        CHECK(none.proven);
        CHECK(none.plan == Plan{});
        CHECK(none.obstacle == Obstacle::gpu);
    }
    SECTION("a job that fits needs no moves") {
        const auto made_as_it_is = by_moves(waiting(spec, 1, 4), moves_only(required));
        CHECK(made_as_it_is.plan.moves.empty());
        CHECK(made_as_it_is.plan.placements.size() == 1);
    }
}

TEST_CASE("a gang gets its preferred switch if that costs no more") {
    auto spec = switches({{"a0", 8}, {"b0", 8}, {"b1", 8}});
    for (const auto* const node : {"a0", "b0", "b1"}) run(spec, std::string("t-") + node, node, 0, 1);
    const auto with = waiting(spec, 2, 8);
    const auto made = by_moves(with, moves_only());
    REQUIRE(made.admitted);
    CHECK(made.proven);
    CHECK(made.cost.moves == 2 * 30 * 1000);
    for (const auto& p : made.plan.placements) CHECK(switch_of(with, p) == 'b');
    // If the switch costs more, the pods are spread.
    for (auto& task : spec.tasks)
        if (task.name == "t-b0") task.move_cost = 5;
    const auto dear = waiting(spec, 2, 8);
    const auto spread = by_moves(dear, moves_only());
    REQUIRE(spread.admitted);
    CHECK(spread.cost.moves == 2 * 30 * 1000);
    CHECK(switch_of(dear, spread.plan.placements[0]) != switch_of(dear, spread.plan.placements[1]));
}

TEST_CASE("closeness that is preferred is found among many switches, by evictions, too") {
    // On every node one task of 1 GPU; a spare node takes what moves. Whatever pair is chosen costs the same.
    ClusterSpec spec;
    for (int s = 0; s < 20; ++s)
        for (int n = 0; n < 3; ++n) {
            const auto name = std::string(1, static_cast<char>('a' + s)) + std::to_string(n);
            NodeSpec node{.name = name, .gpu_model = "A", .gpu_count = 8};
            node.network = {name.substr(0, 1)};
            spec.nodes.push_back(node);
            run(spec, "t-" + name, name, 0, n == 2 ? 6 : 1);
        }
    const auto with = waiting(spec, 2, 8);
    const auto made = by_moves(with, moves_only());
    REQUIRE(made.admitted);
    CHECK(made.cost.moves == 2 * 30 * 1000);
    CHECK(switch_of(with, made.plan.placements[0]) == switch_of(with, made.plan.placements[1]));
    CHECK(made.stats.domains_considered >= 1);

    for (auto& task : spec.tasks) task.preemptible = true;
    allocation::PodRequest pods{.count = 2};
    pods.pod.gpu_count = 8;
    pods.pod.priority = 1;
    const auto important = allocation::with_job(Cluster::build(spec), {"gang", {pods}});
    Options evictions;
    evictions.moves = false;
    const auto evicted = admit(important.cluster, important.pods, evictions);
    REQUIRE(evicted.admitted);
    CHECK(evicted.plan.evictions.size() == 2);
    CHECK(switch_of(important, evicted.pods[0]) == switch_of(important, evicted.pods[1]));
    CHECK(verify::plan(important.cluster.to_spec(), to_spec(evicted.plan, important.cluster)).ok);
}

TEST_CASE("tasks move to empty nodes only if nothing else admits the job") {
    struct Case {
        std::string name;
        std::function<void(ClusterSpec&, Options&)> change;
        std::string to;  // of `small`; empty = the job is refused
    };
    for (const auto& [name, change, to] :
         {Case{"an empty node", [](auto&, auto&) {}, "empty"},
          Case{"another node with room comes first",
               [](auto& spec, auto&) {
                   spec.nodes.push_back({.name = "used", .gpu_count = 8});
                   run(spec, "other", "used", 0, 1).locked = true;
               },
               "used"},
          Case{"it must be large enough", [](auto& spec, auto&) { spec.nodes[1].gpu_count = 3; }, ""},
          Case{"it is cordoned", [](auto& spec, auto&) { spec.nodes[1].schedulable = false; }, ""},
          Case{"it is exempt", [](auto&, auto& options) { options.exempt = {NodeId{1}}; }, ""},
          Case{"without moves", [](auto&, auto& options) { options.moves = false; }, ""}}) {
        INFO(name);
        ClusterSpec spec;
        spec.nodes = {{.name = "only", .gpu_count = 8}, {.name = "empty", .gpu_count = 8}};
        spec.nodes[0].labels["pool"] = "a";
        run(spec, "small", "only", 0, 4);
        spec.tasks.push_back({.name = "pod", .gpu_count = 8, .node_selector = {{"pool", "a"}}});
        Options options;
        change(spec, options);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto made = testing_support::verified(cluster, {TaskId{1}}, options);
        INFO(made.reason);
        CHECK(made.admitted == !to.empty());
        CHECK(made.proven);
        REQUIRE(made.plan.moves.size() == (to.empty() ? 0 : 1));
        if (!to.empty()) CHECK(cluster.name(made.plan.moves[0].to) == to);
        CHECK(made.plan.opened_nodes.size() == (to == "empty" ? 1 : 0));
    }
}

TEST_CASE("a refusal is proven if the pod fits on no node and no task may leave") {
    ClusterSpec spec;
    spec.nodes = {{.name = "a", .gpu_count = 1}, {.name = "b", .gpu_count = 1}};
    auto& member = run(spec, "member", "a", 0, 1);
    member.groups = {"g"};
    spec.tasks.push_back({.name = "pod", .gpu_count = 1});
    spec.tasks.back().near = {{"g", node_level}};
    for (const bool locked : {true, false}) {
        spec.tasks.front().locked = locked;  // else it could move to b, but then no GPU is left there
        const auto made = admit(Cluster::build(spec, IdOrder::as_listed), std::vector{TaskId{1}});
        CHECK_FALSE(made.admitted);
        CHECK(made.proven == locked);
        CHECK(made.bound.has_value() == !locked);
    }
}

TEST_CASE("space that only a chain of moves can make") {
    // The pod needs model A, which a0 alone has; u may go to b0 only, whose v must go to c0 first.
    auto spec = switches({{"a0", 4}, {"b0", 4}, {"c0", 4}});
    run(spec, "u", "a0", 0, 3);
    run(spec, "v", "b0", 0, 2);
    run(spec, "w", "c0", 0, 2);
    spec.nodes[1].gpu_model = "B";
    spec.nodes[2].gpu_model = "C";
    spec.tasks[0].gpu_models = {"A", "B"};
    allocation::PodRequest pod{};
    pod.pod.gpu_count = 4;
    pod.pod.gpu_models = {"A"};
    const auto with = allocation::with_job(Cluster::build(spec), {"gang", {pod}});
    const auto made = by_moves(with, moves_only());
    REQUIRE(made.admitted);
    CHECK(made.plan.moves.size() == 2);
    CHECK(made.plan.waves == 2);
    CHECK(made.cost.moves == 5 * 30 * 1000);
    CHECK(made.proven);
    auto flat = moves_only();
    flat.search.depth = 1;
    CHECK_FALSE(by_moves(with, flat).admitted);
}

/// A cluster in which the pod fits only if the displaced tasks go where they must.
struct Places {
    ClusterSpec spec;
    explicit Places(const std::vector<int>& gpus) {
        for (std::size_t n = 0; n < gpus.size(); ++n) {
            const auto name = "n" + std::to_string(n);
            spec.nodes.push_back({.name = name, .gpu_count = gpus[n]});
            spec.nodes.back().labels[name] = "";
        }
    }
    TaskSpec& run(const char* name, int node, int first, int gpus, int share = 1000) {
        auto& task = testing_support::run(spec, name, spec.nodes[std::size_t(node)].name, first, gpus);
        task.gpu_share_milli = share;
        return task;
    }
    TaskSpec& pod(int share = 1000) {
        spec.tasks.push_back({.name = "p" + std::to_string(spec.tasks.size()), .gpu_share_milli = share});
        spec.tasks.back().gpu_count = 1;
        return spec.tasks.back();
    }
    [[nodiscard]] Admission admit(const Options& options = {}) const {
        std::vector<TaskId> pods;
        for (std::size_t t = 0; t < spec.tasks.size(); ++t)
            if (!spec.tasks[t].node) pods.push_back(make_id<TaskId>(t));
        return testing_support::verified(Cluster::build(spec, IdOrder::as_listed), pods, options);
    }
};

TEST_CASE("a displaced task that is larger than the pod is placed first") {
    // The member must come to n1, whose idle GPU also has room for the pod. So another task must leave for the pod.
    Places places({1, 2});
    places.run("member", 0, 0, 1).affinity = {{"g", node_level}};
    auto& stays = places.run("stays", 1, 0, 1, 500);
    stays.affinity = {{"g", node_level}};
    stays.locked = true;
    places.run("leaves", 1, 0, 1, 500);
    places.pod(500).affinity = {{"g", node_level}};
    const auto made = places.admit(moves_only());
    REQUIRE(made.admitted);
    CHECK(made.plan.moves.size() == 2);
    CHECK(made.cost.total() == 1500 * 30);
}

TEST_CASE("a member of a spread group moves to the GPU that is left for it") {
    // The pods need whole GPUs: one of n0, and that of the member, which takes the other half of the second GPU of n0.
    Places places({2, 1, 1});
    auto& stays = places.run("stays", 0, 1, 1, 500);
    stays.locked = true;
    stays.spread = {{.group = "g", .level = node_level, .max_skew = 9}};
    places.run("leaves", 0, 1, 1, 500);
    auto& member = places.run("member", 1, 0, 1, 500);
    member.groups = {"g"};
    places.run("half", 2, 0, 1, 500).locked = true;
    places.spec.nodes[0].labels["wide"] = places.spec.nodes[1].labels["wide"] = "";
    places.spec.tasks[2].node_selector["wide"] = "";
    places.pod();
    places.pod();
    const auto made = places.admit(moves_only());
    REQUIRE(made.admitted);
    CHECK(made.plan.moves.size() == 2);
    CHECK(made.cost.total() == 1000 * 30);
}

}  // namespace moves_tests

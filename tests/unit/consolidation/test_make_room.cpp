#include "support/catch.hpp"

#include <gpusched/allocation/job_request.hpp>
#include <gpusched/consolidation/make_room.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/model/apply.hpp>
#include <gpusched/verify/plan.hpp>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::consolidation;

namespace {

ClusterSpec switches(const std::vector<std::pair<std::string, int>>& nodes) {
    ClusterSpec spec;
    for (const auto& [name, gpus] : nodes) {
        NodeSpec node{.name = name, .gpu_model = "A", .gpu_count = gpus};
        node.network = {name.substr(0, 1)};
        spec.nodes.push_back(node);
    }
    return spec;
}

void run(ClusterSpec& spec, const std::string& name, const std::string& node, int first, int gpus) {
    TaskSpec task{.name = name, .gpu_count = gpus};
    task.node = node;
    task.gpus.resize(static_cast<std::size_t>(gpus));
    std::iota(task.gpus.begin(), task.gpus.end(), first);
    spec.tasks.push_back(task);
}

allocation::ClusterWithJob gang(const ClusterSpec& spec, std::int64_t count, std::int64_t gpus) {
    allocation::PodRequest pods{.count = count};
    pods.pod.gpu_count = gpus;
    return allocation::with_job(Cluster::build(spec), {"gang", {pods}});
}

constexpr auto required = NetworkMode::required;

}  // namespace

TEST_CASE("room under one switch, by the cheapest moves") {
    auto spec = switches({{"a0", 4}, {"a1", 4}, {"b0", 4}, {"b1", 4}, {"c0", 8}});
    run(spec, "x", "a0", 0, 1);
    run(spec, "y", "a1", 0, 2);
    run(spec, "z", "b0", 0, 3);
    run(spec, "w", "b1", 0, 3);
    run(spec, "v", "c0", 0, 4);
    const auto with = gang(spec, 2, 4);
    REQUIRE_FALSE(allocation::allocate(with.cluster, with.pods, {.mode = required}).placed);
    const auto room = make_room(with.cluster, with.pods, {.mode = required});
    REQUIRE(room.allocation.placed);
    CHECK(room.domains_considered == 3);
    // x and y leave switch a for the tightest other nodes; b costs as much, c has one node.
    CHECK(room.move_cost == 2);
    CHECK(room.plan.moves.size() == 2);
    CHECK(room.allocation.entropy == 0);
    CHECK(room.plan.vacated_nodes.empty());
    const auto report = verify::plan(with.cluster.to_spec(), to_spec(room.plan, with.cluster));
    INFO((report.ok ? "" : report.violations.front()));
    CHECK(report.ok);
    for (const auto& p : room.plan.placements) CHECK(with.cluster.name(p.node)[0] == 'a');

    SECTION("a dear task stays") {
        spec.tasks[0].move_cost = 10;
        const auto dear = gang(spec, 2, 4);
        const auto other = make_room(dear.cluster, dear.pods, {.mode = required});
        REQUIRE(other.allocation.placed);
        CHECK(other.move_cost == 2);
        CHECK(dear.cluster.name(other.plan.placements[0].node)[0] == 'b');
    }
    SECTION("limits and locks") {
        CHECK_FALSE(
            make_room(with.cluster, with.pods, {.mode = required}, {.max_moves = 1}).allocation.placed);
        CHECK_FALSE(
            make_room(with.cluster, with.pods, {.mode = required}, {.max_move_cost = 1}).allocation.placed);
        for (auto& task : spec.tasks) task.locked = true;
        const auto locked = gang(spec, 2, 4);
        const auto none = make_room(locked.cluster, locked.pods, {.mode = required});
        CHECK_FALSE(none.allocation.placed);
        CHECK(none.plan == Plan{});
        CHECK(none.allocation.obstacle == Obstacle::gpu);
    }
    SECTION("what fits needs no moves") {
        const auto small = gang(spec, 1, 4);
        const auto fits = make_room(small.cluster, small.pods, {.mode = required});
        CHECK(fits.plan.moves.empty());
        CHECK(fits.plan.placements.size() == 1);
    }
}

TEST_CASE("a gang that prefers one switch gets it where that costs no more") {
    auto spec = switches({{"a0", 8}, {"b0", 8}, {"b1", 8}});
    for (const auto* const node : {"a0", "b0", "b1"}) run(spec, std::string("t-") + node, node, 0, 1);
    const auto with = gang(spec, 2, 8);
    const auto room = make_room(with.cluster, with.pods);
    REQUIRE(room.allocation.placed);
    CHECK(room.move_cost == 2);
    CHECK(room.allocation.entropy == 0);
    CHECK(room.allocation.per_domain.size() == 1);
    CHECK(verify::plan(with.cluster.to_spec(), to_spec(room.plan, with.cluster)).ok);
    // Where the switch is dearer, the pods are spread.
    for (auto& task : spec.tasks)
        if (task.name == "t-b0") task.move_cost = 5;
    const auto dear = gang(spec, 2, 8);
    const auto spread = make_room(dear.cluster, dear.pods);
    REQUIRE(spread.allocation.placed);
    CHECK(spread.move_cost == 2);
    CHECK(spread.allocation.per_domain.size() == 2);
}

TEST_CASE("room that only a chain of moves makes") {
    // u may only go to b0, whose v must go to c0 first: direct moves do not do.
    auto spec = switches({{"a0", 4}, {"b0", 4}, {"c0", 4}});
    run(spec, "u", "a0", 0, 3);
    run(spec, "v", "b0", 0, 2);
    run(spec, "w", "c0", 0, 2);
    spec.nodes[2].gpu_model = "B";
    spec.tasks[0].gpu_models = {"A"};
    allocation::PodRequest pod{};
    pod.pod.gpu_count = 4;
    pod.pod.gpu_models = {"A"};
    const auto with = allocation::with_job(Cluster::build(spec), {"gang", {pod}});
    const auto room = make_room(with.cluster, with.pods);
    REQUIRE(room.allocation.placed);
    const auto report = verify::plan(with.cluster.to_spec(), to_spec(room.plan, with.cluster));
    INFO((report.ok ? "" : report.violations.front()));
    CHECK(report.ok);
}

TEST_CASE("bad arguments of make_room") {
    const auto with = gang(switches({{"a0", 4}}), 1, 1);
    CHECK_THROWS_MESSAGE(make_room(with.cluster, with.pods, {}, {.clear = std::vector{NodeId{0}}}),
                         InvalidInput, "clear: 1 nodes");
    CHECK_THROWS_MESSAGE(make_room(with.cluster, with.pods, {}, {.max_moves = -1}), InvalidInput,
                         "max_moves: -1");
    CHECK_THROWS_MESSAGE(make_room(with.cluster, std::vector<TaskId>{}), InvalidInput, "pods: none");
    std::stop_source stop;
    stop.request_stop();
    const auto full = gang(switches({{"a0", 4}}), 2, 4);
    CHECK(make_room(full.cluster, full.pods, {}, {}, {.stop = stop.get_token()}).stop_reason ==
          StopReason::cancelled);
}

// SPDX-License-Identifier: Apache-2.0
// Replay and resampling: events by hand, counts, determinism, and what the caller may get wrong.
#include "support/catch.hpp"

#include <gpusched/allocation/place.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/sim/sim.hpp>

using namespace gpusched;
using sim::replay;
using sim::ReplayOptions;
using sim::resample;

namespace {

NodeSpec node(std::string name, std::int64_t gpus) {
    NodeSpec n{.name = std::move(name), .gpu_count = gpus, .cpu_milli = 64'000, .memory_mib = 1 << 20};
    return n;
}

TraceTask arrival(std::string name, std::int64_t gpus, std::int64_t created,
                  std::optional<std::int64_t> deleted = {}, std::int64_t share = 1000) {
    TraceTask t;
    t.task.name = std::move(name);
    t.task.gpu_count = gpus;
    t.task.gpu_share_milli = share;
    t.task.cpu_milli = 1000;
    t.creation_time = created;
    t.deletion_time = deleted;
    return t;
}

std::string where(const Cluster& cluster, const char* task) {
    const auto n = cluster.node_of(cluster.find_task(task));
    return n == none<NodeId> ? "pending" : cluster.name(n);
}

// 4 GPUs on two nodes, listed in reverse. "late" is listed first.
Trace sample() {
    return {{node("b", 2), node("a", 2)},
            {arrival("late", 2, 30), arrival("first", 2, 0, 20), arrival("second", 2, 0),
             arrival("third", 1, 10), arrival("fourth", 1, 20, 25), arrival("last", 1, 30)}};
}

Trace random_trace(std::uint64_t seed, int tasks) {
    Rng rng(seed);
    Trace trace;
    for (int i = 0; i < 12; ++i) trace.nodes.push_back(node("n" + std::to_string(i), rng.between(1, 8)));
    for (int i = 0; i < tasks; ++i) {
        const auto created = rng.between(0, 1000);
        const bool fraction = rng.below(3) == 0;
        trace.tasks.push_back(arrival("t" + std::to_string(i), fraction ? 1 : rng.between(0, 4), created,
                                      created + rng.between(0, 200),
                                      fraction ? 100 * rng.between(1, 9) : 1000));
    }
    return trace;
}

}  // namespace

TEST_CASE("tasks arrive by time, leave before others arrive, and are tried once") {
    const auto result = replay(sample(), {.placement = "first_fit"});
    // 0: first -> a, second -> b. 10: third finds nothing. 20: first leaves; fourth -> a. 25: it leaves again.
    // 30: late (listed before last) takes both of a; last finds nothing.
    CHECK(result.unplaced == std::vector<std::string>{"third", "last"});
    CHECK(where(result.cluster, "second") == "b");
    CHECK(where(result.cluster, "late") == "a");
    CHECK(where(result.cluster, "third") == "pending");
    REQUIRE_THROWS_AS(result.cluster.find_task("first"), InvalidInput);  // gone
    CHECK(result.cluster.inventory().now == 30);
    CHECK(result.cluster.to_spec().nodes[0].name == "b");  // nodes as in the trace
    const auto& t = result.timeline;
    CHECK(t.time == std::vector<std::int64_t>{0, 0, 10, 20, 30, 30});
    CHECK(t.requested_gpu_milli == std::vector<std::int64_t>{2000, 4000, 5000, 6000, 8000, 9000});
    CHECK(t.allocated_gpu_milli == std::vector<std::int64_t>{2000, 4000, 4000, 3000, 4000, 4000});
    CHECK(t.running == std::vector<std::int64_t>{1, 2, 2, 2, 2, 2});
    CHECK(t.unplaced == std::vector<std::int64_t>{0, 0, 1, 1, 1, 2});
    CHECK(result.stop_reason == StopReason::completed);
    const auto late = result.cluster.find_task("late");
    CHECK(result.cluster.inventory().tasks.start_time[index(late)] == 30);
}

TEST_CASE("until stops after the events of that second; without departures everything stays") {
    const auto at_20 = replay(sample(), {.placement = "first_fit", .until = 20});
    CHECK(where(at_20.cluster, "fourth") == "a");
    CHECK(at_20.timeline.size() == 4);
    REQUIRE_THROWS_AS(at_20.cluster.find_task("late"), InvalidInput);  // not there yet
    const auto at_28 = replay(sample(), {.placement = "first_fit", .until = 28});
    REQUIRE_THROWS_AS(at_28.cluster.find_task("fourth"), InvalidInput);  // left at 25
    CHECK(at_28.cluster.inventory().now == 28);
    const auto before = replay(sample(), {.until = -1});
    CHECK(before.timeline.size() == 0);
    CHECK(before.cluster.task_count() == 0);

    const auto stay = replay(sample(), {.placement = "first_fit", .ignore_departures = true});
    CHECK(stay.unplaced == std::vector<std::string>{"third", "fourth", "late", "last"});
    CHECK(where(stay.cluster, "first") == "a");
}

TEST_CASE("a task with duration 0 uses resources in its own second only") {
    Trace trace{{node("n", 1)}, {arrival("zero", 1, 5, 5), arrival("next", 1, 5)}};
    const auto result = replay(trace);
    CHECK(result.unplaced.empty());
    CHECK(where(result.cluster, "next") == "n");
}

TEST_CASE("ties go to the smallest node name in any order of the list") {
    Trace trace{{node("c", 1), node("a", 1), node("b", 1)}, {arrival("x", 1, 0), arrival("y", 1, 0)}};
    for (const char* placement : {"first_fit", "best_fit", "least_allocated", "most_allocated", "dot_product",
                                  "gpu_packing", "gpu_clustering", "fgd", "asi"}) {
        const auto result = replay(trace, {.placement = placement});
        INFO(placement);
        CHECK(where(result.cluster, "x") == "a");
        CHECK(where(result.cluster, "y") == "b");
    }
}

TEST_CASE("a placement of one's own is chosen by name from the registries that the call is given") {
    const Trace trace{{node("a", 1), node("b", 1)}, {arrival("x", 1, 0)}};
    auto known = allocation::registries();
    known.placements.add("last_fit", [](const Inventory&) {
        return [](const Cluster& cluster, TaskId task, Rng&) -> std::optional<allocation::Destination> {
            const auto fit = allocation::feasible_nodes(cluster, task);
            if (fit.empty()) return std::nullopt;
            return allocation::Destination{fit.back(), gpu_bit(0)};
        };
    });
    CHECK(where(replay(trace, {.placement = "last_fit"}, {}, known).cluster, "x") == "b");
    REQUIRE_THROWS_MESSAGE(replay(trace, {.placement = "last_fit"}), InvalidInput,
                           "placement 'last_fit' random ");
}

TEST_CASE("every policy conserves resources while tasks come and go") {
    const auto trace = random_trace(9, 600);
    for (const auto& placement : allocation::placements().names()) {
        INFO(std::string(placement));
        const auto result = replay(trace, {.placement = std::string(placement), .until = 700, .seed = 3});
        // Cluster::build has checked the result; the timeline must agree with it.
        std::int64_t allocated = 0, running = 0;
        for (const auto task : result.cluster.tasks()) {
            if (!result.cluster.is_placed(task)) continue;
            allocated += result.cluster.gpu_milli(task);
            ++running;
        }
        CHECK(running > 10);
        CHECK(allocated <=
              result.timeline.allocated_gpu_milli.back());  // some may have left since the last arrival
        CHECK(result.timeline.size() > 300);
        const auto again = replay(trace, {.placement = std::string(placement), .until = 700, .seed = 3});
        CHECK(again.timeline == result.timeline);
        CHECK(again.unplaced == result.unplaced);
    }
}

TEST_CASE("shuffling ignores times and departures and depends on the seed") {
    const auto trace = random_trace(2, 80);
    const auto a = replay(trace, {.placement = "first_fit", .shuffle = true, .seed = 1});
    const auto b = replay(trace, {.placement = "first_fit", .shuffle = true, .seed = 2});
    CHECK(a.timeline.time.back() == 79);
    CHECK(a.cluster.task_count() == 80);
    CHECK(a.timeline.requested_gpu_milli.back() == b.timeline.requested_gpu_milli.back());
    CHECK(a.timeline.requested_gpu_milli != b.timeline.requested_gpu_milli);
    CHECK(a.timeline == replay(trace, {.placement = "first_fit", .shuffle = true, .seed = 1}).timeline);
}

TEST_CASE("resampling reaches the demand with copies under new names") {
    const auto trace = random_trace(4, 30);
    std::int64_t capacity = 0, original = 0;
    for (const auto& n : trace.nodes) capacity += 1000 * n.gpu_count;
    std::map<std::string, const TaskSpec*> by_name;
    for (const auto& t : trace.tasks) {
        by_name[t.task.name] = &t.task;
        original += t.task.gpu_count * t.task.gpu_share_milli;
    }
    const double ratio = 3.0;
    REQUIRE(original < 3 * capacity);
    Rng rng(5);
    std::vector<std::size_t> sources{99};
    const auto more = resample(trace, ratio, rng, &sources);
    REQUIRE(sources.size() == more.tasks.size());
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const auto& name = more.tasks[i].task.name;
        CHECK(trace.tasks.at(sources[i]).task.name == name.substr(0, name.find("-copy-")));
    }
    std::int64_t demand = 0;
    std::set<std::string> names;
    std::size_t originals = 0;
    for (const auto& t : more.tasks) {
        demand += t.task.gpu_count * t.task.gpu_share_milli;
        names.insert(t.task.name);
        originals += by_name.contains(t.task.name) ? 1 : 0;
        const auto* source = by_name.at(t.task.name.substr(0, t.task.name.find("-copy-")));
        CHECK(t.task.gpu_count == source->gpu_count);
        CHECK(t.task.cpu_milli == source->cpu_milli);
    }
    CHECK(names.size() == more.tasks.size());
    CHECK(originals == trace.tasks.size());
    CHECK(demand <= 3 * capacity);
    CHECK(demand > 3 * capacity - 4000);  // the next one, of at most 4 GPUs, would have exceeded it

    const auto fewer = resample(trace, 0.5, rng);
    demand = 0;
    for (const auto& t : fewer.tasks) {
        demand += t.task.gpu_count * t.task.gpu_share_milli;
        CHECK(by_name.contains(t.task.name));
    }
    CHECK(demand <= capacity / 2);
    CHECK(demand > capacity / 2 - 4000);
    CHECK(fewer.tasks.size() < trace.tasks.size());
}

TEST_CASE("resampled copies do not clash with names of the list") {
    Trace trace{{node("n", 8)}, {arrival("t", 1, 0), arrival("t-copy-0", 1, 0), arrival("t-copy-1", 1, 0)}};
    Rng rng(1);
    const auto more = resample(trace, 2.0, rng);
    std::set<std::string> names;
    for (const auto& t : more.tasks) names.insert(t.task.name);
    CHECK(more.tasks.size() == 16);
    CHECK(names.size() == 16);
}

TEST_CASE("a user-defined policy is used, notified of changes, and checked") {
    struct Told {  // a follower
        std::vector<NodeId>* nodes;
        void rebuild(const Cluster&) {}
        void usage_changed(const Cluster&, NodeId n) { nodes->push_back(n); }
    };
    struct Alternating {
        Followed<Told> told;
        std::size_t calls = 0;
        std::optional<allocation::Destination> operator()(const Cluster& cluster, TaskId, Rng&) {
            (void)told.of(cluster);
            const auto n = make_id<NodeId>(calls++ % cluster.node_count());
            return allocation::Destination{n, lowest_gpus(cluster.idle_gpus(n), 1)};
        }
    };
    Trace trace{{node("a", 2), node("b", 2)}, {arrival("x", 1, 0), arrival("y", 1, 1), arrival("z", 1, 2)}};
    std::vector<NodeId> told;
    const auto result = replay(trace, Alternating{Followed(Told{&told})});
    CHECK(where(result.cluster, "x") == "a");
    CHECK(where(result.cluster, "y") == "b");
    CHECK(where(result.cluster, "z") == "a");
    // Asked three times: changes after the last answer are not requested.
    CHECK(told == std::vector{make_id<NodeId>(0), make_id<NodeId>(1)});

    const auto fixed = [](NodeId n, GpuMask gpus) {
        return [=](const Cluster&, TaskId, Rng&) { return std::optional(allocation::Destination{n, gpus}); };
    };
    REQUIRE_THROWS_MESSAGE(replay(trace, fixed(make_id<NodeId>(0), 1)), InvalidInput,
                           "node 'a' task 'y' not fit GPUs [0]");
    REQUIRE_THROWS_MESSAGE(replay(trace, fixed(make_id<NodeId>(9), 1)), InvalidInput, "task 'x' not exist");
}

TEST_CASE("FGD's running metric ends at the value of the final cluster") {
    const auto trace = random_trace(6, 200);
    const auto result = replay(trace, {.placement = "fgd", .ignore_departures = true});
    REQUIRE(result.timeline.fragmented_gpus.size() == result.timeline.size());
    const auto workload = fragmentation::typical_workload(trace);
    CHECK(result.timeline.fragmented_gpus.back() ==
          Catch::Approx(fragmentation::fgd(result.cluster, workload)));
}

TEST_CASE("a stop request ends a replay with the results so far") {
    std::stop_source source;
    Context context;
    context.stop = source.get_token();
    source.request_stop();
    const auto result = replay(random_trace(1, 300), {}, context);
    CHECK(result.stop_reason == StopReason::cancelled);
    CHECK(result.timeline.size() == 0);
}

TEST_CASE("an empty trace is fine") {
    CHECK(replay({}).cluster.node_count() == 0);
    CHECK(replay({{node("n", 1)}, {}}).unplaced.empty());
}

TEST_CASE("unsupported replay options are named") {
    const auto trace = sample();
    REQUIRE_THROWS_MESSAGE(replay(trace, {.placement = "worst_fit"}), InvalidInput, "placement 'worst_fit'");
    REQUIRE_THROWS_MESSAGE(replay(trace, {.until = 5, .shuffle = true}), InvalidInput, "until 5; none with");
    REQUIRE_THROWS_MESSAGE(replay(trace, {.resample_to = 0.0}), InvalidInput, "resample_to 0; above 0 1000");
    REQUIRE_THROWS_MESSAGE(replay({{node("n", 1)}, {arrival("cpu", 0, 0)}}, {.resample_to = 1.0}),
                           InvalidInput, "no task GPU");
    auto placed = trace;
    placed.tasks[0].task.node = "a";
    REQUIRE_THROWS_MESSAGE(replay(placed), InvalidInput, "task 'late' node 'a' none every task");
    auto twice = trace;
    twice.tasks[1].task.name = "late";
    REQUIRE_THROWS_MESSAGE(replay(twice), InvalidInput, "'late' duplicate task");
}

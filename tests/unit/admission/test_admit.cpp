// SPDX-License-Identifier: Apache-2.0
#include "support/admissions.hpp"

using namespace gpusched;
using namespace gpusched::admission;
using testing_support::verified;
using testing_support::waiting;

namespace admit_tests {

ClusterSpec nodes(int count, int gpus = 8) {
    ClusterSpec spec;
    spec.now = 1000;
    for (int n = 0; n < count; ++n)
        spec.nodes.push_back({.name = "n" + std::to_string(n), .gpu_model = "A", .gpu_count = gpus});
    return spec;
}

/// From now on, and may be evicted.
TaskSpec& run(ClusterSpec& spec, const std::string& name, const std::string& node, int first, int gpus) {
    auto& task = testing_support::run(spec, name, node, first, gpus);
    task.start_time = spec.now;
    task.preemptible = true;
    return task;
}

/// Every node holds 4 + 2 of 8 GPUs.
ClusterSpec fragmented(int count) {
    auto spec = nodes(count);
    for (int n = 0; n < count; ++n) {
        run(spec, "four" + std::to_string(n), "n" + std::to_string(n), 0, 4);
        run(spec, "two" + std::to_string(n), "n" + std::to_string(n), 4, 2);
    }
    return spec;
}

TEST_CASE("documents of plans know the parts of the cost") {
    std::vector<std::string_view> parts;
    visit_fields(std::type_identity<Cost>{},
                 [&](const char* name, auto, const auto&...) { parts.emplace_back(name); });
    CHECK(std::equal(parts.begin(), parts.end(), cost_part_names.begin(), cost_part_names.end()));
}

TEST_CASE("a job that fits is placed without disturbing any task") {
    auto spec = nodes(2);
    run(spec, "a", "n0", 0, 6);
    const auto made = verified(waiting(spec, 1, 8));
    CHECK(made.admitted);
    CHECK(made.plan.moves.empty());
    CHECK(made.cost == Cost{});
    CHECK(made.bound == 0);
    CHECK(made.proven);
}

TEST_CASE("a chain of three moves, because two would leave a task without a place") {
    const auto with = waiting(fragmented(5), 1, 8);
    const auto made = verified(with);
    REQUIRE(made.admitted);
    CHECK(made.plan.moves.size() == 3);
    CHECK(made.cost.moves == 8 * 30 * 1000);  // 4 + 2 GPUs off the node, 2 for the 4
    CHECK(made.cost.total() == made.cost.moves);
    CHECK(made.proven);
    CHECK(made.bound == made.cost.total());
    SECTION("not without nesting") {
        const auto flat = verified(with, {.search = {.depth = 1}});
        CHECK_FALSE(flat.admitted);
        CHECK_FALSE(flat.proven);
        REQUIRE(flat.bound);
        CHECK(*flat.bound <= made.cost.total());
        CHECK_FALSE(flat.reason.empty());
    }
    SECTION("not with a limit that is too low") {
        CHECK(verified(with, {.max_moves = 3}).admitted);
        CHECK_FALSE(verified(with, {.max_moves = 2}).admitted);
        CHECK(verified(with, {.max_cost_s = 240}).admitted);
        CHECK_FALSE(verified(with, {.max_cost_s = 239}).admitted);
    }
    SECTION("spared tasks and exempt nodes") {
        Options options;
        for (int n = 1; n < 5; ++n) options.exempt.push_back(make_id<NodeId>(static_cast<std::size_t>(n)));
        CHECK_FALSE(verified(with, options).admitted);
        options = {};
        for (int n = 0; n < 5; ++n)
            options.spare.push_back(with.cluster.find_task("four" + std::to_string(n)));
        const auto none_left = verified(with, options);
        CHECK_FALSE(none_left.admitted);
        CHECK(none_left.proven);
        CHECK(none_left.obstacle == Obstacle::gpu);
        CHECK_THAT(none_left.reason,
                   Mentions("fits on no node, even if every task leaves that may leave; closest node"));
    }
}

TEST_CASE("the cheaper of moving, restarting and losing") {
    // One 4-GPU task must leave n0; n1 has room for it.
    auto spec = nodes(2);
    auto& victim = run(spec, "victim", "n0", 0, 4);
    victim.start_time = spec.now - 100;
    run(spec, "stays", "n1", 0, 4).locked = true;
    SECTION("a move") {
        const auto made = verified(waiting(spec, 1, 8, 10));
        CHECK(made.plan.moves.size() == 1);
        CHECK(made.cost.total() == 4 * 30 * 1000);
    }
    SECTION("a restart if moves are costly") {
        const auto made = verified(waiting(spec, 1, 8, 10), {.prices = {.move_price_s = 401}});
        CHECK(made.plan.moves.empty());
        REQUIRE(made.plan.evictions.size() == 1);
        CHECK(made.lost.empty());
        CHECK(made.cost.restarts == 4 * 300 * 1000);
        CHECK(made.cost.lost_work == 4 * 100 * 1000);
        CHECK(made.proven);
    }
    SECTION("for good if nothing else is allowed") {
        const auto made = verified(waiting(spec, 1, 8, 10), {.moves = false, .replace = false});
        REQUIRE(made.lost.size() == 1);
        CHECK(made.cost.losses == 4 * 3600 * 1000);
        CHECK(made.cost.lost_work == 4 * 100 * 1000);
    }
    SECTION("no task of the same priority is evicted") {
        const auto made = verified(waiting(spec, 1, 8, 0), {.moves = false});
        CHECK_FALSE(made.admitted);
        CHECK(made.proven);
    }
    SECTION("tasks that are counted") {
        Options count{.prices = {.move_price_s = 0, .restart_s = 0, .loss_s = 0, .task_price_s = 1}};
        count.prices.work = false;
        const auto made = verified(waiting(spec, 1, 8, 10), count);
        CHECK(made.cost.tasks == 1000);
        CHECK(made.cost.total() == 1000);
    }
}

TEST_CASE("gangs of victims leave whole, and pay for all members") {
    auto spec = nodes(2);
    spec.jobs.push_back({.name = "g", .min_members = 2});
    run(spec, "g0", "n0", 0, 4).job = "g";
    run(spec, "g1", "n1", 0, 2).job = "g";
    run(spec, "single", "n1", 2, 6).preemptible = false;
    for (auto& task : spec.tasks) task.how = Mobility::none;
    const auto made = verified(waiting(spec, 1, 8, 10));
    REQUIRE(made.admitted);
    CHECK(made.plan.evictions.size() == 2);
    CHECK(made.lost.size() == 2);
    CHECK(made.cost.losses == (4 + 2) * 3600 * 1000);
}

TEST_CASE("a gang leaves whole if one of its subgroups would fall below min_members") {
    auto spec = nodes(2);
    spec.jobs.push_back({.name = "g", .min_members = 2, .subgroups = {{"leader", 1}, {"worker", 1}}});
    run(spec, "leader", "n0", 0, 8).job = "g";
    run(spec, "w0", "n1", 0, 4).job = "g";
    run(spec, "w1", "n1", 4, 4).job = "g";
    for (auto& task : spec.tasks) {
        task.how = Mobility::none;
        task.subgroup = task.name == "leader" ? "leader" : "worker";
    }
    // One worker is surplus; the room of the leader, or of both workers, is that of all.
    const auto one = verified(waiting(spec, 1, 4, 10));
    REQUIRE(one.plan.evictions.size() == 1);
    CHECK(spec.tasks[index(one.plan.evictions[0])].subgroup == "worker");
    const auto all = verified(waiting(spec, 1, 8, 10));
    REQUIRE(all.admitted);
    CHECK(all.plan.evictions.size() == 3);
    spec.tasks[1].preemptible = false;  // then only the other worker may leave
    CHECK_FALSE(verified(waiting(spec, 1, 8, 10)).admitted);
    CHECK(verified(waiting(spec, 1, 4, 10)).plan.evictions == std::vector<TaskId>{TaskId{2}});
}

TEST_CASE("disruption budgets hold unless they have a price") {
    auto spec = nodes(1);
    run(spec, "a", "n0", 0, 4).how = Mobility::none;
    run(spec, "b", "n0", 4, 4).how = Mobility::none;
    spec.budgets.push_back({.name = "one", .tasks = {"a", "b"}, .allowed_down = 1});
    const auto with = waiting(spec, 1, 8, 10);
    CHECK_FALSE(verified(with).admitted);
    const auto made = admit(with.cluster, with.pods, {.prices = {.budget_price_s = 7}});
    REQUIRE(made.admitted);
    CHECK(made.cost.budgets == 7000);
    REQUIRE(made.broken_budgets.size() == 1);
    CHECK(made.broken_budgets.front().over == 1);
}

TEST_CASE("borrowed capacity has a price") {
    auto spec = nodes(2, 4);
    auto& owner = run(spec, "owner", "n0", 0, 4);
    owner.priority_class = PriorityClass::hp;
    owner.standby = true;
    owner.preemptible = false;
    run(spec, "other", "n1", 0, 3);
    allocation::PodRequest pod{.count = 1};
    pod.pod.gpu_count = 2;
    pod.pod.priority_class = PriorityClass::lp;
    const auto with = allocation::with_job(Cluster::build(spec), {"job", {pod}});
    const auto made = verified(with);
    REQUIRE(made.admitted);
    CHECK(made.cost.recalls == 2 * 60 * 1000);
    CHECK(made.cost.total() == made.cost.recalls);
    CHECK_FALSE(verified(with, {.standby = false}).admitted);
}

TEST_CASE("a gang within one switch, or not at all") {
    auto spec = fragmented(8);
    for (std::size_t n = 0; n < spec.nodes.size(); ++n) spec.nodes[n].network = {n < 4 ? "a" : "b"};
    const auto with = waiting(spec, 2, 8);
    const auto made = verified(with, {.level = 0, .mode = NetworkMode::required});
    REQUIRE(made.admitted);
    const auto& inv = with.cluster.inventory();
    CHECK(inv.domain(0, made.pods[0].node) == inv.domain(0, made.pods[1].node));
    CHECK(made.stats.domains_considered >= 1);
    CHECK_FALSE(verified(waiting(spec, 5, 8), {.level = 0, .mode = NetworkMode::required}).admitted);
}

TEST_CASE("a filter binds pods and displaced tasks, and its bound holds") {
    const auto with = waiting(fragmented(6), 1, 8);
    const auto refused = [&](TaskId task, NodeId node) {
        return index(node) % 3 == 0 || (task == with.pods[0] && index(node) != 4);
    };
    Options options;
    options.filter = [&](const Cluster& cluster, TaskId task, NodeId node) {
        CHECK(cluster.node_of(with.pods[0]) == none<NodeId>);  // the snapshot, as it is
        return !refused(task, node);
    };
    const auto made = verified(with, options);
    REQUIRE(made.admitted);
    CHECK(index(made.pods[0].node) == 4);
    for (const auto& move : made.plan.moves) CHECK_FALSE(refused(move.task, move.to));
    CHECK(made.moved().size() == made.plan.moves.size());
    CHECK(*made.bound <= made.cost.total());
    CHECK(*made.bound >= *verified(with).bound);
    const auto room = make_room(with.cluster, with.pods, options);
    REQUIRE(room);
    CHECK(room->moves == made.plan.moves);
    // Free capacity does not count on nodes that the filter refuses.
    auto spec = fragmented(6);
    spec.nodes.push_back(spec.nodes.back());
    spec.nodes.back().name = "z";
    const auto roomy = waiting(spec, 1, 8);
    REQUIRE(verified(roomy).cost.total() == 0);
    options.filter = [](const Cluster& cluster, TaskId, NodeId node) { return cluster.name(node) != "z"; };
    CHECK(verified(roomy, options).cost.total() > 0);
}

TEST_CASE("bad options of admission are all named") {
    const auto with = waiting(fragmented(2), 1, 8);
    const auto fails = [&](const Options& options, const std::string& text) {
        CHECK_THROWS_MESSAGE(admit(with.cluster, with.pods, options), InvalidInput, text);
    };
    fails({.prices = {.move_price_s = -1}}, "move_price_s: -1; expected 0 1000000000");
    fails({.max_moves = -1}, "max_moves: -1; expected 0");
    fails({.search = {.depth = 0}}, "depth: 0; expected 1 16");
    fails({.search = {.search_limit = 0}}, "search_limit: 0; expected 1");
    fails({.exempt = {make_id<NodeId>(9)}}, "exempt: #9; expected nodes 2");
    fails({.spare = {make_id<TaskId>(99)}}, "spare: #99; expected tasks 5");
    CHECK_THROWS_MESSAGE(admit(with.cluster, std::vector<TaskId>{}), InvalidInput, "pods: none");
}

TEST_CASE("limits of admission leave a valid answer") {
    const auto with = waiting(fragmented(20), 2, 8);
    const auto all = verified(with);
    REQUIRE(all.admitted);
    SECTION("steps") {
        const auto few = verified(with, {.search = {.search_limit = 1}});
        CHECK_FALSE(few.proven);
        if (few.bound) CHECK(*few.bound <= all.cost.total());
        CHECK(few.stats.steps < all.stats.steps);
    }
    SECTION("moves: the search that finds how many it takes counts") {
        const auto none = admit(with.cluster, with.pods, {.max_moves = 0, .max_evictions = 0});
        CHECK_FALSE(none.admitted);
        CHECK(none.stats.steps >= all.stats.steps);
        CHECK_THAT(none.reason, Mentions("max_moves is 0, plan needs"));
        const auto hurried =
            admit(with.cluster, with.pods, {.max_moves = 0, .max_evictions = 0, .time_limit = 0});
        CHECK_FALSE(hurried.admitted);
        CHECK(hurried.stats.steps < all.stats.steps);
    }
    SECTION("a cancellation") {
        std::stop_source stop;
        stop.request_stop();
        const auto made = admit(with.cluster, with.pods, {}, {.stop = stop.get_token()});
        CHECK(made.stop_reason == StopReason::cancelled);
        CHECK_FALSE(made.proven);
    }
    SECTION("the same again") {
        const auto again = verified(with);
        CHECK(again.plan == all.plan);
        CHECK(again.stats == all.stats);
    }
}

}  // namespace admit_tests

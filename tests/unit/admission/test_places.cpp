// SPDX-License-Identifier: Apache-2.0
// What displaced tasks need elsewhere: in the order of the search, and in the bound of gangs.
#include "support/admissions.hpp"

using namespace gpusched;
using namespace gpusched::admission;
using testing_support::waiting;

namespace places_tests {

ClusterSpec nodes(int count) {
    ClusterSpec spec;
    spec.now = 100'000;
    for (int n = 0; n < count; ++n)
        spec.nodes.push_back({.name = "n" + std::to_string(n), .gpu_model = "A", .gpu_count = 8});
    return spec;
}

void run(ClusterSpec& spec, int node, int first, int gpus, std::int64_t age = 0) {
    auto& task = testing_support::run(spec, "t" + std::to_string(spec.tasks.size()),
                                      "n" + std::to_string(node), first, gpus);
    task.start_time = spec.now - age;
    task.preemptible = true;
}

Admission admitted(const allocation::ClusterWithJob& with, const Options& options = {}) {
    auto made = testing_support::verified(with, options);
    REQUIRE(made.admitted);
    return made;
}

Options counted() {
    Options options{
        .prices = {.move_price_s = 0, .restart_s = 0, .loss_s = 0, .recall_price_s = 0, .task_price_s = 1}};
    options.prices.work = false;
    return options;
}

TEST_CASE("a gang on nodes of 4 + 2 and 4 + 1 + 1: three moves for each pod, proven") {
    // To free 8 GPUs, 4 + 2 must leave; and on the destination of the 4, 2 more must leave.
    auto spec = nodes(50);
    for (int n = 0; n < 50; ++n) {
        run(spec, n, 0, 4);
        if (n % 2 == 0) {
            run(spec, n, 4, 2);
        } else {
            run(spec, n, 4, 1);
            run(spec, n, 5, 1);
        }
    }
    const auto with = waiting(spec, 4, 8);
    const auto by_count = admitted(with, counted());
    CHECK(by_count.plan.moves.size() == 12);
    CHECK(by_count.proven);
    const auto by_price = admitted(with);
    CHECK(by_price.cost.total() == 4 * (4 + 2 + 2) * 30 * 1000);
    CHECK(by_price.proven);
}

TEST_CASE("places that are free for some of the displaced add nothing to the bound") {
    // As above, but 4 GPUs are idle on one node: by the bound a place for a 4 costs nothing then.
    auto spec = nodes(10);
    for (int n = 0; n < 9; ++n) {
        run(spec, n, 0, 4);
        run(spec, n, 4, 2);
    }
    run(spec, 9, 0, 4);
    const auto made = admitted(waiting(spec, 2, 8), counted());
    // The 4 of n9 alone leaves for the first pod; the second takes 4 + 2.
    CHECK(made.plan.moves.size() <= 5);
    REQUIRE(made.bound);
    CHECK(*made.bound <= made.cost.total());
    CHECK(*made.bound >= 3 * 1000);
}

TEST_CASE("on a full cluster the tasks with the least work are lost, wherever they are") {
    // Every node holds 4 + 4 of old work, except one young task on each of n2 and n3.
    auto spec = nodes(6);
    for (int n = 0; n < 6; ++n)
        for (int half = 0; half < 2; ++half)
            run(spec, n, 4 * half, 4, (n == 2 || n == 3) && half == 0 ? 100 : 50'000 + 1000 * n);
    const auto made = admitted(waiting(spec, 1, 8, 10));
    CHECK(made.lost == std::vector{TaskId{4}, TaskId{6}});
    // The old half of one of these nodes takes the place of the young one on the other.
    CHECK(made.plan.moves.size() == 1);
    CHECK(made.cost.moves == 4 * 30 * 1000);
    CHECK(made.cost.lost_work == 2 * 4 * 100 * 1000);
    REQUIRE(made.bound);
    CHECK(*made.bound <= made.cost.total());
    CHECK(*made.bound * 100 >= made.cost.total() * 99);

    // For a gang as many more: those with the next least work.
    const auto gang = admitted(waiting(spec, 2, 8, 10));
    CHECK(gang.lost.size() == 4);
    CHECK(std::count(gang.lost.begin(), gang.lost.end(), TaskId{4}) == 1);
    CHECK(std::count(gang.lost.begin(), gang.lost.end(), TaskId{6}) == 1);
    CHECK(gang.cost.lost_work == 4 * (100 + 100 + 50'000 + 50'000) * std::int64_t{1000});
    CHECK(gang.cost.moves == 4 * 30 * 1000);
}

/// Nodes n0, n1, ..., each in a rack of its own, with these numbers of GPUs and one more for a task that stays.
/// n2 is cordoned.
ClusterSpec racks(const std::vector<int>& gpus) {
    ClusterSpec spec;
    for (std::size_t n = 0; n < gpus.size(); ++n) {
        NodeSpec node{.name = "n" + std::to_string(n),
                      .gpu_count = gpus[n] + 1,
                      .schedulable = n != 2,
                      .network = {"r" + std::to_string(n)}};
        spec.nodes.push_back(node);
        testing_support::run(spec, "stays on " + node.name, node.name, gpus[n], 1).locked = true;
    }
    return spec;
}

TEST_CASE("tasks leave for a constraint of another task that needs members of a group") {
    struct Case {
        std::string name;
        ClusterSpec spec;
        std::int64_t cost;  // of the cheapest plan, in GPU-seconds; -1 = there is none
    };
    std::vector<Case> cases;
    const auto member = [](ClusterSpec& spec, const std::string& name, const char* node,
                           int gpu) -> TaskSpec& {
        auto& made = testing_support::run(spec, name, node, gpu, 1);
        made.groups = {"g"};
        return made;
    };
    const auto pod = [](ClusterSpec& spec, const std::string& name, int gpus) -> TaskSpec& {
        spec.tasks.push_back({.name = name, .gpu_count = gpus, .priority = 1});
        return spec.tasks.back();
    };
    // n0 has no place for the pod, but n1 has places for it and for the task that it needs near it.
    for (const auto how : {Mobility::copy, Mobility::restart, Mobility::none}) {
        auto spec = racks({1, 2});
        member(spec, "member", "n0", 0).how = how;
        pod(spec, "pod", 1).near = {{"g", node_level}};
        cases.push_back({"near: the task moves by " + std::to_string(static_cast<int>(how)), spec,
                         how == Mobility::none ? -1 : 30});
    }
    {
        auto spec = racks({1, 2});
        member(spec, "member", "n0", 0);
        testing_support::run(spec, "other", "n1", 0, 1);
        pod(spec, "pod", 1).near = {{"g", 0}};
        cases.push_back({"near: two tasks change places", spec, 60});
    }
    {
        auto spec = racks({3, 1});
        member(spec, "member", "n1", 0);
        for (const auto* name : {"p0", "p1"}) {
            pod(spec, name, 1).near = {{"g", node_level}};
            spec.tasks.back().groups = {"g"};
        }
        cases.push_back({"near: a task comes to pods that need each other", spec, 30});
    }
    {
        // The first task of a group needs no other near it: the one on the cordoned node is lost.
        auto spec = racks({2, 1, 1});
        member(spec, "first", "n0", 0).near = {{"g", node_level}};
        member(spec, "old", "n2", 0).preemptible = true;
        pod(spec, "pod", 2);
        cases.push_back({"near: all others are lost", spec, 30 + 3600});
    }
    {
        // n0 -> n1 -> n3 -> n4 -> n5: each task fits only on the next node.
        auto spec = racks({1, 1, 0, 1, 1, 1});
        spec.tasks.front().groups = {"g"};
        pod(spec, "pod", 1).near = {{"g", node_level}};
        const char* from = "n0";
        for (const auto* to : {"n1", "n3", "n4", "n5"}) {
            spec.nodes[static_cast<std::size_t>(to[1] - '0')].labels["only"] = to;
            testing_support::run(spec, std::string("to ") + to, from, 0, 1).node_selector["only"] = to;
            from = to;
        }
        cases.push_back({"near: a chain of four moves", spec, 120});
    }
    // n1 has no place for the pod, and n0 has two members already.
    for (const int skew : {1, 2, 3}) {
        auto spec = racks({4, 1});
        member(spec, "a", "n0", 0);
        member(spec, "b", "n0", 1);
        pod(spec, "pod", 2).spread = {{.group = "g", .level = 0, .max_skew = skew}};
        spec.tasks.back().groups = {"g"};
        cases.push_back({"spread: by at most " + std::to_string(skew), spec, skew == 3 ? 0 : 30});
    }
    {
        // All members move to n0; the last one has its constraint and must be the first.
        auto spec = racks({3, 3});
        for (const int gpu : {0, 1, 2}) member(spec, "m" + std::to_string(gpu), "n1", gpu);
        spec.tasks.back().spread = {{.group = "g", .level = 0, .max_skew = 1}};
        pod(spec, "pod", 3).node_selector["only"] = "n1";
        spec.nodes[1].labels["only"] = "n1";
        cases.push_back({"spread: a task moves before other members", spec, 90});
    }
    {
        auto spec = racks({3, 0});
        member(spec, "a", "n0", 0).preemptible = true;
        auto& large = pod(spec, "pod", 2);
        large.groups = {"g"};
        large.spread = {{.group = "g", .level = 0, .max_skew = 1}};
        cases.push_back({"spread: a task restarts after the pod", spec, 300});
        large.gpu_count = 3;
        cases.push_back({"spread: a task is lost", spec, 3600});
    }
    for (const auto& [name, spec, cost] : cases) {
        CAPTURE(name);
        std::vector<TaskId> pods;
        for (std::size_t t = 0; t < spec.tasks.size(); ++t)
            if (!spec.tasks[t].node) pods.push_back(make_id<TaskId>(t));
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto made = admit(cluster, pods);
        CHECK(made.admitted == (cost >= 0));
        if (!made.admitted) continue;
        CHECK(made.cost.total() == cost * 1000);
        CHECK(verify::plan(spec, to_spec(made.plan, cluster)).ok);
    }
}

}  // namespace places_tests

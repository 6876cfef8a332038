// SPDX-License-Identifier: Apache-2.0
// why() of gangs, and of pods that must be near others.
#include "support/catch.hpp"
#include "support/messages.hpp"
#include "support/specs.hpp"
#include "why_cases.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/admission/why.hpp>
#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/place.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

using namespace gpusched;
using namespace gpusched::admission;
using namespace why_cases;
using testing_support::node;

TEST_CASE("why answers for gangs") {
    ClusterSpec spec;
    spec.jobs = {{.name = "gang", .min_members = 4}};
    for (int i = 0; i < 4; ++i) spec.nodes.push_back(node("n" + std::to_string(i), 8, 64));
    for (int i = 0; i < 4; ++i) spec.tasks.push_back(pod("g" + std::to_string(i), 8, "gang"));

    SECTION("the GPUs that other tasks hold are missing") {
        for (int i = 0; i < 4; ++i) {
            spec.tasks.push_back(running("t" + std::to_string(i), "n" + std::to_string(i), first(5)));
            spec.tasks.back().how = Mobility::restart;
        }
        const auto cluster = Cluster::build(spec);
        const auto found = why(cluster, "gang");
        CHECK(found.cause_kind == Cause::capacity);
        CHECK(found.impossible == false);
        CHECK_THAT(found.cause, Mentions("0 of 4 pods find a place"));
        CHECK_THAT(found.cause, Mentions("have 12 idle GPUs"));
        CHECK_THAT(found.cause, Mentions("the 4 pods need 32, 8 on one node"));
        CHECK(remedy(found, RemedyKind::add_nodes)->text == "add 4 M nodes like n0");
    }
    SECTION("it is too large even for empty nodes") {
        spec.nodes.pop_back();
        const auto found = why(Cluster::build(spec), "gang");
        CHECK(found.impossible == true);
        CHECK_THAT(found.cause, Mentions("would hold only 3 of 4 pods"));
        CHECK_THAT(found.cause, Mentions("they have 24 GPUs, the pods need 32"));
        CHECK(found.kinds.front().places == 3);
        CHECK(remedy(found, RemedyKind::add_nodes)->text == "add 1 M node like n0");
    }
    SECTION("no domain holds all pods") {
        for (int i = 0; i < 4; ++i) spec.nodes[static_cast<std::size_t>(i)].network = {i < 3 ? "r0" : "r1"};
        for (auto& task : spec.tasks) task.network_affinity = NetworkAffinity{0, NetworkMode::required};
        spec.nodes.push_back(node("n4", 8, 64));
        spec.nodes.back().network = {"r1"};
        const auto found = why(Cluster::build(spec), "gang");
        CHECK(found.impossible == true);  // two racks of 3 and 2 nodes
        spec.nodes.push_back(node("n5", 8, 64));
        spec.nodes.back().network = {"r0"};
        spec.tasks.push_back(running("one", "n5", first(1)));
        const auto spread = why(Cluster::build(spec), "gang");
        CHECK(spread.impossible == false);
        CHECK(spread.cause_kind == Cause::topology);
        CHECK(spread.domains == std::vector<WhyDomain>{{"r0", 3}, {"r1", 2}});
    }
    SECTION("a pod that fits alone is answered for its gang") {
        spec.tasks.push_back(running("one", "n3", first(1)));
        const auto found = why(Cluster::build(spec), "g0");
        CHECK_FALSE(found.fits);
        CHECK(found.pods.size() == 4);
        CHECK(found.places == 3);
    }
    SECTION("enough members for the gang to start") {
        spec.jobs[0].min_members = 3;
        spec.tasks.push_back(running("one", "n3", first(1)));
        const auto found = why(Cluster::build(spec), "gang");
        CHECK_FALSE(found.fits);
        CHECK_THAT(found.cause, Mentions("3 of 4 pods find a place, enough for the gang to start"));
    }
    SECTION("kinds that the nodes would not hold are not counted as one") {
        spec.tasks[0].gpu_count = 4;
        spec.tasks.push_back(pod("g4", 8, "gang"));
        spec.jobs[0].min_members = 3;
        const auto found = why(Cluster::build(spec), "gang");
        CHECK(found.impossible == true);
        CHECK_THAT(found.cause, Mentions("not hold all of the 5 pods"));
        CHECK_THAT(found.cause,
                   Mentions("4 of the pods find a place as it is, enough for the gang to start"));
        spec.jobs[0].min_members = 5;
        CHECK_THAT(why(Cluster::build(spec), "gang").cause, !Mentions("enough for the gang"));
    }
    SECTION("the search for what is impossible does not try every order of many pods on many nodes") {
        // Each pod must be in a rack with a task that leaves no room for it on its own node; no rack holds all pods.
        const std::size_t rack = 12;
        for (int i = 4; i < 13; ++i) spec.tasks.push_back(pod("g" + std::to_string(i), 8, "gang"));
        for (auto& task : spec.tasks) task.near.push_back({{"db"}, 0});
        for (int n = 4; n < 600; ++n) spec.nodes.push_back(node("n" + std::to_string(n), 8, 64));
        for (std::size_t n = 0; n < spec.nodes.size(); ++n) {
            spec.nodes[n].network = {"r" + std::to_string(n / rack)};
            spec.tasks.push_back(running("t" + std::to_string(n), spec.nodes[n].name, {1}));
            if (n % rack == 0 && n < 3 * rack) spec.tasks.back().groups = {"db"};
        }
        CHECK(why(Cluster::build(spec), "gang").impossible == false);
    }
    SECTION("a pod that fits nowhere is answered for its gang, too") {
        for (int i = 0; i < 4; ++i) {
            spec.tasks.push_back(running("t" + std::to_string(i), "n" + std::to_string(i), first(5)));
            spec.tasks.back().how = Mobility::restart;
        }
        const auto found = why(Cluster::build(spec), "g0");
        CHECK(found.pods.size() == 4);
        CHECK(remedy(found, RemedyKind::add_nodes)->text == "add 4 M nodes like n0");
    }
    SECTION("a pod of the gang is no obstacle to another one") {
        spec.tasks.push_back(running("full", "n3", first(8)));
        for (int i = 0; i < 4; ++i) spec.tasks[static_cast<std::size_t>(i)].gpu_count = 1;
        for (auto& task : spec.tasks)
            if (task.job == "gang")
                task.groups = {"self"}, task.avoid = {{.group = "self", .level = node_level}};
        const auto found = why(Cluster::build(spec), "gang");
        CHECK(found.places == 3);
        CHECK(found.constraints == std::vector<std::string>{"gpu"});
        CHECK_THAT(found.cause, Mentions("1 M node passes every other constraint and has 0 idle GPUs"));
    }
    SECTION("idle GPUs are those of now") {
        for (int i = 1; i < 4; ++i) {
            spec.tasks.push_back(running("t" + std::to_string(i), "n" + std::to_string(i), first(5)));
            spec.tasks.back().how = Mobility::restart;
        }
        const auto found = why(Cluster::build(spec), "gang");
        CHECK(found.places == 1);
        CHECK_THAT(found.cause,
                   Mentions("4 M nodes have 17 idle GPUs, 9 once none of them has more than 3 idle"));
    }
    SECTION("kinds have tables of their own") {
        spec.tasks[0].gpu_count = 4;
        spec.tasks[0].gpu_models = {"M"};
        const auto found = why(Cluster::build(spec), "gang");
        REQUIRE(found.kinds.size() == 2);
        CHECK(found.kinds[0].pods == 3);
        CHECK(found.kinds[1].pod == "g0");
    }
}

TEST_CASE("pods that must share a domain are impossible if every domain is too small") {
    using Change = std::function<void(ClusterSpec&)>;
    struct Case {
        const char* what;
        Change change;
        bool proven;
    };
    const auto near_itself = [](TaskSpec& task) {
        task.groups = {"self"};
        task.near = {{{"self"}, 0}};
    };
    const auto each_of = [](const auto& change) {
        return [=](ClusterSpec& spec) {
            for (auto& task : spec.tasks) change(task);
        };
    };
    const Case cases[] = {
        {"a required level", each_of([](TaskSpec& task) {
             task.network_affinity = {0, NetworkMode::required};
         }),
         true},
        {"near itself", each_of(near_itself), true},
        {"near itself, with kinds",
         [&](ClusterSpec& spec) {
             each_of(near_itself)(spec);
             spec.tasks[0].gpu_count = 7;
         },
         true},
        {"near itself, in the rack of a task that stays",
         [&](ClusterSpec& spec) {
             each_of(near_itself)(spec);
             spec.tasks.push_back(running("self", "n0", {0}));
             spec.tasks.back().groups = {"self"};
             spec.tasks.back().locked = true;
         },
         true},
        {"tasks that stay in two racks",
         [&](ClusterSpec& spec) {
             each_of(near_itself)(spec);
             for (const auto* const on : {"n0", "n19"}) {
                 spec.tasks.push_back(running(on, on, {0}));
                 spec.tasks.back().groups = {"self"};
                 spec.tasks.back().locked = true;
             }
         },
         false},
        {"a pod that may choose a second rack",
         [&](ClusterSpec& spec) {
             each_of(near_itself)(spec);
             spec.tasks[0].near.clear();
         },
         false},
        {"near others", each_of([](TaskSpec& task) {
             task.near = {{{"db"}, 0}};
         }),
         false},
    };
    for (const auto& [what, change, proven] : cases) {
        INFO(what);
        ClusterSpec spec;
        spec.jobs = {{.name = "gang", .min_members = 12}};
        for (int n = 0; n < 40; ++n) {
            spec.nodes.push_back(node("n" + std::to_string(n), 8, 64));
            spec.nodes.back().network = {"r" + std::to_string(n / 10)};
        }
        for (int i = 0; i < 12; ++i) spec.tasks.push_back(pod("g" + std::to_string(i), 8, "gang"));
        change(spec);
        if (std::string_view(what) == "near others") {
            for (int n = 0; n < 20; ++n) {
                const auto on = "n" + std::to_string(n);
                spec.tasks.push_back(running("t" + std::to_string(n), on, {}));
                spec.tasks.back().groups = {"db"};
            }
        }
        const auto found = why(Cluster::build(spec), "gang");
        CHECK((found.impossible == true) == proven);
        CHECK((found.cause_kind == Cause::impossible) == proven);
    }
}

TEST_CASE("of a gang why names the fewest constraints without which all could start") {
    struct Case {
        const char* what;
        int crowded;  // nodes with too few GPUs and cores; of the four others, each has too few GPUs
        std::int64_t pods;
        std::vector<std::string> constraints;
    };
    for (const auto& [what, crowded, pods, constraints] :
         {Case{"one constraint helps", 4, 4, {"gpu"}}, Case{"two help together", 4, 5, {"gpu", "cpu"}}}) {
        INFO(what);
        ClusterSpec spec;
        spec.jobs = {{.name = "gang", .min_members = static_cast<std::int32_t>(pods)}};
        for (int n = 0; n < 4 + crowded; ++n) {
            spec.nodes.push_back(node("n" + std::to_string(n), 8, 64));
            spec.tasks.push_back(running("t" + std::to_string(n), spec.nodes.back().name, first(5)));
            spec.tasks.back().cpu_milli = n < 4 ? 1000 : 60'000;
            spec.tasks.back().preemptible = true;
        }
        for (int i = 0; i < pods; ++i) {
            spec.tasks.push_back(pod("g" + std::to_string(i), 8, "gang"));
            spec.tasks.back().cpu_milli = 32'000;
        }
        const auto found = why(Cluster::build(spec), "gang");
        CHECK(found.impossible == false);
        CHECK(found.constraints == constraints);
        CHECK_THAT(found.cause, !Mentions("gives places to at most"));
    }
}

TEST_CASE("a gang whose pods must be near each other has a row for each domain") {
    struct Case {
        const char* what;
        std::function<void(ClusterSpec&)> change;
        bool topology;
    };
    for (const auto& [what, change, topology] : {
             Case{"no rack holds all", [](ClusterSpec&) {}, true},
             Case{"a member runs and chooses the rack",
                  [](ClusterSpec& spec) {
                      spec.tasks.push_back(running("member", "n5", {4}));
                      spec.tasks.back().groups = {"self"};
                  },
                  false},
             Case{"one pod may be elsewhere", [](ClusterSpec& spec) { spec.tasks[0].near.clear(); }, false},
         }) {
        INFO(what);
        ClusterSpec spec;
        spec.jobs = {{.name = "gang", .min_members = 4}};
        spec.label_levels = {"rack"};
        for (int n = 0; n < 6; ++n) {
            const auto name = "n" + std::to_string(n);
            spec.nodes.push_back(node(name, 8, 64));
            spec.nodes.back().labels["rack"] = "r" + std::to_string(n / 2);
            spec.tasks.push_back(running("t" + std::to_string(n), name, first(n < 2 ? 1 : 4)));
        }
        for (int i = 0; i < 4; ++i) {
            auto member = pod("g" + std::to_string(i), 4, "gang");
            member.groups = {"self"};
            member.near = {{.group = "self", .level = first_label_level}};
            spec.tasks.insert(spec.tasks.begin(), member);
        }
        change(spec);
        const auto found = why(Cluster::build(spec), "gang");
        CHECK((found.cause_kind == Cause::topology) == topology);
        if (!topology) continue;
        CHECK(found.constraints == std::vector<std::string>{"near"});
        CHECK(found.domains == std::vector<WhyDomain>{{"r0", 2}, {"r1", 2}, {"r2", 2}});
        CHECK(found.places == 2);
        CHECK_THAT(found.cause, Mentions("all 4 pods must be in one domain of label 'rack'"));
        CHECK_THAT(found.cause, Mentions("at most 2 find a place in one: 'r0' (n0, n1), of 3 domains"));
    }
}

TEST_CASE("why does not call impossible what a move of a neighbour makes possible") {
    // The GPU is on n1, the task that the pod must be near on n0; `large` leaves n1 for n0, and `cache` n0 for n1.
    ClusterSpec spec;
    spec.nodes = {node("n0", 0, 64, 5), node("n1", 1, 64, 4)};
    spec.tasks = {pod("asks", 1), running("cache", "n0", {}), running("large", "n1", {})};
    spec.tasks[0].near = {{"cache"}};
    spec.tasks[1].groups = {"cache"};
    spec.tasks[0].memory_mib = spec.tasks[1].memory_mib = 1024;
    spec.tasks[2].memory_mib = 4096;
    for (const bool locked : {false, true}) {
        INFO(locked);
        spec.tasks[1].locked = locked;
        const auto cluster = Cluster::build(spec);
        const auto admitted = admit(cluster, allocation::pending_pods(cluster, "asks"));
        CHECK(admitted.admitted == !locked);
        CHECK(admitted.plan.moves.size() == (locked ? 0 : 2));
        const auto found = why(cluster, "asks");
        INFO(found.cause);
        CHECK(found.impossible == locked);
        CHECK((found.cause_kind == Cause::impossible) == locked);
    }
    spec.tasks.pop_back();  // n1 is empty, and `cache` can go there
    spec.tasks[1].locked = false;
    const auto found = why(Cluster::build(spec), "asks");
    CHECK(found.impossible == false);
    CHECK(remedy(found, RemedyKind::moves));
}

TEST_CASE("a pod that must be near a pod that does not run yet is not impossible") {
    struct Case {
        const char* what;
        std::function<void(TaskSpec& db)> change;
        bool impossible;
        std::string text;
    };
    for (const auto& [what, change, impossible, text] : {
             Case{"pending", [](TaskSpec&) {}, false,
                  "pod affinity: 2 nodes pass every other constraint; the closest is 'n0': it must run next "
                  "to a task of group 'db', and none runs yet; 'db-0' is pending"},
             Case{"gated",
                  [](TaskSpec& db) {
                      db.waiting = {WaitingFor::gate, ""};
                  },
                  false, "'db-0' is pending"},
             Case{"too large", [](TaskSpec& db) { db.gpu_count = 9; }, true,
                  "no node has room next to a required neighbour"},
             Case{"too large for both", [](TaskSpec& db) { db.gpu_count = 5; }, true,
                  "no node has room next to a required neighbour"},
             Case{"of another group", [](TaskSpec& db) { db.groups = {"other"}; }, true,
                  "impossible: it must run next to a task of group 'db', and none exists; 2 nodes have room "
                  "otherwise"},
         }) {
        INFO(what);
        ClusterSpec spec;
        spec.nodes = {node("n0", 8, 64), node("n1", 8, 64)};
        spec.tasks = {pod("asks", 4), pod("db-0", 4), running("half", "n0", first(4))};
        spec.tasks[0].near = {{"db"}};
        spec.tasks[1].groups = {"db"};
        change(spec.tasks[1]);
        const auto found = why(Cluster::build(spec), "asks");
        CHECK(found.impossible == impossible);
        CHECK((found.cause_kind == Cause::impossible) == impossible);
        CHECK(found.constraints == std::vector<std::string>{"near"});
        CHECK_THAT(found.cause, Mentions(text));
        CHECK((found.cause.find("is pending") == std::string::npos) == impossible);  // it would not help
    }
}

TEST_CASE("a node that is too small for a pod and its neighbour has such a neighbour all the same") {
    ClusterSpec spec;
    spec.nodes = {node("n0", 2, 64)};
    spec.tasks = {pod("asks", 2), running("cache", "n0", first(1))};
    spec.tasks[0].near = {{"cache"}};
    spec.tasks[1].groups = {"cache"};
    const auto cluster = Cluster::build(spec);
    const auto found = why(cluster, "asks");
    CHECK(found.impossible == true);
    CHECK(found.constraints == std::vector<std::string>{"near"});
    const auto made = admit(cluster, allocation::pending_pods(cluster, "asks"));
    CHECK(made.obstacle == Obstacle::near);
    for (const auto& text : {found.cause, made.reason}) {
        CHECK_THAT(text, Mentions("closest 'n0': no node has room next to a required neighbour"));
        CHECK_THAT(text, !Mentions("holds no task"));
    }
}

// SPDX-License-Identifier: Apache-2.0
// Groups that tasks avoid, want near or spread, at levels that are labels and others, by hand.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

constexpr Level zone = first_label_level, rack = first_label_level + 1;

/// a0 and a1 in zone a, b0 in zone b, c0 in zone c, x without a zone. Rack r0 holds a0 and b0, r1 a1 and x, r2 c0.
ClusterSpec zones() {
    ClusterSpec spec;
    spec.label_levels = {"zone", "rack"};
    const auto add = [&](const char* name, const char* in_zone, const char* in_rack) {
        NodeSpec node{.name = name, .cpu_milli = 64'000, .memory_mib = 64'000};
        if (*in_zone != '\0') node.labels["zone"] = in_zone;
        node.labels["rack"] = in_rack;
        spec.nodes.push_back(node);
    };
    add("a0", "a", "r0");
    add("a1", "a", "r1");
    add("b0", "b", "r0");
    add("c0", "c", "r2");
    add("x", "", "r1");
    return spec;
}

TaskSpec& add(ClusterSpec& spec, const std::string& name, const char* node, std::vector<std::string> groups) {
    TaskSpec task{.name = name, .cpu_milli = 1'000, .memory_mib = 10};
    if (*node != '\0') task.node = node;
    task.groups = std::move(groups);
    spec.tasks.push_back(task);
    return spec.tasks.back();
}

/// The nodes that have room for the task, and besides why the others have not.
struct Found {
    std::string fits;
    std::vector<std::string> reasons;
};
Found look(const Cluster& cluster, const char* task) {
    Found found;
    for (const auto node : cluster.nodes()) {
        const auto id = cluster.find_task(task);
        const auto why = describe_obstacle(cluster, id, node);
        REQUIRE(why.empty() == (find_obstacle(cluster, id, node) == Obstacle::none));
        if (why.empty())
            found.fits += (found.fits.empty() ? "" : " ") + cluster.name(node);
        else
            found.reasons.push_back(why);
    }
    return found;
}
std::string fits(const ClusterSpec& spec, const char* task) { return look(Cluster::build(spec), task).fits; }

}  // namespace

TEST_CASE("a task avoids the members of a group, and they avoid it", "[model]") {
    auto spec = zones();
    add(spec, "db", "a0", {"db"});
    add(spec, "picky", "", {}).avoid = {{"db", zone}};
    add(spec, "stranger", "", {"web"});
    add(spec, "db2", "", {"db"});
    const auto found = look(Cluster::build(spec), "picky");
    CHECK(found.fits == "b0 c0 x");
    REQUIRE(found.reasons.size() == 2);
    CHECK_THAT(found.reasons[1],
               Mentions("domain 'a' label 'zone' holds 1 task of group 'db', which the task avoids"));
    CHECK(fits(spec, "stranger") == "a0 a1 b0 c0 x");
    CHECK(fits(spec, "db2") == "a0 a1 b0 c0 x");

    spec.tasks[1].node = "b0";
    const auto kept_away = look(Cluster::build(spec), "db2");
    CHECK(kept_away.fits == "a0 a1 c0 x");
    CHECK_THAT(kept_away.reasons[0], Mentions("domain 'b' label 'zone' holds 1 task that avoids group 'db'"));
    CHECK(fits(spec, "db") == "a0 a1 c0 x");  // it may stay on its node
    CHECK(fits(spec, "stranger") == "a0 a1 b0 c0 x");

    SECTION("on a node without the label no task is avoided") {
        spec.tasks[1].node = "x";
        CHECK(fits(spec, "db2") == "a0 a1 b0 c0 x");
    }
    SECTION("single nodes are a level, too") {
        spec.tasks[1].avoid[0].level = node_level;
        CHECK(fits(spec, "picky") == "a1 b0 c0 x");
        CHECK(fits(spec, "db2") == "a0 a1 c0 x");
    }
    SECTION("network levels as well; a node of unknown position is alone there") {
        spec.nodes[0].network = spec.nodes[2].network = {"root"};
        spec.tasks[1].node = "b0";
        spec.tasks[1].avoid[0].level = 0;
        CHECK(fits(spec, "db2") == "a1 c0 x");
    }
    SECTION("a group without members is no obstacle") {
        spec.tasks[1].avoid = {{"nobody", zone}, {"nobody", node_level}};
        CHECK(fits(spec, "picky") == "a0 a1 b0 c0 x");
        CHECK(fits(spec, "db2") == "a0 a1 b0 c0 x");
    }
}

TEST_CASE("tasks that avoid their own group are one per domain", "[model]") {
    auto spec = zones();
    for (const char* name : {"w0", "w1", "w2"}) add(spec, name, "", {"web"}).avoid = {{"web", zone}};
    spec.tasks[0].node = "a0";
    CHECK(fits(spec, "w1") == "b0 c0 x");
    CHECK(fits(spec, "w0") == "a0 a1 b0 c0 x");  // its old copy does not count
    auto cluster = Cluster::build(spec);
    cluster.reserve(cluster.find_task("w1"), cluster.find_node("b0"), 0);
    CHECK(look(cluster, "w0").fits == "a0 a1 c0 x");
    CHECK(look(cluster, "w2").fits == "c0 x");
    cluster.undo();
    CHECK(look(cluster, "w2").fits == "b0 c0 x");
}

TEST_CASE("a task follows its near group, and its first member may start anywhere", "[model]") {
    auto spec = zones();
    add(spec, "cache", "a0", {"cache"});
    add(spec, "user", "", {}).near = {{"cache", zone}};
    const auto found = look(Cluster::build(spec), "user");
    CHECK(found.fits == "a0 a1");
    CHECK_THAT(found.reasons[0], Mentions("domain 'b' label 'zone' no task 'cache'"));
    CHECK_THAT(found.reasons[2], Mentions("no label 'zone'"));

    SECTION("no member runs, and the task is not a member") {
        spec.tasks[0].node.reset();
        CHECK(fits(spec, "user") == "");
    }
    SECTION("no member runs, but the task is a member: any node with the label") {
        spec.tasks[0].node.reset();
        spec.tasks[1].groups = {"cache"};
        CHECK(fits(spec, "user") == "a0 a1 b0 c0");
    }
    SECTION("tasks on nodes without the label do not count") {
        spec.tasks[0].node = "x";
        CHECK(fits(spec, "user") == "");
        spec.tasks[1].groups = {"cache"};
        CHECK(fits(spec, "user") == "a0 a1 b0 c0");
    }
    SECTION("the last of its kind may go anywhere: its old copy does not count") {
        spec.tasks[0].near = {{"cache", zone}};
        CHECK(fits(spec, "cache") == "a0 a1 b0 c0");
    }
    SECTION("of several groups one task must be a member of all") {
        spec.tasks[1].near = {{"cache", zone}, {"fast", rack}};
        add(spec, "other", "b0", {"fast"});
        CHECK(fits(spec, "user") == "");
        add(spec, "both", "b0", {"fast", "cache"});
        CHECK(fits(spec, "user") == "b0");  // a0 shares its rack only
        const auto why = look(Cluster::build(spec), "user").reasons[0];
        CHECK_THAT(why, Mentions("domain 'a' label 'zone' no task 'cache' also 'fast'"));
        add(spec, "both too", "a0", {"cache", "fast"});
        CHECK(fits(spec, "user") == "a0 b0");
    }
    SECTION("leading needs all the groups") {
        spec.tasks[0].node.reset();
        spec.tasks[1].groups = {"cache"};
        spec.tasks[1].near = {{"cache", zone}, {"fast", rack}};
        CHECK(fits(spec, "user") == "");
        spec.tasks[1].groups = {"fast", "cache"};
        CHECK(fits(spec, "user") == "a0 a1 b0 c0");
    }
}

TEST_CASE("members are spread over domains", "[model]") {
    auto spec = zones();
    add(spec, "w0", "a0", {"web"});
    add(spec, "w1", "", {"web"}).spread = {{.group = "web", .level = zone}};
    auto& spread = spec.tasks[1].spread[0];
    const auto found = look(Cluster::build(spec), "w1");
    CHECK(found.fits == "b0 c0");
    CHECK_THAT(found.reasons[0],
               Mentions("domain 'a' label 'zone' 2 tasks 'web' at most 1 maxSkew 1 above 0, fewest 3"));
    CHECK_THAT(found.reasons[2], Mentions("no label 'zone'"));

    SECTION("more skew") {
        spread.max_skew = 2;
        CHECK(fits(spec, "w1") == "a0 a1 b0 c0");
    }
    SECTION("one in each domain: any may be next") {
        add(spec, "w2", "b0", {"web"});
        CHECK(fits(spec, "w1") == "c0");
        add(spec, "w3", "c0", {"web"});
        CHECK(fits(spec, "w1") == "a0 a1 b0 c0");
    }
    SECTION("fewer domains than min_domains: the fewest are none") {
        add(spec, "w2", "b0", {"web"});
        add(spec, "w3", "c0", {"web"});
        spread.min_domains = 3;
        CHECK(fits(spec, "w1") == "a0 a1 b0 c0");
        spread.min_domains = 4;
        const auto few = look(Cluster::build(spec), "w1");
        CHECK(few.fits == "");
        CHECK(few.reasons[0].find("maxSkew 1 above 0, since of minDomains 4 there are 3") !=
              std::string::npos);
    }
    SECTION("domains that its selector excludes do not count, and members there do not either") {
        add(spec, "w2", "b0", {"web"});
        spec.nodes[3].labels["off"] = "limits";  // zone c, which is empty
        spec.tasks[1].node_affinity = {{{{"off", MatchOperator::does_not_exist, {}}}, {}}};
        CHECK(fits(spec, "w1") == "a0 a1 b0");
        spread.honor_node_affinity = false;
        CHECK(fits(spec, "w1") == "");
    }
    SECTION("members on nodes that its selector excludes do not count in their domain") {
        spec.tasks[1].node_selector = {{"rack", "r1"}};  // a1 and x
        CHECK(fits(spec, "w1") == "a1");
        spread.honor_node_affinity = false;
        CHECK(fits(spec, "w1") == "");
        // The domain of a node that it could not use is judged like any other.
        CHECK_THAT(look(Cluster::build(spec), "w1").reasons[1], Mentions("would hold 2 tasks of group"));
    }
    SECTION("taints count only if the constraint says so") {
        add(spec, "w2", "b0", {"web"});
        spec.nodes[3].taints = {{"dedicated", "", "NoSchedule"}};
        CHECK(fits(spec, "w1") == "");
        spread.honor_taints = true;
        CHECK(fits(spec, "w1") == "a0 a1 b0");
        spec.nodes[3].taints[0].effect = "PreferNoSchedule";
        CHECK(fits(spec, "w1") == "c0");
    }
    SECTION("nodes without the labels of all its levels do not count") {
        add(spec, "w2", "b0", {"web"});
        spec.nodes[3].labels.erase("rack");
        CHECK(fits(spec, "w1") == "c0");
        spec.tasks[1].spread.push_back({.group = "web", .level = rack, .max_skew = 9});
        CHECK(fits(spec, "w1") == "a0 a1 b0");
    }
    SECTION("no eligible domain at all: none is fuller than another") {
        spec.tasks[1].node_selector = {{"zone", "nowhere"}};
        const auto cluster = Cluster::build(spec);
        CHECK(find_group_obstacle(cluster, cluster.find_task("w1"), cluster.find_node("a0")) ==
              Obstacle::none);
    }
    SECTION("it is no member itself: members alone count") {
        spec.tasks[1].groups = {};
        CHECK(fits(spec, "w1") == "a0 a1 b0 c0");
        add(spec, "w2", "a1", {"web"});
        CHECK(fits(spec, "w1") == "b0 c0");
    }
    SECTION("a group without members is spread, and a member that spreads nothing goes anywhere") {
        spread.group = "nobody";
        CHECK(fits(spec, "w1") == "a0 a1 b0 c0");
        CHECK(fits(spec, "w0") == "a0 a1 b0 c0 x");
    }
    SECTION("its own old copy does not count, even if it makes its domain the fullest") {
        spec.tasks[1].node = "b0";
        CHECK(fits(spec, "w1") == "b0 c0");
        add(spec, "w2", "c0", {"web"});
        CHECK(fits(spec, "w1") == "b0");
    }
}

TEST_CASE("mistakes in groups that others select are reported per task", "[model]") {
    const auto refused = [](const std::string& words, const std::function<void(ClusterSpec&)>& spoil) {
        auto spec = zones();
        add(spec, "t", "", {});
        spoil(spec);
        CHECK_THROWS_MESSAGE(Cluster::build(spec), InvalidInput, words);
    };
    refused("task 't' groups no group", [](auto& s) { s.tasks[0].groups = {""}; });
    refused("task 't' avoid no group", [](auto& s) { s.tasks[0].avoid = {{"", zone}}; });
    refused("task 't' near no group", [](auto& s) { s.tasks[0].near = {{"", zone}}; });
    refused("task 't' spread 'g' max_skew 0 1 1000000000",
            [](auto& s) { s.tasks[0].spread = {{.group = "g", .level = zone, .max_skew = 0}}; });
    refused("task 't' spread 'g' min_domains 0 1 1000000000",
            [](auto& s) { s.tasks[0].spread = {{.group = "g", .level = zone, .min_domains = 0}}; });
    refused("task 't' avoid level 18 \"node\" 0 15 2 label levels", [](auto& s) {
        s.tasks[0].avoid = {{"g", first_label_level + 2}};
    });
    refused("task 't' near level -2 \"node\" 0 15", [](auto& s) { s.tasks[0].near = {{"g", -2}}; });
    refused("task 't' anti_affinity level 18 \"node\" 0 15 2 label levels", [](auto& s) {
        s.tasks[0].anti_affinity = {{"g", first_label_level + 2, 1}};
    });
    refused("task 't' network_affinity level 16 \"node\" 0 15",
            [](auto& s) { s.tasks[0].network_affinity = NetworkAffinity{zone}; });
    refused("cluster label_levels 'zone' twice", [](auto& s) { s.label_levels = {"zone", "zone"}; });
    refused("cluster label_levels empty key", [](auto& s) { s.label_levels = {""}; });
    refused("cluster label_levels 'node' level of single nodes", [](auto& s) { s.label_levels = {"node"}; });
}

TEST_CASE("groups come back as they were written, and copies count for themselves", "[model]") {
    auto spec = zones();
    auto& task = add(spec, "t", "a0", {"g", "h"});
    task.avoid = {{"h", node_level}, {"x", zone}};
    task.near = {{"g", rack}};
    task.spread = {{.group = "g", .level = zone, .max_skew = 2, .min_domains = 3, .honor_taints = true}};
    add(spec, "u", "", {"h"});
    const auto cluster = Cluster::build(spec);
    auto back = cluster.to_spec();
    for (auto& t : back.tasks) t.preemptible.reset();
    CHECK(back == spec);
    auto copy = cluster;
    copy.assign(copy.find_task("t"), copy.find_node("b0"), 0);
    CHECK(look(copy, "u").fits == "a0 a1 c0 x");
    CHECK(look(cluster, "u").fits == "a1 b0 c0 x");
}

TEST_CASE("groups that others select follow changes of membership", "[model]") {
    auto spec = zones();
    add(spec, "w0", "a0", {"web"}).spread = {{.group = "web", .level = zone}};
    auto cluster = Cluster::build(spec);
    const auto add_task = [&](const char* name, std::vector<std::string> groups) {
        TaskSpec task{.name = name, .cpu_milli = 1'000, .memory_mib = 10};
        task.groups = std::move(groups);
        task.spread = {{.group = "web", .level = zone}};
        return cluster.add_task(task);
    };
    const auto w1 = add_task("w1", {"web"});
    CHECK(look(cluster, "w1").fits == "b0 c0");
    CHECK(cluster.inventory().changes.regroupings == 0);  // its sets are there
    cluster.bind(w1, cluster.handle(cluster.find_node("b0")), 0);
    (void)add_task("w2", {"web"});
    CHECK(look(cluster, "w2").fits == "c0");
    // A fourth zone, and none any more.
    NodeSpec d0{.name = "d0", .cpu_milli = 64'000, .memory_mib = 64'000};
    d0.labels = {{"zone", "d"}, {"rack", "r9"}};
    cluster.bind(cluster.handle(cluster.find_task("w2")), cluster.handle(cluster.find_node("c0")), 0);
    (void)add_task("w3", {"web"});
    CHECK(look(cluster, "w3").fits == "a0 a1 b0 c0");
    (void)cluster.add_node(d0);
    CHECK(look(cluster, "w3").fits == "d0");
    d0.labels["zone"] = "c";
    cluster.update_node(cluster.handle(cluster.find_node("d0")), d0);
    CHECK(look(cluster, "w3").fits == "a0 a1 b0 c0 d0");
    d0.labels["zone"] = "d";
    cluster.update_node(cluster.handle(cluster.find_node("d0")), d0);
    CHECK(look(cluster, "w3").fits == "d0");
    cluster.remove_node(cluster.handle(cluster.find_node("d0")));
    CHECK(look(cluster, "w3").fits == "a0 a1 b0 c0");
    // A task that avoids a group affects all members of the group.
    TaskSpec picky{.name = "picky", .cpu_milli = 1'000, .memory_mib = 10};
    picky.avoid = {{"web", zone}};
    const auto id = cluster.add_task(picky);
    CHECK(cluster.inventory().changes.regroupings == 1);
    CHECK(look(cluster, "picky").fits == "x");
    cluster.bind(id, cluster.handle(cluster.find_node("x")), 0);
    CHECK(look(cluster, "w3").fits == "a0 a1 b0 c0");
    cluster.remove_task(id);
    CHECK(cluster.inventory().changes.regroupings == 2);
    CHECK(look(cluster, "w3").fits == "a0 a1 b0 c0");
}

TEST_CASE("a few tasks with thousands of constraints on each other's groups are refused", "[model]") {
    struct Case {
        const char* kind;
        std::function<void(TaskSpec&, int)> constrain;
    };
    const Case cases[] = {
        {"avoid at many levels",
         [](TaskSpec& task, int i) {
             task.groups = {"g"};
             task.avoid = {{"g", first_label_level + i}};
         }},
        {"spread by many rules",
         [](TaskSpec& task, int i) {
             task.groups = {"g"};
             task.spread = {{.group = "g", .level = zone, .max_skew = i + 1}};
         }},
        {"anti-affinity at many levels",
         [](TaskSpec& task, int i) {
             task.anti_affinity = {{.group = "g", .level = first_label_level + i, .limit = 1}};
         }},
    };
    for (const auto& [kind, constrain] : cases) {
        CAPTURE(kind);
        ClusterSpec spec;
        spec.nodes = {{.name = "n", .cpu_milli = 64'000, .memory_mib = 64'000}};
        for (int i = 0; i < 1'000; ++i) {
            spec.label_levels.push_back("l" + std::to_string(i));
            constrain(add(spec, "t" + std::to_string(i), "", {}), i);
        }
        CHECK_THROWS_MESSAGE(Cluster::build(spec), InvalidInput, "groups 524288 64 per task");
        spec.tasks.resize(200);
        CHECK(Cluster::build(spec).task_count() == 200);
    }
}

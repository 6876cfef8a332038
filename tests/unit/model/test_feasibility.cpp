// SPDX-License-Identifier: Apache-2.0
// Each obstacle by hand; random clusters are compared with the naive rules in tests/property/model/reference.cpp.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

// Four nodes under two switches; `t` runs on n0, `u` on n1 (same switch), `p` is pending.
ClusterSpec base() {
    ClusterSpec spec;
    for (int i = 0; i < 4; ++i)
        spec.nodes.push_back({.name = "n" + std::to_string(i),
                              .gpu_model = "A",
                              .gpu_count = 4,
                              .cpu_milli = 4'000,
                              .memory_mib = 100,
                              .network = {"r", i < 2 ? "s0" : "s1"}});
    const auto add = [&](const char* name, const char* node) {
        TaskSpec t{.name = name, .cpu_milli = 1'000, .memory_mib = 10, .gpu_count = 2};
        if (node != nullptr) {
            t.node = node;
            t.gpus = {0, 1};
        }
        spec.tasks.push_back(t);
    };
    add("t", "n0");
    add("u", "n1");
    add("p", nullptr);
    return spec;
}
constexpr std::size_t t = 0, u = 1, p = 2;

Obstacle ask(const ClusterSpec& spec, std::size_t task, std::size_t node) {
    return find_obstacle(Cluster::build(spec, IdOrder::as_listed), make_id<TaskId>(task),
                         make_id<NodeId>(node));
}

}  // namespace

TEST_CASE("tasks that fit") {
    for (std::size_t node = 0; node < 4; ++node) REQUIRE(ask(base(), p, node) == Obstacle::none);
    const auto c = Cluster::build(base(), IdOrder::as_listed);
    REQUIRE(candidate_gpus(c, TaskId{2}, NodeId{0}) == 0b1100);
    REQUIRE(gpus_fit(c, TaskId{2}, NodeId{0}, 0b1100));
    REQUIRE_FALSE(gpus_fit(c, TaskId{2}, NodeId{0}, 0b0110));
    REQUIRE_FALSE(gpus_fit(c, TaskId{2}, NodeId{0}, 0b0100));
    REQUIRE_FALSE(gpus_fit(c, TaskId{2}, NodeId{0}, 0));
}

TEST_CASE("a cordon by a taint lets tasks in that tolerate it") {
    auto spec = base();
    spec.nodes[0].schedulable = false;
    spec.tasks[p].tolerations = {{.key = "node.kubernetes.io/unschedulable", .op = "Exists"}};
    CHECK(ask(spec, p, 0) == Obstacle::cordoned);  // without the taint: for no task
    spec.nodes[0].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
    CHECK(ask(spec, p, 0) == Obstacle::none);
    CHECK(ask(spec, u, 0) == Obstacle::not_eligible);
    const auto c = Cluster::build(spec, IdOrder::as_listed);
    CHECK_FALSE(c.node_spec(NodeId{0}).schedulable);  // it is cordoned all the same
    CHECK(c.to_spec().nodes == spec.nodes);
}

TEST_CASE("eligibility names its obstacle, model first") {
    auto spec = base();
    const auto reason = [&] {
        return find_eligibility_obstacle(Cluster::build(spec, IdOrder::as_listed), TaskId{2}, NodeId{0});
    };
    REQUIRE(reason() == Obstacle::none);
    spec.nodes[0].taints = {{"node.kubernetes.io/disk-pressure", "", "NoSchedule"}};
    REQUIRE(reason() == Obstacle::not_ready);
    spec.nodes[0].taints.push_back({"node.kubernetes.io/unschedulable", "", "NoSchedule"});
    REQUIRE(reason() == Obstacle::cordoned);
    spec.nodes[0].taints.push_back({"k", "v", "NoExecute"});
    REQUIRE(reason() == Obstacle::taint);
    spec.tasks[p].node_selector = {{"zone", ""}};
    REQUIRE(reason() == Obstacle::node_selector);
    spec.tasks[p].gpu_models = {"B"};
    REQUIRE(reason() == Obstacle::gpu_model);
}

TEST_CASE("tolerations as in Kubernetes") {
    const Taint taint{"k", "v", "NoSchedule"};
    REQUIRE(Inventory::tolerates({{"k", "Equal", "v", "NoSchedule"}}, taint));
    REQUIRE(Inventory::tolerates({{"k", "Equal", "v", ""}}, taint));
    REQUIRE(Inventory::tolerates({{"k", "Exists", "", ""}}, taint));
    REQUIRE(Inventory::tolerates({{"", "Exists", "", "NoSchedule"}}, taint));
    REQUIRE_FALSE(Inventory::tolerates({{"k", "Equal", "w", ""}}, taint));
    REQUIRE_FALSE(Inventory::tolerates({{"k", "Exists", "", "NoExecute"}}, taint));
    REQUIRE_FALSE(Inventory::tolerates({{"l", "Exists", "", ""}}, taint));
    REQUIRE_FALSE(Inventory::tolerates({}, taint));
    auto spec = base();
    spec.nodes[0].taints = {{"soft", "", "PreferNoSchedule"}};
    REQUIRE(ask(spec, p, 0) == Obstacle::none);
}

TEST_CASE("a placed task is judged as if it moved") {
    auto spec = base();
    SECTION("its resources stay held on its own node") {
        spec.tasks[t].gpu_count = 3;
        spec.tasks[t].gpus = {0, 1, 2};
        REQUIRE(ask(spec, t, 0) == Obstacle::gpu);
        REQUIRE(ask(spec, t, 2) == Obstacle::none);
    }
    SECTION("its old copy does not count against anti-affinity") {
        spec.tasks[t].anti_affinity = {{"g", 1, 1}};
        REQUIRE(ask(spec, t, 1) == Obstacle::none);
        spec.tasks[u].anti_affinity = {{"g", 1, 2}};
        REQUIRE(ask(spec, t, 1) == Obstacle::anti_affinity);  // its own limit is 1, and u is there
        REQUIRE(ask(spec, t, 2) == Obstacle::none);
    }
    SECTION("its old copy does not count against affinity, others' do") {
        spec.tasks[t].affinity = {{"g", node_level}};
        REQUIRE(ask(spec, t, 3) == Obstacle::none);
        spec.tasks[u].affinity = {{"g", node_level}};
        REQUIRE(ask(spec, t, 1) == Obstacle::none);  // to the node of the other
        REQUIRE(ask(spec, t, 3) == Obstacle::affinity);
    }
    SECTION("a required network level binds it to its own old domain, even alone") {
        spec.tasks[t].network_affinity = NetworkAffinity{1, NetworkMode::required};
        REQUIRE(ask(spec, t, 1) == Obstacle::none);
        REQUIRE(ask(spec, t, 2) == Obstacle::network);
        spec.tasks[t].network_affinity->mode = NetworkMode::preferred;
        REQUIRE(ask(spec, t, 2) == Obstacle::none);
    }
    SECTION("a gang that is spread already cannot move at all") {
        spec.tasks[t].job = spec.tasks[u].job = "j";
        spec.tasks[u].node = "n2";
        spec.tasks[t].network_affinity = NetworkAffinity{1, NetworkMode::required};
        for (std::size_t node = 0; node < 4; ++node) REQUIRE(ask(spec, t, node) == Obstacle::network);
    }
}

TEST_CASE("one group may have limits at several levels, and other limits for others") {
    auto spec = base();
    // At most 3 under a switch for t, at most 1 on a node for u; every member counts at both levels.
    spec.tasks[t].anti_affinity = {{"g", 1, 3}};
    spec.tasks[u].anti_affinity = {{"g", node_level, 1}};
    spec.tasks[p].anti_affinity = {{"g", 1, 2}};
    REQUIRE(ask(spec, p, 0) == Obstacle::anti_affinity);  // t, u and p under one switch are more than p's 2
    spec.tasks[p].anti_affinity = {{"g", 1, 3}};
    REQUIRE(ask(spec, p, 0) == Obstacle::none);           // no task on n0 limits nodes
    REQUIRE(ask(spec, p, 1) == Obstacle::anti_affinity);  // u does on n1
    spec.tasks[p].anti_affinity = {{"g", 1, 5}, {"g", node_level, 1}, {"g", 1, 3}};  // the smaller of its own
    REQUIRE(ask(spec, p, 0) == Obstacle::anti_affinity);
    REQUIRE(ask(spec, p, 2) == Obstacle::none);
}

TEST_CASE("nodes of unknown position share no domain") {
    auto spec = base();
    spec.nodes[0].network.clear();
    spec.nodes[1].network.clear();
    spec.tasks[p].anti_affinity = spec.tasks[u].anti_affinity = {{"g", 0, 1}};
    REQUIRE(ask(spec, p, 0) == Obstacle::none);
    REQUIRE(ask(spec, p, 1) == Obstacle::anti_affinity);
    spec.tasks[p].anti_affinity.clear();
    spec.tasks[p].affinity = spec.tasks[u].affinity = {{"h", 0}};
    REQUIRE(ask(spec, p, 0) == Obstacle::affinity);
    REQUIRE(ask(spec, p, 1) == Obstacle::none);
}

TEST_CASE("guaranteed locality") {
    auto spec = base();
    spec.nodes[0].hardware = Hardware{"", {{0, 4, 0b0001}, {0, 4, 0b1110}}};
    spec.tasks[p].hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed},
                                       {HardwareLevel::numa, HardwareQos::best_effort}};
    auto c = Cluster::build(spec, IdOrder::as_listed);
    REQUIRE(find_obstacle(c, TaskId{2}, NodeId{0}) == Obstacle::none);
    REQUIRE(guaranteed_localities(c, TaskId{2}, NodeId{0}).masks.size() == 1);
    REQUIRE(guaranteed_localities(c, TaskId{2}, NodeId{1}).unknown);
    spec.tasks[p].hardware_affinity[1].qos = HardwareQos::guaranteed;  // now the stricter NUMA level holds
    c = Cluster::build(spec, IdOrder::as_listed);
    REQUIRE(guaranteed_localities(c, TaskId{2}, NodeId{0}).masks.size() == 2);
    REQUIRE(gpus_fit(c, TaskId{2}, NodeId{0}, 0b1100));
    c.remove(TaskId{0});
    REQUIRE_FALSE(gpus_fit(c, TaskId{2}, NodeId{0}, 0b0011));
    REQUIRE(gpus_fit(c, TaskId{2}, NodeId{0}, 0b0110));
}

TEST_CASE("levels are named as the cluster names them") {
    struct Case {
        std::string what;
        Level level;
        std::vector<std::pair<std::string, std::string>> labels;  // of the nodes, by key
        std::string text;
    };
    const std::string key = "topology.kubernetes.io/rack";
    for (const auto& [what, level, labels, text] :
         {Case{"a node", node_level, {}, "node"},
          Case{"no label", 1, {{"zone", "z"}, {"zone", "z"}}, "domain of network level 1, like 'r0'"},
          Case{"a label", 1, {{key, "r0"}, {key, "r1"}}, "domain of label '" + key + "'"},
          Case{"another value", 1, {{key, "r0"}, {key, "r2"}}, "domain of network level 1, like 'r0'"},
          Case{"behind the domain above", 0, {{"pod", "p0"}, {"pod", "p1"}}, "domain of label 'pod'"},
          Case{"a key that is a level", first_label_level, {}, "domain of label 'zone'"}}) {
        INFO(what);
        ClusterSpec spec;
        spec.label_levels = {"zone"};
        for (int n = 0; n < 2; ++n) {
            spec.nodes.push_back({.name = "n" + std::to_string(n), .gpu_count = 1});
            spec.nodes.back().network = {"top/p" + std::to_string(n), "r" + std::to_string(n)};
            spec.nodes.back().labels["kubernetes.io/hostname"] = "r" + std::to_string(n);
            if (!labels.empty()) spec.nodes.back().labels.insert(labels[static_cast<std::size_t>(n)]);
        }
        CHECK(describe_level(Cluster::build(spec).inventory(), level) == text);
    }
}

TEST_CASE("nodes of Slurm are drained, others are cordoned") {
    auto spec = base();
    spec.nodes[0].schedulable = false;
    for (const auto* const word : {"cordoned", "drained"}) {
        const auto c = Cluster::build(spec, IdOrder::as_listed);
        CHECK(words_of(c.inventory()).closed == word);
        CHECK_THAT(describe_obstacle(c, make_id<TaskId>(p), NodeId{0}),
                   Mentions("node " + std::string(word)));
        spec.tasks[p].owner_kind = "Slurm job";
    }
}

TEST_CASE("each obstacle is found, and described with the request and the capacity") {
    // Of `p` on n0; `t` holds GPUs 0 and 1 there.
    const auto finds = [](Obstacle expected, const std::string& words,
                          const std::function<void(ClusterSpec&)>& spoil) {
        auto spec = base();
        spoil(spec);
        const auto c = Cluster::build(spec, IdOrder::as_listed);
        INFO(words);
        const auto text = describe_obstacle(c, make_id<TaskId>(p), NodeId{0});
        CHECK_THAT(text, Mentions(words));
        CHECK(text.empty() == words.empty());
        CHECK(find_obstacle(c, make_id<TaskId>(p), NodeId{0}) == expected);
    };
    using enum Obstacle;
    finds(none, "", [](auto&) {});
    finds(cordoned, "cordoned", [](auto& s) { s.nodes[0].schedulable = false; });
    for (const char* const key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
        finds(not_ready, "ready", [&](auto& s) {
            s.nodes[0].schedulable = false;
            s.nodes[0].taints = {{key, "", "NoSchedule"}};
            s.tasks[p].tolerations = {{.key = key, .op = "Exists"}};
        });
    const auto other_node = [](auto& s) {
        s.nodes.push_back({.name = "other", .gpu_model = "B", .gpu_count = 1});
    };
    finds(not_eligible, "no node has GPU model 'B' or 'C' models are 'A'", [](auto& s) {
        s.tasks[p].gpu_models = {"B", "C"};
    });
    finds(not_eligible, "no node has GPU model 'B' models are 'A'", [](auto& s) {
        s.tasks[p].gpu_count = 0;
        s.tasks[p].gpu_models = {"B"};
    });
    finds(not_eligible, "GPU model 'A' accepts 'B', 'C'", [&](auto& s) {
        other_node(s);
        s.tasks[p].gpu_models = {"B", "C"};
    });
    finds(not_eligible, "no GPU model accepts 'B'", [&](auto& s) {
        other_node(s);
        s.nodes[0].gpu_model.clear();
        s.tasks[p].gpu_models = {"B"};
    });
    finds(not_eligible, "no node has the label 'k=v'", [](auto& s) {
        s.tasks[p].node_selector = {{"k", "v"}};
    });
    const auto select_zone = [](auto& s, const char* elsewhere) {
        s.nodes[0].labels = {{"disk", "ssd"}, {"zone", "y"}};
        s.nodes.push_back({.name = "elsewhere", .labels = {{"zone", elsewhere}}});
        s.tasks[p].node_selector = {{"disk", "ssd"}, {"zone", "x"}};
    };
    finds(not_eligible, "label 'zone' 'y' selects 'x'", [&](auto& s) { select_zone(s, "x"); });
    finds(not_eligible, "label 'zone' missing selects 'x'", [&](auto& s) {
        select_zone(s, "x");
        s.nodes[0].labels.erase("zone");
    });
    finds(not_eligible, "no node has the label 'zone=x'; its values are 'y', 'z'",
          [&](auto& s) { select_zone(s, "z"); });
    finds(not_eligible, "not tolerate taint 'k=v:NoSchedule'", [](auto& s) {
        s.nodes[0].taints = {{"soft", "", "PreferNoSchedule"}, {"k", "v", "NoSchedule"}};
    });
    finds(cpu, "needs 3.001 cores 3 free (0.001 short)", [](auto& s) { s.tasks[p].cpu_milli = 3'001; });
    finds(memory, "needs 91 MiB memory 90 MiB free (1 MiB short)",
          [](auto& s) { s.tasks[p].memory_mib = 91; });
    finds(memory, "needs 20480 MiB 20479 MiB free", [](auto& s) {  // both are 20 GiB
        s.nodes[0].memory_mib = 20'479 + s.nodes[0].memory_mib - 90;
        s.tasks[p].memory_mib = 20'480;
    });
    finds(gpu, "needs 3 idle GPUs 2 of 4", [](auto& s) { s.tasks[p].gpu_count = 3; });
    finds(gpu, "needs 2 idle GPUs 1 of 4", [](auto& s) { s.nodes[0].failed_gpus = {3}; });
    finds(gpu, "needs 0.5 one GPU at most 0.3 free", [](auto& s) {
        s.tasks[t].gpu_count = 1;
        s.tasks[t].gpu_share_milli = 700;
        s.tasks[t].gpus = {0};
        s.nodes[0].failed_gpus = {1, 2, 3};
        s.tasks[p].gpu_count = 1;
        s.tasks[p].gpu_share_milli = 500;
    });
    finds(gpu, "needs 90 MiB GPU memory a GPU 0.5 none left", [](auto& s) {
        s.nodes[0].gpu_memory_mib = 80;
        s.tasks[p].gpu_count = 1;
        s.tasks[p].gpu_share_milli = 500;
        s.tasks[p].gpu_memory_mib = 90;
    });
    finds(gpu_memory, "needs 11 MiB GPU memory each 2 GPUs 0 of 2 idle", [](auto& s) {
        s.nodes[0].gpu_memory_mib = 10;
        s.tasks[p].gpu_memory_mib = 11;
    });
    finds(hardware, "needs 2 GPUs one NUMA hardware not known", [](auto& s) {
        s.tasks[p].hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}};
    });
    finds(hardware, "needs 2 GPUs one socket at most 1 free", [](auto& s) {
        s.nodes[0].hardware = Hardware{"", {{0, 8, 0b0101}, {1, 8, 0b1010}}};
        s.tasks[p].hardware_affinity = {{HardwareLevel::socket, HardwareQos::guaranteed}};
    });
    finds(anti_affinity, "anti-affinity domain 's0' 3 members 'g' at most 2", [](auto& s) {
        for (auto& task : s.tasks) task.anti_affinity = {{"g", 1, 2}};
    });
    finds(anti_affinity, "anti-affinity domain 's0' 2 members 'g' at most 1", [](auto& s) {
        s.tasks[p].anti_affinity = {{"g", 1, 9}};
        s.tasks[u].anti_affinity = {{"g", 1, 1}};  // the other's limit binds
    });
    finds(anti_affinity, "anti-affinity node 'n0' 2 members 'g' at most 1", [](auto& s) {
        for (auto& task : s.tasks) task.anti_affinity = {{"g", node_level, 1}};
    });
    finds(affinity, "affinity 'g' members outside node 'n0'", [](auto& s) {
        s.tasks[u].affinity = s.tasks[p].affinity = {{"g", node_level}};
    });
    finds(network, "network affinity job j members outside domain 's0'", [](auto& s) {
        s.tasks[u].job = s.tasks[p].job = "j";
        s.tasks[u].node = "n2";
        s.tasks[u].network_affinity = NetworkAffinity{1, NetworkMode::required};  // p asks for nothing itself
    });
}

TEST_CASE("Messages name obstacles in words", "[feasibility]") {
    CHECK(in_words(Obstacle::gpu) == "too few idle GPUs");
    CHECK(in_words(Obstacle::not_eligible) == "GPU model, labels or taints");
    CHECK(in_words(Obstacle::waiting) == "not waiting for room");
}

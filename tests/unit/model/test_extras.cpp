// SPDX-License-Identifier: Apache-2.0
// Named resources, devices beside whole GPUs, node affinity and single nodes.
#include "valid_cluster.hpp"

using namespace testing_support;

namespace {

/// n0 has two whole GPUs and two split cards, n1 a shared one; t0 and t1 hold devices, t2 waits.
ClusterSpec with_devices() {
    ClusterSpec spec;
    spec.nodes = {{.name = "n0", .gpu_model = "A", .gpu_count = 2, .cpu_milli = 8'000, .memory_mib = 1'000},
                  {.name = "n1", .gpu_model = "A", .gpu_count = 0, .cpu_milli = 8'000, .memory_mib = 1'000}};
    spec.nodes[0].devices = {{"mig-1g", 4, {2, 2, 3, 3}, 10'240}, {"mig-3g", 2, {2, 3}, 40'960}};
    spec.nodes[0].resources = {{"pods", 3}, {"rdma/hca", 2}};
    spec.nodes[1].devices = {{"shared", 3, {}, 0}, {"mig-1g", 1, {-1}, 0}};
    spec.nodes[1].resources = {{"pods", 2}};
    for (const char* name : {"t0", "t1", "t2"})
        spec.tasks.push_back({.name = name, .cpu_milli = 1'000, .memory_mib = 10});
    spec.tasks[0].node = "n0";
    spec.tasks[0].gpus = {3, 5};
    spec.tasks[0].device_count = 2;
    spec.tasks[0].device_classes = {"mig-1g"};
    spec.tasks[0].resources = {{"pods", 1}, {"rdma/hca", 1}};
    spec.tasks[1].node = "n1";
    spec.tasks[1].gpus = {0};
    spec.tasks[1].device_count = 1;
    spec.tasks[1].device_classes = {"mig-3g", "shared"};
    spec.tasks[1].resources = {{"pods", 1}};
    spec.tasks[2].resources = {{"pods", 1}, {"rdma/hca", 2}};
    return spec;
}

std::string why(const ClusterSpec& spec, const char* task, const char* node) {
    const auto cluster = Cluster::build(spec);
    return describe_obstacle(cluster, cluster.find_task(task), cluster.find_node(node));
}

bool fits(const ClusterSpec& spec, const char* task, const char* node) {
    return why(spec, task, node).empty();
}

}  // namespace

TEST_CASE("mistakes in resources, devices and node affinity are reported per node and task", "[model]") {
    const auto reported = [](const std::string& words, const std::function<void(ClusterSpec&)>& spoil) {
        auto spec = with_devices();
        spoil(spec);
        INFO(words);
        const auto problems = problems_of(spec);
        CAPTURE(problems);
        CHECK(std::any_of(problems.begin(), problems.end(),
                          [&](const std::string& p) { return testing_support::mentions(p, words); }));
    };
    CHECK(problems_of(with_devices()).empty());
    reported("node 'n0' resource 'pods' -1 0 1000000000000",
             [](auto& s) { s.nodes[0].resources["pods"] = -1; });
    reported("node 'n0' resources empty name", [](auto& s) { s.nodes[0].resources[""] = 1; });
    reported("node 'n0' 1 'pods' more than has", [](auto& s) { s.nodes[0].resources["pods"] = 0; });
    reported("node 'n1' 7 'unheard of' more than has",
             [](auto& s) { s.tasks[1].resources["unheard of"] = 7; });
    reported("task 't2' resource 'pods' 1000000000001 0 1000000000000",
             [](auto& s) { s.tasks[2].resources["pods"] = 1'000'000'000'001; });
    reported("node 'n0' devices class 'mig-1g' count: 0; 1 64",
             [](auto& s) { s.nodes[0].devices[0].count = 0; });
    reported("node 'n1' 65 GPUs other devices at most 64", [](auto& s) { s.nodes[1].devices[0].count = 64; });
    reported("node 'n0' parents devices class 'mig-3g' 1 entries 2",
             [](auto& s) { s.nodes[0].devices[1].parents = {2}; });
    reported("node 'n0' devices class 'mig-3g' card 1 2 whole GPUs split",
             [](auto& s) { s.nodes[0].devices[1].parents[0] = 1; });
    reported("node 'n0' devices class 'mig-3g' parents -2 least -1",
             [](auto& s) { s.nodes[0].devices[1].parents[0] = -2; });
    reported("node 'n0' devices class 'mig-3g' memory_mib -1",
             [](auto& s) { s.nodes[0].devices[1].memory_mib = -1; });
    reported("node 'n0' devices empty name", [](auto& s) { s.nodes[0].devices[0].device_class = ""; });
    reported("node 'n0' failed_gpus names GPU 8; has 8", [](auto& s) { s.nodes[0].failed_gpus = {8}; });
    reported("task 't2' device_count 65 0 64",
             [](auto& s) { s.tasks[2].device_count = 65, s.tasks[2].device_classes = {"a"}; });
    reported("task 't2' device_count 1 device_classes no class",
             [](auto& s) { s.tasks[2].device_count = 1; });
    reported("task 't2' device_classes goes with device_count at least 1",
             [](auto& s) { s.tasks[2].device_classes = {"mig-1g"}; });
    reported("task 't2' device_classes 'a' twice", [](auto& s) {
        s.tasks[2].device_count = 1, s.tasks[2].device_classes = {"a", "b", "a"};
    });
    reported("task 't0' 2 devices class 'mig-1g' holds others node 'n0'", [](auto& s) {
        s.tasks[0].gpus = {3, 6};
    });
    reported("task 't0' 2 devices class 'mig-1g' holds none node 'n0'",
             [](auto& s) { s.tasks[0].gpus = {}; });
    reported("task 't1' holds GPU 4 node 'n1' which has 4", [](auto& s) { s.tasks[1].gpus = {4}; });
    reported("task 't0' asks 0 GPUs holds 1 node 'n0'", [](auto& s) { s.tasks[0].gpus = {0, 3, 5}; });
    reported("node 'n1' device 0 several tasks 't1' 't2'", [](auto& s) {
        s.tasks[2] = s.tasks[1];
        s.tasks[2].name = "t2";
    });
    reported("task 't2' assigned GPUs on no node", [](auto& s) { s.tasks[2].assign_gpus = true; });
    reported("task 't1' lists GPUs assigned some", [](auto& s) { s.tasks[1].assign_gpus = true; });
    reported("task 't1' node 'n1' not enough GPUs other devices", [](auto& s) {
        s.tasks[1].assign_gpus = true;
        s.tasks[1].gpus = {};
        s.tasks[1].device_classes = {"mig-3g"};
    });
    reported("task 't2' node_affinity empty key", [](auto& s) {
        s.tasks[2].node_affinity = {{{{"", MatchOperator::exists, {}}}, {}}};
    });
    reported("task 't2' node_affinity 'k' none; least one", [](auto& s) {
        s.tasks[2].node_affinity = {{{{"k", MatchOperator::in, {}}}, {}}};
    });
    reported("task 't2' node_affinity 'k' 1; none with Exists", [](auto& s) {
        s.tasks[2].node_affinity = {{{{"k", MatchOperator::exists, {"v"}}}, {}}};
    });
    reported("task 't2' node_affinity 'k' 'x' one integer Gt", [](auto& s) {
        s.tasks[2].node_affinity = {{{{"k", MatchOperator::gt, {"x"}}}, {}}};
    });
    reported("task 't2' node_affinity 'k' 2 one integer Lt", [](auto& s) {
        s.tasks[2].node_affinity = {{{{"k", MatchOperator::lt, {"1", "2"}}}, {}}};
    });
    reported("task 't2' match_fields node_affinity 'metadata.uid' In; metadata.name NotIn", [](auto& s) {
        s.tasks[2].node_affinity = {{{}, {{"metadata.uid", MatchOperator::in, {"x"}}}}};
    });
    auto both = with_devices();
    both.nodes[0].resources["pods"] = -1;
    both.tasks[2].device_count = 1;
    CHECK(problems_of(both).size() >= 2);
}

TEST_CASE("resources and devices are taken, given back and undone", "[model]") {
    const auto spec = with_devices();
    auto cluster = Cluster::build(spec);
    const auto& names = cluster.inventory().resource_names;
    const auto n0 = cluster.find_node("n0"), n1 = cluster.find_node("n1");
    const auto t0 = cluster.find_task("t0"), t1 = cluster.find_task("t1");
    const auto pods = *names.find("pods"), hca = *names.find("rdma/hca");
    CHECK(cluster.resource_free(n0, pods) == 2);
    CHECK(cluster.resource_free(n0, hca) == 1);
    CHECK(cluster.resource_free(n1, hca) == 0);
    CHECK(gpu_list(cluster.devices(n0)) == std::vector{2, 3, 4, 5, 6, 7});
    CHECK(gpu_list(cluster.free_devices(n0)) == std::vector{2, 4, 6, 7});
    CHECK(gpu_list(cluster.idle_gpus(n0)) == std::vector{0, 1});
    CHECK(gpu_list(free_devices_for(cluster, t0, n0)) == std::vector{2, 4});
    CHECK(gpu_list(free_devices_for(cluster, t1, n0)) == std::vector{6});  // in order of preference
    CHECK(gpu_list(free_devices_for(cluster, t1, n1)) == std::vector{1});
    const auto start = cluster.checkpoint();
    cluster.assign(t1, n0, gpu_bit(7));
    CHECK(gpu_list(cluster.free_devices(n0)) == std::vector{2, 4, 6});
    CHECK(gpu_list(cluster.free_devices(n1)) == std::vector{0, 1, 2, 3});
    CHECK(cluster.resource_free(n0, pods) == 1);
    CHECK(cluster.resource_free(n1, pods) == 2);
    cluster.reserve(t1, n1, gpu_bit(2));
    CHECK(gpu_list(cluster.free_devices(n1)) == std::vector{0, 1, 3});
    // Two copies on one device: it is free when both have gone.
    cluster.reserve(t1, n1, gpu_bit(2));
    cluster.unreserve(t1, n1, gpu_bit(2));
    CHECK(gpu_list(cluster.free_devices(n1)) == std::vector{0, 1, 3});
    cluster.rollback(start);
    CHECK(gpu_list(cluster.free_devices(n0)) == std::vector{2, 4, 6, 7});
    CHECK(cluster.resource_free(n1, pods) == 1);
    CHECK(cluster.to_spec() == Cluster::build(cluster.to_spec()).to_spec());
    CHECK(cluster.to_spec().nodes == spec.nodes);
    CHECK(cluster.to_spec().tasks[0].device_classes == spec.tasks[0].device_classes);
    CHECK(cluster.to_spec().tasks[0].resources == spec.tasks[0].resources);
    CHECK(gpus_fit(cluster, t0, n0, gpu_bit(2) | gpu_bit(4)));
    CHECK_FALSE(gpus_fit(cluster, t0, n0, gpu_bit(2) | gpu_bit(6)));  // of two classes
    CHECK_FALSE(gpus_fit(cluster, t0, n0, gpu_bit(2) | gpu_bit(3)));  // one is held
    CHECK_FALSE(gpus_fit(cluster, t0, n0, gpu_bit(0) | gpu_bit(1)));  // whole GPUs
}

TEST_CASE("failed devices are not free, and a task may go on holding one", "[model]") {
    auto spec = with_devices();
    spec.nodes[0].failed_gpus = {1, 2, 3};
    const auto cluster = Cluster::build(spec);
    const auto n0 = cluster.find_node("n0");
    CHECK(gpu_list(cluster.free_devices(n0)) == std::vector{4, 6, 7});
    CHECK(gpu_list(cluster.healthy_gpus(n0)) == std::vector{0});
    CHECK_THAT(cluster.warnings(), MentionsEach({"task 't0' holds failed GPU 3 node 'n0'"}));
}

TEST_CASE("missing amounts are reported with names and figures", "[model]") {
    auto spec = with_devices();
    CHECK_THAT(why(spec, "t2", "n0"), Mentions("needs 2 'rdma/hca' 1 free (1 short)"));
    spec.tasks[2] = {.name = "t2", .cpu_milli = 1, .memory_mib = 1};
    spec.tasks[2].device_count = 3;
    spec.tasks[2].device_classes = {"mig-1g", "shared"};
    CHECK_THAT(why(spec, "t2", "n0"), Mentions("3 devices 'mig-1g' 2 free of 4 'shared' 0"));
    CHECK_THAT(why(spec, "t2", "n1"), Mentions("3 devices 'mig-1g' 1 'shared' 2"));
    spec.tasks[2].device_count = 2;
    CHECK(fits(spec, "t2", "n0"));
    CHECK(fits(spec, "t2", "n1"));
    spec.tasks[2].node_affinity = {
        {{{"zone", MatchOperator::in, {"a", "b"}}, {"k", MatchOperator::exists, {}}}, {}},
        {{}, {{"metadata.name", MatchOperator::not_in, {"n0"}}}},
        {}};
    CHECK_THAT(why(spec, "t2", "n0"), Mentions("not zone In 'a', 'b' k Exists metadata.name "
                                               "NotIn 'n0' nor term without conditions"));
    CHECK(fits(spec, "t2", "n1"));
    // Terms that fail for the same reason are told once.
    const auto not_n0 = NodeMatch{"metadata.name", MatchOperator::not_in, {"n0"}};
    const auto on = [&](const char* zone) {
        return NodeTerm{{{"zone", MatchOperator::not_in, {zone}}}, {not_n0}};
    };
    spec.tasks[2].node_affinity = {on("x"), on("y")};
    CHECK(why(spec, "t2", "n0").find("nor") == std::string::npos);
    spec.tasks[2].node_affinity = {on("x"), {{{"none", MatchOperator::exists, {}}}, {not_n0}}};
    CHECK(why(spec, "t2", "n0").find("nor") == std::string::npos);
    CHECK(why(spec, "t2", "n0").find("none") == std::string::npos);
}

TEST_CASE("node affinity is evaluated as kube-scheduler does", "[model]") {
    auto spec = with_devices();
    auto& task = spec.tasks[2];
    task.resources = {};
    spec.nodes[0].labels = {
        {"zone", "a"}, {"generation", "7"}, {"word", "x7"}, {"plus", "+7"}, {"signs", "+-7"}};
    const auto holds = [&](std::vector<NodeMatch> expressions, const char* node = "n0") {
        task.node_affinity = {{std::move(expressions), {}}};
        return fits(spec, "t2", node);
    };
    using Op = MatchOperator;
    CHECK(holds({{"zone", Op::in, {"b", "a"}}}));
    CHECK_FALSE(holds({{"zone", Op::in, {"b"}}}));
    CHECK_FALSE(holds({{"zone", Op::in, {"a"}}}, "n1"));
    CHECK(holds({{"zone", Op::not_in, {"b"}}}));
    CHECK_FALSE(holds({{"zone", Op::not_in, {"a"}}}));
    CHECK(holds({{"zone", Op::not_in, {"a"}}}, "n1"));  // nodes without the label
    CHECK(holds({{"zone", Op::exists, {}}}));
    CHECK_FALSE(holds({{"zone", Op::exists, {}}}, "n1"));
    CHECK_FALSE(holds({{"zone", Op::does_not_exist, {}}}));
    CHECK(holds({{"zone", Op::does_not_exist, {}}}, "n1"));
    CHECK(holds({{"generation", Op::gt, {"6"}}}));
    CHECK_FALSE(holds({{"generation", Op::gt, {"7"}}}));
    CHECK(holds({{"generation", Op::lt, {"8"}}}));
    CHECK(holds({{"generation", Op::gt, {"-8"}}}));
    CHECK_FALSE(holds({{"generation", Op::lt, {"8"}}}, "n1"));
    CHECK_FALSE(holds({{"word", Op::gt, {"1"}}}));
    CHECK(holds({{"plus", Op::gt, {"6"}}}));
    CHECK_FALSE(holds({{"signs", Op::lt, {"6"}}}));
    CHECK_FALSE(holds({{"zone", Op::in, {"a"}}, {"generation", Op::lt, {"7"}}}));  // all conditions of a term
    task.node_affinity = {{{{"zone", Op::in, {"b"}}}, {}}, {{{"generation", Op::gt, {"6"}}}, {}}};
    CHECK(fits(spec, "t2", "n0"));  // one term is enough
    task.node_affinity = {{}};
    CHECK_FALSE(fits(spec, "t2", "n0"));  // a term without conditions holds nowhere
    task.node_affinity = {{}, {{{"zone", Op::exists, {}}}, {}}};
    CHECK(fits(spec, "t2", "n0"));
    task.node_affinity = {};
    CHECK(fits(spec, "t2", "n0"));
}

TEST_CASE("tasks that single out nodes make no kinds of nodes", "[model]") {
    ClusterSpec spec;
    for (int n = 0; n < 50; ++n) {
        NodeSpec node{.name = "n" + std::to_string(n), .cpu_milli = 1'000, .memory_mib = 10};
        node.labels = {{"kubernetes.io/hostname", "host-" + std::to_string(n)},
                       {"zone", n % 2 == 0 ? "a" : "b"}};
        spec.nodes.push_back(node);
        TaskSpec by_name{.name = "by name " + std::to_string(n)};
        by_name.node_affinity = {{{}, {{"metadata.name", MatchOperator::in, {node.name}}}}};
        spec.tasks.push_back(by_name);
        TaskSpec by_label{.name = "by label " + std::to_string(n)};
        by_label.node_selector = {{"kubernetes.io/hostname", "host-" + std::to_string(n)}};
        spec.tasks.push_back(by_label);
    }
    TaskSpec zone{.name = "zone"};
    zone.node_selector = {{"zone", "a"}};
    spec.tasks.push_back(zone);
    TaskSpec others{.name = "others"};
    others.node_affinity = {{{{"kubernetes.io/hostname", MatchOperator::not_in, {"host-0", "host-2"}},
                              {"zone", MatchOperator::in, {"a"}}},
                             {}},
                            {{}, {{"metadata.name", MatchOperator::in, {"n1"}}}}};
    spec.tasks.push_back(others);
    const auto cluster = Cluster::build(spec);
    CHECK(cluster.inventory().node_classes.size() == 2);
    CHECK(cluster.inventory().requirements.size() == 3);
    const auto& inv = cluster.inventory();
    for (const auto node : cluster.nodes()) {
        const auto n = static_cast<int>(index(node));
        INFO("node " << n);
        for (int other = 0; other < 50; ++other) {
            const auto id = std::to_string(other);
            REQUIRE(inv.eligible(cluster.find_task("by name " + id), node) == (n == other));
            REQUIRE(inv.eligible(cluster.find_task("by label " + id), node) == (n == other));
        }
        CHECK(inv.eligible(cluster.find_task("others"), node) == ((n % 2 == 0 && n > 2) || n == 1));
    }
    const auto of = [&](const char* task, int node) {
        return find_eligibility_obstacle(cluster, cluster.find_task(task), make_id<NodeId>(node));
    };
    CHECK(of("by label 3", 4) == Obstacle::node_selector);
    CHECK(of("by name 3", 4) == Obstacle::node_affinity);
    CHECK(of("by name 3", 3) == Obstacle::none);
    CHECK(cluster.to_spec().tasks.back().node_affinity == others.node_affinity);
    CHECK(cluster.to_spec().tasks[1].node_selector == spec.tasks[1].node_selector);
    CHECK(Cluster::build(cluster.to_spec()).to_spec() == cluster.to_spec());
}

TEST_CASE("unspecified GPUs are assigned in one way", "[model]") {
    ClusterSpec spec;
    spec.nodes = {
        {.name = "n0", .gpu_count = 4, .cpu_milli = 8'000, .memory_mib = 100, .failed_gpus = {1, 6}}};
    spec.nodes[0].devices = {{"a", 2, {}, 0}, {"b", 3, {}, 0}};
    const auto add = [&](const char* name, std::int64_t gpus, std::vector<int> held = {}) -> TaskSpec& {
        auto& task = spec.tasks.emplace_back();
        task.name = name;
        task.gpu_count = gpus;
        task.node = "n0";
        task.gpus = std::move(held);
        task.assign_gpus = task.gpus.empty();
        return task;
    };
    add("first", 1);
    add("half", 1).gpu_share_milli = 500;
    add("known", 1, {2});
    add("other half", 1).gpu_share_milli = 500;
    auto& devices = add("devices", 0);
    devices.device_count = 2;
    devices.device_classes = {"a", "b"};
    auto& more = add("more", 0);
    more.device_count = 2;
    more.device_classes = {"a", "b"};
    add("last", 1);  // only a failed one is left
    add("nothing", 0);
    const auto cluster = Cluster::build(spec, IdOrder::as_listed);
    const auto gpus = [&](const char* name) { return gpu_list(cluster.gpus_of(cluster.find_task(name))); };
    CHECK(gpus("first") == std::vector{0});
    CHECK(gpus("half") == std::vector{3});
    CHECK(gpus("known") == std::vector{2});
    CHECK(gpus("other half") == std::vector{3});
    CHECK(gpus("devices") == std::vector{4, 5});
    CHECK(gpus("more") == std::vector{7, 8});
    CHECK(gpus("last") == std::vector{1});
    CHECK(gpus("nothing").empty());
    std::vector<std::string> listed;
    for (const auto task : cluster.tasks_on(make_id<NodeId>(0))) listed.push_back(cluster.name(task));
    CHECK(listed == std::vector<std::string>{"first", "half", "known", "other half", "devices", "more",
                                             "last", "nothing"});
    const auto said = cluster.to_spec();
    CHECK_FALSE(said.tasks[0].assign_gpus);
    CHECK(Cluster::build(said).to_spec() == said);
}

TEST_CASE("a plan moves devices, and a plan that takes one twice is refused", "[model]") {
    const auto spec = with_devices();
    const auto cluster = Cluster::build(spec);
    Plan plan;
    plan.waves = 1;
    plan.moves = {{cluster.find_task("t1"), cluster.find_node("n1"), cluster.find_node("n0"), gpu_bit(6), 0}};
    const auto after = apply(cluster, plan);
    CHECK(gpu_list(after.gpus_of(cluster.find_task("t1"))) == std::vector{6});
    CHECK(resolve(to_spec(plan, cluster), cluster) == plan);
    plan.moves[0].gpus = gpu_bit(3);
    CHECK_THROWS_MESSAGE(apply(cluster, plan), InvalidInput, "task 't1' node 'n0' not fit on GPUs names");
    plan.moves[0].gpus = gpu_bit(8);
    CHECK_THROWS_MESSAGE(apply(cluster, plan), InvalidInput, "move #0 GPUs node 'n0' lacks");
}

TEST_CASE("thousands of names of resources or levels are refused, because every node has an entry for each",
          "[model]") {
    ClusterSpec spec, levels;
    for (int n = 0; n < 3'000; ++n) {
        spec.nodes.push_back({.name = "n" + std::to_string(n), .resources = {{"r" + std::to_string(n), 1}}});
        levels.nodes.push_back({.name = "n" + std::to_string(n)});
        levels.label_levels.push_back("l" + std::to_string(n));
    }
    CHECK_THROWS_MESSAGE(Cluster::build(spec), InvalidInput, "resources 3000 names 2796");
    CHECK_THROWS_MESSAGE(Cluster::build(levels), InvalidInput, "label_levels 3000 names 2796");
    levels.label_levels.resize(500);
    CHECK(Cluster::build(levels).node_count() == 3'000);
    spec.nodes.resize(1);
    for (int r = 0; r < 3'000; ++r) spec.nodes[0].resources["r" + std::to_string(r)] = 1;
    CHECK(Cluster::build(spec).node_count() == 1);
}

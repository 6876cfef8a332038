// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include <gpusched/io/io.hpp>
#include <gpusched/model/cluster.hpp>

using namespace gpusched;

namespace kubernetes_topology_tests {

const std::string object =
    R"({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Topology", "metadata": {"name": "t"},
  "spec": {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"},
   {"nodeLabel": "kubernetes.io/hostname"}]}})";

std::string node(const std::string& name, const std::string& labels) {
    return R"({"kind": "Node", "metadata": {"name": ")" + name + R"(", "labels": {)" + labels + "}}}";
}

std::string list(const std::string& items) { return R"({"kind": "List", "items": [)" + items + "]}"; }

TEST_CASE("a Topology and labels of nodes become a network", "[io]") {
    const auto levels = io::topology_levels_from_text(object);
    CHECK(levels == io::TopologyLevels{"t", {"block", "rack", "kubernetes.io/hostname"}});
    const auto nodes = io::labelled_nodes_from_text(
        list(node("n0", R"("block": "a", "rack": "r1", "other": "x")") + "," +
             node("n1", R"("block": "a", "rack": "r2")") + "," + node("n2", R"("block": "b", "rack": "r1")") +
             "," + node("n3", R"("block": "b", "rack": "b")") + "," + node("n4", R"("block": "b")") + "," +
             node("n5", R"("rack": "r1")") + R"(,{"kind": "Pod"})"));
    const auto reading = io::network_from_labels(levels, nodes);
    CHECK(reading.levels == std::vector<std::string>{"block", "rack"});
    using Node = io::NetworkReading::Node;
    CHECK(reading.nodes == std::vector<Node>{{"n0", {"a", "a/r1"}},
                                             {"n1", {"a", "r2"}},
                                             {"n2", {"b", "b/r1"}},
                                             {"n3", {"b", "b/b"}},
                                             {"n4", {"b"}},
                                             {"n5", {}}});
    CHECK(reading.notes.size() == 2);
    const auto tree = io::network_tree(reading);
    CHECK(tree.levels() == 2);
    CHECK(tree.distance(tree.vertex(make_id<NodeId>(0)), tree.vertex(make_id<NodeId>(2))) == std::nullopt);
    CHECK(tree.distance(tree.vertex(make_id<NodeId>(2)), tree.vertex(make_id<NodeId>(3))) == 4);

    ClusterSpec spec{.nodes = nodes};
    CHECK(io::set_network(spec, reading) == 6);
    CHECK(Cluster::build(spec).to_spec().nodes[0].network == std::vector<std::string>{"a", "a/r1"});
}

TEST_CASE("objects without a Topology or nodes are refused", "[io]") {
    const auto refused = [](const std::string& text, const std::string& words, const std::string& name = {}) {
        INFO(text);
        CHECK_THROWS_MESSAGE(io::topology_levels_from_text(text, {.topology = name}, "t"), InvalidInput,
                             words);
    };
    const auto with = [](const std::string& levels) {
        return R"({"apiVersion": "kai.scheduler/v1alpha1", "kind": "Topology", "spec": {"levels": )" +
               levels + "}}";
    };
    refused("{}", "t one object Topology kueue.x-k8s.io kai.scheduler found none");
    refused(object, "name 'u' found 't'", "u");
    refused(list(object + "," + object), "found 't', 't'");
    refused(R"({"apiVersion": "other/v1", "kind": "Topology"})", "Topology found none");
    refused(with("[]"), "t spec.levels array 1 16");
    refused(with("7"), "spec.levels array");
    refused(with("[{}]"), "/spec/levels/0 object nodeLabel");
    refused(with(R"([{"nodeLabel": "a"}, {"nodeLabel": "a"}])"), "'a' twice");
    refused(with(R"([{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "a"}])"), "no level below");
    const auto no_nodes = [](const std::string& text, const std::string& words) {
        CHECK_THROWS_MESSAGE(io::labelled_nodes_from_text(text, "t"), InvalidInput, words);
    };
    no_nodes("{}", "objects kind Node");
    no_nodes(R"({"kind": "Node"})", "t expected metadata.name");
    no_nodes(list(node("a", "") + "," + node("a", "")), "t /items/1 node 'a' twice");
    no_nodes(node("a", R"("b": [])"), "/metadata/labels/b text without slash");
    no_nodes(R"({"kind": "Node", "metadata": {"name": "a", "labels": 3}})", "labels object");
}

TEST_CASE("real Topology objects", "[io]") {
    if (!testing_support::is_here(testing_support::real_data("kueue")) || !json::reads_yaml()) return;
    const auto read = [](const std::string& name) {
        const auto path = testing_support::real_data(name).string();
        return io::topology_levels_from_text(read_file(path), {}, path);
    };
    const std::vector<std::string> three{"cloud.provider.com/topology-block",
                                         "cloud.provider.com/topology-rack", "kubernetes.io/hostname"};
    CHECK(read("kueue/sample-gpu-queues.yaml") == io::TopologyLevels{"default", three});
    CHECK(read("kueue/sample-queues.yaml") == io::TopologyLevels{"default", three});
    CHECK(read("kueue/multikueue-tas-worker-setup.yaml") ==
          io::TopologyLevels{"default", {"kubernetes.io/hostname"}});
    CHECK(read("kai-scheduler/topology-cr.yaml") == io::TopologyLevels{"cluster-topology", three});
    for (const auto* name :
         {"kueue/perf-large-scale-generator.yaml", "kai-scheduler/base_kwok_managed_nodepool.yaml",
          "kai-scheduler/fairshare-example-config.yaml", "kai-scheduler/two-queue-simulation-config.yaml"})
        CHECK_THROWS_WITH(read(name), Mentions("one object Topology"));
}

}  // namespace kubernetes_topology_tests

// SPDX-License-Identifier: Apache-2.0
// Nodes: amounts, over-commitment, taints and eligibility, network.
#include "objects.hpp"

using namespace kubernetes_text;

TEST_CASE("Allocatable amounts of a node, and any resource", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0",
              {.allocatable =
                   R"("cpu": "95590m", "memory": "1096Gi", "pods": "110", "ephemeral-storage": "3400000000Ki",
                        "hugepages-2Mi": "1Gi", "rdma/hca": "64", "nvidia.com/gpu": "0")",
               .capacity = R"("cpu": "96")",
               .labels = R"("zone": "a")"}),
         R"({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}, )"
         R"("status": {"capacity": {"cpu": "2"}}})",
         pod("p", {.requests =
                       R"("rdma/hca": "1", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1", "odd": "3")"})});
    const auto& spec = reading.cluster.nodes[0];
    CHECK(spec.cpu_milli == 95590);
    CHECK(spec.memory_mib == 1096 * 1024);
    CHECK(
        spec.resources ==
        Resources{{"ephemeral-storage", 3320312}, {"hugepages-2Mi", 1024}, {"pods", 110}, {"rdma/hca", 64}});
    CHECK(spec.labels == Labels{{"zone", "a"}});
    CHECK(spec.gpu_count == 0);
    CHECK(reading.cluster.nodes[1].cpu_milli == 2000);  // allocatable defaults to capacity
    CHECK(task(reading, "p").resources ==
          Resources{{"ephemeral-storage", 1}, {"hugepages-2Mi", 4}, {"pods", 1}, {"rdma/hca", 1}});
    CHECK(row(reading, "Pod", "resource odd").fidelity == io::Fidelity::ignored);
}

TEST_CASE("The number of pods of a node is a resource if it can matter", "[io][kubernetes]") {
    const NodeText two{.allocatable = R"("cpu": "8", "memory": "32Gi", "pods": "2")"};
    auto reading = read({node("n0", two), pod("a", {.on = "n0"}), pod("b", {.on = "n0"}), pod("c")});
    CHECK(task(reading, "a").resources == Resources{{"pods", 1}});
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "c", "n0"));
    reading = read({node("n0", two), pod("a", {.on = "n0"}), pod("c")});
    CHECK(task(reading, "a").resources.empty());  // two pods in all: none need count
    CHECK(fits(Cluster::build(reading.cluster), "c", "n0"));
    reading = read({node("n0", {.allocatable = R"("cpu": "8")"}), pod("c")});
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "c", "n0"));  // as kube-scheduler: no number is none
}

TEST_CASE("A node with overcommitted pods is clipped and receives nothing", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0", {.allocatable = R"("cpu": "2", "memory": "1Gi", "pods": "110")"}),
         node("n1", {.allocatable = R"("cpu": "8", "memory": "32Gi", "pods": "110", "example.com/x": "1")"}),
         pod("a", {.requests = R"("cpu": "3", "memory": "1025Mi", "example.com/x": "1")", .on = "n0"}),
         pod("b", {.requests = R"("cpu": "1")", .on = "n0"}), pod("c", {.requests = R"("cpu": "1")"})});
    const auto& spec = reading.cluster.nodes[0];
    CHECK(spec.cpu_milli == 4000);
    CHECK(spec.memory_mib == 1025);
    CHECK(spec.resources.at("example.com/x") == 1);
    CHECK_FALSE(spec.schedulable);
    const auto over = row(reading, "Node", "over-committed");
    CHECK(over.count == 1);
    CHECK(over.examples.front() == "n0: cpu 4000m of 2000m, example.com/x 1 of 0, memory 1025Mi of 1024Mi");
    const auto cluster = Cluster::build(reading.cluster);
    CHECK_FALSE(fits(cluster, "c", "n0"));
    CHECK(fits(cluster, "c", "n1"));
}

TEST_CASE("A node that is not ready receives nothing, unless the options include it", "[io][kubernetes]") {
    auto dead = node("dead"), silent = node("silent");
    dead.replace(dead.find("True"), 4, "False");
    silent.replace(silent.find(R"([{"type": "Ready", "status": "True"}])"), 37, "[]");
    const auto text = list({dead, silent, node("n1"), pod("p")});
    const auto closed = io::kubernetes_from_text(text);
    CHECK_FALSE(fits(Cluster::build(closed.cluster), "p", "dead"));
    CHECK_FALSE(fits(Cluster::build(closed.cluster), "p", "silent"));
    CHECK(fits(Cluster::build(closed.cluster), "p", "n1"));
    CHECK(row(closed, "Node", "not ready").examples == std::vector<std::string>{"dead", "silent"});
    CHECK(row(closed, "Node", "not ready").errs == io::Errs::too_strict);
    for (const auto& n : closed.cluster.nodes) {  // the taint of the node controller tells the reason
        INFO(n.name);
        CHECK(n.schedulable == (n.name == "n1"));
        CHECK((n.taints == std::vector<Taint>{{"node.kubernetes.io/not-ready", "", "NoSchedule"}}) !=
              n.schedulable);
    }
    const auto as_scheduled = io::kubernetes_from_text(text, {.open_unready_nodes = true});
    CHECK(fits(Cluster::build(as_scheduled.cluster), "p", "dead"));
    CHECK(fits(Cluster::build(as_scheduled.cluster), "p", "silent"));
    CHECK(row(as_scheduled, "Node", "not ready").errs == io::Errs::neither);
}

TEST_CASE("Amounts beyond the range of the model are clipped", "[io][kubernetes]") {
    const auto reading = read({node("n0", {.allocatable = R"("cpu": "9E", "memory": "9Ei", "pods": "9E")"}),
                               pod("a", {.requests = R"("cpu": "8E", "memory": "8Ei")", .on = "n0"}),
                               pod("b", {.requests = R"("cpu": "8E", "example.com/x": "8E")", .on = "n0"}),
                               pod("c", {.requests = R"("cpu": "8E")"})});
    CHECK(row(reading, "Pod", "requests beyond 10^12").count == 3);
}

TEST_CASE("Taints, tolerations, selectors and node affinity", "[io][kubernetes]") {
    const auto affinity = [](const std::string& terms) {
        return R"("affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":)"
               R"( {"nodeSelectorTerms": [)" +
               terms + "]}}}";
    };
    const auto reading = read(
        {node("plain", {.labels = R"("disk": "ssd", "cores": "8")"}),
         node("tainted", {.spec = R"("taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])"}),
         node("leaving", {.spec = R"("taints": [{"key": "down", "effect": "NoExecute"}])"}),
         node("preferred",
              {.spec = R"("taints": [{"key": "spot", "effect": "PreferNoSchedule"}, {"effect": "Odd"}])"}),
         node("cordoned", {.spec = R"("unschedulable": true)"}), pod("p"),
         pod("tolerant",
             {.spec = R"("tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "down", "value": "",
            "effect": "NoExecute", "tolerationSeconds": 300}])"}),
         pod("all", {.spec = R"("tolerations": [{"operator": "Exists", "value": "dropped"}])"}),
         pod("odd", {.spec = R"("tolerations": [{"key": "gpu", "operator": "Gt", "value": "3"}, )"
                             R"({"operator": "Equal"}])"}),
         pod("uncordoned",
             {.spec =
                  R"("tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])"}),
         pod("selector", {.spec = R"("nodeSelector": {"disk": "ssd"})"}),
         pod("either", {.spec = affinity(
                            R"({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["preferred"]}]})")}),
         pod("numbers",
             {.spec = affinity(
                  R"({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]})")}),
         pod("without",
             {.spec = affinity(R"({"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]})")}),
         pod("nowhere", {.spec = affinity("")}),
         pod("illegal", {.spec = affinity(
                             R"({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["-5"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["a b"]}]})")}),
         pod("malformed",
             {.spec = affinity(
                  R"({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["many"]}]})")})});
    const auto cluster = Cluster::build(reading.cluster);
    const auto where = [&](const std::string& name) {
        std::string out;
        for (const auto* const to : {"plain", "tainted", "leaving", "preferred", "cordoned"})
            if (fits(cluster, name, to)) out += to[0];
        return out;
    };
    CHECK(where("p") == "pp");
    CHECK(where("tolerant") == "ptlp");
    CHECK(where("all") == "ptlpc");
    CHECK(where("uncordoned") == "ppc");
    CHECK(where("odd") == "pp");
    CHECK(where("selector") == "p");
    CHECK(where("either") == "pp");
    CHECK(where("numbers") == "p");
    CHECK(where("without") == "p");
    CHECK(where("nowhere").empty());
    CHECK(where("malformed").empty());
    CHECK(where("illegal").empty());  // no label has such a value: malformed, whatever the operator
    CHECK(row(reading, "Node", "cordons").fidelity == io::Fidelity::exact);
    CHECK_FALSE(reading.cluster.nodes[4].schedulable);
    CHECK(row(reading, "Pod", "tolerations that compare numbers").count == 1);
    CHECK(row(reading, "Pod", "tolerationSeconds").count == 1);
    CHECK(row(reading, "Node", "taints PreferNoSchedule").count == 1);
    CHECK(rows(reading, "Node", "taints").size() == 2);  // two exact, one ignored
}

TEST_CASE("Positions in the network come from labels", "[io][kubernetes]") {
    const auto at = [](const std::string& name, const std::string& rack) {
        return node(name, {.labels = R"("block": "b0", "rack": ")" + rack + "\""});
    };
    const auto topology = object("kueue.x-k8s.io/v1beta1", "Topology", "t",
                                 R"("spec": {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}, )"
                                 R"({"nodeLabel": "kubernetes.io/hostname"}]})");
    auto reading = read({at("n0", "r0"), at("n1", "r1"), topology});
    CHECK(reading.cluster.nodes[1].network == std::vector<std::string>{"b0", "r1"});
    reading = read({at("n0", "r0"), at("n1", "r1"), topology}, {.network_labels = {"rack"}});
    CHECK(reading.cluster.nodes[1].network == std::vector<std::string>{"r1"});
    reading = read({at("n0", "r0")});
    CHECK(reading.cluster.nodes[0].network.empty());
    CHECK(std::any_of(reading.report.absent.begin(), reading.report.absent.end(),
                      [](const auto& absent) { return absent.kind == "Topology"; }));
    reading = read({node(
        "n0",
        {.labels = R"("network.topology.nvidia.com/leaf": "l", "network.topology.nvidia.com/spine": "s")"})});
    CHECK(reading.cluster.nodes[0].network == std::vector<std::string>{"s", "l"});
}

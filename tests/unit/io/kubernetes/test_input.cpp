// SPDX-License-Identifier: Apache-2.0
// What is given: Lists, single objects, YAML, folders, and input that is broken or odd.
#include "objects.hpp"
#include "support/real_data.hpp"

using namespace kubernetes_text;

namespace {

std::string problem_of(const std::string& text) {
    try {
        (void)io::kubernetes_from_text(text, {}, "t");
    } catch (const InvalidInput& error) {
        return error.what();
    }
    return {};
}

}  // namespace

TEST_CASE("Objects come in Lists, one by one, in typed lists and in several texts", "[io][kubernetes]") {
    CHECK(io::kubernetes_from_text(node("n0")).cluster.nodes.size() == 1);
    const auto pods =
        R"({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "p"}, "spec": {}}]})";
    const std::string one = node("n0"), two = list({list({node("n1")}), one});
    const io::NamedText texts[] = {{one, "a"}, {pods, "b"}, {two, "c"}};
    const auto reading = io::kubernetes_from_texts(texts);
    CHECK(reading.cluster.nodes.size() == 2);
    CHECK(task(reading, "p").name == "default/p");
}

TEST_CASE("Objects in YAML, several documents", "[io][kubernetes]") {
    if (!json::reads_yaml()) {
        WARN("SKIPPED: built without libyaml");
        return;
    }
    const auto reading = io::kubernetes_from_text(R"(apiVersion: v1
kind: Node
metadata: {name: n0}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: "110"}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, labels: {on: "yes", n: 1}}
spec: {containers: [{name: c, resources: {requests: {cpu: 0.5}}}]}
)");
    CHECK(reading.cluster.nodes[0].cpu_milli == 4000);
    CHECK(task(reading, "p").cpu_milli == 500);
}

TEST_CASE("Files and folders", "[io][kubernetes]") {
    const auto folder = std::filesystem::temp_directory_path() / "gpusched_kubernetes_folder";
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    const std::string path = folder.string();
    const std::vector<std::string> paths{path};
    CHECK_THROWS_AS(io::read_kubernetes(paths), InvalidInput);
    write_file(path + "/b.json", list({pod("p")}));
    write_file(path + "/a.json", list({node("n0")}));
    write_file(path + "/notes.txt", "not looked at");
    CHECK(io::kubernetes_files(paths) == std::vector<std::string>{path + "/a.json", path + "/b.json"});
    CHECK(io::read_kubernetes(paths).cluster.tasks.size() == 1);
    const std::vector<std::string> missing{path + "/c.json"};
    CHECK_THROWS_AS(io::read_kubernetes(missing), BackendError);
    std::filesystem::remove_all(folder);
}

TEST_CASE("Input without a cluster is refused, and the message names its content", "[io][kubernetes]") {
    CHECK(problem_of("[1, 2").starts_with("t:1:"));
    CHECK_THAT(problem_of("[]"), Mentions("t Kubernetes List apiVersion found array"));
    CHECK_THAT(problem_of("{}"), Mentions("t Kubernetes List apiVersion found without kind"));
    CHECK_THAT(problem_of(R"({"format": "gpusched.cluster", "version": 1})"),
               Mentions("t Kubernetes 'gpusched.cluster' needs no import"));
    CHECK_THAT(problem_of(list({})), Mentions("t least one Node none List empty"));
    CHECK_THAT(problem_of(list({pod("p"), pod("q")})), Mentions("t least one Node 2 pods no node"));
    CHECK_THAT(
        problem_of(R"({"kind": "Status", "apiVersion": "v1", "message": "nodes is forbidden", "code": 403})"),
        Mentions("t Kubernetes error API server 'nodes is forbidden'"));
    CHECK_THAT(problem_of(list({object("v1", "Secret", "s")})), Mentions("t least one Node found 1 Secret"));
    CHECK_THAT(problem_of(list({node("n0", {.spec = R"("taints": "none")"})})),
               Mentions("t Node none read n0 /items/0/spec/taints list \"none\""));
    if (json::reads_yaml()) CHECK_THAT(problem_of(""), Mentions("t Kubernetes found nothing"));
    CHECK_THROWS_AS(io::kubernetes_from_texts({}), InvalidInput);
    CHECK_THROWS_AS(io::kubernetes_from_text(node("n0"), {.examples = -1}), InvalidInput);
    CHECK_THROWS_AS(
        io::kubernetes_from_text(node("n0"), {.network_labels = std::vector<std::string>(17, "x")}),
        InvalidInput);
}

TEST_CASE("One broken object does not refuse the cluster", "[io][kubernetes]") {
    const auto reading =
        read({node("n0"), node("n0"), node("n1", {.spec = R"("taints": 1)"}), "17", R"({"metadata": {}})",
              R"({"apiVersion": "v1", "kind": "Node", "metadata": {}})",
              R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nospec"}})",
              pod("bad", {.requests = R"("cpu": "-1")"}), pod("p", {.on = "n1"}), pod("good", {.on = "n0"}),
              object("v1", "Secret", "hidden"), object("v1", "Service", "s"),
              object("policy/v1", "PodDisruptionBudget", "b",
                     R"("spec": {"selector": {}, "minAvailable": "half"})"),
              pod("again", {.metadata = R"("uid": "1")"}), pod("again", {.metadata = R"("uid": "1")"}),
              pod("twice", {.metadata = R"("uid": "2")"}), pod("twice", {.metadata = R"("uid": "3")"})});
    REQUIRE(reading.cluster.nodes.size() == 1);
    CHECK(reading.cluster.tasks.size() == 3);
    CHECK(reading.cluster.budgets.empty());
    const auto left_out = [&](const char* kind, const char* how) {
        for (const auto& found : reading.report.rows)
            if (found.kind == kind && found.fidelity == io::Fidelity::left_out && found.how == how)
                return found.count;
        return std::int64_t{0};
    };
    CHECK(left_out("Node", "another object has its name; the first is kept") == 1);
    CHECK(left_out("Node", "cannot be read") == 1);
    CHECK(left_out("Node", "has no name") == 1);
    CHECK(left_out("(none)", "not an object") == 1);
    CHECK(left_out("(none)", "no kind is said") == 1);
    CHECK(left_out("Pod", "cannot be read") == 2);
    CHECK(left_out("Pod", "its node was not read") == 1);
    CHECK(left_out("Pod", "the same object occurs again") == 1);
    CHECK(left_out("Pod", "another object has its name; the first is kept") == 1);
    CHECK(left_out("PodDisruptionBudget", "cannot be read") == 1);
    CHECK(row(reading, "Secret", "objects").examples.empty());  // names of secrets are kept out of reports
    CHECK(row(reading, "Service", "objects").examples == std::vector<std::string>{"default/s"});
    const auto text = io::reading_report_to_text(reading.report);
    CHECK(text.starts_with("Left out:\n"));
    CHECK_THAT(text,
               Mentions("t /items/7/spec/containers/0/resources/requests/cpu quantity 500m 64Gi \"-1\""));
    CHECK(text.find("\nNot in the input, and so not decided:\n") != text.npos);
}

TEST_CASE("A list or an object of the API that is something else makes its pod or node unreadable",
          "[io][kubernetes]") {
    const auto left_out = [](const std::string& node_or_pod) {
        const auto reading = read({node("n0"), node_or_pod});
        for (const auto& found : reading.report.rows)
            if (found.how == "cannot be read") return found.examples.front();
        return std::string();
    };
    const auto with_spec = [](const std::string& spec) {
        return R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {)" + spec + "}}";
    };
    CHECK_THAT(left_out(with_spec(R"("containers": "none")")),
               Mentions("p t /items/1/spec/containers list \"none\""));
    CHECK_THAT(left_out(with_spec(R"("containers": [], "tolerations": {})")),
               Mentions("/items/1/spec/tolerations list"));
    CHECK_THAT(left_out(with_spec(R"("containers": [{"resources": []}])")),
               Mentions("/items/1/spec/containers/0/resources object"));
    CHECK_THAT(left_out(with_spec(R"("containers": [], "affinity": {"nodeAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": {}}}})")),
               Mentions("/nodeSelectorTerms list"));
    CHECK_THAT(
        left_out(
            R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "spec": {"taints": "x"}})"),
        Mentions("n1 /items/1/spec/taints list"));
    // Null is absent, and labels may be called anything.
    CHECK(left_out(with_spec(R"("containers": null, "nodeSelector": {"values": "x"})")).empty());
    CHECK(left_out(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"spec": "x"}},
        "spec": {"containers": []}})")
              .empty());
}

TEST_CASE("Other fields of a status do not matter", "[io][kubernetes]") {
    // ContainerStatus.allocatedResourcesStatus, of which resources is a list.
    const auto status = R"("containerStatuses": [{"name": "main", "allocatedResourcesStatus":
        [{"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-1", "health": "Healthy"}]}]}],
        "values": "one", "somethingNew": {"containers": 3, "capacity": "x"})";
    const auto eight = R"("cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8")";
    const auto asks = R"("nvidia.com/gpu": "8")";
    const auto reading = read({node("n0", {.allocatable = eight}),
                               pod("runs", {.requests = asks, .on = "n0", .status = status}),
                               pod("waits", {.requests = asks, .status = status})});
    CHECK(reading.cluster.tasks.size() == 2);
    CHECK(task(reading, "runs").gpu_count == 8);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "waits", "n0"));
    CHECK(rows(reading, "Pod", "objects").empty());
}

TEST_CASE("A bound pod with an unreadable field keeps its resources", "[io][kubernetes]") {
    const auto eight = R"("cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8")";
    const auto asks = R"("nvidia.com/gpu": "8")";
    for (const auto& broken :
         {pod("runs", {.requests = asks, .on = "n0", .spec = R"("tolerations": "any")"}),
          pod("runs", {.requests = asks, .on = "n0", .labels = R"("app": {})"}),
          pod("runs", {.requests = asks, .on = "n0", .status = R"("containerStatuses": [{"name": "main",
              "resources": {"requests": {"nvidia.com/gpu": "many"}}}])"}),
          pod("runs", {.requests = asks, .on = "n0", .status = R"("conditions": {})"})}) {
        INFO(broken);
        const auto reading =
            read({node("n0", {.allocatable = eight}), broken, pod("waits", {.requests = asks})});
        CHECK(task(reading, "runs").gpu_count == 8);
        CHECK(task(reading, "runs").how == Mobility::none);
        CHECK(task(reading, "runs").preemptible == false);
        CHECK_FALSE(fits(Cluster::build(reading.cluster), "waits", "n0"));
        CHECK_THAT(row(reading, "Pod", "objects").examples.front(), Mentions("default/runs t /items/1/"));
    }
    // One that ended holds nothing, and one that waits is left out.
    const auto reading = read({node("n0"), pod("p", {.spec = R"("tolerations": "any")"}),
                               pod("q", {.on = "n0", .spec = R"("tolerations": "any")", .phase = "Failed"})});
    CHECK(reading.cluster.tasks.empty());
}

TEST_CASE("A quantity of a node that cannot be read counts as 0, and the node is named", "[io][kubernetes]") {
    const auto reading =
        read({node("n0", {.allocatable =
                              R"("cpu": "-1", "memory": "32Gi", "pods": "110", "example.com/x": "a lot")"}),
              pod("runs", {.on = "n0"})});
    REQUIRE(reading.cluster.nodes.size() == 1);
    CHECK(reading.cluster.nodes[0].cpu_milli == 0);
    CHECK(reading.cluster.nodes[0].memory_mib == 32768);
    CHECK(reading.cluster.tasks.size() == 1);
    const auto found = row(reading, "Node", "quantities that cannot be read");
    CHECK(found.errs == io::Errs::too_strict);
    CHECK_THAT(found.examples.front(),
               Mentions("n0 t /items/0/status/capacity/cpu quantity 500m 64Gi \"-1\""));
    // So is a node that is left out.
    for (const auto& left_out :
         rows(read({node("n0"), node("n1", {.spec = R"("taints": 1)"})}), "Node", "objects"))
        if (left_out.fidelity == io::Fidelity::left_out)
            CHECK_THAT(left_out.examples.front(), Mentions("n1 t /items/1/spec/taints list"));
}

TEST_CASE("Every object that was met is in the report", "[io][kubernetes]") {
    std::vector<std::string> items{node("n0"), pod("p"), object("v1", "Secret", "x"),
                                   object("example.com/v1", "Node", "other")};
    for (const auto* const kind : {"ReplicaSet", "Deployment", "StatefulSet", "DaemonSet"})
        items.push_back(object("apps/v1", kind, "x"));
    for (const auto* const kind : {"ResourceSlice", "ResourceClaim", "DeviceClass"})
        items.push_back(object("resource.k8s.io/v1", kind, "x"));
    items.push_back(object("batch/v1", "Job", "x"));
    items.push_back(object("v1", "Namespace", "x"));
    items.push_back(object("v1", "PersistentVolume", "x"));
    items.push_back(object("v1", "PersistentVolumeClaim", "x"));
    items.push_back(object("policy/v1", "PodDisruptionBudget", "x"));
    items.push_back(object("scheduling.k8s.io/v1", "PriorityClass", "x"));
    items.push_back(object("scheduling.k8s.io/v1alpha2", "Workload", "x"));
    items.push_back(object("scheduling.k8s.io/v1alpha2", "PodGroup", "x"));
    items.push_back(object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "x"));
    items.push_back(object("jobset.x-k8s.io/v1alpha2", "JobSet", "x"));
    items.push_back(object("kueue.x-k8s.io/v1beta1", "Topology", "x"));
    const auto reading = read(items);
    for (const auto* const kind : {"Node",
                                   "Pod",
                                   "Secret",
                                   "ReplicaSet",
                                   "Deployment",
                                   "StatefulSet",
                                   "DaemonSet",
                                   "ResourceSlice",
                                   "ResourceClaim",
                                   "DeviceClass",
                                   "Job",
                                   "Namespace",
                                   "PersistentVolume",
                                   "PersistentVolumeClaim",
                                   "PodDisruptionBudget",
                                   "PriorityClass",
                                   "Workload",
                                   "PodGroup",
                                   "LeaderWorkerSet",
                                   "JobSet",
                                   "Topology"}) {
        INFO(kind);
        CHECK(std::any_of(reading.report.rows.begin(), reading.report.rows.end(),
                          [&](const auto& found) { return found.kind == kind; }));
    }
}

TEST_CASE("Texts with a NUL character or a forbidden slash still give a snapshot that can be built",
          "[io][kubernetes]") {
    const auto nul = std::string(R"("pod-group-name": "a\u0000b")");
    const auto reading = read(
        {node("n0", {.labels = R"("network.topology.nvidia.com/leaf": "a/b")"}),
         pod("p", {.spec = R"("schedulingGroup": {"podGroupName": "a\u0000b"}, "affinity": {"podAntiAffinity":
                {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": "k",
                 "namespaces": ["x\u0000"]}]}})",
                   .metadata = R"("annotations": {)" + nul + "}"}),
         pod("q", {.labels = R"("x": "a\u0000b")"}),
         R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a\u0000b"}, "spec": {}})"});
    CHECK(reading.cluster.tasks.size() == 1);
    CHECK(task(reading, "p").job.empty());
    CHECK(reading.cluster.nodes[0].network.empty());
    CHECK(row(reading, "Node", "network").fidelity == io::Fidelity::ignored);
}

TEST_CASE("Managed fields of many megabytes do not matter", "[io][kubernetes]") {
    std::string fields = R"("managedFields": [{"fieldsV1": {)";
    for (int i = 0; i < 20000; ++i)
        fields += (i == 0 ? "\"f:" : ", \"f:") + std::to_string(i) + R"(": {"f:a": {}, "f:b": {".": {}}})";
    fields += "}}]";
    const auto reading = read({node("n0", {.metadata = fields}), pod("p", {.metadata = fields})});
    CHECK(reading.cluster.tasks.size() == 1);
}

TEST_CASE("A report as JSON", "[io][kubernetes]") {
    io::ReadingReport report;
    report.rows.push_back({"Pod", "x", io::Fidelity::approximated, io::Errs::too_lax, 2, "how", {"a"}});
    report.absent.push_back({"Job", "y"});
    CHECK(io::reading_report_to_json(report) == R"({
 "rows": [
  {
   "kind": "Pod",
   "what": "x",
   "fidelity": "approximated",
   "errs": "too_lax",
   "count": 2,
   "how": "how",
   "examples": [
    "a"
   ]
  }
 ],
 "absent": [
  {
   "kind": "Job",
   "undecided": "y"
  }
 ]
}
)");
}

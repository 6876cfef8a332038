// SPDX-License-Identifier: Apache-2.0
// Snapshots of KAI-Scheduler: what they say beyond objects of Kubernetes, and broken ones.
#include "objects.hpp"

using namespace kubernetes_text;

namespace {

std::string joined(const std::vector<std::string>& items) {
    std::string out;
    for (const auto& item : items) out += (out.empty() ? "" : ", ") + item;
    return out;
}

struct KaiText {
    std::vector<std::string> nodes{}, pods{}, groups{}, requests{};
    std::string raw{};     ///< members of rawObjects
    std::string params{};  ///< members of schedulerParams
};
std::string snapshot(const KaiText& text) {
    return R"({"config": null, "schedulerParams": {)" + text.params + R"(}, "rawObjects": {"nodes": [)" +
           joined(text.nodes) + R"(], "pods": [)" + joined(text.pods) + R"(], "podGroups": [)" +
           joined(text.groups) + R"(], "bindRequests": [)" + joined(text.requests) + "]" + more(text.raw) +
           "}}";
}

/// Reads a snapshot; whatever it is, the result can be built, and written and read again.
io::ClusterReading read_kai(const KaiText& text, const io::KubernetesReadOptions& options = {}) {
    auto reading = io::kai_snapshot_from_text(snapshot(text), options, "t");
    static_cast<void>(Cluster::build(reading.cluster));
    CHECK(io::cluster_from_json(io::cluster_to_json(reading.cluster)) == reading.cluster);
    return reading;
}

/// As the snapshot plugin writes them: without kind and apiVersion.
std::string group(const std::string& name, const std::string& spec) {
    return R"({"metadata": {"name": ")" + name + R"(", "namespace": "default"}, "spec": {)" + spec + "}}";
}
std::string gpu_node(const std::string& name, const std::string& gpus, const std::string& labels = {}) {
    return node(name, {.allocatable = R"("cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": ")" +
                                      gpus + "\"",
                       .labels = labels});
}
std::string annotated(const std::string& annotations) {
    return R"("annotations": {)" + annotations + "}, " + owned_by("ReplicaSet", "r");
}
const std::string of_kai = R"("schedulerName": "kai-scheduler")";

}  // namespace

TEST_CASE("A snapshot of KAI-Scheduler is a snapshot", "[io][kai]") {
    const auto text = read_file(std::string(GPUSCHED_TEST_DATA_DIR) + "/io/kai/snapshot.json");
    const auto reading = io::kai_snapshot_from_text(text);
    const auto& spec = reading.cluster;
    const auto cluster = Cluster::build(spec);
    CHECK(io::cluster_from_json(io::cluster_to_json(spec)) == spec);
    const auto of = [&](const std::string& name) -> const TaskSpec& { return task(reading, "ml/" + name); };
    REQUIRE(spec.nodes.size() == 4);
    CHECK(spec.nodes[0].gpu_count == 8);
    CHECK(spec.nodes[2].network == std::vector<std::string>{"b0", "r1"});
    CHECK(of("train-0").job == "ml/train");
    CHECK(of("train-0").priority == 50);
    CHECK(of("serve-0").gpu_share_milli == 500);
    CHECK(of("serve-0").gpus == of("serve-1").gpus);  // they share one
    CHECK(of("serve-2").gpus != of("serve-0").gpus);
    CHECK(of("serve-2").gpu_share_milli == 246);  // 20,000 of 81,559 MiB
    CHECK(of("serve-0").preemptible == false);    // priority 125
    CHECK(of("serve-2").preemptible == true);     // its group says so
    CHECK(of("serve-0").how == Mobility::copy);
    CHECK(of("mig-pod").device_classes == std::vector<std::string>{"nvidia.com/mig-1g.10gb"});
    CHECK(of("binding").node == "gpu-2");
    CHECK(of("half").gpu_share_milli == 500);
    CHECK(of("half").priority == 50);
    CHECK(of("wide-0").network_affinity == NetworkAffinity{1, NetworkMode::required});
    CHECK(task(reading, "kai-resource-reservation/gpu-reservation-x1").gpu_count == 0);
    CHECK(gpu_count(cluster.idle_gpus(cluster.find_node("gpu-0"))) == 2);  // 8 less 4 whole and 2 shared
    const auto gang = std::find_if(spec.jobs.begin(), spec.jobs.end(),
                                   [](const JobSpec& job) { return job.name == "ml/wide"; });
    REQUIRE(gang != spec.jobs.end());
    CHECK(gang->min_members == 2);
    CHECK(row(reading, "Queue", "objects").errs == io::Errs::too_lax);
    CHECK(row(reading, "Queue", "objects").count == 2);
    CHECK(row(reading, "BindRequest", "node").count == 1);
    CHECK(row(reading, "Pod", "reservations of shared GPUs").count == 2);
    CHECK(rows(reading, "Pod", "other schedulers").size() == 1);  // reservations are of the default scheduler
}

TEST_CASE("Parts of GPUs", "[io][kai]") {
    const auto part = [](const std::string& name, const std::string& annotations,
                         const std::string& group_name, const std::string& on = "n0") {
        return pod(name, {.on = on,
                          .labels = group_name.empty() ? "" : R"("runai-gpu-group": ")" + group_name + "\"",
                          .spec = of_kai,
                          .metadata = annotated(annotations)});
    };
    const auto reading = read_kai(
        {.nodes = {gpu_node("n0", "3", R"("nvidia.com/gpu.memory": "40000")"),
                   gpu_node("n1", "1", R"("nvidia.com/gpu.memory": "80000")")},
         .pods = {part("a", R"("gpu-fraction": "0.6")", "x"), part("b", R"("gpu-fraction": "0.6")", "x"),
                  part("c", R"("gpu-memory": "10001")", "y"),
                  part("d", R"("gpu-fraction": "0.3", "gpu-fraction-num-devices": "2")", "", ""),
                  part("e", R"("gpu-memory": "20000")", "", ""), part("f", R"("gpu-fraction": "half")", "z"),
                  part("g", R"("gpu-fraction": "1.5")", "z"), part("h", R"("gpu-memory": "0")", "z"),
                  part("i", R"("gpu-memory": "100000")", "", ""),
                  pod("whole", {.requests = R"("nvidia.com/gpu": "1")", .on = "n0", .spec = of_kai})}});
    CHECK(task(reading, "a").gpu_share_milli == 600);
    CHECK(task(reading, "b").gpu_share_milli == 400);  // what is left of the GPU
    CHECK(task(reading, "a").gpus == task(reading, "b").gpus);
    CHECK(task(reading, "c").gpu_share_milli == 251);
    CHECK(task(reading, "c").gpus != task(reading, "a").gpus);
    CHECK(task(reading, "d").gpu_count == 2);
    CHECK(task(reading, "d").gpu_share_milli == 1000);
    CHECK(task(reading, "e").gpu_share_milli == 500);  // of the smallest GPU
    CHECK(task(reading, "f").gpu_count == 0);
    CHECK(task(reading, "i").gpu_share_milli == 1000);
    CHECK(row(reading, "Pod", "parts beyond a whole GPU").examples == std::vector<std::string>{"default/b"});
    CHECK(row(reading, "Pod", "parts of several GPUs").errs == io::Errs::too_strict);
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(cluster.idle_gpus(cluster.find_node("n0")) == 0);
    CHECK(fits(cluster, "e", "n0"));
}

TEST_CASE("PodGroups give priority, preemptibility and topology", "[io][kai]") {
    const auto in = [](const std::string& name) {
        return pod(name, {.on = "n0",
                          .spec = of_kai + R"(, "priority": 7)",
                          .metadata = annotated(R"("pod-group-name": ")" + name + "\"")});
    };
    const auto reading = read_kai(
        {.nodes = {node("n0", {.labels = R"("rack": "r0")"})},
         .pods = {in("low"), in("high"), in("says"), in("unknown"), in("none"), in("lost"), in("far")},
         .groups = {group("low", R"("minMember": 1, "priorityClassName": "train")"),
                    group("high", R"("priorityClassName": "build")"),
                    group("says", R"("priorityClassName": "build", "preemptibility": "preemptible", )"
                                  R"("subGroups": [{"name": "s", "minMember": 3}])"),
                    group("unknown", R"("priorityClassName": "odd")"),
                    group("none", R"("topologyConstraint": {"preferredTopologyLevel": "rack"})"),
                    group("far", R"("topologyConstraint": {"requiredTopologyLevel": "zone"})"),
                    R"({"spec": {}})", "3"},
         .raw =
             R"("priorityClasses": [{"metadata": {"name": "train"}, "value": 50},
              {"metadata": {"name": "build"}, "value": 100}],
                   "topologies": [{"metadata": {"name": "t"},
                    "spec": {"levels": [{"nodeLabel": "rack"}]}}])"});
    CHECK(task(reading, "low").priority == 50);
    CHECK(task(reading, "low").preemptible == true);
    CHECK(task(reading, "high").preemptible == false);
    CHECK(task(reading, "says").preemptible == true);
    CHECK(task(reading, "unknown").priority == 50);
    CHECK(task(reading, "none").network_affinity == NetworkAffinity{0, NetworkMode::preferred});
    CHECK(task(reading, "lost").priority == 7);
    CHECK_FALSE(task(reading, "far").network_affinity.has_value());
    CHECK(row(reading, "PodGroup", "priority").errs == io::Errs::either);
    CHECK(row(reading, "PodGroup", "required topology level").errs == io::Errs::too_lax);
    CHECK(row(reading, "PodGroup", "subgroups").fidelity == io::Fidelity::exact);
    CHECK(rows(reading, "PodGroup", "topology constraints").empty());
}

TEST_CASE("Pods of the scheduler that wrote the snapshot may move", "[io][kai]") {
    const auto mine =
        pod("p", {.on = "n0", .spec = R"("schedulerName": "mine")", .metadata = owned_by("Job", "j")});
    CHECK(task(read_kai({.nodes = {node("n0")}, .pods = {mine}, .params = R"("SchedulerName": "mine")"}), "p")
              .preemptible == true);
    CHECK(task(read_kai({.nodes = {node("n0")}, .pods = {mine}}), "p").preemptible == false);
    CHECK(
        task(read_kai({.nodes = {node("n0")}, .pods = {mine}}, {.schedulers = {"mine"}}), "p").preemptible ==
        true);
}

TEST_CASE("Decisions to bind", "[io][kai]") {
    const auto request = [](const std::string& spec, const std::string& phase = "Pending") {
        return R"({"metadata": {"name": "r", "namespace": "default"}, "spec": {)" + spec +
               R"(}, "status": {"phase": ")" + phase + "\"}}";
    };
    const auto waits = [](const std::string& name, const std::string& annotations) {
        return pod(name, {.spec = of_kai, .metadata = annotated(annotations)});
    };
    const auto reading =
        read_kai({.nodes = {gpu_node("n0", "2")},
                  .pods = {waits("a", R"("gpu-fraction": "0.5")"), waits("b", R"("gpu-fraction": "0.5")"),
                           waits("c", ""), waits("d", "")},
                  .requests = {request(R"("podName": "a", "selectedNode": "n0", "selectedGPUGroups": ["g"])"),
                               request(R"("podName": "b", "selectedNode": "n0", "selectedGPUGroups": ["g"])"),
                               request(R"("podName": "c", "selectedNode": "n0")", "Failed"),
                               request(R"("podName": "d", "selectedNode": "gone")"), request("")}});
    CHECK(task(reading, "a").node == "n0");
    CHECK(task(reading, "a").gpus == task(reading, "b").gpus);
    CHECK_FALSE(task(reading, "c").node.has_value());
    CHECK(reading.cluster.tasks.size() == 3);
    CHECK(row(reading, "BindRequest", "failed").count == 1);
    CHECK(row(reading, "BindRequest", "objects").count == 1);
    CHECK(row(reading, "Pod", "on an unknown node").count == 1);
}

TEST_CASE("Texts that are no snapshot of KAI-Scheduler are refused", "[io][kai]") {
    const auto refused = [](const std::string& text, const std::string& words,
                            const io::KubernetesReadOptions& options = {}) {
        CHECK_THROWS_MESSAGE(io::kai_snapshot_from_text(text, options, "t"), InvalidInput, words);
    };
    refused("", "not JSON document");
    refused("[]", "KAI-Scheduler rawObjects found array");
    refused("{}", "rawObjects without them");
    refused(R"({"format": "gpusched.cluster", "version": 1})", "'gpusched.cluster' needs no import");
    refused(R"({"rawObjects": []})", "rawObjects without them");
    refused(R"({"rawObjects": {}})", "least one Node");
    refused(R"({"rawObjects": {"nodes": 3, "pods": "x"}})", "least one Node");
    refused(R"({"rawObjects": {"nodes": [{"metadata": {}}]}})", "least one Node");
    refused(std::string("PK\x03\x04") + "rest", "zip archive");
    refused(list({node("n0")}), "Kubernetes 'List' `gpusched import kubernetes`");
    refused(snapshot({.nodes = {node("n0")}}), "examples -1", {.examples = -1});
    CHECK_NOTHROW(io::kai_snapshot_from_text(snapshot({.nodes = {node("n0")}}), {}, "t"));
}

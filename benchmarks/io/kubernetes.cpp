// SPDX-License-Identifier: Apache-2.0
// How fast a Kubernetes cluster is read. Prints one JSON line: seconds, the fastest of the rounds each, and the
// most memory that the program held, the text included.
//   bench_io_kubernetes [--smoke]
#include <gpusched/io/kubernetes.hpp>
#include <gpusched/model/cluster.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// The shorter of `best` and the time that `work` takes, in seconds.
template <class Work>
double faster(double best, Work&& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

std::string metadata(const std::string& name, const std::string& rest) {
    // What servers write beside the names: as much as in a cluster, so that the text is as long as a real one.
    std::string fields;
    for (int i = 0; i < 24; ++i)
        fields += (i == 0 ? "" : ",\n") + std::string("                        \"f:field-") +
                  std::to_string(i) + R"(": {"f:a": {}, ".": {}})";
    return R"({"name": ")" + name + R"(", "uid": "00000000-0000-0000-0000-)" + name +
           R"(", "managedFields": [{"fieldsV1": {)" + fields + "}}]" + rest + "}";
}

/// A List as kubectl prints it: nodes of 8 GPUs in racks, and Deployments of 10 pods with one budget each, in 20 namespaces.
std::string cluster(int nodes, int pods) {
    std::string out = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n";
    for (int n = 0; n < nodes; ++n) {
        const auto name = "node-" + std::to_string(n);
        out +=
            (n == 0 ? "" : ",\n") + std::string(R"({"apiVersion": "v1", "kind": "Node", "metadata": )") +
            metadata(
                name,
                R"(, "labels": {"kubernetes.io/hostname": ")" + name +
                    R"(", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "topology.kubernetes.io/zone": "zone-)" +
                    std::to_string(n % 3) + R"(", "network.topology.nvidia.com/leaf": "leaf-)" +
                    std::to_string(n / 16) + "\"}") +
            R"(, "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, "status": {"allocatable":
                   {"cpu": "191590m", "memory": "2093056Mi", "nvidia.com/gpu": "8", "pods": "110", "ephemeral-storage": "3400000000Ki"}}})";
    }
    for (int p = 0; p < pods; ++p) {
        const auto app = std::to_string(p / 10), space = "team-" + std::to_string(p / 10 % 20);
        const auto spread =
            R"({"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "app-)" +
            app + "\"}}}";
        const auto anti =
            R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "app-)" +
            app + "\"}}}";
        std::string env;
        for (int i = 0; i < 12; ++i)
            env += (i == 0 ? "" : ",\n") + std::string(R"(                            {"name": "VARIABLE_)") +
                   std::to_string(i) + R"(", "value": "some value of some length"})";
        out +=
            ",\n" + std::string(R"({"apiVersion": "v1", "kind": "Pod", "metadata": )") +
            metadata("pod-" + std::to_string(p),
                     R"(, "namespace": ")" + space + R"(", "labels": {"app": "app-)" + app +
                         R"(", "pod-template-hash": "abc"}, "ownerReferences": [{"apiVersion": "apps/v1",
                   "kind": "ReplicaSet", "name": "app-)" +
                         app + R"(-abc", "controller": true}])") +
            R"(, "spec": {"containers": [{"name": "main", "env": [)" + env +
            R"(], "resources": {"requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}}}], "nodeName": "node-)" +
            std::to_string(p % nodes) +
            R"(", "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                   "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [)" +
            anti + R"(]}}, "topologySpreadConstraints": [)" + spread +
            R"(]}, "status": {"phase": "Running", "startTime": "2026-11-22T15:24:20Z", "conditions": [{"type": "Ready", "status": "True"}]}})";
    }
    for (int app = 0; app < pods / 10; ++app)
        out +=
            ",\n" +
            std::string(
                R"({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "app-)") +
            std::to_string(app) + R"(", "namespace": "team-)" + std::to_string(app % 20) +
            R"("}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "app-)" +
            std::to_string(app) +
            R"("}}}, "status": {"currentHealthy": 10, "desiredHealthy": 9, "disruptionsAllowed": 1}})";
    return out + "\n]}\n";
}

}  // namespace

int main(int argc, char** argv) {
    const bool smoke = argc > 1 && std::string_view(argv[1]) == "--smoke";
    const int nodes = smoke ? 50 : 1000, pods = smoke ? 250 : 5000, rounds = smoke ? 1 : 5;
    const auto text = cluster(nodes, pods);
    rusage after{};
    double read = 1e9, build = 1e9;
    gpusched::io::KubernetesReading reading;
    for (int round = 0; round < rounds; ++round) {
        read = faster(read, [&] { reading = gpusched::io::kubernetes_from_text(text); });
        build = faster(build, [&] { static_cast<void>(gpusched::Cluster::build(reading.cluster)); });
    }
    getrusage(RUSAGE_SELF, &after);
    const auto& cluster = reading.cluster;
    std::printf("{\"nodes\": %zu, \"tasks\": %zu, \"budgets\": %zu, \"bytes\": %zu, \"read_s\": %.3f, "
                "\"build_s\": %.3f, "
                "\"peak_memory_mib\": %ld}\n",
                cluster.nodes.size(), cluster.tasks.size(), cluster.budgets.size(), text.size(), read, build,
                after.ru_maxrss / 1024);
    return cluster.nodes.size() == static_cast<std::size_t>(nodes) &&
                   cluster.tasks.size() == static_cast<std::size_t>(pods)
               ? 0
               : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Measures how fast a Kubernetes cluster is read.
//
// Prints one JSON line: the fastest round of reading and of building, in seconds, and the peak memory of the
// program, which includes the text.
#include "../support/command_line.hpp"
#include "../support/memory.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/io/kubernetes.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

using namespace gpusched;

namespace {

std::string metadata(const std::string& name, const std::string& rest) {
    // Servers add such fields to every object; they make the text as long as a real one.
    std::string fields;
    for (int i = 0; i < 24; ++i)
        fields += (i == 0 ? "" : ",\n") + std::string("                        \"f:field-") +
                  std::to_string(i) + R"(": {"f:a": {}, ".": {}})";
    return R"({"name": ")" + name + R"(", "uid": "00000000-0000-0000-0000-)" + name +
           R"(", "managedFields": [{"fieldsV1": {)" + fields + "}}]" + rest + "}";
}

/// A List as kubectl prints it: nodes with 8 GPUs in racks, and Deployments of 10 pods in 20 namespaces, each
/// with a budget.
std::string cluster(int nodes, int pods) {
    std::string out = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n";
    for (int n = 0; n < nodes; ++n) {
        const auto name = "node-" + std::to_string(n);
        out += (n == 0 ? "" : ",\n") + std::string(R"({"apiVersion": "v1", "kind": "Node", "metadata": )") +
               metadata(name, R"(, "labels": {"kubernetes.io/hostname": ")" + name +
                                  R"(", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                   "topology.kubernetes.io/zone": "zone-)" +
                                  std::to_string(n % 3) + R"(", "network.topology.nvidia.com/leaf": "leaf-)" +
                                  std::to_string(n / 16) + "\"}") +
               R"(, "spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]},
                   "status": {"allocatable":
                   {"cpu": "191590m", "memory": "2093056Mi", "nvidia.com/gpu": "8", "pods": "110",
                   "ephemeral-storage": "3400000000Ki"}}})";
    }
    for (int p = 0; p < pods; ++p) {
        const auto app = std::to_string(p / 10), space = "team-" + std::to_string(p / 10 % 20);
        const auto spread =
            R"({"maxSkew": 2, "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "app-)" +
            app + "\"}}}";
        const auto anti =
            R"({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "app-)" +
            app + "\"}}}";
        std::string env;
        for (int i = 0; i < 12; ++i)
            env += (i == 0 ? "" : ",\n") + std::string(R"(                            {"name": "VARIABLE_)") +
                   std::to_string(i) + R"(", "value": "some value of some length"})";
        out += ",\n" + std::string(R"({"apiVersion": "v1", "kind": "Pod", "metadata": )") +
               metadata("pod-" + std::to_string(p),
                        R"(, "namespace": ")" + space + R"(", "labels": {"app": "app-)" + app +
                            R"(", "pod-template-hash": "abc"}, "ownerReferences": [{"apiVersion": "apps/v1",
                   "kind": "ReplicaSet", "name": "app-)" +
                            app + R"(-abc", "controller": true}])") +
               R"(, "spec": {"containers": [{"name": "main", "env": [)" + env +
               R"(], "resources": {"requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}}}],
                   "nodeName": "node-)" +
               std::to_string(p % nodes) +
               R"(", "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
                   "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [)" +
               anti + R"(]}}, "topologySpreadConstraints": [)" + spread +
               R"(]}, "status": {"phase": "Running", "startTime": "2026-11-22T15:24:20Z",
                   "conditions": [{"type": "Ready", "status": "True"}]}})";
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
    bench::CommandLine line("How fast a Kubernetes cluster is read.", argc, argv);
    line.read();
    const std::size_t nodes = line.smoke() ? 50 : 1000, pods = 5 * nodes;
    const int rounds = line.smoke() ? 1 : 5;
    const auto text = cluster(static_cast<int>(nodes), static_cast<int>(pods));
    double read_s = std::numeric_limits<double>::infinity(), build_s = read_s;
    decltype(io::kubernetes_from_text(text)) reading;
    for (int round = 0; round < rounds; ++round)
        read_s = std::min(read_s, bench::seconds([&] { reading = io::kubernetes_from_text(text); }));
    const double memory_kib = bench::peak_memory_kib();
    const auto& spec = reading.cluster;
    for (int round = 0; round < rounds; ++round)
        build_s = std::min(build_s, bench::seconds([&] { static_cast<void>(Cluster::build(spec)); }));
    bench::print({{"nodes", spec.nodes.size()},
                  {"tasks", spec.tasks.size()},
                  {"budgets", spec.budgets.size()},
                  {"bytes", text.size()},
                  {"read_s", bench::rounded(read_s, 3)},
                  {"build_s", bench::rounded(build_s, 3)},
                  {"peak_memory_mib", static_cast<int>(memory_kib / 1024)}});
    return spec.nodes.size() == nodes && spec.tasks.size() == pods ? 0 : 1;
}

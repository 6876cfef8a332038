// SPDX-License-Identifier: Apache-2.0
// How fast a snapshot of KAI-Scheduler is read. Prints one JSON line: seconds, the fastest of the rounds, and the most memory
// that the program held, the text included.
//   bench_io_kai [--smoke]
#include <gpusched/io/kai.hpp>
#include <gpusched/model/cluster.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// The `snapshot.json` of nodes of 8 GPUs and of pods of one GPU, in PodGroups of 10; every tenth group is pending.
std::string snapshot(int nodes, int pods) {
    std::string out =
        R"({"config": {}, "schedulerParams": {"schedulerName": "kai-scheduler"}, "rawObjects": {"nodes": [)";
    for (int n = 0; n < nodes; ++n) {
        const auto name = "node-" + std::to_string(n);
        const std::string amounts =
            R"({"cpu": "192", "memory": "2093056Mi", "nvidia.com/gpu": "8", "pods": "110"})";
        out +=
            (n == 0 ? "" : ",\n") + std::string(R"({"metadata": {"name": ")") + name +
            R"(", "labels": {"kubernetes.io/hostname": ")" + name +
            R"(", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559", "rack": "r)" +
            std::to_string(n / 16) + R"("}}, "spec": {}, "status": {"capacity": )" + amounts +
            R"(, "allocatable": )" + amounts + R"(, "conditions": [{"type": "Ready", "status": "True"}]}})";
    }
    out += R"(], "pods": [)";
    for (int p = 0; p < pods; ++p) {
        const int group = p / 10;
        out +=
            (p == 0 ? "" : ",\n") + std::string(R"({"metadata": {"name": "pod-)") + std::to_string(p) +
            R"(", "namespace": "ml", "uid": "uid-)" + std::to_string(p) +
            R"(", "annotations": {"pod-group-name": "group-)" + std::to_string(group) +
            R"("}, "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "group-)" +
            std::to_string(group) +
            R"(", "controller": true}]}, "spec": {"schedulerName": "kai-scheduler", "containers": [{"name": "main", "resources": )"
            R"({"requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}}}])" +
            (group % 10 == 9 ? std::string(R"(}, "status": {"phase": "Pending"}})")
                             : R"(, "nodeName": "node-)" + std::to_string(p % nodes) +
                                   R"("}, "status": {"phase": "Running"}})");
    }
    out += R"(], "podGroups": [)";
    for (int group = 0; group * 10 < pods; ++group)
        out += (group == 0 ? "" : ",\n") + std::string(R"({"metadata": {"name": "group-)") +
               std::to_string(group) +
               R"(", "namespace": "ml"}, "spec": {"minMember": 10, "queue": "team"}, "status": {}})";
    return out + R"(], "queues": [{"metadata": {"name": "team"}, "spec": {}}]}})";
}

}  // namespace

int main(int argc, char** argv) {
    const bool smoke = argc > 1 && std::string_view(argv[1]) == "--smoke";
    const int nodes = smoke ? 50 : 1000, pods = smoke ? 250 : 5000, rounds = smoke ? 1 : 5;
    const auto text = snapshot(nodes, pods);
    double best = 1e9;
    gpusched::io::KubernetesReading reading;
    for (int round = 0; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        reading = gpusched::io::kai_snapshot_from_text(text);
        best =
            std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    rusage after{};
    getrusage(RUSAGE_SELF, &after);
    const auto& cluster = reading.cluster;
    std::printf(
        "{\"nodes\": %zu, \"tasks\": %zu, \"bytes\": %zu, \"read_s\": %.3f, \"peak_memory_mib\": %ld}\n",
        cluster.nodes.size(), cluster.tasks.size(), text.size(), best, after.ru_maxrss / 1024);
    static_cast<void>(gpusched::Cluster::build(cluster));
    return cluster.nodes.size() == static_cast<std::size_t>(nodes) &&
                   cluster.tasks.size() == static_cast<std::size_t>(pods)
               ? 0
               : 1;
}

// SPDX-License-Identifier: Apache-2.0
// How fast a snapshot of KAI-Scheduler is read: see reading.hpp.
#include "reading.hpp"

#include <gpusched/io/kubernetes.hpp>

#include <string>

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
    const auto size =
        gpusched::bench::reading_size("How fast a snapshot of KAI-Scheduler is read.", argc, argv);
    const auto text = snapshot(size.nodes, size.tasks);
    return gpusched::bench::report_reading(size, text.size(),
                                           [&] { return gpusched::io::kai_snapshot_from_text(text); });
}

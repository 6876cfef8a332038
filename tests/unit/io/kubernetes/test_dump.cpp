// SPDX-License-Identifier: Apache-2.0
// What kubectl printed for a cluster of 60 nodes with GPUs, where it is here: its README's figures are found again.
#include "objects.hpp"
#include "support/real_data.hpp"

#include <cstdio>

using namespace kubernetes_text;

namespace {

/// A file that was compressed by gzip.
std::string unzipped(const std::string& path) {
    std::string out, command = "gzip -dc '" + path + "'";
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    REQUIRE(pipe);
    char buffer[65536];
    for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe.get())) > 0;) out.append(buffer, n);
    return out;
}

}  // namespace

TEST_CASE("The dump of 60 nodes is read", "[io][kubernetes][data]") {
    const auto folder = testing_support::real_data("kubernetes-1.36");
    if (!testing_support::is_here(folder / "all.json.gz")) return;
    const auto text = unzipped((folder / "all.json.gz").string());
    const auto reading = io::kubernetes_from_text(text, {}, "all.json");
    const auto& spec = reading.cluster;
    const auto cluster = Cluster::build(spec);
    CHECK(spec.nodes.size() == 60);
    CHECK(spec.tasks.size() == 258);

    std::int64_t healthy = 0, free = 0, free_h100 = 0, whole_h100 = 0, instances = 0, replicas = 0,
                 cordoned = 0;
    std::set<std::string> seven_of_eight;
    for (const auto id : cluster.nodes()) {
        const auto node = cluster.node_spec(id);
        const auto good = node.gpu_count - static_cast<std::int64_t>(node.failed_gpus.size());
        healthy += good;
        const auto idle = gpu_count(cluster.idle_gpus(id));
        free += idle;
        if (node.gpu_model == "NVIDIA-H100-80GB-HBM3") {
            free_h100 += idle;
            whole_h100 += idle == 8 ? 1 : 0;
        }
        for (const auto& device : node.devices)
            (device.device_class == "nvidia.com/gpu.shared" ? replicas : instances) += device.count;
        cordoned += node.schedulable ? 0 : 1;
        if (good == 7) seven_of_eight.insert(node.name);
    }
    CHECK(healthy == 383);
    CHECK(free == 144);
    CHECK(free_h100 == 71);
    CHECK(whole_h100 == 0);
    CHECK(instances == 5 * (14 + 2 + 4));
    CHECK(replicas == 3 * 16);
    CHECK(cordoned == 2);  // one of them because it is not ready
    CHECK(seven_of_eight == std::set<std::string>{"a100-0025"});

    std::int64_t pending = 0, locked = 0, daemons = 0;
    std::map<Mobility, int> how;
    for (const auto& found : spec.tasks) {
        pending += found.node ? 0 : 1;
        locked += found.locked ? 1 : 0;
        daemons += found.daemon ? 1 : 0;
        ++how[found.how];
    }
    CHECK(pending == 16);  // of 24 in phase Pending; 8 are bound
    CHECK(locked == 1);
    CHECK(daemons == 57);
    CHECK(how[Mobility::copy] == 105);
    CHECK(how[Mobility::restart] == 9);
    CHECK(how[Mobility::suspend] == 66 - 5);  // five Jobs' pods are not safe to evict
    CHECK(row(reading, "Pod", "running").count == 234);
    CHECK(row(reading, "Pod", "bound, not running yet").count == 8);
    CHECK(row(reading, "Pod", "pending").count + row(reading, "Pod", "scheduling gates").count == 16);
    CHECK(row(reading, "Pod", "terminating: holds its room until it is gone").count == 1);
    CHECK(row(reading, "Pod", "ended").count == 2);
    CHECK(row(reading, "Pod", "annotation gpu-fraction").count == 18);
    CHECK(row(reading, "Pod", "cluster-autoscaler.kubernetes.io/safe-to-evict: false").count == 5);
    CHECK(row(reading, "Node", "not ready").examples == std::vector<std::string>{"a100-0027"});
    CHECK(row(reading, "Node", "cordons").count == 1);

    std::set<std::string> at_zero;
    for (const auto& budget : spec.budgets) {
        CHECK_FALSE(budget.broken);
        if (budget.allowed_down == 0) at_zero.insert(budget.name);
    }
    CHECK(spec.budgets.size() == 15);
    CHECK(at_zero ==
          std::set<std::string>{"inference/llm-serve-04", "inference/llm-serve-05", "inference/vectordb-01"});

    // The snapshot as a document is the same one, and so are the parts in files of their own.
    CHECK(io::cluster_from_json(io::cluster_to_json(spec)) == spec);
    std::vector<std::string> parts;
    for (const char* const name : {"nodes", "pods", "pdb", "priorityclasses"})
        parts.push_back(unzipped((folder / (std::string(name) + ".json.gz")).string()));
    std::vector<io::NamedText> texts;
    for (const auto& part : parts) texts.push_back({part});
    CHECK(io::kubernetes_from_texts(texts).cluster == spec);
}

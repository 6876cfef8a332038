// SPDX-License-Identifier: Apache-2.0
// GPUs, MIG instances, shared cards, cards of several vendors.
#include "objects.hpp"

using namespace kubernetes_text;

namespace {

std::string has(const std::string& devices) {
    return R"("cpu": "96", "memory": "1Ti", "pods": "110", )" + devices;
}
PodText asks(const std::string& devices, const std::string& on = {}) {
    return {.requests = devices, .on = on};
}

}  // namespace

TEST_CASE("Whole GPUs of a node, and those that are not allocatable", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0",
              {.allocatable = has(R"("nvidia.com/gpu": "7")"),
               .capacity = has(R"("nvidia.com/gpu": "8")"),
               .labels = R"("nvidia.com/gpu.product": "NVIDIA-A100", "nvidia.com/gpu.memory": "81920")"}),
         pod("a", asks(R"("nvidia.com/gpu": "7")", "n0")), pod("b", asks(R"("nvidia.com/gpu": "1")"))});
    const auto& spec = reading.cluster.nodes[0];
    CHECK(spec.gpu_count == 8);
    CHECK(spec.failed_gpus == std::vector<int>{7});
    CHECK(spec.gpu_model == "NVIDIA-A100");
    CHECK(spec.gpu_memory_mib == 81920);
    CHECK(task(reading, "a").gpu_count == 7);
    CHECK(task(reading, "a").assign_gpus);
    CHECK(task(reading, "a").gpu_models.empty());
    CHECK_FALSE(task(reading, "b").assign_gpus);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "b", "n0"));
    CHECK(row(reading, "Node", "devices that are not allocatable").examples.front() ==
          "n0: 1 of 8 nvidia.com/gpu");
}

TEST_CASE("Pods that hold GPUs which have failed since keep them", "[io][kubernetes]") {
    const auto reading = read({node("n0", {.allocatable = has(R"("nvidia.com/gpu": "0")")}),
                               pod("a", asks(R"("nvidia.com/gpu": "4")", "n0"))});
    CHECK(reading.cluster.nodes[0].gpu_count == 4);
    CHECK(reading.cluster.nodes[0].failed_gpus == std::vector<int>{0, 1, 2, 3});
    CHECK(reading.cluster.nodes[0].schedulable);
    CHECK(row(reading, "Node", "over-committed devices").examples.front() == "n0: nvidia.com/gpu 4 of 0");
}

TEST_CASE("Pods with more GPUs than the node ever had are distinguished from failed GPUs",
          "[io][kubernetes]") {
    const auto reading = read(
        {node("n0",
              {.allocatable = has(R"("nvidia.com/gpu": "7")"), .capacity = has(R"("nvidia.com/gpu": "8")")}),
         pod("a", asks(R"("nvidia.com/gpu": "4")", "n0")), pod("b", asks(R"("nvidia.com/gpu": "6")", "n0"))});
    CHECK(reading.cluster.nodes[0].gpu_count == 10);
    CHECK(reading.cluster.nodes[0].failed_gpus == std::vector<int>{7, 8, 9});
    CHECK(row(reading, "Node", "devices that are not allocatable").examples.front() ==
          "n0: 1 of 8 nvidia.com/gpu");
    CHECK(row(reading, "Node", "over-committed devices").examples.front() == "n0: nvidia.com/gpu 10 of 8");
    const auto sound = read({node("n0", {.allocatable = has(R"("nvidia.com/gpu": "8")")})});
    CHECK(rows(sound, "Node", "over-committed devices").empty());
}

TEST_CASE("MIG under the mixed strategy: whole GPUs and classes of instances", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0",
              {.allocatable = has(
                   R"("nvidia.com/gpu": "4", "nvidia.com/mig-1g.10gb": "14", "nvidia.com/mig-3g.40gb": "4")"),
               .labels = R"("nvidia.com/mig-1g.10gb.memory": "9728", "nvidia.com/gpu.product": "A")"}),
         node("n1", {.allocatable = has(R"("nvidia.com/gpu": "8")")}),
         pod("a", asks(R"("nvidia.com/mig-1g.10gb": "13")", "n0")),
         pod("b", asks(R"("nvidia.com/mig-1g.10gb": "2")")),
         pod("c", asks(R"("nvidia.com/mig-1g.10gb": "1")")), pod("w", asks(R"("nvidia.com/gpu": "5")"))});
    const auto& spec = reading.cluster.nodes[0];
    REQUIRE(spec.devices.size() == 2);
    CHECK(spec.gpu_count == 4);
    CHECK(spec.devices[0] ==
          DeviceSpec{.device_class = "nvidia.com/mig-1g.10gb", .count = 14, .memory_mib = 9728});
    CHECK(spec.devices[1].count == 4);
    CHECK(task(reading, "b").device_count == 2);
    CHECK(task(reading, "b").device_classes == std::vector<std::string>{"nvidia.com/mig-1g.10gb"});
    CHECK(task(reading, "b").gpu_count == 0);
    const auto cluster = Cluster::build(reading.cluster);
    CHECK_FALSE(fits(cluster, "b", "n0"));
    CHECK(fits(cluster, "c", "n0"));
    CHECK_FALSE(fits(cluster, "c", "n1"));
    CHECK_FALSE(fits(cluster, "w", "n0"));
    CHECK(fits(cluster, "w", "n1"));
}

TEST_CASE("Replicas of shared cards under a name of their own", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0", {.allocatable = has(R"("nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "16")"),
                     .labels = R"("nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.product": "A10G-SHARED")"}),
         node("n1", {.allocatable = has(R"("nvidia.com/gpu": "8")")}),
         pod("s", asks(R"("nvidia.com/gpu.shared": "1")")), pod("w", asks(R"("nvidia.com/gpu": "1")"))});
    const auto& spec = reading.cluster.nodes[0];
    REQUIRE(spec.devices.size() == 1);
    CHECK(spec.gpu_count == 0);
    CHECK(spec.devices[0].parents == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "s", "n0"));
    CHECK_FALSE(fits(cluster, "s", "n1"));
    CHECK_FALSE(fits(cluster, "w", "n0"));
    CHECK(fits(cluster, "w", "n1"));
    CHECK(rows(reading, "Pod", "nvidia.com/gpu").front().fidelity == io::Fidelity::exact);
}

TEST_CASE("Parts of cards under the name of whole cards", "[io][kubernetes]") {
    const auto shared = node("shared", {.allocatable = has(R"("nvidia.com/gpu": "8")"),
                                        .labels = R"("nvidia.com/gpu.replicas": "4", "kind": "shared")"});
    const auto single =
        node("single", {.allocatable = has(R"("nvidia.com/gpu": "7")"),
                        .labels = R"("nvidia.com/gpu.product": "A100-MIG-1g.10gb", "kind": "single")"});
    const auto whole =
        node("whole", {.allocatable = has(R"("nvidia.com/gpu": "8")"), .labels = R"("kind": "whole")"});
    const auto pending = asks(R"("nvidia.com/gpu": "1")");
    auto selects = pending;
    selects.spec = R"("nodeSelector": {"kind": "single"})";
    auto reading = read({shared, single, whole, pod("w", pending), pod("m", selects),
                         pod("s", asks(R"("nvidia.com/gpu": "2")", "shared"))});
    CHECK(task(reading, "w").gpu_count == 1);
    CHECK(task(reading, "m").device_classes == std::vector<std::string>{"nvidia.com/gpu (MIG 1g.10gb)"});
    CHECK(task(reading, "s").device_classes == std::vector<std::string>{"nvidia.com/gpu (shared)"});
    CHECK(task(reading, "s").device_count == 2);
    const auto approximated = row(reading, "Pod", "nvidia.com/gpu");
    CHECK(approximated.errs == io::Errs::too_strict);
    CHECK(approximated.count == 3);
    auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "w", "whole"));
    CHECK_FALSE(fits(cluster, "w", "shared"));
    CHECK_FALSE(fits(cluster, "s", "whole"));
    CHECK(fits(cluster, "m", "single"));
    // If all nodes offer the same, there is nothing to choose.
    reading = read({single, pod("p", pending)});
    CHECK(task(reading, "p").device_count == 1);
    CHECK(row(reading, "Pod", "nvidia.com/gpu").fidelity == io::Fidelity::exact);
}

TEST_CASE("Cards of several vendors do not stand for each other", "[io][kubernetes]") {
    auto reading =
        read({node("nv", {.allocatable = has(R"("nvidia.com/gpu": "8")"),
                          .labels = R"("nvidia.com/gpu.product": "H100")"}),
              node("amd", {.allocatable = has(R"("amd.com/gpu": "8", "amd.com/cpx_nps4": "8")")}),
              pod("n", asks(R"("nvidia.com/gpu": "1")")), pod("a", asks(R"("amd.com/gpu": "1")")),
              pod("i", asks(R"("gpu.intel.com/xe": "1")")), pod("x", asks(R"("amd.com/cpx_nps4": "1")"))});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "n", "nv"));
    CHECK_FALSE(fits(cluster, "n", "amd"));
    CHECK(fits(cluster, "a", "amd"));
    CHECK_FALSE(fits(cluster, "a", "nv"));
    CHECK_FALSE(fits(cluster, "i", "amd"));
    CHECK_FALSE(fits(cluster, "i", "nv"));
    CHECK(fits(cluster, "x", "amd"));
    reading = read({node("nv", {.allocatable = has(R"("nvidia.com/gpu": "8")")}),
                    pod("a", asks(R"("amd.com/gpu": "1")"))});
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "a", "nv"));
}

TEST_CASE("Devices that cannot be numbered are counted", "[io][kubernetes]") {
    // More than 64 on a node.
    auto reading =
        read({node("n0", {.allocatable = has(R"("nvidia.com/gpu": "8", "nvidia.com/gpu.shared": "80")")}),
              pod("a", asks(R"("nvidia.com/gpu.shared": "79")", "n0")),
              pod("b", asks(R"("nvidia.com/gpu.shared": "2")"))});
    CHECK(reading.cluster.nodes[0].gpu_count == 8);
    CHECK(reading.cluster.nodes[0].resources.at("nvidia.com/gpu.shared") == 80);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "b", "n0"));
    // Of several classes for one pod.
    reading = read(
        {node("n0", {.allocatable = has(R"("nvidia.com/mig-1g.10gb": "4", "nvidia.com/mig-2g.20gb": "2")")}),
         pod("a", asks(R"("nvidia.com/mig-1g.10gb": "1", "nvidia.com/mig-2g.20gb": "1")", "n0")),
         pod("b", asks(R"("nvidia.com/mig-1g.10gb": "1", "nvidia.com/mig-2g.20gb": "2")"))});
    CHECK(task(reading, "a").device_count == 1);
    CHECK(task(reading, "a").resources.at("nvidia.com/mig-2g.20gb") == 1);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "b", "n0"));
    CHECK(row(reading, "Node", "nvidia.com/mig-2g.20gb").fidelity == io::Fidelity::approximated);
}

TEST_CASE("One pod or node does not take the numbers of all GPUs away", "[io][kubernetes]") {
    const auto eight = [](const std::string& name) {
        return node(name, {.allocatable = has(R"("nvidia.com/gpu": "8")"),
                           .labels = R"("nvidia.com/gpu.product": "H100")"});
    };
    const auto gpus = [](const io::ClusterReading& reading, const std::string& name) {
        for (const auto& found : reading.cluster.nodes)
            if (found.name == name) return found.gpu_count;
        return std::int64_t{-1};
    };
    const auto one = asks(R"("nvidia.com/gpu": "1")");
    // A pod that no node could ever hold.
    auto reading = read({eight("n0"), pod("typo", asks(R"("nvidia.com/gpu": "80")")), pod("p", one)});
    CHECK(gpus(reading, "n0") == 8);
    CHECK(task(reading, "p").gpu_count == 1);
    CHECK(task(reading, "typo").resources.at("nvidia.com/gpu") == 80);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "typo", "n0"));
    // A pod that asks for cards of two names, of which no node has both.
    reading =
        read({eight("n0"), pod("both", asks(R"("nvidia.com/gpu": "1", "amd.com/gpu": "1")")), pod("p", one)});
    CHECK(gpus(reading, "n0") == 8);
    CHECK(task(reading, "p").gpu_count == 1);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "both", "n0"));
    CHECK(fits(Cluster::build(reading.cluster), "p", "n0"));
    // A node of more replicas than there are numbers, under the name of cards.
    reading = read(
        {eight("n0"),
         node("l4", {.allocatable = has(R"("nvidia.com/gpu": "80")"),
                     .labels = R"("nvidia.com/gpu.replicas": "10", "kind": "l4")"}),
         pod("r", asks(R"("nvidia.com/gpu": "79")", "l4")), pod("p", one),
         pod("s", {.requests = R"("nvidia.com/gpu": "2")", .spec = R"("nodeSelector": {"kind": "l4"})"}),
         pod("t", {.requests = R"("nvidia.com/gpu": "1")", .spec = R"("nodeSelector": {"kind": "l4"})"})});
    CHECK(gpus(reading, "n0") == 8);
    CHECK(gpus(reading, "l4") == 0);
    CHECK(reading.cluster.nodes[1].resources.at("nvidia.com/gpu (shared)") == 80);
    CHECK(task(reading, "p").gpu_count == 1);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "s", "l4"));
    CHECK(fits(Cluster::build(reading.cluster), "t", "l4"));
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "t", "n0"));
    // A node of more cards than there are numbers.
    reading = read({eight("n0"), node("many", {.allocatable = has(R"("nvidia.com/gpu": "128")")}),
                    pod("r", asks(R"("nvidia.com/gpu": "100")", "many")), pod("p", one),
                    pod("large", asks(R"("nvidia.com/gpu": "28")")),
                    pod("larger", asks(R"("nvidia.com/gpu": "29")")),
                    pod("huge", asks(R"("nvidia.com/gpu": "90")"))});
    auto cluster = Cluster::build(reading.cluster);
    CHECK(gpus(reading, "n0") == 8);
    CHECK(gpus(reading, "many") == 0);
    CHECK(fits(cluster, "large", "many"));
    CHECK_FALSE(fits(cluster, "larger", "many"));
    CHECK_FALSE(fits(cluster, "huge", "many"));
    CHECK(task(reading, "p").gpu_count == 1);
    CHECK(row(reading, "Pod", "nvidia.com/gpu").errs == io::Errs::too_strict);
    // A node with cards of two names: the more numerous are its GPUs, the others its devices.
    reading = read({eight("n0"),
                    node("mixed", {.allocatable = has(R"("nvidia.com/gpu": "4", "amd.com/gpu": "2")")}),
                    node("amd", {.allocatable = has(R"("amd.com/gpu": "8")")}),
                    pod("r", asks(R"("nvidia.com/gpu": "3", "amd.com/gpu": "1")", "mixed")),
                    pod("a", asks(R"("amd.com/gpu": "1")")), pod("p", asks(R"("nvidia.com/gpu": "2")"))});
    cluster = Cluster::build(reading.cluster);
    CHECK(gpus(reading, "n0") == 8);
    CHECK(gpus(reading, "amd") == 8);
    CHECK(gpus(reading, "mixed") == 4);
    CHECK(reading.cluster.nodes[1].devices.front() == DeviceSpec{.device_class = "amd.com/gpu", .count = 2});
    CHECK(task(reading, "r").gpu_count == 3);
    CHECK(task(reading, "r").device_count == 1);
    CHECK(fits(cluster, "a", "amd"));
    CHECK_FALSE(fits(cluster, "p", "mixed"));
    CHECK(fits(cluster, "p", "n0"));
    CHECK(reading.cluster.nodes[1].schedulable);
}

TEST_CASE("Whole cards are preferred if they suffice, otherwise parts of cards", "[io][kubernetes]") {
    const auto reading =
        read({node("n0", {.allocatable = has(R"("nvidia.com/gpu": "8")")}),
              node("shared", {.allocatable = has(R"("nvidia.com/gpu": "32")"),
                              .labels = R"("nvidia.com/gpu.replicas": "4")"}),
              pod("p", asks(R"("nvidia.com/gpu": "8")")), pod("q", asks(R"("nvidia.com/gpu": "9")"))});
    CHECK(task(reading, "p").gpu_count == 8);
    CHECK(task(reading, "q").device_classes == std::vector<std::string>{"nvidia.com/gpu (shared)"});
}

TEST_CASE("GKE's labels distinguish parts of cards from whole ones", "[io][kubernetes]") {
    const auto of = [](const std::string& name, const std::string& count, const std::string& labels) {
        return node(name,
                    {.allocatable = has(R"("nvidia.com/gpu": ")" + count + "\""),
                     .labels = R"("cloud.google.com/gke-accelerator": "nvidia-tesla-a100")" + more(labels)});
    };
    const auto reading =
        read({of("whole", "8", ""), of("mig", "56", R"("cloud.google.com/gke-gpu-partition-size": "1g.5gb")"),
              of("time", "32", R"("cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                             "cloud.google.com/gke-max-shared-clients-per-gpu": "4")"),
              of("both", "14", R"("cloud.google.com/gke-gpu-partition-size": "1g.5gb",
                             "cloud.google.com/gke-gpu-sharing-strategy": "mps",
                             "cloud.google.com/gke-max-shared-clients-per-gpu": "2")"),
              pod("m", {.requests = R"("nvidia.com/gpu": "1")",
                        .spec = R"("nodeSelector": {"cloud.google.com/gke-gpu-partition-size": "1g.5gb"})"}),
              pod("w", asks(R"("nvidia.com/gpu": "8")"))});
    const auto& nodes = reading.cluster.nodes;
    CHECK(nodes[0].gpu_count == 8);
    CHECK(nodes[0].gpu_model == "nvidia-tesla-a100");
    for (std::size_t n = 1; n < 4; ++n) {
        CHECK(nodes[n].gpu_count == 0);
        REQUIRE(nodes[n].devices.size() == 1);
    }
    CHECK(nodes[1].devices[0].device_class == "nvidia.com/gpu (MIG 1g.5gb)");
    CHECK(nodes[2].devices[0].device_class == "nvidia.com/gpu (shared)");
    CHECK(nodes[2].devices[0].parents.back() == 7);
    CHECK(nodes[3].devices[0].device_class == "nvidia.com/gpu (MIG 1g.5gb-SHARED)");
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "w", "whole"));
    for (const auto* const parts : {"mig", "time", "both"}) CHECK_FALSE(fits(cluster, "w", parts));
    CHECK(fits(cluster, "m", "mig"));
}

TEST_CASE("Resources that may be cards of another name are reported, and can become GPUs",
          "[io][kubernetes]") {
    const std::vector<std::string> items{
        node("n0", {.allocatable = has(R"("metax-tech.com/gpu": "8", "rdma/hca": "2")")}),
        pod("p", asks(R"("metax-tech.com/gpu": "2")", "n0"))};
    const auto counted = read(items);
    CHECK(counted.cluster.nodes[0].gpu_count == 0);
    CHECK(counted.cluster.nodes[0].resources.at("metax-tech.com/gpu") == 8);
    const auto found = row(counted, "Node", "resource metax-tech.com/gpu");
    CHECK(found.fidelity == io::Fidelity::approximated);
    CHECK(found.examples == std::vector<std::string>{"n0: 8"});
    CHECK(row(counted, "Node", "resource rdma/hca").fidelity == io::Fidelity::exact);
    const auto numbered = read(items, {.gpu_resources = {"metax-tech.com/gpu"}});
    CHECK(numbered.cluster.nodes[0].gpu_count == 8);
    CHECK(task(numbered, "p").gpu_count == 2);
    CHECK(rows(numbered, "Node", "resource metax-tech.com/gpu").empty());
}

TEST_CASE("A resource of running pods that no node has is an extender's", "[io][kubernetes]") {
    const auto reading = read({node("n0", {.allocatable = has(R"("nvidia.com/gpu": "8")")}),
                               pod("r", asks(R"("nvidia.com/gpu": "1", "nvidia.com/gpucores": "30")", "n0")),
                               pod("p", asks(R"("nvidia.com/gpu": "1", "nvidia.com/gpucores": "30")")),
                               pod("q", asks(R"("example.com/none": "1")"))});
    CHECK(reading.cluster.nodes[0].schedulable);
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "p", "n0"));
    CHECK_FALSE(fits(cluster, "q", "n0"));
    const auto found = row(reading, "Pod", "resource nvidia.com/gpucores");
    CHECK(found.errs == io::Errs::too_lax);
    CHECK(found.count == 2);
}

// SPDX-License-Identifier: Apache-2.0
// Devices of DRA drivers, and claims.
#include "objects.hpp"

using namespace kubernetes_text;

namespace {

constexpr const char* api = "resource.k8s.io/v1";

std::string device(const std::string& name, const std::string& attributes) {
    return R"({"name": ")" + name + R"(", "attributes": {)" + attributes + "}}";
}
constexpr const char* gpu = R"("type": {"string": "gpu"}, "productName": {"string": "H100"})";
constexpr const char* mig = R"("type": {"string": "mig"}, "profile": {"string": "1g.10gb"})";

std::string slice(const std::string& node, const std::string& devices) {
    return object(api, "ResourceSlice", "slice-" + node,
                  R"("spec": {"driver": "gpu.nvidia.com", "nodeName": ")" + node +
                      R"(", "pool": {"name": ")" + node + R"("}, "devices": [)" + devices + "]}");
}
std::string slice_of_gpus(const std::string& node, int count) {
    std::string devices;
    for (int g = 0; g < count; ++g) devices += (g == 0 ? "" : ", ") + device("gpu-" + std::to_string(g), gpu);
    return slice(node, devices);
}
std::string request(const std::string& device_class, int count = 1, const std::string& rest = {}) {
    return R"("devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": ")" + device_class +
           R"(", "count": )" + std::to_string(count) + more(rest) + "}}]}";
}
std::string claim(const std::string& name, const std::string& spec, const std::string& results = {}) {
    return object(api, "ResourceClaim", name,
                  R"("spec": {)" + spec + "}" +
                      more(results.empty()
                               ? ""
                               : R"("status": {"allocation": {"devices": {"results": [)" + results + "]}}}"));
}
std::string result(const std::string& node, const std::string& device) {
    return R"({"request": "r", "driver": "gpu.nvidia.com", "pool": ")" + node + R"(", "device": ")" + device +
           "\"}";
}
std::string user(const std::string& name, const std::string& claim, const std::string& on = {}) {
    return pod(name, {.on = on,
                      .spec = R"("resourceClaims": [{"name": "c", "resourceClaimName": ")" + claim + "\"}]"});
}

}  // namespace

TEST_CASE("Devices of drivers are cards of nodes, and claims name them", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0"), node("n1"), slice_of_gpus("n0", 4), slice_of_gpus("n1", 2),
         claim("two", request("gpu.nvidia.com", 2), result("n0", "gpu-3") + ", " + result("n0", "gpu-1")),
         claim("three", request("gpu.nvidia.com", 3)), user("a", "two", "n0"), user("b", "three"),
         claim("one", request("gpu.nvidia.com")), user("c", "one")});
    const auto& spec = reading.cluster.nodes[0];
    CHECK(spec.gpu_count == 4);
    CHECK(spec.gpu_model == "H100");
    CHECK(task(reading, "a").gpu_count == 2);
    CHECK(task(reading, "a").gpus == std::vector<int>{1, 3});
    CHECK_FALSE(task(reading, "a").assign_gpus);
    const auto cluster = Cluster::build(reading.cluster);
    CHECK_FALSE(fits(cluster, "b", "n0"));
    CHECK(fits(cluster, "c", "n0"));
    CHECK(row(reading, "Pod", "allocated claims").fidelity == io::Fidelity::exact);
    CHECK(row(reading, "ResourceSlice", "devices of a node").count == 2);
}

TEST_CASE("Claims of templates, and classes by their selectors", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0"), slice("n0", device("a", mig) + ", " + device("b", mig) + ", " + device("c", gpu)),
         object(api, "DeviceClass", "small",
                R"("spec": {"selectors": [{"cel": {"expression":
            "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig')"
                R"( && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"}}]})"),
         object(api, "DeviceClass", "odd", R"("spec": {"selectors": [{"cel": {"expression": "true"}}]})"),
         object(api, "ResourceClaimTemplate", "t", R"("spec": {"spec": {)" + request("small", 2) + "}}"),
         pod("a", {.spec = R"("resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}])"}),
         claim("made", request("small", 1), result("n0", "a")),
         pod("b", {.on = "n0",
                   .spec = R"("resourceClaims": [{"name": "c", "resourceClaimTemplateName": "t"}])",
                   .status = R"("resourceClaimStatuses": [{"name": "c", "resourceClaimName": "made"}])"}),
         claim("what", request("odd")), user("c", "what"), user("d", "missing"),
         claim("picky", request("gpu.nvidia.com", 1,
                                R"("selectors": [{"cel": {"expression": "device.attributes[x].y"}}])")),
         user("e", "picky")});
    CHECK(reading.cluster.nodes[0].gpu_count == 1);
    REQUIRE(reading.cluster.nodes[0].devices.size() == 1);
    CHECK(reading.cluster.nodes[0].devices[0].count == 2);
    CHECK(task(reading, "a").device_count == 2);
    CHECK(task(reading, "a").device_classes == std::vector<std::string>{"gpu.nvidia.com/mig-1g.10gb"});
    CHECK(task(reading, "b").device_count == 1);
    CHECK(task(reading, "b").assign_gpus);
    CHECK_FALSE(fits(Cluster::build(reading.cluster), "a", "n0"));
    CHECK(rows(reading, "Pod", "claims").size() == 2);  // exact, and of the class that says no driver
    CHECK(row(reading, "Pod", "resource claims that do not exist").examples.front() == "default/d");
    CHECK(task(reading, "d").waiting.has_value());
    CHECK(row(reading, "Pod", "selectors of claims").errs == io::Errs::too_lax);
    CHECK(task(reading, "e").gpu_count == 1);
}

TEST_CASE("Driver features outside the model are reported", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0"), slice_of_gpus("n0", 2),
         object(api, "ResourceSlice", "shared", R"("spec": {"driver": "d", "allNodes": true})"),
         slice("n1", R"({"name": "part", "consumesCounters": [], "attributes": {}})"),
         claim("both", request("gpu.nvidia.com"), result("n0", "gpu-0")), user("a", "both", "n0"),
         user("b", "both", "n0"), claim("unknown", "", result("n9", "gpu-0")), user("c", "unknown", "n0")});
    CHECK(row(reading, "ResourceSlice", "devices of several nodes").errs == io::Errs::too_strict);
    CHECK(row(reading, "ResourceSlice", "parts that could be made").count == 1);
    CHECK(row(reading, "Pod", "shared claims").examples.front() == "default/b");
    CHECK(task(reading, "a").gpu_count == 1);
    CHECK(task(reading, "b").gpu_count == 0);
    CHECK(rows(reading, "Pod", "allocated claims").size() == 2);
}

TEST_CASE("Admin access to devices holds none", "[io][kubernetes]") {
    const auto admin = [](const std::string& device) {
        auto out = result("n0", device);
        return out.insert(out.size() - 1, R"(, "adminAccess": true)");
    };
    const auto reading = read(
        {node("n0"), slice_of_gpus("n0", 2),
         claim("all", request("gpu.nvidia.com", 1, R"("adminAccess": true)"),
               admin("gpu-0") + ", " + admin("gpu-1")),
         user("monitor", "all", "n0"), claim("next", request("gpu.nvidia.com", 1, R"("adminAccess": true)")),
         user("waiting", "next"), claim("two", request("gpu.nvidia.com", 2)), user("p", "two")});
    CHECK(task(reading, "monitor").gpu_count == 0);
    CHECK(task(reading, "waiting").gpu_count == 0);
    CHECK(fits(Cluster::build(reading.cluster), "p", "n0"));
    CHECK(row(reading, "Pod", "claims with admin access: hold no device").count == 2);
    CHECK(row(reading, "Pod", "claims with admin access").errs == io::Errs::too_lax);
    CHECK(rows(reading, "Pod", "allocated claims").empty());
}

TEST_CASE("An extended resource stands for claims of its DeviceClass", "[io][kubernetes]") {
    const auto device_class =
        object(api, "DeviceClass", "gpu.nvidia.com", R"("spec": {"extendedResourceName": "nvidia.com/gpu",
        "selectors": [{"cel": {"expression":
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]})");
    const auto reading = read(
        {node("n0"),
         node("n1", {.allocatable = R"("cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1")"}),
         slice_of_gpus("n0", 3), device_class, claim("made", "", result("n0", "gpu-1")),
         pod("ext",
             {.requests = R"("nvidia.com/gpu": "1")",
              .on = "n0",
              .status =
                  R"("extendedResourceClaimStatus": {"resourceClaimName": "made", "requestMappings": []})"}),
         pod("one", {.requests = R"("nvidia.com/gpu": "1")"}),
         pod("two", {.requests = R"("nvidia.com/gpu": "2")"}),
         pod("three", {.requests = R"("nvidia.com/gpu": "3")"}),
         pod("by-class", {.requests = R"("deviceclass.resource.kubernetes.io/gpu.nvidia.com": "2")"}),
         claim("two", request("gpu.nvidia.com", 2)), user("by-claim", "two"),
         claim("three", request("gpu.nvidia.com", 3)), user("by-larger-claim", "three")});
    CHECK(reading.cluster.nodes[0].schedulable);
    CHECK(reading.cluster.nodes[0].gpu_count == 3);
    CHECK(reading.cluster.nodes[0].failed_gpus.empty());
    CHECK(task(reading, "ext").gpus == std::vector<int>{1});
    const auto cluster = Cluster::build(reading.cluster);
    for (const auto* const name : {"one", "two", "by-class", "by-claim"}) CHECK(fits(cluster, name, "n0"));
    for (const auto* const name : {"three", "by-larger-claim"}) CHECK_FALSE(fits(cluster, name, "n0"));
    CHECK(fits(cluster, "one", "n1"));  // of a device plugin
    CHECK(row(reading, "DeviceClass", "extendedResourceName").errs == io::Errs::too_lax);
    CHECK(row(reading, "Pod", "claims of extended resources").fidelity == io::Fidelity::exact);
    // Of a class that says nothing of its devices.
    const auto unknown =
        read({node("n0"), object(api, "DeviceClass", "odd", R"("spec": {"extendedResourceName": "x/y"})")});
    CHECK(row(unknown, "DeviceClass", "extendedResourceName").errs == io::Errs::too_strict);
}

TEST_CASE("A card that is split is not had whole", "[io][kubernetes]") {
    const auto counted = [](const std::string& name, const std::string& attributes, const std::string& set) {
        return R"({"name": ")" + name + R"(", "attributes": {)" + attributes +
               R"(}, "consumesCounters": [{"counterSet": ")" + set + R"(", "counters": {}}]})";
    };
    const auto reading =
        read({node("n0"),
              slice("n0", counted("gpu-0", gpu, "a") + ", " + counted("gpu-1", gpu, "b") + ", " +
                              counted("mig-0", mig, "a") + ", " + counted("mig-1", mig, "a") + ", " +
                              counted("mig-2", mig, "b")),
              claim("part", request("gpu.nvidia.com"), result("n0", "mig-0")), user("r", "part", "n0"),
              claim("one", request("gpu.nvidia.com", 1)), user("p", "one"),
              claim("two", request("gpu.nvidia.com", 2)), user("q", "two")});
    const auto& spec = reading.cluster.nodes[0];
    CHECK(spec.gpu_count == 1);
    REQUIRE(spec.devices.size() == 1);
    CHECK(spec.devices[0] == DeviceSpec{.device_class = "gpu.nvidia.com/mig-1g.10gb", .count = 1});
    CHECK(task(reading, "r").device_count == 1);
    const auto cluster = Cluster::build(reading.cluster);
    CHECK(fits(cluster, "p", "n0"));
    CHECK_FALSE(fits(cluster, "q", "n0"));
    CHECK(row(reading, "ResourceSlice", "parts in use").examples ==
          std::vector<std::string>{"gpu.nvidia.com/n0/mig-0"});
    CHECK(row(reading, "ResourceSlice", "parts that could be made").count == 2);
    CHECK(row(reading, "Pod", "allocated claims").fidelity == io::Fidelity::exact);
}

TEST_CASE("Older generations of a pool, and unused claims", "[io][kubernetes]") {
    const auto generation = [](const std::string& name, int number, const std::string& devices) {
        return object(api, "ResourceSlice", name,
                      R"("spec": {"driver": "gpu.nvidia.com", "nodeName": "n0", "pool": {"name": "n0", )"
                      R"("generation": )" +
                          std::to_string(number) + R"(}, "devices": [)" + devices + "]}");
    };
    const auto reading =
        read({node("n0"), generation("old", 1, device("gpu-0", gpu) + ", " + device("gpu-9", gpu)),
              generation("new", 2, device("gpu-0", gpu)),
              claim("held", request("gpu.nvidia.com"), result("n0", "gpu-0"))});
    CHECK(reading.cluster.nodes[0].gpu_count == 1);
    CHECK(row(reading, "ResourceClaim", "allocated, of no pod that was read").errs == io::Errs::too_lax);
}

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
         object(api, "DeviceClass", "small", R"("spec": {"selectors": [{"cel": {"expression":
            "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig' && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"}}]})"),
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
    CHECK(row(reading, "Pod", "resource claims").examples.front() == "default/d: c");
    CHECK(row(reading, "Pod", "selectors of claims").errs == io::Errs::too_lax);
    CHECK(task(reading, "e").gpu_count == 1);
}

TEST_CASE("What the model cannot hold of drivers is reported", "[io][kubernetes]") {
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

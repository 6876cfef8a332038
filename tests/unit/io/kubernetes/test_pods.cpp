// SPDX-License-Identifier: Apache-2.0
// Requests and states of pods, as kube-scheduler counts them.
#include "objects.hpp"

using namespace kubernetes_text;

namespace pods_tests {

std::string container(const std::string& name, const std::string& requests, const std::string& rest = {}) {
    return R"({"name": ")" + name + R"(", "resources": {"requests": {)" + requests + "}}" + more(rest) + "}";
}
constexpr const char* sidecar = R"("restartPolicy": "Always")";

/// CPU and memory of one pod.
std::pair<std::int64_t, std::int64_t> request(const PodText& text) {
    const auto reading = read({node("n0"), pod("p", text)});
    return {task(reading, "p").cpu_milli, task(reading, "p").memory_mib};
}

TEST_CASE("Requests of containers add up", "[io][kubernetes]") {
    CHECK(request({.containers = container("a", R"("cpu": "500m", "memory": "1Gi")") + ", " +
                                 container("b", R"("cpu": 2, "memory": "512Mi")")}) ==
          std::pair{2500L, 1536L});
    CHECK(
        request(
            {.containers =
                 R"({"name": "a", "resources": {"limits": {"cpu": "3"}, "requests": {"memory": "1Mi"}}})"}) ==
        std::pair{3000L, 1L});  // a limit stands for the request that is left out
    CHECK(request({.containers = R"({"name": "a"})"}) == std::pair{0L, 0L});
}

TEST_CASE("Init containers count by the largest, sidecars with the pod", "[io][kubernetes]") {
    const auto main = container("m", R"("cpu": "1")");
    CHECK(request(
              {.spec = R"("initContainers": [)" + container("i", R"("cpu": "3")") + "]", .containers = main})
              .first == 3000);
    CHECK(request({.spec = R"("initContainers": [)" + container("i", R"("cpu": "500m")") + "]",
                   .containers = main})
              .first == 1000);
    // A sidecar runs beside the main containers, and beside the init containers that come after it.
    CHECK(request({.spec = R"("initContainers": [)" + container("s", R"("cpu": "2")", sidecar) + ", " +
                           container("i", R"("cpu": "3")") + "]",
                   .containers = main})
              .first == 5000);
    CHECK(request({.spec = R"("initContainers": [)" + container("i", R"("cpu": "3")") + ", " +
                           container("s", R"("cpu": "2")", sidecar) + "]",
                   .containers = main})
              .first == 3000);
    CHECK(request({.spec = R"("initContainers": [)" + container("s", R"("cpu": "2")", sidecar) + ", " +
                           container("t", R"("cpu": "2")", sidecar) + "]",
                   .containers = main})
              .first == 5000);
}

TEST_CASE("Overhead is added, pod-level resources replace those of containers", "[io][kubernetes]") {
    const auto main = container("m", R"("cpu": "1", "memory": "1Gi", "example.com/x": "2")");
    CHECK(request({.spec = R"("overhead": {"cpu": "250m", "memory": "64Mi"})", .containers = main}) ==
          std::pair{1250L, 1088L});
    const PodText whole{
        .spec =
            R"("overhead": {"cpu": "250m"}, "resources": {"requests": {"cpu": "4", "example.com/x": "9"}})",
        .containers = main};
    CHECK(request(whole) == std::pair{4250L, 1024L});
    const auto reading = read({node("n0"), pod("p", whole)});
    CHECK(task(reading, "p").resources == Resources{{"example.com/x", 2}});
}

TEST_CASE("A resize in progress counts the maximum of requested, allocated and actual", "[io][kubernetes]") {
    const auto resized = [](const std::string& conditions) {
        return request({.on = "n0",
                        .status = R"("containerStatuses": [{"name": "m", "allocatedResources": {"cpu": "2"},
                            "resources": {"requests": {"cpu": "3"}}}])" +
                                  conditions,
                        .containers = container("m", R"("cpu": "4")")})
            .first;
    };
    CHECK(resized("") == 4000);
    CHECK(resized(R"(, "conditions": [{"type": "PodResizePending", "reason": "Deferred"}])") == 4000);
    CHECK(resized(R"(, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}])") == 3000);
    // A pod that shrinks holds what it has until the kubelet has taken it away.
    CHECK(request({.on = "n0",
                   .status = R"("containerStatuses": [{"name": "m", "allocatedResources": {"cpu": "4"},
                       "resources": {"requests": {"cpu": "1"}}}])",
                   .containers = container("m", R"("cpu": "1")")})
              .first == 4000);
    // As a whole.
    CHECK(request({.on = "n0",
                   .spec = R"("resources": {"requests": {"cpu": "1"}})",
                   .status = R"("resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "2"})",
                   .containers = container("m", R"("cpu": "1")")})
              .first == 5000);
}

TEST_CASE("Bytes are rounded so that free memory is exact to a MiB", "[io][kubernetes]") {
    const NodeText ten{.allocatable = R"("cpu": "8", "memory": "10Mi", "pods": "110")"};
    // 10485760 bytes; two pods of 5 * 10^6 bytes leave 485760.
    auto reading = read({node("n0", ten), pod("a", {.requests = R"("memory": "5M")", .on = "n0"}),
                         pod("b", {.requests = R"("memory": "5M")", .on = "n0"}),
                         pod("c", {.requests = R"("memory": "1")"})});
    CHECK(task(reading, "a").memory_mib == 5);
    CHECK(reading.cluster.nodes[0].memory_mib == 10);
    CHECK(reading.cluster.nodes[0].schedulable);
    const auto rounded = row(reading, "Pod", "requests of bytes");
    CHECK(rounded.count == 3);
    CHECK(rounded.errs == io::Errs::too_strict);
    // Rounded up they would not fit, but they do.
    reading = read({node("n0", ten), pod("a", {.requests = R"("memory": "5242879")", .on = "n0"}),
                    pod("b", {.requests = R"("memory": "5242880")", .on = "n0"}),
                    pod("c", {.requests = R"("memory": "1")", .on = "n0"})});
    CHECK(reading.cluster.nodes[0].memory_mib == 11);
    CHECK(rows(reading, "Node", "over-committed").empty());
    CHECK(rows(read({node("n0", ten), pod("a", {.requests = R"("memory": "5Mi")", .on = "n0"})}), "Pod",
               "requests of bytes")
              .empty());
}

TEST_CASE("Pods in every state", "[io][kubernetes]") {
    const auto reading = read(
        {node("n0"), pod("running", {.on = "n0"}), pod("creating", {.on = "n0", .phase = "Pending"}),
         pod("pending"), pod("gated", {.spec = R"("schedulingGates": [{"name": "x"}])"}),
         pod("done", {.on = "n0", .phase = "Succeeded"}), pod("failed", {.on = "n0", .phase = "Failed"}),
         pod("going", {.on = "n0", .metadata = R"("deletionTimestamp": "2026-01-01T00:00:00Z")"}),
         pod("gone", {.metadata = R"("deletionTimestamp": "2026-01-01T00:00:00Z")"}),
         pod("nominated", {.status = R"("nominatedNodeName": "n0")"}), pod("lost", {.on = "elsewhere"})});
    REQUIRE(reading.cluster.tasks.size() == 6);
    CHECK(task(reading, "running").node == "n0");
    CHECK(task(reading, "creating").node == "n0");
    CHECK_FALSE(task(reading, "pending").node);
    CHECK_FALSE(task(reading, "gated").node);
    CHECK(task(reading, "going").locked);
    CHECK_FALSE(task(reading, "running").locked);
    CHECK(row(reading, "Pod", "ended").count == 2);
    CHECK(row(reading, "Pod", "ended").fidelity == io::Fidelity::left_out);
    CHECK(row(reading, "Pod", "terminating and on no node").examples ==
          std::vector<std::string>{"default/gone"});
    CHECK(row(reading, "Pod", "scheduling gates").fidelity == io::Fidelity::exact);
    CHECK(task(reading, "gated").waiting == WaitingReason{WaitingFor::gate, "x"});
    CHECK_FALSE(task(reading, "pending").waiting);
    CHECK(task(reading, "going").terminating);
    CHECK_FALSE(task(reading, "running").terminating);
    CHECK(row(reading, "Pod", "nominated node").examples.front() == "default/nominated to n0");
    CHECK(row(reading, "Pod", "on an unknown node").examples.front() == "default/lost on elsewhere");
    CHECK(row(reading, "Pod", "bound, not running yet").count == 1);
}

TEST_CASE("Priorities are the pod's own, or those of its class", "[io][kubernetes]") {
    const auto with_class = [](const std::string& name) {
        return pod("p" + name, {.spec = R"("priorityClassName": ")" + name + "\""});
    };
    const auto reading = read(
        {node("n0"), object("scheduling.k8s.io/v1", "PriorityClass", "high", R"("value": 100)"),
         object("scheduling.k8s.io/v1", "PriorityClass", "low",
                R"("value": -7, "preemptionPolicy": "Never")"),
         object("scheduling.k8s.io/v1", "PriorityClass", "usual", R"("value": 5, "globalDefault": true)"),
         with_class("high"), with_class("low"), with_class("missing"), with_class("system-node-critical"),
         pod("none"), pod("own", {.spec = R"("priority": 42, "priorityClassName": "high")"})});
    CHECK(task(reading, "phigh").priority == 100);
    CHECK(task(reading, "plow").priority == -7);
    CHECK(task(reading, "pmissing").priority == 0);
    CHECK(task(reading, "psystem-node-critical").priority == 2'000'001'000);
    CHECK(task(reading, "none").priority == 5);
    CHECK(task(reading, "own").priority == 42);
    CHECK(row(reading, "Pod", "preemptionPolicy Never").count == 1);
    CHECK(rows(reading, "Pod", "priority").size() == 2);  // exact, and of the missing class
}

TEST_CASE("Times become seconds, and the latest is now", "[io][kubernetes]") {
    const auto reading =
        read({node("n0"), pod("a", {.on = "n0", .status = R"("startTime": "2026-11-22T15:24:20Z")"}),
              pod("b", {.on = "n0", .status = R"("startTime": "1970-01-02T00:00:00Z")"}),
              pod("c", {.on = "n0", .status = R"("startTime": "soon")"}),
              pod("d", {.metadata = R"("creationTimestamp": "1970-01-03T00:00:00Z")"})});
    CHECK(task(reading, "d").start_time == 172800);  // it waits since then
    CHECK(task(reading, "a").start_time == 1795361060);
    CHECK(task(reading, "b").start_time == 86400);
    CHECK(task(reading, "c").start_time == 0);
    CHECK(reading.cluster.now == 1795361060);

    const std::string start = R"("startTime": "1970-01-01T00:01:00Z")", newer = R"("1970-01-01T00:02:00Z")";
    const auto now = [&](const NodeText& of_node, PodText of_pod) {
        of_pod.on = "n0";
        of_pod.status = start + of_pod.status;
        return read({node("n0", of_node), pod("p", of_pod)}).cluster.now;
    };
    CHECK(now({}, {}) == 60);
    CHECK(now({}, {.metadata = R"("deletionTimestamp": )" + newer}) == 120);
    CHECK(now({}, {.metadata = R"("deletionGracePeriodSeconds": 30, "deletionTimestamp": )" + newer}) == 90);
    CHECK(now({}, {.status = R"(, "conditions": [{"type": "Ready", "lastTransitionTime": )" + newer +
                             "}]"}) == 120);
    CHECK(now({}, {.status = R"(, "conditions": [{"type": "Ready", "lastTransitionTime": )" + newer + "}]",
                   .phase = "Succeeded"}) == 120);
    CHECK(now({.metadata = R"("creationTimestamp": )" + newer}, {}) == 120);
    CHECK(now({.spec = R"("taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": )" + newer + "}]"},
              {}) == 120);
}

}  // namespace pods_tests

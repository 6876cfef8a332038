// SPDX-License-Identifier: Apache-2.0
// What pending pods wait for if they do not wait for room.
#include "objects.hpp"

using namespace kubernetes_text;

namespace waiting_tests {

std::string claim(const std::string& name, const std::string& spec, const std::string& status = {},
                  const std::string& metadata = {}) {
    return object("v1", "PersistentVolumeClaim", name,
                  R"("spec": {)" + spec + R"(}, "status": {)" + status + "}", metadata);
}
std::string mounts(const std::string& claim) {
    return R"("volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": ")" + claim + "\"}}]";
}
std::string workload(const std::string& name, const std::string& owner, const std::string& conditions,
                     const std::string& spec = {}) {
    return object("kueue.x-k8s.io/v1beta1", "Workload", name,
                  R"("spec": {"podSets": [{"count": 1}])" + more(spec) + R"(}, "status": {"conditions": [)" +
                      conditions + "]}",
                  owned_by("Job", owner));
}

TEST_CASE("Pending pods say what they wait for", "[io][kubernetes]") {
    const std::string deleted = R"("deletionTimestamp": "2026-01-01T00:00:00Z")";
    const auto reading = read({
        node("n0"),
        object("storage.k8s.io/v1", "StorageClass", "now", R"("volumeBindingMode": "Immediate")"),
        object("storage.k8s.io/v1", "StorageClass", "later",
               R"("volumeBindingMode": "WaitForFirstConsumer")"),
        claim("bound", R"("volumeName": "pv")"),
        claim("unbound", R"("storageClassName": "now")"),
        claim("first-consumer", R"("storageClassName": "later")"),
        claim("deleted", R"("volumeName": "pv")", {}, deleted),
        claim("lost", R"("volumeName": "pv")", R"("phase": "Lost")"),
        object("resource.k8s.io/v1", "ResourceClaim", "other"),
        workload("w0", "queued",
                 R"({"type": "QuotaReserved", "status": "False", "message": "insufficient quota"})"),
        workload("w1", "admitted", R"({"type": "Admitted", "status": "True"})"),
        workload("w2", "inactive", "", R"("active": false)"),
        workload("w3", "suspended", ""),
        object("batch/v1", "Job", "suspended", R"("spec": {"suspend": true})"),
        object("batch/v1", "Job", "paused", R"("spec": {"suspend": true})"),
        object("batch/v1", "Job", "done",
               R"("spec": {"suspend": true},
             "status": {"conditions": [{"type": "Complete", "status": "True"}]})"),
        object("jobset.x-k8s.io/v1alpha2", "JobSet", "paused-set", R"("spec": {"suspend": true})"),
        pod("gated", {.spec = R"("schedulingGates": [{"name": "a"}, {"name": "b"}])"}),
        pod("foreign", {.spec = R"("schedulerName": "volcano")"}),
        pod("mounts-bound", {.spec = mounts("bound")}),
        pod("mounts-nothing", {.spec = mounts("nothing")}),
        pod("mounts-unbound", {.spec = mounts("unbound")}),
        pod("mounts-first-consumer", {.spec = mounts("first-consumer")}),
        pod("mounts-deleted", {.spec = mounts("deleted")}),
        pod("mounts-lost", {.spec = mounts("lost")}),
        pod("runs", {.on = "n0", .spec = mounts("nothing")}),
        pod("claims", {.spec = R"("resourceClaims": [{"name": "c", "resourceClaimName": "missing"}])"}),
        pod("queued-0", {.spec = R"("schedulingGates": [{"name": "kueue.x-k8s.io/admission"}])",
                         .metadata = owned_by("Job", "queued")}),
        pod("admitted-0", {.metadata = owned_by("Job", "admitted")}),
        pod("inactive-0", {.metadata = owned_by("Job", "inactive")}),
    });
    const auto waiting = [&](const std::string& name) { return task(reading, name).waiting; };
    struct Case {
        std::string name;
        WaitingFor waits_for;
        std::string detail;
    };
    for (const auto& [name, waits_for, detail] :
         {Case{"gated", WaitingFor::gate, "a, b"}, Case{"foreign", WaitingFor::other_scheduler, "volcano"},
          Case{"mounts-nothing", WaitingFor::volume_claim, "default/nothing does not exist"},
          Case{"mounts-unbound", WaitingFor::volume_claim,
               "default/unbound has no volume yet (storage class now)"},
          Case{"mounts-deleted", WaitingFor::volume_claim, "default/deleted is being deleted"},
          Case{"mounts-lost", WaitingFor::volume_claim, "default/lost has lost its volume"},
          Case{"claims", WaitingFor::volume_claim, "resource claim default/missing does not exist"},
          Case{"queued-0", WaitingFor::quota, "Kueue has not admitted its Workload: insufficient quota"},
          Case{"inactive-0", WaitingFor::held, "its Workload is not active"}}) {
        INFO(name);
        CHECK(waiting(name) == WaitingReason{waits_for, detail});
    }
    for (const auto* const name : {"mounts-bound", "mounts-first-consumer", "runs", "admitted-0"}) {
        INFO(name);
        CHECK_FALSE(waiting(name));
    }
    // A suspended job has no pods; its name can be asked for. Kueue's reason comes first.
    for (const auto& [name, reason] :
         {std::pair{"suspended", WaitingReason{WaitingFor::quota, "Kueue has not admitted its Workload"}},
          {"paused", WaitingReason{WaitingFor::held, "its Job is suspended"}},
          {"paused-set", WaitingReason{WaitingFor::held, "its JobSet is suspended"}}}) {
        INFO(name);
        const auto job =
            std::ranges::find(reading.cluster.jobs, std::string("default/") + name, &JobSpec::name);
        REQUIRE(job != reading.cluster.jobs.end());
        CHECK(job->waiting == reason);
    }
    CHECK(std::ranges::count(reading.cluster.jobs, "default/done", &JobSpec::name) == 0);
    // Documents keep the reasons.
    const auto again = io::cluster_from_json(io::cluster_to_json(reading.cluster));
    CHECK(again == reading.cluster);
}

TEST_CASE("Quotas of Volcano's queues and of namespaces hold pods back", "[io][kubernetes]") {
    const auto group = [](const std::string& name, const std::string& phase) {
        return object("scheduling.volcano.sh/v1beta1", "PodGroup", name,
                      R"("spec": {"minMember": 1, "queue": "team"}, "status": {"phase": ")" + phase + "\"}");
    };
    const auto member = [](const std::string& name, const std::string& of, const std::string& on = {}) {
        return pod(name, {.on = on,
                          .spec = R"("schedulerName": "volcano")",
                          .metadata = R"("annotations": {"scheduling.k8s.io/group-name": ")" + of + "\"}"});
    };
    const auto refused = [](const std::string& name, const std::string& status) {
        return object(
            "apps/v1", "ReplicaSet", name,
            R"("spec": {"replicas": 2}, "status": {"conditions": [{"type": "ReplicaFailure", "status": ")" +
                status +
                R"(", "message": "pods x is forbidden: exceeded quota: compute, requested: pods=1"}]})");
    };
    const auto reading = read({
        node("n0"),
        group("pending", "Pending"),
        group("inqueue", "Inqueue"),
        group("no-pods", "Pending"),
        member("pending-0", "pending"),
        member("pending-1", "pending", "n0"),
        member("inqueue-0", "inqueue"),
        refused("none", "True"),
        refused("some", "True"),
        refused("queued", "True"),
        refused("healed", "False"),
        pod("some-0", {.on = "n0", .metadata = owned_by("ReplicaSet", "some")}),
        pod("queued-0", {.metadata = owned_by("ReplicaSet", "queued")}),
    });
    const WaitingReason queue{WaitingFor::quota, "Volcano has not admitted its PodGroup to queue team"};
    const WaitingReason quota{WaitingFor::quota, "ResourceQuota compute, requested: pods=1"};
    CHECK(task(reading, "pending-0").waiting == queue);
    CHECK_FALSE(task(reading, "pending-1").waiting);  // it runs
    CHECK(task(reading, "inqueue-0").waiting == WaitingReason{WaitingFor::other_scheduler, "volcano"});
    CHECK_FALSE(task(reading, "queued-0").waiting);  // it exists, so it waits for room
    struct Case {
        std::string name;
        std::optional<WaitingReason> waiting;
    };
    for (const auto& [name, waiting] :
         {Case{"no-pods", queue}, Case{"none", quota}, Case{"some", quota}, Case{"queued", {}}}) {
        INFO(name);
        const auto job = std::ranges::find(reading.cluster.jobs, "default/" + name, &JobSpec::name);
        REQUIRE(job != reading.cluster.jobs.end());
        CHECK(job->waiting == waiting);
    }
    CHECK(std::ranges::find(reading.cluster.jobs, "default/healed", &JobSpec::name) ==
          reading.cluster.jobs.end());
}

TEST_CASE("Without claims in the input, none is missing, and a note says what is not known",
          "[io][kubernetes]") {
    struct Case {
        std::string spec;
        std::vector<std::string> objects;
        std::string note;
    };
    const std::string prefix = "not in the input, so not checked: ";
    for (const auto& [spec, objects, note] : {
             Case{mounts("unknown"), {}, prefix + "volume claim default/unknown"},
             Case{mounts("bound"), {claim("bound", R"("volumeName": "pv")")}, prefix + "volume pv"},
             Case{R"("resourceClaims": [{"name": "gpu", "resourceClaimName": "c"},
                                        {"name": "nic", "resourceClaimTemplateName": "t"}])",
                  {},
                  prefix + "resource claim gpu, resource claim nic"},
             Case{"", {}, ""},
         }) {
        INFO(spec);
        std::vector<std::string> all{node("n0"), pod("p", {.spec = spec}),
                                     pod("runs", {.on = "n0", .spec = spec})};
        all.insert(all.end(), objects.begin(), objects.end());
        const auto reading = read(all);
        CHECK_FALSE(task(reading, "p").waiting);
        CHECK(task(reading, "p").note == note);
        CHECK(task(reading, "runs").note.empty());
    }
}

}  // namespace waiting_tests

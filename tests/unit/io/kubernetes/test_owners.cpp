// SPDX-License-Identifier: Apache-2.0
// Owners, budgets, gangs and volumes: how pods move, which may be evicted, and which belong together.
#include "objects.hpp"

#include <gpusched/preemption/preempt.hpp>

using namespace kubernetes_text;

namespace {

std::string owned(const std::string& name, const std::string& kind, const std::string& owner,
                  PodText text = {}) {
    text.metadata = owned_by(kind, owner) + more(text.metadata);
    if (text.on.empty()) text.on = "n0";
    return pod(name, text);
}
std::string annotated(const std::string& key, const std::string& value) {
    return R"("annotations": {")" + key + R"(": ")" + value + "\"}";
}
constexpr const char* ready = R"("conditions": [{"type": "Ready", "status": "True"}])";

}  // namespace

TEST_CASE("The kind of controller decides how pods move", "[io][kubernetes]") {
    const std::vector<std::string> items{
        node("n0"),
        owned("deployed", "ReplicaSet", "web-abc", {.labels = R"("pod-template-hash": "abc")"}),
        owned("set", "ReplicaSet", "plain"),
        owned("state", "StatefulSet", "db"),
        owned("job", "Job", "train"),
        owned("daemon", "DaemonSet", "agent"),
        owned("mirror", "Node", "n0"),
        owned("custom", "PyTorchJob", "x"),
        pod("bare", {.on = "n0"})};
    auto reading = read(items);
    const auto is = [&](const char* name, Mobility how, bool evictable, bool daemon, const char* job) {
        const auto& found = task(reading, name);
        INFO(name);
        CHECK(found.how == how);
        CHECK(found.preemptible == evictable);
        CHECK(found.daemon == daemon);
        CHECK(found.job == job);
    };
    is("deployed", Mobility::copy, true, false, "default/web");
    is("set", Mobility::copy, true, false, "default/plain");
    is("state", Mobility::restart, true, false, "default/db");
    is("job", Mobility::suspend, true, false, "default/train");
    is("daemon", Mobility::none, false, true, "");
    is("mirror", Mobility::none, false, true, "");
    is("custom", Mobility::none, false, false, "default/x");
    is("bare", Mobility::none, false, false, "");
    CHECK(row(reading, "Pod", "owners of other kinds").examples.front() == "default/custom of PyTorchJob x");
    CHECK(row(reading, "Pod", "Deployments").fidelity == io::Fidelity::approximated);
    reading = read(items, {.recreating_owners = {"PyTorchJob"}, .evict_bare_pods = true});
    is("custom", Mobility::restart, true, false, "default/x");
    is("bare", Mobility::none, true, false, "");
}

TEST_CASE("ReplicaSets name their owners", "[io][kubernetes]") {
    const auto reading =
        read({node("n0"), owned("a", "ReplicaSet", "web-1"), owned("b", "ReplicaSet", "canary-1"),
              object("apps/v1", "ReplicaSet", "web-1", "", owned_by("Deployment", "web")),
              object("apps/v1", "ReplicaSet", "canary-1", "", owned_by("Rollout", "canary"))});
    CHECK(task(reading, "a").job == "default/web");
    CHECK(task(reading, "a").how == Mobility::copy);
    CHECK(rows(reading, "Pod", "Deployments").empty());
    CHECK(task(reading, "b").how == Mobility::none);  // of Argo: no option says that it recreates pods
    CHECK(task(reading, "b").job == "default/canary");
}

TEST_CASE("Owners of different kinds may have one name", "[io][kubernetes]") {
    const auto reading =
        read({node("n0"), owned("a", "Job", "x"), owned("b", "StatefulSet", "x"), owned("c", "Job", "x")});
    CHECK(task(reading, "a").job == "default/x");
    CHECK(task(reading, "b").job == "default/x (StatefulSet)");
    CHECK(task(reading, "c").job == "default/x");
}

TEST_CASE("Protected pods, and those of other schedulers, stay", "[io][kubernetes]") {
    const std::vector<std::string> items{
        node("n0"),
        owned("unsafe", "Job", "j",
              {.metadata = annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "false")}),
        owned("safe", "Job", "j",
              {.metadata = annotated("cluster-autoscaler.kubernetes.io/safe-to-evict", "true")}),
        owned("karpenter", "Job", "j", {.metadata = annotated("karpenter.sh/do-not-disrupt", "true")}),
        owned("volcano", "Job", "j", {.spec = R"("schedulerName": "volcano")"})};
    const auto stays = [](const TaskSpec& found) {
        return found.how == Mobility::none && found.preemptible == false;
    };
    auto reading = read(items);
    CHECK(stays(task(reading, "unsafe")));
    CHECK_FALSE(stays(task(reading, "safe")));
    CHECK(stays(task(reading, "karpenter")));
    CHECK(stays(task(reading, "volcano")));
    CHECK(row(reading, "Pod", "other schedulers").examples.front() == "default/volcano of volcano");
    reading = read(items, {.schedulers = {"default-scheduler", "volcano"}, .ignore_protection = true});
    for (const auto* const name : {"unsafe", "safe", "karpenter", "volcano"})
        CHECK_FALSE(stays(task(reading, name)));
    CHECK(row(reading, "Pod", "karpenter.sh/do-not-disrupt").fidelity == io::Fidelity::ignored);
    reading = read(items, {.schedulers = {"volcano"}});
    CHECK(stays(task(reading, "safe")));
}

TEST_CASE("Budgets as the disruption controller states them", "[io][kubernetes]") {
    const auto budget = [](const std::string& name, int healthy, int desired, int allowed,
                           const std::string& spec = {}) {
        return object("policy/v1", "PodDisruptionBudget", name,
                      R"("spec": {"selector": {"matchLabels": {"app": "w"}})" + more(spec) +
                          R"(}, "status": {"currentHealthy": )" + std::to_string(healthy) +
                          R"(, "desiredHealthy": )" + std::to_string(desired) +
                          R"(, "disruptionsAllowed": )" + std::to_string(allowed) +
                          R"(, "observedGeneration": 1})",
                      R"("generation": 1)");
    };
    const auto member = [](const std::string& name, const std::string& status,
                           const std::string& metadata = {}) {
        return pod(name, {.on = "n0", .labels = R"("app": "w")", .metadata = metadata, .status = status});
    };
    const std::vector<std::string> pods{
        node("n0"),
        member("a", ready),
        member("b", ready),
        member("sick", ""),
        member("leaving", ready, R"("deletionTimestamp": "2026-01-01T00:00:00Z")"),
        pod("starting", {.on = "n0", .labels = R"("app": "w")", .phase = "Pending"}),
        pod("pending", {.labels = R"("app": "w")"}),
        pod("elsewhere", {.on = "n0", .labels = R"("app": "w")", .status = ready, .space = "other"})};
    const auto with = [&](std::vector<std::string> budgets) {
        auto items = pods;
        items.insert(items.end(), budgets.begin(), budgets.end());
        return read(items);
    };
    const std::vector<std::string> healthy{"default/a", "default/b"},
        all{"default/a", "default/b", "default/sick"};
    CHECK(with({budget("x", 2, 1, 1)}).cluster.budgets ==
          std::vector<BudgetSpec>{{.name = "default/x", .tasks = healthy, .allowed_down = 1}});
    CHECK(with({budget("x", 2, 2, 0)}).cluster.budgets ==
          std::vector<BudgetSpec>{{.name = "default/x", .tasks = healthy, .allowed_down = 0}});
    // Broken: pods that are not ready are not let go either, unless the budget says so.
    CHECK(with({budget("x", 2, 3, 0)}).cluster.budgets ==
          std::vector<BudgetSpec>{{.name = "default/x", .tasks = all, .allowed_down = 0, .broken = true}});
    CHECK(with({budget("x", 2, 3, 0, R"("unhealthyPodEvictionPolicy": "AlwaysAllow")")})
              .cluster.budgets.front()
              .tasks == healthy);
    const auto two = with({budget("x", 2, 1, 1), budget("y", 2, 2, 0)});
    CHECK(two.cluster.budgets.size() == 2);
    CHECK(row(two, "Pod", "several budgets").count == 2);
    CHECK(row(two, "PodDisruptionBudget", "budgets at 0").count == 1);
}

TEST_CASE("Budgets without a status are counted as the disruption controller does", "[io][kubernetes]") {
    const auto allowed = [](const std::string& spec, int healthy, int of, const std::string& owner = {}) {
        std::vector<std::string> items{node("n0")};
        for (int i = 0; i < of; ++i)
            items.push_back(pod("p" + std::to_string(i), {.on = "n0",
                                                          .labels = R"("app": "w")",
                                                          .metadata = owned_by("StatefulSet", "s"),
                                                          .status = i < healthy ? ready : ""}));
        items.push_back(object("policy/v1", "PodDisruptionBudget", "x",
                               R"("spec": {"selector": {"matchLabels": {"app": "w"}})" + more(spec) + "}"));
        if (!owner.empty())
            items.push_back(object("apps/v1", "StatefulSet", "s", R"("spec": {"replicas": )" + owner + "}"));
        const auto reading = read(items);
        const auto& budget = reading.cluster.budgets.front();
        return std::pair{budget.allowed_down, budget.broken};
    };
    using Answer = std::pair<std::int64_t, bool>;
    CHECK(allowed(R"("minAvailable": 3)", 4, 5) == Answer{1, false});
    CHECK(allowed(R"("minAvailable": 5)", 4, 5) == Answer{0, true});
    CHECK(allowed(R"("minAvailable": "75%")", 4, 4) == Answer{1, false});  // 3 of 4
    CHECK(allowed(R"("minAvailable": "50%")", 5, 5) == Answer{2, false});  // 2.5 rounded up
    CHECK(allowed(R"("maxUnavailable": 1)", 5, 5) == Answer{1, false});
    CHECK(allowed(R"("maxUnavailable": "50%")", 5, 5) == Answer{3, false});
    CHECK(allowed(R"("maxUnavailable": 1)", 5, 5, "8") == Answer{0, true});  // 8 are wanted
    CHECK(allowed(R"("maxUnavailable": 1)", 5, 5, "6") == Answer{0, false});
    CHECK(allowed(R"("maxUnavailable": 10)", 3, 5) == Answer{3, false});
    CHECK(allowed("", 2, 2) == Answer{2, false});
}

TEST_CASE("An empty selector of a budget selects all, of the first version of its API nothing",
          "[io][kubernetes]") {
    const auto members = [](const std::string& api_version, const std::string& selector) {
        return read({node("n0"), pod("p", {.on = "n0", .status = ready}),
                     object(api_version, "PodDisruptionBudget", "x",
                            R"("spec": {"minAvailable": 0)" + more(selector) + "}")})
            .cluster.budgets.front()
            .tasks.size();
    };
    CHECK(members("policy/v1", R"("selector": {})") == 1);
    CHECK(members("policy/v1beta1", R"("selector": {})") == 0);
    CHECK(members("policy/v1", "") == 0);
}

TEST_CASE("Gangs of every scheduler", "[io][kubernetes]") {
    const auto group = [](const std::string& api_version, const std::string& name, const std::string& spec) {
        return object(api_version, "PodGroup", name, R"("spec": {)" + spec + "}");
    };
    const auto reading = read(
        {node("n0"),
         group("scheduling.volcano.sh/v1beta1", "v", R"("minMember": 3)"),
         group("scheduling.run.ai/v2alpha2", "k", R"("minMember": 4)"),
         group("scheduling.run.ai/v2alpha2", "parts",
               R"("minMember": 1, "subGroups": [{"minMember": 2}, {"minMember": 3}])"),
         group("scheduling.x-k8s.io/v1alpha1", "c", R"("minMember": 5)"),
         group("scheduling.k8s.io/v1alpha2", "u", R"("schedulingPolicy": {"gang": {"minCount": 6}})"),
         object("kueue.x-k8s.io/v1beta1", "Workload", "job-w",
                R"("spec": {"podSets": [{"count": 3}, {"count": 5, "minCount": 4}]})",
                R"("ownerReferences": [{"kind": "Job", "name": "queued", "controller": true}])"),
         object("jobset.x-k8s.io/v1alpha2", "JobSet", "js",
                R"("spec": {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 4}}}, )"
                R"({}]})"),
         pod("v0", {.metadata = annotated("scheduling.k8s.io/group-name", "v")}),
         pod("k0", {.metadata = annotated("pod-group-name", "k")}),
         pod("s0", {.metadata = annotated("pod-group-name", "parts")}),
         pod("c0", {.labels = R"("scheduling.x-k8s.io/pod-group": "c")"}),
         pod("u0", {.spec = R"("schedulingGroup": {"podGroupName": "u"})"}),
         owned("q0", "Job", "queued"),
         pod("j0", {.labels = R"("jobset.sigs.k8s.io/jobset-name": "js")"}),
         pod("js2-0", {.labels = R"("jobset.sigs.k8s.io/jobset-name": "unread")"}),
         pod("js2-1", {.labels = R"("jobset.sigs.k8s.io/jobset-name": "unread")"}),
         pod("l0", {.labels = R"("leaderworkerset.sigs.k8s.io/name": "l", )"
                              R"("leaderworkerset.sigs.k8s.io/group-index": "1")",
                    .metadata = annotated("leaderworkerset.sigs.k8s.io/size", "8")}),
         pod("p0", {.labels = R"("kueue.x-k8s.io/pod-group-name": "p")",
                    .metadata = annotated("kueue.x-k8s.io/pod-group-total-count", "9")}),
         pod("lost", {.metadata = annotated("pod-group-name", "missing")}),
         owned("plain", "Job", "plain")});
    std::map<std::string, std::int64_t> least;
    for (const auto& job : reading.cluster.jobs) least[job.name] = job.min_members;
    CHECK(least == std::map<std::string, std::int64_t>{{"default/v", 3},
                                                       {"default/k", 4},
                                                       {"default/parts", 5},
                                                       {"default/c", 5},
                                                       {"default/u", 6},
                                                       {"default/queued", 7},
                                                       {"default/js", 9},
                                                       {"default/unread", 2},
                                                       {"default/l/1", 8},
                                                       {"default/p", 9},
                                                       // No gangs: any number of their pods may run.
                                                       {"default/missing", 1},
                                                       {"default/plain", 1}});
    CHECK(task(reading, "v0").job == "default/v");
    CHECK(task(reading, "l0").job == "default/l/1");
    CHECK(task(reading, "lost").job == "default/missing");
    CHECK(row(reading, "PodGroup", "subgroups").fidelity == io::Fidelity::exact);
    CHECK(row(reading, "Pod", "Workload (Kueue)").fidelity == io::Fidelity::approximated);
}

TEST_CASE("Moves by eviction take pods of Deployments down, and so count against budgets",
          "[io][kubernetes]") {
    const std::vector<std::string> items{node("n0"), owned("a", "ReplicaSet", "web"),
                                         owned("b", "ReplicationController", "old"),
                                         owned("c", "StatefulSet", "db")};
    const auto how = [&](const char* name, bool by_eviction) {
        const auto reading = read(items, {.moves_by_eviction = by_eviction});
        return task(reading, name).how;
    };
    CHECK(how("a", false) == Mobility::copy);
    CHECK(how("a", true) == Mobility::restart);
    CHECK(how("b", true) == Mobility::restart);
    CHECK(how("c", true) == Mobility::restart);
    CHECK(
        row(read(items, {.moves_by_eviction = true}), "Pod", "of a ReplicaSet: restarts, as the options say")
            .count == 1);
}

TEST_CASE("Pods of one controller are a job, but no gang", "[io][kubernetes]") {
    std::vector<std::string> items{
        node("n0", {.allocatable = R"("cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8")"}),
        node("n1", {.allocatable = R"("cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "8")"}),
        pod("urgent", {.requests = R"("nvidia.com/gpu": "2")", .spec = R"("priority": 10)"})};
    for (int i = 0; i < 4; ++i)
        items.push_back(owned("web-" + std::to_string(i), "ReplicaSet", "web",
                              {.requests = R"("nvidia.com/gpu": "4")", .on = i < 2 ? "n0" : "n1"}));
    const auto reading = read(items);
    REQUIRE(reading.cluster.jobs.size() == 1);
    CHECK(reading.cluster.jobs.front() == JobSpec{.name = "default/web", .min_members = 1});
    // One pod of the four makes room, and the others stay.
    const auto cluster = Cluster::build(reading.cluster);
    const auto made = preemption::preempt(cluster, cluster.find_task("default/urgent"));
    REQUIRE(made.decision.has_value());
    CHECK(made.decision->victims.size() == 1);
}

TEST_CASE("A group without a size has the pods that were read", "[io][kubernetes]") {
    const auto reading = read({node("n0"),
                               pod("l0", {.labels = R"("leaderworkerset.sigs.k8s.io/name": "l", )"
                                                    R"("leaderworkerset.sigs.k8s.io/group-index": "0")"}),
                               pod("l1", {.labels = R"("leaderworkerset.sigs.k8s.io/name": "l", )"
                                                    R"("leaderworkerset.sigs.k8s.io/group-index": "0")"}),
                               pod("q0", {.labels = R"("kueue.x-k8s.io/pod-group-name": "q")"})});
    std::map<std::string, std::int64_t> least;
    for (const auto& job : reading.cluster.jobs) least[job.name] = job.min_members;
    CHECK(least == std::map<std::string, std::int64_t>{{"default/l/0", 2}, {"default/q", 1}});
    CHECK(row(reading, "Pod", "LeaderWorkerSet").errs == io::Errs::either);
}

TEST_CASE("Subgroups of gangs", "[io][kubernetes]") {
    const auto group = [](const std::string& api_version, const std::string& name, const std::string& spec) {
        return object(api_version, "PodGroup", name, R"("spec": {)" + spec + "}");
    };
    const auto kai = [](const std::string& name, const std::string& gang, const std::string& subgroup) {
        return pod(name, {.labels = R"("kai.scheduler/subgroup-name": ")" + subgroup + "\"",
                          .metadata = annotated("pod-group-name", gang)});
    };
    const auto volcano = [](const std::string& name, const std::string& gang, const std::string& role) {
        return pod(name, {.metadata = R"("annotations": {"scheduling.k8s.io/group-name": ")" + gang +
                                      R"(", "volcano.sh/task-spec": ")" + role + "\"}"});
    };
    const std::string run_ai = "scheduling.run.ai/v2alpha2", vcjob = "scheduling.volcano.sh/v1beta1";
    const auto reading = read(
        {node("n0"),
         group(run_ai, "flat",
               R"("subGroups": [{"name": "decode", "minMember": 2}, {"name": "prefill", "minMember": 3}])"),
         group(run_ai, "tree",
               R"("minSubGroup": 2, "subGroups": [{"name": "ab", "minSubGroup": 2},
                  {"name": "a", "minMember": 1, "parent": "ab"},
                   {"name": "b", "minMember": 2, "parent": "ab"},
                  {"name": "c", "minMember": 3, "topologyConstraint": {"requiredTopologyLevel": "rack"}}])"),
         group(run_ai, "some",
               R"("minSubGroup": 1, "subGroups": [{"name": "r0", "minMember": 4}, {"name": "r1", )"
               R"("minMember": 3}])"),
         group(vcjob, "mpi", R"("minMember": 5, "minTaskMember": {"master": 1, "worker": 4})"),
         group(vcjob, "loose", R"("minMember": 2, "minTaskMember": {"master": 1, "worker": 4})"),
         kai("d0", "flat", "decode"), kai("p0", "flat", "prefill"), kai("odd", "flat", "encode"),
         pod("bare", {.metadata = annotated("pod-group-name", "flat")}), kai("a0", "tree", "a"),
         kai("ab0", "tree", "ab"), kai("r0", "some", "r0"), volcano("m0", "mpi", "master"),
         volcano("w0", "mpi", "worker"), volcano("l0", "loose", "worker")});
    std::map<std::string, JobSpec> jobs;
    for (const auto& job : reading.cluster.jobs) jobs[job.name] = job;
    using Subgroups = std::vector<SubgroupSpec>;
    CHECK(jobs["default/flat"].min_members == 5);
    CHECK(jobs["default/flat"].subgroups == Subgroups{{"decode", 2}, {"prefill", 3}});
    CHECK(task(reading, "d0").subgroup == "decode");
    CHECK(task(reading, "odd").subgroup.empty());
    CHECK(task(reading, "bare").subgroup.empty());
    CHECK(row(reading, "Pod", "subgroup").count == 2);  // odd, and ab0, which names no leaf
    CHECK(jobs["default/tree"].min_members == 6);
    CHECK(jobs["default/tree"].subgroups == Subgroups{{"a", 1}, {"b", 2}, {"c", 3}});
    CHECK(task(reading, "a0").subgroup == "a");
    CHECK(row(reading, "PodGroup", "topology constraints of subgroups").errs == io::Errs::too_lax);
    // Any one of two suffices: the gang needs as many pods as the smaller.
    CHECK(jobs["default/some"].min_members == 3);
    CHECK(jobs["default/some"].subgroups.empty());
    CHECK(task(reading, "r0").subgroup.empty());
    CHECK(rows(reading, "PodGroup", "subgroups").size() == 2);
    CHECK(jobs["default/mpi"].min_members == 5);
    CHECK(jobs["default/mpi"].subgroups == Subgroups{{"master", 1}, {"worker", 4}});
    CHECK(task(reading, "m0").subgroup == "master");
    // Volcano does not look at roles that need more than the gang.
    CHECK(jobs["default/loose"].min_members == 2);
    CHECK(jobs["default/loose"].subgroups.empty());
    CHECK(Cluster::build(reading.cluster).to_spec().jobs.size() == reading.cluster.jobs.size());
}

TEST_CASE("Subgroups that KAI would refuse are not called exact", "[io][kubernetes]") {
    for (const auto* const parts :
         {R"({"name": "a", "minMember": 5, "parent": "nobody"})",
          R"({"name": "a", "minMember": 5, "parent": "a"})",
          R"({"name": "a", "minMember": 5, "parent": "b"}, {"name": "b", "minMember": 5, "parent": "a"})",
          R"({"name": "a", "minMember": 1}, {"name": "a", "minMember": 5})"}) {
        INFO(parts);
        const auto reading =
            read({node("n0"), object("scheduling.run.ai/v2alpha2", "PodGroup", "g",
                                     std::string(R"("spec": {"subGroups": [)") + parts + "]}")});
        CHECK(row(reading, "PodGroup", "subgroups").fidelity == io::Fidelity::approximated);
    }
}

TEST_CASE("Volumes bind pods to the nodes that reach them", "[io][kubernetes]") {
    const auto claim = [](const std::string& name, const std::string& volume, const std::string& mode) {
        return object("v1", "PersistentVolumeClaim", name,
                      R"("spec": {"volumeName": ")" + volume + R"(", "accessModes": [")" + mode + "\"]}");
    };
    const auto user = [](const std::string& name, const std::string& volumes, const std::string& spec = {}) {
        return owned(name, "ReplicaSet", "r", {.spec = R"("volumes": [)" + volumes + "]" + more(spec)});
    };
    const auto uses = [](const std::string& name) {
        return R"({"name": "v", "persistentVolumeClaim": {"claimName": ")" + name + "\"}}";
    };
    const auto local = R"("spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
        [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1"]}]}]}}})";
    const auto reading = read(
        {node("n0", {.labels = R"("topology.kubernetes.io/zone": "a", "kubernetes.io/hostname": "n0")"}),
         node("n1", {.labels = R"("topology.kubernetes.io/zone": "b", "kubernetes.io/hostname": "n1")"}),
         object("v1", "PersistentVolume", "local", local),
         object("v1", "PersistentVolume", "zonal", R"("spec": {})",
                R"("labels": {"topology.kubernetes.io/zone": "b__c"})"),
         object("v1", "PersistentVolume", "open", R"("spec": {})"), claim("cl", "local", "ReadWriteOnce"),
         claim("cz", "zonal", "ReadWriteOnce"), claim("co", "open", "ReadWriteMany"),
         claim("unbound", "", "ReadWriteOnce"), claim("d-e", "local", "ReadWriteOncePod"),
         user("l", uses("cl")), user("z", uses("cz")), user("o", uses("co")), user("u", uses("unbound")),
         user("m", uses("missing")), user("d", R"({"name": "e", "ephemeral": {}})"),
         user("both", uses("cl"),
              R"("affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In",
             "values": ["n0"]}]}]}}})")});
    const auto cluster = Cluster::build(reading.cluster);
    for (const auto* const name : {"l", "z", "d"}) CHECK(fits(cluster, name, "n1"));
    for (const auto* const name : {"o", "u", "m"}) CHECK(fits(cluster, name, "n1"));
    CHECK_FALSE(fits(cluster, "both", "n1"));
    CHECK(task(reading, "l").node_affinity.size() == 1);
    CHECK(task(reading, "l").how == Mobility::restart);  // two copies could not have the volume
    CHECK(task(reading, "o").how == Mobility::copy);
    CHECK(task(reading, "z").node_affinity.front().match_expressions.front().values ==
          std::vector<std::string>{"b", "c"});
    CHECK(row(reading, "PersistentVolumeClaim", "claims without a volume").errs == io::Errs::too_lax);
    CHECK(reading.cluster.label_levels.empty());  // no two pods share a claim that only one may use
    CHECK(row(reading, "Pod", "persistent volumes").examples.front() == "default/m");
}

TEST_CASE("A claim that one pod may use keeps others out of the whole cluster", "[io][kubernetes]") {
    const auto user = [](const std::string& name, const std::string& claim, const std::string& on = {},
                         const std::string& space = "default") {
        return pod(name, {.on = on,
                          .spec = R"("volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": ")" +
                                  claim + "\"}}]",
                          .space = space});
    };
    const auto claim = [](const std::string& name, const std::string& mode) {
        return object("v1", "PersistentVolumeClaim", name,
                      R"("spec": {"volumeName": "v", "accessModes": [")" + mode + "\"]}");
    };
    const auto reading = read({node("n0"), node("n1"), claim("one", "ReadWriteOncePod"),
                               claim("many", "ReadWriteMany"), user("a", "one", "n0"), user("b", "one"),
                               user("c", "many", "n0"), user("d", "many"), user("e", "one", "n0", "other")});
    const auto cluster = Cluster::build(reading.cluster);
    CHECK_FALSE(fits(cluster, "b", "n0"));
    CHECK_FALSE(fits(cluster, "b", "n1"));
    CHECK(fits(cluster, "a", "n1"));  // it is the one
    CHECK(fits(cluster, "d", "n1"));
    CHECK(task(reading, "other/e").avoid.empty());
    CHECK(row(reading, "PersistentVolumeClaim", "access mode ReadWriteOncePod").fidelity ==
          io::Fidelity::exact);
}

TEST_CASE("Zones of a volume bind only nodes that have a zone or region", "[io][kubernetes]") {
    const auto zoned = [](const std::string& name, const std::string& labels) {
        return node(name, {.labels = labels});
    };
    const auto placed = [&](const std::string& label) {
        const auto reading = read(
            {zoned("none", R"("disk": "ssd")"), zoned("new", R"("topology.kubernetes.io/zone": "a")"),
             zoned("old", R"("failure-domain.beta.kubernetes.io/zone": "a")"),
             zoned("other", R"("topology.kubernetes.io/zone": "b")"),
             zoned("region", R"("topology.kubernetes.io/region": "r")"),
             object("v1", "PersistentVolume", "v", R"("spec": {})", R"("labels": {")" + label + R"(": "a"})"),
             object("v1", "PersistentVolumeClaim", "c", R"("spec": {"volumeName": "v"})"),
             pod("p",
                 {.spec = R"("volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])"})});
        const auto cluster = Cluster::build(reading.cluster);
        std::string out;
        for (const auto& one : reading.cluster.nodes)
            if (fits(cluster, "p", one.name)) out += one.name + " ";
        return out;
    };
    CHECK(placed("topology.kubernetes.io/zone") == "none new ");
    CHECK(placed("failure-domain.beta.kubernetes.io/zone") == "none new old ");
}

TEST_CASE("Spread counts nodes that a pod's volumes do not reach", "[io][kubernetes]") {
    const auto zoned = [](const std::string& name, const std::string& zone) {
        return node(name, {.labels = R"("topology.kubernetes.io/zone": ")" + zone + "\""});
    };
    const auto where = [&](const std::string& skew, const std::string& policy = {}) {
        const auto reading = read(
            {zoned("a0", "a"), zoned("b0", "b"),
             object("v1", "PersistentVolume", "v", R"("spec": {})",
                    R"("labels": {"topology.kubernetes.io/zone": "a"})"),
             object("v1", "PersistentVolumeClaim", "c", R"("spec": {"volumeName": "v"})"),
             pod("one", {.on = "a0", .labels = R"("app": "s")"}),
             pod("p", {.labels = R"("app": "s")",
                       .spec = R"("volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
            "topologySpreadConstraints": [{"topologyKey": "topology.kubernetes.io/zone", "maxSkew": )" +
                               skew + R"(,
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "s"}})" +
                               policy + "}]"})});
        const auto cluster = Cluster::build(reading.cluster);
        return std::string(fits(cluster, "p", "a0") ? "a" : "") + (fits(cluster, "p", "b0") ? "b" : "");
    };
    // Zone b holds none, and counts: a second pod in zone a is one too many, and zone b does not reach the volume.
    CHECK(where("1").empty());
    CHECK(where("1", R"(, "nodeAffinityPolicy": "Ignore")").empty());
    CHECK(where("2") == "a");
}

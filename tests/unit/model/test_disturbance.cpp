// SPDX-License-Identifier: Apache-2.0
// The pods that a plan disturbs, by owner and namespace.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace disturbance_tests {

// Four pods of two owners and one without; one pod pending.
Cluster cluster() {
    ClusterSpec spec;
    for (int i = 0; i < 3; ++i)
        spec.nodes.push_back({.name = "n" + std::to_string(i), .gpu_count = 8, .cpu_milli = 64'000});
    const auto add = [&](const char* name, const char* job, std::optional<std::string> kind,
                         std::int64_t gpus, std::int64_t share = 1000, const char* node = "n0") {
        TaskSpec task{.name = name, .job = job, .gpu_count = gpus, .gpu_share_milli = share};
        task.owner_kind = std::move(kind);
        if (*node != '\0') {
            task.node = node;
            task.assign_gpus = true;
        }
        spec.tasks.push_back(std::move(task));
    };
    add("a/x-0", "a/x", "Job", 2);
    add("a/x-1", "a/x", "Job", 2);
    add("b/web-0", "b/web", "Deployment", 1, 500);
    add("b/bare", "", "", 1);
    add("c/p", "c/p", std::nullopt, 4, 1000, "");
    return Cluster::build(spec);
}

PlanSpec plan() {
    return {.waves = 2,
            .moves = {{"a/x-0", "n0", "n1", {0, 1}, 0, MoveMode::restart},
                      {"b/web-0", "n0", "n1", {2}, 0},
                      {"b/web-0", "n1", "n2", {2}, 1}},  // counts once
            .vacated_nodes = {},
            .evictions = {"a/x-1", "b/bare"},
            .placements = {{"a/x-1", "n2", {0, 1}}, {"c/p", "n0", {0, 1, 2, 3}}}};
}

TEST_CASE("A disturbance counts each running pod once", "[disturbance]") {
    auto spec = plan();
    describe_tasks(spec, cluster());
    const auto found = disturbance(spec);
    CHECK(found == Disturbance{.pods = 4,
                               .owners = 2,
                               .gpus = 5.5,
                               .restarted = 2,
                               .copied = 1,
                               .evicted = 1,
                               .by_owner_kind = {{"Deployment", 1}, {"Job", 2}, {"none", 1}},
                               .by_namespace = {{"a", 2}, {"b", 2}}});
    CHECK(to_text(found) ==
          "disturbs 4 pods (2 of Jobs, 1 of Deployments, 1 without an owner) of 2 owners in 2 namespaces, "
          "5.5 GPUs: 2 restarted, 1 copied, 1 evicted.");
    // A plan of ids knows its snapshot.
    const auto snapshot = cluster();
    CHECK(disturbance(to_spec(resolve(plan(), snapshot), snapshot)) == found);
}

TEST_CASE("A plan without facts knows no owners and GPUs", "[disturbance]") {
    const auto found = disturbance(plan());
    CHECK(found.pods == 4);
    CHECK_FALSE(found.owners);
    CHECK_FALSE(found.gpus);
    CHECK(found.by_owner_kind.empty());
    CHECK(found.by_namespace.empty());
    CHECK(to_text(found) == "disturbs 4 pods: 2 restarted, 1 copied, 1 evicted.");
    CHECK(to_text(disturbance({})) == "disturbs nothing.");
    auto described = plan();
    describe_tasks(described, cluster());
    CHECK(described == plan());  // facts are not part of a plan
}

TEST_CASE("The namespace of a task", "[disturbance]") {
    CHECK(namespace_of({.name = "ml/x-0", .job = "ml/x"}) == "ml");
    CHECK(namespace_of({.name = "ml/bare"}) == "ml");
    CHECK(namespace_of({.name = "41_7/0", .job = "41"}) == "");  // a task of a Slurm array
    CHECK(namespace_of({.name = "41/0", .job = "41"}) == "");
    CHECK(namespace_of({.name = "plain"}) == "");
}

TEST_CASE("Owners of unknown kind, from documents", "[disturbance]") {
    auto spec = cluster().to_spec();
    for (auto& task : spec.tasks) task.owner_kind.reset();
    auto named = plan();
    describe_tasks(named, Cluster::build(spec));
    CHECK(
        to_text(disturbance(named)) ==
        "disturbs 4 pods (3 with an owner of unknown kind, 1 without an owner) of 2 owners in 2 namespaces, "
        "5.5 GPUs: 2 restarted, 1 copied, 1 evicted.");
    named.evictions.pop_back();
    CHECK(to_text(disturbance(named)) ==
          "disturbs 3 pods of 2 owners in 2 namespaces, 4.5 GPUs: 2 restarted, 1 copied.");
}

TEST_CASE("The kind of an owner survives changes of membership", "[disturbance]") {
    auto snapshot = cluster();
    const auto kind = [&](const char* name) {
        return snapshot.task_spec(snapshot.find_task(name)).owner_kind;
    };
    CHECK(kind("b/web-0") == "Deployment");
    CHECK(kind("b/bare") == "");
    CHECK(kind("c/p") == std::nullopt);
    snapshot.remove_task(snapshot.handle(snapshot.find_task("a/x-0")));
    TaskSpec task{.name = "d/new"};
    (void)snapshot.add_task(task);  // takes the free slot
    CHECK(kind("d/new") == std::nullopt);
    task.name = "d/late";
    task.owner_kind = "RayCluster";
    (void)snapshot.add_task(task);
    CHECK(kind("d/late") == "RayCluster");
    CHECK(kind("b/web-0") == "Deployment");
}

}  // namespace disturbance_tests

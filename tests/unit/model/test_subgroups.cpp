// SPDX-License-Identifier: Apache-2.0
// Subgroups of jobs: what is refused, and how they come, change and go. Random changes: property/model/membership.
#include "support/catch.hpp"

#include <gpusched/model/model.hpp>

using namespace gpusched;

namespace {

TaskSpec member(const std::string& name, const std::string& subgroup, const std::string& job = "j") {
    TaskSpec task{.name = name, .job = job};
    task.subgroup = subgroup;
    return task;
}

/// One leader and at least two of three workers.
ClusterSpec serving() {
    return {.tasks = {member("l", "leader"), member("w0", "worker"), member("w1", "worker"),
                      member("w2", "worker"), member("x", "")},
            .jobs = {{.name = "j", .min_members = 4, .subgroups = {{"leader", 1}, {"worker", 2}}}}};
}

SubgroupId subgroup(const Cluster& cluster, const std::string& task) {
    return cluster.inventory().subgroup_of(cluster.find_task(task));
}

}  // namespace

TEST_CASE("a snapshot keeps the subgroups of its jobs and their members") {
    const auto cluster = Cluster::build(serving());
    const auto& inv = cluster.inventory();
    const auto spec = cluster.to_spec();
    REQUIRE(spec.jobs == serving().jobs);
    for (std::size_t t = 0; t < spec.tasks.size(); ++t)
        CHECK(spec.tasks[t].subgroup == serving().tasks[t].subgroup);
    CHECK(Cluster::build(spec).to_spec() == spec);
    REQUIRE(inv.subgroups_of(JobId{0}).size() == 2);
    CHECK(inv.subgroups[index(subgroup(cluster, "w1"))].name == "worker");
    CHECK(inv.subgroups[index(subgroup(cluster, "w1"))].min_members == 2);
    CHECK(inv.subgroups[index(subgroup(cluster, "w1"))].size == 3);
    CHECK(subgroup(cluster, "x") == none<SubgroupId>);
    // Without subgroups there is nothing.
    auto plain = serving();
    for (auto& task : plain.tasks) task.subgroup.clear();
    plain.jobs[0].subgroups.clear();
    const auto without = Cluster::build(plain);
    CHECK(without.inventory().subgroups.empty());
    CHECK(without.inventory().job_subgroups.empty());
    CHECK(without.inventory().tasks.subgroup.empty());
    CHECK(without.inventory().subgroups_of(JobId{0}).empty());
    CHECK(without.inventory().subgroup_of(TaskId{0}) == none<SubgroupId>);
}

TEST_CASE("subgroups that cannot be are refused by name") {
    const auto refused = [](auto&& change, const std::string& why) {
        auto spec = serving();
        change(spec);
        INFO(why);
        CHECK_THROWS_MESSAGE(Cluster::build(spec), InvalidInput, why);
    };
    refused([](auto& s) { s.tasks[0].subgroup = "boss"; }, "task 'l' subgroup 'boss' one job 'j' lists");
    refused([](auto& s) { s.tasks[0].job.clear(); }, "task 'l' subgroup 'leader' none without job");
    refused([](auto& s) { s.tasks[0].job = "k"; }, "task 'l' subgroup 'leader' one job 'k' lists");
    refused([](auto& s) { s.jobs[0].min_members = 2; }, "job 'j' min_members 2 least 3, sum");
    refused([](auto& s) { s.jobs[0].subgroups[1].name = "leader"; }, "job 'j' subgroup 'leader' twice");
    refused([](auto& s) { s.jobs[0].subgroups.push_back({"", 0}); }, "job 'j' subgroups empty name");
    refused([](auto& s) { s.jobs[0].subgroups[0].min_members = -1; },
            "job 'j' subgroup 'leader' min_members -1 0");
    refused([](auto& s) { s.jobs[0].subgroups[0].name = std::string("a\0b", 3); }, "job 'j' subgroups NUL");
}

TEST_CASE("subgroups come, change and go with their jobs; slots are given away again") {
    auto cluster = Cluster::build(serving());
    const auto as_built = cluster.to_spec();
    const auto job = cluster.handle(JobId{0});
    const auto worker = subgroup(cluster, "w0");
    auto to = cluster.job_spec(job.id);
    // An empty subgroup comes and goes; the others keep their slots in any order.
    to.subgroups = {{"worker", 3}, {"spare", 0}, {"leader", 1}};
    cluster.update_job(job, to);
    CHECK(cluster.job_spec(job.id) == to);
    CHECK(subgroup(cluster, "w0") == worker);
    const auto spare = cluster.inventory().find_subgroup(job.id, "spare");
    to.subgroups = {{"leader", 1}, {"worker", 2}};
    cluster.update_job(job, to);
    CHECK(cluster.to_spec() == as_built);
    // One that tasks are in stays, and a refusal changes nothing.
    to.subgroups = {{"leader", 1}};
    REQUIRE_THROWS_MESSAGE(cluster.update_job(job, to), InvalidInput, "job 'j' subgroup 'worker' 3 tasks");
    to.subgroups = {};
    REQUIRE_THROWS_MESSAGE(cluster.update_job(job, to), InvalidInput, "subgroup 'leader' 1 task");
    REQUIRE_THROWS_MESSAGE(cluster.add_task(member("y", "boss")), InvalidInput,
                           "task 'y' subgroup 'boss' one job 'j' lists");
    REQUIRE_THROWS_MESSAGE(cluster.update_task(cluster.handle(cluster.find_task("l")), member("l", "boss")),
                           InvalidInput, "task 'l' subgroup 'boss' one job 'j' lists");
    CHECK(cluster.to_spec() == as_built);
    // Tasks change places.
    cluster.update_task(cluster.handle(cluster.find_task("l")), member("l", "worker"));
    CHECK(subgroup(cluster, "l") == worker);
    CHECK(cluster.inventory().subgroups[index(worker)].size == 4);
    to.subgroups = {{"worker", 4}};
    cluster.update_job(job, to);
    for (const char* name : {"l", "w0", "w1", "w2"})
        cluster.remove_task(cluster.handle(cluster.find_task(name)));
    CHECK(cluster.inventory().subgroups[index(worker)].size == 0);
    cluster.remove_task(cluster.handle(cluster.find_task("x")));
    cluster.remove_job(job);
    // Another job takes the slots; a task that comes into a slot is in no subgroup of the one before.
    const auto other = cluster.add_job({.name = "k", .subgroups = {{"a", 0}, {"b", 0}, {"c", 0}}});
    CHECK(cluster.inventory().subgroups.size() == 3);
    CHECK(cluster.inventory().find_subgroup(other.id, "a") == spare);
    CHECK(cluster.inventory().find_subgroup(other.id, "spare") == none<SubgroupId>);
    for (int i = 0; i < 5; ++i)
        (void)cluster.add_task(member("n" + std::to_string(i), i == 4 ? "c" : "", "k"));
    CHECK(Cluster::build(cluster.to_spec()).to_spec() == cluster.to_spec());
    CHECK(subgroup(cluster, "n0") == none<SubgroupId>);
    CHECK(cluster.inventory().subgroups[index(subgroup(cluster, "n4"))].size == 1);
}

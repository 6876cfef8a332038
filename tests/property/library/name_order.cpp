// SPDX-License-Identifier: Apache-2.0
// The order in which a snapshot lists its nodes, tasks, jobs and budgets, and the groups of a task, changes no answer.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/gpusched.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;

namespace {

/// Odd clusters with every kind of constraint; names of one to three digits.
ClusterSpec odd_cluster(std::uint64_t seed) {
    Rng rng(seed + 5);
    return testing_support::random_cluster(rng, {.min_nodes = 2,
                                                 .max_nodes = 16,
                                                 .min_tasks = 4,
                                                 .max_tasks = 45,
                                                 .pending = 0.1,
                                                 .immovable = 0.1,
                                                 .budgets = seed % 2 == 0 ? 0.2 : 0,
                                                 .extras = seed % 3 == 0 ? 0.2 : 0,
                                                 .selected = seed % 5 == 0 ? 0.1 : 0});
}

ClusterSpec shuffled(ClusterSpec spec, Rng& rng) {
    rng.shuffle(std::span(spec.nodes));
    rng.shuffle(std::span(spec.tasks));
    rng.shuffle(std::span(spec.jobs));
    rng.shuffle(std::span(spec.budgets));
    for (auto& task : spec.tasks) rng.shuffle(std::span(task.groups));
    return spec;
}

/// Every decision that the library makes about the snapshot, by name and comparable.
struct Answers {
    std::vector<std::pair<std::string, PlanSpec>> plans;
    std::vector<std::pair<std::string, std::string>> texts;

    void plan(std::string what, const Plan& made, const Cluster& cluster) {
        plans.emplace_back(std::move(what), to_spec(made, cluster));
    }
    void text(std::string what, std::string says) { texts.emplace_back(std::move(what), std::move(says)); }
};

void consolidations(Answers& answers, const Cluster& cluster, std::uint64_t seed) {
    for (const auto preset : {con::Preset::ipc, con::Preset::fast, con::Preset::best}) {
        con::Options options{.preset = preset, .seed = seed, .threads = 1, .search = {.partition_size = 5}};
        const std::string name(enum_name(preset));
        answers.plan(name, con::consolidate(cluster, options).plan, cluster);
        options.open_price = 1000;
        answers.plan(name + " that opens", con::consolidate(cluster, options).plan, cluster);
    }
    std::string points;
    con::FrontierOptions one_thread;
    one_thread.threads = 1;
    for (const auto& point : con::frontier(cluster, one_thread).points)
        for (const auto node : point.result.plan.vacated_nodes) points += cluster.name(node) + ' ';
    answers.text("frontier", points);
}

std::string at(const Cluster& cluster, NodeId node, GpuMask gpus) {
    return cluster.name(node) + ' ' + std::to_string(gpus);
}

void of_one_task(Answers& answers, const Cluster& cluster, TaskId task) {
    const auto name = cluster.name(task);
    const std::vector<allocation::PlaceOptions> placements{
        {},
        {.rankers = {"random"}, .seed = 7},
        {.rankers = {"first_fit"}},
        {.rankers = {"least_allocated"}},
        {.rankers = {"best_fit"}},
        {.rankers = {"fgd"}},
    };
    for (const auto& options : placements) {
        const auto found = allocation::place(cluster, task, options);
        answers.text("place " + name + " " + options.rankers[0],
                     found ? at(cluster, found->node, found->gpus) : "nowhere");
    }
    for (const auto policy :
         {preemption::Policy::imp, preemption::Policy::exhaustive, preemption::Policy::spot,
          preemption::Policy::reprieve, preemption::Policy::first_fit}) {
        const auto found = preemption::preempt(cluster, task, {.policy = policy}).decision;
        std::string says = "nothing helps";
        if (found) {
            says = at(cluster, found->node, found->gpus) + ':';
            for (const auto victim : found->victims) says += ' ' + cluster.name(victim);
        }
        answers.text("preempt " + name + " " + std::string(enum_name(policy)), says);
    }
}

Answers answers_of(const ClusterSpec& spec, std::uint64_t seed) {
    Answers answers;
    const auto cluster = Cluster::build(spec);
    consolidations(answers, cluster, seed);
    int asked = 0;
    for (const auto task : cluster.tasks())
        if (!cluster.is_placed(task) && ++asked <= 3) of_one_task(answers, cluster, task);
    allocation::PodRequest pods{.count = 2};
    pods.pod.gpu_count = 2;
    pods.pod.cpu_milli = 1000;
    const auto with = allocation::with_job(cluster, {"gang", {pods}});
    const auto admitted = admission::admit(with.cluster, with.pods);
    answers.plan("admit", admitted.plan, with.cluster);
    answers.text("admit", admitted.reason + std::to_string(admitted.cost.total()));
    const auto allocated = allocation::allocate(with.cluster, with.pods);
    std::string says = allocated.placed ? "placed" : allocated.reason;
    for (const auto& p : allocated.pods) says += ' ' + at(with.cluster, p.node, p.gpus);
    answers.text("allocate", says);
    return answers;
}

}  // namespace

TEST_CASE("the order of a snapshot's lists changes no placement, plan or eviction") {
    int moves = 0, evictions = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(240); ++seed) {
        const auto spec = odd_cluster(seed);
        const auto expected = answers_of(spec, seed);
        Rng rng(seed);
        const auto answers = answers_of(shuffled(spec, rng), seed);
        INFO("seed " << seed);
        REQUIRE(answers.plans.size() == expected.plans.size());
        for (std::size_t i = 0; i < expected.plans.size(); ++i) {
            INFO(expected.plans[i].first);
            CHECK(answers.plans[i] == expected.plans[i]);
            moves += static_cast<int>(expected.plans[i].second.moves.size());
        }
        REQUIRE(answers.texts.size() == expected.texts.size());
        for (std::size_t i = 0; i < expected.texts.size(); ++i) {
            INFO(expected.texts[i].first);
            CHECK(answers.texts[i] == expected.texts[i]);
            evictions += expected.texts[i].second.find(": ") != std::string::npos;
        }
    }
    CHECK(moves > testing_support::instances(2000));
    CHECK(evictions > testing_support::instances(100));
}

TEST_CASE("ids follow names unless they are to be as listed") {
    ClusterSpec spec;
    for (const char* name : {"n10", "n9", "a"}) spec.nodes.push_back({.name = name});
    for (const char* name : {"t2", "t1"}) spec.tasks.push_back({.name = name});
    for (const char* name : {"j2", "j1"}) spec.jobs.push_back({.name = name});
    spec.tasks[0].job = "j0";
    const auto by_name = Cluster::build(spec);
    CHECK(by_name.name(NodeId{0}) == "a");
    CHECK(by_name.name(NodeId{1}) == "n9");
    CHECK(by_name.name(TaskId{0}) == "t1");
    const auto again = by_name.to_spec();  // in the order of the data
    CHECK(again.nodes == spec.nodes);
    REQUIRE(again.tasks.size() == 2);
    CHECK(again.tasks[0].name == "t2");
    CHECK(again.tasks[1].name == "t1");
    REQUIRE(again.jobs.size() == 3);
    CHECK(again.jobs[0].name == "j2");
    CHECK(again.jobs[2].name == "j0");
    auto changed = by_name;
    changed.add_node({.name = "b"});
    changed.remove_node(changed.handle(changed.find_node("n9")));
    CHECK(changed.to_spec().nodes.size() == 3);
    CHECK(changed.to_spec().nodes[0].name == "n10");
    CHECK(changed.to_spec().nodes[2].name == "b");
    const auto listed = Cluster::build(spec, IdOrder::as_listed);
    CHECK(listed.name(NodeId{0}) == "n10");
    CHECK(listed.name(TaskId{0}) == "t2");
    CHECK(Cluster::build(spec).find_node("n10") == NodeId{2});
}

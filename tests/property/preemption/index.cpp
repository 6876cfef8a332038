// SPDX-License-Identifier: Apache-2.0
// The index that follows a cluster = preempt on a snapshot built from scratch, at every step of random event sequences.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/preemption/preemption.hpp>

using namespace gpusched;
using namespace gpusched::preemption;

namespace {

/// @param bound victims are in jobs and disruption budgets
ClusterSpec random_spec(Rng& rng, bool bound = false) {
    ClusterSpec spec;
    spec.now = 500;
    const auto nodes = rng.between(2, 7);
    for (int n = 0; n < nodes; ++n) {
        NodeSpec node{.name = "n" + std::to_string(rng.below(10)) + "." + std::to_string(n)};
        node.gpu_model = "A";
        node.gpu_count = 8;
        node.hardware = hardware_preset(rng.chance(0.5) ? "rtx4090x8" : "a100x8");
        node.cpu_milli = 64'000;
        node.memory_mib = 100;
        spec.nodes.push_back(node);
    }
    for (int i = 0; i < 40; ++i) {
        TaskSpec task{.name = "t" + std::to_string(i)};
        task.gpu_count = std::int64_t{1} << rng.below(3);
        if (rng.chance(0.15)) {
            task.gpu_count = 1;
            task.gpu_share_milli = 500;
        }
        task.cpu_milli = rng.between(0, 8) * 1000;
        task.memory_mib = rng.between(0, 15);
        task.priority = rng.between(-1, 4) * 50;
        task.preemptible = rng.chance(0.9);
        task.start_time = rng.between(0, 5) * 100;
        if (rng.chance(0.1)) task.anti_affinity = {{"g", node_level, 1}};
        if (bound && rng.chance(0.5)) task.job = "j" + std::to_string(rng.below(6));
        if (bound && rng.chance(0.3)) task.groups = {"h"};
        spec.tasks.push_back(task);
    }
    for (int i = 0; i < 6; ++i) {
        TaskSpec task{.name = "p" + std::to_string(i)};
        task.gpu_count = i == 3 ? 1 : std::int64_t{1} << rng.below(4);
        task.gpu_share_milli = i == 3 ? 400 : 1000;
        task.cpu_milli = task.gpu_count * 4000;
        task.memory_mib = 10;
        task.priority = rng.between(0, 3) * 100;
        if (i % 2 == 0)
            task.hardware_affinity = {
                {HardwareLevel::socket, i == 0 ? HardwareQos::guaranteed : HardwareQos::best_effort}};
        if (i == 5) task.anti_affinity = {{"g", node_level, 1}};
        if (i == 4 && task.gpu_count < 4) task.cpu_local = true;
        if (bound && i < 2) task.job = "j" + std::to_string(i);
        spec.tasks.push_back(task);
    }
    for (int j = 0; bound && j < 6; ++j)
        spec.jobs.push_back({.name = "j" + std::to_string(j), .min_members = rng.between(0, 3)});
    for (int b = 0; bound && b < 2; ++b) {
        BudgetSpec budget{.name = "b" + std::to_string(b), .allowed_down = rng.between(0, 2)};
        if (b == 0) budget.groups = {"h"};
        for (const auto& task : spec.tasks)
            if (rng.chance(0.2)) budget.tasks.push_back(task.name);
        spec.budgets.push_back(budget);
    }
    testing_support::add_subgroups(rng, spec);
    return spec;
}

GpuMask mask_of(const std::vector<int>& gpus) {
    GpuMask mask = 0;
    for (const int gpu : gpus) mask = static_cast<GpuMask>(mask | gpu_bit(gpu));
    return mask;
}

// A cluster that changes, and the index that follows it.
struct Live {
    Live(const Cluster& start, Options options, std::size_t most_shapes = 64)
        : cluster_(start), index_(std::move(options), most_shapes) {
        cluster_.keep_events(32);  // sometimes the index falls out of the window
    }

    Cluster cluster_;
    PreemptionIndex index_;
    std::map<NodeId, bool> gone_{};  // and whether it was schedulable

    void place(TaskId task, NodeId node, GpuMask gpus) {
        cluster_.assign(task, node, gpus);
        cluster_.commit();
    }
    void remove(TaskId task) {
        cluster_.remove(task);
        cluster_.commit();
    }
    void fail_gpu(NodeId node, int gpu, bool failed) {
        auto spec = cluster_.node_spec(node);
        std::erase(spec.failed_gpus, gpu);
        if (failed) spec.failed_gpus.push_back(gpu);
        std::sort(spec.failed_gpus.begin(), spec.failed_gpus.end());
        cluster_.update_node(cluster_.handle(node), spec);
    }
    void fail_node(NodeId node, bool failed = true) {
        if (failed)
            while (!cluster_.tasks_on(node).empty()) cluster_.remove(*cluster_.tasks_on(node).begin());
        cluster_.commit();
        if (failed == gone_.contains(node)) return;
        auto spec = cluster_.node_spec(node);
        const bool before = spec.schedulable;
        spec.schedulable = !failed && gone_[node];
        cluster_.update_node(cluster_.handle(node), spec);
        if (failed)
            gone_[node] = before;
        else
            gone_.erase(node);
    }
    void set_now(std::int64_t now) { cluster_.set_now(now); }
    void apply(const Decision& decision, TaskId preemptor) {
        for (const auto victim : decision.victims) cluster_.remove(victim);
        cluster_.assign(preemptor, decision.node, decision.gpus);
        cluster_.commit();
    }
    [[nodiscard]] const Decision* decide(TaskId task) { return index_.decide(cluster_, task); }
    [[nodiscard]] const Cluster& cluster() const { return cluster_; }
    [[nodiscard]] bool has_failed(NodeId node) const { return gone_.contains(node); }
    [[nodiscard]] GpuMask failed_gpus(NodeId node) const {
        return cluster_.inventory().nodes.failed_gpus[index(node)];
    }
};

// The state as data.
ClusterSpec state_of(const Live& live) {
    auto spec = live.cluster().to_spec();
    for (auto& task : spec.tasks)
        if (!task.node) task.locked = task.standby = false;  // no task waits as such
    return spec;
}

}  // namespace

TEST_CASE("the index equals one rebuilt from scratch at every step") {
    Rng rng(5);
    std::int64_t decisions = 0, evictions = 0, elsewhere = 0, broken = 0, again = 0;
    for (int round = 0; round < testing_support::instances(150); ++round) {
        const bool bound = round % 6 != 0;
        const auto spec = random_spec(rng, bound);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const Options options{.policy = round % 2 == 0 ? Policy::imp : Policy::exhaustive,
                              .break_budgets = round % 3 == 0,
                              .replace_victims = round % 4 == 0};
        Live live(cluster, options, round % 5 == 4 ? 2 : 64);
        std::int64_t now = spec.now;
        for (int step = 0; step < 60; ++step) {
            INFO("round " << round << " step " << step);
            const auto node = make_id<NodeId>(rng.below(cluster.node_count()));
            const auto task = make_id<TaskId>(rng.below(40));
            const auto kind = rng.below(20);
            if (kind < 12) {
                const auto state = Cluster::build(state_of(live), IdOrder::as_listed);
                if (!state.is_placed(task) && find_obstacle(state, task, node) == Obstacle::none) {
                    auto gpus = gpu_list(candidate_gpus(state, task, node));
                    rng.shuffle(std::span(gpus));
                    GpuMask mask = 0;
                    for (std::size_t i = 0; i < static_cast<std::size_t>(spec.tasks[index(task)].gpu_count);
                         ++i)
                        mask |= gpu_bit(gpus[i]);
                    live.place(task, node, mask);
                }
            } else if (kind < 15) {
                live.remove(task);
            } else if (kind < 17) {
                live.fail_gpu(node, static_cast<int>(rng.below(8)), rng.chance(0.5));
            } else if (kind < 18) {
                live.fail_node(node, rng.chance(0.5));
            } else if (kind < 19) {
                live.set_now(now += 100);
                if (bound) {
                    const auto id = make_id<JobId>(rng.below(6));
                    auto job = live.cluster().job_spec(id);
                    job.min_members = rng.between(0, 3);
                    const bool split = !job.subgroups.empty();
                    job.subgroups.clear();
                    if (split) testing_support::add_subgroups(rng, job);
                    if (rng.chance(0.5)) std::reverse(job.subgroups.begin(), job.subgroups.end());
                    live.cluster_.update_job(live.cluster().handle(id), job);
                    auto budget = live.cluster().budget_spec(static_cast<std::uint32_t>(rng.below(2)));
                    budget.allowed_down = rng.between(0, 2);
                    live.cluster_.update_budget(budget);
                    auto other = live.cluster().task_spec(task);
                    if (rng.chance(0.5))
                        other.job = rng.chance(0.3) ? "" : "j" + std::to_string(rng.below(6));
                    other.subgroup.clear();
                    if (const auto known = live.cluster().inventory().job_names.find(other.job))
                        for (const auto& subgroup : live.cluster().job_spec(make_id<JobId>(*known)).subgroups)
                            if (rng.chance(0.4)) other.subgroup = subgroup.name;
                    live.cluster_.update_task(live.cluster().handle(task), other);
                }
            } else {
                const auto p = make_id<TaskId>(40 + rng.below(6));
                if (live.cluster().is_placed(p))
                    live.remove(p);
                else if (const auto* d = live.decide(p); d != nullptr)
                    live.apply(*d, p);
            }
            const auto rebuilt = Cluster::build(state_of(live), IdOrder::as_listed);
            auto at = options;
            at.now = now;
            for (std::size_t i = 40; i < 46; ++i) {
                const auto p = make_id<TaskId>(i);
                if (rebuilt.is_placed(p)) continue;
                const auto expected = preempt(rebuilt, p, at);
                const auto* const found = live.decide(p);
                REQUIRE((found != nullptr) == expected.decision.has_value());
                if (found == nullptr) continue;
                REQUIRE(*found == *expected.decision);
                ++decisions;
                evictions += found->victims.empty() ? 0 : 1;
                elsewhere += std::any_of(found->victims.begin(), found->victims.end(), [&](TaskId victim) {
                    return rebuilt.node_of(victim) != found->node;
                });
                broken += !found->broken_budgets.empty();
                again += !found->replaced.empty();
            }
        }
    }
    CAPTURE(decisions, evictions, elsewhere, broken, again);
    CHECK(decisions > testing_support::instances(6000));
    CHECK(evictions > testing_support::instances(600));
    CHECK(elsewhere > testing_support::instances(50));
    CHECK(broken > testing_support::instances(50));
    CHECK(again > testing_support::instances(50));
}

TEST_CASE("snapshots with every kind of constraint, with nodes that leave and join") {
    std::int64_t decisions = 0, evictions = 0, places = 0, arrivals = 0, repairs = 0, rebuilt_indices = 0;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Rng rng(seed);
        auto spec = testing_support::random_cluster(rng, {.min_nodes = 2,
                                                          .max_nodes = 8,
                                                          .min_tasks = 16,
                                                          .max_tasks = 40,
                                                          .pending = 0.3,
                                                          .grouped = 0.08,
                                                          .max_request = 8});
        for (auto& task : spec.tasks) {
            if (rng.chance(0.5)) task.preemptible = true;
            if (!task.node && rng.chance(0.6)) task.priority += 100;
        }
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const Options options{.policy = seed % 2 == 0 ? Policy::imp : Policy::exhaustive};
        Live live(cluster, options, seed % 5 == 4 ? 2 : 64);
        // Some nodes are not there yet: they are declared, and come later.
        for (const auto node : cluster.nodes())
            if (rng.chance(0.2)) live.fail_node(node);
        std::int64_t now = spec.now;
        for (int step = 0; step < 40; ++step) {
            INFO("seed " << seed << " step " << step);
            auto node = make_id<NodeId>(rng.below(cluster.node_count()));
            const auto task = make_id<TaskId>(rng.below(cluster.task_count()));
            const auto kind = rng.below(20);
            if (kind < 9) {  // starts, or moves
                const auto state = Cluster::build(state_of(live), IdOrder::as_listed);
                for (std::size_t n = 0; n < cluster.node_count(); ++n) {
                    if (find_obstacle(state, task, node) == Obstacle::none) break;
                    node = make_id<NodeId>((index(node) + 1) % cluster.node_count());
                }
                if (find_obstacle(state, task, node) == Obstacle::none) {
                    std::vector<std::vector<int>> sets;
                    const auto count = int{state.inventory().tasks.gpu_count[index(task)]};
                    for (int trial = 0; trial < 20 && sets.empty(); ++trial) {
                        auto gpus = gpu_list(candidate_gpus(state, task, node));
                        rng.shuffle(std::span(gpus));
                        gpus.resize(static_cast<std::size_t>(count));
                        if (count == 0 || gpus_fit(state, task, node, mask_of(gpus))) sets.push_back(gpus);
                    }
                    if (!sets.empty()) {
                        live.place(task, node, mask_of(sets.front()));
                        ++places;
                    }
                }
            } else if (kind < 13) {
                live.remove(task);
            } else if (kind < 15) {
                if (const auto gpus = cluster.gpu_count(node); gpus > 0) {
                    const auto gpu = static_cast<int>(rng.below(static_cast<std::uint64_t>(gpus)));
                    const bool fails = rng.chance(0.5);
                    repairs +=
                        !fails && (live.failed_gpus(node) &
                                   cluster.inventory().nodes.failed_gpus[index(node)] & gpu_bit(gpu)) != 0;
                    live.fail_gpu(node, gpu, fails);
                }
            } else if (kind < 17) {
                const bool gone = live.has_failed(node);
                live.fail_node(node, !gone);
                arrivals += gone;
            } else if (kind < 18) {
                live.set_now(now += 100);
            } else if (!live.cluster().is_placed(task)) {
                if (const auto* d = live.decide(task); d != nullptr) live.apply(*d, task);
            }
            const auto rebuilt = Cluster::build(state_of(live), IdOrder::as_listed);
            auto at = options;
            at.now = now;
            std::optional<Live> fresh;
            if (step % 5 == 0) fresh.emplace(rebuilt, at);
            for (const auto p : rebuilt.tasks()) {
                if (rebuilt.is_placed(p)) continue;
                INFO("task " << rebuilt.name(p));
                const auto expected = preempt(rebuilt, p, at);
                const auto* const found = live.decide(p);
                REQUIRE((found != nullptr) == expected.decision.has_value());
                if (fresh) {
                    const auto* const again = fresh->decide(p);
                    REQUIRE((again != nullptr) == (found != nullptr));
                    if (found != nullptr) REQUIRE(*again == *found);
                    ++rebuilt_indices;
                }
                if (found == nullptr) continue;
                REQUIRE(*found == *expected.decision);
                ++decisions;
                evictions += found->victims.empty() ? 0 : 1;
            }
        }
    }
    CAPTURE(decisions, evictions, places, arrivals, repairs, rebuilt_indices);
    CHECK(decisions > 5000);
    CHECK(evictions > 500);
    CHECK(places > 300);
    CHECK(arrivals > 50);
    CHECK(repairs > 5);
}

TEST_CASE("a GPU that had failed in the snapshot can be repaired") {
    ClusterSpec spec;
    NodeSpec node{.name = "n"};
    node.gpu_count = 2;
    node.failed_gpus = {0, 1};
    spec.nodes = {node};
    TaskSpec task{.name = "p"};
    task.gpu_count = 1;
    spec.tasks = {task};
    Live live(Cluster::build(spec, IdOrder::as_listed), {});
    CHECK(live.failed_gpus(NodeId{0}) == 0b11);
    CHECK(live.decide(TaskId{0}) == nullptr);
    live.fail_gpu(NodeId{0}, 1, false);
    CHECK(live.failed_gpus(NodeId{0}) == 0b01);
    const auto* const found = live.decide(TaskId{0});
    REQUIRE(found != nullptr);
    CHECK(found->gpus == 0b10);
    live.apply(*found, TaskId{0});
    live.fail_gpu(NodeId{0}, 1, true);
    CHECK(live.failed_gpus(NodeId{0}) == 0b11);
}

TEST_CASE("options that make no sense, and tasks that do not exist, are refused") {
    ClusterSpec spec;
    NodeSpec node{.name = "n"};
    node.gpu_count = 2;
    spec.nodes = {node};
    TaskSpec task{.name = "t"};
    task.gpu_count = 1;
    spec.tasks = {task};
    Live live(Cluster::build(spec, IdOrder::as_listed), {});
    CHECK_THROWS_MESSAGE(live.decide(TaskId{1}), InvalidInput, "task: #1; expected below 1");
    CHECK_THROWS_MESSAGE(PreemptionIndex({.policy = Policy::spot}), InvalidInput,
                         "policy: spot; expected imp exhaustive");
    CHECK_THROWS_MESSAGE(PreemptionIndex({}, 0), InvalidInput, "most_shapes: 0; expected 1");
    // A running task is no preemptor, and a removed one is no task.
    live.place(TaskId{0}, NodeId{0}, 1);
    CHECK_THROWS_MESSAGE(live.decide(TaskId{0}), InvalidInput, "task: expected pending runs on node 'n'");
    live.cluster_.remove_task(live.cluster_.handle(TaskId{0}));
    CHECK_THROWS_MESSAGE(live.decide(TaskId{0}), InvalidInput, "task: #0; expected");
}

TEST_CASE("nodes and tasks that come later are known to the index") {
    ClusterSpec spec;
    NodeSpec node{.name = "n"};
    node.gpu_count = 2;
    spec.nodes = {node};
    TaskSpec task{.name = "t"};
    task.gpu_count = 4;
    spec.tasks = {task};
    Live live(Cluster::build(spec, IdOrder::as_listed), {});
    CHECK(live.decide(TaskId{0}) == nullptr);
    for (int i = 0; i < 9; ++i) {
        NodeSpec larger{.name = "later " + std::to_string(9 - i)};
        larger.gpu_count = 4;
        (void)live.cluster_.add_node(larger);
    }
    const auto* found = live.decide(TaskId{0});
    REQUIRE(found != nullptr);
    CHECK(live.cluster().name(found->node) == "later 1");  // ties go by name
    task.name = "another";
    task.priority = 7;
    const auto later = live.cluster_.add_task(task);
    found = live.decide(later.id);
    REQUIRE(found != nullptr);
    CHECK(*found == *preempt(live.cluster(), later.id).decision);
    live.cluster_.remove_node(live.cluster_.handle(found->node));
    found = live.decide(later.id);
    REQUIRE(found != nullptr);
    CHECK(live.cluster().name(found->node) == "later 2");
}

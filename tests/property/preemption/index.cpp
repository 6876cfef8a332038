// SPDX-License-Identifier: Apache-2.0
// The index that follows a cluster = preempt on a snapshot built from scratch, at every step of random event sequences.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/preemption/preemption.hpp>

using namespace gpusched;
using namespace gpusched::preemption;

namespace {

/// A snapshot in which much waits and much may be evicted.
/// @param bound victims are in jobs and disruption budgets
ClusterSpec random_spec(Rng& rng, bool bound) {
    auto spec = testing_support::random_cluster(rng, {.min_nodes = 2,
                                                      .max_nodes = 8,
                                                      .min_tasks = 16,
                                                      .max_tasks = 40,
                                                      .pending = 0.3,
                                                      .grouped = 0.08,
                                                      .max_request = 8,
                                                      .budgets = bound ? 0.3 : 0});
    for (auto& task : spec.tasks) {
        if (rng.chance(0.5)) task.preemptible = true;
        if (!task.node && rng.chance(0.6)) task.priority += 100;
    }
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

TEST_CASE("the index equals one rebuilt from scratch at every step, while nodes leave and join") {
    std::map<std::string, std::int64_t> seen;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(150); ++seed) {
        Rng rng(seed);
        const bool bound = seed % 6 != 0;
        const auto spec = random_spec(rng, bound);
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const Options options{.policy = seed % 2 == 0 ? Policy::imp : Policy::exhaustive,
                              .break_budgets = seed % 3 == 0,
                              .replace_victims = seed % 4 == 0};
        Live live(cluster, options, seed % 5 == 4 ? 2 : 64);
        const auto some_job = [&] { return spec.jobs[rng.below(spec.jobs.size())].name; };
        const auto job_id = [&](const std::string& name) {
            return make_id<JobId>(*live.cluster().inventory().job_names.find(name));
        };
        // Some nodes are not there yet: they are declared, and come later.
        for (const auto node : cluster.nodes())
            if (rng.chance(0.2)) live.fail_node(node);
        std::int64_t now = spec.now;
        for (int step = 0; step < 40; ++step) {
            INFO("seed " << seed << " step " << step);
            auto node = make_id<NodeId>(rng.below(cluster.node_count()));
            const auto task = make_id<TaskId>(rng.below(cluster.task_count()));
            const auto kind = rng.below(20);
            if (kind < 8) {  // starts, or moves
                const auto state = Cluster::build(state_of(live), IdOrder::as_listed);
                for (std::size_t n = 0; n < cluster.node_count(); ++n) {
                    if (find_obstacle(state, task, node) == Obstacle::none) break;
                    node = make_id<NodeId>((index(node) + 1) % cluster.node_count());
                }
                if (find_obstacle(state, task, node) == Obstacle::none) {
                    const auto count = int{state.inventory().tasks.gpu_count[index(task)]};
                    for (int trial = 0; trial < 20; ++trial) {
                        auto gpus = gpu_list(candidate_gpus(state, task, node));
                        rng.shuffle(std::span(gpus));
                        gpus.resize(static_cast<std::size_t>(count));
                        if (count > 0 && !gpus_fit(state, task, node, mask_of(gpus))) continue;
                        live.place(task, node, mask_of(gpus));
                        ++seen["places"];
                        break;
                    }
                }
            } else if (kind < 11) {
                live.remove(task);
            } else if (kind < 13) {
                if (const auto gpus = cluster.gpu_count(node); gpus > 0) {
                    const auto gpu = static_cast<int>(rng.below(static_cast<std::uint64_t>(gpus)));
                    const bool fails = rng.chance(0.5);
                    const auto failed_first =
                        live.failed_gpus(node) & cluster.inventory().nodes.failed_gpus[index(node)];
                    seen["repairs"] += !fails && (failed_first & gpu_bit(gpu)) != 0;
                    live.fail_gpu(node, gpu, fails);
                }
            } else if (kind < 15) {
                const bool gone = live.has_failed(node);
                live.fail_node(node, !gone);
                seen["arrivals"] += gone;
            } else if (kind < 16) {
                live.set_now(now += 100);
            } else if (kind < 18 && bound) {
                if (!spec.jobs.empty()) {
                    auto job = live.cluster().job_spec(job_id(some_job()));
                    job.min_members = rng.between(0, 3);
                    const bool split = !job.subgroups.empty();
                    job.subgroups.clear();
                    if (split) testing_support::add_subgroups(rng, job);
                    if (rng.chance(0.5)) std::reverse(job.subgroups.begin(), job.subgroups.end());
                    live.cluster_.update_job(live.cluster().handle(job_id(job.name)), job);
                    auto other = live.cluster().task_spec(task);
                    if (!other.node) other.locked = other.standby = false;
                    if (rng.chance(0.5)) other.job = rng.chance(0.3) ? "" : some_job();
                    other.subgroup.clear();
                    if (!other.job.empty())
                        for (const auto& subgroup : live.cluster().job_spec(job_id(other.job)).subgroups)
                            if (rng.chance(0.4)) other.subgroup = subgroup.name;
                    live.cluster_.update_task(live.cluster().handle(task), other);
                    ++seen["jobs change"];
                }
                if (!spec.budgets.empty()) {
                    auto budget = live.cluster().budget_spec(
                        static_cast<std::uint32_t>(rng.below(spec.budgets.size())));
                    budget.allowed_down = rng.between(0, 2);
                    live.cluster_.update_budget(budget);
                }
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
                if (live.cluster().task_spec(p).standby) continue;  // a Standby task does not wait
                INFO("task " << rebuilt.name(p));
                const auto expected = preempt(rebuilt, p, at);
                const auto* const found = live.decide(p);
                REQUIRE((found != nullptr) == expected.decision.has_value());
                if (fresh) {
                    const auto* const again = fresh->decide(p);
                    REQUIRE((again != nullptr) == (found != nullptr));
                    if (found != nullptr) REQUIRE(*again == *found);
                }
                if (found == nullptr) continue;
                REQUIRE(*found == *expected.decision);
                ++seen["decisions"];
                seen["evictions"] += !found->victims.empty();
                seen["evictions elsewhere"] += std::ranges::any_of(
                    found->victims, [&](TaskId victim) { return rebuilt.node_of(victim) != found->node; });
                seen["broken budgets"] += !found->broken_budgets.empty();
                seen["run again"] += !found->replaced.empty();
            }
        }
    }
    for (const auto& [kind, least] :
         std::initializer_list<std::pair<const char*, std::int64_t>>{{"decisions", 6000},
                                                                     {"evictions", 600},
                                                                     {"evictions elsewhere", 50},
                                                                     {"broken budgets", 50},
                                                                     {"run again", 50},
                                                                     {"places", 300},
                                                                     {"arrivals", 50},
                                                                     {"repairs", 5},
                                                                     {"jobs change", 300}}) {
        INFO(kind << ": " << seen[kind]);
        CHECK(seen[kind] > testing_support::instances(least));
    }
}

TEST_CASE("a GPU that had failed in the snapshot can be repaired") {
    ClusterSpec spec;
    NodeSpec node{.name = "n", .gpu_count = 2, .failed_gpus = {0, 1}};
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

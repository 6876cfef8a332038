// SPDX-License-Identifier: Apache-2.0
// The parts that a proof of `admit` rests on, each against a brute force over all sets of tasks of a node.
#include "support/instances.hpp"
#include "support/random_cluster.hpp"

#include "admission/bounds.hpp"
#include "admission/covers.hpp"
#include <gpusched/admission/admission.hpp>
#include <gpusched/consolidation/scope.hpp>

using namespace gpusched;
using namespace gpusched::admission::detail;

namespace {

using Tasks = std::set<TaskId>;

/// All that `admit` prepares before it searches.
struct Prepared {
    explicit Prepared(const ClusterSpec& spec)
        : cluster(Cluster::build(spec)), gangs(read_gangs(cluster)), pods(pending(cluster)),
          prices(cluster, pods, options, consolidation::make_scope(cluster, {}), gangs),
          bounds(cluster, prices, 0), state(cluster, cluster, options, prices, gangs) {}

    static preemption::detail::GangTable read_gangs(const Cluster& cluster) {
        preemption::detail::GangTable table;
        table.read(cluster);
        return table;
    }
    static std::vector<TaskId> pending(const Cluster& cluster) {
        std::vector<TaskId> tasks;
        for (const auto task : cluster.tasks())
            if (!cluster.is_placed(task)) tasks.push_back(task);
        return tasks;
    }

    Cluster cluster;
    admission::Options options{};
    preemption::detail::GangTable gangs;
    std::vector<TaskId> pods;
    PriceTable prices;
    NodeBounds bounds;
    SearchState state;
    std::optional<allocation::AnyFilter> no_filter{};
    FilterAnswers passes{cluster, no_filter};
    admission::Statistics stats{};
};

/// Every minimal set of tasks of the node that may leave and without which the task fits there.
std::vector<Tasks> minimal_sets(const Prepared& with, TaskId task, NodeId node) {
    std::vector<TaskId> may_leave;
    for (const auto other : with.cluster.tasks_on(node))
        if (with.prices[other].least < never) may_leave.push_back(other);
    REQUIRE(may_leave.size() < 16);
    std::vector<std::uint32_t> fitting;
    auto work = with.cluster;
    for (std::uint32_t set = 0; set < 1u << may_leave.size(); ++set) {
        if (std::any_of(fitting.begin(), fitting.end(), [&](auto part) { return (part & set) == part; }))
            continue;
        const auto before = work.checkpoint();
        for (std::size_t i = 0; i < may_leave.size(); ++i)
            if ((set >> i & 1u) != 0) work.remove(may_leave[i]);
        if (find_obstacle(work, task, node) == Obstacle::none) fitting.push_back(set);
        work.rollback(before);
    }
    std::vector<Tasks> sets;
    for (const auto set : fitting) {
        Tasks tasks;
        for (std::size_t i = 0; i < may_leave.size(); ++i)
            if ((set >> i & 1u) != 0) tasks.insert(may_leave[i]);
        sets.push_back(tasks);
    }
    return sets;
}

std::int64_t cost_of(const Prepared& with, const Tasks& tasks) {
    std::int64_t cost = 0;
    for (const auto task : tasks) cost += with.prices[task].least;
    return cost;
}

/// A cluster with a pod that waits, which no group limits: bounds look at one node alone.
ClusterSpec tiny(std::uint64_t seed, int nodes = 5, double immovable = 0.2) {
    Rng rng(seed);
    auto spec = testing_support::random_cluster(rng, {.max_nodes = nodes,
                                                      .min_tasks = 4,
                                                      .max_tasks = 20,
                                                      .max_gpus = 8,
                                                      .pending = 0,
                                                      .immovable = immovable,
                                                      .grouped = 0,
                                                      .max_request = 4});
    spec.tasks.push_back({.name = "waiting",
                          .cpu_milli = rng.between(0, 3) * 1000,
                          .gpu_count = rng.between(1, 8),
                          .priority = 1'000'000});
    return spec;
}

}  // namespace

TEST_CASE("a node's bound is no more than the cheapest set of tasks that must leave it, and often equal") {
    int compared = 0, equal = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(600); ++seed) {
        Prepared with(tiny(seed));
        const auto task = with.cluster.find_task("waiting");
        auto& ranking = with.bounds.ranking(with.cluster, task);
        for (std::size_t i = 0; i < ranking.size(); ++i) {
            const auto entry = ranking[i];
            const auto sets = minimal_sets(with, task, entry.node);
            if (sets.empty()) continue;
            auto least = never;
            for (const auto& set : sets) least = std::min(least, cost_of(with, set));
            INFO("seed " << seed << ", node " << with.cluster.name(entry.node));
            REQUIRE(entry.bound <= least);
            REQUIRE(entry.bound <= entry.estimate);
            ++compared;
            equal += entry.bound == least ? 1 : 0;
        }
        // No node that helps is missing.
        for (const auto node : with.cluster.nodes()) {
            if (minimal_sets(with, task, node).empty()) continue;
            bool listed = false;
            for (std::size_t i = 0; i < ranking.size(); ++i) listed = listed || ranking[i].node == node;
            INFO("seed " << seed << ", node " << with.cluster.name(node));
            REQUIRE(listed);
        }
    }
    CHECK(compared > testing_support::instances(500));
    CHECK(equal * 10 > compared * 7);
}

TEST_CASE("sets of tasks that must leave: all minimal ones but those that differ by tasks that are alike") {
    int found_sets = 0, all_sets = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(900); ++seed) {
        auto spec = tiny(seed);
        // Tasks that ask for the same, of which one holds a GPU that has failed.
        if (seed % 3 == 0) {
            for (auto& node : spec.nodes)
                if (node.gpu_count > 0) node.failed_gpus = {0};
            for (auto& task : spec.tasks)
                if (task.name != "waiting") task.cpu_milli = task.memory_mib = 0, task.priority = 0;
        }
        Prepared with(spec);
        const auto task = with.cluster.find_task("waiting");
        CoverFinder finder(with.cluster, with.state, with.passes, with.prices, with.bounds, with.stats);
        for (const auto node : with.cluster.nodes()) {
            if (find_obstacle(with.cluster, task, node) == Obstacle::none) continue;
            const auto sets = minimal_sets(with, task, node);
            std::vector<Cover> covers;
            REQUIRE(finder.find(task, node, never - 1, false, covers));
            INFO("seed " << seed << ", node " << with.cluster.name(node));
            REQUIRE(covers.empty() == sets.empty());
            auto least = never, least_found = never;
            for (const auto& set : sets) least = std::min(least, cost_of(with, set));
            for (const auto& cover : covers) {
                const Tasks tasks(cover.tasks.begin(), cover.tasks.end());
                REQUIRE(std::find(sets.begin(), sets.end(), tasks) != sets.end());
                REQUIRE(cover.least == cost_of(with, tasks));
                REQUIRE(cover.estimate >= cover.least);
                least_found = std::min(least_found, cover.least);
            }
            REQUIRE(least_found == least);
            REQUIRE(with.state.work.same_placement(with.cluster));
            found_sets += static_cast<int>(covers.size());
            all_sets += static_cast<int>(sets.size());
        }
    }
    CHECK(found_sets > testing_support::instances(300));
    CHECK(found_sets <= all_sets);
}

TEST_CASE("the lower bound of a job's cost never exceeds the cost of a valid plan") {
    int compared = 0, equal = 0;
    for (std::uint64_t seed = 0; seed < testing_support::instances<std::uint64_t>(1500); ++seed) {
        auto spec = tiny(seed, 10, 0);
        std::int64_t most = 0;
        for (const auto& node : spec.nodes) most = std::max(most, node.gpu_count);
        spec.tasks.back().gpu_count = most / 2 + 1;  // a pod needs a node of its own
        spec.tasks.back().cpu_milli = 0;
        auto second = spec.tasks.back();
        second.name = "waiting too";
        spec.tasks.push_back(second);
        Prepared with(spec);
        PodBounds bounds(with.cluster, with.pods, with.bounds, 0);
        const auto both = bounds.of_region({});
        const auto made = admission::admit(with.cluster, with.pods);
        const auto of_one = admission::admit(with.cluster, std::vector{with.pods[0]});
        INFO("seed " << seed);
        if (bounds.known() && of_one.admitted) REQUIRE(bounds.cheapest(1) <= of_one.cost.total());
        if (!made.admitted) continue;
        REQUIRE(both <= made.cost.total());
        if (bounds.known()) REQUIRE(bounds.cheapest(2) <= made.cost.total());
        compared += bounds.known() ? 1 : 0;
        equal += both == made.cost.total() ? 1 : 0;
    }
    CHECK(compared > testing_support::instances(100));
    CHECK(equal * 10 > compared * 3);
}

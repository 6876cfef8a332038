// SPDX-License-Identifier: Apache-2.0
// Nodes with more than 64 potential victims: bystanders who free nothing change no answer, and hundreds of fractions are
// chosen from as an enumeration of all sets of GPUs, and the rules of the linear policies, say.
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/policies.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/core/order.hpp>
#include <gpusched/preemption/preemption.hpp>

using namespace gpusched;
using namespace gpusched::preemption;
using testing_support::instances;
using testing_support::names;

namespace {

const auto policies = testing_support::all_policies();

constexpr std::int64_t bystander_cost = 1'000'000'000'000;

/// Bystanders, costly and last by priority, before all others in the snapshot.
ClusterSpec with_bystanders(const ClusterSpec& spec, Rng& rng) {
    auto crowded = spec;
    std::vector<TaskSpec> tasks;
    for (const auto& node : spec.nodes) {
        if (rng.chance(0.3)) continue;
        for (std::int64_t i = 0, count = rng.between(60, 140); i < count; ++i) {
            TaskSpec task{.name = "zz-" + node.name + "-" + std::to_string(i),
                          .priority = 999'999,
                          .priority_class = PriorityClass::lp,
                          .preemptible = true,
                          .node = node.name};
            tasks.push_back(task);
        }
    }
    tasks.insert(tasks.end(), crowded.tasks.begin(), crowded.tasks.end());
    crowded.tasks = std::move(tasks);
    return crowded;
}

/// One node of 8 GPUs, full of fractions.
ClusterSpec fractions(Rng& rng, int victims) {
    ClusterSpec spec;
    spec.now = 1000;
    NodeSpec node{
        .name = "n", .gpu_model = "A", .gpu_count = 8, .cpu_milli = 1'000'000, .memory_mib = 1'000'000};
    spec.nodes = {node};
    for (int i = 0; i < victims; ++i) {
        TaskSpec task{.name = "t" + std::to_string(rng.below(100'000)) + "." + std::to_string(i),
                      .gpu_count = 1,
                      .gpu_share_milli = 8000 / (victims + 8)};
        task.cpu_milli = rng.between(1, 5) * 100;
        task.priority = rng.between(1, 90);
        task.priority_class = PriorityClass::lp;
        task.preemptible = true;
        task.start_time = rng.between(0, 20) * 10;
        if (rng.chance(0.5)) task.last_checkpoint_time = rng.between(20, 99) * 10;
        task.node = "n";
        task.gpus = {i % 8};
        spec.tasks.push_back(task);
    }
    rng.shuffle(std::span(spec.tasks));
    TaskSpec p{
        .name = "p", .gpu_count = rng.between(1, 4), .priority = 100, .priority_class = PriorityClass::hp};
    spec.tasks.push_back(p);
    return spec;
}

}  // namespace

TEST_CASE("bystanders beyond 64 change no policy's answer") {
    int evicting = 0, crowded_nodes = 0, none = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(300); ++seed) {
        Rng rng(seed);
        auto spec = testing_support::random_cluster(rng, {.min_nodes = 1,
                                                          .max_nodes = 3,
                                                          .min_tasks = 6,
                                                          .max_tasks = 16,
                                                          .max_gpus = 8,
                                                          .pending = 0.3,
                                                          .immovable = 0.05,
                                                          .grouped = 0.03,
                                                          .max_request = 8,
                                                          .extras = seed % 3 == 0 ? 0.15 : 0.0});
        for (auto& task : spec.tasks) {
            if (rng.chance(0.6)) task.preemptible = true;
            if (!task.node && rng.chance(0.7)) task.priority = 1'000'000;
        }
        const auto crowded = with_bystanders(spec, rng);
        const auto alone = Cluster::build(spec, IdOrder::as_listed);
        auto full = Cluster::build(crowded, IdOrder::as_listed);
        full.keep_events();
        std::optional<PreemptionIndex> index_[2];
        index_[0].emplace(Options{.policy = Policy::imp});
        index_[1].emplace(Options{.policy = Policy::exhaustive});
        for (const auto task : alone.tasks()) {
            if (alone.is_placed(task) || alone.inventory().tasks.priority[index(task)] != 1'000'000) continue;
            const auto same = full.find_task(alone.name(task));
            for (const auto policy : policies) {
                INFO("seed " << seed << " task " << alone.name(task) << " policy " << enum_name(policy));
                Options options{.policy = policy};
                options.cost = [](const Cluster& c, TaskId t, std::int64_t now) {
                    return c.name(t).starts_with("zz-") ? bystander_cost : lost_work(c, t, now);
                };
                const auto expected = preempt(alone, task, options);
                const auto found = preempt(full, same, options);
                REQUIRE(expected.proven);
                REQUIRE(found.proven);
                REQUIRE(found.decision.has_value() == expected.decision.has_value());
                if (!found.decision) {
                    ++none;
                    REQUIRE(explain(full, same, options).obstacle == explain(alone, task, options).obstacle);
                    continue;
                }
                const auto &d = *found.decision, &e = *expected.decision;
                REQUIRE(full.name(d.node) == alone.name(e.node));
                REQUIRE(names(full, d.victims) == names(alone, e.victims));
                REQUIRE(d.gpus == e.gpus);
                REQUIRE(std::tuple(d.score, d.priority_sum, d.cost, d.topology) ==
                        std::tuple(e.score, e.priority_sum, e.cost, e.topology));
                evicting += d.victims.empty() ? 0 : 1;
                crowded_nodes += full.occupants(d.node) > 64;
            }
            for (auto& live : index_) {
                const auto& options = &live == &index_[0] ? Options{.policy = Policy::imp}
                                                          : Options{.policy = Policy::exhaustive};
                const auto expected = preempt(full, same, options);
                const auto* const found = live->decide(full, same);
                REQUIRE((found != nullptr) == expected.decision.has_value());
                if (found != nullptr) REQUIRE(*found == *expected.decision);
            }
            for (const auto node : alone.nodes()) {
                const auto sets = minimal_victim_sets(alone, task, node, {.qos = std::nullopt}),
                           more = minimal_victim_sets(full, same, node, {.qos = std::nullopt});
                REQUIRE(more.proven);
                REQUIRE(more.sets.size() == sets.sets.size());
                for (std::size_t i = 0; i < sets.sets.size(); ++i)
                    REQUIRE(names(full, more.sets[i]) == names(alone, sets.sets[i]));
            }
        }
    }
    CAPTURE(evicting, crowded_nodes, none);
    CHECK(evicting > instances(400));
    CHECK(crowded_nodes > instances(250));
    CHECK(none > instances(150));
}

TEST_CASE("hundreds of fractions: the optimum, the rules of the linear policies, and no trace of history") {
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(60); ++seed) {
        Rng rng(seed);
        const auto spec = fractions(rng, static_cast<int>(rng.between(65, 200)));
        const auto cluster = Cluster::build(spec, IdOrder::as_listed);
        const auto p = cluster.find_task("p");
        const auto wanted = static_cast<int>(spec.tasks[index(p)].gpu_count);
        INFO("seed " << seed);
        // Every task holds one GPU, so a set of GPUs is freed by exactly the tasks on it.
        std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> each(
            8);  // victims, priorities, cost
        for (const auto task : cluster.tasks())
            if (cluster.is_placed(task)) {
                auto& [count, priority, cost] =
                    each[static_cast<std::size_t>(spec.tasks[index(task)].gpus[0])];
                ++count;
                priority += spec.tasks[index(task)].priority;
                cost += lost_work(cluster, task, spec.now);
            }
        std::pair<std::int64_t, std::int64_t> fewest{INT64_MAX, 0};
        std::int64_t lowest = INT64_MAX, cheapest = INT64_MAX;
        for (unsigned gpus = 1; gpus < 256; ++gpus) {
            if (std::popcount(gpus) != wanted) continue;
            std::int64_t count = 0, priority = 0, cost = 0;
            for (std::size_t g = 0; g < 8; ++g)
                if ((gpus >> g & 1) != 0) {
                    count += std::get<0>(each[g]);
                    priority += std::get<1>(each[g]);
                    cost += std::get<2>(each[g]);
                }
            fewest = std::min(fewest, {count, priority});
            lowest = std::min(lowest, priority);
            cheapest = std::min(cheapest, cost);
        }
        const auto ask = [&](const VictimPolicy& policy) {
            const auto found = preempt(cluster, p, {.policy = policy});
            REQUIRE(found.proven);
            REQUIRE(found.decision);
            testing_support::require_valid(spec, cluster, to_plan(*found.decision, p));
            return *found.decision;
        };
        const auto imp = ask(Policy::imp);
        REQUIRE(std::pair(static_cast<std::int64_t>(imp.victims.size()), imp.priority_sum) == fewest);
        REQUIRE(ask(Policy::exhaustive).priority_sum == lowest);
        REQUIRE(ask(Policy::spot_exact).cost == cheapest);
        // One after the other in the policy's order, until enough GPUs are free.
        const auto prefix = [&](auto key) {
            std::vector<TaskId> order;
            for (const auto task : cluster.tasks())
                if (cluster.is_placed(task)) order.push_back(task);
            std::sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
                return key(a) != key(b) ? key(a) < key(b) : comes_before(cluster.name(a), cluster.name(b));
            });
            return order;
        };
        const auto free = [&](const std::vector<TaskId>& left) {
            auto after = cluster;
            for (const auto task : left) after.remove(task);
            int gpus = 0;
            for (int g = 0; g < 8; ++g) gpus += after.gpu_free_milli(NodeId{0}, g) == 1000;
            return gpus >= wanted;
        };
        const auto taken = [&](std::vector<TaskId> order) {
            std::vector<TaskId> left;
            for (const auto task : order) {
                left.push_back(task);
                if (free(left)) break;
            }
            std::sort(left.begin(), left.end());
            return left;
        };
        const auto& t = spec.tasks;
        REQUIRE(ask(Policy::spot).victims ==
                taken(prefix([&](TaskId x) { return lost_work(cluster, x, spec.now); })));
        REQUIRE(ask(Policy::first_fit).victims ==
                taken(prefix([&](TaskId x) { return t[index(x)].priority; })));
        auto leaving =
            prefix([&](TaskId x) { return std::pair(-t[index(x)].priority, t[index(x)].start_time); });
        const auto order = leaving;
        for (const auto task : order) {
            auto kept = leaving;
            std::erase(kept, task);
            if (free(kept)) leaving = kept;
        }
        std::sort(leaving.begin(), leaving.end());
        REQUIRE(ask(Policy::reprieve).victims == leaving);
        // In a user-defined order until the preemptor fits; then the last ones come back first if possible.
        const auto key = [&](TaskId x) { return testing_support::Scattered{}(cluster, x, 0); };
        std::vector<TaskId> gone;
        for (const auto task : prefix(key)) {
            gone.push_back(task);
            if (free(gone)) break;
        }
        for (auto i = gone.size(); i-- > 0;) {
            auto fewer = gone;
            fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
            if (free(fewer)) gone = fewer;
        }
        std::sort(gone.begin(), gone.end());
        REQUIRE(ask(testing_support::Scattered{}).victims == gone);
        // The same state with another past, also with a truncated search.
        auto shuffled = order;
        rng.shuffle(std::span(shuffled));
        for (const std::int64_t limit : {1'000'000, 20, 1})
            for (const auto policy : {Policy::imp, Policy::exhaustive}) {
                const Options options{.policy = policy, .search_limit = limit};
                auto live = cluster;
                live.keep_events();
                PreemptionIndex index_(options);
                (void)index_.decide(live, p);
                for (const auto task : shuffled) {
                    live.remove(task);
                    live.commit();
                }
                for (const auto task : order) {
                    live.assign(task, NodeId{0}, cluster.gpus_of(task));
                    live.commit();
                }
                const auto expected = preempt(cluster, p, options);
                const auto* const found = index_.decide(live, p);
                REQUIRE(expected.decision);
                REQUIRE(found != nullptr);
                REQUIRE(*found == *expected.decision);
                REQUIRE(index_.proven() == expected.proven);
                // What has been asked is remembered.
                REQUIRE(*index_.decide(live, p) == *expected.decision);
            }
    }
}

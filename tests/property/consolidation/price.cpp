// SPDX-License-Identifier: Apache-2.0
// The price of a move: bounds against all placements of tiny clusters, frontiers of random ones, and `best` beside the other
// presets on odd ones.
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/milp/solver.hpp>

using namespace gpusched;
namespace con = gpusched::consolidation;
using testing_support::instances;

namespace {

/// The highest values, by price, of all placements that satisfy the constraints; orders of moves are ignored.
class AllPlacements {
  public:
    AllPlacements(const Cluster& cluster, const con::Scope& scope, con::Objective objective,
                  std::vector<std::int64_t> prices)
        : before_(cluster), cluster_(cluster), objective_(objective), open_price_(scope.open_price),
          prices_(std::move(prices)), best_(prices_.size(), 0) {
        for (const auto node : cluster.nodes())
            if (scope.receives(node)) receivers_.push_back(node);
        for (const auto task : cluster.tasks())
            if (cluster.is_placed(task) && scope.movable[index(task)]) tasks_.push_back(task);
        for (const auto task : tasks_) cluster_.remove(task);
        place(0, 0);
    }
    [[nodiscard]] const std::vector<std::int64_t>& best() const { return best_; }

  private:
    void place(std::size_t next, std::int64_t cost) {
        if (next == tasks_.size()) return judge(cost);
        const auto task = tasks_[next];
        const auto home = before_.node_of(task);
        const auto& t = cluster_.inventory().tasks;
        // It may stay where it could not go today, as long as others leave it the room.
        if (t.cpu_milli[index(task)] <= cluster_.cpu_free_milli(home, cluster_.lent_to(task)) &&
            t.memory_mib[index(task)] <= cluster_.memory_free_mib(home) &&
            (before_.gpus_of(task) == 0 || gpus_fit(cluster_, task, home, before_.gpus_of(task)))) {
            cluster_.assign(task, home, before_.gpus_of(task));
            place(next + 1, cost);
            cluster_.undo();
        }
        for (const auto node : receivers_) {
            if (node == home || find_obstacle(cluster_, task, node) != Obstacle::none) continue;
            const bool needs_gpus = cluster_.inventory().tasks.gpu_count[index(task)] > 0;
            cluster_.assign(task, node,
                            (needs_gpus ? allocation::TightestGpu{}(cluster_, task, node) : GpuMask{0}) |
                                free_devices_for(cluster_, task, node));
            place(next + 1, cost + cluster_.inventory().tasks.move_cost[index(task)]);
            cluster_.undo();
        }
    }
    void judge(std::int64_t cost) {
        std::int64_t weight = 0, opened = 0;
        for (const auto node : before_.nodes()) {
            const bool before = before_.occupants(node) > 0;
            if (before == (cluster_.occupants(node) > 0)) continue;
            (before ? weight : opened) +=
                objective_ == con::Objective::gpus ? gpu_count(before_.healthy_gpus(node)) : 1;
        }
        for (std::size_t p = 0; p < prices_.size(); ++p)
            best_[p] = std::max(best_[p], con::value_milli(weight, cost, prices_[p]) - open_price_ * opened);
    }

    const Cluster& before_;
    Cluster cluster_;
    con::Objective objective_;
    std::int64_t open_price_;
    std::vector<std::int64_t> prices_, best_;
    std::vector<NodeId> receivers_;
    std::vector<TaskId> tasks_;
};

}  // namespace

TEST_CASE("no placement of a tiny cluster is worth more than the bound at any price") {
    const std::vector<std::int64_t> prices{2500, 1000, 400, 150, 0};
    const auto solver = milp::clp();
    int worth = 0, reached = 0, opening = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(1000); ++seed) {
        Rng rng(seed);
        const auto cluster =
            Cluster::build(testing_support::random_cluster(rng, testing_support::tiny_cluster));
        for (const auto objective : {con::Objective::gpus, con::Objective::nodes}) {
            con::Options options;
            if (seed % 2 == 1) options.open_price = seed % 4 == 1 ? 1000 : 1300;
            const auto scope = con::make_scope(cluster, options);
            const AllPlacements all(cluster, scope, objective, prices);
            opening +=
                options.open_price &&
                all.best() != AllPlacements(cluster, con::make_scope(cluster, {}), objective, prices).best();
            const Context context;
            Budget budget(context);
            const con::detail::Threads threads({.threads = 1}, context);
            for (const bool lp : {false, true}) {
                if (lp && solver == nullptr) continue;
                const auto bounds = con::detail::values_at_most(
                    cluster, scope, objective, prices, lp ? solver : nullptr, budget, threads.executor());
                for (std::size_t p = 0; p < prices.size(); ++p) {
                    INFO("seed " << seed << ", price " << prices[p] << ", lp " << lp);
                    REQUIRE(all.best()[p] <= bounds[p]);
                    worth += all.best()[p] > 0 ? 1 : 0;
                    reached += all.best()[p] > 0 && all.best()[p] == bounds[p] ? 1 : 0;
                }
            }
        }
    }
    REQUIRE(worth > instances(1000));
    REQUIRE(2 * reached > worth);  // not merely true, but tight
    REQUIRE(opening > instances(5));
}

TEST_CASE("a frontier's plans are valid, ascend, and keep below their bounds") {
    std::size_t points = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(200); ++seed) {
        Rng rng(seed);
        const auto spec = testing_support::random_cluster(
            rng, {.min_nodes = 5, .max_nodes = 30, .min_tasks = 10, .max_tasks = 80});
        const auto cluster = Cluster::build(spec);
        con::FrontierOptions options;
        options.seed = seed;
        options.threads = 1;
        options.points = 6;
        if (seed % 4 == 1) options.open_price = 1000 + seed % 3 * 500;
        options.objective = seed % 3 == 0 ? con::Objective::nodes : con::Objective::gpus;
        const auto frontier = con::frontier(cluster, options);
        REQUIRE(frontier.bound_method == "counting");
        std::int64_t cost = -1, gained = 0;
        for (const auto& point : frontier.points) {
            INFO("seed " << seed << ", price " << point.result.stats.price);
            testing_support::require_valid(spec, cluster, point.result.plan);
            const auto& stats = point.result.stats;
            REQUIRE(stats.relocation_cost >= cost);
            const bool gpus = options.objective == con::Objective::gpus;
            REQUIRE(stats.vacated_weight == (gpus ? stats.vacated_gpus : stats.vacated_nodes));
            REQUIRE(stats.opened_weight == (gpus ? stats.opened_gpus : stats.opened_nodes));
            const auto opening = options.open_price.value_or(0) * stats.opened_weight;
            REQUIRE(1000 * stats.vacated_weight - opening > gained);
            cost = stats.relocation_cost;
            gained = 1000 * stats.vacated_weight - opening;
            REQUIRE(stats.value_milli == con::value_milli(stats.vacated_weight, cost, stats.price) - opening);
            REQUIRE(stats.value_milli <= point.value_at_most_milli);
            REQUIRE(stats.vacated_weight <= point.weight_at_most);
            ++points;
        }
        REQUIRE(frontier.points.size() <= options.points);
        // Fewer points are some of these: the first, the last, and even steps between.
        auto fewer = options;
        for (fewer.points = 1; fewer.points < 4; ++fewer.points)
            REQUIRE(con::frontier(cluster, fewer).points.size() <= fewer.points);
    }
    REQUIRE(points > instances<std::size_t>(400));
}

TEST_CASE("a frontier that may open nodes is nowhere below one that may not") {
    int opening = 0, above = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(150); ++seed) {
        Rng rng(seed + 4000);
        auto spec = testing_support::random_cluster(
            rng, {.min_nodes = 4, .max_nodes = 24, .min_tasks = 8, .max_tasks = 70});
        // As large as others, and empty.
        for (int empty = 0; empty < 3; ++empty) {
            auto node = spec.nodes[static_cast<std::size_t>(rng.below(spec.nodes.size()))];
            node.name = "empty" + std::to_string(empty);
            if (!node.hardware) node.cpu_milli *= 2;
            spec.nodes.push_back(std::move(node));
        }
        const auto cluster = Cluster::build(spec);
        con::FrontierOptions options;
        options.threads = 1;
        options.points = 1000;  // all: fewer are chosen among those of both searches
        options.search.bound_method = con::BoundMethod::none;
        options.objective = seed % 3 == 0 ? con::Objective::nodes : con::Objective::gpus;
        const auto without = con::frontier(cluster, options);
        options.open_price = 1000;
        const auto with = con::frontier(cluster, options);
        const auto most = [&](std::int64_t cost) {  // gained by moves that cost no more
            std::int64_t gained = 0;
            for (const auto& point : with.points)
                if (point.result.stats.relocation_cost <= cost)
                    gained = 1000 * (point.result.stats.vacated_weight - point.result.stats.opened_weight);
            return gained;
        };
        for (const auto& point : without.points) {
            const auto& stats = point.result.stats;
            INFO("seed " << seed << ", cost " << stats.relocation_cost);
            REQUIRE(most(stats.relocation_cost) >= 1000 * stats.vacated_weight);
            above += most(stats.relocation_cost) > 1000 * stats.vacated_weight;
        }
        for (const auto& point : with.points) opening += point.result.stats.opened_weight > 0;
    }
    REQUIRE(opening > instances(20));
    REQUIRE(above > instances(5));
}

TEST_CASE("no plan of fast or ipc is worth more than that of best, or as much for less") {
    const auto clusters = instances<std::uint64_t>(150);
    int runs = 0, better = 0;
    for (std::uint64_t seed = 0; seed < clusters; ++seed) {
        Rng rng(seed + 777);
        testing_support::RandomClusterOptions how;
        if (seed % 2 == 1) {
            how.min_nodes = 8, how.max_nodes = 40, how.min_tasks = 20, how.max_tasks = 120;
            how.max_gpus = seed % 4 == 1 ? 16 : 8;
            how.immovable = 0.1;
        }
        if (seed % 50 == 49)  // if exchanges are not judged after the moves are ordered
            how.min_nodes = 1001, how.max_nodes = 1400, how.min_tasks = 1500, how.max_tasks = 3000;
        const auto cluster = Cluster::build(testing_support::random_cluster(rng, how));
        for (const std::int64_t price : {0, 600, 2000}) {
            con::Options options{.seed = seed,
                                 .threads = 1,
                                 .price = price,
                                 .search = {.bound_method = con::BoundMethod::none}};
            if (seed % 7 == 3) options.objective = con::Objective::nodes;
            if (seed % 7 == 5) options.max_moves = static_cast<std::int64_t>(cluster.node_count()) / 3;
            if (seed % 7 == 6) options.clear = std::vector{*cluster.nodes().begin()};
            if (seed % 5 == 4) options.open_price = 1000;
            const auto run = [&](con::Preset preset) {
                options.preset = preset;
                return con::consolidate(cluster, options).stats;
            };
            const auto best = run(con::Preset::best);
            for (const auto preset : {con::Preset::ipc, con::Preset::fast}) {
                const auto other = run(preset);
                INFO("seed " << seed << ", price " << price << ", " << enum_name(preset));
                REQUIRE(other.value_milli <= best.value_milli);
                // At a price of 0: not as much by fewer moves, nor by as many that cost less.
                REQUIRE_FALSE((price == 0 && !options.open_price &&
                               other.vacated_weight >= best.vacated_weight &&
                               std::tuple(other.moved_tasks, other.relocation_cost, other.moves) <
                                   std::tuple(best.moved_tasks, best.relocation_cost, best.moves)));
                ++runs;
                better += best.value_milli > other.value_milli ? 1 : 0;
            }
        }
    }
    WARN(clusters << " clusters at three prices, " << runs << " comparisons: dominated 0 times, worth more "
                  << better << " times");
    REQUIRE(better * 20 > runs);
}

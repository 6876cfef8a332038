// SPDX-License-Identifier: Apache-2.0
// Compares `replan` after changes of the cluster with new plans of `best` and `fast`.
//
// `best` makes a plan. Then --events tasks change: one half ends, the other half starts on the nodes that
// `place` chooses. Prints one line per scenario, size and number of events: processor time and vacated GPUs
// of new plans and of `replan`, the GPUs in percent of those of `best`, and the share of moves that `replan`
// kept from the first plan. All plans are verified.
#include "../support/timing.hpp"
#include "runs.hpp"

#include <gpusched/allocation/named.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/replan.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/verify/plan.hpp>

#include <cstdint>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;

namespace {

void change(Cluster& cluster, int events, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<TaskId> tasks(cluster.tasks().begin(), cluster.tasks().end());
    if (static_cast<std::size_t>(events) > tasks.size())
        throw std::invalid_argument("--events: the cluster has only " + std::to_string(tasks.size()) +
                                    " tasks");
    const auto take = [&] {
        const auto at = rng.below(tasks.size());
        const auto task = tasks[at];
        tasks[at] = tasks.back();
        tasks.pop_back();
        return task;
    };
    for (int i = 0; i < events / 2; ++i) {
        auto spec = cluster.task_spec(take());
        spec.name = "started-" + std::to_string(i);
        spec.job.clear();
        spec.subgroup.clear();
        spec.node.reset();
        spec.gpus.clear();
        spec.cores.reset();
        spec.locked = spec.standby = false;
        const auto started = cluster.add_task(spec);
        if (const auto found = allocation::place(cluster, started.id))
            cluster.bind(started, cluster.handle(found->node), found->gpus);
    }
    for (int i = 0; i < events / 2; ++i) cluster.remove_task(cluster.handle(take()));
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Compares replanning after changes with a new plan.", argc, argv);
    bench::Runs runs{.seeds = {1, 2, 3}, .threads = 1};
    std::vector<int> events{0, 10, 100, 1000};
    runs.options(line);
    line.option("--events", events, "changes since the plan was made")->check(bench::at_least(0));
    if (line.smoke()) runs.nodes = 300, runs.seeds = {1}, runs.wanted = {"random.80"}, events = {0, 100};
    line.read();
    std::printf(
        "| scenario | seed | nodes | events | best s | fast s | replan s | best GPUs | fast %% | replan %% "
        "| best moves | replan moves | as planned %% "
        "|\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    bool all_valid = true;
    runs.each([&](const auto& scenario, std::uint64_t seed, const ClusterSpec&, const Cluster& before) {
        con::Options options{.seed = seed,
                             .threads = runs.threads,
                             .search = {.bound_method = con::BoundMethod::none, .record_chains = true}};
        const auto last = to_spec(con::consolidate(before, options).plan, before);
        std::map<std::string, std::string> planned;
        for (const auto& move : last.moves) planned[move.task] = move.to;
        for (const int count : events) {
            auto cluster = before;
            change(cluster, count, seed);
            const auto spec = cluster.to_spec();
            const auto timed = [&](auto&& plan) {
                const auto start = bench::processor_s();
                auto result = plan();
                const auto s = bench::processor_s() - start;
                all_valid = all_valid && verify::plan(spec, to_spec(result.plan, cluster)).ok;
                return std::pair(s, std::move(result));
            };
            options.preset = con::Preset::best;
            const auto [best_s, best] = timed([&] { return con::consolidate(cluster, options); });
            const auto [replan_s, again] = timed([&] { return con::replan(cluster, last, options); });
            options.preset = con::Preset::fast;
            const auto [fast_s, fast] = timed([&] { return con::consolidate(cluster, options); });
            std::int64_t as_planned = 0;
            for (const auto& move : again.plan.moves) {
                const auto found = planned.find(cluster.name(move.task));
                as_planned += found != planned.end() && found->second == cluster.name(move.to) ? 1 : 0;
            }
            std::printf(
                "| %s | %llu | %lld | %d | %.3f | %.4f | %.4f | %lld | %.2f | %.2f | %lld | %lld | %.1f |\n",
                scenario.name, static_cast<unsigned long long>(seed), static_cast<long long>(runs.nodes),
                count, best_s, fast_s, replan_s, static_cast<long long>(best.stats.vacated_gpus),
                bench::percent(fast.stats.vacated_gpus, best.stats.vacated_gpus),
                bench::percent(again.stats.vacated_gpus, best.stats.vacated_gpus),
                static_cast<long long>(best.stats.moves), static_cast<long long>(again.stats.moves),
                bench::percent(as_planned, again.stats.moves));
            std::fflush(stdout);
        }
    });
    return all_valid ? 0 : 1;
}

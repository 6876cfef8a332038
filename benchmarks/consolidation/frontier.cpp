// SPDX-License-Identifier: Apache-2.0
// Compares frontiers of generated clusters with the bounds and with the paper's algorithm, `ipc`.
//
// Prints one line per scenario and seed, all values in percent:
// - the gap to the bound of the plans next to 25, 50, 75 and 100 % of all moves;
// - how much of the gap between `ipc` and the bound at its number of moves the frontier closes;
// - how many fewer moves than `ipc` the frontier takes for as many GPUs, and how many fewer any plan can
//   take;
// - with --own, how much more a separate search at the price of a point is worth, at most.
#include "../support/timing.hpp"
#include "runs.hpp"

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/frontier.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

using namespace gpusched;
namespace con = gpusched::consolidation;

namespace {

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Compares frontiers with the bounds and with the paper's algorithm.", argc, argv);
    bench::Runs runs{.seeds = {1, 2, 3}};
    if (line.smoke()) runs.nodes = 500, runs.seeds = {1};
    bool own = false;
    con::FrontierOptions options;
    runs.options(line);
    line.flag("--own", own, "a separate search at the price of every point");
    line.option("--points", options.points, "about how many plans a frontier has");
    line.read();
    options.threads = runs.threads;
    own = own || line.smoke();
    std::printf("| scenario | seed | points | s | gap at 25 %% | at 50 %% | at 75 %% | at 100 %% | ipc's "
                "gap closed | fewer moves | any plan | separate search better |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    bool all_valid = true;
    runs.each([&](const auto& scenario, std::uint64_t seed, const ClusterSpec& spec, const Cluster& cluster) {
        con::Frontier frontier;
        const double time_s = bench::seconds([&] { frontier = con::frontier(cluster, options); });
        if (frontier.points.empty()) return;
        for (const auto& point : frontier.points)
            all_valid = all_valid && verify::plan(spec, to_spec(point.result.plan, cluster)).ok;
        const auto total = static_cast<double>(frontier.points.back().result.stats.relocation_cost);
        std::printf("| %s | %llu | %zu | %.2f", scenario.name, static_cast<unsigned long long>(seed),
                    frontier.points.size(), time_s);
        for (const double part : {0.25, 0.5, 0.75, 1.0}) {
            const auto& nearest = *std::min_element(
                frontier.points.begin(), frontier.points.end(), [&](const auto& a, const auto& b) {
                    const auto off = [&](const auto& point) {
                        return std::abs(static_cast<double>(point.result.stats.relocation_cost) -
                                        part * total);
                    };
                    return off(a) < off(b);
                });
            const auto most = static_cast<double>(nearest.weight_at_most);
            std::printf(" | %.1f",
                        percent(most - static_cast<double>(nearest.result.stats.vacated_weight), most));
        }
        const auto ipc = con::consolidate(cluster, {.preset = con::Preset::ipc,
                                                    .seed = seed,
                                                    .threads = options.threads,
                                                    .search = {.bound_method = con::BoundMethod::none}})
                             .stats;
        const auto ipc_gpus = static_cast<double>(ipc.vacated_gpus);
        const auto ipc_moves = static_cast<double>(ipc.relocation_cost);
        // Most GPUs of any plan with the moves of `ipc`, and fewest moves of any plan with its GPUs.
        double most_gpus = std::numeric_limits<double>::infinity(), fewest_moves = 0;
        double gpus = 0, moves = total;  // the same of the frontier's plans
        for (const auto& point : frontier.points) {
            const auto& stats = point.result.stats;
            const auto cost = static_cast<double>(stats.relocation_cost);
            const auto price = static_cast<double>(stats.price);
            const auto value_at_most = static_cast<double>(point.value_at_most_milli);
            most_gpus = std::min(most_gpus, (value_at_most + price * ipc_moves) / 1000);
            if (price > 0) fewest_moves = std::max(fewest_moves, (1000 * ipc_gpus - value_at_most) / price);
            if (cost <= ipc_moves) gpus = static_cast<double>(stats.vacated_gpus);
            if (static_cast<double>(stats.vacated_gpus) >= ipc_gpus) moves = std::min(moves, cost);
        }
        std::printf(" | %.1f | %.1f | %.1f", percent(gpus - ipc_gpus, most_gpus - ipc_gpus),
                    percent(ipc_moves - moves, ipc_moves), percent(ipc_moves - fewest_moves, ipc_moves));
        double better = 0;
        if (own)
            for (std::size_t i = 0; i < frontier.points.size(); ++i) {
                const auto& stats = frontier.points[i].result.stats;
                if (i + 1 < frontier.points.size() &&
                    frontier.points[i + 1].result.stats.price == stats.price)
                    continue;  // on the way to that price
                const auto alone =
                    con::consolidate(cluster, {.threads = options.threads,
                                               .price = stats.price,
                                               .search = {.bound_method = con::BoundMethod::none}});
                better =
                    std::max(better, percent(static_cast<double>(alone.stats.value_milli - stats.value_milli),
                                             static_cast<double>(alone.stats.value_milli)));
            }
        std::printf(own ? " | %.2f |\n" : " | |\n", better);
        std::fflush(stdout);
    });
    return all_valid ? 0 : 1;
}

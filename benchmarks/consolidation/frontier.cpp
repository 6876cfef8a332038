// SPDX-License-Identifier: Apache-2.0
// Frontiers of generated clusters: how far their plans are from the bounds, and how they stand beside the paper's algorithm.
//
// One line per scenario and seed: the gap to the bound of the plans next to 25, 50 and 75 % of all moves, in percent; with
// --before, how much of the gap between `ipc` and the bound at its number of moves the frontier closes, and how many moves
// fewer it takes for as many GPUs, and how many fewer any plan can take; with --own, by how much a search of its own at a point's price is worth more, at most.
#include "../support/rows.hpp"
#include "../support/timing.hpp"
#include "runs.hpp"

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/frontier.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;

namespace {

struct Paper {
    double gpus, moves;
};

std::map<std::pair<std::string, std::uint64_t>, Paper> read_paper(const std::string& path) {
    std::map<std::pair<std::string, std::uint64_t>, Paper> rows;
    for (const auto& row : bench::read_rows(path))
        if (row.at("algorithm") == "ipc")
            rows[{row.at("scenario").get<std::string>(), row.at("seed").get<std::uint64_t>()}] = {
                row.at("vacated_gpus").get<double>(),
                std::round(row.at("moves_per_node").get<double>() * row.at("vacated_nodes").get<double>())};
    return rows;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Frontiers of generated clusters beside the bounds and the paper's algorithm.",
                            argc, argv);
    bench::Runs runs{.seeds = {1, 2, 3}};
    if (line.smoke()) runs.nodes = 500, runs.seeds = {1};
    bool lp = false, own = false;
    std::string before;
    con::FrontierOptions options;
    runs.options(line);
    line.flag("--lp", lp, "the LP's bound instead of the counting one");
    line.flag("--own", own, "a search of its own at the price of every point");
    line.option("--points", options.points, "about how many plans a frontier has");
    line.option("--before", before, "rows of bench_consolidation_quality to compare with");
    line.read();
    options.threads = runs.threads;
    own = own || line.smoke();
    Context context;
    if (lp) options.bound_method = con::BoundMethod::lp, context.lp = milp::clp();
    const auto paper = before.empty() ? decltype(read_paper("")){} : read_paper(before);
    std::printf("| scenario | seed | points | s | gap at 25 %% | at 50 %% | at 75 %% | at 100 %% | of ipc's "
                "gap closed | fewer moves | at most | own search better |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    bool all_valid = true;
    runs.each([&](const auto& scenario, std::uint64_t seed, const ClusterSpec& spec, const Cluster& cluster) {
        con::Frontier frontier;
        const double time_s = bench::seconds([&] { frontier = con::frontier(cluster, options, context); });
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
        if (const auto row = paper.find({scenario.name, seed}); row != paper.end() && runs.nodes == 37'707) {
            double gpus = 0, moves = total, most = std::numeric_limits<double>::infinity(), least = 0;
            for (const auto& point : frontier.points) {
                const auto& stats = point.result.stats;
                if (static_cast<double>(stats.relocation_cost) <= row->second.moves)
                    gpus = static_cast<double>(stats.vacated_gpus);
                // No plan with that many moves vacates more, whatever the price of the bound.
                most = std::min(most, (static_cast<double>(point.value_at_most_milli) +
                                       static_cast<double>(stats.price) * row->second.moves) /
                                          1000);
                // Nor does any plan vacate as many GPUs with fewer moves.
                if (stats.price > 0)
                    least = std::max(
                        least, (1000 * row->second.gpus - static_cast<double>(point.value_at_most_milli)) /
                                   static_cast<double>(stats.price));
                if (static_cast<double>(stats.vacated_gpus) >= row->second.gpus)
                    moves = std::min(moves, static_cast<double>(stats.relocation_cost));
            }
            std::printf(" | %.1f | %.1f | %.1f", percent(gpus - row->second.gpus, most - row->second.gpus),
                        percent(row->second.moves - moves, row->second.moves),
                        percent(row->second.moves - least, row->second.moves));
        } else {
            std::printf(" | | | ");
        }
        double better = 0;
        if (own)
            for (std::size_t i = 0; i < frontier.points.size(); ++i) {
                const auto& stats = frontier.points[i].result.stats;
                if (i + 1 < frontier.points.size() &&
                    frontier.points[i + 1].result.stats.price == stats.price)
                    continue;  // on the way to that price
                const auto alone = con::consolidate(cluster, {.threads = options.threads,
                                                              .price = stats.price,
                                                              .bound_method = con::BoundMethod::none});
                better =
                    std::max(better, percent(static_cast<double>(alone.stats.value_milli - stats.value_milli),
                                             static_cast<double>(alone.stats.value_milli)));
            }
        std::printf(own ? " | %.2f |\n" : " | |\n", better);
        std::fflush(stdout);
    });
    return all_valid ? 0 : 1;
}

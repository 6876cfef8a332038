// SPDX-License-Identifier: Apache-2.0
// Frontiers of generated clusters: how far their plans are from the bounds, and how they stand beside the paper's algorithm.
//
//   bench_consolidation_frontier [--nodes N] [--seeds a,b,...] [--scenarios name,...] [--threads N] [--lp] [--own]
//                                [--before rows/quality_before.jsonl] [--smoke]
//
// One line per scenario and seed: the gap to the bound of the plans next to 25, 50 and 75 % of all moves, in percent; with
// --before, how much of the gap between `ipc` and the bound at its number of moves the frontier closes, and how many moves
// fewer it takes for as many GPUs; with --own, by how much a search of its own at a point's price is worth more, at most.
#include "rows.hpp"
#include "scenarios.hpp"

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/frontier.hpp>
#include <gpusched/milp/clp.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;
using bench::field, bench::split;

namespace {

struct Paper {
    double gpus, moves;
};

std::map<std::pair<std::string, std::string>, Paper> read_paper(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        std::cerr << "cannot read " << path << '\n';
        std::exit(2);
    }
    std::map<std::pair<std::string, std::string>, Paper> rows;
    for (std::string line; std::getline(file, line);)
        if (field(line, "algorithm") == "ipc")
            rows[{field(line, "scenario"), field(line, "seed")}] = {
                std::atof(field(line, "vacated_gpus").c_str()),
                std::round(std::atof(field(line, "moves_per_node").c_str()) *
                           std::atof(field(line, "vacated_nodes").c_str()))};
    return rows;
}

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

int main(int argc, char** argv) {
    std::int64_t nodes = 37'707;
    std::vector<std::string> seeds{"1", "2", "3"}, wanted;
    con::FrontierOptions options;
    options.threads = 2;
    Context context;
    bool own = false;
    std::string before;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const auto value = [&]() -> std::string { return ++i < argc ? argv[i] : ""; };
        if (name == "--nodes")
            nodes = std::atoll(value().c_str());
        else if (name == "--seeds")
            seeds = split(value());
        else if (name == "--scenarios")
            wanted = split(value());
        else if (name == "--threads")
            options.threads = static_cast<std::size_t>(std::atoll(value().c_str()));
        else if (name == "--lp")
            options.bound_method = con::BoundMethod::lp, context.lp = milp::clp();
        else if (name == "--own")
            own = true;
        else if (name == "--before")
            before = value();
        else if (name == "--smoke")
            nodes = 500, seeds = {"1"}, own = true;
        else {
            std::cerr << "unknown argument " << name << '\n';
            return 2;
        }
    }
    const auto paper = before.empty() ? decltype(read_paper("")){} : read_paper(before);
    std::printf("| scenario | seed | points | s | gap at 25 %% | at 50 %% | at 75 %% | at 100 %% | of ipc's "
                "gap closed | fewer moves | own search better |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|\n");
    bool all_valid = true;
    for (const auto& scenario : bench::scenarios) {
        if (wanted.empty() ? scenario.constrained()
                           : std::find(wanted.begin(), wanted.end(), scenario.name) == wanted.end())
            continue;
        for (const auto& seed : seeds) {
            const auto spec = scenario.generate(nodes, std::strtoull(seed.c_str(), nullptr, 10));
            const auto cluster = Cluster::build(spec);
            const auto start = std::chrono::steady_clock::now();
            const auto frontier = con::frontier(cluster, options, context);
            const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
            if (frontier.points.empty()) continue;
            for (const auto& point : frontier.points)
                all_valid = all_valid && verify::plan(spec, to_spec(point.result.plan, cluster)).ok;
            const auto total = static_cast<double>(frontier.points.back().result.stats.relocation_cost);
            std::printf("| %s | %s | %zu | %.2f", scenario.name, seed.c_str(), frontier.points.size(),
                        time.count());
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
            if (const auto row = paper.find({scenario.name, seed}); row != paper.end() && nodes == 37'707) {
                double gpus = 0, moves = total, most = std::numeric_limits<double>::infinity();
                for (const auto& point : frontier.points) {
                    const auto& stats = point.result.stats;
                    if (static_cast<double>(stats.relocation_cost) <= row->second.moves)
                        gpus = static_cast<double>(stats.vacated_gpus);
                    // No plan with that many moves vacates more, whatever the price of the bound.
                    most = std::min(most, (static_cast<double>(point.value_at_most_milli) +
                                           static_cast<double>(stats.price) * row->second.moves) /
                                              1000);
                    if (static_cast<double>(stats.vacated_gpus) >= row->second.gpus)
                        moves = std::min(moves, static_cast<double>(stats.relocation_cost));
                }
                std::printf(" | %.1f | %.1f", percent(gpus - row->second.gpus, most - row->second.gpus),
                            percent(row->second.moves - moves, row->second.moves));
            } else {
                std::printf(" | | ");
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
                    better = std::max(
                        better, percent(static_cast<double>(alone.stats.value_milli - stats.value_milli),
                                        static_cast<double>(alone.stats.value_milli)));
                }
            std::printf(own ? " | %.2f |\n" : " | |\n", better);
            std::fflush(stdout);
        }
    }
    return all_valid ? 0 : 1;
}

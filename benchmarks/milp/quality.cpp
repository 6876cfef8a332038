// SPDX-License-Identifier: Apache-2.0
// Compares the consolidation heuristics with the optimum of the model. Prints one JSON line per run, and a
// summary on standard error.
//
// The model's optimum ignores the order of moves and network constraints, so gaps are "at most". If the
// solver stops early, the gap refers to its bound or to the counting bound, and the run counts as bounded.
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/milp/consolidation.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

using namespace gpusched;

namespace {

struct Sums {
    int runs = 0, optimal = 0;
    int best[2] = {0, 0};        // runs in which fast, best reach the optimum or the bound
    double gap[2] = {0, 0};      // sum of (nodes - least) / least
    double largest[2] = {0, 0};  // of them
    double solve_s = 0;
};

void consolidation_row(int nodes, double load, std::uint64_t seed, double time_limit, Sums& sums) {
    const auto cluster = Cluster::build(sim::generate_cluster({.nodes = nodes, .seed = seed, .load = load}));
    int occupied = 0;
    for (const auto node : cluster.nodes()) occupied += cluster.occupants(node) > 0 ? 1 : 0;
    const auto bound =
        gpusched::consolidation::bound(cluster, gpusched::consolidation::BoundMethod::counting);
    double start = bench::clock_s();
    const auto model = milp::consolidation(cluster, {.form = milp::ConsolidationForm::classes,
                                                     .goal = milp::ConsolidationGoal::nodes,
                                                     .occupied_at_least = bound.occupied_nodes_at_least});
    const double build = bench::clock_s() - start;

    // The heuristics run first; the solver starts from the better plan.
    std::size_t left[2] = {0, 0};
    double seconds[2] = {0, 0};
    std::vector<NodeId> placement = model.home;
    for (const int k : {0, 1}) {
        start = bench::clock_s();
        const auto result = gpusched::consolidation::consolidate(
            cluster,
            {.preset = k == 0 ? gpusched::consolidation::Preset::fast : gpusched::consolidation::Preset::best,
             .seed = seed,
             .threads = 1,
             .objective = gpusched::consolidation::Objective::nodes});
        seconds[k] = bench::clock_s() - start;
        left[k] = static_cast<std::size_t>(occupied) - result.plan.vacated_nodes.size();
        if (k == 0 || left[1] < left[0]) {
            placement = model.home;
            for (const auto& move : result.plan.moves) placement[index(move.task)] = move.to;
        }
    }
    std::vector<double> from;
    try {
        from = model.encode(placement);
    } catch (const InvalidInput&) {  // a plan may use nodes that the model leaves out, such as empty ones
        from = model.encode(model.home);
    }
    start = bench::clock_s();
    const auto solution = milp::solve(model, {.time_limit = time_limit, .start = from}, "auto");
    const double solve = bench::clock_s() - start;
    const bool optimal = solution.status == milp::Status::optimal;
    const double proved = std::isfinite(solution.bound) ? std::ceil(solution.bound - 1e-6) : 0;
    const double least =
        optimal ? solution.objective : std::max(proved, static_cast<double>(bound.occupied_nodes_at_least));
    bench::print({{"benchmark", "consolidation"},
                  {"nodes", nodes},
                  {"load", load},
                  {"seed", seed},
                  {"occupied", occupied},
                  {"rows", model.rows()},
                  {"columns", model.columns()},
                  {"build_s", bench::rounded(build, 4)},
                  {"solve_s", bench::rounded(solve, 2)},
                  {"status", enum_name(solution.status)},
                  {"found", std::round(solution.has_solution() ? solution.objective : -1.0)},
                  {"at_least", std::round(least)},
                  {"counting_bound", bound.occupied_nodes_at_least},
                  {"fast", left[0]},
                  {"fast_s", bench::rounded(seconds[0], 4)},
                  {"best", left[1]},
                  {"best_s", bench::rounded(seconds[1], 4)}});
    ++sums.runs;
    sums.optimal += optimal ? 1 : 0;
    sums.solve_s += solve;
    for (const int k : {0, 1}) {
        const double gap = least > 0 ? (static_cast<double>(left[k]) - least) / least : 0;
        sums.best[k] += gap <= 0 ? 1 : 0;
        sums.gap[k] += gap;
        sums.largest[k] = std::max(sums.largest[k], gap);
    }
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Consolidation heuristics against the optimum of the model.", argc, argv);
    std::vector<int> nodes{10, 25, 50, 100};
    std::vector<double> loads{1.0, 0.8};
    int seeds = 10;
    double time_limit = 60;
    if (line.smoke()) nodes = {10}, loads = {1.0}, seeds = 1, time_limit = 5;
    line.option("--nodes", nodes, "sizes of the clusters")->check(bench::at_least(1));
    line.option("--seeds", seeds, "how many seeds")->check(bench::at_least(1));
    line.option("--load", loads, "loads of the clusters")->check(bench::at_least(0));
    line.option("--time-limit", time_limit, "seconds of the solver")->check(bench::at_least(0));
    line.read();
    if (milp::available_solvers().empty()) {
        std::fprintf(stderr, "no MILP solver was compiled in: nothing to compare with\n");
        return 0;
    }
    std::fprintf(
        stderr,
        "nodes load | runs, of them solved to optimality, mean s | fast, best: reach the optimum or bound, "
        "mean gap at most, largest\n");
    for (const double load : loads)
        for (const int n : nodes) {
            Sums sums;
            for (int seed = 1; seed <= seeds; ++seed)
                consolidation_row(n, load, static_cast<std::uint64_t>(seed), time_limit, sums);
            std::fprintf(stderr, "%5d %.2f | %d %d %6.2f |", n, load, sums.runs, sums.optimal,
                         sums.solve_s / sums.runs);
            for (const int k : {0, 1})
                std::fprintf(stderr, " %d %.2f %% %.2f %%%s", sums.best[k], 100 * sums.gap[k] / sums.runs,
                             100 * sums.largest[k], k == 0 ? ";" : "\n");
        }
}

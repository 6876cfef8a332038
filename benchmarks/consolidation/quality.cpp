// SPDX-License-Identifier: Apache-2.0
// Measures quality and speed of consolidation on generated clusters.
//
// Prints one JSON line per run, or with --summary a table of such lines. With --gates the presets must reach
// minimum shares of the bound; otherwise the exit status is 1. The scenarios are those of
// docs/consolidation.md, by default without constrained.80, which has every kind of constraint.
#include "../support/enumerator.hpp"
#include "../support/memory.hpp"
#include "../support/plan_hash.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"
#include "baselines.hpp"
#include "runs.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;

namespace {

struct Arguments {
    bench::Runs runs{.seeds = {1, 2, 3, 4, 5}};
    std::vector<std::string> algorithms{"first_fit", "random_eviction", "highest_utilisation", "ipc", "fast",
                                        "best"};
    bool no_lp = false, deadlines = false, gates = false;
    std::string summary{};
};

Arguments parse(int argc, char** argv) {
    bench::CommandLine line("Quality and speed of consolidation on generated clusters.", argc, argv);
    Arguments arguments;
    auto known = arguments.algorithms;
    known.push_back("ipc_without_memory");
    auto& runs = arguments.runs;
    if (line.smoke()) runs.nodes = 600, runs.seeds = {1}, runs.wanted = bench::scenario_names(true);
    runs.options(line);
    line.option("--algorithms", arguments.algorithms, "algorithms to compare")->check(CLI::IsMember(known));
    line.flag("--no-lp", arguments.no_lp, "the counting bound instead of the LP's");
    line.flag("--deadlines", arguments.deadlines, "time limits of 20, 200 and 2000 ms instead of none");
    auto* const summary = line.option("--summary", arguments.summary, "rows to print a table of");
    line.flag("--gates", arguments.gates, "exit status 1 when a gate is missed")->needs(summary);
    line.read();
    return arguments;
}

con::Result run(const std::string& algorithm, const Cluster& cluster, std::uint64_t seed, std::size_t threads,
                std::optional<double> time_limit) {
    con::Options options{.seed = seed,
                         .threads = threads,
                         .time_limit = time_limit,
                         .search = {.bound_method = con::BoundMethod::none}};
    if (algorithm == "first_fit")
        return con::consolidate(cluster, baselines::FirstFit{}, baselines::direct(options));
    if (algorithm == "highest_utilisation")
        return con::consolidate(cluster, baselines::HighestUtilisation{}, baselines::direct(options));
    if (algorithm == "random_eviction") return baselines::random_eviction(cluster, seed);
    if (algorithm == "ipc_without_memory") {
        auto policies = con::presets::ipc();
        policies.switches.remember_failures = false;
        return con::consolidate(cluster, policies, options);
    }
    options.preset = bench::enumerator<consolidation::Preset>(algorithm);
    return con::consolidate(cluster, options);
}

void print_row(const bench::Scenario& scenario, std::uint64_t seed, const std::string& algorithm,
               const con::Result& result, const Bound& bound, double ms, std::size_t threads,
               std::optional<double> time_limit, const PlanSpec& plan, bool valid) {
    using bench::percent, bench::rounded;
    const auto& s = result.stats;
    bench::print(
        {{"scenario", scenario.name},
         {"seed", seed},
         {"algorithm", algorithm},
         {"threads", threads},
         {"valid", valid},
         {"stop_reason", enum_name(result.stop_reason)},
         {"vacated_nodes", s.vacated_nodes},
         {"vacated_gpus", s.vacated_gpus},
         {"relocation_cost", s.relocation_cost},
         {"bound_method", bound.method},
         {"nodes_percent", rounded(percent(s.vacated_nodes, bound.vacated_nodes_at_most), 3)},
         {"gpus_percent", rounded(percent(s.vacated_gpus, bound.vacated_gpus_at_most), 3)},
         {"moves_per_node", rounded(s.moves_per_vacated_node(), 4)},
         {"not_full_fall_percent", rounded(percent(s.not_fully_occupied_before - s.not_fully_occupied_after,
                                                   s.not_fully_occupied_before),
                                           3)},
         {"waves", s.waves},
         {"first_wave_share", rounded(s.first_wave_share(), 4)},
         {"hops", s.hops},
         {"dropped_chains", s.dropped_chains},
         {"plan_hash", bench::plan_hash(plan)},
         {"ms", rounded(ms, 2)},
         {"time_limit_ms", 1e3 * time_limit.value_or(0)},
         {"peak_mib", rounded(bench::peak_memory_kib() / 1024, 1)}});
}

int measure(const Arguments& arguments) {
    bool all_valid = true;
    arguments.runs.each(
        [&](const auto& scenario, std::uint64_t seed, const ClusterSpec& spec, const Cluster& cluster) {
            const auto method = arguments.no_lp ? con::BoundMethod::counting : con::BoundMethod::lp;
            const auto bound = con::bound(cluster, method, {}, {.lp = milp::clp()});
            std::vector<std::optional<double>> limits{std::nullopt};
            if (arguments.deadlines) limits = {0.02, 0.2, 2.0};
            const auto threads = arguments.runs.threads;
            for (const auto& algorithm : arguments.algorithms)
                for (const auto limit : limits) {
                    con::Result result;
                    const double ms =
                        1e3 * bench::seconds([&] { result = run(algorithm, cluster, seed, threads, limit); });
                    const auto plan = to_spec(result.plan, cluster);
                    const bool valid = verify::plan(spec, plan).ok;
                    all_valid = all_valid && valid;
                    print_row(scenario, seed, algorithm, result, bound, ms, threads, limit, plan, valid);
                }
        });
    return all_valid ? 0 : 1;
}

/// Means over the seeds, by scenario and algorithm, then by column of the summary.
using Means = std::map<std::pair<std::string, std::string>, std::map<std::string, double>>;

/// Prints every gate with the measured value, and how many gates had no runs. Moves have no gate: plans that
/// vacate more need more moves per node, so bench_consolidation_frontier judges them.
/// @return how many gates were missed
int check_gates(const Means& means) {
    struct Share {
        const char *scenario, *algorithm;
        double nodes, gpus;
    };
    static constexpr Share shares[] = {{"random.80", "fast", 95, 97}, {"random.80", "best", 95.5, 98},
                                       {"spread.80", "fast", 93, 92}, {"spread.80", "best", 97, 98.5},
                                       {"packed.80", "fast", 89, 95}, {"packed.80", "best", 91, 96},
                                       {"cpu-tight", "fast", 85, 90}, {"cpu-tight", "best", 86.5, 91.5},
                                       {"random.90", "fast", 93, 95}, {"random.90", "best", 94, 95.5}};
    int missed = 0, without_runs = 0;
    const auto gate = [&](const std::string& name, double value, bool at_least, double limit) {
        const bool ok = at_least ? value >= limit : value <= limit;
        missed += ok ? 0 : 1;
        std::printf("%-46s %7.2f  %s %7.2f  %s\n", name.c_str(), value, at_least ? ">=" : "<=", limit,
                    ok ? "ok" : "MISSED");
    };
    std::printf("\n");
    for (const auto& share : shares) {
        const auto run = means.find({share.scenario, share.algorithm});
        if (run == means.end()) {
            ++without_runs;
            continue;
        }
        const auto name = std::string(share.algorithm) + " " + share.scenario + ": ";
        gate(name + "nodes, % of the bound", run->second.at("nodes_percent"), true, share.nodes);
        gate(name + "GPUs, % of the bound", run->second.at("gpus_percent"), true, share.gpus);
        if (std::string(share.scenario) != "cpu-tight")
            gate(name + "fall of nodes not full, %", run->second.at("not_full_fall_percent"), true,
                 std::string(share.algorithm) == "fast" ? 85 : 91);
    }
    for (const auto* algorithm : {"fast", "best"}) {
        double memory = 0;
        for (const auto& [key, columns] : means)
            if (key.second == algorithm) memory = std::max(memory, columns.at("peak_mib"));
        if (memory > 0) gate(std::string(algorithm) + ": peak memory, MiB", memory, false, 1024);
    }
    std::printf("%d gates missed; %d of %zu rows of gates had no runs\n", missed, without_runs,
                std::size(shares));
    return missed;
}

int summarise(const std::string& path, bool gates) {
    struct Cells {
        std::map<std::string, std::vector<double>> columns;
        int invalid = 0;
    };
    const std::vector<std::string> columns{"nodes_percent",         "gpus_percent", "moves_per_node",
                                           "not_full_fall_percent", "ms",           "peak_mib"};
    std::map<std::tuple<std::string, std::string, double>, Cells> table;
    for (const auto& row : bench::read_rows(path)) {
        auto& cells = table[{row.at("scenario").get<std::string>(), row.at("algorithm").get<std::string>(),
                             row.at("time_limit_ms").get<double>()}];
        for (const auto& column : columns) cells.columns[column].push_back(row.at(column).get<double>());
        cells.invalid += !row.at("valid").get<bool>();
    }
    std::printf("| scenario | algorithm | limit ms | runs | nodes %% of bound | GPUs %% of bound | moves per "
                "node | not-full fall %% | ms (min..max) | MiB | invalid |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|\n");
    Means means;
    for (const auto& [key, cells] : table) {
        if (std::get<2>(key) == 0)
            for (const auto& [column, values] : cells.columns)
                means[{std::get<0>(key), std::get<1>(key)}][column] =
                    std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        const auto spread = [&](const std::string& column) {
            const auto& values = cells.columns.at(column);
            double sum = 0, squares = 0;
            for (const double v : values) sum += v;
            const double mean = sum / static_cast<double>(values.size());
            for (const double v : values) squares += (v - mean) * (v - mean);
            char text[64];
            std::snprintf(text, sizeof text, "%.2f ± %.2f", mean,
                          values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1))
                                            : 0.0);
            return std::string(text);
        };
        auto ms = cells.columns.at("ms");
        std::sort(ms.begin(), ms.end());
        const auto& memory = cells.columns.at("peak_mib");
        std::printf("| %s | %s | %.1f | %zu | %s | %s | %s | %s | %.0f (%.0f..%.0f) | %.0f | %d |\n",
                    std::get<0>(key).c_str(), std::get<1>(key).c_str(), std::get<2>(key), ms.size(),
                    spread("nodes_percent").c_str(), spread("gpus_percent").c_str(),
                    spread("moves_per_node").c_str(), spread("not_full_fall_percent").c_str(),
                    ms[ms.size() / 2], ms.front(), ms.back(), *std::max_element(memory.begin(), memory.end()),
                    cells.invalid);
    }
    return gates && check_gates(means) > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse(argc, argv);
    return arguments.summary.empty() ? measure(arguments) : summarise(arguments.summary, arguments.gates);
}

// SPDX-License-Identifier: Apache-2.0
// Measures how many of given nodes consolidation clears.
//
// Prints one JSON line per run, or with --summary a table of such lines. The nodes to clear are drawn at
// random from those with tasks that can all leave; if there are fewer than requested, all of them are taken.
// The time is the shortest of `--repeats` runs, without loading and the bound. With --milp each case is also
// solved as a mixed-integer program (clear_model.hpp) that starts from the plan of the last preset; its row
// has the preset "milp". With --gates the exit status is 1 if the preset `best` reaches less than 98 % of the
// bound in the mean of all its rows.
#include "../support/enumerator.hpp"
#include "../support/plan_hash.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"
#include "clear_model.hpp"
#include "runs.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;

namespace {

struct Arguments {
    bench::Runs runs{.nodes = 2'000};
    std::vector<std::size_t> clear{50, 100, 150, 200};
    std::vector<std::string> presets{"ipc", "fast", "best"};
    int repeats = 3;
    double milp_s = 0;
    std::size_t milp_nodes = std::numeric_limits<std::size_t>::max();
    bool no_lp = false, gates = false;
    std::string summary{};
};

Arguments parse(int argc, char** argv) {
    bench::CommandLine line("How many of given nodes consolidation clears.", argc, argv);
    Arguments arguments;
    auto& runs = arguments.runs;
    if (line.smoke()) {
        runs.nodes = 400, runs.seeds = {1};
        arguments.clear = {20}, arguments.repeats = 1;
    } else {
        for (std::uint64_t seed = 301; seed <= 320; ++seed) runs.seeds.push_back(seed);
    }
    runs.options(line);
    line.option("--clear", arguments.clear, "how many nodes to clear");
    line.option("--presets", arguments.presets, "presets of consolidation")
        ->check(CLI::IsMember(arguments.presets));
    line.option("--repeats", arguments.repeats, "runs; the fastest one counts")->check(bench::at_least(1));
    line.option("--milp", arguments.milp_s, "seconds for the program of each pool of nodes; 0 = no programs")
        ->check(bench::at_least(0));
    line.option("--milp-nodes", arguments.milp_nodes, "most nodes of a program; tasks on other nodes stay");
    line.flag("--no-lp", arguments.no_lp, "the counting bound instead of the LP's");
    auto* const summary = line.option("--summary", arguments.summary, "rows to print a table of");
    line.flag("--gates", arguments.gates, "exit status 1 when a gate is missed")->needs(summary);
    line.read();
    return arguments;
}

// The nodes to clear, ascending.
std::vector<NodeId> draw(const Cluster& cluster, std::size_t count, std::uint64_t seed) {
    const auto scope = con::make_scope(cluster, {});
    std::vector<NodeId> nodes;
    for (const auto node : cluster.nodes())
        if (scope.may_vacate[index(node)]) nodes.push_back(node);
    Rng rng(seed);
    rng.shuffle(std::span(nodes));
    nodes.resize(std::min(count, nodes.size()));
    std::sort(nodes.begin(), nodes.end());
    return nodes;
}

int measure(const Arguments& arguments) {
    bool all_valid = true;
    arguments.runs.each([&](const auto& scenario, std::uint64_t seed, const ClusterSpec& spec,
                            const Cluster& cluster) {
        for (const auto count : arguments.clear) {
            con::Options options{.seed = seed,
                                 .threads = arguments.runs.threads,
                                 .search = {.bound_method = con::BoundMethod::none}};
            options.clear = draw(cluster, count, seed);
            const auto method = arguments.no_lp ? con::BoundMethod::counting : con::BoundMethod::lp;
            const auto bound = con::bound(cluster, method, options, {.lp = milp::clp()});
            const auto print = [&](const std::string& preset, const bench::Row& columns) {
                bench::Row row{{"scenario", scenario.name},
                               {"nodes", arguments.runs.nodes},
                               {"seed", seed},
                               {"clear", options.clear->size()},
                               {"preset", preset}};
                row.update(columns);
                row["bound_method"] = bound.method;
                row["nodes_at_most"] = bound.vacated_nodes_at_most;
                row["gpus_at_most"] = bound.vacated_gpus_at_most;
                row["gpus_percent"] =
                    bench::rounded(bench::percent(row["vacated_gpus"].template get<std::int64_t>(),
                                                  bound.vacated_gpus_at_most),
                                   3);
                bench::print(row);
            };
            Plan last;
            for (const auto& preset : arguments.presets) {
                options.preset = bench::enumerator<consolidation::Preset>(preset);
                con::Result result;
                double least_s = std::numeric_limits<double>::infinity(), least_processor_s = least_s;
                for (int run = 0; run < arguments.repeats; ++run) {
                    const auto start = bench::processor_s();
                    least_s = std::min(least_s,
                                       bench::seconds([&] { result = con::consolidate(cluster, options); }));
                    least_processor_s = std::min(least_processor_s, bench::processor_s() - start);
                }
                const auto plan = to_spec(result.plan, cluster);
                const bool valid = verify::plan(spec, plan).ok;
                all_valid = all_valid && valid;
                const auto& s = result.stats;
                print(preset, {{"valid", valid},
                               {"vacated_nodes", s.vacated_nodes},
                               {"vacated_gpus", s.vacated_gpus},
                               {"moves", s.moves},
                               {"waves", s.waves},
                               {"hops", s.hops},
                               {"dropped_chains", s.dropped_chains},
                               {"plan_hash", bench::plan_hash(plan)},
                               {"ms", bench::rounded(1e3 * least_s, 3)},
                               {"processor_ms", bench::rounded(1e3 * least_processor_s, 3)}});
                last = std::move(result.plan);
            }
            if (arguments.milp_s == 0) continue;
            const auto found = bench::ClearModel(spec, cluster, *options.clear, last)
                                   .solve(arguments.milp_s, arguments.milp_nodes);
            print("milp", {{"vacated_nodes", found.vacated_nodes},
                           {"vacated_gpus", found.vacated_gpus},
                           {"moves", found.moves},
                           {"waves", 0},
                           {"dropped_chains", 0},
                           {"ms", bench::rounded(1e3 * found.solve_s, 3)},
                           {"processor_ms", bench::rounded(1e3 * found.solve_processor_s, 3)},
                           {"milp_gpus_at_most", found.gpus_at_most},
                           {"programs", found.programs},
                           {"whole", found.whole},
                           {"solved", found.solved},
                           {"columns", found.columns}});
        }
    });
    return all_valid ? 0 : 1;
}

int summarise(const Arguments& arguments) {
    struct Cell {
        std::map<std::string, double> sum;
        double least_percent = 100, most_ms = 0;
        int runs = 0, invalid = 0, programs = 0, solved = 0;
    };
    std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>, Cell> table;
    double best_percent = 0;
    int best_runs = 0;
    for (const auto& row : bench::read_rows(arguments.summary)) {
        const auto preset = row.at("preset").get<std::string>();
        auto& cell = table[{preset, row.at("scenario").get<std::string>(),
                            row.at("nodes").get<std::int64_t>(), row.at("clear").get<std::int64_t>()}];
        for (const auto* column : {"vacated_nodes", "vacated_gpus", "nodes_at_most", "gpus_at_most",
                                   "gpus_percent", "moves", "waves", "dropped_chains", "ms", "processor_ms"})
            cell.sum[column] += row.value(column, 0.0);
        const auto gpus_percent = row.at("gpus_percent").get<double>();
        cell.least_percent = std::min(cell.least_percent, gpus_percent);
        cell.most_ms = std::max(cell.most_ms, row.at("ms").get<double>());
        ++cell.runs;
        cell.invalid += !row.value("valid", true);  // a program does not order its moves
        cell.programs += row.value("programs", 0);
        cell.solved += row.value("solved", 0);
        if (preset == "best") {
            best_percent += gpus_percent;
            ++best_runs;
        }
    }
    std::printf("| preset | scenario | nodes | to clear | runs | cleared | GPUs | GPUs at most | GPUs %% "
                "(least) | moves | waves | dropped | ms (most) | processor ms | programs solved | invalid |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (const auto& [key, cell] : table) {
        const auto mean = [&](const char* column) { return cell.sum.at(column) / cell.runs; };
        std::printf("| %s | %s | %lld | %lld | %d | %.1f | %.1f | %.1f | %.2f (%.2f) | %.1f | %.1f | %.2f | "
                    "%.2f (%.2f) | %.2f | %d of %d | %d |\n",
                    std::get<0>(key).c_str(), std::get<1>(key).c_str(),
                    static_cast<long long>(std::get<2>(key)), static_cast<long long>(std::get<3>(key)),
                    cell.runs, mean("vacated_nodes"), mean("vacated_gpus"), mean("gpus_at_most"),
                    mean("gpus_percent"), cell.least_percent, mean("moves"), mean("waves"),
                    mean("dropped_chains"), mean("ms"), cell.most_ms, mean("processor_ms"), cell.solved,
                    cell.programs, cell.invalid);
    }
    if (!arguments.gates) return 0;
    const double share = best_runs > 0 ? best_percent / best_runs : 0;
    std::printf("\nbest, mean share of the bound on GPUs: %.2f %%, gate >= 98: %s\n", share,
                share >= 98 ? "ok" : "MISSED");
    return share >= 98 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse(argc, argv);
    return arguments.summary.empty() ? measure(arguments) : summarise(arguments);
}

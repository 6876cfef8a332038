// SPDX-License-Identifier: Apache-2.0
// How many of given nodes consolidation clears: one JSON line per run, or a summary table of such lines.
//
//   bench_consolidation_clear [--nodes N] [--seeds a,b,...] [--scenarios name,...] [--clear k,l,...]
//                             [--presets ipc,fast,best] [--threads N] [--repeats N] [--no-lp] [--smoke] > rows.jsonl
//   bench_consolidation_clear --summary rows.jsonl [--before rows.jsonl] [--gates]
//
// The nodes to clear are drawn at random from those that hold a task and none that must stay. The time is the least of
// `--repeats` runs, without loading and the bound. With --gates the exit status is 1 when the mean share of the bound over
// all rows of the preset `best` is below 98 %, or any run is below the same run of --before.
#include "rows.hpp"
#include "scenarios.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/milp/clp.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;
using bench::field, bench::Scenario, bench::scenarios, bench::split;

namespace {

struct Arguments {
    std::int64_t nodes = 2'000;
    std::vector<std::string> seeds{"301", "302", "303", "304", "305", "306", "307", "308", "309", "310",
                                   "311", "312", "313", "314", "315", "316", "317", "318", "319", "320"},
        scenarios, clear{"50", "100", "150", "200"}, presets{"ipc", "fast", "best"};
    std::size_t threads = 2;
    int repeats = 3;
    bool lp = true, gates = false;
    std::string summary, before;
};

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (const auto& scenario : scenarios)
        if (!scenario.constrained()) arguments.scenarios.emplace_back(scenario.name);
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const auto value = [&]() -> std::string {
            if (++i < argc) return argv[i];
            std::cerr << name << " needs a value\n";
            std::exit(2);
        };
        if (name == "--nodes")
            arguments.nodes = std::atoll(value().c_str());
        else if (name == "--seeds")
            arguments.seeds = split(value());
        else if (name == "--scenarios")
            arguments.scenarios = split(value());
        else if (name == "--clear")
            arguments.clear = split(value());
        else if (name == "--presets")
            arguments.presets = split(value());
        else if (name == "--threads")
            arguments.threads = static_cast<std::size_t>(std::atoll(value().c_str()));
        else if (name == "--repeats")
            arguments.repeats = std::max(1, std::atoi(value().c_str()));
        else if (name == "--no-lp")
            arguments.lp = false;
        else if (name == "--smoke")
            arguments.nodes = 400, arguments.seeds = {"1"}, arguments.clear = {"20"}, arguments.repeats = 1;
        else if (name == "--summary")
            arguments.summary = value();
        else if (name == "--before")
            arguments.before = value();
        else if (name == "--gates")
            arguments.gates = true;
        else {
            std::cerr << "unknown argument " << name << '\n';
            std::exit(2);
        }
    }
    if ((arguments.gates || !arguments.before.empty()) && arguments.summary.empty()) {
        std::cerr << "--gates, --before: look at measured rows; expected --summary rows.jsonl beside them\n";
        std::exit(2);
    }
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

con::Preset preset_of(const std::string& name) {
    for (const auto preset : {con::Preset::ipc, con::Preset::fast, con::Preset::best})
        if (name == enum_name(preset)) return preset;
    std::cerr << "unknown preset " << name << '\n';
    std::exit(2);
}

double percent(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100.0;
}

int measure(const Arguments& arguments) {
    bool all_valid = true;
    for (const auto& scenario : scenarios) {
        if (std::find(arguments.scenarios.begin(), arguments.scenarios.end(), scenario.name) ==
            arguments.scenarios.end())
            continue;
        for (const auto& seed_text : arguments.seeds) {
            const auto seed = std::strtoull(seed_text.c_str(), nullptr, 10);
            const auto spec = scenario.generate(arguments.nodes, seed);
            const auto cluster = Cluster::build(spec);
            for (const auto& count : arguments.clear) {
                con::Options options{
                    .seed = seed, .threads = arguments.threads, .bound_method = con::BoundMethod::none};
                options.clear = draw(cluster, std::strtoull(count.c_str(), nullptr, 10), seed);
                const auto method = arguments.lp ? con::BoundMethod::lp : con::BoundMethod::counting;
                const auto bound = con::bound(cluster, method, options, {.lp = milp::clp()});
                for (const auto& preset : arguments.presets) {
                    options.preset = preset_of(preset);
                    con::Result result;
                    double ms = std::numeric_limits<double>::infinity();
                    for (int run = 0; run < arguments.repeats; ++run) {
                        const auto start = std::chrono::steady_clock::now();
                        result = con::consolidate(cluster, options);
                        ms = std::min(ms, std::chrono::duration<double, std::milli>(
                                              std::chrono::steady_clock::now() - start)
                                              .count());
                    }
                    const bool valid = verify::plan(spec, to_spec(result.plan, cluster)).ok;
                    all_valid = all_valid && valid;
                    const auto& s = result.stats;
                    std::printf(
                        "{\"scenario\": \"%s\", \"seed\": %s, \"clear\": %zu, \"preset\": \"%s\", \"valid\": "
                        "%s, \"vacated_nodes\": %lld, \"vacated_gpus\": %lld, \"bound_method\": \"%s\", "
                        "\"nodes_at_most\": %lld, \"gpus_at_most\": %lld, \"gpus_percent\": %.3f, \"moves\": "
                        "%lld, \"waves\": %lld, \"hops\": %lld, \"dropped_chains\": %lld, \"ms\": %.3f}\n",
                        scenario.name, seed_text.c_str(), options.clear->size(), preset.c_str(),
                        valid ? "true" : "false", static_cast<long long>(s.vacated_nodes),
                        static_cast<long long>(s.vacated_gpus), bound.method.c_str(),
                        static_cast<long long>(bound.vacated_nodes_at_most),
                        static_cast<long long>(bound.vacated_gpus_at_most),
                        percent(s.vacated_gpus, bound.vacated_gpus_at_most), static_cast<long long>(s.moves),
                        static_cast<long long>(s.waves), static_cast<long long>(s.hops),
                        static_cast<long long>(s.dropped_chains), ms);
                    std::fflush(stdout);
                }
            }
        }
    }
    return all_valid ? 0 : 1;
}

std::vector<std::string> read_rows(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        std::cerr << "cannot read " << path << '\n';
        std::exit(2);
    }
    std::vector<std::string> rows;
    for (std::string line; std::getline(file, line);)
        if (!field(line, "scenario").empty()) rows.push_back(line);
    return rows;
}

int summarise(const Arguments& arguments) {
    using Key = std::tuple<std::string, std::string, std::string, std::string>;
    std::map<Key, std::int64_t> before;
    if (!arguments.before.empty())
        for (const auto& row : read_rows(arguments.before))
            before[{field(row, "scenario"), field(row, "seed"), field(row, "clear"), field(row, "preset")}] =
                std::atoll(field(row, "vacated_gpus").c_str());
    struct Cell {
        std::map<std::string, double> sum;
        double least_percent = 100, most_ms = 0;
        int runs = 0, invalid = 0, below = 0, compared = 0;
    };
    std::map<std::tuple<std::string, std::string, std::int64_t>, Cell> table;
    Cell best;
    for (const auto& row : read_rows(arguments.summary)) {
        const auto preset = field(row, "preset");
        auto& cell = table[{preset, field(row, "scenario"), std::atoll(field(row, "clear").c_str())}];
        const auto old =
            before.find({field(row, "scenario"), field(row, "seed"), field(row, "clear"), preset});
        for (auto* c : {&cell, preset == "best" ? &best : nullptr}) {
            if (c == nullptr) continue;
            for (const auto* column : {"vacated_nodes", "vacated_gpus", "nodes_at_most", "gpus_at_most",
                                       "gpus_percent", "moves", "waves", "dropped_chains", "ms"})
                c->sum[column] += std::atof(field(row, column).c_str());
            c->least_percent = std::min(c->least_percent, std::atof(field(row, "gpus_percent").c_str()));
            c->most_ms = std::max(c->most_ms, std::atof(field(row, "ms").c_str()));
            ++c->runs;
            c->invalid += field(row, "valid") != "true";
            if (old == before.end()) continue;
            ++c->compared;
            c->below += std::atoll(field(row, "vacated_gpus").c_str()) < old->second;
        }
    }
    std::printf(
        "| preset | scenario | to clear | runs | nodes | GPUs | GPUs at most | GPUs %% (least) | moves | "
        "waves | dropped | ms (most) | invalid | below before |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (const auto& [key, cell] : table) {
        const auto mean = [&](const char* column) { return cell.sum.at(column) / cell.runs; };
        std::printf(
            "| %s | %s | %lld | %d | %.1f | %.1f | %.1f | %.2f (%.2f) | %.1f | %.1f | %.2f | %.2f (%.2f) "
            "| %d | %d of %d |\n",
            std::get<0>(key).c_str(), std::get<1>(key).c_str(), static_cast<long long>(std::get<2>(key)),
            cell.runs, mean("vacated_nodes"), mean("vacated_gpus"), mean("gpus_at_most"),
            mean("gpus_percent"), cell.least_percent, mean("moves"), mean("waves"), mean("dropped_chains"),
            mean("ms"), cell.most_ms, cell.invalid, cell.below, cell.compared);
    }
    if (!arguments.gates) return 0;
    int below = 0;
    for (const auto& [key, cell] : table) below += cell.below;
    const double share = best.runs > 0 ? best.sum.at("gpus_percent") / best.runs : 0;
    std::printf("\nbest, mean share of the bound on GPUs: %.2f %%, gate >= 98: %s\n"
                "runs below the rows before: %d, gate 0: %s\n",
                share, share >= 98 ? "ok" : "MISSED", below, below == 0 ? "ok" : "MISSED");
    return share >= 98 && below == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse(argc, argv);
    return arguments.summary.empty() ? measure(arguments) : summarise(arguments);
}

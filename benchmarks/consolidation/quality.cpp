// SPDX-License-Identifier: Apache-2.0
// Quality and speed of consolidation on generated clusters: one JSON line per run, or a summary table of such lines.
//
//   bench_consolidation_quality [--nodes N] [--seeds a,b,...] [--scenarios name,...] [--algorithms name,...]
//                               [--threads N] [--no-lp] [--deadlines] [--smoke] > rows.jsonl
//   bench_consolidation_quality --summary rows.jsonl [--gates]
//
// With --gates the summary is compared with what the presets are held to; the exit status is 1 when a gate is missed.
// rows/quality_before.jsonl holds the rows of ipc, fast and best on seeds 1 to 20, without the LP, as they were before moves had a price: what
// they may not fall behind.
//
// Scenarios: those of docs/consolidation.md (the default set); constrained.80, with every kind of constraint.
// Algorithms: first_fit, random_eviction, highest_utilisation, ipc, fast, best (the default set); ipc_without_memory,
// best_with_fractions_gathered.
#include "baselines.hpp"
#include "gates.hpp"
#include "rows.hpp"
#include "scenarios.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/milp/clp.hpp>
#include <gpusched/verify/plan.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

using namespace gpusched;
namespace con = gpusched::consolidation;
using bench::field, bench::Scenario, bench::scenarios, bench::split;

namespace {

double peak_memory_mib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

struct Arguments {
    std::int64_t nodes = 37'707;
    std::vector<std::string> seeds{"1", "2", "3", "4", "5"}, scenarios,
        algorithms{"first_fit", "random_eviction", "highest_utilisation", "ipc", "fast", "best"};
    std::size_t threads = 2;
    bool lp = true, deadlines = false;
    std::string summary;
    bool gates = false;
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
        else if (name == "--algorithms")
            arguments.algorithms = split(value());
        else if (name == "--threads")
            arguments.threads = static_cast<std::size_t>(std::atoll(value().c_str()));
        else if (name == "--no-lp")
            arguments.lp = false;
        else if (name == "--deadlines")
            arguments.deadlines = true;
        else if (name == "--smoke")
            arguments.nodes = 600, arguments.seeds = {"1"},
            arguments.scenarios.emplace_back("constrained.80");
        else if (name == "--summary")
            arguments.summary = value();
        else if (name == "--gates")
            arguments.gates = true;
        else {
            std::cerr << "unknown argument " << name << '\n';
            std::exit(2);
        }
    }
    if (arguments.gates && arguments.summary.empty()) {
        std::cerr << "--gates: looks at measured rows; expected --summary rows.jsonl beside it\n";
        std::exit(2);
    }
    return arguments;
}

con::Result run(const std::string& algorithm, const Cluster& cluster, std::uint64_t seed, std::size_t threads,
                std::optional<double> time_limit) {
    con::Options options{
        .seed = seed, .threads = threads, .time_limit = time_limit, .bound_method = con::BoundMethod::none};
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
    if (algorithm == "best_with_fractions_gathered") {
        auto policies = con::presets::best();
        policies.switches.gather_fractions = true;
        return con::consolidate(cluster, policies, options);
    }
    static const std::map<std::string, con::Preset> presets{
        {"ipc", con::Preset::ipc}, {"fast", con::Preset::fast}, {"best", con::Preset::best}};
    const auto preset = presets.find(algorithm);
    if (preset == presets.end()) {
        std::cerr << "unknown algorithm " << algorithm << '\n';
        std::exit(2);
    }
    options.preset = preset->second;
    return con::consolidate(cluster, options);
}

void print_row(const Scenario& scenario, const std::string& seed, const std::string& algorithm,
               const con::Result& result, const Bound& bound, double ms, std::size_t threads,
               std::optional<double> time_limit, bool valid) {
    const auto percent = [](std::int64_t part, std::int64_t whole) {
        return whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 100.0;
    };
    const auto& s = result.stats;
    std::printf(
        "{\"scenario\": \"%s\", \"seed\": %s, \"algorithm\": \"%s\", \"threads\": %zu, \"valid\": %s, "
        "\"stop_reason\": \"%s\", \"vacated_nodes\": %lld, \"vacated_gpus\": %lld, \"relocation_cost\": "
        "%lld, \"bound_method\": \"%s\", "
        "\"nodes_percent\": %.3f, \"gpus_percent\": %.3f, \"moves_per_node\": %.4f, "
        "\"not_full_fall_percent\": %.3f, "
        "\"waves\": %lld, \"first_wave_share\": %.4f, \"hops\": %lld, \"dropped_chains\": %lld, \"ms\": "
        "%.2f, "
        "\"time_limit_ms\": %.1f, \"peak_mib\": %.1f}\n",
        scenario.name, seed.c_str(), algorithm.c_str(), threads, valid ? "true" : "false",
        enum_name(result.stop_reason), static_cast<long long>(s.vacated_nodes),
        static_cast<long long>(s.vacated_gpus), static_cast<long long>(s.relocation_cost),
        bound.method.c_str(), percent(s.vacated_nodes, bound.vacated_nodes_at_most),
        percent(s.vacated_gpus, bound.vacated_gpus_at_most), s.moves_per_vacated_node(),
        percent(s.not_fully_occupied_before - s.not_fully_occupied_after, s.not_fully_occupied_before),
        static_cast<long long>(s.waves), s.first_wave_share(), static_cast<long long>(s.hops),
        static_cast<long long>(s.dropped_chains), ms, time_limit.value_or(0) * 1e3, peak_memory_mib());
    std::fflush(stdout);
}

int measure(const Arguments& arguments) {
    bool all_valid = true;
    for (const auto& scenario : scenarios) {
        if (std::find(arguments.scenarios.begin(), arguments.scenarios.end(), scenario.name) ==
            arguments.scenarios.end())
            continue;
        for (const auto& seed : arguments.seeds) {
            const auto spec = scenario.generate(arguments.nodes, std::strtoull(seed.c_str(), nullptr, 10));
            const auto cluster = Cluster::build(spec);
            const auto method = arguments.lp ? con::BoundMethod::lp : con::BoundMethod::counting;
            const auto bound = con::bound(cluster, method, {}, {.lp = milp::clp()});
            for (const auto& algorithm : arguments.algorithms) {
                std::vector<std::optional<double>> limits{std::nullopt};
                if (arguments.deadlines) limits = {0.02, 0.2, 2.0};
                for (const auto limit : limits) {
                    const auto start = std::chrono::steady_clock::now();
                    const auto result = run(algorithm, cluster, std::strtoull(seed.c_str(), nullptr, 10),
                                            arguments.threads, limit);
                    const double ms =
                        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                            .count();
                    const bool valid = verify::plan(spec, to_spec(result.plan, cluster)).ok;
                    all_valid = all_valid && valid;
                    print_row(scenario, seed, algorithm, result, bound, ms, arguments.threads, limit, valid);
                }
            }
        }
    }
    return all_valid ? 0 : 1;
}

int summarise(const std::string& path, bool gates) {
    std::ifstream file(path);
    if (!file) {
        std::cerr << "cannot read " << path << '\n';
        return 2;
    }
    struct Cells {
        std::map<std::string, std::vector<double>> columns;
        int invalid = 0;
    };
    const std::vector<std::string> columns{"nodes_percent",         "gpus_percent", "moves_per_node",
                                           "not_full_fall_percent", "ms",           "peak_mib"};
    std::map<std::tuple<std::string, std::string, std::string>, Cells> table;
    for (std::string line; std::getline(file, line);) {
        if (field(line, "scenario").empty()) continue;
        auto& cells =
            table[{field(line, "scenario"), field(line, "algorithm"), field(line, "time_limit_ms")}];
        for (const auto& column : columns)
            cells.columns[column].push_back(std::atof(field(line, column).c_str()));
        cells.invalid += field(line, "valid") != "true";
    }
    std::printf("| scenario | algorithm | limit ms | runs | nodes %% of bound | GPUs %% of bound | moves per "
                "node | not-full fall %% | ms (min..max) | MiB | invalid |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|\n");
    bench::Means means;
    for (const auto& [key, cells] : table) {
        if (std::get<2>(key) == "0.0")
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
        std::printf("| %s | %s | %s | %zu | %s | %s | %s | %s | %.0f (%.0f..%.0f) | %.0f | %d |\n",
                    std::get<0>(key).c_str(), std::get<1>(key).c_str(), std::get<2>(key).c_str(), ms.size(),
                    spread("nodes_percent").c_str(), spread("gpus_percent").c_str(),
                    spread("moves_per_node").c_str(), spread("not_full_fall_percent").c_str(),
                    ms[ms.size() / 2], ms.front(), ms.back(), *std::max_element(memory.begin(), memory.end()),
                    cells.invalid);
    }
    return gates && bench::check_gates(means) > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto arguments = parse(argc, argv);
    return arguments.summary.empty() ? measure(arguments) : summarise(arguments.summary, arguments.gates);
}

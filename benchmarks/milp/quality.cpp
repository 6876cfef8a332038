// SPDX-License-Identifier: Apache-2.0
// Consolidation heuristics against the optimum of the model, and binary search against the direct model: one JSON line per run.
//
//   bench_milp_quality [--nodes a,b,...] [--seeds N] [--time-limit seconds] [--smoke] > rows.jsonl
//
// The model's optimum ignores the order of moves and network constraints, so gaps are "at most".
#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/milp/consolidation.hpp>
#include <gpusched/milp/solve_serving_plan.hpp>
#include <gpusched/sim/generator.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

using namespace gpusched;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void consolidation_row(int nodes, std::uint64_t seed, double time_limit) {
    const auto cluster = Cluster::build(sim::generate_cluster({.nodes = nodes, .seed = seed}));
    int occupied = 0;
    for (const auto node : cluster.nodes()) occupied += cluster.occupants(node) > 0 ? 1 : 0;
    const auto bound =
        gpusched::consolidation::bound(cluster, gpusched::consolidation::BoundMethod::counting);
    auto start = std::chrono::steady_clock::now();
    const auto model = milp::consolidation(cluster, {.form = milp::ConsolidationForm::classes,
                                                     .goal = milp::ConsolidationGoal::nodes,
                                                     .occupied_at_least = bound.occupied_nodes_at_least});
    const double build = seconds_since(start);
    start = std::chrono::steady_clock::now();
    const auto solution =
        milp::solve(model, {.time_limit = time_limit, .start = model.encode(model.home)}, "auto");
    const double solve = seconds_since(start);
    std::printf(
        "{\"benchmark\": \"consolidation\", \"nodes\": %d, \"seed\": %llu, \"occupied\": %d, \"rows\": %d, "
        "\"columns\": %d, \"build_s\": %.4f, \"solve_s\": %.2f, \"status\": \"%s\", \"optimum\": %.0f, "
        "\"optimum_at_least\": %.0f, \"counting_bound\": %lld",
        nodes, static_cast<unsigned long long>(seed), occupied, model.rows(), model.columns(), build, solve,
        to_string(solution.status), solution.has_solution() ? solution.objective : -1.0, solution.bound,
        static_cast<long long>(bound.occupied_nodes_at_least));
    for (const auto preset : {gpusched::consolidation::Preset::fast, gpusched::consolidation::Preset::best}) {
        start = std::chrono::steady_clock::now();
        const auto result = gpusched::consolidation::consolidate(
            cluster, {.preset = preset,
                      .seed = seed,
                      .threads = 1,
                      .objective = gpusched::consolidation::Objective::nodes});
        std::printf(", \"%s\": %zu, \"%s_s\": %.4f", gpusched::consolidation::to_string(preset),
                    static_cast<std::size_t>(occupied) - result.plan.vacated_nodes.size(),
                    gpusched::consolidation::to_string(preset), seconds_since(start));
    }
    std::printf("}\n");
    std::fflush(stdout);
}

milp::ServingProblem random_serving(int types, int models, int gpus, std::uint64_t seed) {
    Rng rng(seed);
    milp::ServingProblem p;
    for (int n = 0; n < types; ++n)
        p.gpus.push_back({"g" + std::to_string(n), 0.5 + 4 * rng.uniform(), gpus / types});
    for (int m = 0; m < models; ++m)
        for (int w = 0; w < 9; ++w)
            p.workloads.push_back({"w" + std::to_string(w), static_cast<double>(rng.between(50, 500)),
                                   "m" + std::to_string(m)});
    for (int m = 0; m < models; ++m)
        for (int n = 0; n < types; ++n)
            for (int tp = 1; tp <= 8; tp *= 2) {
                milp::ServingConfiguration c{.name = "m" + std::to_string(m) + ".g" + std::to_string(n) +
                                                     "x" + std::to_string(tp),
                                             .gpus = std::vector<int>(static_cast<std::size_t>(types), 0),
                                             .model = "m" + std::to_string(m)};
                c.gpus[static_cast<std::size_t>(n)] = tp;
                for (const auto& w : p.workloads)
                    c.throughput.push_back(w.model == c.model
                                               ? p.gpus[static_cast<std::size_t>(n)].price * tp *
                                                     (0.9 - 0.03 * tp) * (0.4 + rng.uniform())
                                               : 0.0);
                p.configurations.push_back(std::move(c));
            }
    double all = 0;
    for (const auto& gpu : p.gpus) all += gpu.price * gpu.available;
    p.budget = 0.5 * all;
    return p;
}

void serving_row(int types, int models, int gpus, std::uint64_t seed, double time_limit) {
    const auto p = random_serving(types, models, gpus, seed);
    std::printf("{\"benchmark\": \"serving\", \"types\": %d, \"models\": %d, \"gpus\": %d, \"seed\": %llu, "
                "\"configurations\": %zu",
                types, models, gpus, static_cast<unsigned long long>(seed), p.configurations.size());
    for (const auto method : {milp::ServingMethod::milp, milp::ServingMethod::binary_search}) {
        const auto start = std::chrono::steady_clock::now();
        const auto plan = milp::solve_serving_plan(
            p, {.method = method, .tolerance = 1e-3, .solve = {.time_limit = time_limit, .mip_gap = 1e-3}},
            "auto");
        const auto* name = enum_name(method);
        std::printf(", \"%s_s\": %.2f, \"%s_makespan\": %.4f, \"%s_bound\": %.4f, \"%s_status\": \"%s\"",
                    name, seconds_since(start), name, plan.makespan, name, plan.bound, name,
                    to_string(plan.status));
    }
    std::printf("}\n");
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<int> nodes{10, 25, 50, 100};
    int seeds = 10;
    double time_limit = 60;
    bool smoke = false;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--smoke") {
            smoke = true;
        } else if (i + 1 < argc && option == "--seeds") {
            seeds = std::atoi(argv[++i]);
        } else if (i + 1 < argc && option == "--time-limit") {
            time_limit = std::atof(argv[++i]);
        } else if (i + 1 < argc && option == "--nodes") {
            nodes.clear();
            std::stringstream list(argv[++i]);
            for (std::string part; std::getline(list, part, ',');) nodes.push_back(std::atoi(part.c_str()));
        } else {
            std::fprintf(stderr, "unknown option %s\n", argv[i]);
            return 2;
        }
    }
    if (milp::available_solvers().empty()) {
        std::fprintf(stderr, "no MILP solver was compiled in: nothing to compare with\n");
        return 0;
    }
    if (smoke) {
        consolidation_row(10, 1, 5);
        serving_row(2, 1, 8, 1, 5);
        return 0;
    }
    for (const int n : nodes)
        for (int seed = 1; seed <= seeds; ++seed)
            consolidation_row(n, static_cast<std::uint64_t>(seed), time_limit);
    const int sizes[][3] = {{2, 1, 16}, {3, 1, 48}, {6, 2, 96}, {12, 4, 240}, {12, 8, 500}};
    for (const auto& s : sizes)
        for (int seed = 1; seed <= seeds; ++seed)
            serving_row(s[0], s[1], s[2], static_cast<std::uint64_t>(seed), time_limit);
}

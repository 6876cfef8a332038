// SPDX-License-Identifier: Apache-2.0
// The controller on the simulated host: miss rate, p99, throughput and actions of the paper's five configurations.
// One JSON line per run, then a table of means and of paired differences to the static variant with 95 % intervals; and
// the cost of a step.
//
//   bench_control_host [--scenarios name,...] [--overrides] [--seeds N] [--first SEED] [--smoke]
//
// Scenarios: those of sim::host_scenario (default table3). --overrides adds the rows of the sensitivity table.
#include <gpusched/control/control.hpp>
#include <gpusched/sim/host.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;

namespace {

struct Interval {
    double mean = 0, half = 0;
};

/// Mean and the half width of its 95 % interval by Student's t.
Interval interval(const std::vector<double>& x) {
    static constexpr double t95[] = {0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                     2.306, 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131};
    const auto n = static_cast<double>(x.size());
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
    double squares = 0;
    for (const double v : x) squares += (v - mean) * (v - mean);
    if (x.size() < 2) return {mean, 0};
    const double t = x.size() <= 16 ? t95[x.size() - 1] : 1.96;
    return {mean, t * std::sqrt(squares / (n - 1) / n)};
}

void report(const std::string& name, const sim::HostScenario& scenario,
            const std::vector<std::uint64_t>& seeds) {
    std::vector<sim::HostRun> base;
    for (const char* variant : {"static", "guards", "placement", "mig", "full"}) {
        const auto result = sim::simulate_host(scenario, variant, seeds);
        if (base.empty()) base = result.runs;
        std::vector<double> miss, p99, fewer, lower, actions;
        for (std::size_t k = 0; k < seeds.size(); ++k) {
            const auto& run = result.runs[k];
            std::printf("{\"scenario\":\"%s\",\"variant\":\"%s\",\"seed\":%llu,\"miss_rate\":%.6f,"
                        "\"miss_rate_completed\":%.6f,\"p95_ms\":%.4f,\"p99_ms\":%.4f,\"p999_ms\":%.4f,"
                        "\"throughput\":%.6f,\"system_throughput\":%.6f,\"structural_actions_per_hour\":%.3f,"
                        "\"rollbacks\":%d,\"shed\":%lld}\n",
                        name.c_str(), variant, static_cast<unsigned long long>(seeds[k]), run.miss_rate,
                        run.miss_rate_completed, run.p95_ms, run.p99_ms, run.p999_ms, result.throughput[k],
                        result.system_throughput[k], run.structural_actions_per_hour, run.rollbacks,
                        static_cast<long long>(run.shed));
            miss.push_back(100 * run.miss_rate);
            p99.push_back(run.p99_ms);
            fewer.push_back(100 * (1 - run.miss_rate / base[k].miss_rate));
            lower.push_back(100 * (1 - run.p99_ms / base[k].p99_ms));
            actions.push_back(run.structural_actions_per_hour);
        }
        const auto m = interval(miss), p = interval(p99), f = interval(fewer), l = interval(lower),
                   t = interval(result.throughput), s = interval(result.system_throughput),
                   a = interval(actions);
        std::fprintf(stderr,
                     "%-28s %-10s miss %5.2f +- %.2f %%  p99 %5.2f +- %.2f ms  fewer %5.1f +- %4.1f %%  "
                     "lower %5.1f +- "
                     "%4.1f %%  T1 %.4f  system %.3f  actions/h %.2f\n",
                     name.c_str(), variant, m.mean, m.half, p.mean, p.half, f.mean, f.half, l.mean, l.half,
                     t.mean, s.mean, a.mean);
    }
}

/// Nanoseconds of a step with 32 protected tenants, and with the audit line.
void step_cost(int windows) {
    control::ControllerOptions o;
    o.host.roots.resize(8);
    o.host.core_numa.assign(64, 0);
    for (int g = 0; g < 16; ++g) o.host.gpus.push_back({.root = g / 2});
    control::Observation seen;
    seen.gpus.resize(16);
    for (int t = 0; t < 32; ++t) {
        control::Configuration start{.gpu = t / 2, .instance = {3, static_cast<std::uint8_t>(t % 2 * 4)}};
        o.host.tenants.push_back({.name = "T" + std::to_string(t), .is_protected = true, .start = start});
        seen.gpus[static_cast<std::size_t>(t / 2)].layout.add(start.instance);
    }
    seen.tenants.resize(32);
    seen.feedback.resize(32);
    seen.roots.assign(8, {.bytes_per_s = 1e9});
    seen.numa_io_bytes_per_s = {0};
    seen.irq_per_s.assign(64, 100);
    for (const bool with_line : {false, true}) {
        auto state = control::initial_state(o);
        control::StepResult result;
        std::string line;
        const auto start = std::chrono::steady_clock::now();
        for (int w = 0; w < windows; ++w) {
            seen.window = w;
            seen.time_s = 2.0 * (w + 1);
            for (std::size_t t = 0; t < 32; ++t) {
                seen.tenants[t].count = 100;
                seen.tenants[t].p99_ms = 10 + static_cast<double>((w + static_cast<int>(t)) % 7);
            }
            control::step(state, seen, o, result);
            line.clear();
            if (with_line) control::append_audit_line(line, seen, state, result, 1);
        }
        const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
        std::fprintf(stderr, "step with 32 tenants%s: %.0f ns\n", with_line ? " and its audit line" : "",
                     took.count() / windows);
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::string names = "table3";
    bool overrides = false, smoke = false;
    std::size_t count = 7;
    std::uint64_t first = 0;
    for (int i = 1; i < argc; ++i) {
        const bool more = i + 1 < argc;
        if (!std::strcmp(argv[i], "--scenarios") && more)
            names = argv[++i];
        else if (!std::strcmp(argv[i], "--overrides"))
            overrides = true;
        else if (!std::strcmp(argv[i], "--seeds") && more)
            count = std::strtoul(argv[++i], nullptr, 10);
        else if (!std::strcmp(argv[i], "--first") && more)
            first = std::strtoull(argv[++i], nullptr, 10);
        else if (!std::strcmp(argv[i], "--smoke"))
            smoke = true;
        else
            return std::fprintf(stderr, "unknown argument %s\n", argv[i]), 2;
    }
    if (count == 0) return std::fprintf(stderr, "--seeds: 0; expected at least 1\n"), 2;
    std::vector<std::uint64_t> seeds(smoke ? 1 : count);
    std::iota(seeds.begin(), seeds.end(), first);
    std::vector<std::pair<std::string, sim::HostScenario>> scenarios;
    std::stringstream list(names);
    for (std::string name; std::getline(list, name, ',');)
        scenarios.emplace_back(name, sim::host_scenario(name));
    if (overrides) {
        const auto add = [&](const char* name, auto change) {
            auto scenario = sim::host_scenario("table3");
            change(scenario);
            scenarios.emplace_back(name, scenario);
        };
        add("t2_weight = 2.5", [](auto& s) { s.t2_weight = 2.5; });
        add("serial_fraction = .65", [](auto& s) { s.serial_fraction = 0.65; });
        add("large class 11 ms", [](auto& s) { s.classes[2].compute_ms = 11; });
        add("dwell = 64", [](auto& s) { s.dwell = 64; });
        add("window_s = 1", [](auto& s) { s.window_s = 1; });
        add("mmpp_rates = 80/200", [](auto& s) { s.rates_per_s = {80, 200}; });
        add("pause_mode = queue", [](auto& s) { s.pause_mode = sim::PauseMode::queue; });
    }
    for (auto& [name, scenario] : scenarios) {
        if (smoke) scenario.duration_s = 120;
        report(name, scenario, seeds);
    }
    step_cost(smoke ? 100 : 20000);
}

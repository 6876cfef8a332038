// SPDX-License-Identifier: Apache-2.0
// Runs the controller on the simulated host: misses, p99, throughput and actions of the paper's five
// configurations and of ours.
//
// Prints one JSON line per run. On standard error it prints tables of means with 95 % intervals, and
// differences paired by seed: each variant against static, full against the paper's others, and ours against
// full. "above %" counts windows with a p99 above the target; requests that are lost or held up by a pause
// count as above.
//
// --oracle adds the best fixed placement, which has the fewest windows above under these seeds, without
// guards, and the same with the client's quota at 50 %. No choice of a placement can be better. The scenarios
// are those of sim::host_scenario. --overrides adds the rows of the sensitivity table. The LLM mode reads the
// recorded trace --llm, and generates one if the file is missing.
#include "../support/command_line.hpp"
#include "../support/data.hpp"
#include "../support/enumerator.hpp"
#include "../support/interval.hpp"
#include "../support/rows.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/sim/simulate_host.hpp>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
using bench::Interval;
using bench::interval;

namespace {

struct Run {
    sim::HostRun r{};
    double t1 = 1, system = 1;
    double above = 0;  ///< % of the windows
};

using Number = std::function<double(const Run&)>;

Interval of(const std::vector<Run>& runs, const Number& number) {
    std::vector<double> x;
    for (const auto& run : runs) x.push_back(number(run));
    return interval(x);
}
Interval paired(const std::vector<Run>& a, const std::vector<Run>& b,
                const std::function<double(const Run&, const Run&)>& number) {
    std::vector<double> x;
    for (std::size_t k = 0; k < a.size(); ++k) x.push_back(number(a[k], b[k]));
    return interval(x);
}

void print_run(const std::string& name, const std::string& variant, std::uint64_t seed, const Run& x) {
    const auto& r = x.r;
    using bench::rounded;
    bench::print({{"scenario", name},
                  {"variant", variant},
                  {"seed", seed},
                  {"miss_rate", rounded(r.miss_rate, 6)},
                  {"miss_rate_completed", rounded(r.miss_rate_completed, 6)},
                  {"p95_ms", rounded(r.p95_ms, 4)},
                  {"p99_ms", rounded(r.p99_ms, 4)},
                  {"p999_ms", rounded(r.p999_ms, 4)},
                  {"throughput", rounded(x.t1, 6)},
                  {"system_throughput", rounded(x.system, 6)},
                  {"structural_actions_per_hour", rounded(r.structural_actions_per_hour, 3)},
                  {"throttles", r.throttles},
                  {"quota_changes", r.quota_changes},
                  {"rollbacks", r.rollbacks},
                  {"shed", r.shed},
                  {"violation_s", rounded(r.violation_s, 0)},
                  {"slice_s", rounded(r.slice_s, 0)},
                  {"excess_ms", rounded(r.excess_ms, 4)},
                  {"above_percent", rounded(x.above, 4)}});
}

std::vector<Run> run_all(const std::string& name, const sim::HostScenario& scenario,
                         const std::string& variant, const std::vector<std::uint64_t>& seeds,
                         const std::vector<Run>& base) {
    std::vector<Run> out;
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1.0; };
    for (std::size_t k = 0; k < seeds.size(); ++k) {
        Run x;
        const auto flags = control::variant_flags(scenario.layout.starts.empty()
                                                      ? bench::enumerator<control::Variant>(variant)
                                                      : control::Variant::static_configuration);
        x.r = sim::run_host(scenario, flags, seeds[k]);
        x.above = 100 * x.r.violation_s / scenario.duration_s / x.r.services;
        if (!base.empty()) {
            const auto& b = base[k].r;
            x.t1 = ratio(static_cast<double>(x.r.completed), static_cast<double>(b.completed));
            x.system = (x.t1 + ratio(x.r.t2_bytes, b.t2_bytes) + ratio(x.r.t3_work_s, b.t3_work_s)) / 3;
        }
        print_run(name, variant, seeds[k], x);
        out.push_back(x);
    }
    return out;
}

void row(const sim::HostScenario& scenario, const std::string& variant, const std::vector<Run>& runs,
         const std::vector<Run>& base) {
    const auto miss = of(runs, [](const Run& x) { return 100 * x.r.miss_rate; });
    const auto p99 = of(runs, [](const Run& x) { return x.r.p99_ms; });
    const auto fewer = paired(
        runs, base, [](const Run& x, const Run& b) { return 100 * (1 - x.r.miss_rate / b.r.miss_rate); });
    const auto lower =
        paired(runs, base, [](const Run& x, const Run& b) { return 100 * (1 - x.r.p99_ms / b.r.p99_ms); });
    const auto t1 = of(runs, [](const Run& x) { return x.t1; });
    const auto system = of(runs, [](const Run& x) { return x.system; });
    const auto actions = of(runs, [](const Run& x) { return x.r.structural_actions_per_hour; });
    const auto guards =
        of(runs, [](const Run& x) { return static_cast<double>(x.r.throttles + x.r.quota_changes); });
    const auto high = of(runs, [](const Run& x) { return x.above; });
    const auto excess = of(runs, [](const Run& x) { return x.r.excess_ms; });
    const auto slices = of(runs, [&](const Run& x) { return x.r.slice_s / scenario.duration_s; });
    std::fprintf(stderr,
                 "| %s | %.2f +- %.2f | %.2f +- %.2f | %.1f +- %.1f | %.1f +- %.1f | %.4f +- %.4f | %.3f | "
                 "%.2f | %.1f | %.2f +- %.2f | %.2f | %.2f |\n",
                 variant.c_str(), miss.mean, miss.half, p99.mean, p99.half, fewer.mean, fewer.half,
                 lower.mean, lower.half, t1.mean, t1.half, system.mean, actions.mean, guards.mean, high.mean,
                 high.half, excess.mean, slices.mean);
}

/// Whether the interval of a difference is below 0, above it, or neither.
const char* verdict(const Interval& x) {
    return x.mean + x.half < 0 ? "less" : x.mean - x.half > 0 ? "MORE" : "no difference";
}

void compare(const char* one, const char* other, const std::map<std::string, std::vector<Run>>& all) {
    std::fprintf(stderr, "%s - %s: ", one, other);
    const auto tell = [&](const char* what, const char* unit, const Number& number, const char* end) {
        const auto x = paired(all.at(one), all.at(other),
                              [&](const Run& a, const Run& b) { return number(a) - number(b); });
        std::fprintf(stderr, "%s %.2f +- %.2f %s (%s)%s", what, x.mean, x.half, unit, verdict(x), end);
    };
    tell(
        "miss", "points", [](const Run& x) { return 100 * x.r.miss_rate; }, "; ");
    tell(
        "p99", "ms", [](const Run& x) { return x.r.p99_ms; }, "; ");
    tell(
        "structural", "/h", [](const Run& x) { return x.r.structural_actions_per_hour; }, "; ");
    tell(
        "above", "% of windows", [](const Run& x) { return x.above; }, "; ");
    tell(
        "excess", "ms", [](const Run& x) { return x.r.excess_ms; }, "\n");
}

/// The fixed placement with the fewest windows above under these seeds: one row without and one with a quota.
std::vector<Run> best_fixed(const std::string& name, const sim::HostScenario& scenario,
                            const std::vector<std::uint64_t>& seeds, const std::vector<Run>& base) {
    auto fixed = scenario;
    const auto& device = control::mig_device(scenario.layout.device);
    std::vector<Run> best;
    std::vector<control::Configuration> where;
    const auto label = [&](const auto& starts) {
        std::string text = "fixed";
        for (const auto& c : starts)
            text += " " + std::string(device.profiles[c.instance.profile].key) + " on GPU " +
                    std::to_string(c.gpu);
        return text;
    };
    const auto above = [](const Run& x) { return x.above; };
    for (const auto& starts : sim::fixed_starts(scenario)) {
        fixed.layout.starts = starts;
        auto runs = run_all(name, fixed, label(starts), seeds, base);
        const auto p99 = [](const Run& x) { return x.r.p99_ms; };
        const std::pair now(of(runs, above).mean, of(runs, p99).mean);
        if (!best.empty() && std::pair(of(best, above).mean, of(best, p99).mean) <= now) continue;
        best = std::move(runs);
        where = starts;
    }
    row(scenario, label(where), best, base);
    fixed.layout.starts = where;
    fixed.layout.starts[0].quota_percent = 50;
    row(scenario, label(where) + ", quota 50 %", run_all(name, fixed, label(where) + " q50", seeds, base),
        base);
    return best;
}

void report(const std::string& name, const sim::HostScenario& scenario,
            const std::vector<std::string>& variants, const std::vector<std::uint64_t>& seeds, bool oracle) {
    std::fprintf(
        stderr,
        "\n%s, seeds %llu to %llu\n\n"
        "| variant | miss %% | p99 ms | fewer misses %% | lower p99 %% | T1 | system | structural/h | "
        "guards | above %% | ms above | slices |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        name.c_str(), static_cast<unsigned long long>(seeds.front()),
        static_cast<unsigned long long>(seeds.back()));
    const auto base = run_all(name, scenario, "static", seeds, {});
    std::map<std::string, std::vector<Run>> all;
    for (const auto& variant : variants) {
        all[variant] = variant == "static" ? base : run_all(name, scenario, variant, seeds, base);
        row(scenario, variant, all[variant], base);
    }
    if (oracle) {
        all["fixed"] = best_fixed(name, scenario, seeds, base);
        std::fprintf(stderr, "\n");
        if (all.contains("ours")) compare("ours", "fixed", all);
    }
    std::fprintf(stderr, "\n");
    if (!all.contains("full")) return;
    for (const auto* variant : {"static", "guards", "placement", "mig"})
        if (all.contains(variant)) compare("full", variant, all);
    for (const auto* variant : {"ours", "paper", "paper_largest", "no_guards", "no_placement", "no_mig"})
        if (all.contains(variant)) compare(variant, "full", all);
}

/// Reads the recorded trace. Without the file, prints a warning and leaves the generated requests.
void put_trace(sim::HostScenario& scenario, const std::string& path) {
    if (!std::filesystem::exists(path)) {
        std::fprintf(stderr, "NO RECORDED TRACE: %s cannot be read; requests are generated\n", path.c_str());
        return;
    }
    scenario.llm.requests = serving::read_llm_trace(read_file(path));
    std::fprintf(stderr, "%zu requests from %s\n", scenario.llm.requests.size(), path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("The controller on the simulated host.", argc, argv);
    std::vector<std::string> names{"table3"},
        variants{"static", "guards", "placement", "mig", "full", "ours"};
    auto trace = bench::data_path("azure-llm-2023/AzureLLMInferenceTrace_conv.csv");
    bool overrides = false, all = false, oracle = false;
    std::size_t count = line.smoke() ? 1 : 7;
    std::uint64_t first = 0;
    line.option("--scenarios", names, "scenarios of the host");
    line.option("--variants", variants, "variants of the controller")
        ->check(CLI::IsMember(bench::names_of<control::Variant>()));
    line.flag("--overrides", overrides, "add the rows of the sensitivity table");
    line.option("--seeds", count, "how many seeds")->check(bench::at_least(1));
    line.option("--first", first, "first seed");
    line.option("--llm", trace, "recorded trace of LLM mode");
    line.flag("--all", all, "every scenario and override, and the LLM mode");
    line.flag("--oracle", oracle, "add the best fixed placement");
    line.read();
    if (all) {
        names = bench::names_of<sim::HostScenarioName>();
        overrides = true;
    }
    std::vector<std::uint64_t> seeds(count);
    std::iota(seeds.begin(), seeds.end(), first);
    std::vector<std::pair<std::string, sim::HostScenario>> scenarios;
    for (const auto& name : names) {
        scenarios.emplace_back(name, sim::host_scenario(bench::enumerator<sim::HostScenarioName>(name)));
        if (name == "llm") put_trace(scenarios.back().second, trace);
    }
    if (overrides) {
        const auto add = [&](const char* name, auto change) {
            auto scenario = sim::host_scenario(sim::HostScenarioName::table3);
            change(scenario);
            scenarios.emplace_back(name, scenario);
        };
        add("t2_weight = 2.5", [](auto& s) { s.t2.weight = 2.5; });
        add("serial_fraction = .65", [](auto& s) { s.requests.serial_fraction = 0.65; });
        add("large class 11 ms", [](auto& s) { s.requests.classes[2].compute_ms = 11; });
        add("dwell = 64", [](auto& s) { s.controller.dwell = 64; });
        add("window_s = 1", [](auto& s) { s.controller.window_s = 1; });
        add("mmpp_rates = 80/200", [](auto& s) { s.requests.mmpp_rates = {80, 200}; });
        add("pause_mode = queue", [](auto& s) { s.pauses.mode = sim::PauseMode::queue; });
    }
    for (auto& [name, scenario] : scenarios) {
        if (line.smoke()) scenario.duration_s = 120;
        report(name, scenario, variants, seeds, oracle);
    }
}

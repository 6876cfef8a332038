// SPDX-License-Identifier: Apache-2.0
// The controller on the simulated host: misses, p99, throughput and actions of the paper's five configurations and of
// ours. One JSON line per run on standard output; on standard error tables of means with 95 % intervals, differences
// paired by seed: each variant against static, full against the paper's others, and ours against full.
//
//   bench_control_host [--scenarios name,...] [--overrides] [--variants name,...] [--seeds N] [--first SEED]
//                      [--llm FILE.csv] [--oracle] [--all] [--smoke]
//
// above %: windows with a p99 above the target (requests lost or held up by a pause count as above).
// --oracle: adds the best fixed placement, that of all with the fewest windows above under these very seeds, without
// guards, and the same with the client's quota at 50 %: what no choice of a place could better.
// Scenarios: those of sim::host_scenario (default table3). --overrides adds the rows of the sensitivity table. --all:
// every scenario and override, and LLM mode with the recorded trace. LLM mode takes AzureLLMInferenceTrace_conv.csv
// below $GPUSCHED_DATA, or ../shared/data, or the file given; where there is none it says so and generates one.
#include "../interval.hpp"

#include <gpusched/sim/host.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <sstream>
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

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> out;
    std::stringstream list(text);
    for (std::string name; std::getline(list, name, ',');) out.push_back(name);
    return out;
}

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
    std::printf("{\"scenario\":\"%s\",\"variant\":\"%s\",\"seed\":%llu,\"miss_rate\":%.6f,"
                "\"miss_rate_completed\":%.6f,\"p95_ms\":%.4f,\"p99_ms\":%.4f,\"p999_ms\":%.4f,"
                "\"throughput\":%.6f,\"system_throughput\":%.6f,\"structural_actions_per_hour\":%.3f,"
                "\"throttles\":%d,\"quota_changes\":%d,\"rollbacks\":%d,\"shed\":%lld,\"violation_s\":%.0f,"
                "\"slice_s\":%.0f,\"excess_ms\":%.4f,\"above_percent\":%.4f}\n",
                name.c_str(), variant.c_str(), static_cast<unsigned long long>(seed), r.miss_rate,
                r.miss_rate_completed, r.p95_ms, r.p99_ms, r.p999_ms, x.t1, x.system,
                r.structural_actions_per_hour, r.throttles, r.quota_changes, r.rollbacks,
                static_cast<long long>(r.shed), r.violation_s, r.slice_s, r.excess_ms, x.above);
}

std::vector<Run> run_all(const std::string& name, const sim::HostScenario& scenario,
                         const std::string& variant, const std::vector<std::uint64_t>& seeds,
                         const std::vector<Run>& base) {
    std::vector<Run> out;
    const auto ratio = [](double a, double b) { return b > 0 ? a / b : 1.0; };
    for (std::size_t k = 0; k < seeds.size(); ++k) {
        Run x;
        x.r = sim::run_host(scenario, control::variant_flags(scenario.starts.empty() ? variant : "static"),
                            seeds[k]);
        x.above = 100 * x.r.violation_s / scenario.duration_s / (scenario.second_service ? 2 : 1);
        if (!base.empty()) {
            const auto& b = base[k].r;
            x.t1 = ratio(static_cast<double>(x.r.completed), static_cast<double>(b.completed));
            x.system = (x.t1 + ratio(x.r.t2_bytes, b.t2_bytes) + ratio(x.r.t3_work_s, b.t3_work_s)) / 3;
        }
        print_run(name, variant, seeds[k], x);
        out.push_back(x);
    }
    std::fflush(stdout);
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

/// The fixed placement with the fewest windows above under these seeds; a row of it, and one with a quota.
std::vector<Run> best_fixed(const std::string& name, const sim::HostScenario& scenario,
                            const std::vector<std::uint64_t>& seeds, const std::vector<Run>& base) {
    auto fixed = scenario;
    const auto& device = control::mig_device(scenario.device);
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
        fixed.starts = starts;
        auto runs = run_all(name, fixed, label(starts), seeds, base);
        const auto p99 = [](const Run& x) { return x.r.p99_ms; };
        const std::pair now(of(runs, above).mean, of(runs, p99).mean);
        if (!best.empty() && std::pair(of(best, above).mean, of(best, p99).mean) <= now) continue;
        best = std::move(runs);
        where = starts;
    }
    row(scenario, label(where), best, base);
    fixed.starts = where;
    fixed.starts[0].quota_percent = 50;
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
    if (all.contains("ours")) compare("ours", "full", all);
}

/// The recorded trace; a generated one, loudly, where there is none.
void put_trace(sim::HostScenario& scenario, std::string path) {
    if (path.empty()) {
        const auto* given = std::getenv("GPUSCHED_DATA");
        const auto folder =
            given != nullptr ? std::filesystem::path(given) : std::filesystem::path("../shared/data");
        path = (folder / "azure-llm-2023" / "AzureLLMInferenceTrace_conv.csv").string();
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "NO RECORDED TRACE: %s cannot be read; requests are generated\n", path.c_str());
        return;
    }
    const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    scenario.llm_requests = sim::read_llm_trace(text);
    std::fprintf(stderr, "%zu requests from %s\n", scenario.llm_requests.size(), path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    std::string names = "table3", variants = "static,guards,placement,mig,full,ours", trace;
    bool overrides = false, smoke = false, oracle = false;
    std::size_t count = 7;
    std::uint64_t first = 0;
    for (int i = 1; i < argc; ++i) {
        const bool more = i + 1 < argc;
        const auto is = [&](const char* option) { return !std::strcmp(argv[i], option); };
        if (is("--scenarios") && more)
            names = argv[++i];
        else if (is("--variants") && more)
            variants = argv[++i];
        else if (is("--overrides"))
            overrides = true;
        else if (is("--seeds") && more)
            count = std::strtoul(argv[++i], nullptr, 10);
        else if (is("--first") && more)
            first = std::strtoull(argv[++i], nullptr, 10);
        else if (is("--llm") && more)
            trace = argv[++i];
        else if (is("--all"))
            names =
                "table3,noisy_counters,no_counters,quota_at_restart,neighbours,faults,two_services,mixed,llm",
            overrides = true;
        else if (is("--oracle"))
            oracle = true;
        else if (is("--smoke"))
            smoke = true;
        else
            return std::fprintf(stderr, "unknown argument %s\n", argv[i]), 2;
    }
    if (count == 0) return std::fprintf(stderr, "--seeds: 0; expected at least 1\n"), 2;
    std::vector<std::uint64_t> seeds(smoke ? 1 : count);
    std::iota(seeds.begin(), seeds.end(), first);
    std::vector<std::pair<std::string, sim::HostScenario>> scenarios;
    for (const auto& name : split(names)) {
        scenarios.emplace_back(name, sim::host_scenario(name));
        if (name == "llm") put_trace(scenarios.back().second, trace);
    }
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
        report(name, scenario, split(variants), seeds, oracle);
    }
}

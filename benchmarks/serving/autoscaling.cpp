// SPDX-License-Identifier: Apache-2.0
// Compares the forecast policy for prefill and decode replicas over a day with static provisioning with
// hindsight and with two reactive baselines. Prints one JSON line per run, and on standard error a table of
// means with 95 % intervals.
//
// Requests come from the recorded trace --trace, stretched along serving::DailyCurve with a level and surges
// for each day. Without the file, the benchmark says so and generates requests. The model is Llama-3-70B;
// both kinds of replicas are A100-80GB 1x4, with times by the planner's estimates. Targets, in windows of
// five minutes: 90 % of the first tokens within 2 s, and 90 % of the requests with at most 60 ms per further
// token.
#include "../support/command_line.hpp"
#include "../support/data.hpp"
#include "../support/interval.hpp"
#include "../support/rows.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/serving/llm_trace.hpp>
#include <gpusched/serving/simulate_autoscaling.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

std::vector<Arrival> read_trace(const std::string& path) {
    std::vector<serving::LlmRequest> requests;
    if (std::filesystem::exists(path)) {
        requests = serving::read_llm_trace(read_file(path), path);
    } else {
        std::fprintf(stderr, "%s: cannot be read; a generated trace in its place\n", path.c_str());
        requests = serving::generate_llm_trace(20000, 0);
    }
    std::vector<Arrival> trace;
    for (const auto& r : requests)
        trace.push_back({r.time_s, std::max(1, r.prompt_tokens), std::max(1, r.output_tokens)});
    return trace;
}

struct Entrant {
    std::string name{};
    AutoscaleOptions options{};
    AutoscalingWorld world{};
    bool hindsight = false;
    std::vector<AutoscalingResult> days{};
};

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Prefill and decode replicas over a day.", argc, argv);
    int days = line.smoke() ? 1 : 10;
    std::uint64_t first = 0;
    DailyCurve curve{.mean_rate = 10};
    if (line.smoke()) curve.mean_rate = 2, curve.hours = 2;
    auto path = bench::data_path("azure-llm-2023/AzureLLMInferenceTrace_conv.csv");
    line.option("--days", days, "days, each with a seed")->check(bench::at_least(1));
    line.option("--first", first, "seed of the first day");
    line.option("--rate", curve.mean_rate, "mean requests a second")->check(bench::at_least(0));
    line.option("--trace", path, "recorded requests");
    line.read();

    const auto trace = read_trace(path);
    double input = 0, output = 0;
    for (const auto& r : trace) input += r.input, output += r.output;
    const auto n = static_cast<double>(trace.size());
    const std::vector<GpuType> gpus{gpu_type("A100-80GB")};
    const auto model = llama3_70b();
    const Deployment replica{"A100-80GB 1x4", {{0, 4, model.layers}}};
    AutoscaleOptions base;
    base.times = replica_times(model, gpus, replica, replica,
                               {static_cast<int>(input / n), static_cast<int>(output / n)});
    base.ttft_s = 2;
    base.tpot_s = 0.06;
    base.start = pool_sizes(trace, expected_rate(curve, 0), base);

    std::vector<Entrant> entrants;
    const auto enter = [&](const char* name) -> Entrant& {
        entrants.push_back({.name = name, .options = base});
        return entrants.back();
    };
    enter("static, with hindsight").hindsight = true;
    entrants.back().options.policy = AutoscalePolicy::fixed;
    const auto forecast = [&](Entrant& e) {
        for (int k = 0; k < 48; ++k) e.options.expected_per_s.push_back(expected_rate(curve, 1800.0 * k));
    };
    forecast(enter("forecast, with the curve"));
    enter("forecast, by the trend");
    for (const double u : {0.4, 0.5, 0.6, 0.7}) {
        auto& e = enter("");
        e.name = "utilization " + std::to_string(u).substr(0, 3);
        e.options.policy = AutoscalePolicy::utilization;
        e.options.utilization = u;
        e.options.hold_s = 300;  // as the Horizontal Pod Autoscaler
    }
    const auto busy = pool_sizes(trace, 20 * curve.mean_rate, base);
    for (const double u : {0.3, 0.4, 0.5}) {
        auto& e = enter("");
        e.name = "token_rate " + std::to_string(u).substr(0, 3);
        e.options.policy = AutoscalePolicy::token_rate;
        e.options.utilization = u;
        e.options.ratio = static_cast<double>(busy.prefill) / busy.decode;
        e.options.hold_s = 300;
    }
    auto& slow = enter("forecast, all 15 % slower than it knows");
    forecast(slow);
    slow.world.slowdown = 1.15;
    auto& slow_reactive = enter("utilization 0.5, the same");
    slow_reactive.options.policy = AutoscalePolicy::utilization;
    slow_reactive.options.utilization = 0.5;
    slow_reactive.options.hold_s = 300;
    slow_reactive.world.slowdown = 1.15;

    for (int day = 0; day < days; ++day) {
        curve.seed = first + static_cast<std::uint64_t>(day);
        const auto arrivals = daily_arrivals(trace, curve);
        for (auto& e : entrants) {
            if (e.hindsight) e.options.start = fewest_fixed(arrivals, e.options);
            const auto r = e.days.emplace_back(simulate_autoscaling(arrivals, e.options, e.world));
            using bench::rounded;
            bench::print({{"policy", e.name},
                          {"day", curve.seed},
                          {"requests", r.requests},
                          {"gpu_h", rounded(r.gpu_h, 3)},
                          {"busy_gpu_h", rounded(r.busy_gpu_h, 3)},
                          {"prefill_h", rounded(r.prefill_h, 3)},
                          {"decode_h", rounded(r.decode_h, 3)},
                          {"both_met", rounded(r.both_met, 6)},
                          {"windows_met", rounded(r.windows_met, 6)},
                          {"ttft_s", rounded(r.ttft_s, 4)},
                          {"tpot_s", rounded(r.tpot_s, 5)},
                          {"starts", r.starts}});
        }
    }

    std::fprintf(stderr,
                 "| policy | GPU-hours a day | against static, %% | windows within targets, %% | worst day | "
                 "requests within both, %% | prefill-hours | decode-hours | starts a day |\n"
                 "|---|---|---|---|---|---|---|---|---|\n");
    for (const auto& e : entrants) {
        std::vector<double> gpu_h, change, windows, both, prefill, decode, starts;
        for (std::size_t k = 0; k < e.days.size(); ++k) {
            const auto& r = e.days[k];
            gpu_h.push_back(r.gpu_h);
            change.push_back(100 * (r.gpu_h / entrants.front().days[k].gpu_h - 1));
            windows.push_back(100 * r.windows_met);
            both.push_back(100 * r.both_met);
            prefill.push_back(r.prefill_h);
            decode.push_back(r.decode_h);
            starts.push_back(static_cast<double>(r.starts));
        }
        const auto a = bench::interval(gpu_h), b = bench::interval(change), c = bench::interval(windows);
        std::fprintf(
            stderr,
            "| %s | %.0f +- %.0f | %.1f +- %.1f | %.2f +- %.2f | %.2f | %.2f | %.1f | %.1f | %.1f |\n",
            e.name.c_str(), a.mean, a.half, b.mean, b.half, c.mean, c.half,
            *std::min_element(windows.begin(), windows.end()), bench::interval(both).mean,
            bench::interval(prefill).mean, bench::interval(decode).mean, bench::interval(starts).mean);
    }
}

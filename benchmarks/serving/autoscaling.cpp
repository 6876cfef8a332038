// SPDX-License-Identifier: Apache-2.0
// Prefill and decode replicas over a day: the forecast policy against static provisioning with hindsight and against two
// reactive baselines. One JSON line per run on standard output; on standard error a table of means with 95 % intervals.
//
//   bench_serving_autoscaling [--days N] [--first SEED] [--rate X] [--trace FILE.csv] [--smoke]
//
// Requests: AzureLLMInferenceTrace_conv.csv below $GPUSCHED_DATA, or ../shared/data, or the file given, stretched along the
// daily curve of serving::DailyCurve with each day's own level and surge; where there is none it says so and generates one.
// Model: Llama-3-70B, both kinds of replicas A100-80GB 1x4, times by the planner's estimates; 90 % of the first tokens within
// 2 s, 90 % of the requests at most 60 ms per further token, in windows of five minutes.
#include "../interval.hpp"

#include <gpusched/serving/simulate_autoscaling.hpp>
#include <gpusched/sim/llm_trace.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

std::vector<Arrival> read_trace(std::string path) {
    if (path.empty()) {
        const char* data = std::getenv("GPUSCHED_DATA");
        path = std::string(data != nullptr ? data : "../shared/data") +
               "/azure-llm-2023/AzureLLMInferenceTrace_conv.csv";
    }
    std::ifstream file(path);
    std::vector<sim::LlmRequest> requests;
    if (file) {
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        requests = sim::read_llm_trace(text, path);
    } else {
        std::fprintf(stderr, "%s: cannot be read; a generated trace in its place\n", path.c_str());
        requests = sim::generate_llm_trace(20000, 0);
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
    int days = 10;
    std::uint64_t first = 0;
    DailyCurve curve{.mean_rate = 10};
    std::string path;
    for (int i = 1; i < argc; ++i) {
        const auto value = [&] {
            if (i + 1 == argc) {
                std::fprintf(stderr, "%s: expected a value\n", argv[i]);
                std::exit(2);
            }
            return argv[++i];
        };
        if (std::strcmp(argv[i], "--days") == 0)
            days = std::atoi(value());
        else if (std::strcmp(argv[i], "--first") == 0)
            first = static_cast<std::uint64_t>(std::atoll(value()));
        else if (std::strcmp(argv[i], "--rate") == 0)
            curve.mean_rate = std::atof(value());
        else if (std::strcmp(argv[i], "--trace") == 0)
            path = value();
        else if (std::strcmp(argv[i], "--smoke") == 0)
            days = 1, curve.mean_rate = 2, curve.hours = 2;
        else {
            std::fprintf(stderr, "%s: unknown option\n", argv[i]);
            return 2;
        }
    }

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
            std::printf(
                "{\"policy\":\"%s\",\"day\":%llu,\"requests\":%lld,\"gpu_h\":%.3f,\"busy_gpu_h\":%.3f,"
                "\"prefill_h\":%.3f,\"decode_h\":%.3f,\"both_met\":%.6f,\"windows_met\":%.6f,\"ttft_s\":%.4f,"
                "\"tpot_s\":%.5f,\"starts\":%lld}\n",
                e.name.c_str(), static_cast<unsigned long long>(curve.seed),
                static_cast<long long>(r.requests), r.gpu_h, r.busy_gpu_h, r.prefill_h, r.decode_h,
                r.both_met, r.windows_met, r.ttft_s, r.tpot_s, static_cast<long long>(r.starts));
            std::fflush(stdout);
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

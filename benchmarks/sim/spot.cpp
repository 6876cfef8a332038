// SPDX-License-Identifier: Apache-2.0
// Measures the gain of each mechanism of ASI's spot scheduler (section 4.2), and the capacity that spot jobs
// harvest.
//
// Jobs are generated (docs/sim.md names the published figures): two days of warm-up, the measured days, then
// four more so that the measured jobs can finish under the same load. All arms get the same jobs. The
// baseline is the paper's: packing alone, random victims. Differences are paired by seed; intervals are
// Student's, 95 %. --json writes one line per seed and arm.
#include "../support/command_line.hpp"
#include "../support/interval.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/sim/harvest.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace gpusched;
using bench::Interval;
using bench::interval;
using sim::SpotReplayOptions;
using sim::SpotReplayResult;
using sim::Victims;

struct Arm {
    const char* name;
    std::vector<std::string> rankers;
    Victims victims;
    bool spot_jobs = true;
    std::int64_t consolidate_every_h = 0;
};

const std::vector<Arm>& arms() {
    static const std::vector<Arm> all{
        {"baseline: random victims", {"packing"}, Victims::random},
        {"+ co-location", {"packing", "homogeneous"}, Victims::random},
        {"+ eviction history", {"packing", "eviction_history"}, Victims::random},
        {"+ cheapest victims (prefix)", {"packing"}, Victims::spot},
        {"all three (the paper's)", {"packing", "homogeneous", "eviction_history"}, Victims::spot},
        {"all three, exact victims", {"packing", "homogeneous", "eviction_history"}, Victims::spot_exact},
        {"co-location before packing, exact",
         {"homogeneous", "packing", "eviction_history"},
         Victims::spot_exact},
        {"all three, consolidated 6-hourly",
         {"packing", "homogeneous", "eviction_history"},
         Victims::spot,
         true,
         6},
        {"no preemption", {"packing", "homogeneous", "eviction_history"}, Victims::none},
        {"HP jobs alone", {"packing", "homogeneous", "eviction_history"}, Victims::spot, false},
    };
    return all;
}

using Measure = std::function<double(const SpotReplayResult&)>;
Interval over_seeds(const std::vector<SpotReplayResult>& results, const Measure& measure) {
    std::vector<double> values;
    for (const auto& r : results) values.push_back(measure(r));
    return interval(values);
}
// The change in percent of the baseline, paired by seed.
Interval change(const std::vector<SpotReplayResult>& results, const std::vector<SpotReplayResult>& baseline,
                const Measure& measure) {
    std::vector<double> values;
    for (std::size_t s = 0; s < results.size(); ++s)
        values.push_back(100 * (measure(results[s]) / measure(baseline[s]) - 1));
    return interval(values);
}

void harvest(int seeds) {
    std::vector<double> share, useful, mean, p95, killed;
    for (int seed = 0; seed < seeds; ++seed) {
        sim::HarvestOptions options;
        options.seed = static_cast<std::uint64_t>(seed);
        const auto r = sim::simulate_harvest(options);
        share.push_back(100 * r.harvested());
        useful.push_back(100 * r.useful_gpu_h / r.standby_gpu_h);
        mean.push_back(r.eviction_mean_s);
        p95.push_back(r.eviction_p95_s);
        killed.push_back(100 * static_cast<double>(r.killed) / static_cast<double>(r.evictions));
    }
    const auto row = [](const char* name, const std::vector<double>& values, const char* unit) {
        const auto i = interval(values);
        std::printf("  %-34s %6.1f +- %.1f %s\n", name, i.mean, i.half, unit);
    };
    std::printf("\nStandby, %d seeds\n", seeds);
    row("lent GPU-hours borrowed", share, "%");
    row("of lent, work that was kept", useful, "%");
    row("eviction, mean", mean, "s");
    row("eviction, 95th percentile", p95, "s");
    row("killed", killed, "%");
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Gains of the mechanisms of ASI's spot scheduler, and harvested capacity.", argc,
                            argv);
    int seeds = line.smoke() ? 2 : 10;
    std::int64_t days = line.smoke() ? 1 : 7;
    sim::SpotTraceOptions jobs;
    jobs.nodes = line.smoke() ? 16 : 128;
    bool no_harvest = false;
    std::string path;
    line.option("--seeds", seeds, "how many seeds")->check(bench::at_least(1));
    line.option("--nodes", jobs.nodes, "nodes of the cluster");
    line.option("--days", days, "measured days")->check(bench::at_least(1));
    line.option("--lp-load", jobs.lp_load, "GPUs that spot jobs request, as a share of all");
    line.option("--no-checkpoint", jobs.no_checkpoint, "share of spot jobs without checkpoints");
    line.flag("--no-harvest", no_harvest, "leaves the simulation of standby out");
    line.option("--json", path, "file for one line per seed and arm");
    line.read();
    std::ofstream json;
    if (!path.empty()) json.open(path);
    constexpr std::int64_t day = 86'400;
    jobs.hours = (2 + days + 4) * 24;
    std::vector<std::vector<SpotReplayResult>> results(arms().size());
    std::vector<double> seconds(arms().size(), 0);
    std::size_t job_count = 0;
    for (int seed = 0; seed < seeds; ++seed) {
        jobs.seed = static_cast<std::uint64_t>(seed);
        const auto trace = sim::generate_spot_trace(jobs);
        job_count += trace.jobs.size();
        for (std::size_t a = 0; a < arms().size(); ++a) {
            const auto& arm = arms()[a];
            SpotReplayOptions options;
            options.rankers = arm.rankers;
            options.victims = arm.victims;
            options.spot_jobs = arm.spot_jobs;
            options.consolidate_every_h = arm.consolidate_every_h;
            options.measure_from_s = 2 * day;
            options.measure_until_s = (2 + days) * day;
            options.seed = static_cast<std::uint64_t>(seed);
            const double start = bench::clock_s();
            results[a].push_back(sim::replay_spot(trace, options));
            const auto& r = results[a].back();
            seconds[a] += bench::clock_s() - start;
            if (json.is_open())
                json << bench::Row{{"seed", seed},
                                   {"arm", arm.name},
                                   {"hp_allocation", r.hp_allocation},
                                   {"lp_allocation", r.lp_allocation},
                                   {"lp_completion_mean_s", r.lp_completion_s.mean},
                                   {"lp_completion_p50_s", r.lp_completion_s.p50},
                                   {"lp_completion_p99_s", r.lp_completion_s.p99},
                                   {"lp_lost_gpu_h", r.lp_lost_gpu_h},
                                   {"lp_evictions", r.lp_evictions},
                                   {"lp_unfinished", r.lp_unfinished},
                                   {"hp_wait_mean_s", r.hp_wait_s.mean},
                                   {"hp_wait_p99_s", r.hp_wait_s.p99},
                                   {"hp_unfinished", r.hp_unfinished}}
                     << std::endl;
        }
    }
    std::printf("%lld nodes, %d seeds, %lld days measured, %.0f jobs a seed, LP load %.2f, without "
                "checkpoints %.0f %%\n\n",
                static_cast<long long>(jobs.nodes), seeds, static_cast<long long>(days),
                static_cast<double>(job_count) / seeds, jobs.lp_load, 100 * jobs.no_checkpoint);
    std::printf("%-36s %13s %13s %15s %15s %15s %15s\n", "", "HP alloc. %", "HP+LP %", "completion, h",
                "change %", "p50, change %", "p99, change %");
    for (std::size_t a = 0; a < arms().size(); ++a) {
        const auto& r = results[a];
        const auto hp = over_seeds(r, [](const auto& x) { return 100 * x.hp_allocation; });
        const auto both =
            over_seeds(r, [](const auto& x) { return 100 * (x.hp_allocation + x.lp_allocation); });
        std::printf("%-36s %6.1f +- %3.1f %6.1f +- %3.1f", arms()[a].name, hp.mean, hp.half, both.mean,
                    both.half);
        if (arms()[a].spot_jobs) {
            const Measure mean = [](const auto& x) { return x.lp_completion_s.mean / 3600; };
            const Measure p50 = [](const auto& x) { return x.lp_completion_s.p50 / 3600; };
            const Measure p99 = [](const auto& x) { return x.lp_completion_s.p99 / 3600; };
            const auto m = over_seeds(r, mean), d = change(r, results[0], mean),
                       d50 = change(r, results[0], p50), d99 = change(r, results[0], p99);
            std::printf(" %7.2f +- %4.2f %+7.1f +- %4.1f %+7.1f +- %4.1f %+7.1f +- %4.1f", m.mean, m.half,
                        d.mean, d.half, d50.mean, d50.half, d99.mean, d99.half);
        }
        std::printf("\n");
    }
    std::printf("\n%-36s %15s %15s %9s %7s %16s %6s %6s %6s %5s %6s\n", "", "lost/kept, %", "change %",
                "evict./job", "HP wait", "change, s", "p90", "p99", "undone", "us", "s");
    for (std::size_t a = 0; a < arms().size(); ++a) {
        const auto& r = results[a];
        const auto mean = [&](const Measure& measure) { return over_seeds(r, measure).mean; };
        const auto share = over_seeds(r, [](const auto& x) {
            return x.lp_kept_gpu_h > 0 ? 100 * x.lp_lost_gpu_h / x.lp_kept_gpu_h : 0;
        });
        const auto evictions = mean([](const auto& x) {
            const auto n = x.lp_completion_s.count + x.lp_unfinished;
            return n > 0 ? static_cast<double>(x.lp_evictions) / static_cast<double>(n) : 0;
        });
        Interval lost;
        if (arms()[a].spot_jobs && arms()[a].victims != Victims::none)
            lost = change(r, results[0], [](const auto& x) { return x.lp_lost_gpu_h; });
        std::vector<double> later;
        for (std::size_t s = 0; s < r.size(); ++s)
            later.push_back(r[s].hp_wait_s.mean - results[0][s].hp_wait_s.mean);
        const auto wait = interval(later);
        std::printf("%-36s %6.2f +- %4.2f %+7.1f +- %4.1f %9.2f %7.0f %+8.0f +- %4.0f %6.0f %6.0f %6.1f "
                    "%5.0f %6.1f\n",
                    arms()[a].name, share.mean, share.half, lost.mean, lost.half, evictions,
                    mean([](const auto& x) { return x.hp_wait_s.mean; }), wait.mean, wait.half,
                    mean([](const auto& x) { return x.hp_wait_s.p90; }),
                    mean([](const auto& x) { return x.hp_wait_s.p99; }), mean([](const auto& x) {
                        return static_cast<double>(x.lp_unfinished + x.hp_unfinished);
                    }),
                    mean([](const auto& x) { return x.decision_us.p50; }), seconds[a] / seeds);
    }
    if (!no_harvest) harvest(seeds);
    return 0;
}

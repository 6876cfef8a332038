// SPDX-License-Identifier: Apache-2.0
// Repeats the study behind the ASI paper's "-20.2 %" (section 4.1): not fully occupied nodes under periodic
// consolidation, on two months of generated arrivals.
//
// A replay without consolidation and replays with one every few hours get the same jobs. For every
// consolidation the benchmark reports the nodes with a task and an idle GPU before and after it. For every
// replay it reports their number at the end of each hour, paired by seed with the replay without
// consolidation. Moves take no time; LP pods do not move. Intervals are Student's, 95 %, over seeds;
// percentiles are over the consolidations of all seeds. --json writes one line per seed and arm.
#include "../support/command_line.hpp"
#include "../support/interval.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/fragmentation/occupancy.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace gpusched;
using bench::interval;
using consolidation::Preset;

constexpr std::int64_t hour = 3600, day = 86'400, warm_up = 2 * day;

struct Arm {
    const char* name;
    std::int64_t every_h;
    Preset preset;
};

constexpr Arm arms[] = {
    {"never", 0, Preset::ipc},           {"ipc every 24 h", 24, Preset::ipc},
    {"ipc every 6 h", 6, Preset::ipc},   {"ipc every hour", 1, Preset::ipc},
    {"fast every 6 h", 6, Preset::fast}, {"best every 6 h", 6, Preset::best},
};

/// The measurements of one replay.
struct Study {
    std::vector<double> hourly{};      ///< not fully occupied nodes, once an hour
    std::vector<double> reductions{};  ///< per run, % of the not fully occupied nodes before it
    double moves = 0;                  ///< per run
    double hp_wait_s = 0, lp_completion_h = 0;
};

double not_full(const Cluster& cluster) {
    return static_cast<double>(fragmentation::occupancy(cluster).not_fully_occupied);
}

Study replayed(const sim::SpotTrace& trace, const Arm& arm, std::int64_t days, bool spot_jobs,
               std::uint64_t seed) {
    Study study;
    const auto until = warm_up + days * day;
    sim::SpotReplayOptions options;
    options.spot_jobs = spot_jobs;
    options.consolidate_every_h = arm.every_h;
    options.consolidation_preset = arm.preset;
    options.measure_from_s = warm_up;
    options.measure_until_s = until;
    options.seed = seed;
    std::int64_t next = warm_up, total_moves = 0;
    options.observer = [&](std::int64_t now, const Cluster& before, const Plan& plan) {
        if (now < warm_up || now >= until) return;
        for (; next <= now; next += hour) study.hourly.push_back(not_full(before));
        if (plan.moves.empty()) return;  // only consolidations move
        auto after = before;
        for (const auto& move : plan.moves) after.assign(move.task, move.to, move.gpus);
        const auto nodes = not_full(before);
        study.reductions.push_back(nodes > 0 ? 100 * (1 - not_full(after) / nodes) : 0);
        total_moves += static_cast<std::int64_t>(plan.moves.size());
    };
    const auto result = sim::replay_spot(trace, options);
    study.hp_wait_s = result.hp_wait_s.mean;
    study.lp_completion_h = result.lp_completion_s.mean / hour;
    if (arm.every_h > 0) {
        // A consolidation without moves counts, too.
        const auto runs = static_cast<std::size_t>(days * 24 / arm.every_h);
        study.reductions.resize(std::max(study.reductions.size(), runs), 0);
        study.moves = static_cast<double>(total_moves) / static_cast<double>(study.reductions.size());
    }
    return study;
}

double mean(const std::vector<double>& values) { return interval(values).mean; }

double percentile(std::vector<double> values, double percent) {
    std::sort(values.begin(), values.end());
    const auto rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
    return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Not fully occupied nodes under periodic consolidation.", argc, argv);
    int seeds = line.smoke() ? 2 : 10;
    std::int64_t days = line.smoke() ? 2 : 60;
    sim::SpotTraceOptions jobs;
    jobs.nodes = line.smoke() ? 16 : 64;
    bool hp_alone = false;
    std::string path;
    line.option("--seeds", seeds, "how many seeds")->check(bench::at_least(1));
    line.option("--nodes", jobs.nodes, "nodes of the cluster");
    line.option("--days", days, "measured days, after two days of warm-up")->check(bench::at_least(1));
    line.option("--hp-load", jobs.hp_load, "GPUs that HP jobs request, as a share of all");
    line.flag("--hp-alone", hp_alone, "no spot jobs arrive");
    line.option("--json", path, "file for one line per seed and arm");
    line.read();
    std::ofstream json;
    if (!path.empty()) json.open(path);
    jobs.hours = warm_up / hour + days * 24;
    std::vector<std::vector<Study>> studies(std::size(arms));
    std::vector<double> seconds(std::size(arms), 0);
    for (int seed = 0; seed < seeds; ++seed) {
        jobs.seed = static_cast<std::uint64_t>(seed);
        const auto trace = sim::generate_spot_trace(jobs);
        for (std::size_t a = 0; a < std::size(arms); ++a) {
            const double start = bench::clock_s();
            studies[a].push_back(replayed(trace, arms[a], days, !hp_alone, jobs.seed));
            seconds[a] += bench::clock_s() - start;
            const auto& study = studies[a].back();
            if (json.is_open())
                json << bench::Row{{"seed", seed},
                                   {"arm", arms[a].name},
                                   {"hp_alone", hp_alone},
                                   {"not_fully_occupied", mean(study.hourly)},
                                   {"runs", study.reductions.size()},
                                   {"reduction_pct", mean(study.reductions)},
                                   {"moves_per_run", study.moves},
                                   {"hp_wait_s", study.hp_wait_s},
                                   {"lp_completion_h", study.lp_completion_h}}
                     << std::endl;
        }
    }
    std::printf("%lld nodes, %d seeds, %lld days, HP load %.2f, %s\n\n", static_cast<long long>(jobs.nodes),
                seeds, static_cast<long long>(days), jobs.hp_load,
                hp_alone ? "HP jobs alone" : "HP and spot jobs");
    std::printf("%-16s %16s %18s %16s %6s %6s %6s %9s %13s %17s %6s\n", "", "not full, %", "against never, %",
                "each run, %", "p10", "p50", "p90", "moves/run", "HP wait, s", "LP completion, h", "s");
    for (std::size_t a = 0; a < std::size(arms); ++a) {
        std::vector<double> nodes, change, each, all, moves, wait, completion;
        for (std::size_t s = 0; s < studies[a].size(); ++s) {
            const auto& study = studies[a][s];
            nodes.push_back(100 * mean(study.hourly) / static_cast<double>(jobs.nodes));
            change.push_back(100 * (mean(study.hourly) / mean(studies[0][s].hourly) - 1));
            each.push_back(mean(study.reductions));
            moves.push_back(study.moves);
            wait.push_back(study.hp_wait_s);
            completion.push_back(study.lp_completion_h);
            all.insert(all.end(), study.reductions.begin(), study.reductions.end());
        }
        const auto n = interval(nodes);
        std::printf("%-16s %7.1f +- %5.1f", arms[a].name, n.mean, n.half);
        if (arms[a].every_h > 0) {
            const auto c = interval(change), e = interval(each);
            std::printf(" %+9.1f +- %5.1f %7.1f +- %5.1f %6.1f %6.1f %6.1f %9.1f", c.mean, c.half, -e.mean,
                        e.half, -percentile(all, 90), -percentile(all, 50), -percentile(all, 10),
                        mean(moves));
        } else {
            std::printf(" %18s %16s %6s %6s %6s %9s", "", "", "", "", "", "");
        }
        const auto w = interval(wait), l = interval(completion);
        std::printf(" %6.0f +- %3.0f", w.mean, w.half);
        if (hp_alone)
            std::printf(" %17s", "");
        else
            std::printf("    %6.2f +- %5.2f", l.mean, l.half);
        std::printf(" %6.1f\n", seconds[a] / seeds);
    }
    return 0;
}

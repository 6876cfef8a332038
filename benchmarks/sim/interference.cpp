// SPDX-License-Identifier: Apache-2.0
// Measures the cost of interference, and the effect of rankers and limits of co-location, with CPU-only jobs
// on the nodes and offline work on the GPUs.
//
// ASI (section 5.2) leaves both open, so the slowdowns are assumptions that the options replace. Jobs are
// generated (docs/sim.md): two days of warm-up, the measured days, then two more so that the measured jobs
// can finish under the same load. All arms of a seed get the same jobs. Changes are paired by seed; intervals
// are Student's, 95 %.
//
// CPU-only jobs: HP, LP and CPU-only jobs in one pool. One arm learns the slowdown from observations with
// noise. Offline work: HP and LP jobs with one fraction of a GPU each. The number of nodes makes HP work
// `--online-load` of the GPUs, and there is more LP work than fits. --json writes one line per seed and arm.
#include "../support/command_line.hpp"
#include "../support/interval.hpp"
#include "../support/rows.hpp"

#include <gpusched/allocation/filters.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/spot_replay.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace gpusched;
using bench::interval;
using sim::SpotReplayOptions;
using sim::SpotReplayResult;
using sim::SpotTrace;

constexpr std::int64_t day = 86'400;

struct Setting {
    int seeds = 10;
    std::int64_t nodes = 64, days = 4;
    double cpu_load = 0.35, online_load = 0.5;
    std::vector<std::int64_t> cpu_slowdown = allocation::published_slowdown().milli;
    std::vector<std::int64_t> offline_slowdown{500};
};

struct Arm {
    std::string name;
    std::vector<std::string> rankers;
    std::vector<std::string> filters{};
    std::string gpu_picker = "tightest_gpu";
    bool interferes = true, cpu_jobs = true;
};

/// The measurements of one replay, by name.
using Figures = std::map<std::string, double>;

/// Means over jobs, and slowdowns as lost GPU-time in percent of the GPU-time of the work itself.
Figures figures(const SpotTrace& trace, const SpotReplayResult& r, const SpotReplayOptions& options) {
    struct Sums {
        double slowed = 0, work = 0, completion = 0, wait = 0, jobs = 0;
        std::vector<double> slowdowns{};
    };
    Sums hp, lp, cpu;
    Figures f;
    f["undone"] = 0;
    for (std::size_t j = 0; j < trace.jobs.size(); ++j) {
        const auto& job = trace.jobs[j];
        const auto& record = r.jobs[j];
        if (job.arrival_s < options.measure_from_s || job.arrival_s >= *options.measure_until_s) continue;
        if (record.finish_s < 0) {
            ++f["undone"];
            continue;
        }
        auto& sums = job.pod.gpu_count == 0 ? cpu : job.pod.priority_class == PriorityClass::hp ? hp : lp;
        const auto gpus = static_cast<double>(job.pods * job.pod.gpu_count * job.pod.gpu_share_milli);
        sums.slowed += gpus * static_cast<double>(record.slowed_s);
        sums.work += gpus * static_cast<double>(record.kept_s + record.lost_s);
        sums.slowdowns.push_back(100 * static_cast<double>(record.slowed_s) /
                                 static_cast<double>(record.kept_s + record.lost_s));
        sums.completion += static_cast<double>(record.finish_s - job.arrival_s) / 3600;
        sums.wait += static_cast<double>(record.wait_s);
        ++sums.jobs;
    }
    const auto add = [&](const std::string& name, const Sums& sums) {
        f[name + "_slowdown"] = sums.work > 0 ? 100 * sums.slowed / sums.work : 0;
        f[name + "_slowdown_p90"] = sim::spread_of(sums.slowdowns).p90;
        f[name + "_completion_h"] = sums.jobs > 0 ? sums.completion / sums.jobs : 0;
        f[name + "_wait_s"] = sums.jobs > 0 ? sums.wait / sums.jobs : 0;
    };
    add("hp", hp);
    add("lp", lp);
    add("cpu", cpu);
    f["hp_allocation"] = 100 * r.hp_allocation;
    f["lp_allocation"] = 100 * r.lp_allocation;
    return f;
}

class Table {
  public:
    Table(std::vector<Arm> arms, std::size_t baseline) : arms_(std::move(arms)), baseline_(baseline) {
        figures_.resize(arms_.size());
    }
    [[nodiscard]] const std::vector<Arm>& arms() const { return arms_; }
    void add(std::size_t arm, Figures f) { figures_[arm].push_back(std::move(f)); }

    /// Means with their intervals, and changes in percent of the baseline, paired by seed.
    void print(const std::vector<std::pair<const char*, const char*>>& columns) const {
        std::printf("%-36s", "");
        for (const auto& [figure, title] : columns) std::printf(" %18s", title);
        std::printf("\n");
        for (std::size_t a = 0; a < arms_.size(); ++a) {
            std::printf("%-36s", arms_[a].name.c_str());
            for (const auto& [figure, title] : columns) {
                const bool change = *figure == '%';
                const auto* const name = figure + (change ? 1 : 0);
                std::vector<double> values;
                for (std::size_t s = 0; s < figures_[a].size(); ++s) {
                    const auto value = figures_[a][s].at(name);
                    values.push_back(change ? 100 * (value / figures_[baseline_][s].at(name) - 1) : value);
                }
                const auto i = interval(values);
                std::printf(change ? " %+10.2f +- %4.2f" : " %10.2f +- %4.2f", i.mean, i.half);
            }
            std::printf("\n");
        }
    }

  private:
    std::vector<Arm> arms_;
    std::size_t baseline_;
    std::vector<std::vector<Figures>> figures_;  // by arm and seed
};

/// Noisy observations of a curve: shares of 0 to 80 %, errors with a standard deviation of 10 percentage
/// points.
std::vector<allocation::SlowdownObservation> observations(const allocation::SlowdownCurve& curve, Rng rng) {
    std::vector<allocation::SlowdownObservation> seen;
    for (int i = 0; i < 200; ++i) {
        const auto held = rng.between(0, 800);
        double noise = -600;  // the sum of twelve has a standard deviation of 100
        for (int k = 0; k < 12; ++k) noise += static_cast<double>(rng.below(101));
        seen.push_back({static_cast<double>(held) / 1000,
                        (static_cast<double>(curve(held, 1000)) + noise * 100 / 101) / 1000});
    }
    return seen;
}

void run(Table& table, std::size_t arm, const SpotTrace& trace, SpotReplayOptions options,
         const allocation::Registries& known, std::ofstream& json) {
    const auto& a = table.arms()[arm];
    options.rankers = a.rankers;
    options.filters = a.filters;
    options.gpu_picker = a.gpu_picker;
    if (!a.interferes) options.cpu_slowdown_milli.clear(), options.offline_slowdown_milli.clear();
    const auto of = figures(trace, sim::replay_spot(trace, options, {}, known), options);
    table.add(arm, of);
    if (!json.is_open()) return;
    bench::Row row{{"seed", options.seed}, {"arm", a.name}};
    for (const auto& [name, value] : of) row[name] = value;
    json << row << std::endl;
}

SpotReplayOptions replay_options(const Setting& setting, std::uint64_t seed) {
    SpotReplayOptions options;
    options.victims = sim::Victims::spot_exact;
    options.measure_from_s = 2 * day;
    options.measure_until_s = (2 + setting.days) * day;
    options.seed = seed;
    return options;
}

void beside_cpu_only_jobs(const Setting& setting, std::ofstream& json) {
    auto known = allocation::registries();
    known.filters.add("limit_25", allocation::CoLocationLimit{250});
    known.filters.add("limit_50", allocation::CoLocationLimit{500});
    const std::vector<std::string> asi{"packing", "homogeneous", "eviction_history"};
    const std::vector<std::string> last{"packing", "interference", "homogeneous", "eviction_history"};
    const std::vector<std::string> first{"interference", "packing", "homogeneous", "eviction_history"};
    const std::vector<std::string> learnt{"learnt", "packing", "homogeneous", "eviction_history"};
    Table table({{"ASI's ranking", asi},
                 {"the same, no slowdown", asi, {}, "tightest_gpu", false},
                 {"the same, no CPU-only jobs", asi, {}, "tightest_gpu", false, false},
                 {"interference after packing", last},
                 {"interference before packing", first},
                 {"the same, learnt", learnt},
                 {"limit 50 %", asi, {"limit_50"}},
                 {"limit 25 %", asi, {"limit_25"}},
                 {"interference first, limit 50 %", first, {"limit_50"}}},
                0);
    for (int seed = 0; seed < setting.seeds; ++seed) {
        sim::SpotTraceOptions jobs;
        jobs.nodes = setting.nodes;
        jobs.hours = (setting.days + 4) * 24;
        jobs.cpu_load = setting.cpu_load;
        jobs.seed = static_cast<std::uint64_t>(seed);
        const auto trace = sim::generate_spot_trace(jobs);
        jobs.cpu_load = 0;
        const auto without = sim::generate_spot_trace(jobs);
        auto options = replay_options(setting, jobs.seed);
        options.cpu_slowdown_milli = setting.cpu_slowdown;
        auto rankers = known;
        const allocation::Interference of_observations{
            allocation::fit_slowdown(observations({setting.cpu_slowdown}, Rng(jobs.seed)), 2)};
        rankers.rankers.add("learnt", [=](const Inventory&) { return of_observations; });
        for (std::size_t a = 0; a < table.arms().size(); ++a)
            run(table, a, table.arms()[a].cpu_jobs ? trace : without, options, rankers, json);
    }
    std::printf("CPU-only jobs beside GPU jobs: %lld nodes, %d seeds, %lld days measured, CPU-only jobs ask "
                "for %.0f %% of the cores\n\n",
                static_cast<long long>(setting.nodes), setting.seeds, static_cast<long long>(setting.days),
                100 * setting.cpu_load);
    table.print({{"hp_slowdown", "HP slowdown, %"},
                 {"hp_slowdown_p90", "p90 of jobs, %"},
                 {"lp_slowdown", "LP slowdown, %"},
                 {"hp_completion_h", "HP completion, h"},
                 {"%hp_completion_h", "change, %"},
                 {"hp_wait_s", "HP wait, s"}});
    std::printf("\n");
    table.print({{"lp_completion_h", "LP completion, h"},
                 {"%lp_completion_h", "change, %"},
                 {"cpu_completion_h", "CPU completion, h"},
                 {"%cpu_completion_h", "change, %"},
                 {"hp_allocation", "HP allocation, %"},
                 {"undone", "undone jobs"}});
}

/// The jobs with one pod and one fraction each, on as many nodes as make HP work `online_load` of the GPUs.
SpotTrace fractions(SpotTrace trace, const Setting& setting, Rng rng, std::int64_t hours) {
    double asked = 0;
    for (auto& job : trace.jobs) {
        const bool online = job.pod.priority_class == PriorityClass::hp;
        job.pods = 1;
        job.pod.gpu_count = 1;
        job.pod.gpu_share_milli = 100 * (online ? rng.between(3, 6) : rng.between(2, 5));
        job.pod.cpu_milli = 4000;
        job.pod.memory_mib = 16 * 1024;
        if (online) asked += static_cast<double>(job.pod.gpu_share_milli * job.work_s);
    }
    const auto gpus = asked / 1000 / static_cast<double>(hours * 3600) / setting.online_load;
    const auto nodes = static_cast<std::size_t>(
        std::max(1.0, std::round(gpus / static_cast<double>(trace.nodes[0].gpu_count))));
    if (trace.nodes.size() > nodes) trace.nodes.resize(nodes);
    return trace;
}

void beside_offline_work(const Setting& setting, std::ofstream& json) {
    auto known = allocation::registries();
    const std::vector<std::string> asi{"packing", "homogeneous", "eviction_history"};
    std::vector<Arm> arms;
    for (const int percent : {0, 20, 30, 40, 50}) {
        const auto name = "limit_" + std::to_string(percent);
        known.filters.add(name, allocation::OfflineLimit{10 * percent});
        known.gpu_pickers.add(name,
                              [=](const Inventory&) { return allocation::OfflineLimitGpus{10 * percent}; });
        arms.push_back({"limit " + std::to_string(percent) + " %", asi, {name}, name});
    }
    arms.push_back({"no limit, tightest GPU", asi});
    Table table(arms, 0);
    std::size_t nodes = 0;
    for (int seed = 0; seed < setting.seeds; ++seed) {
        sim::SpotTraceOptions jobs;
        jobs.nodes = 2 * setting.nodes;
        jobs.hours = (setting.days + 4) * 24;
        jobs.lp_load = 0.9;
        jobs.seed = static_cast<std::uint64_t>(seed);
        const auto trace =
            fractions(sim::generate_spot_trace(jobs), setting, Rng(jobs.seed).split(99), jobs.hours);
        nodes += trace.nodes.size();
        auto options = replay_options(setting, jobs.seed);
        options.offline_slowdown_milli = setting.offline_slowdown;
        for (std::size_t a = 0; a < table.arms().size(); ++a) run(table, a, trace, options, known, json);
    }
    std::printf(
        "\nOffline work beside online work: %.0f nodes, %d seeds, %lld days measured, online work is %.0f %% "
        "of the GPUs\n\n",
        static_cast<double>(nodes) / setting.seeds, setting.seeds, static_cast<long long>(setting.days),
        100 * setting.online_load);
    table.print({{"hp_allocation", "online, % of GPUs"},
                 {"lp_allocation", "offline, % of GPUs"},
                 {"%lp_allocation", "change, %"},
                 {"hp_slowdown", "online slowdown, %"},
                 {"hp_slowdown_p90", "p90 of jobs, %"},
                 {"hp_wait_s", "online wait, s"}});
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Cost of interference, and effect of rankers and limits of co-location.", argc,
                            argv);
    Setting setting;
    if (line.smoke()) setting = {.seeds = 2, .nodes = 8, .days = 1};
    std::string path;
    bool no_cpu_only = false, no_offline = false;
    line.option("--seeds", setting.seeds, "how many seeds")->check(bench::at_least(1));
    line.option("--nodes", setting.nodes, "nodes of the cluster")->check(bench::at_least(1));
    line.option("--days", setting.days, "measured days")->check(bench::at_least(1));
    line.option("--cpu-load", setting.cpu_load, "cores that CPU-only jobs request, as a share of all");
    line.option("--online-load", setting.online_load, "GPUs that online work requests, as a share of all");
    line.option("--cpu-slowdown", setting.cpu_slowdown,
                "slowdown by the cores that CPU-only pods hold, in thousandths at 1/n, 2/n, .. of n values");
    line.option("--offline-slowdown", setting.offline_slowdown, "the same by the GPU that LP fractions hold");
    line.flag("--no-cpu-only", no_cpu_only, "leaves CPU-only jobs out");
    line.flag("--no-offline", no_offline, "leaves offline work out");
    line.option("--json", path, "file for one line per seed and arm");
    line.read();
    std::ofstream json;
    if (!path.empty()) json.open(path);
    if (!no_cpu_only) beside_cpu_only_jobs(setting, json);
    if (!no_offline) beside_offline_work(setting, json);
    return 0;
}

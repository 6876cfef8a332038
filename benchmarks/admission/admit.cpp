// SPDX-License-Identifier: Apache-2.0
// Compares `admit` with KAI-Scheduler on fragmented clusters of 8-GPU nodes. Prints one JSON line per case.
//
// By default the clusters come from the folder --data, and so do KAI-Scheduler's results, kai-results.json.
// With --generate similar clusters are generated:
// - Layouts: "rnd" places tasks at random, "spr" on the node with the most idle GPUs, "fig" fills every node
//   with 4+2 or 4+1+1 GPUs, and "full" uses every GPU.
// - Pending pods: one with 8 GPUs (x1) or a gang of four of them (x4), the same with a higher priority than
//   all other tasks (hi1, hi4).
//
// A row reports `admit` with prices that count tasks ("counted") and with the default prices ("priced").
// Times are the shortest of --repeat runs, in milliseconds of one thread. --preempt adds `admit` by evictions
// alone and `preempt_gang` with the policy spot_exact, with and without new places for its victims, and the
// cost of its plans at the default prices.
#include "../support/command_line.hpp"
#include "../support/data.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>
#include <gpusched/preemption/preempt_gang.hpp>
#include <gpusched/verify/plan.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

using namespace gpusched;

namespace {

struct Kai {
    std::int64_t disturbed = 0, lost = 0;
    double ms = 0;
};

// Decompresses with gzip, because the library reads text.
std::string read_compressed(const std::filesystem::path& path) {
    std::string text;
    if (auto* const pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r")) {
        std::array<char, 65536> part{};
        for (std::size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
            text.append(part.data(), n);
        pclose(pipe);
    }
    return text;
}

// {"case": {"moved_plus_evicted": 3, "evicted_without_place": 1, "cpu_ms": 1.5}, ...}
std::map<std::string, Kai> read_kai(const std::string& text) {
    std::map<std::string, Kai> found;
    const auto rows = bench::Row::parse(text);  // not a temporary, because items() refers to it
    for (const auto& [name, result] : rows.items())
        found[name] = {result.at("moved_plus_evicted").get<std::int64_t>(),
                       result.at("evicted_without_place").get<std::int64_t>(),
                       result.at("cpu_ms").get<double>()};
    return found;
}

ClusterSpec generate(const std::string& kind, const std::string& pending, int nodes, std::uint64_t seed) {
    Rng rng(seed);
    ClusterSpec spec;
    spec.now = 100'000;
    std::vector<int> used(static_cast<std::size_t>(nodes));
    for (int n = 0; n < nodes; ++n)
        spec.nodes.push_back(
            {.name = "n" + std::to_string(n), .gpu_count = 8, .cpu_milli = 128'000, .memory_mib = 1'048'576});
    const auto add = [&](std::size_t node, int gpus) {
        TaskSpec task{.name = "r" + std::to_string(spec.tasks.size())};
        task.gpu_count = gpus;
        task.cpu_milli = 8000 * gpus;
        task.memory_mib = 65'536 * gpus;
        task.priority = kind == "full" ? 40 : 50;
        task.preemptible = true;
        task.priority_class = PriorityClass::lp;
        task.start_time = rng.between(0, 90'000);
        task.node = spec.nodes[node].name;
        for (int g = 0; g < gpus; ++g) task.gpus.push_back(used[node]++);
        spec.tasks.push_back(std::move(task));
    };
    const auto size = [&] {
        const auto u = rng.below(10);
        return u < 4 ? 1 : u < 7 ? 2 : 4;
    };
    const auto count = static_cast<std::size_t>(nodes);
    if (kind == "fig") {
        for (std::size_t n = 0; n < count; ++n) {
            add(n, 4);
            if (rng.chance(0.5)) {
                add(n, 2);
            } else {
                add(n, 1);
                add(n, 1);
            }
        }
    } else {
        const auto wanted = kind == "full" ? 8 * nodes : 8 * nodes * (kind == "rnd" ? 92 : 78) / 100;
        int placed = 0;
        std::size_t next = 0;  // "spr" tries the nodes in turn, so that they become equally full
        for (int misses = 0; placed < wanted && misses < 50 * nodes;) {
            const int gpus = std::min(size(), kind == "full" ? wanted - placed : 8);
            auto node = static_cast<std::size_t>(rng.below(count));
            if (kind == "spr")
                for (int tries = 0; tries < 8; ++tries) {
                    const auto other = next++ % count;
                    if (used[other] < used[node]) node = other;
                }
            if (used[node] + gpus > 8) {
                ++misses;
                continue;
            }
            add(node, gpus);
            placed += gpus;
        }
        if (kind == "full")
            for (std::size_t n = 0; n < count; ++n)
                while (used[n] < 8) add(n, 1);
    }
    const bool high = pending.starts_with("hi");
    const int pods = pending.back() - '0';
    spec.jobs.push_back({.name = "gang", .min_members = pods});
    for (int p = 0; p < pods; ++p) {
        TaskSpec task{.name = "p" + std::to_string(p), .job = "gang"};
        task.gpu_count = 8;
        task.cpu_milli = 64'000;
        task.memory_mib = 524'288;
        task.priority = high ? 100 : 50;
        task.priority_class = PriorityClass::hp;
        spec.tasks.push_back(std::move(task));
    }
    return spec;
}

struct Outcome {
    admission::Admission made{};
    std::int64_t moves = 0, evictions = 0, lost = 0, cost = 0, steps = 0;
    double ms = 0;
    bool admitted = true, proven = true, ok = true;
};

// Admits the jobs one after the other.
Outcome run(const Cluster& start, const std::vector<std::vector<TaskId>>& jobs,
            const admission::Options& options, int repeat) {
    Outcome best;
    for (int r = 0; r < repeat; ++r) {
        Outcome out;
        Cluster cluster(start);
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            const double before = bench::processor_s();
            auto made = admission::admit(cluster, jobs[j], options);
            out.ms += 1e3 * (bench::processor_s() - before);
            out.moves += static_cast<std::int64_t>(made.plan.moves.size());
            out.evictions += static_cast<std::int64_t>(made.plan.evictions.size());
            out.lost += static_cast<std::int64_t>(made.lost.size());
            out.cost += made.cost.total();
            out.steps += made.stats.steps;
            out.admitted = out.admitted && made.admitted;
            out.proven = out.proven && made.proven;
            if (r == 0 && made.admitted)
                out.ok = out.ok && verify::plan(cluster.to_spec(), to_spec(made.plan, cluster)).ok;
            if (j + 1 < jobs.size() && made.admitted) cluster = apply(cluster, made.plan);
            out.made = std::move(made);
        }
        if (r == 0) best = out;
        best.ms = std::min(best.ms, out.ms);
    }
    return best;
}

bench::Row row_of(const Outcome& out) {
    return {{"admitted", out.admitted},
            {"moves", out.moves},
            {"evictions", out.evictions},
            {"lost", out.lost},
            {"cost_gpu_s", static_cast<double>(out.cost) / 1000},
            {"proven", out.proven},
            {"lower_bound_gpu_s", static_cast<double>(out.made.bound.value_or(-1)) / 1000},
            {"steps", out.steps},
            {"ms", bench::rounded(out.ms, 3)},
            {"verified", out.ok}};
}

void report(const std::string& name, const ClusterSpec& spec, const Kai* kai, int repeat, bool preempt) {
    const auto cluster = Cluster::build(spec);
    std::map<JobId, std::vector<TaskId>> by_job;
    for (const auto task : cluster.tasks())
        if (!cluster.is_placed(task)) by_job[cluster.inventory().tasks.job[index(task)]].push_back(task);
    std::vector<std::vector<TaskId>> jobs;
    for (auto& [job, pods] : by_job) jobs.push_back(std::move(pods));
    bench::Row row{{"case", name}, {"nodes", spec.nodes.size()}, {"tasks", spec.tasks.size()}};
    if (kai != nullptr)
        row["kai"] = {{"disturbed", kai->disturbed}, {"lost", kai->lost}, {"ms", bench::rounded(kai->ms, 2)}};
    admission::Options counted{
        .prices = {.move_price_s = 0, .restart_s = 0, .loss_s = 0, .recall_price_s = 0, .task_price_s = 1}};
    counted.prices.work = false;
    row["counted"] = row_of(run(cluster, jobs, counted, repeat));
    row["priced"] = row_of(run(cluster, jobs, {}, repeat));
    if (preempt && jobs.size() == 1) {
        row["by evictions alone"] = row_of(run(cluster, jobs, {.moves = false, .standby = false}, repeat));
        for (const bool again : {false, true}) {
            preemption::Options options{.policy = preemption::Policy::spot_exact};
            options.replace_victims = again;
            const double before = bench::processor_s();
            const auto found = preemption::preempt_gang(cluster, jobs.front(), options).decision;
            const auto ms = 1e3 * (bench::processor_s() - before);
            std::int64_t lost = 0, cost = 0;
            if (found) {
                cost = found->cost;
                for (const auto task : found->victims) {
                    const bool runs = std::any_of(found->replaced.begin(), found->replaced.end(),
                                                  [&](const Placement& p) { return p.task == task; });
                    lost += !runs;
                    const admission::Prices prices;
                    cost += cluster.gpu_milli(task) * (runs ? prices.restart_s : prices.loss_s);
                }
            }
            row[again ? "preempt_gang and places again" : "preempt_gang"] = {
                {"admitted", found.has_value()},
                {"evictions", found ? found->victims.size() : 0},
                {"lost", lost},
                {"cost_gpu_s", static_cast<double>(cost) / 1000},
                {"ms", bench::rounded(ms, 3)}};
        }
    }
    bench::print(row);
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Compares admit with KAI-Scheduler on fragmented clusters of 8-GPU nodes.", argc,
                            argv);
    std::string data = bench::data_path("kai-admission");
    bool generated = false, preempt = false;
    int repeat = line.smoke() ? 1 : 10, seeds = 1;
    std::vector<int> sizes{500, 4000, 40'000};
    if (line.smoke()) sizes = {50};
    line.option("--data", data, "folder with the clusters and kai-results.json");
    line.flag("--generate", generated, "generate similar clusters instead");
    line.option("--nodes", sizes, "sizes of generated clusters")->check(bench::at_least(1));
    line.option("--seeds", seeds, "generated clusters of each kind")->check(bench::at_least(1));
    line.option("--repeat", repeat, "runs; the fastest one counts")->check(bench::at_least(1));
    line.flag("--preempt", preempt, "add admit by evictions alone, and preempt_gang");
    line.read();
    if (generated || line.smoke()) {
        for (const int nodes : sizes)
            for (const char* kind : {"rnd", "spr", "fig", "full"})
                for (const char* pending : {"x1", "x4", "hi1", "hi4"})
                    for (int seed = 0; seed < seeds; ++seed) {
                        if (std::string(kind) == "full" && pending[0] == 'x') continue;
                        report(std::string(kind) + "-" + std::to_string(nodes) + "-" + pending + "-" +
                                   std::to_string(seed),
                               generate(kind, pending, nodes, static_cast<std::uint64_t>(seed)), nullptr,
                               repeat, preempt);
                    }
        return 0;
    }
    if (!std::filesystem::is_directory(data)) {
        std::fprintf(stderr, "no data: %s is missing; set GPUSCHED_DATA or --data, or use --generate\n",
                     data.c_str());
        return 1;
    }
    const auto kai = read_kai(read_file(data + "/kai-results.json"));
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(data))
        if (entry.path().extension() == ".gz") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
        const auto name = file.stem().stem().string();
        const auto text = read_compressed(file);
        if (text.empty()) {
            std::fprintf(stderr, "%s cannot be read\n", file.c_str());
            return 1;
        }
        const auto at = kai.find(name);
        report(name, io::cluster_from_json(text, name), at == kai.end() ? nullptr : &at->second, repeat,
               preempt);
    }
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Allocation over switches: time and quality of the rules for one job, gangs on a large cluster, several jobs at once.
//
//   bench_allocation_switches [--instances N] [--nodes N] [--json FILE] [--smoke]
//
// "counts": random capacities of 1,000 switches, with and without narrow ranges. "single": uneven trees (leaf groups of 1
// to 64 nodes of 8 GPUs), 60 to 95 % of the GPUs taken in whole nodes and parts of nodes, one job of 64 to 2,048 GPUs per
// instance; besides the two policies the usual rules on the same capacities: the tightest domain that holds everything, else the
// largest ones (best_fit), the fullest domain first (least_free), any order (random). "gang": 2,048 GPUs in pods of 8 on a
// generated cluster, placed in the cluster itself and rolled back. "joint": 50 jobs that ask for 80 to 95 % of what is free, sorted
// by size against the joint search, paired by instance; intervals are 95 %, by Student's t.
#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/allocate_many.hpp>
#include <gpusched/allocation/job_request.hpp>
#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/entropy.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gpusched;
using namespace gpusched::allocation;
using Clock = std::chrono::steady_clock;
using Counts = std::vector<std::int64_t>;

double microseconds_since(Clock::time_point from) {
    return std::chrono::duration<double, std::micro>(Clock::now() - from).count();
}

double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    return values[std::min(values.size() - 1,
                           static_cast<std::size_t>(q * static_cast<double>(values.size())))];
}

/// Mean and half the width of its 95 % interval; 1.96 stands for t, which it is within 2 % from 60 instances on.
struct Mean {
    double mean = 0, half = 0;
    explicit Mean(const std::vector<double>& values) {
        const auto n = static_cast<double>(values.size());
        if (values.empty()) return;
        mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
        double squares = 0;
        for (const double v : values) squares += (v - mean) * (v - mean);
        if (n > 1) half = 1.96 * std::sqrt(squares / (n - 1) / n);
    }
};

struct Row {
    std::string text{};
    void add(const std::string& name, double value) {
        char number[64];
        std::snprintf(number, sizeof number, "%.6g", value);
        text += (text.empty() ? "" : ", ") + ("\"" + name + "\": " + number);
    }
    void name(const std::string& key, const std::string& value) {
        text += (text.empty() ? "" : ", ") + ("\"" + key + "\": \"" + value + "\"");
    }
};

// Baselines -----------------------------------------------------------------------------------------------------

Counts in_order(const Counts& capacity, std::int64_t pods, const std::vector<std::size_t>& order) {
    Counts counts(capacity.size(), 0);
    for (const auto s : order) {
        counts[s] = std::min(capacity[s], pods);
        pods -= counts[s];
    }
    return counts;
}

std::vector<std::size_t> sorted(const Counts& capacity, bool largest_first) {
    std::vector<std::size_t> order(capacity.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(largest_first ? -capacity[a] : capacity[a], a) <
               std::pair(largest_first ? -capacity[b] : capacity[b], b);
    });
    return order;
}

Counts best_fit(const Counts& capacity, std::int64_t pods) {
    for (const auto s : sorted(capacity, false))
        if (capacity[s] >= pods) {
            Counts counts(capacity.size(), 0);
            counts[s] = pods;
            return counts;
        }
    return in_order(capacity, pods, sorted(capacity, true));
}

void counts_rows(int repeats, std::vector<Row>& rows) {
    for (const std::int64_t largest : {8, 512}) {
        Rng rng(1);
        std::vector<double> exact, greedy;
        double sum = 0;
        for (int i = 0; i < repeats; ++i) {
            Counts capacity(1000);
            for (auto& c : capacity) c = rng.between(0, largest);
            const auto pods = rng.between(1, largest * 40);
            auto start = Clock::now();
            sum += static_cast<double>(least_entropy(capacity, pods)->front());
            exact.push_back(microseconds_since(start));
            start = Clock::now();
            sum += static_cast<double>(entropy_greedy(capacity, pods)->front());
            greedy.push_back(microseconds_since(start));
        }
        Row row;
        row.name("part", "counts");
        row.add("switches", 1000);
        row.add("largest", static_cast<double>(largest));
        row.add("jobs", repeats);
        row.add("exact_p50_us", quantile(exact, .5));
        row.add("exact_p99_us", quantile(exact, .99));
        row.add("algorithm_2_p50_us", quantile(greedy, .5));
        row.add("algorithm_2_p99_us", quantile(greedy, .99));
        row.add("check", sum);
        rows.push_back(row);
    }
}

/// Leaf groups of 1 to 64 nodes with 8 GPUs under aggregation switches of 8 groups; `load` of the GPUs are taken.
ClusterSpec uneven_tree(Rng& rng, int nodes, double load) {
    ClusterSpec spec;
    for (int s = 0; static_cast<int>(spec.nodes.size()) < nodes; ++s) {
        const auto size =
            std::min<std::int64_t>(rng.between(1, 64), nodes - static_cast<int>(spec.nodes.size()));
        // Some switches are fuller than others.
        const double here = std::clamp(load + rng.uniform() * 0.4 - 0.2, 0.0, 1.0);
        for (std::int64_t n = 0; n < size; ++n) {
            NodeSpec node{.name = "n" + std::to_string(spec.nodes.size()), .gpu_model = "A", .gpu_count = 8};
            node.network = {"g" + std::to_string(s / 8), "s" + std::to_string(s)};
            const auto taken = rng.chance(here) ? (rng.chance(0.8) ? 8 : rng.between(1, 7)) : 0;
            if (taken > 0) {
                TaskSpec task{.name = "t" + std::to_string(spec.nodes.size()), .gpu_count = taken};
                task.node = node.name;
                for (int g = 0; g < taken; ++g) task.gpus.push_back(g);
                spec.tasks.push_back(task);
            }
            spec.nodes.push_back(node);
        }
    }
    return spec;
}

void single_rows(int instances, std::vector<Row>& rows) {
    std::map<std::string, std::vector<double>> entropies, one;
    std::vector<double> gain;
    int placed = 0, differ = 0;
    for (int i = 0; i < instances; ++i) {
        Rng rng(static_cast<std::uint64_t>(i));
        const auto spec = uneven_tree(rng, 2000, 0.6 + 0.35 * rng.uniform());
        std::map<std::string, std::size_t> id;
        Counts capacity;
        std::map<std::string, std::int64_t> used;
        for (const auto& task : spec.tasks) used[*task.node] += task.gpu_count;
        for (const auto& node : spec.nodes) {
            const auto at = id.try_emplace(node.network[1], id.size()).first->second;
            capacity.resize(id.size());
            capacity[at] += used[node.name] == 0 ? 1 : 0;
        }
        const auto pods = std::int64_t{8} << rng.below(6);  // 64 .. 2,048 GPUs in nodes of 8
        const auto exact = least_entropy(capacity, pods);
        if (!exact) continue;
        ++placed;
        auto any = sorted(capacity, true);
        rng.shuffle(std::span(any));
        auto fullest = sorted(capacity, false);
        const std::map<std::string, Counts> found{{"exact", *exact},
                                                  {"algorithm_2", *entropy_greedy(capacity, pods)},
                                                  {"best_fit", best_fit(capacity, pods)},
                                                  {"least_free", in_order(capacity, pods, fullest)},
                                                  {"random", in_order(capacity, pods, any)}};
        for (const auto& [name, counts] : found) {
            entropies[name].push_back(fragmentation::entropy(counts));
            one[name].push_back(entropies[name].back() < 1e-12 ? 1 : 0);
        }
        gain.push_back(entropies["algorithm_2"].back() - entropies["exact"].back());
        differ += gain.back() > 1e-9;
    }
    for (const auto& [name, values] : entropies) {
        Row row;
        row.name("part", "single");
        row.name("rule", name);
        row.add("instances", instances);
        row.add("placed", placed);
        row.add("entropy", Mean(values).mean);
        row.add("entropy_interval", Mean(values).half);
        row.add("within_one_switch", Mean(one[name]).mean);
        if (name == "algorithm_2") {
            row.add("minus_exact", Mean(gain).mean);
            row.add("minus_exact_interval", Mean(gain).half);
            row.add("not_optimal", static_cast<double>(differ) / placed);
        }
        rows.push_back(row);
    }
}

void gang_rows(std::int64_t nodes, int repeats, std::vector<Row>& rows) {
    const auto cluster = Cluster::build(sim::generate_cluster({.nodes = nodes, .load = 0.8}));
    PodRequest pods{.count = 256};
    pods.pod.gpu_count = 8;
    pods.pod.cpu_milli = 64'000;
    auto with = with_job(cluster, {"gang", {pods}});
    for (const auto policy : {AllocatePolicy::exact, AllocatePolicy::entropy}) {
        std::vector<double> times;
        Allocation found;
        const auto start_of_log = with.cluster.checkpoint();
        for (int i = 0; i < repeats; ++i) {
            const auto start = Clock::now();
            found = place_gang(with.cluster, with.pods, {.policy = policy});
            times.push_back(microseconds_since(start));
            with.cluster.rollback(start_of_log);
        }
        Row row;
        row.name("part", "gang");
        row.name("policy", policy == AllocatePolicy::exact ? "exact" : "algorithm_2");
        row.add("nodes", static_cast<double>(with.cluster.node_count()));
        row.add("gpus", 2048);
        row.add("placed", found.placed);
        row.add("switches", static_cast<double>(found.per_domain.size()));
        row.add("entropy", found.entropy);
        row.add("p50_us", quantile(times, .5));
        row.add("p99_us", quantile(times, .99));
        rows.push_back(row);
    }
}

void joint_rows(int instances, int jobs, int nodes, std::vector<Row>& rows) {
    std::vector<double> placed_gain, entropy_gain, times, sorted_entropy, joint_entropy, sorted_placed,
        joint_placed;
    int worse = 0;
    for (int i = 0; i < instances; ++i) {
        Rng rng(static_cast<std::uint64_t>(i));
        const auto spec = uneven_tree(rng, nodes, 0.5);
        const auto cluster = Cluster::build(spec);
        std::int64_t idle = 0;
        for (const auto node : cluster.nodes()) idle += gpu_count(cluster.idle_gpus(node)) == 8;
        // Sizes from a heavy tail, together 80 to 95 % of the free nodes.
        std::vector<double> parts;
        for (int j = 0; j < jobs; ++j)
            parts.push_back(std::exp(1.2 * (rng.uniform() + rng.uniform() + rng.uniform())));
        const double all = std::accumulate(parts.begin(), parts.end(), 0.0);
        const double load = 0.8 + 0.15 * rng.uniform();
        std::vector<JobRequest> requests;
        for (int j = 0; j < jobs; ++j) {
            PodRequest pods{.count = std::max<std::int64_t>(
                                1, static_cast<std::int64_t>(load * static_cast<double>(idle) *
                                                             parts[static_cast<std::size_t>(j)] / all))};
            pods.pod.gpu_count = 8;
            requests.push_back({"j" + std::to_string(j), {pods}});
        }
        const auto with = with_jobs(cluster, requests);
        std::vector<GangRequest> gangs;
        for (const auto& job : with.jobs) gangs.push_back({job.pods, {}});
        const auto simple = allocate_many(with.cluster, gangs, {.policy = JointPolicy::size_sorted});
        const auto start = std::clock();
        const auto joint = allocate_many(with.cluster, gangs, {.seed = static_cast<std::uint64_t>(i)});
        times.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
        placed_gain.push_back(static_cast<double>(joint.placed - simple.placed));
        sorted_placed.push_back(static_cast<double>(simple.placed));
        joint_placed.push_back(static_cast<double>(joint.placed));
        worse += joint.placed < simple.placed;
        if (joint.placed != simple.placed) continue;
        sorted_entropy.push_back(simple.entropy);
        joint_entropy.push_back(joint.entropy);
        entropy_gain.push_back(simple.entropy - joint.entropy);
        worse += entropy_gain.back() < -1e-9;
    }
    Row row;
    row.name("part", "joint");
    row.add("instances", instances);
    row.add("jobs", jobs);
    row.add("nodes", nodes);
    row.add("sorted_placed", Mean(sorted_placed).mean);
    row.add("joint_placed", Mean(joint_placed).mean);
    row.add("placed_gain", Mean(placed_gain).mean);
    row.add("placed_gain_interval", Mean(placed_gain).half);
    row.add("equally_many", static_cast<double>(entropy_gain.size()));
    row.add("sorted_entropy", Mean(sorted_entropy).mean);
    row.add("joint_entropy", Mean(joint_entropy).mean);
    row.add("entropy_gain", Mean(entropy_gain).mean);
    row.add("entropy_gain_interval", Mean(entropy_gain).half);
    row.add("worse", worse);
    row.add("p50_cpu_s", quantile(times, .5));
    row.add("max_cpu_s", quantile(times, 1));
    rows.push_back(row);
}

}  // namespace

int main(int argc, char** argv) {
    int instances = 100;
    std::int64_t nodes = 37'707;
    bool smoke = false;
    std::string json;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        const auto next = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
        if (arg == "--instances")
            instances = std::max(2, std::atoi(next().c_str()));
        else if (arg == "--nodes")
            nodes = std::max(100, std::atoi(next().c_str()));
        else if (arg == "--json")
            json = next();
        else if (arg == "--smoke")
            smoke = true;
        else {
            std::fprintf(stderr, "unknown argument: %s\n", arg.c_str());
            return 2;
        }
    }
    if (smoke) {
        instances = 2;
        nodes = 2000;
    }
    std::vector<Row> rows;
    counts_rows(smoke ? 10 : 2000, rows);
    single_rows(smoke ? 10 : 10 * instances, rows);
    gang_rows(nodes, smoke ? 3 : 200, rows);
    joint_rows(instances, 50, smoke ? 300 : 2000, rows);
    std::string text;
    for (const auto& row : rows) text += "{" + row.text + "}\n";
    std::fputs(text.c_str(), stdout);
    if (!json.empty()) std::ofstream(json) << text;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Measures allocation over network switches: time and quality of the rules for one job, for a gang on a large
// cluster, and for several jobs at once.
//
// - "counts": random capacities of 1,000 switches, with and without narrow ranges.
// - "single": uneven trees with leaf groups of 1 to 64 nodes of 8 GPUs, 60 to 95 % of the GPUs taken, and one
//   job of 64 to 2,048 GPUs per instance. Three simple rules get the same capacities: best_fit takes the
//   tightest domain that holds the whole job, else the largest domains; least_free takes the fullest domains
//   first; random takes any order.
// - "gang": 2,048 GPUs in pods of 8 on a generated cluster, placed in the cluster itself and rolled back.
// - "joint": 50 jobs that request 80 to 95 % of the free GPUs, sorted by size against the joint search,
//   paired by instance.
//
// Intervals are 95 %, by Student's t.
#include "../support/command_line.hpp"
#include "../support/interval.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/allocate_many.hpp>
#include <gpusched/allocation/job_request.hpp>
#include <gpusched/allocation/switch_counts.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/fragmentation/entropy.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace gpusched;
using namespace gpusched::allocation;
using bench::interval, bench::quantile, bench::Row, bench::rounded, bench::seconds;
using Counts = std::vector<std::int64_t>;

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
            exact.push_back(
                1e6 * seconds([&] { sum += static_cast<double>(least_entropy(capacity, pods)->front()); }));
            greedy.push_back(
                1e6 * seconds([&] { sum += static_cast<double>(entropy_greedy(capacity, pods)->front()); }));
        }
        rows.push_back({{"part", "counts"},
                        {"switches", 1000},
                        {"largest", largest},
                        {"jobs", repeats},
                        {"exact_p50_us", rounded(quantile(exact, .5), 3)},
                        {"exact_p99_us", rounded(quantile(exact, .99), 3)},
                        {"algorithm_2_p50_us", rounded(quantile(greedy, .5), 3)},
                        {"algorithm_2_p99_us", rounded(quantile(greedy, .99), 3)},
                        {"check", sum}});
    }
}

/// Leaf groups of 1 to 64 nodes with 8 GPUs, 8 groups per aggregation switch; a share `load` of the GPUs is
/// taken.
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
        const auto entropy = interval(values);
        Row row{{"part", "single"},
                {"rule", name},
                {"instances", instances},
                {"placed", placed},
                {"entropy", rounded(entropy.mean, 6)},
                {"entropy_interval", rounded(entropy.half, 6)},
                {"within_one_switch", rounded(interval(one[name]).mean, 6)}};
        if (name == "algorithm_2") {
            row["minus_exact"] = rounded(interval(gain).mean, 6);
            row["minus_exact_interval"] = rounded(interval(gain).half, 6);
            row["not_optimal"] = rounded(static_cast<double>(differ) / placed, 6);
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
            times.push_back(
                1e6 * seconds([&] { found = place_gang(with.cluster, with.pods, {.policy = policy}); }));
            with.cluster.rollback(start_of_log);
        }
        rows.push_back({{"part", "gang"},
                        {"policy", policy == AllocatePolicy::exact ? "exact" : "algorithm_2"},
                        {"nodes", with.cluster.node_count()},
                        {"gpus", 2048},
                        {"placed", found.placed},
                        {"switches", found.per_domain.size()},
                        {"entropy", rounded(found.entropy, 6)},
                        {"p50_us", rounded(quantile(times, .5), 3)},
                        {"p99_us", rounded(quantile(times, .99), 3)}});
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
        const double start = bench::processor_s();
        const auto joint = allocate_many(with.cluster, gangs, {.seed = static_cast<std::uint64_t>(i)});
        times.push_back(bench::processor_s() - start);
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
    const auto more = interval(placed_gain), less = interval(entropy_gain);
    rows.push_back({{"part", "joint"},
                    {"instances", instances},
                    {"jobs", jobs},
                    {"nodes", nodes},
                    {"sorted_placed", rounded(interval(sorted_placed).mean, 6)},
                    {"joint_placed", rounded(interval(joint_placed).mean, 6)},
                    {"placed_gain", rounded(more.mean, 6)},
                    {"placed_gain_interval", rounded(more.half, 6)},
                    {"equally_many", entropy_gain.size()},
                    {"sorted_entropy", rounded(interval(sorted_entropy).mean, 6)},
                    {"joint_entropy", rounded(interval(joint_entropy).mean, 6)},
                    {"entropy_gain", rounded(less.mean, 6)},
                    {"entropy_gain_interval", rounded(less.half, 6)},
                    {"worse", worse},
                    {"p50_cpu_s", rounded(quantile(times, .5), 6)},
                    {"max_cpu_s", rounded(quantile(times, 1), 6)}});
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Allocation over switches.", argc, argv);
    const bool smoke = line.smoke();
    int instances = smoke ? 2 : 100;
    std::int64_t nodes = smoke ? 2000 : 37'707;
    std::string json;
    line.option("--instances", instances, "instances")->check(bench::at_least(2));
    line.option("--nodes", nodes, "nodes of the cluster of the gang")->check(bench::at_least(100));
    line.option("--json", json, "file for the rows");
    line.read();
    std::vector<Row> rows;
    counts_rows(smoke ? 10 : 2000, rows);
    single_rows(smoke ? 10 : 10 * instances, rows);
    gang_rows(nodes, smoke ? 3 : 200, rows);
    joint_rows(instances, 50, smoke ? 300 : 2000, rows);
    std::string text;
    for (const auto& row : rows) text += row.dump() + "\n";
    std::fputs(text.c_str(), stdout);
    if (!json.empty()) std::ofstream(json) << text;
    return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Repeats tables 4 and 5 of the FlexTopo paper: topology hit rates, and microseconds per decision of all
// engines.
//
// The cluster is the paper's: RTX 4090 machines (2 sockets, 8 NUMA nodes, 8 GPUs), saturated with the
// workloads of its Table 3. The GPUs of a pod are within one socket if possible ("aligned") or anywhere
// ("random").
//
// Hit rates: one decision each for workload B (4 GPUs) and C (2 GPUs) per start and seed, and 50 decisions in
// sequence that are carried out. Policies are deterministic, so further independent instances would give the
// same decision.
//
// Latencies: before each decision 1 to 4 random nodes see one task leave and a similar one start. "update",
// "decision" and their sum are for the index; the other engines look at the whole cluster each time. "first"
// is the first decision for a shape. Allocations are counted in the index's updates and decisions after
// warm-up.
#include "../support/allocations.hpp"
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/preemption/index.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace gpusched;
using namespace gpusched::preemption;
using bench::clock_s, bench::quantile;

// The saturated cluster, with pending instances of all workloads after its running tasks.
struct Start {
    ClusterSpec spec;
    std::vector<TaskId> scale_up[2];                     // B and C
    std::map<std::int64_t, std::vector<TaskId>> spares;  // by GPUs
};

Start make_start(std::int64_t nodes, std::uint64_t seed, bool aligned) {
    Start start;
    start.spec = sim::generate_cluster(
        {.preset = "flextopo-4090", .nodes = nodes, .seed = seed, .aligned_gpus = aligned});
    auto& tasks = start.spec.tasks;
    std::erase_if(tasks, [](const TaskSpec& t) { return !t.node; });
    const auto like = [&](std::int64_t gpus, const std::string& name) {
        const auto found =
            std::find_if(tasks.begin(), tasks.end(), [&](const TaskSpec& t) { return t.gpu_count == gpus; });
        auto task = *found;
        task.name = name;
        task.job.clear();
        task.node.reset();
        task.gpus.clear();
        tasks.push_back(task);
        return make_id<TaskId>(tasks.size() - 1);
    };
    for (int i = 0; i < 25; ++i) {
        start.scale_up[0].push_back(like(4, "scale-b-" + std::to_string(i)));
        start.scale_up[1].push_back(like(2, "scale-c-" + std::to_string(i)));
        start.spares[1].push_back(like(1, "spare-d-" + std::to_string(i)));
        start.spares[2].push_back(like(2, "spare-c-" + std::to_string(i)));
    }
    return start;
}

struct Method {
    const char* name;
    Options options;
};

std::vector<Method> methods() {
    return {{"first feasible set, blind", {.policy = Policy::first_fit, .qos = Qos::none}},
            {"Kubernetes reprieve, blind", {.policy = Policy::reprieve, .qos = Qos::none}},
            {"IMP, blind", {.policy = Policy::imp, .qos = Qos::none}},
            {"IMP, best effort", {.policy = Policy::imp, .qos = Qos::best_effort}},
            {"Equation 1, best effort", {.policy = Policy::exhaustive, .qos = Qos::best_effort}},
            {"IMP, guaranteed", {.policy = Policy::imp, .qos = Qos::guaranteed}},
            {"Equation 1, guaranteed", {.policy = Policy::exhaustive, .qos = Qos::guaranteed}}};
}

struct Hits {
    int decisions = 0, hits = 0, failures = 0, evicted = 0;
    void count(const Result& result) {
        ++decisions;
        if (!result.decision) {
            ++failures;
            return;
        }
        hits += result.decision->topology != topology::GpuLocality::cross ? 1 : 0;
        evicted += static_cast<int>(result.decision->victims.size());
    }
};

void hit_rates(int seeds, std::ofstream& json) {
    std::printf(
        "Topology hit rate (all GPUs in one socket), 100 nodes, %d starts; decisions hit / made, failed\n",
        seeds);
    std::printf("%-28s %-8s %-30s %s\n", "method", "start", "independent", "50 in turn (B, C, B, ...)");
    for (const bool aligned : {true, false})
        for (const auto& method : methods()) {
            Hits independent, in_turn;
            for (int seed = 0; seed < seeds; ++seed) {
                const auto start = make_start(100, static_cast<std::uint64_t>(seed), aligned);
                auto cluster = Cluster::build(start.spec, IdOrder::as_listed);
                for (const auto& tasks : start.scale_up)
                    independent.count(preempt(cluster, tasks[0], method.options));
                for (std::size_t i = 0; i < 50; ++i) {
                    const auto task = start.scale_up[i % 2][i / 2];
                    const auto result = preempt(cluster, task, method.options);
                    in_turn.count(result);
                    if (!result.decision) continue;
                    for (const auto victim : result.decision->victims) cluster.remove(victim);
                    cluster.assign(task, result.decision->node, result.decision->gpus);
                }
            }
            const auto row = [](const Hits& h) {
                char text[80];
                std::snprintf(text, sizeof text, "%5.1f %% (%d / %d, %d)", 100.0 * h.hits / h.decisions,
                              h.hits, h.decisions, h.failures);
                return std::string(text);
            };
            const char* layout = aligned ? "aligned" : "random";
            std::printf("%-28s %-8s %-30s %s, %.2f victims each\n", method.name, layout,
                        row(independent).c_str(), row(in_turn).c_str(),
                        static_cast<double>(in_turn.evicted) / in_turn.decisions);
            if (json.is_open())
                json << bench::Row{{"table", "hits"},
                                   {"method", method.name},
                                   {"start", layout},
                                   {"independent_hits", independent.hits},
                                   {"independent", independent.decisions},
                                   {"independent_failures", independent.failures},
                                   {"in_turn_hits", in_turn.hits},
                                   {"in_turn", in_turn.decisions},
                                   {"in_turn_failures", in_turn.failures},
                                   {"in_turn_victims", in_turn.evicted}}
                     << '\n';
        }
}

struct Swap {
    TaskId leaves, starts;
    NodeId node;
    GpuMask gpus;
};

// One task of a random node leaves, another of its size starts on its GPUs.
class Churn {
  public:
    Churn(Start& start, std::uint64_t seed) : start_(start), rng_(seed) { swaps_.reserve(4); }
    const std::vector<Swap>& next(const Cluster& cluster) {
        swaps_.clear();
        const auto wanted = 1 + rng_.below(4);
        while (swaps_.size() < wanted) {
            const auto node = make_id<NodeId>(rng_.below(cluster.node_count()));
            if (std::any_of(swaps_.begin(), swaps_.end(), [&](const Swap& s) { return s.node == node; }))
                continue;
            for (const auto task : cluster.tasks_on(node)) {
                const auto found = start_.spares.find(cluster.inventory().tasks.gpu_count[index(task)]);
                if (found == start_.spares.end() || !rng_.chance(0.3)) continue;
                auto& spare = found->second[rng_.below(found->second.size())];
                swaps_.push_back({task, spare, node, cluster.gpus_of(task)});
                spare = task;
                break;
            }
        }
        return swaps_;
    }

  private:
    Start& start_;
    Rng rng_;
    std::vector<Swap> swaps_;
};

void print_row(std::int64_t nodes, const char* workload, const std::string& engine, const char* what,
               const std::vector<double>& us, std::ofstream& json) {
    const double p50 = quantile(us, 0.5), p90 = quantile(us, 0.9), p99 = quantile(us, 0.99);
    std::printf("%6lld  %-4s %-30s %-10s %12.2f %12.2f %12.2f\n", static_cast<long long>(nodes), workload,
                engine.c_str(), what, p50, p90, p99);
    if (json.is_open())
        json << bench::Row{{"table", "latency"}, {"nodes", nodes}, {"workload", workload},
                           {"engine", engine},   {"what", what},   {"count", us.size()},
                           {"p50_us", p50},      {"p90_us", p90},  {"p99_us", p99}}
             << '\n';
}

void latencies(std::int64_t nodes, int decisions, std::ofstream& json) {
    const char* const workloads[] = {"B", "C"};
    const Method whole[] = {
        {"first feasible set", {.policy = Policy::first_fit, .qos = Qos::none}},
        {"Kubernetes reprieve", {.policy = Policy::reprieve, .qos = Qos::none}},
        {"exhaustive, plain",
         {.policy = Policy::exhaustive, .engine = Engine::plain, .qos = Qos::best_effort}},
        {"exhaustive, masks", {.policy = Policy::exhaustive, .qos = Qos::best_effort}},
        {"IMP, plain", {.policy = Policy::imp, .engine = Engine::plain, .qos = Qos::best_effort}},
        {"IMP, masks", {.policy = Policy::imp, .qos = Qos::best_effort}}};
    for (std::size_t w = 0; w < 2; ++w) {
        for (const auto& method : whole) {
            auto start = make_start(nodes, 1, true);
            auto cluster = Cluster::build(start.spec, IdOrder::as_listed);
            Churn churn(start, 2);
            std::vector<double> total;
            const int count = std::clamp(static_cast<int>(1'000'000 / nodes), 20, decisions);
            for (int i = 0; i < count; ++i) {
                for (const auto& s : churn.next(cluster)) {
                    cluster.remove(s.leaves);
                    cluster.assign(s.starts, s.node, s.gpus);
                }
                cluster.commit();
                const double from = clock_s();
                const auto result = preempt(cluster, start.scale_up[w][0], method.options);
                total.push_back(1e6 * (clock_s() - from));
                if (!result.decision || result.decision->victims.empty()) std::abort();
            }
            print_row(nodes, workloads[w], method.name, "decision", total, json);
        }
        for (const auto policy : {Policy::exhaustive, Policy::imp}) {
            const std::string engine = std::string(policy == Policy::imp ? "IMP" : "exhaustive") + ", index";
            auto start = make_start(nodes, 1, true);
            const auto task = start.scale_up[w][0];
            const Options options{.policy = policy, .qos = Qos::best_effort};
            auto cluster = Cluster::build(start.spec, IdOrder::as_listed);
            cluster.keep_events();
            PreemptionIndex live(options);
            std::vector<double> first, update, decision, sum;
            const double before = clock_s();
            (void)live.decide(cluster, task);
            first.push_back(1e6 * (clock_s() - before));
            Churn churn(start, 2);
            for (auto* q : {&update, &decision, &sum}) q->reserve(static_cast<std::size_t>(decisions));
            std::size_t allocated = 0;
            int different = 0, compared = 0;
            for (int i = 0; i < decisions + 100; ++i) {
                const auto& swaps = churn.next(cluster);
                const auto count = bench::allocations;
                const double t0 = clock_s();
                for (const auto& s : swaps) {
                    cluster.remove(s.leaves);
                    cluster.commit();
                    cluster.assign(s.starts, s.node, s.gpus);
                    cluster.commit();
                }
                const double t1 = clock_s();
                const auto* const found = live.decide(cluster, task);
                const double t2 = clock_s();
                if (found == nullptr || found->victims.empty()) std::abort();
                if (i < 100) continue;  // warm-up
                allocated += bench::allocations - count;
                update.push_back(1e6 * (t1 - t0));
                decision.push_back(1e6 * (t2 - t1));
                sum.push_back(1e6 * (t2 - t0));
                if (i % std::max(1, decisions / 20) != 0) continue;
                auto plain = options;
                plain.engine = Engine::plain;
                ++compared;
                different += *preempt(cluster, task, plain).decision == *found ? 0 : 1;
            }
            print_row(nodes, workloads[w], engine, "first", first, json);
            print_row(nodes, workloads[w], engine, "update", update, json);
            print_row(nodes, workloads[w], engine, "decision", decision, json);
            print_row(nodes, workloads[w], engine, "sum", sum, json);
            std::printf("        %zu allocations in %d updates and decisions; %d of %d answers differ from "
                        "the plain engine\n",
                        allocated, decisions, different, compared);
            if (allocated != 0 || different != 0) std::exit(1);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("Topology hit rates and microseconds per decision of all engines.", argc, argv);
    int seeds = line.smoke() ? 1 : 100, decisions = line.smoke() ? 20 : 5000;
    std::vector<std::int64_t> sizes{100, 1000, 10'000};
    if (line.smoke()) sizes = {100};
    std::string path;
    line.option("--seeds", seeds, "starts of the hit rates")->check(bench::at_least(1));
    line.option("--nodes", sizes, "sizes of the clusters of the latencies")->check(bench::at_least(1));
    line.option("--decisions", decisions, "decisions to measure")->check(bench::at_least(20));
    line.option("--json", path, "file for one line per row");
    line.read();
    std::ofstream json;
    if (!path.empty()) json.open(path);
    hit_rates(seeds, json);
    std::printf("\nMicroseconds; aligned start, 1 to 4 nodes changed before each decision\n");
    std::printf("%6s  %-4s %-30s %-10s %12s %12s %12s\n", "nodes", "task", "engine", "", "p50", "p90", "p99");
    for (const auto nodes : sizes) latencies(nodes, decisions, json);
    return 0;
}

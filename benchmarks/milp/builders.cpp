// SPDX-License-Identifier: Apache-2.0
// Measures the time of every model builder and the size of its models. Prints one JSON line per model.
//
// Instances grow by doubling:
// - serving: GPU types, models with nine workloads, replicas of 1, 2, 4 or 8 GPUs of one type; the budget
//   pays for half of all GPUs;
// - spot: tasks of one to three pods over two nodes;
// - the others: clusters of `sim::generate_cluster`, and jobs over switches of 16 nodes.
//
// Seconds are the median of `--repeat` builds. No solver is called.
#include "../support/command_line.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/consolidation.hpp>
#include <gpusched/milp/joint_allocation.hpp>
#include <gpusched/milp/priority_packing.hpp>
#include <gpusched/milp/spot_schedule.hpp>
#include <gpusched/serving/serving_milp.hpp>
#include <gpusched/sim/generator.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace gpusched;

namespace {

int repeat = 5;

template <class Build>
void row(const char* builder, const char* form, const char* unit, int size, const Build& build) {
    std::vector<double> times;
    int rows = 0, columns = 0;
    std::size_t nonzeros = 0;
    for (int i = 0; i < repeat; ++i) {
        const double start = bench::clock_s();
        const auto model = build();
        times.push_back(bench::clock_s() - start);
        rows = model.rows();
        columns = model.columns();
        nonzeros = model.nonzeros();
    }
    bench::print({{"benchmark", "milp_builders"},
                  {"builder", builder},
                  {"form", form},
                  {"size", size},
                  {"of", unit},
                  {"rows", rows},
                  {"columns", columns},
                  {"nonzeros", nonzeros},
                  {"build_s", bench::rounded(bench::median(times), 6)},
                  {"least_s", bench::rounded(bench::quantile(times, 0), 6)}});
}

serving::ServingProblem serving_problem(int types, int models, int gpus) {
    Rng rng(7);
    const auto part = [&] { return static_cast<double>(rng.between(0, 1000)) / 1000; };
    serving::ServingProblem p;
    for (int n = 0; n < types; ++n)
        p.gpus.push_back({"g" + std::to_string(n), 0.5 + 4 * part(), gpus / types});
    for (int m = 0; m < models; ++m)
        for (int w = 0; w < 9; ++w)
            p.workloads.push_back({"w" + std::to_string(w), static_cast<double>(rng.between(50, 500)),
                                   "m" + std::to_string(m)});
    for (int m = 0; m < models; ++m)
        for (int n = 0; n < types; ++n)
            for (const int tp : {1, 2, 4, 8}) {
                serving::ServingConfiguration c{
                    "m" + std::to_string(m) + ".g" + std::to_string(n) + "x" + std::to_string(tp),
                    std::vector<int>(static_cast<std::size_t>(types), 0),
                    std::vector<double>(p.workloads.size(), 0), "m" + std::to_string(m)};
                c.gpus[static_cast<std::size_t>(n)] = tp;
                for (int w = 0; w < 9; ++w)
                    c.throughput[static_cast<std::size_t>(9 * m + w)] =
                        p.gpus[static_cast<std::size_t>(n)].price * tp * (0.9 - 0.03 * tp) * (0.4 + part());
                p.configurations.push_back(std::move(c));
            }
    for (const auto& gpu : p.gpus) p.budget += 0.5 * gpu.price * gpu.available;
    return p;
}

milp::SpotProblem spot(int tasks) {
    Rng rng(7);
    milp::SpotProblem p{.nodes = {8, 8}, .horizon = 12, .alpha = 1};
    for (int i = 0; i < tasks; ++i) {
        const bool hp = i % 4 == 3;
        const int half = static_cast<int>(rng.between(1, 3));
        milp::SpotTask task{.name = "t" + std::to_string(i),
                            .arrival = static_cast<int>(rng.between(0, 4)),
                            .pods = static_cast<int>(rng.between(1, 3)),
                            .gpus = static_cast<int>(rng.between(1, 2)),
                            .hp = hp};
        task.checkpoints = hp ? std::vector<int>{2 * half} : std::vector<int>{half, 2 * half};
        p.tasks.push_back(std::move(task));
    }
    return p;
}

milp::JointProblem joint(int jobs) {
    Rng rng(7);
    milp::JointProblem p;
    milp::PodShape whole_node{.gpu_milli = 8000};
    for (int j = 0; j < jobs; ++j)
        p.jobs.push_back({"j" + std::to_string(j), static_cast<int>(rng.between(2, 16))});
    for (int s = 0; s < std::max(2, jobs / 2); ++s) {
        p.switches.push_back("s" + std::to_string(s));
        whole_node.slots.push_back(0);
        for (int node = 0; node < 16; ++node) whole_node.slots.back() += static_cast<int>(rng.between(0, 1));
    }
    p.shapes = {whole_node};
    return p;
}

/// Makes every seventh running task pending, so that the model has tasks to pack.
ClusterSpec with_pending(int nodes) {
    auto spec = sim::generate_cluster({.nodes = nodes, .seed = 1});
    for (std::size_t i = 0; i < spec.tasks.size(); i += 7) {
        auto& task = spec.tasks[i];
        task.node.reset();
        task.gpus.clear();
        task.locked = false;
    }
    return spec;
}

}  // namespace

int main(int argc, char** argv) {
    bench::CommandLine line("How long every model builder takes and how large its models get.", argc, argv);
    int most = line.smoke() ? 10 : 1600;
    if (line.smoke()) repeat = 1;
    line.option("--repeat", repeat, "builds; the median counts")->check(bench::at_least(1));
    line.option("--max-size", most, "largest size of an instance");
    line.read();
    struct Size {
        int types, models, gpus;
    };
    for (const auto& [types, models, gpus] :
         {Size{2, 1, 10}, Size{3, 1, 48}, Size{6, 2, 96}, Size{12, 4, 240}, Size{12, 8, 500}}) {
        if (gpus > most) break;
        const auto problem = serving_problem(types, models, gpus);
        for (const auto form : {serving::ServingForm::copies, serving::ServingForm::fixed_makespan,
                                serving::ServingForm::mccormick, serving::ServingForm::rates})
            row("serving_milp", enum_name(form), "GPUs", gpus, [&] {
                serving::ServingMilpOptions options{.form = form};
                if (form == serving::ServingForm::fixed_makespan) options.makespan = 1000;
                return serving::serving_milp(problem, options);
            });
    }
    for (int tasks = 5; tasks <= std::min(most, 40); tasks *= 2) {
        const auto problem = spot(tasks);
        for (const auto mode : {milp::SpotMode::meaning, milp::SpotMode::literal})
            row("spot_schedule", enum_name(mode), "tasks", tasks,
                [&] { return milp::spot_schedule(problem, mode); });
    }
    for (int nodes = 10; nodes <= most; nodes *= 2) {
        const auto cluster = Cluster::build(sim::generate_cluster({.nodes = nodes, .seed = 1}));
        for (const auto form : {milp::ConsolidationForm::plain, milp::ConsolidationForm::classes}) {
            // This form has a binary per task and node, so its matrix grows with the square.
            if (form == milp::ConsolidationForm::plain && nodes > 320) continue;
            row("consolidation", enum_name(form), "nodes", nodes,
                [&] { return milp::consolidation(cluster, {.form = form}); });
        }
    }
    for (int nodes = 10; nodes <= std::min(most, 320); nodes *= 2) {
        const auto cluster = Cluster::build(with_pending(nodes));
        std::int64_t priority = 0;
        for (const auto task : cluster.tasks())
            if (!cluster.is_placed(task)) priority = cluster.inventory().tasks.priority[index(task)];
        row("priority_packing", "one priority", "nodes", nodes,
            [&] { return milp::packing_model(cluster, priority); });
    }
    for (int jobs = 5; jobs <= std::min(most, 160); jobs *= 2) {
        const auto problem = joint(jobs);
        row("joint_allocation", "", "jobs", jobs, [&] { return milp::joint_allocation(problem); });
    }
}

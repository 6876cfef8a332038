// SPDX-License-Identifier: Apache-2.0
// Resamples the tasks of a trace to a given GPU demand.
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/sim/resample.hpp>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gpusched::sim {

GPUSCHED_EXPORT Trace resample(const Trace& trace, double ratio, Rng& rng,
                               std::vector<std::size_t>* originals) {
    if (!(ratio > 0 && ratio <= 1000))
        throw InvalidInput(bad_value("ratio", number_text(ratio), "above 0, at most 1000"));
    std::int64_t capacity = 0, demand = 0;
    for (const auto& node : trace.nodes)
        capacity += whole_gpu_milli * (node.gpu_count - static_cast<std::int64_t>(node.failed_gpus.size()));
    const auto milli = [](const TraceTask& task) { return task.task.gpu_count * task.task.gpu_share_milli; };
    for (const auto& task : trace.tasks) demand += milli(task);
    if (demand <= 0) throw InvalidInput("trace: no task asks for a GPU; expected one to resample");
    const auto wanted = std::llround(ratio * static_cast<double>(capacity));

    std::vector<std::size_t> tasks(trace.tasks.size());  // of the result, by index in the trace
    std::iota(tasks.begin(), tasks.end(), std::size_t{0});
    while (demand > wanted) {
        auto& victim = rng.pick(std::span(tasks));
        demand -= milli(trace.tasks[victim]);
        victim = tasks.back();
        tasks.pop_back();
    }
    std::vector<std::string> names;  // of the copies, which come last
    if (tasks.size() == trace.tasks.size()) {
        std::unordered_set<std::string> taken;
        for (const auto& task : trace.tasks) taken.insert(task.task.name);
        for (std::size_t copy = 0;;) {
            const auto& original = rng.pick(std::span(trace.tasks));
            if (demand + milli(original) > wanted) break;
            demand += milli(original);
            tasks.push_back(static_cast<std::size_t>(&original - trace.tasks.data()));
            auto& name = names.emplace_back();
            do name = original.task.name + "-copy-" + std::to_string(copy++);
            while (!taken.insert(name).second);
        }
    }
    std::vector<std::size_t> order(tasks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    rng.shuffle(std::span(order));
    Trace out{trace.nodes, {}};
    out.tasks.reserve(order.size());
    if (originals != nullptr) originals->clear();
    const auto kept = tasks.size() - names.size();
    for (const auto k : order) {
        out.tasks.push_back(trace.tasks[tasks[k]]);
        if (k >= kept) out.tasks.back().task.name = std::move(names[k - kept]);
        if (originals != nullptr) originals->push_back(tasks[k]);
    }
    return out;
}

}  // namespace gpusched::sim

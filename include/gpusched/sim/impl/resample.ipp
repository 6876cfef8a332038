#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/sim/resample.hpp>

#include <cmath>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>

namespace GPUSCHED_NAMESPACE::sim {

GPUSCHED_INLINE Trace resample(const Trace& trace, double ratio, Rng& rng) {
    if (!(ratio > 0 && ratio <= 1000))
        throw InvalidInput(bad_value("ratio", number_text(ratio), "above 0, at most 1000"));
    std::int64_t capacity = 0, demand = 0;
    for (const auto& node : trace.nodes)
        capacity += whole_gpu_milli * (node.gpu_count - static_cast<std::int64_t>(node.failed_gpus.size()));
    const auto milli = [](const TraceTask& task) { return task.task.gpu_count * task.task.gpu_share_milli; };
    for (const auto& task : trace.tasks) demand += milli(task);
    if (demand <= 0) throw InvalidInput("trace: no task asks for a GPU; expected one to resample");
    const auto wanted = std::llround(ratio * static_cast<double>(capacity));

    Trace out = trace;
    while (demand > wanted) {
        auto& victim = rng.pick(std::span(out.tasks));
        demand -= milli(victim);
        if (&victim != &out.tasks.back()) victim = std::move(out.tasks.back());
        out.tasks.pop_back();
    }
    if (out.tasks.size() == trace.tasks.size()) {
        std::unordered_set<std::string> names;
        for (const auto& task : trace.tasks) names.insert(task.task.name);
        for (std::size_t copy = 0;;) {
            const auto& original = rng.pick(std::span(trace.tasks));
            if (demand + milli(original) > wanted) break;
            demand += milli(original);
            out.tasks.push_back(original);
            auto& name = out.tasks.back().task.name;
            do name = original.task.name + "-copy-" + std::to_string(copy++);
            while (!names.insert(name).second);
        }
    }
    rng.shuffle(std::span(out.tasks));
    return out;
}

}  // namespace GPUSCHED_NAMESPACE::sim

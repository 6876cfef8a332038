#pragma once

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/presets.hpp>

#include <algorithm>

namespace gpusched::consolidation {

namespace detail {

template <NodeWeight W>
Result consolidate_with(W weight, const Cluster& cluster, const Options& options, const Context& context) {
    if (options.preset == Preset::ipc) return consolidate(cluster, presets::ipc(weight), options, context);
    if (options.preset == Preset::best) return consolidate(cluster, presets::best(weight), options, context);
    validate(options, cluster);
    auto shallow = options;
    shallow.depth = std::min(options.depth, 2);
    return consolidate(cluster, presets::fast(weight), shallow, context);
}

}  // namespace detail

GPUSCHED_INLINE Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    return options.objective == Objective::gpus
               ? detail::consolidate_with(GpuWeight{}, cluster, options, context)
               : detail::consolidate_with(UnitWeight{}, cluster, options, context);
}

}  // namespace gpusched::consolidation

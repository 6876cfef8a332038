#pragma once

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/presets.hpp>

#include <algorithm>

namespace gpusched::consolidation {

namespace detail {

template <NodeWeight W>
Result consolidate_with(const Cluster& cluster, const Options& options, const Context& context) {
    if (options.preset == Preset::ipc)
        return consolidate(cluster, Ipc<W>{.shortest_chains_first = false}, options, context);
    if (options.preset == Preset::fast) {
        auto shallow = options;
        shallow.depth = std::min(options.depth, 2);
        return consolidate(cluster, Fast<W>{}, shallow, context);
    }
    return consolidate(cluster, Best<W>{.fill_gaps = true, .exact_when_tiny = true}, options, context);
}

}  // namespace detail

GPUSCHED_INLINE Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    return options.objective == Objective::gpus
               ? detail::consolidate_with<GpuWeight>(cluster, options, context)
               : detail::consolidate_with<UnitWeight>(cluster, options, context);
}

}  // namespace gpusched::consolidation

#pragma once

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/presets.hpp>

namespace gpusched::consolidation {

namespace detail {

template <NodeWeight W>
Result consolidate_with(const Cluster& cluster, const Options& options, const Context& context) {
    if (options.preset == Preset::ipc) return consolidate(cluster, Ipc<W>{}, options, context);
    if (options.preset == Preset::fast) return consolidate(cluster, Fast<W>{}, options, context);
    return consolidate(cluster, Best<W>{.fill_gaps = true}, options, context);
}

}  // namespace detail

GPUSCHED_INLINE Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    return options.objective == Objective::gpus ? detail::consolidate_with<GpuWeight>(cluster, options, context)
                                                : detail::consolidate_with<UnitWeight>(cluster, options, context);
}

}  // namespace gpusched::consolidation

#pragma once

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/presets.hpp>

namespace gpusched::consolidation {

namespace detail {

template <NodeWeight W>
Result consolidate_with(W weight, const Cluster& cluster, const Options& options, const Context& context) {
    switch (options.preset) {
    case Preset::ipc:
        return consolidate(cluster, presets::ipc(weight), options, context);
    case Preset::fast:
        return consolidate(cluster, presets::fast(weight), options, context);
    case Preset::best:
        break;
    }
    return consolidate(cluster, presets::best(weight), options, context);
}

}  // namespace detail

GPUSCHED_INLINE Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    validate(options, cluster);
    return options.objective == Objective::gpus
               ? detail::consolidate_with(GpuWeight{}, cluster, options, context)
               : detail::consolidate_with(UnitWeight{}, cluster, options, context);
}

}  // namespace gpusched::consolidation

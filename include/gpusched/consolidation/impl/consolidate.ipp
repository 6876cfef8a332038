#pragma once

#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/consolidation/presets.hpp>

namespace GPUSCHED_NAMESPACE::consolidation {

namespace detail {

template <NodeWeight W>
Result consolidate_with(W weight, const Cluster& cluster, const Options& options, const Context& context) {
    const auto run = [&](auto policies) {
        auto& limit = policies.acceptance;
        limit.others = options.max_others.value_or(limit.others);
        limit.times_mean =
            options.max_price_ratio.value_or(options.clear ? PriceLimit{}.times_mean : limit.times_mean);
        return consolidate(cluster, policies, options, context);
    };
    switch (options.preset) {
    case Preset::ipc:
        return run(presets::ipc(weight));
    case Preset::fast:
        return run(presets::fast(weight));
    case Preset::best:
        break;
    }
    return run(presets::best(weight));
}

}  // namespace detail

GPUSCHED_INLINE Result consolidate(const Cluster& cluster, const Options& options, const Context& context) {
    validate(options, cluster);
    return options.objective == Objective::gpus
               ? detail::consolidate_with(GpuWeight{}, cluster, options, context)
               : detail::consolidate_with(UnitWeight{}, cluster, options, context);
}

}  // namespace GPUSCHED_NAMESPACE::consolidation

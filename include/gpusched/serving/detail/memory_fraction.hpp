// The one fraction of the memory that counts.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/estimate.hpp>

namespace GPUSCHED_NAMESPACE::serving::detail {

/// There is one fraction of the memory, and it is not in the options of the estimate; another one there would be lost.
inline void check_memory_fraction(Problems& problems, const EstimateOptions& estimate, double fraction) {
    if (estimate.memory_fraction != EstimateOptions{}.memory_fraction && estimate.memory_fraction != fraction)
        problems.add(
            bad_value("estimate.memory_fraction", number_text(estimate.memory_fraction),
                      "the memory_fraction " + number_text(fraction) + " of the deployments, which counts"));
}

}  // namespace GPUSCHED_NAMESPACE::serving::detail

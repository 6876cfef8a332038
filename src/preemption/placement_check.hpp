// SPDX-License-Identifier: Apache-2.0
// Verifies a decision before tasks are evicted. It shares no code with the searches.
#pragma once

#include "preemption/request.hpp"

namespace gpusched::preemption {

struct Decision;

namespace detail {

class GangTable;

/// Returns whether the preemptor can run on the GPUs of the decision after its victims have left.
/// @param gangs running tasks of every job; nullptr = the decision has no victims
[[nodiscard]] bool placement_holds(const Cluster& cluster, const Request& request, const Decision& decision,
                                   const GangTable* gangs = nullptr);

/// Requires `placement_holds`, in every build: a failed check must not look like "no eviction helps".
/// @throws InternalError otherwise
void require_placement(const Cluster& cluster, const Request& request, const Decision& decision,
                       const GangTable* gangs = nullptr);

}  // namespace detail
}  // namespace gpusched::preemption

// SPDX-License-Identifier: Apache-2.0
// The last check before anybody is evicted. It shares no code with the searches.
#pragma once

#include "preemption/request.hpp"

namespace gpusched::preemption {

struct Decision;

namespace detail {

class GangTable;

/// May the preemptor run on exactly these GPUs once exactly these victims have left?
/// @param healthy GPUs of the node that have not failed
/// @param gangs who runs for every job; nothing = nobody is evicted
[[nodiscard]] bool placement_holds(const Cluster& cluster, const Request& request, const Decision& decision,
                                   GpuMask healthy, const GangTable* gangs = nullptr);

/// The same as a condition, in every build: a failed check must not read as "nothing helps".
/// @throws InternalError unless the placement holds
void require_placement(const Cluster& cluster, const Request& request, const Decision& decision,
                       GpuMask healthy, const GangTable* gangs = nullptr);

}  // namespace detail
}  // namespace gpusched::preemption

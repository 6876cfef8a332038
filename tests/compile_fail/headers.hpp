// SPDX-License-Identifier: Apache-2.0
// Precompiled for the tests of this folder: what their files include.
#include <gpusched/allocation/any.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/power_of_d.hpp>
#include <gpusched/allocation/ranked_placement.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/core/executor.hpp>
#include <gpusched/json/json.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/follower.hpp>
#include <gpusched/preemption/options.hpp>
#include <gpusched/preemption/preempt.hpp>
#include <gpusched/preemption/victim_policy.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

// SPDX-License-Identifier: Apache-2.0
// Includes every header of allocation/.
#pragma once

// Included first: with fewer files in between, the compiler's message names a wrong policy earlier.
#include <gpusched/allocation/detail/policy_checks.hpp>

#include <gpusched/allocation/allocate.hpp>
#include <gpusched/allocation/allocate_many.hpp>
#include <gpusched/allocation/any.hpp>
#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/filters.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/allocation/job_request.hpp>
#include <gpusched/allocation/named.hpp>
#include <gpusched/allocation/place.hpp>
#include <gpusched/allocation/power_of_d.hpp>
#include <gpusched/allocation/ranked_placement.hpp>
#include <gpusched/allocation/rankers.hpp>
#include <gpusched/allocation/refusals.hpp>
#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/allocation/switch_counts.hpp>

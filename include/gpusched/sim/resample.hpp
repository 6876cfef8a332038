// SPDX-License-Identifier: Apache-2.0
// Resampling: makes a trace with a given GPU demand from the tasks of another.
#pragma once

#include <gpusched/core/rng.hpp>
#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <vector>

namespace gpusched::sim {

/// Makes the trace's tasks request `ratio` times the GPUs of its nodes, and shuffles them.
///
/// Follows the released experiment of Weng et al. (ATC '23). Random tasks of the list, with replacement and
/// under new names, are appended until the next one would exceed the demand. If the list already requests
/// more, random tasks are removed until it does not. A task keeps its request, its job and its times.
///
/// @param ratio demand over capacity (healthy GPUs), above 0 and at most 1000
/// @param originals if not null, set to the index in the trace of each task of the result
/// @throws InvalidInput when `ratio` is out of range, or no task requests a GPU
/// Complexity: O(tasks).
[[nodiscard]] Trace resample(const Trace& trace, double ratio, Rng& rng,
                             std::vector<std::size_t>* originals = nullptr);

}  // namespace gpusched::sim

// SPDX-License-Identifier: Apache-2.0
// Resampling: a trace of a wanted GPU demand out of the tasks of another.
#pragma once

#include <gpusched/core/rng.hpp>
#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <vector>

namespace gpusched::sim {

/// Makes the trace's tasks ask for `ratio` times the GPUs of its nodes, and shuffles them.
///
/// As in the released experiment of Weng et al. (ATC '23): random tasks of the list, with replacement and under new
/// names, are appended until the next one would exceed the wanted demand; where the list already asks for more, random
/// tasks are removed until it does not. What a task asks for, its job and its times stay.
///
/// @param ratio demand over capacity (healthy GPUs), above 0 and at most 1000
/// @param originals set to the index in the trace that each task of the result comes from, where given
/// @throws InvalidInput when `ratio` is out of range, or no task asks for a GPU
/// Complexity: O(tasks).
[[nodiscard]] Trace resample(const Trace& trace, double ratio, Rng& rng,
                             std::vector<std::size_t>* originals = nullptr);

}  // namespace gpusched::sim

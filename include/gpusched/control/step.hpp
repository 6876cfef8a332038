// SPDX-License-Identifier: Apache-2.0
// The decision core: one observation in, at most two actions out.
#pragma once

#include <gpusched/control/placement_score.hpp>
#include <gpusched/control/state.hpp>
#include <gpusched/core/executor.hpp>

namespace gpusched::control {

/// A reference to any `PlacementScorer`; the scorer must outlive it.
using ScoreRef = FunctionRef<double(const PlacementTerms&)>;

/// Implements `step`.
void step_with(ControllerState& state, const Observation& seen, const ControllerOptions& options,
               ScoreRef score, StepResult& result);

/// Runs one window of the controller: the transition table of docs/control.md for every protected tenant.
///
/// `step` is a pure function of its arguments. It reads no clock, does no I/O and draws no random numbers, so
/// the same observations give the same state and result, bit for bit. Missing, NaN and negative signals
/// change nothing. A window that is not newer than the last one, or is more than ten windows late, resets all
/// persistence.
///
/// @param state from `initial_state` or the last step; updated
/// @param seen vectors as long as those of `options.host`
/// @param options the same as for `initial_state`; only flags may differ
/// @param score lower is better
/// @param result cleared and filled. It has at most two actions; at most one of them is not a release. An
///     action counts as done when it is returned, except for `reconfigure`: its end arrives with
///     `Observation::feedback`. In a dry run `actions` stays empty, and the state continues as if only time
///     had passed.
/// @throws InvalidInput if a vector of `seen` has another length than the host's; the state is unchanged
/// Complexity: O(tenants x (tenants + GPUs x placements + cores)). No allocation once the result's vectors
/// have grown.
template <PlacementScorer S = WeightedScore>
void step(ControllerState& state, const Observation& seen, const ControllerOptions& options,
          StepResult& result, const S& score = {}) {
    step_with(state, seen, options, score, result);
}

}  // namespace gpusched::control

// SPDX-License-Identifier: Apache-2.0
// The decision core: one observation in, at most two actions out.
#pragma once

#include <gpusched/control/placement_score.hpp>
#include <gpusched/control/state.hpp>
#include <gpusched/core/executor.hpp>

namespace gpusched::control {

/// A reference to any `PlacementScorer`; the scorer must outlive it.
using ScoreRef = FunctionRef<double(const PlacementTerms&)>;

/// See `step`.
void step_with(ControllerState& state, const Observation& seen, const ControllerOptions& options,
               ScoreRef score, StepResult& result);

/// One window of the controller: the transition table of docs/control.md for every protected tenant.
///
/// A pure function of its arguments: it reads no clock, does no I/O and draws no random numbers, so the same
/// observations give the same state and result, bit for bit. Signals that are missing, NaN or negative change nothing;
/// a window that is not newer than the last, or comes more than ten windows late, ends all persistence.
///
/// @param state as `initial_state` or the last step left it; updated
/// @param seen vectors as long as those of `options.host`
/// @param options as they were for `initial_state`; only flags may differ
/// @param score lower is better
/// @param result cleared and filled; at most two actions, of these at most one that is no release. An action counts as
///     done when it is returned, except for `reconfigure`, whose end comes with `Observation::feedback`. In a dry run
///     `actions` stays empty, and the state goes on as if nothing but time had passed.
/// @throws InvalidInput when a vector of `seen` has another length than the host's; the state is unchanged
/// Complexity: O(tenants x (tenants + GPUs x placements + cores)). No allocation once the result's vectors have grown.
template <PlacementScorer S = WeightedScore>
void step(ControllerState& state, const Observation& seen, const ControllerOptions& options,
          StepResult& result, const S& score = {}) {
    step_with(state, seen, options, score, result);
}

}  // namespace gpusched::control

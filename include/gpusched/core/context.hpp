// SPDX-License-Identifier: Apache-2.0
// Context: what the surroundings give to an algorithm (cancellation, clock, progress, threads).
#pragma once

#include <gpusched/core/clock.hpp>
#include <gpusched/core/executor.hpp>

#include <cstdint>
#include <functional>
#include <stop_token>

namespace gpusched {

/// How far an algorithm has come. Phases run one after another; within one, `done` goes up to `total`.
struct Progress {
    const char* phase = "";
    std::int64_t done = 0;
    std::int64_t total = 0;  ///< 0 where nobody knows it
};

class LpSolver;

/// Everything an algorithm takes from its surroundings. The default runs to the end on one thread.
struct Context {
    /// Cancellation; the algorithm returns its best valid result soon after.
    std::stop_token stop{};
    /// Time source for time limits; nullptr means the machine's monotonic clock.
    const Clock* clock = nullptr;
    /// Where independent parts of the work run; the default runs them one by one on the calling thread.
    ExecutorRef executor{};
    /// Called on the calling thread only, at most about every 50 ms. May request a stop; must not throw.
    std::function<void(const Progress&)> progress{};
    /// Solver of linear programs, for the algorithms that ask for one; nullptr = none. See `milp::clp()`.
    const LpSolver* lp = nullptr;
};

}  // namespace gpusched

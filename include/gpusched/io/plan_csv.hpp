// SPDX-License-Identifier: Apache-2.0
// Plans as a table.
#pragma once

#include <gpusched/model/plan.hpp>

#include <string>

namespace gpusched::io {

/// Writes a plan as CSV (RFC 4180 with plain line feeds), one row per step in the order in which they happen, then one per node that
/// the plan vacates and per node that it opens.
///
/// Columns: `step` (evict, move, place, vacate or open), `wave` (moves only), `task`, `from` (also a vacated node), `to` (also an
/// opened node), `gpus` (indices on `to`, separated by semicolons); and of moves `how`, `chain` and `for` (the vacated node it serves).
[[nodiscard]] std::string plan_to_csv(const PlanSpec& plan);

}  // namespace gpusched::io

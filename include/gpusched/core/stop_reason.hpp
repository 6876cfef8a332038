// SPDX-License-Identifier: Apache-2.0
// Why an algorithm returned.
#pragma once

#include <gpusched/core/enum_names.hpp>

namespace gpusched {

/// Why an algorithm returned. Everything but `completed` means that more might have been found.
enum class StopReason {
    completed,    ///< it did all that its options ask for
    time_limit,   ///< the deadline struck; the result is valid, but may differ between runs
    cancelled,    ///< the caller asked it to stop; the result is valid
    move_budget,  ///< the migration budget was used up
};
constexpr auto enum_names(StopReason) {
    return name_table<StopReason>({
        {StopReason::completed, "completed"},
        {StopReason::time_limit, "time_limit"},
        {StopReason::cancelled, "cancelled"},
        {StopReason::move_budget, "move_budget"},
    });
}

}  // namespace gpusched

// Why an algorithm returned.
#pragma once

namespace gpusched {

/// Why an algorithm returned. Everything but `completed` means that more might have been found.
enum class StopReason {
    completed,    ///< it did all that its options ask for
    time_limit,   ///< the deadline struck; the result is valid, but may differ between runs
    cancelled,    ///< the caller asked it to stop; the result is valid
    move_budget,  ///< the migration budget was used up
};

/// The enumerator's name, as in Python.
[[nodiscard]] constexpr const char* to_string(StopReason reason) noexcept {
    switch (reason) {
    case StopReason::completed:
        return "completed";
    case StopReason::time_limit:
        return "time_limit";
    case StopReason::cancelled:
        return "cancelled";
    case StopReason::move_budget:
        return "move_budget";
    }
    return "unknown";
}

}  // namespace gpusched

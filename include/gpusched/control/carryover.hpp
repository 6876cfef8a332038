// Memory: what a controller that starts must still respect of what the one before it did.
#pragma once

#include <gpusched/control/host.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace GPUSCHED_NAMESPACE::control {

/// A structural action of the past.
struct PastChange {
    double ago_s = 0;
    double pause_s = 0;  ///< what it was charged with
    friend bool operator==(const PastChange&, const PastChange&) = default;
};

/// A change that is not to be repeated.
struct BlockedChange {
    Configuration from{}, to{};
    std::int64_t windows = 0;  ///< to come
    friend bool operator==(const BlockedChange&, const BlockedChange&) = default;
};

/// Of a protected tenant. Episodes, averages and what is learnt of the tail begin anew.
struct TenantCarryover {
    std::int64_t structural_windows = -1;  ///< since the last structural action; -1: there was none
    std::int64_t guard_windows = -1;       ///< since the last guard
    std::int64_t cooldown_windows = 0;     ///< to come of COOLDOWN; of a change under validation all of it
    double disjoint_pause_s = 0;           ///< what the last change with both instances at once cost
    std::vector<PastChange> structural{};  ///< of the last hour, oldest first
    std::vector<BlockedChange> blocked{};  ///< oldest first
    /// What was found when control of the tenant began; nothing is given back below it. Empty: what is found now.
    std::optional<Configuration> floor{};
    friend bool operator==(const TenantCarryover&, const TenantCarryover&) = default;
};

/// As the host's tenants, those that are not protected included; or empty: there is nothing to remember.
using ControllerCarryover = std::vector<TenantCarryover>;

/// The carryover after some time has passed in which nobody was in control. Part of a window counts as none.
/// @param seconds not below 0
[[nodiscard]] TenantCarryover aged(TenantCarryover carryover, double seconds, double window_s);

}  // namespace GPUSCHED_NAMESPACE::control

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/control/impl/carryover.ipp>
#endif

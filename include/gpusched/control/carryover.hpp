// SPDX-License-Identifier: Apache-2.0
// Carryover: cooldowns and counts that a controller takes over from the previous controller.
#pragma once

#include <gpusched/control/host_description.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/json/document.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::control {

/// A past structural action.
struct PastChange {
    double ago_s = 0;
    double pause_s = 0;  ///< pause that was charged for it
    friend bool operator==(const PastChange&, const PastChange&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PastChange>, F&& field) {
    field("ago_s", &PastChange::ago_s, any_amount);
    field("pause_s", &PastChange::pause_s, any_amount);
}

/// A change that must not be repeated yet.
struct BlockedChange {
    Configuration from{}, to{};
    std::int64_t windows = 0;  ///< remaining
    friend bool operator==(const BlockedChange&, const BlockedChange&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<BlockedChange>, F&& field) {
    field("from", &BlockedChange::from, Required{});
    field("to", &BlockedChange::to, Required{});
    field("windows", &BlockedChange::windows, any_amount);
}

/// The carryover of one protected tenant. Episodes, averages and the learnt tail model start from zero.
struct TenantCarryover {
    std::int64_t structural_windows = -1;  ///< since the last structural action; -1 if none
    std::int64_t guard_windows = -1;       ///< since the last guard; -1 if none
    std::int64_t cooldown_windows = 0;     ///< left of COOLDOWN; all of it during a validation
    double disjoint_pause_s = 0;           ///< pause of the last change with both instances at once
    std::vector<PastChange> structural{};  ///< in the last hour, oldest first
    std::vector<BlockedChange> blocked{};  ///< oldest first
    /// The configuration when control of the tenant began; relaxing never goes below it. Empty: the current
    /// one.
    std::optional<Configuration> floor{};
    friend bool operator==(const TenantCarryover&, const TenantCarryover&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<TenantCarryover>, F&& field) {
    field("structural_windows", &TenantCarryover::structural_windows,
          within<std::int64_t>(-1, largest_quantity), UnlessDefault{});
    field("guard_windows", &TenantCarryover::guard_windows, within<std::int64_t>(-1, largest_quantity),
          UnlessDefault{});
    field("cooldown_windows", &TenantCarryover::cooldown_windows, any_amount, UnlessDefault{});
    field("disjoint_pause_s", &TenantCarryover::disjoint_pause_s, within(0.0, 1e9), UnlessDefault{});
    field("structural", &TenantCarryover::structural, UnlessDefault{});
    field("blocked", &TenantCarryover::blocked, UnlessDefault{});
    field("floor", &TenantCarryover::floor);
}

/// One entry per tenant of the host, including unprotected tenants; or empty if there is nothing to remember.
using ControllerCarryover = std::vector<TenantCarryover>;

/// Reads the carryover of a host's tenants from a document: an object with the name of each protected tenant,
/// as `write_carryover` writes it.
/// @throws InvalidInput with all problems and their places
[[nodiscard]] ControllerCarryover parse_carryover(const json::Document& document, const Host& host);

/// The inverse of `parse_carryover`. Tenants without anything to take over are left out.
[[nodiscard]] std::string write_carryover(const ControllerCarryover& carryover, const Host& host);

/// Returns the carryover after a time without control. A fraction of a window is dropped.
/// @param seconds at least 0
[[nodiscard]] TenantCarryover aged(TenantCarryover carryover, double seconds, double window_s);

}  // namespace gpusched::control

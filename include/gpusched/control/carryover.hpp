// SPDX-License-Identifier: Apache-2.0
// Carryover: cooldowns and counts that a controller takes over from the controller before it.
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

/// A structural action of the past.
struct PastChange {
    double ago_s = 0;
    double pause_s = 0;  ///< what it was charged with
    friend bool operator==(const PastChange&, const PastChange&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<PastChange>, F&& field) {
    field("ago_s", &PastChange::ago_s, any_amount);
    field("pause_s", &PastChange::pause_s, any_amount);
}

/// A change that is not to be repeated.
struct BlockedChange {
    Configuration from{}, to{};
    std::int64_t windows = 0;  ///< to come
    friend bool operator==(const BlockedChange&, const BlockedChange&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<BlockedChange>, F&& field) {
    field("from", &BlockedChange::from, Required{});
    field("to", &BlockedChange::to, Required{});
    field("windows", &BlockedChange::windows, any_amount);
}

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

/// A tenant's carryover in documents: the journal, and records of the audit log.
struct NamedCarryover {
    std::string name{};  ///< of a protected tenant
    TenantCarryover carryover{};
    friend bool operator==(const NamedCarryover&, const NamedCarryover&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedCarryover>, F&& field) {
    field("name", &NamedCarryover::name);
    field("carryover", &NamedCarryover::carryover, Inlined{});
}

/// As the host's tenants, those that are not protected included; or empty: there is nothing to remember.
using ControllerCarryover = std::vector<TenantCarryover>;

/// The carryover of each tenant of the host. Names of tenants that are not protected, or not there, are ignored.
[[nodiscard]] ControllerCarryover by_tenant(const std::vector<NamedCarryover>& named, const Host& host);

/// The carryover of a host's tenants from a document: an object with the name of each protected tenant, as `write_carryover`
/// gives it.
/// @throws InvalidInput with all problems, each with its place
[[nodiscard]] ControllerCarryover parse_carryover(const json::Document& document, const Host& host);

/// The inverse. Tenants without anything to take over are left out.
[[nodiscard]] std::string write_carryover(const ControllerCarryover& carryover, const Host& host);

/// The carryover after some time has passed in which nobody was in control. Part of a window counts as none.
/// @param seconds not below 0
[[nodiscard]] TenantCarryover aged(TenantCarryover carryover, double seconds, double window_s);

}  // namespace gpusched::control

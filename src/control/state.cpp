// SPDX-License-Identifier: Apache-2.0
// Creates the initial state of the controller, and extracts its carryover.
#include <gpusched/config.hpp>
#include <gpusched/control/state.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>

#include <algorithm>

namespace gpusched::control {

namespace state_detail {

static void check_floor(Problems& problems, const Configuration& c, const Host& host, std::size_t i) {
    const auto owner = "memory of tenant " + gpusched::quoted(host.tenants[i].name);
    const auto gpus = static_cast<std::int32_t>(host.gpus.size());
    check_range(problems, "floor.quota_percent", c.quota_percent, 50, 100, owner);
    check_range(problems, "floor.gpu", c.gpu, 0, gpus - 1, owner);
    if (c.gpu < 0 || c.gpu >= gpus) return;
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(c.gpu)].device);
    check_range(problems, "floor.instance.profile", std::size_t{c.instance.profile}, std::size_t{0},
                device.profiles.size() - 1, owner);
}

/// Restores the carryover. The first window always counts as one window, so all times are one window later
/// than in the carryover.
static void remember(TenantState& t, const TenantCarryover& m, const ControllerOptions& o) {
    t.past.ever_structural = m.structural_windows >= 0;
    t.past.ever_guard = m.guard_windows >= 0;
    if (t.past.ever_structural) t.past.last_structural = 1 - m.structural_windows;
    if (t.past.ever_guard) t.past.last_guard = 1 - m.guard_windows;
    t.past.disjoint_pause_s = m.disjoint_pause_s;
    const auto past = std::min(m.structural.size(), t.past.structural_s.size());
    for (std::size_t k = 0; k < past; ++k) {
        const auto& change = m.structural[m.structural.size() - past + k];
        t.past.structural_s[k] = o.window_s - change.ago_s;
        t.past.pause_s[k] = change.pause_s;
    }
    t.past.structural_count = static_cast<std::int32_t>(past);
    const auto blocked = std::min(m.blocked.size(), t.past.blocked.size());
    for (std::size_t k = 0; k < blocked; ++k) {
        const auto& change = m.blocked[m.blocked.size() - blocked + k];
        t.past.blocked[k] = {change.from, change.to, 1 + change.windows};
    }
    t.past.next_blocked = static_cast<std::int32_t>(blocked % t.past.blocked.size());
    if (m.floor) t.place.floor = *m.floor;
    if (m.cooldown_windows <= 0) return;
    t.phase = Phase::cooldown;
    t.counter = static_cast<std::int32_t>(std::max<std::int64_t>(0, o.cool_down - m.cooldown_windows - 1));
}

}  // namespace state_detail

GPUSCHED_EXPORT bool in_flight_on(const ControllerState& state, std::int32_t gpu,
                                  std::size_t except) noexcept {
    for (std::size_t i = 0; i < state.tenants.size(); ++i) {
        const auto& t = state.tenants[i];
        if (i != except && t.change.in_flight && (t.place.current.gpu == gpu || t.place.pending.gpu == gpu))
            return true;
    }
    return false;
}

GPUSCHED_EXPORT ControllerCarryover carryover_of(const ControllerState& state,
                                                 const ControllerOptions& options) {
    ControllerCarryover out(state.tenants.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!options.host.tenants[i].is_protected) continue;
        const auto& t = state.tenants[i];
        auto& m = out[i];
        if (t.past.ever_structural) m.structural_windows = state.now - t.past.last_structural;
        if (t.past.ever_guard) m.guard_windows = state.now - t.past.last_guard;
        m.disjoint_pause_s = t.past.disjoint_pause_s;
        m.floor = t.place.floor;
        // A tenant with an uncertain configuration starts with a full COOLDOWN, as after HOLD.
        if (t.phase == Phase::cooldown)
            m.cooldown_windows = options.cool_down - t.counter;
        else if (t.phase == Phase::reconfig || t.phase == Phase::validate || t.phase == Phase::hold)
            m.cooldown_windows = options.cool_down;
        const auto size = static_cast<std::int32_t>(t.past.structural_s.size());
        for (auto k = std::max(0, t.past.structural_count - size); k < t.past.structural_count; ++k) {
            const auto slot = static_cast<std::size_t>(k % size);
            const double ago = state.clock_s - t.past.structural_s[slot];
            if (ago < options.hour_s) m.structural.push_back({ago, t.past.pause_s[slot]});
        }
        for (std::size_t k = 0; k < t.past.blocked.size(); ++k) {
            const auto& b =
                t.past.blocked[(static_cast<std::size_t>(t.past.next_blocked) + k) % t.past.blocked.size()];
            if (b.until > state.now) m.blocked.push_back({b.from, b.to, b.until - state.now});
        }
    }
    return out;
}

GPUSCHED_EXPORT ControllerState initial_state(const ControllerOptions& options,
                                              const ControllerCarryover& carryover) {
    validate(options);
    if (!carryover.empty() && carryover.size() != options.host.tenants.size())
        throw InvalidInput("memory: expected one entry per tenant of the host, or none");
    Problems problems;
    for (std::size_t i = 0; i < carryover.size(); ++i)
        if (options.host.tenants[i].is_protected && carryover[i].floor)
            state_detail::check_floor(problems, *carryover[i].floor, options.host, i);
    problems.throw_if_any();
    ControllerState state;
    state.layouts.resize(options.host.gpus.size());
    for (const auto& tenant : options.host.tenants) {
        TenantState t;
        t.seen.ema.weight = t.trial.tail.weight = t.seen.rate.weight = options.ema_weight;
        t.seen.tail = {.high = tenant.tau_ms, .low = options.low_factor * tenant.tau_ms};
        t.seen.fresh.stale_after = options.stale_after;
        t.flags.now.pcie = {.high = options.pcie_high, .low = options.pcie_low};
        t.flags.now.io = {.high = options.io_high, .low = options.io_low};
        t.flags.now.irq = {.high = options.irq_high, .low = options.irq_low};
        t.flags.now.compute = {.high = options.sm_high, .low = options.sm_low};
        t.flags.reference = t.flags.now;
        t.place.current = t.place.good = t.place.before = t.place.pending = t.place.floor = tenant.start;
        state.tenants.push_back(t);
        if (tenant.is_protected)
            state.layouts[static_cast<std::size_t>(tenant.start.gpu)].add(tenant.start.instance);
    }
    for (std::size_t i = 0; i < carryover.size(); ++i)
        if (options.host.tenants[i].is_protected)
            state_detail::remember(state.tenants[i], carryover[i], options);
    // A tenant declared for a root, a NUMA node or an instance is assumed to be busy until measurements
    // differ.
    state.roots.resize(options.host.roots.size());
    state.numa_io.resize(static_cast<std::size_t>(options.host.numa_nodes));
    for (const auto& other : options.host.tenants) {
        if (other.is_protected) continue;
        if (other.client_of >= 0) {
            state.tenants[static_cast<std::size_t>(other.client_of)].seen.client.high = options.sm_high;
            continue;
        }
        if (other.gpu >= 0)
            state.roots[static_cast<std::size_t>(options.host.gpus[static_cast<std::size_t>(other.gpu)].root)]
                .high = options.pcie_high;
        if (other.numa >= 0)
            state.numa_io[static_cast<std::size_t>(other.numa)].high = options.io_high / full_io_bytes_per_s;
    }
    return state;
}

}  // namespace gpusched::control

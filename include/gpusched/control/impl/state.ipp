#pragma once

#include <gpusched/control/state.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>

#include <algorithm>

namespace gpusched::control {

namespace state_detail {

inline void check_floor(Problems& problems, const Configuration& c, const Host& host, std::size_t i) {
    const auto owner = "memory of tenant " + gpusched::quoted(host.tenants[i].name);
    const auto gpus = static_cast<std::int32_t>(host.gpus.size());
    check_range(problems, "floor.quota_percent", c.quota_percent, 50, 100, owner);
    check_range(problems, "floor.gpu", c.gpu, 0, gpus - 1, owner);
    if (c.gpu < 0 || c.gpu >= gpus) return;
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(c.gpu)].device);
    check_range(problems, "floor.instance.profile", std::size_t{c.instance.profile}, std::size_t{0},
                device.profiles.size() - 1, owner);
}

/// The first window counts as one whatever has passed since the start, so everything is a window later than remembered.
inline void remember(TenantState& t, const TenantMemory& m, const ControllerOptions& o) {
    t.ever_structural = m.structural_windows >= 0;
    t.ever_guard = m.guard_windows >= 0;
    if (t.ever_structural) t.last_structural = 1 - m.structural_windows;
    if (t.ever_guard) t.last_guard = 1 - m.guard_windows;
    t.disjoint_pause_s = m.disjoint_pause_s;
    const auto past = std::min(m.structural.size(), t.structural_s.size());
    for (std::size_t k = 0; k < past; ++k) {
        const auto& change = m.structural[m.structural.size() - past + k];
        t.structural_s[k] = o.window_s - change.ago_s;
        t.pause_s[k] = change.pause_s;
    }
    t.structural_count = static_cast<std::int32_t>(past);
    const auto blocked = std::min(m.blocked.size(), t.blocked.size());
    for (std::size_t k = 0; k < blocked; ++k) {
        const auto& change = m.blocked[m.blocked.size() - blocked + k];
        t.blocked[k] = {change.from, change.to, 1 + change.windows};
    }
    t.next_blocked = static_cast<std::int32_t>(blocked % t.blocked.size());
    if (m.floor) t.floor = *m.floor;
    if (m.cooldown_windows <= 0) return;
    t.phase = Phase::cooldown;
    t.counter = static_cast<std::int32_t>(std::max<std::int64_t>(0, o.cool_down - m.cooldown_windows - 1));
}

}  // namespace state_detail

GPUSCHED_INLINE ControllerMemory memory_of(const ControllerState& state, const ControllerOptions& options) {
    ControllerMemory out(state.tenants.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!options.host.tenants[i].is_protected) continue;
        const auto& t = state.tenants[i];
        auto& m = out[i];
        if (t.ever_structural) m.structural_windows = state.now - t.last_structural;
        if (t.ever_guard) m.guard_windows = state.now - t.last_guard;
        m.disjoint_pause_s = t.disjoint_pause_s;
        m.floor = t.floor;
        // Who is not sure of what stands begins with a whole COOLDOWN, as after HOLD.
        if (t.phase == Phase::cooldown)
            m.cooldown_windows = options.cool_down - t.counter;
        else if (t.phase == Phase::reconfig || t.phase == Phase::validate || t.phase == Phase::hold)
            m.cooldown_windows = options.cool_down;
        const auto size = static_cast<std::int32_t>(t.structural_s.size());
        for (auto k = std::max(0, t.structural_count - size); k < t.structural_count; ++k) {
            const auto slot = static_cast<std::size_t>(k % size);
            const double ago = state.clock_s - t.structural_s[slot];
            if (ago < options.hour_s) m.structural.push_back({ago, t.pause_s[slot]});
        }
        for (std::size_t k = 0; k < t.blocked.size(); ++k) {
            const auto& b = t.blocked[(static_cast<std::size_t>(t.next_blocked) + k) % t.blocked.size()];
            if (b.until > state.now) m.blocked.push_back({b.from, b.to, b.until - state.now});
        }
    }
    return out;
}

GPUSCHED_INLINE ControllerState initial_state(const ControllerOptions& options,
                                              const ControllerMemory& memory) {
    validate(options);
    if (!memory.empty() && memory.size() != options.host.tenants.size())
        throw InvalidInput("memory: expected one entry per tenant of the host, or none");
    Problems problems;
    for (std::size_t i = 0; i < memory.size(); ++i)
        if (options.host.tenants[i].is_protected && memory[i].floor)
            state_detail::check_floor(problems, *memory[i].floor, options.host, i);
    problems.throw_if_any();
    ControllerState state;
    state.layouts.resize(options.host.gpus.size());
    for (const auto& tenant : options.host.tenants) {
        TenantState t;
        t.ema.weight = t.trial.weight = t.rate.weight = options.ema_weight;
        t.tail = {.high = tenant.tau_ms, .low = options.low_factor * tenant.tau_ms};
        t.fresh.stale_after = options.stale_after;
        t.pressure.pcie = {.high = options.pcie_high, .low = options.pcie_low};
        t.pressure.io = {.high = options.io_high, .low = options.io_low};
        t.pressure.irq = {.high = options.irq_high, .low = options.irq_low};
        t.pressure.compute = {.high = options.sm_high, .low = options.sm_low};
        t.reference = t.pressure;
        t.current = t.good = t.before = t.pending = t.floor = tenant.start;
        state.tenants.push_back(t);
        if (tenant.is_protected)
            state.layouts[static_cast<std::size_t>(tenant.start.gpu)].add(tenant.start.instance);
    }
    for (std::size_t i = 0; i < memory.size(); ++i)
        if (options.host.tenants[i].is_protected)
            state_detail::remember(state.tenants[i], memory[i], options);
    // Who is declared to be on a root, a node or in an instance will be busy some time, until experience says otherwise.
    state.roots.resize(options.host.roots.size());
    state.numa_io.resize(static_cast<std::size_t>(options.host.numa_nodes));
    for (const auto& other : options.host.tenants) {
        if (other.is_protected) continue;
        if (other.client_of >= 0) {
            state.tenants[static_cast<std::size_t>(other.client_of)].client.high = options.sm_high;
            continue;
        }
        if (other.gpu >= 0)
            state.roots[static_cast<std::size_t>(options.host.gpus[static_cast<std::size_t>(other.gpu)].root)]
                .high = options.pcie_high;
        if (other.numa >= 0) state.numa_io[static_cast<std::size_t>(other.numa)].high = options.io_high / 2e9;
    }
    return state;
}

}  // namespace gpusched::control

#pragma once

#include <gpusched/control/state.hpp>

namespace gpusched::control {

GPUSCHED_INLINE ControllerState initial_state(const ControllerOptions& options) {
    validate(options);
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
        t.current = t.good = t.before = t.pending = tenant.start;
        state.tenants.push_back(t);
        if (tenant.is_protected)
            state.layouts[static_cast<std::size_t>(tenant.start.gpu)].add(tenant.start.instance);
    }
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

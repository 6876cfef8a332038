// SPDX-License-Identifier: Apache-2.0
// Random options and signals for tests of the controller, some of which cannot be right.
#pragma once

#include "support/control_host.hpp"

namespace gpusched::test {

using namespace control;

inline double bad_value_of(Rng& rng) {
    // The last one as of a counter that wrapped around.
    const double values[] = {unknown_signal, -1, std::numeric_limits<double>::infinity(), -1e300, 9.2e18};
    return rng.pick(std::span(values));
}

inline ControllerOptions random_options(Rng& rng) {
    auto o = control_options();
    o.persistence = static_cast<std::int32_t>(1 + rng.below(4));
    o.dwell = static_cast<std::int32_t>(5 + rng.below(40));
    o.guard_dwell = static_cast<std::int32_t>(1 + rng.below(30));
    o.cool_down = static_cast<std::int32_t>(1 + rng.below(20));
    o.validation = static_cast<std::int32_t>(1 + rng.below(8));
    o.relax_after = static_cast<std::int32_t>(2 + rng.below(20));
    o.hour_s = 200;
    o.loss_budget = rng.chance(0.3) ? 0.05 : 1;
    o.pause_s = rng.chance(0.5) ? 2 : 18;
    for (bool* flag : {&o.flags.guard_io, &o.flags.guard_mps, &o.flags.place, &o.flags.mig, &o.flags.pin,
                       &o.flags.relax, &o.flags.rollback, &o.flags.admission, &o.host.tenants[2].follows})
        *flag = !rng.chance(0.2);
    o.flags.dry_run = rng.chance(0.05);
    if (rng.chance(0.3)) o.host.tenants[0].start.quota_percent = 80;
    return o;
}

/// Signals that dwell in one regime for a while, with some that cannot be right.
inline void random_signals(Observation& seen, Rng& rng, std::uint64_t regime, double bad) {
    for (const std::size_t i : {std::size_t{0}, std::size_t{3}}) {
        auto& x = seen.tenants[i];
        const bool high = (regime >> i & 1) != 0;
        x.p99_ms = high ? 14 + 20 * rng.uniform() : 3 + 11 * rng.uniform();
        x.count = rng.chance(0.05) ? 5 : 100;
        if (rng.chance(0.02)) x.completed_per_s = 10;
        x.memory_used_mib = rng.chance(0.1) ? unknown_signal : 3000 + 30000 * rng.uniform();
    }
    seen.roots[0].bytes_per_s = (regime >> 4 & 1) ? 18e9 : 2e9;
    seen.roots[1].bytes_per_s = (regime >> 5 & 1) ? 18e9 : 2e9;
    seen.tenants[1].pcie_bytes_per_s = (regime >> 4 & 1) ? 15e9 : 1e9;
    seen.tenants[1].io_bytes_per_s = 2e9;
    seen.tenants[1].pcie_attribution = static_cast<Attribution>(rng.below(3));
    seen.tenants[1].io_attribution = static_cast<Attribution>(rng.below(3));
    seen.numa_io_bytes_per_s[0] = (regime >> 6 & 1) ? 2e9 : 1e8;
    seen.tenants[2].sm_active = (regime >> 7 & 1) ? 0.9 : 0.1;
    if (regime >> 8 & 1) seen.irq_per_s[1] = 5000;
    if (rng.chance(0.01)) seen.tenants[rng.chance(0.5) ? 1 : 2].present = false;
    if (rng.chance(bad)) {
        double* const fields[] = {&seen.tenants[0].p99_ms,        &seen.tenants[1].pcie_bytes_per_s,
                                  &seen.tenants[2].sm_active,     &seen.roots[0].bytes_per_s,
                                  &seen.numa_io_bytes_per_s[0],   &seen.irq_per_s[2],
                                  &seen.tenants[0].offered_per_s, &seen.tenants[0].memory_used_mib};
        *rng.pick(std::span(fields)) = bad_value_of(rng);
    }
    if (rng.chance(0.003)) seen.time_s -= 100;
    if (rng.chance(0.003)) seen.window -= 5;
    if (rng.chance(0.005)) seen.enabled = false;
    if (rng.chance(0.01)) seen.operator_resume = true;
    if (rng.chance(0.0005)) seen.gpus[0].lost = true;
    if (rng.chance(0.01)) seen.gpus[1].readable = false;
}

}  // namespace gpusched::test

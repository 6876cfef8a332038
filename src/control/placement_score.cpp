// SPDX-License-Identifier: Apache-2.0
// Computes the terms of placement scores from an observation.
#include <gpusched/config.hpp>
#include <gpusched/control/placement_score.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace gpusched::control {

GPUSCHED_EXPORT double known_others(const Host& host, const Observation& seen, const ControllerState& state,
                                    std::size_t tenant, std::size_t root) noexcept {
    double sum = unknown_signal;
    for (std::size_t j = 0; j < host.tenants.size() && j < state.tenants.size(); ++j) {
        const auto& x = seen.tenants[j];
        const auto gpu =
            host.tenants[j].is_protected ? state.tenants[j].place.current.gpu : host.tenants[j].gpu;
        if (j == tenant || !x.present || gpu < 0 ||
            static_cast<std::size_t>(host.gpus[static_cast<std::size_t>(gpu)].root) != root ||
            !is_plausible(x.pcie_bytes_per_s, most_capacities * host.roots[root].capacity_bytes_per_s) ||
            (!host.tenants[j].is_protected && x.pcie_attribution == Attribution::unknown))
            continue;
        sum = is_usable(sum) ? sum + x.pcie_bytes_per_s : x.pcie_bytes_per_s;
    }
    return sum;
}

GPUSCHED_EXPORT double nic_on_root(const Host& host, const Observation& seen, std::size_t root) noexcept {
    if (root >= seen.nic_bytes_per_s.size()) return 0;
    const double bytes = seen.nic_bytes_per_s[root];
    return is_plausible(bytes, most_capacities * host.roots[root].capacity_bytes_per_s) ? bytes : 0;
}

GPUSCHED_EXPORT double others_on_root(const Host& host, const Observation& seen, const ControllerState& state,
                                      std::size_t tenant, std::size_t gpu, bool near) noexcept {
    const auto root = static_cast<std::size_t>(host.gpus[gpu].root);
    const bool here = tenant < state.tenants.size();
    const auto own_root =
        here ? host.gpus[static_cast<std::size_t>(state.tenants[tenant].place.current.gpu)].root : -1;
    double sum = 0;
    bool any = false;
    for (std::size_t r = 0; r < host.roots.size(); ++r) {
        const double weight = r == root                                         ? 1
                              : !near                                           ? 0
                              : host.roots[r].bridge == host.roots[root].bridge ? 0.5
                              : host.roots[r].numa == host.roots[root].numa     ? 0.25
                                                                                : 0;
        double bytes = seen.roots[r].bytes_per_s;
        if (weight <= 0 || !is_plausible(bytes, most_capacities * host.roots[r].capacity_bytes_per_s))
            continue;
        if (static_cast<std::int32_t>(r) == own_root) {
            const double own = seen.tenants[tenant].pcie_bytes_per_s;
            // If the tenant's own traffic is unknown, only the known traffic of others counts.
            const double others = is_usable(own) ? bytes - own : known_others(host, seen, state, tenant, r);
            if (std::isnan(others)) continue;
            bytes = std::clamp(others, 0.0, bytes);
        }
        sum += weight * (bytes + nic_on_root(host, seen, r));
        any |= r == root;
    }
    return any ? sum / host.roots[root].capacity_bytes_per_s : unknown_signal;
}

GPUSCHED_EXPORT double median_irq(const Observation& seen) noexcept {
    std::array<double, most_cores> rates;
    std::size_t count = 0;
    for (const double rate : seen.irq_per_s)
        if (is_plausible(rate, most_irq_per_s) && count < rates.size()) rates[count++] = rate;
    if (count == 0) return 0;
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(count / 2);
    std::nth_element(rates.begin(), middle, rates.begin() + static_cast<std::ptrdiff_t>(count));
    return *middle;
}

GPUSCHED_EXPORT double busiest_irq(const Host& host, const Observation& seen, std::int32_t numa,
                                   const CpuSet& cpus) noexcept {
    double most = 0;
    for (std::size_t c = 0; c < host.core_numa.size(); ++c) {
        const bool used = cpus == CpuSet{} ? host.core_numa[c] == numa : cpus.contains(c);
        if (used && is_plausible(seen.irq_per_s[c], most_irq_per_s)) most = std::max(most, seen.irq_per_s[c]);
    }
    return most;
}

GPUSCHED_EXPORT CpuSet quiet_cores(const Host& host, const Observation& seen, std::int32_t numa) noexcept {
    CpuSet quiet, all;
    const double limit = 2 * median_irq(seen);
    for (std::size_t c = 0; c < host.core_numa.size(); ++c) {
        if (host.core_numa[c] != numa) continue;
        all.add(c);
        if (is_plausible(seen.irq_per_s[c], most_irq_per_s) && seen.irq_per_s[c] <= limit) quiet.add(c);
    }
    return quiet == CpuSet{} ? all : quiet;
}

GPUSCHED_EXPORT PlacementTerms placement_terms(const Host& host, const Observation& seen,
                                               const ControllerState& state, std::size_t tenant,
                                               std::size_t gpu, MigInstance instance, const MigLayout& rest,
                                               const CpuSet& cpus) noexcept {
    PlacementTerms x;
    // An unknown term counts as the middle, so it neither attracts nor repels.
    const auto clip = [](double value) { return is_usable(value) ? std::min(value, 1.0) : 0.5; };
    x.pcie = clip(others_on_root(host, seen, state, tenant, gpu, true));
    const auto numa = static_cast<std::size_t>(host.gpus[gpu].numa);
    const double io = seen.numa_io_bytes_per_s[numa];
    x.io = clip(is_plausible(io, most_io_bytes_per_s) ? io / full_io_bytes_per_s : unknown_signal);
    const double median = median_irq(seen);
    x.irq = median > 0 ? clip(busiest_irq(host, seen, host.gpus[gpu].numa, cpus) / (8 * median)) : 0;
    const auto& device = mig_device(host.gpus[gpu].device);
    auto after = rest;
    after.add(instance);
    x.fragmentation = (largest_free_block(device, rest) - largest_free_block(device, after)) / 8.0;
    return x;
}

}  // namespace gpusched::control

// SPDX-License-Identifier: Apache-2.0
// Placement score: how much a placement of a tenant is exposed to others.
#pragma once

#include <gpusched/control/state.hpp>

#include <concepts>

namespace gpusched::control {

/// What a placement is exposed to, each 0 to 1.
struct PlacementTerms {
    double pcie = 0;  ///< others' traffic on its root, and with less weight on near ones, over capacity
    double io = 0;    ///< block I/O of its NUMA node / 2 GB/s
    double irq = 0;   ///< interrupts of the busiest core it would use / (8 x median core)
    double fragmentation = 0;  ///< memory slices by which the largest free block shrinks / 8
};

/// A function from terms to a score; lower is better. It must return the same for the same terms.
template <class S>
concept PlacementScorer = requires(const S& score, const PlacementTerms& terms) {
    { score(terms) } -> std::convertible_to<double>;
};

/// What the paper penalises (section 2.2.1), with weights of ours, 0.5 PCIe + 0.3 I/O + 0.2 interrupts; 0.05 fragmentation is ours, too.
struct WeightedScore {
    double pcie = 0.5, io = 0.3, irq = 0.2, fragmentation = 0.05;
    double operator()(const PlacementTerms& x) const noexcept {
        return pcie * x.pcie + io * x.io + irq * x.irq + fragmentation * x.fragmentation;
    }
};

/// Bytes/s on a root that are known to be others': of other protected tenants there, and of tenants with an attribution;
/// NaN where nothing is known of anybody.
/// @param tenant whose own bytes do not count
[[nodiscard]] double known_others(const Host& host, const Observation& seen, const ControllerState& state,
                                  std::size_t tenant, std::size_t root) noexcept;

/// Bytes/s of network interfaces on a root; 0 where not known.
[[nodiscard]] double nic_on_root(const Host& host, const Observation& seen, std::size_t root) noexcept;

/// Others' bytes/s, of GPUs and network interfaces, near a GPU over its root's capacity: those on the same root count in full (topology PIX, PXB),
/// behind the same host bridge half (PHB), on the same NUMA node a quarter (NODE), elsewhere not (SYS). On the tenant's
/// own root they are what is left without its own traffic; where that is not known, `known_others`. NaN: not known.
/// @param tenant whose own bytes do not count; as many as there are tenants for one that is not there yet
[[nodiscard]] double others_on_root(const Host& host, const Observation& seen, const ControllerState& state,
                                    std::size_t tenant, std::size_t gpu, bool near) noexcept;

/// Interrupts per second of the median core; 0 without cores.
[[nodiscard]] double median_irq(const Observation& seen) noexcept;

/// The cores of a NUMA node with at most twice the median's interrupts; all of the node's if none is that quiet.
[[nodiscard]] CpuSet quiet_cores(const Host& host, const Observation& seen, std::int32_t numa) noexcept;

/// The terms of a placement beside the instances of `rest`.
[[nodiscard]] PlacementTerms placement_terms(const Host& host, const Observation& seen,
                                             const ControllerState& state, std::size_t tenant,
                                             std::size_t gpu, MigInstance instance, const MigLayout& rest,
                                             const CpuSet& cpus) noexcept;

}  // namespace gpusched::control

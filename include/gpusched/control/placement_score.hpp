// SPDX-License-Identifier: Apache-2.0
// Placement score: a number for a tenant's exposure to other tenants in a placement.
#pragma once

#include <gpusched/control/state.hpp>

#include <concepts>

namespace gpusched::control {

/// The exposure of a placement, each term 0 to 1.
struct PlacementTerms {
    double pcie = 0;           ///< others' traffic on its root, with less weight on near roots, / capacity
    double io = 0;             ///< block I/O of its NUMA node / 2 GB/s
    double irq = 0;            ///< interrupts of its busiest core / (8 x median core)
    double fragmentation = 0;  ///< memory slices by which the largest free block shrinks / 8
};

/// A function from terms to a score; lower is better. The same terms must give the same score.
template <class S>
concept PlacementScorer = requires(const S& score, const PlacementTerms& terms) {
    { score(terms) } -> std::convertible_to<double>;
};

/// The paper's penalties (section 2.2.1) with our weights: 0.5 PCIe + 0.3 I/O + 0.2 interrupts. The term 0.05
/// fragmentation is also ours.
struct WeightedScore {
    double pcie = 0.5, io = 0.3, irq = 0.2, fragmentation = 0.05;
    double operator()(const PlacementTerms& x) const noexcept {
        return pcie * x.pcie + io * x.io + irq * x.irq + fragmentation * x.fragmentation;
    }
};

/// Returns the bytes/s on a root that are known to come from other tenants: from other protected tenants
/// there, and from tenants with an attribution. NaN if no such value is known.
/// @param tenant its own bytes do not count
[[nodiscard]] double known_others(const Host& host, const Observation& seen, const ControllerState& state,
                                  std::size_t tenant, std::size_t root) noexcept;

/// Returns the bytes/s of network interfaces on a root; 0 if unknown.
[[nodiscard]] double nic_on_root(const Host& host, const Observation& seen, std::size_t root) noexcept;

/// Returns the bytes/s of other tenants' GPUs and of network interfaces near a GPU, divided by the capacity
/// of its root; NaN if unknown.
///
/// Traffic on the same root counts in full (topology PIX, PXB). With `near`, traffic behind the same host
/// bridge counts half (PHB), and traffic on the same NUMA node a quarter (NODE). Other traffic does not count
/// (SYS). On the tenant's own root, the tenant's own traffic is subtracted; if it is unknown, `known_others`
/// is used.
/// @param tenant its own bytes do not count; the number of tenants for a newcomer
[[nodiscard]] double others_on_root(const Host& host, const Observation& seen, const ControllerState& state,
                                    std::size_t tenant, std::size_t gpu, bool near) noexcept;

/// Returns the interrupts per second of the median core; 0 without cores.
[[nodiscard]] double median_irq(const Observation& seen) noexcept;

/// Returns the interrupts per second of the busiest of these cores, or of the NUMA node's cores if `cpus` is
/// empty; 0 if unknown.
[[nodiscard]] double busiest_irq(const Host& host, const Observation& seen, std::int32_t numa,
                                 const CpuSet& cpus) noexcept;

/// Returns the cores of a NUMA node with at most twice the median's interrupts, or all its cores if none is
/// that quiet.
[[nodiscard]] CpuSet quiet_cores(const Host& host, const Observation& seen, std::int32_t numa) noexcept;

/// Returns the terms of a placement next to the instances of `rest`.
[[nodiscard]] PlacementTerms placement_terms(const Host& host, const Observation& seen,
                                             const ControllerState& state, std::size_t tenant,
                                             std::size_t gpu, MigInstance instance, const MigLayout& rest,
                                             const CpuSet& cpus) noexcept;

}  // namespace gpusched::control

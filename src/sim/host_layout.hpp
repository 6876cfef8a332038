// SPDX-License-Identifier: Apache-2.0
// Data derived from a scenario of the simulated host: its GPUs, its tenants, and the controller's view of
// them.
#pragma once

#include <gpusched/control/host_description.hpp>
#include <gpusched/control/mig_layout.hpp>
#include <gpusched/sim/host_scenario.hpp>

#include <cstddef>
#include <vector>

namespace gpusched::sim::detail {

/// Returns the number of GPUs of a host.
[[nodiscard]] std::size_t gpus_of(const HostScenario& scenario);
/// Returns the number of protected tenants of a host.
[[nodiscard]] std::size_t services_of(const HostScenario& scenario);
/// Returns the controller's view of a host: roots, GPUs, cores and tenants.
[[nodiscard]] control::Host host_of(const HostScenario& scenario);
/// Adds the instances of other users if there is room.
void add_neighbours(const control::MigDevice& device, std::vector<control::MigLayout>& layouts);

}  // namespace gpusched::sim::detail

// SPDX-License-Identifier: Apache-2.0
// What follows from a scenario of the simulated host: its GPUs, its tenants, and what the controller knows of them.
#pragma once

#include <gpusched/control/host_description.hpp>
#include <gpusched/control/mig_layout.hpp>
#include <gpusched/sim/host_scenario.hpp>

#include <cstddef>
#include <vector>

namespace gpusched::sim::detail {

/// GPUs of a host.
[[nodiscard]] std::size_t gpus_of(const HostScenario& scenario);
/// Protected tenants of a host.
[[nodiscard]] std::size_t services_of(const HostScenario& scenario);
/// What the controller of a host knows of it: roots, GPUs, cores and tenants.
[[nodiscard]] control::Host host_of(const HostScenario& scenario);
/// Instances of others, where there is room.
void add_neighbours(const control::MigDevice& device, std::vector<control::MigLayout>& layouts);

}  // namespace gpusched::sim::detail

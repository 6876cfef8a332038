// SPDX-License-Identifier: Apache-2.0
// Victim policies by name, for options, files and other languages.
#pragma once

#include <gpusched/core/registry.hpp>
#include <gpusched/preemption/victim_policy.hpp>

namespace gpusched::preemption {

/// The names of `Policy`. A copy takes orders of your own:
///
///     auto policies = preemption::victim_policies();
///     policies.add<YoungestFirst>("youngest_first");
///     auto result = preemption::preempt(cluster, task, {.policy = policies.make(name_from_a_file)});
[[nodiscard]] const Registry<VictimPolicy>& victim_policies();

}  // namespace gpusched::preemption

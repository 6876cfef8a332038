// SPDX-License-Identifier: Apache-2.0
// Structural changes that undo themselves: a tenant's GPU instance is replaced, or what was there stands again.
#pragma once

#include <gpusched/host/mig_backend.hpp>

#include <functional>

namespace gpusched::host {

/// Has a tenant run in the instance of a configuration and nowhere else.
using TenantMove = std::function<BackendStatus(const Configuration&)>;

/// Replaces a tenant's own instance, and nothing else: the new one first where it fits beside the old one, else the old
/// one is destroyed before. IN_USE is tried up to three more times, `wait(k)` before try k. When a step fails, what was
/// made is removed and what was removed is made again.
///
/// `switch_over(configuration)` moves the tenant and returns its status. It is called when the new instance exists (and
/// the old one still does, where both fit); when that fails, the tenant may have moved or not, and where the old one
/// stands it is called for that before the new one is destroyed.
/// @return as the controller wants it; after a failure that freezes nothing more is tried, and `restored` says whether
///     the old instance still stands
[[nodiscard]] Feedback replace_instance(MigBackend& backend, const Host& host, const Configuration& before,
                                        const Configuration& after, const TenantMove& switch_over,
                                        const std::function<void(int)>& wait);

/// Brings a change from `before` to `after` that was cut off to one of the two: to the new one if the tenant was told
/// to run there, else to the old one where it stands, else to the new one, else the old one is made again. The tenant
/// is told by `switch_over(configuration)` before the other instance goes, so that nothing is destroyed under it. The one
/// that stands gets the compute instance that it lacks, and the claim to the other placement is given up.
/// @param backend owns both
[[nodiscard]] BackendStatus recover_change(MigBackend& backend, const Configuration& before,
                                           const Configuration& after, bool switched,
                                           const TenantMove& switch_over,
                                           const std::function<void(int)>& wait, Configuration& stands);

}  // namespace gpusched::host

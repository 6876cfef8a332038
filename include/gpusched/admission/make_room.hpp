// SPDX-License-Identifier: Apache-2.0
// make_room: lets a job in by moves alone.
#pragma once

#include <gpusched/admission/admit.hpp>

#include <optional>
#include <span>
#include <utility>

namespace gpusched::admission {

/// The plan of `admit` with `evictions` off: moves that make room for all pods of a job, and where these go.
/// @return none where moves alone do not let the job in; `admit` says why
/// @throws InvalidInput as `admit`
[[nodiscard]] inline std::optional<Plan> make_room(const Cluster& cluster, std::span<const TaskId> pods,
                                                   Options options = {}, const Context& context = {}) {
    options.evictions = false;
    auto made = admit(cluster, pods, options, context);
    if (!made.admitted) return std::nullopt;
    return std::move(made.plan);
}

}  // namespace gpusched::admission

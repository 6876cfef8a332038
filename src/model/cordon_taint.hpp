// SPDX-License-Identifier: Apache-2.0
// The taint by which Kubernetes cordons a node: tasks that tolerate it may still go there.
#pragma once

#include <string_view>

namespace gpusched::detail {

/// With the effect NoSchedule.
inline constexpr std::string_view cordon_taint = "node.kubernetes.io/unschedulable";

}  // namespace gpusched::detail

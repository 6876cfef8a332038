// The taint by which Kubernetes cordons a node: tasks that tolerate it may still go there.
#pragma once

#include <gpusched/config.hpp>

#include <string_view>

namespace GPUSCHED_NAMESPACE::detail {

/// With the effect NoSchedule.
inline constexpr std::string_view cordon_taint = "node.kubernetes.io/unschedulable";

}  // namespace GPUSCHED_NAMESPACE::detail

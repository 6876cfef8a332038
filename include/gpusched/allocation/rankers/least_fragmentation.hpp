// SPDX-License-Identifier: Apache-2.0
// Least fragmentation: FGD's ranking, prefers the node on which expected fragmentation grows least.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/fragmentation/fgd.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cmath>
#include <cstdint>
#include <memory>

namespace gpusched::allocation {

namespace detail {

/// The published score of a change of expected fragmentation: 0 to 100, 50 if nothing changes.
[[nodiscard]] inline std::int64_t fgd_score(const fragmentation::Fgd& metric, std::int64_t delta) noexcept {
    return static_cast<std::int64_t>(100.0 / (1.0 + std::exp(metric.to_gpus(delta))));
}

}  // namespace detail

/// Fragmentation gradient descent (Weng et al., ATC '23) as published: `100 x sigmoid(decrease of F in
/// GPUs)`, truncated to whole numbers; for a fraction with the best GPU of the node.
///
/// The truncation is part of the policy: it makes near-equal nodes equal, and the first of them fills up.
struct LeastFragmentation {
    static constexpr bool node_local = true;
    std::shared_ptr<const fragmentation::Fgd> metric;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const noexcept {
        const auto choice = metric->best(cluster, task, node, candidate_gpus(cluster, task, node));
        return detail::fgd_score(*metric, choice.delta);
    }
};

}  // namespace gpusched::allocation

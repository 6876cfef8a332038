// SPDX-License-Identifier: Apache-2.0
// Least fill loss: prefers the node on which a placement reduces the expected fill of future tasks least.
#pragma once

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/fragmentation/expected_fill.hpp>
#include <gpusched/model/feasibility.hpp>

#include <cstdint>
#include <memory>

namespace gpusched::allocation {

/// Ranks nodes by `ExpectedFill::best`.
struct LeastFillLoss {
    static constexpr bool node_local = true;
    std::shared_ptr<const fragmentation::ExpectedFill> measure;
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        return (*this)(cluster, task, node, prepare(cluster, node));
    }
    [[nodiscard]] fragmentation::ExpectedFill::NodeState prepare(const Cluster& cluster, NodeId node) const {
        return measure->state(cluster, node);
    }
    std::int64_t operator()(const Cluster& cluster, TaskId task, NodeId node,
                            const fragmentation::ExpectedFill::NodeState& state) const {
        return measure->best(cluster, task, node, candidate_gpus(cluster, task, node), state).score;
    }
};

}  // namespace gpusched::allocation

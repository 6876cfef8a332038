// SPDX-License-Identifier: Apache-2.0
// First fit and random: the two baselines, which ignore the state of nodes.
#pragma once

#include <gpusched/allocation/concepts.hpp>

#include <cstdint>

namespace gpusched::allocation {

/// Scores all nodes equally, so the first wins.
struct FirstFit {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster&, TaskId, NodeId) const noexcept { return 0; }
};

/// Chooses any feasible node, all equally likely.
struct Random {
    std::uint64_t operator()(const Cluster&, TaskId, NodeId, Rng& rng) const noexcept { return rng(); }
};

}  // namespace gpusched::allocation

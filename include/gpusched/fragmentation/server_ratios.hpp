// SPDX-License-Identifier: Apache-2.0
// Means over servers of what HP and LP tasks hold, and of what LP tasks borrow (ASI paper, Figs. 9 and 16).
#pragma once

#include <gpusched/fragmentation/accounting.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::fragmentation {

/// The servers of one GPU model.
struct ServerRatios {
    std::string gpu_model{};           ///< "*" = all models together; empty = servers that name none
    std::int64_t servers = 0;          ///< nodes with GPUs
    double hp = 0;                     ///< Fig. 9, HP: mean over servers of (A + r) / G
    double hp_and_lp = 0;              ///< Fig. 9, HP+LP: mean over servers of (min(A + L, G) + r) / G
    std::int64_t standby_servers = 0;  ///< those with Standby tasks that have GPUs
    double standby_used =
        0;  ///< Fig. 16: mean over these of L / S; above 1 where LP tasks hold more than is lent
    bool operator==(const ServerRatios&) const = default;
};

/// The published allocation ratios and use of Standby GPUs, with A, S, L, G and r as in `NodeRequests`.
///
/// Every server weighs the same, whatever its size; `allocation_ratio` weighs by GPUs and counts a GPU once that is lent and
/// used. Means over no servers are 0. Cordoned nodes and failed GPUs count.
///
/// @return one row per GPU model in order of first appearance, then "*"
/// Complexity: O(nodes + tasks). Deterministic: sums are added in the order of the nodes.
[[nodiscard]] std::vector<ServerRatios> server_ratios(const Cluster& cluster);

}  // namespace gpusched::fragmentation

// SPDX-License-Identifier: Apache-2.0
// ServerRatios: means over servers of the GPUs that HP and LP tasks hold and that LP tasks borrow (ASI paper,
// Figs. 9 and 16).
#pragma once

#include <gpusched/fragmentation/accounting.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::fragmentation {

/// The means for the servers of one GPU model.
struct ServerRatios {
    std::string gpu_model{};           ///< "*" = all models together; empty = servers without a model name
    std::int64_t servers = 0;          ///< nodes with GPUs
    double hp = 0;                     ///< Fig. 9, HP: mean over servers of (A + r) / G
    double hp_and_lp = 0;              ///< Fig. 9, HP+LP: mean over servers of (min(A + L, G) + r) / G
    std::int64_t standby_servers = 0;  ///< servers with Standby tasks that have GPUs
    double standby_used =
        0;  ///< Fig. 16: mean over `standby_servers` of L / S; above 1 if LP tasks hold more than is lent
    bool operator==(const ServerRatios&) const = default;
};

/// Returns the published allocation ratios and the use of Standby GPUs, with A, S, L, G and r as in
/// `NodeRequests`.
///
/// Every server has the same weight, regardless of its size. `allocation_ratio`, by contrast, weighs by GPUs,
/// and counts a GPU once if it is lent and used. Means over no servers are 0. Cordoned nodes and failed GPUs
/// count.
///
/// @return one row per GPU model in order of first appearance, then "*"
///
/// O(nodes + tasks). Deterministic: sums are added in the order of the nodes.
[[nodiscard]] std::vector<ServerRatios> server_ratios(const Cluster& cluster);

}  // namespace gpusched::fragmentation

// SPDX-License-Identifier: Apache-2.0
// unusable_nodes(): lists the nodes with idle GPUs that a request cannot use.
#pragma once

#include <gpusched/fragmentation/report.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <vector>

namespace gpusched::fragmentation {

/// A node's part in one row of a report.
struct UnusableNode {
    NodeId node = none<NodeId>;
    Cause cause = Cause::stranded;
    std::int64_t milli = 0;  ///< thousandths of a GPU, more than 0
    bool operator==(const UnusableNode&) const = default;

    [[nodiscard]] double gpus() const noexcept { return static_cast<double>(milli) / 1000; }
};

/// Returns the nodes behind the figures of `report` for this shape: nodes with the most GPUs first, then in
/// the order of the nodes. Each node has one cause. The sums by cause equal the report's row. Grouping
/// (`options.by`) has no effect.
///
/// @throws InvalidInput if the shape or an option is out of range
///
/// O(n log n) in the number of nodes, and O(GPUs).
[[nodiscard]] std::vector<UnusableNode> unusable_nodes(const Cluster& cluster, const Shape& shape,
                                                       const ReportOptions& options = {});

}  // namespace gpusched::fragmentation

// SPDX-License-Identifier: Apache-2.0
// FilterAnswers: what a caller's filter says of tasks and nodes, asked once of each pair.
#pragma once

#include <gpusched/allocation/any.hpp>
#include <gpusched/model/cluster.hpp>

#include <map>
#include <optional>
#include <utility>

namespace gpusched::admission::detail {

/// May a task come to a node? Without a filter it may.
class FilterAnswers {
  public:
    /// @param snapshot, filter must outlive this
    FilterAnswers(const Cluster& snapshot, const std::optional<allocation::AnyFilter>& filter)
        : snapshot_(snapshot), filter_(filter) {}

    [[nodiscard]] explicit operator bool() const noexcept { return filter_.has_value(); }
    [[nodiscard]] bool operator()(TaskId task, NodeId node) const {
        if (!filter_) return true;
        const auto [known, is_new] = answers_.try_emplace({task, node});
        if (is_new) known->second = (*filter_)(snapshot_, task, node);
        return known->second;
    }

  private:
    const Cluster& snapshot_;
    const std::optional<allocation::AnyFilter>& filter_;
    mutable std::map<std::pair<TaskId, NodeId>, bool> answers_;
};

}  // namespace gpusched::admission::detail

// SPDX-License-Identifier: Apache-2.0
// CoverFinder: which sets of tasks would have to leave a node for another task.
#pragma once

#include "admission/bounds.hpp"
#include "admission/search_state.hpp"

#include <gpusched/admission/admit.hpp>
#include <gpusched/allocation/any.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

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

/// A set of tasks of one node without which another task fits there.
struct Cover {
    std::int64_t least = 0;     ///< what displacing costs at least
    std::int64_t estimate = 0;  ///< the same with what the places of the displaced may cost
    std::int64_t most = 0;      ///< the most that the place of one of them costs at least
    std::vector<TaskId> tasks{};
};

/// Finds the sets by including and excluding one task after the other, on the state of the search, which it leaves as it was.
class CoverFinder {
  public:
    CoverFinder(const Cluster& snapshot, SearchState& state, const FilterAnswers& passes,
                const Prices& prices, NodeBounds& bounds, Statistics& stats)
        : snapshot_(snapshot), inv_(snapshot.inventory()), state_(state), passes_(passes), prices_(prices),
          bounds_(bounds), stats_(stats) {}

    /// All minimal sets that cost no more than `most_cost`, the cheapest by estimate first.
    /// @return false where there are too many of them, and some were left out
    bool find(TaskId task, NodeId node, std::int64_t most_cost, std::vector<Cover>& covers);

  private:
    void find(std::size_t next, std::int64_t cost);
    void find_one();
    /// What the destination of a displaced task costs at least, on top of its least price; from the snapshot.
    [[nodiscard]] std::int64_t hardness(TaskId task) const;
    /// Whether the two tasks are exchangeable: no cost and no later placement depends on which of them leaves. Never with a filter, which
    /// may tell any two tasks apart.
    [[nodiscard]] bool alike(TaskId a, TaskId b) const;
    /// Whether both tasks free as many healthy GPUs, and as many devices of each class, and no other task holds one of these.
    [[nodiscard]] bool free_alike(TaskId a, TaskId b) const;

    const Cluster& snapshot_;
    const Inventory& inv_;
    SearchState& state_;
    const FilterAnswers& passes_;
    const Prices& prices_;
    NodeBounds& bounds_;
    Statistics& stats_;

    // Of the call at hand.
    TaskId for_ = none<TaskId>;
    NodeId on_ = none<NodeId>;
    GpuMask shared_ = 0;  // its GPUs that two tasks hold: one borrows them from the other
    std::int64_t most_cost_ = 0, sets_left_ = 0;
    std::vector<TaskId> candidates_{}, chosen_{};
    struct Rest {
        std::int64_t gpus, cpu, memory;
    };
    std::vector<Rest> rest_{};  // what candidates from here on free at most
    std::vector<Cover>* covers_ = nullptr;
};

}  // namespace gpusched::admission::detail

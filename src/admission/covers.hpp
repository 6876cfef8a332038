// SPDX-License-Identifier: Apache-2.0
// CoverFinder: the sets of tasks that must leave a node so that another task fits.
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

/// The answers of a caller's filter: may a task run on a node? It is called once per pair. Without a filter,
/// always true.
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

/// A set of tasks without which another task fits on a node. They run on that node, or are members of groups
/// that keep the task off it.
struct Cover {
    std::int64_t least = 0;     ///< lower bound on the cost of displacing them
    std::int64_t estimate = 0;  ///< the same plus estimated costs of their places
    std::int64_t most = 0;      ///< the highest lower bound on the cost of a place for one of them
    std::vector<TaskId> tasks{};
};

/// Enumerates the sets by including or excluding one task after the other. Works on the state of the search
/// and restores it.
class CoverFinder {
  public:
    CoverFinder(const Cluster& snapshot, SearchState& state, const FilterAnswers& passes,
                const PriceTable& prices, NodeBounds& bounds, Statistics& stats)
        : snapshot_(snapshot), inv_(snapshot.inventory()), state_(state), passes_(passes), prices_(prices),
          bounds_(bounds), stats_(stats) {}

    /// Lists all minimal sets that cost at most `most_cost`, the cheapest by estimate first.
    /// @param defers ignores constraints that other tasks can satisfy later (near, spread)
    /// @return false if there are too many sets and some were omitted
    bool find(TaskId task, NodeId node, std::int64_t most_cost, bool defers, std::vector<Cover>& covers);
    /// The tasks in a set that may be displaced, by domain; with affinity: all of them in no domain.
    [[nodiscard]] const std::map<DomainId, std::vector<TaskId>>& members_of(std::uint32_t set);

  private:
    void find(std::size_t next, std::int64_t cost);
    void find_one();
    bool add_conflicting_members();
    bool is_hopeless();
    [[nodiscard]] bool fits() const;
    void put_back(TaskId task) { state_.work.assign(task, snapshot_.node_of(task), snapshot_.gpus_of(task)); }
    /// Lower bound on the cost of a place for a displaced task, in addition to its least price; from the
    /// snapshot.
    [[nodiscard]] std::int64_t cost_of_place(TaskId task) const;
    /// Returns whether two tasks are interchangeable: no cost and no later placement depends on which of them
    /// leaves. Never with a filter, which can treat any two tasks differently.
    [[nodiscard]] bool alike(TaskId a, TaskId b) const;
    /// Returns whether both tasks free equally many healthy GPUs and devices of each class, and share none of
    /// them.
    [[nodiscard]] bool free_alike(TaskId a, TaskId b) const;

    const Cluster& snapshot_;
    const Inventory& inv_;
    SearchState& state_;
    const FilterAnswers& passes_;
    const PriceTable& prices_;
    NodeBounds& bounds_;
    Statistics& stats_;

    // The state of one call.
    TaskId for_ = none<TaskId>;
    NodeId on_ = none<NodeId>;
    bool defers_ = false;
    GpuMask shared_ = 0;  // GPUs of the node that two tasks use: one borrows from the other
    std::int64_t most_cost_ = 0, sets_left_ = 0;
    std::vector<TaskId> candidates_{}, chosen_{};
    struct Rest {
        std::int64_t gpus, cpu, memory;
    };
    std::vector<Rest> rest_{};  // upper bound on the resources that candidates from here on free
    std::vector<Cover>* covers_ = nullptr;

    // By set, for `members_of`. Filled when needed.
    std::map<std::uint32_t, std::map<DomainId, std::vector<TaskId>>> members_{};
};

}  // namespace gpusched::admission::detail

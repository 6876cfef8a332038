// Search: which tasks leave for the pods, by which means, and where they go, at the least cost.
#pragma once

#include <gpusched/admission/detail/node_bounds.hpp>
#include <gpusched/admission/detail/prices.hpp>
#include <gpusched/admission/options.hpp>
#include <gpusched/admission/result.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/free_index.hpp>
#include <gpusched/consolidation/scope.hpp>
#include <gpusched/consolidation/wave_order.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/preemption/detail/gang_table.hpp>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::admission::detail {

/// A way to let the pods in: evictions, then moves in an order in which each is possible, then placements.
struct Way {
    std::int64_t cost = never;
    std::vector<TaskId> evictions{};
    std::vector<consolidation::Step> moves{};
    std::vector<Placement> placements{};  ///< of the pods, in no order, and of victims that run again
};

/// Depth-first over final placements with bounds. What has to be placed yet is a stack: at first the pods; whoever is displaced
/// for one of its tasks comes on top. A displaced task is lifted off its node at once, and its cheapest price paid; what
/// its true means costs more is added when it is chosen. A complete placement counts if its moves can be made one after the other.
class Search {
  public:
    /// @param work a copy of `snapshot` without history
    Search(const Cluster& snapshot, Cluster work, std::span<const TaskId> pods, const Options& options,
           const consolidation::Scope& scope, const Prices& prices,
           const preemption::detail::GangTable& gangs, NodeBounds& bounds, Budget& budget, Statistics& stats);

    /// Takes in a way that is known.
    void offer(Way way);
    /// Looks for ways with all pods on the nodes of `region` (ascending; empty = everywhere).
    void run(std::span<const NodeId> region);
    /// A lower bound on the cost of every way in the region, from the bounds of nodes alone; `never` = there is none.
    [[nodiscard]] std::int64_t bound_of(std::span<const NodeId> region);

    /// Ways that were found, each cheaper than the one before.
    [[nodiscard]] const std::vector<Way>& ways() const noexcept { return ways_; }
    /// No way in the regions that were searched costs less. `never` = there is none at all.
    [[nodiscard]] std::int64_t lower_bound() const noexcept { return lower_bound_; }
    /// What a way must cost less than to be of interest.
    [[nodiscard]] std::int64_t best() const noexcept { return best_; }

  private:
    enum State : std::int64_t { untouched, lifted, evicted, moved, replaced, lost, placed };
    struct Item {
        TaskId task = none<TaskId>;
        int depth = 0;  ///< 0 = a pod
    };
    struct Cover {
        std::int64_t least = 0,
                     hard = 0;  ///< what displacing costs at least; with what destinations may cost
        std::int64_t most = 0;  ///< the largest of the latter alone
        std::vector<TaskId> tasks{};
    };
    struct Mark {
        std::size_t changes, journal, puts, todo, evictions;
    };

    [[nodiscard]] Mark mark() const noexcept;
    void undo(const Mark& to);
    void set(std::int64_t& value, std::int64_t to);
    void change(TaskId task, NodeId node, GpuMask gpus);

    void descend();
    void place(const Item& item);
    void place_directly(const Item& item);
    void place_by_displacing(const Item& item);
    void displace_on(const Item& item, NodeId node, std::int64_t bound);
    void lose(const Item& item);
    void put(const Item& item, NodeId node, std::int64_t node_bound = 0);
    bool evict(TaskId task, bool again);
    bool evict_gang(JobId job, TaskId first, bool again);
    void lift(TaskId task, int depth);
    void finish();
    bool make_possible(Way& way);

    [[nodiscard]] bool looks_beyond_its_node(TaskId task) const;
    [[nodiscard]] bool may_go(const Item& item, NodeId node) const;
    [[nodiscard]] std::int64_t bound() const;
    [[nodiscard]] bool out();
    /// What it costs at least to displace enough for the task on another node than its own; from the snapshot.
    [[nodiscard]] std::int64_t elsewhere(TaskId task);
    /// What the destination of a displaced task costs at least, on top of its least price; from the snapshot.
    [[nodiscard]] std::int64_t hardness(TaskId task);
    void find_covers(TaskId task, NodeId node, std::int64_t most_cost, std::vector<Cover>& covers);
    void find_covers(std::size_t next, std::int64_t cost);
    void find_one_cover();
    [[nodiscard]] bool alike(TaskId a, TaskId b, NodeId node) const;

    const Cluster& snapshot_;
    const Inventory& inv_;
    std::span<const TaskId> pods_;
    const Options& options_;
    const consolidation::Scope& scope_;
    const Prices& prices_;
    const preemption::detail::GangTable& gangs_;
    NodeBounds& bounds_;
    Budget& budget_;
    Statistics& stats_;

    Cluster work_;
    consolidation::FreeIndex index_;
    struct Changed {
        TaskId task;
        NodeId from, to;
        GpuMask gpus;
    };
    std::vector<Changed> changes_;  // as in the log of `work_`
    std::vector<std::pair<std::int64_t*, std::int64_t>> journal_;
    std::vector<Placement> puts_;
    std::vector<Item> todo_;
    std::vector<TaskId> evictions_;
    std::vector<std::int64_t> state_;  // by task
    std::vector<std::int64_t> gone_,
        broken_;                      // by job: members evicted; 1 = leaves and is placed again, 2 = leaves
    std::vector<std::int64_t> down_;  // by budget
    std::int64_t cost_ = 0, moves_ = 0, lost_milli_ = 0, pods_cost_ = 0, pods_left_ = 0;

    std::vector<std::uint8_t> exempt_;              // by node; empty = none
    std::vector<std::uint8_t> in_region_, banned_;  // by node; empty = all, none
    bool by_region_ = false;
    std::vector<std::int64_t>
        cheapest_pods_;              // what so many pods cost at least, where each needs a node of its own
    std::int64_t needed_milli_ = 0;  // what must be lost for good
    std::int64_t best_ = never, lower_bound_ = never;
    std::int64_t limit_ = 0, stop_at_ = 0, share_ = 0;
    bool lends_ = false;    // Standby tasks do
    bool cut_ = false;      // something was left out that may be a cheaper way
    bool stopped_ = false;  // and that because of a limit on steps
    std::vector<Way> ways_;

    // While covers are found.
    TaskId for_ = none<TaskId>;
    NodeId on_ = none<NodeId>;
    std::int64_t most_cost_ = 0, sets_left_ = 0;
    std::vector<TaskId> candidates_, chosen_;
    struct Rest {
        std::int64_t gpus, cpu, memory;
    };
    std::vector<Rest> rest_;  // what candidates from here on free at most
    std::vector<Cover>* covers_ = nullptr;
};

}  // namespace GPUSCHED_NAMESPACE::admission::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/admission/impl/covers.ipp>
#include <gpusched/admission/impl/search.ipp>
#include <gpusched/admission/impl/way.ipp>
#endif

// NodeProblem: one node as seen by one preemptor: potential victims as bits, and what the node offers without them.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/detail/request.hpp>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

namespace gpusched::preemption::detail {

/// A set of a node's potential victims: bit i is victim i.
using VictimSet = std::uint64_t;
inline constexpr int most_victims = 64;

struct Victim {
    TaskId task = none<TaskId>;
    GpuMask gpus = 0;
    bool claims = false;     ///< its resources are not lent ones only: whoever may not borrow gains them
    std::int16_t gang = -1;  ///< index into NodeProblem's gangs; -1 = none
    std::int32_t share_milli = 0;
    std::int64_t cpu_milli = 0, memory_mib = 0, gpu_memory_mib = 0;
    std::int64_t priority = 0;
    std::int64_t cost = 0;  ///< its own
};

/// A gang with victims on the node.
struct Gang {
    JobId job = none<JobId>;
    std::int64_t surplus = 0;  ///< members that may leave before the whole gang's work is lost
    std::int64_t cost = 0;     ///< of all running members
    bool lost = false;         ///< its work is lost already: further members cost nothing
};

/// Running members and their cost, by job; what the cost of a gang is taken from.
struct GangTable {
    std::vector<Gang> of_job;  ///< empty = gangs do not count
    /// O(tasks).
    void read(const Cluster& cluster, const CostFunction& cost, std::int64_t now);
};

template <class Visit>
void for_each_victim(VictimSet set, Visit&& visit) {
    for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}

/// Sums over a set of victims.
struct Sums {
    int count = 0;
    std::int64_t priority = 0, max_priority = INT64_MIN, cost = 0;
};

class NodeProblem {
  public:
    /// Reads the node. Allocates only where the preemptor has group constraints.
    /// @param failed GPUs that have failed besides those that the inventory says
    void read(const Cluster& cluster, const Request& request, const CostFunction& cost, NodeId node,
              const GangTable* gangs = nullptr, GpuMask failed = 0);

    /// Forgets what it knows of the cluster; needed after a change of the cluster where the preemptor has groups.
    void forget() noexcept { scratch_of_ = nullptr; }

    [[nodiscard]] int size() const noexcept { return count_; }
    [[nodiscard]] const Victim& victim(int i) const noexcept { return victims_[static_cast<std::size_t>(i)]; }
    [[nodiscard]] VictimSet all() const noexcept {
        return count_ == most_victims ? ~VictimSet{0} : (VictimSet{1} << count_) - 1;
    }
    [[nodiscard]] NodeId node() const noexcept { return node_; }
    /// Potential victims beyond the first 64 were left out.
    [[nodiscard]] bool truncated() const noexcept { return truncated_; }

    /// The best locality that the preemptor finds once the set has left, every other task staying on its own devices;
    /// `infeasible` if it then does not fit. Never worse for a larger set.
    [[nodiscard]] std::uint8_t locality(VictimSet leaving) const noexcept;
    [[nodiscard]] Sums sums(VictimSet set) const noexcept;
    /// What evicting it first would cost: the whole gang's work where it breaks its gang.
    [[nodiscard]] std::int64_t first_cost(int i) const noexcept;
    [[nodiscard]] bool has_gangs() const noexcept { return gang_count_ > 0; }
    /// GPUs that could serve the preemptor once the set has left.
    [[nodiscard]] GpuMask free_gpus(VictimSet leaving) const noexcept;
    /// GPUs for the preemptor within the best locality; the set must be feasible.
    [[nodiscard]] GpuMask choose_gpus(VictimSet leaving) const;
    /// Does the first set come before the second, of the same size, by the sorted names of its tasks?
    [[nodiscard]] bool names_before(VictimSet a, VictimSet b) const noexcept;
    /// Are the two interchangeable for everything but cost and name?
    [[nodiscard]] bool alike(int a, int b) const noexcept;

    /// The preemptor is a daemon, and nobody but daemons stays.
    [[nodiscard]] bool vacated_by(VictimSet leaving) const noexcept;
    [[nodiscard]] bool enough_cpu_and_memory(VictimSet leaving) const noexcept;
    /// True where nothing but whole GPUs, CPU and memory decides, and a set frees the union of what its members hold.
    [[nodiscard]] bool only_gpus() const noexcept { return only_gpus_; }
    [[nodiscard]] GpuMask idle() const noexcept { return idle_; }
    /// GPUs that only victims keep from the preemptor.
    [[nodiscard]] GpuMask contested() const noexcept { return contested_; }
    [[nodiscard]] const std::uint8_t* table() const noexcept { return table_; }
    [[nodiscard]] const HardwareMasks* hardware() const noexcept { return hardware_; }

    /// What is missing even when the set has left. For explanations.
    struct Shortage {
        std::int64_t cpu_milli = 0, memory_mib = 0;
        int gpus = 0;  ///< of the preemptor's GPUs, how many find none
        bool locality = false;
        Obstacle group = Obstacle::none;
    };
    [[nodiscard]] Shortage shortage(VictimSet leaving) const;

  private:
    [[nodiscard]] std::uint8_t local_cores(VictimSet leaving, GpuMask free, GpuMask* chosen) const;
    [[nodiscard]] Obstacle group_obstacle(VictimSet leaving) const;

    const Cluster* cluster_ = nullptr;
    const Request* request_ = nullptr;
    const HardwareMasks* hardware_ = nullptr;
    const std::uint8_t* table_ = nullptr;
    NodeId node_ = none<NodeId>;
    int count_ = 0;
    int gpu_count_ = 0;
    int gang_count_ = 0;
    std::array<Gang, most_victims> gangs_{};
    bool truncated_ = false, only_gpus_ = false, enough_without_ = false;
    std::array<Victim, most_victims> victims_{};
    // With all victims in place.
    std::int64_t cpu_lendable_ = 0, cpu_firm_ = 0, memory_ = 0;
    GpuMask idle_ = 0, contested_ = 0, usable_ = 0;
    std::array<VictimSet, max_gpus_per_node> holders_{};  // victims on each GPU
    std::array<std::int32_t, max_gpus_per_node> lendable_{}, firm_{};
    std::array<std::int64_t, max_gpus_per_node> gpu_memory_{};
    mutable std::unique_ptr<Cluster> scratch_;  // where groups are asked
    const Cluster* scratch_of_ = nullptr;
};

}  // namespace gpusched::preemption::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/preemption/impl/gang_table.ipp>
#include <gpusched/preemption/impl/node_problem.ipp>
#endif

// NodeProblem: one node as seen by one preemptor: potential victims as bits, and what the node offers without them.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/detail/request.hpp>
#include <gpusched/preemption/detail/victim_set.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace GPUSCHED_NAMESPACE::preemption::detail {

struct Victim {
    TaskId task = none<TaskId>;
    GpuMask gpus = 0;        ///< whole ones
    bool claims = false;     ///< its resources are not lent ones only: whoever may not borrow gains them
    std::int16_t gang = -1;  ///< index into NodeProblem's gangs; -1 = none
    std::int32_t share_milli = 0;
    std::int64_t cpu_milli = 0, memory_mib = 0, gpu_memory_mib = 0;
    std::int64_t priority = 0;
    std::int64_t cost = 0;  ///< its own
    GpuMask devices =
        0;  ///< its other devices; only where the preemptor asks for more than CPU, memory and GPUs
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

/// What a preemptor lacks. For explanations.
struct Shortage {
    std::int64_t cpu_milli = 0, memory_mib = 0;
    int gpus = 0;  ///< of the preemptor's GPUs, how many find none
    bool locality = false;
    Obstacle extras = Obstacle::none;          ///< a named resource, or devices
    std::optional<Extras::Amount> resource{};  ///< the first named resource that is short, and by how much
    Obstacle group = Obstacle::none;
};

/// Sums over a set of victims.
struct Sums {
    int count = 0;
    std::int64_t priority = 0, max_priority = INT64_MIN, cost = 0;
};

/// @tparam Set VictimSet or ManyVictims
template <class Set>
class NodeProblem {
  public:
    using Argument = SetArgument<Set>;

    /// Reads the node. With a VictimSet it allocates only where the preemptor has group constraints.
    /// @param healthy GPUs that have not failed
    /// @return false when there are more potential victims than the set can hold; nothing else may be asked then
    [[nodiscard]] bool read(const Cluster& cluster, const Request& request, const CostFunction& cost,
                            NodeId node, const GangTable* gangs, GpuMask healthy);

    /// Forgets what it knows of the cluster; needed after a change of the cluster where the preemptor has groups.
    void forget() noexcept { scratch_of_ = nullptr; }

    [[nodiscard]] int size() const noexcept { return count_; }
    [[nodiscard]] const Victim& victim(int i) const noexcept { return victims_[static_cast<std::size_t>(i)]; }
    [[nodiscard]] Set all() const { return first_victims<Set>(count_); }
    [[nodiscard]] NodeId node() const noexcept { return node_; }

    /// The best locality that the preemptor finds once the set has left, every other task staying on its own devices;
    /// `infeasible` if it then does not fit. Never worse for a larger set.
    [[nodiscard]] std::uint8_t locality(Argument leaving) const;
    [[nodiscard]] Sums sums(Argument set) const;
    /// What evicting it first would cost: the whole gang's work where it breaks its gang.
    [[nodiscard]] std::int64_t first_cost(int i) const noexcept;
    /// GPUs that could serve the preemptor once the set has left.
    [[nodiscard]] GpuMask free_gpus(Argument leaving) const;
    /// GPUs for the preemptor within the best locality; the set must be feasible.
    [[nodiscard]] GpuMask choose_gpus(Argument leaving) const;
    /// Does the first set come before the second, of the same size, by the sorted names of its tasks?
    [[nodiscard]] bool names_before(Argument a, Argument b) const;
    /// Are the two interchangeable for everything but cost and name?
    [[nodiscard]] bool alike(int a, int b) const noexcept;
    /// May the victim's leaving give the preemptor anything that it lacks?
    [[nodiscard]] bool helps(int i) const noexcept;

    /// The preemptor is a daemon, and nobody but daemons stays.
    [[nodiscard]] bool vacated_by(Argument leaving) const;
    /// Named resources and devices as well.
    [[nodiscard]] bool enough_cpu_and_memory(Argument leaving) const;
    /// CPU and memory suffice as it is, and where they are does not matter.
    [[nodiscard]] bool only_gpus_lack() const noexcept {
        return enough_without_ && !request_->cpu_local && !request_->grouped;
    }
    /// True where nothing but whole GPUs, CPU and memory decides, and a set frees the union of what its members hold.
    [[nodiscard]] bool only_gpus() const noexcept { return only_gpus_; }
    [[nodiscard]] GpuMask idle() const noexcept { return idle_; }
    /// GPUs that only victims keep from the preemptor.
    [[nodiscard]] GpuMask contested() const noexcept { return contested_; }
    /// GPUs that have not failed and whose memory could suffice.
    [[nodiscard]] GpuMask usable() const noexcept { return usable_; }
    [[nodiscard]] const std::uint8_t* table() const noexcept { return table_; }
    [[nodiscard]] const HardwareMasks* hardware() const noexcept { return hardware_; }

    /// What is missing even when the set has left.
    [[nodiscard]] Shortage shortage(Argument leaving) const;

  private:
    [[nodiscard]] std::uint8_t local_cores(Argument leaving, GpuMask free, GpuMask* chosen) const;
    [[nodiscard]] Obstacle group_obstacle(Argument leaving) const;
    [[nodiscard]] GpuMask choose_whole_gpus(Argument leaving) const;
    [[nodiscard]] GpuMask free_devices(Argument leaving) const;
    [[nodiscard]] std::optional<Extras::Amount> missing_resource(Argument leaving) const;
    [[nodiscard]] Obstacle extras_obstacle(Argument leaving) const;

    const Cluster* cluster_ = nullptr;
    const Request* request_ = nullptr;
    const HardwareMasks* hardware_ = nullptr;
    const std::uint8_t* table_ = nullptr;
    NodeId node_ = none<NodeId>;
    int count_ = 0;
    int gpu_count_ = 0;
    int gang_count_ = 0;
    PerVictim<Set, Gang> gangs_{};
    bool only_gpus_ = false, enough_without_ = false;
    PerVictim<Set, Victim> victims_{};
    // With all victims in place.
    std::int64_t cpu_lendable_ = 0, cpu_firm_ = 0, memory_ = 0;
    GpuMask idle_ = 0, contested_ = 0, usable_ = 0;
    std::array<Set, max_gpus_per_node> holders_{};  // victims on each GPU
    std::array<std::int32_t, max_gpus_per_node> lendable_{}, firm_{};
    std::array<std::int64_t, max_gpus_per_node> gpu_memory_{};
    const Extras* extras_ = nullptr;            // what the preemptor asks for beyond; nothing = no such
    std::vector<std::int64_t> resources_;       // free of each that it asks for
    GpuMask devices_ = 0;                       // healthy ones that nobody holds
    mutable std::unique_ptr<Cluster> scratch_;  // where groups are asked
    const Cluster* scratch_of_ = nullptr;
};
#ifndef GPUSCHED_HEADER_ONLY
extern template class NodeProblem<VictimSet>;
extern template class NodeProblem<ManyVictims>;
#endif

}  // namespace GPUSCHED_NAMESPACE::preemption::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/preemption/impl/gang_table.ipp>
#include <gpusched/preemption/impl/node_problem.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
// NodeProblem: one node for one preemptor: its potential victims as bits, and its resources without some of
// them.
#pragma once

#include "preemption/gang_table.hpp"
#include "preemption/request.hpp"

#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::preemption::detail {

/// A set of a node's potential victims: bit i is victim i.
using VictimSet = std::uint64_t;
inline constexpr int most_victims = 64;

/// A set of victims without an upper bound. Missing words are 0. Searches copy sets at every step, so sets of
/// up to 256 victims do not allocate.
class ManyVictims {
  public:
    [[nodiscard]] friend bool is_empty(const ManyVictims& set) noexcept { return count_of(set) == 0; }
    [[nodiscard]] friend int count_of(const ManyVictims& set) noexcept {
        int sum = 0;
        for (const auto w : set.words_) sum += std::popcount(w);
        return sum;
    }
    [[nodiscard]] friend bool contains(const ManyVictims& set, int i) noexcept {
        const auto word = static_cast<std::size_t>(i) / 64;
        return word < set.words_.size() && (set.words_[word] >> (i % 64) & 1) != 0;
    }
    friend void insert(ManyVictims& set, int i) {
        const auto word = static_cast<std::size_t>(i) / 64;
        if (word >= set.words_.size()) set.words_.resize(word + 1);
        set.words_[word] |= std::uint64_t{1} << (i % 64);
    }
    friend void clear(ManyVictims& set) noexcept { set.words_.clear(); }
    [[nodiscard]] friend ManyVictims minus(const ManyVictims& a, const ManyVictims& b) {
        auto left = a;
        for (std::size_t i = 0; i < std::min(a.words_.size(), b.words_.size()); ++i)
            left.words_[i] &= ~b.words_[i];
        return left;
    }
    [[nodiscard]] friend bool within(const ManyVictims& a, const ManyVictims& b) noexcept {
        for (std::size_t i = 0; i < a.words_.size(); ++i)
            if ((a.words_[i] & ~(i < b.words_.size() ? b.words_[i] : 0)) != 0) return false;
        return true;
    }
    friend ManyVictims operator|(const ManyVictims& a, const ManyVictims& b) {
        auto all = a.words_.size() < b.words_.size() ? b : a;
        const auto& less = a.words_.size() < b.words_.size() ? a : b;
        for (std::size_t i = 0; i < less.words_.size(); ++i) all.words_[i] |= less.words_[i];
        return all;
    }
    friend ManyVictims operator&(const ManyVictims& a, const ManyVictims& b) { return minus(a, minus(a, b)); }
    template <class Visit>
    friend void for_each_victim(const ManyVictims& set, Visit&& visit) {
        for (std::size_t i = 0; i < set.words_.size(); ++i)
            for (auto w = set.words_[i]; w != 0; w &= w - 1)
                visit(static_cast<int>(64 * i) + std::countr_zero(w));
    }

  private:
    boost::container::small_vector<std::uint64_t, 4> words_;
};

// The same operations on a VictimSet.
[[nodiscard]] constexpr bool is_empty(VictimSet set) noexcept { return set == 0; }
[[nodiscard]] constexpr int count_of(VictimSet set) noexcept { return std::popcount(set); }
[[nodiscard]] constexpr bool contains(VictimSet set, int i) noexcept { return (set >> i & 1) != 0; }
constexpr void insert(VictimSet& set, int i) noexcept { set |= VictimSet{1} << i; }
constexpr void clear(VictimSet& set) noexcept { set = 0; }
/// The victims of `a` that are not in `b`.
[[nodiscard]] constexpr VictimSet minus(VictimSet a, VictimSet b) noexcept { return a & ~b; }
/// Returns whether `a` is a subset of `b`.
[[nodiscard]] constexpr bool within(VictimSet a, VictimSet b) noexcept { return (a & ~b) == 0; }
template <class Visit>
void for_each_victim(VictimSet set, Visit&& visit) {
    for (; set != 0; set &= set - 1) visit(std::countr_zero(set));
}

template <class Set>
[[nodiscard]] Set with(Set set, int i) {
    insert(set, i);
    return set;
}
template <class Set>
[[nodiscard]] Set only(int i) {
    return with(Set{}, i);
}

/// The victims 0 to `count` - 1.
template <class Set>
[[nodiscard]] Set first_victims(int count) {
    if constexpr (std::is_same_v<Set, VictimSet>) {
        return count == most_victims ? ~VictimSet{0} : (VictimSet{1} << count) - 1;
    } else {
        Set set;
        for (int i = 0; i < count; ++i) insert(set, i);
        return set;
    }
}

/// The type by which functions take sets.
template <class Set>
using SetArgument = std::conditional_t<std::is_same_v<Set, VictimSet>, VictimSet, const Set&>;

/// A list with an entry for every victim, and one more.
template <class Set, class T>
using PerVictim =
    std::conditional_t<std::is_same_v<Set, VictimSet>, std::array<T, most_victims + 1>, std::vector<T>>;
template <class T, std::size_t N>
constexpr void reserve_entries(std::array<T, N>&, int) noexcept {}
template <class T>
void reserve_entries(std::vector<T>& list, int count) {
    if (list.size() < static_cast<std::size_t>(count)) list.resize(static_cast<std::size_t>(count));
}

/// One potential victim.
struct Victim {
    TaskId task = none<TaskId>;
    GpuMask gpus = 0;        ///< the GPUs that it uses, without other devices
    bool claims = false;     ///< its eviction also frees resources for tasks that may not borrow
    std::int16_t gang = -1;  ///< index into NodeProblem's gangs; -1 = it may leave alone
    std::int32_t share_milli = 0;
    std::int64_t cpu_milli = 0, memory_mib = 0, gpu_memory_mib = 0;
    std::int64_t priority = 0;
    std::int64_t cost = 0;  ///< of this task alone
    GpuMask devices = 0;    ///< its other devices; set only if the preemptor requests extras
};

/// Sums over a set of victims.
struct Sums {
    int count = 0;
    std::int64_t priority = 0, max_priority = INT64_MIN, cost = 0;
    PriorityWeight weight{};
    std::int64_t over_budget = 0;  ///< evicted tasks beyond disruption budgets, summed over budgets
};

/// A subgroup of a gang with more potential victims on the node than may leave it.
template <class Set>
struct TightSubgroup {
    SubgroupId subgroup = none<SubgroupId>;
    Set members{};             ///< on the node
    std::int64_t surplus = 0;  ///< number of them that may leave without breaking the gang
};

/// A gang with more potential victims on the node than may leave it. If more leave, all its running members
/// must leave.
template <class Set>
struct Gang {
    JobId job = none<JobId>;
    Set members{};                             ///< on the node
    std::int64_t surplus = 0;                  ///< number of them that may leave without breaking the gang
    int first_subgroup = 0, end_subgroup = 0;  ///< in NodeProblem's tight subgroups
    bool breakable = true;                     ///< all running members, on every node, may be evicted
    Sums elsewhere{};                          ///< sums over the members on other nodes
    std::int64_t cost = 0;                     ///< cost of all running members
};

/// A disruption budget that evictions on the node can exceed.
template <class Set>
struct TightBudget {
    std::uint32_t budget = 0;
    Set members{};             ///< on the node
    std::int64_t allowed = 0;  ///< number of tasks that may leave
    /// Gangs, and the number of their members elsewhere that belong to the budget.
    std::vector<std::pair<int, std::int64_t>> elsewhere{};
};

/// The resources that a preemptor lacks, for explanations.
struct Shortage {
    std::int64_t cpu_milli = 0, memory_mib = 0;
    int gpus = 0;  ///< missing GPUs
    bool locality = false;
    Obstacle extras = Obstacle::none;  ///< a named resource, or devices
    /// The first named resource that is short, and the missing amount.
    std::optional<Extras::Amount> resource{};
    Obstacle group = Obstacle::none;
};

/// One node for one preemptor. A set of victims is closed if it contains all members on the node of the gangs
/// that it breaks.
/// @tparam Set VictimSet or ManyVictims
template <class Set>
class NodeProblem {
  public:
    using Argument = SetArgument<Set>;

    /// Reads the node. With a VictimSet it allocates only if the preemptor has group constraints.
    /// @return false if there are more potential victims than the set can hold; then no other function may be
    ///     called
    [[nodiscard]] bool read(const Cluster& cluster, const Request& request, const CostFunction& cost,
                            NodeId node, const GangTable* gangs);

    /// Drops the copy of the cluster. Required after a change of the cluster if the preemptor has group
    /// constraints.
    void forget() noexcept { scratch_of_ = nullptr; }

    [[nodiscard]] int size() const noexcept { return count_; }
    [[nodiscard]] const Victim& victim(int i) const noexcept { return victims_[i]; }
    [[nodiscard]] Set all() const { return first_victims<Set>(count_); }
    [[nodiscard]] NodeId node() const noexcept { return node_; }

    /// The best locality for the preemptor without the closed set of victims; `infeasible` if it does not
    /// fit. Other tasks keep their GPUs. A larger set never has a worse locality.
    [[nodiscard]] std::uint8_t locality(Argument leaving) const;
    /// Sums over a closed set and over the members elsewhere of the gangs that it breaks.
    [[nodiscard]] Sums sums(Argument set) const;

    /// Returns whether gangs or disruption budgets restrict the sets of victims.
    [[nodiscard]] bool is_bound() const noexcept { return gang_count_ > 0 || budget_count_ > 0; }
    [[nodiscard]] bool has_gangs() const noexcept { return gang_count_ > 0; }
    /// Returns whether gangs or disruption budgets restrict sets with this victim.
    [[nodiscard]] bool is_bound(int i) const noexcept {
        return victim(i).gang >= 0 || std::any_of(budgets_.begin(), budgets_.begin() + budget_count_,
                                                  [&](const auto& one) { return contains(one.members, i); });
    }
    /// The smallest closed set that contains `set`.
    [[nodiscard]] Set closed(Argument set) const { return gang_count_ == 0 ? Set(set) : close(set); }
    /// Returns whether the closed set breaks only breakable gangs, and exceeds budgets only if that is
    /// allowed.
    [[nodiscard]] bool allows(Argument set) const { return !is_bound() || allows_bound(set); }
    /// The number of tasks by which the closed set exceeds disruption budgets.
    [[nodiscard]] std::int64_t over_budget(Argument set) const;
    /// A lower bound, at most 0, on the sum of priorities that gangs add by their members elsewhere.
    [[nodiscard]] std::int64_t least_priority_elsewhere() const noexcept {
        std::int64_t sum = 0;
        for (int g = 0; g < gang_count_; ++g) sum += std::min<std::int64_t>(0, gangs_[g].elsewhere.priority);
        return sum;
    }
    /// The victims that exceed a budget if all victims leave in this order.
    [[nodiscard]] Set beyond_budgets(const int* order, int count) const;
    /// All potential victims, except that each unbreakable gang loses only its surplus: its last members in
    /// the order.
    [[nodiscard]] Set all_that_may(const int* order, int count) const;
    /// The closed set after victim `i` stays. If the set broke the gang of `i`, other members stay, too, in
    /// the order of `first`, until the gang survives.
    template <class First>
    [[nodiscard]] Set with_back(Argument set, int i, First&& first) const;
    /// Visits the members elsewhere of the gangs that the closed set breaks.
    template <class Visit>
    void for_each_elsewhere(Argument set, Visit&& visit) const;
    /// Visits the budgets that the closed set exceeds, with the number of tasks beyond them.
    template <class Visit>
    void for_each_broken_budget(Argument set, Visit&& visit) const;
    /// The cost if it is evicted first: that of its whole gang if it breaks the gang.
    [[nodiscard]] std::int64_t first_cost(int i) const noexcept;
    /// GPUs that can serve the preemptor without the set.
    [[nodiscard]] GpuMask free_gpus(Argument leaving) const;
    /// GPUs for the preemptor within the best locality; the set must be feasible.
    [[nodiscard]] GpuMask choose_gpus(Argument leaving) const;
    /// Returns whether `a` comes before `b`, a set of the same size, by the sorted names of their tasks.
    [[nodiscard]] bool names_before(Argument a, Argument b) const;
    /// Returns whether two victims are interchangeable, except for cost and name.
    [[nodiscard]] bool alike(int a, int b) const noexcept;
    /// Returns whether the victim's eviction can free a resource that the preemptor lacks.
    [[nodiscard]] bool helps(int i) const noexcept;

    /// Returns whether CPU, memory, named resources and devices suffice without the set.
    [[nodiscard]] bool enough_cpu_and_memory(Argument leaving) const;
    /// Returns whether all resources except GPUs suffice without evictions, and neither local cores nor
    /// groups matter.
    [[nodiscard]] bool only_gpus_lack() const noexcept {
        return enough_without_ && !request_->cpu_local && !request_->grouped;
    }
    /// Returns whether only whole GPUs, CPU and memory decide, and a set frees the union of its members'
    /// GPUs.
    [[nodiscard]] bool only_gpus() const noexcept { return only_gpus_; }
    [[nodiscard]] GpuMask idle() const noexcept { return idle_; }
    /// Usable GPUs that only victims occupy.
    [[nodiscard]] GpuMask contested() const noexcept { return contested_; }
    /// Healthy GPUs with enough memory once all victims have left.
    [[nodiscard]] GpuMask usable() const noexcept { return usable_; }
    [[nodiscard]] const std::uint8_t* table() const noexcept { return table_; }
    [[nodiscard]] const HardwareMasks* hardware() const noexcept { return hardware_; }

    /// The resources that are missing without the set.
    [[nodiscard]] Shortage shortage(Argument leaving) const;

  private:
    /// Finds the gangs and disruption budgets that restrict sets of victims.
    void bind(const CostFunction& cost);
    void bind_gangs(const CostFunction& cost);
    void bind_budgets();
    [[nodiscard]] Set close(Argument set) const;
    [[nodiscard]] bool breaks(Argument set, int gang) const {
        const auto& one = gangs_[gang];
        return one.breakable && exceeds(set, one);
    }
    /// Visits the tight subgroups of the gang, then the gang: its members on the node and its surplus.
    template <class Visit>
    void for_each_surplus(const Gang<Set>& gang, Visit&& visit) const {
        for (int s = gang.first_subgroup; s < gang.end_subgroup; ++s) {
            const auto& one = subgroups_[s];
            visit(one.members, one.surplus);
        }
        visit(gang.members, gang.surplus);
    }
    /// Returns whether the set contains more members of the gang than its surplus.
    [[nodiscard]] bool exceeds(Argument set, const Gang<Set>& gang) const {
        bool more = false;
        for_each_surplus(gang, [&](const Set& members, std::int64_t surplus) {
            more = more || count_of(set & members) > surplus;
        });
        return more;
    }
    void find_tight_subgroups(Gang<Set>& gang);
    [[nodiscard]] bool breaks_only_breakable(Argument set) const;
    // Not inlined into `allows`: most nodes have neither gangs nor budgets.
    [[nodiscard, gnu::noinline]] bool allows_bound(Argument set) const {
        return breaks_only_breakable(set) && (request_->break_budgets || over_budget(set) == 0);
    }
    /// Free amounts without a set of victims. `lendable` includes resources that Standby tasks lend.
    struct Free {
        std::int64_t lendable_milli, firm_milli, memory_mib;
    };
    [[nodiscard]] Free free_on_node(Argument leaving) const;
    [[nodiscard]] Free free_on_gpu(int g, Argument leaving) const;
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
    int gang_count_ = 0, budget_count_ = 0;
    const GangTable* table_of_gangs_ = nullptr;
    std::vector<Gang<Set>> gangs_;  // the first `gang_count_`
    std::vector<TightSubgroup<Set>> subgroups_;
    std::vector<TightBudget<Set>> budgets_;  // the first `budget_count_`
    bool only_gpus_ = false, enough_without_ = false;
    bool has_low_ = false;  // some victim's priority is below 1
    PerVictim<Set, Victim> victims_{};
    // Free resources with all victims in place.
    std::int64_t cpu_lendable_ = 0, cpu_firm_ = 0, memory_ = 0;
    GpuMask idle_ = 0, contested_ = 0, usable_ = 0;
    std::array<Set, max_gpus_per_node> holders_{};  // the victims on each GPU
    std::array<std::int32_t, max_gpus_per_node> lendable_{}, firm_{};
    std::array<std::int64_t, max_gpus_per_node> gpu_memory_{};
    const Extras* extras_ = nullptr;  // resources and devices that the preemptor requests; nullptr = none
    std::vector<std::int64_t> resources_;       // free amount of each requested resource
    GpuMask devices_ = 0;                       // healthy and free devices
    mutable std::unique_ptr<Cluster> scratch_;  // a copy of the cluster for group constraints
    const Cluster* scratch_of_ = nullptr;
};

template <class Set>
template <class Visit>
void NodeProblem<Set>::for_each_broken_budget(Argument set, Visit&& visit) const {
    for (int b = 0; b < budget_count_; ++b) {
        const auto& one = budgets_[b];
        std::int64_t down = count_of(set & one.members);
        for (const auto& [gang, members] : one.elsewhere)
            if (breaks(set, gang)) down += members;
        if (down > one.allowed) visit(one.budget, down - one.allowed);
    }
}

template <class Set>
template <class Visit>
void NodeProblem<Set>::for_each_elsewhere(Argument set, Visit&& visit) const {
    for (int g = 0; g < gang_count_; ++g)
        if (breaks(set, g))
            table_of_gangs_->for_each(gangs_[g].job, [&](TaskId task) {
                if (cluster_->node_of(task) != node_) visit(task);
            });
}

template <class Set>
template <class First>
Set NodeProblem<Set>::with_back(Argument set, int i, First&& first) const {
    auto left = minus(set, only<Set>(i));
    const auto gang = victim(i).gang;
    if (gang < 0 || !breaks(set, gang)) return left;
    for_each_surplus(gangs_[gang], [&](const Set& members, std::int64_t surplus) {
        while (count_of(left & members) > surplus) {
            int next = -1;
            for_each_victim(Set(left & members), [&](int j) {
                if (next < 0 || first(j, next)) next = j;
            });
            left = minus(left, only<Set>(next));
        }
    });
    return left;
}

extern template class NodeProblem<VictimSet>;
extern template class NodeProblem<ManyVictims>;

}  // namespace gpusched::preemption::detail

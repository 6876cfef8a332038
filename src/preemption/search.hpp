// SPDX-License-Identifier: Apache-2.0
// Search: selects the victims on one node, by exact search or by the published heuristics.
#pragma once

#include "preemption/node_problem.hpp"

#include <gpusched/preemption/victim_policy.hpp>

#include <cstdint>
#include <vector>

namespace gpusched {
class Budget;
}

namespace gpusched::preemption::detail {

/// The result of evictions on a node. By default infeasible.
struct Candidate {
    std::uint8_t locality = infeasible;
    int count = 0;  ///< number of victims
    double score = 0;
    std::int64_t priority_sum = 0, max_priority = 0, cost = 0;
    std::int64_t over_budget = 0;  ///< evicted tasks beyond disruption budgets; the first key of comparisons
    [[nodiscard]] bool found() const noexcept { return locality != infeasible; }
};

/// A candidate with its victims.
template <class Set>
struct Choice : Candidate {
    Set victims{};
};

/// Negative if `a` is better, positive if `b` is better, 0 if only names decide.
/// @param across compare different nodes: `fewest` then compares scores first
[[nodiscard]] int compare(const Candidate& a, const Candidate& b, Objective objective,
                          bool across = false) noexcept;

/// Searches nodes in sequence, reusing its memory.
/// @tparam Set VictimSet or ManyVictims
template <class Set>
class Search {
  public:
    using Node = NodeProblem<Set>;
    using Argument = SetArgument<Set>;

    /// The best non-empty set; infeasible if no set helps. Exact unless `proven()` is false.
    [[nodiscard]] Choice<Set> best(const Node& node, const Request& request, Objective objective);
    /// The same by enumeration, as published: all sets (`score`), or by size until one helps (`fewest`).
    [[nodiscard]] Choice<Set> plain(const Node& node, const Request& request, Objective objective);
    /// Lists all feasible sets of the smallest size; the empty set if it is feasible.
    void minimal_sets(const Node& node, const Request& request, std::vector<Set>& sets);
    // The following skip victims that gangs or budgets do not allow. If they find no set, or one that exceeds
    // budgets, the exact search decides by the objective.
    /// Evicts by ascending key until the preemptor fits.
    /// @param keys by victim
    [[nodiscard]] Choice<Set> first_that_suffice(const Node& node, const Request& request,
                                                 const std::vector<std::int64_t>& keys, Objective objective);
    /// The same, then brings unnecessary victims back in reverse order.
    [[nodiscard]] Choice<Set> first_needed(const Node& node, const Request& request,
                                           const std::vector<std::int64_t>& keys, Objective objective);
    /// Kubernetes: evicts all, then brings back the highest priorities first, among equal ones the longest
    /// running.
    [[nodiscard]] Choice<Set> reprieve(const Cluster& cluster, const Node& node, const Request& request);

    /// Number of sets checked since construction.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// No search since construction hit a limit.
    [[nodiscard]] bool proven() const noexcept { return proven_; }
    /// Ends searches when the budget is exhausted; nullptr = no budget.
    void watch(Budget* budget) noexcept { budget_ = budget; }

  private:
    static constexpr int most_scanned = 10;
    [[nodiscard]] static Choice<Set> make(const Node& node, const Request& request, Argument victims,
                                          std::uint8_t locality);
    template <bool Ordinary>
    [[nodiscard]] Choice<Set> scan(const Node& node, const Request& request, Objective objective);
    void prepare(const Node& node, const Request& request, Objective objective);
    void start(const Node& node, const Request& request, Objective objective);
    void order_by_task();
    void descend(int at, Argument chosen, bool previous_chosen, GpuMask open);
    void list(int at, Argument chosen, GpuMask open, const Candidate& as, std::vector<Set>& sets);
    void offer(Argument set, std::uint8_t locality);
    [[nodiscard]] bool out_of_steps();
    [[nodiscard]] bool cannot_improve(int at, Argument chosen, std::uint8_t here,
                                      std::uint8_t reachable) const;
    [[nodiscard]] bool must_free(int i) const noexcept;
    [[nodiscard]] Choice<Set> or_exact(const Node& node, const Request& request, Choice<Set> found,
                                       Objective objective);
    [[nodiscard]] GpuMask open_without(int staying, GpuMask open) const noexcept;
    [[nodiscard]] GpuMask open_with(int leaving, GpuMask open) const noexcept;
    [[nodiscard]] bool all_free_something(Argument chosen, GpuMask open) const;
    [[nodiscard]] Set reach(Argument chosen, Argument rest) const;
    [[nodiscard]] bool can_reach(Argument leaving, GpuMask open) const;
    template <class Before>
    void sort_victims(const Node& node, Before&& before);
    void number_positions(const Node& node);
    [[nodiscard]] Choice<Set> prefix(const Node& node, const Request& request,
                                     const std::vector<std::int64_t>& keys);

    // The state of one search.
    const Node* node_ = nullptr;
    const Request* request_ = nullptr;
    Objective objective_ = Objective::fewest;
    Choice<Set> best_;
    int size_ = 0, most_gpus_ = 0;
    bool prunes_ = false;
    std::int64_t limit_ = 0;
    Set staying_{};                        // excluded victims, if there are gangs
    PerVictim<Set, int> order_{};          // victims that may help, in the order of decisions
    PerVictim<Set, bool> as_previous_{};   // interchangeable with the previous victim in the order
    PerVictim<Set, Set> rest_{};           // the victims from this position on
    PerVictim<Set, std::int64_t> gain_{};  // the sum of their negative priorities
    PerVictim<Set, int> sorted_{};

    std::int64_t steps_ = 0;
    bool proven_ = true;
    Budget* budget_ = nullptr;
};
extern template class Search<VictimSet>;
extern template class Search<ManyVictims>;

}  // namespace gpusched::preemption::detail

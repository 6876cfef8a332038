// SPDX-License-Identifier: Apache-2.0
// The search for one node's victims: exact by bit masks, and as published.
#pragma once

#include "preemption/node_problem.hpp"

#include <gpusched/preemption/victim_policy.hpp>

#include <cstdint>
#include <vector>

namespace gpusched {
class Budget;
}

namespace gpusched::preemption::detail {

/// What evictions on a node lead to. The default is nothing.
struct Candidate {
    std::uint8_t locality = infeasible;
    int count = 0;  ///< of victims
    double score = 0;
    std::int64_t priority_sum = 0, max_priority = 0, cost = 0;
    std::int64_t over_budget = 0;  ///< tasks down beyond what disruption budgets allow: the fewest come first
    [[nodiscard]] bool found() const noexcept { return locality != infeasible; }
};

/// With the victims.
template <class Set>
struct Choice : Candidate {
    Set victims{};
};

/// Negative when `a` is better, positive when `b` is, 0 when only names can tell. `across`: as candidates of
/// different nodes, where `fewest` goes by score first.
[[nodiscard]] int compare(const Candidate& a, const Candidate& b, Objective objective,
                          bool across = false) noexcept;

/// Searches one node after another with the same memory.
/// @tparam Set VictimSet or ManyVictims
template <class Set>
class Search {
  public:
    using Node = NodeProblem<Set>;
    using Argument = SetArgument<Set>;

    /// The best non-empty set; none if nothing helps. Exact unless `proven()` says otherwise.
    [[nodiscard]] Choice<Set> best(const Node& node, const Request& request, Objective objective);
    /// The same as published: one set after the other; all of them (`score`), or by size until one helps (`fewest`).
    [[nodiscard]] Choice<Set> plain(const Node& node, const Request& request, Objective objective);
    /// All feasible sets of the smallest size; the empty one if that is feasible.
    void minimal_sets(const Node& node, const Request& request, std::vector<Set>& sets);
    // These take the next set of their order that gangs and budgets allow. Where that way ends without room, or takes more tasks
    // beyond budgets than must be, the exact search decides, by cost (`cheapest_prefix`, `in_order`) or fewest victims.
    /// Cheapest first until the preemptor fits (ASI).
    [[nodiscard]] Choice<Set> cheapest_prefix(const Node& node, const Request& request);
    /// By ascending priority until the preemptor fits.
    [[nodiscard]] Choice<Set> first_fit(const Node& node, const Request& request);
    /// By the caller's order until the preemptor fits; then those who need not leave come back, the last one first.
    [[nodiscard]] Choice<Set> in_order(const Cluster& cluster, const Node& node, const Request& request,
                                       const VictimPolicy& policy);
    /// Kubernetes: all leave, then those of the highest priority, the longest running among them, come back first.
    [[nodiscard]] Choice<Set> reprieve(const Cluster& cluster, const Node& node, const Request& request);

    /// Sets looked at since construction.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// No search since then hit its limit or the budget's.
    [[nodiscard]] bool proven() const noexcept { return proven_; }
    /// Searches end early when it is exhausted. Nothing = they do not look at the time.
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
    void list(int at, Argument chosen, int left, GpuMask open, std::vector<Set>& sets);
    void offer(Argument set, std::uint8_t locality);
    [[nodiscard]] bool out_of_steps();
    [[nodiscard]] bool hopeless(int at, Argument chosen, std::uint8_t here, std::uint8_t reachable) const;
    [[nodiscard]] bool must_earn(int i) const noexcept;
    [[nodiscard]] Choice<Set> or_exact(const Node& node, const Request& request, Choice<Set> found,
                                       Objective objective);
    void list_closed(int at, Argument chosen, const Candidate& as, std::vector<Set>& sets);
    [[nodiscard]] GpuMask open_without(int staying, GpuMask open) const noexcept;
    [[nodiscard]] GpuMask open_with(int leaving, GpuMask open) const noexcept;
    [[nodiscard]] bool all_earn(Argument chosen, GpuMask open) const;
    [[nodiscard]] Set reach(Argument chosen, Argument rest) const;
    [[nodiscard]] bool can_reach(Argument leaving, GpuMask open) const;
    template <class Before>
    [[nodiscard]] Choice<Set> prefix(const Node& node, const Request& request, Before&& before);

    // One search.
    const Node* node_ = nullptr;
    const Request* request_ = nullptr;
    Objective objective_ = Objective::fewest;
    Choice<Set> best_;
    int size_ = 0, most_gpus_ = 0;
    bool prunes_ = false;
    std::int64_t limit_ = 0;
    Set staying_{};                        // decided against, where gangs bind
    PerVictim<Set, int> order_{};          // victims that may help, as they are decided on
    PerVictim<Set, bool> as_previous_{};   // alike the victim before in the order
    PerVictim<Set, Set> rest_{};           // from there on
    PerVictim<Set, std::int64_t> gain_{};  // sum of negative priorities from there on
    PerVictim<Set, int> sorted_{};

    std::int64_t steps_ = 0;
    bool proven_ = true;
    Budget* budget_ = nullptr;
};
extern template class Search<VictimSet>;
extern template class Search<ManyVictims>;

}  // namespace gpusched::preemption::detail

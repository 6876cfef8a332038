// The search for one node's victims: exact by bit masks, and as published.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/preemption/detail/node_problem.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace gpusched::preemption::detail {

/// A node with a set of victims. The default is none.
struct Candidate {
    VictimSet victims = 0;
    std::uint8_t locality = infeasible;
    int count = 0;
    double score = 0;
    std::int64_t priority_sum = 0, max_priority = 0, cost = 0;
    [[nodiscard]] bool found() const noexcept { return locality != infeasible; }
};

/// What is best, first to last; names of victims break the ties that remain.
enum class Objective : std::uint8_t {
    fewest,  ///< fewest victims, score, lower maximum priority, cost: the best of IMP's answer
    score,   ///< score, fewest victims, lower maximum priority, cost: the optimum of Equation 1
    cost,    ///< cost, fewest victims, lower maximum priority: the least work lost
};

/// Negative when `a` is better, positive when `b` is, 0 when only names can tell. `across`: as candidates of
/// different nodes, where `fewest` goes by score first.
[[nodiscard]] int compare(const Candidate& a, const Candidate& b, Objective objective,
                          bool across = false) noexcept;

/// Searches one node after another with the same memory.
class Search {
  public:
    /// The best non-empty set; none if nothing helps. Exact unless `proven()` says otherwise.
    [[nodiscard]] Candidate best(const NodeProblem& node, const Request& request, Objective objective);
    /// The same as published: one set after the other; all of them (`score`), or by size until one helps (`fewest`).
    [[nodiscard]] Candidate plain(const NodeProblem& node, const Request& request, Objective objective);
    /// All feasible sets of the smallest size, in ascending order of the bits; the empty one if that is feasible.
    void minimal_sets(const NodeProblem& node, const Request& request, std::vector<VictimSet>& sets);
    /// Cheapest first until the preemptor fits (ASI).
    [[nodiscard]] Candidate cheapest_prefix(const NodeProblem& node, const Request& request);
    /// By ascending priority until the preemptor fits.
    [[nodiscard]] Candidate first_fit(const NodeProblem& node, const Request& request);
    /// Kubernetes: all leave, then those of the highest priority, the longest running among them, come back first.
    [[nodiscard]] Candidate reprieve(const Cluster& cluster, const NodeProblem& node, const Request& request);

    [[nodiscard]] static Candidate make(const NodeProblem& node, const Request& request, VictimSet victims,
                                        std::uint8_t locality);

    /// Sets looked at since construction or `reset`.
    [[nodiscard]] std::int64_t steps() const noexcept { return steps_; }
    /// No search since then hit its limit.
    [[nodiscard]] bool proven() const noexcept { return proven_; }
    void reset() noexcept {
        steps_ = 0;
        proven_ = true;
    }

  private:
    static constexpr int most_scanned = 10;
    template <bool Ordinary>
    [[nodiscard]] Candidate scan(const NodeProblem& node, const Request& request, Objective objective);
    void prepare(const NodeProblem& node, const Request& request, Objective objective);
    void descend(int at, VictimSet chosen, bool previous_chosen);
    void offer(VictimSet set, std::uint8_t locality);
    [[nodiscard]] bool hopeless(int at, VictimSet chosen, std::uint8_t here, std::uint8_t reachable) const;
    template <class Before>
    [[nodiscard]] Candidate prefix(const NodeProblem& node, const Request& request, Before&& before);

    // One search.
    const NodeProblem* node_ = nullptr;
    const Request* request_ = nullptr;
    Objective objective_ = Objective::fewest;
    Candidate best_;
    int size_ = 0, most_gpus_ = 0;
    std::int64_t limit_ = 0;
    std::array<int, most_victims> order_{};
    std::array<bool, most_victims> as_previous_{};       // alike the victim before in the order
    std::array<VictimSet, most_victims + 1> rest_{};     // from there on
    std::array<std::int64_t, most_victims + 1> gain_{};  // sum of negative priorities from there on

    std::int64_t steps_ = 0;
    bool proven_ = true;
};

}  // namespace gpusched::preemption::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/preemption/impl/search.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
// Options of preempt(): the victim policy, the topology requirements of the preemptor, the score.
#pragma once

#include <gpusched/allocation/any.hpp>
#include <gpusched/core/detail/policy_checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/preemption/victim_policy.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace gpusched::preemption {

/// How `imp`, `exhaustive` and `spot_exact` search. The results are the same.
enum class Engine : std::uint8_t {
    masks,  ///< ours: bit masks, classes of identical victims, bounds
    plain,  ///< as published: enumerates the sets
};

/// How strictly a preemptor requires GPUs that are close to each other (FlexTopo, Algorithm 1).
enum class Qos : std::uint8_t {
    guaranteed,   ///< excludes nodes and victim sets that do not provide close GPUs
    best_effort,  ///< accepts any GPUs; closeness counts in the score
    none,         ///< ignores closeness
};

/// The form of Equation 1 that scores candidates. Both give the same score if all priorities are at least 1.
enum class ScoreForm : std::uint8_t {
    weighted,  ///< `score` of the sum of `priority_weight`: an additional victim helps only by a better T
    paper,     ///< `paper_score` of the plain sum of priorities: victims with negative priority raise it
};

/// The highest cost of one task or gang, in thousandths of a GPU-second. The sum of 64 such costs cannot
/// overflow; longer sums saturate.
inline constexpr std::int64_t largest_cost = INT64_MAX / 128;

/// The work that is lost when a task is evicted, in thousandths of a GPU-second, 0 to `largest_cost`. Holds
/// any function `cost(const Cluster&, TaskId, std::int64_t now)` that returns an integer. A function that
/// returns floating point does not compile.
class CostFunction {
  public:
    /// Absent.
    CostFunction() = default;
    template <class F>
        requires(!std::same_as<F, CostFunction> && std::invocable<F&, const Cluster&, TaskId, std::int64_t>)
    CostFunction(F function) : function_(std::move(function)) {  // NOLINT(google-explicit-constructor)
        using Cost = std::invoke_result_t<F&, const Cluster&, TaskId, std::int64_t>;
        static_assert(gpusched::detail::WholeNumber<Cost>,
                      "a cost function returns an integer, not floating point: thousandths of a GPU-second");
    }

    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(function_); }
    std::int64_t operator()(const Cluster& cluster, TaskId task, std::int64_t now) const {
        return function_(cluster, task, now);
    }

  private:
    std::function<std::int64_t(const Cluster&, TaskId, std::int64_t)> function_{};
};

/// Options of `preempt`. Ranges are checked before the search starts.
struct Options {
    VictimPolicy policy = Policy::imp;  ///< how victims and node are chosen: a `Policy` or a VictimOrder
    /// How `imp`, `exhaustive` and `spot_exact` search; the result is the same. Other policies accept only
    /// the default.
    Engine engine = Engine::masks;
    /// Overrides the task's `hardware_affinity` for all its levels; `guaranteed` means the socket if the task
    /// names no level. Absent = `guaranteed` if the task guarantees a level, `best_effort` if it prefers one,
    /// else `none`.
    std::optional<Qos> qos{};
    ScoreForm score = ScoreForm::weighted;  ///< the form of Equation 1 that scores candidates
    double alpha =
        0.5;  ///< weight of the victims' priorities in the score, 0 to 1; the rest is the weight of topology
    double numa_score =
        1;  ///< T for GPUs of one NUMA node; numa_score >= socket_score >= cross_score, finite
    double socket_score = 0.5;          ///< T for GPUs of one socket
    double cross_score = 0;             ///< T for GPUs of several sockets, or of a node with unknown hardware
    std::optional<std::int64_t> now{};  ///< seconds, -10^12 to 10^12; absent = the time of the snapshot
    /// The cost of evicting a task, in thousandths of a GPU-second; absent = `lost_work`. It is the objective
    /// of `spot` and `spot_exact`, and breaks ties for `imp` and `exhaustive`. For `reprieve` and `first_fit`
    /// it is only reported (`Decision::cost`) and compares the domains of gangs.
    CostFunction cost{};
    /// Additional constraint: may the preemptor run on this node (allocation/filters.hpp)? It sees the
    /// snapshot with all victims in place; for a gang, with the earlier pods placed. It does not apply to
    /// victims that are placed again. Absent = every node.
    std::optional<allocation::AnyFilter> filter{};
    /// Allows evictions beyond disruption budgets if nothing else helps. Then as few tasks as possible exceed
    /// the budgets, and `Decision::broken_budgets` lists them.
    bool break_budgets = false;
    /// Places victims that fit elsewhere again, in the same plan (`Decision::replaced`).
    bool replace_victims = false;
    /// Most sets of victims that are checked on one node, >= 1. Beyond them the best set so far is used, and
    /// `proven` is false.
    std::int64_t search_limit = 1'000'000;
    /// Most seconds, >= 0. When they have passed, the best result so far is returned and `proven` is false.
    /// Such results depend on the speed of the machine.
    std::optional<double> time_limit{};
};
template <class F>
constexpr void visit_fields(std::type_identity<Options>, F&& field) {
    field("engine", &Options::engine);
    field("qos", &Options::qos);
    field("score", &Options::score);
    field("alpha", &Options::alpha, within(0, 1));
    field("numa_score", &Options::numa_score);
    field("socket_score", &Options::socket_score);
    field("cross_score", &Options::cross_score);
    field("now", &Options::now, any_signed_amount);
    field("break_budgets", &Options::break_budgets);
    field("replace_victims", &Options::replace_victims);
    field("search_limit", &Options::search_limit, at_least(1));
    field("time_limit", &Options::time_limit, at_least(0));
}

/// @throws InvalidInput with every field that is out of range
void validate(const Options& options);

/// Seconds since the task's last checkpoint or, without one, its start; 0 for times in the future.
[[nodiscard]] std::int64_t unsaved_s(const Cluster& cluster, TaskId task, std::int64_t now) noexcept;

/// The default cost: the task's GPUs and other devices times `unsaved_s`, in thousandths of a GPU-second.
/// Each device counts as a GPU. Source: ASI, section 4.2, `C_t = G_t (now - tau_ck)`, the sum over the types
/// of GPUs.
[[nodiscard]] std::int64_t lost_work(const Cluster& cluster, TaskId task, std::int64_t now) noexcept;

/// The cost of evicting a running task if its gang stops with it: the sum of `lost_work` over all running
/// tasks of its job. Only the task's own `lost_work` if it has no job, runs alone, or exceeds the
/// `min_members` of its job and subgroup. Ours: the paper's cost ignores gangs. At most `largest_cost`.
/// O(tasks).
[[nodiscard]] std::int64_t gang_lost_work(const Cluster& cluster, TaskId task, std::int64_t now) noexcept;

/// The weight of a victim with priority p in `score`: p for p >= 1, else 1 / (2 - p). Positive, and lower for
/// lower priorities. Rounded to multiples of 2^-44, so that sums do not depend on the order of victims.
[[nodiscard]] double priority_weight(std::int64_t priority) noexcept;

/// FlexTopo's Equation 1 for priorities of any sign: `alpha f(P) + (1 - alpha) T` with f(P) = 1 / P for P >=
/// 1, else 2 - P.
/// @param weights P, the sum of the victims' `priority_weight`, > 0. Each additional victim raises P and
///     lowers the score.
/// @param topology T
[[nodiscard]] double score(double weights, double topology, double alpha) noexcept;

/// Equation 1 as published, for the plain sum P of priorities, extended to sums below 1: `alpha / P + (1 -
/// alpha) T` for P >= 1, else `alpha (2 - 1 / (1 - P)) + (1 - alpha) T`. Lower sums score higher, except that
/// 0 and 1 score the same.
[[nodiscard]] double paper_score(std::int64_t priority_sum, double topology, double alpha) noexcept;

namespace detail {

/// A sum of priority weights, exact in units of 2^-44.
struct PriorityWeight {
    std::int64_t whole = 0;     ///< the sum over priorities >= 1
    std::int64_t fraction = 0;  ///< the sum over priorities < 1, in units of 2^-44

    PriorityWeight() = default;
    explicit PriorityWeight(std::int64_t priority) noexcept {
        constexpr auto unit = std::int64_t{1} << 44;
        if (priority >= 1)
            whole = priority;
        else
            fraction = (unit + (2 - priority) / 2) / (2 - priority);
    }
    void add(const PriorityWeight& other) noexcept {
        whole += other.whole;
        fraction += other.fraction;
    }
    [[nodiscard]] double value() const noexcept {
        return static_cast<double>(whole) + static_cast<double>(fraction) * 0x1p-44;
    }
};

}  // namespace detail

}  // namespace gpusched::preemption

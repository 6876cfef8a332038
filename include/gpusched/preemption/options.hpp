// SPDX-License-Identifier: Apache-2.0
// Options of preemption: which policy selects the victims, what the preemptor insists on, how candidates are scored.
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

/// How the answer of `imp` and `exhaustive` is found. Both find the same.
enum class Engine : std::uint8_t {
    masks,  ///< ours: bit masks, classes of identical victims, bounds
    plain,  ///< as published: one set after the other
};
constexpr auto enum_names(Engine) {
    return name_table<Engine>({
        {Engine::masks, "masks"},
        {Engine::plain, "plain"},
    });
}

/// How much a preemptor insists on its GPUs being close (FlexTopo, Algorithm 1).
enum class Qos : std::uint8_t {
    guaranteed,   ///< nodes and victims that do not allow it are no candidates
    best_effort,  ///< any node will do; closeness counts in the score
    none,         ///< closeness does not count
};
constexpr auto enum_names(Qos) {
    return name_table<Qos>({
        {Qos::guaranteed, "guaranteed"},
        {Qos::best_effort, "best_effort"},
        {Qos::none, "none"},
    });
}

/// The form of Equation 1 that candidates are scored by. Both are the same where all priorities are at least 1.
enum class ScoreForm : std::uint8_t {
    weighted,  ///< `score` of the sum of `priority_weight`: another victim is an improvement only by a better T
    paper,     ///< `paper_score` of the plain sum of priorities: victims of negative priority raise it
};
constexpr auto enum_names(ScoreForm) {
    return name_table<ScoreForm>({
        {ScoreForm::weighted, "weighted"},
        {ScoreForm::paper, "paper"},
    });
}

/// The highest cost of one task or one gang, in thousandths of a GPU-second. A sum over 64 of them cannot overflow; larger sums
/// stop at the largest number.
inline constexpr std::int64_t largest_cost = INT64_MAX / 128;

/// Lost work when a task is evicted, in thousandths of a GPU-second, 0 .. `largest_cost`: anything that is called as
/// `cost(const Cluster&, TaskId, std::int64_t now)` and returns a whole number. A function that returns floating point does
/// not compile: its costs would be cut off.
class CostFunction {
  public:
    /// Absent.
    CostFunction() = default;
    template <class F>
        requires(std::is_class_v<F> ? !std::same_as<F, CostFunction> && !std::derived_from<F, Options>
                                    : std::is_function_v<std::remove_pointer_t<F>>)  // refused with the cause
    CostFunction(F function) {  // NOLINT(google-explicit-constructor): a function of another type
        constexpr bool can_be_called = std::invocable<F&, const Cluster&, TaskId, std::int64_t>;
        static_assert(can_be_called,
                      "a cost function is called as `cost(const Cluster&, TaskId, std::int64_t now)`");
        if constexpr (can_be_called) {
            using Cost = std::invoke_result_t<F&, const Cluster&, TaskId, std::int64_t>;
            static_assert(
                !gpusched::detail::has_floating_point<Cost>,
                "a cost function returns whole numbers, not floating point, which would be cut off; "
                "costs are thousandths of a GPU-second");
            static_assert(gpusched::detail::has_floating_point<Cost> || gpusched::detail::WholeNumber<Cost>,
                          "a cost function returns a whole number: thousandths of a GPU-second");
            function_ = std::move(function);
        }
    }

    [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(function_); }
    std::int64_t operator()(const Cluster& cluster, TaskId task, std::int64_t now) const {
        return function_(cluster, task, now);
    }

  private:
    std::function<std::int64_t(const Cluster&, TaskId, std::int64_t)> function_{};
};

/// How `preempt` works. Ranges are checked first thing.
struct Options {
    VictimPolicy policy = Policy::imp;  ///< how victims and node are chosen: a `Policy`, or a VictimOrder
    /// How `imp`, `exhaustive` and `spot_exact` search; the answer is the same. Refused with the other policies, unless it has
    /// its default.
    Engine engine = Engine::masks;
    /// Replaces what the task's `hardware_affinity` says, for all its levels; `guaranteed` for a task that names no
    /// level means the socket. Absent = guaranteed where the task guarantees a level, best effort where it only wishes
    /// for one, else none.
    std::optional<Qos> qos{};
    ScoreForm score = ScoreForm::weighted;  ///< which form of Equation 1 candidates are scored by
    double alpha = 0.5;  ///< weight of the victims' priorities in the score, 0 .. 1; the rest is topology's
    double numa_score =
        1;  ///< T for GPUs of one NUMA node; numa_score >= socket_score >= cross_score, finite
    double socket_score = 0.5;  ///< T for GPUs of one socket
    double cross_score = 0;  ///< T for GPUs of several sockets, or of a machine whose hardware is not known
    std::optional<std::int64_t> now{};  ///< seconds, -10^12 .. 10^12; absent = the snapshot's
    /// Thousandths of a GPU-second; absent = `lost_work`. Chooses for `spot` and `spot_exact`, breaks ties for `imp` and
    /// `exhaustive`; for `reprieve` and `first_fit` it only measures (`Decision::cost`, and the domains of gangs).
    CostFunction cost{};
    /// May the preemptor come to a node, asked with the snapshot as it is, victims and all (allocation/filters.hpp); of a gang's pods with
    /// those before them placed. A node that it refuses is no candidate. Does not bind victims that are placed again. Absent:
    /// everywhere.
    std::optional<allocation::AnyFilter> filter{};
    /// Evictions may take more tasks of a disruption budget down than it allows, where nothing else helps: as few beyond the
    /// budgets as possible, and `broken_budgets` of the decision says of which. False: such sets of victims are no candidates.
    bool break_budgets = false;
    /// Victims that find room elsewhere are placed again in the same plan (`Decision::replaced`).
    bool replace_victims = false;
    /// Sets of victims looked at per node before its best so far is taken and `proven` is false, >= 1.
    std::int64_t search_limit = 1'000'000;
    /// Seconds, >= 0. A guard: the best found until then is returned, and `proven` is false. The result then depends on the
    /// machine.
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

/// Seconds since the task's last checkpoint, or its start; 0 for times in the future.
[[nodiscard]] std::int64_t unsaved_s(const Cluster& cluster, TaskId task, std::int64_t now) noexcept;

/// The default cost: GPUs and other devices held times seconds since the last checkpoint (or the start), in thousandths of a GPU-second
/// (ASI, section 4.2: `C_t = G_t (now - tau_ck)`, the sum over the types of GPUs); 0 for times in the future. Each device counts as a GPU.
[[nodiscard]] std::int64_t lost_work(const Cluster& cluster, TaskId task, std::int64_t now) noexcept;

/// What evicting a running task loses where its gang stops with it: the sum of `lost_work` over all running tasks of its job, or the
/// task's own where it is beyond the `min_members` of the job and of its subgroup, has no job or runs alone. Ours: the paper's cost
/// knows no gangs. At most 2^63 / 128 - 1. O(tasks).
[[nodiscard]] std::int64_t gang_lost_work(const Cluster& cluster, TaskId task, std::int64_t now) noexcept;

/// What a victim's priority p counts in `score`: p for p >= 1, else 1 / (2 - p). Above 0, and lower for lower priorities. To the
/// nearest 2^-44, so that sums do not depend on the order of victims.
[[nodiscard]] double priority_weight(std::int64_t priority) noexcept;

/// FlexTopo's Equation 1 for priorities of any sign: `alpha f(P) + (1 - alpha) T` with f(P) = 1 / P for P >= 1, else 2 - P.
/// @param weights P, the sum of the victims' `priority_weight`, > 0. Each further victim raises P, and lowers the score.
/// @param topology T
[[nodiscard]] double score(double weights, double topology, double alpha) noexcept;

/// Equation 1 as published, on the plain sum of priorities, continued to sums below 1: `alpha / P + (1 - alpha) T` for P >= 1,
/// else `alpha (2 - 1 / (1 - P)) + (1 - alpha) T`. Lower sums score higher, but for 0 and 1, which score the same.
[[nodiscard]] double paper_score(std::int64_t priority_sum, double topology, double alpha) noexcept;

namespace detail {

/// A sum of priority weights, exact in units of 2^-44.
struct PriorityWeight {
    std::int64_t whole = 0;     ///< of priorities from 1 on
    std::int64_t fraction = 0;  ///< of the others, in 2^-44

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

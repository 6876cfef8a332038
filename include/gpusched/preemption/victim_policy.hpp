// SPDX-License-Identifier: Apache-2.0
// Victim policies: the library's policies by name, and user-defined orders in which potential victims leave.
#pragma once

#include <gpusched/core/detail/policy_checks.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/registry.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gpusched::preemption {

/// How the victims of a node and the node itself are chosen.
enum class Policy : std::uint8_t {
    spot,  ///< ASI: evict the cheapest spot tasks until the task fits; take the node that loses least work
    spot_exact,  ///< ours: the victims that lose the least work, on each node and over all nodes
    imp,         ///< FlexTopo's Incremental Minimal Preemption: fewest victims per node, then Equation 1
    exhaustive,  ///< the optimum of FlexTopo's Equation 1 over all sets of victims
    reprieve,    ///< Kubernetes: evict all potential victims, then bring back the most important first
    first_fit,   ///< the first node that fits when its tasks are evicted by ascending priority
};

namespace detail {

/// The keys by which candidates are compared, in this order. The number of tasks beyond disruption budgets
/// comes before all of them, the names of the victims after them.
enum class Objective : std::uint8_t {
    fewest,  ///< fewest victims, score, lower maximum priority, cost: the best set of IMP
    score,   ///< score, fewest victims, lower maximum priority, cost: the optimum of Equation 1
    cost,    ///< cost, fewest victims, lower maximum priority: the least work lost
};

/// Which node is chosen among the nodes where evictions help.
enum class NodeChoice : std::uint8_t {
    best,             ///< the node with the best candidate by the objective
    least_important,  ///< the node with the least important victims, in Kubernetes' order
    first,            ///< the first node in the snapshot
};

/// The properties of a policy, except its search on one node (`best_of_node`).
struct PolicyTraits {
    Policy policy{};
    Objective objective = Objective::cost;
    NodeChoice nodes = NodeChoice::best;
    bool spot = false;      ///< victims are spot tasks of any priority; otherwise tasks of lower priority
    bool searches = false;  ///< finds the best set by the objective and supports both `Engine`s
    bool indexed = false;   ///< supported by `PreemptionIndex`
};

/// In the order of `Policy`.
inline constexpr auto policies = std::to_array<PolicyTraits>({
    {.policy = Policy::spot, .objective = Objective::cost, .spot = true},
    {.policy = Policy::spot_exact, .objective = Objective::cost, .spot = true, .searches = true},
    {.policy = Policy::imp, .objective = Objective::fewest, .searches = true, .indexed = true},
    {.policy = Policy::exhaustive, .objective = Objective::score, .searches = true, .indexed = true},
    {.policy = Policy::reprieve, .objective = Objective::fewest, .nodes = NodeChoice::least_important},
    {.policy = Policy::first_fit, .objective = Objective::fewest, .nodes = NodeChoice::first},
});

static_assert([] {
    for (std::size_t i = 0; i < policies.size(); ++i)
        if (static_cast<std::size_t>(policies[i].policy) != i) return false;
    return true;
}());

/// The names of the policies with this trait, such as "'imp' or 'exhaustive'".
[[nodiscard]] std::string policies_with(bool PolicyTraits::*trait);

}  // namespace detail

/// A user-defined order of the potential victims of a node: ascending by the returned integer, then by name.
///
/// Tasks are evicted in this order until the preemptor fits. Then they are brought back in reverse order,
/// each if the preemptor still fits. Every eviction is therefore necessary, but the set need not be optimal
/// by any measure. The node with the lowest cost (`Options::cost`) is chosen; ties are broken as for the
/// other policies. Potential victims are tasks of lower priority. `now` is in seconds.
template <class P>
concept VictimOrder = requires(const P& order, const Cluster& cluster, TaskId victim, std::int64_t now) {
    { order(cluster, victim, now) } -> gpusched::detail::WholeNumber;
};

namespace detail {

/// Always true. Contains only static_asserts, so that the compiler's first message names the cause.
template <class P>
constexpr bool check_victim_order() {
    static_assert(
        VictimOrder<P> || !std::convertible_to<const P&, std::string_view>,
        "a victim policy is not a string; preemption::victim_policies().make(name) creates one by name");
    static_assert(VictimOrder<P> || std::convertible_to<const P&, std::string_view>,
                  "a victim order is called as `order(const Cluster&, TaskId victim, std::int64_t now)`, "
                  "returns an integer, not floating point, and its operator() is const");
    return true;
}

}  // namespace detail

struct Options;

/// One of the library's policies or any VictimOrder.
class VictimPolicy {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_victim_order<P>();
    }
    VictimPolicy(Policy policy = Policy::imp)  // NOLINT(google-explicit-constructor)
        : named_(policy) {}
    template <class P>
        requires(std::is_class_v<P>
                     ? !std::derived_from<P, VictimPolicy> && !std::derived_from<P, Options>
                     : std::invocable<P&, const Cluster&, TaskId, std::int64_t> ||
                           std::convertible_to<P, std::string_view>)  // rejected below, with the cause
    VictimPolicy(P order)                                             // NOLINT(google-explicit-constructor)
        : named_(std::nullopt) {
        static_assert(detail::check_victim_order<P>());
        if constexpr (VictimOrder<P>)  // otherwise an assertion above has failed
            order_ = [order = std::move(order)](const Cluster& cluster, TaskId victim, std::int64_t now) {
                return static_cast<std::int64_t>(order(cluster, victim, now));
            };
    }

    /// The library's policy; absent for an order.
    [[nodiscard]] std::optional<Policy> named() const noexcept { return named_; }
    /// The name in messages.
    [[nodiscard]] const char* name() const noexcept { return named_ ? enum_name(*named_) : "a victim order"; }
    /// The key of a potential victim. Requires an order.
    [[nodiscard]] std::int64_t key(const Cluster& cluster, TaskId victim, std::int64_t now) const {
        return order_(cluster, victim, now);
    }
    friend bool operator==(const VictimPolicy& a, Policy b) noexcept { return a.named_ == b; }

  private:
    std::optional<Policy> named_;
    std::function<std::int64_t(const Cluster&, TaskId, std::int64_t)> order_{};
};

namespace detail {

/// The traits of a policy; the defaults for an order.
[[nodiscard]] inline const PolicyTraits& traits_of(const VictimPolicy& policy) noexcept {
    static constexpr PolicyTraits order{};
    const auto named = policy.named();
    const auto row = named ? static_cast<std::size_t>(*named) : policies.size();
    return row < policies.size() ? policies[row] : order;
}

}  // namespace detail

/// The names of `Policy`. Add user-defined orders to a copy:
///
///     auto policies = preemption::victim_policies();
///     policies.add<YoungestFirst>("youngest_first");
///     auto result = preemption::preempt(cluster, task, {.policy = policies.make(name_from_a_file)});
[[nodiscard]] const Registry<VictimPolicy>& victim_policies();

}  // namespace gpusched::preemption

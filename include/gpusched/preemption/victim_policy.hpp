// SPDX-License-Identifier: Apache-2.0
// Victim policies: one of the library's, or an order of the caller's in which the potential victims of a node leave.
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

/// How a node's victims, and the node, are chosen.
enum class Policy : std::uint8_t {
    spot,        ///< ASI: cheapest spot tasks first until the task fits; the node that loses the least work
    spot_exact,  ///< ours: the victims that lose the least work, per node and over all nodes
    imp,         ///< FlexTopo's Incremental Minimal Preemption: fewest victims per node, then Equation 1
    exhaustive,  ///< the optimum of FlexTopo's Equation 1 over all sets of victims
    reprieve,    ///< Kubernetes: all potential victims leave, the most important ones come back first
    first_fit,   ///< the first node on which leaving by ascending priority makes room
};

namespace detail {

/// Which candidate is best, first to last, after the fewest tasks beyond budgets; names of victims break the ties that remain.
enum class Objective : std::uint8_t {
    fewest,  ///< fewest victims, score, lower maximum priority, cost: the best of IMP's answer
    score,   ///< score, fewest victims, lower maximum priority, cost: the optimum of Equation 1
    cost,    ///< cost, fewest victims, lower maximum priority: the least work lost
};

/// Which node wins, of those on which evictions help.
enum class NodeChoice : std::uint8_t {
    best,             ///< the best candidate by the objective
    least_important,  ///< the least important victims, as Kubernetes compares them
    first,            ///< the first one
};

/// What tells policies apart, besides the way in which a node's victims are found (`best_of_node`).
struct PolicyTraits {
    Policy policy{};
    const char* name = nullptr;
    Objective objective = Objective::cost;
    NodeChoice nodes = NodeChoice::best;
    bool spot = false;      ///< victims are spot tasks of any priority; else tasks of lower priority
    bool searches = false;  ///< finds the best set by the objective, with either `Engine`
    bool indexed = false;   ///< `PreemptionIndex` keeps its answers
};

/// In the order of the enumerators.
inline constexpr auto policies = std::to_array<PolicyTraits>({
    {.policy = Policy::spot, .name = "spot", .objective = Objective::cost, .spot = true},
    {.policy = Policy::spot_exact,
     .name = "spot_exact",
     .objective = Objective::cost,
     .spot = true,
     .searches = true},
    {.policy = Policy::imp, .name = "imp", .objective = Objective::fewest, .searches = true, .indexed = true},
    {.policy = Policy::exhaustive,
     .name = "exhaustive",
     .objective = Objective::score,
     .searches = true,
     .indexed = true},
    {.policy = Policy::reprieve,
     .name = "reprieve",
     .objective = Objective::fewest,
     .nodes = NodeChoice::least_important},
    {.policy = Policy::first_fit,
     .name = "first_fit",
     .objective = Objective::fewest,
     .nodes = NodeChoice::first},
});

static_assert([] {
    for (std::size_t i = 0; i < policies.size(); ++i)
        if (static_cast<std::size_t>(policies[i].policy) != i) return false;
    return true;
}());

/// The names of the policies of which a trait is true: "imp or exhaustive".
/// @param joint before the last one
inline std::string policies_with(bool PolicyTraits::*trait, const char* joint) {
    std::string text;
    std::size_t left = 0;
    for (const auto& row : policies) left += row.*trait;
    for (const auto& row : policies) {
        if (!(row.*trait)) continue;
        text += row.name;
        --left;
        if (left > 0) text += left > 1 ? ", " : " " + std::string(joint) + " ";
    }
    return text;
}

}  // namespace detail

constexpr auto enum_names(Policy) {
    std::array<EnumName<Policy>, detail::policies.size()> names{};
    for (std::size_t i = 0; i < names.size(); ++i)
        names[i] = {detail::policies[i].policy, detail::policies[i].name};
    return names;
}

/// In which order the potential victims of a node leave: ascending by the returned key, a whole number, then by name.
///
/// They leave one by one until the preemptor fits; then those who left before come back, the last of the order first, where it
/// still fits. So nobody is evicted in vain, but the set need not be the best one by any measure: an order promises no optimum.
/// Of the nodes, the one whose victims cost the least wins (`Options::cost`), then as the other policies break ties. Potential
/// victims are tasks of lower priority. `now` is in seconds.
template <class P>
concept VictimOrder = requires(const P& order, const Cluster& cluster, TaskId victim, std::int64_t now) {
    { order(cluster, victim, now) } -> gpusched::detail::WholeNumber;
};

namespace detail {

template <class P>
concept FloatPerVictim = requires(const P& order, const Cluster& cluster, TaskId victim, std::int64_t now) {
    { order(cluster, victim, now) } -> std::floating_point;
};

/// Only static_asserts, so that the compiler's first message is the cause. Always true.
template <class P>
constexpr bool check_victim_order() {
    static_assert(
        VictimOrder<P> || !std::convertible_to<const P&, std::string_view>,
        "a victim policy is not given as text; preemption::victim_policies().make(name) makes one of "
        "its name");
    static_assert(!FloatPerVictim<P>,
                  "a victim order returns whole numbers, not floating point, which would be cut off; scale "
                  "them, for example to thousandths");
    static_assert(FloatPerVictim<P> || VictimOrder<P> || std::convertible_to<const P&, std::string_view>,
                  "a victim order is called as `order(const Cluster&, TaskId victim, std::int64_t now)`, "
                  "returns a whole number, and its operator() is const");
    return true;
}

}  // namespace detail

struct Options;

/// One of the library's policies, or any VictimOrder.
class VictimPolicy {
  public:
    template <class P>
    static constexpr bool check() {
        return detail::check_victim_order<P>();
    }
    VictimPolicy(
        Policy policy = Policy::imp)  // NOLINT(google-explicit-constructor): a policy of another type
        : named_(policy) {}
    template <class P>
        requires(std::is_class_v<P> ? !std::derived_from<P, VictimPolicy> && !std::derived_from<P, Options>
                                    : std::invocable<P&, const Cluster&, TaskId, std::int64_t> ||
                                          std::convertible_to<P, std::string_view>)  // refused with the cause
    VictimPolicy(P order)  // NOLINT(google-explicit-constructor): a policy of another type
        : named_(std::nullopt) {
        static_assert(detail::check_victim_order<P>());
        if constexpr (VictimOrder<P>)  // all else is said above
            order_ = [order = std::move(order)](const Cluster& cluster, TaskId victim, std::int64_t now) {
                return static_cast<std::int64_t>(order(cluster, victim, now));
            };
    }

    /// Which of the library's; nothing for an order.
    [[nodiscard]] std::optional<Policy> named() const noexcept { return named_; }
    /// As messages call it.
    [[nodiscard]] const char* name() const noexcept { return named_ ? enum_name(*named_) : "a victim order"; }
    /// The key of a potential victim; only of an order.
    [[nodiscard]] std::int64_t key(const Cluster& cluster, TaskId victim, std::int64_t now) const {
        return order_(cluster, victim, now);
    }
    friend bool operator==(const VictimPolicy& a, Policy b) noexcept { return a.named_ == b; }

  private:
    std::optional<Policy> named_;
    std::function<std::int64_t(const Cluster&, TaskId, std::int64_t)> order_{};
};

namespace detail {

/// The row of one of the library's policies; for an order the default.
[[nodiscard]] inline const PolicyTraits& traits_of(const VictimPolicy& policy) noexcept {
    static constexpr PolicyTraits order{};
    const auto named = policy.named();
    const auto row = named ? static_cast<std::size_t>(*named) : policies.size();
    return row < policies.size() ? policies[row] : order;
}

}  // namespace detail

/// The names of `Policy`. A copy takes orders of your own:
///
///     auto policies = preemption::victim_policies();
///     policies.add<YoungestFirst>("youngest_first");
///     auto result = preemption::preempt(cluster, task, {.policy = policies.make(name_from_a_file)});
[[nodiscard]] const Registry<VictimPolicy>& victim_policies();

}  // namespace gpusched::preemption

// SPDX-License-Identifier: Apache-2.0
// Policies chosen at run time: types that hold any policy of a kind, the presets, and registries of names.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/consolidation/search.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/executor.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/registry.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

namespace gpusched::consolidation {

// ---- any policy of a kind -------------------------------------------------------------------------------

namespace detail {

template <class P>
concept VisitsNodes = requires(P& policy, const Cluster& cluster, const FreeIndex& index, TaskId task) {
    policy.visit(cluster, index, task, [](NodeId) { return true; });
};

/// Any policy of a kind that is one call. Wrong return types and calls that are not const pass the constraint
/// of the constructor; the checks of the kind name these mistakes.
template <class Kind, class Answer, class... Arguments>
class AnyCall {
  public:
    template <class P>
    static constexpr bool check() {
        return Kind::template check<P>();
    }
    template <class P>
        requires(!std::derived_from<P, AnyCall> && std::invocable<P&, Arguments...>)
    AnyCall(P policy)  // NOLINT(google-explicit-constructor): a policy of another type
        : type_(&typeid(P)), call_([policy = std::move(policy)](Arguments... arguments) {
              return static_cast<Answer>(policy(arguments...));
          }) {
        static_assert(check<P>());
    }
    Answer operator()(Arguments... arguments) const { return call_(arguments...); }
    /// The type of the policy.
    [[nodiscard]] const std::type_info& type() const noexcept { return *type_; }

  private:
    const std::type_info* type_;
    std::function<Answer(Arguments...)> call_;
};

}  // namespace detail

/// Any partitioner.
using AnyPartitioner = detail::AnyCall<detail::PartitionerKind, Partition, const Cluster&, std::size_t, Rng&>;

/// Any weight of nodes.
using AnyNodeWeight = detail::AnyCall<detail::NodeWeightKind, std::int64_t, const Cluster&, NodeId>;

/// Any GPU picker without random numbers.
using AnyPurePicker = detail::AnyCall<detail::PurePickerKind, GpuMask, const Cluster&, TaskId, NodeId>;

/// Any node order.
class AnyNodeOrder : public detail::AnyCall<detail::NodeOrderKind, std::int64_t, const Cluster&, NodeId> {
  public:
    template <class P>
        requires(!std::same_as<P, AnyNodeOrder> && std::invocable<P&, const Cluster&, NodeId>)
    AnyNodeOrder(P policy)  // NOLINT(google-explicit-constructor): a policy of another type
        : AnyCall(policy) {
        if constexpr (detail::PreparesRounds<P>)
            for_round_ = [policy = std::move(policy)](const Cluster& cluster) {
                return AnyNodeOrder(policy.for_round(cluster));
            };
    }
    /// Returns this order if it needs no preparation.
    [[nodiscard]] AnyNodeOrder for_round(const Cluster& cluster) const {
        return for_round_ ? for_round_(cluster) : *this;
    }

  private:
    std::function<AnyNodeOrder(const Cluster&)> for_round_;
};

/// Any acceptance.
class AnyAcceptance : public detail::AnyCall<detail::AcceptanceKind, bool, const ChainSet&> {
  public:
    template <class P>
        requires(!std::same_as<P, AnyAcceptance> && std::invocable<P&, const ChainSet&>)
    AnyAcceptance(P policy)  // NOLINT(google-explicit-constructor): a policy of another type
        : AnyCall(policy) {
        if constexpr (detail::TakesLimits<P>)
            with_limits_ = [policy = std::move(policy)](const Options& options) {
                return AnyAcceptance(policy.with_limits(options));
            };
    }
    [[nodiscard]] bool takes_limits() const noexcept { return static_cast<bool>(with_limits_); }
    /// Returns this acceptance if it takes no limits.
    [[nodiscard]] AnyAcceptance with_limits(const Options& options) const {
        return with_limits_ ? with_limits_(options) : *this;
    }

  private:
    std::function<AnyAcceptance(const Options&)> with_limits_;
};

/// Any ejection rule, with its flags.
class AnyEjectionRule : public detail::AnyCall<detail::EjectionRuleKind, bool, const Cluster&, TaskId, NodeId,
                                               std::span<const Victim>, std::vector<Victim>&> {
  public:
    template <class P>
        requires(!std::same_as<P, AnyEjectionRule> &&
                 std::invocable<P&, const Cluster&, TaskId, NodeId, std::span<const Victim>,
                                std::vector<Victim>&>)
    AnyEjectionRule(P policy)  // NOLINT(google-explicit-constructor): a policy of another type
        : AnyCall(policy), skips_victims_(detail::skips_victims(policy)),
          takes_cheapest_first_(detail::takes_cheapest_first(policy)) {}
    [[nodiscard]] bool skips_victims() const noexcept { return skips_victims_; }
    [[nodiscard]] bool takes_cheapest_first() const noexcept { return takes_cheapest_first_; }

  private:
    bool skips_victims_, takes_cheapest_first_;
};

/// Any ranking of destinations.
class AnyDestinationRanking {
    using AnyOffer = FunctionRef<bool(NodeId)>;

  public:
    template <class P>
    static constexpr bool check() {
        return detail::DestinationRankingKind::check<P>();
    }
    template <detail::VisitsNodes P>
        requires(!std::same_as<P, AnyDestinationRanking>)
    AnyDestinationRanking(P policy)  // NOLINT(google-explicit-constructor): a policy of another type
        : type_(&typeid(P)), is_tightest_fit_(std::same_as<P, TightestFit>),
          ranking_(std::make_shared<const Model<P>>(std::move(policy))) {
        static_assert(check<P>());
    }

    // The ranking of the presets is called directly: an indirect call for every offered node would cost more
    // than the offer.
    template <class Offer>
    bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return is_tightest_fit_ ? TightestFit{}.visit(cluster, index, task, offer)
                                : ranking_->visit(cluster, index, task, offer);
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task, Offer&& offer) const {
        return is_tightest_fit_ ? TightestFit{}.visit_full(cluster, index, task, offer)
                                : ranking_->visit_full(cluster, index, task, offer);
    }
    /// The type of the policy.
    [[nodiscard]] const std::type_info& type() const noexcept { return *type_; }

  private:
    struct Interface {
        virtual ~Interface() = default;
        virtual bool visit(const Cluster&, const FreeIndex&, TaskId, AnyOffer) const = 0;
        virtual bool visit_full(const Cluster&, const FreeIndex&, TaskId, AnyOffer) const = 0;
    };
    template <class P>
    struct Model final : Interface {
        explicit Model(P p) : policy(std::move(p)) {}
        bool visit(const Cluster& cluster, const FreeIndex& index, TaskId task,
                   AnyOffer offer) const override {
            return policy.visit(cluster, index, task, offer);
        }
        bool visit_full(const Cluster& cluster, const FreeIndex& index, TaskId task,
                        AnyOffer offer) const override {
            return policy.visit_full(cluster, index, task, offer);
        }
        P policy;
    };
    const std::type_info* type_;
    bool is_tightest_fit_;
    std::shared_ptr<const Interface> ranking_;
};

/// One policy of each kind, all chosen at run time. Each field may be replaced by a policy of your own.
using AnyPolicies = Policies<AnyPartitioner, AnyNodeOrder, AnyDestinationRanking, AnyEjectionRule,
                             AnyAcceptance, AnyNodeWeight, AnyPurePicker>;

namespace detail {
// Compiled in the library.
extern template GPUSCHED_EXPORT Result consolidate_validated(const Cluster&, const AnyPolicies&,
                                                             const Options&, const Context&);
}  // namespace detail

// ---- presets --------------------------------------------------------------------------------------------

namespace presets {

/// The paper's policies: random groups, fewest pods first, destinations in group order, any victims, chains
/// of any depth at once. The memory of failed requests is an addition: without it (`remember_failures =
/// false`) the search takes minutes on nodes with many tasks.
[[nodiscard]] AnyPolicies ipc(AnyNodeWeight weight = GpuWeight{});

/// Ours: pools per GPU model, least demand first (for the node's size, unless all nodes count alike),
/// tightest fit, the fewest victims that are easier to place, moves nested at most twice, one round.
[[nodiscard]] AnyPolicies fast(AnyNodeWeight weight = GpuWeight{});

/// Ours: as `fast`, with deeper rounds after the first and an exact search of tiny groups. Exchanges of
/// vacated nodes then continue from the best of several starts, including the searches of `fast` and `ipc`.
/// So no plan of theirs has a higher value, or the same value at a lower cost.
[[nodiscard]] AnyPolicies best(AnyNodeWeight weight = GpuWeight{});

}  // namespace presets

// ---- names ----------------------------------------------------------------------------------------------

/// "random_groups", "by_gpu_model", "by_switch", "by_locality".
[[nodiscard]] const Registry<AnyPartitioner>& partitioners();

/// "fewest_pods", "least_demand", "least_demand_for_size", "lowest_utilisation".
[[nodiscard]] const Registry<AnyNodeOrder>& node_orders();

/// "group_order", "tightest_fit".
[[nodiscard]] const Registry<AnyDestinationRanking>& destination_rankings();

/// "first_victims", "easier_victims", "cheapest_victims".
[[nodiscard]] const Registry<AnyEjectionRule>& ejection_rules();

/// "accept_all", "price_limit"; presets use the latter.
[[nodiscard]] const Registry<AnyAcceptance>& acceptances();

/// "gpus", "unit".
[[nodiscard]] const Registry<AnyNodeWeight>& node_weights();

/// "tightest_gpu", "fewest_crossings", "least_harm", "by_wish": the pickers of allocation without random
/// numbers and without a workload.
[[nodiscard]] const Registry<AnyPurePicker>& gpu_pickers();

/// The named policies: those of the library, and those that a caller adds to a copy.
///
///     auto known = consolidation::registries();
///     known.node_orders.add<MyOrder>("mine");
///     auto result = consolidation::consolidate(cluster, {.node_order = "mine"}, options, context, known);
struct Registries {
    Registry<AnyPartitioner> partitioners = consolidation::partitioners();
    Registry<AnyNodeOrder> node_orders = consolidation::node_orders();
    Registry<AnyDestinationRanking> destination_rankings = consolidation::destination_rankings();
    Registry<AnyEjectionRule> ejection_rules = consolidation::ejection_rules();
    Registry<AnyAcceptance> acceptances = consolidation::acceptances();
    Registry<AnyNodeWeight> node_weights = consolidation::node_weights();
    Registry<AnyPurePicker> gpu_pickers = consolidation::gpu_pickers();
};
/// Returns the registries of the library.
[[nodiscard]] const Registries& registries();

/// Names of policies that replace those of a preset. Absent = the preset's.
struct PolicyNames {
    std::optional<std::string> partitioner{};
    std::optional<std::string> node_order{};
    std::optional<std::string> destination_ranking{};
    std::optional<std::string> ejection_rule{};
    std::optional<std::string> acceptance{};
    std::optional<std::string> node_weight{};
    std::optional<std::string> gpu_picker{};
};
template <class F>
constexpr void visit_fields(std::type_identity<PolicyNames>, F&& field) {
    field("partitioner", &PolicyNames::partitioner);
    field("node_order", &PolicyNames::node_order);
    field("destination_ranking", &PolicyNames::destination_ranking);
    field("ejection_rule", &PolicyNames::ejection_rule);
    field("acceptance", &PolicyNames::acceptance);
    field("node_weight", &PolicyNames::node_weight);
    field("gpu_picker", &PolicyNames::gpu_picker);
}

/// Returns the names of one kind of policy.
/// @param kind a field of PolicyNames
/// @throws InvalidInput for an unknown kind, with the nearest ones
[[nodiscard]] const std::vector<std::string>& policy_names(std::string_view kind,
                                                           const Registries& known = registries());

/// Returns the policies of a preset with those replaced that have names. The switches of the preset stay.
/// @throws InvalidInput for an unknown name, with the nearest ones
[[nodiscard]] AnyPolicies make_policies(Preset preset = Preset::best, const PolicyNames& names = {},
                                        Objective objective = Objective::gpus,
                                        const Registries& known = registries());

/// Consolidates with policies chosen by name in place of those of `options.preset`.
/// @param known the policies that have names
/// @throws InvalidInput as `consolidate(cluster, options, context)`, for an unknown name, and for limits that
///     the named acceptance does not take
[[nodiscard]] Result consolidate(const Cluster& cluster, const PolicyNames& names, const Options& options,
                                 const Context& context = {}, const Registries& known = registries());

}  // namespace gpusched::consolidation

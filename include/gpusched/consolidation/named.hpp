// SPDX-License-Identifier: Apache-2.0
// Policies of consolidation by name, for options, files and other languages.
#pragma once

#include <gpusched/consolidation/any.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/registry.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// "random_groups", "by_gpu_model", "by_switch", "by_locality".
[[nodiscard]] const Registry<AnyPartitioner>& partitioners();

/// "fewest_pods", "least_demand", "least_demand_for_size", "lowest_utilisation".
[[nodiscard]] const Registry<AnyNodeOrder>& node_orders();

/// "group_order", "tightest_fit".
[[nodiscard]] const Registry<AnyDestinationRanking>& destination_rankings();

/// "first_victims", "easier_victims", "cheapest_victims".
[[nodiscard]] const Registry<AnyEjectionRule>& ejection_rules();

/// "accept_all", "price_limit"; the latter is that of the presets.
[[nodiscard]] const Registry<AnyAcceptance>& acceptances();

/// "gpus", "unit".
[[nodiscard]] const Registry<AnyNodeWeight>& node_weights();

/// "tightest_gpu", "fewest_crossings", "least_harm", "by_wish": the pickers of allocation that take no random numbers and
/// expect no workload.
[[nodiscard]] const Registry<AnyPurePicker>& gpu_pickers();

/// The policies that calls by name know: those of the library, and what a caller adds to a copy.
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
/// Those of the library.
[[nodiscard]] const Registries& registries();

/// Policies by name in place of those of a preset. Absent = the preset's.
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

/// The names that each kind has.
/// @param kind a field of PolicyNames
/// @throws InvalidInput for an unknown kind, with the nearest ones
[[nodiscard]] const std::vector<std::string>& policy_names(std::string_view kind,
                                                           const Registries& known = registries());

/// The policies of a preset, with those that have names replaced. All else of the preset stays: how deep moves nest, how
/// many rounds there are, whether gaps are filled.
///
/// Every field of the result may be replaced by a policy of your own.
/// @throws InvalidInput for an unknown name, with the nearest ones
[[nodiscard]] AnyPolicies make_policies(Preset preset = Preset::best, const PolicyNames& names = {},
                                        Objective objective = Objective::gpus,
                                        const Registries& known = registries());

/// `consolidate` with policies chosen by name in place of those of `options.preset`.
/// @param known the policies that have names
/// @throws InvalidInput as that, for an unknown name, and for limits that the acceptance of that name does not take
[[nodiscard]] Result consolidate(const Cluster& cluster, const PolicyNames& names, const Options& options,
                                 const Context& context = {}, const Registries& known = registries());

}  // namespace gpusched::consolidation

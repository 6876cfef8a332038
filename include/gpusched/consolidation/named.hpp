// Policies of consolidation by name, for options, files and other languages.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/any.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/registry.hpp>

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

/// "accept_all", "price_limit"; the latter takes its limits from `max_others` and `max_price_ratio` of the options.
[[nodiscard]] const Registry<AnyAcceptance, const Options&>& acceptances();

/// "gpus", "unit".
[[nodiscard]] const Registry<AnyNodeWeight>& node_weights();

/// "tightest_gpu", "fewest_crossings", "least_harm", "by_wish": the pickers of allocation that take no random numbers and
/// expect no workload.
[[nodiscard]] const Registry<AnyPurePicker>& gpu_pickers();

/// One name of each kind; the defaults are the policies of the presets `fast` and `best`.
struct PolicyNames {
    std::string partitioner = "by_gpu_model";
    std::string node_order = "least_demand_for_size";
    std::string destinations = "tightest_fit";
    std::string ejection = "cheapest_victims";
    std::string acceptance = "price_limit";
    std::string weight = "gpus";
    std::string picker = "tightest_gpu";
};
template <class F>
constexpr void visit_fields(std::type_identity<PolicyNames>, F&& field) {
    field("partitioner", &PolicyNames::partitioner);
    field("node_order", &PolicyNames::node_order);
    field("destinations", &PolicyNames::destinations);
    field("ejection", &PolicyNames::ejection);
    field("acceptance", &PolicyNames::acceptance);
    field("weight", &PolicyNames::weight);
    field("picker", &PolicyNames::picker);
}

/// The names that each kind has.
/// @param kind a field of PolicyNames
/// @throws InvalidInput for an unknown kind, with the nearest ones
[[nodiscard]] const std::vector<std::string>& policy_names(std::string_view kind);

/// The policies of these names, for `consolidate(cluster, policies, options, context)`.
///
/// Every field of the result may be replaced by a policy of your own, made by a registry of your own (registry.hpp) or
/// not; `deepest`, `most_rounds` and the other switches have the defaults of Policies.
/// @throws InvalidInput for an unknown name, with the nearest ones
[[nodiscard]] AnyPolicies make_policies(const PolicyNames& names = {}, const Options& options = {});

/// The names of the policies of a preset.
/// @param options `preset` and `objective` are looked at
[[nodiscard]] PolicyNames preset_names(const Options& options);

/// The policies of these names in place of those of `options.preset`, whose other choices stay: how deep moves nest, how many
/// rounds there are, which limits `price_limit` has. With `preset_names(options)` the plan is that of
/// `consolidate(cluster, options)`.
/// @throws InvalidInput for an unknown name, with the nearest ones
[[nodiscard]] AnyPolicies preset_policies(const PolicyNames& names, const Options& options);

}  // namespace gpusched::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/named.ipp>
#endif

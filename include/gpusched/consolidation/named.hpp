// Policies of consolidation by name, for options, files and other languages.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/consolidation/any.hpp>
#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/registry.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace GPUSCHED_NAMESPACE::consolidation {

/// "random_groups", "by_gpu_model", "by_switch", "by_locality".
[[nodiscard]] const Registry<AnyPartitioner>& partitioners();

/// "fewest_pods", "least_demand", "least_demand_for_size", "lowest_utilisation".
[[nodiscard]] const Registry<AnyNodeOrder>& node_orders();

/// "group_order", "tightest_fit".
[[nodiscard]] const Registry<AnyDestinationRanking>& destination_rankings();

/// "first_victims", "easier_victims", "cheapest_victims".
[[nodiscard]] const Registry<AnyEjectionRule>& ejection_rules();

/// "accept_all", "price_limit"; the latter is that of the presets `fast` and `best`.
[[nodiscard]] const Registry<AnyAcceptance>& acceptances();

/// "gpus", "unit".
[[nodiscard]] const Registry<AnyNodeWeight>& node_weights();

/// "tightest_gpu", "fewest_crossings", "least_harm", "by_wish": the pickers of allocation that take no random numbers and
/// expect no workload.
[[nodiscard]] const Registry<AnyPurePicker>& gpu_pickers();

/// Policies by name in place of those of a preset. Absent = the preset's.
struct PolicyNames {
    std::optional<std::string> partitioner{};
    std::optional<std::string> node_order{};
    std::optional<std::string> destinations{};
    std::optional<std::string> ejection{};
    std::optional<std::string> acceptance{};
    std::optional<std::string> weight{};
    std::optional<std::string> picker{};
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

/// The policies of a preset, with those that have names replaced. All else of the preset stays: how deep moves nest, how
/// many rounds there are, whether gaps are filled.
///
/// Every field of the result may be replaced by a policy of your own, made by a registry of your own (registry.hpp) or not.
/// @throws InvalidInput for an unknown name, with the nearest ones
[[nodiscard]] AnyPolicies make_policies(Preset preset = Preset::best, const PolicyNames& names = {},
                                        Objective objective = Objective::gpus);

/// `consolidate(cluster, options, context)` with policies by name in place of those of `options.preset`.
/// @throws InvalidInput as that, for an unknown name, and for limits that the acceptance of that name does not take
[[nodiscard]] Result consolidate_by_name(const Cluster& cluster, const PolicyNames& names,
                                         const Options& options = {}, const Context& context = {});

}  // namespace GPUSCHED_NAMESPACE::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/named.ipp>
#endif

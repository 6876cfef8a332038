#pragma once

#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/presets.hpp>

#include <algorithm>

namespace GPUSCHED_NAMESPACE::consolidation {

GPUSCHED_INLINE const Registry<AnyPartitioner>& partitioners() {
    static const auto all = [] {
        Registry<AnyPartitioner> r("partitioner");
        r.add<RandomGroups>("random_groups");
        r.add<ByGpuModel>("by_gpu_model");
        r.add<BySwitch>("by_switch");
        r.add<ByLocality>("by_locality");
        return r;
    }();
    return all;
}

GPUSCHED_INLINE const Registry<AnyNodeOrder>& node_orders() {
    static const auto all = [] {
        Registry<AnyNodeOrder> r("node_order");
        r.add<FewestPods>("fewest_pods");
        r.add<LeastDemand>("least_demand");
        r.add<LeastDemandForSize>("least_demand_for_size");
        r.add<LowestUtilisation>("lowest_utilisation");
        return r;
    }();
    return all;
}

GPUSCHED_INLINE const Registry<AnyDestinationRanking>& destination_rankings() {
    static const auto all = [] {
        Registry<AnyDestinationRanking> r("destinations");
        r.add<GroupOrder>("group_order");
        r.add<TightestFit>("tightest_fit");
        return r;
    }();
    return all;
}

GPUSCHED_INLINE const Registry<AnyEjectionRule>& ejection_rules() {
    static const auto all = [] {
        Registry<AnyEjectionRule> r("ejection");
        r.add<FirstVictims>("first_victims");
        r.add<EasierVictims>("easier_victims");
        r.add<CheapestVictims>("cheapest_victims");
        return r;
    }();
    return all;
}

GPUSCHED_INLINE const Registry<AnyAcceptance>& acceptances() {
    static const auto all = [] {
        Registry<AnyAcceptance> r("acceptance");
        r.add<AcceptAll>("accept_all");
        r.add("price_limit", [] { return presets::best().acceptance; });
        return r;
    }();
    return all;
}

GPUSCHED_INLINE const Registry<AnyNodeWeight>& node_weights() {
    static const auto all = [] {
        Registry<AnyNodeWeight> r("weight");
        r.add<GpuWeight>("gpus");
        r.add<UnitWeight>("unit");
        return r;
    }();
    return all;
}

GPUSCHED_INLINE const Registry<AnyPurePicker>& gpu_pickers() {
    static const auto all = [] {
        Registry<AnyPurePicker> r("picker");
        r.add<allocation::TightestGpu>("tightest_gpu");
        r.add<allocation::FewestCrossings>("fewest_crossings");
        r.add<allocation::LeastHarm>("least_harm");
        r.add<allocation::ByWish>("by_wish");
        return r;
    }();
    return all;
}

GPUSCHED_INLINE const std::vector<std::string>& policy_names(std::string_view kind) {
    const std::vector<std::string>* const names[] = {
        &partitioners().names(),   &node_orders().names(), &destination_rankings().names(),
        &ejection_rules().names(), &acceptances().names(), &node_weights().names(),
        &gpu_pickers().names()};
    std::vector<std::string> kinds;
    visit_fields(std::type_identity<PolicyNames>{},
                 [&](const char* field, auto, const auto&...) { kinds.emplace_back(field); });
    const auto at = std::find(kinds.begin(), kinds.end(), kind);
    if (at == kinds.end()) throw InvalidInput(bad_name("kind of policy", kind, kinds));
    return *names[at - kinds.begin()];
}

GPUSCHED_INLINE AnyPolicies make_policies(Preset preset, const PolicyNames& names, Objective objective) {
    auto policies = presets::visit(preset, objective, [](const auto& typed) -> AnyPolicies { return typed; });
    const auto replace = [](auto& policy, const auto& registry, const std::optional<std::string>& name) {
        if (name) policy = registry.make(*name);
    };
    replace(policies.partitioner, partitioners(), names.partitioner);
    replace(policies.node_order, node_orders(), names.node_order);
    replace(policies.destinations, destination_rankings(), names.destinations);
    replace(policies.ejection, ejection_rules(), names.ejection);
    replace(policies.acceptance, acceptances(), names.acceptance);
    replace(policies.weight, node_weights(), names.weight);
    replace(policies.picker, gpu_pickers(), names.picker);
    return policies;
}

GPUSCHED_INLINE Result consolidate_by_name(const Cluster& cluster, const PolicyNames& names,
                                           const Options& options, const Context& context) {
    validate(options, cluster);
    const auto policies = make_policies(options.preset, names, options.objective);
    auto beside = options;  // the preset and the objective have had their effect
    beside.preset = Options{}.preset;
    beside.objective = Options{}.objective;
    return consolidate(cluster, policies, beside, context);
}

}  // namespace GPUSCHED_NAMESPACE::consolidation

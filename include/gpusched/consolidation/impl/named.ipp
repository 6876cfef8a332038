#pragma once

#include <gpusched/consolidation/named.hpp>
#include <gpusched/consolidation/presets.hpp>

#include <algorithm>

namespace gpusched::consolidation {

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

GPUSCHED_INLINE const Registry<AnyAcceptance, const Options&>& acceptances() {
    static const auto all = [] {
        Registry<AnyAcceptance, const Options&> r("acceptance");
        r.add<AcceptAll>("accept_all");
        r.add("price_limit", [](const Options& options) {
            PriceLimit limit;
            limit.others = options.max_others.value_or(limit.others);
            limit.times_mean = options.max_price_ratio.value_or(limit.times_mean);
            return limit;
        });
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

GPUSCHED_INLINE AnyPolicies make_policies(const PolicyNames& names, const Options& options) {
    return {.partitioner = partitioners().make(names.partitioner),
            .node_order = node_orders().make(names.node_order),
            .destinations = destination_rankings().make(names.destinations),
            .ejection = ejection_rules().make(names.ejection),
            .acceptance = acceptances().make(names.acceptance, options),
            .weight = node_weights().make(names.weight),
            .picker = gpu_pickers().make(names.picker)};
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

GPUSCHED_INLINE PolicyNames preset_names(const Options& options) {
    const bool gpus = options.objective == Objective::gpus;
    PolicyNames names;
    names.weight = gpus ? "gpus" : "unit";
    if (options.preset == Preset::ipc) {
        names.partitioner = "random_groups";
        names.node_order = "fewest_pods";
        names.destinations = "group_order";
        names.ejection = "first_victims";
    } else if (!gpus) {
        names.node_order = "least_demand";
    }
    return names;
}

GPUSCHED_INLINE AnyPolicies preset_policies(const PolicyNames& names, const Options& options) {
    const auto with = [&](const auto& preset) {
        auto limited = options;
        if (!options.max_price_ratio && !options.clear)
            limited.max_price_ratio = preset.acceptance.times_mean;
        auto policies = make_policies(names, limited);
        policies.deepest = preset.deepest;
        policies.most_rounds = preset.most_rounds;
        policies.shallow_round_first = preset.shallow_round_first;
        policies.shortest_chains_first = preset.shortest_chains_first;
        policies.remember_failures = preset.remember_failures;
        policies.gather_fractions = preset.gather_fractions;
        policies.fill_gaps = preset.fill_gaps;
        policies.exact_when_tiny = preset.exact_when_tiny;
        return policies;
    };
    switch (options.preset) {
    case Preset::ipc:
        return with(presets::ipc());
    case Preset::fast:
        return with(presets::fast());
    case Preset::best:
        break;
    }
    return with(presets::best());
}

}  // namespace gpusched::consolidation

#pragma once

#include <gpusched/consolidation/named.hpp>

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

}  // namespace GPUSCHED_NAMESPACE::consolidation

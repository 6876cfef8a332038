// SPDX-License-Identifier: Apache-2.0
// The presets, and the policies that have names.
#include <gpusched/config.hpp>
#include <gpusched/consolidation/named.hpp>

namespace gpusched::consolidation {

GPUSCHED_EXPORT AnyPolicies presets::ipc(AnyNodeWeight weight) {
    return detail::paper_policies(PriceLimit{}, std::move(weight), allocation::TightestGpu{});
}

GPUSCHED_EXPORT AnyPolicies presets::fast(AnyNodeWeight weight) {
    const bool alike = detail::is_a<UnitWeight>(weight);
    return {.partitioner = ByGpuModel{},
            .node_order = alike ? AnyNodeOrder(LeastDemand{}) : AnyNodeOrder(LeastDemandForSize{}),
            .destination_ranking = TightestFit{},
            .ejection_rule = CheapestVictims{},
            .acceptance = PriceLimit{},
            .node_weight = std::move(weight),
            .gpu_picker = allocation::TightestGpu{},
            .switches = detail::one_shallow_round};
}

GPUSCHED_EXPORT AnyPolicies presets::best(AnyNodeWeight weight) {
    auto policies = fast(std::move(weight));
    policies.switches = {
        .shallow_round_first = true, .several_starts = true, .exchange_steps = 2000, .exact_when_tiny = true};
    return policies;
}

GPUSCHED_EXPORT const Registry<AnyPartitioner>& partitioners() {
    static const auto all = Registry<AnyPartitioner>("partitioner")
                                .add<RandomGroups>("random_groups")
                                .add<ByGpuModel>("by_gpu_model")
                                .add<BySwitch>("by_switch")
                                .add<ByLocality>("by_locality");
    return all;
}

GPUSCHED_EXPORT const Registry<AnyNodeOrder>& node_orders() {
    static const auto all = Registry<AnyNodeOrder>("node_order")
                                .add<FewestPods>("fewest_pods")
                                .add<LeastDemand>("least_demand")
                                .add<LeastDemandForSize>("least_demand_for_size")
                                .add<LowestUtilisation>("lowest_utilisation");
    return all;
}

GPUSCHED_EXPORT const Registry<AnyDestinationRanking>& destination_rankings() {
    static const auto all = Registry<AnyDestinationRanking>("destination_ranking")
                                .add<GroupOrder>("group_order")
                                .add<TightestFit>("tightest_fit");
    return all;
}

GPUSCHED_EXPORT const Registry<AnyEjectionRule>& ejection_rules() {
    static const auto all = Registry<AnyEjectionRule>("ejection_rule")
                                .add<FirstVictims>("first_victims")
                                .add<EasierVictims>("easier_victims")
                                .add<CheapestVictims>("cheapest_victims");
    return all;
}

GPUSCHED_EXPORT const Registry<AnyAcceptance>& acceptances() {
    static const auto all =
        Registry<AnyAcceptance>("acceptance").add<AcceptAll>("accept_all").add<PriceLimit>("price_limit");
    return all;
}

GPUSCHED_EXPORT const Registry<AnyNodeWeight>& node_weights() {
    static const auto all =
        Registry<AnyNodeWeight>("node_weight").add<GpuWeight>("gpus").add<UnitWeight>("unit");
    return all;
}

GPUSCHED_EXPORT const Registry<AnyPurePicker>& gpu_pickers() {
    static const auto all = Registry<AnyPurePicker>("gpu_picker")
                                .add<allocation::TightestGpu>("tightest_gpu")
                                .add<allocation::FewestCrossings>("fewest_crossings")
                                .add<allocation::LeastHarm>("least_harm")
                                .add<allocation::ByWish>("by_wish");
    return all;
}

GPUSCHED_EXPORT const Registries& registries() {
    static const Registries all;
    return all;
}

namespace detail {

// Calls `f` for every kind of policy with its name, and its member of PolicyNames, Registries and
// AnyPolicies.
template <class F>
static void for_each_kind(F&& f) {
    using N = PolicyNames;
    using R = Registries;
    using P = AnyPolicies;
    f("partitioner", &N::partitioner, &R::partitioners, &P::partitioner);
    f("node_order", &N::node_order, &R::node_orders, &P::node_order);
    f("destination_ranking", &N::destination_ranking, &R::destination_rankings, &P::destination_ranking);
    f("ejection_rule", &N::ejection_rule, &R::ejection_rules, &P::ejection_rule);
    f("acceptance", &N::acceptance, &R::acceptances, &P::acceptance);
    f("node_weight", &N::node_weight, &R::node_weights, &P::node_weight);
    f("gpu_picker", &N::gpu_picker, &R::gpu_pickers, &P::gpu_picker);
}

}  // namespace detail

GPUSCHED_EXPORT const std::vector<std::string>& policy_names(std::string_view kind, const Registries& known) {
    const std::vector<std::string>* found = nullptr;
    std::vector<std::string> kinds;
    detail::for_each_kind([&](const char* name, auto, auto registry, auto) {
        if (kind == name) found = &(known.*registry).names();
        kinds.emplace_back(name);
    });
    if (found == nullptr) throw InvalidInput(bad_name("kind of policy", kind, kinds));
    return *found;
}

GPUSCHED_EXPORT AnyPolicies make_policies(Preset preset, const PolicyNames& names, Objective objective,
                                          const Registries& known) {
    const auto weight =
        objective == Objective::gpus ? AnyNodeWeight(GpuWeight{}) : AnyNodeWeight(UnitWeight{});
    auto policies = preset == Preset::ipc    ? presets::ipc(weight)
                    : preset == Preset::fast ? presets::fast(weight)
                                             : presets::best(weight);
    detail::for_each_kind([&](const char*, auto name, auto registry, auto policy) {
        if (names.*name) policies.*policy = (known.*registry).make(*(names.*name));
    });
    return policies;
}

GPUSCHED_EXPORT Result consolidate(const Cluster& cluster, const PolicyNames& names, const Options& options,
                                   const Context& context, const Registries& known) {
    validate(options, cluster);
    const auto policies = make_policies(options.preset, names, options.objective, known);
    auto rest = options;  // the policies already contain the preset and the objective
    rest.preset = Options{}.preset;
    rest.objective = Options{}.objective;
    return consolidate(cluster, policies, rest, context);
}

}  // namespace gpusched::consolidation

// SPDX-License-Identifier: Apache-2.0
// Policies by name do what the same policies as types do.
#include "example_clusters.hpp"

using namespace testing_support;

namespace {
struct LastFirst {
    std::int64_t operator()(const Cluster&, NodeId node) const {
        return -static_cast<std::int64_t>(index(node));
    }
};
}  // namespace

TEST_CASE("policies by name give the plans of the same policies as types") {
    const auto cluster = Cluster::build(generated());
    const con::Options options{.price = 900};
    const con::Policies<con::ByGpuModel, con::LeastDemandForSize, con::TightestFit, con::CheapestVictims,
                        con::PriceLimit, con::GpuWeight>
        types{.switches = con::presets::best().switches};
    const auto by_type = con::consolidate(cluster, types, options);
    const auto by_name = con::consolidate(cluster, con::make_policies(), options);
    CHECK(by_name.plan == by_type.plan);
    CHECK(by_name.stats == by_type.stats);
    CHECK(by_name.stats.vacated_nodes > 0);

    // Victims that find no place stay: the one flag that the cheapest rule has not.
    const con::Policies<con::RandomGroups, con::FewestPods, con::GroupOrder, con::FirstVictims,
                        con::AcceptAll, con::UnitWeight, allocation::FewestCrossings>
        paper{.switches = {.shortest_chains_first = false}};
    const auto names = con::PolicyNames{.partitioner = "random_groups",
                                        .node_order = "fewest_pods",
                                        .destination_ranking = "group_order",
                                        .ejection_rule = "first_victims",
                                        .acceptance = "accept_all",
                                        .node_weight = "unit",
                                        .gpu_picker = "fewest_crossings"};
    CHECK(con::consolidate(cluster, con::make_policies(con::Preset::ipc, names)).plan ==
          con::consolidate(cluster, paper).plan);
}

TEST_CASE("a preset is a set of policies and nothing else, by type and by name") {
    const auto cluster = Cluster::build(generated());
    for (const auto preset : {con::Preset::ipc, con::Preset::fast, con::Preset::best})
        for (const auto objective : {con::Objective::gpus, con::Objective::nodes})
            for (const bool clear : {false, true}) {
                con::Options options{.seed = 7};
                if (clear) options.clear = std::vector{NodeId{0}, NodeId{3}};
                const auto by_type =
                    con::consolidate(cluster, con::make_policies(preset, {}, objective), options);
                options.preset = preset;
                options.objective = objective;
                const auto by_name = con::consolidate(cluster, con::PolicyNames{}, options);
                const auto by_preset = con::consolidate(cluster, options);
                CHECK(by_name.plan == by_preset.plan);
                CHECK(by_name.stats == by_preset.stats);
                CHECK(by_type.plan == by_preset.plan);
                CHECK(by_type.stats == by_preset.stats);
            }
    const auto fast =
        con::consolidate(cluster, {.preset = con::Preset::fast, .objective = con::Objective::nodes});
    CHECK(con::consolidate(cluster, con::presets::fast(con::UnitWeight{})).plan == fast.plan);
    CHECK(con::consolidate(cluster, con::presets::ipc()).plan ==
          con::consolidate(cluster, {.preset = con::Preset::ipc}).plan);
}

TEST_CASE("names are listed by kind") {
    CHECK(con::policy_names("node_order") == con::node_orders().names());
    CHECK(con::policy_names("gpu_picker") == con::gpu_pickers().names());
    REQUIRE_THROWS_MESSAGE(con::policy_names("node_orders"), InvalidInput,
                           "'node_orders'; did you mean 'node_order'?");
}

TEST_CASE("every named policy gives valid plans") {
    const auto spec = generated(60, 3);
    const auto cluster = Cluster::build(spec);
    const auto valid = [&](const con::PolicyNames& names) {
        return check(spec, cluster, con::consolidate(cluster, names, {}).plan).ok;
    };
    for (const auto& name : con::partitioners().names()) CHECK(valid({.partitioner = name}));
    for (const auto& name : con::node_orders().names()) CHECK(valid({.node_order = name}));
    for (const auto& name : con::destination_rankings().names()) CHECK(valid({.destination_ranking = name}));
    for (const auto& name : con::ejection_rules().names()) CHECK(valid({.ejection_rule = name}));
    for (const auto& name : con::acceptances().names()) CHECK(valid({.acceptance = name}));
    for (const auto& name : con::node_weights().names()) CHECK(valid({.node_weight = name}));
    for (const auto& name : con::gpu_pickers().names()) CHECK(valid({.gpu_picker = name}));
}

TEST_CASE("calls by name know the policies of the registries that they are given") {
    auto known = con::registries();
    known.node_orders.add<LastFirst>("last_first");
    CHECK(con::policy_names("node_order", known).back() == "last_first");
    const auto cluster = Cluster::build(generated());
    const auto by_name = con::consolidate(cluster, {.node_order = "last_first"}, {}, {}, known);
    CHECK(by_name.plan ==
          con::consolidate(cluster, con::with_node_order(con::presets::best(), LastFirst{})).plan);
    CHECK_THROWS_MESSAGE(con::consolidate(cluster, {.node_order = "last_first"}, {}), InvalidInput,
                         "node_order: 'last_first'; expected one of fewest_pods,");
    REQUIRE_THROWS_MESSAGE(con::make_policies(con::Preset::best, {.node_order = "fewest_pots"}), InvalidInput,
                           "'fewest_pots'; did you mean 'fewest_pods'?");
}

TEST_CASE("policies by name keep everything else of the preset") {
    const auto cluster = Cluster::build(generated());
    const con::PolicyNames names{.node_order = "fewest_pods"};
    for (const auto preset : {con::Preset::ipc, con::Preset::fast, con::Preset::best})
        for (const auto objective : {con::Objective::gpus, con::Objective::nodes}) {
            const auto typed = con::consolidate(
                cluster, con::with_node_order(con::make_policies(preset, {}, objective), con::FewestPods{}));
            const auto named = con::consolidate(cluster, names, {.preset = preset, .objective = objective});
            CHECK(named.plan == typed.plan);
            CHECK(named.stats == typed.stats);
            CHECK(con::consolidate(cluster, con::make_policies(preset, names, objective)).plan == typed.plan);
        }
    REQUIRE_THROWS_MESSAGE(
        con::consolidate(cluster, {.acceptance = "accept_all"}, {.search = {.max_others = 2}}), InvalidInput,
        "max_others: 2; expected default policies of your own");
}

// SPDX-License-Identifier: Apache-2.0
// The least that each concept asks for, written as an outside user would, alone and in place of a preset's policy.
#include "consume/core/user_policies.hpp"
#include "example_clusters.hpp"

using namespace testing_support;
using namespace user;

namespace {

struct ByName {
    std::int64_t operator()(const Cluster&, NodeId node) const {
        return static_cast<std::int64_t>(index(node));
    }
};
/// Flags that are there but false must not count as set.
struct FlagsClear : AllLeave {
    static constexpr bool may_skip_victims = false;
    static constexpr bool cheapest_first = false;
};
struct FlagsSet : AllLeave {
    static constexpr bool may_skip_victims = true;
    static constexpr bool cheapest_first = true;
};

static_assert(con::Partitioner<OneGroup> && con::NodeOrder<ByName> &&
              con::DestinationRanking<LastNodeFirst> && con::EjectionRule<AllLeave> &&
              con::Acceptance<AtMostTwoMoves> && con::NodeWeight<Same> && allocation::GpuPicker<HighestGpus>);
static_assert(!con::detail::skips_victims(AllLeave{}) && !con::detail::takes_cheapest_first(AllLeave{}));
static_assert(!con::detail::skips_victims(FlagsClear{}) && !con::detail::takes_cheapest_first(FlagsClear{}));
static_assert(con::detail::skips_victims(FlagsSet{}) && con::detail::takes_cheapest_first(FlagsSet{}));
static_assert(!con::detail::skips_victims(con::EasierVictims{}) &&
              con::detail::skips_victims(con::FirstVictims{}));
static_assert(con::detail::takes_cheapest_first(con::CheapestVictims{}));

}  // namespace

TEST_CASE("minimal models of the concepts suffice") {
    const con::Policies<OneGroup, ByName, LastNodeFirst, AllLeave, AtMostTwoMoves, Same, HighestGpus>
        policies;
    const auto spec = generated();
    const auto cluster = Cluster::build(spec);
    const auto result = con::consolidate(cluster, policies);
    CHECK(result.stats.vacated_nodes > 0);
    CHECK(check(spec, cluster, result.plan).ok);

    // One task, two places: the policies' node and GPU are taken.
    const ClusterSpec tiny{
        .nodes = {node("a"), node("b"), node("c")},
        .tasks = {task("x", "a", {0}), task("l", "b", {0}, true), task("m", "c", {0}, true)}};
    const auto small = Cluster::build(tiny);
    const auto plan = con::consolidate(small, policies).plan;
    REQUIRE(plan.moves.size() == 1);
    CHECK(plan.moves[0].to == small.find_node("c"));
    CHECK(plan.moves[0].gpus == gpu_bit(7));

    // What the acceptance refuses is not done: three moves would be needed in the paper's Figure 15.
    CHECK(con::consolidate(Cluster::build(figure_15()), policies).plan.moves.empty());
}

TEST_CASE("impossible answers of pickers and weights are refused, and nothing is corrupted") {
    const auto cluster = Cluster::build(generated());
    const auto picks = [](GpuMask gpus) {
        return con::AnyPolicies(con::with_gpu_picker(
            con::presets::fast(), [gpus](const Cluster&, TaskId, NodeId) { return gpus; }));
    };
    for (const auto gpus : {GpuMask{0}, ~GpuMask{0}, GpuMask{1} << 63})
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, picks(gpus)), InvalidInput,
                               "GPU picker answers GPUs node cannot take");
    const auto weighs = [](std::int64_t weight) {
        return con::AnyPolicies(
            con::with_node_weight(con::presets::fast(), [weight](const Cluster&, NodeId) { return weight; }));
    };
    const auto most = con::most_node_weight(cluster);
    for (const auto weight : {std::int64_t{-1}, most + 1, std::numeric_limits<std::int64_t>::max()})
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, weighs(weight)), InvalidInput,
                               "node_weight: " + std::to_string(weight) + "; expected 0 " +
                                   std::to_string(most));
    CHECK(con::consolidate(cluster, weighs(most)).stats.vacated_nodes > 0);
    const auto models = [](std::int64_t per_gpu) {
        return con::AnyPolicies(con::with_node_weight(con::presets::fast(), con::ModelWeight{{per_gpu}}));
    };
    REQUIRE_THROWS_AS(con::consolidate(cluster, models(std::numeric_limits<std::int64_t>::max())),
                      InvalidInput);
    REQUIRE_THROWS_AS(con::consolidate(cluster, models(-1)), InvalidInput);
}

TEST_CASE("a node order makes itself ready for each round, with the cluster as the round finds it") {
    /// The order of the presets, asked about all nodes at once.
    struct AllAtOnce {
        std::shared_ptr<std::vector<std::int64_t>> in_use;  // nodes, as each round found them
        std::vector<std::int64_t> keys{};
        AllAtOnce for_round(const Cluster& cluster) const {
            auto order = *this;
            order.keys.assign(cluster.node_slots(), 0);
            std::int64_t occupied = 0;
            for (const auto node : cluster.nodes()) {
                order.keys[index(node)] = con::LeastDemandForSize{}(cluster, node);
                occupied += cluster.occupants(node) > 0;
            }
            in_use->push_back(occupied);
            return order;
        }
        std::int64_t operator()(const Cluster&, NodeId node) const { return keys.at(index(node)); }
    };
    const auto cluster = Cluster::build(generated());
    for (const int threads : {1, 2, 8}) {
        for (const auto& options : {con::Options{}, con::Options{.search = {.depth = 2}}}) {
            auto asked = options;
            asked.threads = threads;
            const auto expected = con::consolidate(cluster, con::presets::best(), asked);
            const AllAtOnce order{std::make_shared<std::vector<std::int64_t>>()};
            const auto typed =
                con::consolidate(cluster, con::with_node_order(con::presets::best(), order), asked);
            CHECK(typed.plan == expected.plan);
            CHECK(typed.stats == expected.stats);
            const auto& seen = *order.in_use;
            // One entry for each round of each start, and in later rounds of a start there are fewer nodes in use.
            REQUIRE(seen.size() >= 2);
            CHECK(*std::min_element(seen.begin(), seen.end()) < seen.front());
            con::AnyPolicies any = con::presets::best();
            any.node_order = order;
            CHECK(con::consolidate(cluster, any, asked).plan == expected.plan);
        }
    }
}

TEST_CASE("library policies combine") {
    const auto spec = generated();
    const auto cluster = Cluster::build(spec);
    const con::Policies<con::BySwitch, con::LowestUtilisation, con::TightestFit, con::EasierVictims,
                        con::PriceLimit, con::ModelWeight, allocation::FewestCrossings>
        policies{.acceptance = {.others = 3}, .node_weight = {{2, 3}}};
    const auto result = con::consolidate(cluster, policies, {.search = {.partition_size = 64}});
    CHECK(result.stats.vacated_nodes > 0);
    CHECK(check(spec, cluster, result.plan).ok);
}

TEST_CASE("one policy of a preset is replaced, all else of it stays") {
    const auto cluster = Cluster::build(generated());
    auto all = con::presets::best();
    all.switches = {.deepest = 3,
                    .most_rounds = 4,
                    .shallow_round_first = true,
                    .shortest_chains_first = false,
                    .remember_failures = false,
                    .several_starts = true,
                    .exchange_steps = 10,
                    .exact_when_tiny = true};
    const auto stays = [&](const auto& p) { return p.switches == all.switches; };
    const auto one_group = con::with_partitioner(all, OneGroup{});
    const auto by_name = con::with_node_order(one_group, ByName{});
    const auto last_first = con::with_destination_ranking(by_name, LastNodeFirst{});
    const auto all_leave = con::with_ejection_rule(last_first, AllLeave{});
    const auto few_moves = con::with_acceptance(all_leave, AtMostTwoMoves{});
    const auto same = con::with_node_weight(few_moves, Same{});
    const auto mine = con::with_gpu_picker(same, HighestGpus{});
    static_assert(std::same_as<decltype(mine), const con::Policies<OneGroup, ByName, LastNodeFirst, AllLeave,
                                                                   AtMostTwoMoves, Same, HighestGpus>>);
    const con::AnyPolicies any = mine;
    CHECK((stays(one_group) && stays(by_name) && stays(last_first) && stays(all_leave) && stays(few_moves) &&
           stays(same) && stays(mine) && stays(any)));
    CHECK(con::consolidate(cluster, any).plan == con::consolidate(cluster, mine).plan);
    CHECK(con::with_acceptance(all, con::PriceLimit{.others = 7}).acceptance.others == 7);

    // The same node order by another type gives the preset's plan; another one, another.
    struct LikeTheirs {
        std::int64_t operator()(const Cluster& c, NodeId node) const {
            return con::LeastDemandForSize{}(c, node);
        }
    };
    const auto best = con::consolidate(cluster, con::presets::best());
    const auto ordered_by = [&](const auto& order) {
        const con::AnyPolicies policies = con::with_node_order(con::presets::best(), order);
        return con::consolidate(cluster, policies).plan;
    };
    CHECK(ordered_by(LikeTheirs{}) == best.plan);
    CHECK(ordered_by(ByName{}) != best.plan);
}

namespace {
struct Recording {  // for one thread
    std::vector<con::ChainSet>* seen = nullptr;
    bool operator()(const con::ChainSet& chains) const {
        seen->push_back(chains);
        return true;
    }
};
}  // namespace

TEST_CASE("the acceptance sees the moves of a node") {
    const auto cluster = Cluster::build(generated());
    std::vector<con::ChainSet> seen;
    const con::Policies<con::ByGpuModel, con::LeastDemand, con::TightestFit, con::CheapestVictims, Recording,
                        con::GpuWeight>
        policies{.acceptance = {&seen}};
    const auto result =
        con::consolidate(cluster, con::AnyPolicies(policies), {.threads = 1, .search = {.rounds = 2}});
    std::int64_t at_home = 0, others = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const auto& now = seen[i];
        std::int64_t tasks = 0;
        for (const auto task : cluster.tasks_on(now.node))
            tasks += !cluster.inventory().tasks.daemon[index(task)];
        // Tasks that came to the node are not at home there, and its own may have left it.
        REQUIRE(now.tasks <= tasks);
        at_home += now.tasks == tasks;
        REQUIRE(now.moves >= now.tasks);
        others += now.moves - now.tasks;
        REQUIRE(now.gain == cluster.gpu_count(now.node));
    }
    CHECK(at_home > 0);
    CHECK(others > 0);
    REQUIRE(result.stats.rounds.size() == 2);
}

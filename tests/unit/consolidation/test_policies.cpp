// SPDX-License-Identifier: Apache-2.0
// The least that each concept asks for, written as an outside user would; and the presets as sets of policies.
#include "example_clusters.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace testing_support;

namespace {

struct OneGroup {
    con::Partition operator()(const Cluster& cluster, std::size_t, Rng&) const {
        con::Partition partition(1);
        for (const auto node : cluster.nodes()) partition[0].push_back(node);
        return partition;
    }
};
struct ByName {
    std::int64_t operator()(const Cluster&, NodeId node) const {
        return static_cast<std::int64_t>(index(node));
    }
};
struct LastNodeFirst {
    template <class Offer>
    bool visit(const Cluster&, const con::FreeIndex& free, TaskId, Offer&& offer) const {
        const auto nodes = free.receivers();
        for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
            if (free.is_open(*node) && offer(*node)) return true;
        return false;
    }
    template <class Offer>
    bool visit_full(const Cluster& cluster, const con::FreeIndex& free, TaskId task, Offer&& offer) const {
        return visit(cluster, free, task, offer);
    }
};
/// Everything has to leave, in turn. Flags that are there but false must not count as set.
struct AllLeave {
    static constexpr bool may_skip_victims = false;
    static constexpr bool cheapest_first = false;
    bool operator()(const Cluster&, TaskId, NodeId, std::span<const con::Victim> movable,
                    std::vector<con::Victim>& victims) const {
        victims.assign(movable.begin(), movable.end());
        return true;
    }
};
struct AtMostTwoMoves {
    bool operator()(const con::ChainSet& chains) const { return chains.moves <= 2; }
};
struct Same {
    std::int64_t operator()(const Cluster&, NodeId) const { return 1; }
};
struct HighestGpus {
    GpuMask operator()(const Cluster& cluster, TaskId task, NodeId node) const {
        auto gpus = candidate_gpus(cluster, task, node);
        while (gpu_count(gpus) > cluster.inventory().tasks.gpu_count[index(task)])
            gpus = static_cast<GpuMask>(gpus & (gpus - 1));
        return gpus;
    }
};
struct FlagsSet : AllLeave {
    static constexpr bool may_skip_victims = true;
    static constexpr bool cheapest_first = true;
};

static_assert(con::Partitioner<OneGroup> && con::NodeOrder<ByName> &&
              con::DestinationRanking<LastNodeFirst> && con::EjectionRule<AllLeave> &&
              con::Acceptance<AtMostTwoMoves> && con::NodeWeight<Same> && allocation::GpuPicker<HighestGpus>);
static_assert(!con::may_skip_victims<AllLeave> && !con::wants_cheapest_first<AllLeave>);
static_assert(con::may_skip_victims<FlagsSet> && con::wants_cheapest_first<FlagsSet>);
static_assert(!con::may_skip_victims<con::EasierVictims> && con::may_skip_victims<con::FirstVictims>);
static_assert(con::wants_cheapest_first<con::CheapestVictims>);

}  // namespace

TEST_CASE("the least that the concepts ask for is enough") {
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

TEST_CASE("pickers and weights that answer what cannot be are refused, and nothing is corrupted") {
    const auto cluster = Cluster::build(generated());
    const auto picks = [](GpuMask gpus) {
        return con::with_picker(con::presets::fast(),
                                [gpus](const Cluster&, TaskId, NodeId) { return gpus; });
    };
    for (const auto gpus : {GpuMask{0}, ~GpuMask{0}, GpuMask{1} << 63})
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, picks(gpus)), InvalidInput,
                               "the GPU picker answers");
    const auto weighs = [](std::int64_t weight) {
        return con::with_weight(con::presets::fast(), [weight](const Cluster&, NodeId) { return weight; });
    };
    const auto most = con::most_node_weight(cluster);
    for (const auto weight : {std::int64_t{-1}, most + 1, std::numeric_limits<std::int64_t>::max()})
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, weighs(weight)), InvalidInput,
                               "': weight: " + std::to_string(weight) + "; expected 0 to " +
                                   std::to_string(most));
    CHECK(con::consolidate(cluster, weighs(most)).stats.vacated_nodes > 0);
    const auto models = [](std::int64_t per_gpu) {
        return con::with_weight(con::presets::fast(), con::ModelWeight{{per_gpu}});
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
        for (const auto& options : {con::Options{}, con::Options{.depth = 2}}) {
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
        policies{.acceptance = {.others = 3}, .weight = {{2, 3}}};
    const auto result = con::consolidate(cluster, policies, {.partition_size = 64});
    CHECK(result.stats.vacated_nodes > 0);
    CHECK(check(spec, cluster, result.plan).ok);
}

TEST_CASE("a preset is a set of policies and nothing else") {
    const auto cluster = Cluster::build(generated());
    const auto same = [&](const con::Result& a, const con::Result& b) {
        CHECK(a.plan == b.plan);
        CHECK(a.stats == b.stats);
    };
    same(con::consolidate(cluster, {.preset = con::Preset::ipc}),
         con::consolidate(cluster, con::presets::ipc()));
    same(con::consolidate(cluster, {.preset = con::Preset::fast}),
         con::consolidate(cluster, con::presets::fast()));
    same(con::consolidate(cluster, {.preset = con::Preset::best}),
         con::consolidate(cluster, con::presets::best()));
    same(con::consolidate(cluster, {.preset = con::Preset::fast, .objective = con::Objective::nodes}),
         con::consolidate(cluster, con::presets::fast(con::UnitWeight{})));
}

TEST_CASE("one policy of a preset is replaced, all else of it stays") {
    const auto cluster = Cluster::build(generated());
    auto all = con::presets::best();
    all.switches = {.deepest = 3,
                    .most_rounds = 4,
                    .shallow_round_first = true,
                    .shortest_chains_first = false,
                    .remember_failures = false,
                    .gather_fractions = true,
                    .fill_gaps = true,
                    .several_starts = true,
                    .exchange_steps = 10,
                    .exact_when_tiny = true};
    const auto stays = [&](const auto& p) { return p.switches == all.switches; };
    const auto one_group = con::with_partitioner(all, OneGroup{});
    const auto by_name = con::with_node_order(one_group, ByName{});
    const auto last_first = con::with_destinations(by_name, LastNodeFirst{});
    const auto all_leave = con::with_ejection(last_first, AllLeave{});
    const auto few_moves = con::with_acceptance(all_leave, AtMostTwoMoves{});
    const auto same = con::with_weight(few_moves, Same{});
    const auto mine = con::with_picker(same, HighestGpus{});
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
    CHECK(con::consolidate(cluster, con::with_node_order(con::presets::best(), LikeTheirs{})).plan ==
          best.plan);
    CHECK(con::consolidate(cluster, con::with_node_order(con::presets::best(), ByName{})).plan != best.plan);
}

TEST_CASE("a preset's policies behind one type give the preset's plan") {
    const auto cluster = Cluster::build(generated());
    con::AnyPolicies any = con::presets::best();
    CHECK(con::consolidate(cluster, any).plan == con::consolidate(cluster).plan);
    any = con::presets::ipc();
    CHECK(con::consolidate(cluster, any).plan ==
          con::consolidate(cluster, {.preset = con::Preset::ipc}).plan);
}

TEST_CASE("limits of the options reach every acceptance that takes them, in one way") {
    const auto cluster = Cluster::build(generated());
    const con::AnyPolicies any = con::presets::best();
    std::vector<NodeId> half;
    for (const auto node : cluster.nodes())
        if (index(node) % 2 == 0) half.push_back(node);
    for (const con::Options& options :
         {con::Options{.max_others = 0}, con::Options{.price = 2000}, con::Options{.clear = half}}) {
        const auto by_preset = con::consolidate(cluster, options);
        CHECK(con::consolidate(cluster, con::presets::best(), options).plan == by_preset.plan);
        CHECK(con::consolidate(cluster, any, options).plan == by_preset.plan);
    }
    const con::PriceLimit mine{.others = 5, .price = 2};
    CHECK(mine.with_limits({}).others == 5);
    CHECK(mine.with_limits({}).price == con::Options{}.price);
    CHECK(mine.with_limits({.max_others = 3, .price = 7}).price == 7);
}

TEST_CASE("options that have no effect beside policies of one's own are refused") {
    const auto cluster = Cluster::build(figure_15());
    const auto refused = [&](const auto& policies, const con::Options& options, const std::string& message) {
        INFO(message);
        REQUIRE_THROWS_MESSAGE(con::validate(options, cluster, policies), InvalidInput, message);
        REQUIRE_THROWS_MESSAGE(con::consolidate(cluster, policies, options), InvalidInput, message);
    };
    const auto best = con::presets::best();
    refused(
        best, {.preset = con::Preset::fast},
        "preset: fast; expected the default beside policies of your own: start from those of presets.hpp");
    refused(best, {.objective = con::Objective::nodes},
            "objective: nodes; expected the default beside policies of your own: their weight says");
    const auto all = con::with_acceptance(best, con::AcceptAll{});
    refused(all, {.max_others = 3},
            "max_others: 3; expected the default beside policies of your own: their "
            "acceptance takes no limits, as PriceLimit would");
    refused(con::AnyPolicies(all), {.price = 2}, "price: 2; expected the default");
    con::validate({.max_others = 3, .price = 2}, cluster, best);
    con::validate({.max_others = 3}, cluster, con::AnyPolicies(best));
}

TEST_CASE("max_others limits what a preset moves for one node") {
    const auto cluster = Cluster::build(figure_15());  // one task of the node, two of others
    const auto preset = GENERATE(con::Preset::ipc, con::Preset::best);
    CHECK(con::consolidate(cluster, {.preset = preset, .max_others = 1}).plan.moves.empty());
    CHECK(con::consolidate(cluster, {.preset = preset, .max_others = 2}).plan.moves.size() == 3);
}

TEST_CASE("the node orders of demand count GPUs, cores and pods, for the size of the node") {
    // On each node one pod that holds a GPU and a core.
    const ClusterSpec spec{.nodes = {node("a", 1), node("b", 8), node("c", 16), node("d", 0)},
                           .tasks = {task("x", "a", {0}), task("y", "b", {0}), task("z", "c", {0})}};
    const auto cluster = Cluster::build(spec);
    const auto key = [&](const auto& order, const char* name) {
        return order(cluster, cluster.find_node(name));
    };
    // 1000 for the GPU, 1000 for the pod, and a sixteenth of the core.
    for (const auto* name : {"a", "b", "c"}) CHECK(key(con::LeastDemand{}, name) == 2062);
    CHECK(key(con::LeastDemand{}, "d") == 0);
    // Over the cube roots 1, 2 and 2.519; nodes without GPUs last.
    CHECK(key(con::LeastDemandForSize{}, "a") == 2062);
    CHECK(key(con::LeastDemandForSize{}, "b") == 1031);
    CHECK(key(con::LeastDemandForSize{}, "c") == 818);
    CHECK(key(con::LeastDemandForSize{}, "d") > 1'000'000'000'000'000'000);
}

TEST_CASE("fewest pods count tasks, lowest utilisation counts GPUs in use of those that the node has") {
    auto quarter = task("w", "b", {1});
    quarter.gpu_share_milli = 250;
    auto daemon = task("agent", "a", {});
    daemon.gpu_count = 0;
    daemon.daemon = true;
    const ClusterSpec spec{
        .nodes = {node("a", 1), node("b", 8), node("c", 4), node("d", 0)},
        .tasks = {task("x", "a", {0}), task("y", "b", {0}), quarter, task("z", "c", {0, 2, 3}), daemon}};
    const auto cluster = Cluster::build(spec);
    const auto key = [&](const auto& order, const char* name) {
        return order(cluster, cluster.find_node(name));
    };
    CHECK(key(con::FewestPods{}, "a") == 1);
    CHECK(key(con::FewestPods{}, "b") == 2);
    CHECK(key(con::FewestPods{}, "d") == 0);
    CHECK(key(con::LowestUtilisation{}, "a") == 1'000'000);
    CHECK(key(con::LowestUtilisation{}, "b") == 156'250);  // 1.25 of 8
    CHECK(key(con::LowestUtilisation{}, "c") == 750'000);
    CHECK(key(con::LowestUtilisation{}, "d") == 0);
}

TEST_CASE("a price limit compares what a node is worth with what its moves cost") {
    con::ChainSet node{.gain = 8, .tasks = 2, .moves = 12, .cost = 16};
    CHECK(con::PriceLimit{}(node));
    CHECK(con::PriceLimit{.price = 500}(node));  // 8 GPUs, and 16 x half a GPU
    CHECK_FALSE(con::PriceLimit{.price = 501}(node));
    CHECK(con::PriceLimit{.others = 10}(node));
    CHECK_FALSE(con::PriceLimit{.others = 9}(node));
    node = {.gain = 0, .tasks = 2, .moves = 3, .cost = 3};  // worth nothing
    CHECK(con::PriceLimit{}(node));
    CHECK_FALSE(con::PriceLimit{.price = 1}(node));
    // Nothing overflows.
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    CHECK(con::is_worth(most, most / 8, 1));
    CHECK_FALSE(con::is_worth(1, most, con::highest_price));
    CHECK(con::value_milli(3, 4, 250) == 2000);
}

TEST_CASE("a price trades GPUs for moves") {
    const auto spec = sim::generate_cluster({.nodes = 2000, .seed = 5, .load = 1.15});
    const auto cluster = Cluster::build(spec);
    const auto preset = GENERATE(con::Preset::ipc, con::Preset::fast, con::Preset::best);
    const auto run = [&](std::int64_t price) {
        return con::consolidate(cluster, {.preset = preset, .price = price});
    };
    const auto all = run(0), some = run(1500), few = run(4000), nothing = run(con::highest_price);
    const auto cost_of_each = [](const con::Result& r) {
        return static_cast<double>(r.stats.relocation_cost) / static_cast<double>(r.stats.vacated_gpus);
    };
    CHECK(few.stats.vacated_gpus < some.stats.vacated_gpus);
    CHECK(some.stats.vacated_gpus < all.stats.vacated_gpus);
    CHECK(cost_of_each(few) < cost_of_each(some));
    CHECK(cost_of_each(some) < cost_of_each(all));
    CHECK(nothing.plan.moves.empty());
    for (const auto* result : {&all, &some, &few}) {
        CHECK(check(spec, cluster, result->plan).ok);
        const auto& stats = result->stats;
        CHECK(stats.vacated_weight == stats.vacated_gpus);
        CHECK(stats.value_milli == 1000 * stats.vacated_gpus - stats.price * stats.relocation_cost);
        CHECK(stats.value_milli >= 0);
    }
    CHECK(some.stats.price == 1500);
}

TEST_CASE("what counts is the cost of the tasks whose last node differs") {
    auto spec = figure_15();
    for (auto& t : spec.tasks) t.move_cost = 3;
    const auto cluster = Cluster::build(spec);
    const auto preset = GENERATE(con::Preset::ipc, con::Preset::best);
    // Three moves of cost 3 for four GPUs.
    const auto result = con::consolidate(cluster, {.preset = preset, .price = 444});
    CHECK(result.stats.relocation_cost == 9);
    CHECK(result.stats.value_milli == 4000 - 9 * 444);
    CHECK(con::consolidate(cluster, {.preset = preset, .price = 445}).plan.moves.empty());
    CHECK(con::consolidate(cluster, {.preset = preset, .price = 111, .objective = con::Objective::nodes})
              .stats.value_milli == 1);
    CHECK(con::consolidate(cluster, {.preset = preset, .price = 112, .objective = con::Objective::nodes})
              .plan.moves.empty());
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

TEST_CASE("the acceptance sees what a node takes") {
    const auto cluster = Cluster::build(generated());
    std::vector<con::ChainSet> seen;
    const con::Policies<con::ByGpuModel, con::LeastDemand, con::TightestFit, con::CheapestVictims, Recording,
                        con::GpuWeight>
        policies{.acceptance = {&seen}};
    const auto result = con::consolidate(cluster, policies, {.rounds = 2, .threads = 1});
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

TEST_CASE("fast ends after one round, best goes on while that gains") {
    const auto cluster = Cluster::build(generated());
    CHECK(con::consolidate(cluster, {.preset = con::Preset::fast}).stats.rounds.size() == 1);
    CHECK(con::consolidate(cluster, {.preset = con::Preset::best}).stats.rounds.size() > 1);
    auto policies = con::presets::fast();
    policies.switches.most_rounds = 2;
    CHECK(con::consolidate(cluster, policies).stats.rounds.size() == 2);
    CHECK(con::consolidate(cluster, policies, {.rounds = 1}).stats.rounds.size() == 1);
}

TEST_CASE("a search of one round goes to its full depth") {
    const auto cluster = Cluster::build(figure_15());
    CHECK(con::consolidate(cluster, con::presets::best(), {.rounds = 1}).plan.moves.size() == 3);
}

TEST_CASE("failed requests are remembered unless the caller says no") {
    const auto cluster = Cluster::build(generated());
    auto policies = con::presets::ipc();
    CHECK(con::consolidate(cluster, policies).stats.requests_dominated > 0);
    policies.switches.remember_failures = false;
    CHECK(con::consolidate(cluster, policies).stats.requests_dominated == 0);
}

TEST_CASE("filling gaps leaves fewer nodes with idle GPUs") {
    const auto spec = sim::generate_cluster({.nodes = 2000, .seed = 7, .load = 1.15});
    const auto cluster = Cluster::build(spec);
    auto policies = con::presets::fast();
    CHECK_FALSE((policies.switches.fill_gaps || con::presets::best().switches.fill_gaps));
    const auto without = con::consolidate(cluster, policies);
    policies.switches.fill_gaps = true;
    const auto with = con::consolidate(cluster, policies);
    CHECK(with.stats.not_fully_occupied_after < without.stats.not_fully_occupied_after);
    CHECK(check(spec, cluster, with.plan).ok);
}

TEST_CASE("a result becomes a document with its statistics") {
    const auto cluster = Cluster::build(figure_15());
    const auto result = con::consolidate(cluster);
    const auto spec = to_spec(result.plan, cluster, con::to_stats(result.stats));
    CHECK(spec.moves.size() == 3);
    CHECK(spec.stats.at("moves") == 3);
    CHECK(spec.stats.at("vacated_gpus") == 4);
    CHECK(spec.stats.at("vacated_weight") == 4);
    CHECK(spec.stats.at("relocation_cost") == 3);
    CHECK(spec.stats.at("value_milli") == 4000 - 3 * spec.stats.at("price"));
    CHECK(spec.stats.at("rounds") == static_cast<double>(result.stats.rounds.size()));
    CHECK(spec.stats.at("round_1_vacated_nodes") == 1);
    CHECK(spec.stats.at("round_1_moves") == 3);
    CHECK(con::rounds_of(spec) == result.stats.rounds);
    CHECK(con::rounds_of({.stats = {{"moves", 3}, {"round_2_moves", 1}, {"round_1_moves", -1e300}}}).empty());
}

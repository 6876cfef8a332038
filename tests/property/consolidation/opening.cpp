// SPDX-License-Identifier: Apache-2.0
// Opening empty nodes at a price, against exhaustive search on tiny clusters: bounds hold, plans never beat the optimum, and
// `best` nearly always reaches it.
#include "support/exhaustive.hpp"
#include "support/instances.hpp"
#include "support/plans.hpp"
#include "support/random_cluster.hpp"

#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/milp/solver.hpp>

using namespace gpusched;
using testing_support::instances;
namespace con = gpusched::consolidation;

namespace {

struct Case {
    ClusterSpec spec;
    con::Options options;  ///< `clear` and `open_price`
    testing_support::Optimum optimum;
};

/// Calls `visit(seed, case)` for many tiny clusters with one or two empty nodes more, some of them with nodes to clear; returns how many.
/// @param clearing only some nodes may be vacated, and opening costs between nothing and as much as the nodes are worth; otherwise at
///     least that
template <class Visit>
int for_each_case(bool clearing, Visit visit) {
    static constexpr std::array<std::int64_t, 3> dear{1000, 1500, 1000}, cheap{0, 400, 1000};
    int known = 0;
    for (std::uint64_t seed = 0; seed < instances<std::uint64_t>(1500); ++seed) {
        Rng rng(seed + 31);
        auto how = testing_support::tiny_cluster;
        how.max_nodes = 4;
        how.max_movable = 5;
        if (seed % 3 == 2) how.max_request = 4;
        Case c{.spec = testing_support::random_cluster(rng, how), .options = {}, .optimum = {}};
        const auto nodes = c.spec.nodes.size();
        for (std::size_t empty = 1 + rng.below(2); empty > 0; --empty) {
            auto node = c.spec.nodes[static_cast<std::size_t>(rng.below(nodes))];
            node.name = "empty" + std::to_string(empty);
            if (const auto more = rng.between(1, 2); !node.hardware) node.cpu_milli *= more;
            c.spec.nodes.push_back(std::move(node));
        }
        std::vector<bool> may_clear;
        if (clearing) {
            c.options.clear.emplace();
            for (std::size_t n = 0; n < c.spec.nodes.size(); ++n) {
                may_clear.push_back(n < nodes && rng.chance(0.5));
                if (may_clear.back()) c.options.clear->push_back(make_id<NodeId>(n));
            }
        }
        c.options.open_price = rng.pick(std::span<const std::int64_t, 3>(clearing ? cheap : dear));
        c.optimum = testing_support::exhaustive_optimum(c.spec, may_clear, 20'000, c.options.open_price);
        if (!c.optimum.complete) continue;
        ++known;
        INFO("seed " << seed);
        visit(seed, c);
    }
    return known;
}

std::int64_t healthy_gpus(const ClusterSpec& spec, const std::vector<std::string>& names) {
    std::int64_t sum = 0;
    for (const auto& node : spec.nodes)
        if (std::count(names.begin(), names.end(), node.name) == 1)
            for (int g = 0; g < node.gpu_count; ++g) sum += reference::has_failed(node, g) ? 0 : 1;
    return sum;
}

}  // namespace

TEST_CASE("no plan that opens nodes beats the bounds") {
    std::vector methods{con::BoundMethod::counting, con::BoundMethod::lp};
    const Context context{.lp = milp::clp()};
    if (context.lp == nullptr) {
        WARN("built without Clp: the LP bound is not tested");
        methods.pop_back();
    }
    for (const bool clearing : {false, true}) {
        int positive = 0, tight = 0;
        (void)for_each_case(clearing, [&](std::uint64_t, const Case& c) {
            if (c.options.open_price != 1000) return;  // bounds count vacated minus opened
            const auto cluster = Cluster::build(c.spec, IdOrder::as_listed);
            for (const auto method : methods) {
                const auto bound = con::bound(cluster, method, c.options, context);
                INFO("method " << bound.method);
                REQUIRE(c.optimum.nodes_milli <= 1000 * bound.vacated_nodes_at_most);
                REQUIRE(c.optimum.gpus_milli <= 1000 * bound.vacated_gpus_at_most);
                positive += c.optimum.gpus_milli > 0 ? 1 : 0;
                tight += c.optimum.gpus_milli > 0 && c.optimum.gpus_milli == 1000 * bound.vacated_gpus_at_most
                             ? 1
                             : 0;
            }
        });
        CAPTURE(clearing, positive, tight);
        REQUIRE(positive > instances(100));
        REQUIRE(2 * tight > positive);
    }
}

TEST_CASE("best reaches the optimum in 95 of 100 tiny clusters with nodes to open, and never beats it") {
    for (const bool clearing : {false, true})
        for (const auto objective : {con::Objective::gpus, con::Objective::nodes}) {
            int reached = 0, positive = 0, opened = 0;
            std::string missed;  // seeds
            const int known = for_each_case(clearing, [&](std::uint64_t seed, const Case& c) {
                auto options = c.options;
                options.objective = objective;
                options.seed = seed;
                options.threads = 1;
                const auto cluster = Cluster::build(c.spec, IdOrder::as_listed);
                const auto optimum =
                    objective == con::Objective::gpus ? c.optimum.gpus_milli : c.optimum.nodes_milli;
                std::int64_t best = 0;
                for (const auto preset : {con::Preset::best, con::Preset::fast, con::Preset::ipc}) {
                    options.preset = preset;
                    const auto result = con::consolidate(cluster, options);
                    const auto plan = to_spec(result.plan, cluster);
                    const auto report = testing_support::require_valid(c.spec, plan);
                    const bool gpus = objective == con::Objective::gpus;
                    const auto gained = gpus ? report.vacated_gpus : std::ssize(report.vacated_nodes);
                    const auto paid =
                        gpus ? healthy_gpus(c.spec, plan.opened_nodes) : std::ssize(plan.opened_nodes);
                    const auto value = 1000 * gained - *options.open_price * paid;
                    INFO(enum_name(preset));
                    REQUIRE(result.stats.value_milli == value);
                    REQUIRE(value >= 0);
                    REQUIRE(value <= optimum);
                    if (preset == con::Preset::best) {
                        best = value;
                        opened += plan.opened_nodes.empty() ? 0 : 1;
                    } else {
                        REQUIRE(value <= best);
                    }
                }
                if (optimum == 0) return;  // nothing to reach
                ++positive;
                if (best == optimum)
                    ++reached;
                else
                    missed += " " + std::to_string(seed);
            });
            INFO(gpusched::enum_name(objective)
                 << (clearing ? ", given nodes" : "") << ": " << reached << " of " << positive
                 << ", missed for seeds" << missed << "; " << opened << " plans open nodes; " << known
                 << " clusters");
            CHECK(reached * 100 >= positive * 95);
            CHECK(positive > instances(200));
            CHECK(known > instances(1200));
            CHECK(opened > instances(clearing ? 100 : 5));
        }
}

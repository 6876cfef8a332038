// SPDX-License-Identifier: Apache-2.0
// The noise that `polish_time` searches with reaches every node order, whatever its keys look like.
#include "example_clusters.hpp"

using namespace testing_support;

namespace {

/// The nodes in the order in which they are tried with this noise.
std::vector<NodeId> with_noise(const Cluster& cluster, const con::AnyNodeOrder& order, std::uint64_t seed) {
    std::vector<con::detail::NodeKey> keys;
    for (const auto node : cluster.nodes()) keys.emplace_back(order(cluster, node), node);
    std::sort(keys.begin(), keys.end());
    const auto before = keys;
    con::detail::add_noise(keys, seed);
    // No node is overtaken by one with more than one and a half times its key.
    double greatest = 0;
    std::vector<NodeId> nodes;
    for (const auto& [key, node] : keys) {
        const auto size = static_cast<double>(key) - std::min(0.0, static_cast<double>(before[0].first));
        REQUIRE(greatest <= 1.5 * size);
        greatest = std::max(greatest, std::min(size, std::ldexp(1.0, 58)));
        nodes.push_back(node);
    }
    std::sort(keys.begin(), keys.end());
    REQUIRE(keys == before);
    return nodes;
}

struct NearTheEnd {
    std::int64_t operator()(const Cluster&, NodeId node) const {
        return std::numeric_limits<std::int64_t>::max() - static_cast<std::int64_t>(index(node));
    }
};
struct NearTheStart {
    std::int64_t operator()(const Cluster&, NodeId node) const {
        return std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(index(node));
    }
};
struct AllAlike {
    std::int64_t operator()(const Cluster&, NodeId) const { return 0; }
};

}  // namespace

TEST_CASE("ten seeds give ten orders of the nodes for every node order") {
    const auto cluster = Cluster::build(generated(200));
    auto orders = con::node_orders();
    orders.add<NearTheEnd>("near the end");
    orders.add<NearTheStart>("near the start");
    orders.add<AllAlike>("all alike");
    for (const auto& name : orders.names()) {
        INFO(name);
        const auto order = orders.make(name);
        std::set<std::vector<NodeId>> seen;
        for (std::uint64_t seed = 1; seed <= 10; ++seed) {
            seen.insert(with_noise(cluster, order, seed));
            CHECK(with_noise(cluster, order, seed) == with_noise(cluster, order, seed));
        }
        CHECK(seen.size() == 10);
    }
}

namespace {

/// Notes in which order nodes are first looked at; nothing is accepted, so that nothing else changes.
struct NotingWhoIsAsked {
    std::vector<NodeId>* asked;
    bool operator()(const con::ChainSet& chains) const {
        if (asked->empty() || asked->back() != chains.node) asked->push_back(chains.node);
        return false;
    }
};

}  // namespace

TEST_CASE("polishing searches in other orders even if keys are small") {
    const auto cluster = Cluster::build(generated(60));
    const auto asked_in = [&](std::optional<double> polish_time) {
        std::vector<NodeId> asked;
        const con::AnyPolicies policies =
            con::Policies<con::ByGpuModel, con::FewestPods, con::TightestFit, con::CheapestVictims,
                          NotingWhoIsAsked, con::GpuWeight>{.acceptance = {&asked}};
        const ManualClock clock(1000);
        (void)con::consolidate(cluster, policies,
                               {.threads = 1, .search = {.rounds = 1, .polish_time = polish_time}},
                               {.clock = &clock});
        return asked;
    };
    const auto once = asked_in({});
    REQUIRE(once.size() > 10);
    const auto all = asked_in(0.02);
    REQUIRE(all.size() >= 3 * once.size());
    std::set<std::vector<NodeId>> searches;
    const auto step = static_cast<std::ptrdiff_t>(once.size());
    for (auto at = all.begin(); all.end() - at >= step; at += step)
        searches.insert(std::vector<NodeId>(at, at + step));
    CHECK(searches.size() >= 3);
}

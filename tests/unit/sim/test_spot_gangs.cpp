// SPDX-License-Identifier: Apache-2.0
// Spot replay: jobs whose pods must share a network domain.
#include "spot_cases.hpp"

using namespace gpusched;
using namespace spot_cases;

TEST_CASE("a gang that must stay together tries every domain") {
    const auto in = [](NodeSpec node, const char* domain) {
        node.network = {domain};
        return node;
    };
    auto gang = job("gang", hp, 8, 0, 10, 0, 2);
    gang.pod.network_affinity = NetworkAffinity{0, NetworkMode::required};
    const std::vector<NodeSpec> nodes{in(machine("n0", 8), "s0"), in(machine("n1", 8), "s1"),
                                      in(machine("n2", 8), "s1")};
    for (const auto victims : {Victims::none, Victims::random, Victims::spot, Victims::spot_exact})
        CHECK(log_of({nodes, {gang}}, plain(victims)) == "0 gang/0>n1, 0 gang/1>n2");
    // An LP gang, too; and room is made in the domain that can hold it, where the least work is lost: x for an hour.
    auto late = gang;
    late.arrival_s = 3600;
    auto borrower = gang;
    borrower.pod.priority_class = lp;
    CHECK(log_of({nodes, {borrower}}, plain()) == "0 gang/0>n1, 0 gang/1>n2");
    auto more = nodes;
    more.push_back(in(machine("n3", 8), "s2"));
    more.push_back(in(machine("n4", 8), "s2"));
    const SpotTrace full{more,
                         {job("u", lp, 8, 0, 20'000), job("v", lp, 8, 0, 20'000, 3000),
                          job("w", lp, 8, 0, 20'000), job("x", lp, 8, 0, 20'000), late}};
    for (const auto victims : {Victims::spot, Victims::spot_exact})
        CHECK(log_of(full, plain(victims)) ==
              "0 u>n0, 0 v>n1, 0 w>n2, 0 x>n3, 3600 x!, 3600 gang/0>n4, 3600 gang/1>n3, 3615 x>n3");
    const auto r = replay_spot(full, plain(Victims::random));
    CHECK(r.jobs.back().first_start_s == 3600);
    CHECK(replay_spot(full, plain(Victims::none)).jobs.back().first_start_s == 20'000);
    // A gang of victims is evicted whole, and both its nodes are used.
    auto both = borrower;
    both.pod.name = "both";
    both.work_s = 20'000;
    CHECK(log_of({{nodes[1], nodes[2]}, {both, late}}, plain()) ==
          "0 both/0>n1, 0 both/1>n2, 3600 both/0!, 3600 both/1!, 3600 gang/0>n1, 3600 gang/1>n2, "
          "3615 both/0>n1, 3615 both/1>n2");
}

TEST_CASE("a gang that must stay together runs at once exactly when a domain holds it") {
    Rng rng(11);
    int runs = 0, waits = 0;
    for (int round = 0; round < 200; ++round) {
        SpotTrace trace;
        std::map<std::string, std::int64_t>
            room;  // pods by domain; a node without position is one of its own
        const auto gpus = rng.between(1, 4), pods = rng.between(2, 6), count = rng.between(2, 8);
        for (std::int64_t n = 0; n < count; ++n) {
            auto node = machine("n" + std::to_string(n), rng.between(1, 8));
            if (rng.below(5) != 0) node.network = {"s" + std::to_string(rng.below(3))};
            room[node.network.empty() ? node.name : node.network.front()] += node.gpu_count / gpus;
            trace.nodes.push_back(node);
        }
        const bool fits =
            std::any_of(room.begin(), room.end(), [&](const auto& d) { return d.second >= pods; });
        // LP pods everywhere, of which HP jobs need not take notice.
        const bool occupied = rng.below(2) == 0;
        for (std::int64_t n = 0; occupied && n < 8 * count; ++n)
            trace.jobs.push_back(job("lp" + std::to_string(n), lp, 1, 0, 100'000, rng.between(0, 50)));
        auto gang = job("gang", hp, gpus, 100, 10, 0, pods);
        gang.pod.network_affinity = NetworkAffinity{0, NetworkMode::required};
        trace.jobs.push_back(gang);
        for (const auto victims : {Victims::none, Victims::random, Victims::spot, Victims::spot_exact}) {
            if (occupied && victims == Victims::none) continue;
            auto options = plain(victims);
            options.rankers = {rng.below(2) == 0 ? "packing" : "random"};
            options.seed = rng();
            const auto started = replay_spot(trace, options).jobs.back().first_start_s;
            CHECK(started == (fits ? 100 : -1));
            ++(fits ? runs : waits);
        }
    }
    CHECK(runs > 100);
    CHECK(waits > 100);
}

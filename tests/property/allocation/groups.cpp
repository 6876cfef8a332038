// SPDX-License-Identifier: Apache-2.0
// Gangs of two groups on random small snapshots against enumeration of all placements: never invalid, never better than the
// best, the best where it says so, and close to it elsewhere.
#include "support/instances.hpp"
#include "support/mixed_gangs.hpp"
#include "support/plans.hpp"

#include <gpusched/allocation/allocation.hpp>

using namespace gpusched;
using namespace gpusched::allocation;

namespace {

struct Instance {
    ClusterSpec spec{};
    JobRequest job{"gang", {}};
    AllocateOptions options{};
};

Instance random_instance(Rng& rng) {
    Instance made;
    const bool models = rng.chance(0.4);
    for (int n = 0, count = static_cast<int>(rng.between(2, 6)); n < count; ++n) {
        NodeSpec node{
            .name = "n" + std::to_string(n), .gpu_count = rng.between(1, 6), .cpu_milli = rng.between(2, 12)};
        node.gpu_model = models && rng.chance(0.5) ? "B" : "A";
        node.network = {"s" + std::to_string(rng.between(0, 2))};
        made.spec.nodes.push_back(node);
    }
    for (int g = 0; g < 2; ++g) {
        PodRequest group{.count = rng.between(1, 3)};
        group.pod.gpu_count = rng.between(1, 3);
        group.pod.cpu_milli = rng.between(0, 3);
        if (models) group.pod.gpu_models = {g == 0 ? "A" : "B"};
        made.job.pods.push_back(group);
    }
    if (rng.chance(0.3)) made.options.mode = NetworkMode::required;
    if (rng.chance(0.5)) {
        const double between = static_cast<double>(rng.between(1, 5));
        made.options.traffic = {{static_cast<double>(rng.between(0, 2)), between},
                                {between, static_cast<double>(rng.between(0, 2))}};
    }
    return made;
}

using Value = std::pair<double, double>;  // crossing traffic, entropy

Value value_of(const Instance& x, const std::vector<std::size_t>& nodes) {
    std::map<std::string, double> gpus;
    double all = 0;
    std::vector<std::size_t> group;
    for (std::size_t g = 0; g < x.job.pods.size(); ++g)
        for (int i = 0; i < x.job.pods[g].count; ++i) group.push_back(g);
    for (std::size_t p = 0; p < nodes.size(); ++p) {
        const auto n = static_cast<double>(x.job.pods[group[p]].pod.gpu_count);
        gpus[x.spec.nodes[nodes[p]].network[0]] += n;
        all += n;
    }
    Value value{0, 0};
    for (const auto& [name, n] : gpus) value.second -= n / all * std::log(n / all);
    if (x.options.traffic.empty()) return value;
    std::vector<std::vector<int>> pairs(2, std::vector<int>(2, 0)), crossing = pairs;
    for (std::size_t p = 0; p < nodes.size(); ++p)
        for (std::size_t q = 0; q < p; ++q) {
            const auto g = std::max(group[p], group[q]), h = std::min(group[p], group[q]);
            ++pairs[g][h];
            crossing[g][h] += x.spec.nodes[nodes[p]].network[0] != x.spec.nodes[nodes[q]].network[0];
        }
    for (std::size_t g = 0; g < 2; ++g)
        for (std::size_t h = 0; h <= g; ++h)
            if (pairs[g][h] > 0) value.first += x.options.traffic[g][h] * crossing[g][h] / pairs[g][h];
    return value;
}

void all_placements(const Instance& x, const std::function<void(const std::vector<std::size_t>&)>& visit) {
    std::vector<std::int64_t> gpus, cpu;
    for (const auto& node : x.spec.nodes) {
        gpus.push_back(node.gpu_count);
        cpu.push_back(node.cpu_milli);
    }
    std::vector<std::size_t> nodes;
    std::function<void(std::size_t, int)> place = [&](std::size_t g, int i) {
        if (g == x.job.pods.size()) return visit(nodes);
        if (i == x.job.pods[g].count) return place(g + 1, 0);
        const auto& pod = x.job.pods[g].pod;
        for (std::size_t n = i > 0 ? nodes.back() : 0; n < gpus.size(); ++n) {
            if (gpus[n] < pod.gpu_count || cpu[n] < pod.cpu_milli) continue;
            if (!pod.gpu_models.empty() && pod.gpu_models[0] != x.spec.nodes[n].gpu_model) continue;
            gpus[n] -= pod.gpu_count;
            cpu[n] -= pod.cpu_milli;
            nodes.push_back(n);
            place(g, i + 1);
            nodes.pop_back();
            gpus[n] += pod.gpu_count;
            cpu[n] += pod.cpu_milli;
        }
    };
    place(0, 0);
}

}  // namespace

TEST_CASE("gangs of two groups on 4,000 random snapshots against enumeration") {
    int placed = 0, proven = 0, best_found = 0, impossible = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        Rng rng(seed);
        const auto x = random_instance(rng);
        INFO("seed " << seed);
        Value best{1e9, 1e9};
        all_placements(x, [&](const auto& nodes) {
            const auto value = value_of(x, nodes);
            if (x.options.mode == NetworkMode::required && value.second > 1e-12) return;
            if (value.first < best.first - 1e-9 ||
                (value.first < best.first + 1e-9 && value.second < best.second))
                best = value;
        });
        const bool possible = best.first < 1e9;
        const auto with = with_job(Cluster::build(x.spec), x.job);
        auto options = x.options;
        options.groups = with.groups;
        const auto found = allocate(with.cluster, with.pods, options);
        INFO(found.reason);
        proven += found.proven;
        if (!found.placed) {
            REQUIRE(found.pods.empty());
            REQUIRE_FALSE(found.reason.empty());
            REQUIRE(found.proven);  // so small that the search always ends
            REQUIRE_FALSE(possible);
            impossible += !possible;
            continue;
        }
        ++placed;
        REQUIRE(possible);
        std::vector<std::size_t> nodes;
        for (const auto& p : found.pods) nodes.push_back(index(p.node));
        const auto value = value_of(x, nodes);
        REQUIRE(found.entropy == Catch::Approx(value.second).margin(1e-9));
        REQUIRE(found.cross_traffic == Catch::Approx(value.first).margin(1e-9));
        REQUIRE(value.first >= best.first - 1e-9);
        if (x.options.mode == NetworkMode::required) REQUIRE(value.second < 1e-12);
        if (x.options.traffic.empty()) REQUIRE(value.second >= best.second - 1e-9);
        testing_support::require_valid(with.cluster.to_spec(), with.cluster, to_plan(found));
        const bool is_best = value.first < best.first + 1e-9 && value.second < best.second + 1e-9;
        best_found += is_best;
        if (found.proven) REQUIRE(value.first < best.first + 1e-9);
        if (found.proven && x.options.traffic.empty()) REQUIRE(is_best);
    }
    CAPTURE(placed, proven, best_found, impossible);
    CHECK(placed > 2000);
    CHECK(impossible > 300);
    CHECK(proven > placed / 2);
    CHECK(best_found * 100 > placed * 95);  // the best is missed in less than 5 %
}

TEST_CASE("6,000 gangs of two and three shapes are placed if and only if that is possible") {
    std::map<std::string, int> seen;
    const auto rounds = testing_support::instances(std::uint64_t{6000});
    for (std::uint64_t seed = 0; seed < rounds; ++seed) {
        Rng rng(seed + 50'000);
        const bool plain = rng.chance(0.5);
        const auto x = testing_support::random_mixed_gang(rng, plain);
        const auto with = with_job(Cluster::build(x.spec), x.job);
        const bool possible = testing_support::EveryPlacement(x).any();
        const auto found = allocate(with.cluster, with.pods, {.groups = with.groups});
        INFO("seed " << seed << " " << found.reason);
        REQUIRE(found.placed == possible);
        if (!possible) REQUIRE(found.proven);
        if (!possible) REQUIRE(found.reason.find("limit") == std::string::npos);
        // The reason names a shared domain only if one is required.
        if (!x.required) REQUIRE(found.reason.find("share") == std::string::npos);
        if (!x.required) REQUIRE(found.obstacle != Obstacle::network);
        if (possible) {
            testing_support::require_valid(with.cluster.to_spec(), with.cluster, to_plan(found));
        }
        ++seen[std::string(plain ? "plain " : "") + (x.required ? "required " : "") +
               (x.apart ? "apart " : "") + (possible ? "possible" : "impossible")];
    }
    for (const char* kind : {"plain possible", "plain impossible", "plain required possible",
                             "plain required impossible", "possible", "impossible", "required possible",
                             "required impossible", "apart possible", "apart impossible"}) {
        INFO(kind);
        CHECK(seen[kind] >= testing_support::instances(40));
    }
}

TEST_CASE("a gang too hard for the exact search is refused as not proven") {
    // 90 pods that differ, three to a node by GPUs, whose cores fill the nodes to the last one.
    Rng rng(3);
    ClusterSpec spec;
    JobRequest job{"gang", {}};
    std::int64_t left = 30 * 1000;
    for (int i = 0; i < 90; ++i) {
        if (i % 3 == 0)
            spec.nodes.push_back({.name = "n" + std::to_string(i / 3), .gpu_count = 16, .cpu_milli = 1000});
        PodRequest group{.count = 1};
        group.pod.gpu_count = 5;
        group.pod.cpu_milli = i < 89 ? 270 + i % 2 * 60 + rng.between(0, 66) : left;
        left -= group.pod.cpu_milli;
        job.pods.push_back(group);
    }
    const auto with = with_job(Cluster::build(spec), job);
    const auto found = allocate(with.cluster, with.pods, {.groups = with.groups});
    INFO(found.reason);
    REQUIRE_FALSE(found.placed);
    CHECK_FALSE(found.proven);
    CHECK(found.obstacle == Obstacle::cpu);
    CHECK_THAT(found.reason,
               Mentions("search ended at its limit of steps, placement may exist (not proven)"));
    CHECK(found.reason.find("share") == std::string::npos);
}

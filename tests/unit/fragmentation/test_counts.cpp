// SPDX-License-Identifier: Apache-2.0
// Allocation ratio, occupancy, fragment rate and entropy.
#include "random_snapshot.hpp"

using namespace gpusched;
using namespace gpusched::fragmentation;
using namespace fragmentation_test;

namespace {

static_assert(NodeMetric<AllocationRatioMetric> && NodeMetric<OccupancyMetric> &&
              NodeMetric<FragmentRateMetric>);

// Two nodes of four GPUs, one with two; one GPU has failed.
ClusterSpec small() {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "a", .gpu_count = 4, .cpu_milli = 8000, .network = {"c", "s0"}});
    spec.nodes.push_back(
        {.name = "b", .gpu_count = 4, .cpu_milli = 8000, .network = {"c", "s1"}, .failed_gpus = {3}});
    spec.nodes.push_back({.name = "c", .gpu_count = 2, .cpu_milli = 8000});
    spec.nodes.push_back({.name = "cpu", .cpu_milli = 8000});
    const auto put = [&](std::string name, PriorityClass cls, std::string node, std::vector<int> gpus,
                         std::int64_t share = 1000, bool standby = false) {
        spec.tasks.push_back({.name = name,
                              .job = "j",
                              .gpu_count = static_cast<std::int64_t>(gpus.size()),
                              .gpu_share_milli = share,
                              .priority_class = cls,
                              .standby = standby,
                              .node = node,
                              .gpus = gpus});
    };
    put("hp", PriorityClass::hp, "a", {0, 1});
    put("lent", PriorityClass::hp, "a", {2}, 1000, true);
    put("spot", PriorityClass::lp, "a", {2});  // on what is lent
    put("spot2", PriorityClass::lp, "b", {0}, 250);
    put("misc", PriorityClass::other, "b", {3});  // on the failed GPU
    return spec;
}

}  // namespace

TEST_CASE("allocation ratio by hand") {
    const auto ratio = allocation_ratio(Cluster::build(small()));
    CHECK(ratio == AllocationRatio{10000, 3000, 1250, 1000, 5250 - 1000});
    CHECK(ratio.hp() == Catch::Approx(0.3));
    CHECK(ratio.total() == Catch::Approx(0.425));
    CHECK(allocation_ratio(Cluster()).total() == 0.0);
    CHECK(allocation_ratio(Cluster()).hp() == 0.0);
}

TEST_CASE("occupancy by hand") {
    auto spec = small();
    CHECK(occupancy(Cluster::build(spec)) ==
          Occupancy{1, 2, 0});                            // c is empty, a has GPU 3, b has GPUs 1 and 2
    CHECK(occupancy(Cluster::build(spec)).nodes() == 3);  // the node without GPUs does not count
    spec.tasks.push_back({.name = "agent", .daemon = true, .node = "c"});
    CHECK(occupancy(Cluster::build(spec)).empty == 1);
    spec.tasks.push_back({.name = "last", .gpu_count = 1, .gpu_share_milli = 1, .node = "a", .gpus = {3}});
    CHECK(occupancy(Cluster::build(spec)) == Occupancy{1, 1, 1});  // a part of a GPU is not an idle GPU
    spec.nodes[1].schedulable = false;
    CHECK(occupancy(Cluster::build(spec)) == Occupancy{1, 0, 1});
    CHECK(occupancy(Cluster::build(spec), {.include_cordoned = true}) == Occupancy{1, 1, 1});
}

TEST_CASE("fragment rate by hand") {
    const auto cluster = Cluster::build(small());
    // Idle: a 1 (GPU 3), b .75 + 1 + 1, c 2.
    CHECK(fragment_rate(cluster, {.gpus = 1}) == FragmentRate{5750, 750});
    CHECK(fragment_rate(cluster, {.gpus = 2}) == FragmentRate{5750, 1750});
    CHECK(fragment_rate(cluster, {.gpus = 3}) == FragmentRate{5750, 5750});
    CHECK(fragment_rate(cluster, {.gpus = 2}).rate() == Catch::Approx(1.75 / 5.75));
    CHECK(fragment_rate(Cluster()).rate() == 0.0);
    auto spec = small();
    spec.nodes[2].schedulable = false;
    CHECK(fragment_rate(Cluster::build(spec), {.gpus = 2}) == FragmentRate{3750, 1750});
    CHECK(fragment_rate(Cluster::build(spec), {.gpus = 2, .include_cordoned = true}) ==
          FragmentRate{5750, 1750});
    REQUIRE_THROWS_MESSAGE(fragment_rate(cluster, {.gpus = 0}), InvalidInput, "gpus: 0; expected 1 64");
    REQUIRE_THROWS_MESSAGE(fragment_rate(cluster, {.gpus = 65}), InvalidInput, "gpus: 65; expected 1 64");
}

TEST_CASE("entropy by hand") {
    const auto h = [](std::vector<std::int64_t> parts) { return entropy(parts); };
    CHECK(h({}) == 0.0);
    CHECK(h({0, 0}) == 0.0);
    CHECK(h({7}) == 0.0);
    CHECK(h({7, 0}) == 0.0);
    CHECK(h({5, 5}) == Catch::Approx(std::log(2)));
    CHECK(h({3, 3, 3, 3}) == Catch::Approx(std::log(4)));
    CHECK(h({3, 1}) == Catch::Approx(0.75 * std::log(4.0 / 3) + 0.25 * std::log(4.0)));
}

TEST_CASE("entropy of jobs by hand") {
    auto spec = small();
    spec.tasks.push_back({.name = "nowhere", .job = "j", .gpu_count = 2, .node = "c", .gpus = {0, 1}});
    spec.tasks.push_back({.name = "pending", .job = "j", .gpu_count = 4});
    spec.tasks.push_back({.name = "single", .job = "k", .gpu_count = 1, .node = "b", .gpus = {1}});
    const auto cluster = Cluster::build(spec);
    const auto job = *cluster.inventory().tasks.job.data();
    // s0: 4 (the lent one counts for its owner), s1: 1.25, node c, which is nowhere: 2.
    const auto expected = [](std::vector<double> parts) {
        double sum = 0, out = 0;
        for (const double p : parts) sum += p;
        for (const double p : parts) out -= p / sum * std::log(p / sum);
        return out;
    };
    CHECK(job_entropy(cluster, job) == Catch::Approx(expected({4, 1.25, 2})));
    CHECK(job_entropy(cluster, job, 0) == Catch::Approx(expected({5.25, 2})));
    const auto all = job_entropies(cluster);
    REQUIRE(all.size() == 2);
    CHECK(all[0] == job_entropy(cluster, job));
    CHECK(all[1] == 0.0);
    REQUIRE_THROWS_MESSAGE(job_entropy(cluster, job, 2), InvalidInput, "level: 2; expected -1 1");
    REQUIRE_THROWS_MESSAGE(job_entropies(cluster, -2), InvalidInput, "level: -2; expected -1 1");
}

TEST_CASE("counts agree with descriptions of random clusters") {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        const auto spec = random_snapshot(seed);
        const auto cluster = Cluster::build(spec);
        const auto free = free_nodes(spec);
        const int k = 1 + static_cast<int>(seed % 4);
        Occupancy nodes;
        FragmentRate rate;
        std::int64_t free_milli = 0, capacity = 0;
        for (std::size_t i = 0; i < spec.nodes.size(); ++i) {
            const auto& n = spec.nodes[i];
            capacity += 1000 * n.gpu_count;
            if (n.gpu_count == 0 || !n.schedulable) continue;
            bool occupied = false;
            for (const auto& t : spec.tasks) occupied |= t.node && *t.node == n.name && !t.daemon;
            const auto whole = std::count(free[i].gpu_milli.begin(), free[i].gpu_milli.end(), 1000);
            ++(!occupied ? nodes.empty : whole > 0 ? nodes.not_fully_occupied : nodes.fully_occupied);
            for (const int milli : free[i].gpu_milli)
                if (milli < 1000 || whole < k) rate.unusable_milli += milli;
            rate.idle_milli += free[i].idle_milli();
        }
        REQUIRE(occupancy(cluster) == nodes);
        REQUIRE(fragment_rate(cluster, {.gpus = k}) == rate);

        // Without failed GPUs what is allocated is what is not free.
        auto healthy = spec;
        for (auto& n : healthy.nodes) n.failed_gpus.clear();
        for (const auto& n : free_nodes(healthy)) free_milli += n.idle_milli();
        const auto ratio = allocation_ratio(cluster);
        REQUIRE(ratio.capacity_milli == capacity);
        REQUIRE(ratio.held_milli == capacity - free_milli);
        std::map<PriorityClass, std::int64_t> by_class;
        for (const auto& t : spec.tasks)
            if (t.node) by_class[t.priority_class] += t.gpu_count * t.gpu_share_milli;
        REQUIRE(ratio.hp_milli == by_class[PriorityClass::hp]);
        REQUIRE(ratio.lp_milli == by_class[PriorityClass::lp]);
        REQUIRE(ratio.other_milli == by_class[PriorityClass::other]);
        const auto all = job_entropies(cluster);
        for (std::size_t j = 0; j < all.size(); ++j)
            REQUIRE(all[j] == job_entropy(cluster, make_id<JobId>(j)));
    }
}

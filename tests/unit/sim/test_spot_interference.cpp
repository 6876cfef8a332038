// SPDX-License-Identifier: Apache-2.0
// Spot replay with interference: paces worked out by hand, filters, and policies that change what interference costs.
#include "spot_cases.hpp"

#include <gpusched/allocation/filters.hpp>

using namespace gpusched;
using namespace spot_cases;

namespace {

SpotJob cores(std::string name, std::int64_t cores, std::int64_t arrival, std::int64_t work) {
    auto j = job(std::move(name), lp, 0, arrival, work);
    j.pod.cpu_milli = cores * 1000;
    return j;
}
SpotJob part(std::string name, PriorityClass of, std::int64_t milli, std::int64_t arrival,
             std::int64_t work) {
    auto j = job(std::move(name), of, 1, arrival, work);
    j.pod.gpu_share_milli = milli;
    return j;
}

}  // namespace

TEST_CASE("a GPU job slows down while CPU-only pods are on its node, and only then") {
    // 32 of 64 cores for 300 s from second 100, at half the slope of 1: 1.5 times as long. 200 s of work in these 300 s.
    const SpotTrace trace{{machine("a", 2)}, {job("gpu", hp, 1, 0, 1000), cores("cpu", 32, 100, 300)}};
    auto options = plain();
    CHECK(replay_spot(trace, options).jobs[0].finish_s == 1000);
    options.cpu_slowdown_milli = {1000};
    const auto r = replay_spot(trace, options);
    CHECK(r.jobs[0].finish_s == 1100);
    CHECK(r.jobs[0].slowed_s == 100);
    CHECK(r.jobs[0].held_s == 1100);
    CHECK(r.jobs[0].kept_s == 1000);
    CHECK(r.jobs[1].finish_s == 400);  // CPU-only pods are not slowed
    CHECK(r.jobs[1].slowed_s == 0);
    CHECK(r.hp_slowdown.count == 1);
    CHECK(r.hp_slowdown.mean == Catch::Approx(0.1));
    CHECK(r.lp_slowdown.count == 0);  // without GPUs
}

TEST_CASE("a daemon is not slowed, and slows no task") {
    auto agent = job("agent", hp, 1, 0, 1000);
    agent.pod.daemon = true;
    auto collector = cores("collector", 32, 0, 2000);
    collector.pod.daemon = true;
    const SpotTrace trace{{machine("a", 2)}, {agent, collector, job("gpu", hp, 1, 0, 1000)}};
    auto options = plain();
    options.cpu_slowdown_milli = {1000};
    CHECK(replay_spot(trace, options).jobs[2].finish_s == 1000);
    auto beside = trace;
    beside.jobs[1] = cores("cpu", 32, 0, 2000);
    const auto r = replay_spot(beside, options);
    CHECK(r.jobs[0].finish_s == 1000);
    CHECK(r.jobs[2].finish_s == 1500);
}

TEST_CASE("the slowest pod sets the pace of its gang") {
    const SpotTrace trace{{machine("a", 1), machine("b", 1)},
                          {cores("cpu", 16, 0, 10'000), job("gang", hp, 1, 10, 1000, 0, 2)}};
    auto options = plain();
    options.cpu_slowdown_milli = {400};
    CHECK(replay_spot(trace, options).jobs[1].finish_s == 10 + 1100);
}

TEST_CASE("an eviction finds as much work done as the pace allowed; checkpoints come by work") {
    // At 2,000 thousandths the LP job has done a third of 900 s, 300 s, when it leaves; 200 of them are safe.
    const SpotTrace trace{
        {machine("a", 1)},
        {cores("cpu", 32, 0, 5000), job("lp", lp, 1, 0, 1000, 200), job("hp", hp, 1, 900, 100)}};
    auto options = plain();
    options.cpu_slowdown_milli = {2000, 2000};
    const auto r = replay_spot(trace, options);
    CHECK(r.jobs[1].lost_s == 100);
    CHECK(r.jobs[2].finish_s == 900 + 5 + 300);
    CHECK(r.jobs[1].slowed_s == 600 + 1600);
    CHECK(r.jobs[1].finish_s == 1205 + 2400);
    const auto& b = r.jobs[1];
    CHECK(b.held_s == b.startup_s + b.kept_s + b.lost_s + b.open_s + b.slowed_s);
}

TEST_CASE("an online fraction slows down by offline fractions on its GPU alone") {
    // "first" on GPU 0, where offline work joins it; "whole" on GPU 1.
    const SpotTrace trace{
        {machine("a", 2)},
        {part("first", hp, 500, 0, 1000), job("whole", hp, 1, 0, 1000), part("offline", lp, 500, 200, 600)}};
    auto options = plain();
    options.offline_slowdown_milli = {400};
    const auto r = replay_spot(trace, options);
    // 600 s at 1.2: 500 s of work.
    CHECK(r.jobs[0].finish_s == 1100);
    CHECK(r.jobs[1].finish_s == 1000);
    CHECK(r.jobs[2].finish_s == 800);
    // With a limit below a half it waits until a GPU is free.
    options.filters = {"offline_limit"};
    options.gpu_picker = "offline_limit";
    const auto limited = replay_spot(trace, options);
    CHECK(limited.jobs[0].finish_s == 1000);
    CHECK(limited.jobs[2].first_start_s == 1000);
}

TEST_CASE("the ranker takes the curve of the replay, and spares GPU jobs") {
    const SpotTrace trace{
        {machine("a", 2), machine("b", 2)},
        {job("gpu", hp, 1, 0, 1000), cores("cpu", 32, 1, 300), job("late", hp, 1, 10, 1000)}};
    auto options = plain();
    options.cpu_slowdown_milli = {1000};
    options.rankers = {"packing"};
    CHECK(log_of(trace, options) == "0 gpu>a, 1 cpu>a, 10 late>a");
    CHECK(replay_spot(trace, options).jobs[0].slowed_s == 100);
    options.rankers = {"interference", "packing"};
    CHECK(log_of(trace, options) == "0 gpu>a, 1 cpu>b, 10 late>a");
    CHECK(replay_spot(trace, options).jobs[0].slowed_s == 0);
    // With a curve that is flat up to there, no task is slowed, and packing decides.
    options.cpu_slowdown_milli = {0, 1000};
    CHECK(log_of(trace, options) == "0 gpu>a, 1 cpu>a, 10 late>a");
}

TEST_CASE("a filter that refuses one pod does not stop larger pods") {
    // The CPU-only job may not exceed a quarter of the cores; the GPU job behind it asks for more cores and passes.
    auto known = allocation::registries();
    known.filters.add("quarter", allocation::CoLocationLimit{250});
    auto greedy = job("gpu", lp, 1, 0, 100);
    greedy.pod.cpu_milli = 40'000;
    const SpotTrace trace{{machine("a", 1)}, {cores("cpu", 20, 0, 100), greedy}};
    auto options = plain();
    options.filters = {"quarter"};
    const auto r = replay_spot(trace, options, {}, known);
    CHECK(r.jobs[0].first_start_s == -1);
    CHECK(r.jobs[1].first_start_s == 0);
}

TEST_CASE("an HP pod does not evict for a node that a filter refuses") {
    auto known = allocation::registries();
    known.filters.add("b_alone",
                      [](const Cluster& cluster, TaskId, NodeId node) { return cluster.name(node) == "b"; });
    const SpotTrace trace{{machine("a", 1), machine("b", 1)},
                          {job("first", hp, 1, 0, 500), job("hp", hp, 1, 10, 10)}};
    auto options = plain();
    options.filters = {"b_alone"};
    std::string log;
    options.observer = [&](std::int64_t now, const Cluster& before, const Plan& plan) {
        for (const auto& p : plan.placements)
            log += std::to_string(now) + " " + before.name(p.task) + ">" + before.name(p.node) + ", ";
    };
    (void)replay_spot(trace, options, {}, known);
    CHECK(log == "0 first>b, 500 hp>b, ");
}

TEST_CASE("an HP pod evicts on another node if the filter refuses the cheapest one") {
    // On n0 an HP job holds the limit; its LP job is the younger one, and would lose less than that of n1.
    const auto on = [](SpotJob j, const char* node) {
        j.pod.node_selector = {{"host", node}};
        return j;
    };
    auto n0 = machine("n0", 1), n1 = machine("n1", 1);
    n0.labels = {{"host", "n0"}}, n1.labels = {{"host", "n1"}};
    auto first = cores("first", 32, 0, 100'000), late = cores("late", 32, 500, 10);
    first.pod.priority_class = late.pod.priority_class = hp;
    auto cheap = job("cheap", lp, 1, 400, 100'000), dear = job("dear", lp, 1, 0, 100'000);
    cheap.pod.cpu_milli = 32'000, dear.pod.cpu_milli = 48'000;
    const SpotTrace trace{{n0, n1}, {on(first, "n0"), on(dear, "n1"), on(cheap, "n0"), late}};
    for (const auto victims : {Victims::random, Victims::spot, Victims::spot_exact}) {
        auto options = plain(victims);
        CHECK(replay_spot(trace, options).jobs[3].first_start_s == 500);
        options.filters = {"co_location_limit"};
        const auto r = replay_spot(trace, options);
        CHECK(r.jobs[3].first_start_s == 500);
        CHECK(r.jobs[1].evictions == 1);
        CHECK(r.jobs[2].evictions == 0);
    }
}

TEST_CASE("LP pods that hold a limit leave for an HP pod, and no others") {
    // Half of 64 cores are the limit. "gpu" would lose least, but does not stand in the way.
    auto late = cores("late", 8, 1000, 10);
    late.pod.priority_class = hp;
    const SpotTrace trace{{machine("a", 2)},
                          {cores("old", 12, 0, 100'000), cores("new", 16, 100, 100'000),
                           job("gpu", lp, 1, 900, 100'000), late}};
    for (const auto victims : {Victims::random, Victims::spot, Victims::spot_exact}) {
        auto options = plain(victims);
        options.filters = {"co_location_limit"};
        const auto r = replay_spot(trace, options);
        CHECK(r.jobs[3].first_start_s == 1000);
        CHECK(r.jobs[3].wait_s == 5);
        if (victims == Victims::random) continue;
        CHECK(r.jobs[2].evictions == 0);
        CHECK(r.jobs[0].evictions + r.jobs[1].evictions == 1);
    }
    auto nobody = plain(Victims::none);
    nobody.filters = {"co_location_limit"};
    CHECK(replay_spot(trace, nobody).jobs[3].first_start_s > 1000);
}

TEST_CASE("LP pods that hold a limit leave for an HP gang of one domain") {
    auto gang = cores("gang", 24, 1000, 10);
    gang.pod.priority_class = hp;
    gang.pods = 2;
    gang.pod.network_affinity = NetworkAffinity{0, NetworkMode::required};
    auto a = machine("a", 1), b = machine("b", 1), c = machine("c", 1);
    a.network = {"s"}, b.network = {"s"}, c.network = {"t"};
    const SpotTrace trace{{a, b, c}, {cores("lp", 16, 0, 100'000), gang}};
    for (const auto victims : {Victims::random, Victims::spot, Victims::spot_exact}) {
        auto options = plain(victims);
        options.filters = {"co_location_limit"};
        const auto r = replay_spot(trace, options);
        CHECK(r.jobs[1].first_start_s == 1000);
        CHECK(r.jobs[0].evictions == 1);
    }
}

TEST_CASE("interference out of range is named") {
    auto options = plain();
    options.cpu_slowdown_milli = {5000};
    options.offline_slowdown_milli = {2, 1};
    CHECK_THROWS_WITH(replay_spot({}, options),
                      Mentions("cpu_slowdown_milli[0]") && Mentions("offline_slowdown_milli[1]"));
    options = plain();
    options.filters = {"co_location"};
    CHECK_THROWS_WITH(replay_spot({}, options),
                      Mentions("filter 'co_location' one of mean 'co_location_limit'"));
}

TEST_CASE("generated CPU-only jobs change no other job, and have the requested size") {
    sim::SpotTraceOptions with{.nodes = 32, .hours = 240, .cpu_load = 0.3, .seed = 3};
    auto without = with;
    without.cpu_load = 0;
    const auto trace = sim::generate_spot_trace(with), plain = sim::generate_spot_trace(without);
    SpotTrace others = trace;
    std::erase_if(others.jobs, [](const SpotJob& j) { return j.pod.gpu_count == 0; });
    CHECK(others == plain);
    double asked = 0;
    for (const auto& j : trace.jobs)
        if (j.pod.gpu_count == 0) asked += static_cast<double>(j.pods * j.pod.cpu_milli * j.work_s);
    const double all = 32 * static_cast<double>(trace.nodes[0].cpu_milli) * 240 * 3600;
    CHECK(asked / all == Catch::Approx(0.3).margin(0.05));
}

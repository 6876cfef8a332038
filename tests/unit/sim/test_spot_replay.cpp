// SPDX-License-Identifier: Apache-2.0
// Spot replay: small cases worked out by hand, and what the caller may get wrong. The generated jobs against what was asked for.
#include "spot_cases.hpp"

using namespace gpusched;
using namespace spot_cases;

TEST_CASE("an evicted job goes on from its last checkpoint") {
    const SpotTrace trace{{machine("a", 2)}, {job("lp", lp, 2, 0, 1000, 300), job("hp", hp, 1, 500, 100)}};
    auto options = plain();
    options.start_delay_s = 10;
    CHECK(log_of(trace, options) == "0 lp>a, 500 lp!, 500 hp>a, 605 lp>a");
    const auto r = replay_spot(trace, options);
    // 490 s of work at 500, of which 300 are safe. The HP job waits 5 s for its victim and works until 605.
    CHECK(r.jobs[0] == sim::SpotJobRecord{.first_start_s = 0,
                                          .finish_s = 605 + 10 + 700,
                                          .wait_s = 0,
                                          .evictions = 1,
                                          .held_s = 500 + 710,
                                          .startup_s = 20,
                                          .kept_s = 1000,
                                          .lost_s = 190,
                                          .open_s = 0});
    CHECK(r.jobs[1] == sim::SpotJobRecord{.first_start_s = 500,
                                          .finish_s = 605,
                                          .wait_s = 5,
                                          .evictions = 0,
                                          .held_s = 105,
                                          .startup_s = 5,
                                          .kept_s = 100,
                                          .lost_s = 0,
                                          .open_s = 0});
    CHECK(r.preemptions == 1);
    CHECK(r.lp_evictions == 1);
    CHECK(r.lp_lost_gpu_h == Catch::Approx(2 * 190 / 3600.0));
    CHECK(r.lp_kept_gpu_h == Catch::Approx(2 * 1000 / 3600.0));
    CHECK(r.lp_startup_gpu_h == Catch::Approx(2 * 20 / 3600.0));
    CHECK(r.lp_completion_s.mean == 1315);
    CHECK(r.hp_wait_s.max == 5);
    CHECK(r.end_s == 1315);
    // Measured until the last arrival (at 500, so 501 s): the LP job holds both GPUs for 500 s, the HP job one for 1 s.
    CHECK(r.lp_allocation == Catch::Approx(500.0 / 501));
    CHECK(r.hp_allocation == Catch::Approx(0.5 / 501));
    // Without checkpoints all of it is lost.
    auto none = trace;
    none.jobs[0].pod.checkpoint_interval = 0;
    const auto lost = replay_spot(none, options).jobs[0];
    CHECK(lost.lost_s == 490);
    CHECK(lost.finish_s == 605 + 10 + 1000);
}

TEST_CASE("the least work is lost, and only preemptible tasks leave") {
    // At 450 "x" has lost 50 s since its checkpoint, "y" 150 s.
    SpotTrace trace{
        {machine("a", 1), machine("b", 1)},
        {job("y", lp, 1, 0, 1000, 300), job("x", lp, 1, 0, 1000, 100), job("hp", hp, 1, 450, 10)}};
    for (const auto victims : {Victims::spot, Victims::spot_exact})
        CHECK(log_of(trace, plain(victims)) == "0 y>a, 0 x>b, 450 x!, 450 hp>b, 465 x>b");
    CHECK(log_of(trace, plain(Victims::none)) == "0 y>a, 0 x>b, 1000 hp>a");
    std::swap(trace.jobs[0].pod.checkpoint_interval, trace.jobs[1].pod.checkpoint_interval);
    CHECK(log_of(trace, plain()) == "0 y>a, 0 x>b, 450 y!, 450 hp>a, 465 y>a");
    trace.jobs[0].pod.preemptible = trace.jobs[1].pod.preemptible = false;
    for (const auto victims : {Victims::spot, Victims::spot_exact, Victims::random})
        CHECK(log_of(trace, plain(victims)) == "0 y>a, 0 x>b, 1000 hp>a");
}

TEST_CASE("the paper's prefix takes the cheapest first, the exact set only the needed victims") {
    // On one node of 4 GPUs: costs 1 x 50 (x), 3 x 100 (y). Three GPUs are needed: the prefix is x and y, y alone will do.
    const SpotTrace trace{
        {machine("a", 4)},
        {job("y", lp, 3, 0, 10'000, 350), job("x", lp, 1, 0, 10'000, 400), job("hp", hp, 3, 450, 10)}};
    CHECK(log_of(trace, plain(Victims::spot)) == "0 y>a, 0 x>a, 450 y!, 450 x!, 450 hp>a, 450 x>a, 465 y>a");
    CHECK(log_of(trace, plain(Victims::spot_exact)) == "0 y>a, 0 x>a, 450 y!, 450 hp>a, 465 y>a");
}

TEST_CASE("random victims are any that suffice") {
    SpotTrace trace;
    for (int i = 0; i < 4; ++i) {
        trace.nodes.push_back(machine(std::string(1, static_cast<char>('a' + i)), 1));
        trace.jobs.push_back(job("lp" + std::to_string(i), lp, 1, 0, 100'000, 60));
    }
    trace.jobs.push_back(job("hp", hp, 1, 30, 10));
    std::vector<int> hit(4, 0);
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        auto options = plain(Victims::random);
        options.seed = seed;
        const auto r = replay_spot(trace, options);
        int evictions = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            hit[i] += static_cast<int>(r.jobs[i].evictions);
            evictions += static_cast<int>(r.jobs[i].evictions);
        }
        REQUIRE(evictions == 1);
    }
    for (const auto times : hit) CHECK((times > 25 && times < 75));  // 50 on average, 4 standard deviations
}

TEST_CASE("a gang runs whole, is evicted whole, and its other places go to others") {
    const SpotTrace trace{
        {machine("a", 1), machine("b", 1)},
        {job("gang", lp, 1, 0, 1000, 100, 2), job("small", lp, 1, 10, 50), job("hp", hp, 1, 250, 100)}};
    CHECK(log_of(trace, plain()) ==
          "0 gang/0>a, 0 gang/1>b, 250 gang/0!, 250 gang/1!, 250 hp>a, 250 small>b, "
          "355 gang/0>a, 355 gang/1>b");
    const auto r = replay_spot(trace, plain());
    CHECK(r.jobs[0].lost_s == 50);
    CHECK(r.jobs[0].evictions == 1);
    CHECK(r.lp_lost_gpu_h == Catch::Approx(2 * 50 / 3600.0));
    CHECK(r.jobs[0].finish_s == 355 + 800);
    // Two pods of one HP job, and one fits nowhere even after evictions: no task is evicted.
    const SpotTrace full{
        {machine("a", 1), machine("b", 1)},
        {job("first", hp, 1, 0, 1000), job("lp", lp, 1, 0, 2000), job("hp", hp, 1, 10, 5, 0, 2)}};
    CHECK(log_of(full, plain()) == "0 first>a, 0 lp>b, 1000 lp!, 1000 hp/0>a, 1000 hp/1>b, 1010 lp>a");
}

TEST_CASE("a pod admitted by eviction gets its devices") {
    // An HP pod needs the GPU of the LP pod and a device that stands idle; another one no GPU, but the device that LP holds.
    SpotTrace trace{{machine("a", 1)}, {job("lp", lp, 1, 0, 1000), job("hp", hp, 1, 100, 10)}};
    const auto device = [](TaskSpec& pod) {
        pod.device_count = 1;
        pod.device_classes = {"mig-1g"};
    };
    trace.nodes[0].devices = {{"mig-1g", 1}};
    device(trace.jobs[1].pod);
    const auto check = [&] {
        for (const auto victims : {Victims::spot, Victims::spot_exact, Victims::random})
            CHECK(log_of(trace, plain(victims)) == "0 lp>a, 100 lp!, 100 hp>a, 115 lp>a");
    };
    check();
    for (auto& each : trace.jobs) each.pod.gpu_count = 0, device(each.pod);
    check();
}

TEST_CASE("rankers decide in turn; eviction history is that of the replay") {
    // "one" is evicted from b; when "two" comes, both nodes are empty.
    const SpotTrace trace{{machine("a", 1), machine("b", 1)},
                          {job("block", hp, 1, 0, 100), job("one", lp, 1, 0, 60), job("hp", hp, 1, 50, 10),
                           job("two", lp, 1, 500, 10), job("three", hp, 1, 600, 10)}};
    auto options = plain();
    const std::string until_then = "0 block>a, 0 one>b, 50 one!, 50 hp>b, 65 one>b, ";
    CHECK(log_of(trace, options) == until_then + "500 two>a, 600 three>a");
    options.rankers = {"eviction_history"};
    CHECK(log_of(trace, options) == until_then + "500 two>a, 600 three>b");
    // What was before the replay counts as well: here b is the calmer one of two volatile nodes.
    auto volatile_a = trace;
    volatile_a.nodes[0].eviction_count = 7;
    volatile_a.nodes[1].eviction_count = 2;
    CHECK(log_of(volatile_a, options) == until_then + "500 two>b, 600 three>a");
    // The other way round: HP first has the node of LP.
    const SpotTrace mixed{{machine("a", 4), machine("b", 4)},
                          {job("lp", lp, 2, 0, 1000), job("hp", hp, 2, 0, 1000), job("late", hp, 1, 10, 10)}};
    options.rankers = {"packing", "homogeneous"};
    CHECK(log_of(mixed, options) == "0 hp>a, 0 lp>a, 10 late>b");
    options.rankers = {"homogeneous", "packing"};
    CHECK(log_of(mixed, options) == "0 hp>a, 0 lp>b, 10 late>a");
}

TEST_CASE("rankers of one's own are chosen by name, and made ready with the cluster as it is") {
    /// Nodes on which fewer tasks run, counted once for each ranking.
    struct Quietest {
        std::vector<std::int64_t> occupants{};
        Quietest for_task(const Cluster& cluster, TaskId) const {
            Quietest ready;
            for (const auto node : cluster.nodes()) ready.occupants.push_back(cluster.occupants(node));
            return ready;
        }
        std::int64_t operator()(const Cluster& cluster, TaskId, NodeId node) const {
            return -(occupants.empty() ? cluster.occupants(node) : occupants[index(node)]);
        }
    };
    const SpotTrace trace{
        {machine("a", 4), machine("b", 4)},
        {job("x", lp, 1, 0, 1000), job("y", lp, 1, 10, 1000), job("z", lp, 1, 20, 1000, 0, 2)}};
    auto known = allocation::registries();
    known.rankers.add<Quietest>("quietest");
    known.rankers.add("expecting",
                      [](const Inventory&, const fragmentation::Workload&) { return Quietest{}; });
    auto options = plain();
    options.rankers = {"quietest"};
    std::string log;
    options.observer = [&](std::int64_t, const Cluster& before, const Plan& plan) {
        for (const auto& p : plan.placements) log += before.name(p.node);
    };
    (void)replay_spot(trace, options, {}, known);
    CHECK(log == "abab");
    CHECK_THROWS_MESSAGE(replay_spot(trace, options), InvalidInput, "ranker 'quietest' one of");
    options.rankers = {"expecting"};
    CHECK_THROWS_MESSAGE(replay_spot(trace, options, {}, known), InvalidInput,
                         "rankers 'expecting' no workload");
}

TEST_CASE("HP jobs alone") {
    const SpotTrace trace{{machine("a", 2)}, {job("lp", lp, 2, 0, 1000), job("hp", hp, 1, 500, 100)}};
    auto options = plain();
    options.spot_jobs = false;
    CHECK(log_of(trace, options) == "500 hp>a");
    const auto r = replay_spot(trace, options);
    CHECK(r.jobs[0] == sim::SpotJobRecord{});
    CHECK(r.lp_unfinished == 0);
    CHECK(r.end_s == 600);
}

TEST_CASE("consolidation moves HP pods and frees nodes") {
    // "b" stays alone on its node from 50 on, "c" on the other; from 4000 on a job wants a whole node.
    const SpotTrace trace{{machine("m", 2), machine("n", 2)},
                          {job("a", hp, 2, 0, 50), job("b", hp, 1, 10, 9990), job("c", hp, 1, 100, 9900),
                           job("whole", hp, 2, 4000, 100)}};
    auto options = plain();
    options.rankers = {"least_allocated"};
    CHECK(log_of(trace, options) == "0 a>m, 10 b>n, 100 c>m, 10000 whole>m");
    options.consolidate_every_h = 1;
    options.measure_until_s = 8000;
    const auto log = log_of(trace, options);
    CHECK((log == "0 a>m, 10 b>n, 100 c>m, 3600 c=n, 4000 whole>m" ||
           log == "0 a>m, 10 b>n, 100 c>m, 3600 b=m, 4000 whole>n"));
    const auto r = replay_spot(trace, options);
    CHECK(r.moves == 1);
    CHECK(r.consolidations == 1);
    CHECK(r.hp_wait_s.max == 0);
}

TEST_CASE("measured jobs, and jobs that never fit") {
    SpotTrace trace{{machine("a", 1)}, {}};
    for (int i = 0; i < 4; ++i) trace.jobs.push_back(job("lp" + std::to_string(i), lp, 1, i * 100, 100));
    trace.jobs.push_back(job("large", lp, 2, 350, 1));
    auto options = plain();
    options.measure_from_s = 100;
    options.measure_until_s = 300;
    auto r = replay_spot(trace, options);
    CHECK(r.lp_completion_s == sim::Spread{2, 100, 100, 100, 100, 100});
    CHECK(r.lp_allocation == Catch::Approx(1));
    CHECK(r.end_s == 300);
    CHECK(r.jobs[3].finish_s == -1);
    r = replay_spot(trace, plain());
    CHECK(r.lp_unfinished == 1);
    CHECK(r.end_s == 400);
    CHECK(r.timeline.time_s == std::vector<std::int64_t>{0});
    CHECK(replay_spot({}, plain()).jobs.empty());
}

TEST_CASE("allocation is that of the whole time measured, even when nothing happens any more") {
    const SpotTrace trace{{machine("a", 8)}, {job("hp", hp, 8, 0, 3600)}};
    auto options = plain();
    options.measure_until_s = 36'000;
    auto r = replay_spot(trace, options);
    CHECK(r.hp_allocation == Catch::Approx(0.1));
    CHECK(r.end_s == 36'000);
    CHECK(r.timeline.time_s.size() == 11);
    CHECK(r.timeline.hp_gpu_milli.back() == 0);
    // A job of a second at the end makes little difference.
    auto more = trace;
    more.jobs.push_back(job("last", hp, 8, 35'999, 1));
    CHECK(replay_spot(more, options).hp_allocation == Catch::Approx(0.1).margin(1e-4));
    options.measure_from_s = 7200;
    CHECK(replay_spot(trace, options).hp_allocation == 0);
}

TEST_CASE("a replay has an end, however long its jobs wait") {
    // One after the other they would take 95 years; the last sample is at the hour before the end.
    const SpotTrace trace{{machine("a", 1)},
                          {job("a", hp, 1, 0, 1'000'000'000), job("b", hp, 1, 0, 1'000'000'000),
                           job("c", hp, 1, 0, 1'000'000'000)}};
    const auto r = replay_spot(trace, plain());
    CHECK(r.stop_reason == StopReason::time_limit);
    CHECK(r.end_s == sim::longest_replay_s);
    CHECK(r.hp_unfinished == 2);
    CHECK(r.timeline.time_s.size() == 277'778);
    CHECK(r.jobs[0].finish_s == 1'000'000'000);
    CHECK(r.jobs[1].first_start_s == 1'000'000'000);
    CHECK(replay_spot({{machine("a", 1)}, {job("a", hp, 1, 0, 10)}}, plain()).stop_reason ==
          StopReason::completed);
}

TEST_CASE("wrong options and jobs are refused together") {
    const SpotTrace trace{{machine("a", 1)},
                          {job("j", hp, 1, 10, 1), job("k", PriorityClass::other, 1, 5, 0)}};
    SpotReplayOptions options;
    options.start_delay_s = -1;
    options.rankers = {"fgd"};
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { (void)replay_spot(trace, options); }),
               MentionsEach({"rankers 'fgd' no workload", "start_delay_s -1 0 1000000000",
                             "job 'k' work_s 0 1 1000000000", "job 'k' arrival_s 5 before, 10",
                             "job 'k' priority_class other HP or LP"}));
    CHECK_THROWS_MESSAGE(replay_spot({}, {.rankers = {}}), InvalidInput, "rankers 0 names 1 6");
    CHECK_THROWS_MESSAGE(replay_spot({}, {.rankers = {"best"}}), InvalidInput, "ranker 'best' one of");
    CHECK_THROWS_MESSAGE(replay_spot({}, {.measure_from_s = 5, .measure_until_s = 4}), InvalidInput,
                         "measure_until_s 4 5 1000000000");
    constexpr auto largest = std::numeric_limits<std::int64_t>::max();
    CHECK_THROWS_MESSAGE(replay_spot({}, {.start_delay_s = largest}), InvalidInput,
                         "start_delay_s 9223372036854775807 0 1000000000");
    CHECK_THROWS_MESSAGE(replay_spot({}, {.measure_until_s = largest}), InvalidInput,
                         "measure_until_s 9223372036854775807 0 1000000000");
    CHECK_THROWS_MESSAGE(replay_spot({{machine("a", 1)}, {job("j", hp, 1, 1'000'000'001, 1)}}, {}),
                         InvalidInput, "arrival_s 1000000001 0 1000000000");
    CHECK_THROWS_MESSAGE(replay_spot({{machine("a", 1)}, {job("j", hp, 1, 0, 1'000'000'000'000)}}, {}),
                         InvalidInput, "work_s 1000000000000 1 1000000000");
    CHECK_THROWS_MESSAGE(sim::generate_spot_trace({.gpu_model = "Z80", .nodes = 0, .lp_runtime = 0}),
                         InvalidInput, "3 problems gpu_model 'Z80' nodes 0 lp_runtime 0");
}

TEST_CASE("spread of values") {
    std::vector<double> values;
    for (int i = 100; i > 0; --i) values.push_back(i);
    CHECK(sim::spread_of(values) == sim::Spread{100, 50.5, 50, 90, 99, 100});
    CHECK(sim::spread_of({7}) == sim::Spread{1, 7, 7, 7, 7, 7});
    CHECK(sim::spread_of({}) == sim::Spread{});
}

TEST_CASE("generated jobs have the published figures") {
    const sim::SpotTraceOptions options{.nodes = 256, .hours = 4000, .seed = 3};
    const auto trace = sim::generate_spot_trace(options);
    REQUIRE(trace == sim::generate_spot_trace(options));
    REQUIRE(trace.nodes.size() == 256);
    std::vector<double> work, gpus;
    double load[2] = {0, 0}, at_day = 0, at_night = 0;
    std::int64_t last = 0;
    for (const auto& j : trace.jobs) {
        const bool high = j.pod.priority_class == hp;
        const auto milli = static_cast<double>(j.pods * j.pod.gpu_count * j.pod.gpu_share_milli);
        REQUIRE(j.arrival_s >= last);
        REQUIRE(milli <= 64'000);
        last = j.arrival_s;
        load[high ? 0 : 1] += milli * static_cast<double>(j.work_s);
        if (!high) {
            REQUIRE(j.pod.checkpoint_interval >= 600);
            REQUIRE(j.pod.checkpoint_interval <= 7200);
            continue;
        }
        REQUIRE(j.pod.checkpoint_interval == 0);
        work.push_back(static_cast<double>(j.work_s));
        gpus.push_back(milli / 1000);
        const auto hour = j.arrival_s / 3600 % 24;
        at_day += hour >= 13 && hour < 17 ? 1 : 0;
        at_night += hour >= 1 && hour < 5 ? 1 : 0;
    }
    const double all = 256.0 * 8 * 1000 * 4000 * 3600;
    CHECK(load[0] / all == Catch::Approx(0.68).margin(0.03));
    CHECK(load[1] / all == Catch::Approx(0.25).margin(0.015));
    CHECK(at_day / at_night == Catch::Approx(1.417 / 0.583).margin(0.15));
    const auto time = sim::spread_of(work);
    CHECK(time.p50 == Catch::Approx(5 * 3600).margin(600));
    CHECK(time.p90 == Catch::Approx(24 * 3600).margin(4000));
    CHECK(sim::spread_of(gpus).p50 == 4);  // published: 2, and 4 for jobs of generative AI
    // Other LP options leave the HP jobs as they are; without checkpoints where asked for.
    auto other = options;
    other.hours = 100;
    other.lp_load = 0.5;
    other.no_checkpoint = 1;
    auto same = options;
    same.hours = 100;
    const auto only_hp = [](SpotTrace t) {
        std::erase_if(t.jobs, [](const SpotJob& j) { return j.pod.priority_class == lp; });
        return t.jobs;
    };
    const auto more = sim::generate_spot_trace(other);
    CHECK(only_hp(more) == only_hp(sim::generate_spot_trace(same)));
    CHECK(std::none_of(more.jobs.begin(), more.jobs.end(),
                       [](const SpotJob& j) { return j.pod.checkpoint_interval > 0; }));
}

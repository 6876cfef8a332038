// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

/// Replicas that take 0.1 s for any prompt, and 0.1 s and 0.1 s per request for a decode step.
AutoscaleOptions simple() {
    AutoscaleOptions o;
    o.times = {.prefill_base_s = 0.1,
               .prefill_s_per_token = 0,
               .step_base_s = 0.1,
               .step_s_per_request = 0.1,
               .max_batch = 8,
               .prefill_gpus = 2,
               .decode_gpus = 3};
    o.ttft_s = 1;
    o.tpot_s = 0.55;
    o.interval_s = 10;
    o.start_s = 25;
    o.hold_s = 0;
    return o;
}

/// A Poisson process of requests whose prompts have 1 to many tokens, geometrically distributed.
std::vector<Arrival> poisson(double rate, double seconds, double mean_input, int output, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<Arrival> out;
    for (double t = 0;;) {
        t -= std::log1p(-rng.uniform()) / rate;
        if (t >= seconds) return out;
        out.push_back({t, 1 + static_cast<int>(-std::log1p(-rng.uniform()) * mean_input), output});
    }
}

PoolWindow window_of(double time_s, int requests, PoolSizes ready = {1, 1}) {
    PoolWindow w;
    w.time_s = time_s;
    w.seconds = 10;
    for (int i = 0; i < requests; ++i) w.arrived.push_back({time_s - 10 + 10.0 * i / requests, 100, 20});
    w.ready = ready;
    return w;
}

}  // namespace

TEST_CASE("two requests by hand: queue, batch and pace", "[serving]") {
    const std::vector<Arrival> two{{0, 10, 3}, {0.05, 10, 2}};
    auto o = simple();
    o.percent = 99.9;
    o.policy = AutoscalePolicy::fixed;
    const auto r = simulate_autoscaling(two, o);
    // The second prompt waits until 0.1. The first request decodes alone from 0.1 to 0.2 (half a token), with the second until 0.5 (one
    // token each), and alone again for half a token: 0.6.
    CHECK(r.ttft_s == Catch::Approx(0.15).epsilon(1e-9));
    CHECK(r.tpot_s == Catch::Approx(0.3).epsilon(1e-9));
    CHECK(r.requests == 2);
    CHECK(r.both_met == 1);
    CHECK(r.time_s == std::vector<double>{10});
    CHECK(r.gpu_h == Catch::Approx(10 * (2 + 3) / 3600.0));
    CHECK(r.busy_gpu_h == Catch::Approx((0.2 * 2 + 0.5 * 3) / 3600.0));

    o.times.transfer_s_per_token =
        0.02;  // 0.2 s more: the second from 0.4 to 0.7, with its first token at 0.2
    CHECK(simulate_autoscaling(two, o).tpot_s == Catch::Approx(0.5).epsilon(1e-9));
    const auto slow = simulate_autoscaling({two.data(), 1}, o, {.slowdown = 2});
    CHECK(slow.ttft_s == Catch::Approx(0.2).epsilon(1e-9));
    CHECK(slow.tpot_s == Catch::Approx((0.4 + 2 * 0.4) / 2).epsilon(1e-9));
}

TEST_CASE("one prefill replica with geometric prompts is an M/M/1 queue", "[serving]") {
    auto o = simple();
    o.policy = AutoscalePolicy::fixed;
    o.times.prefill_base_s = 0;
    o.times.prefill_s_per_token = 1e-4;  // 0.1 s on average
    const auto requests = poisson(6, 60000, 1000, 1, 1);
    for (const double target : {0.1, 0.3, 0.8}) {
        o.ttft_s = target;
        const double late = std::exp(-(10 - 6) * target);
        CHECK(simulate_autoscaling(requests, o).ttft_met == Catch::Approx(1 - late).margin(0.02));
    }
}

TEST_CASE("a replica serves when it has started, costs from the decision, and drains", "[serving]") {
    auto o = simple();
    // A request that decodes for very long holds its replica; the end of the clock is at 100 s.
    std::vector<Arrival> requests{{0, 10, 401}, {95, 10, 2}};
    const std::vector<PoolSizes> asked{{3, 2}, {3, 2}, {3, 2}, {3, 2}, {1, 1},
                                       {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    const auto r = simulate_autoscaling(requests, o, [&](const PoolWindow& w) {
        const auto k = static_cast<std::size_t>(std::llround(w.time_s / 10)) - 1;
        return asked.at(k);
    });
    REQUIRE(r.time_s.size() == 10);
    // Asked for at 10 s, ready at 35 s: seen from 40 s on; given back at 50 s.
    CHECK(r.ready_prefill == std::vector<std::int64_t>{1, 1, 1, 3, 3, 1, 1, 1, 1, 1});
    CHECK(r.ready_decode == std::vector<std::int64_t>{1, 1, 1, 2, 2, 1, 1, 1, 1, 1});
    CHECK(r.starts == 3);
    CHECK(r.stops == 3);
    CHECK(r.prefill_h * 3600 == Catch::Approx(100 + 2 * 40));
    CHECK(r.decode_h * 3600 == Catch::Approx(100 + 40));  // the idle one goes, not the one that decodes
    CHECK(r.tpot_met == 1);

    // Given back while it works: nothing is lost, and it costs until it is empty.
    requests = {{0, 10, 101}, {0.2, 10, 101}, {95, 10, 1}};
    o.start = {1, 2};
    const auto drained = simulate_autoscaling(requests, o, [](const PoolWindow&) { return PoolSizes{1, 1}; });
    CHECK(drained.stops == 1);
    CHECK(drained.decode_h * 3600 > 100 + 15);  // 100 tokens alone take 20 s
    CHECK(drained.decode_h * 3600 < 100 + 25);
    CHECK(drained.tpot_met == 1);
    // Wanted again, it is the first to come back: nothing is started.
    const auto back = simulate_autoscaling(requests, o, [](const PoolWindow& w) {
        return PoolSizes{1, w.time_s < 15 ? 1 : 2};
    });
    CHECK(back.starts == 0);
    CHECK(back.decode_h * 3600 == Catch::Approx(200));
}

TEST_CASE("pool sizes meet the targets in the simulation, with little to spare", "[serving]") {
    auto o = simple();
    o.policy = AutoscalePolicy::fixed;
    o.times = {.prefill_base_s = 0.05,
               .prefill_s_per_token = 2e-4,
               .step_base_s = 0.02,
               .step_s_per_request = 4e-4,
               .max_batch = 200};
    o.ttft_s = 1;
    o.tpot_s = 0.05;
    int tight = 0, runs = 0;
    for (const double rate : {2.0, 8.0, 30.0})
        for (const int output : {5, 100})
            for (std::uint64_t seed = 0; seed < 2; ++seed) {
                const auto requests = poisson(rate, 1200, 500, output, 10 * seed + 1);
                o.start = pool_sizes(requests, rate, o);
                const auto r = simulate_autoscaling(requests, o);
                CAPTURE(rate, output, seed, o.start.prefill, o.start.decode);
                CHECK(r.ttft_met >= 0.9);
                CHECK(r.tpot_met >= 0.9);
                const auto fewest = fewest_fixed(requests, o, 0.99);
                CHECK(o.start.prefill <= fewest.prefill + 2);
                CHECK(o.start.decode <= fewest.decode + 2);
                tight += o.start.prefill <= fewest.prefill + 1 ? 1 : 0;
                ++runs;
                // The fewest are the fewest: with one less, either pool misses.
                for (const auto& less : {PoolSizes{fewest.prefill - 1, fewest.decode},
                                         PoolSizes{fewest.prefill, fewest.decode - 1}}) {
                    if (less.prefill < 1 || less.decode < 1) continue;
                    auto smaller = o;
                    smaller.start = less;
                    CHECK(simulate_autoscaling(requests, smaller).windows_met < 0.99);
                }
            }
    CHECK(tight >= runs / 2);
    const auto requests = poisson(8, 600, 500, 100, 3);
    PoolSizes last{1, 1};
    for (const double rate : {0.0, 1.0, 5.0, 20.0, 100.0}) {  // more requests never need fewer
        const auto sizes = pool_sizes(requests, rate, o);
        CHECK((sizes.prefill >= last.prefill && sizes.decode >= last.decode));
        last = sizes;
    }
    CHECK(pool_sizes(requests, 20, o, 8).prefill >= pool_sizes(requests, 20, o, 1).prefill);
}

TEST_CASE("the forecast policy starts early, gives back late, and corrects itself", "[serving]") {
    auto o = simple();
    o.times.step_s_per_request = 0.01;
    o.hold_s = 100;
    o.start_s = 3600;
    // Twice as many requests are expected from noon on: an hour before, the replicas for them are asked for.
    o.expected_per_s.assign(24, 5.0);
    for (std::size_t h = 12; h < 24; ++h) o.expected_per_s[h] = 20;
    Autoscaler a(o);
    const auto early = a.step(window_of(9 * 3600, 50));
    const auto before = a.step(window_of(11 * 3600, 50));
    CHECK(before.prefill > early.prefill);
    CHECK(before.decode > early.decode);

    o.start_s = 25;
    o.expected_per_s.clear();
    Autoscaler b(o);
    double t = 0;
    for (int k = 0; k < 30; ++k) (void)b.step(window_of(t += 10, 200));
    const auto busy = b.step(window_of(t += 10, 200));
    CHECK(busy.prefill >= 3);
    CHECK(b.step(window_of(t += 10, 1)).prefill >= busy.prefill - 1);  // held
    PoolSizes now{};
    for (int k = 0; k < 400; ++k) now = b.step(window_of(t += 10, 1));
    CHECK(now == PoolSizes{1, 1});

    // Latencies above the targets, whatever the rate: more, pool by pool.
    Autoscaler c(o), d(o);
    PoolSizes right{}, wrong{};
    t = 0;
    for (int k = 0; k < 20; ++k) {
        auto w = window_of(t += 10, 200);
        w.ttft_s = w.tpot_s = 0.01;
        right = c.step(w);
        w.ttft_s = 3;
        wrong = d.step(w);
    }
    CHECK(wrong.prefill > right.prefill);
    CHECK(wrong.decode == right.decode);
}

TEST_CASE("a prompt that no replica serves in time does not scale the pools", "[serving]") {
    auto o = simple();
    o.times = {.prefill_base_s = 0.05, .prefill_s_per_token = 2e-4, .max_batch = 200};
    o.ttft_s = 1;
    o.tpot_s = 0.05;
    o.start_s = o.interval_s = 60;
    o.hold_s = 300;
    for (const auto& [rate, start] : {std::pair(0.2, 1), {2.0, 2}, {20.0, 8}})
        for (const int input : {50'000, 400'000}) {  // 10 and 80 s for the prompt alone
            const auto usual = poisson(rate, 3600, 500, 20, 5);
            auto with = usual;
            with.push_back({1800, input, 20});
            std::sort(with.begin(), with.end(),
                      [](const Arrival& a, const Arrival& b) { return a.time_s < b.time_s; });
            o.start = {start, 1};
            const auto most = [&](const std::vector<Arrival>& arrivals) {
                const auto wanted = simulate_autoscaling(arrivals, o).wanted_prefill;
                return *std::max_element(wanted.begin(), wanted.end());
            };
            CAPTURE(rate, input);
            CHECK(most(with) <= most(usual) + 1);
            CHECK(pool_sizes(with, rate, o) == pool_sizes(usual, rate, o));
        }
    // A few of them take a small part of a server.
    for (const int late : {2, 5}) {
        const auto usual = poisson(0.2, 3600, 500, 20, 5);
        auto with = usual;
        with.insert(with.end(), static_cast<std::size_t>(late), {1800, 50'000, 20});
        o.start = {1, 1};
        CAPTURE(late);
        CHECK(pool_sizes(with, 0.2, o) == pool_sizes(usual, 0.2, o));
    }
    // Many such prompts do need replicas.
    std::vector<Arrival> half;
    for (int i = 0; i < 100; ++i) half.push_back({1.0 * i, i % 2 == 0 ? 500 : 50'000, 20});
    CHECK(pool_sizes(half, 1, o).prefill >= 5);
}

TEST_CASE("the baselines follow their one signal", "[serving]") {
    auto o = simple();
    o.policy = AutoscalePolicy::utilization;
    o.utilization = 0.5;
    Autoscaler u(o);
    auto w = window_of(10, 10, {4, 4});
    w.prefill_busy = 3;     // 6 at a half
    w.decode_requests = 6;  // a replica has 4.5 within the target: three at a half
    CHECK(u.step(w) == PoolSizes{6, 3});
    w.time_s = 20;
    w.prefill_busy = 2.1;  // 4.2 wanted, 4 there: within a tenth
    CHECK(u.step(w).prefill == 4);

    o.policy = AutoscalePolicy::token_rate;
    o.ratio = 2.5;
    Autoscaler r(o);
    w.time_s = 10;
    w.tokens_per_s = 4.5 / 0.55 * 3;  // three replicas at their best, six at a half
    CHECK(r.step(w) == PoolSizes{15, 6});
    o.policy = AutoscalePolicy::fixed;
    o.start = {7, 2};
    CHECK(Autoscaler(o).step(w) == PoolSizes{7, 2});
}

TEST_CASE("days follow their curve and keep the trace's order", "[serving]") {
    std::vector<Arrival> trace;
    for (int i = 0; i < 1000; ++i) trace.push_back({0.2 * i + (i % 10 == 0 ? 0.1 : 0.0), 1 + i, 1});
    DailyCurve curve{.mean_rate = 3, .level_sigma = 0, .surge_factor = 1, .seed = 5};
    const auto day = daily_arrivals(trace, curve);
    CHECK(static_cast<double>(day.size()) == Catch::Approx(3 * 86400.0).epsilon(0.01));
    for (std::size_t i = 1; i < day.size(); ++i) {
        REQUIRE(day[i - 1].time_s <= day[i].time_s);
        REQUIRE(day[i].input == day[i - 1].input % 1000 + 1);
    }
    for (int hour = 0; hour < 24; ++hour) {
        const auto n = std::count_if(day.begin(), day.end(),
                                     [&](const Arrival& a) { return std::floor(a.time_s / 3600) == hour; });
        CHECK(static_cast<double>(n) ==
              Catch::Approx(3600 * expected_rate(curve, 3600 * (hour + 0.5))).epsilon(0.03));
    }
    CHECK(daily_arrivals(trace, curve) == day);
    curve.surge_factor = 3;
    CHECK(static_cast<double>(daily_arrivals(trace, curve).size()) >
          static_cast<double>(day.size()) + 2 * 1800 * 1.2);
    curve.seed = 6;
    curve.surge_factor = 1;
    curve.level_sigma = 0.3;
    CHECK(daily_arrivals(trace, curve).size() != day.size());
}

TEST_CASE("malformed options, windows and traces are refused by name", "[serving]") {
    auto o = simple();
    const auto refused = [&](auto change, const char* message) {
        auto bad = simple();
        change(bad);
        REQUIRE_THROWS_MESSAGE(Autoscaler(bad), InvalidInput, message);
    };
    refused([](auto& x) { x.ttft_s = 0.05; }, "ttft_s 0.05 more than 0.1");
    refused([](auto& x) { x.tpot_s = 0.15; }, "tpot_s 0.15 at least 0.2");
    refused([](auto& x) { x.percent = 100; }, "percent 100 50 99.9");
    refused([](auto& x) { x.interval_s = 0; }, "interval_s 0 1 3600");
    refused([](auto& x) { x.times.max_batch = 0; }, "max_batch 0 1 100000");
    refused([](auto& x) { x.expected_per_s = {1, -1}; }, "expected_per_s");
    Autoscaler a(o);
    (void)a.step(window_of(10, 5));
    REQUIRE_THROWS_MESSAGE(a.step(window_of(10, 5)), InvalidInput, "time_s");
    auto w = window_of(20, 5);
    w.arrived[0].output = 0;
    REQUIRE_THROWS_MESSAGE(a.step(w), InvalidInput, "arrived");
    const std::vector<Arrival> backwards{{1, 1, 1}, {0, 1, 1}}, once{{1, 1, 1}};
    REQUIRE_THROWS_MESSAGE(simulate_autoscaling(backwards, o), InvalidInput, "arrivals[1]");
    REQUIRE_THROWS_MESSAGE(daily_arrivals(backwards), InvalidInput, "trace not order time");
    REQUIRE_THROWS_MESSAGE(daily_arrivals(once), InvalidInput, "least two requests");
    REQUIRE_THROWS_MESSAGE(daily_arrivals(backwards, {.mean_rate = 0}), InvalidInput, "mean_rate 0 10000");
    REQUIRE_THROWS_MESSAGE(pool_sizes({}, 1, o), InvalidInput, "sample");
    REQUIRE_THROWS_MESSAGE(simulate_autoscaling(once, o, {.slowdown = 0}), InvalidInput, "slowdown 0 0.1 10");
    o.max_replicas = 1;
    const auto many = poisson(200, 60, 10, 5, 1);
    REQUIRE_THROWS_MESSAGE(fewest_fixed(many, o), InvalidInput, "max_replicas 1 enough");
    const std::vector<GpuType> gpus{gpu_type("H100")};
    const auto model = llama3_8b();
    const Deployment two{"H100 2x1", {{0, 1, 16}, {0, 1, 16}}}, one{"H100 1x1", {{0, 1, 32}}};
    REQUIRE_THROWS_MESSAGE(replica_times(model, gpus, two, one, {100, 100}), InvalidInput,
                           "prefill 'H100 2x1' one stage");
}

TEST_CASE("replica times are straight lines above the estimates", "[serving]") {
    const std::vector<GpuType> gpus{gpu_type("H100"), gpu_type("A100-80GB")};
    const auto model = llama3_70b();
    for (int g = 0; g < 2; ++g) {
        const Deployment d{"1x4", {{g, 4, model.layers}}};
        const auto t = replica_times(model, gpus, d, d, {1000, 200}, 8000);
        for (const int n : {1, 10, 100, 1000, 4000, 8000}) {
            const double line = t.prefill_base_s + t.prefill_s_per_token * n;
            const double seconds = estimate_throughput(model, gpus, d, {n, 1}).prefill_s;
            CHECK(line >= seconds - 1e-9);
            CHECK(line <= 1.6 * seconds);
        }
        for (const int batch : {1, 8, 64, t.max_batch}) {
            EstimateOptions o;
            o.max_batch = batch;
            const double line = t.step_base_s + t.step_s_per_request * batch;
            CHECK(line >= estimate_throughput(model, gpus, d, {1000, 200}, o).step_s - 1e-9);
        }
        CHECK(t.prefill_gpus == 4);
        CHECK(t.transfer_s_per_token > 0);
    }
}

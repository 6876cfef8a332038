// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include "serving/batching_replica.hpp"
#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

/// One deployment of a model whose layer takes the given seconds: prefill of a prompt, and a decode step of any batch.
struct Setting {
    ServingRequest request{};
    std::vector<PlannedReplicas> plan{};
    LatencyOptions options{};

    Setting(double prefill, double step, int batch, int output, int count) {
        LanguageModel model{.name = "m",
                            .layers = 1,
                            .hidden = 1,
                            .heads = 1,
                            .kv_heads = 1,
                            .head_size = 1,
                            .intermediate = 1,
                            .vocabulary = 1};
        request = {{{.name = "g",
                     .tflops = 1e9,
                     .bandwidth_gb_s = 1e12,
                     .memory_gb = 1,
                     .link_gb_s = 1,
                     .network_gb_s = 1,
                     .per_machine = 1,
                     .price = 1.0}},
                   {9},
                   9,
                   {{model, {{"w", {10, output}, 1}}}},
                   {}};
        options.estimate.max_batch = batch;
        options.estimate.profiles = {{"m", "g", 1, {{10, prefill}}, {{1e-3, step}, {1e9, step}}}};
        const Deployment d{"g 1x1", {{0, 1, 1}}};
        const auto rate =
            estimate_throughput(model, request.gpus, d, {10, output}, options.estimate).requests_per_s;
        plan = {{"m", d, count, 0, {1.0}, {rate}}};
    }
};

}  // namespace

TEST_CASE("rare requests take as long as a request alone", "[serving]") {
    Setting s(0.1, 0.02, 4, 11, 1);
    s.options.requests = 100;
    s.options.rate = 1e-9;
    CHECK(simulate_latency(s.request, s.plan, s.options).percentile(0) == Catch::Approx(0.3).epsilon(1e-12));
    for (const double rate : {1e-300, 5e-324, 1e-10, -1.0, std::nan("")}) {
        s.options.rate = rate;
        REQUIRE_THROWS_MESSAGE(simulate_latency(s.request, s.plan, s.options), InvalidInput, "rate:");
    }
    s.options.rate = 1;
    s.options.estimate.memory_fraction = 0.01;
    REQUIRE_THROWS_MESSAGE(simulate_latency(s.request, s.plan, s.options), InvalidInput,
                           "memory_fraction 0.01 0.05 1");
}

TEST_CASE("latencies at the limits", "[serving]") {
    // 0.1 s of prefill and 10 steps of 0.02 s: 0.3 s alone; 4 together take 0.1 + 0.2 / 4 = 0.15 s each of the replica.
    Setting s(0.1, 0.02, 4, 11, 1);
    CHECK(s.plan[0].requests_per_s[0] == Catch::Approx(1 / 0.15));
    s.options.requests = 4000;
    s.options.rate = 0.001;
    const auto idle = simulate_latency(s.request, s.plan, s.options);
    CHECK(idle.percentile(0) == Catch::Approx(0.3));
    CHECK(idle.percentile(99) == Catch::Approx(0.3));
    // All at once: work is conserved, and four finish every 0.6 s.
    s.options.rate = 0;
    s.options.requests = 40;
    const auto burst = simulate_latency(s.request, s.plan, s.options);
    CHECK(burst.makespan == Catch::Approx(40 * 0.15));
    CHECK(burst.percentile(10) == Catch::Approx(0.6));
    CHECK(burst.percentile(50) == Catch::Approx(3.0));
    CHECK(burst.percentile(51) == Catch::Approx(3.6));
    CHECK(burst.percentile(100) == Catch::Approx(6.0));
    // Two replicas halve it.
    Setting two(0.1, 0.02, 4, 11, 2);
    two.options.requests = 40;
    CHECK(simulate_latency(two.request, two.plan, two.options).makespan == Catch::Approx(3.0));
}

TEST_CASE("one request at a time is the M/D/1 queue", "[serving]") {
    Setting s(0.1, 0.02, 1, 6, 1);  // 0.2 s, alone and of the replica
    s.options.requests = 400000;
    s.options.rate = 3.5;  // 70 % busy: the mean wait is rho / (1 - rho) / 2 services
    const auto found = simulate_latency(s.request, s.plan, s.options);
    double mean = 0;
    for (const auto latency : found.latency) mean += latency / 400000;
    CHECK(mean == Catch::Approx(0.2 + 0.2 * 0.7 / 0.3 / 2).epsilon(0.02));
    CHECK(std::is_sorted(found.latency.begin(), found.latency.end()));
    CHECK(found.latency == simulate_latency(s.request, s.plan, s.options).latency);
}

TEST_CASE("prompts alone are the M/D/1 queue however many fit", "[serving]") {
    // Output of one token: a request takes 0.2 s of the replica, one after the other.
    Setting s(0.2, 0.02, 100000, 1, 1);
    s.options.requests = 400000;
    s.options.rate = 3;
    const auto found = simulate_latency(s.request, s.plan, s.options);
    double mean = 0;
    for (const auto latency : found.latency) mean += latency / 400000;
    CHECK(mean == Catch::Approx(0.2 + 0.2 * 0.6 / 0.4 / 2).epsilon(0.02));
    CHECK(found.kinds.at(0).tpot.empty());
    CHECK(found.kinds[0].ttft == found.kinds[0].latency);
}

TEST_CASE("first tokens and further ones by kind", "[serving]") {
    // A burst of four on one replica of 0.1 s a prompt: the first tokens come at 0.1 .. 0.4 s, then ten steps of 0.02 s for all.
    Setting s(0.1, 0.02, 4, 11, 1);
    s.options.requests = 4;
    const auto found = simulate_latency(s.request, s.plan, s.options);
    REQUIRE(found.kinds.size() == 1);
    const auto& kind = found.kinds[0];
    CHECK((kind.model == "m" && kind.workload == "w"));
    for (const int i : {1, 2, 3, 4}) {
        CHECK(kind.ttft_percentile(25.0 * i) == Catch::Approx(0.1 * i));
        CHECK(kind.tpot_percentile(25.0 * i) ==
              Catch::Approx((0.2 + 0.1 * (i - 1)) / 10));  // prompts go first
    }
    CHECK(kind.percentile(0) == Catch::Approx(0.6));
    const auto table = latency_table(found);
    CHECK(table.find("ttft_p90_s") != table.npos);
    CHECK(std::count(table.begin(), table.end(), '\n') == 2);
    // What arrives first does not count: the replica fills up.
    s.options.rate = 1;
    s.options.requests = 1000;
    s.options.warm_up = 0.5;
    const auto half = simulate_latency(s.request, s.plan, s.options).latency.size();
    CHECK((half > 400 && half < 600));
}

TEST_CASE("steps grow with the requests in flight", "[serving]") {
    // Alone 0.02 s a step, with three more in flight 0.05 s: 0.01 s for each.
    const std::vector<serving::detail::KindTimes> kinds{{0.0, 0.0, 0.02, 0.01, 4, 10}};
    std::vector<serving::detail::Job> jobs(4, {0, 0});
    for (const auto& times : serving::detail::BatchingReplica(kinds).run(jobs))
        CHECK(times.all == Catch::Approx(0.5));
    jobs.resize(2);
    for (const auto& times : serving::detail::BatchingReplica(kinds).run(jobs))
        CHECK(times.all == Catch::Approx(0.3));
    CHECK(serving::detail::BatchingReplica(kinds).run({{5, 0}}).at(0).all == Catch::Approx(0.2));
}

TEST_CASE("impossible simulations are refused", "[serving]") {
    Setting s(0.1, 0.02, 1, 6, 1);
    auto plan = s.plan;
    plan[0].share[0] = 0.5;
    CHECK_THROWS_AS(simulate_latency(s.request, plan, s.options), InvalidInput);
    plan[0].share.clear();
    CHECK_THROWS_AS(simulate_latency(s.request, plan, s.options), InvalidInput);
    CHECK_THROWS_AS(simulate_latency(s.request, {}, s.options), InvalidInput);
    s.options.requests = 0;
    CHECK_THROWS_AS(simulate_latency(s.request, s.plan, s.options), InvalidInput);
    s.options.requests = 1;
    CHECK_THROWS_AS((void)simulate_latency(s.request, s.plan, s.options).percentile(101), InvalidInput);
    s.request.models[0].workloads[0].requests = 0;
    CHECK(simulate_latency(s.request, s.plan, s.options).latency.empty());
}

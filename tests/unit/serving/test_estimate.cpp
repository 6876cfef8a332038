// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/serving/estimate.hpp>

#include <algorithm>
#include <cmath>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

constexpr auto same = [](double a, double b) {
    return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b));
};

/// A model whose embeddings and weights take no memory and no time worth mentioning.
LanguageModel tiny(int layers) {
    return {.name = "tiny",
            .layers = layers,
            .hidden = 1,
            .heads = 4,
            .kv_heads = 4,
            .head_size = 1,
            .intermediate = 1,
            .vocabulary = 1};
}

}  // namespace

TEST_CASE("the roofline of a layer by hand", "[serving]") {
    const auto model = llama3_70b();
    const GpuType gpu = gpu_type("A100-80GB");
    const Efficiency e;
    // 855,638,016 weights; decode of one token reads them from memory: 1.711 GB at 0.75 x 2,039 GB/s.
    CHECK(model.layer_matrix_parameters() == 855638016.0);
    const double weights = 855638016.0 * 2 / (0.75 * 2039e9);
    const double activations = 2 * (8.0 * 8192 + 80 * 128 + 3.0 * 28672) / (0.75 * 2039e9);
    const double kv = 4096.0 * 1000 / (0.75 * 2039e9);
    CHECK(same(layer_seconds(model, gpu, 1, 1, 1000, 1), weights + activations + kv + 4e-5));
    // Prefill of 2,000 tokens on four of them computes.
    const double flops = 4 * 0.7 * 312e12;
    const double all_reduce = 4e-5 + 1.5 * (2000 * 8192 * 2.0) / (0.7 * 300e9);
    CHECK(same(all_reduce_seconds(gpu, 4, 2000 * 8192 * 2.0), all_reduce));
    CHECK(all_reduce_seconds(gpu, 1, 1e9) == 0);
    CHECK(same(layer_seconds(model, gpu, 4, 2000, 1000, 1),
               2 * 855638016.0 * 2000 / flops + 4.0 * 64 * 128 * 2000 * 1000 / flops +
                   2 * 2000 * (8.0 * 8192 + (80 * 128 + 3.0 * 28672) / 4) / (0.75 * 2039e9) + 4e-5 +
                   2 * all_reduce));
    CHECK(layer_seconds(model, gpu, 1, 1, 1000, 1, {.layer_s = 1}) > 1);
    (void)e;
}

TEST_CASE("throughput of one stage by hand", "[serving]") {
    // 10 layers of 1 ms for prefill and 2 ms for decode; 1,000 bytes of memory at 8 bytes and layer a token.
    auto model = tiny(10);
    model.bytes_per_weight = 0.1;
    const std::vector<GpuType> gpus{{.name = "g",
                                     .tflops = 1000,
                                     .bandwidth_gb_s = 1e6,
                                     .memory_gb = 1,
                                     .link_gb_s = 1,
                                     .network_gb_s = 1,
                                     .per_machine = 8}};
    EstimateOptions options{.profiles = {{"tiny", "g", 1, {{100, 0.001}}, {{1, 0.002}}}}};
    options.profiles[0].decode = {{10, 0.002}, {1000, 0.002}};
    options.max_batch = 50;
    const Deployment one{"g 1x1", {{0, 1, 10}}};
    const auto found = estimate_throughput(model, gpus, one, {100, 11}, options);
    CHECK(found.batch == 50);
    CHECK(found.prefill_s == Catch::Approx(0.010));
    CHECK(found.step_s == Catch::Approx(0.020));
    CHECK(found.requests_per_s == Catch::Approx(1 / (0.010 + 10 * 0.020 / 50)));
    // Tables: interpolated between, constant below, proportional above.
    options.profiles[0].prefill = {{100, 0.001}, {200, 0.003}};
    const auto prefill = [&](int input) {
        return estimate_throughput(model, gpus, one, {input, 1}, options).prefill_s;
    };
    CHECK(prefill(10) == Catch::Approx(0.010));
    CHECK(prefill(150) == Catch::Approx(0.020));
    CHECK(prefill(400) == Catch::Approx(0.060));
    // The KV cache limits the batch: 2 x 4 heads x 2 bytes x 10 layers = 160 bytes a token.
    options.max_batch = 1000000;
    const auto room = kv_tokens(model, gpus, one, 0.9)[0];
    CHECK(estimate_throughput(model, gpus, one, {99990, 20}, options).batch == std::floor(room / 100000));
    const auto none = estimate_throughput(model, gpus, one, {static_cast<int>(room), 1}, options);
    CHECK(none == ThroughputEstimate{});
}

TEST_CASE("pipeline steps equal a simulation of the micro-batches", "[serving]") {
    Rng rng(11);
    for (int i = 0; i < 200; ++i) {
        const auto stages = 1 + static_cast<int>(rng.below(5));
        const auto batch = 1 + static_cast<int>(rng.below(8));
        auto model = tiny(stages);
        std::vector<GpuType> gpus;
        EstimateOptions options{.max_batch = batch};
        options.efficiency.message_s = 0.001 * static_cast<double>(rng.below(20));
        Deployment deployment{"d", {}};
        std::vector<double> time;
        for (int s = 0; s < stages; ++s) {
            gpus.push_back({.name = std::to_string(s),
                            .tflops = 1e9,
                            .bandwidth_gb_s = 1e12,
                            .memory_gb = 1,
                            .link_gb_s = 1e9,
                            .network_gb_s = 1e9,
                            .per_machine = 1});
            time.push_back(0.001 * static_cast<double>(1 + rng.below(30)));
            options.profiles.push_back(
                {"tiny", std::to_string(s), 1, {{1, 0.001}}, {{1e-3, time.back()}, {1e9, time.back()}}});
            deployment.stages.push_back({s, 1, 1});
        }
        const double step = estimate_throughput(model, gpus, deployment, {8, 8}, options).step_s;
        // Micro-batches in turn: each stage takes the next one when it is free and the micro-batch is there.
        const int parts = std::min(stages, batch);
        std::vector<double> ready(static_cast<std::size_t>(parts), 0.0), free(time.size(), 0.0);
        double half = 0;
        constexpr int rounds = 400;
        for (int round = 0; round < rounds; ++round) {
            for (auto& at : ready)
                for (std::size_t s = 0; s < time.size(); ++s) {
                    at = std::max(at, free[s]) + time[s];
                    free[s] = at;
                    if (s + 1 < time.size()) at += options.efficiency.message_s;
                }
            if (round == rounds / 2 - 1) half = ready.back();
        }
        CAPTURE(i, stages, batch);
        CHECK(step == Catch::Approx((ready.back() - half) / (rounds / 2)).epsilon(1e-3));
    }
}

TEST_CASE("estimates behave", "[serving]") {
    const auto gpus = paper_gpus_dense();
    const Deployment cross{"H100 2x8", {{4, 8, 40}, {4, 8, 40}}};
    const Deployment inside{"H100 2x4", {{4, 4, 40}, {4, 4, 40}}};
    const RequestShape shape{2455, 18};
    auto far = gpus;
    for (auto& gpu : far) gpu.network_gb_s = 0.01;
    // Stages in one machine do not use the network; stages in two do.
    CHECK(estimate_throughput(llama3_70b(), far, inside, shape) ==
          estimate_throughput(llama3_70b(), gpus, inside, shape));
    CHECK(estimate_throughput(llama3_70b(), far, cross, shape).requests_per_s <
          0.5 * estimate_throughput(llama3_70b(), gpus, cross, shape).requests_per_s);
    for (auto& gpu : far) gpu.network_gb_s = 0;
    CHECK(estimate_throughput(llama3_70b(), far, cross, shape) == ThroughputEstimate{});
    // Longer requests are slower, in both directions; 70B does not fit on one card.
    const Deployment one{"H100 1x1", {{4, 1, 32}}};
    const auto rate = [&](int in, int out) {
        return estimate_throughput(llama3_8b(), gpus, one, {in, out}).requests_per_s;
    };
    CHECK(rate(500, 100) > rate(1000, 100));
    CHECK(rate(500, 100) > rate(500, 200));
    CHECK(estimate_throughput(llama3_70b(), gpus, {"", {{4, 1, 80}}}, shape).requests_per_s == 0);

    CHECK_THROWS_AS(estimate_throughput(llama3_70b(), gpus, {"", {}}, shape), InvalidInput);
    CHECK_THROWS_AS(estimate_throughput(llama3_70b(), gpus, {"", {{6, 1, 80}}}, shape), InvalidInput);
    CHECK_THROWS_AS(estimate_throughput(llama3_70b(), gpus, {"", {{4, 8, 79}}}, shape), InvalidInput);
    CHECK_THROWS_AS(estimate_throughput(llama3_70b(), gpus, {"", {{4, 16, 80}}}, shape), InvalidInput);
    CHECK_THROWS_AS(estimate_throughput(llama3_70b(), gpus, inside, {0, 1}), InvalidInput);
    CHECK(testing_support::problems_in<InvalidInput>([&] {
              (void)estimate_throughput(llama3_70b(), gpus, inside, shape,
                                        {.efficiency = {.compute = 2},
                                         .max_batch = 0,
                                         .profiles = {{"m", "g", 1, {{2, 1}, {1, 1}}, {}}}});
          }).size() == 4);
}

// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/predict.hpp>

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

TEST_CASE("estimates are the times of predict", "[serving]") {
    // One client: no other prompts, no waits. The catalogue has the nominal memory, which does not matter here.
    struct Case {
        const char *model, *gpu;
        int degree;
        Precision precision;
        Engine engine;
    };
    const Case cases[] = {
        {"Llama-3.1-70B", "H100", 8, Precision::bf16, Engine::vllm},
        {"Llama-3.1-70B", "H200", 4, Precision::fp8, Engine::sglang},
        {"Llama-3.1-8B", "B200", 1, Precision::fp4, Engine::trtllm},
        {"MiniMax-M2.5", "B200", 4, Precision::fp8, Engine::vllm},
        {"DeepSeek-R1", "H200", 8, Precision::fp8, Engine::sglang},
        {"gpt-oss-120b", "H200", 2, Precision::fp4, Engine::vllm},
        {"Qwen3.5-397B-A17B", "B200", 4, Precision::fp8, Engine::sglang},
    };
    for (const auto& [name, gpu, degree, precision, engine] : cases) {
        CAPTURE(name, gpu);
        auto model = find_language_model(name);
        model.bytes_per_weight = precision == Precision::bf16 ? 2 : precision == Precision::fp8 ? 1 : 0.5625;
        model.bytes_per_kv = precision == Precision::bf16 ? 2 : 1;
        const std::vector<GpuType> gpus{gpu_type(gpu)};
        const Deployment one{"one", {{0, degree, model.layers}}};
        EstimateOptions options{.engine = engine, .max_batch = 1};
        const auto found = estimate_throughput(model, gpus, one, {1000, 200}, options);
        const auto expected = predict(
            model, gpu, {.tensor_parallel = degree},
            {.engine = engine, .precision = precision, .concurrency = 1, .input = 1000, .output = 200});
        // In predict, the only client is without a running request until its first token.
        CHECK(found.step_s == Catch::Approx(expected.tpot_s).epsilon(0.03));
        CHECK(found.first_token_s == Catch::Approx(expected.ttft_s).epsilon(0.03));
        // The ends of the error bands.
        options.error = EstimateError::p90;
        const auto slow = estimate_throughput(model, gpus, one, {1000, 200}, options);
        CHECK(same(slow.step_s, found.step_s * expected.error.tpot.high));
        CHECK(same(slow.first_token_s, found.first_token_s * expected.error.ttft.high));
        CHECK(slow.requests_per_s < found.requests_per_s);
        options.error = EstimateError::p10;
        CHECK(same(estimate_throughput(model, gpus, one, {1000, 200}, options).step_s,
                   found.step_s * expected.error.tpot.low));
    }
}

TEST_CASE("the mean time of a layer", "[serving]") {
    const auto model = llama3_70b();
    const auto gpu = gpu_type("H100");
    const auto decode = [&](double batch, double context) {
        return layer_seconds(model, gpu, 8, batch, context, batch);
    };
    CHECK(decode(64, 1000) > decode(1, 1000));
    CHECK(decode(64, 4000) > decode(64, 1000));
    CHECK(layer_seconds(model, gpu, 8, 4000, 2000, 1) < layer_seconds(model, gpu, 2, 4000, 2000, 1));
    // A step of the estimate: all layers, and less than a millisecond for the rest.
    const Deployment one{"one", {{0, 8, 80}}};
    const double step =
        estimate_throughput(model, std::vector{gpu}, one, {1000, 200}, {.max_batch = 1}).step_s;
    CHECK(step > 80 * decode(1, 1100));
    CHECK(step < 80 * decode(1, 1100) + 1e-3);
    CHECK_THROWS_AS(layer_seconds(model, gpu, 9, 1, 0, 1), InvalidInput);
    CHECK_THROWS_AS(layer_seconds(model, gpu, 8, -1, 0, 1), InvalidInput);
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
    const auto room = kv_tokens(model, gpus, one, 100000, 0.9)[0];
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
        options.message_s = 0.001 * static_cast<double>(rng.below(20));
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
                    if (s + 1 < time.size()) at += options.message_s;
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
              (void)estimate_throughput(
                  llama3_70b(), gpus, inside, shape,
                  {.max_batch = 0, .network = 2, .profiles = {{"m", "g", 1, {{2, 1}, {1, 1}}, {}}}});
          }).size() == 4);
}

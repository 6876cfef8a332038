// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/serving/predict.hpp>

#include <cmath>
#include <string>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

struct Case {
    const char *model, *gpu;
    EngineLoad load;
    Workers replica, decode;  ///< 0 decode workers: the replica decodes, too
    double ttft_s, tpot_s;
};

// Times of benchmarks/serving/step_model.py for its coefficients. A new fit changes them.
const Case cases[] = {
    // clang-format off
    {"Llama-3.1-8B", "h100_sxm", {Engine::trtllm, "1.0", Precision::bf16, 16, 1024, 256}, {1, {1, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 0.168380588, 0.00891634898},
    {"Llama-3.1-70B", "b200_sxm", {Engine::vllm, "", Precision::fp8, 64, 8192, 1024}, {1, {4, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 1.3218301, 0.027826348},
    {"Llama-3.1-70B", "h200_sxm", {Engine::sglang, "", Precision::fp8, 32, 1024, 1024}, {1, {8, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 0.483608886, 0.00987804782},
    {"Qwen3-32B", "a100_sxm", {Engine::vllm, "", Precision::bf16, 512, 4000, 1000}, {1, {2, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 656.689594, 0.0977395457},
    {"gpt-oss-120b", "h200_sxm", {Engine::trtllm, "", Precision::fp4, 64, 8192, 1024}, {1, {2, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 0.843822967, 0.0207769247},
    {"MiniMax-M2.5", "b200_sxm", {Engine::vllm, "", Precision::fp4, 128, 1024, 8192}, {1, {2, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 0.238955907, 0.0230397172},
    {"MiniMax-M2.5", "h100_sxm", {Engine::vllm, "", Precision::fp8, 16, 1024, 1024}, {1, {1, 1, 4, 4}}, {0, {1, 1, 1, 1}}, 0.133794261, 0.017257213},
    {"DeepSeek-R1", "h200_sxm", {Engine::sglang, "", Precision::fp8, 64, 8192, 1024}, {1, {8, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 2.4285187, 0.0529774548},
    {"DeepSeek-R1", "b200_sxm", {Engine::trtllm, "", Precision::fp4, 256, 1024, 1024}, {1, {1, 1, 8, 8}}, {0, {1, 1, 1, 1}}, 0.597042695, 0.0233355495},
    {"Kimi-K2.5", "h200_sxm", {Engine::vllm, "", Precision::int4, 16, 1024, 1024}, {1, {8, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 0.191960323, 0.0156659304},
    {"GLM-5", "b300_sxm", {Engine::sglang, "", Precision::fp8, 64, 8192, 1024}, {1, {8, 1, 1, 1}}, {0, {1, 1, 1, 1}}, 2.0754215, 0.0480476079},
    {"Qwen3.5-397B-A17B", "b200_sxm", {Engine::sglang, "", Precision::fp8, 32, 8192, 1024}, {1, {4, 1, 4, 1}}, {0, {1, 1, 1, 1}}, 1.24554368, 0.0196327741},
    {"DeepSeek-R1", "gb200", {Engine::trtllm, "", Precision::fp4, 96, 1024, 1024}, {1, {1, 1, 4, 4}}, {4, {8, 1, 8, 1}}, 0.341099513, 0.00994138678},
    {"DeepSeek-R1", "h100_sxm", {Engine::trtllm, "", Precision::fp8, 30, 8192, 1024}, {1, {1, 1, 16, 16}}, {3, {16, 1, 16, 1}}, 7.56185063, 0.016284252},
    {"Kimi-K2.5", "gb200", {Engine::vllm, "", Precision::fp4, 1024, 1024, 1024}, {1, {4, 1, 1, 1}}, {1, {16, 1, 16, 1}}, 1.72333392, 0.0344752588},
    // clang-format on
};

bool near(double a, double b) { return std::abs(a / b - 1) < 1e-7; }

json::Document document(const std::string& text) {
    Problems problems;
    auto parsed = json::Document::parse(text, "config", problems);
    problems.throw_if_any();
    return parsed;
}

}  // namespace

TEST_CASE("predicted times are those of the Python model", "[serving]") {
    for (const auto& [name, gpu, load, replica, decode, ttft_s, tpot_s] : cases) {
        CAPTURE(name, gpu);
        const auto model = find_language_model(name);
        const auto e = decode.workers == 0 ? predict(model, gpu, replica.parallelism, load)
                                           : predict_disaggregated(model, gpu, replica, decode, load);
        CHECK(e.fits);
        CHECK(near(e.ttft_s, ttft_s));
        CHECK(near(e.tpot_s, tpot_s));
        CHECK(near(e.requests_per_s, load.concurrency / (ttft_s + load.output * tpot_s)));
        double sum = 0;
        for (const auto& [part, seconds] : e.parts) sum += seconds;
        CHECK(near(sum, tpot_s));
    }
}

TEST_CASE("a deployment that exceeds the memory has no times", "[serving]") {
    const auto model = find_language_model("meta-llama/Llama-3.1-70B");
    const auto small = predict(model, "H100");
    CHECK(!small.fits);
    CHECK(std::isnan(small.ttft_s));
    CHECK(std::isnan(small.requests_per_s));
    CHECK(small.parts.empty());
    // The weights fit, but no request of that length.
    CHECK(predict(model, "H100", {.tensor_parallel = 2}, {.input = 1000, .output = 10}).fits);
    CHECK(!predict(model, "H100", {.tensor_parallel = 2}, {.input = 100000, .output = 10}).fits);
    // A prefill worker holds prompts only.
    const Workers two{1, {.tensor_parallel = 2}}, four{1, {.tensor_parallel = 4}};
    CHECK(predict_disaggregated(model, "H100", two, four, {.input = 1000, .output = 100000}).fits);
    CHECK(!predict_disaggregated(model, "H100", two, two, {.input = 1000, .output = 100000}).fits);
}

TEST_CASE("predict rejects bad input with the field's name", "[serving]") {
    const auto dense = find_language_model("Llama-3.1-8B"), moe = find_language_model("MiniMax-M2.5");
    struct Bad {
        const LanguageModel& model;
        const char* gpu;
        Parallelism parallelism;
        EngineLoad load;
        const char* field;
    };
    const Bad table[] = {
        {dense, "H1000", {}, {}, "gpu"},
        {dense, "H100", {.tensor_parallel = 3}, {}, "tensor_parallel"},
        {dense, "H100", {.tensor_parallel = 0}, {}, "tensor_parallel"},
        {dense, "H100", {.pipeline_parallel = 2}, {}, "pipeline_parallel"},
        {dense, "H100", {.tensor_parallel = 2, .expert_parallel = 2}, {}, "expert_parallel"},
        {moe, "H100", {.tensor_parallel = 4, .expert_parallel = 3}, {}, "expert_parallel"},
        {moe, "H100", {.expert_parallel = 512, .attention_data_parallel = 512}, {}, "expert_parallel"},
        {moe, "H100", {.attention_data_parallel = -1}, {}, "attention_data_parallel"},
        {dense, "H100", {}, {.concurrency = 0}, "concurrency"},
        {dense, "H100", {}, {.input = 0}, "input"},
        {dense, "H100", {}, {.output = -5}, "output"},
    };
    for (const auto& [model, gpu, parallelism, load, field] : table) {
        CAPTURE(field);
        CHECK_THROWS_WITH(predict(model, gpu, parallelism, load), Catch::Matchers::ContainsSubstring(field));
    }
    CHECK_THROWS_WITH(predict(LanguageModel{}, "H100"), Catch::Matchers::ContainsSubstring("layers"));
    CHECK_THROWS_WITH(find_language_model("deepseek-ai/DeepSeek-R2"),
                      Catch::Matchers::ContainsSubstring("'deepseek-ai/DeepSeek-R1'"));
    CHECK_THROWS_WITH(predict_disaggregated(dense, "H100", {.workers = 0}, {}),
                      Catch::Matchers::ContainsSubstring("prefill: workers"));
}

TEST_CASE("a config.json gives the shape of a model", "[serving]") {
    const std::string base =
        R"("num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 100, )";
    const auto dense = read_model_config(document("{" + base + R"("intermediate_size": 128})"));
    CHECK(dense.kv_heads == 8);  // as many as heads, unless given
    CHECK(dense.head_size == 8);
    CHECK(dense.intermediate == 128);
    const auto window = read_model_config(document(
        "{" + base +
        R"("intermediate_size": 128, "num_key_value_heads": 2, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]})"));
    CHECK(window.kv_heads == 2);
    CHECK(window.window == 16);
    CHECK(window.window_layers == 2);
    const auto off = read_model_config(document(
        "{" + base + R"("intermediate_size": 128, "sliding_window": 16, "use_sliding_window": false})"));
    CHECK(off.window_layers == 0);
    const auto nested = read_model_config(
        document(R"({"vision_config": {}, "text_config": {)" + base +
                 R"("num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 32}})"));
    CHECK(nested.experts == 4);
    CHECK(nested.moe_intermediate == 32);
    CHECK(nested.intermediate == 0);

    struct Bad {
        std::string text;
        const char* field;
    };
    const Bad table[] = {
        {"[]", "object"},
        {R"({"hidden_size": 64, "intermediate_size": 128})", "num_hidden_layers"},
        {"{" + base.substr(0, base.size() - 2) + "}", "intermediate_size"},
        {"{" + base + R"("num_experts": 4, "intermediate_size": 32})", "num_experts_per_tok"},
        {"{" + base + R"("num_experts": 4, "num_experts_per_tok": 5, "intermediate_size": 32})",
         "num_experts_per_tok"},
        {"{" + base + R"("intermediate_size": 128, "num_key_value_heads": 16})", "num_key_value_heads"},
        {"{" + base + R"("intermediate_size": 128, "kv_lora_rank": 16})", "qk_rope_head_dim"},
        {"{" + base + R"("intermediate_size": "wide"})", "intermediate_size"},
        {"{" + base +
             R"("num_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 32, "decoder_sparse_step": 2})",
         "decoder_sparse_step"},
    };
    for (const auto& [text, field] : table) {
        CAPTURE(text);
        CHECK_THROWS_WITH(read_model_config(document(text)), Catch::Matchers::ContainsSubstring(field));
    }
}

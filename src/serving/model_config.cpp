// SPDX-License-Identifier: Apache-2.0
// Language models: look-up by name, and from a Hugging Face config.json.
#include "serving/engine_tables.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/serving/model_config.hpp>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::serving {

namespace detail {

/// The fields of a config.json that describe a model, by the names that they have there.
struct ModelConfig {
    int num_hidden_layers = 0, hidden_size = 0, num_attention_heads = 0, vocab_size = 0;
    std::optional<int> num_key_value_heads{}, head_dim{}, intermediate_size{}, n_routed_experts{},
        num_local_experts{}, num_experts{}, num_experts_per_tok{}, num_experts_per_token{},
        moe_intermediate_size{}, n_shared_experts{}, shared_expert_intermediate_size{},
        first_k_dense_replace{}, q_lora_rank{}, kv_lora_rank{}, qk_rope_head_dim{}, qk_nope_head_dim{},
        v_head_dim{}, sliding_window{}, full_attention_interval{}, linear_num_key_heads{},
        linear_num_value_heads{}, linear_key_head_dim{}, index_n_heads{}, index_head_dim{}, index_topk{};
    std::optional<int> moe_layer_freq{}, decoder_sparse_step{}, interleave_moe_layer_step{};
    std::optional<bool> use_sliding_window{}, attn_output_gate{};
    std::optional<std::vector<int>> mlp_only_layers{};
    std::optional<std::vector<std::string>> layer_types{};
    std::optional<std::string> name{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ModelConfig>, F&& field) {
    using C = ModelConfig;
    constexpr auto least = within(1, 10'000'000), none = within(0, 10'000'000), only = within(1, 1);
    field("num_hidden_layers", &C::num_hidden_layers, Required{}, least);
    field("hidden_size", &C::hidden_size, Required{}, least);
    field("num_attention_heads", &C::num_attention_heads, Required{}, least);
    field("vocab_size", &C::vocab_size, Required{}, least);
    field("num_key_value_heads", &C::num_key_value_heads, least);
    field("head_dim", &C::head_dim, least);
    field("intermediate_size", &C::intermediate_size, least);
    field("n_routed_experts", &C::n_routed_experts, none);
    field("num_local_experts", &C::num_local_experts, none);
    field("num_experts", &C::num_experts, none);
    field("num_experts_per_tok", &C::num_experts_per_tok, none);
    field("num_experts_per_token", &C::num_experts_per_token, none);
    field("moe_intermediate_size", &C::moe_intermediate_size, least);
    field("n_shared_experts", &C::n_shared_experts, none);
    field("shared_expert_intermediate_size", &C::shared_expert_intermediate_size, none);
    field("first_k_dense_replace", &C::first_k_dense_replace, none);
    field("q_lora_rank", &C::q_lora_rank, least);
    field("kv_lora_rank", &C::kv_lora_rank, least);
    field("qk_rope_head_dim", &C::qk_rope_head_dim, none);
    field("qk_nope_head_dim", &C::qk_nope_head_dim, none);
    field("v_head_dim", &C::v_head_dim, least);
    field("sliding_window", &C::sliding_window, none);
    field("full_attention_interval", &C::full_attention_interval, least);
    field("linear_num_key_heads", &C::linear_num_key_heads, least);
    field("linear_num_value_heads", &C::linear_num_value_heads, least);
    field("linear_key_head_dim", &C::linear_key_head_dim, least);
    field("index_n_heads", &C::index_n_heads, least);
    field("index_head_dim", &C::index_head_dim, least);
    field("index_topk", &C::index_topk, least);
    field("moe_layer_freq", &C::moe_layer_freq, only);
    field("decoder_sparse_step", &C::decoder_sparse_step, only);
    field("interleave_moe_layer_step", &C::interleave_moe_layer_step, only);
    field("use_sliding_window", &C::use_sliding_window);
    field("attn_output_gate", &C::attn_output_gate);
    field("mlp_only_layers", &C::mlp_only_layers);
    field("layer_types", &C::layer_types);
    field("_name_or_path", &C::name);
}

/// The first value that is present, else 0.
template <class... Rest>
static int first_of(const std::optional<int>& value, const Rest&... rest) {
    if (value) return *value;
    if constexpr (sizeof...(rest) > 0)
        return first_of(rest...);
    else
        return 0;
}

static LanguageModel model_of(const ModelConfig& c) {
    const auto layers_of_type = [&](const char* type) {
        return static_cast<int>(std::count(c.layer_types->begin(), c.layer_types->end(), type));
    };
    LanguageModel m;
    m.name = c.name.value_or("");
    m.source = "config.json";
    m.layers = c.num_hidden_layers;
    m.hidden = c.hidden_size;
    m.heads = c.num_attention_heads;
    m.vocabulary = c.vocab_size;
    m.kv_heads = c.kv_lora_rank ? 1 : first_of(c.num_key_value_heads, c.num_attention_heads);
    m.head_size = c.head_dim ? *c.head_dim : c.hidden_size / c.num_attention_heads;
    m.experts = first_of(c.n_routed_experts, c.num_local_experts, c.num_experts);
    if (m.experts > 0) {
        m.top_k = first_of(c.num_experts_per_tok, c.num_experts_per_token);
        m.moe_intermediate = first_of(c.moe_intermediate_size, c.intermediate_size);
        m.first_dense = c.first_k_dense_replace ? *c.first_k_dense_replace
                        : c.mlp_only_layers     ? static_cast<int>(c.mlp_only_layers->size())
                                                : 0;
        m.shared_experts = first_of(c.n_shared_experts);
        if (c.shared_expert_intermediate_size && m.moe_intermediate > 0)
            m.shared_experts = double(*c.shared_expert_intermediate_size) / m.moe_intermediate;
    }
    if (m.experts == 0 || m.first_dense > 0) m.intermediate = first_of(c.intermediate_size);
    if (c.kv_lora_rank) {
        m.q_lora_rank = first_of(c.q_lora_rank);
        m.kv_lora_rank = *c.kv_lora_rank;
        m.rope_size = first_of(c.qk_rope_head_dim);
        m.nope_size = first_of(c.qk_nope_head_dim);
        m.value_size = first_of(c.v_head_dim);
    }
    if (c.sliding_window && c.use_sliding_window.value_or(true)) {
        m.window_layers = c.layer_types ? layers_of_type("sliding_attention") : m.layers;
        m.window = m.window_layers > 0 ? *c.sliding_window : 0;
    }
    if (c.linear_num_value_heads) {
        const int interval = c.full_attention_interval.value_or(4);
        m.linear_layers = c.layer_types ? layers_of_type("linear_attention") : m.layers - m.layers / interval;
    }
    if (m.linear_layers > 0) {
        m.linear_key_heads = first_of(c.linear_num_key_heads);
        m.linear_value_heads = *c.linear_num_value_heads;
        m.linear_size = first_of(c.linear_key_head_dim);
    }
    if (c.index_topk) {
        m.index_heads = first_of(c.index_n_heads);
        m.index_size = first_of(c.index_head_dim);
        m.index_top_k = *c.index_topk;
    }
    m.gated = c.attn_output_gate.value_or(m.linear_layers > 0);
    return m;
}

/// A name without differences of case and separators.
static std::string folded(std::string_view name) {
    std::string text;
    for (const char c : name)
        text += c == '_' || c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

bool is_same_name(std::string_view name, std::string_view known) { return folded(name) == folded(known); }

}  // namespace detail

GPUSCHED_EXPORT LanguageModel find_language_model(const std::string& model) {
    std::vector<std::string> ids;
    std::string names;
    for (const auto& known : known_language_models()) {
        if (known.name == model) return known;
        names += known.name + ", ";
        ids.push_back(known.name);
    }
    for (const auto& known : detail::known_models()) {
        if (detail::is_same_name(model, known.model.name)) return known.model;
        for (const auto& id : known.ids) {
            if (detail::is_same_name(model, id)) return known.model;
            ids.push_back(id);
        }
    }
    auto path = std::filesystem::path(model);
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) path /= "config.json";
    if (path.extension() != ".json" && !std::filesystem::exists(path, none))
        throw InvalidInput(bad_value("model", gpusched::quoted(model),
                                     "one of " + names + "or a config.json as a path or dict") +
                           did_you_mean(model, ids));
    Problems problems;
    const auto config = json::Document::read(path.string(), problems);
    problems.throw_if_any();
    auto found = read_model_config(config);
    if (found.name.empty()) found.name = model;
    return found;
}

GPUSCHED_EXPORT LanguageModel read_model_config(const json::Document& config) {
    Problems problems;
    json::Reader reader(config, problems);
    const auto at = reader.place_of(0, "text_config");
    detail::ModelConfig found;
    reader.read_part(at, found);
    problems.throw_if_any();

    const auto model = detail::model_of(found);
    const auto need = [&](bool there, std::string_view field) {
        if (!there) reader.report_missing(at, field);
    };
    need(model.experts > 0 || model.intermediate > 0, "intermediate_size");
    need(model.experts == 0 || model.top_k > 0, "num_experts_per_tok");
    need(model.experts == 0 || model.moe_intermediate > 0, "moe_intermediate_size");
    need(model.first_dense == 0 || model.intermediate > 0, "intermediate_size");
    need(model.kv_lora_rank == 0 || model.rope_size > 0, "qk_rope_head_dim");
    need(model.kv_lora_rank == 0 || model.nope_size > 0, "qk_nope_head_dim");
    need(model.kv_lora_rank == 0 || model.value_size > 0, "v_head_dim");
    need(model.linear_layers == 0 || model.linear_key_heads > 0, "linear_num_key_heads");
    need(model.linear_layers == 0 || model.linear_size > 0, "linear_key_head_dim");
    need(model.index_top_k == 0 || model.index_size > 0, "index_head_dim");
    need(model.index_top_k == 0 || model.index_heads > 0, "index_n_heads");
    const auto most = [&](const char* field, double value, double limit, const char* of) {
        if (value > limit)
            reader.expected(reader.place_of(at, field), "at most " + number_text(limit) + ", the " + of);
    };
    most("num_key_value_heads", model.kv_heads, model.heads, "attention heads");
    most("num_experts_per_tok", model.top_k, model.experts, "experts");
    most("first_k_dense_replace", model.first_dense, model.layers, "layers");
    most("layer_types", model.window_layers + model.linear_layers, model.layers, "layers");
    problems.throw_if_any();
    return model;
}

}  // namespace gpusched::serving

// SPDX-License-Identifier: Apache-2.0
// Problems of parts of a serving request, with their places in documents.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::serving::detail {

/// A problem in a part of a request.
struct Finding {
    std::string field{};  ///< the field; empty = the part itself
    std::string text{};   ///< what is wrong; empty = the field is missing
};

inline std::string in_words(const Finding& finding) {
    if (finding.field.empty()) return finding.text;
    return finding.field + (finding.text.empty() ? " is missing" : ": " + finding.text);
}

/// A message of `parse_deployment` as a finding.
inline Finding in_deployment(std::string_view problem) {
    constexpr std::string_view field = "deployment: ";
    if (!problem.starts_with(field)) return {{}, std::string(problem)};
    return {"deployment", std::string(problem.substr(field.size()))};
}

/// Reports a finding at its field, or at the part if the field is missing.
inline void report(json::Reader& reader, std::uint32_t part, const Finding& finding) {
    if (finding.text.empty())
        reader.report_missing(part, finding.field);
    else if (const auto at = reader.document().find(part, finding.field))
        reader.report(*at, finding.text);
    else
        reader.report(part, in_words(finding));
}

/// Bytes per number in the KV cache unless they are given: 1 if the weights have fewer than 16 bits, as
/// measured.
inline double usual_bytes_per_kv(const LanguageModel& model) { return model.bytes_per_weight < 1.5 ? 1 : 2; }

/// Calls `each(finding)` for every problem between the numbers of a model.
template <class F>
void find_in_model(const LanguageModel& model, const F& each) {
    const auto& m = model;
    constexpr int any = std::numeric_limits<int>::max();
    const auto require = [&](const char* field, int value, int low, int high) {
        if (value < low || value > high)
            each(Finding{field, number_text(value) + "; expected " +
                                    (high == any ? "at least 1" : range_text(low, high))});
    };
    require("kv_heads", m.kv_heads, 1, m.heads);
    if (m.experts == 0 || m.first_dense > 0) require("intermediate", m.intermediate, 1, any);
    if (m.experts > 0) {
        require("top_k", m.top_k, 1, m.experts);
        require("moe_intermediate", m.moe_intermediate, 1, any);
    }
    require("first_dense", m.first_dense, 0, m.experts > 0 ? m.layers : 0);
    if (m.kv_lora_rank > 0) {
        require("rope_size", m.rope_size, 1, any);
        require("nope_size", m.nope_size, 1, any);
        require("value_size", m.value_size, 1, any);
    }
    require("linear_layers", m.linear_layers, 0, m.layers);
    require("window_layers", m.window_layers, 0, m.layers - std::min(m.linear_layers, m.layers));
    if (m.window_layers > 0) require("window", m.window, 1, any);
    if (m.linear_layers > 0) {
        require("linear_value_heads", m.linear_value_heads, 1, any);
        require("linear_size", m.linear_size, 1, any);
    }
    if (m.index_top_k > 0) {
        require("index_heads", m.index_heads, 1, any);
        require("index_size", m.index_size, 1, any);
    }
    const auto unused = [&](const char* field, double value, const char* without, int there) {
        if (there == 0 && value > 0)
            each(Finding{field, number_text(value) + "; expected 0 without " + without});
    };
    unused("top_k", m.top_k, "experts", m.experts);
    unused("moe_intermediate", m.moe_intermediate, "experts", m.experts);
    unused("shared_experts", m.shared_experts, "experts", m.experts);
    unused("q_lora_rank", m.q_lora_rank, "kv_lora_rank", m.kv_lora_rank);
    unused("rope_size", m.rope_size, "kv_lora_rank", m.kv_lora_rank);
    unused("nope_size", m.nope_size, "kv_lora_rank", m.kv_lora_rank);
    unused("value_size", m.value_size, "kv_lora_rank", m.kv_lora_rank);
    unused("window", m.window, "window_layers", m.window_layers);
    unused("linear_key_heads", m.linear_key_heads, "linear_layers", m.linear_layers);
    unused("linear_value_heads", m.linear_value_heads, "linear_layers", m.linear_layers);
    unused("linear_size", m.linear_size, "linear_layers", m.linear_layers);
    unused("index_heads", m.index_heads, "index_top_k", m.index_top_k);
    unused("index_size", m.index_size, "index_top_k", m.index_top_k);
}

/// The model of that name; null if there is none.
inline const ServedModel* find_model(const ServingRequest& request, const std::string& name) {
    for (const auto& served : request.models)
        if (served.model.name == name) return &served;
    return nullptr;
}

/// Reports an unknown name.
/// @param expected a further expectation, with `or` after it
inline void report_unknown(json::Reader& reader, std::uint32_t at, std::string_view name,
                           const std::vector<std::string>& known, const std::string& expected = {}) {
    std::string list;
    for (const auto& each : known) list += (list.empty() ? "one of " : ", ") + each;
    reader.report(at, "expected " + expected + (list.empty() ? "none" : list) + ", found " +
                          gpusched::quoted(printable(name)) + did_you_mean(name, known));
}

/// The layout of serving documents: every real number has a decimal point, so that every reader takes it as
/// one.
inline json::Style document_style(int indent) {
    return {.indent = indent, .line_per_value = true, .point = true};
}

}  // namespace gpusched::serving::detail

// SPDX-License-Identifier: Apache-2.0
// Requests to a language model, recorded or generated: when they come, how long prompts and answers are.
#pragma once

#include <gpusched/core/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::sim {

/// A request to a language model.
struct LlmRequest {
    double time_s = 0;  ///< since the first one
    std::int32_t prompt_tokens = 0;
    std::int32_t output_tokens = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<LlmRequest>, F&& field) {
    field("time_s", &LlmRequest::time_s);
    field("prompt_tokens", &LlmRequest::prompt_tokens, at_least(0));
    field("output_tokens", &LlmRequest::output_tokens, at_least(0));
}

/// Reads recorded requests from CSV, in either of two forms, with columns in any order and others ignored:
/// - of Azure's LLM inference service: TIMESTAMP (`2023-11-16 18:17:03.9799600`, `2024-05-10 00:00:00.009930+00:00`), ContextTokens and GeneratedTokens;
/// - of BurstGPT: Timestamp (seconds), Request tokens and Response tokens; a request without response tokens has failed, and is
///   left out. A table with the column TIMESTAMP is none of these.
/// Rows are sorted by time.
/// @param source  what messages call the text
/// @param failed  set to the number of rows that are left out, where given
/// @throws InvalidInput when a column is missing, or with every cell that cannot be read, as `source:line: column: ...`
[[nodiscard]] std::vector<LlmRequest>
read_llm_trace(std::string_view csv, std::string_view source = "<trace>", std::size_t* failed = nullptr);

/// A trace with the gross features of Azure's conversations of 2023: Poisson arrivals of 5.5 requests/s, prompts with a
/// median of 1,020 tokens and a long tail, answers of 211 tokens on average.
/// Determinism: everything follows from `seed`.
[[nodiscard]] std::vector<LlmRequest> generate_llm_trace(std::size_t requests, std::uint64_t seed);

}  // namespace gpusched::sim

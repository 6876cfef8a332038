// SPDX-License-Identifier: Apache-2.0
// Requests to a language model, recorded or generated: arrival times and lengths of prompts and answers.
#pragma once

#include <gpusched/core/fields.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// A request to a language model.
struct LlmRequest {
    double time_s = 0;  ///< seconds since the first request
    std::int32_t prompt_tokens = 0;
    std::int32_t output_tokens = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<LlmRequest>, F&& field) {
    field("time_s", &LlmRequest::time_s);
    field("prompt_tokens", &LlmRequest::prompt_tokens, at_least(0));
    field("output_tokens", &LlmRequest::output_tokens, at_least(0));
}

/// Reads recorded requests from CSV or JSON lines. Columns and fields may be in any order; others are ignored.
/// There are three formats:
/// - Azure's LLM inference service: TIMESTAMP, ContextTokens and GeneratedTokens. Times are written like
///   `2023-11-16 18:17:03.9799600` or `2024-05-10 00:00:00.009930+00:00`. A table with a column TIMESTAMP is
///   read in this format.
/// - BurstGPT: Timestamp (seconds), Request tokens and Response tokens. A request without response tokens has
///   failed and is left out.
/// - Mooncake, if the text begins with `{`: an object per line, with timestamp (milliseconds), input_length and
///   output_length.
/// Rows are sorted by time.
/// @param source name of the text in messages
/// @param failed if not null, set to the number of rows that are left out
/// @throws InvalidInput when a column or field is missing, or with every unreadable cell as
///     `source:line: column: ...`
[[nodiscard]] std::vector<LlmRequest>
read_llm_trace(std::string_view csv, std::string_view source = "<trace>", std::size_t* failed = nullptr);

/// Generates a trace with the main features of Azure's conversations of 2023: Poisson arrivals of 5.5
/// requests/s, prompts with a median of 1,020 tokens and a long tail, answers of 211 tokens on average.
/// Determinism: `seed` determines all requests.
[[nodiscard]] std::vector<LlmRequest> generate_llm_trace(std::size_t requests, std::uint64_t seed);

}  // namespace gpusched::serving

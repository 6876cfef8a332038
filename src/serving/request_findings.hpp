// SPDX-License-Identifier: Apache-2.0
// Problems of parts of a serving request, with their places in documents.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <cstdint>
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

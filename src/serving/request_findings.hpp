// SPDX-License-Identifier: Apache-2.0
// Problems of a serving request beyond the ranges of its fields, and where a document reports them.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gpusched::serving::detail {

/// Calls `check`, and adds its problems to the others.
template <class Check>
void collect(Problems& problems, const Check& check) {
    try {
        check();
    } catch (const InvalidInput& error) {
        for (const auto& problem : error.problems()) problems.add(problem);
    }
}

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

/// Calls `each(finding)` for every problem of the rental terms of a GPU type.
template <class F>
void find_in_terms(const RentalTerms& terms, const F& each) {
    if (terms.spot_available > 0 && !terms.spot_price) each(Finding{"spot_price"});
    if (terms.spot_price && terms.spot_available == 0)
        each(Finding{"spot_available", "0; expected at least 1, with a spot_price"});
}

/// Calls `each(finding)` for every problem of a model with numbers in their ranges.
template <class F>
void find_in_model(const LanguageModel& model, const F& each) {
    if (model.kv_heads < 1 || model.kv_heads > model.heads)
        each(Finding{"kv_heads", number_text(model.kv_heads) + "; expected " + range_text(1, model.heads)});
}

/// Calls `each(finding)` for every problem of a workload among others.
/// @param rates whether some workload has a rate
template <class F>
void find_in_workload(const ServingWorkload& workload, bool rates, const F& each) {
    if (workload.requests > 0 && rates)
        each(Finding{"requests",
                     number_text(workload.requests) +
                         "; expected a rate, as other workloads have: a batch and arrivals are not "
                         "planned together"});
    else if (workload.targets.any() && !rates)
        each(Finding{"targets", "need a rate; a batch that is there at once has none"});
}

/// Calls `each(row, finding)` for every wrong name in the measurements.
/// @param deployments whether names of deployments are checked, too, which needs valid GPU types and models
template <class F>
void find_in_measured(const ServingRequest& request, bool deployments, const F& each) {
    std::vector<std::string> models;
    for (const auto& served : request.models) models.push_back(served.model.name);
    std::set<std::tuple<std::string, std::string, std::string, double>> seen;
    for (std::size_t row = 0; row < request.measured.size(); ++row) {
        const auto& m = request.measured[row];
        const bool at_load = m.ttft_s || m.tpot_s;
        if (!seen.emplace(m.model, m.deployment, m.workload, at_load ? m.requests_per_s : -1).second)
            each(row,
                 Finding{{},
                         "appears twice for " + gpusched::quoted(m.workload) + " of " +
                             gpusched::quoted(m.model) +
                             (at_load ? " at " + number_text(m.requests_per_s) + " requests_per_s" : "")});
        const auto served =
            std::find_if(request.models.begin(), request.models.end(),
                         [&](const ServedModel& each_of) { return each_of.model.name == m.model; });
        if (served == request.models.end()) {
            each(row,
                 Finding{{},
                         "there is no model " + gpusched::quoted(m.model) + did_you_mean(m.model, models)});
            continue;
        }
        std::vector<std::string> kinds;
        for (const auto& workload : served->workloads) kinds.push_back(workload.name);
        if (std::find(kinds.begin(), kinds.end(), m.workload) == kinds.end())
            each(row, Finding{{},
                              "there is no workload " + gpusched::quoted(m.workload) + " of a model " +
                                  gpusched::quoted(m.model) + did_you_mean(m.workload, kinds)});
        if (!deployments) continue;
        try {
            static_cast<void>(parse_deployment(m.deployment, served->model, request.gpus));
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) each(row, in_deployment(problem));
        }
    }
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

/// The layout of serving documents: every real number has a decimal point, so that every reader takes it as
/// one.
inline json::Style document_style(int indent) {
    return {.indent = indent, .line_per_value = true, .point = true};
}

}  // namespace gpusched::serving::detail

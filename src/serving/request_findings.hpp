// SPDX-License-Identifier: Apache-2.0
// What is wrong with a serving request beside the ranges of its fields, said of the part and its field.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gpusched::serving::detail {

struct Finding {
    std::string field{};  ///< empty: all of the part
    std::string text{};   ///< empty: the field is missing
};

inline std::string in_words(const Finding& finding) {
    if (finding.field.empty()) return finding.text;
    return finding.field + (finding.text.empty() ? " is missing" : ": " + finding.text);
}

/// What `parse_deployment` says of a name.
inline Finding in_deployment(std::string_view problem) {
    constexpr std::string_view field = "deployment: ";
    if (!problem.starts_with(field)) return {{}, std::string(problem)};
    return {"deployment", std::string(problem.substr(field.size()))};
}

/// Calls `each(finding)` for what is wrong with the terms on which a GPU type can be rented.
template <class F>
void find_in_terms(const RentalTerms& terms, const F& each) {
    if (terms.spot_available > 0 && !terms.spot_price) each(Finding{"spot_price"});
    if (terms.spot_price && terms.spot_available == 0)
        each(Finding{"spot_available", "0; expected at least 1, with a spot_price"});
}

/// Calls `each(finding)` for what is wrong with a model whose numbers are in their ranges.
template <class F>
void find_in_model(const LanguageModel& model, const F& each) {
    if (model.kv_heads < 1 || model.kv_heads > model.heads)
        each(Finding{"kv_heads", number_text(model.kv_heads) + "; expected " + range_text(1, model.heads)});
}

/// Calls `each(finding)` for what is wrong with a workload beside others.
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

/// Calls `each(row, finding)` for what is wrong with the names in what was measured.
/// @param deployments whether the names of deployments are read, too: GPU types and models are all right
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

}  // namespace gpusched::serving::detail

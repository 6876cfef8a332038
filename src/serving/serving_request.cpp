// SPDX-License-Identifier: Apache-2.0
#include "serving/request_findings.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>

namespace gpusched::serving {

GPUSCHED_EXPORT bool ServingRequest::has_rates() const noexcept {
    for (const auto& served : models)
        for (const auto& workload : served.workloads)
            if (workload.rate > 0) return true;
    return false;
}

GPUSCHED_EXPORT void validate(const ServingRequest& request) {
    Problems problems;
    const auto take = [&](auto&& check) {
        try {
            check();
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) problems.add(problem);
        }
    };
    take([&] { validate(request.gpus); });
    const double most = std::numeric_limits<double>::max();
    for (const auto& gpu : request.gpus)
        if (!gpu.price) problems.add("GPU type " + gpusched::quoted(gpu.name) + ": price is missing");
    if (request.available.size() != request.gpus.size())
        problems.add(bad_value("available", std::to_string(request.available.size()) + " entries",
                               std::to_string(request.gpus.size()) + ", one per GPU type"));
    for (const auto count : request.available) check_at_least(problems, "available", count, 0);
    const bool free = request.has_rates() && request.budget == std::numeric_limits<double>::infinity();
    if (!free) check_range(problems, "budget", request.budget, 0.0, most);
    if (!request.terms.empty() && request.terms.size() != request.gpus.size())
        problems.add(bad_value("terms", std::to_string(request.terms.size()) + " entries",
                               std::to_string(request.gpus.size()) + ", one per GPU type, or none"));
    for (std::size_t g = 0; g < std::min(request.terms.size(), request.gpus.size()); ++g) {
        const auto owner = "GPU type " + gpusched::quoted(request.gpus[g].name);
        const auto& terms = request.terms[g];
        check_fields(problems, terms, owner);
        detail::find_in_terms(
            terms, [&](const auto& finding) { problems.add(owner + ": " + detail::in_words(finding)); });
    }
    std::set<std::string> models;
    std::set<std::pair<std::string, std::string>> names;
    for (const auto& served : request.models) {
        const auto& name = served.model.name;
        const auto owner = "model " + gpusched::quoted(name);
        if (name.empty()) problems.add(bad_value("name", "''", "a name", "model"));
        if (!models.insert(name).second) problems.add(owner + ": appears twice");
        take([&] { validate(served.model); });
        for (const auto& workload : served.workloads) {
            const auto of = owner + ": workload " + gpusched::quoted(workload.name);
            if (workload.name.empty()) problems.add(bad_value("workload", "''", "a name", owner));
            if (!names.emplace(name, workload.name).second) problems.add(of + ": appears twice");
            check_fields(problems, workload.shape, of);
            check_range(problems, "requests", workload.requests, 0.0, most, of);
            check_range(problems, "rate", workload.rate, 0.0, most, of);
            check_fields(problems, workload.targets, of);
            detail::find_in_workload(workload, request.has_rates(), [&](const auto& finding) {
                problems.add(of + ": " + detail::in_words(finding));
            });
        }
    }
    const auto of_row = [&](std::size_t row) {
        return "measured throughput of " + gpusched::quoted(request.measured[row].deployment);
    };
    const bool deployments = problems.empty() && !request.gpus.empty();
    for (std::size_t row = 0; row < request.measured.size(); ++row)
        check_fields(problems, request.measured[row], of_row(row));
    detail::find_in_measured(request, deployments, [&](std::size_t row, const auto& finding) {
        problems.add(of_row(row) + ": " + detail::in_words(finding));
    });
    problems.throw_if_any();
}

}  // namespace gpusched::serving

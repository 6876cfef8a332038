// SPDX-License-Identifier: Apache-2.0
// Serving requests: validation, and other rates for a request.
#include "serving/request_findings.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

GPUSCHED_EXPORT bool ServingRequest::has_rates() const noexcept {
    for (const auto& served : models)
        for (const auto& workload : served.workloads)
            if (workload.rate > 0) return true;
    return false;
}

GPUSCHED_EXPORT void validate(const ServingRequest& request) {
    Problems problems;
    detail::collect(problems, [&] { validate(request.gpus); });
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
        detail::collect(problems, [&] { validate(served.model); });
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

GPUSCHED_EXPORT void validate(const RequestRates& rates) {
    Problems problems;
    if (rates.all)
        check_range(problems, "rate", *rates.all, detail::smallest_positive, detail::largest_finite);
    double sum = 0;
    for (const auto& [name, rate] : rates.by_kind) {
        check_range(problems, "rate[" + gpusched::quoted(name) + "]", rate, 0.0, detail::largest_finite);
        sum += rate;
    }
    if (problems.empty() && !rates.by_kind.empty() && !(sum > 0))
        problems.add("rate: expected a rate above 0 for some kind of requests");
    problems.throw_if_any();
}

GPUSCHED_EXPORT ServingRequest with_rate(ServingRequest request, double rate) {
    require_range("rate", rate, std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
    const bool rates = request.has_rates();
    double all = 0;
    std::size_t kinds = 0;
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads) {
            all += rates ? workload.rate : workload.requests;
            ++kinds;
        }
    if (kinds != 1 && !(all > 0))
        throw InvalidInput("request: no requests; expected workloads with requests or a rate");
    for (auto& served : request.models)
        for (auto& workload : served.workloads) {
            workload.rate = kinds == 1 ? rate : (rates ? workload.rate : workload.requests) / all * rate;
            workload.requests = 0;
        }
    return request;
}

GPUSCHED_EXPORT ServingRequest with_rates(ServingRequest request, const RequestRates& rates) {
    validate(rates);
    if (rates.all) return with_rate(std::move(request), *rates.all);
    if (!rates.any()) return request;
    struct Kind {
        std::string full;  ///< MODEL/KIND
        ServingWorkload* workload;
        const std::string* named;  ///< the name in `rates`; null = none yet
    };
    std::vector<Kind> kinds;
    std::vector<std::string> known;
    for (auto& served : request.models)
        for (auto& workload : served.workloads) {
            kinds.push_back({served.model.name + "/" + workload.name, &workload, nullptr});
            workload.rate = workload.requests = 0;
        }
    for (const auto& kind : kinds) {
        const auto same = std::count_if(kinds.begin(), kinds.end(), [&](const Kind& other) {
            return other.workload->name == kind.workload->name;
        });
        known.push_back(same > 1 ? kind.full : kind.workload->name);
    }
    Problems problems;
    for (const auto& [name, rate] : rates.by_kind) {
        std::vector<Kind*> meant;
        for (auto& kind : kinds)
            if (kind.full == name) meant.push_back(&kind);
        for (auto& kind : kinds)
            if (kind.workload->name == name && (meant.empty() || meant.front()->full != name))
                meant.push_back(&kind);
        if (meant.empty()) {
            problems.add(bad_name("rate", name, known));
        } else if (meant.size() > 1) {
            std::string each;
            for (const auto* kind : meant)
                each += (each.empty() ? "" : " or ") + gpusched::quoted(kind->full);
            problems.add(bad_value("rate", gpusched::quoted(name), each));
        } else if (meant.front()->named != nullptr) {
            problems.add("rate: " + gpusched::quoted(*meant.front()->named) + " and " +
                         gpusched::quoted(name) + " are the same kind of requests");
        } else {
            meant.front()->named = &name;
            meant.front()->workload->rate = rate;
        }
    }
    problems.throw_if_any();
    return request;
}

}  // namespace gpusched::serving

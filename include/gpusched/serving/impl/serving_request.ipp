#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/serving/serving_request.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::serving {

GPUSCHED_INLINE bool ServingRequest::has_rates() const noexcept {
    for (const auto& served : models)
        for (const auto& workload : served.workloads)
            if (workload.rate > 0) return true;
    return false;
}

GPUSCHED_INLINE void validate(const ServingRequest& request) {
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
        if (terms.spot_available > 0 && !terms.spot_price) problems.add(owner + ": spot_price is missing");
        if (terms.spot_price && terms.spot_available == 0)
            problems.add(bad_value("spot_available", "0", "at least 1, with a spot_price", owner));
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
            if (workload.requests > 0 && request.has_rates())
                problems.add(bad_value(
                    "requests", number_text(workload.requests),
                    "a rate, as other workloads have: a batch and arrivals are not planned together", of));
            else if (workload.targets.any() && !request.has_rates())
                problems.add(of + ": targets: need a rate; a batch that is there at once has none");
        }
    }
    const bool names_known = problems.empty() && !request.gpus.empty();
    std::vector<std::string> kinds;
    for (const auto& [model, workload] : names) kinds.push_back(workload);
    std::set<std::tuple<std::string, std::string, std::string, double>> measured;
    for (const auto& m : request.measured) {
        const auto owner = "measured throughput of " + gpusched::quoted(m.deployment);
        if (!measured.emplace(m.model, m.deployment, m.workload, m.ttft_s || m.tpot_s ? m.requests_per_s : -1)
                 .second)
            problems.add(
                owner + ": appears twice for " + gpusched::quoted(m.workload) + " of " +
                gpusched::quoted(m.model) +
                (m.ttft_s || m.tpot_s ? " at " + number_text(m.requests_per_s) + " requests_per_s" : ""));
        if (!models.contains(m.model))
            problems.add(owner + ": there is no model " + gpusched::quoted(m.model) +
                         did_you_mean(m.model, std::vector<std::string>(models.begin(), models.end())));
        else if (!names.contains({m.model, m.workload}))
            problems.add(owner + ": there is no workload " + gpusched::quoted(m.workload) + " of a model " +
                         gpusched::quoted(m.model) + did_you_mean(m.workload, kinds));
        check_fields(problems, m, owner);
        if (!names_known) continue;
        for (const auto& served : request.models)
            if (served.model.name == m.model) try {
                    static_cast<void>(parse_deployment(m.deployment, served.model, request.gpus));
                } catch (const InvalidInput& error) {
                    for (const auto& problem : error.problems()) problems.add(owner + ": " + problem);
                }
    }
    problems.throw_if_any();
}

}  // namespace GPUSCHED_NAMESPACE::serving

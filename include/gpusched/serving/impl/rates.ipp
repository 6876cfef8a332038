#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/serving/rates.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::serving {

GPUSCHED_INLINE void validate(const RequestRates& rates) {
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

GPUSCHED_INLINE ServingRequest with_rate(ServingRequest request, double rate) {
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
        throw InvalidInput("request: asks for nothing; expected workloads with requests or a rate");
    for (auto& served : request.models)
        for (auto& workload : served.workloads) {
            workload.rate = kinds == 1 ? rate : (rates ? workload.rate : workload.requests) / all * rate;
            workload.requests = 0;
        }
    return request;
}

GPUSCHED_INLINE ServingRequest with_rates(ServingRequest request, const RequestRates& rates) {
    validate(rates);
    if (rates.all) return with_rate(std::move(request), *rates.all);
    if (!rates.any()) return request;
    std::vector<std::string> known;
    for (auto& served : request.models)
        for (auto& workload : served.workloads) {
            known.push_back(workload.name);
            const auto given = rates.by_kind.find(workload.name);
            workload.rate = given == rates.by_kind.end() ? 0 : given->second;
            workload.requests = 0;
        }
    Problems problems;
    for (const auto& [name, rate] : rates.by_kind)
        if (std::find(known.begin(), known.end(), name) == known.end())
            problems.add(bad_name("rate", name, known));
    problems.throw_if_any();
    return request;
}

}  // namespace GPUSCHED_NAMESPACE::serving

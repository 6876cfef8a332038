// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/serving/rates.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::serving {

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
        throw InvalidInput("request: asks for nothing; expected workloads with requests or a rate");
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
        std::string full;  ///< with its model
        ServingWorkload* workload;
        const std::string* named;  ///< as which of `rates`; null = not yet
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

#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/serving/serving_curve.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::serving {

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

GPUSCHED_INLINE ServingRequest with_rates(ServingRequest request,
                                          const std::map<std::string, double>& rates) {
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
    for (const auto& [name, rate] : rates) {
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

namespace detail {

/// What all kinds of requests must keep: the targets of the call, and of the kinds' own the shortest.
inline LatencyTargets shortest_targets(const ServingRequest& request, const LatencyTargets& call) {
    LatencyTargets shortest;
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads)
            visit_fields(std::type_identity<LatencyTargets>{}, [&](const char*, auto member, const auto&...) {
                const auto& own = workload.targets.*member;
                auto& least = shortest.*member;
                if (workload.rate > 0 && own && (!least || *own < *least)) least = own;
            });
    return merged(shortest, call);
}

}  // namespace detail

GPUSCHED_INLINE std::vector<CurvePoint> serving_curve(const ServingRequest& request,
                                                      const std::vector<double>& rates,
                                                      const std::vector<LatencyTargets>& targets,
                                                      const PlannerOptions& options,
                                                      const milp::AnySolver& solver, const Context& context) {
    Problems problems;
    for (std::size_t i = 0; i < rates.size(); ++i)
        check_range(problems, "rates[" + std::to_string(i) + "]", rates[i],
                    std::numeric_limits<double>::min(), std::numeric_limits<double>::max());
    for (std::size_t i = 0; i < targets.size(); ++i)
        check_fields(problems, targets[i], "targets[" + std::to_string(i) + "]");
    problems.throw_if_any();
    std::vector<CurvePoint> points;
    double own = 0;
    for (const auto& served : request.models)
        for (const auto& workload : served.workloads) own += workload.rate;
    if (rates.empty() && !(own > 0))
        throw InvalidInput("rates: none, and the request has none of its own; expected rates above 0");
    for (const double rate : rates.empty() ? std::vector{own} : rates)
        for (const auto& target : targets.empty() ? std::vector{LatencyTargets{}} : targets) {
            auto each = options;
            each.targets = merged(options.targets, target);
            const auto asked = with_rate(request, rate);
            points.push_back({rate, detail::shortest_targets(asked, each.targets),
                              plan_serving(asked, each, solver, context)});
        }
    return points;
}

}  // namespace GPUSCHED_NAMESPACE::serving

// SPDX-License-Identifier: Apache-2.0
// Requests and plans of the serving planner as dicts, which the library reads and writes as documents.
#include "serving/serving.hpp"
#include "support/documents.hpp"

#include <gpusched/serving/plan_json.hpp>
#include <gpusched/serving/serving_request.hpp>

namespace gpusched::python {

namespace s = serving;

namespace {

/// The rates of a call: for all kinds together, or a dict by kind. For wrong rates it adds a problem and uses
/// the rate 1, so that the document is still read as a request with rates.
s::RequestRates read_rates(const py::object& rate, Problems& problems) {
    s::RequestRates result;
    if (!rate || rate.is_none()) return result;
    const auto before = problems.count();
    if (!is_mapping(rate)) {
        result.all = 1;
        collect(problems, [&] { result.all = OptionType<double>::read("rate", rate); });
    } else {
        for (const auto item : rate) {
            if (py::isinstance<py::str>(item)) result.by_kind[py::str(item).cast<std::string>()] = 1;
        }
        collect(problems, [&] { result.by_kind = from_python("rate", rate, result.by_kind); });
        if (result.by_kind.empty() && problems.count() == before)
            problems.add("rate: expected a rate above 0 for some kind of requests");
    }
    collect(problems, [&] { s::validate(result); });
    if (problems.count() > before) {
        if (result.all) result.all = 1;
        for (auto& [name, each] : result.by_kind) each = 1;
    }
    return result;
}

/// A request with only the names of a plan, for its document.
s::ServingRequest names_of(const PlannedServing& plan) {
    s::ServingRequest request;
    for (const auto& name : plan.gpus) request.gpus.push_back({.name = name});
    request.models = plan.models;
    return request;
}

}  // namespace

serving::ServingRequest read_serving_request(const py::object& request, const py::object& rate) {
    Problems problems;
    const auto rates = read_rates(rate, problems);
    s::ServingRequest result;
    collect(problems, [&] { result = s::request_from_json(to_document(request, "request"), rates, ""); });
    problems.throw_if_any();
    return result;
}

py::dict write_serving_request(const serving::ServingRequest& request) {
    return parsed(s::request_to_json(request, 0));
}

std::vector<serving::PlannedReplicas> read_running(const py::object& given,
                                                   const serving::ServingRequest& request) {
    if (py::isinstance<PlannedServing>(given)) {
        const auto& plan = given.cast<const PlannedServing&>();
        return s::replicas_from_json(s::plan_to_json(plan, names_of(plan), {}, 0), request, "running");
    }
    return s::replicas_from_json(to_document(given, "running"), request);
}

py::dict write_serving_plan(const PlannedServing& plan, const s::PlanExtras& extras) {
    return parsed(s::plan_to_json(plan, names_of(plan), extras, 0));
}

namespace {

/// The names of plans for one request.
s::ServingRequest names_of(const std::vector<const PlannedServing*>& plans) {
    for (const auto* plan : plans)
        if (plan->gpus != plans.front()->gpus || plan->models != plans.front()->models)
            throw InvalidInput(
                "plans: of different requests; expected plans with the same GPU types and models");
    return plans.empty() ? s::ServingRequest{} : names_of(*plans.front());
}

}  // namespace

py::dict write_serving_curve(const std::vector<double>& rates, const std::vector<s::LatencyTargets>& targets,
                             const std::vector<const PlannedServing*>& plans) {
    std::vector<s::CurvePoint> points;
    for (std::size_t i = 0; i < plans.size(); ++i) points.push_back({rates.at(i), targets.at(i), *plans[i]});
    return parsed(s::curve_to_json(points, names_of(plans), 0));
}

py::dict write_serving_sweep(const std::vector<double>& budgets,
                             const std::vector<const PlannedServing*>& plans) {
    std::vector<s::BudgetPlan> list;
    for (std::size_t i = 0; i < plans.size(); ++i) list.push_back({budgets.at(i), *plans[i]});
    return parsed(s::sweep_to_json(list, names_of(plans), 0));
}

}  // namespace gpusched::python

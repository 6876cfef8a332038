// SPDX-License-Identifier: Apache-2.0
// The module gpusched.serving.
#include "serving/serving.hpp"
#include "milp/milp.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"
#include "support/struct_states.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/sensitivity.hpp>

#include <cmath>

namespace gpusched::python {

// The parts of the module in other files.
void bind_autoscale(py::module_& m);
void bind_serving_catalogue(py::module_& m);
void bind_serving_latency(py::module_& m);
void bind_serving_problem(py::module_& m);

namespace s = serving;

namespace {

using Rate = Typed<"float | Mapping[str, float] | None">;
struct RateArguments {
    /// Requests per second: of all kinds together, in the proportions of the request, or a dict by kind:
    /// 'KIND', or 'MODEL/KIND' if several models have the kind. None: the rates of the request.
    Rate rate = py::none();
};
struct PlanArguments : s::PlannerOptions, SolverArguments, RateArguments {};
struct ReplanArguments : s::ReplanOptions, SolverArguments, RateArguments {};

/// The keywords of a solver call, and `rate`.
template <class Arguments, Described Options>
Keywords<Arguments> planner_keywords() {
    return solver_keywords<Arguments, Options>().field("rate", &RateArguments::rate);
}

struct NamedReplan : s::ReplanResult {
    PlannedServing named{};
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedReplan>, F&& field) {
    visit_fields(std::type_identity<s::ReplanResult>{}, field);
    field("named", &NamedReplan::named);
}

/// Reads a request and options, and reports all problems of both.
template <class Arguments>
std::pair<s::ServingRequest, Arguments> asked_for(const char* function, const Keywords<Arguments>& keywords,
                                                  const py::object& request, const py::kwargs& given,
                                                  const s::PlannerOptions& (*planner)(const Arguments&)) {
    Problems problems;
    std::pair<s::ServingRequest, Arguments> result{{}, keywords.read(function, given, problems)};
    collect(problems, [&] { result.first = read_serving_request(request, result.second.rate); });
    collect(problems, [&] { s::validate(planner(result.second)); });
    problems.throw_if_any();
    return result;
}

Typed<"dict[str, int]"> rented_by_name(const PlannedServing& plan) {
    py::dict result;
    for (std::size_t g = 0; g < plan.rented.size(); ++g)
        if (plan.rented[g] > 0) result[py::str(plan.gpus[g])] = plan.rented[g];
    return result;
}
/// Returns a request as a document of the format `gpusched.serving-request` v2 (docs/schema), with all values
/// from the catalogue, Table 1 or defaults. `available` counts GPUs, and targets for all kinds are repeated at
/// each kind. The document is equivalent to the request, for every version of its format.
Typed<"dict[str, Any]"> request_to_dict(const Request& request) {
    return write_serving_request(read_serving_request(request));
}

py::dict calibration_dict(const s::Calibration& calibration) {
    py::dict result;
    result["factors"] = dicts_from(calibration.factors);
    result["residuals"] = dicts_from(calibration.residuals);
    return result;
}

/// For plans of `plan_serving` with rates and goal 'cheapest': for each GPU type, the ranges of its on-demand
/// and spot price in which this plan stays the cheapest of the plans with the same `capacity` and `separate`.
/// Computed at the first access with a few mixed-integer programs per price.
const std::vector<s::PriceRange>& price_ranges_of(PlannedServing& plan) {
    if (plan.asked.empty()) return plan.price_ranges;
    if (!plan.found_ranges) {
        const auto solver = solver_argument(py::str(plan.chosen_solver));
        plan.found_ranges = Call(py::none()).run([&](const Context& context) {
            return s::price_ranges(plan.asked.front(), plan, plan.planner, solver, context);
        });
    }
    return *plan.found_ranges;
}

PlannedServing named(s::ServingPlan plan, const s::ServingRequest& request) {
    PlannedServing result{std::move(plan), {}, request.models, {}};
    for (const auto& gpu : request.gpus) result.gpus.push_back(gpu.name);
    return result;
}

void bind_planner(py::module_& m) {
    using P = PlannedServing;
    py::class_<P> plan(m, "ServingPlan", doc("serving::ServingPlan"));
    define_fields<s::ServingPlan>(plan,
                                  {"requests_per_s", "cost_per_request", "optimal", "deployments", "left_out",
                                   "rate", "cost_bound", "capacity", "separate", "binding", "message"});
    plan.def_property_readonly(
            "status", [](const P& p) -> Name<milp::Status> { return enum_name(p.status); },
            doc("milp::Status"))
        .def_property_readonly(
            "makespan", [](const P& p) { return finite_or_none(p.makespan); },
            "Makespan in seconds; None without a plan.")
        .def_property_readonly(
            "bound", [](const P& p) { return finite_or_none(p.bound); }, doc("serving::ServingPlan::bound"))
        .def_property_readonly(
            "rate_bound", [](const P& p) { return finite_or_none(p.rate_bound); },
            doc("serving::ServingPlan::rate_bound"))
        .def_readonly("cost", &P::cost, "$/h of everything rented.")
        .def_property_readonly(
            "rentals", [](const P& p) -> JsonObjects { return dicts_from(p.rentals); },
            doc("serving::ServingPlan::rentals"))
        .def_property_readonly(
            "latencies", [](const P& p) -> JsonObjects { return dicts_from(p.latencies); },
            doc("serving::ServingPlan::latencies"))
        .def_property_readonly(
            "calibration", [](const P& p) -> Typed<"dict[str, list[dict[str, Any]]]"> {
                return calibration_dict(p.calibration);
            },
            doc("serving::ServingPlan::calibration"))
        .def_property_readonly(
            "errors", [](const P& p) -> JsonObjects { return dicts_from(p.errors); },
            doc("serving::ServingPlan::errors"))
        .def_readonly("cost_high", &P::cost_high, doc("serving::ServingPlan::cost_high"))
        .def_property_readonly(
            "price_ranges", [](P& p) -> JsonObjects { return dicts_from(price_ranges_of(p)); },
            doc("python::price_ranges_of"))
        .def_readonly("solver", &P::solver, "Name of the solver.")
        .def_property_readonly("rented", &rented_by_name, "Rented GPUs: {GPU type: count}.")
        .def_property_readonly(
            "replicas", [](const P& p) -> JsonObjects { return write_serving_plan(p)["replicas"]; },
            "One dict per deployment: model, deployment, count, cost, gpus, stages, share (of each kind "
            "of requests, of all replicas together), requests_per_s (of one replica).")
        .def("__repr__", repr_of_attributes({"status", "makespan", "cost", "rented"}));
    define_value(plan);
    const auto options = planner_keywords<PlanArguments, s::PlannerOptions>();
    const auto itself = [](const PlanArguments& arguments) -> const s::PlannerOptions& { return arguments; };
    const std::string more = "\n\nThe request is a dict as described in docs/serving.md.";
    m.def(
        "plan_serving",
        [options, itself](const Request& request, const py::kwargs& given) {
            const auto both = asked_for<PlanArguments>("plan_serving", options, request, given, itself);
            const auto& asked = both.first;
            const auto& arguments = both.second;
            const auto solver = solver_argument(arguments.solver);
            const bool lazy = py::isinstance<py::str>(arguments.solver);  // a callable may not exist later
            std::vector<s::PriceRange> ranges;
            auto found = Call(arguments.progress).run([&](const Context& context) {
                auto made = s::plan_serving(asked, arguments, solver, context);
                if (!lazy && made.has_plan() && asked.has_rates() && arguments.goal == s::Goal::cheapest)
                    ranges = s::price_ranges(asked, made, arguments, solver, context);
                return made;
            });
            auto result = named(std::move(found), asked);
            result.price_ranges = std::move(ranges);
            if (lazy && result.has_plan() && asked.has_rates() && arguments.goal == s::Goal::cheapest) {
                result.asked.push_back(asked);
                result.planner = arguments;
                result.chosen_solver = arguments.solver.cast<std::string>();
            }
            return result;
        },
        py::arg("request"),
        options.shared_as("serving.plan_serving").documented(doc("serving::plan_serving") + more));

    const auto sweep = planner_keywords<PlanArguments, s::PlannerOptions>().without(
        {"deadline", "rate", "machines", "goal", "utilization", "simulated_requests", "ttft_p50_s",
         "ttft_p90_s", "ttft_p95_s", "ttft_p99_s", "tpot_p50_s", "tpot_p90_s", "tpot_p95_s", "tpot_p99_s",
         "latency_p50_s", "latency_p90_s", "latency_p95_s", "latency_p99_s"});
    m.def(
        "sweep_budgets",
        [ sweep, itself ](const Request& request, const Typed<"Sequence[float]">& budgets,
                          const py::kwargs& given) -> Typed<"dict[float, ServingPlan]"> {
            Problems problems;
            std::vector<double> amounts;
            collect(problems, [&] { amounts = OptionType<std::vector<double>>::read("budgets", budgets); });
            std::pair<s::ServingRequest, PlanArguments> both;
            collect(problems,
                    [&] { both = asked_for<PlanArguments>("sweep_budgets", sweep, request, given, itself); });
            problems.throw_if_any();
            const auto& asked = both.first;
            const auto& arguments = both.second;
            const auto solver = solver_argument(arguments.solver);
            auto found = Call(arguments.progress).run([&](const Context& context) {
                return s::sweep_budgets(asked, amounts, arguments, solver, context);
            });
            py::dict result;
            for (auto& [budget, one] : found) result[py::float_(budget)] = named(std::move(one), asked);
            return result;
        },
        py::arg("request"), py::arg("budgets"),
        sweep.documented(doc("serving::sweep_budgets") + more +
                         " Returns {budget: plan}, smallest budget first."));

    const auto curve = planner_keywords<PlanArguments, s::PlannerOptions>().without(
        {"deadline", "rate", "goal", "composition", "routing", "uniform_tp"});
    m.def(
        "_curve",
        [ curve, itself ](const Request& request, const Typed<"Sequence[float]">& rates,
                          const Typed<"Sequence[Mapping[str, float]]">& targets, const py::kwargs& given)
            -> Typed<"list[tuple[float, dict[str, float | None], ServingPlan]]"> {
            Problems problems;
            std::vector<double> many;
            std::vector<s::LatencyTargets> each;
            collect(problems, [&] { many = OptionType<std::vector<double>>::read("rates", rates); });
            collect(problems,
                    [&] { each = OptionType<std::vector<s::LatencyTargets>>::read("targets", targets); });
            std::pair<s::ServingRequest, PlanArguments> both;
            both.second = curve.read("curve", given, problems);
            collect(problems, [&] {
                both.first =
                    read_serving_request(request, many.empty() ? py::object() : py::object(py::float_(1.0)));
            });
            collect(problems, [&] { s::validate(both.second); });
            problems.throw_if_any();
            const auto& asked = both.first;
            const auto& arguments = both.second;
            const auto solver = solver_argument(arguments.solver);
            const auto found = Call(arguments.progress).run([&](const Context& context) {
                return s::curve(asked, many, each, arguments, solver, context);
            });
            py::list result;
            for (const auto& point : found)
                result.append(py::make_tuple(point.rate, dict_from(point.targets), named(point.plan, asked)));
            return result;
        },
        py::arg("request"), py::arg("rates") = py::list(), py::arg("targets") = py::list(),
        curve.shared_as("serving.curve")
            .documented(doc("serving::curve") + more + " Returns a list of (rate, targets, plan)."));
    m.def(
        "calibrate", [](const Request& request) -> Typed<"dict[str, list[dict[str, Any]]]"> {
            const auto asked = read_serving_request(request);
            return calibration_dict(unlocked([&] { return s::calibrate(asked); }));
        },
        py::arg("request"), documented(doc("serving::calibrate") + more));

    m.def("request_to_dict", &request_to_dict, py::arg("request"),
          documented(doc("python::request_to_dict")));

    m.def(
        "_curve_to_dict",
        [](const std::vector<double>& rates, const std::vector<py::object>& targets,
           const std::vector<const P*>& plans) -> JsonObject {
            std::vector<s::LatencyTargets> each;
            for (const auto& target : targets)
                each.push_back(OptionType<s::LatencyTargets>::read("targets", target));
            return write_serving_curve(rates, each, plans);
        },
        py::arg("rates"), py::arg("targets"), py::arg("plans"));
    m.def(
        "_sweep_to_dict",
        [](const std::vector<double>& budgets, const std::vector<const P*>& plans) -> JsonObject {
            return write_serving_sweep(budgets, plans);
        },
        py::arg("budgets"), py::arg("plans"));

    using R = NamedReplan;
    py::class_<R> result(m, "ReplanResult", doc("serving::ReplanResult"));
    define_fields<s::ReplanResult>(result, {"starts", "stops", "cost_free"});
    result.def_readonly("plan", &R::named, "The new plan.")
        .def_property_readonly(
            "makespan_kept", [](const R& r) { return finite_or_none(r.makespan_kept); },
            doc("serving::ReplanResult::makespan_kept"))
        .def_property_readonly(
            "makespan_free", [](const R& r) { return finite_or_none(r.makespan_free); },
            doc("serving::ReplanResult::makespan_free"));
    result.def("__repr__", repr_of_attributes({"plan", "starts", "stops"}));
    define_value(result);
    m.def(
        "plan_to_dict",
        [](P& p, const Typed<"ReplanResult | None">& changed, bool price_ranges) -> JsonObject {
            s::PlanExtras extras;
            if (!changed.is_none()) {
                if (!py::isinstance<R>(changed)) bad_type("changed", changed, "a ReplanResult");
                extras.change = &changed.cast<const R&>();
            }
            if (price_ranges && (p.rate != 0 || !p.binding.empty())) extras.price_ranges = price_ranges_of(p);
            return write_serving_plan(p, extras);
        },
        py::arg("plan"), py::arg("changed") = py::none(), py::kw_only(), py::arg("price_ranges") = false,
        documented(
            "Returns a plan as a document of the format `gpusched.serving-plan` v2 (docs/schema), with "
            "the changes of a replanning if given.\n\n"
            "`price_ranges` are only written on request, because they take a few mixed-integer programs "
            "per GPU type."));
    const auto changes = planner_keywords<ReplanArguments, s::ReplanOptions>().without(
        {"composition", "routing", "uniform_tp", "deadline", "goal"});
    m.def(
        "replan",
        [changes](const Request& request, const Replicas& running, const py::kwargs& given) {
            const auto both = asked_for<ReplanArguments>(
                "replan", changes, request, given,
                [](const ReplanArguments& a) -> const s::PlannerOptions& { return a.planner; });
            const auto& asked = both.first;
            const auto& arguments = both.second;
            // Matched by name: the request may have other types, or another order.
            const auto before = read_running(running, asked);
            const auto solver = solver_argument(arguments.solver);
            auto found = Call(arguments.progress).run([&](const Context& context) {
                return s::replan(asked, before, arguments, solver, context);
            });
            NamedReplan r{std::move(found), {}};
            r.named = named(r.plan, asked);
            return r;
        },
        py::arg("request"), py::arg("running"),
        changes.shared_as("serving.replan")
            .documented(doc("serving::replan") + more +
                        " `running`: a plan, its document from "
                        "`plan_to_dict`, or its replicas as dicts."));
}

}  // namespace

void bind_serving(py::module_& parent) {
    auto m = submodule(parent, "serving");
    bind_serving_catalogue(m);
    bind_planner(m);
    bind_serving_latency(m);
    bind_serving_problem(m);
    bind_autoscale(m);
    // For the console script, which reports the file of a request or a plan.
    m.def(
        "_require_request",
        [](const Request& request, const Rate& rate) {
            static_cast<void>(read_serving_request(request, rate));
        },
        py::arg("request"), py::arg("rate") = py::none());
    m.def(
        "_require_running",
        [](const Replicas& running) { static_cast<void>(read_running(running, s::ServingRequest{})); },
        py::arg("running"));
}

}  // namespace gpusched::python

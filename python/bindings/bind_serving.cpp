// gpusched.serving.
#include "call.hpp"
#include "keywords.hpp"
#include "milp.hpp"
#include "pickles.hpp"
#include "records.hpp"
#include "serving.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/plan_serving.hpp>
#include <gpusched/serving/sweep_budgets.hpp>

#include <cmath>

namespace gpusched::python {

namespace s = serving;

namespace {

/// The planner's options in Python, and what the surroundings give.
struct PlanArguments : s::PlannerOptions, SolveArguments {
    Typed<"dict[str, Any] | None"> deployment_dict = py::none(), estimate_dict = py::none();
    serving::ServingMethod method = s::PlannerOptions{}.search.method;
    double tolerance = s::PlannerOptions{}.search.tolerance;
};
struct ReplanArguments : PlanArguments {
    std::optional<int> max_starts{};
    double slack = 0;
};

template <class O>
Keywords<O> planner_options() {
    O start;
    start.mip_gap = start.search.solve.mip_gap;
    return Keywords<O>(start)
        .field("max_deployments", &O::max_deployments)
        .field("deployments", &O::deployment_dict, "A dict of the options of `enumerate_deployments`.")
        .field("estimate", &O::estimate_dict, "A dict of the options of `estimate_throughput`.")
        .field("method", &O::method, "'milp' (directly, E4) or 'binary_search' (Algorithm 1).")
        .field("tolerance", &O::tolerance, "Relative gap at which the binary search ends.")
        .field("solver", &O::solver, "As for `milp.Model.solve`.")
        .field("time_limit", &O::time_limit, "Seconds for everything together.")
        .field("mip_gap", &O::mip_gap, "Relative gap at which the solver may stop.")
        .field("threads", &O::threads, "Threads the solver may use.")
        .field("seed", &O::seed, "Where the solver's random choices start, >= 0.")
        .field("progress", &O::progress, progress_text);
}

s::PlannerOptions complete(const PlanArguments& arguments) {
    s::PlannerOptions options = arguments;
    options.search.solve = arguments;
    options.search.method = arguments.method;
    options.search.tolerance = arguments.tolerance;
    Problems problems;
    collect(problems, [&] {
        options.deployments =
            nested("deployments", arguments.deployment_dict, deployment_options(), options.deployments);
    });
    collect(problems, [&] {
        options.estimate = nested("estimate", arguments.estimate_dict, estimate_options(), options.estimate);
    });
    collect(problems, [&] { s::validate(options); });
    problems.throw_if_any();
    return options;
}

struct NamedReplan : s::ReplanResult {
    PlannedServing named{};
};

}  // namespace

template <>
struct Members<s::Stage> {
    static void visit(auto& x, auto&& each) {
        each(x.gpu);
        each(x.degree);
        each(x.layers);
    }
};
template <>
struct Members<s::Deployment> {
    static void visit(auto& d, auto&& each) {
        each(d.name);
        each(d.stages);
    }
};
template <>
struct Members<s::PlannedReplicas> {
    static void visit(auto& r, auto&& each) {
        each(r.model);
        each(r.deployment);
        each(r.count);
        each(r.cost);
        each(r.share);
        each(r.requests_per_s);
    }
};
template <>
struct Members<s::LanguageModel> {
    static void visit(auto& m, auto&& each) {
        each(m.name);
        each(m.layers);
        each(m.hidden);
        each(m.heads);
        each(m.kv_heads);
        each(m.head_size);
        each(m.intermediate);
        each(m.vocabulary);
        each(m.bytes_per_weight);
        each(m.bytes_per_kv);
    }
};
template <>
struct Members<s::RequestShape> {
    static void visit(auto& x, auto&& each) {
        each(x.input);
        each(x.output);
    }
};
template <>
struct Members<s::ServingDemand> {
    static void visit(auto& d, auto&& each) {
        each(d.name);
        each(d.shape);
        each(d.requests);
    }
};
template <>
struct Members<s::ServedModel> {
    static void visit(auto& m, auto&& each) {
        each(m.model);
        each(m.demands);
    }
};
template <>
struct Members<s::ServingPlan> {
    static void visit(auto& p, auto&& each) {
        each(p.status);
        each(p.replicas);
        each(p.rented);
        each(p.cost);
        each(p.makespan);
        each(p.requests_per_s);
        each(p.cost_per_request);
        each(p.bound);
        each(p.optimal);
        each(p.deployments);
        each(p.left_out);
        each(p.solver);
        each(p.message);
    }
};
template <>
struct Members<PlannedServing> {
    static void visit(auto& p, auto&& each) {
        each(base_of<s::ServingPlan>(p));
        each(p.gpus);
        each(p.models);
    }
};
template <>
struct Members<NamedReplan> {
    static void visit(auto& r, auto&& each) {
        each(r.plan);
        each(r.starts);
        each(r.stops);
        each(r.makespan_kept);
        each(r.makespan_free);
        each(r.named);
    }
};

namespace {

OptionalNumber number(double value) {
    return std::isfinite(value) ? py::object(py::float_(value)) : py::none();
}

Typed<"dict[str, int]"> rented_by_name(const PlannedServing& plan) {
    py::dict result;
    for (std::size_t g = 0; g < plan.rented.size(); ++g)
        if (plan.rented[g] > 0) result[py::str(plan.gpus[g])] = plan.rented[g];
    return result;
}
JsonObjects replica_list(const PlannedServing& plan) {
    py::list result;
    for (const auto& r : plan.replicas) {
        py::dict gpus, share, rate;
        py::list stages;
        for (const auto& stage : r.deployment.stages) {
            const auto name = py::str(plan.gpus[static_cast<std::size_t>(stage.gpu)]);
            gpus[name] = (gpus.contains(name) ? gpus[name].cast<int>() : 0) + stage.degree;
            py::dict entry;
            entry["gpu"] = name;
            entry["degree"] = stage.degree;
            entry["layers"] = stage.layers;
            stages.append(entry);
        }
        for (const auto& served : plan.models)
            if (served.model.name == r.model)
                for (std::size_t d = 0; d < served.demands.size(); ++d) {
                    if (r.share[d] > 0) share[py::str(served.demands[d].name)] = r.share[d];
                    rate[py::str(served.demands[d].name)] = r.requests_per_s[d];
                }
        py::dict entry;
        entry["model"] = r.model;
        entry["deployment"] = r.deployment.name;
        entry["count"] = r.count;
        entry["cost"] = r.cost;
        entry["gpus"] = gpus;
        entry["stages"] = stages;
        entry["share"] = share;
        entry["requests_per_s"] = rate;
        result.append(entry);
    }
    return result;
}

PlannedServing named(s::ServingPlan plan, const s::ServingRequest& request) {
    PlannedServing result{std::move(plan), {}, request.models};
    for (const auto& gpu : request.gpus) result.gpus.push_back(gpu.name);
    return result;
}

void bind_planner(py::module_& m) {
    using P = PlannedServing;
    py::class_<P> plan(m, "ServingPlan", doc("serving::ServingPlan").c_str());
    plan.def_property_readonly(
            "status", [](const P& p) -> Name<milp::Status> { return enum_name(p.status); },
            doc("milp::Status").c_str())
        .def_property_readonly(
            "makespan", [](const P& p) { return number(p.makespan); },
            "Seconds; None where there is no plan.")
        .def_property_readonly(
            "bound", [](const P& p) { return number(p.bound); }, doc("serving::ServingPlan::bound").c_str())
        .def_readonly("cost", &P::cost, "$/h of everything rented.")
        .def_readonly("requests_per_s", &P::requests_per_s,
                      doc("serving::ServingPlan::requests_per_s").c_str())
        .def_readonly("cost_per_request", &P::cost_per_request,
                      doc("serving::ServingPlan::cost_per_request").c_str())
        .def_readonly("optimal", &P::optimal, doc("serving::ServingPlan::optimal").c_str())
        .def_readonly("deployments", &P::deployments, doc("serving::ServingPlan::deployments").c_str())
        .def_readonly("left_out", &P::left_out, doc("serving::ServingPlan::left_out").c_str())
        .def_readonly("solver", &P::solver, "Who solved it.")
        .def_readonly("message", &P::message, "What went wrong, where something did.")
        .def_property_readonly("rented", &rented_by_name, "{GPU type: how many}.")
        .def_property_readonly(
            "replicas", &replica_list,
            "A dict for the replicas of each deployment: model, deployment, count, cost, gpus, stages, "
            "share (of each kind of requests, what all of them serve), requests_per_s (of one).")
        .def("__repr__", [](const py::object& self) {
            return "ServingPlan(status=" + py::repr(self.attr("status")).cast<std::string>() +
                   ", makespan=" + py::repr(self.attr("makespan")).cast<std::string>() +
                   ", cost=" + py::repr(self.attr("cost")).cast<std::string>() +
                   ", rented=" + py::repr(self.attr("rented")).cast<std::string>() + ")";
        });
    define_pickling(plan);
    auto options = planner_options<PlanArguments>();
    options.field("composition", &PlanArguments::composition, doc("serving::Composition"))
        .field("routing", &PlanArguments::routing, doc("serving::Routing"))
        .field("uniform_tp", &PlanArguments::uniform_tp)
        .field("deadline", &PlanArguments::deadline);
    const std::string more = "\n\nThe request is a dict as docs/serving.md describes it.";
    m.def(
        "plan_serving",
        [options](const Request& request, const py::kwargs& keywords) {
            Problems problems;
            const auto arguments = options.read("plan_serving", keywords, problems);
            s::ServingRequest asked;
            s::PlannerOptions o;
            collect(problems, [&] { asked = read_serving_request(request); });
            collect(problems, [&] { o = complete(arguments); });
            problems.throw_if_any();
            const auto solver = solver_argument(arguments.solver);
            auto found = Call(arguments.progress).run([&](const Context& context) {
                return s::plan_serving(asked, o, solver, context);
            });
            return named(std::move(found), asked);
        },
        py::arg("request"),
        options.documented("plan_serving(request", doc("serving::plan_serving") + more).c_str());

    auto sweep = planner_options<PlanArguments>();
    sweep.field("composition", &PlanArguments::composition, doc("serving::Composition"))
        .field("routing", &PlanArguments::routing, doc("serving::Routing"))
        .field("uniform_tp", &PlanArguments::uniform_tp);
    m.def(
        "sweep_budgets",
        [sweep](const Request& request, const Typed<"Sequence[float]">& budgets,
                const py::kwargs& keywords) -> Typed<"dict[float, ServingPlan]"> {
            Problems problems;
            const auto arguments = sweep.read("sweep_budgets", keywords, problems);
            std::vector<double> amounts;
            collect(problems, [&] { amounts = OptionType<std::vector<double>>::read("budgets", budgets); });
            s::ServingRequest asked;
            s::PlannerOptions o;
            collect(problems, [&] { asked = read_serving_request(request); });
            collect(problems, [&] { o = complete(arguments); });
            problems.throw_if_any();
            const auto solver = solver_argument(arguments.solver);
            auto found = Call(arguments.progress).run([&](const Context& context) {
                return s::sweep_budgets(asked, amounts, o, solver, context);
            });
            py::dict result;
            for (auto& [budget, one] : found) result[py::float_(budget)] = named(std::move(one), asked);
            return result;
        },
        py::arg("request"), py::arg("budgets"),
        sweep
            .documented("sweep_budgets(request, budgets",
                        doc("serving::sweep_budgets") + more +
                            " The result is {budget: plan}, smallest first.")
            .c_str());

    using R = NamedReplan;
    py::class_<R> result(m, "ReplanResult", doc("serving::ReplanResult").c_str());
    result.def_readonly("plan", &R::named, "The new plan.")
        .def_readonly("starts", &R::starts, doc("serving::ReplanResult::starts").c_str())
        .def_readonly("stops", &R::stops, doc("serving::ReplanResult::stops").c_str())
        .def_property_readonly(
            "makespan_kept", [](const R& r) { return number(r.makespan_kept); },
            doc("serving::ReplanResult::makespan_kept").c_str())
        .def_property_readonly(
            "makespan_free", [](const R& r) { return number(r.makespan_free); },
            doc("serving::ReplanResult::makespan_free").c_str());
    define_pickling(result);
    auto changes = planner_options<ReplanArguments>();
    changes.field("max_starts", &ReplanArguments::max_starts, doc("serving::ReplanOptions::max_starts"))
        .field("slack", &ReplanArguments::slack, doc("serving::ReplanOptions::slack"));
    m.def(
        "replan",
        [changes](const Request& request, const Typed<"ServingPlan | Sequence[Mapping[str, Any]]">& running,
                  const py::kwargs& keywords) {
            Problems problems;
            const auto arguments = changes.read("replan", keywords, problems);
            s::ServingRequest asked;
            s::PlannerOptions planner;
            collect(problems, [&] { asked = read_serving_request(request); });
            collect(problems, [&] { planner = complete(arguments); });
            problems.throw_if_any();
            std::vector<s::PlannedReplicas> before;
            if (py::isinstance<PlannedServing>(running)) {
                const auto& known = running.cast<const PlannedServing&>();
                std::vector<std::string> names;
                for (const auto& gpu : asked.gpus) names.push_back(gpu.name);
                if (names != known.gpus)
                    throw InvalidInput("running: expected a plan of the same GPU types in the same order");
                before = known.replicas;
            } else {
                before = read_running(running, asked);
            }
            const s::ReplanOptions o{std::move(planner), arguments.max_starts, arguments.slack};
            const auto solver = solver_argument(arguments.solver);
            auto found = Call(arguments.progress).run([&](const Context& context) {
                return s::replan(asked, before, o, solver, context);
            });
            NamedReplan r{std::move(found), {}};
            r.named = named(r.plan, asked);
            return r;
        },
        py::arg("request"), py::arg("running"),
        changes
            .documented("replan(request, running",
                        doc("serving::replan") + more +
                            " `running` is a plan, or the replicas of one as dicts.")
            .c_str());
}

}  // namespace

void bind_serving(py::module_& parent) {
    auto m = submodule(parent, "serving");
    bind_serving_catalogue(m);
    bind_planner(m);
    bind_serving_latency(m);
    bind_serving_problem(m);
    // For the console script, which says in which file a request or a plan is wrong.
    m.def(
        "_require_request", [](const Request& request) { static_cast<void>(read_serving_request(request)); },
        py::arg("request"));
    m.def(
        "_require_running",
        [](const Typed<"Sequence[Mapping[str, Any]]">& running) {
            static_cast<void>(read_running(running, s::ServingRequest{}));
        },
        py::arg("running"));
}

}  // namespace gpusched::python

// The serving problem in gpusched.milp.
#include "arrays.hpp"
#include "milp.hpp"
#include "milp_serving.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace gpusched::python {

namespace {

py::dict dict_argument(const std::string& field, const py::object& value) {
    if (!py::isinstance<py::dict>(value)) bad_option(field, value, "a dict");
    return value.cast<py::dict>();
}

/// {name: number} as in Python, in its order.
template <class T>
std::vector<std::pair<std::string, T>> named_numbers(const std::string& field, const py::object& value) {
    std::vector<std::pair<std::string, T>> result;
    for (const auto& [key, number] : dict_argument(field, value)) {
        const auto name = OptionType<std::string>::read(field, key);
        result.emplace_back(name, OptionType<T>::read(field + "[" + gpusched::quoted(name) + "]", number));
    }
    return result;
}

milp::ServingProblem read_problem(const py::object& configs, const py::object& workloads,
                                  const py::object& prices, const py::object& availability,
                                  const py::object& budget) {
    milp::ServingProblem p;
    std::map<std::string, std::size_t> types;
    for (const auto& [name, price] : named_numbers<double>("prices", prices)) {
        types.emplace(name, p.gpus.size());
        p.gpus.push_back({name, price, 0});
    }
    for (const auto& [name, count] : named_numbers<int>("availability", availability)) {
        const auto at = types.find(name);
        if (at == types.end())
            throw InvalidInput("prices: no price of GPU type " + gpusched::quoted(name) +
                               "; expected one for every type");
        p.gpus[at->second].available = count;
    }
    // Flat: one model; nested: one dict per model.
    const auto outer = dict_argument("workloads", workloads);
    bool nested = false, flat = false;
    for (const auto& [key, value] : outer) (py::isinstance<py::dict>(value) ? nested : flat) = true;
    if (nested && flat)
        throw InvalidInput("workloads: expected numbers, or a dict of numbers per model, not both");
    std::set<std::string> models;
    std::map<std::pair<std::string, std::string>, std::size_t> known;
    const auto add = [&](const std::string& model, const py::object& demands) {
        for (const auto& [name, requests] : named_numbers<double>("workloads", demands)) {
            known.emplace(std::pair(model, name), p.workloads.size());
            p.workloads.push_back({name, requests, model});
        }
        models.insert(model);
    };
    if (nested)
        for (const auto& [key, value] : outer)
            add(OptionType<std::string>::read("workloads", key), py::reinterpret_borrow<py::object>(value));
    else
        add("", outer);
    std::string only;  // flat workloads: the model that configurations may name
    if (!py::isinstance<py::sequence>(configs) || py::isinstance<py::str>(configs))
        bad_option("configs", configs, "a list of dicts");
    for (const auto item : configs) {
        const auto config = dict_argument("configs", py::reinterpret_borrow<py::object>(item));
        const std::string field = "configs[" + std::to_string(p.configurations.size()) + "]";
        milp::ServingConfiguration c;
        for (const auto& [key, value] : config) {
            const auto name = OptionType<std::string>::read(field, key);
            if (name != "name" && name != "gpus" && name != "throughput" && name != "model")
                throw InvalidInput(field + ": unknown field " + gpusched::quoted(name) +
                                   "; expected name, gpus, throughput or model");
        }
        for (const char* required : {"name", "gpus", "throughput"})
            if (!config.contains(required)) throw InvalidInput(field + ": " + required + " is missing");
        c.name = OptionType<std::string>::read(field + ".name", config["name"]);
        const auto owner = "configuration " + gpusched::quoted(c.name);
        const bool names_model = config.contains("model") && !config["model"].is_none();
        if (names_model) c.model = OptionType<std::string>::read(field + ".model", config["model"]);
        if (!nested) {
            if (names_model && !only.empty() && only != c.model)
                throw InvalidInput(
                    "workloads: expected a dict per model, since configurations name several models");
            if (names_model) only = c.model;
            c.model.clear();
        } else if (!names_model) {
            if (models.size() != 1)
                throw InvalidInput(owner + ": model is missing; expected one of the workloads' models");
            c.model = *models.begin();
        }
        c.gpus.assign(p.gpus.size(), 0);
        for (const auto& [name, count] : named_numbers<int>(owner + ": gpus", config["gpus"])) {
            const auto at = types.find(name);
            if (at == types.end())
                throw InvalidInput("prices: no price of GPU type " + gpusched::quoted(name) + ", which " +
                                   owner + " uses");
            c.gpus[at->second] = count;
        }
        c.throughput.assign(p.workloads.size(), 0.0);
        for (const auto& [name, rate] : named_numbers<double>(owner + ": throughput", config["throughput"])) {
            const auto at = known.find({c.model, name});
            if (at != known.end())
                c.throughput[at->second] = rate;
            else if (!(rate >= 0 && std::isfinite(rate)))
                throw InvalidInput(owner + ": throughput of " + gpusched::quoted(name) +
                                   ": expected a number >= 0");
        }
        p.configurations.push_back(std::move(c));
    }
    p.budget = OptionType<double>::read("budget", budget);
    return p;
}

py::dict assignment_dict(const milp::ServingProblem& p, const milp::ServingAllocation& a) {
    py::dict result;
    for (std::size_t c = 0; c < a.replicas.size(); ++c) {
        if (a.replicas[c] == 0) continue;
        py::dict shares;
        for (std::size_t w = 0; w < p.workloads.size(); ++w)
            if (a.share[c][w] > 0) shares[py::str(p.workloads[w].name)] = a.share[c][w];
        result[py::str(p.configurations[c].name)] = shares;
    }
    return result;
}
py::dict replica_dict(const milp::ServingProblem& p, const milp::ServingAllocation& a) {
    py::dict result;
    for (std::size_t c = 0; c < a.replicas.size(); ++c)
        if (a.replicas[c] > 0) result[py::str(p.configurations[c].name)] = a.replicas[c];
    return result;
}
py::dict rented_dict(const milp::ServingProblem& p, const milp::ServingAllocation& a) {
    py::dict result;
    if (a.replicas.empty()) return result;
    const auto used = milp::rented(p, a);
    for (std::size_t n = 0; n < used.size(); ++n)
        if (used[n] > 0) result[py::str(p.gpus[n].name)] = used[n];
    return result;
}

milp::ServingAllocation read_allocation(const milp::ServingProblem& p, const py::object& replicas,
                                        const py::object& assignment) {
    milp::ServingAllocation a{std::vector<int>(p.configurations.size(), 0),
                              std::vector<std::vector<double>>(p.configurations.size(),
                                                               std::vector<double>(p.workloads.size(), 0.0))};
    const auto find = [&](const std::string& name) {
        for (std::size_t c = 0; c < p.configurations.size(); ++c)
            if (p.configurations[c].name == name) return c;
        throw InvalidInput("replicas: there is no configuration " + gpusched::quoted(name));
    };
    for (const auto& [name, count] : named_numbers<int>("replicas", replicas)) a.replicas[find(name)] = count;
    for (const auto& [key, shares] : dict_argument("assignment", assignment)) {
        const auto c = find(OptionType<std::string>::read("assignment", key));
        for (const auto& [name, share] :
             named_numbers<double>("assignment", py::reinterpret_borrow<py::object>(shares))) {
            bool found = false;
            for (std::size_t w = 0; w < p.workloads.size(); ++w)
                if (p.workloads[w].name == name && p.workloads[w].model == p.configurations[c].model) {
                    a.share[c][w] = share;
                    found = true;
                }
            if (!found) throw InvalidInput("assignment: there is no workload " + gpusched::quoted(name));
        }
    }
    return a;
}

struct ServingArguments : milp::ServingOptions, SolveArguments {
    std::optional<double> deadline{};
};

}  // namespace

void bind_milp_serving(py::module_& m) {
    using M = NamedServingModel;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "ServingModel",
                                                         doc("milp::ServingModel").c_str());
    model
        .def_property_readonly(
            "form", [](const M& self) { return enum_name(self.form); }, "The form it was built in.")
        .def("makespan_of", &M::makespan_of, py::arg("value"),
             documented("makespan_of(self, value)", doc("milp::ServingModel::makespan_of")).c_str())
        .def(
            "encode",
            [](const M& self, const py::object& replicas, const py::object& assignment) {
                return own(self.encode(read_allocation(self.problem, replicas, assignment)));
            },
            py::arg("replicas"), py::arg("assignment"),
            documented("encode(self, replicas, assignment)", doc("milp::ServingModel::encode")).c_str())
        .def(
            "decode",
            [](const M& self, const std::vector<double>& x) {
                const auto a = self.decode(x);
                return py::make_tuple(replica_dict(self.problem, a), assignment_dict(self.problem, a));
            },
            py::arg("x"),
            documented("decode(self, x)",
                       "(replicas, assignment) of a vector.\n\n" + doc("milp::ServingModel::decode"))
                .c_str());
    define_pickling(model);
    m.def(
        "serving_plan",
        [](const py::object& configs, const py::object& workloads, const py::object& prices,
           const py::object& availability, const py::object& budget, const py::object& form,
           const py::object& makespan, const py::object& makespan_upper, const py::object& surrogate_rows,
           const py::object& minimise_cost) {
            auto problem = read_problem(configs, workloads, prices, availability, budget);
            const milp::ServingModelOptions options{
                .form = OptionType<milp::ServingForm>::read("form", form),
                .makespan = OptionType<std::optional<double>>::read("makespan", makespan),
                .makespan_upper = OptionType<std::optional<double>>::read("makespan_upper", makespan_upper),
                .surrogate_rows = OptionType<bool>::read("surrogate_rows", surrogate_rows),
                .minimise_cost = OptionType<bool>::read("minimise_cost", minimise_cost)};
            auto built = milp::serving_plan(problem, options);
            return std::make_shared<M>(M{std::move(built), std::move(problem)});
        },
        py::arg("configs"), py::arg("workloads"), py::arg("prices"), py::arg("availability"),
        py::arg("budget"), py::arg("form") = "copies", py::arg("makespan") = py::none(),
        py::arg("makespan_upper") = py::none(), py::arg("surrogate_rows") = true,
        py::arg("minimise_cost") = true,
        documented(
            "serving_plan(configs, workloads, prices, availability, budget, form='copies', makespan=None, "
            "makespan_upper=None, surrogate_rows=True, minimise_cost=True)",
            doc("milp::serving_plan"))
            .c_str());

    m.def(
        "greedy_plan",
        [](const py::object& configs, const py::object& workloads, const py::object& prices,
           const py::object& availability, const py::object& budget,
           const py::object& makespan) -> py::object {
            const auto problem = read_problem(configs, workloads, prices, availability, budget);
            const auto within = OptionType<std::optional<double>>::read("makespan", makespan);
            const auto found = unlocked(
                [&] { return within ? milp::greedy_plan(problem, *within) : milp::greedy_plan(problem); });
            if (!found) return py::none();
            return py::make_tuple(replica_dict(problem, *found), assignment_dict(problem, *found));
        },
        py::arg("configs"), py::arg("workloads"), py::arg("prices"), py::arg("availability"),
        py::arg("budget"), py::arg("makespan") = py::none(),
        documented("greedy_plan(configs, workloads, prices, availability, budget, makespan=None)",
                   "(replicas, assignment), or None. Without a makespan the best plan it finds; needs no "
                   "solver.\n\n" +
                       doc("milp::greedy_plan"))
            .c_str());
    m.def(
        "closed_form_bound",
        [](const py::object& configs, const py::object& workloads, const py::object& prices,
           const py::object& availability, const py::object& budget) {
            return milp::closed_form_bound(read_problem(configs, workloads, prices, availability, budget));
        },
        py::arg("configs"), py::arg("workloads"), py::arg("prices"), py::arg("availability"),
        py::arg("budget"),
        documented("closed_form_bound(configs, workloads, prices, availability, budget)",
                   doc("milp::closed_form_bound"))
            .c_str());

    using P = NamedServingPlan;
    py::class_<P> plan(m, "ServingPlan", doc("milp::ServingPlan").c_str());
    const auto number = [](double value) {
        return std::isfinite(value) ? py::object(py::float_(value)) : py::none();
    };
    plan.def_property_readonly(
            "status", [](const P& p) { return to_string(p.status); }, doc("milp::Status").c_str())
        .def_property_readonly(
            "makespan", [number](const P& p) { return number(p.makespan); },
            "Seconds; None where there is no plan.")
        .def_property_readonly(
            "bound", [number](const P& p) { return number(p.bound); },
            "Seconds that no plan beats; None where there can be none.")
        .def_readonly("cost", &P::cost, "$/h of everything rented.")
        .def_readonly("optimal", &P::optimal, doc("milp::ServingPlan::optimal").c_str())
        .def_readonly("solver", &P::solver, doc("milp::ServingPlan::solver").c_str())
        .def_readonly("solver_calls", &P::solver_calls, doc("milp::ServingPlan::solver_calls").c_str())
        .def_readonly("message", &P::message, doc("milp::ServingPlan::message").c_str())
        .def_property_readonly(
            "rented", [](const P& p) { return rented_dict(p.problem, p.allocation); },
            "{GPU type: how many}.")
        .def_property_readonly(
            "replicas", [](const P& p) { return replica_dict(p.problem, p.allocation); },
            "{configuration: how many}.")
        .def_property_readonly(
            "assignment", [](const P& p) { return assignment_dict(p.problem, p.allocation); },
            "{configuration: {workload: share of its requests}}.")
        .def("__repr__", [](const py::object& self) {
            return "ServingPlan(status=" + py::repr(self.attr("status")).cast<std::string>() +
                   ", makespan=" + py::repr(self.attr("makespan")).cast<std::string>() +
                   ", rented=" + py::repr(self.attr("rented")).cast<std::string>() + ")";
        });
    define_pickling(plan);
    const auto options =
        Options<ServingArguments>("milp::ServingOptions")
            .field("method", &ServingArguments::method, "'milp' or 'binary_search' (Algorithm 1).")
            .field("form", &ServingArguments::form)
            .field("tolerance", &ServingArguments::tolerance)
            .field("greedy_first", &ServingArguments::greedy_first)
            .field("prune", &ServingArguments::prune)
            .field("warm_start", &ServingArguments::warm_start)
            .field("deadline", &ServingArguments::deadline,
                   "Seconds: find the cheapest plan within them instead of the fastest.")
            .field("solver", &ServingArguments::solver, "As for Model.solve.")
            .field("time_limit", &ServingArguments::time_limit, "Seconds for everything together.")
            .field("mip_gap", &ServingArguments::mip_gap, "Relative gap at which the solver may stop.")
            .field("threads", &ServingArguments::threads, "Threads the solver may use.")
            .field("seed", &ServingArguments::seed, "Where the solver's random choices start, >= 0.")
            .field("presolve", &ServingArguments::presolve, "Let the solver simplify the model first.")
            .field("progress", &ServingArguments::progress, progress_text);
    m.def(
        "solve_serving_plan",
        [options](const py::object& configs, const py::object& workloads, const py::object& prices,
                  const py::object& availability, const py::object& budget, const py::kwargs& keywords) {
            auto arguments = options.read("solve_serving_plan", keywords);
            auto problem = read_problem(configs, workloads, prices, availability, budget);
            validate(problem);
            const auto solver = solver_argument(arguments.solver);
            milp::ServingOptions o = arguments;
            o.solve = arguments;
            auto found = Call(arguments.progress).run([&](const Context& context) {
                return arguments.deadline
                           ? milp::cheapest_serving_plan(problem, *arguments.deadline, o, solver, context)
                           : milp::solve_serving_plan(problem, o, solver, context);
            });
            return P{std::move(found), std::move(problem)};
        },
        py::arg("configs"), py::arg("workloads"), py::arg("prices"), py::arg("availability"),
        py::arg("budget"),
        options
            .documented("solve_serving_plan(configs, workloads, prices, availability, budget",
                        doc("milp::solve_serving_plan"))
            .c_str());
}

}  // namespace gpusched::python

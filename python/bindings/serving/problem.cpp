// SPDX-License-Identifier: Apache-2.0
// The module gpusched.serving: the serving problem, its MILP and its solution.
#include "milp/milp.hpp"
#include "serving/serving.hpp"
#include "support/arrays.hpp"
#include "support/records.hpp"
#include "support/struct_states.hpp"

#include <gpusched/json/forms.hpp>
#include <gpusched/serving/solve_serving_plan.hpp>

#include <cmath>
#include <set>

namespace gpusched::python {

/// A serving model with the names of its problem.
struct NamedServingMilp : serving::ServingMilp {
    serving::ServingProblem problem{};
};

struct NamedServingSolution : serving::ServingSolution {
    serving::ServingProblem problem{};
};

template <class F>
constexpr void visit_fields(std::type_identity<NamedServingMilp>, F&& field) {
    visit_fields(std::type_identity<serving::ServingMilp>{}, field);
    field("problem", &NamedServingMilp::problem);
}
template <class F>
constexpr void visit_fields(std::type_identity<NamedServingSolution>, F&& field) {
    visit_fields(std::type_identity<serving::ServingSolution>{}, field);
    field("problem", &NamedServingSolution::problem);
}
static void validate(const NamedServingSolution& solution) {
    const auto& [replicas, share] = solution.allocation;
    const auto configurations = replicas.empty() ? 0 : solution.problem.configurations.size();
    bool fits = replicas.size() == configurations && share.size() == configurations;
    for (const auto& row : share) fits = fits && row.size() == solution.problem.workloads.size();
    if (!fits) throw InvalidInput("the allocation has other configurations or workloads than the problem");
}

namespace {

using json::ByName;

/// A configuration as a dict.
struct GivenConfiguration {
    std::string name{};
    ByName<int> gpus{};
    ByName<double> throughput{};
    std::optional<std::string> model{};
};
template <class F>
constexpr void visit_fields(std::type_identity<GivenConfiguration>, F&& field) {
    field("name", &GivenConfiguration::name, Required{});
    field("gpus", &GivenConfiguration::gpus, Required{});
    field("throughput", &GivenConfiguration::throughput, Required{});
    field("model", &GivenConfiguration::model);
}

/// Reads the arguments of `serving_milp`. Reports problems of single arguments first, then contradictions
/// between them.
class ProblemReader {
  public:
    serving::ServingProblem read(const py::object& configs, const py::object& workloads,
                                 const py::object& prices, const py::object& availability,
                                 const py::object& budget) {
        ByName<int> available;
        std::vector<GivenConfiguration> given;
        collect(problems_, [&] {
            for (const auto& [name, price] : from_python<ByName<double>>("prices", prices).entries) {
                types_.emplace(name, p_.gpus.size());
                p_.gpus.push_back({name, price, 0});
            }
        });
        collect(problems_, [&] { available = from_python<ByName<int>>("availability", availability); });
        read_workloads(workloads);
        collect(problems_, [&] { p_.budget = OptionType<double>::read("budget", budget); });
        collect(problems_, [&] { given = from_python<std::vector<GivenConfiguration>>("configs", configs); });
        problems_.throw_if_any();
        for (const auto& [name, count] : available.entries) {
            const auto at = types_.find(name);
            if (at != types_.end())
                p_.gpus[at->second].available = count;
            else
                problems_.add("prices: no price of GPU type " + gpusched::quoted(name) +
                              "; expected one for every type");
        }
        for (const auto& configuration : given) add(configuration);
        problems_.throw_if_any();
        return std::move(p_);
    }

  private:
    /// Flat: one model; nested: one dict per model.
    void read_workloads(const py::object& workloads) {
        collect(problems_, [&] {
            const auto document = to_document(workloads, "workloads");
            json::Reader reader(document, problems_);
            bool flat = false;
            const auto add_to = [&](const std::string& model) {
                return [&, model](std::string_view name, std::uint32_t at) {
                    known_.emplace(std::pair(model, std::string(name)), p_.workloads.size());
                    auto& workload = p_.workloads.emplace_back();
                    workload.name = name;
                    workload.model = model;
                    reader.read(at, workload.requests);
                };
            };
            reader.each_member(0, [&](std::string_view name, std::uint32_t at) {
                if (reader.kind(at) == json::Kind::object) {
                    nested_ = true;
                    models_.insert(std::string(name));
                    reader.each_member(at, add_to(std::string(name)));
                } else {
                    flat = true;
                    add_to("")(name, at);
                }
            });
            if (nested_ && flat) reader.report(0, "expected either numbers, or a dict of numbers per model");
        });
    }

    void add(const GivenConfiguration& given) {
        auto& c = p_.configurations.emplace_back();
        c.name = given.name;
        const auto owner = "configuration " + gpusched::quoted(c.name);
        choose_model(given.model, owner, c);
        c.gpus.assign(p_.gpus.size(), 0);
        c.throughput.assign(p_.workloads.size(), 0.0);
        for (const auto& [name, count] : given.gpus.entries) {
            const auto at = types_.find(name);
            if (at != types_.end())
                c.gpus[at->second] = count;
            else
                problems_.add("prices: no price of GPU type " + gpusched::quoted(name) + ", which " + owner +
                              " uses");
        }
        for (const auto& [name, rate] : given.throughput.entries) {
            const auto at = known_.find({c.model, name});
            if (at != known_.end())
                c.throughput[at->second] = rate;
            else if (!(rate >= 0))
                problems_.add(owner + ": throughput of " + gpusched::quoted(name) +
                              ": expected a number >= 0");
        }
    }

    /// With flat workloads, all configurations must name the same model.
    void choose_model(const std::optional<std::string>& model, const std::string& owner,
                      serving::ServingConfiguration& c) {
        if (!nested_) {
            if (!model) return;
            const bool first = !only_, other = !first && *only_ != *model;
            if (other && !several_)
                problems_.add(
                    "workloads: expected a dict per model, because configurations name several models");
            if (first) only_ = model;
            several_ = several_ || other;
        } else if (model) {
            c.model = *model;
        } else if (models_.size() == 1) {
            c.model = *models_.begin();
        } else {
            problems_.add(owner + ": model is missing; expected one of the workloads' models");
        }
    }

    serving::ServingProblem p_;
    Problems problems_;
    bool nested_ = false, several_ = false;
    std::map<std::string, std::size_t> types_;
    std::set<std::string> models_;
    std::map<std::pair<std::string, std::string>, std::size_t> known_;
    std::optional<std::string> only_;
};

serving::ServingProblem read_problem(const py::object& configs, const py::object& workloads,
                                     const py::object& prices, const py::object& availability,
                                     const py::object& budget) {
    return ProblemReader().read(configs, workloads, prices, availability, budget);
}

using Configurations = Typed<"Sequence[dict[str, Any]]">;
using Prices = Typed<"dict[str, float]">;
using Counts = Typed<"dict[str, int]">;
using Assignment = Typed<"dict[str, dict[str, float]]">;

Assignment assignment_dict(const serving::ServingProblem& p, const serving::ServingAllocation& a) {
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
Counts replica_dict(const serving::ServingProblem& p, const serving::ServingAllocation& a) {
    py::dict result;
    for (std::size_t c = 0; c < a.replicas.size(); ++c)
        if (a.replicas[c] > 0) result[py::str(p.configurations[c].name)] = a.replicas[c];
    return result;
}
Counts rented_dict(const serving::ServingProblem& p, const serving::ServingAllocation& a) {
    py::dict result;
    if (a.replicas.empty()) return result;
    const auto used = serving::rented(p, a);
    for (std::size_t n = 0; n < used.size(); ++n)
        if (used[n] > 0) result[py::str(p.gpus[n].name)] = used[n];
    return result;
}

serving::ServingAllocation read_allocation(const serving::ServingProblem& p, const py::object& replicas,
                                           const py::object& assignment) {
    serving::ServingAllocation a{std::vector<int>(p.configurations.size(), 0),
                                 std::vector<std::vector<double>>(
                                     p.configurations.size(), std::vector<double>(p.workloads.size(), 0.0))};
    const auto find = [&](const std::string& name) {
        for (std::size_t c = 0; c < p.configurations.size(); ++c)
            if (p.configurations[c].name == name) return c;
        throw InvalidInput("replicas: " + gpusched::quoted(name) +
                           "; expected a configuration of the problem");
    };
    for (const auto& [name, count] : from_python<ByName<int>>("replicas", replicas).entries)
        a.replicas[find(name)] = count;
    for (const auto& [key, shares] : from_python<ByName<ByName<double>>>("assignment", assignment).entries) {
        const auto c = find(key);
        for (const auto& [name, share] : shares.entries) {
            bool found = false;
            for (std::size_t w = 0; w < p.workloads.size(); ++w)
                if (p.workloads[w].name == name && p.workloads[w].model == p.configurations[c].model) {
                    a.share[c][w] = share;
                    found = true;
                }
            if (!found)
                throw InvalidInput("assignment: " + gpusched::quoted(name) +
                                   "; expected a workload of the problem");
        }
    }
    return a;
}

struct ServingArguments : serving::ServingSearchOptions, SolverArguments {
    /// Finds the cheapest plan within this time in seconds, instead of the fastest plan.
    std::optional<double> deadline{};
};

}  // namespace

void bind_serving_problem(py::module_& m) {
    using M = NamedServingMilp;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "ServingMilp", doc("serving::ServingMilp"));
    model
        .def_property_readonly(
            "form", [](const M& self) -> Name<serving::ServingForm> { return enum_name(self.form); },
            "Form of the model.")
        .def("makespan_of", &M::makespan_of, py::arg("value"),
             documented(doc("serving::ServingMilp::makespan_of")))
        .def(
            "encode",
            [](const M& self, const Counts& replicas, const Assignment& assignment) {
                return own(self.encode(read_allocation(self.problem, replicas, assignment)));
            },
            py::arg("replicas"), py::arg("assignment"), documented(doc("serving::ServingMilp::encode")))
        .def(
            "decode",
            [](const M& self, const std::vector<double>& x) {
                const auto a = self.decode(x);
                return std::pair(replica_dict(self.problem, a), assignment_dict(self.problem, a));
            },
            py::arg("x"),
            documented("Converts a vector to (replicas, assignment).\n\n" +
                       doc("serving::ServingMilp::decode")));
    define_value(model);
    const auto milp_options = Keywords<serving::ServingMilpOptions>().fields();
    m.def(
        "serving_milp",
        [milp_options](const Configurations& configs, const JsonObject& workloads, const Prices& prices,
                       const Counts& availability, const Number& budget, const py::kwargs& given) {
            auto problem = read_problem(configs, workloads, prices, availability, budget);
            auto built = serving::serving_milp(problem, milp_options.read("serving_milp", given));
            return std::make_shared<M>(M{std::move(built), std::move(problem)});
        },
        py::arg("configs"), py::arg("workloads"), py::arg("prices"), py::arg("availability"),
        py::arg("budget"), milp_options.documented(doc("serving::serving_milp")));

    m.def(
        "greedy_plan",
        [](const Configurations& configs, const JsonObject& workloads, const Prices& prices,
           const Counts& availability, const Number& budget, const OptionalNumber& makespan)
            -> Typed<"tuple[dict[str, int], dict[str, dict[str, float]]] | None"> {
            const auto problem = read_problem(configs, workloads, prices, availability, budget);
            const auto within = OptionType<std::optional<double>>::read("makespan", makespan);
            const auto found = unlocked([&] {
                return within ? serving::greedy_plan(problem, *within) : serving::greedy_plan(problem);
            });
            if (!found) return py::none();
            return py::make_tuple(replica_dict(problem, *found), assignment_dict(problem, *found));
        },
        py::arg("configs"), py::arg("workloads"), py::arg("prices"), py::arg("availability"),
        py::arg("budget"), py::arg("makespan") = py::none(),
        documented(
            "Returns (replicas, assignment) of a heuristic without a solver, or None. Without a makespan, "
            "it minimises the makespan.\n\n" +
            doc("serving::greedy_plan")));
    m.def(
        "closed_form_bound",
        [](const Configurations& configs, const JsonObject& workloads, const Prices& prices,
           const Counts& availability, const Number& budget) {
            return serving::closed_form_bound(read_problem(configs, workloads, prices, availability, budget));
        },
        py::arg("configs"), py::arg("workloads"), py::arg("prices"), py::arg("availability"),
        py::arg("budget"), documented(doc("serving::closed_form_bound")));

    using P = NamedServingSolution;
    py::class_<P> plan(m, "ServingSolution", doc("serving::ServingSolution"));
    define_fields<serving::ServingSolution>(plan, {"optimal", "solver", "solver_calls", "message"});
    plan.def_property_readonly(
            "status", [](const P& p) -> Name<milp::Status> { return enum_name(p.status); },
            doc("milp::Status"))
        .def_property_readonly(
            "makespan", [](const P& p) { return finite_or_none(p.makespan); },
            "Makespan in seconds; None without a plan.")
        .def_property_readonly(
            "bound", [](const P& p) { return finite_or_none(p.bound); },
            "Lower bound on the makespan in seconds; None if no plan exists.")
        .def_readonly("cost", &P::cost, "Cost of all rented GPUs in $/h.")
        .def_property_readonly(
            "rented", [](const P& p) { return rented_dict(p.problem, p.allocation); },
            "Rented GPUs: {GPU type: count}.")
        .def_property_readonly(
            "replicas", [](const P& p) { return replica_dict(p.problem, p.allocation); },
            "{configuration: how many}.")
        .def_property_readonly(
            "assignment", [](const P& p) { return assignment_dict(p.problem, p.allocation); },
            "Shares of requests: {configuration: {workload: share}}.")
        .def("__repr__", repr_of_attributes({"status", "makespan", "rented"}));
    define_value(plan);
    const auto options = solver_keywords<ServingArguments, serving::ServingSearchOptions>().field(
        "deadline", &ServingArguments::deadline);
    options.def(
        m, "solve_serving_plan",
        [](ServingArguments arguments, const Configurations& configs, const JsonObject& workloads,
           const Prices& prices, const Counts& availability, const Number& budget) {
            auto problem = read_problem(configs, workloads, prices, availability, budget);
            validate(problem);
            const auto solver = solver_argument(arguments.solver);
            auto found = Call(arguments.progress).run([&](const Context& context) {
                return arguments.deadline ? serving::cheapest_serving_plan(problem, *arguments.deadline,
                                                                           arguments, solver, context)
                                          : serving::solve_serving_plan(problem, arguments, solver, context);
            });
            return P{std::move(found), std::move(problem)};
        },
        doc("serving::solve_serving_plan"), py::arg("configs"), py::arg("workloads"), py::arg("prices"),
        py::arg("availability"), py::arg("budget"));
}

}  // namespace gpusched::python

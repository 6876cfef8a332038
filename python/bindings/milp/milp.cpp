// SPDX-License-Identifier: Apache-2.0
// The module gpusched.milp: models and solvers. Builders are in milp/builders.cpp.
#include "milp/milp.hpp"

#include "support/arrays.hpp"
#include "support/documents.hpp"
#include "support/fields.hpp"
#include "support/records.hpp"
#include "support/struct_states.hpp"

#include <gpusched/core/budget.hpp>
#include <gpusched/milp/model.hpp>

#include <cmath>

namespace gpusched::python {

// The parts of the module in other files.
void bind_milp_builders(py::module_& m);
void bind_milp_jobs(py::module_& m);

namespace {

/// Lends a budget to Python during the lifetime of this object. Created and destroyed with the GIL held.
class Watched {
  public:
    explicit Watched(Budget& budget) : lent_(std::make_shared<Budget*>(&budget)) {}
    ~Watched() { *lent_ = nullptr; }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;

    [[nodiscard]] py::object go_on() const {
        return py::cpp_function(
            [lent = lent_](std::int64_t done) {
                if (*lent == nullptr) return false;  // the call has ended
                (*lent)->report("solving", done, 0);
                return !(*lent)->exhausted();
            },
            py::name("go_on"), py::arg("done") = 0);
    }

  private:
    std::shared_ptr<Budget*> lent_;
};

/// A solver written in Python: takes the model and a dict of options, returns a dict.
milp::AnySolver python_solver(std::string name, py::object solve) {
    const auto held = shared_object(std::move(solve));
    return {name,
            [held, name](const milp::Model& model, const milp::SolveOptions& options,
                         const Context& context) -> milp::Solution {
                Budget budget(context);
                budget.report("solving", 0, 0);
                const double worst = model.sense == milp::Sense::minimise ? -milp::infinity : milp::infinity;
                // Called at once, so that progress is visible even if the solver reports none.
                if (budget.exhausted())
                    return milp::Solution{.status = milp::Status::cancelled, .bound = worst, .solver = name};
                const WithLock lock;
                const Watched watched(budget);
                auto o = dict_from(options);
                o["start"] = options.start.empty() ? py::none() : py::object(own(options.start));
                o["go_on"] = watched.go_on();
                const auto given = call_python(*held, std::make_shared<milp::Model>(model), o);
                const std::string owner = "solver's answer";
                if (!is_mapping(given)) bad_option(owner, given, "a dict with status, x, bound");
                const py::dict answer(given);
                if (!answer.contains("status")) throw InvalidInput(owner + ": status is missing");
                milp::Solution s{.solver = name};
                s.status = OptionType<milp::Status>::read(owner + ".status", answer["status"]);
                s.bound = worst;
                if (answer.contains("bound") && !answer["bound"].is_none())
                    s.bound = OptionType<double>::read(owner + ".bound", answer["bound"]);
                if (answer.contains("x") && !answer["x"].is_none() &&
                    py::module_::import("numpy").attr("ndim")(answer["x"]).cast<int>() != 1)
                    bad_option(owner + ".x", answer["x"], "one number per column");
                if (answer.contains("x") && !answer["x"].is_none())
                    s.x = OptionType<std::vector<double>>::read(owner + ".x", answer["x"]);
                if (answer.contains("message") && !answer["message"].is_none())
                    s.message = OptionType<std::string>::read(owner + ".message", answer["message"]);
                if (std::isnan(s.bound)) s.bound = worst;
                return s;
            }};
}

Typed<"dict[str, numpy.typing.NDArray[numpy.int32]]"> index_dict(const std::shared_ptr<milp::Model>& model) {
    py::dict result;
    for (const auto& map : model->indices)
        result[py::str(map.name)] = view(map.columns, model).attr("reshape")(py::cast(map.extents));
    return result;
}

Typed<"Any"> matrix(const std::shared_ptr<milp::Model>& model) {
    const auto sparse = py::module_::import("gpusched._optional").attr("require")("scipy.sparse", "milp");
    const auto parts = py::make_tuple(view(model->value, model), positions(model->row_index, model),
                                      positions(model->column_start, model));
    return sparse.attr("csc_matrix")(
        parts, py::arg("shape") = py::make_tuple(model->rows(), model->columns()), py::arg("copy") = false);
}

void bind_model_class(py::module_& m) {
    using M = milp::Model;
    using Ptr = std::shared_ptr<M>;
    py::class_<M, Ptr> model(m, "Model", doc("milp::Model"));
    py::class_<milp::ElasticModel, M, std::shared_ptr<milp::ElasticModel>> elastic(m, "ElasticModel",
                                                                                   doc("milp::ElasticModel"));
    const auto array = [&](const char* name, auto member, const char* text) {
        model.def_property_readonly(
            name, [member](const Ptr& self) { return view((*self).*member, self); }, text);
    };
    model.def_property_readonly("A", &matrix, "The constraint matrix as a scipy.sparse.csc_matrix, a view.");
    array("c", &M::objective, "Objective coefficients, one per column.");
    array("row_lower", &M::row_lower, "Lower bounds of the rows; -inf = none.");
    array("row_upper", &M::row_upper, "Upper bounds of the rows; inf = none.");
    array("col_lower", &M::column_lower, "Lower bounds of the columns; -inf = none.");
    array("col_upper", &M::column_upper, "Upper bounds of the columns; inf = none.");
    array("integrality", &M::integer, "1 for integer columns, otherwise 0.");
    model.def_property_readonly(
        "column_start", [](const Ptr& self) { return positions(self->column_start, self); },
        "Start of each column's entries in `row_index` and `value`.");
    model.def_property_readonly(
        "row_index", [](const Ptr& self) { return positions(self->row_index, self); },
        "The row of each entry of the matrix.");
    array("value", &M::value, "The value of each entry of the matrix.");
    array("row_group", &M::row_group, "The group of each row, as an index into `group_names`.");
    model.def_readonly("name", &M::name, "The model's name.")
        .def_readonly("sense", &M::sense, "The direction of the objective.")
        .def_readonly("offset", &M::offset, "A constant added to the objective.")
        .def_readonly("row_names", &M::row_names, "Names of the rows.")
        .def_readonly("col_names", &M::column_names, "Names of the columns.")
        .def_readonly("group_names", &M::group_names, "Names of the groups of rows.")
        .def_property_readonly(
            "shape", [](const M& self) { return std::pair(self.rows(), self.columns()); }, "(rows, columns).")
        .def_property_readonly("index", &index_dict,
                               "Indices of each column: arrays by name; -1 if an index does not apply.")
        .def("rows_in", &M::rows_in, py::arg("group"), documented(doc("milp::Model::rows_in")))
        .def(
            "to_mps", [](const M& self) { return milp::to_mps(self); }, documented(doc("milp::to_mps")))
        .def(
            "to_lp", [](const M& self) { return milp::to_lp(self); }, documented(doc("milp::to_lp")))
        .def(
            "write_mps", [](const M& self, const PathLike& path) { milp::write_mps(self, path_text(path)); },
            py::arg("path"), documented(doc("milp::to_mps")))
        .def(
            "write_lp", [](const M& self, const PathLike& path) { milp::write_lp(self, path_text(path)); },
            py::arg("path"), documented(doc("milp::to_lp")))
        .def(
            "evaluate", [](const M& self, const std::vector<double>& x) { return milp::evaluate(self, x); },
            py::arg("x"), documented(doc("milp::evaluate")))
        .def(
            "lp_relaxation", [](const M& self) { return std::make_shared<M>(milp::lp_relaxation(self)); },
            documented(doc("milp::lp_relaxation")))
        .def(
            "elastic",
            [](const M& self, const std::vector<std::string>& groups) {
                return std::make_shared<milp::ElasticModel>(milp::elastic(self, groups));
            },
            py::arg("groups") = std::vector<std::string>{}, documented(doc("milp::elastic")))
        .def("__repr__", [](const py::object& self) {
            const auto& model_ = self.cast<const M&>();
            return "<" + py::str(py::type::of(self).attr("__name__")).cast<std::string>() + " '" +
                   model_.name + "', " + counted(model_.rows(), "row") + ", " +
                   counted(model_.columns(), "column") + ">";
        });
    define_value(model);
    const auto options =
        solver_keywords<SolveArguments, milp::SolveOptions>().field("start", &SolveArguments::start);
    options.def(
        model, "solve",
        [](const SolveArguments& arguments, const Ptr& self) {
            const auto solver = solver_argument(arguments.solver);
            return Call(arguments.progress).run([&](const Context& context) {
                return milp::solve(*self, arguments, solver, context);
            });
        },
        doc("milp::solve"));
    const auto conflict_options = solver_keywords<SolveArguments, milp::SolveOptions>();
    conflict_options.def(
        model, "conflicting_groups",
        [](const SolveArguments& arguments, const Ptr& self) {
            const auto solver = solver_argument(arguments.solver);
            return Call(arguments.progress).run([&](const Context& context) {
                return milp::conflicting_groups(*self, solver, arguments, context);
            });
        },
        doc("milp::conflicting_groups"));
    elastic.def(
        "violated_groups",
        [](const milp::ElasticModel& self, const std::vector<double>& x, double tolerance) {
            return milp::violated_groups(self, x, tolerance);
        },
        py::arg("x"), py::arg("tolerance") = 1e-6, documented(doc("milp::violated_groups")));
    define_value(elastic);
}

}  // namespace

milp::AnySolver solver_argument(const py::object& solver) {
    if (PyCallable_Check(solver.ptr()) != 0) return python_solver("callable", solver);
    const auto name = OptionType<std::string>::read("solver", solver);
    const auto found = py::module_::import("gpusched._solvers").attr("find")(name, milp::available_solvers());
    if (py::isinstance<py::str>(found)) return milp::find_solver(found.cast<std::string>());
    return python_solver(found.attr("__name__").cast<std::string>(), found);
}

void bind_milp(py::module_& parent) {
    auto m = submodule(parent, "milp");
    using E = milp::Evaluation;
    auto evaluation = bind_record<E>(m, "Evaluation");
    evaluation.def("feasible", &E::feasible, py::arg("tolerance") = 1e-6,
                   documented("Returns True if no violation exceeds the tolerance."));
    using G = milp::GroupViolation;
    bind_record<G>(m, "GroupViolation");
    using S = milp::Solution;
    py::class_<S, std::shared_ptr<S>> solution(m, "Solution", doc("milp::Solution"));
    solution.def_readonly("status", &S::status, doc("milp::Status"))
        .def_property_readonly(
            "objective", [](const S& s) { return finite_or_none(s.objective); },
            "Objective value including the offset; None without a solution.")
        .def_property_readonly(
            "bound", [](const S& s) { return finite_or_none(s.bound); },
            "Bound on the objective of every solution; None if unknown.")
        .def_property_readonly(
            "x", [](const std::shared_ptr<S>& s) -> Typed<"numpy.typing.NDArray[numpy.float64] | None"> {
                return s->has_solution() ? py::object(view(s->x, s)) : py::none();
            },
            "Values of the columns; None without a solution.")
        .def_readonly("solver", &S::solver, doc("milp::Solution::solver"))
        .def_readonly("message", &S::message, doc("milp::Solution::message"))
        .def("__repr__", repr_of_attributes({"status", "objective"}));
    define_value(solution);
    m.def("available_solvers", &milp::available_solvers,
          documented("Returns the solvers built into the library: 'highs', 'cbc'."));
    bind_model_class(m);
    bind_milp_builders(m);
    bind_milp_jobs(m);
}

}  // namespace gpusched::python

// SPDX-License-Identifier: Apache-2.0
// The module gpusched.milp: builders of spot scheduling and consolidation. Builders about jobs are in
// milp/jobs.cpp.
#include "milp/milp.hpp"
#include "support/arrays.hpp"
#include "support/fields.hpp"
#include "support/struct_states.hpp"

#include <gpusched/milp/consolidation.hpp>
#include <gpusched/milp/spot_schedule.hpp>

namespace gpusched::python {

namespace {

struct NamedConsolidation : milp::ConsolidationModel {
    ClusterPtr cluster;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedConsolidation>, F&& field) {
    visit_fields(std::type_identity<milp::ConsolidationModel>{}, field);
    field("cluster", &NamedConsolidation::cluster);
}

void bind_spot(py::module_& m) {
    using M = milp::SpotModel;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "SpotModel", doc("milp::SpotModel"));
    model
        .def(
            "decode", [](const M& self, const std::vector<double>& x) { return self.decode(x).pods; },
            py::arg("x"), documented("Returns the pods as [task][slot][node]."))
        .def(
            "encode",
            [](const M& self, const std::vector<std::vector<std::vector<int>>>& pods) {
                return own(self.encode({pods}));
            },
            py::arg("pods"), documented(doc("milp::SpotModel::encode")))
        .def(
            "schedule_value",
            [](const M& self, const std::vector<std::vector<std::vector<int>>>& pods) -> JsonObject {
                return dict_from(milp::spot_value(self.problem, {pods}, self.mode));
            },
            py::arg("pods"), documented(doc("milp::spot_value")));
    define_value(model);
    m.def(
        "spot_schedule",
        [](const Typed<"Iterable[Mapping[str, Any]]">& tasks, const Typed<"Iterable[int]">& nodes,
           const Integer& horizon, const Number& alpha, const Name<milp::SpotMode>& mode) {
            milp::SpotProblem p;
            Problems problems;
            collect(problems, [&] {
                require_list("tasks", tasks, "a list of dicts");
                p.tasks = from_python<std::vector<milp::SpotTask>>("tasks", py::list(tasks));
            });
            for (std::size_t i = 0; i < p.tasks.size(); ++i)
                if (p.tasks[i].name.empty()) p.tasks[i].name = std::to_string(i);
            auto form = milp::SpotMode::meaning;
            collect(problems, [&] { p.nodes = OptionType<std::vector<int>>::read("nodes", nodes); });
            collect(problems, [&] { p.horizon = OptionType<int>::read("horizon", horizon); });
            collect(problems, [&] { p.alpha = OptionType<double>::read("alpha", alpha); });
            collect(problems, [&] { form = OptionType<milp::SpotMode>::read("mode", mode); });
            problems.throw_if_any();
            return std::make_shared<M>(milp::spot_schedule(p, form));
        },
        py::arg("tasks"), py::arg("nodes"), py::arg("horizon"), py::arg("alpha"), py::arg("mode") = "meaning",
        documented(doc("milp::spot_schedule")));
}

void bind_consolidation_model(py::module_& m) {
    using M = NamedConsolidation;
    py::class_<M, milp::Model, std::shared_ptr<M>> model(m, "ConsolidationModel",
                                                         doc("milp::ConsolidationModel"));
    model
        .def(
            "decode",
            [](const M& self, const std::vector<double>& x) {
                return placement_dict(*self.cluster, self.decode(x));
            },
            py::arg("x"), documented("Returns {task: node or None}."))
        .def(
            "encode",
            [](const M& self, const PlacementDict& placement) {
                return own(self.encode(read_placement(*self.cluster, placement)));
            },
            py::arg("placement"), documented(doc("milp::ConsolidationModel::encode")))
        .def(
            "occupied",
            [](const M& self, const PlacementDict& placement) {
                return self.occupied(read_placement(*self.cluster, placement));
            },
            py::arg("placement"), documented("Returns the number of occupied nodes."))
        .def(
            "moves",
            [](const M& self, const PlacementDict& placement) {
                return self.moves(read_placement(*self.cluster, placement));
            },
            py::arg("placement"), documented("Returns the number of moved tasks."));
    const auto options = Keywords<milp::ConsolidationOptions>().fields();
    define_value(model);
    options.def(
        m, "consolidation",
        [](const milp::ConsolidationOptions& o, const ClusterPtr& cluster) {
            return std::make_shared<M>(unlocked([&] {
                return M{milp::consolidation(*cluster, o), cluster};
            }));
        },
        doc("milp::consolidation"), py::arg("cluster"));
}

}  // namespace

void bind_milp_builders(py::module_& m) {
    bind_spot(m);
    bind_consolidation_model(m);
}

}  // namespace gpusched::python

// SPDX-License-Identifier: Apache-2.0
// The module gpusched.control: its parts, the decision core of the controller and its audit log.
#include "control/control.hpp"
#include "control/mig.hpp"
#include "support/fields.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>

namespace gpusched::python {

// The parts of the module in other files.
void bind_mig(py::module_& m);
void bind_tenant_admission(py::module_& m);

namespace {

using Layout = MigLayoutValue;

/// A configuration without a host gets one GPU with the layout. Its first instance belongs to the protected
/// tenant.
control::ControllerOptions with_layout(const py::object& options, const py::object& mig) {
    if (options.is_none() && mig.is_none()) bad_option("options", options, "a configuration, or `mig`");
    if (mig.is_none()) return control::parse_config(control_document(options, "configuration"));
    if (!py::isinstance<Layout>(mig)) bad_option("mig", mig, "a MigLayout or None");
    const auto& layout = mig.cast<const Layout&>();
    if (!options.is_none() && !is_mapping(options))
        bad_option("options", options, "a dict or None, because `mig` is given");
    py::dict document;
    if (!options.is_none()) document.attr("update")(options);
    document["format"] = "gpusched.control";
    document["version"] = 1;
    if (document.contains("host")) bad_option("mig", mig, "None, because `options` has a host");
    auto instances = layout.instances();
    if (instances.empty()) instances.emplace_back(std::string(layout.device->profiles[0].key), 0);
    const py::dict start(py::arg("profile") = instances.front().first,
                         py::arg("slice") = instances.front().second);
    const py::dict tenant(py::arg("name") = "T1", py::arg("protected") = true, py::arg("start") = start);
    const py::dict gpu(py::arg("device") = std::string(layout.device->name));
    document["host"] =
        py::dict(py::arg("roots") = py::make_tuple(py::dict()), py::arg("gpus") = py::make_tuple(gpu),
                 py::arg("tenants") = py::make_tuple(tenant));
    return control::parse_config(to_document(document, "configuration"));
}

/// @param carryover by tenant, or none
Controller with_carryover(control::ControllerOptions options, const py::object& carryover, double age_s) {
    if (carryover.is_none()) return Controller(std::move(options));
    if (!is_mapping(carryover)) bad_option("carryover", carryover, "a dict or None");
    if (!(age_s >= 0)) throw InvalidInput(bad_value("carryover_age_s", number_text(age_s), "at least 0"));
    auto before = control::parse_carryover(to_document(carryover, "carryover"), options.host);
    for (auto& tenant : before) tenant = control::aged(std::move(tenant), age_s, options.window_s);
    return Controller(std::move(options), std::move(before));
}

void bind_controller(py::module_& m) {
    bind_record<NamedConfiguration>(m, "Configuration", doc("control::Configuration"));
    auto action =
        bind_record<NamedAction>(m, "Action", "An action of the controller; a window has at most two.");
    action.def("__str__", [](const NamedAction& a) { return a.text; });
    auto event = bind_record<NamedEvent>(m, "Event", "A state transition or a remark in a window.");
    event.def("__str__", [](const NamedEvent& e) { return e.text; });

    py::class_<Controller>(
        m, "Controller",
        "The decision core of the controller: takes one window at a time and returns actions.")
        .def(
            py::init([](const Typed<"Mapping[str, Any] | str | None">& options,
                        const Typed<"MigLayout | None">& mig,
                        const Typed<"Mapping[str, Any] | None">& carryover, double carryover_age_s) {
                return with_carryover(with_layout(options, mig), carryover, carryover_age_s);
            }),
            py::arg("options") = py::none(), py::kw_only(), py::arg("mig") = py::none(),
            py::arg("carryover") = py::none(), py::arg("carryover_age_s") = 0.0,
            documented(
                "Takes a configuration (a dict, or JSON text; see docs/control.md). `mig`: a `MigLayout` "
                "that replaces the host: one GPU, with the protected tenant \"T1\" in its first instance, "
                "or in the smallest instance of the GPU model. `carryover`: that of the previous controller, "
                "from its property `carryover`; `carryover_age_s`: seconds since then without a controller."))
        .def(
            "step",
            [](Controller& self, const Document& observation) {
                self.step(control_document(observation, "signals"));
                return self.named(self.result.actions);
            },
            py::arg("observation"),
            documented(
                "Evaluates one window. Returns at most two `Action`s, usually none.\n\n"
                "Actions count as executed. `feedback` of a later window reports the result of a change of "
                "instance.\n\n"
                "`observation`: a dict or a line of JSON, see docs/control.md; missing values are unknown."))
        .def_property_readonly("state", &Controller::states,
                               "Phase and configuration of each protected tenant.")
        .def_property_readonly(
            "wished", [](const Controller& self) { return self.named(self.result.wished); },
            "Actions that the last window requested, also in a dry run.")
        .def_property_readonly("events", &Controller::events, "Events of the last window, with reasons.")
        .def_property_readonly(
            "admission_open", [](const Controller& self) { return self.state.admission_open; },
            "True if new tenants are admitted.")
        .def_property_readonly(
            "carryover",
            [](const Controller& self) -> JsonObject {
                return parsed(control::write_carryover(control::carryover_of(self.state, self.options),
                                                       self.options.host));
            },
            "By protected tenant: cooldowns and counts that the next controller must take over.")
        .def_property_readonly(
            "deeds", [](const Controller& self) { return self.state.deeds; },
            "Grows whenever `carryover` changes by more than its age.")
        .def(
            "record_start",
            [](Controller& self) { control::append_start_record(self.log, self.options, self.carryover); },
            documented(doc("control::append_start_record")))
        .def(
            "end_leases",
            [](Controller& self) {
                if (std::exchange(self.options.release_on_disable, true)) return;
                control::append_release_record(self.log);
            },
            documented(
                "From here on leases end when the controller is disabled, whatever the options say. The "
                "log records it."))
        .def_property_readonly(
            "audit_log", [](const Controller& self) { return self.log; },
            "The audit log: one line of JSON per window, the input of `replay_audit`.")
        .def(
            "take_log", [](Controller& self) { return std::exchange(self.log, {}); },
            documented("Returns the log lines since the last call and removes them from `audit_log`, for "
                       "long runs."))
        .def_property_readonly(
            "config",
            [](const Controller& self) -> JsonObject { return parsed(control::write_config(self.options)); },
            "The complete configuration, as a dict.")
        .def("__repr__", [](const Controller& self) {
            return "<gpusched.control.Controller: " + counted(self.options.host.tenants, "tenant") + ", " +
                   counted(self.next, "window") + ">";
        });

    using A = control::ActivityCorrelation;
    py::class_<A>(m, "ActivityCorrelation", doc("control::ActivityCorrelation"))
        .def(py::init<>())
        .def("update", &A::update, py::arg("activity"), py::arg("pressure"),
             documented("Takes a window. NaN is not known and changes nothing."))
        .def_property_readonly("correlation", &A::correlation,
                               doc("control::ActivityCorrelation::correlation"))
        .def_property_readonly(
            "inferred", [](const A& self) { return self.attribution() == control::Attribution::inferred; },
            "Whether the tenant is held to be the cause.")
        .def("__repr__", [](const A& self) {
            return "<gpusched.control.ActivityCorrelation: " + number_text(self.correlation()) + ">";
        });

    bind_record<control::AuditReplay>(m, "AuditReplay");
    m.def(
        "replay_audit",
        [](const std::string& log, const Document& options) {
            const auto o = control::parse_config(control_document(options, "configuration"));
            return unlocked([&] { return control::replay_audit(log, o); });
        },
        py::arg("log"), py::arg("options"),
        documented(doc("control::replay_audit") +
                   "\n\n`log`: text of an audit log. `options`: its configuration, a dict or text."));
    m.def(
        "variant_flags", [](const Name<control::Variant>& variant) -> Typed<"dict[str, bool]"> {
            return dict_from(control::variant_flags(OptionType<control::Variant>::read("variant", variant)));
        },
        py::arg("variant"), documented(doc("control::variant_flags")));
}

}  // namespace

void bind_control(py::module_& parent) {
    auto m = submodule(parent, "control");
    bind_mig(m);
    bind_controller(m);
    bind_tenant_admission(m);
}

}  // namespace gpusched::python

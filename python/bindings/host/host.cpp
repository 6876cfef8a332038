// gpusched.host: the controller on this machine.
#include "control/admission.hpp"
#include "control/control.hpp"
#include "control/mig.hpp"
#include "support/call.hpp"
#include "support/keywords.hpp"

#include <gpusched/host/live.hpp>
#include <gpusched/host/run.hpp>

#include <memory>
#include <string>

namespace gpusched::python {

namespace {

struct RunArguments : host::RunOptions {
    Typed<"Callable[[str], object] | None"> teller = py::none();
};

void bind_run(py::module_& m) {
    using R = host::RunRequests;
    py::class_<R>(m, "RunRequests", doc("host::RunRequests").c_str())
        .def(py::init<>())
        // Handlers of signals are called with two arguments. As no code of Python runs in these, no other signal interrupts them.
        .def(
            "stop", [](R& r, const py::args&) { r.stop(); },
            documented("stop(self, *_)",
                       doc("host::RunRequests::stop") +
                           "\n\nAlso a handler: `signal.signal(signal.SIGTERM, requests.stop)`.")
                .c_str())
        .def(
            "resume", [](R& r, const py::args&) { r.resume(); },
            documented("resume(self, *_)",
                       doc("host::RunRequests::resume") + "\n\nAlso a handler of a signal.")
                .c_str())
        .def_property_readonly("stopped", &R::stopped, "Whether somebody asked for a stop.")
        .def_property_readonly("wants_resume", &R::wants_resume,
                               "Whether somebody asked to resume since the loop last did.")
        .def("__repr__", [](const R& r) {
            return std::string("<gpusched.host.RunRequests") + (r.stopped() ? ": stop" : "") +
                   (r.wants_resume() ? ": resume" : "") + ">";
        });
    const auto options = Keywords<RunArguments>().fields<host::RunOptions>().field(
        "say", &RunArguments::teller,
        "Is told every line, such as `print`: \"window 3: ...\" of windows, the lines of `resume` and "
        "`release` as they are. An exception in it ends the loop and surfaces. None: lines are dropped.");
    m.def(
        "run",
        [options](host::LiveController& controller, R& requests, const py::kwargs& given) {
            auto o = options.read("run", given);
            if (!o.teller.is_none()) {
                if (PyCallable_Check(o.teller.ptr()) == 0)
                    bad_option("say", o.teller, "a callable (line) or None");
                o.say = [function = shared_object(o.teller)](const std::string& line) {
                    const py::gil_scoped_acquire lock;
                    (*function)(foreign_text(line));
                };
            }
            return Call().run(
                [&](const Context& context) { return host::run(controller, requests, o, context); });
        },
        py::arg("controller"), py::arg("requests"),
        options.documented("run(controller, requests", doc("host::run")).c_str());
}

}  // namespace

void bind_host(py::module_& parent) {
    auto m = submodule(parent, "host");
    namespace c = control;
    using L = host::LiveController;
    // Programs are run and files written meanwhile, so the interpreter goes on. What programs say is in the lines.
    const auto call = [](auto function) {
        return [function](L& self) -> Strings { return foreign_texts(unlocked([&] { return (self.*function)(); }));
        };
    };
    py::class_<L>(m, "LiveController", doc("host::LiveController").c_str())
        .def(
            py::init([](const Document& config, const std::string& audit) {
                const auto document = control_document(config, "configuration");
                auto options = c::parse_config(document);
                auto live = host::parse_live(document, options);
                return std::make_unique<L>(std::move(options), std::move(live), audit);
            }),
            py::arg("config"), py::kw_only(), py::arg("audit") = "",
            documented(
                "__init__(self, config, *, audit='')",
                "From a configuration with a section `live` (a dict, or JSON text; docs/host.md). "
                "`audit`: "
                "file to which the lines of the log are appended. Raises `BackendError` when another process "
                "has the journal.")
                .c_str())
        .def("start", call(&L::start), documented("start(self)", doc("host::LiveController::start")).c_str())
        .def("window", call(&L::window),
             documented("window(self)", doc("host::LiveController::window")).c_str())
        .def("resume", call(&L::resume),
             documented("resume(self)", doc("host::LiveController::resume")).c_str())
        .def("release", call(&L::release),
             documented("release(self)", doc("host::LiveController::release")).c_str())
        .def(
            "offer",
            [](L& self, const c::Newcomer& newcomer) {
                const auto answer = unlocked([&] { return self.offer(newcomer); });
                return named(self.options().host, answer);
            },
            py::arg("newcomer"),
            documented("offer(self, newcomer)", doc("host::LiveController::offer")).c_str())
        .def(
            "withdraw",
            [](L& self, const Integer& id) {
                return self.withdraw(OptionType<std::int64_t>::read("id", id));
            },
            py::arg("id"), documented("withdraw(self, id)", doc("host::LiveController::withdraw")).c_str())
        .def(
            "take_answers",
            [](L& self) {
                std::vector<NamedAnswer> answers;
                for (const auto& answer : self.take_answers())
                    answers.push_back(named(self.options().host, answer));
                return answers;
            },
            documented("take_answers(self)", doc("host::LiveController::take_answers")).c_str())
        .def_property_readonly("waiting", &L::waiting, doc("host::LiveController::waiting").c_str())
        .def_property_readonly("waits_for_operator", &L::waits_for_operator,
                               doc("host::LiveController::waits_for_operator").c_str())
        .def_property_readonly("state_known", &L::state_known,
                               doc("host::LiveController::state_known").c_str())
        .def_property_readonly(
            "config", [](const L& self) -> JsonObject { return parsed(c::write_config(self.options())); },
            doc("host::LiveController::options").c_str())
        .def("__repr__", [](const L& self) {
            return "<gpusched.host.LiveController: " + counted(self.options().host.tenants, "tenant") + ">";
        });
    bind_run(m);
}

}  // namespace gpusched::python

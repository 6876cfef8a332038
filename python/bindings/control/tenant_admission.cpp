// SPDX-License-Identifier: Apache-2.0
// The module gpusched.control: admission of new tenants of a host.
#include "control/control.hpp"
#include "support/keywords.hpp"
#include "support/records.hpp"

#include <gpusched/control/tenant_admission.hpp>
#include <gpusched/core/checks.hpp>

namespace gpusched::python {

namespace {

/// A placement with the key of its profile.
struct NamedPlace {
    std::int32_t gpu = 0;    ///< Index of the GPU.
    std::string profile;     ///< Key of the instance's profile.
    std::int32_t slice = 0;  ///< First memory slice of the instance.
    double score = 0;        ///< Score; lower is better.
    /// Highest predicted p99 / target of the protected tenants and the new tenant.
    double worst_ratio = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedPlace>, F&& field) {
    field("gpu", &NamedPlace::gpu);
    field("profile", &NamedPlace::profile);
    field("slice", &NamedPlace::slice);
    field("score", &NamedPlace::score);
    field("worst_ratio", &NamedPlace::worst_ratio);
}
struct NamedAnswer {
    control::AdmissionVerdict verdict{};  ///< State of the new tenant.
    control::Newcomer newcomer{};         ///< Name of the new tenant.
    std::optional<NamedPlace> place{};    ///< Placement; None if it was not admitted.
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedAnswer>, F&& field) {
    field("verdict", &NamedAnswer::verdict);
    field("newcomer", &NamedAnswer::newcomer);
    field("place", &NamedAnswer::place);
}

std::optional<NamedPlace> named(const control::Host& host,
                                const std::optional<control::AdmissionPlace>& place) {
    if (!place) return std::nullopt;
    const auto& device = control::mig_device(host.gpus[static_cast<std::size_t>(place->gpu)].device);
    return NamedPlace{place->gpu, std::string(device.profiles[place->instance.profile].key),
                      place->instance.start, place->score, place->worst_ratio};
}

NamedAnswer named(const control::Host& host, const control::AdmissionAnswer& answer) {
    return {answer.verdict, answer.newcomer, named(host, answer.place)};
}

using Newcomer = control::Newcomer;

/// The state, closed to newcomers if the caller allows none.
control::ControllerState state_for_newcomers(const Controller& controller, bool open) {
    auto state = controller.state;
    state.admission_open = state.admission_open && open;
    return state;
}

/// The last window of the controller.
const control::Observation& last_window(const Controller& controller) {
    if (!controller.seen) throw InvalidInput("controller: no window yet; expected at least one call of step");
    return *controller.seen;
}

void bind_records(py::module_& m) {
    auto newcomer = bind_record<Newcomer>(m, "Newcomer");
    Keywords<Newcomer>().fields().def_init(newcomer);
    bind_record<NamedPlace>(m, "AdmissionPlace", doc("control::AdmissionPlace"));
    auto answer = bind_record<NamedAnswer>(m, "AdmissionAnswer", doc("control::AdmissionAnswer"));
    answer.def(
        "rejected",
        [](NamedAnswer self) {
            self.verdict = control::AdmissionVerdict::rejected;
            self.place.reset();
            return self;
        },
        documented("The answer to a newcomer that was admitted and could not be started."));
}

}  // namespace

void bind_tenant_admission(py::module_& m) {
    bind_records(m);
    m.def(
        "find_place",
        [](const Controller& controller, const Newcomer& newcomer) {
            return named(
                controller.options.host,
                control::find_place(controller.state, last_window(controller), controller.options, newcomer));
        },
        py::arg("controller"), py::arg("newcomer"),
        documented(doc("control::find_place") + "\n\nUses the state and the last window of `controller`."));

    using Q = control::AdmissionQueue;
    py::class_<Q>(m, "AdmissionQueue", doc("control::AdmissionQueue"))
        .def(py::init([](const Integer& capacity) {
                 return Q(OptionType<std::size_t>::read("capacity", capacity));
             }),
             py::arg("capacity") = 16, documented(doc("control::AdmissionQueue::AdmissionQueue")))
        .def(
            "offer",
            [](Q& self, const Controller& controller, const Newcomer& newcomer, bool open) {
                return named(controller.options.host,
                             self.offer(state_for_newcomers(controller, open), last_window(controller),
                                        controller.options, newcomer));
            },
            py::arg("controller"), py::arg("newcomer"), py::kw_only(), py::arg("open") = true,
            documented(doc("control::AdmissionQueue::offer") +
                       "\n\n`open`: False closes admission, whatever the controller says."))
        .def(
            "next",
            [](Q& self, const Controller& controller, bool open) -> std::optional<NamedAnswer> {
                const auto answer = self.next(state_for_newcomers(controller, open), last_window(controller),
                                              controller.options);
                if (!answer) return std::nullopt;
                return named(controller.options.host, *answer);
            },
            py::arg("controller"), py::kw_only(), py::arg("open") = true,
            documented(doc("control::AdmissionQueue::next") +
                       "\n\n`open`: False closes admission, whatever the controller says."))
        .def(
            "withdraw",
            [](Q& self, const Integer& id) {
                return self.withdraw(OptionType<std::int64_t>::read("id", id));
            },
            py::arg("id"), documented(doc("control::AdmissionQueue::withdraw")))
        .def_property_readonly("waiting", &Q::waiting, "Waiting tenants, in the order of service.")
        .def("__len__", &Q::size)
        .def("__repr__", [](const Q& self) {
            return "<gpusched.control.AdmissionQueue: " + std::to_string(self.size()) + " waiting>";
        });
}

}  // namespace gpusched::python

// gpusched.control: admission of new tenants of a host.
#include "control/control.hpp"
#include "core/keywords.hpp"
#include "core/records.hpp"

#include <gpusched/control/tenant_admission.hpp>
#include <gpusched/core/checks.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gpusched::python {

namespace {

using Newcomer = control::Newcomer;

/// A place with the profile's key.
struct NamedPlace {
    std::int32_t gpu = 0;    ///< Index of the GPU.
    std::string profile;     ///< Key of the instance.
    std::int32_t slice = 0;  ///< Its first memory slice.
    double score = 0;        ///< The scorer's; lower is better.
    /// The highest predicted p99 / target, of protected tenants and of the newcomer.
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
    control::AdmissionVerdict verdict{};  ///< What became of the newcomer.
    Newcomer newcomer{};                  ///< Who asked.
    std::optional<NamedPlace> place{};    ///< Where it is to go; None where it was not admitted.
};
template <class F>
constexpr void visit_fields(std::type_identity<NamedAnswer>, F&& field) {
    field("verdict", &NamedAnswer::verdict);
    field("newcomer", &NamedAnswer::newcomer);
    field("place", &NamedAnswer::place);
}

std::optional<NamedPlace> named(const Controller& controller,
                                const std::optional<control::AdmissionPlace>& place) {
    if (!place) return std::nullopt;
    const auto& gpu = controller.options.host.gpus[static_cast<std::size_t>(place->gpu)];
    const auto& device = control::mig_device(gpu.device);
    return NamedPlace{place->gpu, std::string(device.profiles[place->instance.profile].key),
                      place->instance.start, place->score, place->worst_ratio};
}

NamedAnswer named(const Controller& controller, const control::AdmissionAnswer& answer) {
    return {answer.verdict, answer.newcomer, named(controller, answer.place)};
}

/// The window that the state was last stepped with.
const control::Observation& last_window(const Controller& controller) {
    if (!controller.seen) throw InvalidInput("controller: no window yet; expected at least one call of step");
    return *controller.seen;
}

void bind_records(py::module_& m) {
    static const auto options = Keywords<Newcomer>().fields();
    py::class_<Newcomer> newcomer(m, "Newcomer", doc("control::Newcomer").c_str());
    newcomer.def(py::init([](const py::kwargs& keywords) { return options.read("Newcomer", keywords); }),
                 options.documented("__init__(self", doc("control::Newcomer")).c_str());
    define_record(newcomer);
    py::class_<NamedPlace> place(m, "AdmissionPlace", doc("control::AdmissionPlace").c_str());
    define_record(place);
    py::class_<NamedAnswer> answer(m, "AdmissionAnswer", doc("control::AdmissionAnswer").c_str());
    define_record(answer);
}

}  // namespace

void bind_tenant_admission(py::module_& m) {
    bind_records(m);
    m.def(
        "find_place",
        [](const Controller& controller, const Newcomer& newcomer) {
            return named(controller, control::find_place(controller.state, last_window(controller),
                                                         controller.options, newcomer));
        },
        py::arg("controller"), py::arg("newcomer"),
        documented("find_place(controller, newcomer)",
                   doc("control::find_place") + "\n\nThe state and the window are those of `controller`.")
            .c_str());

    using Q = control::AdmissionQueue;
    py::class_<Q>(m, "AdmissionQueue", doc("control::AdmissionQueue").c_str())
        .def(
            py::init([](const Integer& capacity) {
                return Q(OptionType<std::size_t>::read("capacity", capacity));
            }),
            py::arg("capacity") = 16,
            documented("__init__(self, capacity=16)", doc("control::AdmissionQueue::AdmissionQueue")).c_str())
        .def(
            "offer",
            [](Q& self, const Controller& controller, const Newcomer& newcomer) {
                return named(controller, self.offer(controller.state, last_window(controller),
                                                    controller.options, newcomer));
            },
            py::arg("controller"), py::arg("newcomer"),
            documented("offer(self, controller, newcomer)", doc("control::AdmissionQueue::offer")).c_str())
        .def(
            "next",
            [](Q& self, const Controller& controller) -> std::optional<NamedAnswer> {
                const auto answer = self.next(controller.state, last_window(controller), controller.options);
                if (!answer) return std::nullopt;
                return named(controller, *answer);
            },
            py::arg("controller"),
            documented("next(self, controller)", doc("control::AdmissionQueue::next")).c_str())
        .def(
            "withdraw",
            [](Q& self, const Integer& id) {
                return self.withdraw(OptionType<std::int64_t>::read("id", id));
            },
            py::arg("id"), documented("withdraw(self, id)", doc("control::AdmissionQueue::withdraw")).c_str())
        .def_property_readonly("waiting", &Q::waiting, "Those who wait, in order of service.")
        .def("__len__", &Q::size)
        .def("__repr__", [](const Q& self) {
            return "<gpusched.control.AdmissionQueue: " + std::to_string(self.size()) + " waiting>";
        });
}

}  // namespace gpusched::python

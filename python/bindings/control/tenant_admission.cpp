// gpusched.control: admission of new tenants of a host.
#include "control/control.hpp"
#include "core/keywords.hpp"
#include "core/records.hpp"

#include <gpusched/control/admission.hpp>
#include <gpusched/core/checks.hpp>

#include <optional>
#include <string>
#include <vector>

namespace gpusched::python {

namespace {

using Newcomer = control::Newcomer;

/// A place with the profile's key.
struct NamedPlace {
    int gpu = 0, slice = 0;
    std::string profile;
    double score = 0, worst_ratio = 0;
};
struct NamedAnswer {
    Name<control::AdmissionVerdict> verdict;
    Newcomer newcomer{};
    std::optional<NamedPlace> place{};
};

NamedPlace named(const Controller& controller, const control::AdmissionPlace& place) {
    const auto& gpu = controller.options.host.gpus[static_cast<std::size_t>(place.gpu)];
    const auto& device = control::mig_device(gpu.device);
    return {place.gpu, int{place.instance.start}, std::string(device.profiles[place.instance.profile].key),
            place.score, place.worst_ratio};
}

NamedAnswer named(const Controller& controller, const control::AdmissionAnswer& answer) {
    NamedAnswer out{std::string(enum_name(answer.verdict)), answer.newcomer, {}};
    if (answer.verdict == control::AdmissionVerdict::admitted) out.place = named(controller, answer.place);
    return out;
}

/// The window that the state was last stepped with.
const control::Observation& last_window(const Controller& controller) {
    if (!controller.seen) throw InvalidInput("controller: no window yet; expected at least one call of step");
    return *controller.seen;
}

const Keywords<Newcomer>& newcomer_options() {
    static const auto options = Keywords<Newcomer>()
                                    .field("id", &Newcomer::id)
                                    .field("service_class", &Newcomer::service_class)
                                    .field("profile", &Newcomer::profile)
                                    .field("pcie_bytes_per_s", &Newcomer::pcie_bytes_per_s)
                                    .field("io_bytes_per_s", &Newcomer::io_bytes_per_s)
                                    .field("tau_ms", &Newcomer::tau_ms)
                                    .field("alone_ms", &Newcomer::alone_ms);
    return options;
}

void bind_newcomers(py::module_& m) {
    using N = Newcomer;
    const auto of = [](const char* name) { return doc(std::string("control::Newcomer::") + name); };
    auto newcomer = py::class_<N>(m, "Newcomer", doc("control::Newcomer").c_str());
    newcomer.def(
        py::init([](const py::kwargs& keywords) { return newcomer_options().read("Newcomer", keywords); }),
        newcomer_options().documented("__init__(self", doc("control::Newcomer")).c_str());
    define_record(newcomer, attribute("id", &N::id, of("id")),
                  attribute("service_class", &N::service_class, of("service_class")),
                  attribute("profile", &N::profile, of("profile")),
                  attribute("pcie_bytes_per_s", &N::pcie_bytes_per_s, of("pcie_bytes_per_s")),
                  attribute("io_bytes_per_s", &N::io_bytes_per_s, of("io_bytes_per_s")),
                  attribute("tau_ms", &N::tau_ms, of("tau_ms")),
                  attribute("alone_ms", &N::alone_ms, of("alone_ms")));
    using P = NamedPlace;
    auto place = py::class_<P>(m, "AdmissionPlace", doc("control::AdmissionPlace").c_str());
    define_record(place, attribute("gpu", &P::gpu, "Index of the GPU."),
                  attribute("profile", &P::profile, "Key of the instance."),
                  attribute("slice", &P::slice, "Its first memory slice."),
                  attribute("score", &P::score, doc("control::AdmissionPlace::score")),
                  attribute("worst_ratio", &P::worst_ratio, doc("control::AdmissionPlace::worst_ratio")));
    using A = NamedAnswer;
    auto answer = py::class_<A>(m, "AdmissionAnswer", doc("control::AdmissionAnswer").c_str());
    define_record(answer, attribute("verdict", &A::verdict, "\"admitted\", \"queued\" or \"rejected\"."),
                  attribute("newcomer", &A::newcomer, "Who asked."),
                  attribute("place", &A::place, "Where it is to go; None where it was not admitted."));
}

}  // namespace

void bind_tenant_admission(py::module_& m) {
    bind_newcomers(m);
    m.def(
        "find_place",
        [](const Controller& controller, const Newcomer& newcomer) -> std::optional<NamedPlace> {
            const auto found =
                control::find_place(controller.state, last_window(controller), controller.options, newcomer);
            if (!found) return std::nullopt;
            return named(controller, *found);
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

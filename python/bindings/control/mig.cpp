// SPDX-License-Identifier: Apache-2.0
// The module gpusched.control: MIG tables and layouts.
#include "control/mig.hpp"
#include "support/arguments.hpp"
#include "support/records.hpp"

#include <array>
#include <tuple>

namespace gpusched::python {

namespace {

using Layout = MigLayoutValue;
using Instance = MigInstanceName;

/// A profile that owns its texts, with its starts as a list.
struct Profile {
    std::string
        key;  ///< "1g", "1g+me", "1g.2mem", "2g", "2g+me", "3g", "4g" or "7g"; the same for all GPU models.
    std::string name;         ///< The vendor's name, such as "3g.20gb".
    int id = 0;               ///< Profile id of `nvidia-smi mig -lgip`.
    int nvml_index = 0;       ///< Argument of nvmlDeviceGetGpuInstanceProfileInfo.
    int compute_slices = 0;   ///< Number of the GPU's seven (A30: four) compute slices.
    int memory_slices = 0;    ///< Memory slices of an instance.
    int memory_mib = 0;       ///< 0 if no figure is published.
    int max_count = 0;        ///< Maximum number of instances of this profile.
    int sm_count = 0;         ///< Streaming multiprocessors; not proportional to slices on Hopper.
    std::vector<int> starts;  ///< Possible first memory slices.
    bool media = false;       ///< With media engines ("+me"): at most one such instance per GPU.
};
template <class F>
constexpr void visit_fields(std::type_identity<Profile>, F&& field) {
    field("key", &Profile::key);
    field("name", &Profile::name);
    field("id", &Profile::id);
    field("nvml_index", &Profile::nvml_index);
    field("compute_slices", &Profile::compute_slices);
    field("memory_slices", &Profile::memory_slices);
    field("memory_mib", &Profile::memory_mib);
    field("max_count", &Profile::max_count);
    field("sm_count", &Profile::sm_count);
    field("starts", &Profile::starts);
    field("media", &Profile::media);
}

Profile profile_of(const control::MigProfile& p) {
    Profile out{
        std::string(p.key), std::string(p.name), p.id,       p.nvml_index, p.compute_slices, p.memory_slices,
        p.memory_mib,       p.max_count,         p.sm_count, {},           p.media};
    for (int s = 0; s < 8; ++s)
        if (p.starts >> s & 1) out.starts.push_back(s);
    return out;
}

Layout make_layout(const std::string& device, const std::vector<Instance>& instances) {
    Layout out{&control::mig_device(device), {}};
    for (const auto& [key, start] : instances) out = out.created(key, start);
    return out;
}

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
    return {texts.begin(), texts.end()};
}

}  // namespace

void bind_mig(py::module_& m) {
    bind_record<Profile>(m, "MigProfile", doc("control::MigProfile"));
    py::class_<Layout> type(m, "MigLayout",
                            "The MIG instances of one GPU. Layouts never change; methods return new ones.");
    type.def_property_readonly(
            "device", [](const Layout& l) { return std::string(l.device->name); },
            "The GPU model, such as \"A100-80GB\".")
        .def_property_readonly(
            "profiles",
            [](const Layout& l) {
                std::vector<Profile> out;
                for (const auto& p : l.device->profiles) out.push_back(profile_of(p));
                return out;
            },
            "Profiles of the GPU model, by number of SMs, then memory slices.")
        .def_property_readonly("instances", &Layout::instances,
                               "Pairs of profile key and first memory slice, in the order of slices.")
        .def_property_readonly(
            "largest_free_block",
            [](const Layout& l) { return control::largest_free_block(*l.device, l.layout); },
            doc("control::largest_free_block"))
        .def(
            "can_create",
            [](const Layout& l, const std::string& key, const Integer& start) {
                return control::can_create(*l.device, l.layout, l.instance(key, l.slice("start", start)));
            },
            py::arg("profile"), py::arg("start"), documented("True if the instance fits next to the others."))
        .def(
            "create",
            [](const Layout& l, const std::string& key, const Integer& start) {
                return l.created(key, l.slice("start", start));
            },
            py::arg("profile"), py::arg("start"), documented("Returns the layout with one more instance."))
        .def(
            "destroy",
            [](const Layout& l, const std::string& key, const Integer& start) {
                return l.destroyed(key, l.slice("start", start));
            },
            py::arg("profile"), py::arg("start"), documented("Returns the layout without this instance."))
        .def(
            "least_fragmenting",
            [](const Layout& l, const std::string& key) -> std::optional<int> {
                const auto at = control::least_fragmenting(*l.device, l.layout, l.profile(key));
                if (!at) return std::nullopt;
                return at->start;
            },
            py::arg("profile"), documented(doc("control::least_fragmenting")))
        .def(
            "enlargements",
            [](const Layout& l, const std::string& key, const Integer& start, bool largest_first) {
                std::array<control::MigInstance, 16> found{};
                const auto instance = l.instance(key, l.slice("start", start));
                const auto count = control::enlargements(*l.device, l.layout, instance, found, largest_first);
                std::vector<Instance> out;
                for (std::size_t k = 0; k < count; ++k) out.push_back(l.named(found[k]));
                return out;
            },
            py::arg("profile"), py::arg("start"), py::kw_only(), py::arg("largest_first") = false,
            documented(
                "Returns the placements to which this instance can be enlarged while all others stay: more "
                "SMs and no media engines, the smallest (or largest) first."))
        .def(
            "transition_to",
            [](const Layout& from,
               const Layout& to) -> Typed<"list[tuple[Literal['create', 'destroy'], str, int]]"> {
                if (from.device != to.device)
                    throw InvalidInput(bad_value("layout", gpusched::quoted(to.device->name),
                                                 "a layout of " + gpusched::quoted(from.device->name)));
                std::vector<std::tuple<std::string, std::string, int>> out;
                const auto transition = control::transition(*from.device, from.layout, to.layout);
                for (const auto& step : transition.span()) {
                    const auto [key, start] = from.named(step.instance);
                    out.emplace_back(step.kind == control::MigStep::Kind::create ? "create" : "destroy", key,
                                     start);
                }
                return py::cast(out);
            },
            py::arg("layout"),
            documented(
                "Returns the steps (\"create\" or \"destroy\", profile, start) to another layout of the same "
                "GPU model. Creates instances before destroying others if they fit; every intermediate "
                "layout "
                "is valid."))
        .def(
            "count_layouts",
            [](const Layout& l, const std::vector<std::string>& profiles, bool maximal, bool multisets) {
                return unlocked([&] {
                    return control::count_layouts(*l.device, {views(profiles), maximal, multisets});
                });
            },
            py::kw_only(), py::arg("profiles") = std::vector<std::string>{}, py::arg("maximal") = false,
            py::arg("multisets") = false,
            documented(
                "Returns the number of valid layouts of the GPU model, including the empty one. `profiles`: "
                "allowed keys, empty = all; `maximal`: only layouts without space for another instance; "
                "`multisets`: count layouts once that differ only in starts."))
        .def(
            "all_layouts",
            [](const Layout& l, const std::vector<std::string>& profiles) {
                std::vector<Layout> out;
                for (const auto& layout : control::all_layouts(*l.device, views(profiles)))
                    out.push_back({l.device, layout});
                return out;
            },
            py::kw_only(), py::arg("profiles") = std::vector<std::string>{},
            documented("Returns all valid layouts."))
        .def("__repr__", [](const Layout& l) {
            return "mig_layout('" + std::string(l.device->name) + "', " +
                   py::repr(py::cast(l.instances())).cast<std::string>() + ")";
        });
    define_value(
        type, [](const Layout& l) { return std::tuple(std::string(l.device->name), l.instances()); },
        [](const std::tuple<std::string, std::vector<Instance>>& state) {
            return make_layout(std::get<0>(state), std::get<1>(state));
        });
    m.def(
        "mig_devices",
        [] {
            std::vector<std::string> names;
            for (const auto& d : control::mig_devices()) names.emplace_back(d.name);
            return names;
        },
        documented("Returns the supported GPU models, such as \"A100-80GB\"."));
    m.def(
        "mig_layout",
        [](const std::string& device, const Typed<"Sequence[tuple[str, int]]">& instances) {
            Layout out{&control::mig_device(device), {}};
            std::size_t i = 0;
            for (const auto& pair : OptionType<std::vector<py::object>>::read("instances", instances)) {
                const auto field = "instances[" + std::to_string(i++) + "]";
                if (!py::isinstance<py::sequence>(pair) || py::isinstance<py::str>(pair) ||
                    py::len(pair) != 2)
                    bad_option(field, pair, "a pair of profile key and first memory slice");
                out = out.created(OptionType<std::string>::read(field + "[0]", pair[py::int_(0)]),
                                  out.slice(field + "[1]", pair[py::int_(1)]));
            }
            return out;
        },
        py::arg("device"), py::arg("instances") = py::list(),
        documented(
            "Returns a layout of a GPU model. `instances`: pairs of profile key and first memory slice, "
            "such as (\"2g\", 0). Raises InvalidInput if they do not fit."));
}

}  // namespace gpusched::python

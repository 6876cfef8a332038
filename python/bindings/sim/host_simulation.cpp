// SPDX-License-Identifier: Apache-2.0
// The module gpusched.sim: the simulated host of the controller, and queueing formulas.
#include "support/arguments.hpp"
#include "support/arrays.hpp"
#include "support/documents.hpp"
#include "support/fields.hpp"
#include "support/struct_states.hpp"

#include <gpusched/control/config.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/sim/simulate_host.hpp>

#include <cstddef>

template <>
struct gpusched::json::Form<gpusched::sim::RequestClass>
    : gpusched::python::RowForm<gpusched::sim::RequestClass> {};
template <>
struct gpusched::json::Form<gpusched::serving::LlmRequest>
    : gpusched::python::RowForm<gpusched::serving::LlmRequest> {};

namespace gpusched::python {

namespace {

using sim::HostResult;
using sim::HostScenario;

/// A scenario that `overrides` may change. Its duration is a separate option.
struct OverriddenScenario : HostScenario {};
template <class F>
constexpr void visit_fields(std::type_identity<OverriddenScenario>, F&& field) {
    json::visit_other_fields<HostScenario>({"duration_s"}, field);
}

struct HostArguments {
    control::Variant variant = control::Variant::full;
    /// Simulated seconds, above 0.
    double duration_s = HostScenario{}.duration_s;
    sim::HostScenarioName scenario = sim::HostScenarioName::table3;
    /// Fields of the scenario that differ: a dict with the names and units of C++'s `HostScenario`, such as
    /// t2_weight, mmpp_rates (two, per second), pause_mode ("shed", "queue" or "mbb"), tau_ms (target),
    /// threshold_ms (default: the target), window_s, persistence and dwell (windows), quota_levels (%,
    /// descending), io_levels_mb_s (descending), classes (rows of share, bytes, compute_ms) and llm_requests
    /// (rows as from read_llm_trace).
    Typed<"Mapping[str, Any] | None"> overrides = py::none();

    [[nodiscard]] HostScenario read() const {
        OverriddenScenario s{sim::host_scenario(scenario)};
        s.duration_s = duration_s;
        if (!overrides.is_none()) s = from_python("overrides", overrides, std::move(s));
        sim::validate(s);
        return s;
    }
};

struct SeededArguments : HostArguments {
    /// Integers. With the same seed, two variants serve the same requests.
    Typed<"Iterable[int]"> seeds = py::make_tuple(0, 1, 2, 3, 4, 5, 6);
};

/// The options of both functions; `simulate_host` also has seeds.
template <class O>
Keywords<O> host_options() {
    using A = HostArguments;
    Keywords<O> options;
    options.field("variant", &A::variant, doc("control::Variant"));
    if constexpr (std::is_same_v<O, SeededArguments>) options.field("seeds", &O::seeds);
    options.field("duration_s", &A::duration_s)
        .field("scenario", &A::scenario, doc("sim::HostScenarioName"))
        .field("overrides", &A::overrides);
    return options;
}

void bind_result(py::module_& m) {
    py::class_<HostResult> type(m, "HostResult",
                                "Results of the simulated host: arrays with one entry per seed.");
    visit_fields(std::type_identity<sim::HostRun>{}, [&](const char* name, auto member, const auto&...) {
        const auto column = [member](const HostResult& r) {
            std::vector<std::remove_cvref_t<decltype(r.runs[0].*member)>> values;
            for (const auto& run : r.runs) values.push_back(run.*member);
            return own(std::move(values));
        };
        type.def_property_readonly(name, column, doc(std::string("sim::HostRun::") + name));
    });
    type.def_property_readonly(
        "throughput", [](const HostResult& r) { return own(r.throughput); },
        doc("sim::HostResult::throughput"));
    type.def_property_readonly(
        "system_throughput", [](const HostResult& r) { return own(r.system_throughput); },
        doc("sim::HostResult::system_throughput"));
    type.def("__len__", [](const HostResult& r) { return r.runs.size(); });
    type.def("__repr__",
             [](const HostResult& r) { return "<gpusched.sim.HostResult: " + counted(r.runs, "run") + ">"; });
    define_value(type);
}

}  // namespace

void bind_host_simulation(py::module_& m) {
    bind_result(m);
    const auto options = host_options<HostArguments>();
    const auto seeded = host_options<SeededArguments>();
    seeded.shared_as("sim.simulate_host")
        .def(
            m, "simulate_host",
            [](const SeededArguments& o) {
                const auto scenario = o.read();
                const auto seeds = OptionType<std::vector<std::uint64_t>>::read("seeds", o.seeds);
                HostResult all;
                for (const auto seed : seeds) {
                    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                    const auto one = unlocked(
                        [&] { return sim::simulate_host(scenario, o.variant, std::span(&seed, 1)); });
                    all.runs.push_back(one.runs.front());
                    all.throughput.push_back(one.throughput.front());
                    all.system_throughput.push_back(one.system_throughput.front());
                }
                return all;
            },
            "Runs the controller on a simulated host, once per seed. Returns a `HostResult`.\n\n" +
                doc("sim::run_host"));
    options.def(
        m, "record_host",
        [](const HostArguments& o, const Integer& seed) -> Typed<"tuple[str, dict[str, Any]]"> {
            const auto scenario = o.read();
            const auto flags = control::variant_flags(o.variant);
            const auto number = OptionType<std::uint64_t>::read("seed", seed);
            std::string log;
            unlocked([&] { return sim::run_host(scenario, flags, number, &log); });
            const auto config = control::write_config(sim::host_options(scenario, flags));
            return py::make_tuple(log, parsed(config));
        },
        "Runs the simulated host once. Returns its audit log and the configuration for "
        "`control.replay_audit`.",
        py::arg("seed") = 0);
    m.def(
        "read_llm_trace",
        [](const PathLike& csv) {
            const bool is_text = py::isinstance<py::str>(csv) &&
                                 (py::len(csv) == 0 || csv.contains("\n") || csv.contains("\r"));
            std::string text, source = "<trace>";
            if (is_text) {
                text = OptionType<std::string>::read("csv", csv);
            } else {
                if (!is_path(csv)) bad_type("csv", csv, "the path of a file, or a text with a line break");
                source = path_text(csv);
                text = unlocked([&] { return read_file(source); });
            }
            std::size_t failed = 0;
            const auto requests = unlocked([&] { return serving::read_llm_trace(text, source, &failed); });
            if (failed > 0) {
                const auto warning = source + ": " + counted(static_cast<std::int64_t>(failed), "request") +
                                     " without response tokens (failed) skipped";
                if (PyErr_WarnEx(PyExc_RuntimeWarning, warning.c_str(), 1) != 0)
                    throw py::error_already_set();
            }
            std::vector<std::tuple<double, std::int32_t, std::int32_t>> rows;
            for (const auto& r : requests) rows.emplace_back(r.time_s, r.prompt_tokens, r.output_tokens);
            return rows;
        },
        py::arg("csv"),
        documented(
            doc("serving::read_llm_trace") +
            "\n\n`csv`: the path of a file, or its text (a str with a line break). Skipped requests are "
            "counted in a RuntimeWarning. Rows are (time_s, prompt tokens, output tokens)."));
    m.def("kingman_wait", &sim::kingman_wait, py::arg("rho"), py::arg("ca2"), py::arg("cs2"),
          py::arg("mean_service"), documented(doc("sim::kingman_wait")));
    m.def(
        "is_stable",
        [](const std::vector<double>& demand, const std::vector<double>& throttle, double capacity,
           double arrival_rate, double service_rate) {
            return sim::is_stable(demand, throttle, capacity, arrival_rate, service_rate);
        },
        py::arg("demand"), py::arg("throttle"), py::arg("capacity"), py::arg("arrival_rate"),
        py::arg("service_rate"), documented(doc("sim::is_stable")));
}

}  // namespace gpusched::python

// gpusched.sim: the simulated host of the controller, and queueing formulas.
#include "core/arguments.hpp"
#include "core/arrays.hpp"
#include "core/keywords.hpp"
#include "core/pickles.hpp"

#include <gpusched/control/config.hpp>
#include <gpusched/sim/host.hpp>

#include <algorithm>

namespace gpusched::python {

namespace {

using sim::HostResult;
using sim::HostScenario;

/// Fields of the scenario that may be overridden, by their names in Python.
void override_field(HostScenario& s, const std::string& name, py::handle value) {
    if (name == "t2_weight") {
        s.t2_weight = OptionType<double>::read(name, value);
    } else if (name == "serial_fraction") {
        s.serial_fraction = OptionType<double>::read(name, value);
    } else if (name == "window_s") {
        s.window_s = OptionType<double>::read(name, value);
    } else if (name == "tau_ms") {
        s.tau_ms = OptionType<double>::read(name, value);
    } else if (name == "threshold_ms") {
        s.threshold_ms = OptionType<double>::read(name, value);
    } else if (name == "persistence") {
        s.persistence = OptionType<std::int32_t>::read(name, value);
    } else if (name == "quota_levels") {
        s.quota_levels = OptionType<std::vector<std::int32_t>>::read(name, value);
    } else if (name == "io_levels_mb_s") {
        s.io_levels_mb_s = OptionType<std::vector<std::int32_t>>::read(name, value);
    } else if (name == "dwell") {
        s.dwell = OptionType<std::int32_t>::read(name, value);
    } else if (name == "mmpp_rates") {
        s.rates_per_s = OptionType<std::vector<double>>::read(name, value);
    } else if (name == "pause_mode") {
        s.pause_mode = OptionType<sim::PauseMode>::read(name, value);
    } else if (name == "classes") {
        s.classes.clear();
        for (const auto& row : OptionType<std::vector<std::vector<double>>>::read(name, value)) {
            if (row.size() != 3) bad_option(name, value, "rows of share, bytes and compute_ms");
            s.classes.push_back({row[0], row[1], row[2]});
        }
    } else if (name == "llm_requests") {
        s.llm_requests.clear();
        for (const auto& row : OptionType<std::vector<std::vector<double>>>::read(name, value)) {
            if (row.size() != 3 || !(row[1] >= 0 && row[1] < 1e9) || !(row[2] >= 0 && row[2] < 1e9))
                bad_option(name, value, "rows of time_s and two numbers of tokens");
            s.llm_requests.push_back(
                {row[0], static_cast<std::int32_t>(row[1]), static_cast<std::int32_t>(row[2])});
        }
    } else {
        static constexpr std::array<std::string_view, 13> names{
            "t2_weight",   "serial_fraction", "classes",       "mmpp_rates", "pause_mode",
            "window_s",    "dwell",           "llm_requests",  "tau_ms",     "threshold_ms",
            "persistence", "quota_levels",    "io_levels_mb_s"};
        throw InvalidInput(bad_name("overrides", name, names));
    }
}

struct HostArguments {
    std::string variant = "full";
    double duration_s = 3600;
    std::string scenario = "table3";
    Typed<"Mapping[str, Any] | None"> overrides = py::none();

    [[nodiscard]] HostScenario read() const {
        auto s = sim::host_scenario(scenario);
        s.duration_s = duration_s;
        if (!overrides.is_none()) {
            if (!py::isinstance<py::dict>(overrides)) bad_option("overrides", overrides, "a dict or None");
            for (const auto& [key, value] : overrides.cast<py::dict>())
                override_field(s, OptionType<std::string>::read("overrides", key), value);
        }
        sim::validate(s);
        return s;
    }
};

struct SeededArguments : HostArguments {
    Typed<"Iterable[int]"> seeds = py::make_tuple(0, 1, 2, 3, 4, 5, 6);
};

/// The options of both calls; those of `simulate_host` have seeds too.
template <class O>
Keywords<O> host_options() {
    using A = HostArguments;
    Keywords<O> options;
    options.field("variant", &A::variant,
                  "\"static\", \"guards\", \"placement\", \"mig\", \"full\" or \"ours\".",
                  "Literal['static', 'guards', 'placement', 'mig', 'full', 'ours']");
    if constexpr (std::is_same_v<O, SeededArguments>)
        options.field("seeds", &O::seeds, "Integers; runs of two variants under the same seed are a pair.");
    options.field("duration_s", &A::duration_s, "Simulated seconds, above 0.")
        .field(
            "scenario", &A::scenario,
            "\"table3\", or harder: \"noisy_counters\", \"no_counters\", \"quota_at_restart\", "
            "\"neighbours\", \"faults\", \"two_services\", \"mixed\"; \"llm\".",
            "Literal['table3', 'noisy_counters', 'no_counters', 'quota_at_restart', 'neighbours', 'faults', "
            "'two_services', 'mixed', 'llm']")
        .field(
            "overrides", &A::overrides,
            "None or a dict with any of t2_weight, serial_fraction, classes (rows of share, bytes, "
            "compute_ms), mmpp_rates (two, per second), pause_mode (\"shed\", \"queue\" or \"mbb\"), "
            "tau_ms (the target), threshold_ms (above which the controller acts; the target unless given), "
            "window_s, persistence and dwell (windows), quota_levels (per cent, falling), io_levels_mb_s "
            "(falling), llm_requests (rows of time_s, tokens of prompt and answer, as "
            "read_llm_trace gives them).");
    return options;
}

/// One number of every run, as an array.
template <class V>
auto column(V sim::HostRun::*member) {
    return [member](const HostResult& r) {
        std::vector<V> values;
        for (const auto& run : r.runs) values.push_back(run.*member);
        return own(std::move(values));
    };
}

void bind_result(py::module_& m) {
    using R = sim::HostRun;
    py::class_<HostResult> type(m, "HostResult",
                                "Runs of the simulated host: arrays with one entry per seed.");
    const auto add = [&](const char* name, auto member, const char* text) {
        type.def_property_readonly(name, column(member), text);
    };
    add("arrived", &R::arrived, "Requests of T1 that arrived.");
    add("completed", &R::completed, "Of these, how many were completed.");
    add("missed", &R::missed, "Completed later than the target.");
    add("shed", &R::shed, "Lost in a pause.");
    add("decoded", &R::decoded, "In LLM mode: of those completed (first token), whose last token came too.");
    add("violation_s", &R::violation_s, "Seconds in windows with a p99 above the target.");
    add("excess_ms", &R::excess_ms, "How far p99s of windows were above the target, on average.");
    add("slice_s", &R::slice_s, "Compute slices held by protected tenants, times seconds.");
    add("miss_rate", &R::miss_rate, "Missed or shed / completed or shed, 0 to 1.");
    add("miss_rate_completed", &R::miss_rate_completed, "Missed / completed, 0 to 1.");
    add("p50_ms", &R::p50_ms, "Median latency of completed requests.");
    add("p95_ms", &R::p95_ms, "Their 95th percentile.");
    add("p99_ms", &R::p99_ms, "Their 99th percentile.");
    add("p999_ms", &R::p999_ms, "Their 99.9th percentile.");
    add("structural_actions", &R::structural_actions, "Changes of instance or place, rollbacks included.");
    add("structural_actions_per_hour", &R::structural_actions_per_hour, "The same per hour.");
    add("throttles", &R::throttles, "Limits of block I/O.");
    add("quota_changes", &R::quota_changes, "Changes of the MPS quota.");
    add("rollbacks", &R::rollbacks, "Structural changes that were undone.");
    type.def_property_readonly(
        "throughput", [](const HostResult& r) { return own(r.throughput); },
        "Completed requests of T1 / those of the static variant under the same seed.");
    type.def_property_readonly(
        "system_throughput", [](const HostResult& r) { return own(r.system_throughput); },
        "Mean of the three tenants' work / static's.");
    type.def("__len__", [](const HostResult& r) { return r.runs.size(); });
    type.def("__repr__",
             [](const HostResult& r) { return "<gpusched.sim.HostResult: " + counted(r.runs, "run") + ">"; });
    define_pickling(type);
}

}  // namespace

void bind_host_simulation(py::module_& m) {
    bind_result(m);
    const auto options = host_options<HostArguments>();
    const auto seeded = host_options<SeededArguments>();
    m.def(
        "simulate_host",
        [seeded](const py::kwargs& keywords) {
            const auto o = seeded.read("simulate_host", keywords);
            const auto scenario = o.read();
            const auto seeds = OptionType<std::vector<std::uint64_t>>::read("seeds", o.seeds);
            static_cast<void>(control::variant_flags(o.variant));
            HostResult all;
            for (const auto seed : seeds) {
                if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                const auto one =
                    unlocked([&] { return sim::simulate_host(scenario, o.variant, std::span(&seed, 1)); });
                all.runs.push_back(one.runs.front());
                all.throughput.push_back(one.throughput.front());
                all.system_throughput.push_back(one.system_throughput.front());
            }
            return all;
        },
        seeded.shared_as("sim.simulate_host")
            .documented("simulate_host(",
                        "Runs the controller on a simulated host, once per seed: a `HostResult`.\n\n" +
                            doc("sim::run_host"))
            .c_str());
    m.def(
        "record_host",
        [options](const Integer& seed, const py::kwargs& keywords) -> Typed<"tuple[str, dict[str, Any]]"> {
            const auto o = options.read("record_host", keywords);
            const auto scenario = o.read();
            const auto flags = control::variant_flags(o.variant);
            const auto number = OptionType<std::uint64_t>::read("seed", seed);
            std::string log;
            unlocked([&] { return sim::run_host(scenario, flags, number, &log); });
            const auto config = control::write_config(sim::host_options(scenario, flags));
            return py::make_tuple(log, py::module_::import("json").attr("loads")(config));
        },
        py::arg("seed") = 0,
        options
            .documented("record_host(seed=0",
                        "One run of the simulated host: its audit log, and the configuration under which "
                        "`control.replay_audit` takes it.")
            .c_str());
    m.def(
        "read_llm_trace",
        [](const std::string& csv) {
            std::vector<std::tuple<double, std::int32_t, std::int32_t>> rows;
            for (const auto& r : sim::read_llm_trace(csv))
                rows.emplace_back(r.time_s, r.prompt_tokens, r.output_tokens);
            return rows;
        },
        py::arg("csv"), documented("read_llm_trace(csv)", doc("sim::read_llm_trace")).c_str());
    m.def("kingman_wait", &sim::kingman_wait, py::arg("rho"), py::arg("ca2"), py::arg("cs2"),
          py::arg("mean_service"),
          documented("kingman_wait(rho, ca2, cs2, mean_service)", doc("sim::kingman_wait")).c_str());
    m.def(
        "is_stable",
        [](const std::vector<double>& demand, const std::vector<double>& throttle, double capacity,
           double arrival_rate, double service_rate) {
            return sim::is_stable(demand, throttle, capacity, arrival_rate, service_rate);
        },
        py::arg("demand"), py::arg("throttle"), py::arg("capacity"), py::arg("arrival_rate"),
        py::arg("service_rate"),
        documented("is_stable(demand, throttle, capacity, arrival_rate, service_rate)", doc("sim::is_stable"))
            .c_str());
}

}  // namespace gpusched::python

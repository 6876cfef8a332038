// SPDX-License-Identifier: Apache-2.0
// The module gpusched.serving: a day of arrivals, and the prefill and decode replicas that serve it.
#include "serving/serving.hpp"
#include "support/arrays.hpp"
#include "support/records.hpp"

#include <gpusched/serving/simulate_autoscaling.hpp>

#include <cmath>
#include <span>

namespace gpusched::python {

namespace s = serving;

/// Sizes as a pair, or as a result of `pool_sizes`.
template <>
struct OptionType<s::PoolSizes> {
    static s::PoolSizes read(const std::string& field, py::handle value) {
        if (py::isinstance<s::PoolSizes>(value)) return value.cast<s::PoolSizes>();
        const auto pair = OptionType<std::vector<int>>::read(field, value);
        if (pair.size() != 2) bad_option(field, value, "a pair of prefill and decode replicas");
        return {pair[0], pair[1]};
    }
    static std::string literal(const s::PoolSizes& sizes) {
        return "(" + std::to_string(sizes.prefill) + ", " + std::to_string(sizes.decode) + ")";
    }
    static std::string type() { return "PoolSizes | tuple[int, int]"; }
};

/// Times of replicas, or a dict with some of their fields.
template <>
struct OptionType<s::ReplicaTimes> {
    static s::ReplicaTimes read(const std::string& field, py::handle value) {
        if (py::isinstance<s::ReplicaTimes>(value)) return value.cast<s::ReplicaTimes>();
        return from_python<s::ReplicaTimes>(field, value);
    }
    static std::string literal(const s::ReplicaTimes&) { return "{}"; }
    static std::string type() { return "ReplicaTimes | Mapping[str, float]"; }
};

/// A request as a row of its fields.
template <>
struct OptionType<s::Arrival> {
    static s::Arrival read(const std::string& field, py::handle value) {
        if (py::isinstance<s::Arrival>(value)) return value.cast<s::Arrival>();
        const auto row = OptionType<std::vector<double>>::read(field, value);
        if (row.size() != 3 || !(row[1] >= 1 && row[1] < 1e9) || !(row[2] >= 1 && row[2] < 1e9))
            bad_option(field, value, "a row of time_s and two numbers of tokens, at least one each");
        return {row[0], static_cast<int>(row[1]), static_cast<int>(row[2])};
    }
    static std::string literal(const s::Arrival&) { return "()"; }
    static std::string type() { return "Sequence[float]"; }
};

namespace {

using RequestRows = Typed<"numpy.typing.ArrayLike">;
using RequestTable = Typed<"numpy.typing.NDArray[numpy.float64]">;

/// Requests of an array or a list of rows: time_s, prompt tokens, output tokens.
std::vector<s::Arrival> read_arrivals(const std::string& field, const py::object& value) {
    const auto array = py::array_t<double, py::array::c_style | py::array::forcecast>::ensure(value);
    if (!array) {
        PyErr_Clear();
        bad_option(field, value, "rows of time_s and two numbers of tokens");
    }
    if (array.size() == 0) return {};
    if (array.ndim() != 2 || array.shape(1) != 3)
        throw InvalidInput(field + ": expected rows of time_s and two numbers of tokens");
    std::vector<s::Arrival> arrivals;
    arrivals.reserve(static_cast<std::size_t>(array.shape(0)));
    const auto rows = array.unchecked<2>();
    for (py::ssize_t i = 0; i < array.shape(0); ++i) {
        const double input = rows(i, 1), output = rows(i, 2);
        if (!std::isfinite(rows(i, 0)) || !(input >= 1 && input < 1e9) || !(output >= 1 && output < 1e9))
            throw InvalidInput(field + "[" + std::to_string(i) +
                               "]: expected a time and at least one token of prompt and answer");
        arrivals.push_back({rows(i, 0), static_cast<int>(input), static_cast<int>(output)});
    }
    return arrivals;
}

struct SizingArguments : s::AutoscaleOptions {
    /// Squared coefficient of variation of the times between arrivals, 0 to 1000; 1 for a Poisson process.
    double variation = 1;
};

struct SimulationArguments : s::AutoscaleOptions, s::AutoscalingWorld {};

struct FixedArguments : SimulationArguments {
    /// Part of the windows that must meet both targets, 0 to 1.
    double windows_met = 0.99;
};

template <class O>
Keywords<O> simulation_keywords() {
    return Keywords<O>().template fields<s::AutoscaleOptions>().template fields<s::AutoscalingWorld>();
}

void bind_scaling_records(py::module_& m) {
    bind_record<s::Arrival>(m, "Arrival");
    bind_record<s::PoolSizes>(m, "PoolSizes");
    auto times = bind_record<s::ReplicaTimes>(m, "ReplicaTimes");
    Keywords<s::ReplicaTimes>().fields().def_init(times);
    auto window = bind_record<s::PoolWindow>(m, "PoolWindow");
    Keywords<s::PoolWindow>().fields().def_init(window);
    bind_record<s::AutoscalingResult>(m, "AutoscalingResult");
}

void bind_arrivals(py::module_& m) {
    const auto curve = Keywords<s::DailyCurve>().fields();
    curve.def(
        m, "daily_arrivals",
        [](const s::DailyCurve& c, const RequestRows& trace) -> RequestTable {
            const auto rows = read_arrivals("trace", trace);
            const auto day = unlocked([&] { return s::daily_arrivals(rows, c); });
            py::array_t<double> out({static_cast<py::ssize_t>(day.size()), py::ssize_t{3}});
            auto cells = out.mutable_unchecked<2>();
            for (std::size_t i = 0; i < day.size(); ++i) {
                const auto row = static_cast<py::ssize_t>(i);
                cells(row, 0) = day[i].time_s;
                cells(row, 1) = day[i].input;
                cells(row, 2) = day[i].output;
            }
            return py::object(out);
        },
        doc("serving::daily_arrivals") +
            "\n\nTraces and days are rows of time_s, prompt tokens and output tokens.\n\n" +
            doc("serving::DailyCurve"),
        py::arg("trace"));
    m.def(
        "expected_rate",
        [curve](const Number& time_s, const py::kwargs& given) {
            return s::expected_rate(curve.read("expected_rate", given),
                                    OptionType<double>::read("time_s", time_s));
        },
        py::arg("time_s"), curve.documented(doc("serving::expected_rate")));
}

void bind_scaling(py::module_& m) {
    const auto options = Keywords<s::AutoscaleOptions>().fields();
    py::class_<s::Autoscaler>(m, "Autoscaler", doc("serving::Autoscaler"))
        .def(py::init([options](const py::kwargs& given) {
                 return s::Autoscaler(options.read("Autoscaler", given));
             }),
             options.documented(doc("serving::Autoscaler::Autoscaler")))
        .def("__repr__", [](const s::Autoscaler&) { return "<gpusched.serving.Autoscaler>"; })
        .def("step", &s::Autoscaler::step, py::arg("window"), documented(doc("serving::Autoscaler::step")));
    auto sizing = Keywords<SizingArguments>().fields<s::AutoscaleOptions>();
    sizing.field("variation", &SizingArguments::variation);
    sizing.def(
        m, "pool_sizes",
        [](const SizingArguments& o, const RequestRows& sample, const Number& rate) {
            const auto rows = read_arrivals("sample", sample);
            const double per_s = OptionType<double>::read("rate", rate);
            return unlocked([&] { return s::pool_sizes(rows, per_s, o, o.variation); });
        },
        doc("serving::pool_sizes"), py::arg("sample"), py::arg("rate"));
    Keywords<s::EstimateOptions>().fields().def(
        m, "replica_times",
        [](const s::EstimateOptions& o, const s::LanguageModel& model, const Typed<"Sequence[GpuType]">& gpus,
           const s::Deployment& prefill, const s::Deployment& decode, const Integer& input,
           const Integer& output, const Integer& longest_input) {
            return s::replica_times(
                model, gpu_types_argument(gpus), prefill, decode,
                {OptionType<int>::read("input", input), OptionType<int>::read("output", output)},
                OptionType<int>::read("longest_input", longest_input), o);
        },
        doc("serving::replica_times") + "\n\n`input`, `output`: mean tokens of a request.", py::arg("model"),
        py::arg("gpus"), py::arg("prefill"), py::arg("decode"), py::arg("input"), py::arg("output"),
        py::arg("longest_input") = 8192);
}

void bind_simulation(py::module_& m) {
    m.attr("most_intervals") = s::most_intervals;
    const auto options = simulation_keywords<SimulationArguments>().without({"policy"});
    options.def(
        m, "simulate_autoscaling",
        [](SimulationArguments o, const RequestRows& arrivals,
           const Typed<"str | Callable[[PoolWindow], PoolSizes | tuple[int, int]]">& policy) {
            const bool own = !py::isinstance<py::str>(policy);
            if (own && PyCallable_Check(policy.ptr()) == 0)
                bad_option("policy", policy, "a name or a function");
            if (!own) o.policy = OptionType<s::AutoscalePolicy>::read("policy", policy);
            const auto rows = read_arrivals("arrivals", arrivals);
            s::Autoscaler scaler(o);
            const auto decide = [&](const s::PoolWindow& window) {
                const WithLock held;
                if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                return own ? OptionType<s::PoolSizes>::read("policy's answer", call_python(policy, window))
                           : scaler.step(window);
            };
            return unlocked([&] { return s::simulate_autoscaling(rows, o, decide, o); });
        },
        doc("serving::simulate_autoscaling") +
            "\n\n`policy`: 'forecast', 'utilization', 'token_rate' or 'fixed' (see `Autoscaler`), or "
            "a function of a `PoolWindow` that returns the sizes.",
        py::arg("arrivals"), py::arg("policy") = "forecast");
    auto fixed = simulation_keywords<FixedArguments>().without({"policy", "start"});
    fixed.field("windows_met", &FixedArguments::windows_met);
    fixed.def(
        m, "fewest_fixed",
        [](const FixedArguments& o, const RequestRows& arrivals) {
            const auto rows = read_arrivals("arrivals", arrivals);
            return unlocked([&] { return s::fewest_fixed(rows, o, o.windows_met, o); });
        },
        doc("serving::fewest_fixed"), py::arg("arrivals"));
}

}  // namespace

void bind_autoscale(py::module_& m) {
    bind_scaling_records(m);
    bind_arrivals(m);
    bind_scaling(m);
    bind_simulation(m);
}

}  // namespace gpusched::python

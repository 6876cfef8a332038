// gpusched.serving: how long requests take.
#include "call.hpp"
#include "records.hpp"
#include "serving.hpp"

#include <gpusched/serving/simulate_latency.hpp>

namespace gpusched::python {

namespace s = serving;

namespace {

/// The options of the simulation; estimates are a dict in Python.
struct LatencyArguments : s::LatencyOptions {
    Typed<"dict[str, Any] | None"> estimate_dict = py::none();
};

}  // namespace

void bind_serving_latency(py::module_& m) {
    using L = s::LatencyResult;
    py::class_<L> result(m, "LatencyResult", doc("serving::LatencyResult").c_str());
    define_record(result, attribute("latency", &L::latency, doc("serving::LatencyResult::latency")),
                  attribute("makespan", &L::makespan, doc("serving::LatencyResult::makespan")));
    result.def("percentile", &L::percentile, py::arg("percent"),
               documented("percentile(self, percent)", doc("serving::LatencyResult::percentile")).c_str());
    const auto options = Keywords<LatencyArguments>()
                             .field("rate", &LatencyArguments::rate)
                             .field("requests", &LatencyArguments::requests)
                             .field("seed", &LatencyArguments::seed, "Where random choices start.")
                             .field("memory_fraction", &LatencyArguments::memory_fraction)
                             .field("estimate", &LatencyArguments::estimate_dict,
                                    "A dict of the options of `estimate_throughput`.");
    m.def(
        "simulate_latency",
        [options](const Request& request, const PlannedServing& plan, const py::kwargs& keywords) {
            auto o = options.read("simulate_latency", keywords);
            o.estimate = nested("estimate", o.estimate_dict, estimate_options(), o.estimate);
            const auto asked = read_serving_request(request);
            return unlocked([&] { return s::simulate_latency(asked, plan.replicas, o); });
        },
        py::arg("request"), py::arg("plan"),
        options.documented("simulate_latency(request, plan", doc("serving::simulate_latency")).c_str());
}

}  // namespace gpusched::python

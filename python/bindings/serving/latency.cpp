// SPDX-License-Identifier: Apache-2.0
// The module gpusched.serving: latencies of requests.
#include "serving/serving.hpp"
#include "support/call.hpp"
#include "support/records.hpp"

#include <gpusched/serving/plan_json.hpp>
#include <gpusched/serving/simulate_latency.hpp>

namespace gpusched::python {

namespace s = serving;

namespace {

/// The replicas of a plan and their requests: from a plan, its document, or its replicas as dicts.
std::vector<s::PlannedReplicas> read_served(const py::object& given, const s::ServingRequest& request,
                                            const s::LatencyOptions& options) {
    if (py::isinstance<PlannedServing>(given)) return given.cast<const PlannedServing&>().replicas;
    return s::served_replicas_from_json(to_document(given, "plan"), request, options.estimate);
}

}  // namespace

void bind_serving_latency(py::module_& m) {
    auto kind = bind_record<s::KindLatency>(m, "KindLatency");
    kind.def("ttft_percentile", &s::KindLatency::ttft_percentile, py::arg("percent"),
             documented(doc("serving::KindLatency::ttft_percentile")))
        .def("tpot_percentile", &s::KindLatency::tpot_percentile, py::arg("percent"),
             documented(doc("serving::KindLatency::tpot_percentile")))
        .def("percentile", &s::KindLatency::percentile, py::arg("percent"),
             documented(doc("serving::KindLatency::percentile")));
    using L = s::LatencyResult;
    auto result = bind_record<L>(m, "LatencyResult");
    result.def("percentile", &L::percentile, py::arg("percent"),
               documented(doc("serving::LatencyResult::percentile")));
    result.def("__str__", &s::latency_table);
    Keywords<s::LatencyOptions>().fields().def(
        m, "simulate_latency",
        [](const s::LatencyOptions& o, const Request& request, const Replicas& plan) {
            const auto asked =
                read_serving_request(request, o.rate > 0 ? py::object(py::float_(1.0)) : py::none());
            const auto replicas = read_served(plan, asked, o);
            return unlocked([&] { return s::simulate_latency(asked, replicas, o); });
        },
        doc("serving::simulate_latency") +
            "\n\n"
            "`plan`: a plan, its document from `plan_to_dict`, or a list of dicts with `model`, "
            "`deployment` or `stages`, `count` and `share` (of each kind of requests), and "
            "optionally "
            "`requests_per_s` of one replica.",
        py::arg("request"), py::arg("plan"));
}

}  // namespace gpusched::python

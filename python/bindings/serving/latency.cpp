// gpusched.serving: how long requests take.
#include "core/call.hpp"
#include "core/records.hpp"
#include "serving/serving.hpp"

#include <gpusched/core/nearest_names.hpp>
#include <gpusched/serving/detail/calibrator.hpp>
#include <gpusched/serving/simulate_latency.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

namespace s = serving;

namespace {

/// Numbers by kind of requests, in the order of a model's kinds; a kind that is not named keeps its value.
template <class T>
void read_by_kind(const std::string& field, py::handle value, const s::ServedModel& served,
                  std::vector<T>& each) {
    if (!py::isinstance<py::dict>(value))
        bad_option(field, value, "a dict with an entry for each kind of requests");
    std::vector<std::string> known;
    for (const auto& workload : served.workloads) known.push_back(workload.name);
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(value)) {
        const auto name = OptionType<std::string>::read(field, key);
        const auto at = std::find(known.begin(), known.end(), name);
        if (at == known.end()) throw InvalidInput(bad_name(field, name, known));
        each[static_cast<std::size_t>(at - known.begin())] =
            OptionType<T>::read(field + "[" + gpusched::quoted(name) + "]", item);
    }
}

/// A dict of replicas that names their deployment alone, with its stages.
py::dict with_stages(const std::string& place, py::handle item, const s::ServingRequest& request) {
    const py::dict result = py::reinterpret_borrow<py::dict>(item).attr("copy")();
    if (result.contains("stages") || !result.contains("deployment") || !result.contains("model"))
        return result;
    const auto model = OptionType<std::string>::read(place + ".model", result["model"]);
    const auto name = OptionType<std::string>::read(place + ".deployment", result["deployment"]);
    for (const auto& served : request.models) {
        if (served.model.name != model) continue;
        py::list stages;
        for (const auto& stage : s::parse_deployment(name, served.model, request.gpus).stages) {
            py::dict entry;
            entry["gpu"] = request.gpus[static_cast<std::size_t>(stage.gpu)].name;
            entry["degree"] = stage.degree;
            entry["layers"] = stage.layers;
            stages.append(entry);
        }
        result["stages"] = stages;
    }
    return result;
}

/// The replicas of a plan and what each of them serves: a plan, its document, or its replicas as dicts. A deployment may be given by its
/// name alone, and throughputs that are not given are those that `plan_serving` would believe.
std::vector<s::PlannedReplicas> read_serving(const py::object& given, const s::ServingRequest& request,
                                             const s::LatencyOptions& options) {
    if (py::isinstance<PlannedServing>(given)) return given.cast<const PlannedServing&>().replicas;
    const bool document = py::isinstance<py::dict>(given);
    const std::string place = document ? "plan.replicas" : "plan";
    auto plan = given;
    auto list = given;
    if (document) {
        plan = given.attr("copy")();
        list = given.attr("get")("replicas");
    }
    if (!py::isinstance<py::str>(list) && py::isinstance<py::sequence>(list)) {
        py::list items;
        Problems problems;
        for (const auto item : list)
            collect(problems, [&, item = item] {
                const auto owner = place + "[" + std::to_string(items.size()) + "]";
                items.append(py::isinstance<py::dict>(item) ? with_stages(owner, item, request)
                                                            : py::reinterpret_borrow<py::object>(item));
            });
        problems.throw_if_any();
        list = items;
        if (document)
            plan["replicas"] = items;
        else
            plan = items;
    }
    auto result = read_running(plan, request, "plan");
    auto estimate = options.estimate;
    estimate.memory_fraction = options.memory_fraction;
    const s::detail::Calibrator calibrator(request, estimate);
    Problems problems;
    for (std::size_t r = 0; r < result.size(); ++r)
        collect(problems, [&] {
            auto& replicas = result[r];
            const auto owner = place + "[" + std::to_string(r) + "]";
            Fields f(owner, py::reinterpret_borrow<py::list>(list)[r]);
            std::vector<std::string> known;
            for (const auto& served : request.models) known.push_back(served.model.name);
            const auto model = std::find(known.begin(), known.end(), replicas.model);
            if (model == known.end()) throw InvalidInput(bad_name(owner + ".model", replicas.model, known));
            if (replicas.deployment.stages.empty())
                throw InvalidInput(owner + ".stages: expected GPU types of the request");
            const auto at = static_cast<std::size_t>(model - known.begin());
            const auto& served = request.models[at];
            f.read("deployment", replicas.deployment.name);
            replicas.share.assign(served.workloads.size(), 0.0);
            for (std::size_t d = 0; d < served.workloads.size(); ++d) {
                const auto [rate, source] =
                    calibrator.rate(at, replicas.deployment, d,
                                    estimate_throughput(served.model, request.gpus, replicas.deployment,
                                                        served.workloads[d].shape, estimate)
                                        .requests_per_s);
                replicas.requests_per_s.push_back(rate);
                replicas.source.push_back(source);
            }
            if (const auto share = f.take("share"))
                f.collect([&] { read_by_kind(owner + ".share", share, served, replicas.share); });
            else
                f.missing("share");
            if (const auto rates = f.take("requests_per_s"))
                f.collect(
                    [&] { read_by_kind(owner + ".requests_per_s", rates, served, replicas.requests_per_s); });
            if (const auto sources = f.take("source"))
                f.collect([&] { read_by_kind(owner + ".source", sources, served, replicas.source); });
            f.throw_if_any();
        });
    problems.throw_if_any();
    return result;
}

}  // namespace

void bind_serving_latency(py::module_& m) {
    py::class_<s::KindLatency> kind(m, "KindLatency", doc("serving::KindLatency").c_str());
    define_record(kind);
    kind.def("ttft_percentile", &s::KindLatency::ttft_percentile, py::arg("percent"),
             documented("ttft_percentile(self, percent)", doc("serving::KindLatency::ttft_percentile"))
                 .c_str())
        .def("tpot_percentile", &s::KindLatency::tpot_percentile, py::arg("percent"),
             documented("tpot_percentile(self, percent)", doc("serving::KindLatency::tpot_percentile"))
                 .c_str())
        .def("percentile", &s::KindLatency::percentile, py::arg("percent"),
             documented("percentile(self, percent)", doc("serving::KindLatency::percentile")).c_str());
    using L = s::LatencyResult;
    py::class_<L> result(m, "LatencyResult", doc("serving::LatencyResult").c_str());
    define_record(result);
    result.def("percentile", &L::percentile, py::arg("percent"),
               documented("percentile(self, percent)", doc("serving::LatencyResult::percentile")).c_str());
    result.def("__str__", &s::latency_table);
    const auto options = Keywords<s::LatencyOptions>().fields();
    m.def(
        "simulate_latency",
        [options](const Request& request, const Replicas& plan, const py::kwargs& keywords) {
            const auto o = options.read("simulate_latency", keywords);
            const auto asked =
                read_serving_request(request, o.rate > 0 ? py::object(py::float_(1.0)) : py::none());
            const auto replicas = read_serving(plan, asked, o);
            return unlocked([&] { return s::simulate_latency(asked, replicas, o); });
        },
        py::arg("request"), py::arg("plan"),
        options
            .documented(
                "simulate_latency(request, plan",
                doc("serving::simulate_latency") +
                    "\n\n`plan`: a plan, the document that `plan_to_dict` made of one, or a list of dicts "
                    "with `model`, `deployment` or `stages`, `count` and `share` (of each kind of requests), "
                    "and perhaps `requests_per_s` of one replica.")
            .c_str());
}

}  // namespace gpusched::python

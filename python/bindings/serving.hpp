// What the binding units of gpusched.serving share.
#pragma once

#include "arguments.hpp"
#include "fields.hpp"
#include "keywords.hpp"

#include <gpusched/serving/plan_serving.hpp>

#include <string>
#include <vector>

namespace gpusched::python {

/// A type of the catalogue, or of the paper's where the name is only there.
serving::GpuType find_gpu(const std::string& name);
/// A model that is known, or one with this name and nothing else.
/// Described: a dict with the fields of a model that nobody knows.
serving::LanguageModel find_model(const std::string& field, const std::string& name, py::handle described);
/// What a dict says of it.
void read_gpu(Fields& f, serving::GpuType& gpu);
void read_model(Fields& f, serving::LanguageModel& model);
/// With what a dict says instead; unknown keys are InvalidInput.
serving::GpuType gpu_fields(const std::string& owner, serving::GpuType gpu, const py::dict& changes);
serving::LanguageModel model_fields(const std::string& owner, serving::LanguageModel model,
                                    const py::dict& changes);

/// Options that are a dict in Python.
template <class O>
O nested(const char* name, const py::object& value, const Keywords<O>& table, O defaults) {
    if (value.is_none()) return defaults;
    if (!py::isinstance<py::dict>(value)) bad_option(name, value, "a dict");
    for (const auto& [key, unused] : value.cast<py::dict>())
        if (!py::isinstance<py::str>(key)) bad_option(name, value, "a dict with names as keys");
    try {
        return table.read(name, py::kwargs(value), std::move(defaults));
    } catch (const py::type_error& error) {
        throw InvalidInput(std::string(error.what()));
    }
}

/// A request as docs/serving.md describes it, as a dict.
using Request = Typed<"Mapping[str, Any]">;

/// A plan that knows the names of its request.
struct PlannedServing : serving::ServingPlan {
    std::vector<std::string> gpus{};
    std::vector<serving::ServedModel> models{};
};

Keywords<serving::DeploymentOptions> deployment_options();
Keywords<serving::EstimateOptions> estimate_options();

void bind_serving_catalogue(py::module_& m);
void bind_serving_latency(py::module_& m);
void bind_serving_problem(py::module_& m);

/// A request as docs/serving.md describes it.
serving::ServingRequest read_serving_request(const py::object& request);
/// The replicas of a plan, as dicts.
std::vector<serving::PlannedReplicas> read_running(const py::object& running,
                                                   const serving::ServingRequest& request);

}  // namespace gpusched::python

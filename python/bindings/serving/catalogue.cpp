// SPDX-License-Identifier: Apache-2.0
// The module gpusched.serving: GPU types, models, deployments, estimates and profiles.
#include "serving/serving.hpp"
#include "support/documents.hpp"
#include "support/records.hpp"

#include <gpusched/serving/estimate.hpp>
#include <gpusched/serving/predict.hpp>

namespace gpusched::python {

namespace s = serving;

std::pair<int, int> OptionType<std::pair<int, int>>::read(const std::string& field, py::handle value) {
    const auto pair = OptionType<std::vector<int>>::read(field, value);
    if (pair.size() != 2) bad_option(field, value, "a pair of indices of GPU types");
    return {pair[0], pair[1]};
}

std::vector<s::GpuType> gpu_types_argument(const py::object& gpus) {
    if (py::isinstance<py::str>(gpus) || !py::isinstance<py::iterable>(gpus))
        bad_option("gpus", gpus, "a list of GpuType");
    std::vector<s::GpuType> result;
    for (const auto gpu : gpus) {
        if (!py::isinstance<s::GpuType>(gpu)) bad_option("gpus", gpu, "a GpuType");
        result.push_back(gpu.cast<s::GpuType>());
    }
    return result;
}

namespace {

struct DeploymentArguments : s::DeploymentOptions {
    double memory_fraction = s::usual_memory_fraction;
};

struct PredictArguments : s::EngineLoad, s::Parallelism {};

struct DisaggregatedArguments : s::EngineLoad {
    s::Workers prefill{}, decode{};
};

/// A model by name, path of a config.json, or the dict of one.
using ModelArgument = Typed<"str | PathLike[str] | Mapping[str, Any]">;

s::LanguageModel read_model(const py::object& model) {
    if (is_mapping(model)) return s::read_model_config(to_document(model, "model"));
    constexpr const char* expected =
        "the name of a known model, such as Llama-3.1-8B, or a config.json as a path or dict";
    return s::find_language_model(path_text(model, "model", expected));
}

/// A GPU type of the catalogue, or of the paper if only the paper has the name.
s::GpuType find_gpu(const std::string& name) {
    if (const auto known = s::find_gpu_type(name)) return *known;
    return s::gpu_type(name);  // which names the known types
}

/// A known model, that of a config.json, or a model with only this name.
/// @param described the fields of an unknown model
s::LanguageModel find_model(const py::object& name, const py::kwargs& described) {
    if (!py::isinstance<py::str>(name) || !described.contains("layers")) return read_model(name);
    const auto text = OptionType<std::string>::read("name", name);
    for (const auto& model : s::known_language_models())
        if (model.name == text) return model;
    return {.name = text};
}

void bind_records(py::module_& m) {
    bind_record<s::GpuType>(m, "GpuType");
    auto model = bind_record<s::LanguageModel>(m, "LanguageModel");
    model.def_property_readonly("parameters", &s::LanguageModel::parameters,
                                doc("serving::LanguageModel::parameters"));
    model.attr("__repr__") =  // short, without the parts that most models lack
        py::cpp_function(
            repr_of_attributes({"name", "layers", "hidden", "heads", "kv_heads", "head_size", "intermediate",
                                "vocabulary", "experts", "bytes_per_weight", "bytes_per_kv"}),
            py::name("__repr__"), py::is_method(model));
    bind_record<s::Stage>(m, "Stage");
    bind_record<s::Deployment>(m, "Deployment");
    bind_record<s::ThroughputEstimate>(m, "ThroughputEstimate");
    bind_record<s::ErrorBand>(m, "ErrorBand");
    bind_record<s::PredictionErrors>(m, "PredictionErrors");
    auto prediction = bind_record<s::Prediction>(m, "Prediction");
    prediction.attr("__repr__") =  // short, without the assumptions
        py::cpp_function(repr_of_attributes({"fits", "ttft_s", "tpot_s", "requests_per_s", "gpus"}),
                         py::name("__repr__"), py::is_method(prediction));
}

void bind_predict(py::module_& m) {
    Keywords<PredictArguments>().fields<s::EngineLoad>().fields<s::Parallelism>().def(
        m, "predict",
        [](const PredictArguments& o, const ModelArgument& model, const Typed<"str">& gpu) {
            return s::predict(read_model(model), OptionType<std::string>::read("gpu", gpu), o, o);
        },
        doc("serving::predict"), py::arg("model"), py::arg("gpu"));
    Keywords<DisaggregatedArguments>()
        .fields<s::EngineLoad>()
        .field("prefill", &DisaggregatedArguments::prefill, "The workers that prefill.")
        .field("decode", &DisaggregatedArguments::decode, "The workers that decode.")
        .def(
            m, "predict_disaggregated",
            [](const DisaggregatedArguments& o, const ModelArgument& model, const Typed<"str">& gpu) {
                return s::predict_disaggregated(read_model(model), OptionType<std::string>::read("gpu", gpu),
                                                o.prefill, o.decode, o);
            },
            doc("serving::predict_disaggregated"), py::arg("model"), py::arg("gpu"));
}

void bind_catalogue(py::module_& m) {
    m.def("gpu_catalogue", &s::gpu_catalogue, documented(doc("serving::gpu_catalogue")));
    m.def("paper_gpus", &s::paper_gpus, documented(doc("serving::paper_gpus")));
    m.def("paper_gpus_dense", &s::paper_gpus_dense, documented(doc("serving::paper_gpus_dense")));
    m.def(
        "gpu_type",
        [](const Typed<"str">& name, const py::kwargs& changes) {
            const auto text = OptionType<std::string>::read("name", name);
            auto gpu = from_python("gpu_type", changes, find_gpu(text));
            s::validate(std::vector<s::GpuType>{gpu});
            return gpu;
        },
        py::arg("name"),
        documented(doc("serving::gpu_type") + "\n\nKeywords replace fields of the catalogue.", "**changes"));
    m.def(
        "language_model",
        [](const ModelArgument& name, const py::kwargs& changes) {
            auto model = from_python("language_model", changes, find_model(name, changes));
            if (changes.contains("bytes_per_weight") && !changes.contains("bytes_per_kv"))
                model.bytes_per_kv = model.bytes_per_weight < 1.5 ? 1 : 2;
            s::validate(model);
            return model;
        },
        py::arg("name"),
        documented("Returns a known model, such as 'Llama-3-70B' or 'Qwen3-32B', or that of a config.json of "
                   "Hugging Face, as a path or a dict. Keywords replace its fields. For any other name, all "
                   "fields are required.",
                   "**changes"));
    const auto options = Keywords<DeploymentArguments>().fields<s::DeploymentOptions>().field(
        "memory_fraction", &DeploymentArguments::memory_fraction,
        doc("serving::EstimateOptions::memory_fraction"));
    options.def(
        m, "enumerate_deployments",
        [](const DeploymentArguments& o, const s::LanguageModel& model,
           const Typed<"Sequence[GpuType]">& gpus, const Integers& available) {
            const auto counts = OptionType<std::vector<int>>::read("available", available);
            return s::enumerate_deployments(model, gpu_types_argument(gpus), counts, o, o.memory_fraction);
        },
        doc("serving::enumerate_deployments"), py::arg("model"), py::arg("gpus"), py::arg("available"));
    const auto estimates = Keywords<s::EstimateOptions>().fields();
    estimates.def(
        m, "estimate_throughput",
        [](const s::EstimateOptions& o, const s::LanguageModel& model, const Typed<"Sequence[GpuType]">& gpus,
           const s::Deployment& deployment, const Integer& input, const Integer& output) {
            return s::estimate_throughput(
                model, gpu_types_argument(gpus), deployment,
                {OptionType<int>::read("input", input), OptionType<int>::read("output", output)}, o);
        },
        doc("serving::estimate_throughput"), py::arg("model"), py::arg("gpus"), py::arg("deployment"),
        py::arg("input"), py::arg("output"));
    m.def(
        "read_layer_profile",
        [](const PathLike& prefill, const PathLike& decode, const std::string& model, const std::string& gpu,
           const Integer& degree, double unit_s) -> JsonObject {
            const auto profile =
                s::read_layer_profile(path_text(prefill, "prefill"), path_text(decode, "decode"), model, gpu,
                                      OptionType<int>::read("degree", degree), unit_s);
            const auto pairs = [](const std::vector<s::ProfilePoint>& points) {
                py::list result;
                for (const auto& point : points) result.append(py::make_tuple(point.size, point.seconds));
                return result;
            };
            return py::dict(py::arg("model") = profile.model, py::arg("gpu") = profile.gpu,
                            py::arg("degree") = profile.degree, py::arg("prefill") = pairs(profile.prefill),
                            py::arg("decode") = pairs(profile.decode));
        },
        py::arg("prefill"), py::arg("decode"), py::arg("model"), py::arg("gpu"), py::arg("degree") = 1,
        py::arg("unit_s") = 1e-3,
        documented(doc("serving::read_layer_profile") +
                   "\n\nReturns the dict for `profiles` of `estimate_throughput`.\n\n" +
                   doc("serving::parse_profile_csv")));
    estimates.def(
        m, "layer_seconds",
        [](const s::EstimateOptions& o, const s::LanguageModel& model, const s::GpuType& gpu,
           const Integer& number, double tokens, double context, double sequences) {
            return s::layer_seconds(model, gpu, OptionType<int>::read("degree", number), tokens, context,
                                    sequences, o);
        },
        doc("serving::layer_seconds"), py::arg("model"), py::arg("gpu"), py::arg("degree"), py::arg("tokens"),
        py::arg("context"), py::arg("sequences"));
}

}  // namespace

void bind_serving_catalogue(py::module_& m) {
    bind_records(m);
    bind_catalogue(m);
    bind_predict(m);
}

}  // namespace gpusched::python

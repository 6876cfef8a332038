// GPU types, models, deployments, estimates and profiles in gpusched.serving.
#include "plan.hpp"
#include "records.hpp"
#include "serving.hpp"

#include <gpusched/serving/profile_csv.hpp>

namespace gpusched::python {

namespace s = serving;

namespace {

std::vector<s::ProfilePoint> points(const std::string& field, py::handle value) {
    std::vector<s::ProfilePoint> result;
    for (const auto& pair : OptionType<std::vector<std::vector<double>>>::read(field, value)) {
        if (pair.size() != 2) bad_option(field, value, "pairs (size, seconds)");
        result.push_back({pair[0], pair[1]});
    }
    return result;
}

}  // namespace

/// "profiles": a list of dicts.
template <>
struct OptionType<s::LayerProfile> {
    static s::LayerProfile read(const std::string& field, py::handle value) {
        Fields f(field, value);
        s::LayerProfile profile;
        f.require("model", profile.model);
        f.require("gpu", profile.gpu);
        f.read("degree", profile.degree);
        f.collect([&] {
            if (const auto table = f.take("prefill")) profile.prefill = points(field + ".prefill", table);
        });
        f.collect([&] {
            if (const auto table = f.take("decode")) profile.decode = points(field + ".decode", table);
        });
        f.finish();
        return profile;
    }
    static std::string literal(const s::LayerProfile&) { return "{}"; }
    static std::string type() { return "Mapping[str, Any]"; }
};

/// "efficiency": a dict.
template <>
struct OptionType<s::Efficiency> {
    static s::Efficiency read(const std::string& field, py::handle value) {
        Fields f(field, value);
        s::Efficiency e;
        f.read("compute", e.compute);
        f.read("bandwidth", e.bandwidth);
        f.read("link", e.link);
        f.read("network", e.network);
        f.read("layer_s", e.layer_s);
        f.read("collective_s", e.collective_s);
        f.read("message_s", e.message_s);
        f.finish();
        return e;
    }
    static std::string literal(const s::Efficiency&) { return "{}"; }
    static std::string type() { return "Mapping[str, float]"; }
};

/// "disconnected": a list of pairs.
template <>
struct OptionType<std::pair<int, int>> {
    static std::pair<int, int> read(const std::string& field, py::handle value) {
        const auto pair = OptionType<std::vector<int>>::read(field, value);
        if (pair.size() != 2) bad_option(field, value, "a pair of indices of GPU types");
        return {pair[0], pair[1]};
    }
    static std::string literal(const std::pair<int, int>&) { return "()"; }
    static std::string type() { return "tuple[int, int]"; }
};

serving::GpuType find_gpu(const std::string& name) {
    const auto paper = s::paper_gpus_dense();
    const auto known = s::gpu_catalogue();
    const auto named = [&](const s::GpuType& gpu) { return gpu.name == name; };
    if (std::none_of(known.begin(), known.end(), named))
        for (const auto& gpu : paper)
            if (gpu.name == name) return gpu;
    return s::gpu_type(name);
}

serving::LanguageModel find_model(const std::string& field, const std::string& name, py::handle described) {
    std::string known;
    for (const auto& model : {s::llama3_8b(), s::llama3_70b(), s::llama2_70b()}) {
        if (model.name == name) return model;
        known += gpusched::quoted(model.name) + ", ";
    }
    if (!dict_of(field, described).contains("layers"))
        throw InvalidInput(bad_value(field, gpusched::quoted(name),
                                     known + "or a model described in full (layers, hidden, heads, ...)"));
    return {.name = name};
}

void read_gpu(Fields& f, serving::GpuType& gpu) {
    f.read("tflops", gpu.tflops);
    f.read("bandwidth_gb_s", gpu.bandwidth_gb_s);
    f.read("memory_gb", gpu.memory_gb);
    f.read("link_gb_s", gpu.link_gb_s);
    f.read("network_gb_s", gpu.network_gb_s);
    f.read("per_machine", gpu.per_machine);
    f.read("price", gpu.price);
    f.read("source", gpu.source);
}

void read_model(Fields& f, serving::LanguageModel& model) {
    f.read("layers", model.layers);
    f.read("hidden", model.hidden);
    f.read("heads", model.heads);
    f.read("kv_heads", model.kv_heads);
    f.read("head_size", model.head_size);
    f.read("intermediate", model.intermediate);
    f.read("vocabulary", model.vocabulary);
    f.read("bytes_per_weight", model.bytes_per_weight);
    f.read("bytes_per_kv", model.bytes_per_kv);
}

serving::GpuType gpu_fields(const std::string& owner, serving::GpuType gpu, const py::dict& changes) {
    Fields f(owner, changes);
    read_gpu(f, gpu);
    f.finish();
    s::validate(std::vector<s::GpuType>{gpu});
    return gpu;
}

serving::LanguageModel model_fields(const std::string& owner, serving::LanguageModel model,
                                    const py::dict& changes) {
    Fields f(owner, changes);
    read_model(f, model);
    f.finish();
    s::validate(model);
    return model;
}

Keywords<serving::DeploymentOptions> deployment_options() {
    using O = s::DeploymentOptions;
    return Keywords<O>()
        .field("degrees", &O::degrees)
        .field("max_stages", &O::max_stages, "Stages of a pipeline, 1 to 64.")
        .field("max_gpus", &O::max_gpus)
        .field("max_types", &O::max_types)
        .field("memory_fraction", &O::memory_fraction)
        .field("min_tokens", &O::min_tokens)
        .field("disconnected", &O::disconnected);
}

Keywords<serving::EstimateOptions> estimate_options() {
    using O = s::EstimateOptions;
    return Keywords<O>()
        .field("efficiency", &O::efficiency, doc("serving::Efficiency"))
        .field("memory_fraction", &O::memory_fraction)
        .field("max_batch", &O::max_batch)
        .field("profiles", &O::profiles);
}

namespace {

void bind_records(py::module_& m) {
    using G = s::GpuType;
    py::class_<G> gpu(m, "GpuType", doc("serving::GpuType").c_str());
    define_record(gpu, attribute("name", &G::name, "Its name."),
                  attribute("tflops", &G::tflops, doc("serving::GpuType::tflops")),
                  attribute("bandwidth_gb_s", &G::bandwidth_gb_s, doc("serving::GpuType::bandwidth_gb_s")),
                  attribute("memory_gb", &G::memory_gb, doc("serving::GpuType::memory_gb")),
                  attribute("link_gb_s", &G::link_gb_s, doc("serving::GpuType::link_gb_s")),
                  attribute("network_gb_s", &G::network_gb_s, doc("serving::GpuType::network_gb_s")),
                  attribute("per_machine", &G::per_machine, doc("serving::GpuType::per_machine")),
                  attribute("price", &G::price, doc("serving::GpuType::price")),
                  attribute("source", &G::source, doc("serving::GpuType::source")));
    using L = s::LanguageModel;
    py::class_<L> model(m, "LanguageModel", doc("serving::LanguageModel").c_str());
    define_record(model, attribute("name", &L::name, "Its name."),
                  attribute("layers", &L::layers, "Transformer layers."),
                  attribute("hidden", &L::hidden, doc("serving::LanguageModel::hidden")),
                  attribute("heads", &L::heads, doc("serving::LanguageModel::heads")),
                  attribute("kv_heads", &L::kv_heads, "Key and value heads."),
                  attribute("head_size", &L::head_size, "Numbers per head."),
                  attribute("intermediate", &L::intermediate, doc("serving::LanguageModel::intermediate")),
                  attribute("vocabulary", &L::vocabulary, "Tokens it knows."),
                  attribute("bytes_per_weight", &L::bytes_per_weight, "Of the weights in memory."),
                  attribute("bytes_per_kv", &L::bytes_per_kv, doc("serving::LanguageModel::bytes_per_kv")));
    model.def_property_readonly("parameters", &L::parameters,
                                doc("serving::LanguageModel::parameters").c_str());
    using S = s::Stage;
    py::class_<S> stage(m, "Stage", doc("serving::Stage").c_str());
    define_record(stage, attribute("gpu", &S::gpu, doc("serving::Stage::gpu")),
                  attribute("degree", &S::degree, doc("serving::Stage::degree")),
                  attribute("layers", &S::layers, doc("serving::Stage::layers")));
    using D = s::Deployment;
    py::class_<D> deployment(m, "Deployment", doc("serving::Deployment").c_str());
    define_record(deployment, attribute("name", &D::name, doc("serving::Deployment::name")),
                  attribute("stages", &D::stages, "Its stages, in the order of the pipeline."));
    using T = s::ThroughputEstimate;
    py::class_<T> estimate(m, "ThroughputEstimate", doc("serving::ThroughputEstimate").c_str());
    define_record(
        estimate, attribute("requests_per_s", &T::requests_per_s, "Requests per second."),
        attribute("batch", &T::batch, doc("serving::ThroughputEstimate::batch")),
        attribute("prefill_s", &T::prefill_s, doc("serving::ThroughputEstimate::prefill_s")),
        attribute("step_s", &T::step_s, doc("serving::ThroughputEstimate::step_s")),
        attribute("first_token_s", &T::first_token_s, doc("serving::ThroughputEstimate::first_token_s")));
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

void bind_catalogue(py::module_& m) {
    m.def("gpu_catalogue", &s::gpu_catalogue,
          documented("gpu_catalogue()", doc("serving::gpu_catalogue")).c_str());
    m.def("paper_gpus", &s::paper_gpus, documented("paper_gpus()", doc("serving::paper_gpus")).c_str());
    m.def("paper_gpus_dense", &s::paper_gpus_dense,
          documented("paper_gpus_dense()", doc("serving::paper_gpus_dense")).c_str());
    m.def(
        "gpu_type",
        [](const Typed<"str">& name, const py::kwargs& changes) {
            const auto text = OptionType<std::string>::read("name", name);
            return gpu_fields("gpu_type", find_gpu(text), changes);
        },
        py::arg("name"),
        documented("gpu_type(name, **changes)",
                   doc("serving::gpu_type") + "\n\nFields given as keywords replace those of the catalogue.")
            .c_str());
    m.def(
        "language_model",
        [](const Typed<"str">& name, const py::kwargs& changes) {
            const auto text = OptionType<std::string>::read("name", name);
            return model_fields("language_model", find_model("name", text, changes), changes);
        },
        py::arg("name"),
        documented(
            "language_model(name, **changes)",
            "'Llama-3-8B', 'Llama-3-70B' or 'Llama-2-70B'; fields given as keywords replace those known. "
            "With any other name all of them must be given.")
            .c_str());
    const auto options = deployment_options();
    m.def(
        "enumerate_deployments",
        [options](const s::LanguageModel& model, const Typed<"Sequence[GpuType]">& gpus,
                  const Integers& available, const py::kwargs& keywords) {
            const auto o = options.read("enumerate_deployments", keywords);
            const auto counts = OptionType<std::vector<int>>::read("available", available);
            return s::enumerate_deployments(model, gpu_types_argument(gpus), counts, o);
        },
        py::arg("model"), py::arg("gpus"), py::arg("available"),
        options
            .documented("enumerate_deployments(model, gpus, available", doc("serving::enumerate_deployments"))
            .c_str());
    const auto estimates = estimate_options();
    m.def(
        "estimate_throughput",
        [estimates](const s::LanguageModel& model, const Typed<"Sequence[GpuType]">& gpus,
                    const s::Deployment& deployment, const Integer& input, const Integer& output,
                    const py::kwargs& keywords) {
            const auto o = estimates.read("estimate_throughput", keywords);
            return s::estimate_throughput(
                model, gpu_types_argument(gpus), deployment,
                {OptionType<int>::read("input", input), OptionType<int>::read("output", output)}, o);
        },
        py::arg("model"), py::arg("gpus"), py::arg("deployment"), py::arg("input"), py::arg("output"),
        estimates
            .documented("estimate_throughput(model, gpus, deployment, input, output",
                        doc("serving::estimate_throughput"))
            .c_str());
    m.def(
        "read_layer_profile",
        [](const PathLike& prefill, const PathLike& decode, const std::string& model, const std::string& gpu,
           int degree, double unit_s) -> JsonObject {
            const auto profile =
                s::read_layer_profile(path_text(prefill), path_text(decode), model, gpu, degree, unit_s);
            const auto pairs = [](const std::vector<s::ProfilePoint>& points) {
                py::list result;
                for (const auto& point : points) result.append(py::make_tuple(point.size, point.seconds));
                return result;
            };
            py::dict result;
            result["model"] = profile.model;
            result["gpu"] = profile.gpu;
            result["degree"] = profile.degree;
            result["prefill"] = pairs(profile.prefill);
            result["decode"] = pairs(profile.decode);
            return result;
        },
        py::arg("prefill"), py::arg("decode"), py::arg("model"), py::arg("gpu"), py::arg("degree") = 1,
        py::arg("unit_s") = 1e-3,
        documented("read_layer_profile(prefill, decode, model, gpu, degree=1, unit_s=0.001)",
                   doc("serving::read_layer_profile") +
                       "\n\nThe dict that `profiles` of `estimate_throughput` takes.\n\n" +
                       doc("serving::parse_profile_csv"))
            .c_str());
    m.def(
        "layer_seconds",
        [estimates](const s::LanguageModel& model, const s::GpuType& gpu, int degree, double tokens,
                    double context, double sequences, const py::kwargs& keywords) {
            const auto o = estimates.read("layer_seconds", keywords);
            s::validate(o);
            s::validate(model);
            s::validate(std::vector<s::GpuType>{gpu});
            Problems problems;
            check_range(problems, "degree", degree, 1, gpu.link_gb_s > 0 ? gpu.per_machine : 1);
            check_range(problems, "tokens", tokens, 0.0, 1e18);
            check_range(problems, "context", context, 0.0, 1e18);
            check_range(problems, "sequences", sequences, 0.0, 1e18);
            problems.throw_if_any();
            return s::layer_seconds(model, gpu, degree, tokens, context, sequences, o.efficiency);
        },
        py::arg("model"), py::arg("gpu"), py::arg("degree"), py::arg("tokens"), py::arg("context"),
        py::arg("sequences"),
        estimates
            .documented("layer_seconds(model, gpu, degree, tokens, context, sequences",
                        doc("serving::layer_seconds"))
            .c_str());
}

}  // namespace

void bind_serving_catalogue(py::module_& m) {
    bind_records(m);
    bind_catalogue(m);
}

}  // namespace gpusched::python

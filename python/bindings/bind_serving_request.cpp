// Requests of the serving planner as dicts.
#include "serving.hpp"

#include <gpusched/core/checks.hpp>

#include <algorithm>
#include <set>

namespace gpusched::python {

namespace s = serving;

namespace {

py::dict dict_of(const std::string& field, py::handle value) {
    if (!py::isinstance<py::dict>(value)) bad_option(field, value, "a dict");
    return py::reinterpret_borrow<py::dict>(value);
}

/// Keys of a dict one by one; those that nobody took are mistakes, unless they begin with x-.
class RequestFields {
  public:
    RequestFields(std::string owner, py::handle value)
        : owner_(std::move(owner)), dict_(dict_of(owner_, value)) {}

    template <class T>
    void read(const char* name, T& target) {
        if (const auto value = take(name)) target = OptionType<T>::read(owner_ + "." + name, value);
    }
    template <class T>
    void require(const char* name, T& target) {
        if (!dict_.contains(name)) throw InvalidInput(owner_ + ": " + name + " is missing");
        read(name, target);
    }
    py::object take(const char* name) {
        taken_.insert(name);
        return dict_.contains(name) ? py::object(dict_[name]) : py::object();
    }
    void finish() const {
        std::string known;
        for (const auto& name : taken_) known += (known.empty() ? "" : ", ") + name;
        for (const auto& [key, value] : dict_) {
            const auto name = OptionType<std::string>::read(owner_, key);
            if (!taken_.contains(name) && !name.starts_with("x-"))
                throw InvalidInput(owner_ + ": unknown field " + gpusched::quoted(name) + "; expected " +
                                   known);
        }
    }
    [[nodiscard]] const std::string& owner() const { return owner_; }

  private:
    std::string owner_;
    py::dict dict_;
    std::set<std::string> taken_;
};

void read_gpu(RequestFields& f, s::GpuType& gpu) {
    f.read("tflops", gpu.tflops);
    f.read("bandwidth_gb_s", gpu.bandwidth_gb_s);
    f.read("memory_gb", gpu.memory_gb);
    f.read("link_gb_s", gpu.link_gb_s);
    f.read("network_gb_s", gpu.network_gb_s);
    f.read("per_machine", gpu.per_machine);
    f.read("price", gpu.price);
    f.read("source", gpu.source);
}

void read_model(RequestFields& f, s::LanguageModel& model) {
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
        RequestFields f(field, value);
        s::LayerProfile profile;
        f.require("model", profile.model);
        f.require("gpu", profile.gpu);
        f.read("degree", profile.degree);
        if (const auto table = f.take("prefill")) profile.prefill = points(field + ".prefill", table);
        if (const auto table = f.take("decode")) profile.decode = points(field + ".decode", table);
        f.finish();
        return profile;
    }
    static std::string literal(const s::LayerProfile&) { return "{}"; }
};

/// "efficiency": a dict.
template <>
struct OptionType<s::Efficiency> {
    static s::Efficiency read(const std::string& field, py::handle value) {
        RequestFields f(field, value);
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

serving::GpuType gpu_fields(const std::string& owner, serving::GpuType gpu, const py::dict& changes) {
    RequestFields f(owner, changes);
    read_gpu(f, gpu);
    f.finish();
    s::validate(std::vector<s::GpuType>{gpu});
    return gpu;
}

serving::LanguageModel model_fields(const std::string& owner, serving::LanguageModel model,
                                    const py::dict& changes) {
    RequestFields f(owner, changes);
    read_model(f, model);
    f.finish();
    s::validate(model);
    return model;
}

Options<serving::DeploymentOptions> deployment_options() {
    using O = s::DeploymentOptions;
    return Options<O>("serving::DeploymentOptions")
        .field("degrees", &O::degrees)
        .field("max_stages", &O::max_stages, "Stages of a pipeline, 1 to 64.")
        .field("max_gpus", &O::max_gpus)
        .field("max_types", &O::max_types)
        .field("memory_fraction", &O::memory_fraction)
        .field("min_tokens", &O::min_tokens)
        .field("disconnected", &O::disconnected);
}

Options<serving::EstimateOptions> estimate_options() {
    using O = s::EstimateOptions;
    return Options<O>("serving::EstimateOptions")
        .field("efficiency", &O::efficiency, doc("serving::Efficiency"))
        .field("memory_fraction", &O::memory_fraction)
        .field("max_batch", &O::max_batch)
        .field("profiles", &O::profiles);
}

namespace {

/// "gpus": one entry.
void read_rentable(const std::string& name, py::handle value, s::ServingRequest& result) {
    RequestFields f("request.gpus[" + gpusched::quoted(name) + "]", value);
    auto type = name;
    f.read("type", type);
    int available = 0;
    f.require("available", available);
    // A type that nobody knows may be described in full.
    s::GpuType gpu;
    try {
        gpu = find_gpu(type);
    } catch (const InvalidInput&) {
        if (!f.take("tflops")) throw;
    }
    gpu.name = name;
    read_gpu(f, gpu);
    f.finish();
    if (!gpu.price) {
        for (const auto& known : s::paper_gpus())
            if (known.name == type || "RTX" + known.name == type || known.name + "-80GB" == type)
                gpu.price = known.price;
    }
    result.gpus.push_back(std::move(gpu));
    result.available.push_back(available);
}

}  // namespace

serving::ServingRequest read_serving_request(const py::object& request) {
    RequestFields top("request", request);
    s::ServingRequest result;
    std::string format = "gpusched.serving-request";
    int version = 1;
    top.read("format", format);
    top.read("version", version);
    if (format != "gpusched.serving-request" || version != 1)
        throw InvalidInput(bad_value("request.format",
                                     gpusched::quoted(format) + " version " + std::to_string(version),
                                     "'gpusched.serving-request' version 1"));
    // Every entry is read for itself, so that all mistakes are told at once.
    Problems problems;
    const auto take = [&](auto&& read) {
        try {
            read();
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) problems.add(problem);
        }
    };
    const auto each = [&](const char* name, auto&& read) {
        take([&] {
            const auto entries = top.take(name);
            if (!entries) throw InvalidInput(std::string("request: ") + name + " is missing");
            for (const auto& [key, value] : dict_of(std::string("request.") + name, entries))
                take([&, key = key, value = value] {
                    read(OptionType<std::string>::read(std::string("request.") + name, key), value);
                });
        });
    };
    take([&] { top.require("budget", result.budget); });
    each("gpus", [&](const std::string& name, py::handle value) { read_rentable(name, value, result); });
    each("models", [&](const std::string& name, py::handle value) {
        const auto owner = "request.models[" + gpusched::quoted(name) + "]";
        RequestFields f(owner, value);
        auto type = name;
        f.read("type", type);
        s::ServedModel served{{}, {}};
        take([&] {
            served.model = find_model(owner + ".type", type, value);
            served.model.name = name;
        });
        take([&] { read_model(f, served.model); });
        const auto workloads = f.take("workloads");
        if (!workloads) throw InvalidInput(owner + ": workloads is missing");
        for (const auto& [of, shape] : dict_of(owner + ".workloads", workloads))
            take([&, of = of, shape = shape] {
                s::ServingDemand demand{OptionType<std::string>::read(owner + ".workloads", of), {}, 0};
                RequestFields w(owner + ".workloads[" + gpusched::quoted(demand.name) + "]", shape);
                w.require("input", demand.shape.input);
                w.require("output", demand.shape.output);
                w.require("requests", demand.requests);
                w.finish();
                served.demands.push_back(std::move(demand));
            });
        f.finish();
        result.models.push_back(std::move(served));
    });
    if (const auto measured = top.take("measured")) {
        take([&] {
            if (py::isinstance<py::str>(measured) || !py::isinstance<py::sequence>(measured))
                bad_option("request.measured", measured, "a list of dicts");
            int i = 0;
            for (const auto item : measured)
                take([&, item = item] {
                    RequestFields f("request.measured[" + std::to_string(i++) + "]", item);
                    s::MeasuredThroughput m;
                    f.require("model", m.model);
                    f.require("deployment", m.deployment);
                    f.require("workload", m.demand);
                    f.require("requests_per_s", m.requests_per_s);
                    f.finish();
                    result.measured.push_back(std::move(m));
                });
        });
    }
    take([&] { top.finish(); });
    problems.throw_if_any();
    s::validate(result);
    return result;
}

std::vector<serving::PlannedReplicas> read_running(const py::object& running,
                                                   const serving::ServingRequest& request) {
    if (py::isinstance<py::str>(running) || !py::isinstance<py::sequence>(running))
        bad_option("running", running, "a plan, or a list of dicts");
    std::vector<s::PlannedReplicas> result;
    for (const auto item : running) {
        const auto owner = "running[" + std::to_string(result.size()) + "]";
        const auto entry = dict_of(owner, item);
        for (const char* name : {"model", "stages", "count"})
            if (!entry.contains(name)) throw InvalidInput(owner + ": " + name + " is missing");
        s::PlannedReplicas replicas;
        replicas.model = OptionType<std::string>::read(owner + ".model", entry["model"]);
        replicas.count = OptionType<int>::read(owner + ".count", entry["count"]);
        if (!py::isinstance<py::sequence>(entry["stages"]))
            bad_option(owner + ".stages", entry["stages"], "a list");
        bool gone = false;
        for (const auto stage : entry["stages"]) {
            RequestFields f(owner + ".stages", stage);
            std::string gpu;
            s::Stage read;
            f.require("gpu", gpu);
            f.require("degree", read.degree);
            f.require("layers", read.layers);
            f.finish();
            const auto at = std::find_if(request.gpus.begin(), request.gpus.end(),
                                         [&](const s::GpuType& type) { return type.name == gpu; });
            gone = gone || at == request.gpus.end();
            read.gpu = static_cast<int>(at - request.gpus.begin());
            replicas.deployment.stages.push_back(read);
        }
        // Replicas on types that the request no longer has are stopped: no deployment equals them.
        if (gone) replicas.deployment.stages.clear();
        result.push_back(std::move(replicas));
    }
    return result;
}

}  // namespace gpusched::python

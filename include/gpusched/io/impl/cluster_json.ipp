#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_list.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/detail/json_reader.hpp>
#include <gpusched/io/detail/json_writer.hpp>
#include <gpusched/model/cluster.hpp>

#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::io {

namespace detail {

/// Text for which empty means "none": null is read as empty.
struct NullIsEmpty : ByType {
    static void read(JsonReader& reader, std::uint32_t at, std::string& out) {
        if (reader.kind(at) != JsonKind::null) reader.read(at, out);
    }
};

/// An absent value is written as null instead of being left out.
struct AbsentIsNull : ByType {
    template <class T>
    static bool absent(const T&) {
        return false;
    }
};

/// "node", or the 0-based index into a node's network.
struct LevelCodec : ByType {
    static void read(JsonReader& reader, std::uint32_t at, Level& out) {
        const auto& value = reader.document()[at];
        if (value.kind == JsonKind::string) {
            if (reader.document().string(value) == "node")
                out = node_level;
            else
                reader.expected(at, "\"node\" or an integer");
        } else {
            reader.read_integer(at, out, 0, std::numeric_limits<Level>::max());
        }
    }
    static void write(JsonWriter& writer, Level level) {
        if (level == node_level)
            writer.write(std::string_view("node"));
        else
            writer.write(level);
    }
};

/// A list, or its only element by itself.
struct OneOrList : ByType {
    template <class T>
    static void read(JsonReader& reader, std::uint32_t at, std::vector<T>& out) {
        if (reader.kind(at) == JsonKind::object)
            reader.read(at, out.emplace_back());
        else
            reader.read(at, out);
    }
};

template <>
inline constexpr auto fields<Taint> =
    std::tuple{field("key", &Taint::key, Need::required), field("value", &Taint::value),
               field("effect", &Taint::effect, Need::required)};
template <>
inline constexpr auto fields<Toleration> =
    std::tuple{field("key", &Toleration::key), field("operator", &Toleration::op),
               field("value", &Toleration::value), field("effect", &Toleration::effect)};
template <>
inline constexpr auto fields<AntiAffinity> =
    std::tuple{field("group", &AntiAffinity::group, Need::required),
               field<LevelCodec>("level", &AntiAffinity::level), field("limit", &AntiAffinity::limit)};
template <>
inline constexpr auto fields<Affinity> = std::tuple{field("group", &Affinity::group, Need::required),
                                                    field<LevelCodec>("level", &Affinity::level)};
template <>
inline constexpr auto fields<NetworkAffinity> =
    std::tuple{field<LevelCodec>("level", &NetworkAffinity::level, Need::required),
               field("mode", &NetworkAffinity::mode)};
template <>
inline constexpr auto fields<HardwareAffinity> = std::tuple{
    field("level", &HardwareAffinity::level, Need::required), field("qos", &HardwareAffinity::qos)};

/// A set of GPUs as the list of their indices.
template <>
struct Form<GpuMask> {
    static void read(JsonReader& reader, std::uint32_t at, GpuMask& out) {
        if (reader.kind(at) != JsonKind::array) return reader.expected(at, "an array");
        const auto& document = reader.document();
        for (auto child = at + 1; child < document[at].end; child = document[child].end) {
            int gpu = -1;
            reader.read_integer(child, gpu, 0, max_gpus_per_node - 1);
            if (gpu < 0) continue;
            if ((out & gpu_bit(gpu)) != 0)
                reader.report(child, "GPU " + std::to_string(gpu) + " is listed twice");
            out |= gpu_bit(gpu);
        }
    }
    static void write(JsonWriter& writer, GpuMask gpus) { writer.write(gpu_list(gpus)); }
};

template <>
inline constexpr auto fields<NumaNode> =
    std::tuple{field("socket", &NumaNode::socket, Need::required),
               field("cores", &NumaNode::cores, Need::required), field("gpus", &NumaNode::gpus)};

/// The inline form of a machine's hardware.
struct InlineHardware {
    std::vector<NumaNode> numa_nodes;
};
template <>
inline constexpr auto fields<InlineHardware> =
    std::tuple{field("numa_nodes", &InlineHardware::numa_nodes, Need::required)};

/// A preset's name or the inline form. Which presets exist is for the model to say.
template <>
struct Form<Hardware> {
    static void read(JsonReader& reader, std::uint32_t at, Hardware& out) {
        const auto& value = reader.document()[at];
        if (value.kind == JsonKind::object) {
            InlineHardware hardware;
            reader.read(at, hardware);
            out.numa_nodes = std::move(hardware.numa_nodes);
        } else if (value.kind == JsonKind::string && value.size > 0) {
            out.preset = reader.document().string(value);
            if (const auto preset = hardware_preset(out.preset)) out = *preset;
        } else {
            reader.expected(at, "a preset's name or an object");
        }
    }
    static void write(JsonWriter& writer, const Hardware& hardware) {
        if (hardware.preset.empty())
            writer.write(InlineHardware{hardware.numa_nodes});
        else
            writer.write(hardware.preset);
    }
};

template <>
inline constexpr auto fields<NodeSpec> = std::tuple{
    field("name", &NodeSpec::name, Need::required),
    field<NullIsEmpty>("gpu_model", &NodeSpec::gpu_model),
    field("gpu_count", &NodeSpec::gpu_count, Need::required),
    field("cpu_milli", &NodeSpec::cpu_milli, Need::required),
    field("memory_mib", &NodeSpec::memory_mib, Need::required),
    field("network", &NodeSpec::network),
    field("labels", &NodeSpec::labels),
    field("taints", &NodeSpec::taints),
    field("schedulable", &NodeSpec::schedulable),
    field("hardware", &NodeSpec::hardware),
    field("gpu_memory_mib", &NodeSpec::gpu_memory_mib),
    field("failed_gpus", &NodeSpec::failed_gpus),
};

template <>
inline constexpr auto fields<TaskSpec> = std::tuple{
    field("name", &TaskSpec::name, Need::required),
    field<NullIsEmpty>("job", &TaskSpec::job),
    field("cpu_milli", &TaskSpec::cpu_milli, Need::required),
    field("memory_mib", &TaskSpec::memory_mib, Need::required),
    field("gpu_count", &TaskSpec::gpu_count, Need::required),
    field("gpu_share_milli", &TaskSpec::gpu_share_milli),
    field("gpu_models", &TaskSpec::gpu_models),
    field("priority", &TaskSpec::priority),
    field("priority_class", &TaskSpec::priority_class),
    field("locked", &TaskSpec::locked),
    field("preemptible", &TaskSpec::preemptible),
    field<AbsentIsNull>("node", &TaskSpec::node),
    field("gpus", &TaskSpec::gpus),
    field("node_selector", &TaskSpec::node_selector),
    field("tolerations", &TaskSpec::tolerations),
    field("anti_affinity", &TaskSpec::anti_affinity),
    field("affinity", &TaskSpec::affinity),
    field("network_affinity", &TaskSpec::network_affinity),
    field<OneOrList>("hardware_affinity", &TaskSpec::hardware_affinity),
    field("cpu_local", &TaskSpec::cpu_local),
    field<AbsentIsNull>("cores", &TaskSpec::cores),
    field("gpu_memory_mib", &TaskSpec::gpu_memory_mib),
    field("move_cost", &TaskSpec::move_cost),
    field("daemon", &TaskSpec::daemon),
    field("start_time", &TaskSpec::start_time),
    field("last_checkpoint_time", &TaskSpec::last_checkpoint_time),
    field("checkpoint_interval", &TaskSpec::checkpoint_interval),
    field("eviction_count", &TaskSpec::eviction_count),
    field("standby", &TaskSpec::standby),
};

template <>
inline constexpr auto fields<JobSpec> = std::tuple{
    field("name", &JobSpec::name, Need::required),
    field("min_members", &JobSpec::min_members),
    field("max_disrupted", &JobSpec::max_disrupted),
};

template <>
inline constexpr auto fields<ClusterSpec> = std::tuple{
    field("now", &ClusterSpec::now),
    field("nodes", &ClusterSpec::nodes, Need::required),
    field("tasks", &ClusterSpec::tasks),
    field("jobs", &ClusterSpec::jobs),
};

inline constexpr std::string_view cluster_format = "gpusched.cluster";

/// Of a document with mistakes of form, what the model can judge without blaming it for them: nodes, tasks and jobs
/// that are well-formed, and of the tasks only those whose node is among them (unless every node is).
inline ClusterSpec well_formed_part(const JsonDocument& document) {
    ClusterSpec part;
    const auto elements = [&](std::string_view key, auto& out) {
        bool all = false;
        for (std::uint32_t list = 1; list < document[0].end; list = document[list].end) {
            if (document.key(document[list]) != key) continue;
            all = document[list].kind == JsonKind::array;
            if (!all) continue;
            for (auto at = list + 1; at < document[list].end; at = document[at].end) {
                Problems own(1);
                JsonReader(document, own).read(at, out.emplace_back());
                if (own.empty()) continue;
                out.pop_back();
                all = false;
            }
        }
        return all;
    };
    const bool all_nodes = elements("nodes", part.nodes);
    elements("tasks", part.tasks);
    elements("jobs", part.jobs);
    if (!all_nodes) {
        std::unordered_set<std::string_view> known;
        for (const auto& node : part.nodes) known.insert(node.name);
        std::erase_if(part.tasks,
                      [&](const TaskSpec& task) { return task.node && !known.contains(*task.node); });
    }
    return part;
}

}  // namespace detail

GPUSCHED_INLINE std::vector<std::string_view> task_keys() {
    return std::apply([](const auto&... field) { return std::vector{field.key...}; },
                      detail::fields<TaskSpec>);
}

GPUSCHED_INLINE ClusterSpec cluster_from_json(std::string_view text, std::string_view source) {
    ClusterSpec spec;
    Problems problems;
    const auto document = detail::JsonDocument::parse(text, source, problems);
    const bool read = detail::read_fields(document, detail::cluster_format, problems, spec);
    if (read && !problems.empty()) {
        try {
            static_cast<void>(Cluster::build(detail::well_formed_part(document)));
        } catch (const InvalidInput& error) {
            for (const auto& problem : error.problems()) problems.add(problem);
        }
    }
    problems.throw_if_any();
    return spec;
}

GPUSCHED_INLINE ClusterSpec read_cluster(const std::string& path) {
    return cluster_from_json(read_file(path), path);
}

GPUSCHED_INLINE std::string cluster_to_json(const ClusterSpec& cluster, int indent) {
    return detail::write_document(detail::cluster_format, cluster, indent);
}

GPUSCHED_INLINE void write_cluster(const ClusterSpec& cluster, const std::string& path) {
    write_file(path, cluster_to_json(cluster));
}

}  // namespace GPUSCHED_NAMESPACE::io

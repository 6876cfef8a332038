#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_list.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/detail/json_reader.hpp>
#include <gpusched/io/detail/json_writer.hpp>
#include <gpusched/io/detail/other_snapshots.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
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

/// Besides, the key of a label that is a level.
struct AnyLevelCodec : ByType {
    static void read(JsonReader& reader, std::uint32_t at, Level& out) {
        const auto& document = reader.document();
        if (document[at].kind != JsonKind::string)
            return reader.read_integer(at, out, 0, first_label_level - 1);
        const auto key = document.string(document[at]);
        if (key == "node") {
            out = node_level;
            return;
        }
        std::vector<std::string_view> keys;
        for (std::uint32_t field = 1; field < document[0].end; field = document[field].end)
            if (document.key(document[field]) == "label_levels" && document[field].kind == JsonKind::array)
                for (auto each = field + 1; each < document[field].end; each = document[each].end)
                    keys.push_back(document[each].kind == JsonKind::string ? document.string(document[each])
                                                                           : std::string_view{});
        const auto found = std::find(keys.begin(), keys.end(), key);
        if (found != keys.end())
            out = first_label_level + static_cast<Level>(found - keys.begin());
        else if (keys.empty())
            reader.expected(at, "\"node\" or an integer");
        else
            reader.report(at, "expected \"node\", a key of label_levels or an integer, found " +
                                  document.describe(at) + did_you_mean(key, keys));
    }
    static void write(JsonWriter& writer, Level level) {
        const auto keys = writer.label_levels();
        if (const auto k = level - first_label_level; k >= 0 && k < static_cast<Level>(keys.size()))
            writer.write(keys[static_cast<std::size_t>(k)]);
        else
            LevelCodec::write(writer, level);
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
               field<AnyLevelCodec>("level", &AntiAffinity::level), field("limit", &AntiAffinity::limit)};
template <>
inline constexpr auto fields<Affinity> = std::tuple{field("group", &Affinity::group, Need::required),
                                                    field<AnyLevelCodec>("level", &Affinity::level)};
template <>
inline constexpr auto fields<Avoid> =
    std::tuple{field("group", &Avoid::group, Need::required), field<AnyLevelCodec>("level", &Avoid::level)};
template <>
inline constexpr auto fields<Near> =
    std::tuple{field("group", &Near::group, Need::required), field<AnyLevelCodec>("level", &Near::level)};
template <>
inline constexpr auto fields<Spread> = std::tuple{field("group", &Spread::group, Need::required),
                                                  field<AnyLevelCodec>("level", &Spread::level),
                                                  field("max_skew", &Spread::max_skew),
                                                  field("min_domains", &Spread::min_domains),
                                                  field("honor_node_affinity", &Spread::honor_node_affinity),
                                                  field("honor_taints", &Spread::honor_taints)};
template <>
inline constexpr auto fields<NetworkAffinity> =
    std::tuple{field<LevelCodec>("level", &NetworkAffinity::level, Need::required),
               field("mode", &NetworkAffinity::mode)};
template <>
inline constexpr auto fields<HardwareAffinity> = std::tuple{
    field("level", &HardwareAffinity::level, Need::required), field("qos", &HardwareAffinity::qos)};

/// How many GPUs a node has at most.
inline int most_gpus(const JsonReader& reader) {
    constexpr int in_version_1 = 16;
    return reader.version() == 1 ? in_version_1 : max_gpus_per_node;
}
inline void check_gpu_count(JsonReader& reader, std::uint32_t at, std::int64_t count) {
    if (reader.version() == 1 && count > most_gpus(reader))
        reader.report(at, "gpu_count is " + std::to_string(count) + ", and more than 16 GPUs need version 2");
}

/// A set of GPUs as the list of their indices.
template <>
struct Form<GpuMask> {
    static void read(JsonReader& reader, std::uint32_t at, GpuMask& out) {
        if (reader.kind(at) != JsonKind::array) return reader.expected(at, "an array");
        const auto& document = reader.document();
        for (auto child = at + 1; child < document[at].end; child = document[child].end) {
            int gpu = -1;
            reader.read_integer(child, gpu, 0, most_gpus(reader) - 1);
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
inline constexpr auto fields<DeviceSpec> =
    std::tuple{field("device_class", &DeviceSpec::device_class, Need::required),
               field("count", &DeviceSpec::count), field<IfAny>("parents", &DeviceSpec::parents),
               field<IfAny>("memory_mib", &DeviceSpec::memory_mib)};
template <>
inline constexpr auto fields<NodeMatch> =
    std::tuple{field("key", &NodeMatch::key, Need::required),
               field("operator", &NodeMatch::op, Need::required), field<IfAny>("values", &NodeMatch::values)};
template <>
inline constexpr auto fields<NodeTerm> =
    std::tuple{field<IfAny>("match_expressions", &NodeTerm::match_expressions),
               field<IfAny>("match_fields", &NodeTerm::match_fields)};

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
    field<IfAny>("resources", &NodeSpec::resources, Need::optional, 2),
    field<IfAny>("devices", &NodeSpec::devices, Need::optional, 2),
    field<IfAny>("eviction_count", &NodeSpec::eviction_count, Need::optional, 2),
};
template <>
struct Form<NodeSpec> {
    static void read(JsonReader& reader, std::uint32_t at, NodeSpec& out) {
        reader.read_object(at, out);
        check_gpu_count(reader, at, out.gpu_count);
    }
};

/// Left out where which GPUs the task holds is not known.
struct KnownGpus : ByType {
    static bool absent_of(const TaskSpec& task) { return task.assign_gpus; }
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
    field<IfAny>("how", &TaskSpec::how, Need::optional, 2),
    field<AbsentIsNull>("node", &TaskSpec::node),
    field<KnownGpus>("gpus", &TaskSpec::gpus),
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
    field<IfAny>("resources", &TaskSpec::resources, Need::optional, 2),
    field<IfAny>("device_count", &TaskSpec::device_count, Need::optional, 2),
    field<IfAny>("device_classes", &TaskSpec::device_classes, Need::optional, 2),
    field<IfAny>("node_affinity", &TaskSpec::node_affinity, Need::optional, 2),
    field<IfAny>("groups", &TaskSpec::groups, Need::optional, 2),
    field<IfAny>("avoid", &TaskSpec::avoid, Need::optional, 2),
    field<IfAny>("near", &TaskSpec::near, Need::optional, 2),
    field<IfAny>("spread", &TaskSpec::spread, Need::optional, 2),
    field<IfAny>("subgroup", &TaskSpec::subgroup, Need::optional, 2),
};
template <>
struct Form<TaskSpec> {
    static void read(JsonReader& reader, std::uint32_t at, TaskSpec& out) {
        reader.read_object(at, out);
        if (reader.kind(at) != JsonKind::object) return;
        check_gpu_count(reader, at, out.gpu_count);
        out.assign_gpus = reader.version() > 1 && out.node && (out.gpu_count > 0 || out.device_count > 0) &&
                          !reader.has(at, "gpus");
    }
};

template <>
inline constexpr auto fields<SubgroupSpec> = std::tuple{
    field("name", &SubgroupSpec::name, Need::required),
    field("min_members", &SubgroupSpec::min_members),
};

template <>
inline constexpr auto fields<JobSpec> = std::tuple{
    field("name", &JobSpec::name, Need::required),
    field("min_members", &JobSpec::min_members),
    field("max_disrupted", &JobSpec::max_disrupted),
    field<IfAny>("subgroups", &JobSpec::subgroups, Need::optional, 2),
};

template <>
inline constexpr auto fields<BudgetSpec> = std::tuple{
    field("name", &BudgetSpec::name, Need::required),
    field<IfAny>("tasks", &BudgetSpec::tasks),
    field<IfAny>("groups", &BudgetSpec::groups),
    field("allowed_down", &BudgetSpec::allowed_down, Need::required),
    field<IfAny>("broken", &BudgetSpec::broken),
};

template <>
inline constexpr auto fields<ClusterSpec> = std::tuple{
    field("now", &ClusterSpec::now),
    field<IfAny>("label_levels", &ClusterSpec::label_levels, Need::optional, 2),
    field("nodes", &ClusterSpec::nodes, Need::required),
    field("tasks", &ClusterSpec::tasks),
    field("jobs", &ClusterSpec::jobs),
    field<IfAny>("budgets", &ClusterSpec::budgets, Need::optional, 2),
};

inline constexpr std::string_view cluster_format = "gpusched.cluster";
inline constexpr int newest_cluster_version = 2;

/// The first version of the format that can say it.
inline int version_for(const ClusterSpec& cluster) {
    const auto more = [](const auto& all, auto&& needs_more) {
        return std::any_of(all.begin(), all.end(), needs_more);
    };
    return !cluster.budgets.empty() || !cluster.label_levels.empty() ||
                   more(cluster.nodes,
                        [&](const NodeSpec& node) {
                            return node.gpu_count > 16 || !node.resources.empty() || !node.devices.empty() ||
                                   node.eviction_count != 0 ||
                                   (node.hardware &&
                                    more(node.hardware->numa_nodes,
                                         [](const NumaNode& numa) { return numa.gpus >> 16 != 0; }));
                        }) ||
                   more(cluster.tasks,
                        [](const TaskSpec& task) {
                            return task.gpu_count > 16 || task.assign_gpus || !task.resources.empty() ||
                                   task.device_count != 0 || !task.device_classes.empty() ||
                                   !task.node_affinity.empty() || !task.groups.empty() ||
                                   !task.avoid.empty() || !task.near.empty() || !task.spread.empty() ||
                                   task.how != Mobility::copy || !task.subgroup.empty();
                        }) ||
                   more(cluster.jobs, [](const JobSpec& job) { return !job.subgroups.empty(); })
               ? 2
               : 1;
}

/// Of a document with mistakes of form, what the model can judge without blaming it for them: nodes, tasks and jobs
/// that are well-formed, of the tasks only those whose node is among them (unless every node is), and their subgroups only
/// where every job is.
inline ClusterSpec well_formed_part(const JsonDocument& document, int version) {
    ClusterSpec part;
    const auto elements = [&](std::string_view key, auto& out) {
        bool all = false;
        for (std::uint32_t list = 1; list < document[0].end; list = document[list].end) {
            if (document.key(document[list]) != key) continue;
            all = document[list].kind == JsonKind::array;
            if (!all) continue;
            for (auto at = list + 1; at < document[list].end; at = document[at].end) {
                Problems own(1);
                JsonReader(document, own, version).read(at, out.emplace_back());
                if (own.empty()) continue;
                out.pop_back();
                all = false;
            }
        }
        return all;
    };
    elements("label_levels", part.label_levels);
    const bool all_nodes = elements("nodes", part.nodes);
    elements("tasks", part.tasks);
    const bool all_jobs = elements("jobs", part.jobs);
    if (!all_jobs)
        for (auto& task : part.tasks) task.subgroup.clear();
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
    const auto require_no_other = [&](const detail::FoundSnapshot& found) {
        if (found.is_not_of(detail::System::unknown))
            throw InvalidInput(std::string(source) +
                               ": expected a document of format 'gpusched.cluster', found " + found.told);
    };
    require_no_other(detail::found_snapshot(text));
    const auto document = detail::JsonDocument::parse(text, source, problems);
    require_no_other(detail::found_snapshot(detail::Place(document, 0)));
    int version = 0;
    const bool read = detail::read_fields(document, detail::cluster_format, problems, spec,
                                          detail::newest_cluster_version, version);
    if (read && !problems.empty()) {
        try {
            static_cast<void>(Cluster::build(detail::well_formed_part(document, version)));
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
    return detail::write_document(detail::cluster_format, cluster, indent, detail::version_for(cluster),
                                  cluster.label_levels);
}

GPUSCHED_INLINE void write_cluster(const ClusterSpec& cluster, const std::string& path) {
    write_file(path, cluster_to_json(cluster));
}

}  // namespace GPUSCHED_NAMESPACE::io

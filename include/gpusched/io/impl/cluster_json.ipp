#pragma once

#include <gpusched/core/file.hpp>
#include <gpusched/core/gpu_list.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/detail/other_snapshots.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::io::detail {

/// How many GPUs a node has at most.
inline int most_gpus(const json::Reader& reader) {
    constexpr int in_version_1 = 16;
    return reader.version() == 1 ? in_version_1 : max_gpus_per_node;
}

/// The keys of the labels that levels of a document may be.
struct LabelLevels {
    std::span<const std::string> keys;
};

/// The inline form of a machine's hardware.
struct InlineHardware {
    std::vector<NumaNode> numa_nodes{};
};
template <class F>
constexpr void visit_fields(std::type_identity<InlineHardware>, F&& field) {
    field("numa_nodes", &InlineHardware::numa_nodes, Required{});
}

}  // namespace GPUSCHED_NAMESPACE::io::detail

namespace GPUSCHED_NAMESPACE::json {

/// "node", or the 0-based index into a node's network.
template <>
struct MarkedForm<IsLevel> {
    static void read(Reader& reader, std::uint32_t at, Level& out) {
        const auto& value = reader.document()[at];
        if (value.kind == Kind::string) {
            if (reader.document().string(value) == "node")
                out = node_level;
            else
                reader.expected(at, "\"node\" or an integer");
        } else {
            reader.read_integer(at, out, 0, std::numeric_limits<Level>::max());
        }
    }
    static void write(Writer& writer, Level level) {
        if (level == node_level)
            writer.write(std::string_view("node"));
        else
            writer.write(level);
    }
};

/// Besides, the key of a label that is a level.
template <>
struct MarkedForm<IsGroupLevel> {
    static void read(Reader& reader, std::uint32_t at, Level& out) {
        const auto& document = reader.document();
        if (document[at].kind != Kind::string) return reader.read_integer(at, out, 0, first_label_level - 1);
        const auto key = document.string(document[at]);
        if (key == "node") {
            out = node_level;
            return;
        }
        std::vector<std::string_view> keys;
        for (std::uint32_t field = 1; field < document[0].end; field = document[field].end)
            if (document.key(document[field]) == "label_levels" && document[field].kind == Kind::array)
                for (auto each = field + 1; each < document[field].end; each = document[each].end)
                    keys.push_back(document[each].kind == Kind::string ? document.string(document[each])
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
    static void write(Writer& writer, Level level) {
        const auto keys = writer.surroundings().get<io::detail::LabelLevels>().keys;
        if (const auto k = level - first_label_level; k >= 0 && k < static_cast<Level>(keys.size()))
            writer.write(keys[static_cast<std::size_t>(k)]);
        else
            MarkedForm<IsLevel>::write(writer, level);
    }
};

/// A set of GPUs as the list of their indices.
template <>
struct Form<GpuMask> {
    static void read(Reader& reader, std::uint32_t at, GpuMask& out) {
        if (reader.kind(at) != Kind::array) return reader.expected(at, "an array");
        const auto& document = reader.document();
        for (auto child = at + 1; child < document[at].end; child = document[child].end) {
            int gpu = -1;
            reader.read_integer(child, gpu, 0, io::detail::most_gpus(reader) - 1);
            if (gpu < 0) continue;
            if ((out & gpu_bit(gpu)) != 0)
                reader.report(child, "GPU " + std::to_string(gpu) + " is listed twice");
            out |= gpu_bit(gpu);
        }
    }
    static void write(Writer& writer, GpuMask gpus) { writer.write(gpu_list(gpus)); }
    static int version(GpuMask gpus) { return gpus >> 16 == 0 ? 1 : 2; }
};

/// A preset's name or the inline form. Which presets exist is for the model to say.
template <>
struct Form<Hardware> {
    static void read(Reader& reader, std::uint32_t at, Hardware& out) {
        const auto& value = reader.document()[at];
        if (value.kind == Kind::object) {
            io::detail::InlineHardware hardware;
            reader.read(at, hardware);
            out.numa_nodes = std::move(hardware.numa_nodes);
        } else if (value.kind == Kind::string && value.size > 0) {
            out.preset = reader.document().string(value);
            if (const auto preset = hardware_preset(out.preset)) out = *preset;
        } else {
            reader.expected(at, "a preset's name or an object");
        }
    }
    static void write(Writer& writer, const Hardware& hardware) {
        if (hardware.preset.empty())
            writer.write(io::detail::InlineHardware{hardware.numa_nodes});
        else
            writer.write(hardware.preset);
    }
    static int version(const Hardware& hardware) {
        return hardware.preset.empty() ? version_for(hardware.numa_nodes) : 1;
    }
};

template <>
struct Form<TaskSpec> {
    static void read(Reader& reader, std::uint32_t at, TaskSpec& out) {
        reader.read_object(at, out);
        if (reader.kind(at) != Kind::object) return;
        out.assign_gpus = reader.version() > 1 && out.node && (out.gpu_count > 0 || out.device_count > 0) &&
                          !reader.document().find(at, "gpus");
    }
};

}  // namespace GPUSCHED_NAMESPACE::json

namespace GPUSCHED_NAMESPACE::io {

namespace detail {

inline constexpr std::string_view cluster_format = "gpusched.cluster";
inline constexpr int newest_cluster_version = 2;

/// Of a document with mistakes of form, what the model can judge without blaming it for them: nodes, tasks and jobs
/// that are well-formed, of the tasks only those whose node is among them (unless every node is), and their subgroups only
/// where every job is.
inline ClusterSpec well_formed_part(const json::Document& document, int version) {
    ClusterSpec part;
    const auto elements = [&](std::string_view key, auto& out) {
        bool all = false;
        for (std::uint32_t list = 1; list < document[0].end; list = document[list].end) {
            if (document.key(document[list]) != key) continue;
            all = document[list].kind == json::Kind::array;
            if (!all) continue;
            for (auto at = list + 1; at < document[list].end; at = document[at].end) {
                Problems own(1);
                json::Reader reader(document, own, version);
                reader.read(at, out.emplace_back());
                if (reader.well_formed()) continue;
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
    std::vector<std::string_view> keys;
    visit_fields(std::type_identity<TaskSpec>{},
                 [&](const char* name, auto, const auto&...) { keys.emplace_back(name); });
    return keys;
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
    const auto document = json::Document::parse(text, source, problems);
    require_no_other(detail::found_snapshot(detail::Place(document, 0)));
    const int version =
        json::read_fields(document, {detail::cluster_format, detail::newest_cluster_version}, problems, spec);
    if (version > 0 && !problems.empty()) {
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
    const detail::LabelLevels levels{cluster.label_levels};
    return json::write_document(detail::cluster_format, cluster, {.indent = indent},
                                json::version_for(cluster), levels);
}

GPUSCHED_INLINE void write_cluster(const ClusterSpec& cluster, const std::string& path) {
    write_file(path, cluster_to_json(cluster));
}

}  // namespace GPUSCHED_NAMESPACE::io

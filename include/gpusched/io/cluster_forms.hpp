// SPDX-License-Identifier: Apache-2.0
// The JSON forms of nodes, tasks and their parts in `gpusched.cluster` documents.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io {

/// The label keys that may be levels of a document. A cluster document lists them itself; for a single task
/// the surroundings provide them.
struct LabelLevels {
    std::span<const std::string> keys;
};

namespace detail {

/// The most GPUs that a node can have.
inline int most_gpus(const json::Reader& reader) {
    constexpr int in_version_1 = 16;
    return reader.version() == 1 ? in_version_1 : max_gpus_per_node;
}

/// The inline form of a machine's hardware.
struct InlineHardware {
    std::vector<NumaNode> numa_nodes{};
};
template <class F>
constexpr void visit_fields(std::type_identity<InlineHardware>, F&& field) {
    field("numa_nodes", &InlineHardware::numa_nodes, Required{});
}

}  // namespace detail

}  // namespace gpusched::io

namespace gpusched::json {

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
    static void read(Reader& reader, std::uint32_t at, std::optional<Level>& out) {
        if (reader.kind(at) != Kind::null) read(reader, at, out.emplace());
    }
    static void write(Writer& writer, Level level) {
        if (level == node_level)
            writer.write(std::string_view("node"));
        else
            writer.write(level);
    }
};

/// The same, or the key of a label that is a level.
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
        if (const auto* levels = reader.surroundings().find<io::LabelLevels>())
            keys.assign(levels->keys.begin(), levels->keys.end());
        for (const auto field : document.children(0))
            if (document.key(document[field]) == "label_levels" && document[field].kind == Kind::array)
                for (const auto each : document.children(field))
                    keys.push_back(document[each].kind == Kind::string ? document.string(document[each])
                                                                       : std::string_view{});
        const auto found = std::ranges::find(keys, key);
        if (found != keys.end())
            out = first_label_level + static_cast<Level>(found - keys.begin());
        else if (keys.empty())
            reader.expected(at, "\"node\" or an integer");
        else
            reader.report(at, "expected \"node\", a key of label_levels or an integer, found " +
                                  document.describe(at) + did_you_mean(key, keys));
    }
    static void write(Writer& writer, Level level) {
        const auto keys = writer.surroundings().get<io::LabelLevels>().keys;
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
        for (const auto child : document.children(at)) {
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

/// A preset's name or the inline form. The model checks that the preset exists.
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

}  // namespace gpusched::json

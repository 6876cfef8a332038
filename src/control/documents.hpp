// SPDX-License-Identifier: Apache-2.0
// The controller's documents: names instead of indices, and the JSON forms that they share.
#pragma once

#include <gpusched/control/carryover.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/json/document.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/json/writer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::control::detail {

/// The style of the controller's documents. Options and their hash depend on every byte.
inline json::Style document_style(int indent) {
    return {.indent = indent, .line_per_value = true, .point = true, .mend_text = true};
}

/// Parses a text.
/// @throws InvalidInput with all problems
inline json::Document parsed(std::string_view text, std::string_view source) {
    Problems problems;
    auto document = json::Document::parse(text, source, problems);
    problems.throw_if_any();
    return document;
}

/// Text of messages about an invalid list of cores.
inline std::string cores_expected() {
    return "cores from 0 to " + number_text(most_cores - 1) + ", such as 0-3,8";
}

/// A configuration in the form of documents, with the key of the instance's profile:
/// `{"gpu": 0, "profile": "2g", "slice": 0, "quota_percent": 100, "cpus": "0-3"}`
struct ConfigurationDocument {
    std::int32_t gpu = 0;
    std::string profile{};
    std::int32_t slice = 0;
    std::int32_t quota_percent = 100;
    CpuSet cpus{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ConfigurationDocument>, F&& field) {
    field("gpu", &ConfigurationDocument::gpu);
    field("profile", &ConfigurationDocument::profile, Required{});
    field("slice", &ConfigurationDocument::slice, within(0, 7));
    field("quota_percent", &ConfigurationDocument::quota_percent, within(50, 100));
    field("cpus", &ConfigurationDocument::cpus);
}

inline ConfigurationDocument document_of(const Configuration& value, const Host& host) {
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(value.gpu)].device);
    return {value.gpu, std::string(device.profiles[value.instance.profile].key), value.instance.start,
            value.quota_percent, value.cpus};
}

/// Resolves the configuration that a document has at `at`. Reports references that the host does not have;
/// `out` then keeps its instance.
inline void settle(json::Reader& reader, std::uint32_t at, const ConfigurationDocument& given,
                   const Host& host, Configuration& out) {
    out.quota_percent = given.quota_percent;
    out.cpus = given.cpus;
    if (given.gpu < 0 || static_cast<std::size_t>(given.gpu) >= host.gpus.size())
        return reader.expected(reader.place_of(at, "gpu"), "an index into the host's gpus");
    out.gpu = given.gpu;
    int profile = -1;
    try {
        profile = mig_device(host.gpus[static_cast<std::size_t>(given.gpu)].device).find(given.profile);
    } catch (const InvalidInput&) {
        return;  // the device's name is reported at its own place
    }
    if (profile >= 0)
        out.instance = {static_cast<std::uint8_t>(profile), static_cast<std::uint8_t>(given.slice)};
    else if (const auto place = reader.document().find(at, "profile"))
        reader.expected(*place, "the key of a profile of the GPU, such as 2g");
}

/// Values for some of the host's tenants.
template <class T>
struct ByTenant {
    std::vector<std::pair<std::size_t, T>> values{};
};

inline constexpr std::string_view config_format = "gpusched.control";

/// A tenant of the host; its `client_of` and `start` are not used.
struct TenantDocument : HostTenant {
    std::optional<std::string> owner{};
    std::optional<ConfigurationDocument> starts_at{};
};
template <class F>
constexpr void visit_fields(std::type_identity<TenantDocument>, F&& field) {
    json::visit_other_fields<HostTenant>({"client_of", "start"}, field);
    field("client_of", &TenantDocument::owner);
    field("start", &TenantDocument::starts_at);
}

/// The host; its `tenants` are not used.
struct HostDocument : Host {
    std::optional<std::vector<TenantDocument>> listed{};
};
template <class F>
constexpr void visit_fields(std::type_identity<HostDocument>, F&& field) {
    json::visit_other_fields<Host>({"tenants"}, field);
    field("tenants", &HostDocument::listed);
}

/// The options; their `host` and `flags` are not used.
struct OptionsDocument : ControllerOptions {};
template <class F>
constexpr void visit_fields(std::type_identity<OptionsDocument>, F&& field) {
    json::visit_other_fields<ControllerOptions>({"host", "flags"}, field);
}

struct ConfigDocument {
    HostDocument host{};
    ControllerFlags flags{};
    OptionsDocument options{};
};
template <class F>
constexpr void visit_fields(std::type_identity<ConfigDocument>, F&& field) {
    field("host", &ConfigDocument::host, Required{});
    field("flags", &ConfigDocument::flags);
    field("options", &ConfigDocument::options);
}

/// Reads options from a document or from a part of one.
[[nodiscard]] ControllerOptions read_config(const json::Document& document, std::uint32_t at);

/// The inverse of `read_config`. Requires valid options.
[[nodiscard]] ConfigDocument document_of(const ControllerOptions& options);

}  // namespace gpusched::control::detail

namespace gpusched::json {

/// A list as the kernel writes it, for example `0-3,8`.
template <>
struct Form<control::CpuSet> {
    static void read(Reader& reader, std::uint32_t at, control::CpuSet& out) {
        try {
            if (reader.kind(at) != Kind::string)
                return reader.expected(at, control::detail::cores_expected());
            out = control::parse_cpus(reader.document().string(reader.document()[at]));
        } catch (const InvalidInput&) {
            reader.expected(at, control::detail::cores_expected());
        }
    }
    static void write(Writer& writer, const control::CpuSet& cpus) { writer.write(control::cpus_text(cpus)); }
};

/// A configuration on the host that surrounds the document.
template <>
struct Form<control::Configuration> {
    static void read(Reader& reader, std::uint32_t at, control::Configuration& out) {
        control::detail::ConfigurationDocument given;
        reader.read(at, given);
        if (reader.kind(at) == Kind::object)
            control::detail::settle(reader, at, given, reader.surroundings().get<control::Host>(), out);
    }
    static void write(Writer& writer, const control::Configuration& value) {
        writer.write(control::detail::document_of(value, writer.surroundings().get<control::Host>()));
    }
};

/// An object by name, for tenants of the host that surrounds the document.
template <class T>
struct Form<control::detail::ByTenant<T>> {
    static void read(Reader& reader, std::uint32_t at, control::detail::ByTenant<T>& out) {
        const auto& tenants = reader.surroundings().get<control::Host>().tenants;
        reader.each_member(at, [&](std::string_view name, std::uint32_t child) {
            const auto found = std::ranges::find(tenants, name, &control::HostTenant::name);
            if (found == tenants.end()) return reader.report(child, "expected the name of a tenant");
            reader.read(
                child,
                out.values.emplace_back(static_cast<std::size_t>(found - tenants.begin()), T{}).second);
        });
    }
};

}  // namespace gpusched::json

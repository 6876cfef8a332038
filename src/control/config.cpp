// SPDX-License-Identifier: Apache-2.0
// Reads and writes the configuration of the controller as a document.
#include "control/config_document.hpp"

#include <gpusched/config.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/core/cpu_ranges.hpp>

#include <utility>

namespace gpusched::control {

namespace config_detail {

/// Resolves the fields of a host that no field table covers: device names, and tenants with their references.
static Host settle_host(json::Reader& reader, std::uint32_t at, detail::HostDocument&& given) {
    Host host = std::move(given);
    const auto gpus = reader.place_of(at, "gpus"), tenants = reader.place_of(at, "tenants");
    if (reader.kind(gpus) == json::Kind::array) {
        auto gpu = host.gpus.begin();
        reader.each_element(gpus, [&](std::uint32_t place) {
            try {
                static_cast<void>(mig_device((gpu++)->device));
            } catch (const InvalidInput& e) {
                reader.report(reader.place_of(place, "device"), e.problems().front());
            }
        });
    }
    if (!given.listed || reader.kind(tenants) != json::Kind::array) return host;
    auto tenant = given.listed->begin();
    reader.each_element(tenants, [&](std::uint32_t place) {
        const auto& from = *tenant++;
        const auto named = reader.place_of(place, "name");
        if (from.name.empty() && reader.kind(place) == json::Kind::object) reader.expected(named, "a name");
        for (const auto& other : host.tenants)
            if (!from.name.empty() && other.name == from.name)
                reader.expected(named, "a name that no other tenant has");
        host.tenants.push_back(from);
        auto& out = host.tenants.back();
        if (from.starts_at)
            detail::settle(reader, reader.place_of(place, "start"), *from.starts_at, host, out.start);
        else if (from.is_protected && !reader.document().find(place, "start"))
            reader.report(place, "field 'start' is missing: the instance of the protected tenant");
    });
    tenant = given.listed->begin();
    auto out = host.tenants.begin();
    reader.each_element(tenants, [&](std::uint32_t place) {
        const auto& owner = (tenant++)->owner;
        auto& client_of = (out++)->client_of;
        if (!owner || owner->empty()) return;
        for (std::size_t k = 0; k < host.tenants.size(); ++k)
            if (host.tenants[k].name == *owner) client_of = static_cast<std::int32_t>(k);
        if (client_of < 0) reader.expected(reader.place_of(place, "client_of"), "the name of a tenant");
    });
    return host;
}

}  // namespace config_detail

GPUSCHED_EXPORT CpuSet parse_cpus(std::string_view list) {
    const auto read = parse_cpu_list(list);
    if (!read || (!read->empty() && static_cast<std::size_t>(read->ranges.back().second) >= most_cores))
        throw InvalidInput(bad_value("cpus", gpusched::quoted(list), detail::cores_expected()));
    CpuSet cpus;
    for (const auto& [first, last] : read->ranges)
        for (int c = first; c <= last; ++c) cpus.add(static_cast<std::size_t>(c));
    return cpus;
}

GPUSCHED_EXPORT std::string cpus_text(const CpuSet& cpus) {
    std::string text;
    for (std::size_t c = 0; c < most_cores; ++c) {
        if (!cpus.contains(c)) continue;
        auto last = c;
        while (last + 1 < most_cores && cpus.contains(last + 1)) ++last;
        text += (text.empty() ? "" : ",") + number_text(c);
        if (last > c) text += "-" + number_text(last);
        c = last;
    }
    return text;
}

ControllerOptions detail::read_config(const json::Document& document, std::uint32_t at) {
    static constexpr std::string_view other_fields[] = {"live"};  // for parse_live
    Problems problems;
    ConfigDocument given;
    const int version = json::read_fields(document, {.name = config_format, .other_fields = other_fields},
                                          problems, given, {}, at);
    json::Reader reader(document, problems, version);
    ControllerOptions options = std::move(given.options);
    options.flags = given.flags;
    if (version > 0)
        options.host = config_detail::settle_host(reader, reader.place_of(at, "host"), std::move(given.host));
    problems.throw_if_any();
    validate(options);
    return options;
}

GPUSCHED_EXPORT ControllerOptions parse_config(std::string_view text) {
    Problems problems;
    const auto document = json::Document::parse(text, "configuration", problems);
    problems.throw_if_any();
    return detail::read_config(document, 0);
}

GPUSCHED_EXPORT ControllerOptions parse_config(const json::Document& document) {
    return detail::read_config(document, 0);
}

detail::ConfigDocument detail::document_of(const ControllerOptions& options) {
    ConfigDocument out;
    static_cast<ControllerOptions&>(out.options) = options;
    static_cast<Host&>(out.host) = options.host;
    out.flags = options.flags;
    for (const auto& tenant : options.host.tenants) {
        if (!out.host.listed) out.host.listed.emplace();
        auto& listed = out.host.listed->emplace_back();
        static_cast<HostTenant&>(listed) = tenant;
        if (tenant.client_of >= 0)
            listed.owner = options.host.tenants[static_cast<std::size_t>(tenant.client_of)].name;
        if (tenant.is_protected) listed.starts_at = document_of(tenant.start, options.host);
    }
    return out;
}

GPUSCHED_EXPORT std::string write_config(const ControllerOptions& options) {
    validate(options);
    return json::write_document(detail::config_format, detail::document_of(options),
                                detail::document_style(2));
}

}  // namespace gpusched::control

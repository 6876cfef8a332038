#pragma once

#include <gpusched/control/config.hpp>
#include <gpusched/control/detail/configuration_json.hpp>
#include <gpusched/core/cpu_ranges.hpp>

#include <type_traits>
#include <utility>

namespace GPUSCHED_NAMESPACE::control {

namespace config_detail {

using detail::FieldReader;
using detail::Json;

inline void read_host(const Json& j, Host& host, Problems& problems) {
    const FieldReader reader(j, "/host", problems);
    reader.elements("roots", [&](const Json& item, const std::string& path) {
        const FieldReader fields(item, path, problems);
        detail::root_fields(host.roots.emplace_back(), fields);
        fields.finish();
    });
    reader.elements("gpus", [&](const Json& item, const std::string& path) {
        const FieldReader fields(item, path, problems);
        auto& gpu = host.gpus.emplace_back();
        detail::gpu_fields(gpu, fields);
        fields.finish();
        try {
            static_cast<void>(mig_device(gpu.device));
        } catch (const InvalidInput& e) {
            problems.add(path + "/device: " + e.problems().front());
        }
    });
    reader("core_numa", host.core_numa);
    reader("numa_nodes", host.numa_nodes);
    std::vector<std::pair<std::string, std::string>> clients;  // name of the owner, place of the field
    reader.elements("tenants", [&](const Json& item, const std::string& path) {
        const FieldReader fields(item, path, problems);
        auto& tenant = host.tenants.emplace_back();
        detail::tenant_fields(tenant, fields);
        std::string owner;
        fields("client_of", owner);
        clients.emplace_back(owner, path + "/client_of");
        if (tenant.name.empty()) fields.bad(path + "/name", tenant.name, "a name");
        for (std::size_t k = 0; k + 1 < host.tenants.size(); ++k)
            if (host.tenants[k].name == tenant.name)
                fields.bad(path + "/name", tenant.name, "a name that no other tenant has");
        const auto* start = fields.take("start");
        if (start != nullptr)
            detail::read_configuration(fields, *start, path + "/start", host, tenant.start, problems);
        else if (tenant.is_protected)
            problems.add(path + "/start: missing; expected the instance of the protected tenant");
        fields.finish();
    });
    for (std::size_t i = 0; i < clients.size(); ++i) {
        const auto& [owner, path] = clients[i];
        if (owner.empty()) continue;
        for (std::size_t k = 0; k < host.tenants.size(); ++k)
            if (host.tenants[k].name == owner) host.tenants[i].client_of = static_cast<std::int32_t>(k);
        if (host.tenants[i].client_of < 0) reader.bad(path, owner, "the name of a tenant");
    }
    reader.finish();
}

/// Puts fields into an object.
struct FieldWriter {
    nlohmann::ordered_json& j;
    template <class T>
    void operator()(const char* name, const T& value) const {
        j[name] = value;
    }
};

}  // namespace config_detail

GPUSCHED_INLINE CpuSet parse_cpus(std::string_view list) {
    const auto read = parse_cpu_list(list);
    if (!read || (!read->empty() && read->ranges.back().second > 255))
        throw InvalidInput(bad_value("cpus", gpusched::quoted(list), "cores from 0 to 255, such as 0-3,8"));
    CpuSet cpus;
    for (const auto& [first, last] : read->ranges)
        for (int c = first; c <= last; ++c) cpus.add(static_cast<std::size_t>(c));
    return cpus;
}

GPUSCHED_INLINE std::string cpus_text(const CpuSet& cpus) {
    std::string text;
    for (std::size_t c = 0; c < 256; ++c) {
        if (!cpus.contains(c)) continue;
        auto last = c;
        while (last < 255 && cpus.contains(last + 1)) ++last;
        text += (text.empty() ? "" : ",") + number_text(c);
        if (last > c) text += "-" + number_text(last);
        c = last;
    }
    return text;
}

GPUSCHED_INLINE ControllerOptions parse_config(std::string_view text) {
    const auto j = detail::parse_document(text, "configuration");
    Problems problems;
    ControllerOptions o;
    const detail::FieldReader reader(j, "", problems);
    std::string format;
    std::int32_t version = 0;
    reader("format", format);
    reader("version", version);
    if (format != "gpusched.control" || version != 1)
        problems.add("format, version: " + gpusched::quoted(format) + ", " + number_text(version) +
                     "; expected gpusched.control, 1");
    if (const auto* host = reader.take("host"))
        config_detail::read_host(*host, o.host, problems);
    else
        problems.add("/host: missing");
    if (const auto* flags = reader.take("flags")) {
        const detail::FieldReader fields(*flags, "/flags", problems);
        detail::flag_fields(o.flags, fields);
        fields.finish();
    }
    if (const auto* options = reader.take("options")) {
        const detail::FieldReader fields(*options, "/options", problems);
        detail::option_fields(o, fields);
        fields.finish();
    }
    static_cast<void>(reader.take("live"));  // for parse_live
    reader.finish();
    problems.throw_if_any();
    validate(o);
    return o;
}

GPUSCHED_INLINE std::string write_config(const ControllerOptions& o) {
    validate(o);
    nlohmann::ordered_json j;
    j["format"] = "gpusched.control";
    j["version"] = 1;
    auto& host = j["host"];
    host["roots"] = host["gpus"] = nlohmann::ordered_json::array();
    for (const auto& root : o.host.roots)
        detail::root_fields(root, config_detail::FieldWriter{host["roots"].emplace_back()});
    for (const auto& gpu : o.host.gpus)
        detail::gpu_fields(gpu, config_detail::FieldWriter{host["gpus"].emplace_back()});
    host["core_numa"] = o.host.core_numa;
    host["numa_nodes"] = o.host.numa_nodes;
    for (const auto& t : o.host.tenants) {
        auto& out = host["tenants"].emplace_back();
        detail::tenant_fields(t, config_detail::FieldWriter{out});
        if (t.client_of >= 0) out["client_of"] = o.host.tenants[static_cast<std::size_t>(t.client_of)].name;
        if (!t.is_protected) continue;
        out["start"] = detail::write_configuration(t.start, o.host);
    }
    detail::flag_fields(o.flags, config_detail::FieldWriter{j["flags"]});
    detail::option_fields(o, config_detail::FieldWriter{j["options"]});
    return j.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace GPUSCHED_NAMESPACE::control

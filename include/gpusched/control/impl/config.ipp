#pragma once

#include <gpusched/control/config.hpp>
#include <gpusched/control/detail/json_fields.hpp>
#include <gpusched/core/cpu_ranges.hpp>

#include <utility>

namespace GPUSCHED_NAMESPACE::control {

namespace config_detail {

inline void read_host(const detail::FieldReader& reader, Host& host, Problems& problems) {
    reader.read_all(host, {"tenants"});
    for (std::size_t i = 0; i < host.gpus.size(); ++i) try {
            static_cast<void>(mig_device(host.gpus[i].device));
        } catch (const InvalidInput& e) {
            problems.add(reader.at("gpus") + "/" + number_text(i) + "/device: " + e.problems().front());
        }
    std::vector<std::pair<std::string, std::string>> clients;  // name of the owner, place of the field
    reader.elements("tenants", [&](const detail::Json& item, const std::string& path) {
        const auto fields = reader.within(item, path);
        auto& tenant = host.tenants.emplace_back();
        fields.read_all(tenant, {"start", "client_of"});
        std::string owner;
        fields("client_of", owner);
        clients.emplace_back(owner, path + "/client_of");
        if (tenant.name.empty()) fields.bad(path + "/name", tenant.name, "a name");
        for (std::size_t k = 0; k + 1 < host.tenants.size(); ++k)
            if (host.tenants[k].name == tenant.name)
                fields.bad(path + "/name", tenant.name, "a name that no other tenant has");
        if (const auto* start = fields.take("start"))
            fields.read(*start, path + "/start", tenant.start);
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

}  // namespace config_detail

GPUSCHED_INLINE CpuSet parse_cpus(std::string_view list) {
    const auto read = parse_cpu_list(list);
    if (!read || (!read->empty() && static_cast<std::size_t>(read->ranges.back().second) >= most_cores))
        throw InvalidInput(bad_value("cpus", gpusched::quoted(list), detail::cores_expected()));
    CpuSet cpus;
    for (const auto& [first, last] : read->ranges)
        for (int c = first; c <= last; ++c) cpus.add(static_cast<std::size_t>(c));
    return cpus;
}

GPUSCHED_INLINE std::string cpus_text(const CpuSet& cpus) {
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

GPUSCHED_INLINE ControllerOptions parse_config(std::string_view text) {
    const auto j = detail::parse_document(text, "configuration");
    Problems problems;
    ControllerOptions o;
    const detail::FieldReader reader(j, "", problems, &o.host);
    std::string format;
    std::int32_t version = 0;
    reader("format", format);
    reader("version", version);
    if (format != "gpusched.control" || version != 1)
        problems.add("format, version: " + gpusched::quoted(format) + ", " + number_text(version) +
                     "; expected gpusched.control, 1");
    if (const auto* host = reader.take("host"))
        config_detail::read_host(reader.within(*host, "/host"), o.host, problems);
    else
        problems.add("/host: missing");
    reader("flags", o.flags);
    if (const auto* options = reader.take("options")) {
        const auto fields = reader.within(*options, "/options");
        fields.read_all(o, {"host", "flags"});
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
    detail::OrderedJson j{{"format", "gpusched.control"}, {"version", 1}};
    auto& host = j["host"];
    detail::write_all(host, o.host, o.host, {"tenants"});
    for (const auto& t : o.host.tenants) {
        auto& out = host["tenants"].emplace_back();
        detail::write_all(out, t, o.host, {"start", "client_of"});
        if (t.client_of >= 0) out["client_of"] = o.host.tenants[static_cast<std::size_t>(t.client_of)].name;
        if (t.is_protected) out["start"] = detail::json_of(t.start, o.host);
    }
    j["flags"] = detail::json_of(o.flags, o.host);
    detail::write_all(j["options"], o, o.host, {"host", "flags"});
    return detail::text_of(j, 2) + "\n";
}

}  // namespace GPUSCHED_NAMESPACE::control

#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/detail/json_fields.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/live.hpp>

#include <algorithm>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::host {

namespace live_detail {

using control::detail::FieldReader;
using control::detail::Json;

inline void read_latency(const Json& j, const std::string& path, LatencySourceOptions& out,
                         Problems& problems) {
    const FieldReader fields(j, path, problems);
    int given = 0;
    for (const auto& [kind, name] : enum_names(LatencyKind{})) {
        if (kind == LatencyKind::none) continue;
        std::string found;
        fields(name, found);
        if (found.empty()) continue;
        ++given;
        out.kind = kind;
        out.path = found;
    }
    fields.read_all(out, {"kind", "path"});
    fields.finish();
    if (given != 1) problems.add(path + ": expected exactly one of file, socket and prometheus");
}

/// The rules of the table, as `read_all` checks them of a document.
template <Described T>
void check_rules(const T& object, const std::string& path, Problems& problems) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        const auto& value = object.*member;
        gpusched::detail::check_enumerator(problems, path + "/" + name, value, {});
        (gpusched::detail::check_rule(problems, path + "/" + name, value, rules, {}), ...);
    });
}

inline bool is_disk(std::string_view text) {
    const auto colon = text.find(':');
    unsigned major = 0, minor = 0;
    return colon != std::string_view::npos && read_number(text.substr(0, colon), major) &&
           read_number(text.substr(colon + 1), minor);
}

inline void read_tenant(const Json& j, const std::string& path, LiveTenant& out, Problems& problems) {
    const FieldReader fields(j, path, problems);
    if (const auto* latency = fields.take("latency"))
        read_latency(*latency, path + "/latency", out.latency, problems);
    fields.read_all(out, {"latency"});
    fields.finish();
}

/// A folder without what does not matter in its name.
inline std::string plain_folder(std::string_view path) {
    std::string out;
    while (!path.empty()) {
        const auto part = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(part.size() + 1, path.size()));
        if (!part.empty() && part != ".") out += std::string(part) + "/";
    }
    return out;
}

/// A limit of one tenant must not hit another, nor must two of them restore over each other.
inline void check_groups(const LiveOptions& o, const Host& host, Problems& problems) {
    for (std::size_t i = 0; i < o.tenants.size(); ++i) {
        const auto& group = o.tenants[i].access.cgroup;
        if (group.empty()) continue;
        const auto where = "/live/tenants/" + host.tenants[i].name + "/cgroup";
        const auto mine = plain_folder(group);
        if (mine.empty() || group.find("..") != std::string::npos) {
            problems.add(bad_value(where, gpusched::quoted(group), "a folder below the control groups"));
            continue;
        }
        for (std::size_t k = 0; k < i; ++k) {
            const auto other = plain_folder(o.tenants[k].access.cgroup);
            if (!other.empty() && (mine.starts_with(other) || other.starts_with(mine)))
                problems.add(bad_value(where, gpusched::quoted(group),
                                       "a group of its own: neither that of " +
                                           gpusched::quoted(host.tenants[k].name) +
                                           ", nor above or below it"));
        }
    }
}

inline void check_tenant(const LiveTenant& t, bool is_protected, const std::string& path,
                         Problems& problems) {
    const auto& from = t.latency;
    if (from.kind == LatencyKind::none && is_protected)
        problems.add(path + "/latency: missing; expected where the protected tenant's latencies come from");
    if (from.kind != LatencyKind::none && from.path.empty())
        problems.add(path + "/latency/" + enum_name(from.kind) + ": empty; expected a path");
    if (from.kind == LatencyKind::prometheus && from.metric.empty())
        problems.add(path + "/latency/metric: missing; expected the name of a histogram");
    for (const auto& disk : t.access.disks)
        if (!is_disk(disk))
            problems.add(bad_value(path + "/disks", gpusched::quoted(disk), "major:minor, such as 259:0"));
}

/// What no rule of a table says; `o` has one tenant for each of the host.
inline void check(const LiveOptions& o, const Host& host, Problems& problems) {
    if (o.mig == MigControl::nvml && o.nvml_library.empty())
        problems.add("/live/nvml_library: empty; expected a library, as /live/mig is nvml");
    if (o.journal.empty()) problems.add("/live/journal: missing; expected a file");
    if (!o.pci.empty() && o.pci.size() != host.gpus.size())
        problems.add(bad_value("/live/pci", number_text(o.pci.size()) + " elements",
                               "one per GPU: " + number_text(host.gpus.size())));
    if (o.numa_disks.size() > static_cast<std::size_t>(host.numa_nodes))
        problems.add(bad_value("/live/numa_disks", number_text(o.numa_disks.size()) + " elements",
                               "at most one per NUMA node: " + number_text(host.numa_nodes)));
    if (o.root_nics.size() > host.roots.size())
        problems.add(bad_value("/live/root_nics", number_text(o.root_nics.size()) + " elements",
                               "at most one per PCIe root: " + number_text(host.roots.size())));
    check_groups(o, host, problems);
    for (std::size_t i = 0; i < o.tenants.size(); ++i)
        check_tenant(o.tenants[i], host.tenants[i].is_protected, "/live/tenants/" + host.tenants[i].name,
                     problems);
}

}  // namespace live_detail

GPUSCHED_INLINE void validate(const LiveOptions& live, const ControllerOptions& options) {
    const auto& tenants = options.host.tenants;
    if (live.tenants.size() != tenants.size())
        throw InvalidInput(bad_value("/live/tenants", number_text(live.tenants.size()) + " elements",
                                     "one per tenant of the host: " + number_text(tenants.size())));
    Problems problems;
    live_detail::check_rules(live, "/live", problems);
    live_detail::check_rules(live.admission, "/live/admission", problems);
    for (std::size_t i = 0; i < tenants.size(); ++i)
        live_detail::check_rules(live.tenants[i].latency, "/live/tenants/" + tenants[i].name + "/latency",
                                 problems);
    live_detail::check(live, options.host, problems);
    problems.throw_if_any();
}

GPUSCHED_INLINE LiveOptions parse_live(std::string_view text, const ControllerOptions& options) {
    using namespace live_detail;
    const auto document = control::detail::parse_document(text, "configuration");
    if (!document.is_object() || !document.contains("live"))
        throw InvalidInput("/live: missing; expected how the host is reached");
    Problems problems;
    LiveOptions o;
    o.tenants.resize(options.host.tenants.size());
    const FieldReader fields(document["live"], "/live", problems);
    fields.read_all(o, {"tenants"});
    if (const auto* tenants = fields.take("tenants")) {
        if (!tenants->is_object())
            fields.bad("/live/tenants", *tenants, "an object by name");
        else
            for (const auto& [name, item] : tenants->items()) {
                std::size_t i = 0;
                while (i < o.tenants.size() && options.host.tenants[i].name != name) ++i;
                if (i == o.tenants.size())
                    fields.bad("/live/tenants", name, "the name of a tenant");
                else
                    read_tenant(item, "/live/tenants/" + name, o.tenants[i], problems);
            }
    }
    fields.finish();
    check(o, options.host, problems);
    problems.throw_if_any();
    return o;
}

}  // namespace GPUSCHED_NAMESPACE::host

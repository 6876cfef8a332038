#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/detail/json_fields.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/live.hpp>

#include <algorithm>

namespace gpusched::host {

namespace live_detail {

using control::detail::FieldReader;
using control::detail::Json;

inline void read_latency(const Json& j, const std::string& path, LatencyOptions& out, Problems& problems) {
    const FieldReader fields(j, path, problems);
    std::string found[3];
    constexpr const char* kinds[] = {"file", "socket", "prometheus"};
    int given = 0;
    for (int k = 0; k < 3; ++k) {
        fields(kinds[k], found[k]);
        if (found[k].empty()) continue;
        ++given;
        out.kind = kinds[k];
        out.path = found[k];
    }
    fields.read_all(out, {"kind", "path"});
    fields.finish();
    if (given != 1) problems.add(path + ": expected exactly one of file, socket and prometheus");
    if (out.kind == "prometheus" && out.metric.empty())
        problems.add(path + "/metric: missing; expected the name of a histogram");
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
    for (const auto& disk : out.access.disks)
        if (!is_disk(disk))
            problems.add(bad_value(path + "/disks", gpusched::quoted(disk), "major:minor, such as 259:0"));
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

}  // namespace live_detail

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
    if (o.mig != "nvidia-smi" && o.mig != "nvml" && o.mig != "none")
        problems.add(bad_value("/live/mig", gpusched::quoted(o.mig), "nvidia-smi, nvml or none"));
    if (o.mig == "nvml" && o.nvml_library.empty())
        problems.add("/live/nvml_library: empty; expected a library, as /live/mig is nvml");
    if (o.journal.empty()) problems.add("/live/journal: missing; expected a file");
    if (!o.pci.empty() && o.pci.size() != options.host.gpus.size())
        problems.add(bad_value("/live/pci", number_text(o.pci.size()) + " elements",
                               "one per GPU: " + number_text(options.host.gpus.size())));
    if (o.numa_disks.size() > static_cast<std::size_t>(options.host.numa_nodes))
        problems.add(bad_value("/live/numa_disks", number_text(o.numa_disks.size()) + " elements",
                               "at most one per NUMA node: " + number_text(options.host.numa_nodes)));
    check_groups(o, options.host, problems);
    for (std::size_t i = 0; i < o.tenants.size(); ++i)
        if (options.host.tenants[i].is_protected && o.tenants[i].latency.kind.empty())
            problems.add("/live/tenants/" + options.host.tenants[i].name +
                         "/latency: missing; expected where the protected tenant's latencies come from");
    problems.throw_if_any();
    return o;
}

}  // namespace gpusched::host

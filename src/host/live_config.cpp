// SPDX-License-Identifier: Apache-2.0
#include "control/document_forms.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/host/live.hpp>
#include <gpusched/json/reader.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace gpusched::host {

namespace live_detail {

/// Where latencies come from, as documents have it: the field that holds the path says of which kind the source is.
struct LatencyDocument : LatencySourceOptions {
    std::optional<std::string> file{}, socket{}, prometheus{};
};
template <class F>
constexpr void visit_fields(std::type_identity<LatencyDocument>, F&& field) {
    field("file", &LatencyDocument::file);
    field("socket", &LatencyDocument::socket);
    field("prometheus", &LatencyDocument::prometheus);
    json::visit_other_fields<LatencySourceOptions>({"kind", "path"}, field);
}

struct TenantDocument {
    LatencyDocument latency{};
    TenantAccess access{};
};
template <class F>
constexpr void visit_fields(std::type_identity<TenantDocument>, F&& field) {
    field("latency", &TenantDocument::latency);
    field("access", &TenantDocument::access, Inlined{});
}

/// The options; their `tenants` are not used.
struct LiveDocument : LiveOptions {
    control::detail::ByTenant<TenantDocument> by_tenant{};
};
template <class F>
constexpr void visit_fields(std::type_identity<LiveDocument>, F&& field) {
    json::visit_other_fields<LiveOptions>({"tenants"}, field);
    field("tenants", &LiveDocument::by_tenant);
}

/// The source that a document gives at `at`.
static LatencySourceOptions settle_latency(json::Reader& reader, std::uint32_t at, LatencyDocument&& given) {
    LatencySourceOptions out = std::move(given);
    int count = 0;
    for (const auto& [kind, path] : {std::pair{LatencyKind::file, &given.file},
                                     {LatencyKind::socket, &given.socket},
                                     {LatencyKind::prometheus, &given.prometheus}}) {
        if (!*path || (*path)->empty()) continue;
        ++count;
        out.kind = kind;
        out.path = **path;
    }
    if (count != 1 && reader.kind(at) == json::Kind::object)
        reader.report(at, "expected exactly one of file, socket and prometheus");
    return out;
}

/// The rules of the table, as they are checked of a document.
template <Described T>
void check_rules(const T& object, const std::string& path, Problems& problems) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        const auto& value = object.*member;
        gpusched::detail::check_enumerator(problems, path + "/" + name, value, {});
        (gpusched::detail::check_rule(problems, path + "/" + name, value, rules, {}), ...);
    });
}

static bool is_disk(std::string_view text) {
    const auto colon = text.find(':');
    unsigned major = 0, minor = 0;
    return colon != std::string_view::npos && read_number(text.substr(0, colon), major) &&
           read_number(text.substr(colon + 1), minor);
}

/// A folder without what does not matter in its name.
static std::string plain_folder(std::string_view path) {
    std::string out;
    while (!path.empty()) {
        const auto part = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(part.size() + 1, path.size()));
        if (!part.empty() && part != ".") out += std::string(part) + "/";
    }
    return out;
}

/// A limit of one tenant must not hit another, nor must two of them restore over each other.
static void check_groups(const LiveOptions& o, const Host& host, const std::string& live,
                         Problems& problems) {
    for (std::size_t i = 0; i < o.tenants.size(); ++i) {
        const auto& group = o.tenants[i].access.cgroup;
        if (group.empty()) continue;
        const auto where = live + "/tenants/" + host.tenants[i].name + "/cgroup";
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

static void check_tenant(const LiveTenant& t, bool is_protected, const std::string& path,
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
/// @param live the place of the options, as messages begin
static void check(const LiveOptions& o, const Host& host, const std::string& live, Problems& problems) {
    if (o.mig == MigControl::nvml && o.nvml_library.empty())
        problems.add(live + "/nvml_library: empty; expected a library, as /live/mig is nvml");
    if (o.journal.empty()) problems.add(live + "/journal: missing; expected a file");
    if (!o.pci.empty() && o.pci.size() != host.gpus.size())
        problems.add(bad_value(live + "/pci", number_text(o.pci.size()) + " elements",
                               "one per GPU: " + number_text(host.gpus.size())));
    if (o.numa_disks.size() > static_cast<std::size_t>(host.numa_nodes))
        problems.add(bad_value(live + "/numa_disks", number_text(o.numa_disks.size()) + " elements",
                               "at most one per NUMA node: " + number_text(host.numa_nodes)));
    if (o.root_nics.size() > host.roots.size())
        problems.add(bad_value(live + "/root_nics", number_text(o.root_nics.size()) + " elements",
                               "at most one per PCIe root: " + number_text(host.roots.size())));
    check_groups(o, host, live, problems);
    for (std::size_t i = 0; i < o.tenants.size(); ++i)
        check_tenant(o.tenants[i], host.tenants[i].is_protected, live + "/tenants/" + host.tenants[i].name,
                     problems);
}

}  // namespace live_detail

GPUSCHED_EXPORT void validate(const LiveOptions& live, const ControllerOptions& options) {
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
    live_detail::check(live, options.host, "/live", problems);
    problems.throw_if_any();
}

GPUSCHED_EXPORT LiveOptions parse_live(std::string_view text, const ControllerOptions& options) {
    Problems problems;
    const auto document = json::Document::parse(text, "configuration", problems);
    problems.throw_if_any();
    return parse_live(document, options);
}

GPUSCHED_EXPORT LiveOptions parse_live(const json::Document& document, const ControllerOptions& options) {
    using namespace live_detail;
    const auto& host = options.host;
    Problems problems;
    const auto live = document.find(0, "live");
    if (!live) throw InvalidInput("/live: missing; expected how the host is reached");
    json::Reader reader(document, problems, 1, host);
    LiveDocument given;
    reader.read(*live, given);
    LiveOptions o = std::move(given);
    o.tenants.resize(host.tenants.size());
    const auto tenants = reader.place_of(*live, "tenants");
    for (auto& [i, tenant] : given.by_tenant.values) {
        o.tenants[i].access = std::move(tenant.access);
        if (const auto latency = document.find(reader.place_of(tenants, host.tenants[i].name), "latency"))
            o.tenants[i].latency = settle_latency(reader, *latency, std::move(tenant.latency));
    }
    check(o, host, "configuration: /live", problems);
    problems.throw_if_any();
    return o;
}

}  // namespace gpusched::host

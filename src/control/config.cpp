// SPDX-License-Identifier: Apache-2.0
// Reads and writes the configuration of the controller, reads recorded signals as observations, and
// describes decisions as text.
#include "control/documents.hpp"

#include <gpusched/config.hpp>
#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/core/cpu_ranges.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::control {

namespace config_detail {

/// Resolves the fields of a host that no field table covers: device names, and tenants with their references.
static Host settle_host(json::Reader& reader, std::uint32_t at, detail::HostDocument&& given) {
    Host host = std::move(given);
    const auto gpus = reader.document().find(at, "gpus"), tenants = reader.document().find(at, "tenants");
    if (gpus && reader.kind(*gpus) == json::Kind::array) {
        auto gpu = host.gpus.begin();
        reader.each_element(*gpus, [&](std::uint32_t place) {
            try {
                static_cast<void>(mig_device((gpu++)->device));
            } catch (const InvalidInput& e) {
                reader.report(reader.place_of(place, "device"), e.problems().front());
            }
        });
    }
    if (!given.listed || !tenants || reader.kind(*tenants) != json::Kind::array) return host;
    auto tenant = given.listed->begin();
    reader.each_element(*tenants, [&](std::uint32_t place) {
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
    reader.each_element(*tenants, [&](std::uint32_t place) {
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
    if (const auto host = document.find(at, "host"); version > 0 && host)
        options.host = config_detail::settle_host(reader, *host, std::move(given.host));
    problems.throw_if_any();
    validate(options);
    return options;
}

GPUSCHED_EXPORT ControllerOptions parse_config(std::string_view text) {
    return detail::read_config(detail::parsed(text, "configuration"), 0);
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

namespace signal_detail {

/// The same in a document, which may also have a list in the host's order.
template <class T>
struct ListedByTenant : detail::ByTenant<T> {};

/// An instance as a pair of the profile's key and the first slice.
struct InstanceDocument {
    std::string profile{};
    std::int32_t slice = 0;
};

struct GpuDocument {
    bool lost = false;
    bool readable = true;
    std::optional<std::vector<InstanceDocument>> instances{};
};
template <class F>
constexpr void visit_fields(std::type_identity<GpuDocument>, F&& field) {
    field("lost", &GpuDocument::lost);
    field("readable", &GpuDocument::readable);
    field("instances", &GpuDocument::instances);
}

/// A line of recorded signals.
struct SignalsDocument {
    std::optional<std::int64_t> window{};
    std::optional<double> time_s{}, wall_time_s{};
    bool enabled = true;
    bool operator_resume = false;
    ListedByTenant<TenantSignals> tenants{};
    ListedByTenant<Feedback> feedback{};
    ListedByTenant<BackendStatus> guards{};
    std::vector<RootSignals> roots{};
    std::vector<GpuDocument> gpus{};
    std::optional<std::vector<double>> nic_bytes_per_s{}, numa_io_bytes_per_s{}, irq_per_s{};
};
template <class F>
constexpr void visit_fields(std::type_identity<SignalsDocument>, F&& field) {
    field("window", &SignalsDocument::window);
    field("time_s", &SignalsDocument::time_s);
    field("wall_time_s", &SignalsDocument::wall_time_s);
    field("enabled", &SignalsDocument::enabled);
    field("operator_resume", &SignalsDocument::operator_resume);
    field("tenants", &SignalsDocument::tenants);
    field("feedback", &SignalsDocument::feedback);
    field("guards", &SignalsDocument::guards);
    field("roots", &SignalsDocument::roots);
    field("gpus", &SignalsDocument::gpus);
    field("nic_bytes_per_s", &SignalsDocument::nic_bytes_per_s, NullIfUnknown{});
    field("numa_io_bytes_per_s", &SignalsDocument::numa_io_bytes_per_s, NullIfUnknown{});
    field("irq_per_s", &SignalsDocument::irq_per_s, NullIfUnknown{});
}

/// Resolves the instances that a document has for a GPU.
static void settle_layout(json::Reader& reader, std::uint32_t at,
                          const std::vector<InstanceDocument>& instances, const MigDevice& device,
                          MigLayout& out) {
    if (reader.kind(at) != json::Kind::array) return;
    if (instances.size() > MigLayout::capacity) return reader.expected(at, "an array of at most 8 pairs");
    out = {};
    bool known = true;
    auto instance = instances.begin();
    reader.each_element(at, [&](std::uint32_t place) {
        const auto& [profile, slice] = *instance++;
        const int p = device.find(profile);
        if (p >= 0) return out.add({static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(slice)});
        if (!profile.empty()) reader.expected(place, "the key of a profile of the GPU, and a slice");
        known = false;
    });
    if (known && !is_valid(device, out)) reader.report(at, "expected a layout that the part can hold");
}

/// Reads a list with one number for each of `out`.
static void settle_numbers(json::Reader& reader, std::string_view key,
                           const std::optional<std::vector<double>>& given, std::vector<double>& out) {
    if (!given) return;
    if (given->size() == out.size())
        out = *given;
    else if (const auto at = reader.place_of(0, key); reader.kind(at) == json::Kind::array)
        reader.report(at, "expected " + number_text(out.size()) + " elements, found " +
                              number_text(given->size()));
}

}  // namespace signal_detail

}  // namespace gpusched::control

namespace gpusched::json {

template <class T>
struct Form<control::signal_detail::ListedByTenant<T>> {
    static void read(Reader& reader, std::uint32_t at, control::signal_detail::ListedByTenant<T>& out) {
        const auto tenants = reader.surroundings().get<control::Host>().tenants.size();
        if (reader.kind(at) == Kind::object) return Form<control::detail::ByTenant<T>>::read(reader, at, out);
        if (reader.kind(at) != Kind::array) return reader.expected(at, "an object or an array");
        if (reader.document()[at].size != tenants)
            return reader.report(at, "expected " + number_text(tenants) + " elements, found " +
                                         number_text(reader.document()[at].size));
        reader.each_element(at, [&](std::uint32_t child) {
            const auto tenant = out.values.size();
            reader.read(child, out.values.emplace_back(tenant, T{}).second);
        });
    }
};

template <>
struct Form<control::signal_detail::InstanceDocument> {
    static void read(Reader& reader, std::uint32_t at, control::signal_detail::InstanceDocument& out) {
        const auto& document = reader.document();
        if (document[at].kind != Kind::array || document[at].size != 2 ||
            document[at + 1].kind != Kind::string)
            return reader.expected(at, "a profile's key and a slice");
        reader.read(at + 1, out.profile);
        reader.read_integer(at + 2, out.slice, 0, 7);
    }
};

}  // namespace gpusched::json

namespace gpusched::control {

GPUSCHED_EXPORT Observation parse_signals(std::string_view line, const ControllerOptions& options,
                                          std::int64_t window, std::span<const MigLayout> layouts) {
    return parse_signals(detail::parsed(line, "signals"), options, window, layouts);
}

GPUSCHED_EXPORT Observation parse_signals(const json::Document& document, const ControllerOptions& options,
                                          std::int64_t window, std::span<const MigLayout> layouts) {
    using namespace signal_detail;
    const auto& host = options.host;
    if (layouts.size() != host.gpus.size())
        throw InvalidInput(
            bad_value("layouts", number_text(layouts.size()), number_text(host.gpus.size()) + " elements"));
    Problems problems;
    if (document.find(0, "observation")) return parse_audit_observation(document);
    json::Reader reader(document, problems, 1, host);
    SignalsDocument given;
    reader.read(0, given);

    Observation seen;
    seen.window = given.window.value_or(window);
    seen.time_s = given.time_s.value_or((static_cast<double>(seen.window) + 1) * options.window_s);
    seen.wall_time_s = given.wall_time_s.value_or(seen.time_s);
    seen.enabled = given.enabled;
    seen.operator_resume = given.operator_resume;
    seen.tenants.resize(host.tenants.size());
    for (const auto& [tenant, signals] : given.tenants.values) seen.tenants[tenant] = signals;
    seen.feedback.resize(host.tenants.size());
    for (const auto& [tenant, feedback] : given.feedback.values) seen.feedback[tenant] = feedback;
    if (!given.guards.values.empty()) seen.guards.resize(host.tenants.size(), BackendStatus::ok);
    for (const auto& [tenant, status] : given.guards.values) seen.guards[tenant] = status;
    const auto require_at_most = [&](std::string_view key, std::size_t found, std::size_t most,
                                     const char* what) {
        if (found > most) reader.report(reader.place_of(0, key), std::string("the host has fewer ") + what);
        return std::min(found, most);
    };
    seen.roots.resize(host.roots.size());
    const auto roots = require_at_most("roots", given.roots.size(), seen.roots.size(), "roots");
    std::copy_n(given.roots.begin(), roots, seen.roots.begin());
    for (const auto& layout : layouts) seen.gpus.push_back({.layout = layout});
    const auto gpus = require_at_most("gpus", given.gpus.size(), seen.gpus.size(), "GPUs");
    auto place = reader.place_of(0, "gpus") + 1;
    for (std::size_t g = 0; g < gpus; ++g, place = document[place].end) {
        seen.gpus[g].lost = given.gpus[g].lost;
        seen.gpus[g].readable = given.gpus[g].readable;
        if (const auto& instances = given.gpus[g].instances)
            settle_layout(reader, reader.place_of(place, "instances"), *instances,
                          mig_device(host.gpus[g].device), seen.gpus[g].layout);
    }
    seen.nic_bytes_per_s.assign(host.roots.size(), unknown_signal);
    settle_numbers(reader, "nic_bytes_per_s", given.nic_bytes_per_s, seen.nic_bytes_per_s);
    seen.numa_io_bytes_per_s.assign(static_cast<std::size_t>(host.numa_nodes), unknown_signal);
    settle_numbers(reader, "numa_io_bytes_per_s", given.numa_io_bytes_per_s, seen.numa_io_bytes_per_s);
    seen.irq_per_s.assign(host.core_numa.size(), unknown_signal);
    settle_numbers(reader, "irq_per_s", given.irq_per_s, seen.irq_per_s);
    problems.throw_if_any();
    return seen;
}

GPUSCHED_EXPORT std::string describe(const Host& host, const Configuration& c) {
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(c.gpu)].device);
    return "GPU " + number_text(c.gpu) + " " + std::string(device.profiles[c.instance.profile].key) + " at " +
           number_text(static_cast<int>(c.instance.start));
}

GPUSCHED_EXPORT std::string describe(const ControllerOptions& options, const Action& a) {
    const auto& host = options.host;
    const auto name = [&](std::int32_t i) { return host.tenants[static_cast<std::size_t>(i)].name; };
    auto text = name(a.tenant) + ": ";
    switch (a.kind) {
    case ActionKind::throttle_io:
        return text + "limit block I/O of " + name(a.target) + " to " + number_text(a.value) + " MB/s for " +
               number_text(options.lease_s) + " s";
    case ActionKind::release_io:
        return text + "end the limit of " + name(a.target) + "'s block I/O";
    case ActionKind::set_quota:
        return text + "quota of " + name(a.target) + " from " + number_text(a.before.quota_percent) + " to " +
               number_text(a.after.quota_percent) + " % of the instance";
    case ActionKind::pin:
        return text + "pin to cores " + (a.after.cpus == CpuSet{} ? "any" : cpus_text(a.after.cpus));
    case ActionKind::reconfigure:
        break;
    }
    text.append(enum_name(a.lever)).append(" from ").append(describe(host, a.before));
    text.append(" to ").append(describe(host, a.after));
    if (a.after.cpus != CpuSet{}) text += ", cores " + cpus_text(a.after.cpus);
    if (a.after.quota_percent != a.before.quota_percent)
        text += ", quota " + number_text(a.after.quota_percent) + " %";
    return text + (a.make_before_break ? " (no pause: both exist for a while)" : " (with a pause)");
}

GPUSCHED_EXPORT std::string describe(const ControllerOptions& options, const AuditEvent& e) {
    auto text = options.host.tenants[static_cast<std::size_t>(e.tenant)].name + ": ";
    text.append(enum_name(e.from));
    if (e.to != e.from) text.append(" -> ").append(enum_name(e.to));
    text += " (";
    if (e.row != Row::remark) text += "row " + number_text(static_cast<int>(e.row)) + ", ";
    text.append("cause ").append(enum_name(e.cause)).append("): ").append(e.reason);
    if (e.loss > 0) text += ", at most " + number_text(100 * e.loss) + " % of the hour lost";
    return text;
}

}  // namespace gpusched::control

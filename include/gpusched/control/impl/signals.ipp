#pragma once

#include <gpusched/control/audit.hpp>
#include <gpusched/control/config.hpp>
#include <gpusched/control/detail/json_fields.hpp>

namespace GPUSCHED_NAMESPACE::control {

namespace signal_detail {

using detail::FieldReader;
using detail::Json;

/// Elements by tenant: an object by name, or an array in the host's order.
template <class F>
void by_tenant(const FieldReader& reader, const char* name, const Host& host, const F& each) {
    const auto* found = reader.take(name);
    if (found == nullptr) return;
    const auto where = reader.at(name);
    if (found->is_array()) {
        if (found->size() != host.tenants.size())
            return reader.bad(where, found->size(), number_text(host.tenants.size()) + " elements");
        for (std::size_t i = 0; i < found->size(); ++i) each((*found)[i], where + "/" + number_text(i), i);
        return;
    }
    if (!found->is_object()) return reader.bad(where, *found, "an object or an array");
    for (const auto& [key, value] : found->items()) {
        std::size_t i = 0;
        while (i < host.tenants.size() && host.tenants[i].name != key) ++i;
        if (i == host.tenants.size())
            reader.bad(where, key, "the name of a tenant");
        else
            each(value, where + "/" + key, i);
    }
}

inline void read_gpu(const FieldReader& reader, const Json& j, const std::string& path,
                     const MigDevice& device, GpuSignals& gpu) {
    const auto fields = reader.within(j, path);
    fields("lost", gpu.lost);
    fields("readable", gpu.readable);
    if (const auto* list = fields.take("instances")) {
        gpu.layout = {};
        if (!list->is_array() || list->size() > MigLayout::capacity)
            reader.bad(path + "/instances", *list, "an array of at most 8 pairs");
        else
            for (std::size_t k = 0; k < list->size(); ++k) {
                const auto& pair = (*list)[k];
                const bool form = pair.is_array() && pair.size() == 2 && pair[0].is_string() &&
                                  pair[1].is_number_integer() && pair[1] >= 0 && pair[1] <= 7;
                const int p = form ? device.find(pair[0].get<std::string>()) : -1;
                if (p < 0)
                    reader.bad(path + "/instances/" + number_text(k), pair, "a profile's key and a slice");
                else
                    gpu.layout.add({static_cast<std::uint8_t>(p), pair[1].get<std::uint8_t>()});
            }
        if (!is_valid(device, gpu.layout))
            reader.bad(path + "/instances", *list, "a layout that the part can hold");
    }
    fields.finish();
}

inline void read_numbers(const FieldReader& reader, const char* name, std::vector<double>& out,
                         Problems& problems) {
    std::vector<double> values;
    const auto* found = reader.take(name);
    if (found == nullptr) return;
    reader.read(*found, reader.at(name), values);
    if (values.size() == out.size())
        out = values;
    else
        problems.add(
            bad_value(reader.at(name), number_text(values.size()), number_text(out.size()) + " elements"));
}

}  // namespace signal_detail

GPUSCHED_INLINE Observation parse_signals(std::string_view line, const ControllerOptions& options,
                                          std::int64_t window, std::span<const MigLayout> layouts) {
    using namespace signal_detail;
    const auto& host = options.host;
    if (layouts.size() != host.gpus.size())
        throw InvalidInput(
            bad_value("layouts", number_text(layouts.size()), number_text(host.gpus.size()) + " elements"));
    const auto j = detail::parse_document(line, "signals");
    if (j.is_object() && j.contains("observation")) return parse_audit_observation(line);
    Problems problems;
    Observation seen;
    seen.window = window;
    seen.tenants.resize(host.tenants.size());
    seen.feedback.resize(host.tenants.size());
    seen.roots.resize(host.roots.size());
    seen.numa_io_bytes_per_s.assign(static_cast<std::size_t>(host.numa_nodes), unknown_signal);
    seen.irq_per_s.assign(host.core_numa.size(), unknown_signal);
    for (const auto& layout : layouts) seen.gpus.push_back({.layout = layout});

    const FieldReader reader(j, "", problems);
    reader("window", seen.window);
    seen.time_s = (static_cast<double>(seen.window) + 1) * options.window_s;
    reader("time_s", seen.time_s);
    seen.wall_time_s = seen.time_s;
    reader("wall_time_s", seen.wall_time_s);
    reader("enabled", seen.enabled);
    reader("operator_resume", seen.operator_resume);
    by_tenant(reader, "tenants", host, [&](const Json& item, const std::string& path, std::size_t i) {
        reader.read(item, path, seen.tenants[i]);
    });
    by_tenant(reader, "feedback", host, [&](const Json& item, const std::string& path, std::size_t i) {
        reader.read(item, path, seen.feedback[i]);
    });
    std::size_t index = 0;
    reader.elements("roots", [&](const Json& item, const std::string& path) {
        if (index >= seen.roots.size()) return problems.add(path + ": the host has fewer roots");
        reader.read(item, path, seen.roots[index++]);
    });
    index = 0;
    reader.elements("gpus", [&](const Json& item, const std::string& path) {
        if (index >= seen.gpus.size()) return problems.add(path + ": the host has fewer GPUs");
        const auto g = index++;
        read_gpu(reader, item, path, mig_device(host.gpus[g].device), seen.gpus[g]);
    });
    seen.nic_bytes_per_s.assign(host.roots.size(), unknown_signal);
    read_numbers(reader, "nic_bytes_per_s", seen.nic_bytes_per_s, problems);
    read_numbers(reader, "numa_io_bytes_per_s", seen.numa_io_bytes_per_s, problems);
    read_numbers(reader, "irq_per_s", seen.irq_per_s, problems);
    reader.finish();
    problems.throw_if_any();
    return seen;
}

GPUSCHED_INLINE std::string describe(const Host& host, const Configuration& c) {
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(c.gpu)].device);
    return "GPU " + number_text(c.gpu) + " " + std::string(device.profiles[c.instance.profile].key) + " at " +
           number_text(static_cast<int>(c.instance.start));
}

GPUSCHED_INLINE std::string describe(const ControllerOptions& options, const Action& a) {
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

GPUSCHED_INLINE std::string describe(const ControllerOptions& options, const AuditEvent& e) {
    auto text = options.host.tenants[static_cast<std::size_t>(e.tenant)].name + ": ";
    text.append(enum_name(e.from));
    if (e.to != e.from) text.append(" -> ").append(enum_name(e.to));
    text += " (";
    if (e.row != Row::remark) text += "row " + number_text(static_cast<int>(e.row)) + ", ";
    text.append("cause ").append(enum_name(e.cause)).append("): ").append(e.reason);
    if (e.loss > 0) text += ", at most " + number_text(100 * e.loss) + " % of the hour lost";
    return text;
}

}  // namespace GPUSCHED_NAMESPACE::control

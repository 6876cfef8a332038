// A tenant's carryover in documents: the journal, and records of the audit log.
#pragma once

#include <gpusched/control/carryover.hpp>
#include <gpusched/control/detail/configuration_json.hpp>

#include <string>
#include <utility>

namespace GPUSCHED_NAMESPACE::control::detail {

inline nlohmann::ordered_json write_carryover(const std::string& name, const TenantCarryover& m,
                                              const Host& host) {
    nlohmann::ordered_json out;
    out["name"] = name;
    if (m.structural_windows >= 0) out["structural_windows"] = m.structural_windows;
    if (m.guard_windows >= 0) out["guard_windows"] = m.guard_windows;
    if (m.cooldown_windows > 0) out["cooldown_windows"] = m.cooldown_windows;
    if (m.disjoint_pause_s > 0) out["disjoint_pause_s"] = m.disjoint_pause_s;
    if (m.floor) out["floor"] = write_configuration(*m.floor, host);
    for (const auto& past : m.structural)
        out["structural"].push_back({{"ago_s", past.ago_s}, {"pause_s", past.pause_s}});
    for (const auto& change : m.blocked)
        out["blocked"].push_back({{"from", write_configuration(change.from, host)},
                                  {"to", write_configuration(change.to, host)},
                                  {"windows", change.windows}});
    return out;
}

/// Where a protected tenant's carryover is kept; nullptr where there is no such tenant.
inline TenantCarryover* carryover_of_tenant(ControllerCarryover& carryover, const Host& host,
                                            const std::string& name) {
    for (std::size_t i = 0; i < host.tenants.size(); ++i)
        if (host.tenants[i].is_protected && host.tenants[i].name == name) return &carryover[i];
    return nullptr;
}

/// Reads a list of them. @param known called with the name of each, returns the tenant's carryover or, where there is no
///     such tenant, nullptr
template <class F>
void read_carryovers(const FieldReader& owner, const char* name, const Host& host, Problems& problems,
                     const F& known) {
    owner.elements(name, [&](const Json& item, const std::string& path) {
        const FieldReader fields(item, path, problems);
        std::string whose;
        TenantCarryover m;
        const auto in_range = [&](const char* field, auto& value, auto least, auto most) {
            fields(field, value);
            if (!(value >= least && value <= most))
                problems.add(bad_value(fields.at(field), number_text(value),
                                       number_text(least) + " to " + number_text(most)));
        };
        constexpr std::int64_t most_windows = 1'000'000'000'000;
        fields("name", whose);
        in_range("structural_windows", m.structural_windows, std::int64_t{-1}, most_windows);
        in_range("guard_windows", m.guard_windows, std::int64_t{-1}, most_windows);
        in_range("cooldown_windows", m.cooldown_windows, std::int64_t{0}, most_windows);
        in_range("disjoint_pause_s", m.disjoint_pause_s, 0.0, 1e9);
        if (const auto* found = fields.take("floor"))
            read_configuration(fields, *found, fields.at("floor"), host, m.floor.emplace(), problems);
        fields.elements("structural", [&](const Json& past, const std::string& where) {
            const FieldReader reader(past, where, problems);
            auto& p = m.structural.emplace_back();
            for (auto [field, value] : {std::pair("ago_s", &p.ago_s), std::pair("pause_s", &p.pause_s)}) {
                reader(field, *value);
                if (!(*value >= 0 && *value <= 1e12))
                    problems.add(bad_value(reader.at(field), number_text(*value), "0 to 1e12"));
            }
            reader.finish();
        });
        fields.elements("blocked", [&](const Json& change, const std::string& where) {
            const FieldReader reader(change, where, problems);
            auto& b = m.blocked.emplace_back();
            for (auto [field, value] : {std::pair("from", &b.from), std::pair("to", &b.to)}) {
                if (const auto* found = reader.take(field))
                    read_configuration(reader, *found, reader.at(field), host, *value, problems);
                else
                    problems.add(reader.at(field) + ": missing");
            }
            reader("windows", b.windows);
            if (b.windows < 0 || b.windows > most_windows)
                problems.add(bad_value(reader.at("windows"), number_text(b.windows), "0 or more"));
            reader.finish();
        });
        fields.finish();
        if (auto* const to = known(whose))
            *to = std::move(m);
        else
            fields.bad(fields.at("name"), whose, "the name of a protected tenant");
    });
}

}  // namespace GPUSCHED_NAMESPACE::control::detail

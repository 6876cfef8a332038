// SPDX-License-Identifier: Apache-2.0
// Reads, writes and ages the carryover of controllers.
#include "control/documents.hpp"

#include <gpusched/config.hpp>
#include <gpusched/control/carryover.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpusched::control {

GPUSCHED_EXPORT ControllerCarryover parse_carryover(const json::Document& document, const Host& host) {
    Problems problems;
    json::Reader reader(document, problems, 1, host);
    detail::ByTenant<TenantCarryover> given;
    reader.read(0, given);
    ControllerCarryover out(host.tenants.size());
    for (auto& [tenant, carryover] : given.values) {
        const auto& name = host.tenants[tenant].name;
        if (!host.tenants[tenant].is_protected)
            reader.report(reader.place_of(0, name), "expected the name of a protected tenant");
        out[tenant] = std::move(carryover);
    }
    problems.throw_if_any();
    return out;
}

GPUSCHED_EXPORT std::string write_carryover(const ControllerCarryover& carryover, const Host& host) {
    std::string text;
    json::Writer writer(text, detail::document_style(0), host);
    writer.begin('{');
    for (std::size_t i = 0; i < carryover.size(); ++i) {
        if (carryover[i] == TenantCarryover{}) continue;
        writer.write_key(host.tenants[i].name);
        writer.write(carryover[i]);
    }
    writer.end('}');
    return text;
}

GPUSCHED_EXPORT TenantCarryover aged(TenantCarryover carryover, double seconds, double window_s) {
    const auto windows = static_cast<std::int64_t>(std::min(std::floor(seconds / window_s), 1e12));
    for (auto* since : {&carryover.structural_windows, &carryover.guard_windows})
        if (*since >= 0) *since += windows;
    carryover.cooldown_windows = std::max<std::int64_t>(0, carryover.cooldown_windows - windows);
    for (auto& past : carryover.structural) past.ago_s += seconds;
    for (auto& change : carryover.blocked) change.windows -= windows;
    std::erase_if(carryover.blocked, [](const BlockedChange& change) { return change.windows <= 0; });
    return carryover;
}

}  // namespace gpusched::control

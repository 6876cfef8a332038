// SPDX-License-Identifier: Apache-2.0
#include "io/plan_text.hpp"

#include <gpusched/config.hpp>
#include <gpusched/io/plan_csv.hpp>

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace gpusched::io {

namespace detail {

static void add_csv_row(std::string& out, std::span<const std::string_view> cells) {
    bool first = true;
    for (const auto cell : cells) {
        if (!first) out += ',';
        first = false;
        if (cell.find_first_of(",\"\r\n") == cell.npos) {
            out += cell;
            continue;
        }
        out += '"';
        for (const char c : cell) out += c == '"' ? "\"\"" : std::string(1, c);
        out += '"';
    }
    out += '\n';
}

}  // namespace detail

GPUSCHED_EXPORT std::string plan_to_csv(const PlanSpec& plan) {
    std::string out;
    const auto row = [&](const std::array<std::string_view, 9>& cells) { detail::add_csv_row(out, cells); };
    row({"step", "wave", "task", "from", "to", "gpus", "how", "chain", "for"});
    for (const auto& task : plan.evictions) row({"evict", "", task});
    for (const auto* move : detail::moves_by_wave(plan))
        row({"move", std::to_string(move->wave), move->task, move->from, move->to,
             detail::join(move->gpus, ";"), enum_name(move->how),
             move->chain ? std::to_string(*move->chain) : "", move->serves});
    for (const auto& placement : plan.placements)
        row({"place", "", placement.task, "", placement.node, detail::join(placement.gpus, ";")});
    for (const auto& node : plan.vacated_nodes) row({"vacate", "", "", node});
    for (const auto& node : plan.opened_nodes) row({"open", "", "", "", node});
    return out;
}

}  // namespace gpusched::io

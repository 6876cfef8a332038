#pragma once

#include <gpusched/io/detail/plan_text.hpp>
#include <gpusched/io/plan_csv.hpp>

#include <initializer_list>
#include <string_view>

namespace GPUSCHED_NAMESPACE::io {

namespace detail {

inline void add_csv_row(std::string& out, std::initializer_list<std::string_view> cells) {
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

GPUSCHED_INLINE std::string plan_to_csv(const PlanSpec& plan) {
    std::string out;
    detail::add_csv_row(out, {"step", "wave", "task", "from", "to", "gpus"});
    for (const auto& task : plan.evictions) detail::add_csv_row(out, {"evict", "", task, "", "", ""});
    for (const auto* move : detail::moves_by_wave(plan))
        detail::add_csv_row(out, {"move", std::to_string(move->wave), move->task, move->from, move->to,
                                  detail::join(move->gpus, ";")});
    for (const auto& placement : plan.placements)
        detail::add_csv_row(
            out, {"place", "", placement.task, "", placement.node, detail::join(placement.gpus, ";")});
    for (const auto& node : plan.vacated_nodes) detail::add_csv_row(out, {"vacate", "", "", node, "", ""});
    return out;
}

}  // namespace GPUSCHED_NAMESPACE::io

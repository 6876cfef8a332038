#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/io/reading_report.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace GPUSCHED_NAMESPACE::io {

GPUSCHED_INLINE std::string reading_report_to_text(const ReadingReport& report) {
    std::string out;
    const auto section = [&](Fidelity fidelity, const char* title) {
        std::size_t width = 0;
        for (const auto& row : report.rows)
            if (row.fidelity == fidelity) width = std::max(width, std::to_string(row.count).size());
        if (width == 0) return;
        out += title;
        out += '\n';
        for (const auto& row : report.rows) {
            if (row.fidelity != fidelity) continue;
            const auto count = std::to_string(row.count);
            out += "  " + std::string(width - count.size(), ' ') + count + "  " + row.kind + ", " + row.what;
            if (!row.how.empty()) out += ": " + row.how;
            if (row.errs != Errs::neither)
                out += row.errs == Errs::either       ? " [too strict or too lax]"
                       : row.errs == Errs::too_strict ? " [too strict]"
                                                      : " [too lax]";
            out += '\n';
            std::string examples;
            for (const auto& example : row.examples) examples += (examples.empty() ? "" : "; ") + example;
            if (static_cast<std::int64_t>(row.examples.size()) < row.count && !examples.empty())
                examples += "; ...";
            if (!examples.empty()) out += std::string(width + 4, ' ') + examples + '\n';
        }
    };
    section(Fidelity::left_out, "Left out:");
    section(Fidelity::approximated, "Approximated:");
    section(Fidelity::ignored, "Ignored:");
    section(Fidelity::exact, "Exact:");
    if (!report.absent.empty()) out += "Not in the input, and so not decided:\n";
    for (const auto& kind : report.absent) out += "  " + kind.kind + ": " + kind.undecided + '\n';
    return out;
}

GPUSCHED_INLINE std::string reading_report_to_json(const ReadingReport& report) {
    using Json = nlohmann::ordered_json;
    auto rows = Json::array(), absent = Json::array();
    for (const auto& row : report.rows)
        rows.push_back({{"kind", row.kind},
                        {"what", row.what},
                        {"fidelity", enum_name(row.fidelity)},
                        {"errs", enum_name(row.errs)},
                        {"count", row.count},
                        {"how", row.how},
                        {"examples", row.examples}});
    for (const auto& kind : report.absent)
        absent.push_back({{"kind", kind.kind}, {"undecided", kind.undecided}});
    return Json{{"rows", rows}, {"absent", absent}}.dump(1) + "\n";
}

}  // namespace GPUSCHED_NAMESPACE::io

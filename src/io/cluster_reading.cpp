// SPDX-License-Identifier: Apache-2.0
// Writes reading reports as text and JSON.
#include "io/documents.hpp"

#include <gpusched/config.hpp>
#include <gpusched/io/cluster_reading.hpp>
#include <gpusched/json/writer.hpp>

#include <algorithm>

namespace gpusched::io {

GPUSCHED_EXPORT std::string reading_report_to_text(const ReadingReport& report) {
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
            auto examples = detail::joined(row.examples, "; ");
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

GPUSCHED_EXPORT std::string reading_report_to_json(const ReadingReport& report) {
    std::string out;
    json::Writer(out, {.indent = 1, .line_per_value = true}).write(report);
    return out + "\n";
}

}  // namespace gpusched::io

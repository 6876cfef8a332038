// SPDX-License-Identifier: Apache-2.0
// The rows of a reading's report.
#pragma once

#include "support/catch.hpp"

#include <gpusched/io/io.hpp>

namespace testing_support {

/// Rows about a thing, of any fidelity.
inline std::vector<gpusched::io::ReadingRow> rows(const gpusched::io::ClusterReading& reading,
                                                  std::string_view kind, std::string_view what) {
    std::vector<gpusched::io::ReadingRow> out;
    for (const auto& row : reading.report.rows)
        if (row.kind == kind && row.what == what) out.push_back(row);
    return out;
}

/// The one row about a thing.
inline gpusched::io::ReadingRow row(const gpusched::io::ClusterReading& reading, std::string_view kind,
                                    std::string_view what) {
    const auto found = rows(reading, kind, what);
    INFO(gpusched::io::reading_report_to_text(reading.report));
    INFO(kind << ", " << what);
    REQUIRE(found.size() == 1);
    return found.front();
}

}  // namespace testing_support

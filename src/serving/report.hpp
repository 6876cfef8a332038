// SPDX-License-Identifier: Apache-2.0
// Findings about parts of a request or a plan, at their places in a document.
#pragma once

#include "serving/request_findings.hpp"

#include <gpusched/json/reader.hpp>

#include <cstdint>

namespace gpusched::serving::detail {

/// A finding, at its field where the part has it.
inline void report(json::Reader& reader, std::uint32_t part, const Finding& finding) {
    if (finding.text.empty())
        reader.report_missing(part, finding.field);
    else if (const auto at = reader.document().find(part, finding.field))
        reader.report(*at, finding.text);
    else
        reader.report(part, in_words(finding));
}

}  // namespace gpusched::serving::detail

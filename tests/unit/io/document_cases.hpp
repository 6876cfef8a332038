// SPDX-License-Identifier: Apache-2.0
// The documents of tests/golden/io, which the schema tests in Python read as well.
#pragma once

#include "support/catch.hpp"

#include <gpusched/io/io.hpp>

namespace testing_support {

struct DocumentCase {
    std::string name, expected, text;
};

/// Cases begin with a line "--- name"; the document is the last line. Before it, "expect: " may give words for mentions().
inline std::vector<DocumentCase> document_cases(const std::string& file) {
    const auto all = gpusched::read_file(GPUSCHED_TEST_DATA_DIR "/io/" + file);
    std::vector<DocumentCase> cases;
    for (std::size_t begin = 0; begin < all.size();) {
        const auto end = std::min(all.find('\n', begin), all.size());
        const auto line = std::string_view(all).substr(begin, end - begin);
        if (line.starts_with("--- "))
            cases.push_back({std::string(line.substr(4)), {}, {}});
        else if (line.starts_with("expect: "))
            cases.back().expected = line.substr(8);
        else if (!line.empty() && !cases.empty())
            cases.back().text = line;
        begin = end + 1;
    }
    REQUIRE(cases.size() >= 5);
    return cases;
}

}  // namespace testing_support

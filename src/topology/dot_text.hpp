// SPDX-License-Identifier: Apache-2.0
// Quotes text for the DOT language.
#pragma once

#include <string>
#include <string_view>

namespace gpusched::topology::detail {

inline std::string dot_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out + '"';
}

}  // namespace gpusched::topology::detail

// Text in the DOT language.
#pragma once

#include <gpusched/config.hpp>

#include <string>
#include <string_view>

namespace GPUSCHED_NAMESPACE::topology::detail {

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

}  // namespace GPUSCHED_NAMESPACE::topology::detail

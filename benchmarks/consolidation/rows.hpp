// Rows of the benchmarks of consolidation: flat JSON objects, one a line.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace gpusched::bench {

/// The parts of `text` between commas.
inline std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    return parts;
}

/// The value of a key in a row; empty where there is none.
inline std::string field(const std::string& line, const std::string& key) {
    const auto at = line.find("\"" + key + "\": ");
    if (at == std::string::npos) return "";
    auto from = at + key.size() + 4;
    if (line[from] == '"') {
        ++from;
        return line.substr(from, line.find('"', from) - from);
    }
    return line.substr(from, line.find_first_of(",}", from) - from);
}

}  // namespace gpusched::bench

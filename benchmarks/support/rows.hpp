// SPDX-License-Identifier: Apache-2.0
// Rows of results: JSON objects, one a line.
#pragma once

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace gpusched::bench {

/// Its keys in the order in which they were put in.
using Row = nlohmann::ordered_json;

/// A number with at most so many digits behind the point.
inline double rounded(double value, int digits) {
    const double unit = std::pow(10.0, digits);
    return std::round(value * unit) / unit;
}

/// Prints it at once, so that a run that is stopped leaves whole lines.
inline void print(const Row& row) {
    std::puts(row.dump().c_str());
    std::fflush(stdout);
}

/// All rows of a file; ends the program with 2 where there is something else in it.
inline std::vector<Row> read_rows(const std::string& path) {
    const auto wrong = [&](const std::string& why) {
        std::cerr << path << ": " << why << '\n';
        std::exit(2);
    };
    std::ifstream file(path);
    if (!file) wrong("cannot be read");
    std::vector<Row> rows;
    int number = 0;
    for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.empty()) continue;
        rows.push_back(Row::parse(line, nullptr, false));
        if (!rows.back().is_object()) wrong("line " + std::to_string(number) + " is no JSON object");
    }
    return rows;
}

}  // namespace gpusched::bench

// SPDX-License-Identifier: Apache-2.0
// Rows of results: one JSON object per line.
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

/// Keeps its keys in order of insertion.
using Row = nlohmann::ordered_json;

/// The value rounded to `digits` decimals.
inline double rounded(double value, int digits) {
    const double unit = std::pow(10.0, digits);
    return std::round(value * unit) / unit;
}

/// Prints the row and flushes, so that an interrupted run leaves whole lines.
inline void print(const Row& row) {
    std::puts(row.dump().c_str());
    std::fflush(stdout);
}

/// All rows of a file. Ends the program with status 2 if a line is not a JSON object.
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
        if (!rows.back().is_object()) wrong("line " + std::to_string(number) + " is not a JSON object");
    }
    return rows;
}

}  // namespace gpusched::bench

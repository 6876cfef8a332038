// SPDX-License-Identifier: Apache-2.0
// Enumerators by name, for command lines.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace gpusched::bench {

/// The names of an enumeration.
template <NamedEnum E>
std::vector<std::string> names_of() {
    std::vector<std::string> names;
    for (const auto& row : gpusched::enumerators<E>()) names.emplace_back(row.name);
    return names;
}

/// The enumerator of that name.
/// @throws InvalidInput for another name
template <NamedEnum E>
E enumerator(std::string_view name) {
    std::string expected;
    for (const auto& row : gpusched::enumerators<E>()) {
        if (name == row.name) return row.value;
        expected.append(expected.empty() ? "" : ", ").append(row.name);
    }
    throw InvalidInput(bad_value("name", name, "one of " + expected));
}

}  // namespace gpusched::bench

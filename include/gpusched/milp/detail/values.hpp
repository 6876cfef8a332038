// Vectors that are to be decoded.
#pragma once

#include <gpusched/core/checks.hpp>

#include <cmath>
#include <span>
#include <string>

namespace gpusched::milp::detail {

/// @throws InvalidInput unless there is one finite number per column
inline void require_values(std::span<const double> values, int columns) {
    if (values.size() != static_cast<std::size_t>(columns))
        throw InvalidInput(
            bad_value("entries of values", std::to_string(values.size()), std::to_string(columns)));
    for (const double value : values)
        if (!std::isfinite(value))
            throw InvalidInput(bad_value("values", number_text(value), "finite numbers"));
}

}  // namespace gpusched::milp::detail

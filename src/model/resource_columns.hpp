// SPDX-License-Identifier: Apache-2.0
// Tables of named resources by node: one row per node, one column per name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Gives `table`, of `before` columns, the columns before .. after - 1, all 0.
inline void widen_rows(std::vector<std::int64_t>& table, std::size_t before, std::size_t after,
                       std::size_t rows) {
    std::vector<std::int64_t> wider(rows * after, 0);
    for (std::size_t r = 0; before > 0 && r < table.size() / before; ++r)
        std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(r * before), before,
                    wider.begin() + static_cast<std::ptrdiff_t>(r * after));
    table = std::move(wider);
}

}  // namespace gpusched::detail

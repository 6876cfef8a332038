// SPDX-License-Identifier: Apache-2.0
// Where the data sets are.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace gpusched::bench {

/// A folder or file among the data sets: below $GPUSCHED_DATA, or below ../shared/data, which is beside the repository for a
/// program that is started at its root.
inline std::string data_path(const std::string& name) {
    const auto* const root = std::getenv("GPUSCHED_DATA");
    return (std::filesystem::path(root != nullptr ? root : "../shared/data") / name).string();
}

}  // namespace gpusched::bench

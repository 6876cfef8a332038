// SPDX-License-Identifier: Apache-2.0
// The location of the data sets.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace gpusched::bench {

/// The path of a folder or file below $GPUSCHED_DATA; by default below ../shared/data, relative to the
/// working directory.
inline std::string data_path(const std::string& name) {
    const auto* const root = std::getenv("GPUSCHED_DATA");
    return (std::filesystem::path(root != nullptr ? root : "../shared/data") / name).string();
}

}  // namespace gpusched::bench

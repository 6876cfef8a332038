// SPDX-License-Identifier: Apache-2.0
// The place of the real inputs, if they are present.
#pragma once

#include "support/catch.hpp"

namespace testing_support {

/// A folder of real inputs: below $GPUSCHED_DATA, or below ../shared/data of the repository.
inline std::filesystem::path real_data(const std::string& folder) {
    const auto* given = std::getenv("GPUSCHED_DATA");
    const auto root = given != nullptr
                          ? std::filesystem::path(given)
                          : std::filesystem::path(GPUSCHED_SOURCE_DIR) / ".." / "shared" / "data";
    return root / folder;
}

/// Is the file or folder here? Says so if it is not.
inline bool is_here(const std::filesystem::path& path) {
    const bool found = std::filesystem::exists(path);
    if (!found) WARN("not here: " << path.string() << "; set GPUSCHED_DATA");
    return found;
}

/// Its files with such an extension, sorted; empty when it is not here.
inline std::vector<std::filesystem::path> real_files(const std::string& folder,
                                                     const std::string& extension) {
    std::vector<std::filesystem::path> files;
    const auto path = real_data(folder);
    if (std::filesystem::is_directory(path))
        for (const auto& entry : std::filesystem::directory_iterator(path))
            if (entry.path().extension() == extension) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

}  // namespace testing_support

// SPDX-License-Identifier: Apache-2.0
// Whole files as text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusched {

/// Most bytes a document or table may have.
inline constexpr std::size_t largest_document = std::size_t{1} << 30;

/// The contents of a file.
/// @throws BackendError when it cannot be read
/// @throws InvalidInput when it has more than `largest_document` bytes
[[nodiscard]] std::string read_file(const std::string& path);

/// Replaces the contents of a file.
/// @throws BackendError when it cannot be written
void write_file(const std::string& path, std::string_view text);

}  // namespace gpusched

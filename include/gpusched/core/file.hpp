// SPDX-License-Identifier: Apache-2.0
// Reads and writes a file as one text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusched {

/// Largest size of a document or table, in bytes.
inline constexpr std::size_t largest_document = std::size_t{1} << 30;

/// @throws InvalidInput with the line unless a text has at most `largest_document` bytes and is UTF-8 without
/// NUL bytes
/// @param source name of the text in messages
void require_text(std::string_view text, std::string_view source);

/// The contents of a file.
/// @throws BackendError if it cannot be read
/// @throws InvalidInput if it has more than `largest_document` bytes
[[nodiscard]] std::string read_file(const std::string& path);

/// Replaces the contents of a file.
/// @throws BackendError if it cannot be written
void write_file(const std::string& path, std::string_view text);

}  // namespace gpusched

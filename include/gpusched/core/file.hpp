// Whole files as text.
#pragma once

#include <gpusched/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace GPUSCHED_NAMESPACE {

/// Most bytes a document or table may have.
inline constexpr std::size_t largest_document = std::size_t{1} << 30;

/// The contents of a file.
/// @throws BackendError when it cannot be read
/// @throws InvalidInput when it has more than `largest_document` bytes
[[nodiscard]] std::string read_file(const std::string& path);

/// Replaces the contents of a file.
/// @throws BackendError when it cannot be written
void write_file(const std::string& path, std::string_view text);

}  // namespace GPUSCHED_NAMESPACE

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/core/impl/file.ipp>
#endif

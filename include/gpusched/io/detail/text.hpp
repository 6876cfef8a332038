// Small helpers on text that comes from outside.
#pragma once

#include <gpusched/config.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace gpusched::io::detail {

/// Where the first byte that is not part of well-formed UTF-8 (RFC 3629) stands; npos = nowhere.
[[nodiscard]] std::size_t find_invalid_utf8(std::string_view text) noexcept;

/// `text` as it can be put into a message: control characters and bytes that are not UTF-8 become \xNN, and what
/// exceeds `limit` bytes becomes "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 80);

}  // namespace gpusched::io::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/io/impl/text.ipp>
#endif

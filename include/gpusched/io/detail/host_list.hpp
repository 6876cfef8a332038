// Lists of hosts as Slurm writes them.
#pragma once

#include <gpusched/config.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io::detail {

/// Most names that one list may stand for.
inline constexpr std::size_t most_hosts = 1'000'000;

/// "a,n[01-03,7]x" -> a n01x n02x n03x n7x; numbers keep the width of the range's first one. Several brackets multiply.
/// None when it is no such list or stands for more than `most_hosts` names.
[[nodiscard]] std::optional<std::vector<std::string>> host_list(std::string_view text);

}  // namespace gpusched::io::detail

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/io/impl/host_list.ipp>
#endif

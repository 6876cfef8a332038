// SPDX-License-Identifier: Apache-2.0
// Times as Kubernetes writes them: 2026-11-22T15:24:12Z.
#pragma once

#include "io/yaml_document.hpp"

#include <gpusched/core/text.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpusched::io::detail::kubernetes {

/// Seconds since 1970 of a time in UTC, without its fraction; none for anything else.
inline std::optional<std::int64_t> read_seconds(std::string_view text) {
    if (text.size() < 20 || text.back() != 'Z' || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
        text[13] != ':' || text[16] != ':' || (text.size() > 20 && text[19] != '.'))
        return std::nullopt;
    int year = 0;
    unsigned month = 0, day = 0, hour = 0, minute = 0, second = 0;
    if (!read_number(text.substr(0, 4), year) || !read_number(text.substr(5, 2), month) ||
        !read_number(text.substr(8, 2), day) || !read_number(text.substr(11, 2), hour) ||
        !read_number(text.substr(14, 2), minute) || !read_number(text.substr(17, 2), second))
        return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                           std::chrono::day(day)};
    if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
    const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    return ((days * 24 + hour) * 60 + minute) * 60 + second;
}
inline std::optional<std::int64_t> seconds_at(const Place& object, std::string_view key) {
    const auto text = object[key].text();
    return text ? read_seconds(*text) : std::nullopt;
}

}  // namespace gpusched::io::detail::kubernetes

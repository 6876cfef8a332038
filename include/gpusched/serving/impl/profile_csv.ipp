#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/serving/profile_csv.hpp>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

namespace gpusched::serving {

namespace detail {

inline std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

inline bool read_number(std::string_view text, double& value) {
    text = trimmed(text);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size();
}

/// The beginning of a line for a message, which must be readable text.
inline std::string shown_row(std::string_view row) {
    std::string text(row.substr(0, 60));
    for (auto& c : text)
        if (c < ' ' || c > '~') c = '?';
    return gpusched::quoted(text);
}

inline std::string profile_text(const std::string& path) {
    constexpr std::size_t largest = std::size_t{1} << 26;
    std::FILE* file = std::fopen(path.c_str(), "rb");
    if (file == nullptr) throw BackendError(path + ": cannot be opened: " + std::strerror(errno));
    std::string text;
    char buffer[4096];
    for (std::size_t got = 1; got > 0 && text.size() <= largest;) {
        got = std::fread(buffer, 1, sizeof buffer, file);
        text.append(buffer, got);
    }
    const int failed = std::ferror(file) != 0 ? errno : 0;
    std::fclose(file);
    if (failed != 0) throw BackendError(path + ": cannot be read: " + std::strerror(failed));
    if (text.size() > largest)
        throw InvalidInput(path + ": expected at most " + std::to_string(largest) + " bytes");
    return text;
}

inline std::vector<ProfilePoint> profile_points(const std::string& path, double unit_s) {
    try {
        return parse_profile_csv(profile_text(path), unit_s);
    } catch (const InvalidInput& error) {
        Problems problems;
        for (const auto& problem : error.problems()) problems.add(path + ": " + problem);
        problems.throw_if_any();
        throw;
    }
}

}  // namespace detail

GPUSCHED_INLINE std::vector<ProfilePoint> parse_profile_csv(std::string_view text, double unit_s) {
    require_range("unit_s", unit_s, std::numeric_limits<double>::min(), 1e6);
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    std::vector<ProfilePoint> points;
    Problems problems;
    int wrong = 0;
    bool names = true;  // a line of them may come before all points
    const auto bad = [&](std::size_t line, const std::string& what) {
        if (++wrong <= 10) problems.add("line " + std::to_string(line) + ": " + what);
    };
    for (std::size_t line = 1; !text.empty(); ++line) {
        const auto end = text.find('\n');
        const auto row = detail::trimmed(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (row.empty() || row.front() == '#') continue;
        const auto comma = row.find(',');
        const bool pair =
            comma != std::string_view::npos && row.find(',', comma + 1) == std::string_view::npos;
        double size = 0, time = 0;
        const bool has_size = detail::read_number(row.substr(0, comma), size);
        const bool has_time = pair && detail::read_number(row.substr(comma + 1), time);
        if (std::exchange(names, false) && pair && !has_size && !has_time) continue;
        if (!has_size || !has_time) {
            bad(line, detail::shown_row(row) + "; expected size,time");
        } else if (!(size >= 0 && time >= 0 && std::isfinite(size) && std::isfinite(time * unit_s))) {
            bad(line, detail::shown_row(row) + "; expected finite numbers >= 0");
        } else if (size > 0) {
            if (!points.empty() && points.back().size >= size)
                bad(line, bad_value("size", number_text(size),
                                    "more than " + number_text(points.back().size) + ", the one before"));
            else
                points.push_back({size, time * unit_s});
        }
    }
    if (wrong > 10) problems.add(std::to_string(wrong - 10) + " more lines are wrong");
    if (wrong == 0 && points.empty()) problems.add("no points; expected lines size,time with a size above 0");
    problems.throw_if_any();
    return points;
}

GPUSCHED_INLINE LayerProfile read_layer_profile(const std::string& prefill_path,
                                                const std::string& decode_path, const std::string& model,
                                                const std::string& gpu, int degree, double unit_s) {
    LayerProfile profile{model, gpu, degree, detail::profile_points(prefill_path, unit_s),
                         detail::profile_points(decode_path, unit_s)};
    EstimateOptions options;
    options.profiles = {profile};
    validate(options);
    return profile;
}

}  // namespace gpusched::serving

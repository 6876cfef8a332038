#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/sim/llm_trace.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace gpusched::sim {

namespace llm_detail {

/// Days since 1970-01-01 of a date of the Gregorian calendar.
constexpr std::int64_t days_of(int year, int month, int day) noexcept {
    year -= month <= 2;
    const int era = year / 400, of_era = year % 400;
    const int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return std::int64_t{era} * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

template <class T>
bool number(std::string_view text, T& value) {
    const auto end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && rest == end;
}

/// `YYYY-MM-DD hh:mm:ss[.fraction]` in seconds, split so that fractions keep their digits.
inline bool time_of(std::string_view text, std::int64_t& seconds, double& fraction) {
    if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') ||
        text[13] != ':' || text[16] != ':')
        return false;
    std::array<int, 6> part{};
    constexpr std::array<std::size_t, 6> at{0, 5, 8, 11, 14, 17}, length{4, 2, 2, 2, 2, 2};
    for (std::size_t k = 0; k < 6; ++k)
        if (!number(text.substr(at[k], length[k]), part[k]) || part[k] < 0) return false;
    const auto [year, month, day, hour, minute, second] = part;
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 ||
        second > 60)
        return false;
    seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    fraction = 0;
    if (text.size() == 19) return true;
    if (text[19] != '.' || text.size() == 20 || text.size() > 32) return false;
    double unit = 1;
    for (const char c : text.substr(20)) {
        if (c < '0' || c > '9') return false;
        unit /= 10;
        fraction += unit * (c - '0');
    }
    return true;
}

inline std::vector<std::string_view> cells_of(std::string_view line) {
    std::vector<std::string_view> cells;
    for (;;) {
        const auto comma = line.find(',');
        cells.push_back(line.substr(0, comma));
        if (comma == std::string_view::npos) return cells;
        line.remove_prefix(comma + 1);
    }
}

}  // namespace llm_detail

GPUSCHED_INLINE std::vector<LlmRequest> read_llm_trace(std::string_view csv) {
    using namespace llm_detail;
    constexpr std::array<std::string_view, 3> names{"TIMESTAMP", "ContextTokens", "GeneratedTokens"};
    std::array<std::size_t, 3> column{};
    std::vector<LlmRequest> out;
    std::int64_t first = 0;
    std::size_t width = 0;
    for (std::size_t line = 1; !csv.empty(); ++line) {
        const auto end = csv.find('\n');
        auto row = csv.substr(0, end);
        csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
        if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
        if (line == 1 && row.substr(0, 3) == "\xEF\xBB\xBF") row.remove_prefix(3);
        if (row.empty()) continue;
        const auto cells = cells_of(row);
        if (width == 0) {
            width = cells.size();
            for (std::size_t k = 0; k < names.size(); ++k) {
                const auto found = std::find(cells.begin(), cells.end(), names[k]);
                if (found == cells.end())
                    throw InvalidInput("LLM trace: no column " + gpusched::quoted(names[k]));
                column[k] = static_cast<std::size_t>(found - cells.begin());
            }
            continue;
        }
        std::int64_t seconds = 0;
        double fraction = 0;
        LlmRequest r;
        if (cells.size() != width || !time_of(cells[column[0]], seconds, fraction) ||
            !number(cells[column[1]], r.prompt_tokens) || !number(cells[column[2]], r.output_tokens) ||
            r.prompt_tokens < 0 || r.output_tokens < 0)
            throw InvalidInput("LLM trace: line " + std::to_string(line) + ": " + gpusched::quoted(row) +
                               "; expected a time and two numbers of tokens");
        if (out.empty()) first = seconds;
        r.time_s = static_cast<double>(seconds - first) + fraction;
        out.push_back(r);
    }
    std::sort(out.begin(), out.end(), [](const LlmRequest& a, const LlmRequest& b) {
        if (a.time_s != b.time_s) return a.time_s < b.time_s;
        return a.prompt_tokens != b.prompt_tokens ? a.prompt_tokens < b.prompt_tokens
                                                  : a.output_tokens < b.output_tokens;
    });
    const double start = out.empty() ? 0 : out.front().time_s;
    for (auto& r : out) r.time_s -= start;
    return out;
}

GPUSCHED_INLINE std::vector<LlmRequest> generate_llm_trace(std::size_t requests, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<LlmRequest> out(requests);
    double now = 0;
    for (auto& r : out) {
        r.time_s = now;
        now += -std::log1p(-rng.uniform()) / 5.5;
        const double radius = std::sqrt(-2 * std::log1p(-rng.uniform()));
        const double angle = 6.283185307179586 * rng.uniform();
        r.prompt_tokens = static_cast<std::int32_t>(
            std::clamp(1020 * std::exp(0.75 * radius * std::cos(angle)), 3.0, 14050.0));
        r.output_tokens = static_cast<std::int32_t>(
            std::clamp(170 * std::exp(0.65 * radius * std::sin(angle)), 1.0, 1000.0));
    }
    return out;
}

}  // namespace gpusched::sim

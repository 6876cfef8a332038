// SPDX-License-Identifier: Apache-2.0
// Reads recorded LLM requests from CSV or JSON lines, and generates them.
#include "core/csv_reader.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/reader.hpp>
#include <gpusched/serving/llm_trace.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

namespace gpusched::serving {

namespace llm_detail {

/// Removes `Z`, `+hh:mm` or `-hh:mm` from the end of a time. Returns the offset from UTC in seconds, 0 if
/// there is none.
static std::int64_t take_utc_offset(std::string_view& text) {
    if (text.ends_with('Z')) {
        text.remove_suffix(1);
        return 0;
    }
    if (text.size() < 6) return 0;
    const auto end = text.substr(text.size() - 6);
    unsigned hours = 0, minutes = 0;
    if ((end[0] != '+' && end[0] != '-') || end[3] != ':' || !read_number(end.substr(1, 2), hours) ||
        !read_number(end.substr(4), minutes) || hours > 23 || minutes > 59)
        return 0;
    text.remove_suffix(6);
    const std::int64_t offset = hours * 3600 + minutes * 60;
    return end[0] == '-' ? -offset : offset;
}

/// Parses `YYYY-MM-DD hh:mm:ss[.fraction][offset from UTC]` into seconds since 1970, split so that fractions
/// keep their digits.
static bool time_of(std::string_view text, std::int64_t& seconds, double& fraction) {
    const auto offset = take_utc_offset(text);
    if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T') ||
        text[13] != ':' || text[16] != ':')
        return false;
    std::array<unsigned, 6> part{};
    constexpr std::array<std::size_t, 6> at{0, 5, 8, 11, 14, 17}, length{4, 2, 2, 2, 2, 2};
    for (std::size_t k = 0; k < 6; ++k)
        if (!read_number(text.substr(at[k], length[k]), part[k])) return false;
    const auto [year, month, day, hour, minute, second] = part;
    const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                           std::chrono::month(month), std::chrono::day(day)};
    if (year < 1970 || !date.ok() || hour > 23 || minute > 59 || second > 60) return false;
    const auto midnight = std::chrono::sys_days(date).time_since_epoch();
    seconds = std::chrono::seconds(midnight).count() + hour * 3600 + minute * 60 + second - offset;
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

/// Returns true if the first line that is not blank has a cell with this text.
static bool has_column(std::string_view text, std::string_view name) {
    const auto begin = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");
    if (begin == text.npos) return false;
    auto header = text.substr(begin, text.find_first_of("\r\n", begin) - begin);
    while (true) {
        const auto comma = header.find(',');
        auto cell = trimmed(header.substr(0, comma));
        if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
            cell = cell.substr(1, cell.size() - 2);
        if (cell == name) return true;
        if (comma == header.npos) return false;
        header.remove_prefix(comma + 1);
    }
}

/// A line of Mooncake's traces.
struct MooncakeRow {
    double timestamp = 0;  ///< milliseconds
    std::int32_t input_length = 0, output_length = 0;
};
template <class F>
constexpr void visit_fields(std::type_identity<MooncakeRow>, F&& field) {
    field("timestamp", &MooncakeRow::timestamp, Required{}, within(0.0, 1e15));
    field("input_length", &MooncakeRow::input_length, Required{}, at_least(0));
    field("output_length", &MooncakeRow::output_length, Required{}, at_least(0));
}

/// Reads a text with one JSON object per line.
static std::vector<LlmRequest> read_json_lines(std::string_view text, std::string_view source) {
    std::vector<LlmRequest> out;
    Problems problems;
    std::size_t line_number = 0;
    while (!text.empty() && !problems.full()) {
        const auto end = text.find('\n');
        const auto line = trimmed(text.substr(0, end));
        text.remove_prefix(end == text.npos ? text.size() : end + 1);
        ++line_number;
        if (line.empty()) continue;
        collect(problems, [&] {
            Problems found;
            const auto document =
                json::Document::parse(line, std::string(source) + ":" + std::to_string(line_number), found);
            MooncakeRow row;
            json::Reader(document, found, 1).read_part(0, row);
            found.throw_if_any();
            out.push_back({row.timestamp / 1000, row.input_length, row.output_length});
        });
    }
    problems.throw_if_any();
    return out;
}

/// Sorts requests by time, and counts from the first one.
static void order(std::vector<LlmRequest>& requests) {
    std::ranges::sort(requests, {}, [](const LlmRequest& request) {
        return std::tuple(request.time_s, request.prompt_tokens, request.output_tokens);
    });
    const double start = requests.empty() ? 0 : requests.front().time_s;
    for (auto& request : requests) request.time_s -= start;
}

}  // namespace llm_detail

GPUSCHED_EXPORT std::vector<LlmRequest> read_llm_trace(std::string_view text, std::string_view source,
                                                       std::size_t* failed) {
    constexpr std::int64_t most_tokens = std::numeric_limits<std::int32_t>::max();
    constexpr std::array<const char*, 3> azure{"TIMESTAMP", "ContextTokens", "GeneratedTokens"},
        burst_gpt{"Timestamp", "Request tokens", "Response tokens"};
    enum { timestamp, prompt, output };
    std::vector<LlmRequest> out;
    if (failed != nullptr) *failed = 0;
    if (text.empty()) return out;
    if (const auto begin = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");
        begin != text.npos && text[begin] == '{') {
        out = llm_detail::read_json_lines(text, source);
        llm_detail::order(out);
        return out;
    }
    Problems problems;
    const bool of_azure = llm_detail::has_column(text, azure[timestamp]);
    const bool burst = !of_azure && llm_detail::has_column(text, burst_gpt[timestamp]);
    csv::Reader<3> table(text, std::string(source), burst ? burst_gpt : azure, 3, problems,
                         csv::Header::others);
    if (!of_azure && !burst && !problems.empty())
        problems.add(std::string(source) + ": or the columns of BurstGPT: " + burst_gpt[timestamp] + ", " +
                     burst_gpt[prompt] + ", " + burst_gpt[output] + ", or JSON lines");
    std::int64_t first = 0;
    while (table.next()) {
        double time_s = 0;
        if (burst) {
            time_s = table.quantity(timestamp).value_or(0);
        } else {
            std::int64_t seconds = 0;
            double fraction = 0;
            if (!llm_detail::time_of(table.cell(timestamp), seconds, fraction))
                table.expected(timestamp, "a time such as 2023-11-16 18:17:03.9799600");
            if (out.empty()) first = seconds;
            time_s = static_cast<double>(seconds - first) + fraction;
        }
        const LlmRequest request{time_s, static_cast<std::int32_t>(table.integer(prompt, 0, most_tokens)),
                                 static_cast<std::int32_t>(table.integer(output, 0, most_tokens))};
        if (!burst || request.output_tokens > 0)
            out.push_back(request);
        else if (failed != nullptr)
            ++*failed;
    }
    problems.throw_if_any();
    llm_detail::order(out);
    return out;
}

GPUSCHED_EXPORT std::vector<LlmRequest> generate_llm_trace(std::size_t requests, std::uint64_t seed) {
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

}  // namespace gpusched::serving

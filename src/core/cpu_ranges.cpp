// SPDX-License-Identifier: Apache-2.0
// CpuRanges: set operations and parsers.
#include <gpusched/config.hpp>
#include <gpusched/core/cpu_ranges.hpp>
#include <gpusched/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpusched {

GPUSCHED_EXPORT int CpuRanges::count() const noexcept {
    int total = 0;
    for (const auto& [first, last] : ranges) total += last - first + 1;
    return total;
}

GPUSCHED_EXPORT bool CpuRanges::meets(const CpuRanges& other) const noexcept {
    for (auto a = ranges.begin(), b = other.ranges.begin(); a != ranges.end() && b != other.ranges.end();) {
        if (a->second < b->first)
            ++a;
        else if (b->second < a->first)
            ++b;
        else
            return true;
    }
    return false;
}

GPUSCHED_EXPORT void CpuRanges::add(const std::vector<std::pair<int, int>>& more) {
    ranges.insert(ranges.end(), more.begin(), more.end());
    std::sort(ranges.begin(), ranges.end());
    std::vector<std::pair<int, int>> merged;
    for (const auto& range : ranges) {
        if (!merged.empty() && range.first <= merged.back().second + 1)
            merged.back().second = std::max(merged.back().second, range.second);
        else
            merged.push_back(range);
    }
    ranges = std::move(merged);
}

GPUSCHED_EXPORT std::optional<CpuRanges> parse_cpu_list(std::string_view text) {
    constexpr std::size_t most_parts = 4096;
    if (text.ends_with('\n')) text.remove_suffix(1);
    text = trimmed(text);
    std::vector<std::pair<int, int>> parts;
    const auto number = [](std::string_view digits, int& value) {
        return read_number(digits, value) && value >= 0 && value <= largest_cpu;
    };
    for (bool more = !text.empty(); more;) {
        more = text.find(',') != std::string_view::npos;
        auto part = take_until(text, ',');
        const bool range = part.find('-') != std::string_view::npos;
        int first = 0, last = 0;
        if (!number(take_until(part, '-'), first)) return std::nullopt;
        if (!range)
            last = first;
        else if (!number(part, last) || last < first)
            return std::nullopt;
        if (parts.size() == most_parts) return std::nullopt;
        parts.emplace_back(first, last);
    }
    CpuRanges cpus;
    cpus.add(parts);
    return cpus;
}

GPUSCHED_EXPORT std::optional<CpuRanges> parse_cpu_mask(std::string_view text) {
    std::vector<std::uint32_t> words;
    for (bool more = true; more;) {
        more = text.find(',') != std::string_view::npos;
        auto word = take_until(text, ',');
        if (word.starts_with("0x")) word.remove_prefix(2);
        std::uint32_t bits = 0;
        if (!word.empty() && !read_number(word, bits, 16)) return std::nullopt;
        words.push_back(bits);
        if (words.size() > (largest_cpu + 1) / 32) return std::nullopt;
    }
    CpuRanges cpus;
    auto& ranges = cpus.ranges;
    for (std::size_t w = 0; w < words.size(); ++w) {
        const auto bits = words[words.size() - 1 - w];
        for (int b = 0; b < 32; ++b) {
            if ((bits >> b & 1u) == 0) continue;
            const int cpu = static_cast<int>(w) * 32 + b;
            if (!ranges.empty() && ranges.back().second == cpu - 1)
                ranges.back().second = cpu;
            else
                ranges.emplace_back(cpu, cpu);
        }
    }
    return cpus;
}

}  // namespace gpusched

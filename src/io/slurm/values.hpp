// SPDX-License-Identifier: Apache-2.0
// Records of Slurm and their values: amounts, generic resources, states, times and lists of hosts.
#pragma once

#include "io/documents.hpp"

#include <gpusched/core/text.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::io::detail::slurm {

/// Words in capitals: `IDLE`, `DRAIN`.
using Words = std::vector<std::string>;
template <class... Names>
bool has_any(const Words& words, Names... names) {
    return (contains(words, std::string_view(names)) || ...);
}

struct NodeRecord {
    std::string name{};
    std::optional<std::int64_t> cpus{}, effective_cpus{}, allocated_cpus{};
    std::optional<std::int64_t> memory_mib{}, allocated_mib{}, specialized_mib{}, disk_mib{};
    std::string gres{}, gres_used{}, gres_drained{};
    Words state{};
    std::vector<std::string> features{}, partitions{};
    std::string reservation{}, reason{};
};

/// The allocation of a job on some of its nodes.
struct JobPart {
    std::string nodes{};  ///< a list of hosts; empty = the node at the same index among the job's nodes
    std::int64_t cpus = 0, memory_mib = 0;
    std::string gres{};
};

struct JobRecord {
    std::string id{};           ///< `17`, `20_4`, `30+1`
    std::string job{};          ///< the gang: `id`, or that of the first component of a heterogeneous job
    std::string array_tasks{};  ///< of a pending array: `5-100%4`
    Words state{};
    std::string reason{}, dependency{}, partition{}, qos{};
    /// Of a pending job, as Slurm writes it; from JSON in UTC, as `2026-11-22T06:00:00Z`.
    std::string planned_start{};
    std::optional<std::int64_t> priority{}, submitted{}, started{}, run_time_s{}, requeues{};
    std::optional<bool> requeue{}, batch{};
    std::string nodes{}, required_nodes{}, excluded_nodes{};
    std::optional<std::int64_t> node_count{}, most_nodes{}, cpus{}, tasks{}, cpus_per_node{};
    std::optional<std::int64_t> mib_per_node{}, mib_per_cpu{}, disk_mib{};
    std::string cpus_per_gpu{}, mib_per_gpu{};  ///< `gres/gpu:11`
    std::string requested{}, allocated{};       ///< trackable resources: `cpu=4,mem=16G,gres/gpu=2`
    std::string per_node{}, per_task{}, per_job{}, per_socket{};
    std::string features{}, licenses{}, reservation{};
    Words sharing{};  ///< `NO` = alone on its nodes, `USER`, `MCS`, `TOPO`; else it may share
    std::vector<JobPart> parts{};
    std::vector<std::string> unread{};  ///< further requests that restrict its nodes: `Contiguous=1`
    bool throttled = false;             ///< only some tasks of the array may run at once
};

struct PartitionRecord {
    std::string name{}, nodes{};
    std::int64_t tier = 1;
    std::optional<Words> preempt_mode{};
    Words state{};
    bool exclusive = false;
    std::vector<std::string> limits{};  ///< on its jobs: `MaxNodes=1`
    std::string job_defaults{};         ///< `DefCpuPerGPU=11,DefMemPerGPU=200000`
};

struct Records {
    std::vector<NodeRecord> nodes{};
    std::vector<JobRecord> jobs{};
    std::vector<PartitionRecord> partitions{};
    bool any_jobs = false, any_partitions = false;  ///< whether the input lists them, even if there are none
    std::optional<std::int64_t> now{};
};

inline std::string upper_case(std::string_view text) {
    std::string out(text);
    for (auto& c : out)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return out;
}

/// The value of a field; empty for the words that Slurm writes if there is none.
inline std::string_view value_of(std::string_view text) {
    text = trimmed(text);
    return text == "(null)" || text == "N/A" || text == "n/a" || text == "None" || text == "(none)"
               ? std::string_view{}
               : text;
}

/// A list with separators, without its empty words; separators within parentheses and brackets do not count.
inline std::vector<std::string> words_of(std::string_view text, char separator = ',') {
    std::vector<std::string> out(1);
    int depth = 0;
    for (const char c : text) {
        depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
        if (c == separator && depth <= 0)
            out.emplace_back();
        else
            out.back() += c;
    }
    std::erase_if(out, [](std::string& word) {
        word = trimmed(word);
        return word.empty();
    });
    return out;
}

/// A number, or one with a binary unit: `4`, `1.50T`. In units of `unit` (none, K, M, G, T or P), rounded up.
inline std::optional<std::int64_t> amount_of(std::string_view text, char unit = 0) {
    constexpr std::string_view units = "KMGTPE";
    double number = 0;
    if (!take_number(text, number) || !(number >= 0) || !(number < 1e18)) return std::nullopt;
    const auto power = [&](char c) { return static_cast<int>(units.find(c)) + 1; };
    int steps = unit == 0 ? 0 : -power(unit);
    if (!text.empty() && units.find(text.front()) != units.npos) {
        steps += power(text.front());
        text.remove_prefix(1);
    } else {
        steps = 0;  // a bare number is in the unit of the field
    }
    if (!text.empty() && text.front() == 'B') text.remove_prefix(1);
    if (!text.empty() && (text == "c" || text == "n")) text.remove_prefix(1);  // per core, per node
    if (!text.empty()) return std::nullopt;
    for (; steps > 0; --steps) number *= 1024;
    for (; steps < 0; ++steps) number /= 1024;
    if (number >= static_cast<double>(largest_quantity)) return largest_quantity;
    const auto whole = static_cast<std::int64_t>(number);
    return whole + (static_cast<double>(whole) < number ? 1 : 0);
}

/// Seconds since 1970 of a time without a zone, read as if in UTC.
inline std::optional<std::int64_t> time_of(std::string_view text) {
    return text.size() == 19 ? read_seconds(std::string(text) + "Z") : std::nullopt;
}

/// A time of this kind for seconds since 1970; empty for none, and for years beyond 9999.
inline std::string utc_of(std::int64_t seconds) {
    constexpr std::int64_t year_10000 = 253'402'300'800;
    if (seconds <= 0 || seconds >= year_10000) return {};
    const auto two = [](std::int64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
    const std::chrono::sys_days day{std::chrono::days(seconds / 86'400)};
    const std::chrono::year_month_day date(day);
    return concat(static_cast<int>(date.year()), "-", two(static_cast<unsigned>(date.month())), "-",
                  two(static_cast<unsigned>(date.day())), "T", two(seconds / 3600 % 24), ":",
                  two(seconds / 60 % 60), ":", two(seconds % 60), "Z");
}

/// Seconds of a duration: `1-02:03:04`, `02:03:04`, `03:04`.
inline std::optional<std::int64_t> duration_of(std::string_view text) {
    std::int64_t days = 0, seconds = 0;
    if (const auto dash = text.find('-'); dash != text.npos) {
        if (!read_number(text.substr(0, dash), days) || days < 0 || days > 1'000'000) return std::nullopt;
        text.remove_prefix(dash + 1);
    }
    int parts = 0;
    while (!text.empty()) {
        std::int64_t part = 0;
        if (!read_number(take_until(text, ':'), part) || part < 0 || part > 1'000'000'000)
            return std::nullopt;
        seconds = seconds * 60 + part;
        if (++parts > 3) return std::nullopt;
    }
    return parts < 2 ? std::nullopt : std::optional(days * 86'400 + seconds);
}

/// States: `IDLE+DRAIN`, `MIXED*`, `RUNNING`. A sign at the end becomes its flag.
inline Words states_of(std::string_view text) {
    Words out;
    for (auto& word : words_of(text, '+')) {
        struct Sign {
            char sign;
            const char* flag;
        };
        for (const Sign sign :
             {Sign{'*', "NOT_RESPONDING"}, Sign{'~', "POWERED_DOWN"}, Sign{'#', "POWERING_UP"},
              Sign{'%', "POWERING_DOWN"}, Sign{'!', "POWER_DOWN"}, Sign{'$', "MAINTENANCE"},
              Sign{'@', "REBOOT_REQUESTED"}, Sign{'^', "REBOOT_ISSUED"}, Sign{'-', "PLANNED"}})
            if (!word.empty() && word.back() == sign.sign) {
                word.pop_back();
                out.emplace_back(sign.flag);
            }
        auto name = upper_case(word);
        if (name == "MAINT") name = "MAINTENANCE";
        if (name == "DRAINED" || name == "DRAINING") name = "DRAIN";
        if (!name.empty()) out.push_back(std::move(name));
    }
    return out;
}

/// Indices: `0-2,5`. None if it is not such a list, or has an index above 4095.
inline std::optional<std::vector<int>> indices_of(std::string_view text) {
    std::vector<int> out;
    while (!text.empty()) {
        auto part = take_until(text, ',');
        int first = 0, last = 0;
        const auto low = take_until(part, '-');
        if (!read_number(low, first) || first < 0 || first > 4095) return std::nullopt;
        last = first;
        if (!part.empty() && (!read_number(part, last) || last < first || last > 4095)) return std::nullopt;
        for (auto i = first; i <= last; ++i) out.push_back(i);
        if (out.size() > 4096) return std::nullopt;
    }
    return out;
}

/// Adds the names that begin with `begin` and end with a number of a list: n and "01-03,7" -> n01 n02 n03 n7.
/// False if the list is malformed.
inline bool add_numbered(const std::string& begin, std::string_view list, Expansion& left,
                         std::vector<std::string>& out) {
    while (true) {
        const auto comma = std::min(list.find(','), list.size());
        const auto part = list.substr(0, comma);
        const auto dash = std::min(part.find('-'), part.size());
        const auto low = part.substr(0, dash), high = dash == part.size() ? low : part.substr(dash + 1);
        std::uint32_t first = 0, last = 0;
        const auto number = [](std::string_view digits, std::uint32_t& value) {
            return digits.size() <= 9 && read_number(digits, value);
        };
        if (!number(low, first) || !number(high, last) || last < first) return false;
        left.take_names(last - first + 1, begin.size() + high.size());
        for (auto value = first; value <= last; ++value) {
            char digits[10];
            const auto size =
                static_cast<std::size_t>(std::to_chars(digits, std::end(digits), value).ptr - digits);
            const auto zeros = low.size() - std::min(low.size(), size);
            auto& name = out.emplace_back();
            name.reserve(begin.size() + zeros + size);
            name.append(begin).append(zeros, '0').append(digits, size);
        }
        if (comma == list.size()) return true;
        list.remove_prefix(comma + 1);
    }
}

/// "a,n[01-03,7]x" -> a n01x n02x n03x n7x; numbers keep the width of the range's first one. Several brackets
/// multiply. None if it is malformed.
/// @throws InvalidInput if it stands for more than is left
[[nodiscard]] inline std::optional<std::vector<std::string>> host_list(std::string_view text,
                                                                       Expansion& left) {
    std::vector<std::string> out;
    const auto before = left.left;
    while (true) {
        std::vector<std::string> names{""};
        while (!text.empty() && text.front() != ',') {
            if (text.front() != '[') {
                const auto end = std::min(text.find_first_of(",["), text.size());
                if (text.substr(0, end).find(']') != text.npos) return std::nullopt;
                left.take_names(names.size(), end);
                for (auto& name : names) {
                    name.reserve(name.size() + end);
                    name += text.substr(0, end);
                }
                text.remove_prefix(end);
                continue;
            }
            const auto end = text.find(']');
            if (end == text.npos) return std::nullopt;
            std::vector<std::string> longer;
            for (const auto& name : names) {
                if (!add_numbered(name, text.substr(1, end - 1), left, longer)) return std::nullopt;
                // The product is refused before it is written.
                if (&name == &names.front())
                    left.take_names(names.size() * longer.size(), longer.back().size());
            }
            names = std::move(longer);
            text.remove_prefix(end + 1);
        }
        if (names.front().empty()) return std::nullopt;
        out.insert(out.end(), std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
        if (text.empty()) break;
        text.remove_prefix(1);
    }
    left.left = before - std::min(before, bytes_of(out));  // parts of names no longer take memory
    return out;
}

/// The first line of a text that is neither blank, a comment nor a directive of YAML.
inline std::string_view first_content(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    while (!text.empty()) {
        const auto line = trimmed(take_line(text));
        if (!line.empty() && line.front() != '#' && line.front() != '%' && line != "---") return line;
    }
    return {};
}
/// Whether a text begins as a list in YAML or JSON.
inline bool is_list(std::string_view text) {
    const auto line = first_content(text);
    return line == "-" || line.starts_with("- ") || line.starts_with('[');
}

/// A generic resource: `gpu:h100:8(S:0-1)`.
struct Gres {
    std::string name{}, type{};
    std::int64_t count = 0;
    std::string detail{};  ///< the text in parentheses
};
template <class F>
constexpr void visit_fields(std::type_identity<Gres>, F&& field) {
    field("name", &Gres::name);
    field("type", &Gres::type);
    field("count", &Gres::count);
    field("detail", &Gres::detail);
}

/// A list of generic resources of a node or a job, or a request: `gpu:h100:8`, `gres/gpu:2`, `gres:gpu`,
/// `gres/gpu:a100=2`. Other resources, such as `cpu=4`, are skipped.
/// @return none if a word cannot be read
inline std::optional<std::vector<Gres>> gres_of(std::string_view text) {
    std::vector<Gres> out;
    std::string plain(text);
    for (std::size_t at = 0; (at = plain.find("(null)", at)) != plain.npos;) plain.erase(at, 6);
    for (const auto& word : words_of(plain)) {
        Gres gres;
        std::string_view rest = word;
        const auto open = rest.find('(');
        if (open != rest.npos) {
            gres.detail = rest.substr(open + 1, rest.find(')', open) - open - 1);
            rest = rest.substr(0, open);
        }
        bool marked = false;
        for (const std::string_view prefix : {"gres/", "gres:"})
            if (rest.starts_with(prefix)) {
                rest.remove_prefix(prefix.size());
                marked = true;
                break;
            }
        if (!marked && (rest.find('/') != rest.npos || rest.starts_with("cpu=") || rest.starts_with("cpu:") ||
                        rest.starts_with("mem=") || rest.starts_with("mem:") || rest.starts_with("node=") ||
                        rest.starts_with("billing=") || rest.starts_with("energy=")))
            continue;
        gres.count = 1;
        std::string_view count;
        if (const auto equals = rest.find('='); equals != rest.npos) {
            count = rest.substr(equals + 1);
            rest = rest.substr(0, equals);
        } else if (const auto colon = rest.rfind(':'); colon != rest.npos) {
            const auto last = rest.substr(colon + 1);
            if (last.empty() || amount_of(last)) {
                count = last.empty() ? "0" : last;
                rest = rest.substr(0, colon);
            }
        }
        if (!count.empty()) {
            const auto read = amount_of(count);
            if (!read) return std::nullopt;
            gres.count = *read;
        }
        const auto colon = std::min(rest.find(':'), rest.size());
        gres.name = rest.substr(0, colon);
        if (colon < rest.size()) gres.type = rest.substr(colon + 1);
        while (gres.type.ends_with(':')) gres.type.pop_back();
        if (gres.name.empty()) return std::nullopt;
        // Older releases write `gpu(IDX:0-1)` for two.
        if (count.empty() && gres.detail.starts_with("IDX:"))
            if (const auto named = indices_of(std::string_view(gres.detail).substr(4)))
                gres.count = static_cast<std::int64_t>(named->size());
        out.push_back(std::move(gres));
    }
    return out;
}

/// The amount of one trackable resource in `cpu=4,mem=16G,node=1`.
inline std::optional<std::int64_t> tres_of(std::string_view text, std::string_view name, char unit = 0) {
    for (const auto& word : words_of(text)) {
        const auto equals = word.find('=');
        if (equals != word.npos && std::string_view(word).substr(0, equals) == name)
            return amount_of(std::string_view(word).substr(equals + 1), unit);
    }
    return std::nullopt;
}

/// The devices that a generic resource names: those of `IDX:0-2`, or those in use in `0/4,2/4`.
inline std::vector<int> named_devices(const Gres& gres) {
    std::string_view text = gres.detail;
    if (text.starts_with("IDX:")) {
        auto found = indices_of(text.substr(4));
        return found ? *std::move(found) : std::vector<int>{};
    }
    std::vector<int> out;
    if (text.find('/') == text.npos) return out;
    for (int i = 0; !text.empty(); ++i) {
        auto part = take_until(text, ',');
        std::int64_t used = 0;
        if (!read_number(take_until(part, '/'), used)) return {};
        if (used > 0) out.push_back(i);
    }
    return out;
}

/// Whether a type of GPUs is an instance of a card: `1g.10gb`, `nvidia_a100_3g.20gb`, `h100_1g.12gb.me`.
inline bool is_mig_type(std::string_view type) {
    for (auto at = type.find("g."); at != type.npos; at = type.find("g.", at + 1)) {
        auto end = at + 2;
        while (end < type.size() && type[end] >= '0' && type[end] <= '9') ++end;
        if (at > 0 && type[at - 1] >= '0' && type[at - 1] <= '9' && end > at + 2 &&
            type.substr(end).starts_with("gb"))
            return true;
    }
    return false;
}

}  // namespace gpusched::io::detail::slurm

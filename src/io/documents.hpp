// SPDX-License-Identifier: Apache-2.0
// Documents of other systems, in YAML or JSON: values with positions for messages, the system that wrote a
// document, and the report of how its parts were read.
#pragma once

#include "model/node_match.hpp"

#include <gpusched/core/fields.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/cluster_reading.hpp>
#include <gpusched/json/document.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::io::detail {

/// The most that a node, and all its tasks together, have of a resource. Rounding up tasks cannot exceed the
/// largest amount.
inline constexpr std::int64_t most_of_a_node = largest_quantity / 2;

/// An object, or a part of one, that cannot be read; it is left out and reported.
struct Unreadable {
    std::string why;
};

/// A text of the input for messages.
[[nodiscard]] inline std::string in_quotes(std::string_view text) {
    return gpusched::quoted(printable(text));
}
/// Texts or numbers with a separator between them.
template <class List>
[[nodiscard]] std::string joined(const List& list, std::string_view separator) {
    std::string out;
    for (const auto& one : list) out += concat(out.empty() ? std::string_view() : separator, one);
    return out;
}
/// A text in double quotes, as JSON and YAML have it. @throws InvalidInput if it is not UTF-8
[[nodiscard]] std::string json_string(std::string_view text);

/// Whether it is an RFC 1123 label: lower-case letters, digits and inner hyphens.
[[nodiscard]] bool is_kubernetes_label(std::string_view name);
/// Whether it is an RFC 1123 subdomain: labels joined by dots, at most 253 characters.
[[nodiscard]] bool is_kubernetes_name(std::string_view name);

/// The taint of a node that is not ready.
[[nodiscard]] inline Taint not_ready() {
    return {.key = std::string(gpusched::detail::not_ready_taint), .effect = "NoSchedule"};
}

/// Whether a list has a value.
template <class List, class T>
[[nodiscard]] bool contains(const List& list, const T& value) {
    return std::find(std::begin(list), std::end(list), value) != std::end(list);
}
/// The value of a key; a default value if the map lacks it.
template <class Map, class Key>
[[nodiscard]] typename Map::mapped_type value_at(const Map& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? typename Map::mapped_type{} : found->second;
}
/// Adds a value unless the list has it.
template <class T>
void add_once(std::vector<T>& list, T value) {
    if (!contains(list, value)) list.push_back(std::move(value));
}

/// Approximate memory of a value and its contents.
template <class T>
[[nodiscard]] std::size_t bytes_of(const T& value) {
    auto bytes = sizeof(T);
    if constexpr (std::is_same_v<T, std::string>) {
        bytes += value.size() > 15 ? value.size() + 16 : 0;
    } else if constexpr (requires { value.has_value(); }) {
        bytes += value ? bytes_of(*value) : 0;
    } else if constexpr (requires { typename T::mapped_type; }) {
        for (const auto& [key, mapped] : value) bytes += 48 + bytes_of(key) + bytes_of(mapped);
    } else if constexpr (requires { value.begin(); }) {
        for (const auto& one : value) bytes += bytes_of(one);
    } else if constexpr (Described<T>) {
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&...) {
            bytes += bytes_of(value.*member) - sizeof(value.*member);
        });
    }
    return bytes;
}

/// Limits the memory that an input can demand: a few bytes can stand for a million hosts, and every pod can
/// be a member of every other pod's group.
struct Expansion {
    static constexpr std::size_t of_any_text = std::size_t{96} << 20, of_each_byte = 160;

    explicit Expansion(std::size_t text_size) : left(of_any_text + of_each_byte * text_size) {}

    std::size_t left;     ///< bytes
    std::string place{};  ///< the current place in the input, for messages

    /// @throws InvalidInput if the rest is smaller
    void take(std::size_t bytes) {
        if (bytes > left)
            throw InvalidInput(concat(place, "the input up to here stands for more than ", of_any_text >> 20,
                                      " MiB plus ", of_each_byte,
                                      " times its size; leave out jobs or pods, or shorten lists of hosts"));
        left -= bytes;
    }
    /// Names that are about to be written.
    void take_names(std::size_t count, std::size_t size) {
        take(count > left ? count : count * (sizeof(std::string) + 16 + size));
    }
};

/// Counts for each aspect of each kind of object how it was read.
class ReportBuilder {
  public:
    explicit ReportBuilder(std::size_t examples) : examples_(examples) {}

    void exact(std::string_view kind, std::string_view what, std::int64_t count = 1) {
        if (count == 0) return;
        row(kind, what, Fidelity::exact, Errs::neither, {}).count += count;
    }
    /// Exact, with an example, such as the names of budgets that allow no eviction.
    void exact_of(std::string_view kind, std::string_view what, std::string_view example) {
        note(row(kind, what, Fidelity::exact, Errs::neither, {}), example);
    }
    void approximated(std::string_view kind, std::string_view what, Errs errs, std::string_view how,
                      std::string_view example) {
        note(row(kind, what, Fidelity::approximated, errs, how), example);
    }
    void ignored(std::string_view kind, std::string_view what, Errs errs, std::string_view how,
                 std::string_view example) {
        note(row(kind, what, Fidelity::ignored, errs, how), example);
    }
    void left_out(std::string_view kind, std::string_view what, std::string_view how,
                  std::string_view example, Errs errs = Errs::neither) {
        note(row(kind, what, Fidelity::left_out, errs, how), example);
    }
    void absent(std::string_view kind, std::string_view undecided) {
        report_.absent.push_back({std::string(kind), std::string(undecided)});
    }
    /// Why objects of a kind were left out, with an example; empty if none was.
    [[nodiscard]] std::string why_left_out(std::string_view kind) const {
        std::string why;
        for (const auto& row : report_.rows)
            if (row.kind == kind && row.fidelity == Fidelity::left_out && !row.examples.empty())
                why = row.examples.front();
        return why;
    }
    [[nodiscard]] ReadingReport take() { return std::move(report_); }

  private:
    ReadingRow& row(std::string_view kind, std::string_view what, Fidelity fidelity, Errs errs,
                    std::string_view how) {
        key_.assign(kind).append(1, '\n').append(what).append(1, '\n').append(how);
        key_.append(1, static_cast<char>('0' + static_cast<int>(fidelity)));
        key_.append(1, static_cast<char>('0' + static_cast<int>(errs)));
        const auto [found, added] = index_.try_emplace(key_, report_.rows.size());
        if (added)
            report_.rows.push_back({.kind = std::string(kind),
                                    .what = std::string(what),
                                    .fidelity = fidelity,
                                    .errs = errs,
                                    .how = std::string(how)});
        return report_.rows[found->second];
    }
    void note(ReadingRow& to, std::string_view example) {
        ++to.count;
        if (!example.empty() && to.examples.size() < examples_)
            to.examples.push_back(printable(example, 300));
    }

    std::size_t examples_;
    std::string key_;
    std::map<std::string, std::size_t> index_;
    ReadingReport report_;
};

/// A value in a document, or its absence.
class Place {
  public:
    Place() = default;
    Place(const json::Document& document, std::uint32_t at) : document_(&document), at_(at) {}

    explicit operator bool() const noexcept { return document_ != nullptr; }
    [[nodiscard]] json::Kind kind() const { return (*document_)[at_].kind; }
    [[nodiscard]] bool is(json::Kind kind_asked) const {
        return document_ != nullptr && kind() == kind_asked;
    }
    /// The member of an object; absent if there is none, or it is null.
    [[nodiscard]] Place operator[](std::string_view key) const;
    /// Elements of an array or members of an object.
    [[nodiscard]] std::vector<Place> items() const;
    [[nodiscard]] std::string_view key() const { return document_->key((*document_)[at_]); }
    /// A string, or a number or truth value as text; none otherwise.
    [[nodiscard]] std::optional<std::string> text() const;
    /// A number, or a string that is one.
    [[nodiscard]] std::optional<double> number() const;
    [[nodiscard]] std::string where() const { return document_->where(at_); }
    /// The message that something else is expected here.
    [[nodiscard]] std::string expected(std::string_view what) const {
        return where() + "expected " + std::string(what) + ", found " + document_->describe(at_);
    }

  private:
    const json::Document* document_ = nullptr;
    std::uint32_t at_ = 0;
};

/// All documents of a text: JSON if it begins with a brace or bracket, else YAML (1.1 as libyaml reads it,
/// with the scalars of the core schema of 1.2, without aliases). Empty documents are left out.
/// @throws InvalidInput with source and line if it is neither
/// @throws BackendError for YAML if the library was built without libyaml
[[nodiscard]] std::vector<json::Document> read_objects(std::string_view text, const std::string& source,
                                                       Problems& problems);

/// The objects of a text, those in a `List` one by one; the documents must outlive them.
[[nodiscard]] std::vector<Place> kubernetes_objects(const std::vector<json::Document>& documents);

/// Seconds since 1970 of a time in UTC such as 2026-11-22T15:24:12Z, without its fraction; none for anything
/// else.
[[nodiscard]] std::optional<std::int64_t> read_seconds(std::string_view text);

enum class System : std::uint8_t { unknown, gpusched, kubernetes, kai, slurm, packed };

/// The system that wrote a document.
struct FoundSnapshot {
    System system = System::unknown;
    std::string description{};  ///< for messages, with the import that reads it
    /// Whether it is a snapshot that the import of `own` does not read.
    [[nodiscard]] bool is_not_of(System own) const { return system != System::unknown && system != own; }
};
/// Recognises a JSON document.
[[nodiscard]] FoundSnapshot found_snapshot(const Place& root);
/// Recognises a text that is not JSON; finds nothing in JSON.
[[nodiscard]] FoundSnapshot found_snapshot(std::string_view text);

}  // namespace gpusched::io::detail

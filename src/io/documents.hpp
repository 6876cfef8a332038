// SPDX-License-Identifier: Apache-2.0
// Documents of other systems, in YAML or JSON: values with positions for messages, and the system that wrote
// a document.
#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/json/document.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail {

/// An object, or a part of one, that cannot be read; it is left out and reported.
struct Unreadable {
    std::string why;
};

/// Whether a list has a value.
template <class List, class T>
[[nodiscard]] bool contains(const List& list, const T& value) {
    return std::find(std::begin(list), std::end(list), value) != std::end(list);
}
/// Adds a value unless the list has it.
template <class T>
void add_once(std::vector<T>& list, T value) {
    if (!contains(list, value)) list.push_back(std::move(value));
}

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

enum class System : std::uint8_t { unknown, kubernetes, kai, slurm, packed };

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

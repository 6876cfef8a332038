// SPDX-License-Identifier: Apache-2.0
// Documents of other systems, in YAML or JSON: values with places for messages, times, and what kind of snapshot one is.
#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/json/document.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io::detail {

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
    /// The member of an object; absent when there is none, or it is null.
    [[nodiscard]] Place operator[](std::string_view key) const;
    /// Elements of an array or members of an object.
    [[nodiscard]] std::vector<Place> items() const;
    [[nodiscard]] std::string_view key() const { return document_->key((*document_)[at_]); }
    /// A string, or a number or truth value as text; none otherwise.
    [[nodiscard]] std::optional<std::string> text() const;
    /// A number, or a string that is one.
    [[nodiscard]] std::optional<double> number() const;
    [[nodiscard]] std::string where() const { return document_->where(at_); }
    /// "where: expected what, found ..."; where the value is missing, `parent` says so.
    [[nodiscard]] std::string expected(std::string_view what) const {
        return where() + "expected " + std::string(what) + ", found " + document_->describe(at_);
    }

  private:
    const json::Document* document_ = nullptr;
    std::uint32_t at_ = 0;
};

/// All documents of a text: JSON when it begins with a brace or bracket, else YAML (1.1 as libyaml reads it, with the
/// scalars of the core schema of 1.2, without aliases). Empty documents are left out.
/// @throws InvalidInput with source and line when it is neither
/// @throws BackendError for YAML when the library was built without libyaml
[[nodiscard]] std::vector<json::Document> read_objects(std::string_view text, const std::string& source,
                                                       Problems& problems);

/// The objects of a text, those in a `List` one by one; the documents must outlive them.
[[nodiscard]] std::vector<Place> kubernetes_objects(const std::vector<json::Document>& documents);

enum class System : std::uint8_t { unknown, kubernetes, kai, slurm, packed };

/// What a document is, for a message: "found <told>".
struct FoundSnapshot {
    System system = System::unknown;
    std::string told{};
    /// Whether it is a snapshot that the import of `own` does not read.
    [[nodiscard]] bool is_not_of(System own) const { return system != System::unknown && system != own; }
};

inline FoundSnapshot found_kubernetes(const std::string& how) {
    return {System::kubernetes,
            "objects of Kubernetes " + how +
                ": `gpusched import kubernetes`, io::read_kubernetes and gs.io.read_kubernetes read them"};
}
inline FoundSnapshot found_slurm(const std::string& how) {
    return {System::slurm, "what Slurm's scontrol prints " + how +
                               ": `gpusched import slurm`, io::read_slurm and gs.io.read_slurm read it"};
}

/// What a JSON document is.
inline FoundSnapshot found_snapshot(const Place& root) {
    if (!root.is(json::Kind::object) || root["format"]) return {};
    if (root["meta"].is(json::Kind::object))
        for (const char* const key : {"nodes", "jobs", "partitions"})
            if (root[key].is(json::Kind::array)) return found_slurm("as JSON");
    if (root["rawObjects"].is(json::Kind::object))
        return {System::kai, "a snapshot of KAI-Scheduler: `gpusched import kai`, io::read_kai_snapshot and "
                             "gs.io.read_kai_snapshot read it"};
    const auto kind = root["kind"].text();
    if (!kind || !root["apiVersion"].text()) return {};
    return found_kubernetes("(kind " + gpusched::quoted(printable(*kind)) + ")");
}

/// What a text is that is not JSON; nothing is found in JSON.
inline FoundSnapshot found_snapshot(std::string_view text) {
    if (text.starts_with("PK\x03\x04"))
        return {System::kai, "a zip archive: `gpusched import kai` and gs.io.read_kai_snapshot read those of "
                             "KAI-Scheduler"};
    if (text.starts_with("\x1f\x8b"))
        return {System::packed, "what gzip packed: unpack it first, as by `gunzip --keep FILE`"};
    if (const auto start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
        start != text.npos && (text[start] == '{' || text[start] == '['))
        return {};
    for (auto rest = text.substr(0, 4096); !rest.empty();) {
        const auto line = take_line(rest);
        for (const std::string_view key : {"NodeName=", "JobId=", "PartitionName="})
            if (line.starts_with(key)) return found_slurm("as text");
        if (line.starts_with("apiVersion:")) return found_kubernetes("as YAML");
    }
    return {};
}

}  // namespace gpusched::io::detail

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

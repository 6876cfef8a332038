// SPDX-License-Identifier: Apache-2.0
// Bodies of documents.hpp.
#include "io/documents.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/json/writer.hpp>

#include <chrono>
#include <utility>

namespace gpusched::io::detail {

std::string json_string(std::string_view text) {
    std::string out;
    json::Writer(out).write(text);
    return out;
}

bool is_kubernetes_label(std::string_view name) {
    const auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
    return !name.empty() && name.size() <= 63 && alphanumeric(name.front()) && alphanumeric(name.back()) &&
           std::ranges::all_of(name, [&](char c) { return alphanumeric(c) || c == '-'; });
}

bool is_kubernetes_name(std::string_view name) {
    if (name.size() > 253) return false;
    for (;;) {
        const auto dot = name.find('.');
        if (!is_kubernetes_label(name.substr(0, dot))) return false;
        if (dot == name.npos) return true;
        name.remove_prefix(dot + 1);
    }
}

Place Place::operator[](std::string_view key_asked) const {
    if (document_ == nullptr) return {};
    const auto found = document_->find(at_, key_asked);
    return found && (*document_)[*found].kind != json::Kind::null ? Place(*document_, *found) : Place();
}

std::vector<Place> Place::items() const {
    std::vector<Place> out;
    if (!is(json::Kind::array) && !is(json::Kind::object)) return out;
    out.reserve((*document_)[at_].size);
    for (const auto at : document_->children(at_)) out.emplace_back(*document_, at);
    return out;
}

std::optional<std::string> Place::text() const {
    if (document_ == nullptr) return std::nullopt;
    const auto& value = (*document_)[at_];
    if (value.kind == json::Kind::string) return std::string(document_->string(value));
    if (value.kind == json::Kind::integer || value.kind == json::Kind::real ||
        value.kind == json::Kind::boolean)
        return document_->describe(at_);
    return std::nullopt;
}

std::optional<double> Place::number() const {
    if (document_ == nullptr) return std::nullopt;
    const auto& value = (*document_)[at_];
    if (value.kind == json::Kind::integer) return static_cast<double>(value.integer);
    if (value.kind == json::Kind::real) return value.real;
    if (value.kind != json::Kind::string) return std::nullopt;
    double out = 0;
    return read_number(document_->string(value), out) ? std::optional(out) : std::nullopt;
}

/// Takes the first of several JSON documents off a text, as two calls of kubectl print them into one file: an
/// object that begins a line after the end of another. Within a document a comma separates them, and no
/// string holds a line break.
static std::string_view take_json(std::string_view& text) {
    for (auto at = text.find("\n{"); at != text.npos; at = text.find("\n{", at + 1)) {
        const auto last = text.find_last_not_of(" \t\r\n", at);
        if (last == text.npos || text[last] != '}') continue;
        const auto first = text.substr(0, at + 1);
        text.remove_prefix(at + 1);
        return first;
    }
    return std::exchange(text, {});
}

static bool begins_json(std::string_view text) {
    const auto start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    return start != text.npos && (text[start] == '{' || text[start] == '[');
}

std::vector<json::Document> read_objects(std::string_view text, const std::string& source,
                                         Problems& problems) {
    if (text.size() > largest_document)
        throw InvalidInput(concat(source, ": expected at most ", largest_document, " bytes"));
    if (!begins_json(text)) return json::Document::parse_yaml(text, source, problems);
    std::vector<json::Document> out;
    while (!text.empty()) {
        const auto name = out.empty() ? source : concat(source, " (document ", out.size() + 1, ")");
        out.push_back(json::Document::parse(take_json(text), name, problems));
    }
    return out;
}

std::vector<Place> kubernetes_objects(const std::vector<json::Document>& documents) {
    std::vector<Place> out;
    for (const auto& document : documents) {
        const Place root(document, 0);
        const auto kind = root["kind"].text();
        if (kind && kind->ends_with("List") && root["items"].is(json::Kind::array)) {
            for (const auto& item : root["items"].items()) out.push_back(item);
        } else {
            out.push_back(root);
        }
    }
    return out;
}

std::optional<std::int64_t> read_seconds(std::string_view text) {
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

static FoundSnapshot found_kubernetes(const std::string& how) {
    return {System::kubernetes,
            "objects of Kubernetes " + how +
                ": `gpusched import kubernetes`, io::read_kubernetes and gs.io.read_kubernetes read them"};
}
static FoundSnapshot found_slurm(const std::string& how) {
    return {System::slurm, "output of Slurm's scontrol " + how +
                               ": `gpusched import slurm`, io::read_slurm and gs.io.read_slurm read it"};
}

FoundSnapshot found_snapshot(const Place& root) {
    if (!root.is(json::Kind::object)) return {};
    if (const auto format = root["format"].text(); format && format->starts_with("gpusched."))
        return {System::gpusched, "a document of format " + in_quotes(*format) + ", which needs no import"};
    if (root["format"]) return {};
    if (root["meta"].is(json::Kind::object))
        for (const char* const key : {"nodes", "jobs", "partitions"})
            if (root[key].is(json::Kind::array)) return found_slurm("as JSON");
    if (root["rawObjects"].is(json::Kind::object))
        return {System::kai, "a snapshot of KAI-Scheduler: `gpusched import kai`, io::read_kai_snapshot and "
                             "gs.io.read_kai_snapshot read it"};
    const auto kind = root["kind"].text();
    if (!kind || !root["apiVersion"].text()) return {};
    return found_kubernetes("(kind " + in_quotes(*kind) + ")");
}

FoundSnapshot found_snapshot(std::string_view text) {
    if (text.starts_with("PK\x03\x04"))
        return {System::kai, "a zip archive: `gpusched import kai` and gs.io.read_kai_snapshot read those of "
                             "KAI-Scheduler"};
    if (text.starts_with("\x1f\x8b"))
        return {System::packed, "a gzip file: unpack it first, as by `gunzip --keep FILE`"};
    if (begins_json(text)) return {};
    for (auto rest = text.substr(0, 4096); !rest.empty();) {
        const auto line = take_line(rest);
        for (const std::string_view key : {"NodeName=", "JobId=", "PartitionName="})
            if (line.starts_with(key)) return found_slurm("as text");
        if (line.starts_with("apiVersion:")) return found_kubernetes("as YAML");
    }
    return {};
}

}  // namespace gpusched::io::detail

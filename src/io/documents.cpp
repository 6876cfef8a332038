// SPDX-License-Identifier: Apache-2.0
#include "io/documents.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail {

Place Place::operator[](std::string_view key_asked) const {
    if (!is(json::Kind::object)) return {};
    for (auto at = at_ + 1; at < (*document_)[at_].end; at = (*document_)[at].end)
        if (document_->key((*document_)[at]) == key_asked && (*document_)[at].kind != json::Kind::null)
            return {*document_, at};
    return {};
}

std::vector<Place> Place::items() const {
    std::vector<Place> out;
    if (document_ == nullptr || (kind() != json::Kind::array && kind() != json::Kind::object)) return out;
    out.reserve((*document_)[at_].size);
    for (auto at = at_ + 1; at < (*document_)[at_].end; at = (*document_)[at].end)
        out.emplace_back(*document_, at);
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

/// Takes the first of several JSON documents off a text, as two calls of kubectl print them into one file: an object that begins a
/// line after the end of another. Within a document a comma stands there, and no string holds a line break.
[[nodiscard]] inline std::string_view take_json(std::string_view& text) {
    for (auto at = text.find("\n{"); at != text.npos; at = text.find("\n{", at + 1)) {
        const auto last = text.find_last_not_of(" \t\r\n", at);
        if (last == text.npos || text[last] != '}') continue;
        const auto first = text.substr(0, at + 1);
        text.remove_prefix(at + 1);
        return first;
    }
    return std::exchange(text, {});
}

std::vector<json::Document> read_objects(std::string_view text, const std::string& source,
                                         Problems& problems) {
    if (text.size() > largest_document)
        throw InvalidInput(source + ": expected at most " + std::to_string(largest_document) + " bytes");
    const auto start = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    std::vector<json::Document> out;
    if (start == text.npos || (text[start] != '{' && text[start] != '['))
        return json::Document::parse_yaml(text, source, problems);
    while (!text.empty()) {
        const auto name =
            out.empty() ? source : source + " (document " + std::to_string(out.size() + 1) + ")";
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

}  // namespace gpusched::io::detail

// SPDX-License-Identifier: Apache-2.0
#include "json/builder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/document.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace gpusched::json {

GPUSCHED_EXPORT Document Document::parse(std::string_view text, std::string_view source, Problems& problems) {
    Document document;
    document.source_ = source;
    if (text.size() > largest_document)
        throw InvalidInput(document.source_ + ": expected at most " + std::to_string(largest_document) +
                           " bytes");
    // The parser takes a NUL byte for the end and drops what follows.
    if (const auto at = text.find('\0'); at != text.npos && find_invalid_utf8(text) == text.npos)
        throw InvalidInput(
            document.source_ + ": line " +
            std::to_string(1 +
                           std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
            " holds a NUL byte");
    document.values_.reserve(text.size() / 16);
    detail::Builder builder(document, problems, text);
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) throw InvalidInput(builder.failure);
    return document;
}

GPUSCHED_EXPORT std::optional<std::uint32_t> Document::find(std::uint32_t object,
                                                            std::string_view key_asked) const {
    if (values_[object].kind != Kind::object) return std::nullopt;
    for (auto at = object + 1; at < values_[object].end; at = values_[at].end)
        if (key(values_[at]) == key_asked) return at;
    return std::nullopt;
}

GPUSCHED_EXPORT std::string Document::pointer(std::uint32_t at) const {
    std::string path;
    for (std::uint32_t here = 0; here != at;) {
        std::size_t position = 0;
        auto child = here + 1;
        for (; values_[child].end <= at; child = values_[child].end) ++position;
        path += '/';
        if (values_[here].kind == Kind::array) {
            path += std::to_string(position);
        } else {
            for (const char c : printable(key(values_[child]))) {
                if (c == '~')
                    path += "~0";
                else if (c == '/')
                    path += "~1";
                else
                    path += c;
            }
        }
        here = child;
    }
    return path;
}

GPUSCHED_EXPORT Document Document::part(std::uint32_t at) const {
    Document part;
    part.source_ = source_ + (at == 0 ? "" : ": " + pointer(at));
    part.values_.assign(values_.begin() + at, values_.begin() + values_[at].end);
    for (auto& value : part.values_) value.end -= at;
    part.strings_ = strings_;
    part.keys_ = keys_;
    return part;
}

GPUSCHED_EXPORT std::string Document::where(std::uint32_t at) const {
    return source_ + ": " + (at == 0 ? std::string() : pointer(at) + ": ");
}

GPUSCHED_EXPORT std::string Document::describe(std::uint32_t at) const {
    const auto& value = values_[at];
    switch (value.kind) {
    case Kind::null:
        return "null";
    case Kind::boolean:
        return value.integer != 0 ? "true" : "false";
    case Kind::integer:
        return std::to_string(value.integer);
    case Kind::string:
        return '"' + printable(string(value)) + '"';
    case Kind::array:
        return "an array";
    case Kind::object:
        return "an object";
    case Kind::real:
        break;
    }
    char digits[32];
    const auto [end, error] =
        std::to_chars(digits, digits + sizeof digits, value.real, std::chars_format::general);
    return {digits, end};
}

}  // namespace gpusched::json

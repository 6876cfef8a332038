// SPDX-License-Identifier: Apache-2.0
// Builder: from a parser's events to a Document. Include in bodies only.
#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/json/document.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace gpusched::json::detail {

/// Takes the parser's events. Returning false stops it.
struct Builder : DocumentBuilder {
    Problems& problems;
    std::string_view text;
    std::vector<std::uint32_t> last_owner{};  // by key: the object it was last seen in
    std::string failure{};

    Builder(Document& out, Problems& found, std::string_view parsed)
        : DocumentBuilder{out}, problems(found), text(parsed) {}

    bool start(Kind kind) {
        if (begin(kind)) return true;
        failure =
            document.where(open.back()) + "nested deeper than " + std::to_string(deepest_nesting) + " levels";
        return false;
    }

    bool null() { return add_null(), true; }
    bool boolean(bool value) { return add_boolean(value), true; }
    bool number_integer(std::int64_t value) { return add_integer(value), true; }
    bool number_unsigned(std::uint64_t value) {
        if (value <= INT64_MAX) return number_integer(static_cast<std::int64_t>(value));
        return number_float(static_cast<double>(value), {});
    }
    bool number_float(double value, const std::string&) { return add_real(value), true; }
    bool string(const std::string& value) { return add_string(value), true; }
    bool binary(const nlohmann::json::binary_t&) { return false; }  // JSON text has none
    bool start_object(std::size_t) { return start(Kind::object); }
    bool start_array(std::size_t) { return start(Kind::array); }
    bool end_array() { return end(), true; }
    bool key(const std::string& value) { return set_key(value), true; }
    bool end_object() {
        const auto object = open.back();
        end();
        const auto& values = document.values_;
        last_owner.resize(document.keys_.size(), UINT32_MAX);
        for (auto at = object + 1; at < values[object].end; at = values[at].end) {
            auto& owner = last_owner[values[at].key];
            if (owner == object)  // JSON allows it, and readers disagree about which one counts
                problems.add(problems.full() ? std::string()
                                             : document.where(object) + "key " +
                                                   gpusched::quoted(printable(document.key(values[at]))) +
                                                   " appears more than once");
            owner = object;
        }
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
        // Without the exception's number and its own idea of the position.
        std::string_view what = error.what();
        if (const auto at = what.find("] "); at != what.npos) what.remove_prefix(at + 2);
        if (what.starts_with("parse error at "))
            if (const auto at = what.find(": "); at != what.npos) what.remove_prefix(at + 2);
        const auto before = text.substr(0, std::min(position, text.size()));
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const auto column =
            std::max<std::size_t>(1, before.size() - (before.rfind('\n') + 1));  // npos + 1 = 0
        failure = document.source_ + ":" + std::to_string(line) + ":" + std::to_string(column) +
                  ": not a JSON document: " + printable(what, 300);
        return false;
    }
};

}  // namespace gpusched::json::detail

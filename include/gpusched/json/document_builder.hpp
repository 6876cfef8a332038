// DocumentBuilder: a Document made value by value, in the order of its text.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/json/document.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::json {

/// Adds values to a document: a value after its key in an object, and what an array or object holds between `begin` and `end`.
struct DocumentBuilder {
    Document& document;
    std::vector<std::uint32_t> open{};  // arrays and objects that have not ended
    std::uint32_t next_key = 0;

    /// An empty document.
    static Document start(std::string source) {
        Document document;
        document.source_ = std::move(source);
        return document;
    }
    Value& add(Kind kind) {
        auto& values = document.values_;
        if (!open.empty()) ++values[open.back()].size;
        auto& value = values.emplace_back();
        value.kind = kind;
        value.key = next_key;
        value.end = static_cast<std::uint32_t>(values.size());
        return value;
    }
    /// @return false, and nothing is added, where that would be nested too deeply
    [[nodiscard]] bool begin(Kind kind) {
        if (open.size() == deepest_nesting) return false;
        add(kind).end = UINT32_MAX;  // until it ends, everything that follows is inside
        open.push_back(static_cast<std::uint32_t>(document.values_.size() - 1));
        return true;
    }
    void end() {
        document.values_[open.back()].end = static_cast<std::uint32_t>(document.values_.size());
        open.pop_back();
    }

    void add_null() { add(Kind::null); }
    void add_boolean(bool value) { add(Kind::boolean).integer = value; }
    void add_integer(std::int64_t value) { add(Kind::integer).integer = value; }
    void add_real(double value) { add(Kind::real).real = value; }
    void add_string(std::string_view value) {
        auto& added = add(Kind::string);
        added.integer = static_cast<std::int64_t>(document.strings_.size());
        added.size = static_cast<std::uint32_t>(value.size());
        document.strings_ += value;
    }
    void set_key(std::string_view key) { next_key = document.keys_.intern(key).first; }
    /// The value that was added last.
    [[nodiscard]] std::uint32_t last() const {
        return static_cast<std::uint32_t>(document.values_.size() - 1);
    }
};

}  // namespace GPUSCHED_NAMESPACE::json

// SPDX-License-Identifier: Apache-2.0
// Document: a parsed JSON text as one flat array of values that know their positions, and DocumentBuilder,
// which makes one.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/core/name_table.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::json {

struct DocumentBuilder;

/// Deepest nesting of arrays and objects; no document needs more.
inline constexpr std::size_t deepest_nesting = 64;

enum class Kind : std::uint8_t { null, boolean, integer, real, string, array, object };

/// One value. The content of an array or object follows it; `end` is the first value after that content.
struct Value {
    Kind kind = Kind::null;
    std::uint32_t key = 0;  ///< of an object's member: index of its key
    std::uint32_t end = 0;
    std::uint32_t size = 0;  ///< elements, members, or bytes of a string
    union {
        std::int64_t integer = 0;  ///< also a boolean, and the offset of a string's bytes
        double real;               ///< any number that is not an integer literal within 64 bits
    };
};

/// A parsed text. Reading is linear in its size and takes 24 bytes per value in addition to strings; nesting
/// needs no stack.
class Document {
  public:
    /// Parses UTF-8 text (RFC 8259; a byte order mark is skipped). Keys that occur twice in an object are
    /// added to `problems`.
    /// @throws InvalidInput with line and column if the text is not JSON, too large or nested too deeply
    static Document parse(std::string_view text, std::string_view source, Problems& problems);
    /// The same for YAML text, which may hold several documents; empty ones are left out.
    /// @throws BackendError if the library was built without libyaml
    static std::vector<Document> parse_yaml(std::string_view text, std::string_view source,
                                            Problems& problems);

    /// The only document of a file: YAML if its name ends in .yaml or .yml, else JSON.
    /// @throws BackendError if the file cannot be read, and for YAML as above; InvalidInput as above
    static Document read(const std::string& path, Problems& problems);

    [[nodiscard]] const Value& operator[](std::uint32_t at) const noexcept { return values_[at]; }
    [[nodiscard]] std::string_view string(const Value& value) const noexcept {
        return std::string_view(strings_).substr(static_cast<std::size_t>(value.integer), value.size);
    }
    [[nodiscard]] std::string_view key(const Value& value) const noexcept { return keys_[value.key]; }

    /// Positions of the elements of an array or of the members of an object, in order; a range for loops.
    class Children {
      public:
        struct Iterator {
            const Value* values;
            std::uint32_t at;
            std::uint32_t operator*() const noexcept { return at; }
            Iterator& operator++() noexcept {
                at = values[at].end;
                return *this;
            }
            bool operator==(const Iterator& other) const noexcept { return at == other.at; }
        };
        Children(const Value* values, std::uint32_t parent) : values_(values), parent_(parent) {}
        [[nodiscard]] Iterator begin() const noexcept { return {values_, parent_ + 1}; }
        [[nodiscard]] Iterator end() const noexcept { return {values_, values_[parent_].end}; }

      private:
        const Value* values_;
        std::uint32_t parent_;
    };
    [[nodiscard]] Children children(std::uint32_t at) const noexcept { return {values_.data(), at}; }

    /// The member of an object; none if it has no such key, or the value is not an object.
    [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t object, std::string_view key) const;

    /// JSON pointer (RFC 6901) of a value; empty for the whole document. Searches from the top, or from the
    /// value before it that this thread searched last.
    [[nodiscard]] std::string pointer(std::uint32_t at) const;
    /// Source and pointer, for the start of a message.
    [[nodiscard]] std::string where(std::uint32_t at) const;
    /// The value, or its kind, for messages.
    [[nodiscard]] std::string describe(std::uint32_t at) const;

    /// A value as a document of its own; its source is its position in this one.
    [[nodiscard]] Document part(std::uint32_t at) const;

  private:
    friend struct DocumentBuilder;
    /// Differs for documents with different content.
    static std::uint64_t next_id() noexcept;

    std::uint64_t id_ = next_id();
    std::string source_;
    std::vector<Value> values_;
    std::string strings_;
    NameTable keys_;
};

/// Adds values to a document: a value after its key in an object, and the content of an array or object
/// between `begin` and `end`.
struct DocumentBuilder {
    Document& document;
    std::vector<std::uint32_t> open{};  // arrays and objects that have not ended
    std::uint32_t next_key = 0;

    /// An empty document.
    static Document start(std::string source, std::size_t values = 0) {
        Document document;
        document.source_ = std::move(source);
        document.values_.reserve(values);
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
    /// @return false, without adding anything, if the nesting would be too deep
    [[nodiscard]] bool begin(Kind kind) {
        if (open.size() == deepest_nesting) return false;
        add(kind).end = UINT32_MAX;  // until it ends, everything that follows is inside
        open.push_back(last());
        return true;
    }
    void end() {
        document.values_[open.back()].end = last() + 1;
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
    /// Renames a member to a name that readers ignore.
    void hide(std::uint32_t member) {
        auto& value = document.values_[member];
        value.key = document.keys_.intern("x-" + std::string(document.key(value))).first;
    }
    void set_key(std::string_view key) { next_key = document.keys_.intern(key).first; }
    [[nodiscard]] std::size_t key_count() const { return document.keys_.size(); }
    /// The value that was added last.
    [[nodiscard]] std::uint32_t last() const {
        return static_cast<std::uint32_t>(document.values_.size() - 1);
    }
    [[nodiscard]] bool empty() const { return document.values_.empty(); }
};

/// Whether the library was built with libyaml. Without it, readers of YAML or JSON read JSON only and throw
/// BackendError for anything else.
[[nodiscard]] bool reads_yaml() noexcept;

}  // namespace gpusched::json

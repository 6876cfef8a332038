// SPDX-License-Identifier: Apache-2.0
// Writer: writes structs as JSON text.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/json/forms.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::json {

/// The layout of a document.
struct Style {
    int indent = 0;  ///< blanks per level, 0 to 16; 0: all on one line, without blanks
    /// With an indent: whether each value takes a line. Otherwise only each field of the document does, and
    /// each object of its lists; everything deeper stays on that line.
    bool line_per_value = false;
    bool point = false;      ///< real numbers have a point or an exponent: 5.0
    bool mend_text = false;  ///< bytes that are not UTF-8 become U+FFFD; otherwise they are an error
};

namespace detail {
/// Appends a number with a point or an exponent.
void append_with_point(std::string& out, double value);
/// Appends text in quotation marks; bytes that are not UTF-8 become U+FFFD.
void append_mended(std::string& out, std::string_view value);
/// Appends text in quotation marks.
/// @throws InvalidInput if it is not UTF-8
void append_quoted(std::string& out, std::string_view value);
}  // namespace detail

/// Appends values to a text, with commas between them.
class Writer {
  public:
    /// @param surroundings context that forms need
    explicit Writer(std::string& out, Style style = {}, Surroundings surroundings = {})
        : out_(out), surroundings_(surroundings), style_(style) {}

    [[nodiscard]] const Surroundings& surroundings() const noexcept { return surroundings_; }

    template <class T>
    void write(const T& value) {
        if constexpr (requires { Form<T>::write(*this, value); })
            Form<T>::write(*this, value);
        else if constexpr (NamedEnum<T>)
            write_enumerator(value);
        else if constexpr (Described<T>)
            write_object(value);
        else if constexpr (std::integral<T>)
            write_number(value);
        else
            static_assert(!sizeof(T), "no JSON form");
    }
    void write(bool value) { out_ += value ? std::string_view("true") : std::string_view("false"); }
    void write(double value) {
        if (!std::isfinite(value)) throw InvalidInput("JSON has no number for " + std::to_string(value));
        if (style_.point)
            detail::append_with_point(out_, value);
        else
            write_number(value);
    }
    void write(const std::string& value) { write(std::string_view(value)); }
    void write(std::string_view value) {
        if (style_.mend_text)
            detail::append_mended(out_, value);
        else
            detail::append_quoted(out_, value);
    }
    void write_null() { out_ += std::string_view("null"); }
    /// A number, or null if it is not finite.
    void write_or_null(double value) {
        if (std::isfinite(value))
            write(value);
        else
            write_null();
    }
    template <class T>
    void write(const std::optional<T>& value) {
        write_field(value);
    }
    template <class T>
    void write(const std::vector<T>& values) {
        write_field(values);
    }
    template <class T>
    void write(const std::map<std::string, T>& values) {
        write_members(values);
    }
    template <class T>
    void write(const ByName<T>& values) {
        write_members(values.entries);
    }

    template <class T>
    void write_object(const T& value) {
        begin('{', depth_ == 0);
        write_fields(value);
        end('}');
    }

    /// The document of the given format and version.
    template <class T>
    void write_document(std::string_view format, int version, const T& value) {
        begin('{', depth_ == 0);
        write_key("format");
        write(format);
        write_key("version");
        write_number(version);
        write_fields(value);
        end('}');
    }

    /// A value by the rules of its field.
    template <class T, class... Rules>
    void write_field(const T& value, const Rules&... rules) {
        if constexpr ((HasForm<Rules> || ...)) {
            const auto by_mark = [&](const auto& rule) {
                using Mark = std::remove_cvref_t<decltype(rule)>;
                if constexpr (HasForm<Mark>) MarkedForm<Mark>::write(*this, value);
            };
            (by_mark(rules), ...);
        } else if constexpr (std::floating_point<T> && detail::has_mark<NullIfUnknown, Rules...>) {
            write_or_null(value);
        } else if constexpr (requires { value.has_value(); }) {
            if (value)
                write_field(*value, rules...);
            else
                write_null();
        } else if constexpr (detail::is_list<T>) {
            begin('[', Described<typename T::value_type> && depth_ == 1);
            for (const auto& element : value) {
                next();
                write_field(element, rules...);
            }
            end(']');
        } else {
            write(value);
        }
    }

    // The parts of arrays and objects. Each value of an array comes after `next`, each of an object after
    // `write_key` or `write_name`.

    /// @param bracket `[` or `{`
    /// @param lines   with an indent, each value takes a line in any case
    void begin(char bracket, bool lines = false) {
        out_ += bracket;
        ++depth_;
        first_ = true;
        lines_ = lines_ << 1 | (lines || style_.line_per_value ? 1u : 0u);
    }
    /// A comma after the previous value, then a blank or a new line.
    void next() {
        if (!first_) out_ += ',';
        if (style_.indent > 0) {
            if ((lines_ & 1) != 0)
                new_line();
            else if (!first_)
                out_ += ' ';
        }
        first_ = false;
    }
    /// `next` and null.
    void write_next_null() {
        if (style_.indent == 0) {
            out_ += std::exchange(first_, false) ? std::string_view("null") : std::string_view(",null");
        } else {
            next();
            write_null();
        }
    }
    /// `next` and a value.
    template <class T>
    void write_next(const T& value) {
        if constexpr (std::integral<T> && !std::is_same_v<T, bool>) {
            if (style_.indent == 0) return write_number<true>(value);
        } else if constexpr (std::is_same_v<T, double>) {
            if (style_.indent == 0 && !style_.point && std::isfinite(value)) return write_number<true>(value);
        }
        next();
        write(value);
    }
    /// @param name of a field, without characters to escape
    void write_key(std::string_view name) {
        if (style_.indent == 0) {
            out_ += std::exchange(first_, false) ? std::string_view("\"") : std::string_view(",\"");
            out_ += name;
            out_ += std::string_view("\":");
        } else {
            next();
            out_ += '"';
            out_ += name;
            out_ += std::string_view("\": ");
        }
    }
    /// @param name any text
    void write_name(std::string_view name) {
        next();
        write(name);
        out_ += style_.indent > 0 ? std::string_view(": ") : std::string_view(":");
    }
    /// @param bracket `]` or `}`
    void end(char bracket) {
        const bool line = (lines_ & 1) != 0 && !first_ && style_.indent > 0;
        lines_ >>= 1;
        --depth_;
        if (line) new_line();
        out_ += bracket;
        first_ = false;
    }

  private:
    template <class T>
    void write_fields(const T& value) {
        visit_written_fields(value, [&](const char* name, const auto& part, const auto&... rules) {
            static_assert(detail::knows_rules<decltype(rules)...>,
                          "documents do not know a mark of this table; give it a json::MarkedForm");
            write_key(name);
            write_field(part, rules...);
        });
    }
    template <class Entries>
    void write_members(const Entries& entries) {
        begin('{');
        for (const auto& [name, value] : entries) {
            write_name(name);
            write(value);
        }
        end('}');
    }
    template <class E>
    void write_enumerator(E value) {
        static constexpr auto names = enumerators<E>();
        for (const auto& [known, name] : names)
            if (known == value) return write(std::string_view(name));
        throw InvalidInput("enumerator " + std::to_string(static_cast<int>(value)) + " has no name");
    }
    /// @param is_next after a comma unless it is the first
    template <bool is_next = false, class Number>
    void write_number(Number value) {
        char text[33];
        char* digits = text;
        if (is_next && !std::exchange(first_, false)) *digits++ = ',';
        const auto* const end = std::to_chars(digits, text + sizeof text, value).ptr;
        out_.append(text, static_cast<std::size_t>(end - text));
    }
    void new_line() {
        out_ += '\n';
        out_.append(static_cast<std::size_t>(depth_ * style_.indent), ' ');
    }

    std::string& out_;
    Surroundings surroundings_;
    Style style_;
    int depth_ = 0;
    // A bit per open array or object, the innermost last: each of its values takes a line.
    std::uint64_t lines_ = 0;
    bool first_ = true;
};

/// The document of the given format and version. With an indent it ends with a new line.
/// @throws InvalidInput for an indent outside 0 .. 16, numbers that are not finite, and text that is not
///         UTF-8
template <class T>
std::string write_document(std::string_view format, const T& value, const Style& style, int version = 1,
                           Surroundings surroundings = {}) {
    require_range("indent", style.indent, 0, 16);
    std::string out;
    Writer(out, style, surroundings).write_document(format, version, value);
    if (style.indent > 0) out += '\n';
    return out;
}

}  // namespace gpusched::json

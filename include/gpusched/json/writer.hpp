// Writer: from structs to JSON text.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/forms.hpp>

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::json {

/// Appends values to `text()`. With an indent, each field of the document takes a line, and so does each object of
/// its lists; everything deeper stays on that line.
class Writer {
  public:
    /// @param label_levels the label keys that levels of the document may be
    explicit Writer(int indent, std::span<const std::string> label_levels = {})
        : label_levels_(label_levels), indent_(indent) {}

    [[nodiscard]] std::span<const std::string> label_levels() const noexcept { return label_levels_; }

    [[nodiscard]] std::string take() && { return std::move(out_); }

    template <class T>
    void write(const T& value) {
        if constexpr (requires { Form<T>::write(*this, value); })
            Form<T>::write(*this, value);
        else if constexpr (NamedEnum<T>)
            write_name(value);
        else if constexpr (Described<T>)
            write_object(value);
        else if constexpr (std::integral<T>)
            write_number(value);
        else
            static_assert(!sizeof(T), "no JSON form");
    }
    void write(bool value) { out_ += value ? "true" : "false"; }
    void write(double value) {
        if (!std::isfinite(value)) throw InvalidInput("JSON has no number for " + std::to_string(value));
        write_number(value);
    }
    void write(const std::string& value) { write(std::string_view(value)); }
    void write(std::string_view value) {
        if (find_invalid_utf8(value) != std::string_view::npos)
            throw InvalidInput("JSON cannot hold " + gpusched::quoted(printable(value)) +
                               ", which is not UTF-8");
        out_ += '"';
        for (const char c : value) write_character(c);
        out_ += '"';
    }
    void write_null() { out_ += "null"; }
    template <class T>
    void write(const std::optional<T>& value) {
        value ? write(*value) : write_null();
    }
    template <class T>
    void write(const std::vector<T>& values) {
        const bool lines = Described<T> && depth_ == 1;
        begin('[');
        for (const auto& value : values) {
            next(lines);
            write(value);
        }
        end(']', lines && !values.empty());
    }
    template <class T>
    void write(const std::map<std::string, T>& values) {
        begin('{');
        for (const auto& [key, value] : values) {
            write_key(key, false);
            write(value);
        }
        end('}', false);
    }

    template <class T>
    void write_object(const T& value) {
        begin('{');
        write_fields(value);
        end('}', false);
    }

    template <class T>
    void write_document(std::string_view format, int version, const T& value) {
        begin('{');
        write_key("format", true);
        write(format);
        write_key("version", true);
        write_number(version);
        write_fields(value);
        end('}', true);
        if (indent_ > 0) out_ += '\n';
    }

  private:
    template <class T>
    void write_fields(const T& value) {
        visit_written_fields(value, [&](const char* name, const auto& part, const auto&... rules) {
            write_key(name, depth_ == 1);
            const auto by_mark = [&](const auto& rule) {
                using Mark = std::remove_cvref_t<decltype(rule)>;
                if constexpr (HasForm<Mark>) MarkedForm<Mark>::write(*this, part);
            };
            if constexpr ((HasForm<std::remove_cvref_t<decltype(rules)>> || ...))
                (by_mark(rules), ...);
            else
                write(part);
        });
    }
    void write_key(std::string_view key, bool line) {
        next(line);
        write(key);
        out_ += indent_ > 0 ? ": " : ":";
    }
    template <class E>
    void write_name(E value) {
        static constexpr auto names = enum_names(E{});
        for (const auto& [known, name] : names)
            if (known == value) return write(std::string_view(name));
        throw InvalidInput("enumerator " + std::to_string(static_cast<int>(value)) + " has no name");
    }
    template <class Number>
    void write_number(Number value) {
        char digits[32];
        out_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
    }
    void write_character(char c) {
        static constexpr char hex[] = "0123456789abcdef";
        switch (c) {
        case '"':
            out_ += "\\\"";
            return;
        case '\\':
            out_ += "\\\\";
            return;
        case '\n':
            out_ += "\\n";
            return;
        case '\r':
            out_ += "\\r";
            return;
        case '\t':
            out_ += "\\t";
            return;
        default:
            break;
        }
        const auto byte = static_cast<std::uint8_t>(c);
        if (byte < 0x20 || byte == 0x7F)
            out_ += {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
        else
            out_ += c;
    }
    void begin(char bracket) {
        out_ += bracket;
        ++depth_;
        first_ = true;
    }
    /// Before an element: a comma after the one before it, then a space or a new line.
    void next(bool line) {
        if (!first_) out_ += ',';
        if (line && indent_ > 0)
            new_line();
        else if (!first_ && indent_ > 0)
            out_ += ' ';
        first_ = false;
    }
    void end(char bracket, bool line) {
        --depth_;
        if (line && indent_ > 0) new_line();
        out_ += bracket;
        first_ = false;
    }
    void new_line() {
        out_ += '\n';
        out_.append(static_cast<std::size_t>(depth_ * indent_), ' ');
    }

    std::string out_;
    std::span<const std::string> label_levels_;
    int indent_;
    int depth_ = 0;
    bool first_ = true;
};

/// The document of the given format and version.
/// @throws InvalidInput for an indent outside 0 .. 16 and for text that is not UTF-8
template <class T>
std::string write_document(std::string_view format, const T& value, int indent, int version = 1,
                           std::span<const std::string> label_levels = {}) {
    require_range("indent", indent, 0, 16);
    Writer writer(indent, label_levels);
    writer.write_document(format, version, value);
    return std::move(writer).take();
}

}  // namespace GPUSCHED_NAMESPACE::json

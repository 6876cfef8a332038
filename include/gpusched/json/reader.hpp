// SPDX-License-Identifier: Apache-2.0
// Reader: reads structs from a parsed document and reports every mismatch.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/core/enum_names.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/json/document.hpp>
#include <gpusched/json/forms.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::json {

/// Reads values by type. A value that does not fit is reported, and the target keeps its default.
class Reader {
  public:
    /// @param surroundings context that forms need
    Reader(const Document& document, Problems& problems, int version = 1, Surroundings surroundings = {})
        : document_(document), problems_(problems), version_(version), surroundings_(surroundings) {}

    [[nodiscard]] const Document& document() const noexcept { return document_; }
    /// Of the format.
    [[nodiscard]] int version() const noexcept { return version_; }
    [[nodiscard]] const Surroundings& surroundings() const noexcept { return surroundings_; }
    /// The position of a field; the object's own position if it has no such field, or is not an object.
    [[nodiscard]] std::uint32_t place_of(std::uint32_t object, std::string_view key) const {
        return document_.find(object, key).value_or(object);
    }
    [[nodiscard]] Kind kind(std::uint32_t at) const noexcept { return document_[at].kind; }

    /// The number of problems so far.
    [[nodiscard]] std::size_t problem_count() const noexcept { return problems_.count(); }
    /// False after any problem except a number outside the range of its field, which is clamped.
    [[nodiscard]] bool well_formed() const noexcept { return well_formed_; }

    void report(std::uint32_t at, std::string_view what) {
        well_formed_ = false;
        add(at, what);
    }
    void expected(std::uint32_t at, std::string_view what) {
        well_formed_ = false;
        add_expected(at, what);
    }

    template <class T>
    void read(std::uint32_t at, T& out) {
        if constexpr (requires { Form<T>::read(*this, at, out); })
            Form<T>::read(*this, at, out);
        else if constexpr (NamedEnum<T>)
            read_name(at, out);
        else if constexpr (Described<T>)
            read_object(at, out);
        else if constexpr (std::integral<T>)
            read_integer(at, out, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
        else
            static_assert(!sizeof(T), "no JSON form");
    }
    void read(std::uint32_t at, bool& out) {
        if (kind(at) != Kind::boolean) return expected(at, "true or false");
        out = document_[at].integer != 0;
    }
    void read(std::uint32_t at, double& out) {
        if (kind(at) == Kind::integer)
            out = static_cast<double>(document_[at].integer);
        else if (kind(at) == Kind::real)
            out = document_[at].real;
        else
            expected(at, "a number");
    }
    void read(std::uint32_t at, std::string& out) {
        if (kind(at) != Kind::string) return expected(at, "a string");
        out = document_.string(document_[at]);
    }
    template <class T>
    void read(std::uint32_t at, std::optional<T>& out) {
        read_field(at, out);
    }
    template <class T>
    void read(std::uint32_t at, std::vector<T>& out) {
        read_field(at, out);
    }
    template <class T>
    void read(std::uint32_t at, std::map<std::string, T>& out) {
        each_member(at,
                    [&](std::string_view key, std::uint32_t child) { read(child, out[std::string(key)]); });
    }
    template <class T>
    void read(std::uint32_t at, ByName<T>& out) {
        if (kind(at) != Kind::object) return expected(at, "an object by name");
        each_member(at, [&](std::string_view name, std::uint32_t child) {
            read(child, out.entries.emplace_back(std::string(name), T{}).second);
        });
    }

    /// Calls `each(key, at)` for the members of an object; anything else is reported.
    template <class F>
    void each_member(std::uint32_t at, const F& each) {
        if (kind(at) != Kind::object) return expected(at, "an object");
        for (const auto child : document_.children(at)) each(document_.key(document_[child]), child);
    }
    /// Calls `each(at)` for the elements of an array; anything else is reported.
    template <class F>
    void each_element(std::uint32_t at, const F& each) {
        if (kind(at) != Kind::array) return expected(at, "an array");
        for (const auto child : document_.children(at)) each(child);
    }

    /// An integer; `1.0` and `1e3` are accepted, too.
    template <std::integral T>
    void read_integer(std::uint32_t at, T& out, T low, T high) {
        const auto& value = document_[at];
        const bool real = value.kind == Kind::real && value.real == std::trunc(value.real);
        const bool exact = value.kind == Kind::integer || (real && std::abs(value.real) <= 0x1p53);
        const auto number = exact && real ? static_cast<std::int64_t>(value.real) : value.integer;
        if (exact && std::in_range<T>(number) && static_cast<T>(number) >= low &&
            static_cast<T>(number) <= high)
            out = static_cast<T>(number);
        else if ((exact || real) && low == high)
            expected(at, std::to_string(low));
        else if (real && std::abs(value.real) < 0x1p63 &&
                 std::in_range<T>(static_cast<std::int64_t>(value.real)) && value.real >= double(low) &&
                 value.real <= double(high))
            expected(at, "an integer in digits alone, because it is beyond 2^53");  // not exact as a double
        else if (exact || real)
            expected(at, integer_text(low, high));
        else
            expected(at, "an integer");
    }

    /// An object with the fields of `T`, other fields that the caller reads, and keys that begin with "x-".
    template <Described T>
    void read_object(std::uint32_t at, T& out, std::span<const std::string_view> other_fields = {}) {
        read_members<true>(at, out, other_fields);
    }
    /// An object that may have any other fields.
    template <Described T>
    void read_part(std::uint32_t at, T& out) {
        read_members<false>(at, out, {});
    }

    /// Reports absent fields with defaults that break the rules of the field.
    template <Described T>
    void require_given(std::uint32_t at, const T& object) {
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
            [[maybe_unused]] const auto is_kept = [&](const auto& rule) {
                using Rule = std::remove_cvref_t<decltype(rule)>;
                if constexpr (gpusched::detail::RangeRule<Rule> &&
                              std::is_arithmetic_v<std::remove_cvref_t<decltype(object.*member)>>)
                    return gpusched::detail::keeps(object.*member, rule);
                else
                    return true;
            };
            if (!(is_kept(rules) && ...) && !document_.find(at, name)) report_missing(at, name);
        });
    }
    /// Reports that an object lacks a field.
    void report_missing(std::uint32_t at, std::string_view name) {
        report(at, "field " + gpusched::quoted(name) + " is missing");
    }

    /// Reports an unknown field.
    /// @param known  the allowed names, in addition to those that begin with "x-"
    void report_unknown(std::uint32_t at, std::span<const std::string_view> known) {
        if (problems_.full()) return report(at, {});
        std::string names;
        for (const auto key : known) names.append(key).append(", ");
        report(at, "unknown field; expected one of " + names + "or a name that begins with x-" +
                       did_you_mean(document_.key(document_[at]), known));
    }

    /// A value by the rules of its field.
    template <class T, class... Rules>
    void read_field(std::uint32_t at, T& out, const Rules&... rules) {
        if constexpr ((HasForm<Rules> || ...)) {
            const auto by_mark = [&](const auto& rule) {
                using Mark = std::remove_cvref_t<decltype(rule)>;
                if constexpr (HasForm<Mark>) MarkedForm<Mark>::read(*this, at, out);
            };
            (by_mark(rules), ...);
        } else if constexpr (detail::has_mark<NullIsEmpty, Rules...>) {
            if (kind(at) != Kind::null) read(at, out);
        } else if constexpr (detail::has_mark<OneOrList, Rules...>) {
            if (kind(at) == Kind::object)
                read(at, out.emplace_back());
            else
                read(at, out);
        } else if constexpr (requires { Form<T>::read(*this, at, out); }) {
            Form<T>::read(*this, at, out);
        } else if constexpr (std::integral<T> && !std::is_same_v<T, bool>) {
            const auto range = range_of<T>(rules...);
            const auto& value = document_[at];
            if (value.kind == Kind::integer && std::in_range<T>(value.integer) &&
                (static_cast<T>(value.integer) < range.low || static_cast<T>(value.integer) > range.high)) {
                add_expected(at, integer_text(range.low, range.high));
                out = std::clamp(static_cast<T>(value.integer), range.low, range.high);
                return;
            }
            read_integer(at, out, range.low, range.high);
            if (const int needed = std::max({1, detail::version_by(out, rules)...}); needed > version_)
                report(at, std::to_string(out) + " needs version " + std::to_string(needed) +
                               "; this document says version " + std::to_string(version_));
        } else if constexpr (std::floating_point<T>) {
            read_number<detail::has_mark<NullIfUnknown, Rules...>>(at, out, rules...);
        } else if constexpr (requires { out.has_value(); }) {
            if (kind(at) != Kind::null) read_field(at, out.emplace(), rules...);
        } else if constexpr (detail::is_list<T>) {
            if (kind(at) != Kind::array) return expected(at, "an array");
            out.clear();
            out.reserve(document_[at].size);
            for (const auto child : document_.children(at)) read_field(child, out.emplace_back(), rules...);
        } else {
            read(at, out);
        }
    }

  private:
    /// @param strict other fields are errors
    template <bool strict, Described T>
    void read_members(std::uint32_t at, T& out, std::span<const std::string_view> other_fields) {
        if (kind(at) != Kind::object) return expected(at, "an object");
        static const auto table = make_table<T>();
        std::array<bool, count_fields<T>()> seen{};
        std::size_t next = 0;  // keys mostly come in the order of the table
        for (const auto child : document_.children(at)) {
            const auto key = document_.key(document_[child]);
            std::size_t tried = 0;
            while (tried < table.size() && table[next].key != key) {
                next = next + 1 < table.size() ? next + 1 : 0;
                ++tried;
            }
            if (tried < table.size()) {
                seen[next] = true;
                if (table[next].version > version_)
                    report_newer(child, table[next].version);
                else
                    table[next].read(*this, child, out);
            } else if (strict && !key.starts_with("x-") &&
                       std::find(other_fields.begin(), other_fields.end(), key) == other_fields.end()) {
                std::vector<std::string_view> names(other_fields.begin(), other_fields.end());
                for (const auto& entry : table)
                    if (entry.version <= version_) names.emplace_back(entry.key);
                report_unknown(child, names);
            }
        }
        for (std::size_t i = 0; i < table.size(); ++i)
            if (table[i].required && !seen[i]) report_missing(at, table[i].key);
    }
    void add(std::uint32_t at, std::string_view what) {
        problems_.add(problems_.full() ? std::string() : document_.where(at) + std::string(what));
    }
    void add_expected(std::uint32_t at, std::string_view what) {
        problems_.add(problems_.full() ? std::string()
                                       : document_.where(at) + "expected " + std::string(what) + ", found " +
                                             document_.describe(at));
    }
    template <std::integral T>
    static std::string integer_text(T low, T high) {
        return "an integer from " + std::to_string(low) + " to " + std::to_string(high);
    }
    /// Whether a field can hold a value of this kind. Extensions of other programs can have the same key.
    template <class T>
    static constexpr bool takes(const T&, Kind kind) {
        using Held = gpusched::json::detail::InlinedPart<T>;
        return kind == (std::is_same_v<Held, std::string> ? Kind::string
                        : std::is_same_v<Held, bool>      ? Kind::boolean
                                                          : Kind::object);
    }
    template <class T>
    struct Entry {
        std::string_view key;
        bool required;
        int version;
        std::function<void(Reader&, std::uint32_t, T&)> read;
    };
    template <class T>
    static constexpr std::size_t count_fields() {
        std::size_t count = 0;
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&... rules) {
            if constexpr (detail::has_mark<Inlined, decltype(rules)...>)
                count += count_fields<
                    detail::InlinedPart<std::remove_cvref_t<decltype(std::declval<T&>().*member)>>>();
            else
                ++count;
        });
        return count;
    }
    template <class T>
    static std::vector<Entry<T>> make_table() {
        std::vector<Entry<T>> table;
        visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
            if constexpr (detail::has_mark<Inlined, decltype(rules)...>) {
                using Part = detail::InlinedPart<std::remove_cvref_t<decltype(std::declval<T&>().*member)>>;
                for (const auto& part : make_table<Part>())
                    table.push_back({part.key, part.required, part.version,
                                     [member, read = part.read](Reader& reader, std::uint32_t at, T& out) {
                                         read(reader, at, detail::part_to_read(out.*member));
                                     }});
            } else {
                static_assert(detail::knows_rules<decltype(rules)...>,
                              "documents do not know a mark of this table; give it a json::MarkedForm");
                static_assert(detail::checks_range<std::remove_cvref_t<decltype(std::declval<T&>().*member)>,
                                                   std::remove_cvref_t<decltype(rules)>...>,
                              "documents cannot check the range of a field of this table");
                table.push_back({name, detail::has_mark<Required, decltype(rules)...>,
                                 std::max({1, detail::version_by(rules)...}),
                                 [member, rules..., is_extension = std::string_view(name).starts_with("x-")](
                                     Reader& reader, std::uint32_t at, T& out) {
                                     if (is_extension && !takes(out.*member, reader.kind(at))) return;
                                     reader.read_field(at, out.*member, rules...);
                                 }});
            }
        });
        return table;
    }
    /// A number by the rules of its field; one that breaks a rule is reported, and the target keeps its
    /// default.
    template <bool null_if_unknown, std::floating_point T, class... Rules>
    void read_number(std::uint32_t at, T& out, const Rules&... rules) {
        if (null_if_unknown && kind(at) == Kind::null) {
            out = std::numeric_limits<T>::quiet_NaN();
            return;
        }
        T value = out;
        read(at, value);
        if (kind(at) != Kind::integer && kind(at) != Kind::real) return;
        [[maybe_unused]] const auto is_kept = [&](const auto& rule) {
            if constexpr (gpusched::detail::RangeRule<std::remove_cvref_t<decltype(rule)>>) {
                if (gpusched::detail::keeps(value, rule)) return true;
                add_expected(at, detail::number_expected<T>(rule));
                return false;
            } else {
                return true;
            }
        };
        if ((is_kept(rules) && ...)) out = value;
    }
    void report_newer(std::uint32_t at, int version) {
        report(at, "is a field of version " + std::to_string(version) + "; this document says version " +
                       std::to_string(version_));
    }
    template <class E>
    void read_name(std::uint32_t at, E& out) {
        static constexpr auto names = enumerators<E>();
        for (const auto& [value, name] : names) {
            if (kind(at) == Kind::string && document_.string(document_[at]) == name) {
                out = value;
                return;
            }
        }
        std::string known;
        std::vector<std::string_view> all;
        for (const auto& row : names) {
            if (!all.empty()) known += all.size() + 1 < names.size() ? ", " : " or ";
            known += '"' + std::string(row.name) + '"';
            all.push_back(row.name);
        }
        if (kind(at) == Kind::string && !problems_.full())
            report(at, "expected " + known + ", found " + document_.describe(at) +
                           did_you_mean(document_.string(document_[at]), all));
        else
            expected(at, known);
    }

    const Document& document_;
    Problems& problems_;
    int version_;
    Surroundings surroundings_;
    bool well_formed_ = true;
};

/// A format of documents.
struct Format {
    std::string_view name;
    int newest = 1;                                    ///< versions 1 to this one are read
    std::span<const std::string_view> other_fields{};  ///< fields of the document that others read
    bool implied = false;  ///< a document without a format and version has the newest version
    bool partly = false;   ///< unknown fields of the document are ignored
};

/// Reads the fields of a document of a format.
/// @param at its position: 0 unless it is part of another document
/// @return its version; 0 if it is no such document, so that nothing was read
template <class T>
int read_fields(const Document& document, const Format& format, Problems& problems, T& out,
                Surroundings surroundings = {}, std::uint32_t at = 0) {
    Reader reader(document, problems);
    if (document[at].kind != Kind::object) {
        reader.expected(at, "an object");
        return 0;
    }
    // A document of another format would only give a list of unknown fields.
    const auto name = document.find(at, "format"), number = document.find(at, "version");
    bool named = !name && format.implied;
    if (name) {
        named = document[*name].kind == Kind::string && document.string(document[*name]) == format.name;
        if (!named) reader.expected(*name, '"' + std::string(format.name) + '"');
    }
    int version = !number && format.implied ? format.newest : 0;
    if (number) reader.read_integer(*number, version, 1, format.newest);
    if (named && version >= 1) {
        std::vector<std::string_view> header{"format", "version"};
        header.insert(header.end(), format.other_fields.begin(), format.other_fields.end());
        Reader fields(document, problems, version, surroundings);
        if (format.partly)
            fields.read_part(at, out);
        else
            fields.read_object(at, out, header);
        return version;
    }
    if (problems.empty()) reader.report(at, "fields 'format' and 'version' are missing");
    return 0;
}

/// Reads a document of a format.
/// @param problems  those found before
/// @throws InvalidInput with all problems
template <class T>
T read_document(const Document& document, const Format& format, Problems& problems,
                Surroundings surroundings = {}) {
    T out;
    read_fields(document, format, problems, out, surroundings);
    problems.throw_if_any();
    return out;
}
/// The same of a text.
template <class T>
T read_document(std::string_view text, std::string_view source, const Format& format,
                Surroundings surroundings = {}) {
    Problems problems;
    const auto document = Document::parse(text, source, problems);
    return read_document<T>(document, format, problems, surroundings);
}

}  // namespace gpusched::json

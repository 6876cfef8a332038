// SPDX-License-Identifier: Apache-2.0
// How structs appear as JSON objects: what the rules and marks of their tables of fields (core/fields.hpp) mean in documents.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/fields.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace gpusched::json {

/// Types whose JSON form does not follow from their structure: `read(reader, at, value)` and `write(writer, value)`; where the
/// value decides which version of the format can say it, `version(value)`.
template <class T>
struct Form;

/// The same for fields with a mark.
template <class Mark>
struct MarkedForm;

template <class Mark>
concept HasForm = requires { sizeof(MarkedForm<Mark>); };

/// What forms must know beside the document, such as the host whose GPUs it names: a reference to an object of any type, which
/// outlives it.
class Surroundings {
  public:
    Surroundings() = default;
    template <class T>
        requires(!std::same_as<T, Surroundings>)
    Surroundings(const T& object) : object_(&object), type_(&typeid(T)) {}  // NOLINT: implicit

    /// Requires that the object is a `T`.
    template <class T>
    [[nodiscard]] const T& get() const {
        GPUSCHED_ASSERT(object_ != nullptr && *type_ == typeid(T));
        return *static_cast<const T*>(object_);
    }
    /// The object where it is a `T`; else null.
    template <class T>
    [[nodiscard]] const T* find() const {
        return object_ != nullptr && *type_ == typeid(T) ? static_cast<const T*>(object_) : nullptr;
    }

  private:
    const void* object_ = nullptr;
    const std::type_info* type_ = nullptr;
};

/// Calls `field` for the fields of a table whose names are not among these. For tables of documents that say some fields otherwise.
template <Described T, class F>
constexpr void visit_other_fields(std::initializer_list<std::string_view> names, const F& field) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        for (const auto other : names)
            if (other == name) return;
        field(name, member, rules...);
    });
}

namespace detail {

using gpusched::detail::has_mark;
using gpusched::detail::RangeRule;

template <class Rule>
inline constexpr bool leaves_out_if = false;
template <class T>
inline constexpr bool leaves_out_if<LeftOutIf<T>> = true;

/// Whether documents know what a rule of a field says.
template <class Rule>
concept KnownRule = RangeRule<Rule> || HasForm<Rule> || leaves_out_if<Rule> ||
                    has_mark<Rule, Inlined, Required, UnlessDefault, NullIfAbsent, NullIfUnknown, NullIsEmpty,
                             OneOrList, Since, NewerAbove>;

/// Arrays of any length.
template <class T>
inline constexpr bool is_list = requires(T& list) {
    list.reserve(0);
    list.emplace_back();
};

/// Whether some rule says which values a field may have.
template <class... Rules>
inline constexpr bool has_range = (RangeRule<std::remove_cvref_t<Rules>> || ...);

/// What is inlined: a struct, or the one in an optional, of which documents say nothing where it is absent.
template <class T>
struct InlinedPartOf {
    using type = T;
};
template <class T>
struct InlinedPartOf<std::optional<T>> {
    using type = T;
};
template <class T>
using InlinedPart = typename InlinedPartOf<T>::type;
template <class T>
const InlinedPart<T>* inlined_part(const T& field) {
    if constexpr (requires { field.has_value(); })
        return field ? &*field : nullptr;
    else
        return &field;
}
/// The same for readers, which make it where it is absent.
template <class T>
InlinedPart<T>& part_to_read(T& field) {
    if constexpr (requires { field.has_value(); })
        return field ? *field : field.emplace();
    else
        return field;
}

/// Whether readers check the range of a field, where it has one.
template <class T, class... Rules>
inline constexpr bool checks_range =
    !has_range<Rules...> ||
    (!(HasForm<std::remove_cvref_t<Rules>> || ...) && !requires { sizeof(Form<T>); } &&
     !std::is_same_v<T, bool> &&
     (std::is_arithmetic_v<T> || is_list<T> || requires(T& value) { value.has_value(); }));

/// Whether documents know what the marks of a table say.
template <Described T>
constexpr bool knows_marks() {
    bool all = true;
    visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&... rules) {
        all = all && (KnownRule<std::remove_cvref_t<decltype(rules)>> && ...);
        if constexpr (has_mark<Inlined, decltype(rules)...>)
            all =
                all && knows_marks<InlinedPart<std::remove_cvref_t<decltype(std::declval<T&>().*member)>>>();
    });
    return all;
}

/// Whether readers check the ranges of a table.
template <Described T>
constexpr bool checks_ranges() {
    bool all = true;
    visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&... rules) {
        using Field = std::remove_cvref_t<decltype(std::declval<T&>().*member)>;
        if constexpr (has_mark<Inlined, decltype(rules)...>)
            all = all && checks_ranges<InlinedPart<Field>>();
        else
            all = all && checks_range<Field, decltype(rules)...>;
    });
    return all;
}

/// A rule of real numbers in words, such as `a number from 0 to 1`.
template <class T, RangeRule Rule>
std::string number_expected(const Rule& rule) {
    if constexpr (requires { rule.high; }) {
        const auto text = range_text(static_cast<T>(rule.low), static_cast<T>(rule.high));
        return text.starts_with("a finite") ? text : "a number from " + text;
    } else if constexpr (requires { rule.low; }) {
        return "a number of at least " + number_text(rule.low);
    } else if constexpr (requires { rule.most; }) {
        return "a number above " + number_text(rule.bound) + ", at most " + number_text(rule.most);
    } else {
        return "a number above " + number_text(rule.bound);
    }
}

/// What single marks say; other rules say nothing.
template <class T, class Rule>
constexpr bool left_out_by(const T&, const Rule&) {
    return false;
}
template <class T>
constexpr bool left_out_by(const T& object, const LeftOutIf<T>& mark) {
    return object.*(mark.flag);
}
template <class Rule>
constexpr int version_by(const Rule&) {
    return 1;
}
constexpr int version_by(const Since& mark) { return mark.version; }
template <class T, class Rule>
constexpr int version_by(const T&, const Rule&) {
    return 1;
}
template <class T>
constexpr int version_by(const T& object, const LeftOutIf<T>& mark) {
    return object.*(mark.flag) ? mark.version : 1;
}
template <std::integral T>
constexpr int version_by(const T& value, const NewerAbove& mark) {
    return value > static_cast<T>(mark.value) ? mark.version : 1;
}

/// An object whose fields all have their default values.
template <class T>
const T& with_defaults() {
    static const T object{};
    return object;
}

/// Whether a document of the object leaves a field out.
template <class T, class Member, class... Rules>
bool is_left_out(const T& object, Member member, const Rules&... rules) {
    if constexpr (has_mark<UnlessDefault, Rules...>) {
        if (object.*member == with_defaults<T>().*member) return true;
    } else if constexpr (requires { (object.*member).has_value(); } && !has_mark<NullIfAbsent, Rules...>) {
        if (!(object.*member).has_value()) return true;
    }
    return (left_out_by(object, rules) || ...);
}

}  // namespace detail

/// Calls `each(name, value, rules...)` for the fields that a document of the object holds.
template <Described T, class F>
void visit_written_fields(const T& object, const F& each) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        if constexpr (detail::has_mark<Inlined, decltype(rules)...>) {
            if (const auto* part = detail::inlined_part(object.*member)) visit_written_fields(*part, each);
        } else {
            if (!detail::is_left_out(object, member, rules...)) each(name, object.*member, rules...);
        }
    });
}

/// The first version of its format that can say a value.
template <class T, class... Rules>
int version_for(const T& value, const Rules&... rules) {
    int version = 1;
    if constexpr (requires { Form<T>::version(value); }) {
        version = Form<T>::version(value);
    } else if constexpr (Described<T>) {
        visit_fields(std::type_identity<T>{}, [&](const char*, auto member, const auto&... marks) {
            version = std::max({version, detail::version_by(value, marks)...});
            if constexpr (detail::has_mark<Inlined, decltype(marks)...>)
                if (const auto* part = detail::inlined_part(value.*member))
                    version = std::max(version, version_for(*part));
        });
        visit_written_fields(value, [&](const char*, const auto& part, const auto&... marks) {
            version = std::max({version, version_for(part, marks...), detail::version_by(marks)...});
        });
    } else if constexpr (requires { value.has_value(); }) {
        if (value) version = version_for(*value, rules...);
    } else if constexpr (std::is_integral_v<T>) {
        version = std::max({version, detail::version_by(value, rules)...});
    } else if constexpr (
        requires { typename T::value_type; } && !requires { value.substr(); } &&
        !requires { typename T::mapped_type; }) {
        for (const auto& element : value) version = std::max(version, version_for(element, rules...));
    }
    return version;
}

}  // namespace gpusched::json

// SPDX-License-Identifier: Apache-2.0
// The JSON forms of structs: the meaning of their tables of fields (core/fields.hpp) in documents.
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
#include <vector>

namespace gpusched::json {

/// To be specialised for types with a JSON form of their own: `read(reader, at, value)` and `write(writer,
/// value)`; also `version(value)` if only newer versions of the format can hold some values.
template <class T>
struct Form;

/// The same for fields with a mark.
template <class Mark>
struct MarkedForm;

template <class Mark>
concept HasForm = requires { sizeof(MarkedForm<Mark>); };

/// Context that forms need in addition to the document, such as the host with the GPUs that it names: a
/// reference to an object of any type, which outlives it.
class Surroundings {
  public:
    Surroundings() = default;
    template <class T>
        requires(!std::same_as<T, Surroundings>)
    Surroundings(const T& object) : object_(&object), type_(&typeid(T)) {}  // NOLINT: implicit

    /// The object, which must be a `T`.
    template <class T>
    [[nodiscard]] const T& get() const {
        GPUSCHED_ASSERT(object_ != nullptr && *type_ == typeid(T));
        return *static_cast<const T*>(object_);
    }
    /// The object if it is a `T`; else null.
    template <class T>
    [[nodiscard]] const T* find() const {
        return object_ != nullptr && *type_ == typeid(T) ? static_cast<const T*>(object_) : nullptr;
    }

  private:
    const void* object_ = nullptr;
    const std::type_info* type_ = nullptr;
};

/// Objects by name, in the order of the document: an object with one member for each.
template <class T>
struct ByName {
    std::vector<std::pair<std::string, T>> entries{};
};

/// Calls `field` for the fields of a table except those with these names, for documents that write these in
/// another form.
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

/// Whether documents know the meaning of the rules of a field.
template <class Rule>
concept KnownRule = RangeRule<Rule> || HasForm<Rule> || requires(const Rule& rule) { rule.flag; } ||
                    has_mark<Rule, Inlined, Required, UnlessDefault, NullIfAbsent, NullIfUnknown, NullIsEmpty,
                             OneOrList, Since, NewerAbove>;
template <class... Rules>
inline constexpr bool knows_rules = (KnownRule<std::remove_cvref_t<Rules>> && ...);

/// Arrays of any length.
template <class T>
inline constexpr bool is_list = requires(T& list) {
    list.reserve(0);
    list.emplace_back();
};

/// An inlined struct, or the one in an optional; documents leave out its fields if it is absent.
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
/// The same for readers, which create it if it is absent.
template <class T>
InlinedPart<T>& part_to_read(T& field) {
    if constexpr (requires { field.has_value(); })
        return field ? *field : field.emplace();
    else
        return field;
}

/// Whether the reader checks the range of a field, if it has one.
template <class T, class... Rules>
inline constexpr bool checks_range =
    !(RangeRule<Rules> || ...) ||
    (!(HasForm<Rules> || ...) && !requires { sizeof(Form<T>); } && !std::is_same_v<T, bool> &&
     (std::is_arithmetic_v<T> || is_list<T> || requires(T& value) { value.has_value(); }));

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

/// The effect of single marks; other rules have none.
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

/// An object with the default values of all fields.
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

/// Calls `each(name, value, rules...)` for the fields in a document of the object.
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

/// The first version of its format that can hold a value.
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

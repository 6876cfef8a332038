// How structs appear as JSON objects: what the marks of their tables of fields (core/fields.hpp) mean in documents.
#pragma once

#include <gpusched/core/fields.hpp>

#include <algorithm>
#include <concepts>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::json {

/// Types whose JSON form does not follow from their structure: `read(reader, at, value)` and `write(writer, value)`; where the
/// value decides which version of the format can say it, `version(value)`.
template <class T>
struct Form;

/// The same for fields with a mark.
template <class Mark>
struct MarkedForm;

template <class Mark>
concept HasForm = requires { sizeof(MarkedForm<Mark>); };

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
template <class T, class Value, class... Rules>
bool is_left_out(const T& object, Value T::*member, const Rules&... rules) {
    if constexpr (gpusched::detail::has_mark<UnlessDefault, Rules...>) {
        if (object.*member == with_defaults<T>().*member) return true;
    } else if constexpr (requires { (object.*member).has_value(); } &&
                         !gpusched::detail::has_mark<NullIfAbsent, Rules...>) {
        if (!(object.*member).has_value()) return true;
    }
    return (left_out_by(object, rules) || ...);
}

/// Calls `each(name, value, rules...)` for the fields that a document of the object holds.
template <Described T, class F>
void visit_written_fields(const T& object, const F& each) {
    visit_fields(std::type_identity<T>{}, [&](const char* name, auto member, const auto&... rules) {
        if (!is_left_out(object, member, rules...)) each(name, object.*member, rules...);
    });
}

/// The first version of its format that can say a value.
template <class T, class... Rules>
int version_for(const T& value, const Rules&... rules) {
    int version = 1;
    if constexpr (requires { Form<T>::version(value); }) {
        version = Form<T>::version(value);
    } else if constexpr (Described<T>) {
        visit_fields(std::type_identity<T>{}, [&](const char*, auto, const auto&... marks) {
            version = std::max({version, version_by(value, marks)...});
        });
        visit_written_fields(value, [&](const char*, const auto& part, const auto&... marks) {
            version = std::max({version, version_for(part, marks...), version_by(marks)...});
        });
    } else if constexpr (requires { value.has_value(); }) {
        if (value) version = version_for(*value, rules...);
    } else if constexpr (std::is_integral_v<T>) {
        version = std::max({version, version_by(value, rules)...});
    } else if constexpr (
        requires { typename T::value_type; } && !requires { value.substr(); } &&
        !requires { typename T::mapped_type; }) {
        for (const auto& element : value) version = std::max(version, version_for(element, rules...));
    }
    return version;
}

}  // namespace GPUSCHED_NAMESPACE::json

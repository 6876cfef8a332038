// SPDX-License-Identifier: Apache-2.0
// Type traits for the checks of policies: whole numbers, types with floating-point parts, and policies with a
// check.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gpusched::detail {

/// A cost, key or weight: converts to a whole number without rounding.
template <class T>
concept WholeNumber = std::convertible_to<T, std::int64_t> && !std::floating_point<std::remove_cvref_t<T>>;

/// Whether `Is` holds for T, or for a part of it if T is a tuple, pair, array, list or optional. Ignores
/// members of other classes.
template <template <class> class Is, class T>
inline constexpr bool has_part = [] {
    using V = std::remove_cvref_t<T>;
    if constexpr (Is<V>::value)
        return true;
    else if constexpr (requires { std::tuple_size<V>::value; })
        return []<std::size_t... i>(std::index_sequence<i...>) {
            return (has_part<Is, std::tuple_element_t<i, V>> || ...);
        }(std::make_index_sequence<std::tuple_size_v<V>>{});
    else if constexpr (requires { requires !std::same_as<typename V::value_type, V>; })
        return has_part<Is, typename V::value_type>;
    else
        return false;
}();
template <class T>
inline constexpr bool has_floating_point = has_part<std::is_floating_point, T>;

/// Types that cannot be a score: text, because its order has no meaning, and optional values.
template <class T>
struct IsTextOrOptional : std::is_convertible<T, std::string_view> {};
template <class T>
struct IsTextOrOptional<std::optional<T>> : std::true_type {};

/// A class that the type-erased `Policy` checks with static_asserts, so that the compiler reports the
/// violated requirement and not only a failed conversion.
template <class P, class Policy>
concept CheckedAs =
    std::is_class_v<P> && !std::derived_from<P, Policy> && requires { Policy::template check<P>(); };

}  // namespace gpusched::detail

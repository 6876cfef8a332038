// What the checks of policies share: whether a number is whole.
#pragma once

#include <gpusched/config.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace GPUSCHED_NAMESPACE::detail {

/// A cost, key or weight: converts to a whole number without rounding.
template <class T>
concept WholeNumber = std::convertible_to<T, std::int64_t> && !std::floating_point<std::remove_cvref_t<T>>;

/// Whether T is floating point, or a tuple, pair, array, list or optional with such a part. Members of other classes are
/// not looked into.
template <class T>
inline constexpr bool has_floating_point = [] {
    using V = std::remove_cvref_t<T>;
    if constexpr (requires { std::tuple_size<V>::value; })
        return []<std::size_t... i>(std::index_sequence<i...>) {
            return (has_floating_point<std::tuple_element_t<i, V>> || ...);
        }(std::make_index_sequence<std::tuple_size_v<V>>{});
    else if constexpr (requires { requires !std::same_as<typename V::value_type, V>; })
        return has_floating_point<typename V::value_type>;
    else
        return std::floating_point<V>;
}();

}  // namespace GPUSCHED_NAMESPACE::detail

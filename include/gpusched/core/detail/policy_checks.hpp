// Helpers for the compile-time checks of policies: test whether a type is a whole number and whether a type has a member of
// a given name, and phrase the error messages.
#pragma once

#include <gpusched/config.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::detail {

/// A type for costs, keys or weights: it converts to a whole number without rounding.
template <class T>
concept WholeNumber = std::convertible_to<T, std::int64_t> && !std::floating_point<std::remove_cvref_t<T>>;

}  // namespace GPUSCHED_NAMESPACE::detail

/// Defines the concept gpusched::detail::has_<name><T>, which is satisfied if the type T has a public member `name`.
#define GPUSCHED_DEFINE_HAS_MEMBER(name)                                                                     \
    namespace GPUSCHED_NAMESPACE::detail {                                                                   \
    template <class T>                                                                                       \
    concept has_##name = requires { &T::name; };                                                             \
    }

/// The texts of the error messages. Each check writes its condition inside its own static_assert, because compilers print
/// that line first.
#define GPUSCHED_UNUSED_HOOK(hook, expected)                                                                 \
    "the policy has a hook `" hook "` that would never be used: expected `" expected "`"
#define GPUSCHED_MISSPELT(member, hook)                                                                      \
    "the policy has a member `" member "`, which nobody calls: the hook is named `" hook "`"

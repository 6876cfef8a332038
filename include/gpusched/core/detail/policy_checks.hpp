// What the checks of policies share: whether a type has a member of some name, and whether a number is whole.
#pragma once

#include <gpusched/config.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace GPUSCHED_NAMESPACE::detail {

/// A cost, key or weight: converts to a whole number without rounding.
template <class T>
concept WholeNumber = std::convertible_to<T, std::int64_t> && !std::floating_point<std::remove_cvref_t<T>>;

}  // namespace GPUSCHED_NAMESPACE::detail

/// Defines gpusched::detail::has_<name><T>: the type T has a public member of that name.
#define GPUSCHED_DEFINE_HAS_MEMBER(name)                                                                     \
    namespace GPUSCHED_NAMESPACE::detail {                                                                   \
    template <class T>                                                                                       \
    concept has_##name = requires { &T::name; };                                                             \
    }

/// The messages of the checks. The conditions are spelt where they are asserted: compilers show that place first.
#define GPUSCHED_UNUSED_HOOK(hook, expected)                                                                 \
    "the policy has a hook `" hook "` that would never be used: expected `" expected "`"
#define GPUSCHED_MISSPELT(member, hook)                                                                      \
    "the policy has a member `" member "`, which nobody calls: the hook is named `" hook "`"

// What every reader of JSON and YAML documents holds them to, and the words of its messages.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/text.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace GPUSCHED_NAMESPACE::detail {

/// Deepest nesting of arrays and objects; no document needs more.
inline constexpr std::size_t deepest_nesting = 64;

inline std::string nested_too_deeply() {
    return "nested deeper than " + std::to_string(deepest_nesting) + " levels";
}

/// JSON allows a key to occur twice in an object, and readers disagree about which one counts.
inline std::string repeated_key(std::string_view key) {
    return "key " + gpusched::quoted(printable(key)) + " appears more than once";
}

}  // namespace GPUSCHED_NAMESPACE::detail

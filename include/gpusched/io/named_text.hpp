// A text with the name that messages call it by.
#pragma once

#include <gpusched/config.hpp>

#include <string>
#include <string_view>

namespace GPUSCHED_NAMESPACE::io {

/// A text and what messages call it.
struct NamedText {
    std::string_view text{};
    std::string source = "<text>";
};

}  // namespace GPUSCHED_NAMESPACE::io

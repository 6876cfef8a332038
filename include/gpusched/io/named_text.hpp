// SPDX-License-Identifier: Apache-2.0
// A text with the name that messages call it by.
#pragma once

#include <string>
#include <string_view>

namespace gpusched::io {

/// A text and what messages call it.
struct NamedText {
    std::string_view text{};
    std::string source = "<text>";
};

}  // namespace gpusched::io

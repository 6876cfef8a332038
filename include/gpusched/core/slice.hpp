// Slice: consecutive elements that somebody else owns, read-only.
#pragma once

#include <cstddef>

namespace gpusched {

/// What std::span<const T> is, for the headers of the model, whose compile time has a budget: checking the concepts of
/// std::span's constructors takes a tenth of what the model adds to its standard headers.
template <class T>
struct Slice {
    const T* first = nullptr;
    const T* last = nullptr;

    [[nodiscard]] const T* begin() const noexcept { return first; }
    [[nodiscard]] const T* end() const noexcept { return last; }
    [[nodiscard]] bool empty() const noexcept { return first == last; }
    [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(last - first); }
};

}  // namespace gpusched

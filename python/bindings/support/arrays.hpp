// SPDX-License-Identifier: Apache-2.0
// Arrays for Python: read-only numpy views of C++ memory, tied to their owner.
#pragma once

#include "support/bindings.hpp"

#include <concepts>
#include <span>

namespace gpusched::python {

namespace detail {
template <class T, class Owner>
py::array_t<T> read_only(std::span<const T> values, std::shared_ptr<Owner> owner) {
    const py::capsule base(new std::shared_ptr<Owner>(std::move(owner)),
                           [](void* p) { delete static_cast<std::shared_ptr<Owner>*>(p); });
    py::array_t<T> array(static_cast<py::ssize_t>(values.size()), values.data(), base);
    py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
    return array;
}
}  // namespace detail

/// The type of an element in Python. All integers are int64, so that arithmetic does not overflow.
template <class T>
using Element = std::conditional_t<std::integral<T>, std::int64_t, T>;

/// A read-only array that takes ownership of `values`.
template <class T>
py::array_t<Element<T>> own(std::vector<T> values) {
    auto owner = [&] {
        if constexpr (std::same_as<T, Element<T>>)
            return std::make_shared<std::vector<T>>(std::move(values));
        else
            return std::make_shared<std::vector<Element<T>>>(values.begin(), values.end());
    }();
    const std::span<const Element<T>> span(*owner);
    return detail::read_only(span, std::move(owner));
}

/// A read-only array of values that `owner` keeps alive: a view of its memory, or a copy if Python's type
/// differs.
template <class T, class Owner>
py::array_t<Element<T>> view(const std::vector<T>& values, std::shared_ptr<Owner> owner) {
    if constexpr (std::same_as<T, Element<T>>)
        return detail::read_only(std::span<const T>(values), std::move(owner));
    else
        return own(values);
}

/// A view of positions in a sparse matrix: 32 bits, as scipy and HiGHS store them.
template <class Owner>
py::array_t<std::int32_t> positions(const std::vector<std::int32_t>& values, std::shared_ptr<Owner> owner) {
    return detail::read_only(std::span<const std::int32_t>(values), std::move(owner));
}

/// A view of flags that are stored as bytes: an array of bool.
template <class Owner>
py::array_t<bool> flags(const std::vector<std::uint8_t>& values, std::shared_ptr<Owner> owner) {
    return detail::read_only(std::span<const std::uint8_t>(values), std::move(owner)).attr("view")("bool");
}

}  // namespace gpusched::python

// Arrays for Python: read-only numpy views of C++ memory, tied to their owner.
#pragma once

#include "bindings.hpp"

#include <memory>
#include <span>
#include <vector>

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

/// A read-only view of memory that `owner` keeps alive.
template <class T, class Owner>
py::array_t<T> view(const std::vector<T>& values, std::shared_ptr<Owner> owner) {
    return detail::read_only(std::span<const T>(values), std::move(owner));
}

/// The same for flags that are stored as bytes: an array of bool.
template <class Owner>
py::array_t<bool> flags(const std::vector<std::uint8_t>& values, std::shared_ptr<Owner> owner) {
    return view(values, std::move(owner)).attr("view")("bool");
}

/// A read-only array that takes over `values`.
template <class T>
py::array_t<T> own(std::vector<T> values) {
    auto owner = std::make_shared<std::vector<T>>(std::move(values));
    const std::span<const T> span(*owner);
    return detail::read_only(span, std::move(owner));
}

}  // namespace gpusched::python

// Enumerations with a table of names have the same names in Python.
#pragma once

#include "options.hpp"

#include <gpusched/core/enum_names.hpp>
#include <gpusched/model/spec.hpp>

#include <array>
#include <cstddef>
#include <utility>

namespace gpusched::python {

template <NamedEnum E>
struct EnumNames<E> {
    static constexpr auto values = [] {
        std::array<std::pair<const char*, E>, enum_names<E>.size()> swapped{};
        for (std::size_t i = 0; i < swapped.size(); ++i)
            swapped[i] = {enum_names<E>[i].name, enum_names<E>[i].value};
        return swapped;
    }();
};

}  // namespace gpusched::python

// The names of the model's enumerations in Python, the same as in the formats.
#pragma once

#include "options.hpp"

#include <gpusched/model/spec.hpp>

namespace gpusched::python {

template <>
struct EnumNames<PriorityClass> {
    static constexpr std::array values{std::pair{"HP", PriorityClass::hp}, std::pair{"LP", PriorityClass::lp},
                                       std::pair{"other", PriorityClass::other}};
};
template <>
struct EnumNames<NetworkMode> {
    static constexpr std::array values{std::pair{"required", NetworkMode::required},
                                       std::pair{"preferred", NetworkMode::preferred}};
};
template <>
struct EnumNames<HardwareLevel> {
    static constexpr std::array values{std::pair{"numa", HardwareLevel::numa},
                                       std::pair{"socket", HardwareLevel::socket}};
};
template <>
struct EnumNames<HardwareQos> {
    static constexpr std::array values{std::pair{"guaranteed", HardwareQos::guaranteed},
                                       std::pair{"best_effort", HardwareQos::best_effort}};
};

}  // namespace gpusched::python

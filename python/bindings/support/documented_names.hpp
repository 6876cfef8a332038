// Names of C++ classes in the table of documentation.
#pragma once

#include "support/bindings.hpp"

namespace gpusched::python::detail {

/// The C++ name of a class in the table of documentation: without the leading `gpusched::` and unnamed
/// namespaces.
template <class T>
std::string documented_name() {
    std::string name = __PRETTY_FUNCTION__;  // ... [with T = gpusched::sim::ReplayOptions; ...
    name.erase(0, name.find("T = ") + 4);
    name.erase(name.find_first_of(";]"));
    name.erase(0, std::string_view("gpusched::").size());
    for (const std::string_view unnamed : {"{anonymous}::", "(anonymous namespace)::"})
        if (const auto at = name.find(unnamed); at != name.npos) name.erase(at, unnamed.size());
    return name;
}

}  // namespace gpusched::python::detail

// The names under which the documentation of C++ classes is found.
#pragma once

#include "support/bindings.hpp"

#include <gpusched/core/ids.hpp>

#include <string>
#include <string_view>

namespace gpusched::python::detail {

/// The name of a class as the compiler prints it; g++ also prints the inline namespace of GPUSCHED_NAMESPACE.
template <class T>
constexpr std::string_view printed_name() {
    constexpr std::string_view text =
        __PRETTY_FUNCTION__;  // ... [with T = gpusched::v0_1::sim::ReplayOptions; ...
    constexpr std::string_view before = "T = ";
    constexpr auto from = text.find(before) + before.size();
    return text.substr(from, text.find_first_of(";]", from) - from);
}

/// The C++ name of a class without the leading `gpusched::` and without unnamed namespaces, under which its fields are
/// documented.
template <class T>
std::string documented_name() {
    constexpr auto known = printed_name<NodeId>();
    constexpr auto library = known.substr(0, known.size() - std::string_view("NodeId").size());
    constexpr std::string_view bindings = "gpusched::";
    std::string name(printed_name<T>());
    name.erase(0, name.starts_with(library) ? library.size() : bindings.size());
    for (const std::string_view unnamed : {"{anonymous}::", "(anonymous namespace)::"})
        if (const auto at = name.find(unnamed); at != name.npos) name.erase(at, unnamed.size());
    return name;
}

}  // namespace gpusched::python::detail

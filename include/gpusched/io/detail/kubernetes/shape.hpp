// Shape: whether members that the API defines as lists or objects are such, so that none is read as if it were absent.
#pragma once

#include <gpusched/io/detail/kubernetes/objects.hpp>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace GPUSCHED_NAMESPACE::io::detail::kubernetes {

/// Members of nodes and pods that are lists wherever they occur.
inline constexpr std::string_view list_members[] = {
    "conditions",
    "containers",
    "initContainers",
    "matchExpressions",
    "matchFields",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "namespaces",
    "nodeSelectorTerms",
    "ownerReferences",
    "ports",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "resourceClaims",
    "schedulingGates",
    "taints",
    "tolerations",
    "topologySpreadConstraints",
    "values",
    "volumes",
};
/// Members of theirs that are objects.
inline constexpr std::string_view object_members[] = {
    "affinity",    "allocatable",     "annotations", "capacity",     "labelSelector", "labels",
    "limits",      "matchLabels",     "metadata",    "nodeAffinity", "nodeSelector",  "overhead",
    "podAffinity", "podAntiAffinity", "requests",    "resources",    "spec",          "status",
};
/// Those that are not looked into: their own members have names that are not the API's, or others of these names.
inline constexpr std::string_view free_members[] = {
    "allocatable",      "allocatedResources",
    "annotations",      "capacity",
    "conditions",       "images",
    "labels",           "limits",
    "managedFields",    "matchLabels",
    "nodeSelector",     "options",
    "overhead",         "requests",
    "volumeAttributes",
};
static_assert(std::is_sorted(std::begin(list_members), std::end(list_members)) &&
              std::is_sorted(std::begin(object_members), std::end(object_members)) &&
              std::is_sorted(std::begin(free_members), std::end(free_members)));

/// Looks at all members of a node or pod.
/// @throws Unreadable for the first that is neither null nor of the kind that the API gives it
inline void check_shape(const Place& place) {
    const auto is_one_of = [](const auto& names, std::string_view name) {
        return std::binary_search(std::begin(names), std::end(names), name);
    };
    const bool named = place.is(json::Kind::object);
    for (const auto& member : place.items()) {
        const auto kind = member.kind();
        const auto name = named ? member.key() : std::string_view{};
        if (kind != json::Kind::null && kind != json::Kind::array && is_one_of(list_members, name))
            throw Unreadable{member.expected("a list")};
        if (kind != json::Kind::null && kind != json::Kind::object && is_one_of(object_members, name))
            throw Unreadable{member.expected("an object")};
        if ((kind == json::Kind::array || kind == json::Kind::object) && !is_one_of(free_members, name))
            check_shape(member);
    }
}

}  // namespace GPUSCHED_NAMESPACE::io::detail::kubernetes

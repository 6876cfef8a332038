// SPDX-License-Identifier: Apache-2.0
// Shape: whether members that the API defines as lists or objects are such, so that none is read as if it were absent.
#pragma once

#include "io/kubernetes/objects.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace gpusched::io::detail::kubernetes {

/// Members that are lists wherever they occur in a spec.
inline constexpr std::string_view list_members[] = {
    "containers",
    "initContainers",
    "matchExpressions",
    "matchFields",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "namespaces",
    "nodeSelectorTerms",
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
/// Members that are objects there.
inline constexpr std::string_view object_members[] = {
    "affinity", "labelSelector", "limits",          "matchLabels", "nodeAffinity", "nodeSelector",
    "overhead", "podAffinity",   "podAntiAffinity", "requests",    "resources",
};
/// Those that are not looked into: their own members have names that are not the API's.
inline constexpr std::string_view free_members[] = {
    "annotations", "labels",   "limits",   "matchLabels",      "nodeSelector",
    "options",     "overhead", "requests", "volumeAttributes",
};
static_assert(std::is_sorted(std::begin(list_members), std::end(list_members)) &&
              std::is_sorted(std::begin(object_members), std::end(object_members)) &&
              std::is_sorted(std::begin(free_members), std::end(free_members)));

/// @throws Unreadable where a member is there and not a list, or not an object
inline void require_list(const Place& object, std::string_view key) {
    if (const auto member = object[key]; member && !member.is(json::Kind::array))
        throw Unreadable{member.expected("a list")};
}
inline void require_object(const Place& object, std::string_view key) {
    if (const auto member = object[key]; member && !member.is(json::Kind::object))
        throw Unreadable{member.expected("an object")};
}

/// Looks at all members of a spec, on whatever level.
/// @throws Unreadable for the first that is neither null nor of the kind that the API gives it
inline void check_spec(const Place& place) {
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
            check_spec(member);
    }
}

/// Looks at what is read of a node or pod: its spec, and of metadata and status the members named here. A status says much that
/// placement does not depend on, and more with each version.
/// @throws Unreadable for the first that is neither null nor of the kind that the API gives it
inline void check_shape(const Place& object) {
    for (const char* const key : {"metadata", "spec", "status"}) require_object(object, key);
    const auto metadata = object["metadata"], status = object["status"];
    require_object(metadata, "labels");
    require_object(metadata, "annotations");
    require_list(metadata, "ownerReferences");
    if (object["spec"]) check_spec(object["spec"]);
    for (const char* const key :
         {"conditions", "containerStatuses", "initContainerStatuses", "resourceClaimStatuses"})
        require_list(status, key);
    for (const char* const key : {"allocatable", "capacity", "extendedResourceClaimStatus", "resources"})
        require_object(status, key);
    for (const char* const key : {"containerStatuses", "initContainerStatuses"})
        for (const auto& container : status[key].items()) {
            require_object(container, "resources");
            require_object(container["resources"], "requests");
            require_object(container, "allocatedResources");
        }
}

}  // namespace gpusched::io::detail::kubernetes

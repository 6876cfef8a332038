// SPDX-License-Identifier: Apache-2.0
// What a pod asks for, as kube-scheduler counts it.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/quantity.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace gpusched::io::detail::kubernetes {

/// A member that is an amount, by its name.
/// @throws Unreadable for what is no quantity
inline Quantities::value_type quantity_at(const Place& member) {
    const auto text = member.text();
    const auto amount = text ? read_quantity(*text) : std::nullopt;
    if (!amount || member.key().empty() || member.key().find('\0') != std::string_view::npos)
        throw Unreadable{member.expected("a quantity such as 2, 500m or 64Gi")};
    return {std::string(member.key()), *amount};
}

/// Amounts of resources at `key` of an object.
/// @throws Unreadable for what is no quantity
inline Quantities quantities_at(const Place& object, std::string_view key) {
    Quantities out;
    const auto place = object[key];
    if (!place) return out;
    if (!place.is(json::Kind::object)) throw Unreadable{place.expected("an object")};
    for (const auto& item : place.items()) out.insert(quantity_at(item));
    return out;
}

/// Requests, and limits where a request is left out, as the API server fills them in.
inline Quantities requests_at(const Place& resources) {
    auto out = quantities_at(resources, "requests");
    for (const auto& [name, amount] : quantities_at(resources, "limits")) out.try_emplace(name, amount);
    return out;
}

inline bool is_sidecar(const Place& init_container) {
    return init_container["restartPolicy"].text() == "Always";
}

/// The sum over containers and sidecars, or what initialising takes if that is more; instead of that what the pod as a whole asks
/// for of CPU, memory and huge pages; and the overhead. While a resize goes on, each counts with the most of what is wished,
/// allocated and in effect.
/// Source: k8s.io/component-helpers/resource, PodRequests, of 1.36.
/// @param status absent = no resize goes on
/// @throws Unreadable
inline Quantities pod_requests(const Place& spec, const Place& status) {
    bool infeasible = false;  // a resize that will not happen
    for (const auto& condition : status["conditions"].items())
        if (condition["type"].text() == "PodResizePending") {
            infeasible = condition["reason"].text() == "Infeasible";
            break;
        }
    std::map<std::string, Place, std::less<>> statuses;
    for (const char* const key : {"containerStatuses", "initContainerStatuses"})
        for (const auto& container : status[key].items())
            statuses.insert_or_assign(text_at(container, "name"), container);
    const auto in_effect = [&](Quantities wished, const Quantities& actual, const Quantities& allocated) {
        if (infeasible) wished.clear();
        raise(wished, actual);
        raise(wished, allocated);
        return wished;
    };
    const auto of_container = [&](const Place& container, bool with_status) {
        auto wished = requests_at(container["resources"]);
        if (!with_status) return wished;
        const auto found = statuses.find(text_at(container, "name"));
        if (found == statuses.end() || !found->second["resources"]) return wished;
        return in_effect(std::move(wished), quantities_at(found->second["resources"], "requests"),
                         quantities_at(found->second, "allocatedResources"));
    };
    Quantities total, sidecars, initialising;
    for (const auto& container : spec["containers"].items()) add(total, of_container(container, true));
    for (const auto& container : spec["initContainers"].items()) {
        auto asked = of_container(container, is_sidecar(container));
        if (is_sidecar(container)) {
            add(total, asked);
            add(sidecars, asked);
            asked = sidecars;
        } else {
            add(asked, sidecars);
        }
        raise(initialising, asked);
    }
    raise(total, initialising);
    const auto supported = [](std::string_view name) {
        return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    };
    const auto whole = requests_at(spec["resources"]);
    if (std::any_of(whole.begin(), whole.end(), [&](const auto& r) { return supported(r.first); })) {
        auto counted = whole;
        if (status["resources"])
            counted = in_effect(whole, quantities_at(status["resources"], "requests"),
                                quantities_at(status, "allocatedResources"));
        for (const auto& [name, amount] : whole)
            if (supported(name)) total[name] = amount_of(counted, name);
    }
    add(total, quantities_at(spec, "overhead"));
    std::erase_if(total, [](const auto& amount) { return amount.second.zero(); });
    return total;
}

}  // namespace gpusched::io::detail::kubernetes

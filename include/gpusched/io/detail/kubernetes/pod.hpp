// Pod and Node: what the parts of the reader share about each.
#pragma once

#include <gpusched/io/detail/kubernetes/objects.hpp>
#include <gpusched/io/detail/kubernetes/pod_request.hpp>
#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace GPUSCHED_NAMESPACE::io::detail::kubernetes {

struct Node {
    Place object{};
    Labels labels{};
    Quantities allocatable{}, capacity{};
    std::string card{};  ///< model of its cards, as their driver says
};

/// @throws Unreadable
inline Node read_node(const Place& object) {
    Node out{.object = object, .labels = texts_at(object["metadata"], "labels")};
    const auto status = object["status"];
    out.capacity = quantities_at(status, "capacity");
    out.allocatable = status["allocatable"] ? quantities_at(status, "allocatable") : out.capacity;
    return out;
}

struct Pod {
    Place object{};
    Identity id{};
    Labels labels{};
    Quantities requests{};
    std::string phase{};
    std::string node{};              ///< empty = on none
    std::vector<int> named_cards{};  ///< that its claims name, by their place among the node's
    bool terminating = false, gated = false, ready = false;

    [[nodiscard]] bool bound() const { return !node.empty(); }
    /// It has ended: kube-scheduler does not count it.
    [[nodiscard]] bool finished() const { return phase == "Succeeded" || phase == "Failed"; }
    [[nodiscard]] Place spec() const { return object["spec"]; }
    [[nodiscard]] std::string annotation(std::string_view key) const {
        return name_of(object["metadata"]["annotations"][key].text());
    }
    [[nodiscard]] std::string label(const std::string& key) const {
        const auto found = labels.find(key);
        return found == labels.end() ? std::string() : found->second;
    }
};

/// @throws Unreadable
inline Pod read_pod(const Place& object) {
    Pod out{
        .object = object, .id = identity_of(object, true), .labels = texts_at(object["metadata"], "labels")};
    const auto spec = object["spec"], status = object["status"];
    if (!spec.is(json::Kind::object)) throw Unreadable{object.where() + "expected spec, an object"};
    out.phase = text_at(status, "phase");
    out.node = text_at(spec, "nodeName");
    out.terminating = static_cast<bool>(object["metadata"]["deletionTimestamp"]);
    out.gated = !spec["schedulingGates"].items().empty();
    for (const auto& condition : status["conditions"].items())
        if (condition["type"].text() == "Ready") out.ready = condition["status"].text() == "True";
    out.requests = pod_requests(object);
    return out;
}

}  // namespace GPUSCHED_NAMESPACE::io::detail::kubernetes

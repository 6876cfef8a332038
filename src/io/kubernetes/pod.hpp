// SPDX-License-Identifier: Apache-2.0
// Pod and Node: what the parts of the reader share about each.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/pod_request.hpp"
#include "io/report_builder.hpp"

#include <gpusched/model/spec.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::io::detail::kubernetes {

struct Node {
    Place object{};
    Labels labels{};
    Quantities allocatable{}, capacity{};
    std::string card{};  ///< model of its cards, as their driver says
};

/// A quantity that cannot be read counts as 0, and is reported.
/// @throws Unreadable
inline Node read_node(const Place& object, ReportBuilder& report) {
    Node out{.object = object, .labels = texts_at(object["metadata"], "labels")};
    const auto amounts = [&](const char* key) {
        Quantities read;
        for (const auto& item : object["status"][key].items()) {
            try {
                read.insert(quantity_at(item));
            } catch (const Unreadable& bad) {
                report.approximated("Node", "quantities that cannot be read", Errs::too_strict, "count as 0",
                                    told(object, bad));
            }
        }
        return read;
    };
    out.capacity = amounts("capacity");
    out.allocatable = object["status"]["allocatable"] ? amounts("allocatable") : out.capacity;
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
    bool readable = true;  ///< false: only its room and its labels are known

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
    out.requests = pod_requests(spec, status);
    return out;
}

/// A bound pod of which something cannot be read, but its node and what it asks for: it holds its room.
inline std::optional<Pod> read_room(const Place& object) {
    try {
        Pod out{.object = object, .id = identity_of(object, true), .readable = false};
        const auto spec = object["spec"], status = object["status"];
        out.phase = name_of(status["phase"].text());
        out.node = text_at(spec, "nodeName");
        out.terminating = static_cast<bool>(object["metadata"]["deletionTimestamp"]);
        try {
            out.labels = texts_at(object["metadata"], "labels");
        } catch (const Unreadable&) {
            out.labels.clear();
        }
        out.requests = pod_requests(spec, {});
        if (out.id.name.empty() || !out.bound() || out.finished()) return std::nullopt;
        return out;
    } catch (const Unreadable&) {
        return std::nullopt;
    }
}

}  // namespace gpusched::io::detail::kubernetes

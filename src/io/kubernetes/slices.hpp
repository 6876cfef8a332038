// SPDX-License-Identifier: Apache-2.0
// Slices: devices of DRA drivers (ResourceSlices), by node and resource.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/report_builder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// The value of a device's attribute, with or without its domain; empty where it is none.
inline std::string attribute_of(const Place& device, std::string_view driver, const std::string& name) {
    // In v1beta1 a device's attributes are one level deeper.
    for (const auto& attributes : {device["attributes"], device["basic"]["attributes"]})
        for (const auto& key : {name, std::string(driver) + "/" + name})
            if (auto value = name_of(attributes[key]["string"].text()); !value.empty()) return value;
    return {};
}

/// A device in a resource: `gpu.nvidia.com/gpu`, `gpu.nvidia.com/mig-1g.10gb`, or by driver and type.
inline std::string resource_of(const Place& device, const std::string& driver) {
    const auto type = attribute_of(device, driver, "type");
    if (type == "mig") return driver + "/mig-" + attribute_of(device, driver, "profile");
    return driver + "/" + (type.empty() ? "device" : type);
}

/// The devices of the nodes' ResourceSlices, and which of them are listed: cards, and parts of cards that are in use.
class Slices {
  public:
    /// @param allocated devices that claims hold, as driver/pool/device
    Slices(const Objects& objects, const std::set<std::string>& allocated, ReportBuilder& report)
        : report_(report) {
        for (const auto& slice : objects.of(Kind::resource_slice)) {
            try {
                newest(slice);
            } catch (const Unreadable&) {
                continue;  // reported below
            }
        }
        for (const auto& slice : objects.of(Kind::resource_slice)) {
            try {
                read(slice);
            } catch (const Unreadable& bad) {
                report.left_out("ResourceSlice", "objects", "cannot be read", told(slice, bad),
                                Errs::too_strict);
            }
        }
        split_cards(allocated);
        for (const auto& device : devices_)
            if (device.listed) by_node_[device.node].devices[device.resource].push_back(device.name);
    }

    struct OfNode {
        std::map<std::string, std::vector<std::string>> devices{};  // driver/pool/device, by resource
        std::string product{};
    };
    [[nodiscard]] const OfNode* of_node(const std::string& node) const {
        const auto found = by_node_.find(node);
        return found == by_node_.end() ? nullptr : &found->second;
    }
    /// The resource that a listed device is one of; empty for others.
    [[nodiscard]] std::string resource_of_device(const std::string& name) const {
        const auto found = index_.find(name);
        return found == index_.end() || !devices_[found->second].listed ? std::string()
                                                                        : devices_[found->second].resource;
    }

  private:
    struct Device {
        std::string name{}, node{}, resource{};
        std::vector<std::string> counters{};  // sets that it takes of, as driver/pool/set
        bool part = false;                    // of a card that is split as parts are asked for
        bool listed = true;
    };

    static std::string pool_of(const Place& spec) {
        return text_at(spec, "driver") + "/" + text_at(spec["pool"], "name");
    }
    void newest(const Place& slice) {
        auto& generation = generations_[pool_of(slice["spec"])];
        generation = std::max(generation, integer_at(slice["spec"]["pool"], "generation", 0));
    }

    void read(const Place& slice) {
        const auto name = identity_of(slice, false).name;
        const auto spec = slice["spec"];
        const auto node = text_at(spec, "nodeName"), driver = text_at(spec, "driver"), pool = pool_of(spec);
        if (integer_at(spec["pool"], "generation", 0) < generations_[pool])
            return report_.left_out("ResourceSlice", "objects", "of an older generation of its pool", name);
        if (node.empty())
            return report_.ignored("ResourceSlice", "devices of several nodes", Errs::too_strict,
                                   "only devices of one node are read", name);
        for (const auto& device : spec["devices"].items()) {
            Device read{.name = pool + "/" + text_at(device, "name"),
                        .node = node,
                        .resource = resource_of(device, driver)};
            const auto counters =
                device["consumesCounters"] ? device["consumesCounters"] : device["basic"]["consumesCounters"];
            for (const auto& taken : counters.items())
                read.counters.push_back(pool + "/" + text_at(taken, "counterSet"));
            read.part = counters && attribute_of(device, driver, "type") != "gpu";
            auto& product = by_node_[node].product;
            if (product.empty()) product = attribute_of(device, driver, "productName");
            if (device["taints"] || device["basic"]["taints"])
                report_.ignored("ResourceSlice", "taints of devices", Errs::too_lax,
                                "the device counts as healthy", read.name);
            if (index_.emplace(read.name, devices_.size()).second) devices_.push_back(std::move(read));
        }
        report_.exact("ResourceSlice", "devices of a node");
    }

    /// A part in use is listed as what it is, and the cards that it is a part of are not: nobody can have them whole.
    void split_cards(const std::set<std::string>& allocated) {
        std::set<std::string> split;  // counters
        for (auto& device : devices_) {
            if (!device.part) continue;
            device.listed = allocated.contains(device.name);
            if (!device.listed) {
                report_.ignored("ResourceSlice", "parts that could be made", Errs::too_strict,
                                "of cards that are split as they are asked for, whole cards and the parts in "
                                "use are read",
                                device.name);
                continue;
            }
            split.insert(device.counters.begin(), device.counters.end());
            report_.approximated("ResourceSlice", "parts in use", Errs::too_strict,
                                 "their cards count as split into them, also once they are given back",
                                 device.name);
        }
        for (auto& device : devices_)
            if (!device.part && !allocated.contains(device.name))
                device.listed = std::none_of(device.counters.begin(), device.counters.end(),
                                             [&](const std::string& set) { return split.contains(set); });
    }

    ReportBuilder& report_;
    std::map<std::string, std::int64_t> generations_;  // by driver/pool
    std::vector<Device> devices_;                      // in input order
    std::map<std::string, std::size_t> index_;         // by name
    std::map<std::string, OfNode> by_node_;
};

}  // namespace gpusched::io::detail::kubernetes

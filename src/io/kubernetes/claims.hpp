// SPDX-License-Identifier: Apache-2.0
// Devices of DRA drivers (ResourceSlices) and the claims of pods for them.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/pods.hpp"
#include "io/kubernetes/resources.hpp"

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

/// The value of a device's attribute, with or without its domain; empty if absent.
inline std::string attribute_of(const Place& device, std::string_view driver, const std::string& name) {
    // In v1beta1 a device's attributes are one level deeper.
    for (const auto& attributes : {device["attributes"], device["basic"]["attributes"]})
        for (const auto& key : {name, std::string(driver) + "/" + name})
            if (auto value = name_of(attributes[key]["string"].text()); !value.empty()) return value;
    return {};
}

/// The resource of a device: `gpu.nvidia.com/gpu`, `gpu.nvidia.com/mig-1g.10gb`, or by driver and type.
inline std::string resource_of(const Place& device, const std::string& driver) {
    const auto type = attribute_of(device, driver, "type");
    if (type == "mig") return driver + "/mig-" + attribute_of(device, driver, "profile");
    return driver + "/" + (type.empty() ? "device" : type);
}

/// The devices in the nodes' ResourceSlices. Listed are cards, and parts of cards that are in use.
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
        each_readable(objects.of(Kind::resource_slice), "ResourceSlice", Errs::too_strict, report,
                      [&](const Place& slice) { read(slice); });
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
    /// The resource of a listed device; empty for others.
    [[nodiscard]] std::string resource_of_device(const std::string& name) const {
        const auto found = index_.find(name);
        return found == index_.end() || !devices_[found->second].listed ? std::string()
                                                                        : devices_[found->second].resource;
    }

  private:
    struct Device {
        std::string name{}, node{}, resource{};
        std::vector<std::string> counters{};  // counter sets that it consumes, as driver/pool/set
        bool part = false;                    // of a card that is split on demand
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

    /// Lists parts in use instead of their cards, which cannot be allocated as a whole.
    void split_cards(const std::set<std::string>& allocated) {
        std::set<std::string> split;  // counters
        for (auto& device : devices_) {
            if (!device.part) continue;
            device.listed = allocated.contains(device.name);
            if (!device.listed) {
                report_.ignored(
                    "ResourceSlice", "parts that could be made", Errs::too_strict,
                    "of cards that are split on demand, whole cards and the parts in use are read",
                    device.name);
                continue;
            }
            split.insert(device.counters.begin(), device.counters.end());
            report_.approximated("ResourceSlice", "parts in use", Errs::too_strict,
                                 "their cards count as split, even after the parts are released",
                                 device.name);
        }
        for (auto& device : devices_)
            if (!device.part && !allocated.contains(device.name))
                device.listed = std::ranges::none_of(
                    device.counters, [&](const std::string& set) { return split.contains(set); });
    }

    ReportBuilder& report_;
    std::map<std::string, std::int64_t> generations_;  // by driver/pool
    std::vector<Device> devices_;                      // in input order
    std::map<std::string, std::size_t> index_;         // by name
    std::map<std::string, OfNode> by_node_;
};

/// The quoted text after `name ==` in a CEL expression; empty if there is none.
inline std::string equals_in(std::string_view expression, std::string_view name) {
    for (auto at = expression.find(name); at != expression.npos; at = expression.find(name, at + 1)) {
        auto rest = expression.substr(at + name.size());
        while (rest.starts_with(' ')) rest.remove_prefix(1);
        if (!rest.starts_with("==")) continue;
        rest.remove_prefix(2);
        while (rest.starts_with(' ')) rest.remove_prefix(1);
        if (rest.empty() || (rest.front() != '"' && rest.front() != '\'')) continue;
        const auto end = rest.find(rest.front(), 1);
        if (end != rest.npos) return std::string(rest.substr(1, end - 1));
    }
    return {};
}

/// Counts devices of DRA drivers as resources of nodes, and claims for them as requests of pods.
class Claims {
  public:
    /// @param cards receives the extended resources of DeviceClasses of whole cards
    Claims(const Objects& objects, CardNames& cards, ReportBuilder& report)
        : report_(report), claims_(objects.by_name(Kind::resource_claim)),
          templates_(objects.by_name(Kind::resource_claim_template)),
          classes_(objects.by_name(Kind::device_class)), slices_(objects, allocated_devices(), report) {
        for (const auto& [kind, name] : {std::pair{Kind::resource_claim, "ResourceClaim"},
                                         std::pair{Kind::resource_claim_template, "ResourceClaimTemplate"},
                                         std::pair{Kind::device_class, "DeviceClass"}})
            report.exact(name, "objects", std::ssize(objects.of(kind)));
        for (const auto& [name, object] : classes_) name_resources(name, object, cards);
    }

    /// Adds the devices of the node's slices to its resources.
    void fill(const std::string& name, Node& node) {
        for (const auto& [resource, amount] : node.allocatable)
            if (!amount.zero()) of_plugins_.insert(resource);
        const auto* const found = slices_.of_node(name);
        if (found == nullptr) return;
        for (const auto& [resource, devices] : found->devices) {
            const auto counted = name_in_pods(resource);
            if (counted != resource && !value_at(node.allocatable, counted).zero())
                report_.approximated("Node", "devices of a plugin and of a driver", Errs::too_lax,
                                     "both count under the extended resource of the driver's class",
                                     name + ": " + counted);
            node.capacity[counted] += Quantity(std::ssize(devices));
            node.allocatable[counted] += Quantity(std::ssize(devices));
        }
        node.card = found->product;
    }

    /// Adds the devices of the pod's claims to its requests, and the cards that they name. Call it after
    /// `fill` of all nodes.
    /// @throws Unreadable
    void fill(Pod& pod) {
        rename_extended(pod);
        for (const auto& use : pod.spec()["resourceClaims"].items()) {
            const auto name = text_at(use, "name");
            auto claim = text_at(use, "resourceClaimName");
            for (const auto& status : pod.object["status"]["resourceClaimStatuses"].items())
                if (claim.empty() && status["name"].text() == name)
                    claim = text_at(status, "resourceClaimName");
            const auto full = pod.id.space + "/" + claim;
            if (const auto found = claims_.find(full); !claim.empty() && found != claims_.end()) {
                if (!taken_.insert(full).second) {
                    report_.approximated("Pod", "shared claims", Errs::too_lax,
                                         "the devices count for the first of the pods that use them",
                                         pod.id.full());
                    continue;
                }
                if (const auto results = results_of(found->second))
                    allocated(results, pod);
                else
                    unallocated(found->second["spec"], pod);
                continue;
            }
            const auto source =
                templates_.find(pod.id.space + "/" + text_at(use, "resourceClaimTemplateName"));
            if (source != templates_.end())
                unallocated(source->second["spec"]["spec"], pod);
            else if (!pod.bound() && !claims_.empty() && use["resourceClaimName"])
                pod.missing_claim = full;
            else {
                report_.ignored("Pod", "resource claims", Errs::too_lax,
                                "the claim was not read: its devices do not count",
                                pod.id.full() + ": " + name);
                pod.unread_claims.push_back(name);
            }
        }
    }

    /// Reports the allocated claims that no pod uses. Call it after `fill` of all pods.
    void name_unused() const {
        for (const auto& [name, claim] : claims_)
            if (!taken_.contains(name) && results_of(claim))
                report_.ignored("ResourceClaim", "allocated, of no pod that was read", Errs::too_lax,
                                "its devices count as free", name);
    }

  private:
    /// The devices of a claim; absent if it is not allocated.
    static Place results_of(const Place& claim) {
        return claim["status"]["allocation"]["devices"]["results"];
    }
    static std::string device_of(const Place& result) {
        return text_at(result, "driver") + "/" + text_at(result, "pool") + "/" + text_at(result, "device");
    }
    /// Devices that claims hold. Admin access holds none: the allocator of kube-scheduler ignores such
    /// results.
    [[nodiscard]] std::set<std::string> allocated_devices() const {
        std::set<std::string> out;
        for (const auto& [name, claim] : claims_) {
            try {
                for (const auto& result : results_of(claim).items())
                    if (!truth_at(result, "adminAccess")) out.insert(device_of(result));
            } catch (const Unreadable&) {
                continue;  // reported with the pod that uses it
            }
        }
        return out;
    }

    /// Records the extended resources that stand for claims of the class: its `extendedResourceName`, and its
    /// own name.
    void name_resources(const std::string& name, const Place& object, CardNames& cards) {
        const auto extended = name_of(object["spec"]["extendedResourceName"].text());
        const auto resource = resource_of_class(name);
        if (resource.empty()) {
            if (!extended.empty())
                report_.ignored("DeviceClass", "extendedResourceName", Errs::too_strict,
                                "which devices the class has is not known: none count under that name",
                                name + ": " + extended);
            return;
        }
        stands_for_["deviceclass.resource.kubernetes.io/" + name] = resource;
        if (extended.empty()) return;
        stands_for_[extended] = resource;
        extended_.emplace(resource, extended);
        if (cards.is_whole(resource)) cards.add(extended);
        report_.approximated("DeviceClass", "extendedResourceName", Errs::too_lax,
                             "any device of the driver and type that the class names counts under it",
                             name + ": " + extended);
    }
    /// The name of a driver's resource in pods: the extended resource that stands for it, if any.
    [[nodiscard]] std::string name_in_pods(const std::string& resource) const {
        const auto found = extended_.find(resource);
        return found == extended_.end() ? resource : found->second;
    }

    /// Counts extended resources for the same devices under one name. The claim that kube-scheduler made for
    /// them names the pod's cards.
    void rename_extended(Pod& pod) {
        Quantities renamed;
        for (const auto& [name, amount] : pod.requests) {
            const auto found = stands_for_.find(name);
            const bool kept = found == stands_for_.end() || of_plugins_.contains(name);
            renamed[kept ? name : name_in_pods(found->second)] += amount;
        }
        pod.requests = std::move(renamed);
        const auto status = pod.object["status"]["extendedResourceClaimStatus"];
        if (!status) return;
        const auto full = pod.id.space + "/" + text_at(status, "resourceClaimName");
        const auto found = claims_.find(full);
        if (found == claims_.end())
            return report_.ignored("Pod", "claims of extended resources", Errs::neither,
                                   "the claim was not read: which cards it has is not known", pod.id.full());
        taken_.insert(full);
        // Init containers have devices of their own, although they end before the others begin.
        Quantities held;
        for (const auto& result : results_of(found->second).items()) {
            const auto device = device_of(result);
            name_card(device, pod);
            if (const auto resource = slices_.resource_of_device(device); !resource.empty())
                held[name_in_pods(resource)] += Quantity(1);
        }
        raise(pod.requests, held);
        report_.exact("Pod", "claims of extended resources");
    }
    void name_card(const std::string& device, Pod& pod) const {
        const auto* const node = slices_.of_node(pod.node);
        const auto resource = slices_.resource_of_device(device);
        if (node == nullptr || resource.empty()) return;
        const auto devices = node->devices.find(resource);
        if (devices == node->devices.end()) return;
        const auto at = std::ranges::find(devices->second, device);
        if (at != devices->second.end())
            pod.named_cards.push_back(static_cast<int>(at - devices->second.begin()));
    }

    void allocated(const Place& results, Pod& pod) {
        bool known = true, held = false;
        for (const auto& result : results.items()) {
            if (truth_at(result, "adminAccess")) {
                report_.exact("Pod", "claims with admin access: hold no device");
                continue;
            }
            held = true;
            const auto device = device_of(result);
            const auto resource = slices_.resource_of_device(device);
            if (resource.empty()) {
                known = false;
                continue;
            }
            pod.requests[name_in_pods(resource)] += Quantity(1);
            name_card(device, pod);
        }
        if (!known)
            report_.ignored("Pod", "allocated claims", Errs::too_lax,
                            "devices that no ResourceSlice of a node lists do not count", pod.id.full());
        else if (held)
            report_.exact("Pod", "allocated claims");
    }

    /// @param spec of a claim
    void unallocated(const Place& spec, Pod& pod) {
        for (const auto& request : spec["devices"]["requests"].items()) {
            auto exactly = request["exactly"] ? request["exactly"] : request;
            if (const auto first = request["firstAvailable"].items(); !first.empty()) {
                exactly = first.front();
                report_.approximated("Pod", "claims with alternatives", Errs::too_strict,
                                     "the first alternative", pod.id.full());
            }
            if (truth_at(exactly, "adminAccess")) {
                report_.approximated("Pod", "claims with admin access", Errs::too_lax,
                                     "hold no device; the requirement that the node has one is ignored",
                                     pod.id.full());
                continue;
            }
            const auto class_name = text_at(exactly, "deviceClassName");
            const auto resource = resource_of_class(class_name);
            if (resource.empty() || text_at(exactly, "allocationMode") == "All") {
                report_.ignored(
                    "Pod", "claims", Errs::too_lax,
                    "of a class whose devices are not known, or of all devices: they do not count",
                    pod.id.full() + ": " + class_name);
                continue;
            }
            const auto count = integer_at(exactly, "count", 1);
            if (count > 0) pod.requests[name_in_pods(resource)] += Quantity(count);
            if (!exactly["selectors"].items().empty() || !spec["devices"]["constraints"].items().empty())
                report_.approximated("Pod", "selectors of claims", Errs::too_lax,
                                     "are not evaluated: any device of the class is accepted", pod.id.full());
            else
                report_.exact("Pod", "claims");
        }
    }

    /// The resource of a class: by its selectors if they name a driver and a type; by its name if the class
    /// was not read.
    [[nodiscard]] std::string resource_of_class(const std::string& name) const {
        std::string driver, type, profile;
        if (const auto found = classes_.find(name); found != classes_.end()) {
            for (const auto& selector : found->second["spec"]["selectors"].items()) {
                const auto expression = name_of(selector["cel"]["expression"].text());
                if (driver.empty()) driver = equals_in(expression, "device.driver");
                if (type.empty()) type = equals_in(expression, ".type");
                if (profile.empty()) profile = equals_in(expression, ".profile");
            }
            if (driver.empty()) return {};
        } else if (name.starts_with("gpu.")) {
            driver = name, type = "gpu";
        }
        if (driver.empty()) return {};
        if (type == "mig") return profile.empty() ? std::string() : driver + "/mig-" + profile;
        return driver + "/" + (type.empty() ? "device" : type);
    }

    ReportBuilder& report_;
    std::map<std::string, Place> claims_, templates_, classes_;
    Slices slices_;
    std::map<std::string, std::string> stands_for_;  // resource, by the extended resource for its class
    std::map<std::string, std::string> extended_;    // extended resource, by resource
    std::set<std::string> of_plugins_;               // resources of nodes that come from no driver
    std::set<std::string> taken_;                    // claims that some pod has
};

}  // namespace gpusched::io::detail::kubernetes

// Claims: devices of DRA drivers (ResourceSlices) as resources of nodes, and what claims take of them as requests of pods.
#pragma once

#include <gpusched/io/detail/kubernetes/pod.hpp>
#include <gpusched/io/detail/report_builder.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::io::detail::kubernetes {

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

/// The text between the quotes that follow `name ==` in a CEL expression; empty where there is none.
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

class Claims {
  public:
    Claims(const Objects& objects, ReportBuilder& report) : report_(report) {
        for (const auto& object : objects.of(Kind::device_class))
            classes_.emplace(identity_of(object, false).name, object);
        for (const auto& object : objects.of(Kind::resource_claim))
            claims_.emplace(identity_of(object, true).full(), object);
        for (const auto& object : objects.of(Kind::resource_claim_template))
            templates_.emplace(identity_of(object, true).full(), object);
        for (const auto& [kind, name] : {std::pair{Kind::resource_claim, "ResourceClaim"},
                                         std::pair{Kind::resource_claim_template, "ResourceClaimTemplate"},
                                         std::pair{Kind::device_class, "DeviceClass"}})
            if (objects.any(kind))
                report.exact(name, "objects", static_cast<std::int64_t>(objects.of(kind).size()));
        for (const auto& slice : objects.of(Kind::resource_slice)) {
            try {
                read_slice(slice);
            } catch (const Unreadable& bad) {
                report.left_out("ResourceSlice", "objects", "cannot be read", bad.why, Errs::too_strict);
            }
        }
    }

    /// Adds the devices of the node's slices to what it has.
    void fill(const std::string& name, Node& node) const {
        const auto found = by_node_.find(name);
        if (found == by_node_.end()) return;
        for (const auto& [resource, devices] : found->second.devices) {
            node.capacity[resource] += Quantity{static_cast<std::int64_t>(devices.size()), 0};
            node.allocatable[resource] += Quantity{static_cast<std::int64_t>(devices.size()), 0};
        }
        node.card = found->second.product;
    }

    /// Adds what the pod's claims take to its requests, and the cards that they name. @throws Unreadable
    void fill(Pod& pod) {
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
                if (const auto results = found->second["status"]["allocation"]["devices"]["results"])
                    allocated(results, pod);
                else
                    wished(found->second["spec"], pod);
                continue;
            }
            const auto source =
                templates_.find(pod.id.space + "/" + text_at(use, "resourceClaimTemplateName"));
            if (source != templates_.end())
                wished(source->second["spec"]["spec"], pod);
            else
                report_.ignored("Pod", "resource claims", Errs::too_lax,
                                "the claim was not read: its devices do not count",
                                pod.id.full() + ": " + name);
        }
    }

  private:
    struct OfNode {
        std::map<std::string, std::vector<std::string>> devices{};  // driver/pool/device, by resource
        std::string product{};
    };

    void read_slice(const Place& slice) {
        const auto name = identity_of(slice, false).name;
        const auto spec = slice["spec"];
        const auto node = text_at(spec, "nodeName"), driver = text_at(spec, "driver");
        const auto pool = text_at(spec["pool"], "name");
        if (node.empty())
            return report_.ignored("ResourceSlice", "devices of several nodes", Errs::too_strict,
                                   "only devices of one node are read", name);
        auto& of_node = by_node_[node];
        for (const auto& device : spec["devices"].items()) {
            const auto full = driver + "/" + pool + "/" + text_at(device, "name");
            if ((device["consumesCounters"] || device["basic"]["consumesCounters"]) &&
                attribute_of(device, driver, "type") != "gpu") {
                report_.ignored("ResourceSlice", "parts that could be made", Errs::too_strict,
                                "of cards that are split as they are asked for, only whole cards are read",
                                full);
                continue;
            }
            if (!known_.emplace(full, resource_of(device, driver)).second)
                continue;  // of an older generation of the pool
            of_node.devices[known_.at(full)].push_back(full);
            if (of_node.product.empty()) of_node.product = attribute_of(device, driver, "productName");
            if (device["taints"] || device["basic"]["taints"])
                report_.ignored("ResourceSlice", "taints of devices", Errs::too_lax,
                                "the device counts as healthy", full);
        }
        report_.exact("ResourceSlice", "devices of a node");
    }

    void allocated(const Place& results, Pod& pod) {
        bool known = true;
        for (const auto& result : results.items()) {
            const auto full =
                text_at(result, "driver") + "/" + text_at(result, "pool") + "/" + text_at(result, "device");
            const auto found = known_.find(full);
            if (found == known_.end()) {
                known = false;
                continue;
            }
            pod.requests[found->second] += Quantity{1, 0};
            if (const auto node = by_node_.find(pod.node); node != by_node_.end()) {
                const auto& devices = node->second.devices[found->second];
                const auto at = std::find(devices.begin(), devices.end(), full);
                if (at != devices.end()) pod.named_cards.push_back(static_cast<int>(at - devices.begin()));
            }
        }
        if (known)
            report_.exact("Pod", "allocated claims");
        else
            report_.ignored("Pod", "allocated claims", Errs::too_lax,
                            "devices that no ResourceSlice lists do not count", pod.id.full());
    }

    /// @param spec of a claim
    void wished(const Place& spec, Pod& pod) {
        for (const auto& request : spec["devices"]["requests"].items()) {
            auto exactly = request["exactly"] ? request["exactly"] : request;
            if (const auto first = request["firstAvailable"].items(); !first.empty()) {
                exactly = first.front();
                report_.approximated("Pod", "claims with alternatives", Errs::too_strict,
                                     "the first alternative", pod.id.full());
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
            if (count > 0) pod.requests[resource] += Quantity{count, 0};
            if (!exactly["selectors"].items().empty() || !spec["devices"]["constraints"].items().empty())
                report_.approximated("Pod", "selectors of claims", Errs::too_lax,
                                     "are not evaluated: any device of the class will do", pod.id.full());
            else
                report_.exact("Pod", "claims");
        }
    }

    /// By the class's selectors, where they say a driver and a type; else, and of a class that was not read, by its name.
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
    std::map<std::string, Place> classes_, claims_, templates_;
    std::map<std::string, OfNode> by_node_;
    std::map<std::string, std::string> known_;  // resource of driver/pool/device
    std::set<std::string> taken_;               // claims that some pod has
};

}  // namespace GPUSCHED_NAMESPACE::io::detail::kubernetes

// SPDX-License-Identifier: Apache-2.0
// Claims: devices of DRA drivers as resources of nodes, and what claims take of them as requests of pods.
#pragma once

#include "io/kubernetes/devices.hpp"
#include "io/kubernetes/pod.hpp"
#include "io/kubernetes/slices.hpp"
#include "io/report_builder.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

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
    /// @param cards learns the names of extended resources that DeviceClasses of whole cards give them
    Claims(const Objects& objects, CardNames& cards, ReportBuilder& report)
        : report_(report), claims_(named(objects, Kind::resource_claim)),
          templates_(named(objects, Kind::resource_claim_template)),
          slices_(objects, allocated_devices(), report) {
        for (const auto& object : objects.of(Kind::device_class))
            classes_.emplace(identity_of(object, false).name, object);
        for (const auto& [kind, name] : {std::pair{Kind::resource_claim, "ResourceClaim"},
                                         std::pair{Kind::resource_claim_template, "ResourceClaimTemplate"},
                                         std::pair{Kind::device_class, "DeviceClass"}})
            if (objects.any(kind))
                report.exact(name, "objects", static_cast<std::int64_t>(objects.of(kind).size()));
        for (const auto& [name, object] : classes_) name_resources(name, object, cards);
    }

    /// Adds the devices of the node's slices to what it has.
    void fill(const std::string& name, Node& node) {
        for (const auto& [resource, amount] : node.allocatable)
            if (!amount.zero()) of_plugins_.insert(resource);
        const auto* const found = slices_.of_node(name);
        if (found == nullptr) return;
        for (const auto& [resource, devices] : found->devices) {
            const auto counted = name_in_pods(resource);
            if (counted != resource && !amount_of(node.allocatable, counted).zero())
                report_.approximated("Node", "devices of a plugin and of a driver", Errs::too_lax,
                                     "both count under the extended resource of the driver's class",
                                     name + ": " + counted);
            node.capacity[counted] += Quantity{static_cast<std::int64_t>(devices.size()), 0};
            node.allocatable[counted] += Quantity{static_cast<std::int64_t>(devices.size()), 0};
        }
        node.card = found->product;
    }

    /// Adds what the pod's claims take to its requests, and the cards that they name. All nodes have been filled. @throws Unreadable
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

    /// Reports the allocated claims that no pod uses. All pods have been filled.
    void name_unused() const {
        for (const auto& [name, claim] : claims_)
            if (!taken_.contains(name) && results_of(claim))
                report_.ignored("ResourceClaim", "allocated, of no pod that was read", Errs::too_lax,
                                "its devices count as free", name);
    }

  private:
    static std::map<std::string, Place> named(const Objects& objects, Kind kind) {
        std::map<std::string, Place> out;
        for (const auto& object : objects.of(kind)) out.emplace(identity_of(object, true).full(), object);
        return out;
    }
    /// What a claim was given; absent where it is not allocated.
    static Place results_of(const Place& claim) {
        return claim["status"]["allocation"]["devices"]["results"];
    }
    static std::string device_of(const Place& result) {
        return text_at(result, "driver") + "/" + text_at(result, "pool") + "/" + text_at(result, "device");
    }
    /// Devices that a claim has for itself. Admin access holds nothing: the allocator of kube-scheduler passes over such results.
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

    /// The extended resources that stand for claims of the class: by its `extendedResourceName`, and by its own name.
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
    /// What pods call a driver's resource: the extended resource that stands for it, where there is one.
    [[nodiscard]] std::string name_in_pods(const std::string& resource) const {
        const auto found = extended_.find(resource);
        return found == extended_.end() ? resource : found->second;
    }

    /// Extended resources that stand for the same devices count under one name; and the claim that kube-scheduler made for them says
    /// which cards the pod has.
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
        // Containers that initialise have devices of their own, though they end before the others begin.
        Quantities held;
        for (const auto& result : results_of(found->second).items()) {
            const auto device = device_of(result);
            name_card(device, pod);
            if (const auto resource = slices_.resource_of_device(device); !resource.empty())
                held[name_in_pods(resource)] += Quantity{1, 0};
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
        const auto at = std::find(devices->second.begin(), devices->second.end(), device);
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
            pod.requests[name_in_pods(resource)] += Quantity{1, 0};
            name_card(device, pod);
        }
        if (!known)
            report_.ignored("Pod", "allocated claims", Errs::too_lax,
                            "devices that no ResourceSlice of a node lists do not count", pod.id.full());
        else if (held)
            report_.exact("Pod", "allocated claims");
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
            if (truth_at(exactly, "adminAccess")) {
                report_.approximated("Pod", "claims with admin access", Errs::too_lax,
                                     "hold no device; that the node must have one does not count",
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
            if (count > 0) pod.requests[name_in_pods(resource)] += Quantity{count, 0};
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
    std::map<std::string, Place> claims_, templates_, classes_;
    Slices slices_;
    std::map<std::string, std::string>
        stands_for_;  // resource, by the extended resource that stands for its class
    std::map<std::string, std::string> extended_;  // extended resource, by resource
    std::set<std::string> of_plugins_;             // resources that nodes have besides those of drivers
    std::set<std::string> taken_;                  // claims that some pod has
};

}  // namespace gpusched::io::detail::kubernetes

// SPDX-License-Identifier: Apache-2.0
// Volumes: where a pod's persistent volumes can be reached, and whether two copies of it could run.
#pragma once

#include "io/kubernetes/eligibility.hpp"
#include "io/kubernetes/pod.hpp"
#include "io/report_builder.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

class Volumes {
  public:
    Volumes(const Objects& objects, ClusterSpec& cluster, ReportBuilder& report)
        : cluster_(cluster), report_(report), read_(objects.any(Kind::claim)) {
        for (const auto& claim : objects.of(Kind::claim)) {
            claims_.emplace(identity_of(claim, true).full(), claim);
            report_.exact("PersistentVolumeClaim", "objects");
        }
        for (const auto& volume : objects.of(Kind::volume)) {
            volumes_.emplace(identity_of(volume, false).name, volume);
            report_.exact("PersistentVolume", "objects");
        }
        for (const auto& node : cluster.nodes)
            zoned_ = zoned_ && std::any_of(std::begin(zone_labels), std::end(zone_labels),
                                           [&](const auto& key) { return node.labels.contains(key.first); });
    }

    /// Requires the nodes that reach the pod's volumes. @return whether a second copy of the pod cannot have its volumes
    /// @param task which of the cluster's tasks it is
    bool fill(const Pod& pod, std::size_t task, TaskSpec& out) {
        bool alone = false, spreads = false;
        for (const auto& constraint : pod.spec()["topologySpreadConstraints"].items())
            spreads = spreads || (text_at(constraint, "whenUnsatisfiable") != "ScheduleAnyway" &&
                                  text_at(constraint, "nodeAffinityPolicy") != "Ignore");
        for (const auto& volume : pod.spec()["volumes"].items()) {
            auto name = volume["persistentVolumeClaim"]["claimName"].text().value_or("");
            if (volume["ephemeral"]) name = pod.id.name + "-" + text_at(volume, "name");
            if (name.empty()) continue;
            const auto found = claims_.find(pod.id.space + "/" + name);
            if (found == claims_.end()) {
                report_.ignored("Pod", "persistent volumes", Errs::too_lax,
                                read_ ? "the claim was not read: its node affinity is unknown"
                                      : "no PersistentVolumeClaim was read: their node affinity is unknown",
                                out.name);
                continue;
            }
            for (const auto& mode : found->second["spec"]["accessModes"].items())
                if (mode.text() == "ReadWriteOncePod" && !volume["ephemeral"]) {
                    auto& users = users_[pod.id.space + "/" + name];
                    if (users.empty() || users.back() != task) users.push_back(task);
                }
            // An ephemeral claim is made anew for every copy.
            alone = (require(found->second, spreads, out) && !volume["ephemeral"]) || alone;
        }
        return alone;
    }

    /// Of claims that only one pod may use at a time (ReadWriteOncePod) the tasks that do.
    [[nodiscard]] const std::map<std::string, std::vector<std::size_t>>& users() const { return users_; }

  private:
    /// Labels of zones and regions, and which took its place.
    static constexpr std::pair<const char*, const char*> zone_labels[] = {
        {"topology.kubernetes.io/zone", nullptr},
        {"topology.kubernetes.io/region", nullptr},
        {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
        {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"}};

    /// @param spreads the pod is spread over the nodes that its own affinity allows, volumes or not
    bool require(const Place& claim, bool spreads, TaskSpec& out) {
        const auto spec = claim["spec"];
        bool shared = false;
        for (const auto& mode : spec["accessModes"].items())
            shared = shared || mode.text() == "ReadWriteMany" || mode.text() == "ReadOnlyMany";
        const auto bound_to = text_at(spec, "volumeName");
        if (bound_to.empty()) {
            report_.ignored("PersistentVolumeClaim", "claims without a volume", Errs::too_lax,
                            "where a volume could be made is not known", out.name);
            return !shared;
        }
        const auto found = volumes_.find(bound_to);
        if (found == volumes_.end()) {
            report_.ignored("Pod", "persistent volumes", Errs::too_lax,
                            "the volume was not read: its node affinity is unknown", out.name);
            return !shared;
        }
        const auto& volume = found->second;
        bool good = true, malformed = false;
        std::vector<NodeTerm> reach;
        if (const auto required = volume["spec"]["nodeAffinity"]["required"])
            good = require_also(reach, read_node_terms(required, malformed));
        if (const auto zones = zones_of(volume); !zones.empty()) good = require_also(reach, zones) && good;
        if (!reach.empty() && !(spreads && require_by_resource(bound_to, reach, out)))
            good = require_also(out.node_affinity, reach) && good;
        if (!good)
            report_.approximated(
                "PersistentVolume", "node affinity", Errs::too_lax,
                "together with other affinities of the pod more than 256 terms: not required", out.name);
        else
            report_.exact("PersistentVolume", "node affinity and zones");
        return !shared;
    }

    /// Nodes that reach the volume have a resource of which the pod asks for one: unlike node affinity, topology spread does not
    /// look at it.
    /// @return false where that cannot be said: the pod runs on a node that does not reach it
    bool require_by_resource(const std::string& volume, const std::vector<NodeTerm>& reach, TaskSpec& out) {
        using gpusched::detail::holds;
        for (const auto& node : cluster_.nodes)
            if (node.name == out.node && !holds(reach, node.labels, node.name)) return false;
        const auto name = "volume " + volume;
        if (reached_.insert(name).second)
            for (auto& node : cluster_.nodes)
                if (holds(reach, node.labels, node.name)) node.resources[name] = 1'000'000'000;
        out.resources[name] = 1;
        return true;
    }

    /// The terms of which one must hold for the zones and regions in a volume's labels; none where it has no such label.
    [[nodiscard]] std::vector<NodeTerm> zones_of(const Place& volume) const {
        const auto labels = texts_at(volume["metadata"], "labels");
        std::vector<NodeTerm> out;
        for (const auto& [key, newer] : zone_labels) {
            const auto label = labels.find(key);
            if (label == labels.end()) continue;
            NodeMatch match{.key = key};
            std::string_view rest = label->second;
            while (true) {  // zones with two underscores between them
                const auto end = rest.find("__");
                match.values.emplace_back(rest.substr(0, end));
                if (end == rest.npos) break;
                rest.remove_prefix(end + 2);
            }
            std::vector<NodeTerm> either{{.match_expressions = {match}}};
            if (newer != nullptr)  // of a node without the old label the new one counts
                either.push_back({.match_expressions = {{.key = key, .op = MatchOperator::does_not_exist},
                                                        {.key = newer, .values = match.values}}});
            static_cast<void>(require_also(out, either));  // at most 4 terms
        }
        if (out.empty() || zoned_) return out;
        NodeTerm nowhere;  // a node without such labels reaches every zone
        for (const auto& [key, newer] : zone_labels)
            nowhere.match_expressions.push_back({.key = key, .op = MatchOperator::does_not_exist});
        out.push_back(std::move(nowhere));
        return out;
    }

    ClusterSpec& cluster_;
    ReportBuilder& report_;
    std::set<std::string> reached_;  // resources that stand for volumes
    bool read_ = false, zoned_ = true;
    std::map<std::string, Place> claims_, volumes_;
    std::map<std::string, std::vector<std::size_t>> users_;
};

}  // namespace gpusched::io::detail::kubernetes

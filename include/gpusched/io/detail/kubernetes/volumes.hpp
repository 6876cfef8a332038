// Volumes: where a pod's persistent volumes can be reached, and whether two copies of it could run.
#pragma once

#include <gpusched/io/detail/kubernetes/eligibility.hpp>
#include <gpusched/io/detail/kubernetes/pod.hpp>
#include <gpusched/io/detail/report_builder.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace GPUSCHED_NAMESPACE::io::detail::kubernetes {

class Volumes {
  public:
    Volumes(const Objects& objects, const ClusterSpec& cluster, ReportBuilder& report)
        : report_(report), read_(objects.any(Kind::claim)) {
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
                                           [&](const char* key) { return node.labels.contains(key); });
    }

    /// Requires the nodes that reach the pod's volumes. @return whether a second copy of the pod cannot have its volumes
    bool fill(const Pod& pod, TaskSpec& out) const {
        bool alone = false;
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
            // An ephemeral claim is made anew for every copy.
            alone = (require(found->second, out) && !volume["ephemeral"]) || alone;
        }
        return alone;
    }

  private:
    static constexpr const char* zone_labels[] = {
        "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"};

    bool require(const Place& claim, TaskSpec& out) const {
        const auto spec = claim["spec"];
        bool shared = false;
        for (const auto& mode : spec["accessModes"].items()) {
            shared = shared || mode.text() == "ReadWriteMany" || mode.text() == "ReadOnlyMany";
            if (mode.text() == "ReadWriteOncePod")
                report_.ignored("PersistentVolumeClaim", "access mode ReadWriteOncePod", Errs::too_lax,
                                "that no second pod uses the volume is not checked", out.name);
        }
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
        if (const auto required = volume["spec"]["nodeAffinity"]["required"])
            good = require_also(out.node_affinity, read_node_terms(required, malformed));
        const auto labels = texts_at(volume["metadata"], "labels");
        NodeTerm zones;
        for (const auto* const key : zone_labels) {
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
            zones.match_expressions.push_back(std::move(match));
        }
        if (!zones.match_expressions.empty()) {
            good = require_also(out.node_affinity, {zones}) && good;
            if (!zoned_)
                report_.approximated(
                    "PersistentVolume", "zone labels", Errs::too_strict,
                    "kube-scheduler lets nodes without labels of zone and region reach every zone", bound_to);
        }
        if (!good)
            report_.approximated(
                "PersistentVolume", "node affinity", Errs::too_lax,
                "together with other affinities of the pod more than 256 terms: not required", out.name);
        else
            report_.exact("PersistentVolume", "node affinity and zones");
        return !shared;
    }

    ReportBuilder& report_;
    bool read_ = false, zoned_ = true;
    std::map<std::string, Place> claims_, volumes_;
};

}  // namespace GPUSCHED_NAMESPACE::io::detail::kubernetes

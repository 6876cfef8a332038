// SPDX-License-Identifier: Apache-2.0
// The nodes that a pod may run on: taints, selectors, node affinity, cordons and volumes.
#pragma once

#include "io/kubernetes/pods.hpp"
#include "model/node_match.hpp"

#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// Taints and the cordon of a node.
inline void read_taints(const Node& node, NodeSpec& out, ReportBuilder& report) {
    const auto spec = node.object["spec"];
    for (const auto& taint : spec["taints"].items()) {
        Taint read{.key = text_at(taint, "key"),
                   .value = text_at(taint, "value"),
                   .effect = text_at(taint, "effect")};
        const bool keeps_away = read.effect == "NoSchedule" || read.effect == "NoExecute";
        if (read.key.empty() || (!keeps_away && read.effect != "PreferNoSchedule")) {
            report.ignored("Node", "taints", Errs::neither, "without a key, or of no known effect", out.name);
            continue;
        }
        if (keeps_away)
            report.exact("Node", "taints");
        else
            report.ignored("Node", "taints PreferNoSchedule", Errs::neither,
                           "preferences are kept, and forbid nothing", out.name);
        out.taints.push_back(std::move(read));
    }
    if (!truth_at(spec, "unschedulable")) return;
    out.schedulable = false;
    const Taint cordon{.key = std::string(gpusched::detail::cordon_taint), .effect = "NoSchedule"};
    const bool tainted = std::ranges::any_of(out.taints, [&](const Taint& taint) {
        return taint.key == cordon.key && taint.effect == cordon.effect;
    });
    if (!tainted) out.taints.push_back(cordon);  // as the node controller does
    report.exact_of("Node", "cordons", out.name);
}

/// Whether a label may have that value: at most 63 letters, digits, dots, dashes and underscores, with a
/// letter or digit at both ends. kube-scheduler treats a condition with another value as malformed.
inline bool is_label_value(std::string_view value) {
    const auto plain = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    if (value.empty()) return true;
    return value.size() <= 63 && plain(value.front()) && plain(value.back()) &&
           std::ranges::all_of(value, [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; });
}

/// Reads one condition on labels or fields; none if it is malformed.
inline std::optional<NodeMatch> read_match(const Place& match) {
    NodeMatch out{.key = text_at(match, "key")};
    const auto op = text_at(match, "operator");
    bool known = false;
    for (const auto& [value, name] : enumerators<MatchOperator>())
        if (op == name) out.op = value, known = true;
    for (const auto& value : match["values"].items()) {
        auto text = value.text();
        if (!text || text->find('\0') != text->npos) return std::nullopt;
        out.values.push_back(*std::move(text));
    }
    if (!known || out.key.empty()) return std::nullopt;
    const auto count = out.values.size();
    switch (out.op) {
    case MatchOperator::in:
    case MatchOperator::not_in:
        return count > 0 ? std::optional(out) : std::nullopt;
    case MatchOperator::exists:
    case MatchOperator::does_not_exist:
        return count == 0 ? std::optional(out) : std::nullopt;
    case MatchOperator::gt:
    case MatchOperator::lt:
        break;
    }
    return count == 1 && gpusched::detail::label_integer(out.values.front()) ? std::optional(out)
                                                                             : std::nullopt;
}

/// Terms of which one must hold. A malformed term holds on no node, as in kube-scheduler.
/// @param selector an object with `nodeSelectorTerms`
/// @param malformed is set if there is such a term
inline std::vector<NodeTerm> read_node_terms(const Place& selector, bool& malformed) {
    std::vector<NodeTerm> out;
    for (const auto& term : selector["nodeSelectorTerms"].items()) {
        NodeTerm read;
        bool good = true;
        for (const auto& expression : term["matchExpressions"].items()) {
            auto match = read_match(expression);
            good = good && match && std::ranges::all_of(match->values, is_label_value);
            if (match) read.match_expressions.push_back(*std::move(match));
        }
        for (const auto& field : term["matchFields"].items()) {
            auto match = read_match(field);
            good = good && match && match->key == "metadata.name" &&
                   (match->op == MatchOperator::in || match->op == MatchOperator::not_in);
            if (match) read.match_fields.push_back(*std::move(match));
        }
        malformed = malformed || !good;
        out.push_back(good ? std::move(read) : NodeTerm{});
    }
    if (out.empty()) out.emplace_back();  // no term holds
    return out;
}

/// Most terms in the product of two affinities.
inline constexpr std::size_t most_terms = 256;

/// Requires `more` in addition to `to`.
/// @return false, with `to` unchanged, if the result would have more than `most_terms` terms
/// @throws InvalidInput if the result is larger than what is left
inline bool require_also(std::vector<NodeTerm>& to, const std::vector<NodeTerm>& more, Expansion& left) {
    if (to.empty()) {
        to = more;
        return true;
    }
    if (to.size() * more.size() > most_terms) return false;
    left.take(to.size() * bytes_of(more) + more.size() * bytes_of(to));
    std::vector<NodeTerm> both;
    const auto impossible = [](const NodeTerm& term) {
        return term.match_expressions.empty() && term.match_fields.empty();
    };
    for (const auto& a : to)
        for (const auto& b : more) {
            if (impossible(a) || impossible(b)) continue;
            auto term = a;
            term.match_expressions.insert(term.match_expressions.end(), b.match_expressions.begin(),
                                          b.match_expressions.end());
            term.match_fields.insert(term.match_fields.end(), b.match_fields.begin(), b.match_fields.end());
            both.push_back(std::move(term));
        }
    if (both.empty()) both.emplace_back();
    to = std::move(both);
    return true;
}

inline void read_tolerations(const Pod& pod, TaskSpec& out, ReportBuilder& report) {
    bool timed = false;
    for (const auto& toleration : pod.spec()["tolerations"].items()) {
        Toleration read{.key = text_at(toleration, "key"),
                        .op = text_at(toleration, "operator"),
                        .value = text_at(toleration, "value"),
                        .effect = text_at(toleration, "effect")};
        if (read.op.empty()) read.op = "Equal";
        if (read.op == "Gt" || read.op == "Lt") {
            report.approximated("Pod", "tolerations that compare numbers", Errs::too_strict,
                                "tolerate nothing, as with the default of the feature gate "
                                "TaintTolerationComparisonOperators",
                                out.name);
            continue;
        }
        if (read.op == "Exists") read.value.clear();
        if ((read.op != "Exists" && read.op != "Equal") || (read.op == "Equal" && read.key.empty())) {
            report.ignored("Pod", "tolerations", Errs::neither, "of no known form", out.name);
            continue;
        }
        timed = timed || toleration["tolerationSeconds"];
        add_once(out.tolerations, std::move(read));
    }
    if (!out.tolerations.empty()) report.exact("Pod", "tolerations");
    if (timed)
        report.ignored("Pod", "tolerationSeconds", Errs::neither,
                       "limits when a taint evicts, not where the pod may run", out.name);
}

/// Tolerations, nodeSelector and required node affinity.
inline void read_eligibility(const Pod& pod, TaskSpec& out, ReportBuilder& report) {
    read_tolerations(pod, out, report);
    out.node_selector = texts_at(pod.spec(), "nodeSelector");
    if (!out.node_selector.empty()) report.exact("Pod", "nodeSelector");
    const auto affinity = pod.spec()["affinity"]["nodeAffinity"];
    if (const auto required = affinity["requiredDuringSchedulingIgnoredDuringExecution"]) {
        bool malformed = false;
        out.node_affinity = read_node_terms(required, malformed);
        if (malformed)
            report.approximated("Pod", "node affinity", Errs::neither,
                                "a malformed term holds on no node, as in kube-scheduler", out.name);
        else
            report.exact("Pod", "node affinity");
    }
    if (!affinity["preferredDuringSchedulingIgnoredDuringExecution"].items().empty())
        report.ignored("Pod", "preferred node affinity", Errs::neither, "preferences forbid nothing",
                       out.name);
}

/// Whether the task tolerates the node's taints and its selectors match.
inline bool is_eligible(const TaskSpec& task, const NodeSpec& node) {
    using gpusched::detail::holds;
    const auto tolerated = [&](const Taint& taint) {
        return taint.effect == "PreferNoSchedule" || Inventory::tolerates(task.tolerations, taint);
    };
    return holds(task.node_selector, node.labels) && holds(task.node_affinity, node.labels, node.name) &&
           std::ranges::all_of(node.taints, tolerated);
}

class Volumes {
  public:
    Volumes(const Objects& objects, ClusterSpec& cluster, Expansion& left, ReportBuilder& report)
        : cluster_(cluster), left_(left), report_(report), read_(objects.any(Kind::claim)),
          claims_(objects.by_name(Kind::claim)), volumes_(objects.by_name(Kind::volume)) {
        report_.exact("PersistentVolumeClaim", "objects", std::ssize(claims_));
        report_.exact("PersistentVolume", "objects", std::ssize(volumes_));
        each_readable(objects.of(Kind::storage_class), "StorageClass", Errs::neither, report,
                      [&](const Place& object) {
                          if (text_at(object, "volumeBindingMode") != "WaitForFirstConsumer")
                              immediate_.insert(identity_of(object, false).name);
                          report.exact("StorageClass", "volumeBindingMode");
                      });
        for (const auto& node : cluster.nodes)
            zoned_ = zoned_ && std::ranges::any_of(zone_labels, [&](const auto& key) {
                         return node.labels.contains(key.first);
                     });
    }

    /// Restricts the task to nodes that reach the pod's volumes.
    /// @param task index of the task
    /// @return whether a second copy of the pod cannot have its volumes
    bool fill(const Pod& pod, std::size_t task, TaskSpec& out) {
        bool alone = false, spreads = false;
        for (const auto& constraint : pod.spec()["topologySpreadConstraints"].items())
            spreads = spreads || (text_at(constraint, "whenUnsatisfiable") != "ScheduleAnyway" &&
                                  text_at(constraint, "nodeAffinityPolicy") != "Ignore");
        for (const auto& volume : pod.spec()["volumes"].items()) {
            auto name = volume["persistentVolumeClaim"]["claimName"].text().value_or("");
            if (volume["ephemeral"]) name = pod.id.name + "-" + text_at(volume, "name");
            if (name.empty()) continue;
            const auto full = pod.id.space + "/" + name;
            const auto found = claims_.find(full);
            if (!pod.bound() && !out.waiting && read_)
                if (const auto why = why_not_ready(found == claims_.end() ? Place{} : found->second);
                    !why.empty())
                    out.waiting = {WaitingFor::volume_claim, full + " " + why};
            if (found == claims_.end()) {
                report_.ignored("Pod", "persistent volumes", Errs::too_lax,
                                read_ ? "the claim was not read: its node affinity is unknown"
                                      : "no PersistentVolumeClaim was read: their node affinity is unknown",
                                out.name);
                if (!pod.bound() && !read_) note_unread(out, "volume claim " + full);
                continue;
            }
            for (const auto& mode : found->second["spec"]["accessModes"].items())
                if (mode.text() == "ReadWriteOncePod" && !volume["ephemeral"]) {
                    auto& users = users_[pod.id.space + "/" + name];
                    if (users.empty() || users.back() != task) users.push_back(task);
                }
            // Every copy gets its own ephemeral claim.
            alone = (require(found->second, spreads, out) && !volume["ephemeral"]) || alone;
        }
        return alone;
    }

    /// The tasks that use each claim of access mode ReadWriteOncePod, which only one pod may use at a time.
    [[nodiscard]] const std::map<std::string, std::vector<std::size_t>>& users() const { return users_; }

  private:
    /// Labels of zones and regions, and the label that replaces each.
    static constexpr std::pair<const char*, const char*> zone_labels[] = {
        {"topology.kubernetes.io/zone", nullptr},
        {"topology.kubernetes.io/region", nullptr},
        {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
        {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"}};

    /// Why kube-scheduler places no pod with this claim; empty if it does.
    [[nodiscard]] std::string why_not_ready(const Place& claim) const {
        if (!claim) return "does not exist";
        if (claim["metadata"]["deletionTimestamp"]) return "is being deleted";
        if (text_at(claim["status"], "phase") == "Lost") return "has lost its volume";
        if (!text_at(claim["spec"], "volumeName").empty()) return {};
        // Only a class that waits for the first consumer chooses the volume after the node.
        const auto name = text_at(claim["spec"], "storageClassName");
        if (name.empty()) return "has no volume yet, and no storage class";
        return immediate_.contains(name) ? "has no volume yet (storage class " + name + ")" : std::string();
    }

    /// @param spreads the pod has a spread constraint over the nodes that its own affinity allows, without
    ///         regard to volumes
    bool require(const Place& claim, bool spreads, TaskSpec& out) {
        const auto spec = claim["spec"];
        bool shared = false;
        for (const auto& mode : spec["accessModes"].items())
            shared = shared || mode.text() == "ReadWriteMany" || mode.text() == "ReadOnlyMany";
        const auto bound_to = text_at(spec, "volumeName");
        if (bound_to.empty()) {
            report_.ignored("PersistentVolumeClaim", "claims without a volume", Errs::too_lax,
                            "the nodes for a new volume are not known", out.name);
            return !shared;
        }
        const auto found = volumes_.find(bound_to);
        if (found == volumes_.end()) {
            report_.ignored("Pod", "persistent volumes", Errs::too_lax,
                            "the volume was not read: its node affinity is unknown", out.name);
            if (!out.node) note_unread(out, "volume " + bound_to);
            return !shared;
        }
        const auto& volume = found->second;
        bool good = true, malformed = false;
        std::vector<NodeTerm> reach;
        if (const auto required = volume["spec"]["nodeAffinity"]["required"])
            good = require_also(reach, read_node_terms(required, malformed), left_);
        if (const auto zones = zones_of(volume); !zones.empty())
            good = require_also(reach, zones, left_) && good;
        if (!reach.empty() && !(spreads && require_by_resource(bound_to, reach, out)))
            good = require_also(out.node_affinity, reach, left_) && good;
        if (!good)
            report_.approximated(
                "PersistentVolume", "node affinity", Errs::too_lax,
                "together with other affinities of the pod more than 256 terms: not required", out.name);
        else
            report_.exact("PersistentVolume", "node affinity and zones");
        return !shared;
    }

    /// Gives nodes that reach the volume a resource, and the pod a request for one: unlike node affinity,
    /// topology spread ignores resources.
    /// @return false if the pod runs on a node that does not reach the volume
    bool require_by_resource(const std::string& volume, const std::vector<NodeTerm>& reach, TaskSpec& out) {
        using gpusched::detail::holds;
        std::string reached;  // by node
        for (const auto& node : cluster_.nodes) {
            reached += holds(reach, node.labels, node.name) ? '1' : '0';
            if (node.name == out.node && reached.back() == '0') return false;
        }
        const auto [known, is_new] = reached_.try_emplace(std::move(reached), "volumes like " + volume);
        for (std::size_t i = 0; is_new && i < cluster_.nodes.size(); ++i) {
            if (known->first[i] != '1') continue;
            left_.take_names(1, known->second.size() + 48);
            cluster_.nodes[i].resources[known->second] = 1'000'000'000;
        }
        out.resources[known->second] = 1;
        return true;
    }

    /// Terms for the zones and regions in a volume's labels, of which one must hold; none if it has no such
    /// label.
    [[nodiscard]] std::vector<NodeTerm> zones_of(const Place& volume) {
        const auto labels = texts_at(volume["metadata"], "labels");
        std::vector<NodeTerm> out;
        for (const auto& [key, newer] : zone_labels) {
            const auto label = labels.find(key);
            if (label == labels.end()) continue;
            NodeMatch match{.key = key};
            std::string_view rest = label->second;
            while (true) {  // zones, separated by two underscores
                const auto end = rest.find("__");
                match.values.emplace_back(rest.substr(0, end));
                if (end == rest.npos) break;
                rest.remove_prefix(end + 2);
            }
            std::vector<NodeTerm> either{{.match_expressions = {match}}};
            if (newer != nullptr)  // the new label counts if a node lacks the old one
                either.push_back({.match_expressions = {{.key = key, .op = MatchOperator::does_not_exist},
                                                        {.key = newer, .values = match.values}}});
            static_cast<void>(require_also(out, either, left_));  // at most 4 terms
        }
        if (out.empty() || zoned_) return out;
        NodeTerm unlabelled;  // a node without such labels reaches every zone
        for (const auto& [key, newer] : zone_labels)
            unlabelled.match_expressions.push_back({.key = key, .op = MatchOperator::does_not_exist});
        out.push_back(std::move(unlabelled));
        return out;
    }

    ClusterSpec& cluster_;
    Expansion& left_;
    ReportBuilder& report_;
    std::map<std::string, std::string> reached_;  // the resource that stands for volumes, by reached nodes
    bool read_ = false, zoned_ = true;
    std::set<std::string> immediate_;  // storage classes that create volumes before pods have nodes
    std::map<std::string, Place> claims_, volumes_;
    std::map<std::string, std::vector<std::size_t>> users_;
};

}  // namespace gpusched::io::detail::kubernetes

// SPDX-License-Identifier: Apache-2.0
// Controllers of pods, how their pods can move, and PodDisruptionBudgets.
#pragma once

#include "io/kubernetes/groups.hpp"
#include "io/kubernetes/pods.hpp"

#include <gpusched/io/kubernetes.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// The controller that decides about a pod: the Deployment above its ReplicaSet.
struct Owner {
    std::string kind{};  ///< empty = no controller
    std::string name{};
};

/// Controllers of pods, which determine how a pod can move and whether it may be evicted.
class Owners {
  public:
    Owners(const Objects& objects, const KubernetesReadOptions& options, ReportBuilder& report)
        : options_(options), report_(report), replica_sets_read_(objects.any(Kind::replica_set)) {
        const auto read = [&](Kind kind, const std::string& name, const char* replicas) {
            each_readable(objects.of(kind), name, Errs::neither, report, [&](const Place& object) {
                const auto full = identity_of(object, true).full();
                replicas_[name + " " + full] = count_at(object["spec"], replicas, 1);
                if (kind == Kind::replica_set) {
                    const auto above = controller_of(object);
                    above_[full] = above ? Owner{text_at(above, "kind"), text_at(above, "name")} : Owner{};
                }
                report_.exact(name, "pods that it wants");
            });
        };
        read(Kind::replica_set, "ReplicaSet", "replicas");
        read(Kind::deployment, "Deployment", "replicas");
        read(Kind::stateful_set, "StatefulSet", "replicas");
        read(Kind::job, "Job", "parallelism");
        for (const auto& object : objects.of(Kind::daemon_set))
            report_.ignored("DaemonSet", "objects", Errs::neither,
                            "its pods say that they are of a DaemonSet", described(object));
    }

    [[nodiscard]] Owner of(const Pod& pod) const {
        const auto controller = controller_of(pod.object);
        if (!controller) return {};
        Owner owner{text_at(controller, "kind"), text_at(controller, "name")};
        if (owner.kind != "ReplicaSet") return owner;
        const auto found = above_.find(pod.id.space + "/" + owner.name);
        if (found != above_.end()) return found->second.kind.empty() ? owner : found->second;
        const auto hash = "-" + pod.label("pod-template-hash");
        if (hash.size() > 1 && owner.name.size() > hash.size() && owner.name.ends_with(hash))
            return {"Deployment", owner.name.substr(0, owner.name.size() - hash.size())};
        return owner;
    }

    /// The number of pods that the controller wants; none if it was not read.
    [[nodiscard]] std::optional<std::int64_t> replicas(const std::string& space, const Owner& owner) const {
        const auto found = replicas_.find(owner.kind + " " + space + "/" + owner.name);
        if (found == replicas_.end()) return std::nullopt;
        return found->second;
    }

    /// Sets how the pod moves, and whether it may be evicted.
    /// @param alone a second copy of it could not have its volumes
    void fill(const Pod& pod, const Owner& owner, bool alone, TaskSpec& out) const {
        const auto& kind = owner.kind;
        out.preemptible = true;
        if (kind == "DaemonSet" || kind == "Node" || !pod.annotation("kubernetes.io/config.mirror").empty()) {
            out.daemon = true;
            out.how = Mobility::none;
            out.preemptible = false;
            report_.exact("Pod", kind == "DaemonSet" ? "of a DaemonSet: stays" : "static: stays");
        } else if (kind == "Deployment" || kind == "ReplicaSet" || kind == "ReplicationController") {
            out.how = alone || options_.moves_by_eviction ? Mobility::restart : Mobility::copy;
            report_.exact("Pod", alone ? "of a " + kind + " with a volume for one node: restarts"
                                 : options_.moves_by_eviction
                                     ? "of a " + kind + ": restarts, as the options say"
                                     : "of a " + kind + ": moves by a copy");
            if (kind == "Deployment" && !replica_sets_read_)
                report_.approximated(
                    "Pod", "Deployments", Errs::neither,
                    "no ReplicaSet was read: a ReplicaSet named after its pod-template-hash counts as a "
                    "Deployment's",
                    out.name);
        } else if (kind == "StatefulSet") {
            out.how = Mobility::restart;
            report_.exact("Pod", "of a StatefulSet: restarts");
        } else if (kind == "Job") {
            out.how = Mobility::suspend;
            report_.exact("Pod", "of a Job: is suspended and resumed");
        } else if (kind.empty()) {
            out.how = Mobility::none;
            out.preemptible = options_.evict_bare_pods;
            report_.exact("Pod", options_.evict_bare_pods
                                     ? "without an owner: does not move, may be evicted"
                                     : "without an owner: does not move, is not evicted");
        } else if (contains(options_.recreating_owners, kind)) {
            out.how = Mobility::restart;
            report_.exact("Pod", "of a " + printable(kind) + ": restarts, as the options say");
        } else {
            out.how = Mobility::none;
            out.preemptible = false;
            report_.approximated(
                "Pod", "owners of other kinds", Errs::too_strict,
                "whether the owner recreates a pod is not known: it does not move and is not evicted "
                "(recreating_owners)",
                out.name + " of " + kind + " " + owner.name);
        }
        if (out.daemon) return;
        protect(pod, out);
    }

  private:
    void protect(const Pod& pod, TaskSpec& out) const {
        const auto stays = [&] {
            out.how = Mobility::none;
            out.preemptible = false;
        };
        const auto by = [&](const char* key, const char* value) {
            if (pod.annotation(key) != value) return;
            if (options_.ignore_protection)
                return report_.ignored("Pod", key, Errs::too_lax, "as the options say", out.name);
            stays();
            report_.exact("Pod", std::string(key) + ": " + value);
        };
        by("cluster-autoscaler.kubernetes.io/safe-to-evict", "false");
        by("karpenter.sh/do-not-disrupt", "true");
        by("karpenter.sh/do-not-evict", "true");
        auto scheduler = text_at(pod.spec(), "schedulerName");
        if (scheduler.empty()) scheduler = "default-scheduler";
        const auto& ours = options_.schedulers;
        if (ours.empty() ? scheduler != "default-scheduler" : !contains(ours, scheduler)) {
            stays();
            if (!pod.bound() && !out.waiting) out.waiting = {WaitingFor::other_scheduler, scheduler};
            report_.approximated(
                "Pod", "other schedulers", Errs::too_strict,
                "pods of a scheduler that is not among the options' do not move and are not evicted",
                out.name + " of " + scheduler);
        }
        if (pod.terminating && pod.bound()) {
            out.locked = out.terminating = true;
            report_.exact_of("Pod", "terminating: holds its room until it is gone", out.name);
        }
    }

    const KubernetesReadOptions& options_;
    ReportBuilder& report_;
    bool replica_sets_read_;
    std::map<std::string, Owner> above_;            // of ReplicaSets
    std::map<std::string, std::int64_t> replicas_;  // by kind and name
};

/// Reads PodDisruptionBudgets as the disruption controller counts them and the Eviction API applies them.
class Budgets {
  public:
    Budgets(const std::vector<Pod>& pods, const PodIndex& index, const Owners& owners, ClusterSpec& cluster,
            Expansion& left, ReportBuilder& report)
        : pods_(pods), index_(index), owners_(owners), cluster_(cluster), left_(left), report_(report),
          of_pod_(pods.size()) {}

    void read(const Objects& objects) {
        each_readable(objects.of(Kind::budget), "PodDisruptionBudget", Errs::too_lax, report_,
                      [&](const Place& object) { read_one(object); });
        for (std::size_t i = 0; i < pods_.size(); ++i)
            if (of_pod_[i] > 1)
                report_.approximated("Pod", "several budgets", Errs::too_lax,
                                     "all of them hold; the Eviction API refuses to evict such a pod at all",
                                     cluster_.tasks[i].name);
    }

  private:
    /// A budget as the disruption controller sees it.
    struct State {
        std::int64_t healthy = 0, desired = 0, allowed = 0;
    };

    void read_one(const Place& object) {
        const auto id = identity_of(object, true);
        const auto spec = object["spec"], status = object["status"];
        auto selector = read_selector(spec["selector"]);
        // In the API group's first version, an empty selector selects nothing.
        if (text_at(object, "apiVersion") == "policy/v1beta1" && selector.matches.empty())
            selector.nothing = true;
        const auto members = index_.selected({.names = {id.space}}, selector);
        State state;
        if (status["disruptionsAllowed"] && status["desiredHealthy"]) {
            state = {.healthy = integer_at(status, "currentHealthy", 0),
                     .desired = integer_at(status, "desiredHealthy", 0),
                     .allowed = integer_at(status, "disruptionsAllowed", 0)};
            if (integer_at(status, "observedGeneration", 0) < integer_at(object["metadata"], "generation", 0))
                report_.approximated(
                    "PodDisruptionBudget", "status", Errs::either,
                    "older than the budget: the disruption controller had not yet counted again", id.full());
            else
                report_.exact("PodDisruptionBudget", "status");
        } else {
            state = count(spec, members, id);
        }
        BudgetSpec out{.name = id.full()};
        out.broken = state.healthy < state.desired;
        out.allowed_down = std::clamp<std::int64_t>(state.allowed, 0, 1'000'000'000);
        // The Eviction API evicts unready pods without regard to the budget, unless it is broken.
        const bool always = text_at(spec, "unhealthyPodEvictionPolicy") == "AlwaysAllow";
        const bool guards_healthy_only = always || (!out.broken && state.desired > 0);
        for (const auto i : members) {
            const auto& pod = pods_[i];
            if (!pod.bound() || pod.phase == "Pending" || pod.terminating ||
                (!pod.ready && guards_healthy_only))
                continue;
            left_.take_names(1, cluster_.tasks[i].name.size());
            out.tasks.push_back(cluster_.tasks[i].name);
            ++of_pod_[i];
        }
        if (out.broken || out.allowed_down == 0)
            report_.exact_of("PodDisruptionBudget", out.broken ? "budgets that are broken" : "budgets at 0",
                             out.name);
        else
            report_.exact("PodDisruptionBudget", "budgets that allow evictions");
        cluster_.budgets.push_back(std::move(out));
    }

    /// A number, or a percentage of `all`, rounded up.
    static std::int64_t scaled(const Place& place, std::int64_t all) {
        const auto text = place.text().value_or("");
        std::int64_t value = 0;
        auto digits = std::string_view(text);
        const bool percent = digits.ends_with('%');
        if (percent) digits.remove_suffix(1);
        if (!read_number(digits, value) || value < 0 || value > 1'000'000'000)
            throw Unreadable{place.expected("a number or a percentage")};
        return percent ? (value * all + 99) / 100 : value;
    }

    /// Computes the status of a budget without one, as the disruption controller would.
    State count(const Place& spec, const std::vector<std::size_t>& members, const Identity& id) {
        State out;
        std::int64_t pods = 0, replicas_in_all = 0;
        bool known = true;
        std::set<std::string> counted;
        for (const auto i : members) {
            const auto& pod = pods_[i];
            ++pods;
            if (pod.ready && !pod.terminating && pod.bound()) ++out.healthy;
            const auto owner = owners_.of(pod);
            if (owner.kind.empty() || !counted.insert(owner.kind + " " + owner.name).second) continue;
            const auto replicas = owners_.replicas(pod.id.space, owner);
            known = known && replicas;
            replicas_in_all += replicas.value_or(0);
        }
        const auto all = known ? std::clamp<std::int64_t>(replicas_in_all, 0, 1'000'000'000) : pods;
        std::int64_t expected = all;
        bool of_scale = true;
        if (const auto most = spec["maxUnavailable"]) {
            out.desired = std::max<std::int64_t>(all - scaled(most, all), 0);
        } else if (const auto least = spec["minAvailable"]) {
            of_scale = least.text().value_or("").ends_with('%');
            out.desired = scaled(least, all);
            if (!of_scale) expected = pods;
        }
        out.allowed = expected > 0 ? std::max<std::int64_t>(out.healthy - out.desired, 0) : 0;
        if (of_scale && !known)
            report_.approximated("PodDisruptionBudget", "budgets without status", Errs::too_lax,
                                 "counted from the pods: their owners were not read", id.full());
        else
            report_.approximated("PodDisruptionBudget", "budgets without status", Errs::neither,
                                 "counted from the pods", id.full());
        return out;
    }

    const std::vector<Pod>& pods_;
    const PodIndex& index_;
    const Owners& owners_;
    ClusterSpec& cluster_;
    Expansion& left_;
    ReportBuilder& report_;
    std::vector<int> of_pod_;  // number of its budgets
};

}  // namespace gpusched::io::detail::kubernetes

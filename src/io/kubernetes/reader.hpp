// SPDX-License-Identifier: Apache-2.0
// Reader: from sorted objects to a snapshot, part by part.
#pragma once

#include "io/kubernetes/budgets.hpp"
#include "io/kubernetes/claims.hpp"
#include "io/kubernetes/devices.hpp"
#include "io/kubernetes/eligibility.hpp"
#include "io/kubernetes/gangs.hpp"
#include "io/kubernetes/groups.hpp"
#include "io/kubernetes/kai.hpp"
#include "io/kubernetes/network.hpp"
#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/owners.hpp"
#include "io/kubernetes/pod.hpp"
#include "io/kubernetes/room.hpp"
#include "io/kubernetes/selector.hpp"
#include "io/kubernetes/shape.hpp"
#include "io/kubernetes/time.hpp"
#include "io/kubernetes/volumes.hpp"
#include "io/report_builder.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/io/kubernetes.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

class Reader {
  public:
    /// @param kai what KAI-Scheduler knows besides; null = nothing
    Reader(const Objects& objects, const KubernetesReadOptions& options, ReportBuilder& report,
           const Kai* kai = nullptr)
        : objects_(objects), options_(options), report_(report), kai_(kai), cards_(options.gpu_resources),
          claims_(objects, cards_, report) {}

    /// @throws InvalidInput where there is no node
    ClusterSpec read(const std::string& source) {
        name_absent_kinds();
        read_nodes(source);
        read_priorities();
        read_pods();
        const PodIndex index(pods_);
        const Namespaces namespaces(objects_, index, report_);
        const Owners owners(objects_, options_, report_);
        Gangs gangs(objects_, report_, kai_ != nullptr);
        Volumes volumes(objects_, cluster_, report_);
        cluster_.tasks.resize(pods_.size());
        for (std::size_t i = 0; i < pods_.size(); ++i) {
            const auto& pod = pods_[i];
            auto& task = cluster_.tasks[i];
            read_state(pod, task);
            if (!pod.readable) {
                task.how = Mobility::none;
                task.preemptible = false;
                continue;
            }
            part(pod, "tolerations and node affinity", [&] { read_eligibility(pod, task, report_); });
            bool alone = false;
            part(pod, "volumes", [&] { alone = volumes.fill(pod, i, task); });
            part(pod, "owners", [&] {
                const auto owner = owners.of(pod);
                owners.fill(pod, owner, alone, task);
                gangs.fill(pod, owner, task);
            });
            if (kai_ != nullptr)
                kai_->decide(
                    pod, [&](const std::string& name) { return priority_of(name); }, task);
        }
        gangs.jobs(cluster_);
        fill_room();
        Groups groups(pods_, index, namespaces, cluster_, report_);
        for (std::size_t i = 0; i < pods_.size(); ++i)
            if (pods_[i].readable)
                part(pods_[i], "pod affinity and spread", [&] { groups.fill(pods_[i], cluster_.tasks[i]); });
        groups.list_members();
        groups.keep_apart(volumes.users());
        Budgets(pods_, index, owners, cluster_, report_).read(objects_);
        const auto levels = place_in_network(objects_, options_, cluster_, report_);
        for (std::size_t i = 0; kai_ != nullptr && i < pods_.size(); ++i)
            kai_->place(pods_[i], levels, cluster_.tasks[i]);
        return std::move(cluster_);
    }

  private:
    struct PriorityValue {
        std::int64_t value = 0;
        bool never = false;  ///< its pods do not preempt
    };

    void name_absent_kinds() {
        const auto absent = [&](Kind kind, const char* name, const char* undecided) {
            if (!objects_.any(kind)) report_.absent(name, undecided);
        };
        absent(Kind::pod, "Pod", "what runs and what waits: all nodes are empty");
        absent(Kind::budget, "PodDisruptionBudget", "how many pods may be down at once: any number");
        absent(Kind::priority_class, "PriorityClass",
               "the priority of pods that do not say it themselves: 0");
        absent(Kind::name_space, "Namespace", "which namespaces a namespaceSelector means");
        absent(Kind::volume, "PersistentVolume", "which nodes reach a volume");
        absent(Kind::claim, "PersistentVolumeClaim", "which volumes a pod uses, and whether two copies can");
        absent(Kind::replica_set, "ReplicaSet", "whether a ReplicaSet is a Deployment's");
        absent(Kind::deployment, "Deployment",
               "how many pods it wants, for budgets in percent without a status");
        absent(Kind::stateful_set, "StatefulSet",
               "how many pods it wants, for budgets in percent without a status");
        absent(Kind::job, "Job", "how many pods it wants, for budgets in percent without a status");
        absent(Kind::resource_slice, "ResourceSlice", "which devices of DRA drivers nodes have");
        absent(Kind::resource_claim, "ResourceClaim", "which devices pods have by claims");
        absent(Kind::device_class, "DeviceClass", "what a claim means: classes are told by their names");
        absent(Kind::pod_group, "PodGroup", "how many pods of a gang must run");
    }

    /// Reads a part of a pod; what is malformed in it is ignored, and reported.
    template <class Read>
    void part(const Pod& pod, const char* what, Read&& read) {
        try {
            read();
        } catch (const Unreadable& bad) {
            report_.ignored("Pod", what, Errs::too_lax, "malformed", pod.id.full() + ": " + bad.why);
        }
    }

    void read_nodes(const std::string& source) {
        for (const auto& object : objects_.of(Kind::node)) {
            try {
                check_shape(object);
                auto node = read_node(object, report_);
                claims_.fill(identity_of(object, false).name, node);
                NodeSpec spec{.name = identity_of(object, false).name, .labels = node.labels};
                read_taints(node, spec, report_);
                bool ready = false;
                for (const auto& condition : object["status"]["conditions"].items())
                    ready = ready ||
                            (condition["type"].text() == "Ready" && condition["status"].text() == "True");
                if (!ready) {
                    if (!options_.open_unready_nodes) spec.schedulable = false;
                    report_.approximated("Node", "not ready",
                                         options_.open_unready_nodes ? Errs::neither : Errs::too_strict,
                                         options_.open_unready_nodes
                                             ? "receives pods where no taint keeps them off, as asked for"
                                             : "receives no pod; kube-scheduler would place pods there until "
                                               "taints say that it is not ready",
                                         spec.name);
                }
                index_.emplace(spec.name, nodes_.size());
                nodes_.push_back(std::move(node));
                cluster_.nodes.push_back(std::move(spec));
                report_.exact("Node", "objects");
            } catch (const Unreadable& bad) {
                report_.left_out("Node", "objects", "cannot be read", told(object, bad), Errs::too_strict);
            }
        }
        if (!nodes_.empty()) return;
        std::string found = std::to_string(objects_.met()) + " objects";
        if (objects_.met() == 0)
            found = "none: the List is empty";
        else if (objects_.any(Kind::node))
            found = "none that can be read";
        else if (objects_.any(Kind::pod))
            found = std::to_string(objects_.of(Kind::pod).size()) + " pods, but no node";
        else if (!objects_.other_kinds().empty())
            found = objects_.other_kinds();
        std::string why;
        for (const auto& row : report_.rows())
            if (row.kind == "Node" && row.fidelity == Fidelity::left_out && !row.examples.empty())
                why = ": " + row.examples.front();
        throw InvalidInput(
            source +
            ": expected at least one Node (kubectl get nodes,pods,pdb,priorityclasses -A -o json), found " +
            found + why);
    }

    void read_priorities() {
        for (const auto& object : objects_.of(Kind::priority_class)) {
            try {
                const PriorityValue read{integer_at(object, "value", 0),
                                         text_at(object, "preemptionPolicy") == "Never"};
                if (truth_at(object, "globalDefault")) {
                    default_priority_ = read;
                    any_default_priority_ = true;
                }
                priorities_[identity_of(object, false).name] = read;
                report_.exact("PriorityClass", "value");
            } catch (const Unreadable& bad) {
                report_.left_out("PriorityClass", "objects", "cannot be read", told(object, bad),
                                 Errs::either);
            }
        }
    }

    void read_pods() {
        for (const auto& object : objects_.of(Kind::pod)) {
            try {
                auto pod = read_pod_or_room(object);
                const auto name = pod.id.full();
                if (kai_ != nullptr) kai_->prepare(pod);
                if (pod.finished()) {
                    report_.left_out("Pod", "ended", "holds nothing any more", name);
                } else if (pod.terminating && !pod.bound()) {
                    report_.left_out("Pod", "terminating and on no node", "will never run", name);
                } else if (pod.bound() && !index_.contains(pod.node)) {
                    report_.left_out("Pod", "on an unknown node", "its node was not read",
                                     name + " on " + pod.node, Errs::either);
                } else {
                    part(pod, "resource claims", [&] { claims_.fill(pod); });
                    pods_.push_back(std::move(pod));
                }
            } catch (const Unreadable& bad) {
                report_.left_out("Pod", "objects", "cannot be read", told(object, bad), Errs::too_lax);
            }
        }
        claims_.name_unused();
    }

    /// A pod; of one that is bound at least its room. @throws Unreadable
    Pod read_pod_or_room(const Place& object) {
        try {
            check_shape(object);
            return read_pod(object);
        } catch (const Unreadable& bad) {
            auto room = read_room(object);
            if (!room) throw;
            report_.approximated("Pod", "objects", Errs::either,
                                 "cannot be read: it keeps its room, and neither moves nor is evicted",
                                 told(object, bad));
            return *std::move(room);
        }
    }

    void read_state(const Pod& pod, TaskSpec& out) {
        out.name = pod.id.full();
        const auto status = pod.object["status"];
        if (pod.bound()) {
            out.node = pod.node;
            if (pod.phase == "Pending")
                report_.exact_of("Pod", "bound, not running yet", out.name + " on " + pod.node);
            else
                report_.exact("Pod", "running");
        } else if (pod.gated) {
            report_.approximated("Pod", "scheduling gates", Errs::too_lax,
                                 "pending: kube-scheduler does not place it before its gates are gone",
                                 out.name);
        } else {
            report_.exact("Pod", "pending");
        }
        if (const auto nominated = status["nominatedNodeName"].text();
            !pod.bound() && nominated && !nominated->empty())
            report_.ignored("Pod", "nominated node", Errs::too_lax,
                            "the room that is kept for it there counts as free",
                            out.name + " to " + *nominated);
        part(pod, "priority", [&] { read_priority(pod, out); });
        for (const auto* const key : {"startTime"})
            if (const auto time = seconds_at(status, key)) {
                out.start_time = *time;
                cluster_.now = std::max(cluster_.now, *time);
            }
        if (const auto created = seconds_at(pod.object["metadata"], "creationTimestamp"))
            cluster_.now = std::max(cluster_.now, *created);
        for (const auto* const key : {"gpu-fraction", "gpu-memory"})
            if (kai_ == nullptr && !pod.annotation(key).empty())
                report_.ignored("Pod", std::string("annotation ") + key, Errs::too_lax,
                                "kube-scheduler does not count parts of a GPU", out.name);
    }

    /// Of a class that was read; of the empty name that of the global default.
    [[nodiscard]] std::optional<std::int64_t> priority_of(const std::string& name) const {
        if (name.empty())
            return any_default_priority_ ? std::optional(default_priority_.value) : std::nullopt;
        const auto found = priorities_.find(name);
        return found == priorities_.end() ? std::nullopt : std::optional(found->second.value);
    }

    void read_priority(const Pod& pod, TaskSpec& out) {
        const auto spec = pod.spec();
        auto never = text_at(spec, "preemptionPolicy") == "Never";
        if (spec["priority"]) {
            out.priority = integer_at(spec, "priority", 0);
        } else {
            const auto name = text_at(spec, "priorityClassName");
            const auto found = priorities_.find(name);
            if (name == "system-node-critical" || name == "system-cluster-critical") {
                out.priority = name == "system-node-critical" ? 2'000'001'000 : 2'000'000'000;
            } else if (name.empty()) {
                out.priority = default_priority_.value;
                never = never || default_priority_.never;
            } else if (found != priorities_.end()) {
                out.priority = found->second.value;
                never = never || found->second.never;
            } else {
                report_.approximated("Pod", "priority", Errs::either, "its PriorityClass was not read: 0",
                                     out.name);
            }
        }
        constexpr std::int64_t largest = 1'000'000'000'000;
        out.priority = std::clamp<std::int64_t>(out.priority, -largest, largest);
        report_.exact("Pod", "priority");
        if (never)
            report_.ignored("Pod", "preemptionPolicy Never", Errs::too_lax,
                            "a plan may evict others for it, if it is asked to", out.name);
    }

    void fill_room() {
        std::vector<Quantities> used(nodes_.size());
        std::vector<std::optional<std::size_t>> home(pods_.size());
        for (std::size_t i = 0; i < pods_.size(); ++i) {
            if (!pods_[i].bound()) continue;
            home[i] = index_.at(pods_[i].node);
            for (const auto& [name, amount] : pods_[i].requests)
                if (cards_.is_device(name)) used[*home[i]][name] += Quantity{amount.value(), 0};
        }
        if (kai_ != nullptr) {
            const auto shared = kai_->shared_gpus(pods_, home, nodes_.size());
            for (std::size_t n = 0; n < nodes_.size(); ++n)
                if (shared[n] > 0) used[n][Kai::whole_gpu] += Quantity{shared[n], 0};
        }
        const Devices devices(nodes_, pods_, home, used, cards_, report_);
        Room room(nodes_, pods_, devices, report_);
        for (std::size_t n = 0; n < nodes_.size(); ++n) devices.fill(n, cluster_.nodes[n]);
        for (std::size_t i = 0; i < pods_.size(); ++i) {
            auto& task = cluster_.tasks[i];
            const auto counted = devices.fill(
                pods_[i], home[i], task, [&](std::size_t n) { return is_eligible(task, cluster_.nodes[n]); });
            room.fill(counted, home[i], task);
        }
        if (kai_ != nullptr) kai_->fill_parts(pods_, home, cluster_);
        for (std::size_t n = 0; n < nodes_.size(); ++n) room.fill(n, cluster_.nodes[n]);
        room.limit_pods(cluster_);
    }

    const Objects& objects_;
    const KubernetesReadOptions& options_;
    ReportBuilder& report_;
    const Kai* kai_;
    CardNames cards_;
    Claims claims_;
    ClusterSpec cluster_;
    std::vector<Node> nodes_;                             // as cluster_.nodes
    std::vector<Pod> pods_;                               // as cluster_.tasks
    std::unordered_map<std::string, std::size_t> index_;  // of nodes, by name
    std::map<std::string, PriorityValue> priorities_;
    PriorityValue default_priority_;
    bool any_default_priority_ = false;
};

}  // namespace gpusched::io::detail::kubernetes

// SPDX-License-Identifier: Apache-2.0
// KAI-Scheduler's additions to pods: PodGroups, bind requests, parts of GPUs.
#pragma once

#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/pods.hpp"

#include <gpusched/core/text.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace gpusched::io::detail::kubernetes {

class Kai {
  public:
    static constexpr std::int64_t default_priority = 50;
    /// PodGroups of this priority and above are not preempted, unless they say otherwise.
    static constexpr std::int64_t first_non_preemptible = 100;

    /// Takes the objects of a snapshot.
    /// @param root an object with `rawObjects`
    Kai(const Place& root, Objects& objects, ReportBuilder& report) : report_(report) {
        const auto raw = root["rawObjects"];
        struct Part {
            const char *key, *kind, *version;
        };
        for (const Part part : {Part{"nodes", "Node", "v1"},
                                {"pods", "Pod", "v1"},
                                {"podGroups", "PodGroup", "scheduling.run.ai/v2alpha2"},
                                {"priorityClasses", "PriorityClass", "scheduling.k8s.io/v1"},
                                {"persistentVolumes", "PersistentVolume", "v1"},
                                {"persistentVolumeClaims", "PersistentVolumeClaim", "v1"},
                                {"resourceClaims", "ResourceClaim", "resource.k8s.io/v1"},
                                {"resourceSlices", "ResourceSlice", "resource.k8s.io/v1"},
                                {"deviceClasses", "DeviceClass", "resource.k8s.io/v1"},
                                {"topologies", "Topology", "kai.scheduler/v1alpha1"},
                                {"storageClasses", "StorageClass", "storage.k8s.io/v1"}})
            objects.take_all(raw[part.key], part.kind, part.version, report);
        for (const char* const key : {"configMaps", "csiStorageCapacities", "csiDrivers"})
            for (const auto& object : raw[key].items())
                report.ignored(key, "objects", Errs::neither, "does not affect placement", described(object));
        for (const auto& queue : raw["queues"].items())
            report.ignored("Queue", "objects", Errs::too_lax, "quotas, limits and fair shares are not read",
                           described(queue));
        each_readable(raw["bindRequests"].items(), "BindRequest", Errs::too_lax, report,
                      [&](const Place& request) { read_request(request); });
        for (const auto& group : objects.of(Kind::pod_group)) read_group(group);
    }

    /// Puts pods with a bind request on their nodes, and removes the GPU of a pod that only reserves it for
    /// others.
    void prepare(Pod& pod) const {
        if (const auto found = requests_.find(pod.id.full()); found != requests_.end() && !pod.bound()) {
            pod.node = found->second.node;
            report_.approximated("Pod", "bind requests", Errs::neither,
                                 "counts as bound to the node that is selected", pod.id.full());
        }
        if (reserves(pod)) {
            std::erase_if(pod.requests, [](const auto& amount) { return amount.first == whole_gpu; });
            report_.exact("Pod", "reservations of shared GPUs");
        }
    }

    /// Sets priority and preemptibility from the pod's group.
    /// @param priority_of  priority of a class by name, none if it was not read; the empty name is the global
    ///         default
    template <class PriorityOf>
    void decide(const Pod& pod, PriorityOf&& priority_of, TaskSpec& out) const {
        const auto found = groups_.find(pod.id.space + "/" + pod.annotation("pod-group-name"));
        if (found == groups_.end()) return;
        const auto& group = found->second;
        if (!pod.bound() && !out.waiting && !group.over_quota.empty())
            out.waiting = {WaitingFor::quota, group.over_quota};
        auto priority = default_priority;
        if (const auto known = priority_of(group.priority_class)) {
            priority = *known;
        } else if (!group.priority_class.empty()) {
            report_.approximated("PodGroup", "priority", Errs::either, "its PriorityClass was not read: 50",
                                 found->first + ": " + group.priority_class);
        }
        priority = std::clamp(priority, -largest_quantity, largest_quantity);
        out.priority = priority;
        const bool preemptible = group.preemptibility.empty() ? priority < first_non_preemptible
                                                              : group.preemptibility == "preemptible";
        if (preemptible) {
            report_.exact("Pod", "of a preemptible PodGroup");
        } else {
            out.preemptible = false;
            report_.exact("Pod", "of a PodGroup that is not preemptible: not evicted");
        }
    }

    /// Sets the network level of the domain that the pods of a group must or should share.
    /// @param levels the label of each level of the network
    void place(const Pod& pod, const std::vector<std::string>& levels, TaskSpec& out) const {
        const auto found = groups_.find(pod.id.space + "/" + pod.annotation("pod-group-name"));
        if (found == groups_.end()) return;
        const auto level_of = [&](const std::string& label) -> std::optional<Level> {
            const auto at = std::ranges::find(levels, label);
            if (at == levels.end() || label == "kubernetes.io/hostname") return std::nullopt;
            return static_cast<Level>(at - levels.begin());
        };
        for (const auto& [label, mode] : {std::pair(found->second.required, NetworkMode::required),
                                          std::pair(found->second.preferred, NetworkMode::preferred)}) {
            if (label.empty()) continue;
            const auto* const what =
                mode == NetworkMode::required ? "required topology level" : "preferred topology level";
            const auto level = level_of(label);
            if (!level) {
                report_.ignored("PodGroup", what,
                                mode == NetworkMode::required ? Errs::too_lax : Errs::neither,
                                "no level of the network: its pods may be in several domains",
                                found->first + ": " + label);
            } else if (out.network_affinity) {
                report_.ignored("PodGroup", what, Errs::neither, "the required one holds", found->first);
            } else {
                out.network_affinity = {*level, mode};
                report_.exact("PodGroup", what);
            }
        }
    }

    /// The number of shared GPUs of each node: they are in use, although no pod requests a whole one.
    /// @param home  by pod: its node
    [[nodiscard]] std::vector<std::int64_t> shared_gpus(std::span<const Pod> pods,
                                                        std::span<const std::optional<std::size_t>> home,
                                                        std::size_t nodes) const {
        std::vector<std::set<std::string>> groups(nodes);
        for (std::size_t i = 0; i < pods.size(); ++i)
            if (home[i] && asks_for_part(pods[i])) groups[*home[i]].insert(group_of(pods[i]));
        std::vector<std::int64_t> out;
        for (const auto& of_node : groups) out.push_back(static_cast<std::int64_t>(of_node.size()));
        return out;
    }

    [[nodiscard]] static bool asks_for_part(const Pod& pod) {
        return !pod.annotation("gpu-fraction").empty() || !pod.annotation("gpu-memory").empty();
    }

    /// Assigns parts of GPUs: pods of one group share one GPU. Call it after whole GPUs were requested; of
    /// these only claims have fixed numbers.
    /// @param home  by pod: its node
    void fill_parts(std::span<const Pod> pods, std::span<const std::optional<std::size_t>> home,
                    ClusterSpec& cluster) const {
        std::vector<std::set<int>> taken(cluster.nodes.size());
        std::vector<std::int64_t> asked(cluster.nodes.size(), 0);  // whole GPUs without a number
        for (std::size_t i = 0; i < pods.size(); ++i)
            if (home[i]) {
                taken[*home[i]].insert(cluster.tasks[i].gpus.begin(), cluster.tasks[i].gpus.end());
                if (cluster.tasks[i].assign_gpus) asked[*home[i]] += cluster.tasks[i].gpu_count;
            }
        struct Shared {
            int gpu = 0;
            std::int64_t left = 1000;
        };
        std::map<std::pair<std::size_t, std::string>, std::optional<Shared>> groups;
        for (std::size_t i = 0; i < pods.size(); ++i) {
            if (!asks_for_part(pods[i])) continue;
            auto& task = cluster.tasks[i];
            if (task.gpu_count > 0 || task.device_count > 0) {
                report_.ignored("Pod", "parts of a GPU", Errs::too_lax, "it requests whole ones, too",
                                task.name);
                continue;
            }
            const auto share = share_of(pods[i], home[i], cluster);
            if (!share) continue;
            const auto devices = devices_of(pods[i]);
            if (!home[i]) {
                task.gpu_count = devices;
                task.gpu_share_milli = devices > 1 ? 1000 : *share;
                continue;
            }
            auto& node = cluster.nodes[*home[i]];
            auto& held = taken[*home[i]];
            const auto [found, added] = groups.try_emplace({*home[i], group_of(pods[i])});
            if (added) {
                int free = 0;
                while (free < node.gpu_count && held.contains(free)) ++free;
                // Enough GPUs must remain for pods that hold whole ones without a number.
                if (free < node.gpu_count &&
                    node.gpu_count - static_cast<std::int64_t>(held.size()) > asked[*home[i]]) {
                    held.insert(free);
                    found->second = Shared{.gpu = free};
                    report_.approximated("Pod", "which GPU is shared", Errs::neither,
                                         "its number is unknown: the lowest free one", task.name);
                }
            }
            if (!found->second || found->second->left == 0) {
                report_.ignored("Pod", "parts of a GPU", Errs::too_lax, "its node has no GPU left for it",
                                task.name);
                continue;
            }
            auto& gpu_shared = *found->second;
            if (*share > gpu_shared.left)
                report_.approximated("Pod", "parts beyond a whole GPU", Errs::too_lax,
                                     "clipped to the rest of it", task.name);
            task.gpu_count = 1;
            task.gpu_share_milli = std::min(*share, gpu_shared.left);
            task.gpus = {gpu_shared.gpu};
            gpu_shared.left -= task.gpu_share_milli;
        }
    }

    /// The resource of shared GPUs.
    static constexpr const char* whole_gpu = "nvidia.com/gpu";

  private:
    struct Group {
        std::string priority_class{}, preemptibility{}, required{}, preferred{};
        std::string over_quota{};  ///< the message of its queue's quota that holds it back; empty = none
    };
    struct Request {
        std::string node{}, gpu_group{};
    };

    void read_request(const Place& object) {
        const auto spec = object["spec"];
        const auto phase = text_at(object["status"], "phase");
        auto id = identity_of(object, true);
        id.name = text_at(spec, "podName");
        const auto node = text_at(spec, "selectedNode");
        if (phase == "Failed")
            return report_.ignored("BindRequest", "failed", Errs::neither, "its pod waits", id.full());
        if (id.name.empty() || node.empty())
            throw Unreadable{object.where() + "expected spec.podName and spec.selectedNode"};
        const auto groups = spec["selectedGPUGroups"].items();
        requests_[id.full()] = {node, groups.empty() ? "" : name_of(groups.front().text())};
        report_.exact("BindRequest", "node");
    }

    void read_group(const Place& object) {
        try {
            const auto spec = object["spec"], topology = spec["topologyConstraint"];
            groups_[identity_of(object, true).full()] = {
                .priority_class = text_at(spec, "priorityClassName"),
                .preemptibility = text_at(spec, "preemptibility"),
                .required = text_at(topology, "requiredTopologyLevel"),
                .preferred = text_at(topology, "preferredTopologyLevel"),
                .over_quota = over_quota(object["status"])};
        } catch (const Unreadable& bad) {
            report_.ignored("PodGroup", "priority and topology", Errs::either, "malformed", bad.why);
        }
    }

    /// The message of the last decision about a group, if its queue had no quota for it.
    static std::string over_quota(const Place& status) {
        std::string text;
        for (const auto& condition : status["schedulingConditions"].items()) {
            text.clear();
            if (condition["status"].text() != "True") continue;
            for (const auto& reason : condition["reasons"].items()) {
                const auto name = reason["reason"].text();
                if (name == "OverLimit" || name == "NonPreemptibleOverQuota")
                    text = name_of(reason["message"].text().value_or(*name));
            }
        }
        return text;
    }

    /// Whether the pod holds a GPU for the pods that share it.
    static bool reserves(const Pod& pod) {
        return (pod.id.space == "kai-resource-reservation" || pod.id.space == "runai-reservation") &&
               !pod.label("runai-gpu-group").empty();
    }

    /// The group of pods that share a GPU; a pod without one is a group of its own.
    [[nodiscard]] std::string group_of(const Pod& pod) const {
        if (auto name = pod.label("runai-gpu-group"); !name.empty()) return name;
        for (const auto& [key, value] : pod.labels)
            if (key.starts_with("runai-gpu-group/")) return key;
        if (const auto found = requests_.find(pod.id.full());
            found != requests_.end() && !found->second.gpu_group.empty())
            return found->second.gpu_group;
        return "pod " + pod.id.full();
    }

    /// The number of GPUs that the pod requests a part of.
    std::int64_t devices_of(const Pod& pod) const {
        std::int64_t devices = 1;
        const auto text = pod.annotation("gpu-fraction-num-devices");
        if (text.empty() || !read_number(text, devices) || devices < 2) return 1;
        if (pod.bound())
            report_.approximated("Pod", "parts of several GPUs", Errs::too_lax, "a part of one of them",
                                 pod.id.full());
        else
            report_.approximated("Pod", "parts of several GPUs", Errs::too_strict, "as many whole GPUs",
                                 pod.id.full());
        return std::min<std::int64_t>(devices, 64);
    }

    /// The requested share in thousandths of a GPU; none if it cannot be read.
    [[nodiscard]] std::optional<std::int64_t> share_of(const Pod& pod, std::optional<std::size_t> home,
                                                       const ClusterSpec& cluster) const {
        double fraction = 0;
        if (const auto text = pod.annotation("gpu-fraction"); !text.empty()) {
            if (!read_number(text, fraction) || !(fraction > 0) || !(fraction <= 1)) {
                report_.ignored("Pod", "annotation gpu-fraction", Errs::too_lax,
                                "expected a number above 0, at most 1", pod.id.full() + ": " + text);
                return std::nullopt;
            }
            report_.exact("Pod", "annotation gpu-fraction");
            return std::clamp<std::int64_t>(std::llround(fraction * 1000), 1, 1000);
        }
        std::int64_t mib = 0;
        const auto text = pod.annotation("gpu-memory");
        if (!read_number(text, mib) || mib <= 0) {
            report_.ignored("Pod", "annotation gpu-memory", Errs::too_lax, "expected a number of MiB above 0",
                            pod.id.full() + ": " + text);
            return std::nullopt;
        }
        std::int64_t least = 0;
        bool differ = false;
        const auto see = [&](const NodeSpec& node) {
            const auto has = node.gpu_memory_mib.value_or(0);
            if (node.gpu_count == 0 || has <= 0) return;
            differ = differ || (least > 0 && least != has);
            least = least == 0 ? has : std::min(least, has);
        };
        if (home)
            see(cluster.nodes[*home]);
        else
            for (const auto& node : cluster.nodes) see(node);
        if (least == 0) {
            report_.ignored("Pod", "annotation gpu-memory", Errs::too_lax,
                            "no node has a label with the memory of its GPUs (nvidia.com/gpu.memory)",
                            pod.id.full());
            return std::nullopt;
        }
        report_.approximated("Pod", "annotation gpu-memory", Errs::too_strict,
                             differ ? "its share of the smallest GPU, rounded up"
                                    : "its share of a GPU, rounded up",
                             pod.id.full());
        if (mib >= least) return 1000;
        return std::clamp<std::int64_t>((mib * 1000 + least - 1) / least, 1, 1000);
    }

    ReportBuilder& report_;
    std::map<std::string, Request> requests_;  // by pod
    std::map<std::string, Group> groups_;
};

}  // namespace gpusched::io::detail::kubernetes

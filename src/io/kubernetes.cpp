// SPDX-License-Identifier: Apache-2.0
// Reads clusters from Kubernetes objects and KAI snapshots.
#include "io/documents.hpp"
#include "io/kubernetes/claims.hpp"
#include "io/kubernetes/eligibility.hpp"
#include "io/kubernetes/gangs.hpp"
#include "io/kubernetes/groups.hpp"
#include "io/kubernetes/kai.hpp"
#include "io/kubernetes/objects.hpp"
#include "io/kubernetes/owners.hpp"
#include "io/kubernetes/pods.hpp"
#include "io/kubernetes/resources.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/file.hpp>
#include <gpusched/io/kubernetes.hpp>
#include <gpusched/io/network_files.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// The labels that name a node's network domains: from the options, the only Topology, or NVIDIA's topograph.
static TopologyLevels levels_of(const Objects& objects, const KubernetesReadOptions& options,
                                const ClusterSpec& cluster, ReportBuilder& report) {
    if (!options.network_labels.empty()) return {.name = "options", .node_labels = options.network_labels};
    const auto& topologies = objects.of(Kind::topology);
    if (topologies.size() == 1) {
        TopologyLevels levels{.name = topologies.front()["metadata"]["name"].text().value_or("")};
        for (const auto& level : topologies.front()["spec"]["levels"].items()) {
            const auto label = level["nodeLabel"].text().value_or("");
            if (!label.empty()) add_once(levels.node_labels, label);
        }
        if (levels.node_labels.size() <= 16) {
            report.exact("Topology", "levels");
            return levels;
        }
        report.ignored("Topology", "objects", Errs::too_strict, "more than 16 levels", levels.name);
        return {};
    }
    for (const auto& topology : topologies)
        report.ignored("Topology", "objects", Errs::too_strict,
                       "there are several: choose labels with network_labels", described(topology));
    TopologyLevels levels{.name = "topograph"};
    for (const char* const key :
         {"network.topology.nvidia.com/core", "network.topology.nvidia.com/spine",
          "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/accelerator"})
        if (std::ranges::any_of(cluster.nodes,
                                [&](const NodeSpec& node) { return node.labels.contains(key); }))
            levels.node_labels.emplace_back(key);
    return levels;
}

/// @return the label of each level of the network; empty if positions are unknown
static std::vector<std::string> place_in_network(const Objects& objects, const KubernetesReadOptions& options,
                                                 ClusterSpec& cluster, ReportBuilder& report) {
    const auto levels = levels_of(objects, options, cluster, report);
    if (levels.node_labels.empty()) {
        if (objects.of(Kind::topology).empty())
            report.absent("Topology", "positions of nodes in the network: unknown");
        return {};
    }
    // Names of domains join label values by slashes; Kubernetes allows no slashes in values.
    for (const auto& node : cluster.nodes)
        for (const auto& key : levels.node_labels)
            if (const auto label = node.labels.find(key);
                label != node.labels.end() && label->second.find('/') != std::string::npos) {
                report.ignored("Node", "network", Errs::either, "a label has a slash: positions are unknown",
                               node.name + ": " + key);
                return {};
            }
    const auto reading = network_from_labels(levels, cluster.nodes);
    set_network(cluster, reading);
    std::int64_t placed = 0;
    for (const auto& node : cluster.nodes) placed += node.network.empty() ? 0 : 1;
    report.exact("Node", "network by " + joined(levels.node_labels, ", "), placed);
    for (const auto& note : reading.notes) report.approximated("Node", "network", Errs::neither, note, "");
    return levels.node_labels;
}

/// Turns sorted objects into a snapshot, part by part.
class Reader {
  public:
    /// @param text_size of all texts together
    /// @param kai additions of KAI-Scheduler; null = none
    Reader(const Objects& objects, const KubernetesReadOptions& options, std::size_t text_size,
           ReportBuilder& report, const Kai* kai = nullptr)
        : objects_(objects), options_(options), report_(report), kai_(kai), cards_(options.gpu_resources),
          claims_(objects, cards_, report), left_(text_size) {}

    /// @throws InvalidInput if there is no node
    ClusterSpec read(const std::string& source) {
        name_absent_kinds();
        read_nodes(source);
        read_priorities();
        read_pods(source);
        const PodIndex index(pods_);
        const Namespaces namespaces(objects_, index, report_);
        const Owners owners(objects_, options_, report_);
        Gangs gangs(objects_, report_, kai_ != nullptr);
        Volumes volumes(objects_, cluster_, left_, report_);
        cluster_.tasks.resize(pods_.size());
        for (std::size_t i = 0; i < pods_.size(); ++i) {
            const auto& pod = pods_[i];
            auto& task = cluster_.tasks[i];
            left_.place = concat(source, ": pod ", pod.id.full(), ": ");
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
                task.owner_kind = owner.kind;
            });
            if (kai_ != nullptr)
                kai_->decide(
                    pod, [&](const std::string& name) { return priority_of(name); }, task);
            left_.take(2 * bytes_of(task));  // the built cluster holds a copy of most
        }
        gangs.jobs(cluster_);
        fill_resources(source);
        Groups groups(pods_, index, namespaces, cluster_, left_, report_);
        for (std::size_t i = 0; i < pods_.size(); ++i) {
            left_.place = concat(source, ": affinity, spread and ports up to pod ", pods_[i].id.full(), ": ");
            auto& task = cluster_.tasks[i];
            if (!pods_[i].readable) continue;
            part(pods_[i], "pod affinity and spread", [&] { groups.fill(pods_[i], task); });
            left_.take(2 * (bytes_of(task.near) + bytes_of(task.avoid) + bytes_of(task.spread)));
        }
        left_.place = source + ": host ports of pods: ";
        groups.list_members();
        groups.keep_apart(volumes.users());
        left_.place = source + ": budgets: ";
        Budgets(pods_, index, owners, cluster_, left_, report_).read(objects_);
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
        absent(Kind::pod, "Pod", "running and pending pods: all nodes are empty");
        absent(Kind::budget, "PodDisruptionBudget",
               "the number of pods that may be down at once: any number");
        absent(Kind::priority_class, "PriorityClass", "the priority of pods without one of their own: 0");
        absent(Kind::name_space, "Namespace", "the namespaces that a namespaceSelector selects");
        absent(Kind::volume, "PersistentVolume", "the nodes that reach a volume");
        absent(Kind::claim, "PersistentVolumeClaim",
               "the volumes of a pod, and whether two copies can use them");
        absent(Kind::replica_set, "ReplicaSet", "whether a ReplicaSet is a Deployment's");
        absent(Kind::deployment, "Deployment",
               "the number of pods that it wants, for budgets in percent without a status");
        absent(Kind::stateful_set, "StatefulSet",
               "the number of pods that it wants, for budgets in percent without a status");
        absent(Kind::job, "Job", "the number of pods that it wants, for budgets in percent without a status");
        absent(Kind::resource_slice, "ResourceSlice", "the devices of DRA drivers on nodes");
        absent(Kind::resource_claim, "ResourceClaim", "the devices in claims of pods");
        absent(Kind::device_class, "DeviceClass",
               "the devices of a class: guessed from the name of the class");
        absent(Kind::pod_group, "PodGroup", "the number of pods of a gang that must run");
    }

    /// Reads a part of a pod. A malformed part is ignored, and reported.
    template <class Read>
    void part(const Pod& pod, const char* what, Read&& read) {
        try {
            read();
        } catch (const Unreadable& bad) {
            report_.ignored("Pod", what, Errs::too_lax, "malformed", pod.id.full() + ": " + bad.why);
        }
    }

    void read_nodes(const std::string& source) {
        each_readable(objects_.of(Kind::node), "Node", Errs::too_strict, report_, [&](const Place& object) {
            check_shape(object);
            auto node = read_node(object, report_);
            see_times(object);
            claims_.fill(identity_of(object, false).name, node);
            NodeSpec spec{.name = identity_of(object, false).name, .labels = node.labels};
            read_taints(node, spec, report_);
            bool ready = false;
            for (const auto& condition : object["status"]["conditions"].items())
                ready =
                    ready || (condition["type"].text() == "Ready" && condition["status"].text() == "True");
            if (!ready) {
                if (!options_.open_unready_nodes) {
                    spec.schedulable = false;
                    if (!gpusched::detail::is_not_ready(spec.taints))  // as the node controller does
                        spec.taints.push_back(not_ready());
                }
                report_.approximated("Node", "not ready",
                                     options_.open_unready_nodes ? Errs::neither : Errs::too_strict,
                                     options_.open_unready_nodes
                                         ? "receives pods unless a taint forbids it, as the options say"
                                         : "receives no pod; kube-scheduler would place pods there until "
                                           "taints say that it is not ready",
                                     spec.name);
            }
            index_.emplace(spec.name, nodes_.size());
            nodes_.push_back(std::move(node));
            cluster_.nodes.push_back(std::move(spec));
            report_.exact("Node", "objects");
        });
        if (!nodes_.empty()) return;
        std::string found = std::to_string(objects_.met()) + " objects";
        if (objects_.met() == 0)
            found = "none: the List is empty";
        else if (objects_.any(Kind::node))
            found = "none that can be read";
        else if (objects_.any(Kind::pod))
            found = std::to_string(objects_.of(Kind::pod).size()) +
                    (objects_.of(Kind::pod).size() == 1 ? " pod" : " pods") + ", but no node";
        else if (!objects_.other_kinds().empty())
            found = objects_.other_kinds();
        const auto why = report_.why_left_out("Node");
        throw InvalidInput(
            source +
            ": expected at least one Node (kubectl get nodes,pods,pdb,priorityclasses -A -o json), found " +
            found + (why.empty() ? "" : ": ") + why);
    }

    void read_priorities() {
        each_readable(objects_.of(Kind::priority_class), "PriorityClass", Errs::either, report_,
                      [&](const Place& object) {
                          const PriorityValue read{integer_at(object, "value", 0),
                                                   text_at(object, "preemptionPolicy") == "Never"};
                          if (truth_at(object, "globalDefault")) priorities_[""] = read;
                          priorities_[identity_of(object, false).name] = read;
                          report_.exact("PriorityClass", "value");
                      });
    }

    void read_pods(const std::string& source) {
        each_readable(objects_.of(Kind::pod), "Pod", Errs::too_lax, report_, [&](const Place& object) {
            auto pod = read_pod_or_requests(object);
            see_times(object);
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
                left_.place = concat(source, ": resource claims of pod ", name, ": ");
                left_.take(bytes_of(pod.requests));
                pods_.push_back(std::move(pod));
            }
        });
        claims_.name_unused();
    }

    /// Reads a pod, or only the requests of a bound pod that is otherwise unreadable. @throws Unreadable
    Pod read_pod_or_requests(const Place& object) {
        try {
            check_shape(object);
            return read_pod(object);
        } catch (const Unreadable& bad) {
            auto pod = read_requests_only(object);
            if (!pod) throw;
            report_.approximated("Pod", "objects", Errs::either,
                                 "cannot be read: it keeps its resources, does not move and is not evicted",
                                 described(object, bad));
            return *std::move(pod);
        }
    }

    /// Sets the time of the snapshot to the newest one of its nodes and pods.
    void see_times(const Place& object) {
        const auto see = [&](const Place& at, std::string_view key, double seconds_later = 0) {
            if (const auto time = read_seconds(at[key].text().value_or("")))
                cluster_.now = std::max(cluster_.now, *time - static_cast<std::int64_t>(seconds_later));
        };
        const auto metadata = object["metadata"], status = object["status"];
        see(metadata, "creationTimestamp");
        // Its end, after the grace period.
        const auto grace = metadata["deletionGracePeriodSeconds"].number().value_or(0);
        see(metadata, "deletionTimestamp", std::clamp(grace, 0.0, 1e9));
        see(status, "startTime");
        for (const auto& taint : object["spec"]["taints"].items()) see(taint, "timeAdded");
        for (const auto& condition : status["conditions"].items())
            for (const auto* const key : {"lastTransitionTime", "lastHeartbeatTime"}) see(condition, key);
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
            std::string gates;
            for (const auto& gate : pod.spec()["schedulingGates"].items())
                gates += (gates.empty() ? "" : ", ") + text_at(gate, "name");
            out.waiting = {WaitingFor::gate, gates};
            report_.exact_of("Pod", "scheduling gates", out.name);
        } else {
            report_.exact("Pod", "pending");
        }
        if (!pod.missing_claim.empty()) {
            if (!out.waiting)
                out.waiting = {WaitingFor::volume_claim,
                               "resource claim " + pod.missing_claim + " does not exist"};
            report_.exact_of("Pod", "resource claims that do not exist", out.name);
        }
        if (!pod.bound())
            for (const auto& claim : pod.unread_claims) note_unread(out, "resource claim " + claim);
        if (const auto nominated = status["nominatedNodeName"].text();
            !pod.bound() && nominated && !nominated->empty())
            report_.ignored("Pod", "nominated node", Errs::too_lax,
                            "the resources reserved for it there count as free",
                            out.name + " to " + *nominated);
        part(pod, "priority", [&] { read_priority(pod, out); });
        const auto seconds_at = [](const Place& object, std::string_view key) {
            return read_seconds(object[key].text().value_or(""));
        };
        if (const auto started = seconds_at(status, "startTime")) out.start_time = *started;
        const auto created = seconds_at(pod.object["metadata"], "creationTimestamp");
        if (created && !pod.bound()) out.start_time = *created;  // its age in the queue
        for (const auto* const key : {"gpu-fraction", "gpu-memory"})
            if (kai_ == nullptr && !pod.annotation(key).empty())
                report_.ignored("Pod", std::string("annotation ") + key, Errs::too_lax,
                                "kube-scheduler does not count parts of a GPU", out.name);
    }

    /// The priority of a class, none if it was not read; the empty name is the global default.
    [[nodiscard]] std::optional<std::int64_t> priority_of(const std::string& name) const {
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
            } else if (found != priorities_.end()) {
                out.priority = found->second.value;
                never = never || found->second.never;
            } else if (!name.empty()) {
                report_.approximated("Pod", "priority", Errs::either, "its PriorityClass was not read: 0",
                                     out.name);
            }
        }
        out.priority = std::clamp(out.priority, -largest_quantity, largest_quantity);
        report_.exact("Pod", "priority");
        if (never)
            report_.ignored("Pod", "preemptionPolicy Never", Errs::too_lax, "a plan may evict others for it",
                            out.name);
    }

    void fill_resources(const std::string& source) {
        std::vector<Quantities> used(nodes_.size());
        std::vector<std::optional<std::size_t>> home(pods_.size());
        for (std::size_t i = 0; i < pods_.size(); ++i) {
            if (!pods_[i].bound()) continue;
            home[i] = index_.at(pods_[i].node);
            for (const auto& [name, amount] : pods_[i].requests)
                if (cards_.is_device(name)) used[*home[i]][name] += Quantity(amount.value());
        }
        if (kai_ != nullptr) {
            const auto shared = kai_->shared_gpus(pods_, home, nodes_.size());
            for (std::size_t n = 0; n < nodes_.size(); ++n)
                if (shared[n] > 0) used[n][Kai::whole_gpu] += Quantity(shared[n]);
        }
        const Devices devices(nodes_, pods_, home, used, cards_, report_);
        CountedResources resources(nodes_, pods_, devices, report_);
        for (std::size_t n = 0; n < nodes_.size(); ++n) devices.fill(n, cluster_.nodes[n]);
        for (std::size_t i = 0; i < pods_.size(); ++i) {
            auto& task = cluster_.tasks[i];
            const auto counted = devices.fill(
                pods_[i], home[i], task, [&](std::size_t n) { return is_eligible(task, cluster_.nodes[n]); });
            resources.fill(counted, home[i], task);
            left_.place = concat(source, ": resources of pod ", pods_[i].id.full(), ": ");
            left_.take(
                2 * (bytes_of(task.resources) + bytes_of(task.gpu_models) + bytes_of(task.device_classes)));
        }
        if (kai_ != nullptr) kai_->fill_parts(pods_, home, cluster_);
        for (std::size_t n = 0; n < nodes_.size(); ++n) resources.fill(n, cluster_.nodes[n]);
        resources.limit_pods(cluster_);
    }

    const Objects& objects_;
    const KubernetesReadOptions& options_;
    ReportBuilder& report_;
    const Kai* kai_;
    CardNames cards_;
    Claims claims_;
    Expansion left_;
    ClusterSpec cluster_;
    std::vector<Node> nodes_;                             // as cluster_.nodes
    std::vector<Pod> pods_;                               // as cluster_.tasks
    std::unordered_map<std::string, std::size_t> index_;  // of nodes, by name
    std::map<std::string, PriorityValue> priorities_;     // of classes, by name; the global default by ""
};

}  // namespace gpusched::io::detail::kubernetes

namespace gpusched::io {

static void check_options(const KubernetesReadOptions& options, Problems& problems) {
    check_fields(problems, options);
    if (options.network_labels.size() > 16)
        problems.add(bad_value("network_labels", std::to_string(options.network_labels.size()) + " labels",
                               "at most 16"));
}

GPUSCHED_EXPORT ClusterReading kubernetes_from_texts(std::span<const NamedText> texts,
                                                     const KubernetesReadOptions& options) {
    Problems problems;
    check_options(options, problems);
    if (texts.empty()) problems.add("expected at least one text with objects of Kubernetes");
    problems.throw_if_any();
    detail::ReportBuilder report(static_cast<std::size_t>(options.examples));
    detail::kubernetes::Objects objects;
    std::vector<std::vector<json::Document>> documents;
    std::string sources;
    std::size_t size = 0;
    for (const auto& text : texts) {
        size += text.text.size();
        if (const auto found = detail::found_snapshot(text.text);
            found.is_not_of(detail::System::kubernetes)) {
            problems.add(text.source + ": expected objects of Kubernetes, found " + found.description);
            continue;
        }
        documents.push_back(detail::read_objects(text.text, text.source, problems));
        if (documents.back().empty())
            problems.add(text.source + ": expected objects of Kubernetes, found nothing");
        sources += (sources.empty() ? "" : ", ") + text.source;
    }
    for (const auto& of_text : documents)
        for (const auto& document : of_text) objects.take(document, report, problems);
    problems.throw_if_any();
    ClusterReading out;
    out.cluster = detail::kubernetes::Reader(objects, options, size, report).read(sources);
    out.report = report.take();
    return out;
}

GPUSCHED_EXPORT ClusterReading kubernetes_from_text(std::string_view text,
                                                    const KubernetesReadOptions& options,
                                                    std::string_view source) {
    const NamedText one{text, std::string(source)};
    return kubernetes_from_texts({&one, 1}, options);
}

GPUSCHED_EXPORT std::vector<std::string> kubernetes_files(std::span<const std::string> paths) {
    namespace fs = std::filesystem;
    std::vector<std::string> out;
    for (const auto& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            out.push_back(path);
            continue;
        }
        std::vector<std::string> found;
        for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
            const auto extension = at->path().extension();
            if (extension == ".json" || extension == ".yaml" || extension == ".yml")
                found.push_back(at->path().string());
        }
        if (error) throw BackendError(path + ": cannot be read: " + error.message());
        if (found.empty())
            throw InvalidInput(path + ": expected a folder with files *.json, *.yaml or *.yml, found none");
        std::ranges::sort(found);
        out.insert(out.end(), found.begin(), found.end());
    }
    return out;
}

GPUSCHED_EXPORT ClusterReading read_kubernetes(std::span<const std::string> paths,
                                               const KubernetesReadOptions& options) {
    const auto files = kubernetes_files(paths);
    std::vector<std::string> contents;
    std::vector<NamedText> texts;
    contents.reserve(files.size());
    for (const auto& file : files) {
        contents.push_back(read_file(file));
        texts.push_back({contents.back(), file});
    }
    return kubernetes_from_texts(texts, options);
}

GPUSCHED_EXPORT ClusterReading kai_snapshot_from_text(std::string_view text,
                                                      const KubernetesReadOptions& options,
                                                      std::string_view source_name) {
    const std::string source(source_name);
    Problems problems;
    check_options(options, problems);
    problems.throw_if_any();
    if (text.starts_with("PK\x03\x04"))
        throw InvalidInput(source +
                           ": expected snapshot.json, found a zip archive: `gpusched import kai` and "
                           "gs.io.read_kai_snapshot unpack it");
    const auto require_own = [&](const detail::FoundSnapshot& found) {
        if (found.is_not_of(detail::System::kai))
            throw InvalidInput(source + ": expected snapshot.json of KAI-Scheduler, found " +
                               found.description);
    };
    require_own(detail::found_snapshot(text));
    const auto document = json::Document::parse(text, source, problems);
    const detail::Place root(document, 0);
    require_own(detail::found_snapshot(root));
    const auto raw = root["rawObjects"];
    if (!raw.is(json::Kind::object))
        problems.add(source + ": expected snapshot.json of KAI-Scheduler, an object with rawObjects, found " +
                     document.describe(0) + (root.is(json::Kind::object) ? " without them" : ""));
    problems.throw_if_any();
    detail::ReportBuilder report(static_cast<std::size_t>(options.examples));
    detail::kubernetes::Objects objects;
    const detail::kubernetes::Kai kai(root, objects, report);
    auto own = options;
    if (own.schedulers.empty()) {
        auto name = detail::kubernetes::name_of(root["schedulerParams"]["SchedulerName"].text());
        if (name.empty()) name = detail::kubernetes::name_of(root["schedulerParams"]["schedulerName"].text());
        own.schedulers.push_back(name.empty() ? "kai-scheduler" : name);
    }
    ClusterReading out;
    out.cluster = detail::kubernetes::Reader(objects, own, text.size(), report, &kai).read(source);
    out.report = report.take();
    return out;
}

GPUSCHED_EXPORT ClusterReading read_kai_snapshot(const std::string& path,
                                                 const KubernetesReadOptions& options) {
    return kai_snapshot_from_text(read_file(path), options, path);
}

}  // namespace gpusched::io

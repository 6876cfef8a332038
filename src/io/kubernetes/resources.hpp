// SPDX-License-Identifier: Apache-2.0
// GPUs, other devices, CPU, memory and counted resources of nodes and pods.
#pragma once

#include "io/kubernetes/eligibility.hpp"
#include "io/kubernetes/pods.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io::detail::kubernetes {

/// Whether device plugins and DRA drivers use this name for whole cards.
inline bool is_known_card(std::string_view resource) {
    static constexpr std::string_view known[] = {
        "nvidia.com/gpu",     "amd.com/gpu",           "gpu.intel.com/i915",         "gpu.intel.com/xe",
        "gpu.nvidia.com/gpu", "gpu.amd.com/gpu",       "gpu.intel.com/gpu",          "habana.ai/gaudi",
        "google.com/tpu",     "aws.amazon.com/neuron", "alibabacloud.com/gpu-count", "cambricon.com/mlu"};
    return contains(known, resource) || resource.starts_with("huawei.com/Ascend");
}

/// Whether it is a part of a card: a MIG instance, a replica of a shared card, a partition.
inline bool is_part_of_card(std::string_view resource) {
    return resource.starts_with("nvidia.com/mig-") || resource == "nvidia.com/gpu.shared" ||
           resource.starts_with("gpu.nvidia.com/mig-") ||
           (resource.starts_with("amd.com/") && resource.find("px_nps") != resource.npos);
}

/// The resources that are cards or parts of cards.
class CardNames {
  public:
    /// @param more further names of whole cards
    explicit CardNames(std::span<const std::string> more = {}) : more_(more.begin(), more.end()) {}
    void add(const std::string& whole) { more_.insert(whole); }
    [[nodiscard]] bool is_whole(std::string_view resource) const {
        return is_known_card(resource) || more_.contains(resource);
    }
    [[nodiscard]] bool is_device(std::string_view resource) const {
        return is_whole(resource) || is_part_of_card(resource);
    }

  private:
    std::set<std::string, std::less<>> more_;
};

/// The model of a node's whole cards: from labels of feature discovery and of cloud providers, else the
/// resource's name.
inline std::string card_model(const Node& node, const std::string& resource) {
    for (const char* const key :
         {"nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product",
          "gpu.nvidia.com/model", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-accelerator",
          "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name",
          "alibabacloud.com/gpu-card-model"})
        if (auto model = node.label(key); !model.empty()) return model;
    return node.card.empty() ? resource : node.card;
}

/// The replicas of a shared card on the node, from labels of feature discovery and of GKE; 1 = not shared.
inline std::int64_t replicas_on(const Node& node) {
    for (const char* const key :
         {"nvidia.com/gpu.replicas", "cloud.google.com/gke-max-shared-clients-per-gpu"})
        if (std::int64_t replicas = 0; read_number(node.label(key), replicas) && replicas > 1)
            return replicas;
    return 1;
}

/// The meaning of a whole-card resource on a node: empty = whole cards; else a class of devices: instances
/// under the single MIG strategy, or replicas of cards that are shared under the cards' own name.
inline std::string form_on(const Node& node, const std::string& resource) {
    if (!resource.starts_with("nvidia.com/")) return {};
    const auto product = node.label("nvidia.com/gpu.product");
    const bool renamed =
        resource != "nvidia.com/gpu.shared" && (!value_at(node.capacity, "nvidia.com/gpu.shared").zero() ||
                                                !value_at(node.allocatable, "nvidia.com/gpu.shared").zero());
    const bool shared = (replicas_on(node) > 1 || product.ends_with("-SHARED") ||
                         !node.label("cloud.google.com/gke-gpu-sharing-strategy").empty()) &&
                        !renamed;
    auto profile = node.label("cloud.google.com/gke-gpu-partition-size");
    if (!profile.empty() && shared) profile += "-SHARED";
    if (const auto mig = product.find("-MIG-"); mig != product.npos) profile = product.substr(mig + 5);
    if (!profile.empty()) return resource + " (MIG " + profile + ")";
    return shared ? resource + " (shared)" : std::string();
}

/// The memory of a device, such as of `nvidia.com/mig-1g.10gb` by the label `nvidia.com/mig-1g.10gb.memory`;
/// 0 = unknown.
inline std::int64_t device_memory_mib(const Node& node, const std::string& resource) {
    std::int64_t mib = 0;
    return read_number(node.label(resource + ".memory"), mib) && mib > 0 && mib < 1'000'000'000 ? mib : 0;
}

/// Maps device resources to the model. A whole-card resource is the GPUs of a node, or a class of devices
/// there: instances, replicas, or cards next to more numerous ones of another name. Devices without numbers,
/// because a node has more than 64 or a pod requests several classes, are counted resources: a class in the
/// whole cluster, whole cards only on the node that has so many.
class Devices {
  public:
    /// @param home by pod: the node that it is bound to
    /// @param used by node: the devices that its pods request
    Devices(std::span<const Node> nodes, std::span<const Pod> pods,
            std::span<const std::optional<std::size_t>> home, std::span<const Quantities> used,
            const CardNames& names, ReportBuilder& report)
        : nodes_(nodes), names_(names), report_(report), on_(nodes.size()) {
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            for (const auto* const amounts : {&nodes[n].capacity, &nodes[n].allocatable, &used[n]})
                for (const auto& [name, amount] : *amounts)
                    if (names.is_device(name) && !on_[n].contains(name)) see(n, name, used[n]);
            choose_cards(n);
            limit_numbers(n);
            for (const auto& [name, held] : on_[n])
                if (names.is_whole(name) && held.there > 0) forms_[name].insert(held.device_class);
        }
        for (std::size_t i = 0; i < pods.size(); ++i) limit_classes(pods[i], home[i]);
        for (const auto& [name, forms] : forms_)
            if (forms.contains("")) whole_.insert(name);
    }

    [[nodiscard]] bool is_device(std::string_view resource) const { return names_.is_device(resource); }
    /// The name under which the node counts a resource; none if it is GPUs or devices.
    [[nodiscard]] std::optional<std::string> counted_as(std::size_t n, const std::string& name) const {
        if (!names_.is_device(name)) return name;
        const auto found = on_[n].find(name);
        if (found == on_[n].end() || !counted_.contains(found->second.device_class)) return std::nullopt;
        return found->second.device_class;
    }

    /// Adds cards and devices of the node; those that are not allocatable count as failed.
    void fill(std::size_t n, NodeSpec& out) const {
        const auto& node = nodes_[n];
        std::vector<int> failed;
        const auto missing = [&](std::int64_t first, const Held& held, const std::string& name) {
            for (auto g = first + held.healthy; g < first + held.count; ++g)
                failed.push_back(static_cast<int>(g));
            if (held.healthy < held.there)
                report_.approximated(
                    "Node", "devices that are not allocatable", Errs::neither,
                    "which of the node's devices is unknown: the last ones count as failed",
                    concat(out.name, ": ", held.there - held.healthy, " of ", held.there, " ", name));
            if (held.there < held.count)
                report_.approximated("Node", "over-committed devices", Errs::neither,
                                     "its pods hold more than it has: it gets as many as they hold, the "
                                     "surplus as failed ones",
                                     concat(out.name, ": ", name, " ", held.count, " of ", held.there));
        };
        for (const auto& [name, held] : on_[n]) {
            if (!held.device_class.empty()) continue;
            out.gpu_count = held.count;
            missing(0, held, name);
            out.gpu_model = card_model(node, name);
            if (whole_.size() > 1) models_[name].insert(out.gpu_model);
            if (const auto mib = device_memory_mib(node, "nvidia.com/gpu"); mib > 0) out.gpu_memory_mib = mib;
            report_.exact("Node", name);
        }
        auto next = out.gpu_count;
        for (const auto& [name, held] : on_[n]) {
            if (held.device_class.empty() || counted_.contains(held.device_class)) continue;
            DeviceSpec device{.device_class = held.device_class, .count = held.count};
            device.memory_mib = device_memory_mib(node, name);
            missing(next, held, name);
            if (const auto replicas = replicas_on(node);
                device.device_class.find("shared") != std::string::npos && replicas > 1 &&
                device.count % replicas == 0)
                for (std::int64_t i = 0; i < device.count; ++i)
                    device.parents.push_back(static_cast<int>(out.gpu_count + i / replicas));
            report_.exact("Node", name);
            next += device.count;
            out.devices.push_back(std::move(device));
        }
        out.failed_gpus = std::move(failed);
    }

    /// Adds the cards and devices that the pod requests.
    /// @param node its node; none = pending
    /// @param may  tells whether it may otherwise run on a node
    /// @return the requests for counted resources
    template <class May>
    [[nodiscard]] Quantities fill(const Pod& pod, std::optional<std::size_t> node, TaskSpec& out,
                                  May&& may) const {
        Quantities left;
        for (const auto& [name, amount] : pod.requests) {
            if (!names_.is_device(name)) {
                left.emplace(name, amount);
                continue;
            }
            const auto count = amount.value();
            const auto classes = classes_for(name, count, node, may);
            if (classes.empty() && out.gpu_count == 0 && count <= max_gpus_per_node) {
                out.gpu_count = count;
                out.gpu_models = models(name);
            } else if (const auto requested = classes.empty() ? Classes{name} : classes;
                       out.device_count == 0 && count <= max_gpus_per_node &&
                       !counted_.contains(*requested.begin())) {
                out.device_count = count;
                out.device_classes = {requested.begin(), requested.end()};
            } else {
                // If no node counts the class, no node has so much.
                left[*requested.begin()] += Quantity(count);
            }
            const auto found = forms_.find(name);
            if (names_.is_whole(name) && found != forms_.end() && found->second.size() > 1)
                report_.approximated("Pod", name, Errs::too_strict,
                                     "some nodes offer whole cards, others parts of cards, or cards without "
                                     "numbers, under this name: the pod accepts the kind that it runs on, or "
                                     "whole cards if it may have them",
                                     out.name);
            else
                report_.exact("Pod", name);
        }
        out.assign_gpus = node && (out.gpu_count > 0 || out.device_count > 0);
        name_cards(pod, node, out);
        return left;
    }

    /// The models of whole cards with that name; empty unless the cluster has cards of several names.
    [[nodiscard]] std::vector<std::string> models(const std::string& name) const {
        if (whole_.empty() || (whole_.size() == 1 && whole_.contains(name))) return {};
        const auto found = models_.find(name);
        if (found == models_.end()) return {name};
        return {found->second.begin(), found->second.end()};
    }

  private:
    using Classes = std::set<std::string>;
    /// A device resource on a node.
    struct Held {
        std::string device_class{};  ///< empty = the node's GPUs
        std::int64_t there = 0, healthy = 0;
        std::int64_t count = 0;  ///< maximum of `there` and the devices that its pods hold
    };

    void see(std::size_t n, const std::string& name, const Quantities& used) {
        const auto& node = nodes_[n];
        const auto healthy = value_at(node.allocatable, name).rounded_down();
        const auto there = std::max(value_at(node.capacity, name).rounded_down(), healthy);
        const auto count = std::max(there, value_at(used, name).value());
        if (count > 0)
            on_[n].emplace(name, Held{is_part_of_card(name) ? name : form_on(node, name), there,
                                      std::min(healthy, count), count});
    }

    /// Of whole cards of several names on a node, the most numerous are its GPUs, the others devices.
    void choose_cards(std::size_t n) {
        Held* most = nullptr;
        for (auto& [name, held] : on_[n])
            if (held.device_class.empty() && (most == nullptr || held.count > most->count)) most = &held;
        for (auto& [name, held] : on_[n]) {
            if (!held.device_class.empty() || &held == most) continue;
            held.device_class = name;
            report_.approximated("Node", name, Errs::too_strict,
                                 "devices on this node, which has more cards of another name", name_of(n));
        }
    }

    /// Turns classes of a node with more than 64 devices into counted resources, the largest first, and its
    /// cards last.
    void limit_numbers(std::size_t n) {
        for (;;) {
            std::int64_t all = 0;
            std::pair<const std::string, Held>* largest = nullptr;
            for (auto& entry : on_[n]) {
                const auto& held = entry.second;
                if (!held.device_class.empty() && counted_.contains(held.device_class)) continue;
                all += std::min<std::int64_t>(held.count, max_gpus_per_node + 1);
                const auto size = [](const Held& of) { return of.device_class.empty() ? 0 : of.count; };
                if (largest == nullptr || size(held) > size(largest->second)) largest = &entry;
            }
            if (all <= max_gpus_per_node) return;
            auto& [name, held] = *largest;
            const bool cards = held.device_class.empty();
            if (cards) held.device_class = name;
            counted_.insert(held.device_class);
            report_.approximated("Node", held.device_class, cards ? Errs::too_strict : Errs::neither,
                                 cards ? "counted, not numbered, on a node that has more than 64"
                                       : "counted, not numbered: some node has more devices than the 64 "
                                         "that have numbers",
                                 name_of(n));
        }
    }

    /// Turns classes beyond the first of a pod that requests several into counted resources.
    void limit_classes(const Pod& pod, std::optional<std::size_t> node) {
        Classes cards, parts;
        for (const auto& [name, amount] : pod.requests) {
            if (is_part_of_card(name)) {
                if (!counted_.contains(name)) parts.insert(name);
            } else if (!names_.is_whole(name)) {
                continue;
            } else if (node) {
                const auto& held = on_[*node].at(name).device_class;
                if (!held.empty() && !counted_.contains(held)) cards.insert(held);
            } else if (const auto found = forms_.find(name);
                       found != forms_.end() && !found->second.contains("")) {
                cards.insert(*found->second.begin());
            }
        }
        std::size_t numbered = 0;
        for (const auto* const classes : {&cards, &parts})
            for (const auto& name : *classes)
                if (++numbered > 1 && counted_.insert(name).second)
                    report_.approximated("Node", name, Errs::neither,
                                         "counted, not numbered: a pod requests devices of several names",
                                         pod.id.full());
    }

    /// The classes that the pod accepts for the resource; empty = whole cards. Either the first is counted,
    /// or none.
    template <class May>
    [[nodiscard]] Classes classes_for(const std::string& name, std::int64_t count,
                                      std::optional<std::size_t> node, May&& may) const {
        if (node) {
            const auto& held = on_[*node].at(name).device_class;
            return held.empty() ? Classes{} : Classes{held};
        }
        if (!names_.is_whole(name)) return {name};
        const auto found = forms_.find(name);
        if (found == forms_.end()) return {};
        if (found->second.size() == 1) {
            const auto& only = *found->second.begin();
            if (only.empty()) return count > max_gpus_per_node ? Classes{name} : Classes{};
            return {only};
        }
        // The classes on nodes that have so many; on all nodes if none has.
        Classes enough, any;
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            const auto held = on_[n].find(name);
            if (held == on_[n].end() || held->second.there == 0 || !may(n)) continue;
            any.insert(held->second.device_class);
            if (held->second.there >= count) enough.insert(held->second.device_class);
        }
        if (enough.empty()) enough = any;
        if (enough.contains("") || enough.empty())
            return count > max_gpus_per_node ? Classes{name} : Classes{};
        Classes numbered;
        for (const auto& one : enough)
            if (!counted_.contains(one)) numbered.insert(one);
        return numbered.empty() || count > max_gpus_per_node ? Classes{*enough.begin()} : numbered;
    }

    /// Assigns the cards that the pod's claims name, if they are all that it requests and no other pod has
    /// them.
    void name_cards(const Pod& pod, std::optional<std::size_t> node, TaskSpec& out) const {
        if (!out.assign_gpus || out.device_count > 0 ||
            static_cast<std::int64_t>(pod.named_cards.size()) != out.gpu_count)
            return;
        auto& held = held_[*node];
        GpuMask cards = 0;
        for (const int card : pod.named_cards)
            if (card < max_gpus_per_node) cards |= gpu_bit(card);
        if ((held & cards) != 0 || gpu_count(cards) != out.gpu_count) return;
        held |= cards;
        out.gpus = pod.named_cards;
        std::ranges::sort(out.gpus);
        out.assign_gpus = false;
    }
    [[nodiscard]] std::string name_of(std::size_t n) const { return described(nodes_[n].object); }

    std::span<const Node> nodes_;
    const CardNames& names_;
    ReportBuilder& report_;
    std::vector<std::map<std::string, Held>> on_;        // by node and resource
    std::map<std::string, Classes, std::less<>> forms_;  // of whole cards: empty = GPUs, else classes
    std::set<std::string, std::less<>> counted_;         // classes
    std::set<std::string, std::less<>> whole_;           // resources that are GPUs of some node
    mutable std::map<std::size_t, GpuMask> held_;        // named cards, by node
    mutable std::map<std::string, std::set<std::string>> models_;  // by resource, if there are several
};

inline constexpr std::int64_t bytes_per_mib = std::int64_t{1} << 20;
/// The unit in which the snapshot counts a resource: thousandths of a core, MiB, or one.
inline std::int64_t unit_of(std::string_view resource) {
    return resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-")
               ? bytes_per_mib
               : 1;
}
/// In the resource's own unit as Kubernetes counts it: thousandths of a core, bytes, or one.
inline std::int64_t counted(std::string_view resource, const Quantity& amount) {
    return resource == "cpu" ? amount.milli() : amount.value();
}
inline std::int64_t rounded_up(std::int64_t amount, std::int64_t unit) {
    return amount / unit + (amount % unit != 0 ? 1 : 0);
}
/// Whether kube-scheduler compares the resource: CPU, memory, storage of the node, huge pages, and names with
/// a domain.
inline bool is_compared(std::string_view resource) {
    return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage" ||
           resource == "pods" || resource.find('/') != resource.npos || resource.starts_with("hugepages-") ||
           resource.starts_with("attachable-volumes-");
}

/// Whether the name of a counted resource suggests that it is cards; the report mentions it.
inline bool may_be_cards(std::string_view resource) {
    static constexpr std::string_view words[] = {"gpu",         "npu",         "xpu",     "dcu",  "gcu",
                                                 "mlu",         "tpu",         "neuron",  "qaic", "gaudi",
                                                 "accelerator", "nvidia.com/", "amd.com/"};
    return std::ranges::any_of(words,
                               [&](std::string_view word) { return resource.find(word) != resource.npos; });
}

/// CPU, memory and counted resources. A node that has less than its pods request is raised to their requests.
class CountedResources {
  public:
    CountedResources(std::span<const Node> nodes, std::span<const Pod> pods, const Devices& devices,
                     ReportBuilder& report)
        : nodes_(nodes), devices_(devices), report_(report), exact_(nodes.size()), held_(nodes.size()) {
        std::set<std::string_view> offered;
        for (const auto& node : nodes)
            for (const auto* const amounts : {&node.capacity, &node.allocatable})
                for (const auto& [name, amount] : *amounts) offered.insert(name);
        for (const auto& pod : pods)
            for (const auto& [name, amount] : pod.requests)
                if (pod.bound() && name.find('/') != name.npos && !devices.is_device(name) &&
                    !offered.contains(name))
                    of_extenders_.insert(name);
    }

    /// Adds a pod's requests.
    /// @param requests those that are neither GPUs nor devices
    /// @param node     its node; none = pending
    void fill(const Quantities& requests, std::optional<std::size_t> node, TaskSpec& out) {
        bool rounded = false, clipped = false;
        for (const auto& [name, amount] : requests) {
            if (!is_compared(name)) {
                report_.ignored("Pod", "resource " + name, Errs::neither,
                                "kube-scheduler does not compare it", out.name);
                continue;
            }
            if (of_extenders_.contains(name)) {
                report_.ignored("Pod", "resource " + name, Errs::too_lax,
                                "no node has it, although pods that request it are bound: an extender "
                                "counts it, not kube-scheduler",
                                out.name);
                continue;
            }
            const auto asked = counted(name, amount), unit = unit_of(name);
            auto held = rounded_up(asked, unit);
            rounded = rounded || asked % unit != 0;
            const auto most = node ? largest_quantity - value_at(held_[*node], name) : largest_quantity;
            clipped = clipped || held > most;
            held = std::min(held, most);
            if (name == "cpu")
                out.cpu_milli = held;
            else if (name == "memory")
                out.memory_mib = held;
            else if (name != "pods")
                out.resources[name] = held;
            if (node) take(*node, name, asked, held);
        }
        if (node) take(*node, "pods", 1, 1);
        if (rounded)
            report_.approximated("Pod", "requests of bytes", Errs::too_strict,
                                 "rounded up to whole MiB; the free memory of nodes is exact to a MiB",
                                 out.name);
        if (clipped)
            report_.approximated("Pod", "requests beyond 10^12", Errs::neither,
                                 "clipped, with all pods of their node together", out.name);
        report_.exact("Pod", "requests");
    }

    /// Adds a node's resources: the allocatable amounts, and at least the requests of its pods.
    void fill(std::size_t n, NodeSpec& out) {
        Quantities has;
        for (const auto& [name, amount] : nodes_[n].allocatable)
            if (const auto counted = devices_.counted_as(n, name)) has[*counted] += amount;
        for (const auto& [name, amount] : held_[n]) has.try_emplace(name, Quantity{});
        std::string beyond;
        for (const auto& [name, amount] : has) {
            if (!is_compared(name)) continue;
            const auto unit = unit_of(name);
            const auto total = std::min(counted(name, amount), most_of_a_node * unit);
            const auto exact = value_at(exact_[n], name), held = value_at(held_[n], name);
            std::int64_t capacity = held;
            if (exact <= total) {
                capacity += (total - exact) / unit;
            } else {
                const std::string suffix = name == "cpu" ? "m" : unit == bytes_per_mib ? "Mi" : "";
                beyond += concat(beyond.empty() ? "" : ", ", name, " ", rounded_up(exact, unit), suffix,
                                 " of ", total / unit, suffix);
            }
            if (name == "cpu")
                out.cpu_milli = capacity;
            else if (name == "memory")
                out.memory_mib = capacity;
            else if (capacity > 0)
                out.resources[name] = capacity;
            if (capacity > 0 && name.find('/') != name.npos) name_extended(name, capacity, out.name);
        }
        report_.exact("Node", "allocatable");
        if (beyond.empty()) return;
        out.schedulable = false;
        report_.approximated(
            "Node", "over-committed", Errs::too_strict,
            "its pods request more than it has: it gets as much as they request, and receives no pod",
            out.name + ": " + beyond);
    }

    /// Makes every task count as a pod, unless no node could reach its limit on the number of pods.
    void limit_pods(ClusterSpec& cluster) const {
        std::int64_t least = INT64_MAX;
        for (const auto& node : cluster.nodes) least = std::min(least, value_at(node.resources, "pods"));
        if (static_cast<std::int64_t>(cluster.tasks.size()) <= least) return;
        for (auto& task : cluster.tasks) task.resources["pods"] = 1;
    }

  private:
    void name_extended(const std::string& name, std::int64_t amount, const std::string& node) const {
        // Classes of devices were reported when they lost their numbers.
        if (devices_.is_device(name) || name.find(' ') != name.npos) return;
        if (!may_be_cards(name)) return report_.exact("Node", "resource " + name);
        report_.approximated("Node", "resource " + name, Errs::neither,
                             "counted, and not among the GPUs; whole GPUs of another name: gpu_resources",
                             concat(node, ": ", amount));
    }

    using Amounts = std::map<std::string, std::int64_t, std::less<>>;
    void take(std::size_t n, const std::string& name, std::int64_t exact, std::int64_t held) {
        auto& sum = exact_[n][name];
        sum = sum > INT64_MAX - exact ? INT64_MAX : sum + exact;
        held_[n][name] += held;
    }

    std::span<const Node> nodes_;
    const Devices& devices_;
    ReportBuilder& report_;
    std::set<std::string, std::less<>> of_extenders_;  // resources that no node has, but bound pods
    std::vector<Amounts> exact_,
        held_;  // by node: requests of its pods, in units of Kubernetes and of the snapshot
};

}  // namespace gpusched::io::detail::kubernetes

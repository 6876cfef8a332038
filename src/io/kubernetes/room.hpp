// SPDX-License-Identifier: Apache-2.0
// CPU, memory and counted resources of nodes and pods; nodes whose pods ask for more than they have are clipped.
#pragma once

#include "io/kubernetes/devices.hpp"
#include "io/kubernetes/pod.hpp"
#include "io/report_builder.hpp"

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

inline constexpr std::int64_t bytes_per_mib = std::int64_t{1} << 20;
/// The most that the model holds of a resource, and what a node is clipped to: room for what its pods are rounded up by.
inline constexpr std::int64_t most_held = 1'000'000'000'000;
inline constexpr std::int64_t most_on_a_node = most_held / 2;

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
/// Resources that kube-scheduler compares: CPU, memory, storage of the node, and those with a domain or of huge pages.
inline bool is_compared(std::string_view resource) {
    return resource == "cpu" || resource == "memory" || resource == "ephemeral-storage" ||
           resource == "pods" || resource.find('/') != resource.npos || resource.starts_with("hugepages-") ||
           resource.starts_with("attachable-volumes-");
}

/// Whether a counted resource might be cards by its name, so that a person should look at it.
inline bool may_be_cards(std::string_view resource) {
    static constexpr std::string_view words[] = {"gpu",         "npu",         "xpu",     "dcu",  "gcu",
                                                 "mlu",         "tpu",         "neuron",  "qaic", "gaudi",
                                                 "accelerator", "nvidia.com/", "amd.com/"};
    return std::any_of(std::begin(words), std::end(words),
                       [&](std::string_view word) { return resource.find(word) != resource.npos; });
}

class Room {
  public:
    Room(std::span<const Node> nodes, std::span<const Pod> pods, const Devices& devices,
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
                    extended_elsewhere_.insert(name);
    }

    /// A pod's requests, and where it runs.
    /// @param requests those that are neither GPUs nor devices
    void fill(const Quantities& requests, std::optional<std::size_t> node, TaskSpec& out) {
        bool rounded = false, clipped = false;
        for (const auto& [name, amount] : requests) {
            if (!is_compared(name)) {
                report_.ignored("Pod", "resource " + name, Errs::neither,
                                "kube-scheduler does not compare it", out.name);
                continue;
            }
            if (extended_elsewhere_.contains(name)) {
                report_.ignored("Pod", "resource " + name, Errs::too_lax,
                                "no node has it, though pods that ask for it are bound: not kube-scheduler "
                                "but an extender of it counts it",
                                out.name);
                continue;
            }
            const auto asked = counted(name, amount), unit = unit_of(name);
            auto held = rounded_up(asked, unit);
            rounded = rounded || asked % unit != 0;
            const auto most = node ? most_held - find(held_[*node], name) : most_held;
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
                                 "rounded up to whole MiB; what nodes have free is exact to a MiB", out.name);
        if (clipped)
            report_.approximated("Pod", "requests beyond 10^12", Errs::neither,
                                 "clipped, with all pods of their node together", out.name);
        report_.exact("Pod", "requests");
    }

    /// What the node has: as much as is allocatable, and at least what its pods hold.
    void fill(std::size_t n, NodeSpec& out) {
        Quantities has;
        for (const auto& [name, amount] : nodes_[n].allocatable)
            if (const auto counted = devices_.counted_as(n, name)) has[*counted] += amount;
        for (const auto& [name, amount] : held_[n]) has.try_emplace(name, Quantity{});
        std::string beyond;
        for (const auto& [name, amount] : has) {
            if (!is_compared(name)) continue;
            const auto unit = unit_of(name);
            const auto total = std::min(counted(name, amount), most_on_a_node * unit);
            const auto exact = find(exact_[n], name), held = find(held_[n], name);
            std::int64_t room = 0;
            if (exact <= total) {
                room = (total - exact) / unit + held;
            } else {
                room = held;
                const std::string suffix = name == "cpu" ? "m" : unit == bytes_per_mib ? "Mi" : "";
                beyond += (beyond.empty() ? "" : ", ") + name + " " +
                          std::to_string(rounded_up(exact, unit)) + suffix + " of " +
                          std::to_string(total / unit) + suffix;
            }
            if (name == "cpu")
                out.cpu_milli = room;
            else if (name == "memory")
                out.memory_mib = room;
            else if (room > 0)
                out.resources[name] = room;
            if (room > 0 && name.find('/') != name.npos) name_extended(name, room, out.name);
        }
        report_.exact("Node", "allocatable");
        if (beyond.empty()) return;
        out.schedulable = false;
        report_.approximated(
            "Node", "over-committed", Errs::too_strict,
            "its pods ask for more than it has: it has what they ask for, and receives no pod",
            out.name + ": " + beyond);
    }

    /// Takes the limit on the number of pods away where all pods together could not reach it, so that tasks need not count.
    void limit_pods(ClusterSpec& cluster) const {
        std::int64_t least = INT64_MAX;
        for (const auto& node : cluster.nodes) {
            const auto found = node.resources.find("pods");
            least = std::min(least, found == node.resources.end() ? 0 : found->second);
        }
        if (static_cast<std::int64_t>(cluster.tasks.size()) <= least) return;
        for (auto& task : cluster.tasks) task.resources["pods"] = 1;
    }

  private:
    void name_extended(const std::string& name, std::int64_t amount, const std::string& node) const {
        // Classes of devices were reported when they got no numbers.
        if (devices_.is_device(name) || name.find(' ') != name.npos) return;
        if (!may_be_cards(name)) return report_.exact("Node", "resource " + name);
        report_.approximated("Node", "resource " + name, Errs::neither,
                             "counted, and not among the GPUs; whole GPUs of another name: gpu_resources",
                             node + ": " + std::to_string(amount));
    }

    using Amounts = std::map<std::string, std::int64_t, std::less<>>;
    static std::int64_t find(const Amounts& amounts, std::string_view name) {
        const auto found = amounts.find(name);
        return found == amounts.end() ? 0 : found->second;
    }
    void take(std::size_t n, const std::string& name, std::int64_t exact, std::int64_t held) {
        auto& sum = exact_[n][name];
        sum = sum > INT64_MAX - exact ? INT64_MAX : sum + exact;
        held_[n][name] += held;
    }

    std::span<const Node> nodes_;
    const Devices& devices_;
    ReportBuilder& report_;
    std::set<std::string, std::less<>> extended_elsewhere_;  // resources
    std::vector<Amounts> exact_,
        held_;  // by node: what its pods ask for, in Kubernetes' unit and in the snapshot's
};

}  // namespace gpusched::io::detail::kubernetes

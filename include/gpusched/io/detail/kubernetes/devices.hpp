// Devices: which resources are GPUs and other devices of nodes, and which of them each pod asks for.
#pragma once

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/io/detail/kubernetes/eligibility.hpp>
#include <gpusched/io/detail/kubernetes/pod.hpp>
#include <gpusched/io/detail/report_builder.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace GPUSCHED_NAMESPACE::io::detail::kubernetes {

/// Whole cards, as device plugins and DRA drivers call them.
inline bool is_whole_card(std::string_view resource) {
    static constexpr std::string_view known[] = {
        "nvidia.com/gpu",     "amd.com/gpu",           "gpu.intel.com/i915",         "gpu.intel.com/xe",
        "gpu.nvidia.com/gpu", "gpu.amd.com/gpu",       "gpu.intel.com/gpu",          "habana.ai/gaudi",
        "google.com/tpu",     "aws.amazon.com/neuron", "alibabacloud.com/gpu-count", "cambricon.com/mlu"};
    return std::find(std::begin(known), std::end(known), resource) != std::end(known) ||
           resource.starts_with("huawei.com/Ascend");
}

/// Parts of cards: MIG instances, replicas of a shared card, partitions.
inline bool is_part_of_card(std::string_view resource) {
    return resource.starts_with("nvidia.com/mig-") || resource == "nvidia.com/gpu.shared" ||
           resource.starts_with("gpu.nvidia.com/mig-") ||
           (resource.starts_with("amd.com/") && resource.find("px_nps") != resource.npos);
}

inline std::string label_of(const Node& node, const std::string& key) {
    const auto found = node.labels.find(key);
    return found == node.labels.end() ? std::string() : found->second;
}

/// The model of a node's whole cards: by the labels of feature discovery and of cloud providers, else the resource's name.
inline std::string card_model(const Node& node, const std::string& resource) {
    for (const char* const key :
         {"nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product",
          "gpu.nvidia.com/model", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-tpu-accelerator",
          "k8s.amazonaws.com/accelerator", "karpenter.k8s.aws/instance-gpu-name",
          "alibabacloud.com/gpu-card-model"})
        if (auto model = label_of(node, key); !model.empty()) return model;
    return node.card.empty() ? resource : node.card;
}

/// What one of a whole-card resource is on a node: empty = a card; else the class of devices: an instance under the single MIG
/// strategy, or a replica of a card that is shared under the cards' own name.
inline std::string form_on(const Node& node, const std::string& resource) {
    if (resource != "nvidia.com/gpu") return {};
    const auto product = label_of(node, "nvidia.com/gpu.product");
    if (const auto mig = product.find("-MIG-"); mig != product.npos)
        return "nvidia.com/gpu (MIG " + product.substr(mig + 5) + ")";
    std::int64_t replicas = 1;
    if (!read_number(label_of(node, "nvidia.com/gpu.replicas"), replicas)) replicas = 1;
    const bool renamed = !amount_of(node.capacity, "nvidia.com/gpu.shared").zero() ||
                         !amount_of(node.allocatable, "nvidia.com/gpu.shared").zero();
    if ((replicas > 1 || product.ends_with("-SHARED")) && !renamed) return "nvidia.com/gpu (shared)";
    return {};
}

/// A class that memory is known of: `nvidia.com/mig-1g.10gb` by the label `nvidia.com/mig-1g.10gb.memory`.
inline std::int64_t device_memory_mib(const Node& node, const std::string& resource) {
    std::int64_t mib = 0;
    return read_number(label_of(node, resource + ".memory"), mib) && mib > 0 && mib < 1'000'000'000 ? mib : 0;
}

class Devices {
  public:
    /// @param counts for every node its amounts of every resource that bound pods ask for
    Devices(std::span<const Node> nodes, std::span<const Pod> pods, std::span<const Quantities> counts,
            ReportBuilder& report)
        : nodes_(nodes), used_(counts), report_(report) {
        for (const auto& node : nodes)
            for (const auto* const amounts : {&node.capacity, &node.allocatable})
                for (const auto& [name, amount] : *amounts)
                    if (is_whole_card(name) && !amount.zero()) forms_[name].insert(form_on(node, name));
        demote(pods);
        for (const auto& [name, forms] : forms_)
            if (forms.contains("") && !counted_.contains(name)) whole_.insert(name);
    }

    /// Whether the resource is held as GPUs or devices, not as a counted resource.
    [[nodiscard]] bool holds(std::string_view resource) const {
        return (is_whole_card(resource) || is_part_of_card(resource)) && !counted_.contains(resource);
    }

    /// Cards and devices of the node, those that are not allocatable as failed ones.
    void fill(std::size_t n, NodeSpec& out) const {
        const auto& node = nodes_[n];
        std::vector<int> failed;
        const auto missing = [&](std::int64_t first, std::int64_t count, const std::string& name) {
            const auto healthy = healthy_on(n, name), there = std::min(there_on(n, name), count);
            for (auto g = first + healthy; g < first + count; ++g) failed.push_back(static_cast<int>(g));
            if (healthy < there)
                report_.approximated("Node", "devices that are not allocatable", Errs::neither,
                                     "which of the node's devices is not said: the last ones count as failed",
                                     out.name + ": " + std::to_string(there - healthy) + " of " +
                                         std::to_string(there) + " " + name);
            if (there < count)
                report_.approximated(
                    "Node", "over-committed devices", Errs::neither,
                    "its pods hold more than it has: it has what they hold, those too many as failed ones",
                    out.name + ": " + name + " " + std::to_string(count) + " of " + std::to_string(there));
        };
        std::string whole;
        for (const auto& name : names_on(n)) {
            if (!is_whole_card(name) || !form_on(node, name).empty()) continue;
            whole = name;
            out.gpu_count = std::min<std::int64_t>(count_on(n, name), max_gpus_per_node);
            missing(0, out.gpu_count, name);
            out.gpu_model = card_model(node, name);
            if (whole_.size() > 1) models_[name].insert(out.gpu_model);
            std::int64_t memory = 0;
            if (read_number(label_of(node, "nvidia.com/gpu.memory"), memory) && memory > 0 &&
                memory < 1'000'000'000)
                out.gpu_memory_mib = memory;
            report_.exact("Node", name);
            break;
        }
        auto next = out.gpu_count;
        for (const auto& name : names_on(n)) {
            if (name == whole) continue;
            DeviceSpec device{.device_class = class_on(n, name), .count = count_on(n, name)};
            device.memory_mib = device_memory_mib(node, name);
            missing(next, device.count, name);
            if (std::int64_t replicas = 1; device.device_class.find("shared") != std::string::npos &&
                                           read_number(label_of(node, "nvidia.com/gpu.replicas"), replicas) &&
                                           replicas > 1 && device.count % replicas == 0)
                for (std::int64_t i = 0; i < device.count; ++i)
                    device.parents.push_back(static_cast<int>(out.gpu_count + i / replicas));
            report_.exact("Node", name);
            next += device.count;
            out.devices.push_back(std::move(device));
        }
        out.failed_gpus = std::move(failed);
    }

    /// What the pod asks for of cards and devices.
    /// @param node where it runs; nothing = pending
    /// @param may  the nodes that it may run on otherwise
    template <class May>
    void fill(const Pod& pod, std::optional<std::size_t> node, TaskSpec& out, May&& may) const {
        for (const auto& [name, amount] : pod.requests) {
            if (!holds(name)) continue;
            const auto count = amount.value();
            if (is_part_of_card(name)) {
                out.device_count = count;
                out.device_classes = {name};
                report_.exact("Pod", name);
            } else {
                fill_whole(name, count, node, out, may);
            }
        }
        out.assign_gpus = node && (out.gpu_count > 0 || out.device_count > 0);
        name_cards(pod, node, out);
    }

    /// The models of whole cards with that name, where cards of several names are in the cluster; else empty.
    [[nodiscard]] std::vector<std::string> models(const std::string& name) const {
        if (whole_.empty() || (whole_.size() == 1 && whole_.contains(name))) return {};
        const auto found = models_.find(name);
        if (found == models_.end()) return {name};
        return {found->second.begin(), found->second.end()};
    }

  private:
    /// The cards that the pod's claims name, where they are all that it asks for and nobody else has them.
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
        std::sort(out.gpus.begin(), out.gpus.end());
        out.assign_gpus = false;
    }
    [[nodiscard]] std::int64_t count_on(std::size_t n, const std::string& name) const {
        return std::max(there_on(n, name), amount_of(used_[n], name).value());
    }
    [[nodiscard]] std::int64_t there_on(std::size_t n, const std::string& name) const {
        return std::max(amount_of(nodes_[n].capacity, name).whole,
                        amount_of(nodes_[n].allocatable, name).whole);
    }
    [[nodiscard]] std::int64_t healthy_on(std::size_t n, const std::string& name) const {
        return amount_of(nodes_[n].allocatable, name).whole;
    }
    [[nodiscard]] std::string class_on(std::size_t n, const std::string& name) const {
        if (is_part_of_card(name)) return name;
        auto form = form_on(nodes_[n], name);
        return form.empty() ? name : form;
    }
    /// What the node has of cards and devices, in order.
    [[nodiscard]] std::set<std::string> names_on(std::size_t n) const {
        std::set<std::string> out;
        for (const auto* const amounts : {&nodes_[n].capacity, &nodes_[n].allocatable, &used_[n]})
            for (const auto& [name, amount] : *amounts)
                if (holds(name) && count_on(n, name) > 0) out.insert(name);
        return out;
    }

    /// Resources that have to be counted instead: of nodes with more devices than the model has numbers for, and of pods that ask
    /// for devices of several names.
    void demote(std::span<const Pod> pods) {
        const auto count_only = [&](const std::string& name, std::string_view why, std::string_view example) {
            if (counted_.insert(name).second) report_.approximated("Node", name, Errs::neither, why, example);
        };
        constexpr std::string_view too_many =
            "counted, not numbered: some node has more devices than the 64 that have numbers";
        for (const auto& pod : pods) {
            std::string whole, part;
            for (const auto& [name, amount] : pod.requests) {
                if (!holds(name)) continue;
                const bool numbered = amount.value() <= max_gpus_per_node;
                if (is_part_of_card(name)) {
                    if (!numbered)
                        count_only(name, too_many, pod.id.full());
                    else if (!part.empty())
                        count_only(name, "counted, not numbered: a pod asks for devices of several names",
                                   pod.id.full());
                    else
                        part = name;
                } else if (const auto found = forms_.find(name);
                           !numbered || !whole.empty() ||
                           (!part.empty() && found != forms_.end() &&
                            (found->second.size() > 1 || !found->second.contains("")))) {
                    count_only(
                        name,
                        "counted, not numbered: a pod asks for more than 64, or for devices of several names",
                        pod.id.full());
                } else {
                    whole = name;
                    if (found != forms_.end() && (found->second.size() > 1 || !found->second.contains("")))
                        part = name;
                }
            }
        }
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            std::string whole;
            for (;;) {
                std::int64_t all = 0, most = -1;
                std::string largest;
                whole.clear();
                for (const auto& name : names_on(n)) {
                    const auto count = count_on(n, name);
                    const bool card = is_whole_card(name) && form_on(nodes_[n], name).empty();
                    if (card && !whole.empty()) {
                        count_only(name, "counted, not numbered: a node has cards of several names",
                                   name_of(n));
                        continue;
                    }
                    if (card) whole = name;
                    all += std::min<std::int64_t>(count, max_gpus_per_node + 1);
                    // Parts first: whole cards are counted only where nothing else is left.
                    if (const auto size = card ? 0 : count; size > most) most = size, largest = name;
                }
                if (all <= max_gpus_per_node) break;
                count_only(largest, too_many, name_of(n));
            }
        }
    }
    [[nodiscard]] std::string name_of(std::size_t n) const { return described(nodes_[n].object); }

    template <class May>
    void fill_whole(const std::string& name, std::int64_t count, std::optional<std::size_t> node,
                    TaskSpec& out, May&& may) const {
        const auto found = forms_.find(name);
        std::set<std::string> accepted;
        if (node) {
            accepted.insert(form_on(nodes_[*node], name));
        } else if (found != forms_.end() && found->second.size() > 1) {
            for (std::size_t n = 0; n < nodes_.size(); ++n)
                if ((!amount_of(nodes_[n].capacity, name).zero() ||
                     !amount_of(nodes_[n].allocatable, name).zero()) &&
                    may(n))
                    accepted.insert(form_on(nodes_[n], name));
        } else if (found != forms_.end()) {
            accepted = found->second;
        }
        if (accepted.empty() || accepted.contains("")) {
            out.gpu_count = count;
            out.gpu_models = models(name);
        } else {
            out.device_count = count;
            out.device_classes = {accepted.begin(), accepted.end()};
        }
        if (found != forms_.end() && found->second.size() > 1)
            report_.approximated("Pod", name, Errs::too_strict,
                                 "some nodes offer whole cards, others parts of cards under this name: the "
                                 "pod accepts what it "
                                 "runs on, or whole cards where it may have them",
                                 out.name);
        else
            report_.exact("Pod", name);
    }

    std::span<const Node> nodes_;
    std::span<const Quantities> used_;
    ReportBuilder& report_;
    std::map<std::string, std::set<std::string>, std::less<>>
        forms_;  // of whole-card resources: what one is on some node
    std::set<std::string, std::less<>> counted_;
    std::set<std::string, std::less<>> whole_;
    mutable std::map<std::size_t, GpuMask> held_;                  // named cards, by node
    mutable std::map<std::string, std::set<std::string>> models_;  // by name, where there are several
};

}  // namespace GPUSCHED_NAMESPACE::io::detail::kubernetes

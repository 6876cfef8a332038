// SPDX-License-Identifier: Apache-2.0
// GPUs of Slurm nodes: types that are whole cards or devices, their numbers, and the tasks that hold them.
#pragma once

#include "io/slurm/values.hpp"

#include <gpusched/core/gpu_mask.hpp>
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

namespace gpusched::io::detail::slurm {

/// The model of GPUs without a type.
inline constexpr std::string_view untyped_model = "gpu";

/// Whether a resource shares GPUs: each GPU provides the same number of it.
inline bool is_share(std::string_view name) { return name == "shard" || name == "mps"; }

class Cards {
  public:
    /// @param gres  by node, its generic resources
    Cards(std::span<const std::string> names, std::span<const std::vector<Gres>> gres, ReportBuilder& report)
        : report_(report), nodes_(gres.size()) {
        sort_types(names, gres);
        for (std::size_t n = 0; n < gres.size(); ++n) number(names[n], gres[n], nodes_[n]);
    }

    /// Adds cards, devices and other counted resources of a node.
    void fill(std::size_t n, std::span<const Gres> gres, NodeSpec& out) const {
        const auto& node = nodes_[n];
        for (const auto& part : node.parts)
            if (part.whole && part.count > 0) {
                out.gpu_count = part.count;
                out.gpu_model = part.type;
            } else if (part.count > 0) {
                out.devices.push_back({.device_class = class_of(part.type), .count = part.count});
            }
        for (const auto& item : gres)
            if (item.name != "gpu" && !is_share(item.name)) count(item, out.resources);
        out.failed_gpus.assign(node.failed.begin(), node.failed.end());
    }

    /// Marks GPUs as failed that Slurm has drained.
    void drain(std::size_t n, const std::string& name, std::span<const Gres> drained) {
        auto& node = nodes_[n];
        for (const auto& item : drained) {
            if (item.name != "gpu" || item.count == 0) continue;
            auto numbers = numbers_of(node, item);
            if (static_cast<std::int64_t>(numbers.size()) != item.count) {
                numbers.clear();
                for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part)
                    for (int i = part->count - 1;
                         i >= 0 && static_cast<std::int64_t>(numbers.size()) < item.count; --i)
                        if (item.type.empty() || item.type == part->type) numbers.push_back(part->first + i);
                report_.approximated("Node", "drained GPUs", Errs::neither,
                                     "which of them is unknown: the last ones count as failed", name);
            } else {
                report_.exact("Node", "drained GPUs");
            }
            node.failed.insert(numbers.begin(), numbers.end());
        }
    }

    /// Adds a task's requests for generic resources.
    /// @param node its node; none = pending
    void ask(std::span<const Gres> gres, std::optional<std::size_t> node, TaskSpec& out) const {
        std::set<std::string> models;
        for (const auto& item : gres) {
            if (item.count == 0 || is_share(item.name)) continue;
            if (item.name == "gpu")
                ask_gpus(item, node, out, models);
            else
                count(item, out.resources);
        }
        // Shares come last: a task with whole GPUs has no share of another.
        for (const auto& item : gres)
            if (item.count > 0 && is_share(item.name)) ask_share(item, node, out, models);
        out.gpu_models.assign(models.begin(), models.end());
        out.gpu_count = std::min<std::int64_t>(out.gpu_count, max_gpus_per_node);
        out.device_count = std::min<std::int64_t>(out.device_count, max_gpus_per_node);
    }

    /// Gives a running task the GPUs that Slurm names for it. @return false if they do not fit the task
    bool hold_named(std::size_t n, std::span<const Gres> gres, TaskSpec& task) {
        if (task.gpu_count + task.device_count == 0) return true;
        auto& node = nodes_[n];
        std::set<int> numbers;
        for (const auto& item : gres) {
            if (item.name != "gpu" && !is_share(item.name)) continue;
            const auto found = numbers_of(node, item);
            numbers.insert(found.begin(), found.end());
        }
        std::int64_t whole = 0, devices = 0;
        for (const int number : numbers) {
            const auto* const part = part_of(node, number);
            (part->whole ? whole : devices) += 1;
            if (node.free_milli[static_cast<std::size_t>(number)] <
                (part->whole ? task.gpu_share_milli : 1000))
                return false;
            if (!part->whole && !accepts(task, part->type)) return false;
        }
        if (whole != task.gpu_count || devices != task.device_count) return false;
        take(node, {numbers.begin(), numbers.end()}, task);
        return true;
    }

    /// Gives a running task the lowest GPUs that have enough free, and clips its request to these.
    /// @return false if it was clipped
    bool hold_any(std::size_t n, TaskSpec& task) {
        auto& node = nodes_[n];
        const auto requested = task.gpu_count, requested_devices = task.device_count;
        std::vector<int> numbers;
        std::int64_t whole = 0, devices = 0;
        const auto pick = [&](const Part& part, bool failed) {
            for (int i = 0; i < part.count; ++i) {
                const int number = part.first + i;
                const bool complete = part.whole ? whole >= requested : devices >= requested_devices;
                if (complete || node.failed.contains(number) != failed || contains(numbers, number) ||
                    node.free_milli[static_cast<std::size_t>(number)] <
                        (part.whole ? task.gpu_share_milli : 1000))
                    continue;
                numbers.push_back(number);
                (part.whole ? whole : devices) += 1;
            }
        };
        std::string only;  // devices are of one class
        for (const auto& part : node.parts)
            if (!part.whole && accepts(task, part.type) &&
                (only.empty() || free_of(node, part) >= requested_devices))
                only = part.type;
        for (const bool failed : {false, true})
            for (const auto& part : node.parts)
                if (part.whole || part.type == only) pick(part, failed);
        task.gpu_count = whole;
        task.device_count = devices;
        if (whole == 0) task.gpu_share_milli = 1000, task.gpu_models.clear();
        if (devices == 0) task.device_classes.clear();
        std::ranges::sort(numbers);
        take(node, numbers, task);
        return whole == requested && devices == requested_devices;
    }

    /// GPUs that the node reports as used and no task holds: by type, whole cards first.
    [[nodiscard]] std::vector<std::pair<std::string, std::vector<int>>>
    unexplained(std::size_t n, std::span<const Gres> used) const {
        const auto& node = nodes_[n];
        std::vector<std::pair<std::string, std::vector<int>>> out;
        const auto is_free = [&](int number) {
            return node.free_milli[static_cast<std::size_t>(number)] == 1000;
        };
        std::set<int> named;
        for (const auto& item : used)
            if (item.name == "gpu" || is_share(item.name)) {
                const auto found = numbers_of(node, item);
                named.insert(found.begin(), found.end());
            }
        for (const auto& part : node.parts) {
            std::int64_t count = 0;
            int held = 0;
            for (const auto& item : used)
                if (item.name == "gpu" &&
                    (item.type == part.type || (item.type.empty() && &part == &node.parts.front())))
                    count += item.count;
            std::vector<int> numbers;
            for (int i = 0; i < part.count; ++i) {
                if (!is_free(part.first + i)) ++held;
                if (is_free(part.first + i) && named.contains(part.first + i))
                    numbers.push_back(part.first + i);
            }
            if (named.empty())
                for (int i = 0; i < part.count && static_cast<std::int64_t>(numbers.size()) + held < count;
                     ++i)
                    if (is_free(part.first + i)) numbers.push_back(part.first + i);
            if (!numbers.empty()) out.emplace_back(part.whole ? "" : class_of(part.type), std::move(numbers));
        }
        return out;
    }

    /// Gives the task these GPUs of the node.
    void hold(std::size_t n, const std::vector<int>& numbers, TaskSpec& task) {
        take(nodes_[n], numbers, task);
    }

    static std::string class_of(const std::string& type) { return "gpu:" + type; }

  private:
    /// GPUs of one type on a node.
    struct Part {
        std::string type{};
        bool whole = false;
        int of_slurm = 0;  ///< the first one's index in Slurm
        int first = 0;     ///< the first one's number in the snapshot
        int count = 0;
    };
    struct Node {
        std::string model{};                     ///< of its whole cards
        std::vector<Part> parts{};               ///< in Slurm's order
        std::vector<std::int64_t> free_milli{};  ///< by number
        std::set<int> failed{};
        std::map<std::string, std::int64_t, std::less<>> shares{};  ///< `shard` or `mps` per GPU
    };

    static std::string model_of(const Gres& gres) {
        return gres.type.empty() ? std::string(untyped_model) : gres.type;
    }

    /// Chooses the type of each node's whole cards: the most numerous there, then in the cluster, then the
    /// first. GPUs of other types are devices of that node.
    void sort_types(std::span<const std::string> names, std::span<const std::vector<Gres>> gres) {
        std::map<std::string, std::int64_t> totals;
        for (const auto& of_node : gres)
            for (const auto& item : of_node)
                if (item.name == "gpu" && !is_mig_type(item.type)) totals[model_of(item)] += item.count;
        for (std::size_t n = 0; n < gres.size(); ++n) {
            const Gres* most = nullptr;
            const auto rank = [&](const Gres& item) { return std::pair(item.count, totals[model_of(item)]); };
            for (const auto& item : gres[n]) {
                if (item.name != "gpu" || item.count == 0) continue;
                if (is_mig_type(item.type)) {
                    if (devices_.insert(item.type).second) report_.exact("Node", "MIG type " + item.type);
                } else if (most == nullptr || rank(item) > rank(*most)) {
                    most = &item;
                }
            }
            if (most == nullptr) continue;
            nodes_[n].model = model_of(*most);
            whole_.insert(nodes_[n].model);
            for (const auto& item : gres[n]) {
                const auto model = model_of(item);
                if (item.name != "gpu" || item.count == 0 || is_mig_type(item.type) ||
                    model == nodes_[n].model)
                    continue;
                devices_.insert(model);
                report_.approximated(
                    "Node", "GPU type " + model, Errs::too_strict,
                    "devices on a node that has more GPUs of another type: pending jobs go to "
                    "nodes with whole GPUs of the type, if there are any",
                    names[n]);
            }
        }
    }

    void number(const std::string& name, std::span<const Gres> gres, Node& out) const {
        int of_slurm = 0, next = 0;
        for (const auto& item : gres) {
            if (item.name != "gpu") continue;
            const auto model = model_of(item);
            const int room = max_gpus_per_node - next;
            const int count = static_cast<int>(std::min<std::int64_t>(item.count, room));
            if (count < item.count)
                report_.approximated("Node", "GPUs beyond 64", Errs::too_strict,
                                     "the first 64 have numbers and count", name);
            const auto same =
                std::ranges::find_if(out.parts, [&](const Part& part) { return part.type == model; });
            if (same != out.parts.end()) {
                report_.left_out("Node", "GPUs", "a type that is listed twice: the first counts",
                                 name + ": gpu:" + model, Errs::too_strict);
                continue;
            }
            out.parts.push_back(
                {.type = model, .whole = model == out.model, .of_slurm = of_slurm, .count = count});
            of_slurm += count;
            next += count;
        }
        next = 0;
        for (const bool whole : {true, false})
            for (auto& part : out.parts)
                if (part.whole == whole) {
                    part.first = next;
                    next += part.count;
                }
        out.free_milli.assign(static_cast<std::size_t>(next), 1000);
        std::int64_t whole = 0;
        for (const auto& part : out.parts) whole += part.whole ? part.count : 0;
        for (const auto& item : gres)
            if (is_share(item.name) && whole > 0 && item.count > 0)
                out.shares[item.name] += std::max<std::int64_t>(1, item.count / whole);
    }

    /// The numbers of the devices that Slurm names; none if it names none.
    static std::vector<int> numbers_of(const Node& node, const Gres& gres) {
        std::vector<int> out;
        for (const int index : named_devices(gres))
            for (const auto& part : node.parts)
                if (index >= part.of_slurm && index < part.of_slurm + part.count)
                    out.push_back(part.first + index - part.of_slurm);
        return out;
    }
    static const Part* part_of(const Node& node, int number) {
        for (const auto& part : node.parts)
            if (number >= part.first && number < part.first + part.count) return &part;
        return nullptr;
    }
    static std::int64_t free_of(const Node& node, const Part& part) {
        std::int64_t out = 0;
        for (int i = 0; i < part.count; ++i)
            out += node.free_milli[static_cast<std::size_t>(part.first + i)] == 1000 ? 1 : 0;
        return out;
    }
    static bool accepts(const TaskSpec& task, const std::string& type) {
        return contains(task.device_classes, class_of(type));
    }
    static void take(Node& node, const std::vector<int>& numbers, TaskSpec& task) {
        for (const int number : numbers)
            node.free_milli[static_cast<std::size_t>(number)] -=
                part_of(node, number)->whole ? task.gpu_share_milli : 1000;
        task.gpus = numbers;
    }

    /// Adds a counted resource: by name, and by name and type.
    static void count(const Gres& gres, Resources& out) {
        const auto add = [&](const std::string& name) {
            auto& amount = out[name];
            amount = std::min(amount + gres.count, largest_quantity / 2);
        };
        if (gres.count == 0) return;
        add("gres/" + gres.name);
        if (!gres.type.empty()) add("gres/" + gres.name + ":" + gres.type);
    }

    /// Whether GPUs of the type are devices: on the task's node, or for a pending task on all nodes that have
    /// them.
    [[nodiscard]] bool are_devices(const std::string& type, std::optional<std::size_t> node) const {
        if (!node) return devices_.contains(type) && !whole_.contains(type);
        const auto& parts = nodes_[*node].parts;
        const auto found = std::ranges::find_if(parts, [&](const Part& part) { return part.type == type; });
        return found == parts.end() ? devices_.contains(type) && !whole_.contains(type) : !found->whole;
    }

    void ask_gpus(const Gres& gres, std::optional<std::size_t> node, TaskSpec& out,
                  std::set<std::string>& models) const {
        const auto devices = [&](std::int64_t count, const std::set<std::string>& types) {
            std::vector<std::string> classes;
            for (const auto& type : types) classes.push_back(class_of(type));
            if (out.device_count > 0 && out.device_classes != classes) {
                report_.ignored("Job", "GPUs of several types", Errs::too_lax,
                                "a task has devices of one class: the first", out.name);
                return;
            }
            out.device_count += count;
            out.device_classes = std::move(classes);
            report_.exact("Job", "GPUs");
        };
        if (!gres.type.empty() && are_devices(gres.type, node)) return devices(gres.count, {gres.type});
        if (!gres.type.empty()) {
            out.gpu_count += gres.count;
            models.insert(gres.type);
            report_.exact("Job", "GPUs");
            return;
        }
        if (node) {
            std::map<std::string, std::int64_t> by_type;
            std::int64_t named = 0;
            for (const int number : numbers_of(nodes_[*node], gres)) {
                const auto* const part = part_of(nodes_[*node], number);
                ++by_type[part->whole ? "" : part->type];
                ++named;
            }
            if (named != gres.count) {
                by_type.clear();
                const auto& parts = nodes_[*node].parts;
                const auto whole = std::ranges::find_if(parts, [](const Part& part) { return part.whole; });
                by_type[whole != parts.end() || parts.empty() ? "" : parts.front().type] = gres.count;
            }
            for (const auto& [type, count] : by_type)
                if (type.empty()) {
                    out.gpu_count += count;
                    report_.exact("Job", "GPUs");
                } else {
                    devices(count, {type});
                }
            return;
        }
        if (!whole_.empty() || devices_.empty()) {
            out.gpu_count += gres.count;
            if (devices_.empty())
                report_.exact("Job", "GPUs");
            else
                report_.approximated("Job", "GPUs of any type", Errs::too_strict,
                                     "whole GPUs; Slurm may give instances or cards of other types, too",
                                     out.name);
            return;
        }
        devices(gres.count, devices_);
    }

    void ask_share(const Gres& gres, std::optional<std::size_t> node, TaskSpec& out,
                   std::set<std::string>& models) const {
        std::int64_t per_gpu = 0;
        bool differ = false;
        const auto see = [&](const Node& of) {
            const auto found = of.shares.find(gres.name);
            if (found == of.shares.end()) return;
            differ = differ || (per_gpu != 0 && per_gpu != found->second);
            per_gpu = per_gpu == 0 ? found->second : std::min(per_gpu, found->second);
        };
        if (node)
            see(nodes_[*node]);
        else
            for (const auto& of : nodes_) see(of);
        if (out.gpu_count > 0 || per_gpu == 0) {
            report_.ignored("Job", gres.name, Errs::too_lax,
                            per_gpu == 0 ? "no node has any" : "the job asks for GPUs, too", out.name);
            return;
        }
        if (!gres.type.empty()) models.insert(gres.type);
        if (gres.count >= per_gpu) {
            out.gpu_count = (gres.count + per_gpu - 1) / per_gpu;
            if (gres.count % per_gpu != 0)
                report_.approximated("Job", gres.name, Errs::too_strict, "rounded up to whole GPUs",
                                     out.name);
            else
                report_.exact("Job", gres.name);
        } else {
            out.gpu_count = 1;
            out.gpu_share_milli = std::clamp<std::int64_t>(gres.count * 1000 / per_gpu, 1, 1000);
            // Rounded down, so that as many fit on a GPU as it has shares.
            if (per_gpu <= 31) out.gpu_share_milli = gres.count * (1000 / per_gpu);
            if (differ)
                report_.approximated("Job", gres.name, Errs::too_strict,
                                     "nodes have different numbers of them: the smallest number counts",
                                     out.name);
            else
                report_.approximated("Job", gres.name, per_gpu <= 31 ? Errs::neither : Errs::too_lax,
                                     "a share of a GPU, in thousandths", out.name);
        }
    }

    ReportBuilder& report_;
    std::vector<Node> nodes_;
    std::set<std::string> devices_;  // types that are devices of some node
    std::set<std::string> whole_;    // types that are whole cards of some node
};

}  // namespace gpusched::io::detail::slurm

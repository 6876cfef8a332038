// SPDX-License-Identifier: Apache-2.0
// Checks of one node, task or job as data, whatever else there is: ranges, texts, and what does not go together.
#pragma once

#include "model/check_extras.hpp"
#include "model/check_subgroups.hpp"
#include "model/cores.hpp"
#include "model/owner.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gpusched::detail {

inline constexpr int deepest_level = 15;

// The value, or the nearest legal one: a table never holds what would overflow sums, even while problems are collected.
constexpr std::int64_t legal(std::int64_t value, std::int64_t low = 0, std::int64_t high = largest_quantity) {
    return std::clamp(value, low, high);
}

/// Reports what is wrong with one item; an item that it says nothing of can be put into the tables.
class SpecChecks {
  public:
    explicit SpecChecks(Problems& problems) : problems_(problems) {}

    /// @param number its place in the input, for a node without a name
    void node(const NodeSpec& node, std::size_t number) const {
        const Owner owner("node", node.name);
        name_of(Owner("node", number), node.name);
        no_nul(owner, "gpu_model", node.gpu_model);
        check_fields(problems_, node, owner);
        const auto count = static_cast<int>(legal(node.gpu_count, 0, max_gpus_per_node));
        check_resources(owner, node.resources, problems_);
        const int devices = std::min(check_devices(owner, node.devices, count, problems_), max_gpus_per_node);
        for (const int gpu : node.failed_gpus)  // one that is named twice changes nothing
            if (gpu < 0 || gpu >= devices)
                problems_.add(owner + ": failed_gpus names GPU " + std::to_string(gpu) + "; it has " +
                              std::to_string(devices));
        for (const auto& taint : node.taints) {
            if (taint.key.empty()) problems_.add(owner + ": a taint has no key");
            if (taint.effect != "NoSchedule" && taint.effect != "NoExecute" &&
                taint.effect != "PreferNoSchedule")
                problems_.add(bad_value("effect of taint " + gpusched::quoted(taint.key),
                                        gpusched::quoted(taint.effect),
                                        "NoSchedule, PreferNoSchedule or NoExecute", owner.text()));
        }
        if (node.hardware) hardware(node, owner, count);
    }

    /// The node's path in the network: its length and the names, not how it fits the paths of others.
    void network(const NodeSpec& node) const {
        const Owner owner("node", node.name);
        if (node.network.size() > deepest_level + 1)
            problems_.add(bad_value("levels of network", std::to_string(node.network.size()),
                                    "at most " + std::to_string(deepest_level + 1), owner.text()));
        for (std::size_t l = 0; l < node.network.size(); ++l) {
            if (node.network[l].empty())
                problems_.add(owner + ": network has an empty domain name at level " + std::to_string(l));
            no_nul(owner, "network", node.network[l]);
        }
    }

    void job(const JobSpec& job, std::size_t number) const {
        const Owner owner("job", job.name);
        name_of(Owner("job", number), job.name);
        check_fields(problems_, job, owner);
        check_subgroups(job, problems_);
    }

    /// All but where it runs and the levels that it names.
    void task(const TaskSpec& task, std::size_t number) const {
        const Owner owner("task", task.name);
        name_of(Owner("task", number), task.name);
        no_nul(owner, "job", task.job);
        no_nul(owner, "subgroup", task.subgroup);
        check_fields(problems_, task, owner);
        if (task.gpu_share_milli < whole_gpu_milli && task.gpu_count != 1)
            problems_.add(owner + ": gpu_share_milli is " + std::to_string(task.gpu_share_milli) +
                          ", a fraction; it goes with gpu_count 1, not " + std::to_string(task.gpu_count));
        if (task.standby && task.priority_class != PriorityClass::hp)
            problems_.add(owner + ": standby is for HP tasks");
        if (task.cores) check_core_list(owner, *task.cores, problems_);
        check_resources(owner, task.resources, problems_);
        check_device_request(owner, task, problems_);
        check_node_affinity(owner, task.node_affinity, problems_);
        for (const auto& toleration : task.tolerations) this->toleration(owner, toleration);
        for (const auto& term : task.anti_affinity) {
            group(owner, "anti_affinity", term.group);
            check_fields(problems_, term, PartOwner(owner, "anti_affinity to", term.group));
        }
        for (const auto& term : task.affinity) group(owner, "affinity", term.group);
        for (const auto& name : task.groups) group(owner, "groups", name);
        for (const auto& term : task.avoid) group(owner, "avoid", term.group);
        for (const auto& term : task.near) group(owner, "near", term.group);
        for (const auto& term : task.spread) {
            group(owner, "spread", term.group);
            check_fields(problems_, term, PartOwner(owner, "spread of", term.group));
        }
        for (const auto& model : task.gpu_models) {
            if (model.empty()) problems_.add(owner + ": gpu_models holds an empty name");
            no_nul(owner, "gpu_models", model);
        }
    }

    /// The label keys that are levels.
    void label_levels(const std::vector<std::string>& keys) const {
        const Owner owner("cluster");
        for (std::size_t k = 0; k < keys.size(); ++k) {
            if (keys[k].empty()) problems_.add("cluster: label_levels holds an empty key");
            if (keys[k] == "node")
                problems_.add(bad_value("label_levels", "'node'",
                                        "another key: it is the level of single nodes", owner.text()));
            no_nul(owner, "label_levels", keys[k]);
            if (std::find(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(k), keys[k]) !=
                keys.begin() + static_cast<std::ptrdiff_t>(k))
                problems_.add("cluster: label_levels holds " + gpusched::quoted(keys[k]) + " twice");
        }
    }

    /// The levels that a task names.
    /// @param labels how many levels are label keys
    void levels(const TaskSpec& task, std::size_t labels) const {
        const Owner owner("task", task.name);
        for (const auto& term : task.anti_affinity) level(owner, "anti_affinity", term.level, labels);
        for (const auto& term : task.affinity) level(owner, "affinity", term.level, labels);
        if (task.network_affinity) level(owner, "network_affinity", task.network_affinity->level);
        for (const auto& term : task.avoid) level(owner, "avoid", term.level, labels);
        for (const auto& term : task.near) level(owner, "near", term.level, labels);
        for (const auto& term : task.spread) level(owner, "spread", term.level, labels);
    }

    /// Where a task that is on no node says that it is.
    void pending(const TaskSpec& task) const {
        const Owner owner("task", task.name);
        if (task.locked) problems_.add(owner + ": locked, but on no node");
        if (task.standby) problems_.add(owner + ": standby, but on no node");
        if (!task.gpus.empty()) problems_.add(owner + ": holds GPUs, but is on no node");
        if (task.assign_gpus) problems_.add(owner + ": is to be assigned GPUs, but is on no node");
    }

  private:
    void name_of(const Owner& by_number, const std::string& name) const {
        if (name.empty()) problems_.add(by_number + ": name is empty");
        no_nul(by_number, "name", name);
    }

    // Many formats and tools take a NUL for the end of a text. The name itself is not repeated for that reason.
    void no_nul(const Owner& owner, const char* field, const std::string& name) const {
        if (name.find('\0') != std::string::npos)
            problems_.add(bad_value(field, "text with a NUL character", "text without", owner.text()));
    }

    void group(const Owner& owner, const char* field, const std::string& group) const {
        if (group.empty()) problems_.add(owner + ": " + field + " has no group");
        if (group.find('\0') != std::string::npos)  // no words where nothing is wrong
            no_nul(owner, (std::string(field) + " group").c_str(), group);
    }

    void level(const Owner& owner, const char* field, Level value, std::size_t labels = 0) const {
        if (value < node_level || value >= first_label_level + static_cast<Level>(labels))
            problems_.add(
                bad_value(std::string(field) + " level", std::to_string(value),
                          "\"node\" or 0 to " + std::to_string(deepest_level) +
                              (labels > 0 ? ", or one of " + std::to_string(labels) + " label levels" : ""),
                          owner.text()));
    }

    void toleration(const Owner& owner, const Toleration& toleration) const {
        if (toleration.op != "Equal" && toleration.op != "Exists")
            problems_.add(bad_value("toleration operator", gpusched::quoted(toleration.op), "Equal or Exists",
                                    owner.text()));
        if (toleration.op == "Equal" && toleration.key.empty())
            problems_.add(
                bad_value("toleration operator", "'Equal'", "Exists where the key is empty", owner.text()));
        if (toleration.op == "Exists" && !toleration.value.empty())
            problems_.add(bad_value("toleration value", gpusched::quoted(toleration.value),
                                    "none with operator Exists", owner.text()));
    }

    void hardware(const NodeSpec& node, const Owner& owner, int count) const {
        auto description = *node.hardware;
        if (!description.preset.empty()) {
            const auto preset = hardware_preset(description.preset);
            if (!preset) {
                problems_.add(owner.text() + ": " +
                              bad_name("hardware preset", description.preset, hardware_preset_names()));
                return;
            }
            description = *preset;
        }
        GpuMask seen = 0;
        std::int64_t cores = 0;
        for (std::size_t i = 0; i < description.numa_nodes.size(); ++i) {
            const auto& numa = description.numa_nodes[i];
            const auto name = owner + ": hardware NUMA node " + std::to_string(i);
            check_fields(problems_, numa, name);
            cores += legal(numa.cores, 0, 1'000'000);
            if ((seen & numa.gpus) != 0) problems_.add(name + " shares a GPU with another NUMA node");
            seen |= numa.gpus;
        }
        if (const auto with_gpus = std::count_if(description.numa_nodes.begin(), description.numa_nodes.end(),
                                                 [](const NumaNode& numa) { return numa.gpus != 0; });
            with_gpus > most_gpu_localities)
            problems_.add(bad_value("NUMA nodes with GPUs in hardware", std::to_string(with_gpus),
                                    "at most " + std::to_string(most_gpu_localities), owner.text()));
        if (seen != first_gpus(count))
            problems_.add(owner + ": gpu_count is " + std::to_string(count) + " but its hardware" +
                          (description.preset.empty() ? "" : " " + gpusched::quoted(description.preset)) +
                          " has " + std::to_string(gpusched::gpu_count(seen)) +
                          (gpusched::gpu_count(seen) == count ? " with other indices" : ""));
        if (node.cpu_milli > 1000 * cores)
            problems_.add(owner + ": cpu_milli is " + std::to_string(node.cpu_milli) + ", above the " +
                          std::to_string(cores) + " cores of its hardware");
    }

    Problems& problems_;
};

}  // namespace gpusched::detail

// SPDX-License-Identifier: Apache-2.0
// Checks of one node, task, job or budget as data: ranges, texts, and combinations.
#pragma once

#include "model/node_match.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/name_table.hpp>
#include <gpusched/model/inventory.hpp>
#include <gpusched/model/spec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// A node, task or job that is being checked. Put into words only where there is a problem: nearly all values are good, and
/// there are millions of them. The name must outlive it.
class Owner {
  public:
    explicit Owner(std::string_view kind) : kind_(kind) {}
    Owner(std::string_view kind, std::string_view name) : kind_(kind), name_(name) {}
    /// By its place in the input, for what may have no name.
    Owner(std::string_view kind, std::size_t number) : kind_(kind), number_(number) {}

    [[nodiscard]] std::string text() const {
        std::string text(kind_);
        if (name_) text.append(" ").append(gpusched::quoted(*name_));
        if (number_) text.append(" #").append(std::to_string(*number_));
        return text;
    }
    friend std::string operator+(const Owner& owner, std::string_view text) {
        return owner.text().append(text);
    }

  private:
    std::string_view kind_;
    std::optional<std::string_view> name_;
    std::optional<std::size_t> number_;
};

/// A named part of an owner, such as the devices of one class that a node lists.
class PartOwner {
  public:
    /// Both must outlive it.
    PartOwner(const Owner& whole, std::string_view kind, std::string_view name)
        : whole_(whole), kind_(kind), name_(name) {}

    [[nodiscard]] std::string text() const {
        return whole_.text().append(": ").append(kind_).append(" ").append(gpusched::quoted(name_));
    }

  private:
    const Owner& whole_;
    std::string_view kind_, name_;
};

inline void check_name(const Owner& owner, const char* what, const std::string& name, Problems& problems) {
    if (name.empty()) problems.add(owner + ": " + what + " has an empty name");
    if (name.find('\0') != std::string::npos)
        problems.add(bad_value(what, "text with a NUL character", "text without", owner.text()));
}

inline void check_resources(const Owner& owner, const Resources& resources, Problems& problems) {
    for (const auto& [name, amount] : resources) {
        check_name(owner, "resources", name, problems);
        if (amount < 0 || amount > largest_quantity)
            check_range(problems, "resource " + gpusched::quoted(name), amount, std::int64_t{0},
                        largest_quantity, owner.text());
    }
}

/// @return how many devices the node has in all, at most 64 unless there is a problem
inline int check_devices(const Owner& owner, const std::vector<DeviceSpec>& devices, int gpus,
                         Problems& problems) {
    std::int64_t all = gpus;
    for (const auto& group : devices) {
        check_name(owner, "devices", group.device_class, problems);
        const auto name = "devices of class " + gpusched::quoted(group.device_class);
        check_fields(problems, group, PartOwner(owner, "devices of class", group.device_class));
        all += std::clamp<std::int64_t>(group.count, 0, max_gpus_per_node + 1);
        if (!group.parents.empty() && static_cast<std::int64_t>(group.parents.size()) != group.count)
            problems.add(bad_value("parents of " + name, std::to_string(group.parents.size()) + " entries",
                                   "one for each of the " + std::to_string(group.count), owner.text()));
        for (const int parent : group.parents)
            if (parent >= 0 && parent < gpus)
                problems.add(owner + ": " + name + ": their card " + std::to_string(parent) +
                             " is one of its " + std::to_string(gpus) +
                             " whole GPUs; a card is whole or split");
    }
    if (all > max_gpus_per_node && !devices.empty())
        problems.add(owner + ": has " + std::to_string(all) + " GPUs and other devices; expected at most " +
                     std::to_string(max_gpus_per_node) + " (count more as a resource)");
    return static_cast<int>(std::min<std::int64_t>(all, max_gpus_per_node + 1));
}

inline void check_device_request(const Owner& owner, const TaskSpec& task, Problems& problems) {
    if (task.device_count > 0 && task.device_classes.empty())
        problems.add(owner + ": device_count is " + std::to_string(task.device_count) +
                     ", but device_classes names no class");
    if (task.device_count == 0 && !task.device_classes.empty())
        problems.add(owner + ": device_classes goes with a device_count of at least 1");
    for (std::size_t i = 0; i < task.device_classes.size(); ++i) {
        const auto& name = task.device_classes[i];
        check_name(owner, "device_classes", name, problems);
        if (std::find(task.device_classes.begin(),
                      task.device_classes.begin() + static_cast<std::ptrdiff_t>(i),
                      name) != task.device_classes.begin() + static_cast<std::ptrdiff_t>(i))
            problems.add(owner + ": device_classes names " + gpusched::quoted(name) + " twice");
    }
}

inline void check_match(const Owner& owner, const NodeMatch& match, Problems& problems) {
    const auto of = " of node_affinity key " + gpusched::quoted(match.key);
    if (match.key.empty()) problems.add(owner + ": node_affinity has an empty key");
    const auto values = match.values.size();
    switch (match.op) {
    case MatchOperator::in:
    case MatchOperator::not_in:
        if (values == 0) problems.add(bad_value("values" + of, "none", "at least one", owner.text()));
        break;
    case MatchOperator::exists:
    case MatchOperator::does_not_exist:
        if (values > 0)
            problems.add(bad_value("values" + of, std::to_string(values),
                                   "none with " + std::string(enum_name(match.op)), owner.text()));
        break;
    case MatchOperator::gt:
    case MatchOperator::lt:
        if (values != 1 || !label_integer(match.values.front()))
            problems.add(bad_value(
                "values" + of, values == 1 ? gpusched::quoted(match.values.front()) : std::to_string(values),
                "one integer with " + std::string(enum_name(match.op)), owner.text()));
        break;
    }
}

inline void check_node_affinity(const Owner& owner, const std::vector<NodeTerm>& affinity,
                                Problems& problems) {
    for (const auto& term : affinity) {
        for (const auto& match : term.match_expressions) check_match(owner, match, problems);
        for (const auto& match : term.match_fields) {
            check_match(owner, match, problems);
            if (match.key != "metadata.name" ||
                (match.op != MatchOperator::in && match.op != MatchOperator::not_in))
                problems.add(bad_value("match_fields of node_affinity",
                                       gpusched::quoted(match.key) + " " + std::string(enum_name(match.op)),
                                       "metadata.name with In or NotIn", owner.text()));
        }
    }
}

/// Those that a job lists, whatever else there is.
inline void check_subgroups(const JobSpec& job, Problems& problems) {
    if (job.subgroups.empty()) return;
    const Owner owner("job", job.name);
    std::unordered_set<std::string_view> seen;
    std::int64_t needed = 0;
    for (const auto& one : job.subgroups) {
        check_name(owner, "subgroups", one.name, problems);
        if (!seen.insert(one.name).second)
            problems.add(owner + ": names subgroup " + gpusched::quoted(one.name) + " twice");
        check_fields(problems, one, PartOwner(owner, "subgroup", one.name));
        needed = std::min(largest_quantity,
                          needed + std::clamp(one.min_members, std::int64_t{0}, largest_quantity));
    }
    if (job.min_members < needed)
        problems.add(bad_value("min_members", std::to_string(job.min_members),
                               "at least " + std::to_string(needed) + ", the sum of its subgroups",
                               owner.text()));
}

/// The one that a task names: its job, which is written, must list it.
inline void check_subgroup(const Inventory& inventory, const TaskSpec& task, Problems& problems) {
    if (task.subgroup.empty()) return;
    const auto job = inventory.job_names.find(task.job);
    if (job && inventory.find_subgroup(make_id<JobId>(*job), task.subgroup) != none<SubgroupId>) return;
    problems.add(bad_value("subgroup", gpusched::quoted(task.subgroup),
                           task.job.empty() ? "none, for a task without a job"
                                            : "one that job " + gpusched::quoted(task.job) + " lists",
                           Owner("task", task.name).text()));
}

/// Subgroups that tasks are in, where the job changes: they stay.
inline void check_subgroups_stay(const Inventory& inventory, JobId job, const JobSpec& to,
                                 Problems& problems) {
    for (const auto id : inventory.subgroups_of(job)) {
        const auto& old = inventory.subgroups[index(id)];
        const bool stays = std::any_of(to.subgroups.begin(), to.subgroups.end(),
                                       [&](const SubgroupSpec& one) { return one.name == old.name; });
        if (!stays && old.size > 0)
            problems.add(Owner("job", to.name) + ": subgroup " + gpusched::quoted(old.name) + " has " +
                         std::to_string(old.size) + (old.size == 1 ? " task" : " tasks") +
                         "; take them out first");
    }
}

/// @param number its place in the input, for a budget without a name
/// @param tasks  the names that there are
inline void check_budget(const BudgetSpec& budget, std::size_t number, const NameTable& tasks,
                         Problems& problems) {
    const Owner owner("budget", budget.name);
    if (budget.name.empty()) problems.add(Owner("budget", number) + ": name is empty");
    if (budget.name.find('\0') != std::string::npos)
        problems.add(
            bad_value("name", "text with a NUL character", "text without", Owner("budget", number).text()));
    check_fields(problems, budget, owner);
    std::unordered_set<std::string_view> seen;
    for (const auto& task : budget.tasks)
        if (!seen.insert(task).second)
            problems.add(owner + ": names task " + gpusched::quoted(task) + " twice");
        else if (!tasks.find(task))
            problems.add(owner + ": unknown task " + gpusched::quoted(task) +
                         (problems.full() ? "" : did_you_mean(task, tasks)));
    seen.clear();
    for (const auto& group : budget.groups) {
        check_name(owner, "groups", group, problems);
        if (!seen.insert(group).second)
            problems.add(owner + ": names group " + gpusched::quoted(group) + " twice");
    }
}

inline void check_core_list(const Owner& owner, std::vector<int> cores, Problems& problems) {
    std::sort(cores.begin(), cores.end());
    for (std::size_t i = 0; i < cores.size(); ++i) {
        if (cores[i] < 0) problems.add(owner + ": cores names core " + std::to_string(cores[i]));
        if (i > 0 && cores[i] == cores[i - 1])
            problems.add(owner + ": cores names core " + std::to_string(cores[i]) + " twice");
    }
}

/// Cores of `cpu_local` tasks, which stay where they are: they exist, and none is wholly used twice. Lists of other tasks
/// say where they once ran; a core that nobody uses wholly may be shared, and one that a Standby task lends.
inline void check_cores_in_use(const ClusterSpec& spec, const Inventory& inventory, Problems& problems) {
    std::map<std::pair<std::uint32_t, int>, std::vector<const TaskSpec*>> users;  // by node and core
    for (const auto& task : spec.tasks) {
        if (!task.cpu_local || !task.cores || task.cores->empty() || !task.node) continue;
        const auto node = inventory.nodes.names.find(*task.node);
        if (!node) continue;
        const Owner owner("task", task.name);
        const auto hardware = inventory.nodes.hardware[*node];
        if (hardware != NodeTable::no_hardware) {
            const auto cores = inventory.hardware[hardware].description.cores();
            for (const int core : *task.cores)
                if (core >= cores)
                    problems.add(owner + ": cores names core " + std::to_string(core) + "; node " +
                                 gpusched::quoted(*task.node) + " has " + std::to_string(cores));
        }
        auto distinct = *task.cores;
        std::sort(distinct.begin(), distinct.end());
        distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
        if (task.cpu_milli < 1000 * static_cast<std::int64_t>(distinct.size())) continue;
        for (const int core : distinct) users[{*node, core}].push_back(&task);
    }
    const auto lends = [](const TaskSpec& a, const TaskSpec& b) {
        return a.standby && b.priority_class == PriorityClass::lp;
    };
    for (const auto& [where, tasks] : users)
        for (std::size_t i = 1; i < tasks.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (!lends(*tasks[i], *tasks[j]) && !lends(*tasks[j], *tasks[i]))
                    problems.add(problems.full()
                                     ? std::string()
                                     : "node " + gpusched::quoted(*tasks[i]->node) + ": core " +
                                           std::to_string(where.second) + " is used wholly by tasks " +
                                           gpusched::quoted(tasks[j]->name) + " and " +
                                           gpusched::quoted(tasks[i]->name));
}

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

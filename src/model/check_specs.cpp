// SPDX-License-Identifier: Apache-2.0
// Checks of nodes, tasks, jobs and budgets as data.
#include "model/check_specs.hpp"

#include "model/node_match.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>

#include <map>
#include <unordered_set>

namespace gpusched::detail {

std::string Owner::text() const {
    std::string text(kind_);
    if (name_) text.append(" ").append(gpusched::quoted(*name_));
    if (number_) text.append(" #").append(std::to_string(*number_));
    if (part_) text.append(": ").append(part_->first).append(" ").append(gpusched::quoted(part_->second));
    return text;
}

// Does an earlier entry of the list equal entry `i`?
static bool is_repeated(const std::vector<std::string>& list, std::size_t i) {
    const auto end = list.begin() + static_cast<std::ptrdiff_t>(i);
    return std::find(list.begin(), end, list[i]) != end;
}

// Many formats and tools treat NUL as the end of a text. For that reason the text is not repeated in the
// message.
void SpecChecks::no_nul(const Owner& owner, const char* field, const std::string& text) const {
    if (text.find('\0') != std::string::npos)
        problems_.add(bad_value(field, "text with a NUL character", "text without", owner.text()));
}

void SpecChecks::name_of(const Owner& by_number, const std::string& name) const {
    if (name.empty()) problems_.add(by_number + ": name is empty");
    no_nul(by_number, "name", name);
}

void SpecChecks::listed_name(const Owner& owner, const char* field, const std::string& name) const {
    if (name.empty()) problems_.add(owner + ": " + field + " has an empty name");
    no_nul(owner, field, name);
}

void SpecChecks::group(const Owner& owner, const char* field, const std::string& group) const {
    if (group.empty()) problems_.add(owner + ": " + field + " has no group");
    if (group.find('\0') != std::string::npos) no_nul(owner, (std::string(field) + " group").c_str(), group);
}

void SpecChecks::resources(const Owner& owner, const Resources& resources) const {
    for (const auto& [name, amount] : resources) {
        listed_name(owner, "resources", name);
        if (amount < 0 || amount > largest_quantity)
            check_range(problems_, "resource " + gpusched::quoted(name), amount, std::int64_t{0},
                        largest_quantity, owner.text());
    }
}

// Nodes ----------------------------------------------------------------------------------------------------

int SpecChecks::devices(const Owner& owner, const std::vector<DeviceSpec>& devices, int gpus) const {
    std::int64_t all = gpus;
    for (const auto& group : devices) {
        listed_name(owner, "devices", group.device_class);
        const auto name = "devices of class " + gpusched::quoted(group.device_class);
        check_fields(problems_, group, owner.part("devices of class", group.device_class));
        all += std::clamp<std::int64_t>(group.count, 0, max_gpus_per_node + 1);
        if (!group.parents.empty() && static_cast<std::int64_t>(group.parents.size()) != group.count)
            problems_.add(bad_value("parents of " + name, std::to_string(group.parents.size()) + " entries",
                                    "one for each of the " + std::to_string(group.count), owner.text()));
        for (const int parent : group.parents)
            if (parent >= 0 && parent < gpus)
                problems_.add(concat(owner, ": ", name, ": their card ", parent, " is one of its ", gpus,
                                     " whole GPUs; a card is whole or split"));
    }
    if (all > max_gpus_per_node && !devices.empty())
        problems_.add(concat(owner, ": has ", all, " GPUs and other devices; expected at most ",
                             max_gpus_per_node, " (count more as a resource)"));
    return static_cast<int>(std::min<std::int64_t>(all, max_gpus_per_node + 1));
}

void SpecChecks::node(const NodeSpec& node, std::size_t number) const {
    const Owner owner("node", node.name);
    name_of(Owner("node", number), node.name);
    no_nul(owner, "gpu_model", node.gpu_model);
    check_fields(problems_, node, owner);
    const auto count = static_cast<int>(legal(node.gpu_count, 0, max_gpus_per_node));
    resources(owner, node.resources);
    const int all = std::min(devices(owner, node.devices, count), max_gpus_per_node);
    for (const int gpu : node.failed_gpus)  // a repeated one has no effect
        if (gpu < 0 || gpu >= all)
            problems_.add(concat(owner, ": failed_gpus names GPU ", gpu, "; it has ", all));
    for (const auto& taint : node.taints) {
        if (taint.key.empty()) problems_.add(owner + ": a taint has no key");
        if (taint.effect != "NoSchedule" && taint.effect != "NoExecute" && taint.effect != "PreferNoSchedule")
            problems_.add(bad_value("effect of taint " + gpusched::quoted(taint.key),
                                    gpusched::quoted(taint.effect),
                                    "NoSchedule, PreferNoSchedule or NoExecute", owner.text()));
    }
    if (node.hardware) hardware(node, owner, count);
}

void SpecChecks::network(const NodeSpec& node) const {
    const Owner owner("node", node.name);
    if (node.network.size() > deepest_level + 1)
        problems_.add(bad_value("levels of network", std::to_string(node.network.size()),
                                "at most " + std::to_string(deepest_level + 1), owner.text()));
    for (std::size_t l = 0; l < node.network.size(); ++l) {
        if (node.network[l].empty())
            problems_.add(concat(owner, ": network has an empty domain name at level ", l));
        no_nul(owner, "network", node.network[l]);
    }
}

void SpecChecks::hardware(const NodeSpec& node, const Owner& owner, int count) const {
    auto description = *node.hardware;
    if (!description.preset.empty()) {
        const auto preset = hardware_preset(description.preset);
        if (!preset) {
            problems_.add(owner + ": " +
                          bad_name("hardware preset", description.preset, hardware_preset_names()));
            return;
        }
        description = *preset;
    }
    GpuMask seen = 0;
    std::int64_t cores = 0, with_gpus = 0;
    for (std::size_t i = 0; i < description.numa_nodes.size(); ++i) {
        const auto& numa = description.numa_nodes[i];
        const auto name = concat(owner, ": hardware NUMA node ", i);
        check_fields(problems_, numa, name);
        cores += legal(numa.cores, 0, 1'000'000);
        with_gpus += numa.gpus != 0;
        if ((seen & numa.gpus) != 0) problems_.add(name + " shares a GPU with another NUMA node");
        seen |= numa.gpus;
    }
    if (with_gpus > most_gpu_localities)
        problems_.add(bad_value("NUMA nodes with GPUs in hardware", std::to_string(with_gpus),
                                "at most " + std::to_string(most_gpu_localities), owner.text()));
    if (seen != first_gpus(count))
        problems_.add(concat(owner, ": gpu_count is ", count, " but its hardware",
                             (description.preset.empty() ? "" : " " + gpusched::quoted(description.preset)),
                             " has ", gpu_count(seen),
                             (gpu_count(seen) == count ? " with other indices" : "")));
    if (node.cpu_milli > 1000 * cores)
        problems_.add(concat(owner, ": cpu_milli is ", node.cpu_milli, ", above the ", cores,
                             " cores of its hardware"));
}

void SpecChecks::label_levels(const std::vector<std::string>& keys) const {
    const Owner owner("cluster");
    for (std::size_t k = 0; k < keys.size(); ++k) {
        if (keys[k].empty()) problems_.add("cluster: label_levels holds an empty key");
        if (keys[k] == "node")
            problems_.add(bad_value("label_levels", "'node'", "another key: it is the level of single nodes",
                                    owner.text()));
        no_nul(owner, "label_levels", keys[k]);
        if (is_repeated(keys, k))
            problems_.add("cluster: label_levels holds " + gpusched::quoted(keys[k]) + " twice");
    }
}

// Tasks ----------------------------------------------------------------------------------------------------

void SpecChecks::task(const TaskSpec& task, std::size_t number) const {
    const Owner owner("task", task.name);
    name_of(Owner("task", number), task.name);
    no_nul(owner, "job", task.job);
    no_nul(owner, "subgroup", task.subgroup);
    if (task.waiting) {
        check_fields(problems_, *task.waiting, owner);
        no_nul(owner, "waiting", task.waiting->detail);
    }
    check_fields(problems_, task, owner);
    if (task.gpu_share_milli < whole_gpu_milli && task.gpu_count != 1)
        problems_.add(concat(owner, ": gpu_share_milli is ", task.gpu_share_milli,
                             ", a fraction; it goes with gpu_count 1, not ", task.gpu_count));
    if (task.standby && task.priority_class != PriorityClass::hp)
        problems_.add(owner + ": standby is for HP tasks");
    if (task.cores) core_list(owner, *task.cores);
    resources(owner, task.resources);
    device_request(owner, task);
    node_affinity(owner, task.node_affinity);
    for (const auto& toleration : task.tolerations) this->toleration(owner, toleration);
    for (const auto& term : task.anti_affinity) {
        group(owner, "anti_affinity", term.group);
        check_fields(problems_, term, owner.part("anti_affinity to", term.group));
    }
    for (const auto& term : task.affinity) group(owner, "affinity", term.group);
    for (const auto& name : task.groups) group(owner, "groups", name);
    for (const auto& term : task.avoid) group(owner, "avoid", term.group);
    for (const auto& term : task.near) group(owner, "near", term.group);
    for (const auto& term : task.spread) {
        group(owner, "spread", term.group);
        check_fields(problems_, term, owner.part("spread of", term.group));
    }
    for (const auto& model : task.gpu_models) {
        if (model.empty()) problems_.add(owner + ": gpu_models holds an empty name");
        no_nul(owner, "gpu_models", model);
    }
}

void SpecChecks::device_request(const Owner& owner, const TaskSpec& task) const {
    if (task.device_count > 0 && task.device_classes.empty())
        problems_.add(
            concat(owner, ": device_count is ", task.device_count, ", but device_classes names no class"));
    if (task.device_count == 0 && !task.device_classes.empty())
        problems_.add(owner + ": device_classes goes with a device_count of at least 1");
    for (std::size_t i = 0; i < task.device_classes.size(); ++i) {
        listed_name(owner, "device_classes", task.device_classes[i]);
        if (is_repeated(task.device_classes, i))
            problems_.add(owner + ": device_classes names " + gpusched::quoted(task.device_classes[i]) +
                          " twice");
    }
}

void SpecChecks::core_list(const Owner& owner, std::vector<int> cores) const {
    std::sort(cores.begin(), cores.end());
    for (std::size_t i = 0; i < cores.size(); ++i) {
        if (cores[i] < 0) problems_.add(concat(owner, ": cores names core ", cores[i]));
        if (i > 0 && cores[i] == cores[i - 1])
            problems_.add(concat(owner, ": cores names core ", cores[i], " twice"));
    }
}

void SpecChecks::match(const Owner& owner, const NodeMatch& match) const {
    const auto field = "values of node_affinity key " + gpusched::quoted(match.key);
    if (match.key.empty()) problems_.add(owner + ": node_affinity has an empty key");
    const auto values = match.values.size();
    switch (match.op) {
    case MatchOperator::in:
    case MatchOperator::not_in:
        if (values == 0) problems_.add(bad_value(field, "none", "at least one", owner.text()));
        break;
    case MatchOperator::exists:
    case MatchOperator::does_not_exist:
        if (values > 0)
            problems_.add(bad_value(field, std::to_string(values),
                                    "none with " + std::string(enum_name(match.op)), owner.text()));
        break;
    case MatchOperator::gt:
    case MatchOperator::lt:
        if (values != 1 || !label_integer(match.values.front()))
            problems_.add(bad_value(
                field, values == 1 ? gpusched::quoted(match.values.front()) : std::to_string(values),
                "one integer with " + std::string(enum_name(match.op)), owner.text()));
        break;
    }
}

void SpecChecks::node_affinity(const Owner& owner, const std::vector<NodeTerm>& affinity) const {
    for (const auto& term : affinity) {
        for (const auto& expression : term.match_expressions) match(owner, expression);
        for (const auto& field : term.match_fields) {
            match(owner, field);
            if (field.key != "metadata.name" ||
                (field.op != MatchOperator::in && field.op != MatchOperator::not_in))
                problems_.add(bad_value("match_fields of node_affinity",
                                        gpusched::quoted(field.key) + " " + std::string(enum_name(field.op)),
                                        "metadata.name with In or NotIn", owner.text()));
        }
    }
}

void SpecChecks::toleration(const Owner& owner, const Toleration& toleration) const {
    if (toleration.op != "Equal" && toleration.op != "Exists")
        problems_.add(bad_value("toleration operator", gpusched::quoted(toleration.op), "Equal or Exists",
                                owner.text()));
    if (toleration.op == "Equal" && toleration.key.empty())
        problems_.add(
            bad_value("toleration operator", "'Equal'", "Exists if the key is empty", owner.text()));
    if (toleration.op == "Exists" && !toleration.value.empty())
        problems_.add(bad_value("toleration value", gpusched::quoted(toleration.value),
                                "none with operator Exists", owner.text()));
}

void SpecChecks::levels(const TaskSpec& task, std::size_t labels) const {
    const Owner owner("task", task.name);
    for_each_level(task, task, [&](std::string_view field, Level level) {
        const auto label_levels = field == "network_affinity" ? 0 : labels;
        if (level >= node_level && level < first_label_level + static_cast<Level>(label_levels)) return;
        problems_.add(
            bad_value(std::string(field) + " level", std::to_string(level),
                      concat("\"node\" or 0 to ", deepest_level,
                             (label_levels > 0 ? concat(", or one of ", label_levels, " label levels") : "")),
                      owner.text()));
    });
}

void SpecChecks::pending(const TaskSpec& task) const {
    const Owner owner("task", task.name);
    if (task.locked) problems_.add(owner + ": locked, but on no node");
    if (task.standby) problems_.add(owner + ": standby, but on no node");
    if (!task.gpus.empty()) problems_.add(owner + ": holds GPUs, but is on no node");
    if (task.assign_gpus) problems_.add(owner + ": is to be assigned GPUs, but is on no node");
}

void check_cores_in_use(const ClusterSpec& spec, const Inventory& inventory, Problems& problems) {
    std::map<std::pair<std::uint32_t, int>, std::vector<const TaskSpec*>> users;  // by node and core
    for (const auto& task : spec.tasks) {
        if (!task.cpu_local || !task.cores || task.cores->empty() || !task.node) continue;
        const auto node = inventory.nodes.names.find(*task.node);
        if (!node) continue;
        const auto hardware = inventory.nodes.hardware[*node];
        if (hardware != NodeTable::no_hardware) {
            const auto cores = inventory.hardware[hardware].description.cores();
            for (const int core : *task.cores)
                if (core >= cores)
                    problems.add(concat(Owner("task", task.name), ": cores names core ", core, "; node ",
                                        gpusched::quoted(*task.node), " has ", cores));
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
    for (const auto& [place, tasks] : users)
        for (std::size_t i = 1; i < tasks.size(); ++i)
            for (std::size_t j = 0; j < i; ++j)
                if (!lends(*tasks[i], *tasks[j]) && !lends(*tasks[j], *tasks[i]))
                    problems.add(problems.full()
                                     ? std::string()
                                     : concat("node ", gpusched::quoted(*tasks[i]->node), ": core ",
                                              place.second, " is used wholly by tasks ",
                                              gpusched::quoted(tasks[j]->name), " and ",
                                              gpusched::quoted(tasks[i]->name)));
}

// Jobs and budgets -----------------------------------------------------------------------------------------

void SpecChecks::job(const JobSpec& job, std::size_t number) const {
    name_of(Owner("job", number), job.name);
    check_fields(problems_, job, Owner("job", job.name));
    if (!job.subgroups.empty()) subgroups(job);
    if (job.waiting) {
        check_fields(problems_, *job.waiting, Owner("job", job.name));
        no_nul(Owner("job", job.name), "waiting", job.waiting->detail);
    }
}

void SpecChecks::subgroups(const JobSpec& job) const {
    const Owner owner("job", job.name);
    std::unordered_set<std::string_view> seen;
    std::int64_t needed = 0;
    for (const auto& one : job.subgroups) {
        listed_name(owner, "subgroups", one.name);
        if (!seen.insert(one.name).second)
            problems_.add(owner + ": names subgroup " + gpusched::quoted(one.name) + " twice");
        check_fields(problems_, one, owner.part("subgroup", one.name));
        needed = std::min(largest_quantity, needed + legal(one.min_members));
    }
    if (job.min_members < needed)
        problems_.add(bad_value("min_members", std::to_string(job.min_members),
                                concat("at least ", needed, ", the sum of its subgroups"), owner.text()));
}

void check_subgroup(const Inventory& inventory, const TaskSpec& task, Problems& problems) {
    if (task.subgroup.empty()) return;
    const auto job = inventory.job_names.find(task.job);
    if (job && inventory.find_subgroup(make_id<JobId>(*job), task.subgroup) != none<SubgroupId>) return;
    problems.add(bad_value("subgroup", gpusched::quoted(task.subgroup),
                           task.job.empty() ? "none, for a task without a job"
                                            : "one that job " + gpusched::quoted(task.job) + " lists",
                           Owner("task", task.name).text()));
}

void check_subgroups_stay(const Inventory& inventory, JobId job, const JobSpec& to, Problems& problems) {
    for (const auto id : inventory.subgroups_of(job)) {
        const auto& old = inventory.subgroups[index(id)];
        const bool stays = std::any_of(to.subgroups.begin(), to.subgroups.end(),
                                       [&](const SubgroupSpec& one) { return one.name == old.name; });
        if (!stays && old.size > 0)
            problems.add(concat(Owner("job", to.name), ": subgroup ", gpusched::quoted(old.name), " has ",
                                old.size, (old.size == 1 ? " task" : " tasks"), "; take them out first"));
    }
}

void SpecChecks::budget(const BudgetSpec& budget, std::size_t number, const NameTable& tasks) const {
    const Owner owner("budget", budget.name);
    name_of(Owner("budget", number), budget.name);
    check_fields(problems_, budget, owner);
    std::unordered_set<std::string_view> seen;
    for (const auto& task : budget.tasks)
        if (!seen.insert(task).second)
            problems_.add(owner + ": names task " + gpusched::quoted(task) + " twice");
        else if (!tasks.find(task))
            problems_.add(owner + ": unknown task " + gpusched::quoted(task) +
                          (problems_.full() ? "" : did_you_mean(task, tasks)));
    seen.clear();
    for (const auto& group : budget.groups) {
        listed_name(owner, "groups", group);
        if (!seen.insert(group).second)
            problems_.add(owner + ": names group " + gpusched::quoted(group) + " twice");
    }
}

}  // namespace gpusched::detail

// SPDX-License-Identifier: Apache-2.0
// Writes what few nodes and tasks have beyond CPU, memory and whole GPUs: named resources, other devices, single nodes.
#pragma once

#include "model/check_extras.hpp"
#include "model/node_sets.hpp"
#include "model/resource_columns.hpp"
#include "model/shared_values.hpp"
#include "model/table_rows.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// What the task asks for beyond CPU, memory and whole GPUs, but for single nodes. Names that the inventory has not are left out.
[[nodiscard]] inline Extras extras_of(const TaskSpec& task, const Inventory& inventory) {
    Extras extras;
    for (const auto& [name, amount] : task.resources)
        if (const auto resource = inventory.resource_names.find(name); amount > 0 && resource)
            extras.resources.push_back({*resource, amount});
    if (task.device_count <= 0) return extras;
    extras.device_count = static_cast<int>(std::min<std::int64_t>(task.device_count, max_gpus_per_node));
    for (const auto& name : task.device_classes)
        if (const auto device_class = inventory.device_classes.find(name))
            extras.device_classes.push_back(*device_class);
    return extras;
}

/// Works on a new inventory as well as on one that changes. What nobody refers to any more is forgotten, but for names.
class ExtrasEditor {
  public:
    explicit ExtrasEditor(Inventory& out)
        : out_(out), devices_(out.node_devices), sets_(out.node_sets), extras_(out.extras), named_(out) {
        // Entry 0 of both tables is for those that have nothing of the kind, and stays.
        if (out.extras.empty()) {
            (void)devices_.acquire({});
            (void)extras_.acquire({});
            return;
        }
        std::vector<std::uint32_t> used{0};
        for (const auto node : out.living_nodes()) used.push_back(out.nodes.devices[index(node)]);
        devices_.adopt(used);
        used = {0};
        for (const auto task : out.living_tasks()) used.push_back(out.tasks.extras[index(task)]);
        extras_.adopt(used);
        used.clear();
        for (const auto& extras : out.extras)  // each refers to its set once
            if (extras.node_set != Extras::no_node_set) used.push_back(extras.node_set);
        sets_.adopt(used);
    }
    ExtrasEditor(const ExtrasEditor&) = delete;
    ExtrasEditor& operator=(const ExtrasEditor&) = delete;

    /// Gives each of these names a column of node_resources, and the nodes that are there 0 of what is new; true if some was.
    bool add_columns(const Resources& resources) {
        const auto before = out_.resource_names.size();
        for (const auto& [name, amount] : resources) (void)out_.resource_names.intern(name);
        if (out_.resource_names.size() == before) return false;
        widen_rows(out_.node_resources, before, out_.resource_names.size(), out_.nodes.names.size());
        return true;
    }

    /// @return how many devices the node has in all; where the checks find problems with them, its whole GPUs
    int write_node(const NodeSpec& node, std::size_t i) {
        if (const auto columns = out_.resource_names.size(); columns > 0) {
            out_.node_resources.resize(std::max(out_.node_resources.size(), (i + 1) * columns));
            for (const auto& [name, amount] : node.resources)
                out_.node_resources[i * columns + *out_.resource_names.find(name)] =
                    std::clamp<std::int64_t>(amount, 0, largest_quantity);
        }
        const auto gpus = static_cast<int>(std::clamp<std::int64_t>(node.gpu_count, 0, max_gpus_per_node));
        if (node.devices.empty()) return gpus;
        Problems problems;
        const int all = check_devices(Owner("node", node.name), node.devices, gpus, problems);
        if (!problems.empty()) return gpus;
        out_.nodes.devices[i] = devices(node.devices, gpus);
        return all;
    }
    /// The node has its name and labels, or is about to lose them: tasks may single it out.
    void attach_node(NodeId node) { named_.add_node(node); }
    void detach_node(NodeId node) { named_.remove_node(node); }
    /// @return how many devices the node had in all
    int clear_node(std::size_t i) {
        const auto columns = out_.resource_names.size();
        std::fill_n(out_.node_resources.begin() + static_cast<std::ptrdiff_t>(i * columns), columns, 0);
        const int all = out_.nodes.gpu_count[i] + gpu_count(out_.node_devices[out_.nodes.devices[i]].all);
        if (const auto devices = std::exchange(out_.nodes.devices[i], 0); devices != 0)
            devices_.release(devices);
        return all;
    }

    /// Writes the task's requirement and extras.
    /// @param requirement has the task's selector and affinity as written
    /// @param acquire gives a requirement its index
    template <class Acquire>
    void write_task(const TaskSpec& task, std::size_t i, Requirement&& requirement, Acquire&& acquire) {
        if (task.resources.empty() && task.device_count == 0 && task.device_classes.empty() &&
            task.node_affinity.empty() && !singles_out(task.node_selector)) {
            out_.tasks.requirement[i] = acquire(std::move(requirement));
            return;
        }
        for (const auto& name : task.device_classes) (void)out_.device_classes.intern(name);
        auto extras = extras_of(task, out_);
        auto rest = requirement;
        const auto relaxed = reduce(task.node_affinity, [](bool) { return true; });
        requirement.node_affinity = relaxed.possible ? relaxed.affinity : std::vector{NodeTerm{}};
        requirement.node_selector = without_hostname(task.node_selector);
        out_.tasks.requirement[i] = acquire(std::move(requirement));
        if (singles_out_nodes(task))
            extras.node_set = node_set(task, out_.tasks.requirement[i], std::move(rest), acquire);
        if (extras == Extras{}) return;
        const auto [id, added] = extras_.acquire(extras);
        if (added) {
            out_.extras_since.resize(out_.extras.size());
            out_.extras_since[id] = out_.serial;
        } else if (extras.node_set != Extras::no_node_set) {
            (void)sets_.release(extras.node_set);
        }
        write_extras(out_.tasks, i, id);
    }
    /// @param release takes back an index that `acquire` gave
    template <class Release>
    void clear_task(std::size_t i, Release&& release) {
        const auto id = std::exchange(out_.tasks.extras[i], 0);
        if (id == 0) return;
        const auto set = out_.extras[id].node_set;
        if (!extras_.release(id) || set == Extras::no_node_set) return;
        if (sets_.is_shared(set)) return (void)sets_.release(set);
        named_.remove_set(set);
        const auto others = out_.node_sets[set].others;
        sets_.release(set);
        if (others != NodeSet::no_node) release(others);
    }

  private:
    std::uint32_t devices(const std::vector<DeviceSpec>& written, int gpus) {
        const auto [id, added] = devices_.acquire({gpus, written, 0, {}});
        if (!added) return id;
        auto& made = out_.node_devices[id];
        int next = gpus;
        for (const auto& group : written) {
            const auto count = static_cast<int>(group.count);
            const auto mask = first_gpus(next + count) & ~first_gpus(next);
            next += count;
            made.all |= mask;
            const auto device_class = out_.device_classes.intern(group.device_class).first;
            const auto known = std::find_if(made.classes.begin(), made.classes.end(), [&](const auto& one) {
                return one.device_class == device_class;
            });
            if (known == made.classes.end())
                made.classes.push_back({device_class, mask});
            else
                known->devices |= mask;
        }
        return id;
    }

    template <class Acquire>
    std::uint32_t node_set(const TaskSpec& task, std::uint32_t requirement, Requirement&& others,
                           Acquire&& acquire) {
        NodeSet set;
        set.requirement = requirement;
        set.node_selector = task.node_selector;
        set.node_affinity = task.node_affinity;
        const auto [id, added] = sets_.acquire(set);
        if (!added) return id;
        named_.add_set(id);
        auto rest = reduce(task.node_affinity, [](bool positive) { return !positive; });
        if (singles_out(task.node_selector) || !rest.possible) return id;
        others.node_selector = without_hostname(task.node_selector);
        others.node_affinity = std::move(rest.affinity);
        out_.node_sets[id].others = acquire(std::move(others));
        return id;
    }

    Inventory& out_;
    SharedValues<NodeDevices> devices_;
    SharedValues<NodeSet> sets_;
    SharedValues<Extras> extras_;
    NamedNodes named_;
};

}  // namespace gpusched::detail

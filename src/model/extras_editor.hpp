// SPDX-License-Identifier: Apache-2.0
// Writes named resources, devices besides whole GPUs, and selections of single nodes.
#pragma once

#include "model/check_specs.hpp"
#include "model/node_match.hpp"
#include "model/shared_values.hpp"
#include "model/table_rows.hpp"

#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Widens a table from `before` to `after` columns. The new columns are 0.
inline void widen_rows(std::vector<std::int64_t>& table, std::size_t before, std::size_t after,
                       std::size_t rows) {
    std::vector<std::int64_t> wider(rows * after, 0);
    for (std::size_t r = 0; before > 0 && r < table.size() / before; ++r)
        std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(r * before), before,
                    wider.begin() + static_cast<std::ptrdiff_t>(r * after));
    table = std::move(wider);
}

/// Returns whether the condition singles out nodes by a label that differs for each node.
inline bool singles_out(const NodeMatch& match) {
    return match.key == "kubernetes.io/hostname" &&
           (match.op == MatchOperator::in || match.op == MatchOperator::not_in);
}
inline bool singles_out(const Labels& selector) {
    return !selector.empty() && selector.contains("kubernetes.io/hostname");
}

inline bool singles_out(const NodeTerm& term) {
    return !term.match_fields.empty() ||
           std::any_of(term.match_expressions.begin(), term.match_expressions.end(),
                       [](const NodeMatch& match) { return singles_out(match); });
}

inline bool singles_out_nodes(const TaskSpec& task) {
    return singles_out(task.node_selector) ||
           std::any_of(task.node_affinity.begin(), task.node_affinity.end(),
                       [](const NodeTerm& term) { return singles_out(term); });
}

/// Adds the label keys that distinguish classes of nodes for the task.
template <class Keys>
void add_class_keys(const TaskSpec& task, Keys& keys) {
    for (const auto& [key, value] : task.node_selector)
        if (key != "kubernetes.io/hostname") keys.insert(key);
    for (const auto& term : task.node_affinity)
        for (const auto& match : term.match_expressions)
            if (!singles_out(match)) keys.insert(match.key);
}

/// An affinity without the conditions that single out nodes. `possible` is false if no node satisfies it;
/// every node satisfies an empty affinity.
struct Reduced {
    bool possible = true;
    std::vector<NodeTerm> affinity{};
};
/// Replaces each condition that singles out nodes by `stands_for(positive)`: true, or false, which drops its
/// term.
template <class StandsFor>
Reduced reduce(const std::vector<NodeTerm>& affinity, StandsFor&& stands_for) {
    Reduced out;
    for (const auto& term : affinity) {
        bool kept = !term.match_expressions.empty() || !term.match_fields.empty();
        NodeTerm rest;
        for (const auto& match : term.match_fields) kept = kept && stands_for(match.op == MatchOperator::in);
        for (const auto& match : term.match_expressions)
            if (!singles_out(match))
                rest.match_expressions.push_back(match);
            else
                kept = kept && stands_for(match.op == MatchOperator::in);
        if (!kept) continue;
        if (rest.match_expressions.empty()) return {};
        out.affinity.push_back(std::move(rest));
    }
    out.possible = affinity.empty() || !out.affinity.empty();
    return out;
}

inline Labels without_hostname(Labels selector) {
    selector.erase("kubernetes.io/hostname");
    return selector;
}

/// Which nodes the node sets of an inventory name, kept in step as nodes and sets are added and removed. Its
/// index is made with the first set, because most inventories have none.
class NamedNodes {
  public:
    explicit NamedNodes(Inventory& inventory) : inventory_(inventory) {
        for (std::uint32_t set = 0; set < inventory.node_sets.size(); ++set)
            if (inventory.node_sets[set].requirement != NodeSet::no_node) remember(set);
    }

    /// Finds the nodes of a new set.
    void add_set(std::uint32_t which) {
        remember(which);
        auto& set = inventory_.node_sets[which];
        std::set<NodeId> nodes;
        for_each_name(
            set,
            [&](const std::string& hostname) {
                if (const auto found = with_hostname_.find(hostname); found != with_hostname_.end())
                    nodes.insert(found->second.begin(), found->second.end());
            },
            [&](const std::string& name) {
                if (const auto node = inventory_.nodes.names.find(name)) nodes.insert(make_id<NodeId>(*node));
            });
        for (const auto node : nodes) set.named.push_back({node, admits(set, node)});
    }
    /// Call before the set is removed.
    void remove_set(std::uint32_t which) {
        const auto drop = [which](auto& sets_of, const std::string& value) {
            const auto found = sets_of.find(value);
            if (found != sets_of.end() && found->second.erase(which) > 0 && found->second.empty())
                sets_of.erase(found);
        };
        for_each_name(
            inventory_.node_sets[which], [&](const std::string& hostname) { drop(by_hostname_, hostname); },
            [&](const std::string& name) { drop(by_name_, name); });
    }

    /// Call after the node has got its name and labels.
    void add_node(NodeId node) {
        if (!indexed_) return;
        if (const auto* const hostname = hostname_of(node)) with_hostname_[*hostname].insert(node);
        for_each_set_of(node, [&](NodeSet& set) {
            set.named.insert(place_of(set, node), {node, admits(set, node)});
        });
    }
    /// Call before the node loses its name and labels.
    void remove_node(NodeId node) {
        if (!indexed_) return;
        for_each_set_of(node, [&](NodeSet& set) { set.named.erase(place_of(set, node)); });
        if (const auto* const hostname = hostname_of(node)) {
            const auto found = with_hostname_.find(*hostname);
            found->second.erase(node);
            if (found->second.empty()) with_hostname_.erase(found);
        }
    }

  private:
    using Sets = std::set<std::uint32_t>;

    [[nodiscard]] const Labels& labels_of(NodeId node) const {
        return inventory_.node_attributes[inventory_.nodes.attributes[index(node)]].labels;
    }
    [[nodiscard]] const std::string* hostname_of(NodeId node) const {
        const auto& labels = labels_of(node);
        const auto found = labels.find("kubernetes.io/hostname");
        return found == labels.end() ? nullptr : &found->second;
    }
    [[nodiscard]] bool admits(const NodeSet& set, NodeId node) const {
        const auto& labels = labels_of(node);
        return holds(set.node_selector, labels) &&
               holds(set.node_affinity, labels, inventory_.nodes.names[index(node)]);
    }
    static std::vector<NodeSet::Named>::iterator place_of(NodeSet& set, NodeId node) {
        return std::lower_bound(set.named.begin(), set.named.end(), node,
                                [](const NodeSet::Named& named, NodeId id) { return named.node < id; });
    }

    template <class Hostname, class Name>
    static void for_each_name(const NodeSet& set, Hostname&& hostname, Name&& name) {
        if (const auto own = set.node_selector.find("kubernetes.io/hostname"); own != set.node_selector.end())
            hostname(own->second);
        for (const auto& term : set.node_affinity) {
            for (const auto& match : term.match_expressions)
                if (singles_out(match))
                    for (const auto& value : match.values) hostname(value);
            for (const auto& match : term.match_fields)
                for (const auto& value : match.values) name(value);
        }
    }

    template <class Visit>
    void for_each_set_of(NodeId node, Visit&& visit) {
        Sets sets;
        const auto add = [&](const auto& sets_of, const std::string& value) {
            if (const auto found = sets_of.find(value); found != sets_of.end())
                sets.insert(found->second.begin(), found->second.end());
        };
        add(by_name_, inventory_.nodes.names[index(node)]);
        if (const auto* const hostname = hostname_of(node)) add(by_hostname_, *hostname);
        for (const auto which : sets) visit(inventory_.node_sets[which]);
    }

    void remember(std::uint32_t which) {
        if (!indexed_) {
            indexed_ = true;
            for (const auto node : inventory_.living_nodes())
                if (const auto* const hostname = hostname_of(node)) with_hostname_[*hostname].insert(node);
        }
        for_each_name(
            inventory_.node_sets[which],
            [&](const std::string& hostname) { by_hostname_[hostname].insert(which); },
            [&](const std::string& name) { by_name_[name].insert(which); });
    }

    Inventory& inventory_;
    bool indexed_ = false;
    std::map<std::string, std::set<NodeId>> with_hostname_;
    std::map<std::string, Sets> by_hostname_, by_name_;  // sets that name it
};

/// The named resources and devices that the task requests. Skips names that the inventory does not have.
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

/// Writes the extras of nodes and tasks, of new and of changing inventories. Removes values without
/// references, but not names.
class ExtrasEditor {
  public:
    explicit ExtrasEditor(Inventory& out)
        : out_(out), devices_(out.node_devices), sets_(out.node_sets), extras_(out.extras), named_(out) {
        // Entry 0 of both tables is empty and permanent.
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

    /// Gives each of these names a column of node_resources, 0 for all nodes; true if a name is new.
    bool add_columns(const Resources& resources) {
        const auto before = out_.resource_names.size();
        for (const auto& [name, amount] : resources) (void)out_.resource_names.intern(name);
        if (out_.resource_names.size() == before) return false;
        widen_rows(out_.node_resources, before, out_.resource_names.size(), out_.nodes.names.size());
        return true;
    }

    /// @return its number of GPUs and other devices; after a problem, its number of GPUs
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
        const int all = SpecChecks(problems).devices(Owner("node", node.name), node.devices, gpus);
        if (!problems.empty()) return gpus;
        out_.nodes.devices[i] = devices(node.devices, gpus);
        return all;
    }
    /// Call after the node has got its name and labels, and before it loses them.
    void attach_node(NodeId node) { named_.add_node(node); }
    void detach_node(NodeId node) { named_.remove_node(node); }
    /// @return the number of GPUs and other devices that the node had
    int clear_node(std::size_t i) {
        const auto columns = out_.resource_names.size();
        std::fill_n(out_.node_resources.begin() + static_cast<std::ptrdiff_t>(i * columns), columns, 0);
        const int all = out_.nodes.gpu_count[i] + gpu_count(out_.node_devices[out_.nodes.devices[i]].all);
        if (const auto devices = std::exchange(out_.nodes.devices[i], 0); devices != 0)
            devices_.release(devices);
        return all;
    }

    /// Writes the task's requirement and extras.
    /// @param requirement contains the task's selector and affinity as written
    /// @param acquire returns the index of a requirement
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
    /// @param release releases an index that `acquire` returned
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

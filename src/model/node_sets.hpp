// SPDX-License-Identifier: Apache-2.0
// Takes what singles out nodes from a task's selector and affinity, and finds those nodes.
#pragma once

#include "model/node_match.hpp"

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Labels that give each node a value of its own.
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

/// Adds the label keys that tell kinds of nodes apart for the task.
template <class Keys>
void add_class_keys(const TaskSpec& task, Keys& keys) {
    for (const auto& [key, value] : task.node_selector)
        if (key != "kubernetes.io/hostname") keys.insert(key);
    for (const auto& term : task.node_affinity)
        for (const auto& match : term.match_expressions)
            if (!singles_out(match)) keys.insert(match.key);
}

/// The affinity without conditions that single out nodes, each replaced by what `stands_for(positive)` says of it: true, or
/// false, which drops its term. No term left: nothing satisfies it, and `possible` is false. Empty: everything does.
struct Reduced {
    bool possible = true;
    std::vector<NodeTerm> affinity{};
};
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

/// Which nodes the sets of an inventory name, kept while nodes and sets come and go. Made of the nodes when there is the first
/// set: most inventories have none.
class NamedNodes {
  public:
    explicit NamedNodes(Inventory& inventory) : inventory_(inventory) {
        for (std::uint32_t set = 0; set < inventory.node_sets.size(); ++set)
            if (inventory.node_sets[set].requirement != NodeSet::no_node) remember(set);
    }

    /// Finds the nodes of a set that is new.
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
    /// The set is about to go.
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

    /// The node has its name and labels.
    void add_node(NodeId node) {
        if (!indexed_) return;
        if (const auto* const hostname = hostname_of(node)) with_hostname_[*hostname].insert(node);
        for_each_set_of(node, [&](NodeSet& set) {
            set.named.insert(place_of(set, node), {node, admits(set, node)});
        });
    }
    /// The node is about to lose them.
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

}  // namespace gpusched::detail

// SPDX-License-Identifier: Apache-2.0
// Which nodes, and how many domains, the rule of a spread counts.
#pragma once

#include "model/eligibility.hpp"
#include "model/node_match.hpp"

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace gpusched::detail {

/// What the task asks for with one of its terms; the nodes are still to be found.
inline SpreadRule spread_rule_of(const Inventory& inventory, TaskId task, const Spread& term) {
    SpreadRule rule;
    rule.level = term.level;
    rule.max_skew = static_cast<int>(term.max_skew);
    rule.min_domains = static_cast<int>(term.min_domains);
    for (const auto& other : inventory.terms(task).spread)
        if (other.level >= first_label_level) rule.label_levels.push_back(other.level);
    std::sort(rule.label_levels.begin(), rule.label_levels.end());
    rule.label_levels.erase(std::unique(rule.label_levels.begin(), rule.label_levels.end()),
                            rule.label_levels.end());
    if (term.honor_node_affinity) {
        rule.node_selector = inventory.node_selector(task);
        rule.node_affinity = inventory.node_affinity(task);
    }
    rule.honors_taints = term.honor_taints;
    if (term.honor_taints)
        rule.tolerations = inventory.requirements[inventory.tasks.requirement[index(task)]].tolerations;
    return rule;
}

inline bool is_eligible(const Inventory& inventory, const SpreadRule& rule, NodeId node) {
    const auto has_label = [&](Level level) { return inventory.domain_at(level, node) != none<DomainId>; };
    if (!std::all_of(rule.label_levels.begin(), rule.label_levels.end(), has_label)) return false;
    const auto& [labels, taints] = inventory.node_attributes[inventory.nodes.attributes[index(node)]];
    if (!holds(rule.node_selector, labels) ||
        !holds(rule.node_affinity, labels, inventory.nodes.names[index(node)]))
        return false;
    return !rule.honors_taints || std::all_of(taints.begin(), taints.end(), [&](const Taint& taint) {
        return taint.effect == "PreferNoSchedule" || Inventory::tolerates(rule.tolerations, taint);
    });
}

/// Counts the node, which the rule does not know yet, if it is eligible.
inline void count_node(const Inventory& inventory, SpreadRule& rule, NodeId node) {
    if (rule.eligible.size() <= index(node)) rule.eligible.resize(index(node) + 1);
    if (!is_eligible(inventory, rule, node)) return;
    rule.eligible[index(node)] = true;
    const auto domain = index(inventory.domain_at(rule.level, node));
    if (rule.nodes_in.size() <= domain) rule.nodes_in.resize(domain + 1);
    if (rule.nodes_in[domain]++ == 0) ++rule.domains;
}

inline void forget_node(const Inventory& inventory, SpreadRule& rule, NodeId node) {
    if (!rule.eligible[index(node)]) return;
    rule.eligible[index(node)] = false;
    if (--rule.nodes_in[index(inventory.domain_at(rule.level, node))] == 0) --rule.domains;
}

}  // namespace gpusched::detail

// SPDX-License-Identifier: Apache-2.0
// The sets of groups of kinds avoid, near and spread, and the nodes that a spread counts.
#pragma once

#include "model/node_match.hpp"
#include "model/shared_values.hpp"

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace gpusched::detail {

/// The rule of one spread term of the task. Its nodes are still to be counted.
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

/// Adds a new node to the rule if it is eligible.
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

/// Finds sets by their terms. The members of a set are the tasks in its group. The set also lists the tasks
/// with a term that names it.
class GroupSelection {
  public:
    /// One constraint of a task.
    struct Term {
        GroupKind kind;
        const std::string& group;
        Level level;
        NearRule near{};
        SpreadRule spread{};
    };

    /// Takes over the sets of `inventory`.
    explicit GroupSelection(Inventory& inventory)
        : out_(inventory), near_(out_.near_rules), spread_(out_.spread_rules) {
        std::vector<std::uint32_t> near, spread;
        for (std::uint32_t set = 0; set < out_.group_sets.size(); ++set) {
            const auto& s = out_.group_sets[set];
            if (s.members == 0 || s.kind < GroupKind::avoid) continue;
            sets(s.kind, s.group).push_back(set);
            if (s.kind == GroupKind::near) near.push_back(s.rule);
            if (s.kind == GroupKind::spread) spread.push_back(s.rule);
        }
        near_.adopt(near);
        spread_.adopt(spread);
    }

    /// Calls `visit(term)` for each term of the task. Two terms may name the same set.
    template <class Visit>
    void each_term(TaskId task, Visit&& visit) const {
        const auto& asked = out_.terms(task);
        for (const auto& term : asked.avoid) visit(Term{GroupKind::avoid, term.group, term.level});
        if (!asked.near.empty()) {
            NearRule rule;
            for (const auto& term : asked.near) rule.groups.push_back(term.group);
            std::sort(rule.groups.begin(), rule.groups.end());
            rule.groups.erase(std::unique(rule.groups.begin(), rule.groups.end()), rule.groups.end());
            for (const auto& term : asked.near)
                visit(Term{GroupKind::near, rule.groups.front(), term.level, rule});
        }
        for (const auto& term : asked.spread)
            visit(Term{GroupKind::spread, term.group, term.level, {}, spread_rule_of(out_, task, term)});
    }

    [[nodiscard]] std::optional<std::uint32_t> find(const Term& term) const {
        const auto& family = family_of(term.kind);
        const auto found = family.find(term.group);
        if (found == family.end()) return std::nullopt;
        for (const auto id : found->second) {
            const auto& set = out_.group_sets[id];
            if (set.level != term.level) continue;
            if (term.kind == GroupKind::near && !(out_.near_rules[set.rule] == term.near)) continue;
            if (term.kind == GroupKind::spread && !same(out_.spread_rules[set.rule], term.spread)) continue;
            return id;
        }
        return std::nullopt;
    }

    /// Registers the set `id`, which has the kind, group and level of the term.
    void add(std::uint32_t id, const Term& term) {
        sets(term.kind, term.group).push_back(id);
        auto& set = out_.group_sets[id];
        if (term.kind == GroupKind::near) set.rule = near_.acquire(term.near).first;
        if (term.kind != GroupKind::spread) return;
        const auto [rule, added] = spread_.acquire(term.spread);
        set.rule = rule;
        if (!added) return;
        auto& made = out_.spread_rules[rule];
        made.eligible.resize(out_.nodes.names.size());
        for (std::size_t n = 0; n < out_.nodes.names.size(); ++n)
            if (!out_.nodes.names[n].empty()) count_node(out_, made, make_id<NodeId>(n));
    }

    void remove(std::uint32_t id) {
        const auto& set = out_.group_sets[id];
        auto& family = families_[place(set.kind)];
        const auto found = family.find(set.group);
        std::erase(found->second, id);
        if (found->second.empty()) family.erase(found);
        if (set.kind == GroupKind::near) near_.release(set.rule);
        if (set.kind == GroupKind::spread) spread_.release(set.rule);
    }

    /// Returns whether the term can select a task, if only groups with `has_members` have members.
    template <class HasMembers>
    [[nodiscard]] static bool selects_any(const Term& term, HasMembers&& has_members) {
        if (term.kind != GroupKind::near) return has_members(term.group);
        return std::all_of(term.near.groups.begin(), term.near.groups.end(), has_members);
    }

    /// The memberships of the task, by kind of set.
    [[nodiscard]] std::vector<Membership> memberships_of(TaskId task) const {
        const auto& asked = out_.terms(task);
        std::map<std::uint32_t, std::uint32_t> parts;
        const auto belongs = [&](GroupKind kind, const std::string& group, auto&& selected) {
            const auto& family = family_of(kind);
            if (const auto found = family.find(group); found != family.end())
                for (const auto set : found->second)
                    if (selected(set)) parts[set] |= Membership::member;
        };
        const auto lists = [&](const std::string& group) {
            return std::find(asked.groups.begin(), asked.groups.end(), group) != asked.groups.end();
        };
        const auto all = [](std::uint32_t) { return true; };
        for (const auto& group : asked.groups) {
            belongs(GroupKind::avoid, group, all);
            belongs(GroupKind::spread, group, all);
            belongs(GroupKind::near, group, [&](std::uint32_t set) {
                const auto& groups = out_.near_rules[out_.group_sets[set].rule].groups;
                return std::all_of(groups.begin(), groups.end(), lists);
            });
        }
        each_term(task, [&](const Term& term) {
            if (const auto set = find(term)) parts[*set] |= Membership::bound;
        });
        std::vector<Membership> out;
        for (const auto& [set, part] : parts) out.push_back({set, part});
        std::sort(out.begin(), out.end(), [&](const Membership& a, const Membership& b) {
            return std::tuple(out_.group_sets[a.set].kind, a.set) <
                   std::tuple(out_.group_sets[b.set].kind, b.set);
        });
        return out;
    }

  private:
    using Family = std::map<std::string, std::vector<std::uint32_t>, std::less<>>;

    [[nodiscard]] static std::size_t place(GroupKind kind) {
        return static_cast<std::size_t>(kind) - static_cast<std::size_t>(GroupKind::avoid);
    }
    [[nodiscard]] const Family& family_of(GroupKind kind) const { return families_[place(kind)]; }
    [[nodiscard]] std::vector<std::uint32_t>& sets(GroupKind kind, const std::string& group) {
        return families_[place(kind)][group];
    }

    Inventory& out_;
    Family families_[3];
    SharedValues<NearRule> near_;
    SharedValues<SpreadRule> spread_;
};

}  // namespace gpusched::detail

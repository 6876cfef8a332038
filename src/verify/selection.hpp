// SPDX-License-Identifier: Apache-2.0
// Groups that a task avoids, wants near or spreads, and those that avoid it, judged by the checker's own books.
#pragma once

#include "verify/books.hpp"
#include "verify/constraints.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::verify::detail {

/// Judges the arrival of a task whose copy is entered. Its other copy, if it has one, does not count.
class SelectionCheck {
  public:
    SelectionCheck(const Books& books, Arrival& arrival)
        : books_(books), a_(arrival), task_(*arrival.pod->spec), self_(books.number(*arrival.pod)) {}

    void run() {
        avoid();
        near();
        for (const auto& term : task_.spread) spread(term);
    }

  private:
    static bool lists(const TaskSpec& task, std::string_view group) {
        return std::find(task.groups.begin(), task.groups.end(), group) != task.groups.end();
    }
    [[nodiscard]] const TaskSpec& spec(int pod) const {
        return *books_.pods[static_cast<std::size_t>(pod)].spec;
    }
    [[nodiscard]] int domain(Level level, int node) const { return books_.domain(level, node); }

    // Calls `visit(pod, node, copies)` for all copies of other tasks.
    template <class Visit>
    void others(const std::map<std::string_view, Books::Copies>& of, std::string_view group,
                Visit&& visit) const {
        const auto found = of.find(group);
        if (found == of.end()) return;
        for (const auto& [copy, count] : found->second)
            if (copy.first != self_) visit(copy.first, copy.second, count);
    }

    void avoid() {
        for (const auto& term : task_.avoid) {
            const int home = domain(term.level, a_.node);
            bool met = false;
            others(books_.members, term.group, [&](int, int node, int) {
                met = met || (home != nowhere && domain(term.level, node) == home);
            });
            if (met)
                a_.found.push_back("avoid: members of group " + named(term.group) + " are in its domain at " +
                                   books_.level_text(term.level));
        }
        for (const auto& group : task_.groups) {
            bool met = false;
            others(books_.avoiding, group, [&](int pod, int node, int) {
                for (const auto& term : spec(pod).avoid)
                    met = met || (term.group == group && domain(term.level, a_.node) != nowhere &&
                                  domain(term.level, a_.node) == domain(term.level, node));
            });
            if (met)
                a_.found.push_back("avoid: a task that avoids group " + named(group) +
                                   ", which the task lists, is in its domain");
        }
    }

    void near() {
        if (task_.near.empty()) return;
        const auto wanted = [&](const TaskSpec& other) {
            return std::all_of(task_.near.begin(), task_.near.end(),
                               [&](const Near& term) { return lists(other, term.group); });
        };
        bool anywhere = false;
        const Near* unmet = nullptr;
        for (const auto& term : task_.near) {
            const int home = domain(term.level, a_.node);
            if (home == nowhere) {
                a_.found.push_back("near: the node has no domain at " + books_.level_text(term.level));
                return;
            }
            bool here = false;
            others(books_.members, term.group, [&](int pod, int node, int) {
                const int there = domain(term.level, node);
                if (there == nowhere || !wanted(spec(pod))) return;
                anywhere = true;
                here = here || there == home;
            });
            if (!here) unmet = &term;
        }
        if (unmet != nullptr && (anywhere || !wanted(task_)))
            a_.found.push_back("near: no member of group " + named(unmet->group) + " is in its domain at " +
                               books_.level_text(unmet->level));
    }

    [[nodiscard]] bool counts(const Spread& term, int node) const {
        for (const auto& other : task_.spread)
            if (domain(other.level, node) == nowhere) return false;
        const auto& n = *books_.machine(node).spec;
        if (term.honor_node_affinity) {
            for (const auto& [key, value] : task_.node_selector) {
                const auto label = n.labels.find(key);
                if (label == n.labels.end() || label->second != value) return false;
            }
            if (!affinity_holds(task_.node_affinity, n)) return false;
        }
        return !term.honor_taints || std::none_of(n.taints.begin(), n.taints.end(), [&](const Taint& taint) {
            return keeps_away(taint, task_.tolerations);
        });
    }

    void spread(const Spread& term) {
        const int home = domain(term.level, a_.node);
        if (home == nowhere) {
            a_.found.push_back("spread: the node has no domain at " + books_.level_text(term.level));
            return;
        }
        std::map<int, std::int64_t> filled;  // members in each domain that counts
        for (int node = 0; node < static_cast<int>(books_.machines.size()); ++node)
            if (counts(term, node)) filled.try_emplace(domain(term.level, node), 0);
        others(books_.members, term.group, [&](int, int node, int copies) {
            if (counts(term, node)) filled.at(domain(term.level, node)) += copies;
        });
        std::int64_t fewest = filled.empty() ? 0 : INT64_MAX;
        for (const auto& [id, members] : filled) fewest = std::min(fewest, members);
        if (static_cast<std::int64_t>(filled.size()) < term.min_domains) fewest = 0;
        const auto here = filled.find(home);
        const auto members = (here == filled.end() ? 0 : here->second) + (lists(task_, term.group) ? 1 : 0);
        if (members - fewest > term.max_skew)
            a_.found.push_back("spread: its domain at " + books_.level_text(term.level) + " would hold " +
                               std::to_string(members) + " members of group " + named(term.group) +
                               ", another " + std::to_string(fewest) + "; max_skew is " +
                               std::to_string(term.max_skew));
    }

    const Books& books_;
    Arrival& a_;
    const TaskSpec& task_;
    int self_;
};

}  // namespace gpusched::verify::detail

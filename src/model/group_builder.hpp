// SPDX-License-Identifier: Apache-2.0
// Finds the sets of tasks that group constraints bind, and which tasks belong to which.
#pragma once

#include "model/group_selection.hpp"

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Makes the sets of groups and the profiles of all tasks from the tables of tasks and jobs. Which sets there are depends
/// on all tasks: every member of a group belongs at every level that any member names.
class GroupBuilder {
  public:
    explicit GroupBuilder(Inventory& inventory) : out_(inventory) {}

    void build() {
        out_.group_sets.clear();
        out_.memberships_.clear();
        out_.profiles_.clear();
        out_.near_rules.clear();
        out_.spread_rules.clear();
        selection_.emplace(out_);
        for (std::size_t i = 0; i < tasks(); ++i)
            if (lives(i)) name_sets(i);
        for (auto& set : out_.group_sets) count_limits(set);
        out_.tasks.profile.assign(tasks(), 0);
        for (std::size_t i = 0; i < tasks(); ++i)
            if (lives(i)) out_.tasks.profile[i] = profile(i);
    }

    /// The name of the set that a task with a required network level belongs to: its job's, or its own.
    [[nodiscard]] static std::string network_group(const Inventory& inventory, std::size_t task) {
        const auto job = inventory.tasks.job[task];
        return job == none<JobId> ? "task " + inventory.tasks.names[task]
                                  : "job " + inventory.job_names[index(job)];
    }

  private:
    using Sets = std::vector<std::uint32_t>;
    using Family =
        std::map<std::string, Sets, std::less<>>;  // the sets of each group, in order of appearance

    [[nodiscard]] std::size_t tasks() const { return out_.tasks.names.size(); }
    [[nodiscard]] bool lives(std::size_t task) const { return !out_.tasks.names[task].empty(); }
    [[nodiscard]] const TaskAffinities& wishes(std::size_t task) const {
        return out_.task_affinities[out_.tasks.affinities[task]];
    }
    [[nodiscard]] Family& family(GroupKind kind) { return families_[static_cast<std::size_t>(kind)]; }

    GroupSet& set_of(GroupKind kind, const std::string& group, Level level) {
        auto& sets = family(kind)[group];
        const auto at = std::find_if(sets.begin(), sets.end(),
                                     [&](std::uint32_t set) { return out_.group_sets[set].level == level; });
        if (at != sets.end()) return out_.group_sets[*at];
        sets.push_back(static_cast<std::uint32_t>(out_.group_sets.size()));
        out_.group_sets.push_back({kind, group, level, 0, {}, {}, true, 0});
        return out_.group_sets.back();
    }

    void name_sets(std::size_t task) {
        const auto& asked = wishes(task);
        for (const auto& term : asked.anti_affinity)
            set_of(GroupKind::anti_affinity, term.group, term.level)
                .limits.push_back(static_cast<std::uint32_t>(term.limit));
        for (const auto& term : asked.affinity) set_of(GroupKind::affinity, term.group, term.level);
        if (asked.network_affinity && asked.network_affinity->mode == NetworkMode::required)
            set_of(GroupKind::network, network_group(out_, task), asked.network_affinity->level);
        if (asked.group_terms > 0)
            selection_->each_term(make_id<TaskId>(task), [&](const GroupSelection::Term& term) {
                if (selection_->find(term)) return;
                out_.group_sets.push_back({term.kind, term.group, term.level, 0, {}, {}, true, 0});
                selection_->add(static_cast<std::uint32_t>(out_.group_sets.size() - 1), term);
            });
    }

    // From one limit per term that names the set to each limit once, and how many name it.
    static void count_limits(GroupSet& set) {
        if (set.kind != GroupKind::anti_affinity) return;
        std::sort(set.limits.begin(), set.limits.end());
        for (auto from = set.limits.begin(); from != set.limits.end();) {
            const auto to = std::upper_bound(from, set.limits.end(), *from);
            set.members_with.push_back(static_cast<std::uint32_t>(to - from));
            from = to;
        }
        set.limits.erase(std::unique(set.limits.begin(), set.limits.end()), set.limits.end());
        set.uniform = set.limits.size() == 1;
    }

    void join(std::uint32_t set, std::uint32_t limit) {
        if (std::any_of(joined_.begin(), joined_.end(), [&](const Membership& m) { return m.set == set; }))
            return;
        joined_.push_back({set, limit});
        ++out_.group_sets[set].members;
    }

    std::uint32_t profile(std::size_t task) {
        const auto& asked = wishes(task);
        joined_.clear();
        for (const auto& term : asked.anti_affinity)
            for (const auto set : family(GroupKind::anti_affinity)[term.group]) {
                auto limit = Membership::no_limit;
                for (const auto& own : asked.anti_affinity)
                    if (own.group == term.group && own.level == out_.group_sets[set].level)
                        limit = std::min(limit, static_cast<std::uint32_t>(own.limit));
                if (limit == Membership::no_limit) out_.group_sets[set].uniform = false;
                join(set, limit);
            }
        const auto affinity = static_cast<std::uint32_t>(joined_.size());
        for (const auto& term : asked.affinity)
            for (const auto set : family(GroupKind::affinity)[term.group]) join(set, 0);
        if (const auto& gangs = family(GroupKind::network); !gangs.empty())
            if (const auto found = gangs.find(network_group(out_, task)); found != gangs.end())
                for (const auto set : found->second) join(set, 0);
        const auto selection = static_cast<std::uint32_t>(joined_.size());
        if (asked.group_terms > 0)
            for (const auto& m : selection_->memberships_of(make_id<TaskId>(task))) join(m.set, m.limit);
        return intern(affinity, selection);
    }

    // The profile with the memberships `joined_`, of which those from `affinity` and from `selection` on are of later kinds.
    std::uint32_t intern(std::uint32_t affinity, std::uint32_t selection) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> key;
        for (const auto& m : joined_) key.emplace_back(m.set, m.limit);
        const auto [at, added] =
            profile_ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(out_.profiles_.size()));
        if (added) {
            const auto first = static_cast<std::uint32_t>(out_.memberships_.size());
            out_.memberships_.insert(out_.memberships_.end(), joined_.begin(), joined_.end());
            out_.profiles_.push_back({first, first + affinity, first + selection,
                                      static_cast<std::uint32_t>(out_.memberships_.size())});
        }
        return at->second;
    }

    Inventory& out_;
    Family families_[3];  // of kinds anti_affinity, affinity and network
    std::optional<GroupSelection> selection_;
    std::vector<Membership> joined_;
    std::map<std::vector<std::pair<std::uint32_t, std::uint32_t>>, std::uint32_t> profile_ids_;
};

}  // namespace gpusched::detail

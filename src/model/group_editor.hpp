// SPDX-License-Identifier: Apache-2.0
// The sets of tasks that group constraints bind, and the membership of each task in them.
#pragma once

#include "model/group_selection.hpp"
#include "model/shared_values.hpp"

#include <gpusched/core/name_table.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Keeps the sets of groups and the profiles of tasks in step with the tables of tasks and jobs.
///
/// Which sets a group has depends on all its members: each member belongs to the sets of all levels that any
/// member names. A task with a new group, or with levels and limits that its group already has, joins in
/// O(its memberships). Any other task needs `build`.
class GroupEditor {
  public:
    /// Takes over the sets and profiles of `inventory`.
    explicit GroupEditor(Inventory& inventory) : GroupEditor(inventory, Empty{}) { adopt(); }

    /// Makes the sets and profiles of all tasks from scratch.
    /// @return false, with unusable sets, if these have more than `most_members` members together
    static bool build(Inventory& inventory, std::size_t most_members = SIZE_MAX) {
        inventory.group_sets.clear();
        inventory.memberships_.clear();
        inventory.profiles_.clear();
        inventory.near_rules.clear();
        inventory.spread_rules.clear();
        return GroupEditor(inventory, Empty{}).build_all(most_members);
    }

    /// Makes the task, whose row is written, a member of its sets. Returns false and changes nothing if the
    /// task has a level or limit that its group does not have yet.
    [[nodiscard]] bool join(std::size_t task) {
        if (!fits(task)) return false;
        open_sets(task, [&](GroupSet& set, std::uint32_t limit, bool added) {
            if (!added) return;
            set.limits.assign(1, limit);
            set.members_with.assign(1, 0);
        });
        out_.tasks.profile[task] = enter_sets(task);
        for (const auto& term : asked(task).anti_affinity) ++members_with(task, term);
        for (const auto& group : out_.terms(make_id<TaskId>(task)).groups) ++listed_[group];
        each_named(task, [&](std::uint32_t set) { ++named_[set]; });
        return true;
    }

    /// Removes the task from its sets, and sets without members. Returns false if a set loses a level or
    /// limit, so that `build` is needed; the task has left all the same.
    [[nodiscard]] bool leave(std::size_t task) {
        bool same = true;
        each_named(task, [&](std::uint32_t set) { --named_[set]; });
        for (const auto& term : asked(task).anti_affinity) --members_with(task, term);
        for (const auto& group : out_.terms(make_id<TaskId>(task)).groups)
            if (const auto found = listed_.find(group); --found->second == 0) listed_.erase(found);
        for (const auto& m : out_.memberships(make_id<TaskId>(task))) {
            auto& set = out_.group_sets[m.set];
            if (--set.members == 0) {
                remove_set(m.set);
                continue;
            }
            same = same && named_[m.set] > 0 &&
                   std::find(set.members_with.begin(), set.members_with.end(), 0u) == set.members_with.end();
        }
        release_profile(out_.tasks.profile[task]);
        return same;
    }

  private:
    using Sets = std::vector<std::uint32_t>;
    using Family = std::unordered_map<std::string, Sets>;  // the sets of each group, in order of appearance
    struct Empty {};

    GroupEditor(Inventory& inventory, Empty) : out_(inventory), selection_(inventory) {}

    void adopt() {
        const auto& tasks = out_.tasks;
        named_.assign(out_.group_sets.size(), 0);
        for (std::uint32_t set = 0; set < out_.group_sets.size(); ++set)
            if (out_.group_sets[set].members == 0)
                free_sets_.give(set);
            else if (out_.group_sets[set].kind < GroupKind::avoid)
                family(out_.group_sets[set].kind)[out_.group_sets[set].group].push_back(set);
        references_.assign(out_.profiles_.size(), 0);
        for (std::size_t i = 0; i < tasks.names.size(); ++i) {
            if (tasks.names[i].empty()) continue;
            ++references_[tasks.profile[i]];
            each_named(i, [&](std::uint32_t set) { ++named_[set]; });
            for (const auto& group : out_.terms(make_id<TaskId>(i)).groups) ++listed_[group];
        }
        pack_memberships();
        for (std::uint32_t p = 0; p < references_.size(); ++p)
            if (references_[p] > 0)
                profile_ids_.insert(hash_of(memberships(p)), p);
            else
                free_profiles_.give(p);
    }

    bool build_all(std::size_t most_members) {
        const auto& names = out_.tasks.names;
        for (std::size_t i = 0; i < names.size(); ++i)
            if (!names[i].empty())
                open_sets(i, [](GroupSet& set, std::uint32_t limit, bool) { set.limits.push_back(limit); });
        for (auto& set : out_.group_sets) count_limits(set);
        out_.tasks.profile.assign(names.size(), 0);
        std::size_t members = 0;
        for (std::size_t i = 0; i < names.size() && members <= most_members; ++i) {
            if (names[i].empty()) continue;
            out_.tasks.profile[i] = enter_sets(i);
            members += joined_.size();
        }
        return members <= most_members;
    }

    // Replaces one limit per term that names the set by the distinct limits and their numbers of terms.
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

    // Drops the memberships of unused profiles: another editor may have known that they are free.
    void pack_memberships() {
        std::vector<Membership> packed;
        for (std::size_t p = 0; p < references_.size(); ++p) {
            auto& profile = out_.profiles_[p];
            if (references_[p] == 0) profile.end = profile.selection = profile.affinity = profile.first;
            const auto first = static_cast<std::uint32_t>(packed.size());
            packed.insert(packed.end(), out_.memberships_.begin() + profile.first,
                          out_.memberships_.begin() + profile.end);
            profile = {first, first + (profile.affinity - profile.first),
                       first + (profile.selection - profile.first),
                       static_cast<std::uint32_t>(packed.size())};
        }
        out_.memberships_ = std::move(packed);
    }

    [[nodiscard]] Family& family(GroupKind kind) { return families_[static_cast<std::size_t>(kind)]; }
    [[nodiscard]] const TaskAffinities& asked(std::size_t task) const {
        return out_.task_affinities[out_.tasks.affinities[task]];
    }
    [[nodiscard]] static bool requires_level(const TaskAffinities& asked) {
        return asked.network_affinity && asked.network_affinity->mode == NetworkMode::required;
    }
    // The name of the set of a task with a required network level: of its job, or its own.
    [[nodiscard]] std::string network_group(std::size_t task) const {
        const auto job = out_.tasks.job[task];
        return job == none<JobId> ? "task " + out_.tasks.names[task] : "job " + out_.job_names[index(job)];
    }
    [[nodiscard]] Sets::const_iterator at_level(const Sets& sets, Level level) const {
        return std::find_if(sets.begin(), sets.end(),
                            [&](std::uint32_t set) { return out_.group_sets[set].level == level; });
    }
    [[nodiscard]] bool has_level(const Sets& sets, Level level) const {
        return at_level(sets, level) != sets.end();
    }
    // The set of that kind, group and level among those of the task.
    [[nodiscard]] std::uint32_t set_at(std::size_t task, GroupKind kind, std::string_view group,
                                       Level level) const {
        const auto memberships = out_.memberships(make_id<TaskId>(task));
        return std::find_if(memberships.begin(), memberships.end(),
                            [&](const Membership& m) {
                                const auto& set = out_.group_sets[m.set];
                                return set.kind == kind && set.level == level && set.group == group;
                            })
            ->set;
    }
    [[nodiscard]] static std::uint32_t limit_of(const TaskAffinities& asked, const GroupSet& set) {
        auto limit = Membership::no_limit;
        for (const auto& own : asked.anti_affinity)
            if (own.group == set.group && own.level == set.level)
                limit = std::min(limit, static_cast<std::uint32_t>(own.limit));
        return limit;
    }
    [[nodiscard]] std::uint32_t& members_with(std::size_t task, const AntiAffinity& term) {
        auto& set = out_.group_sets[set_at(task, GroupKind::anti_affinity, term.group, term.level)];
        const auto at =
            std::lower_bound(set.limits.begin(), set.limits.end(), static_cast<std::uint32_t>(term.limit));
        return set.members_with[static_cast<std::size_t>(at - set.limits.begin())];
    }

    // Calls `visit(set)` for the set of each term of the task.
    template <class Visit>
    void each_named(std::size_t task, Visit&& visit) {
        const auto& terms = asked(task);
        for (const auto& term : terms.anti_affinity)
            visit(set_at(task, GroupKind::anti_affinity, term.group, term.level));
        for (const auto& term : terms.affinity)
            visit(set_at(task, GroupKind::affinity, term.group, term.level));
        if (requires_level(terms))
            visit(set_at(task, GroupKind::network, network_group(task), terms.network_affinity->level));
        if (terms.group_terms > 0)
            selection_.each_term(make_id<TaskId>(task),
                                 [&](const GroupSelection::Term& term) { visit(*selection_.find(term)); });
    }

    [[nodiscard]] bool fits(std::size_t task) {
        const auto& terms = asked(task);
        for (const auto& term : terms.anti_affinity) {
            const auto same = std::count_if(
                terms.anti_affinity.begin(), terms.anti_affinity.end(),
                [&](const AntiAffinity& own) { return own.group == term.group && own.level == term.level; });
            if (same > 1) return false;
            const auto found = family(GroupKind::anti_affinity).find(term.group);
            if (found == family(GroupKind::anti_affinity).end()) continue;
            if (!has_level(found->second, term.level)) return false;
            for (const auto id : found->second) {
                const auto& set = out_.group_sets[id];
                const auto limit = limit_of(terms, set);
                if (limit == Membership::no_limit
                        ? set.uniform
                        : !std::binary_search(set.limits.begin(), set.limits.end(), limit))
                    return false;
            }
        }
        for (const auto& term : terms.affinity)
            if (const auto found = family(GroupKind::affinity).find(term.group);
                found != family(GroupKind::affinity).end() && !has_level(found->second, term.level))
                return false;
        // A new set must not select tasks that are already there.
        bool known = true;
        if (terms.group_terms > 0)
            selection_.each_term(make_id<TaskId>(task), [&](const GroupSelection::Term& term) {
                known =
                    known && (selection_.find(term) || !GroupSelection::selects_any(term, [&](auto& group) {
                                  return listed_.contains(group);
                              }));
            });
        if (!known) return false;
        if (!requires_level(terms)) return true;
        const auto found = family(GroupKind::network).find(network_group(task));
        if (found != family(GroupKind::network).end())
            return has_level(found->second, terms.network_affinity->level);
        const auto job = out_.tasks.job[task];
        return job == none<JobId> || out_.job_size[index(job)] == 1;
    }

    // Makes the sets that the task names and that do not exist yet.
    // `limited(set, limit, added)` is called for each anti-affinity term.
    template <class Limited>
    void open_sets(std::size_t task, Limited&& limited) {
        const auto& terms = asked(task);
        for (const auto& term : terms.anti_affinity) {
            const auto [set, added] = open(GroupKind::anti_affinity, term.group, term.level);
            limited(out_.group_sets[set], static_cast<std::uint32_t>(term.limit), added);
        }
        for (const auto& term : terms.affinity) open(GroupKind::affinity, term.group, term.level);
        if (requires_level(terms))
            open(GroupKind::network, network_group(task), terms.network_affinity->level);
        if (terms.group_terms > 0)
            selection_.each_term(make_id<TaskId>(task), [&](const GroupSelection::Term& term) {
                if (!selection_.find(term)) selection_.add(new_set(term.kind, term.group, term.level), term);
            });
    }

    std::pair<std::uint32_t, bool> open(GroupKind kind, const std::string& group, Level level) {
        auto& sets = sets_of(kind, group);
        if (const auto at = at_level(sets, level); at != sets.end()) return {*at, false};
        sets.push_back(new_set(kind, group, level));
        return {sets.back(), true};
    }

    std::uint32_t new_set(GroupKind kind, const std::string& group, Level level) {
        if (free_sets_.empty()) {
            free_sets_.give(out_.group_sets.size());
            out_.group_sets.emplace_back();
            named_.push_back(0);
        }
        const auto id = static_cast<std::uint32_t>(free_sets_.take());
        auto& set = out_.group_sets[id];
        set.kind = kind;
        set.group = group;
        set.level = level;
        named_[id] = 0;
        return id;
    }

    void remove_set(std::uint32_t id) {
        auto& set = out_.group_sets[id];
        if (set.kind >= GroupKind::avoid) {
            selection_.remove(id);
        } else {
            auto& groups = family(set.kind);
            const auto found = groups.find(set.group);
            std::erase(found->second, id);
            if (found->second.empty()) spare_groups_.push_back(groups.extract(found));
        }
        // Resets every field but keeps the storage.
        set.kind = GroupKind::anti_affinity;
        set.group.clear();
        set.level = node_level;
        set.limits.clear();
        set.members_with.clear();
        set.uniform = true;
        set.rule = 0;
        free_sets_.give(id);
    }

    // The sets of a group; none if it is new.
    [[nodiscard]] Sets& sets_of(GroupKind kind, const std::string& group) {
        auto& groups = family(kind);
        if (const auto found = groups.find(group); found != groups.end()) return found->second;
        if (spare_groups_.empty()) return groups[group];
        auto node = std::move(spare_groups_.back());
        spare_groups_.pop_back();
        node.key() = group;
        node.mapped().clear();
        return groups.insert(std::move(node)).position->second;
    }

    // Makes the task a member of its sets, which exist. Returns its profile.
    std::uint32_t enter_sets(std::size_t task) {
        const auto& terms = asked(task);
        joined_.clear();
        for (const auto& term : terms.anti_affinity)
            for (const auto set : family(GroupKind::anti_affinity)[term.group]) {
                const auto limit = limit_of(terms, out_.group_sets[set]);
                if (limit == Membership::no_limit) out_.group_sets[set].uniform = false;
                enter(set, limit);
            }
        const auto affinity = static_cast<std::uint32_t>(joined_.size());
        for (const auto& term : terms.affinity)
            for (const auto set : family(GroupKind::affinity)[term.group]) enter(set, 0);
        if (const auto& gangs = family(GroupKind::network); !gangs.empty())
            if (const auto found = gangs.find(network_group(task)); found != gangs.end())
                for (const auto set : found->second) enter(set, 0);
        const auto selection = static_cast<std::uint32_t>(joined_.size());
        if (terms.group_terms > 0)
            for (const auto& m : selection_.memberships_of(make_id<TaskId>(task))) enter(m.set, m.limit);
        return acquire_profile(affinity, selection);
    }

    void enter(std::uint32_t set, std::uint32_t limit) {
        if (std::any_of(joined_.begin(), joined_.end(), [&](const Membership& m) { return m.set == set; }))
            return;
        joined_.push_back({set, limit});
        ++out_.group_sets[set].members;
    }

    [[nodiscard]] std::span<const Membership> memberships(std::uint32_t profile) const {
        const auto& p = out_.profiles_[profile];
        return std::span(out_.memberships_).subspan(p.first, p.end - p.first);
    }
    [[nodiscard]] static std::uint32_t hash_of(std::span<const Membership> memberships) {
        StructuralHash hash;
        for (const auto& m : memberships) hash(m.set)(m.limit);
        return hash.value();
    }

    // The profile with the memberships `joined_`: affinity starts at `affinity`, avoid, near and spread at
    // `selection`.
    std::uint32_t acquire_profile(std::uint32_t affinity, std::uint32_t selection) {
        const auto hash = hash_of(joined_);
        if (const auto found = profile_ids_.find(
                hash, [&](std::uint32_t p) { return std::ranges::equal(memberships(p), joined_); });
            found != HashIndex::nothing) {
            ++references_[found];
            return found;
        }
        const auto size = static_cast<std::uint32_t>(joined_.size());
        auto first = static_cast<std::uint32_t>(out_.memberships_.size());
        if (auto& unused = free_memberships_[size]; !unused.empty()) {
            first = unused.back();
            unused.pop_back();
            std::copy(joined_.begin(), joined_.end(), out_.memberships_.begin() + first);
        } else {
            out_.memberships_.insert(out_.memberships_.end(), joined_.begin(), joined_.end());
        }
        auto id = static_cast<std::uint32_t>(out_.profiles_.size());
        if (free_profiles_.empty()) {
            out_.profiles_.push_back({});
            references_.push_back(0);
        } else {
            id = static_cast<std::uint32_t>(free_profiles_.take());
        }
        out_.profiles_[id] = {first, first + affinity, first + selection, first + size};
        references_[id] = 1;
        profile_ids_.insert(hash, id);
        return id;
    }

    void release_profile(std::uint32_t id) {
        if (--references_[id] > 0) return;
        profile_ids_.erase(hash_of(memberships(id)), id);
        const auto& p = out_.profiles_[id];
        free_memberships_[p.end - p.first].push_back(p.first);
        free_profiles_.give(id);
    }

    Inventory& out_;
    GroupSelection selection_;
    std::array<Family, 3> families_;                         // of kinds anti_affinity, affinity and network
    std::unordered_map<std::string, std::uint32_t> listed_;  // number of tasks that list each group
    std::vector<std::uint32_t> named_;                       // by set: number of terms that name its level
    FreeSlots free_sets_, free_profiles_;
    std::vector<std::uint32_t> references_;  // by profile
    HashIndex profile_ids_;
    std::vector<Family::node_type> spare_groups_;  // of removed groups, for their storage
    std::map<std::uint32_t, std::vector<std::uint32_t>> free_memberships_;  // by length: their first indices
    std::vector<Membership> joined_;
};

}  // namespace gpusched::detail

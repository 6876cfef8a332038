// SPDX-License-Identifier: Apache-2.0
// The sets of tasks that group constraints bind, and the membership of each task in them.
#pragma once

#include "model/group_selection.hpp"
#include "model/shared_values.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/name_table.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
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

/// Which sets a group has depends on all its members. A task that brings a group of its own, or joins one whose levels
/// and limits are there already, costs O(its memberships); any other needs `GroupBuilder` to start again.
class GroupEditor {
  public:
    /// Takes over the sets and profiles of `inventory`.
    explicit GroupEditor(Inventory& inventory) : out_(inventory), selection_(inventory) {
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

    /// Makes the task, whose row is written, a member of its sets. False, and nothing done, where a set would have to
    /// change in kind: a level or limit that its group does not have yet.
    [[nodiscard]] bool join(std::size_t task) {
        if (!fits(task)) return false;
        joined_.clear();
        const auto& asked = wishes(task);
        for (const auto& term : asked.anti_affinity) {
            auto& sets = sets_of(GroupKind::anti_affinity, term.group);
            if (!has_level(sets, term.level)) {
                sets.push_back(new_set(GroupKind::anti_affinity, term.group, term.level));
                out_.group_sets[sets.back()].limits.assign(1, static_cast<std::uint32_t>(term.limit));
                out_.group_sets[sets.back()].members_with.assign(1, 0);
            }
        }
        for (const auto& term : asked.anti_affinity)
            for (const auto set : family(GroupKind::anti_affinity)[term.group])
                enter(set, limit_of(asked, out_.group_sets[set]));
        const auto affinity = static_cast<std::uint32_t>(joined_.size());
        for (const auto& term : asked.affinity) open(GroupKind::affinity, term.group, term.level);
        for (const auto& term : asked.affinity)
            for (const auto set : family(GroupKind::affinity)[term.group]) enter(set, 0);
        if (requires_level(asked))
            open(GroupKind::network, GroupBuilder::network_group(out_, task), asked.network_affinity->level);
        if (auto& gangs = family(GroupKind::network); !gangs.empty())
            if (const auto found = gangs.find(GroupBuilder::network_group(out_, task)); found != gangs.end())
                for (const auto set : found->second) enter(set, 0);
        const auto selection = static_cast<std::uint32_t>(joined_.size());
        if (asked.group_terms > 0) {
            const auto id = make_id<TaskId>(task);
            selection_.each_term(id, [&](const GroupSelection::Term& term) {
                if (!selection_.find(term)) selection_.add(new_set(term.kind, term.group, term.level), term);
            });
            for (const auto& m : selection_.memberships_of(id)) enter(m.set, m.limit);
            for (const auto& group : out_.terms(id).groups) ++listed_[group];
        }
        out_.tasks.profile[task] = acquire_profile(affinity, selection);
        for (const auto& term : asked.anti_affinity) ++members_with(task, term);
        each_named(task, [&](std::uint32_t set) { ++named_[set]; });
        return true;
    }

    /// Takes the task out of its sets; those without members are gone. False where what is left of a set is another: a
    /// level or limit that nobody names any more. The task has then left, but `GroupBuilder` must start again.
    [[nodiscard]] bool leave(std::size_t task) {
        bool same = true;
        const auto& asked = wishes(task);
        each_named(task, [&](std::uint32_t set) { --named_[set]; });
        for (const auto& term : asked.anti_affinity) --members_with(task, term);
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
    using Family = std::unordered_map<std::string, Sets>;

    // Leaves out the memberships of profiles that nobody has: who knew where they are may have been another editor.
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
    [[nodiscard]] const TaskAffinities& wishes(std::size_t task) const {
        return out_.task_affinities[out_.tasks.affinities[task]];
    }
    [[nodiscard]] static bool requires_level(const TaskAffinities& asked) {
        return asked.network_affinity && asked.network_affinity->mode == NetworkMode::required;
    }
    [[nodiscard]] bool has_level(const Sets& sets, Level level) const {
        return std::any_of(sets.begin(), sets.end(),
                           [&](std::uint32_t set) { return out_.group_sets[set].level == level; });
    }
    // The set of that kind, group and level among those that the task is a member of.
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

    // Calls `visit(set)` for every set whose level the task names, once per term.
    template <class Visit>
    void each_named(std::size_t task, Visit&& visit) {
        const auto& asked = wishes(task);
        for (const auto& term : asked.anti_affinity)
            visit(set_at(task, GroupKind::anti_affinity, term.group, term.level));
        for (const auto& term : asked.affinity)
            visit(set_at(task, GroupKind::affinity, term.group, term.level));
        if (requires_level(asked))
            visit(set_at(task, GroupKind::network, GroupBuilder::network_group(out_, task),
                         asked.network_affinity->level));
        if (asked.group_terms > 0)
            selection_.each_term(make_id<TaskId>(task),
                                 [&](const GroupSelection::Term& term) { visit(*selection_.find(term)); });
    }

    [[nodiscard]] bool fits(std::size_t task) {
        const auto& asked = wishes(task);
        for (const auto& term : asked.anti_affinity) {
            const auto twice = std::count_if(
                asked.anti_affinity.begin(), asked.anti_affinity.end(),
                [&](const AntiAffinity& own) { return own.group == term.group && own.level == term.level; });
            if (twice > 1) return false;
            const auto found = family(GroupKind::anti_affinity).find(term.group);
            if (found == family(GroupKind::anti_affinity).end()) continue;
            if (!has_level(found->second, term.level)) return false;
            for (const auto id : found->second) {
                const auto& set = out_.group_sets[id];
                const auto limit = limit_of(asked, set);
                if (limit == Membership::no_limit
                        ? set.uniform
                        : !std::binary_search(set.limits.begin(), set.limits.end(), limit))
                    return false;
            }
        }
        for (const auto& term : asked.affinity)
            if (const auto found = family(GroupKind::affinity).find(term.group);
                found != family(GroupKind::affinity).end() && !has_level(found->second, term.level))
                return false;
        // A set that is new must not have members yet that do not know it.
        bool known = true;
        if (asked.group_terms > 0)
            selection_.each_term(make_id<TaskId>(task), [&](const GroupSelection::Term& term) {
                known =
                    known && (selection_.find(term) || !GroupSelection::selects_any(term, [&](auto& group) {
                                  return listed_.contains(group);
                              }));
            });
        if (!known) return false;
        if (!requires_level(asked)) return true;
        const auto found = family(GroupKind::network).find(GroupBuilder::network_group(out_, task));
        if (found != family(GroupKind::network).end())
            return has_level(found->second, asked.network_affinity->level);
        const auto job = out_.tasks.job[task];
        return job == none<JobId> || out_.job_size[index(job)] == 1;
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

    void open(GroupKind kind, const std::string& group, Level level) {
        auto& sets = sets_of(kind, group);
        if (!has_level(sets, level)) sets.push_back(new_set(kind, group, level));
    }

    void enter(std::uint32_t set, std::uint32_t limit) {
        if (std::any_of(joined_.begin(), joined_.end(), [&](const Membership& m) { return m.set == set; }))
            return;
        joined_.push_back({set, limit});
        ++out_.group_sets[set].members;
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
        // What it was, but for the storage that it has.
        set.kind = GroupKind::anti_affinity;
        set.group.clear();
        set.level = node_level;
        set.limits.clear();
        set.members_with.clear();
        set.uniform = true;
        set.rule = 0;
        free_sets_.give(id);
    }

    // The sets of a group, none if it is new.
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

    [[nodiscard]] std::span<const Membership> memberships(std::uint32_t profile) const {
        const auto& p = out_.profiles_[profile];
        return std::span(out_.memberships_).subspan(p.first, p.end - p.first);
    }
    [[nodiscard]] static std::uint32_t hash_of(std::span<const Membership> memberships) {
        StructuralHash hash;
        for (const auto& m : memberships) hash(m.set)(m.limit);
        return hash.value();
    }

    // The profile with the memberships `joined_`, of which those from `affinity` and from `selection` on are of later kinds.
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
        if (auto& room = free_memberships_[size]; !room.empty()) {
            first = room.back();
            room.pop_back();
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
    std::unordered_map<std::string, std::uint32_t> listed_;  // tasks that list each group
    std::vector<std::uint32_t> named_;                       // by set: terms that name its level
    FreeSlots free_sets_, free_profiles_;
    std::vector<std::uint32_t> references_;  // by profile
    HashIndex profile_ids_;
    std::vector<Family::node_type> spare_groups_;  // of groups that have gone: their storage is used again
    std::map<std::uint32_t, std::vector<std::uint32_t>> free_memberships_;  // by length: where they begin
    std::vector<Membership> joined_;
};

}  // namespace gpusched::detail

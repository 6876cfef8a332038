// Finds the sets of tasks that group constraints bind, and who belongs to which.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::detail {

struct GroupBuilder {
    const ClusterSpec& spec;
    const Problems& problems;
    Inventory& out;

    // With problems the inventory is never used, but placements are still looked at: members of nothing will do.
    void build() {
        if (problems.count() > 0) {
            out.anti_affinity_offset_.resize(spec.tasks.size() + 1);
            out.affinity_offset_.resize(spec.tasks.size() + 1);
            return;
        }
        std::map<std::pair<std::string, Level>, std::uint32_t> anti_affinity_ids;
        std::map<std::tuple<bool, std::string, Level>, std::uint32_t> affinity_ids;
        std::map<std::string, std::vector<std::uint32_t>, std::less<>> anti_affinity_of_group,
            affinity_of_group;
        std::map<std::string, std::vector<std::uint32_t>, std::less<>> affinity_of_job, affinity_of_lone_task;
        const auto together = [&](bool is_network, const std::string& name, Level level, auto& index_by,
                                  auto key) {
            const auto [at, added] = affinity_ids.try_emplace(
                {is_network, name, level}, static_cast<std::uint32_t>(out.affinity_sets.size()));
            if (!added) return;
            out.affinity_sets.push_back({name, level, 0, is_network});
            index_by[key].push_back(at->second);
        };
        // First which sets exist, then who belongs to them: every member of a group belongs at every level that
        // any member names.
        for (const auto& task : spec.tasks) {
            for (const auto& term : task.anti_affinity) {
                const auto [at, added] = anti_affinity_ids.try_emplace(
                    {term.group, term.level}, static_cast<std::uint32_t>(out.anti_affinity_sets.size()));
                if (added) {
                    out.anti_affinity_sets.push_back({term.group, term.level, 0, {}, {}, true});
                    anti_affinity_of_group[term.group].push_back(at->second);
                }
                out.anti_affinity_sets[at->second].limits.push_back(static_cast<std::uint32_t>(term.limit));
            }
            for (const auto& term : task.affinity)
                together(false, term.group, term.level, affinity_of_group, term.group);
            if (task.network_affinity && task.network_affinity->mode == NetworkMode::required) {
                const auto level = task.network_affinity->level;
                if (task.job.empty())
                    together(true, "task " + task.name, level, affinity_of_lone_task, task.name);
                else
                    together(true, "job " + task.job, level, affinity_of_job, task.job);
            }
        }
        for (auto& set : out.anti_affinity_sets) {
            std::sort(set.limits.begin(), set.limits.end());
            for (auto from = set.limits.begin(); from != set.limits.end();) {
                const auto to = std::upper_bound(from, set.limits.end(), *from);
                set.members_with.push_back(static_cast<std::uint32_t>(to - from));
                from = to;
            }
            set.limits.erase(std::unique(set.limits.begin(), set.limits.end()), set.limits.end());
            set.uniform = set.limits.size() == 1;
        }
        for (const auto& task : spec.tasks) {
            out.anti_affinity_offset_.push_back(
                static_cast<std::uint32_t>(out.anti_affinity_members_.size()));
            out.affinity_offset_.push_back(static_cast<std::uint32_t>(out.affinity_members_.size()));
            const auto join_together = [&](std::uint32_t set) {
                const auto first = out.affinity_members_.begin() + out.affinity_offset_.back();
                if (std::any_of(first, out.affinity_members_.end(),
                                [&](const Membership& m) { return m.set == set; }))
                    return;
                out.affinity_members_.push_back({set, 0});
                ++out.affinity_sets[set].members;
            };
            for (const auto& term : task.anti_affinity) {
                const auto first =
                    std::find_if(task.anti_affinity.begin(), task.anti_affinity.end(),
                                 [&](const AntiAffinity& own) { return own.group == term.group; });
                if (&*first != &term) continue;
                for (const auto set : anti_affinity_of_group[term.group]) {
                    auto limit = Membership::no_limit;
                    for (const auto& own : task.anti_affinity)
                        if (own.group == term.group && own.level == out.anti_affinity_sets[set].level)
                            limit = std::min(limit, static_cast<std::uint32_t>(own.limit));
                    if (limit == Membership::no_limit) out.anti_affinity_sets[set].uniform = false;
                    out.anti_affinity_members_.push_back({set, limit});
                    ++out.anti_affinity_sets[set].members;
                }
            }
            for (const auto& term : task.affinity)
                for (const auto set : affinity_of_group[term.group]) join_together(set);
            const auto& gangs = task.job.empty() ? affinity_of_lone_task : affinity_of_job;
            if (const auto found = gangs.find(task.job.empty() ? task.name : task.job); found != gangs.end())
                for (const auto set : found->second) join_together(set);
        }
        out.anti_affinity_offset_.push_back(static_cast<std::uint32_t>(out.anti_affinity_members_.size()));
        out.affinity_offset_.push_back(static_cast<std::uint32_t>(out.affinity_members_.size()));
    }
};

}  // namespace GPUSCHED_NAMESPACE::detail

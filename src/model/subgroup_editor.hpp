// SPDX-License-Identifier: Apache-2.0
// Keeps the subgroups of jobs and who is in them: for whole snapshots, and as jobs and tasks come, change and go.
#pragma once

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Ids of subgroups are slots: one that a job keeps stays where it is. Checks nothing: whoever calls has.
class SubgroupEditor {
  public:
    explicit SubgroupEditor(Inventory& inventory) : out_(inventory) {}

    /// From now on the job has these.
    void write_job(JobId job, const std::vector<SubgroupSpec>& subgroups) {
        if (subgroups.empty() && out_.subgroups_of(job).empty()) return;
        if (out_.job_subgroups.size() <= index(job)) out_.job_subgroups.resize(index(job) + 1);
        auto& list = out_.job_subgroups[index(job)];
        auto before = std::exchange(list, {});
        for (const auto& subgroup : subgroups) {
            const auto known = std::find_if(before.begin(), before.end(), [&](SubgroupId id) {
                return out_.subgroups[index(id)].name == subgroup.name;
            });
            list.push_back(known == before.end() ? open(subgroup.name) : *known);
            if (known != before.end()) before.erase(known);
            out_.subgroups[index(list.back())].min_members = subgroup.min_members;
        }
        for (const auto id : before) {
            out_.subgroups[index(id)] = {};
            out_.subgroup_free.give(index(id));
        }
    }

    /// The task, whose job is written and which is in no subgroup yet, joins the one that it names.
    void enter(TaskId task, const std::string& name) {
        if (name.empty()) return;
        const auto id = out_.find_subgroup(out_.tasks.job[index(task)], name);
        if (id == none<SubgroupId>) return;  // a snapshot that is not built
        auto& column = out_.tasks.subgroup;
        if (column.size() <= index(task)) column.resize(out_.tasks.names.size(), none<SubgroupId>);
        column[index(task)] = id;
        ++out_.subgroups[index(id)].size;
    }

    void leave(TaskId task) {
        const auto id = out_.subgroup_of(task);
        if (id == none<SubgroupId>) return;
        out_.tasks.subgroup[index(task)] = none<SubgroupId>;
        --out_.subgroups[index(id)].size;
    }

  private:
    SubgroupId open(const std::string& name) {
        const auto slot = out_.subgroup_free.empty() ? out_.subgroups.size() : out_.subgroup_free.take();
        if (slot == out_.subgroups.size()) out_.subgroups.emplace_back();
        out_.subgroups[slot].name = name;
        return make_id<SubgroupId>(slot);
    }

    Inventory& out_;
};

}  // namespace gpusched::detail

// SPDX-License-Identifier: Apache-2.0
// Changes the tables of nodes, tasks and jobs by one item, at the cost of that item.
#pragma once

#include "model/budget_editor.hpp"
#include "model/check_specs.hpp"
#include "model/domain_editor.hpp"
#include "model/extras_editor.hpp"
#include "model/group_editor.hpp"
#include "model/shared_values.hpp"
#include "model/table_rows.hpp"

#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// The look-ups and reference counts for changes of single objects. They are made from the tables of an
/// inventory at its first change. The caller has checked the data.
class InventoryEditor {
  public:
    explicit InventoryEditor(Inventory& inventory)
        : out_(inventory), attributes_(out_.node_attributes), classes_(out_.node_classes),
          requirements_(out_.requirements), affinities_(out_.task_affinities), group_terms_(out_.group_terms),
          extras_(out_), domains_(out_), labels_(out_), budgets_(out_) {
        const auto nodes = out_.nodes.names.size(), tasks = out_.tasks.names.size();
        out_.nodes.free_gpus.resize(max_gpus_per_node + 1);
        out_.nodes.generation.resize(nodes);
        out_.nodes.dead.resize(nodes);
        out_.tasks.generation.resize(tasks);
        out_.tasks.dead.resize(tasks);
        out_.job_generation.resize(out_.job_names.size());
        attributes_.adopt(living(out_.nodes.attributes, out_.nodes.dead));
        classes_.adopt(living(out_.nodes.node_class, out_.nodes.dead));
        auto requirements = living(out_.tasks.requirement, out_.tasks.dead);
        for (const auto& set : out_.node_sets) requirements.push_back(set.others);
        requirements_.adopt(requirements);
        affinities_.adopt(living(out_.tasks.affinities, out_.tasks.dead));
        no_affinities_ = affinities_.acquire(TaskAffinities{}).first;  // a permanent reference
        std::vector<std::uint32_t> terms{0};                           // a permanent reference to "no terms"
        for (std::size_t i = 0; i < tasks; ++i)
            if (const auto t = out_.task_affinities[out_.tasks.affinities[i]].group_terms;
                t > 0 && !out_.tasks.dead[i])
                terms.push_back(t);
        group_terms_.adopt(terms);
        for (const auto& requirement : out_.requirements) select(requirement);
        hardware_users_.assign(out_.hardware.size(), 0);
        for (std::size_t n = 0; n < nodes; ++n) {
            if (!out_.nodes.dead[n] && out_.nodes.hardware[n] != NodeTable::no_hardware)
                ++hardware_users_[out_.nodes.hardware[n]];
        }
        groups_.emplace(out_);
    }
    InventoryEditor(const InventoryEditor&) = delete;
    InventoryEditor& operator=(const InventoryEditor&) = delete;

    [[nodiscard]] const DomainEditor& domains() const { return domains_; }

    // Nodes -------------------------------------------------------------------------------------------------
    NodeId add_node(const NodeSpec& node) {
        changed();
        const auto id = make_id<NodeId>(claim(out_.nodes, node.name));
        write_node(id, node, true);
        return id;
    }

    void update_node(NodeId id, const NodeSpec& node) {
        changed();
        // Most updates change GPUs, amounts or a cordon, but no labels, taints or domains.
        const auto& before = out_.node_attributes[out_.nodes.attributes[index(id)]];
        const bool moves =
            !domains_.is_on(id, node.network) || before.labels != node.labels || before.taints != node.taints;
        clear_node(id, moves);
        write_node(id, node, moves);
    }

    void remove_node(NodeId id) {
        changed();
        auto& t = out_.nodes;
        const auto i = index(id);
        clear_node(id, true);
        write_row(t, i, NodeSpec{}, 0);
        t.cordon[i] = Cordon::closed;
        t.gpu_model[i] = none<GpuModelId>;
        give_up(t, i);
    }

    void add_label_level(const std::string& key) {
        changed();
        labels_.add(key, [&](NodeId node) -> const Labels& {
            return out_.node_attributes[out_.nodes.attributes[index(node)]].labels;
        });
        ++out_.changes.label_levels;
    }

    // Jobs --------------------------------------------------------------------------------------------------
    JobId add_job(const JobSpec& job) {
        const auto id = add_job(job.name, true);
        update_job(id, job);
        return id;
    }

    /// @param listed false if only tasks name the job: it disappears with the last of them
    JobId add_job(const std::string& name, bool listed) {
        changed();
        if (out_.job_free.empty()) {
            out_.job_generation.push_back(0);
            return append_job(out_, name, listed);
        }
        const auto slot = out_.job_free.take();
        out_.job_names.assign(slot, name);
        out_.job_listed[slot] = listed;
        return make_id<JobId>(slot);
    }

    void update_job(JobId id, const JobSpec& job) {
        changed();
        out_.job_listed[index(id)] = 1;
        write_row(out_, id, job);
    }

    void remove_job(JobId id) {
        changed();
        const auto j = index(id);
        out_.job_names.erase(j);
        write_row(out_, id, JobSpec{});
        out_.job_listed[j] = 0;
        ++out_.job_generation[j];
        out_.job_free.give(j);
    }

    // Tasks -------------------------------------------------------------------------------------------------
    TaskId add_task(const TaskSpec& task) {
        changed();
        const auto id = make_id<TaskId>(claim(out_.tasks, task.name));
        write_task(id, task, true);
        return id;
    }

    /// @param left called after the task has left its groups and before it joins the new ones
    template <class Left>
    void update_task(TaskId id, const TaskSpec& task, Left&& left) {
        changed();
        // A job that the task does not leave must not disappear in between.
        const auto job = out_.tasks.job[index(id)];
        const bool stays = job != none<JobId> && out_.job_names[index(job)] == task.job;
        clear_task(id, !stays);
        left();
        write_task(id, task, !stays);
    }

    /// True if budgets named the task.
    bool remove_task(TaskId id) {
        changed();
        auto& t = out_.tasks;
        const auto i = index(id);
        const bool named = budgets_.remove_task(i);
        clear_task(id, true);
        write_row(t, i, TaskSpec{});
        write_state(out_, id, {});
        give_up(t, i);
        return named;
    }

    // Budgets -----------------------------------------------------------------------------------------------
    /// The budgets, for a change.
    BudgetEditor& budgets() {
        changed();
        return budgets_;
    }

    /// Rebuilds the sets of groups if a change did not fit them. Then it returns true, and all sets and
    /// profiles have new numbers.
    bool regroup() {
        if (!must_regroup_) return false;
        GroupEditor::build(out_);
        groups_.emplace(out_);
        must_regroup_ = false;
        ++out_.changes.regroupings;
        return true;
    }

  private:
    void changed() { out_.serial = Inventory::next_serial(); }

    [[nodiscard]] static std::vector<std::uint32_t> living(std::vector<std::uint32_t> users,
                                                           const std::vector<std::uint8_t>& dead) {
        for (std::size_t i = 0; i < users.size(); ++i)
            if (dead[i]) users[i] = SharedValues<Requirement>::nothing;
        return users;
    }

    // A slot for a new node or task of that name. Its row is still to be written.
    template <class Table>
    static std::size_t claim(Table& t, const std::string& name) {
        if (!t.free.empty()) {
            const auto slot = t.free.take();
            t.names.assign(slot, name);
            t.dead[slot] = 0;
            return slot;
        }
        const auto slot = t.names.size();
        t.names.intern(name);
        resize_rows(t, slot + 1);
        t.generation.push_back(0);
        t.dead.push_back(0);
        return slot;
    }

    static void give_up(SlotTable& t, std::size_t slot) {
        t.names.erase(slot);
        t.dead[slot] = 1;
        ++t.generation[slot];
        t.free.give(slot);
    }

    // Adds the label keys of the requirement to those that node classes distinguish; true if one is new.
    bool select(const Requirement& requirement) {
        const auto before = selected_.size();
        for (const auto& [key, value] : requirement.node_selector) selected_.insert(key);
        for (const auto& term : requirement.node_affinity)
            for (const auto& match : term.match_expressions) selected_.insert(match.key);
        return selected_.size() > before;
    }

    /// @param enters the node has no domains, labels and taints yet
    void write_node(NodeId id, const NodeSpec& node, bool enters) {
        auto& t = out_.nodes;
        const auto i = index(id);
        if (extras_.add_columns(node.resources)) ++out_.changes.resources;
        const int devices = extras_.write_node(node, i);
        write_row(t, i, node, devices);
        t.gpu_model[i] = node.gpu_model.empty()
                             ? none<GpuModelId>
                             : make_id<GpuModelId>(out_.gpu_models.intern(node.gpu_model).first);
        t.first_gpu[i] = take_gpus(devices);
        t.hardware[i] = acquire_hardware(node);
        if (enters) t.attributes[i] = attributes_.acquire(attributes_of(node)).first;
        t.node_class[i] = acquire_class(i);
        if (!enters) return;
        extras_.attach_node(id);
        if (domains_.reach(node.network.size())) ++out_.changes.levels;
        domains_.attach(id, node.network);
        labels_.attach(id, node.labels);
        for (auto& rule : out_.spread_rules)
            if (rule.max_skew > 0) count_node(out_, rule, id);
    }

    // Releases everything that the node shares with others.
    /// @param leaves releases its domains, labels and taints, too
    void clear_node(NodeId id, bool leaves) {
        auto& t = out_.nodes;
        const auto i = index(id);
        if (leaves) {
            for (auto& rule : out_.spread_rules)
                if (rule.max_skew > 0) forget_node(out_, rule, id);
            labels_.detach(id);
            domains_.detach(id);
            extras_.detach_node(id);
            attributes_.release(t.attributes[i]);
        }
        classes_.release(t.node_class[i]);
        if (t.hardware[i] != NodeTable::no_hardware) --hardware_users_[t.hardware[i]];
        t.hardware[i] = NodeTable::no_hardware;
        t.free_gpus[static_cast<std::size_t>(extras_.clear_node(i))].push_back(t.first_gpu[i]);
        t.gpu_count[i] = 0;
    }

    std::uint32_t acquire_class(std::size_t node) {
        const auto [id, added] = classes_.acquire(class_of(out_.node_attributes[out_.nodes.attributes[node]],
                                                           out_.nodes.gpu_model[node], selected_));
        if (added) out_.eligible_.update_class(out_, id);
        return id;
    }

    std::uint32_t take_gpus(int count) {
        if (auto& unused = out_.nodes.free_gpus[static_cast<std::size_t>(count)]; !unused.empty()) {
            const auto first = unused.back();
            unused.pop_back();
            return first;
        }
        const auto first = out_.gpu_slots;
        out_.gpu_slots += static_cast<std::uint32_t>(count);
        return first;
    }

    std::uint32_t acquire_hardware(const NodeSpec& node) {
        if (!node.hardware) return NodeTable::no_hardware;
        auto masks = masks_of(*node.hardware);
        std::size_t id = out_.hardware.size();
        for (std::size_t h = 0; h < out_.hardware.size(); ++h) {
            if (hardware_users_[h] == 0) {
                id = h;
            } else if (out_.hardware[h].description == masks.description) {
                id = h;
                break;
            }
        }
        if (id == out_.hardware.size()) {
            out_.hardware.emplace_back();
            hardware_users_.push_back(0);
        }
        if (hardware_users_[id]++ == 0) {
            out_.hardware[id] = std::move(masks);
            out_.hardware_since = out_.serial;
        }
        return static_cast<std::uint32_t>(id);
    }

    void write_task(TaskId id, const TaskSpec& task, bool enter_job) {
        auto& t = out_.tasks;
        const auto i = index(id);
        write_row(t, i, task);
        write_owner_kind(out_, i, task);
        write_state(out_, id, task);
        if (enter_job && !task.job.empty()) {
            const auto found = out_.job_names.find(task.job);
            t.job[i] = found ? make_id<JobId>(*found) : add_job(task.job, false);
            ++out_.job_size[index(t.job[i])];
        }
        SubgroupEditor(out_).enter(id, task.subgroup);
        if (extras_.add_columns(task.resources)) ++out_.changes.resources;
        write_requirement(requirement_, task, out_.gpu_models);
        extras_.write_task(task, i, std::move(requirement_),  // not moved from: a new requirement is copied
                           [&](const Requirement& requirement) { return acquire_requirement(requirement); });
        const auto group_terms = has_group_terms(task) ? group_terms_.acquire(group_terms_of(task)).first : 0;
        if (has_affinities(task)) {
            write_affinities(written_affinities_, task, group_terms);
            t.affinities[i] = affinities_.acquire(written_affinities_).first;
        } else {
            t.affinities[i] = affinities_.share(no_affinities_);
        }
        if (domains_.reach(static_cast<std::size_t>(deepest_level_named(task) + 1))) ++out_.changes.levels;
        budgets_.write_task(i);
        if (must_regroup_ || !groups_->join(i)) {
            t.profile[i] = 0;
            must_regroup_ = true;
        }
    }

    std::uint32_t acquire_requirement(const Requirement& requirement) {
        const auto [id, added] = requirements_.acquire(requirement);
        if (added) {
            out_.requirement_since.resize(out_.requirements.size());
            out_.requirement_since[id] = out_.serial;
            out_.eligible_.update_requirement(out_, id);
            if (select(out_.requirements[id])) reclassify();
        }
        return id;
    }

    void clear_task(TaskId id, bool leave_its_job) {
        auto& t = out_.tasks;
        const auto i = index(id);
        if (!must_regroup_ && !groups_->leave(i)) must_regroup_ = true;
        extras_.clear_task(i, [&](std::uint32_t requirement) { requirements_.release(requirement); });
        requirements_.release(t.requirement[i]);
        if (const auto terms = out_.task_affinities[t.affinities[i]].group_terms; terms > 0)
            group_terms_.release(terms);
        affinities_.release(t.affinities[i]);
        SubgroupEditor(out_).leave(id);
        if (!leave_its_job) return;
        if (t.job[i] != none<JobId>) leave_job(t.job[i]);
        t.job[i] = none<JobId>;
    }

    void leave_job(JobId job) {
        if (--out_.job_size[index(job)] == 0 && !out_.job_listed[index(job)]) remove_job(job);
    }

    // Assigns all nodes to classes again, because another label key matters.
    void reclassify() {
        auto& t = out_.nodes;
        for (std::size_t n = 0; n < t.names.size(); ++n) {
            if (t.dead[n]) continue;
            const auto old = t.node_class[n];
            t.node_class[n] = acquire_class(n);
            classes_.release(old);
        }
        ++out_.changes.reclassifications;
    }

    Inventory& out_;
    SharedValues<NodeAttributes> attributes_;
    SharedValues<NodeClass> classes_;
    SharedValues<Requirement> requirements_;
    SharedValues<TaskAffinities, true> affinities_;
    SharedValues<GroupTerms> group_terms_;
    LabelKeys selected_;
    std::vector<std::uint32_t> hardware_users_;
    ExtrasEditor extras_;
    DomainEditor domains_;
    LabelDomains labels_;
    BudgetEditor budgets_;
    std::optional<GroupEditor> groups_;
    bool must_regroup_ = false;
    // Of the task that is being written; members, so that their storage is reused.
    Requirement requirement_;
    TaskAffinities written_affinities_;
    std::uint32_t no_affinities_ = 0;  // index of the empty affinities
};

}  // namespace gpusched::detail

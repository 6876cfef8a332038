// Changes the tables of nodes, tasks and jobs by one item, at the cost of that item.
#pragma once

#include <gpusched/model/detail/check_specs.hpp>
#include <gpusched/model/detail/domain_editor.hpp>
#include <gpusched/model/detail/group_editor.hpp>
#include <gpusched/model/detail/shared_values.hpp>
#include <gpusched/model/detail/table_rows.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::detail {

/// Slots of a table that nobody uses, first in, first out.
class FreeSlots {
  public:
    void give(std::size_t slot) { slots_.push_back(static_cast<std::uint32_t>(slot)); }
    /// The slot that has been free longest; `end` where none is.
    [[nodiscard]] std::size_t next(std::size_t end) const { return slots_.empty() ? end : slots_.front(); }
    void take_next() {
        if (!slots_.empty()) slots_.pop_front();
    }

  private:
    std::deque<std::uint32_t> slots_;
};

/// The look-ups, reference counts and free lists that changes need, made from the tables of an inventory when it changes for
/// the first time. Checks nothing: whoever calls has.
class InventoryEditor {
  public:
    explicit InventoryEditor(Inventory& inventory)
        : out_(inventory), attributes_(out_.node_attributes), classes_(out_.node_classes),
          requirements_(out_.requirements), affinities_(out_.task_affinities),
          free_gpus_(max_gpus_per_node + 1), domains_(out_) {
        const auto nodes = out_.nodes.names.size(), tasks = out_.tasks.names.size();
        out_.nodes.generation.resize(nodes);
        out_.nodes.dead.resize(nodes);
        out_.tasks.generation.resize(tasks);
        out_.tasks.dead.resize(tasks);
        out_.job_generation.resize(out_.job_names.size());
        attributes_.adopt(living(out_.nodes.attributes, out_.nodes.dead));
        classes_.adopt(living(out_.nodes.node_class, out_.nodes.dead));
        requirements_.adopt(living(out_.tasks.requirement, out_.tasks.dead));
        affinities_.adopt(living(out_.tasks.affinities, out_.tasks.dead));
        for (const auto& requirement : out_.requirements) select(requirement);
        hardware_users_.assign(out_.hardware.size(), 0);
        for (std::size_t n = 0; n < nodes; ++n) {
            if (out_.nodes.dead[n]) {
                free_nodes_.give(n);
            } else if (out_.nodes.hardware[n] != NodeTable::no_hardware) {
                ++hardware_users_[out_.nodes.hardware[n]];
            }
        }
        for (std::size_t t = 0; t < tasks; ++t)
            if (out_.tasks.dead[t]) free_tasks_.give(t);
        for (std::size_t j = 0; j < out_.job_names.size(); ++j)
            if (out_.job_names[j].empty()) free_jobs_.give(j);
        groups_.emplace(out_);
    }
    InventoryEditor(const InventoryEditor&) = delete;
    InventoryEditor& operator=(const InventoryEditor&) = delete;

    [[nodiscard]] const DomainEditor& domains() const { return domains_; }

    // Nodes --------------------------------------------------------------------------------------------------
    NodeId add_node(const NodeSpec& node) {
        auto& t = out_.nodes;
        const auto slot = free_nodes_.next(t.names.size());
        free_nodes_.take_next();
        if (slot == t.names.size()) {
            t.names.intern(node.name);
            resize_rows(t, slot + 1);
            t.generation.push_back(0);
            t.dead.push_back(0);
        } else {
            t.names.assign(slot, node.name);
            t.dead[slot] = 0;
            --out_.dead_nodes;
        }
        const auto id = make_id<NodeId>(slot);
        write_node(id, node);
        return id;
    }

    void update_node(NodeId id, const NodeSpec& node) {
        clear_node(id);
        write_node(id, node);
    }

    void remove_node(NodeId id) {
        auto& t = out_.nodes;
        const auto i = index(id);
        clear_node(id);
        write_row(t, i, {});
        t.schedulable[i] = 0;
        t.gpu_model[i] = none<GpuModelId>;
        t.names.erase(i);
        t.dead[i] = 1;
        ++t.generation[i];
        ++out_.dead_nodes;
        free_nodes_.give(i);
    }

    // Jobs ---------------------------------------------------------------------------------------------------
    /// @param listed false for one that only a task names: it goes with its last task
    JobId add_job(const JobSpec& job, bool listed) {
        const auto slot = free_jobs_.next(out_.job_names.size());
        free_jobs_.take_next();
        if (slot == out_.job_names.size()) {
            out_.job_names.intern(job.name);
            out_.job_min_members.push_back(0);
            out_.job_max_disrupted.push_back(0);
            out_.job_size.push_back(0);
            out_.job_listed.push_back(0);
            out_.job_generation.push_back(0);
        } else {
            out_.job_names.assign(slot, job.name);
        }
        update_job(make_id<JobId>(slot), job);
        out_.job_listed[slot] = listed;
        return make_id<JobId>(slot);
    }

    void update_job(JobId id, const JobSpec& job) {
        out_.job_min_members[index(id)] = job.min_members;
        out_.job_max_disrupted[index(id)] = job.max_disrupted.value_or(INT64_MAX);
        out_.job_listed[index(id)] = 1;
    }

    void remove_job(JobId id) {
        const auto j = index(id);
        out_.job_names.erase(j);
        out_.job_min_members[j] = 0;
        out_.job_max_disrupted[j] = INT64_MAX;
        out_.job_listed[j] = 0;
        ++out_.job_generation[j];
        free_jobs_.give(j);
    }

    // Tasks --------------------------------------------------------------------------------------------------
    TaskId add_task(const TaskSpec& task) {
        auto& t = out_.tasks;
        const auto slot = free_tasks_.next(t.names.size());
        free_tasks_.take_next();
        if (slot == t.names.size()) {
            t.names.intern(task.name);
            resize_rows(t, slot + 1);
            t.generation.push_back(0);
            t.dead.push_back(0);
        } else {
            t.names.assign(slot, task.name);
            t.dead[slot] = 0;
            --out_.dead_tasks;
        }
        write_task(make_id<TaskId>(slot), task, true);
        return make_id<TaskId>(slot);
    }

    /// @param left called when the task has left its groups and not yet joined the new ones
    template <class Left>
    void update_task(TaskId id, const TaskSpec& task, Left&& left) {
        // A job that the task stays in must not go and come back between.
        const auto job = out_.tasks.job[index(id)];
        const bool stays = job != none<JobId> && out_.job_names[index(job)] == task.job;
        clear_task(id, !stays);
        left();
        write_task(id, task, !stays);
    }

    void remove_task(TaskId id) {
        auto& t = out_.tasks;
        const auto i = index(id);
        clear_task(id, true);
        write_row(t, i, {});
        t.names.erase(i);
        t.dead[i] = 1;
        ++t.generation[i];
        ++out_.dead_tasks;
        free_tasks_.give(i);
    }

    /// Starts the sets of groups again where a change did not fit them; false if there was no need. All numbers of sets and
    /// profiles are others then.
    bool regroup() {
        if (!must_regroup_) return false;
        GroupBuilder(out_).build();
        groups_.emplace(out_);
        must_regroup_ = false;
        ++out_.changes.regroupings;
        return true;
    }

  private:
    [[nodiscard]] static std::vector<std::uint32_t> living(std::vector<std::uint32_t> users,
                                                           const std::vector<std::uint8_t>& dead) {
        for (std::size_t i = 0; i < users.size(); ++i)
            if (dead[i]) users[i] = SharedValues<Requirement>::nothing;
        return users;
    }

    // Every label key that the requirement asks for makes a difference from now on; true if one is new.
    bool select(const Requirement& requirement) {
        const auto before = selected_.size();
        for (const auto& [key, value] : requirement.node_selector) selected_.insert(key);
        return selected_.size() > before;
    }

    void write_node(NodeId id, const NodeSpec& node) {
        auto& t = out_.nodes;
        const auto i = index(id);
        write_row(t, i, node);
        t.gpu_model[i] = node.gpu_model.empty()
                             ? none<GpuModelId>
                             : make_id<GpuModelId>(out_.gpu_models.intern(node.gpu_model).first);
        t.first_gpu[i] = take_gpus(t.gpu_count[i]);
        t.hardware[i] = acquire_hardware(node);
        t.attributes[i] = attributes_.acquire(attributes_of(node)).first;
        t.node_class[i] = acquire_class(i);
        if (domains_.reach(node.network.size())) ++out_.changes.levels;
        domains_.attach(id, node.network);
    }

    // Gives back all that the node shares with others.
    void clear_node(NodeId id) {
        auto& t = out_.nodes;
        const auto i = index(id);
        domains_.detach(id);
        classes_.release(t.node_class[i]);
        attributes_.release(t.attributes[i]);
        if (t.hardware[i] != NodeTable::no_hardware) --hardware_users_[t.hardware[i]];
        t.hardware[i] = NodeTable::no_hardware;
        free_gpus_[t.gpu_count[i]].push_back(t.first_gpu[i]);
        t.gpu_count[i] = 0;
    }

    std::uint32_t acquire_class(std::size_t node) {
        const auto [id, added] = classes_.acquire(class_of(out_.node_attributes[out_.nodes.attributes[node]],
                                                           out_.nodes.gpu_model[node], selected_));
        if (added) out_.eligible_.update_class(out_, id);
        return id;
    }

    std::uint32_t take_gpus(std::uint8_t count) {
        if (auto& room = free_gpus_[count]; !room.empty()) {
            const auto first = room.back();
            room.pop_back();
            return first;
        }
        out_.gpu_slots += count;
        return out_.gpu_slots - count;
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
        if (hardware_users_[id]++ == 0) out_.hardware[id] = std::move(masks);
        return static_cast<std::uint32_t>(id);
    }

    void write_task(TaskId id, const TaskSpec& task, bool enter_job) {
        auto& t = out_.tasks;
        const auto i = index(id);
        write_row(t, i, task);
        if (enter_job && !task.job.empty()) {
            const auto found = out_.job_names.find(task.job);
            t.job[i] = found ? make_id<JobId>(*found) : add_job({.name = task.job}, false);
            ++out_.job_size[index(t.job[i])];
        }
        const auto [requirement, added] = requirements_.acquire(requirement_of(task, out_.gpu_models));
        t.requirement[i] = requirement;
        if (added) {
            out_.eligible_.update_requirement(out_, requirement);
            if (select(out_.requirements[requirement])) reclassify();
        }
        t.affinities[i] = affinities_.acquire(affinities_of(task)).first;
        if (domains_.reach(static_cast<std::size_t>(deepest_level_named(task) + 1))) ++out_.changes.levels;
        if (must_regroup_ || !groups_->join(i)) {
            t.profile[i] = 0;
            must_regroup_ = true;
        }
    }

    void clear_task(TaskId id, bool leave_its_job) {
        auto& t = out_.tasks;
        const auto i = index(id);
        if (!must_regroup_ && !groups_->leave(i)) must_regroup_ = true;
        requirements_.release(t.requirement[i]);
        affinities_.release(t.affinities[i]);
        if (!leave_its_job) return;
        if (t.job[i] != none<JobId>) leave_job(t.job[i]);
        t.job[i] = none<JobId>;
    }

    void leave_job(JobId job) {
        if (--out_.job_size[index(job)] == 0 && !out_.job_listed[index(job)]) remove_job(job);
    }

    // A label that made no difference so far does now: nodes are sorted into classes again.
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
    SharedValues<TaskAffinities> affinities_;
    LabelKeys selected_;
    std::vector<std::uint32_t> hardware_users_;
    std::vector<std::vector<std::uint32_t>> free_gpus_;  // by number: where they begin
    DomainEditor domains_;
    std::optional<GroupEditor> groups_;
    FreeSlots free_nodes_, free_tasks_, free_jobs_;
    bool must_regroup_ = false;
};

}  // namespace GPUSCHED_NAMESPACE::detail

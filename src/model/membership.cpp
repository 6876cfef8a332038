// SPDX-License-Identifier: Apache-2.0
// Changes of membership: nodes, tasks, jobs and budgets are added, updated and removed.
#include "model/check_specs.hpp"
#include "model/group_counts.hpp"
#include "model/held_gpus.hpp"
#include "model/inventory_editor.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/events.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

// Handles ---------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT bool Cluster::has(NodeHandle node) const noexcept {
    return contains(node.id) && handle(node.id) == node;
}
GPUSCHED_EXPORT bool Cluster::has(TaskHandle task) const noexcept {
    return contains(task.id) && handle(task.id) == task;
}
GPUSCHED_EXPORT bool Cluster::has(JobHandle job) const noexcept {
    return index(job.id) < inventory_->job_names.size() && !inventory_->job_names[index(job.id)].empty() &&
           handle(job.id) == job;
}

namespace detail {

static const char* kind_of(NodeId) { return "node"; }
static const char* kind_of(TaskId) { return "task"; }
static const char* kind_of(JobId) { return "job"; }

}  // namespace detail

template <class Id>
void Cluster::require_current(Handle<Id> handle) const {
    if (has(handle)) return;
    throw InvalidInput(concat(detail::kind_of(handle.id), " in slot ", index(handle.id), ", generation ",
                              handle.generation, ": it has left the cluster"));
}

GPUSCHED_EXPORT void Cluster::require_no_what_if() const {
    if (!log_.empty())
        throw InvalidInput(concat("membership cannot change while ", log_.size(),
                                  " changes can be undone; commit or roll back first"));
}

GPUSCHED_EXPORT void Cluster::publish(const Event& event) {
    if (events_) events_->publish(event);
}

// @param node the node on which the task runs, or which it has left
GPUSCHED_EXPORT void Cluster::publish(EventKind kind, TaskHandle task, NodeId node) {
    publish({.kind = kind, .node = node == none<NodeId> ? NodeHandle{} : handle(node), .task = task});
}

// The inventory for changes, which copies of this cluster do not see.
GPUSCHED_EXPORT Inventory& Cluster::edit() {
    if (inventory_.use_count() > 1) {
        inventory_ = std::make_shared<Inventory>(*inventory_);
        ++inventory_->changes.copies;
        editor_ = {};
    }
    // Synchronises with threads that have released their copies.
    std::atomic_thread_fence(std::memory_order_acquire);
    return *inventory_;
}

GPUSCHED_EXPORT detail::InventoryEditor& Cluster::editor() {
    auto& inventory = edit();
    if (!editor_) {
        editor_.emplace(inventory);
        ++inventory.changes.first_changes;
    }
    return *editor_;
}

// Stores the sets of the task with their numbers of limit tables, for `drop_tables` after it has left them.
GPUSCHED_EXPORT void Cluster::remember_sets(TaskId task) {
    left_.clear();
    for (const auto& m : inventory_->memberships(task)) {
        const auto& set = inventory_->group_sets[m.set];
        left_.push_back({m.set, set.uniform ? 0u : static_cast<std::uint32_t>(set.limits.size())});
    }
}

GPUSCHED_EXPORT void Cluster::drop_tables() {
    for (const auto& [set, limits] : left_) {
        if (inventory_->group_sets[set].members > 0) continue;
        for (std::uint32_t l = 0; l <= limits; ++l) groups_.remove_table(group_tables_[set] + l);
        group_tables_[set] = no_table;
        if (set >= second_tables_.size() || second_tables_[set] == no_table) continue;
        groups_.remove_table(second_tables_[set]);
        second_tables_[set] = no_table;
    }
}

// Counts the members of all groups again, except one task, because the sets have new numbers.
GPUSCHED_EXPORT void Cluster::recount_groups(TaskId except) {
    add_group_tables();
    for (const auto task : tasks())
        if (task != except && is_placed(task)) count_groups(task, node_of(task), +1);
    for (const auto& r : reservations_) count_groups(r.task, r.node, +1);
}

// Extends the counters of groups for a task with new memberships, which is not counted yet.
GPUSCHED_EXPORT void Cluster::join_groups(TaskId task) {
    if (editor_->regroup()) return recount_groups(task);
    for (const auto& m : inventory_->memberships(task)) {
        const auto& set = inventory_->group_sets[m.set];
        if (group_tables_.size() <= m.set) group_tables_.resize(m.set + 1, no_table);
        auto& table = group_tables_[m.set];
        if (table == no_table) {
            table = groups_.add_table(set.members);  // a new set has one limit
            add_second_table(m.set);
            continue;
        }
        groups_.grow_table(table, set.members);
        if (m.set < second_tables_.size() && second_tables_[m.set] != no_table)
            groups_.grow_table(second_tables_[m.set], set.members);
        for (std::uint32_t l = 0; !set.uniform && l < set.limits.size(); ++l)
            groups_.grow_table(table + 1 + l, set.members_with[l]);
    }
}

namespace detail {

// Reports requested resources that no node has ever had.
static void check_unknown_resources(const Inventory& inventory, const TaskSpec& task, NodeId node,
                                    Problems& problems) {
    for (const auto& [resource, amount] : task.resources)
        if (amount > 0 && !inventory.resource_names.find(resource))
            problems.add(concat(Owner("task", task.name), ": asks for ", amount, " ",
                                gpusched::quoted(resource), " more than node ",
                                gpusched::quoted(inventory.nodes.names[index(node)]), " has left"));
}

}  // namespace detail

// Reports the capacities of the node that the task, which does not run there yet, would exceed.
GPUSCHED_EXPORT void Cluster::check_capacity(const detail::Demand& task, NodeId node, GpuMask gpus,
                                             Problems& problems) const {
    const auto& u = usage(node);
    const bool consumes = !task.standby, claims = task.standby || !task.lp;
    const auto lacks = [&](const std::string& resource, std::int64_t by) {
        problems.add(concat(detail::Owner("task", task.name), ": asks for ", by, " ", resource,
                            " more than node ", gpusched::quoted(name(node)), " has left"));
    };
    const auto cpu = std::min(u.cpu_lendable - (consumes ? task.cpu_milli : 0),
                              u.cpu_firm - (claims ? task.cpu_milli : 0));
    if (cpu < 0) lacks("cpu_milli", -cpu);
    if (u.memory < task.memory_mib) lacks("memory_mib", task.memory_mib - u.memory);
    for (const auto& [resource, amount] : task.extras.resources)
        if (const auto free = resource_free(node, resource); free < amount)
            lacks(gpusched::quoted(inventory_->resource_names[resource]), amount - free);
    for_each_gpu(gpus & devices(node), [&](int device) {
        if (gpu_[inventory_->nodes.first_gpu[index(node)] + static_cast<std::size_t>(device)].lendable > 0)
            problems.add(concat(detail::Owner("task", task.name), ": device ", device, " of node ",
                                gpusched::quoted(name(node)), " is held by another task"));
    });
    for_each_gpu(gpus & ~devices(node), [&](int g) {
        const auto at = slot(node, g);
        // A failed GPU has no capacity, but a task may still hold it.
        const auto spare = (healthy_gpus(node) & gpu_bit(g)) != 0 ? 0 : whole_gpu_milli;
        if (std::min(gpu_[at].lendable - (consumes ? task.gpu_share_milli : 0),
                     gpu_[at].firm - (claims ? task.gpu_share_milli : 0)) +
                spare <
            0)
            problems.add(concat(detail::Owner("task", task.name), ": GPU ", g, " of node ",
                                gpusched::quoted(name(node)), " would be held beyond its capacity"));
        if (inventory_->nodes.gpu_memory_mib[index(node)] >= 0 && gpu_memory_[at] < task.gpu_memory_mib)
            lacks("gpu_memory_mib of GPU " + std::to_string(g), task.gpu_memory_mib - gpu_memory_[at]);
    });
}

// Reports devices that tasks hold or reserve, and that the update removes or gives a class that the task does
// not accept.
GPUSCHED_EXPORT void Cluster::check_devices(const NodeSpec& to, NodeId node, Problems& problems) const {
    if (devices(node) == 0) return;         // GPUs are checked elsewhere
    std::vector<std::string_view> classes;  // of the devices after the whole GPUs
    for (const auto& group : to.devices)
        classes.insert(classes.end(), static_cast<std::size_t>(group.count), group.device_class);
    const auto class_of = [&](int device) {
        const auto at = device - static_cast<int>(to.gpu_count);
        return at >= 0 && at < static_cast<int>(classes.size()) ? classes[static_cast<std::size_t>(at)]
                                                                : std::string_view();
    };
    const auto check = [&](TaskId task, GpuMask gpus, const char* how) {
        const auto held = gpus & devices(node);
        if (held == 0) return;
        const auto& accepted = inventory_->extras[inventory_->tasks.extras[index(task)]].device_classes;
        const auto first = class_of(std::countr_zero(held));
        bool good = std::any_of(accepted.begin(), accepted.end(), [&](std::uint32_t device_class) {
            return inventory_->device_classes[device_class] == first;
        });
        for_each_gpu(held, [&](int device) { good = good && class_of(device) == first; });
        if (!good)
            problems.add(concat(detail::Owner("node", to.name), ": task ", gpusched::quoted(name(task)), how,
                                " its device ", std::countr_zero(held),
                                ", which would not be of a class that the task accepts"));
    };
    for (const auto task : tasks_on(node)) check(task, gpus_of(task), " holds");
    for (const auto& r : reservations_)
        if (r.node == node) check(r.task, r.gpus, " has reserved");
}

// Reports cores that the task and others on the node would both use completely.
GPUSCHED_EXPORT void Cluster::check_cores(TaskSpec task, NodeId node, Problems& problems) const {
    if (!task.cpu_local || !task.cores) return;
    task.node = name(node);
    ClusterSpec here;
    here.tasks.push_back(std::move(task));
    for (const auto other : tasks_on(node)) {
        const auto& asked = inventory_->task_affinities[inventory_->tasks.affinities[index(other)]];
        if (asked.cpu_local && asked.cores && name(other) != here.tasks.front().name)
            here.tasks.push_back(task_spec(other));
    }
    detail::check_cores_in_use(here, *inventory_, problems);
}

namespace detail {

static void check_same_name(const char* kind, const std::string& name, const std::string& updated,
                            Problems& problems) {
    if (updated != name)
        problems.add(bad_value("name", gpusched::quoted(updated),
                               gpusched::quoted(name) + ", which cannot change", Owner(kind, name).text()));
}

}  // namespace detail

// Nodes -----------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT NodeHandle Cluster::add_node(const NodeSpec& node) {
    require_no_what_if();
    Problems problems;
    const detail::SpecChecks check(problems);
    check.node(node, node_slots());
    check.network(node);
    if (inventory_->nodes.names.find(node.name))
        problems.add(detail::Owner("node", node.name) + ": duplicate node name");
    problems.throw_if_any();
    auto& edit = editor();
    edit.domains().check(node, none<NodeId>, problems);
    problems.throw_if_any();
    const auto columns = inventory_->resource_names.size();
    const auto domains = spread_domains();
    const auto id = edit.add_node(node);
    resize_node_arrays(columns);
    set_capacity(id);
    find_fewest(domains);
    publish({.kind = EventKind::node_added, .node = handle(id)});
    return handle(id);
}

GPUSCHED_EXPORT void Cluster::update_node(NodeHandle node, const NodeSpec& to) {
    require_no_what_if();
    require_current(node);
    const auto id = node.id;
    const auto i = index(id);
    Problems problems;
    const detail::SpecChecks check(problems);
    const detail::Owner owner("node", to.name);
    check.node(to, i);
    check.network(to);
    detail::check_same_name("node", name(id), to.name, problems);
    problems.throw_if_any();
    // The update must keep everything that is in use.
    const auto& n = inventory_->nodes;
    const auto& u = usage_[i];
    const auto exceeded = [&](std::string_view resource, std::int64_t by) {
        if (by > 0)
            problems.add(concat(owner, ": its tasks ask for ", by, " ", resource, " more than it has"));
    };
    const auto cpu_used = n.cpu_milli[i] - std::min(u.cpu_lendable, u.cpu_firm);
    const auto memory_used = n.memory_mib[i] - u.memory;
    exceeded("cpu_milli", cpu_used - to.cpu_milli);
    exceeded("memory_mib", memory_used - to.memory_mib);
    for (std::uint32_t r = 0; r < inventory_->resource_names.size(); ++r) {
        const auto& resource = inventory_->resource_names[r];
        const auto found = to.resources.find(resource);
        const auto used =
            inventory_->node_resources[i * inventory_->resource_names.size() + r] - resource_free(id, r);
        exceeded(gpusched::quoted(resource), used - (found == to.resources.end() ? 0 : found->second));
    }
    check_devices(to, id, problems);
    for (int g = 0; g < gpu_count(id); ++g) {
        const auto at = slot(id, g);
        const auto capacity = (healthy_gpus(id) & gpu_bit(g)) != 0 ? whole_gpu_milli : 0;
        if (g >= to.gpu_count && std::min(gpu_[at].lendable, gpu_[at].firm) < capacity)
            problems.add(concat(owner, ": tasks hold its GPU ", g, "; gpu_count is ", to.gpu_count));
        else if (const auto used = std::max<std::int64_t>(0, n.gpu_memory_mib[i]) - gpu_memory_[at];
                 to.gpu_memory_mib && used > *to.gpu_memory_mib)
            exceeded("gpu_memory_mib of GPU " + std::to_string(g), used - *to.gpu_memory_mib);
    }
    if (to.hardware) {
        const auto cores = detail::masks_of(*to.hardware).description.cores();
        for (const auto task : tasks_on(id)) {
            const auto& asked = inventory_->task_affinities[inventory_->tasks.affinities[index(task)]];
            if (!asked.cpu_local || !asked.cores) continue;
            for (const int core : *asked.cores)
                if (core >= cores)
                    problems.add(concat(owner, ": task ", gpusched::quoted(name(task)), " uses its core ",
                                        core, "; it has ", cores));
        }
    }
    problems.throw_if_any();
    auto& edit = editor();
    edit.domains().check(to, id, problems);
    problems.throw_if_any();
    std::vector<Reservation> reserved;
    for (const auto& r : reservations_)
        if (r.node == id) reserved.push_back(r);
    const auto columns = inventory_->resource_names.size();
    const auto domains = spread_domains();
    // Everything else on the node is counted again from zero.
    for (const auto task : tasks_on(id)) count_groups(task, id, -1);
    for (const auto& r : reserved) count_groups(r.task, id, -1);
    edit.update_node(id, to);
    resize_node_arrays(columns);
    set_capacity(id);
    find_fewest(domains);
    for (const auto task : tasks_on(id)) use(task, id, gpus_of(task), +1);
    for (const auto& r : reserved) use(r.task, id, r.gpus, +1);
    publish({.kind = EventKind::node_updated, .node = node});
}

GPUSCHED_EXPORT void Cluster::remove_node(NodeHandle node) {
    require_no_what_if();
    require_current(node);
    const auto id = node.id;
    Problems problems;
    for (const auto task : tasks_on(id))
        problems.add("node " + gpusched::quoted(name(id)) + ": task " + gpusched::quoted(name(task)) +
                     " runs there; unbind or remove it first");
    for (const auto& r : reservations_)
        if (r.node == id)
            problems.add("node " + gpusched::quoted(name(id)) + ": room is reserved there for task " +
                         gpusched::quoted(name(r.task)));
    problems.throw_if_any();
    const auto domains = spread_domains();
    editor().remove_node(id);
    find_fewest(domains);
    usage_[index(id)] = {};
    const auto columns = inventory_->resource_names.size();
    std::fill_n(resources_.begin() + static_cast<std::ptrdiff_t>(index(id) * columns), columns, 0);
    if (!devices_.empty()) devices_[index(id)] = 0;
    publish({.kind = EventKind::node_removed, .node = node});
}

GPUSCHED_EXPORT Level Cluster::add_label_level(const std::string& key) {
    require_no_what_if();
    const auto& levels = inventory_->label_levels;
    const auto found =
        std::find_if(levels.begin(), levels.end(), [&](const LabelLevel& level) { return level.key == key; });
    const auto level = first_label_level + static_cast<Level>(found - levels.begin());
    if (found != levels.end()) return level;
    Problems problems;
    detail::SpecChecks(problems).label_levels({key});
    problems.throw_if_any();
    editor().add_label_level(key);
    return level;
}

// Jobs ------------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT JobHandle Cluster::add_job(const JobSpec& job) {
    require_no_what_if();
    Problems problems;
    detail::SpecChecks(problems).job(job, inventory_->job_names.size());
    const auto found = inventory_->job_names.find(job.name);
    if (found && inventory_->job_listed[*found])
        problems.add(detail::Owner("job", job.name) + ": duplicate job name");
    problems.throw_if_any();
    auto& edit = editor();
    // The job exists if tasks have named it.
    const auto id = found ? make_id<JobId>(*found) : edit.add_job(job);
    if (found) edit.update_job(id, job);
    publish({.kind = EventKind::job_added, .job = handle(id)});
    return handle(id);
}

GPUSCHED_EXPORT void Cluster::update_job(JobHandle job, const JobSpec& to) {
    require_no_what_if();
    require_current(job);
    Problems problems;
    detail::SpecChecks(problems).job(to, index(job.id));
    detail::check_same_name("job", inventory_->job_names[index(job.id)], to.name, problems);
    detail::check_subgroups_stay(*inventory_, job.id, to, problems);
    problems.throw_if_any();
    editor().update_job(job.id, to);
    publish({.kind = EventKind::job_updated, .job = job});
}

GPUSCHED_EXPORT void Cluster::remove_job(JobHandle job) {
    require_no_what_if();
    require_current(job);
    if (const auto size = inventory_->job_size[index(job.id)]; size > 0)
        throw InvalidInput(concat("job ", gpusched::quoted(inventory_->job_names[index(job.id)]), ": it has ",
                                  size, " tasks; remove them first"));
    editor().remove_job(job.id);
    publish({.kind = EventKind::job_removed, .job = job});
}

// Tasks -----------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT TaskHandle Cluster::add_task(const TaskSpec& task) {
    require_no_what_if();
    Problems problems;
    const detail::SpecChecks check(problems);
    check.task(task, task_slots());
    check.levels(task, inventory_->label_levels.size());
    detail::check_subgroup(*inventory_, task, problems);
    if (inventory_->tasks.names.find(task.name))
        problems.add(detail::Owner("task", task.name) + ": duplicate task name");
    NodeId home = none<NodeId>;
    GpuMask held = 0;
    if (!task.node) {
        check.pending(task);
    } else if (const auto node = find_home(task, problems)) {
        home = *node;
        const auto extras = detail::extras_of(task, *inventory_);
        const detail::Demand demand(task, extras);
        held = detail::held_gpus(*this, demand, task, home, problems).value_or(0);
        detail::check_unknown_resources(*inventory_, task, home, problems);
        if (problems.empty()) {
            check_capacity(demand, home, held, problems);
            check_cores(task, home, problems);
        }
    }
    problems.throw_if_any();
    const auto columns = inventory_->resource_names.size();
    const auto id = editor().add_task(task);
    place_.resize(task_slots());
    resize_node_arrays(columns);
    join_groups(id);
    if (home != none<NodeId>) place(id, home, held, none<TaskId>);
    publish(EventKind::task_added, handle(id), home);
    return handle(id);
}

GPUSCHED_EXPORT void Cluster::check_not_reserved(TaskId task, Problems& problems) const {
    if (std::any_of(reservations_.begin(), reservations_.end(),
                    [&](const Reservation& r) { return r.task == task; }))
        problems.add(detail::Owner("task", name(task)) + ": room is reserved for it; release it first");
}

GPUSCHED_EXPORT void Cluster::update_task(TaskHandle task, const TaskSpec& to) {
    require_no_what_if();
    require_current(task);
    const auto id = task.id;
    const auto old = "task " + gpusched::quoted(name(id));
    Problems problems;
    const detail::SpecChecks check(problems);
    check.task(to, index(id));
    check.levels(to, inventory_->label_levels.size());
    detail::check_subgroup(*inventory_, to, problems);
    detail::check_same_name("task", name(id), to.name, problems);
    const auto node = node_of(id);
    const auto gpus = gpus_of(id);
    if (to.node.value_or("") != (node == none<NodeId> ? std::string() : name(node)) ||
        to.gpus != gpu_list(gpus) || to.assign_gpus)
        problems.add(old + ": an update does not move a task; its node and GPUs must be those it has");
    if (node == none<NodeId>) check.pending(to);
    check_not_reserved(id, problems);
    problems.throw_if_any();
    if (node != none<NodeId>) {
        const auto extras = detail::extras_of(to, *inventory_);
        const detail::Demand demand(to, extras);
        (void)detail::listed_gpus(*this, demand, to, node, problems);
        detail::check_unknown_resources(*inventory_, to, node, problems);
        problems.throw_if_any();
        use(id, node, gpus, -1);
        check_capacity(demand, node, gpus, problems);
        check_cores(to, node, problems);
        if (!problems.empty()) use(id, node, gpus, +1);
        problems.throw_if_any();
        usage_[index(node)].occupants -= inventory_->tasks.daemon[index(id)] ? 0u : 1u;
    }
    auto& edit = editor();
    remember_sets(id);
    const auto columns = inventory_->resource_names.size();
    edit.update_task(id, to, [&] { drop_tables(); });
    resize_node_arrays(columns);
    join_groups(id);
    if (node != none<NodeId>) {
        use(id, node, gpus, +1);
        usage_[index(node)].occupants += inventory_->tasks.daemon[index(id)] ? 0u : 1u;
    }
    publish(EventKind::task_updated, task, node);
}

GPUSCHED_EXPORT void Cluster::remove_task(TaskHandle task) {
    require_no_what_if();
    require_current(task);
    const auto id = task.id;
    Problems problems;
    check_not_reserved(id, problems);
    problems.throw_if_any();
    auto& edit = editor();
    const auto node = node_of(id);
    place(id, none<NodeId>, 0, none<TaskId>);
    remember_sets(id);
    const bool budgets_changed = edit.remove_task(id);
    drop_tables();
    if (edit.regroup()) recount_groups(none<TaskId>);
    publish(EventKind::task_removed, task, node);
    if (budgets_changed) publish({.kind = EventKind::budgets});
}

GPUSCHED_EXPORT void Cluster::bind(TaskHandle task, NodeHandle node, GpuMask gpus) {
    require_no_what_if();
    require_current(task);
    require_current(node);
    const auto id = task.id;
    const detail::Demand demand(*inventory_, id);
    const auto devices_held = gpus & devices(node.id), whole = gpus & ~devices_held;
    Problems problems;
    if ((whole & ~first_gpus(gpu_count(node.id))) != 0 || gpusched::gpu_count(whole) != demand.gpu_count ||
        !detail::are_of_one_class(*inventory_, demand.extras, node.id, devices_held)) {
        auto spec = task_spec(id);
        spec.gpus = gpu_list(gpus);
        (void)detail::listed_gpus(*this, demand, spec, node.id, problems);
        problems.throw_if_any();
    }
    const auto from = node_of(id);
    const auto held = gpus_of(id);
    if (from != none<NodeId>) use(id, from, held, -1);
    check_capacity(demand, node.id, gpus, problems);
    if (inventory_->task_affinities[inventory_->tasks.affinities[index(id)]].cpu_local)
        check_cores(task_spec(id), node.id, problems);
    if (from != none<NodeId>) use(id, from, held, +1);
    problems.throw_if_any();
    place(id, node.id, gpus, none<TaskId>);
    if (from != node.id || held != gpus)
        publish({.kind = EventKind::bound, .from = from, .node = node, .task = task});
}

GPUSCHED_EXPORT void Cluster::unbind(TaskHandle task) {
    require_no_what_if();
    require_current(task);
    const auto i = index(task.id);
    const auto& t = inventory_->tasks;
    if (t.locked[i] || t.standby[i])
        throw InvalidInput("task " + gpusched::quoted(name(task.id)) + ": " +
                           (t.locked[i] ? "locked" : "standby") + ", but would be on no node");
    const auto node = node_of(task.id);
    place(task.id, none<NodeId>, 0, none<TaskId>);
    if (node != none<NodeId>) publish(EventKind::unbound, task, node);
}

GPUSCHED_EXPORT void Cluster::set_now(std::int64_t now) {
    require_no_what_if();
    Problems problems;
    check_range(problems, "now", now, any_signed_amount.low, any_signed_amount.high, "cluster");
    problems.throw_if_any();
    auto& inventory = edit();
    inventory.now = now;
    inventory.serial = Inventory::next_serial();
    publish({.kind = EventKind::time});
}

GPUSCHED_EXPORT void Cluster::add_budget(const BudgetSpec& budget) {
    require_no_what_if();
    Problems problems;
    detail::SpecChecks(problems).budget(budget, inventory_->budgets.size(), inventory_->tasks.names);
    if (inventory_->budget_names.find(budget.name))
        problems.add(detail::Owner("budget", budget.name) + ": duplicate budget name");
    problems.throw_if_any();
    editor().budgets().add(budget);
    publish({.kind = EventKind::budgets});
}

GPUSCHED_EXPORT void Cluster::update_budget(const BudgetSpec& to) {
    require_no_what_if();
    const auto found = find_budget(to.name);
    Problems problems;
    detail::SpecChecks(problems).budget(to, found, inventory_->tasks.names);
    problems.throw_if_any();
    editor().budgets().update(found, to);
    publish({.kind = EventKind::budgets});
}

GPUSCHED_EXPORT void Cluster::remove_budget(std::string_view name) {
    require_no_what_if();
    const auto found = find_budget(name);
    editor().budgets().remove(found);
    publish({.kind = EventKind::budgets});
}

GPUSCHED_EXPORT std::uint32_t Cluster::find_budget(std::string_view name) const {
    if (const auto found = inventory_->budget_names.find(name)) return *found;
    throw InvalidInput(unknown_name("budget", name, inventory_->budget_names));
}

}  // namespace gpusched

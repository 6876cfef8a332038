#pragma once

#include <gpusched/core/gpu_list.hpp>
#include <gpusched/core/nearest_names.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/detail/check_specs.hpp>
#include <gpusched/model/detail/cores.hpp>
#include <gpusched/model/detail/inventory_editor.hpp>
#include <gpusched/model/impl/domain_counts.ipp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace GPUSCHED_NAMESPACE {

GPUSCHED_INLINE NodeId Cluster::find_node(std::string_view name) const {
    if (const auto found = inventory_->nodes.names.find(name)) return make_id<NodeId>(*found);
    throw InvalidInput("unknown node " + gpusched::quoted(name) +
                       did_you_mean(name, inventory_->nodes.names));
}

GPUSCHED_INLINE TaskId Cluster::find_task(std::string_view name) const {
    if (const auto found = inventory_->tasks.names.find(name)) return make_id<TaskId>(*found);
    throw InvalidInput("unknown task " + gpusched::quoted(name) +
                       did_you_mean(name, inventory_->tasks.names));
}

GPUSCHED_INLINE bool Cluster::is_movable(TaskId task) const noexcept {
    const auto& t = inventory_->tasks;
    const auto i = index(task);
    return is_placed(task) && !t.locked[i] && !t.daemon[i] && !t.standby[i] &&
           !inventory_->task_affinities[t.affinities[i]].cpu_local;
}

GPUSCHED_INLINE Cluster::Cluster(std::nullptr_t) {}
GPUSCHED_INLINE Cluster::Cluster() : Cluster(build({})) {}
GPUSCHED_INLINE Cluster::Cluster(const Cluster& other) = default;
GPUSCHED_INLINE Cluster::Cluster(Cluster&& other) noexcept = default;
GPUSCHED_INLINE Cluster& Cluster::operator=(const Cluster& other) = default;
GPUSCHED_INLINE Cluster& Cluster::operator=(Cluster&& other) noexcept = default;
GPUSCHED_INLINE Cluster::~Cluster() = default;

// Building -------------------------------------------------------------------------------------------------

GPUSCHED_INLINE Cluster Cluster::build(const ClusterSpec& spec) {
    Problems problems;
    Cluster cluster{nullptr};
    cluster.inventory_ = Inventory::build(spec, problems);
    cluster.set_capacities();
    cluster.place_initially(spec, problems);
    detail::check_cores_in_use(spec, *cluster.inventory_, problems);
    problems.throw_if_any();
    cluster.commit();
    return cluster;
}

GPUSCHED_INLINE void Cluster::set_capacities() {
    place_.resize(task_slots());
    usage_.resize(node_slots());
    gpu_.resize(inventory_->gpu_slots);
    gpu_memory_.resize(inventory_->gpu_slots);
    for (const auto node : nodes()) set_capacity(node);
    add_group_tables();
}

// Everything on the node is free.
GPUSCHED_INLINE void Cluster::set_capacity(NodeId node) {
    const auto& n = inventory_->nodes;
    const auto i = index(node);
    auto& u = usage_[i];
    u.cpu_lendable = u.cpu_firm = n.cpu_milli[i];
    u.memory = n.memory_mib[i];
    u.idle_lendable = u.idle_firm = healthy_gpus(node);
    for (int g = 0; g < gpu_count(node); ++g) {
        const auto at = slot(node, g);
        const bool healthy = (healthy_gpus(node) & gpu_bit(g)) != 0;
        gpu_[at].lendable = gpu_[at].firm = healthy ? whole_gpu_milli : 0;
        gpu_memory_[at] = std::max<std::int64_t>(0, n.gpu_memory_mib[i]);
    }
}

GPUSCHED_INLINE void Cluster::add_group_tables() {
    groups_ = {};
    group_tables_.clear();
    for (const auto& set : inventory_->group_sets) {
        group_tables_.push_back(groups_.add_table(set.members));
        if (!set.uniform)
            for (const auto members : set.members_with) groups_.add_table(members);
    }
}

// The node that the task says it runs on.
GPUSCHED_INLINE std::optional<NodeId> Cluster::find_home(const TaskSpec& task, Problems& problems) const {
    if (const auto found = inventory_->nodes.names.find(*task.node)) return make_id<NodeId>(*found);
    problems.add(detail::Owner("task", task.name) + ": runs on unknown node " + gpusched::quoted(*task.node) +
                 (problems.full() ? "" : did_you_mean(*task.node, inventory_->nodes.names)));
    return std::nullopt;
}

// The GPUs that the task says it holds there.
GPUSCHED_INLINE std::optional<GpuMask> Cluster::gpus_named(const TaskSpec& task, NodeId node,
                                                           Problems& problems) const {
    const detail::Owner owner("task", task.name);
    bool good = true;
    const auto mask = gpu_mask(
        task.gpus, gpu_count(node),
        [&](int gpu) {
            problems.add(owner + ": holds GPU " + std::to_string(gpu) + " of node " +
                         gpusched::quoted(name(node)) + ", which has " + std::to_string(gpu_count(node)));
            good = false;
        },
        [&](int gpu) {
            problems.add(owner + ": lists GPU " + std::to_string(gpu) + " twice");
            good = false;
        });
    if (good &&
        static_cast<std::int64_t>(task.gpus.size()) != detail::legal(task.gpu_count, 0, max_gpus_per_node)) {
        problems.add(owner + ": asks for " + std::to_string(task.gpu_count) + " GPUs, but holds " +
                     std::to_string(task.gpus.size()) + " on node " + gpusched::quoted(name(node)));
        good = false;
    }
    return good ? std::optional(mask) : std::nullopt;
}

GPUSCHED_INLINE void Cluster::place_initially(const ClusterSpec& spec, Problems& problems) {
    // Backwards, because lists grow at the front: afterwards every node lists its tasks in input order.
    for (std::size_t i = spec.tasks.size(); i-- > 0;) {
        const auto& task = spec.tasks[i];
        const detail::Owner owner("task", task.name);
        if (!task.node) {
            detail::SpecChecks(problems).pending(task);
            continue;
        }
        const auto node = find_home(task, problems);
        if (!node) continue;
        if (const auto gpus = gpus_named(task, *node, problems)) assign(make_id<TaskId>(i), *node, *gpus);
    }
    const auto over = [&](NodeId node, const char* what, std::int64_t by) {
        problems.add("node " + gpusched::quoted(name(node)) + ": its tasks ask for " + std::to_string(by) +
                     " " + what + " more than it has");
    };
    const auto& n = inventory_->nodes;
    for (const auto node : nodes()) {
        const auto i = index(node);
        const auto& u = usage_[i];
        if (const auto cpu = std::min(u.cpu_lendable, u.cpu_firm); cpu < 0) over(node, "cpu_milli", -cpu);
        if (u.memory < 0) over(node, "memory_mib", -u.memory);
        for (int g = 0; g < gpu_count(node); ++g) {
            const auto at = n.first_gpu[i] + static_cast<std::uint32_t>(g);
            const auto capacity =
                (healthy_gpus(node) & gpu_bit(g)) != 0 ? 0 : whole_gpu_milli;  // spare if failed
            if (std::min(gpu_[at].lendable, gpu_[at].firm) + capacity < 0) {
                std::string holders;
                for (const auto task : tasks_on(node))
                    if ((gpus_of(task) & gpu_bit(g)) != 0)
                        holders += (holders.empty() ? "" : ", ") + gpusched::quoted(name(task));
                problems.add("node " + gpusched::quoted(name(node)) + ": GPU " + std::to_string(g) +
                             " is held beyond its capacity by tasks " + holders);
            }
            if (n.gpu_memory_mib[i] >= 0 && gpu_memory_[at] < 0)
                over(node, ("gpu_memory_mib of GPU " + std::to_string(g)).c_str(), -gpu_memory_[at]);
        }
    }
}

namespace detail {

/// One message per level that tasks name but no node's network reaches.
inline void warn_of_unknown_levels(const Inventory& inventory, std::vector<std::string>& found) {
    const auto& t = inventory.tasks;
    std::map<Level, std::pair<std::size_t, std::size_t>> named;  // first task, how many
    for (std::size_t i = 0; i < t.names.size(); ++i) {
        const auto& wishes = inventory.task_affinities[t.affinities[i]];
        std::set<Level> levels;
        for (const auto& term : wishes.anti_affinity) levels.insert(term.level);
        for (const auto& term : wishes.affinity) levels.insert(term.level);
        if (wishes.network_affinity) levels.insert(wishes.network_affinity->level);
        for (const auto level : levels)
            if (level > inventory.deepest_level()) ++named.try_emplace(level, i, 0).first->second.second;
    }
    for (const auto& [level, tasks] : named) {
        const auto others = tasks.second - 1;
        found.push_back("network level " + std::to_string(level) + ": named by task " +
                        gpusched::quoted(t.names[tasks.first]) +
                        (others == 0 ? "" : " and " + std::to_string(others) + " more") +
                        ", but no node's network is that deep: every node is a domain of its own there");
    }
}

}  // namespace detail

GPUSCHED_INLINE std::vector<std::string> Cluster::warnings() const {
    std::vector<std::string> found;
    for (const auto task : tasks())
        if (is_placed(task))
            for_each_gpu(
                static_cast<GpuMask>(gpus_of(task) & inventory_->nodes.failed_gpus[index(node_of(task))]),
                [&](int g) {
                    found.push_back("task " + gpusched::quoted(name(task)) + ": holds failed GPU " +
                                    std::to_string(g) + " of node " + gpusched::quoted(name(node_of(task))));
                });
    detail::warn_of_unknown_levels(*inventory_, found);
    return found;
}

// Changes --------------------------------------------------------------------------------------------------

inline void Cluster::count_groups(TaskId task, NodeId node, int sign) {
    const auto count = [&](std::uint32_t table, DomainId domain) __attribute__((always_inline)) {
        sign > 0 ? groups_.increment(table, domain) : groups_.decrement(table, domain);
    };
    for (const auto& m : inventory_->memberships(task)) {
        const auto& set = inventory_->group_sets[m.set];
        const auto domain = inventory_->domain(set.level, node);
        count(group_tables_[m.set], domain);
        if (!set.uniform && m.limit != Membership::no_limit) {
            const auto which =
                std::lower_bound(set.limits.begin(), set.limits.end(), m.limit) - set.limits.begin();
            count(group_tables_[m.set] + 1 + static_cast<std::uint32_t>(which), domain);
        }
    }
}

GPUSCHED_INLINE void Cluster::use(TaskId task, NodeId node, GpuMask gpus, int sign) {
    const auto& t = inventory_->tasks;
    const auto i = index(task);
    GPUSCHED_ASSERT(i < place_.size());
    GPUSCHED_ASSERT(index(node) < usage_.size());
    GPUSCHED_ASSERT((gpus & ~first_gpus(gpu_count(node))) == 0);
    GPUSCHED_ASSERT(gpusched::gpu_count(gpus) == t.gpu_count[i]);
    auto& u = usage_[index(node)];
    // A Standby task claims GPUs and CPU without consuming them; an LP task consumes them without needing a claim.
    const bool consumes = !t.standby[i];
    const bool claims = t.standby[i] || !may_borrow(task);
    const auto cpu = sign * t.cpu_milli[i];
    if (consumes) u.cpu_lendable -= cpu;
    if (claims) u.cpu_firm -= cpu;
    u.memory -= sign * t.memory_mib[i];
    // Whoever gives back more than was taken would make room out of nothing.
    GPUSCHED_ASSERT(std::max(u.cpu_lendable, u.cpu_firm) <= inventory_->nodes.cpu_milli[index(node)]);
    GPUSCHED_ASSERT(u.memory <= inventory_->nodes.memory_mib[index(node)]);
    const auto share = static_cast<std::int32_t>(sign * t.gpu_share_milli[i]);
    for_each_gpu(gpus, [&](int g) {
        const auto at = slot(node, g);
        const auto bit = gpu_bit(g);
        if (consumes) {
            gpu_[at].lendable -= share;
            u.idle_lendable = static_cast<GpuMask>(
                gpu_[at].lendable == whole_gpu_milli ? u.idle_lendable | bit : u.idle_lendable & ~bit);
        }
        if (claims) {
            gpu_[at].firm -= share;
            u.idle_firm = static_cast<GpuMask>(gpu_[at].firm == whole_gpu_milli ? u.idle_firm | bit
                                                                                : u.idle_firm & ~bit);
        }
        gpu_memory_[at] -= sign * t.gpu_memory_mib[i];
        GPUSCHED_ASSERT(std::max(gpu_[at].lendable, gpu_[at].firm) <= whole_gpu_milli);
    });
    count_groups(task, node, sign);
}

GPUSCHED_INLINE void Cluster::link(TaskId task, NodeId node, TaskId previous) {
    auto& p = place_[index(task)];
    p.node = node;
    p.previous = previous;
    auto& slot = previous == none<TaskId> ? usage_[index(node)].first_task : place_[index(previous)].next;
    p.next = slot;
    slot = task;
    if (p.next != none<TaskId>) place_[index(p.next)].previous = task;
    usage_[index(node)].occupants += inventory_->tasks.daemon[index(task)] ? 0u : 1u;
}

GPUSCHED_INLINE void Cluster::unlink(TaskId task) {
    auto& p = place_[index(task)];
    (p.previous == none<TaskId> ? usage_[index(p.node)].first_task : place_[index(p.previous)].next) = p.next;
    if (p.next != none<TaskId>) place_[index(p.next)].previous = p.previous;
    usage_[index(p.node)].occupants -= inventory_->tasks.daemon[index(task)] ? 0u : 1u;
    p = {};
}

GPUSCHED_INLINE void Cluster::place(TaskId task, NodeId node, GpuMask gpus, TaskId previous) {
    if (const auto old = node_of(task); old != none<NodeId>) {
        use(task, old, gpus_of(task), -1);
        unlink(task);
    }
    if (node == none<NodeId>) return;
    use(task, node, gpus, +1);
    link(task, node, previous);
    place_[index(task)].gpus = gpus;
}

GPUSCHED_INLINE void Cluster::assign(TaskId task, NodeId node, GpuMask gpus) {
    GPUSCHED_ASSERT(index(task) < place_.size());
    GPUSCHED_ASSERT(node == none<NodeId> || index(node) < usage_.size());
    const auto& p = place_[index(task)];
    log_.push_back({Change::Kind::assign, p.gpus, task, p.node, p.previous});
    place(task, node, gpus, none<TaskId>);
}

GPUSCHED_INLINE void Cluster::reserve(TaskId task, NodeId node, GpuMask gpus) {
    log_.push_back({Change::Kind::reserve, gpus, task, node, none<TaskId>});
    use(task, node, gpus, +1);
}

GPUSCHED_INLINE void Cluster::unreserve(TaskId task, NodeId node, GpuMask gpus) {
    log_.push_back({Change::Kind::unreserve, gpus, task, node, none<TaskId>});
    use(task, node, gpus, -1);
}

GPUSCHED_INLINE void Cluster::undo() {
    GPUSCHED_ASSERT(!log_.empty());
    const auto change = log_.back();
    log_.pop_back();
    switch (change.kind) {
    case Change::Kind::assign:
        place(change.task, change.node, change.gpus, change.previous);
        break;
    case Change::Kind::reserve:
        use(change.task, change.node, change.gpus, -1);
        break;
    case Change::Kind::unreserve:
        use(change.task, change.node, change.gpus, +1);
        break;
    }
}

GPUSCHED_INLINE void Cluster::commit() {
    for (const auto& change : log_) {
        const Reservation reservation{change.task, change.node, change.gpus};
        if (change.kind == Change::Kind::reserve) reservations_.push_back(reservation);
        if (change.kind == Change::Kind::unreserve) {
            const auto found = std::find(reservations_.begin(), reservations_.end(), reservation);
            GPUSCHED_ASSERT(found != reservations_.end());
            *found = reservations_.back();
            reservations_.pop_back();
        }
    }
    log_.clear();
}

GPUSCHED_INLINE bool Cluster::same_placement(const Cluster& other) const noexcept {
    return inventory_ == other.inventory_ &&
           std::equal(place_.begin(), place_.end(), other.place_.begin(), other.place_.end(),
                      [](const Place& a, const Place& b) { return a.node == b.node && a.gpus == b.gpus; });
}

// Back to data ---------------------------------------------------------------------------------------------

GPUSCHED_INLINE NodeSpec Cluster::node_spec(NodeId node) const {
    const auto i = index(node);
    const auto& n = inventory_->nodes;
    const auto& attributes = inventory_->node_attributes[n.attributes[i]];
    NodeSpec out{.name = name(node),
                 .gpu_model = {},
                 .gpu_count = n.gpu_count[i],
                 .cpu_milli = n.cpu_milli[i],
                 .memory_mib = n.memory_mib[i],
                 .gpu_memory_mib = {},
                 .schedulable = n.schedulable[i] != 0,
                 .network = {},
                 .labels = attributes.labels,
                 .taints = attributes.taints,
                 .hardware = {},
                 .failed_gpus = {}};
    if (n.gpu_model[i] != none<GpuModelId>) out.gpu_model = inventory_->gpu_models[index(n.gpu_model[i])];
    if (n.gpu_memory_mib[i] >= 0) out.gpu_memory_mib = n.gpu_memory_mib[i];
    for (Level level = 0; level < inventory_->network_depth(node); ++level)
        out.network.push_back(inventory_->domain_name(level, inventory_->domain(level, node)));
    if (n.hardware[i] != NodeTable::no_hardware)
        out.hardware = inventory_->hardware[n.hardware[i]].description;
    out.failed_gpus = gpu_list(n.failed_gpus[i]);
    return out;
}

GPUSCHED_INLINE TaskSpec Cluster::task_spec(TaskId task) const {
    const auto& inv = *inventory_;
    const auto i = index(task);
    const auto& t = inv.tasks;
    const auto& wishes = inv.task_affinities[t.affinities[i]];
    const auto& requirement = inv.requirements[t.requirement[i]];
    TaskSpec out;
    out.name = name(task);
    if (t.job[i] != none<JobId>) out.job = inv.job_names[index(t.job[i])];
    out.cpu_milli = t.cpu_milli[i];
    out.memory_mib = t.memory_mib[i];
    out.gpu_count = t.gpu_count[i];
    out.gpu_share_milli = t.gpu_share_milli[i];
    out.gpu_memory_mib = t.gpu_memory_mib[i];
    for (const auto model : requirement.gpu_models) out.gpu_models.push_back(inv.gpu_models[index(model)]);
    out.priority = t.priority[i];
    out.priority_class = t.priority_class[i];
    out.locked = t.locked[i] != 0;
    out.preemptible = t.preemptible[i] != 0;
    out.standby = t.standby[i] != 0;
    out.daemon = t.daemon[i] != 0;
    out.node_selector = requirement.node_selector;
    out.tolerations = requirement.tolerations;
    out.anti_affinity = wishes.anti_affinity;
    out.affinity = wishes.affinity;
    out.network_affinity = wishes.network_affinity;
    out.hardware_affinity = wishes.hardware_affinity;
    out.cpu_local = wishes.cpu_local;
    out.cores = wishes.cores;
    out.move_cost = t.move_cost[i];
    out.start_time = t.start_time[i];
    if (t.last_checkpoint_time[i] != TaskTable::no_time) out.last_checkpoint_time = t.last_checkpoint_time[i];
    out.checkpoint_interval = t.checkpoint_interval[i];
    out.eviction_count = t.eviction_count[i];
    if (is_placed(task)) out.node = name(node_of(task));
    out.gpus = gpu_list(gpus_of(task));
    return out;
}

GPUSCHED_INLINE JobSpec Cluster::job_spec(JobId job) const {
    const auto j = index(job);
    JobSpec out{inventory_->job_names[j], inventory_->job_min_members[j], std::nullopt};
    if (inventory_->job_max_disrupted[j] != INT64_MAX) out.max_disrupted = inventory_->job_max_disrupted[j];
    return out;
}

GPUSCHED_INLINE ClusterSpec Cluster::to_spec() const {
    ClusterSpec spec;
    spec.now = inventory_->now;
    for (const auto node : nodes()) spec.nodes.push_back(node_spec(node));
    for (const auto task : tasks()) spec.tasks.push_back(task_spec(task));
    for (std::size_t j = 0; j < inventory_->job_names.size(); ++j)
        if (!inventory_->job_names[j].empty()) spec.jobs.push_back(job_spec(make_id<JobId>(j)));
    return spec;
}

}  // namespace GPUSCHED_NAMESPACE

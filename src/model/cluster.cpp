// SPDX-License-Identifier: Apache-2.0
// Cluster: build, placement, what-if changes and their undoing.
#include "model/check_specs.hpp"
#include "model/extras_editor.hpp"
#include "model/group_counts.hpp"
#include "model/held_gpus.hpp"
#include "model/inventory_editor.hpp"
#include "model/name_order.hpp"
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/text.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/events.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace gpusched {

GPUSCHED_EXPORT NodeId Cluster::find_node(std::string_view name) const {
    if (const auto found = inventory_->nodes.names.find(name)) return make_id<NodeId>(*found);
    throw InvalidInput(unknown_name("node", name, inventory_->nodes.names));
}

GPUSCHED_EXPORT TaskId Cluster::find_task(std::string_view name) const {
    if (const auto found = inventory_->tasks.names.find(name)) return make_id<TaskId>(*found);
    throw InvalidInput(unknown_name("task", name, inventory_->tasks.names));
}

GPUSCHED_EXPORT bool Cluster::is_movable(TaskId task) const noexcept {
    const auto& t = inventory_->tasks;
    const auto i = index(task);
    return is_placed(task) && !t.locked[i] && !t.daemon[i] && !t.standby[i] &&
           t.how(task) != Mobility::none && !inventory_->task_affinities[t.affinities[i]].cpu_local;
}

GPUSCHED_EXPORT Cluster::Cluster(std::nullptr_t) {}
GPUSCHED_EXPORT Cluster::Cluster() : Cluster(build({})) {}
GPUSCHED_EXPORT Cluster::Cluster(const Cluster& other) = default;
GPUSCHED_EXPORT Cluster::Cluster(Cluster&& other) noexcept = default;
GPUSCHED_EXPORT Cluster& Cluster::operator=(const Cluster& other) = default;
GPUSCHED_EXPORT Cluster& Cluster::operator=(Cluster&& other) noexcept = default;
GPUSCHED_EXPORT Cluster::~Cluster() = default;

// Building -------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT Cluster Cluster::build(const ClusterSpec& spec, IdOrder order) {
    if (order == IdOrder::by_name && !detail::is_numbered_as_listed(spec)) {
        auto cluster = build(detail::in_name_order(spec), IdOrder::as_listed);
        cluster.inventory_->listed = detail::listed_order(spec, *cluster.inventory_);
        return cluster;
    }
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

GPUSCHED_EXPORT void Cluster::set_capacities() {
    place_.resize(task_slots());
    resize_node_arrays(0);
    for (const auto node : nodes()) set_capacity(node);
    add_group_tables();
}

// Gives the arrays entries for all nodes, GPUs, named resources and devices of the inventory.
GPUSCHED_EXPORT void Cluster::resize_node_arrays(std::size_t columns_before) {
    const auto columns = inventory_->resource_names.size();
    usage_.resize(node_slots());
    gpu_.resize(inventory_->gpu_slots);
    gpu_memory_.resize(inventory_->gpu_slots);
    if (columns != columns_before)
        detail::widen_rows(resources_, columns_before, columns, node_slots());
    else
        resources_.resize(node_slots() * columns);
    if (inventory_->node_devices.size() > 1) devices_.resize(node_slots());
}

// Makes everything on the node free.
GPUSCHED_EXPORT void Cluster::set_capacity(NodeId node) {
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
    const auto columns = static_cast<std::ptrdiff_t>(inventory_->resource_names.size());
    const auto row = static_cast<std::ptrdiff_t>(i) * columns;
    std::copy_n(inventory_->node_resources.begin() + row, columns, resources_.begin() + row);
    if (devices_.empty()) return;
    devices_[i] = devices(node) & ~n.failed_gpus[i];
    for_each_gpu(devices(node),
                 [&](int device) { gpu_[n.first_gpu[i] + static_cast<std::size_t>(device)] = {}; });
}

GPUSCHED_EXPORT void Cluster::add_group_tables() {
    groups_ = {};
    group_tables_.clear();
    second_tables_.clear();
    fewest_.clear();
    for (std::uint32_t id = 0; id < inventory_->group_sets.size(); ++id) {
        const auto& set = inventory_->group_sets[id];
        group_tables_.push_back(groups_.add_table(set.members));
        if (!set.uniform)
            for (const auto members : set.members_with) groups_.add_table(members);
        add_second_table(id);
    }
}

GPUSCHED_EXPORT void Cluster::add_second_table(std::uint32_t set) {
    const auto kind = inventory_->group_sets[set].kind;
    if (kind != GroupKind::avoid && kind != GroupKind::spread) return;
    if (second_tables_.size() <= set) {
        second_tables_.resize(set + 1, no_table);
        fewest_.resize(set + 1);
    }
    second_tables_[set] = groups_.add_table(inventory_->group_sets[set].members);
    fewest_[set] = 0;
}

// The node that the task names.
GPUSCHED_EXPORT std::optional<NodeId> Cluster::find_home(const TaskSpec& task, Problems& problems) const {
    if (const auto found = inventory_->nodes.names.find(*task.node)) return make_id<NodeId>(*found);
    problems.add(detail::Owner("task", task.name) + ": runs on unknown node " + gpusched::quoted(*task.node) +
                 (problems.full() ? "" : did_you_mean(*task.node, inventory_->nodes.names)));
    return std::nullopt;
}

GPUSCHED_EXPORT void Cluster::place_initially(const ClusterSpec& spec, Problems& problems) {
    std::vector<TaskId> unknown;  // tasks on unknown GPUs
    // Backwards, because lists grow at the front. Then every node lists its tasks by id.
    for (std::size_t i = spec.tasks.size(); i-- > 0;) {
        const auto& task = spec.tasks[i];
        if (!task.node) {
            detail::SpecChecks(problems).pending(task);
            continue;
        }
        const auto node = find_home(task, problems);
        if (!node) continue;
        const auto id = make_id<TaskId>(i);
        if (task.assign_gpus) {
            unknown.push_back(id);
        } else if (const auto gpus = detail::listed_gpus(*this, {*inventory_, id}, task, *node, problems)) {
            assign(id, *node, *gpus);
        }
    }
    if (!unknown.empty()) assign_unknown({unknown.rbegin(), unknown.rend()}, spec, problems);
    const auto over = [&](NodeId node, const char* resource, std::int64_t by) {
        problems.add(concat("node ", gpusched::quoted(name(node)), ": its tasks ask for ", by, " ", resource,
                            " more than it has"));
    };
    const auto& n = inventory_->nodes;
    for (const auto node : nodes()) {
        const auto i = index(node);
        const auto& u = usage_[i];
        if (const auto cpu = std::min(u.cpu_lendable, u.cpu_firm); cpu < 0) over(node, "cpu_milli", -cpu);
        if (u.memory < 0) over(node, "memory_mib", -u.memory);
        for (int g = 0; g < gpu_count(node); ++g) {
            const auto at = n.first_gpu[i] + static_cast<std::uint32_t>(g);
            // A failed GPU has no capacity, but a task may still hold it.
            const auto spare = (healthy_gpus(node) & gpu_bit(g)) != 0 ? 0 : whole_gpu_milli;
            if (std::min(gpu_[at].lendable, gpu_[at].firm) + spare < 0)
                problems.add(concat("node ", gpusched::quoted(name(node)), ": GPU ", g,
                                    " is held beyond its capacity by tasks ",
                                    detail::holders_of(*this, node, g)));
            if (n.gpu_memory_mib[i] >= 0 && gpu_memory_[at] < 0)
                over(node, ("gpu_memory_mib of GPU " + std::to_string(g)).c_str(), -gpu_memory_[at]);
        }
        for (std::uint32_t r = 0; r < inventory_->resource_names.size(); ++r)
            if (const auto free = resource_free(node, r); free < 0)
                over(node, gpusched::quoted(inventory_->resource_names[r]).c_str(), -free);
        if (!devices_.empty()) detail::check_devices_held_once(*this, node, problems);
    }
}

GPUSCHED_EXPORT void Cluster::assign_unknown(const std::vector<TaskId>& tasks, const ClusterSpec& spec,
                                             Problems& problems) {
    for (const auto task : tasks) {
        const auto& data = spec.tasks[index(task)];
        const auto node = make_id<NodeId>(*inventory_->nodes.names.find(*data.node));
        if (const auto gpus = detail::held_gpus(*this, {*inventory_, task}, data, node, problems))
            assign(task, node, *gpus);
    }
    // Again backwards, so that every node lists its tasks by id.
    for (std::size_t i = task_slots(); i-- > 0;)
        if (const auto task = make_id<TaskId>(i); is_placed(task)) assign(task, node_of(task), gpus_of(task));
}

namespace detail {

/// Adds one message per level that tasks name but no node's network has.
static void warn_of_unknown_levels(const Inventory& inventory, std::vector<std::string>& found) {
    const auto& t = inventory.tasks;
    std::map<Level, std::pair<std::size_t, std::size_t>> named;  // first task, how many
    for (std::size_t i = 0; i < t.names.size(); ++i) {
        const auto& asked = inventory.task_affinities[t.affinities[i]];
        std::set<Level> levels;
        for_each_level(asked, inventory.group_terms[asked.group_terms], [&](const char*, Level level) {
            if (level < first_label_level) levels.insert(level);
        });
        for (const auto level : levels)
            if (level > inventory.deepest_level()) ++named.try_emplace(level, i, 0).first->second.second;
    }
    for (const auto& [level, tasks] : named) {
        const auto others = tasks.second - 1;
        found.push_back(
            concat("network level ", level, ": named by task ", gpusched::quoted(t.names[tasks.first]),
                   (others == 0 ? "" : concat(" and ", others, " more")),
                   ", but no node's network is that deep: every node is a domain of its own there"));
    }
}

}  // namespace detail

GPUSCHED_EXPORT std::vector<std::string> Cluster::warnings() const {
    std::vector<std::string> found;
    for (const auto task : tasks())
        if (is_placed(task))
            for_each_gpu(gpus_of(task) & inventory_->nodes.failed_gpus[index(node_of(task))], [&](int g) {
                found.push_back(concat("task ", gpusched::quoted(name(task)), ": holds failed GPU ", g,
                                       " of node ", gpusched::quoted(name(node_of(task)))));
            });
    detail::warn_of_unknown_levels(*inventory_, found);
    return found;
}

// Changes --------------------------------------------------------------------------------------------------

GPUSCHED_EXPORT void Cluster::count_selection(TaskId task, NodeId node, int sign) {
    const auto count = [&](std::uint32_t table, DomainId domain) {
        sign > 0 ? groups_.increment(table, domain) : groups_.decrement(table, domain);
    };
    for (const auto& m : inventory_->selection_memberships(task)) {
        const auto& set = inventory_->group_sets[m.set];
        if (set.kind == GroupKind::spread) {
            if (m.is_member() && inventory_->spread_rules[set.rule].eligible[index(node)])
                count_spread(m.set, node, sign);
            continue;
        }
        const auto domain = inventory_->domain_at(set.level, node);
        if (domain == none<DomainId>) continue;
        if (m.is_member()) count(group_tables_[m.set], domain);
        if (m.is_bound() && set.kind == GroupKind::avoid) count(second_tables_[m.set], domain);
    }
}

// Moves a domain to its new number of members, and updates `fewest_` if it was the last with the old number.
GPUSCHED_EXPORT void Cluster::count_spread(std::uint32_t set, NodeId node, int sign) {
    const auto& rule = inventory_->spread_rules[inventory_->group_sets[set].rule];
    const auto domain = inventory_->domain_at(rule.level, node);
    const auto members = groups_.count(group_tables_[set], domain);
    const auto domains_with = [&](std::uint32_t number) {
        return number == 0 ? rule.domains - groups_.domains(group_tables_[set])
                           : groups_.count(second_tables_[set], make_id<DomainId>(number));
    };
    auto& fewest = fewest_[set];
    if (members > 0) groups_.decrement(second_tables_[set], make_id<DomainId>(members));
    if (sign > 0) {
        groups_.increment(group_tables_[set], domain);
        groups_.increment(second_tables_[set], make_id<DomainId>(members + 1));
        if (fewest == members && domains_with(members) == 0) ++fewest;
    } else {
        groups_.decrement(group_tables_[set], domain);
        if (members > 1) groups_.increment(second_tables_[set], make_id<DomainId>(members - 1));
        fewest = std::min(fewest, members - 1);
    }
}

// The number of domains of each spread rule.
GPUSCHED_EXPORT std::vector<std::uint32_t> Cluster::spread_domains() const {
    std::vector<std::uint32_t> domains;
    for (const auto& rule : inventory_->spread_rules) domains.push_back(rule.domains);
    return domains;
}

// Recomputes the fewest members of each spread with a changed number of domains.
GPUSCHED_EXPORT void Cluster::find_fewest(std::span<const std::uint32_t> domains_before) {
    const auto& rules = inventory_->spread_rules;
    GPUSCHED_ASSERT(domains_before.size() == rules.size());
    const auto changed = [&](std::size_t rule) { return rules[rule].domains != domains_before[rule]; };
    bool any = false;
    for (std::size_t rule = 0; rule < rules.size(); ++rule) any = any || changed(rule);
    if (!any) return;
    for (std::uint32_t set = 0; set < fewest_.size(); ++set) {
        const auto& s = inventory_->group_sets[set];
        if (s.members == 0 || s.kind != GroupKind::spread || !changed(s.rule)) continue;
        auto& fewest = fewest_[set] = 0;
        const auto& rule = rules[s.rule];
        if (rule.domains == 0 || rule.domains > groups_.domains(group_tables_[set])) continue;
        while (groups_.count(second_tables_[set], make_id<DomainId>(fewest)) == 0) ++fewest;
    }
}

GPUSCHED_EXPORT void Cluster::use(TaskId task, NodeId node, GpuMask gpus, int sign) {
    const auto& t = inventory_->tasks;
    const auto i = index(task);
    GPUSCHED_ASSERT(i < place_.size());
    GPUSCHED_ASSERT(index(node) < usage_.size());
    if (t.is(TaskTrait::extras, task)) {
        use_extras(inventory_->extras[t.extras[i]], node, gpus & devices(node), sign);
        gpus &= ~devices(node);
    }
    GPUSCHED_ASSERT((gpus & ~first_gpus(gpu_count(node))) == 0);
    GPUSCHED_ASSERT(gpusched::gpu_count(gpus) == t.gpu_count[i]);
    auto& u = usage_[index(node)];
    // A Standby task claims GPUs and CPU without consuming them; an LP task consumes them without needing a
    // claim.
    const bool consumes = !t.is(TaskTrait::lends, task);
    const bool claims = !consumes || !may_borrow(task);
    const auto cpu = sign * t.cpu_milli[i];
    if (consumes) u.cpu_lendable -= cpu;
    if (claims) u.cpu_firm -= cpu;
    u.memory -= sign * t.memory_mib[i];
    // More is never released than was taken.
    GPUSCHED_ASSERT(std::max(u.cpu_lendable, u.cpu_firm) <= inventory_->nodes.cpu_milli[index(node)]);
    GPUSCHED_ASSERT(u.memory <= inventory_->nodes.memory_mib[index(node)]);
    const auto share = static_cast<std::int32_t>(sign * t.gpu_share_milli[i]);
    auto* const gpu = gpu_.data() + inventory_->nodes.first_gpu[index(node)];
    const auto lendable = consumes ? share : 0, firm = claims ? share : 0;
    for_each_gpu(gpus, [&](int g) {
        gpu[g].lendable -= lendable;
        gpu[g].firm -= firm;
        GPUSCHED_ASSERT(std::max(gpu[g].lendable, gpu[g].firm) <= whole_gpu_milli);
    });
    // Taking a GPU never makes one idle.
    if (consumes) u.idle_lendable &= ~gpus;
    if (claims) u.idle_firm &= ~gpus;
    if (sign < 0)
        for_each_gpu(gpus, [&](int g) {
            if (gpu[g].lendable == whole_gpu_milli) u.idle_lendable |= gpu_bit(g);
            if (gpu[g].firm == whole_gpu_milli) u.idle_firm |= gpu_bit(g);
        });
    if (const auto memory = sign * t.gpu_memory_mib[i]; memory != 0)
        for_each_gpu(gpus, [&](int g) { gpu_memory_[slot(node, g)] -= memory; });
    count_groups(task, node, sign);
}

GPUSCHED_EXPORT void Cluster::use_extras(const Extras& extras, NodeId node, GpuMask devices, int sign) {
    GPUSCHED_ASSERT(gpusched::gpu_count(devices) == extras.device_count);
    auto* const left = resources_.data() + index(node) * inventory_->resource_names.size();
    for (const auto& [resource, amount] : extras.resources) left[resource] -= sign * amount;
    for_each_gpu(devices, [&](int device) {
        // A count, because a caller may place two copies on one device before it checks whether they fit.
        auto& holders =
            gpu_[inventory_->nodes.first_gpu[index(node)] + static_cast<std::size_t>(device)].lendable;
        holders += sign;
        const bool free = holders == 0 && (inventory_->nodes.failed_gpus[index(node)] & gpu_bit(device)) == 0;
        auto& here = devices_[index(node)];
        here = free ? here | gpu_bit(device) : here & ~gpu_bit(device);
    });
}

GPUSCHED_EXPORT void Cluster::link(TaskId task, NodeId node, TaskId previous) {
    auto& p = place_[index(task)];
    p.node = node;
    p.previous = previous;
    auto& slot = previous == none<TaskId> ? usage_[index(node)].first_task : place_[index(previous)].next;
    p.next = slot;
    slot = task;
    if (p.next != none<TaskId>) place_[index(p.next)].previous = task;
    usage_[index(node)].occupants += inventory_->tasks.is(TaskTrait::daemon, task) ? 0u : 1u;
}

GPUSCHED_EXPORT void Cluster::unlink(TaskId task) {
    auto& p = place_[index(task)];
    (p.previous == none<TaskId> ? usage_[index(p.node)].first_task : place_[index(p.previous)].next) = p.next;
    if (p.next != none<TaskId>) place_[index(p.next)].previous = p.previous;
    usage_[index(p.node)].occupants -= inventory_->tasks.is(TaskTrait::daemon, task) ? 0u : 1u;
    p = {};
}

GPUSCHED_EXPORT void Cluster::place(TaskId task, NodeId node, GpuMask gpus, TaskId previous) {
    if (const auto old = node_of(task); old != none<NodeId>) {
        use(task, old, gpus_of(task), -1);
        unlink(task);
    }
    if (node == none<NodeId>) return;
    use(task, node, gpus, +1);
    link(task, node, previous);
    place_[index(task)].gpus = gpus;
}

GPUSCHED_EXPORT void Cluster::assign(TaskId task, NodeId node, GpuMask gpus) {
    GPUSCHED_ASSERT(index(task) < place_.size());
    GPUSCHED_ASSERT(node == none<NodeId> || index(node) < usage_.size());
    const auto& p = place_[index(task)];
    log_.push_back({p.gpus, task, p.node, p.previous, Change::Kind::assign});
    place(task, node, gpus, none<TaskId>);
}

GPUSCHED_EXPORT void Cluster::reserve(TaskId task, NodeId node, GpuMask gpus) {
    log_.push_back({gpus, task, node, none<TaskId>, Change::Kind::reserve});
    use(task, node, gpus, +1);
}

GPUSCHED_EXPORT void Cluster::unreserve(TaskId task, NodeId node, GpuMask gpus) {
    log_.push_back({gpus, task, node, none<TaskId>, Change::Kind::unreserve});
    use(task, node, gpus, -1);
}

GPUSCHED_EXPORT void Cluster::undo() {
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

GPUSCHED_EXPORT void Cluster::commit() {
    if (events_) publish_open_changes();
    std::vector<Reservation> released;
    for (const auto& change : log_)
        if (change.kind != Change::Kind::assign)
            (change.kind == Change::Kind::reserve ? reservations_ : released)
                .push_back({change.task, change.node, change.gpus});
    if (!released.empty()) {
        // Sorted, because a wave of moves releases one reservation per move.
        std::sort(reservations_.begin(), reservations_.end());
        std::sort(released.begin(), released.end());
        std::vector<Reservation> held;
        std::set_difference(reservations_.begin(), reservations_.end(), released.begin(), released.end(),
                            std::back_inserter(held));
        GPUSCHED_ASSERT(held.size() + released.size() == reservations_.size());
        reservations_ = std::move(held);
    }
    log_.clear();
}

GPUSCHED_EXPORT bool Cluster::same_placement(const Cluster& other) const noexcept {
    return inventory_ == other.inventory_ &&
           std::equal(place_.begin(), place_.end(), other.place_.begin(), other.place_.end(),
                      [](const Place& a, const Place& b) {
                          return a.node == b.node && GpuMask{a.gpus} == GpuMask{b.gpus};
                      });
}

}  // namespace gpusched

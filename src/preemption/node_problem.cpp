// SPDX-License-Identifier: Apache-2.0
// Reads a node for one preemptor, and evaluates sets of its potential victims.
#include "preemption/node_problem.hpp"

#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/core/order.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::preemption::detail {

template <class Set>
bool NodeProblem<Set>::read(const Cluster& cluster, const Request& request, const CostFunction& cost,
                            NodeId node, const GangTable* gangs) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto& n = inv.nodes;
    const auto at = index(node);
    cluster_ = &cluster;
    request_ = &request;
    node_ = node;
    count_ = gang_count_ = budget_count_ = 0;
    table_of_gangs_ = gangs;
    has_low_ = false;
    const int gpus_of_node = cluster.gpu_count(node);
    hardware_ = n.hardware[at] == NodeTable::no_hardware ? nullptr : &inv.hardware[n.hardware[at]];
    table_ = hardware_ != nullptr && gpus_of_node <= 8 && request.table != nullptr
                 ? (*request.table)[n.hardware[at]].data()
                 : nullptr;
    cpu_lendable_ = cpu_firm_ = n.cpu_milli[at];
    memory_ = n.memory_mib[at];
    const auto devices = cluster.devices(node);
    extras_ = request.extras == 0 ? nullptr : &inv.extras[request.extras];
    if (extras_ != nullptr) {
        devices_ = devices & ~n.failed_gpus[at];
        resources_.clear();
        for (const auto& one : extras_->resources)
            resources_.push_back(inv.node_resources[at * inv.resource_names.size() + one.resource]);
    }
    GpuMask taken = 0, held = 0, shared = 0;  // GPUs of tasks that stay, of victims, of several victims
    const auto memory_of_a_gpu = n.gpu_memory_mib[at] < 0 ? INT64_MAX / 2 : n.gpu_memory_mib[at];
    for (int g = 0; g < gpus_of_node; ++g) {
        clear(holders_[g]);
        lendable_[g] = firm_[g] = whole_gpu_milli;
        gpu_memory_[g] = memory_of_a_gpu;
    }
    for (const auto task : cluster.tasks_on(node)) {
        const auto i = index(task);
        const bool consumes = !t.is(TaskTrait::lends, task);
        const bool claims = !consumes || !t.is(TaskTrait::borrows, task);
        const auto cpu_milli = t.cpu_milli[i], memory_mib = t.memory_mib[i],
                   gpu_memory_mib = t.gpu_memory_mib[i];
        const std::int32_t share_milli = t.gpu_share_milli[i];
        const auto gpus = cluster.gpus_of(task) & ~devices;
        if (extras_ != nullptr) {
            devices_ &= ~cluster.gpus_of(task);
            for (const auto& [resource, amount] : inv.extras[t.extras[i]].resources)
                for (std::size_t r = 0; r < resources_.size(); ++r)
                    if (extras_->resources[r].resource == resource) resources_[r] -= amount;
        }
        if (consumes) cpu_lendable_ -= cpu_milli;
        if (claims) cpu_firm_ -= cpu_milli;
        memory_ -= memory_mib;
        const bool victim = is_potential_victim(cluster, request, task);
        if constexpr (std::is_same_v<Set, VictimSet>)
            if (victim && count_ == most_victims) return false;
        for_each_gpu(gpus, [&](int g) {
            if (consumes) lendable_[g] -= share_milli;
            if (claims) firm_[g] -= share_milli;
            gpu_memory_[g] -= gpu_memory_mib;
            if (victim) insert(holders_[g], count_);
        });
        if (!victim) {
            if (consumes || !request.borrows) taken |= gpus;
            continue;
        }
        shared |= held & gpus;
        held |= gpus;
        reserve_entries(victims_, count_ + 1);
        auto& v = victims_[count_++];
        v = {task,
             gpus,
             claims,
             -1,
             share_milli,
             cpu_milli,
             memory_mib,
             gpus == 0 ? 0 : gpu_memory_mib,
             t.priority[i],
             cost_of(cluster, task, request.now, cost),
             cluster.gpus_of(task) & devices};
        has_low_ = has_low_ || v.priority < 1;
    }
    const auto healthy = cluster.healthy_gpus(node);
    usable_ = healthy;
    if (!request.fraction && request.gpus > 0)
        for_each_gpu(healthy, [&](int g) {
            // Without all victims a GPU can still lack memory, because Standby tasks keep theirs.
            auto memory = gpu_memory_[g];
            for_each_victim(holders_[g], [&](int i) { memory += victim(i).gpu_memory_mib; });
            if (memory < request.gpu_memory_mib) usable_ = static_cast<GpuMask>(usable_ & ~gpu_bit(g));
        });
    idle_ = static_cast<GpuMask>(usable_ & ~taken & ~held);
    contested_ = static_cast<GpuMask>(usable_ & ~taken & held);
    enough_without_ = memory_ >= request.memory_mib && cpu_lendable_ >= request.cpu_milli &&
                      (request.borrows || cpu_firm_ >= request.cpu_milli) &&
                      (extras_ == nullptr || extras_obstacle(Set{}) == Obstacle::none);
    only_gpus_ = !request.fraction && !request.cpu_local && !request.grouped && (shared & contested_) == 0;
    if (request.grouped && scratch_of_ != &cluster) {
        scratch_ = std::make_unique<Cluster>(cluster);
        scratch_->commit();
        scratch_of_ = &cluster;
    }
    if (count_ > 0 && ((gangs != nullptr && gangs->any()) || !t.budgets.empty())) bind(cost);
    return true;
}

/// The distinct cores that a task lists; absent = none.
static const std::optional<std::vector<int>>& listed_cores(const Cluster& cluster, TaskId task) {
    const auto& inv = cluster.inventory();
    return inv.task_affinities[inv.tasks.affinities[index(task)]].cores;
}

/// The first core of a NUMA node, and the core after its last.
static std::pair<int, int> cores_of(const HardwareMasks& hardware, std::size_t numa) {
    const auto& nodes = hardware.description.numa_nodes;
    int first = 0;
    for (std::size_t n = 0; n < numa; ++n) first += nodes[n].cores;
    return {first, first + nodes[numa].cores};
}

/// The use of a NUMA node's cores by one task, in thousandths: its listed cores there, or else an even share
/// over the NUMA nodes of its GPUs (over all without GPUs). The first of them get the remainder.
static std::int64_t cores_used(const Cluster& cluster, const HardwareMasks& hardware, TaskId task,
                               GpuMask gpus, std::size_t numa) {
    const auto& inv = cluster.inventory();
    const auto& nodes = hardware.description.numa_nodes;
    if (const auto& listed = listed_cores(cluster, task)) {
        const auto here = cores_of(hardware, numa);
        return 1000 * std::count_if(listed->begin(), listed->end(),
                                    [&](int core) { return core >= here.first && core < here.second; });
    }
    const auto shares = [&](std::size_t n) { return gpus == 0 || (nodes[n].gpus & gpus) != 0; };
    if (!shares(numa)) return 0;
    std::int64_t among = 0, before = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        if (!shares(n)) continue;
        ++among;
        before += n < numa ? 1 : 0;
    }
    const auto cpu = inv.tasks.cpu_milli[index(task)];
    return cpu / among + (before < cpu % among ? 1 : 0);
}

/// The cores of a NUMA node that the remaining tasks keep from a preemptor, in thousandths.
///
/// If the preemptor may not borrow, a core that is both lent and borrowed counts once. Listed cores are
/// compared by number; of the others, as many as possible are assumed to be both. Fewer tasks never
/// keep more cores.
/// @param stays returns whether a task on the node remains
template <class Stays>
static std::int64_t cores_kept(const Cluster& cluster, const HardwareMasks& hardware, NodeId node,
                               std::size_t numa, bool may_borrow, Stays&& stays) {
    const auto& standby = cluster.inventory().tasks.standby;
    std::int64_t firm = 0, lent = 0, borrowed = 0;  // in neither group; of lenders; of borrowers
    std::int64_t lent_by_list = 0, borrowed_by_list = 0, both_by_list = 0;
    for (const auto task : cluster.tasks_on(node)) {
        const bool lends = standby[index(task)] != 0;
        if ((lends && may_borrow) || !stays(task)) continue;
        const auto amount =
            cores_used(cluster, hardware, task, cluster.gpus_of(task) & ~cluster.devices(node), numa);
        const bool borrows = !lends && cluster.may_borrow(task);
        (lends ? lent : borrows ? borrowed : firm) += amount;
        if (listed_cores(cluster, task) && lends) lent_by_list += amount;
        if (listed_cores(cluster, task) && borrows) borrowed_by_list += amount;
    }
    if (lent_by_list == 0 || borrowed_by_list == 0)
        return firm + std::max({lent, borrowed, lent_by_list + borrowed_by_list});
    const auto [first, end] = cores_of(hardware, numa);
    for (int core = first; core < end; ++core) {
        std::int64_t lenders = 0, borrowers = 0;
        for (const auto task : cluster.tasks_on(node)) {
            const auto& listed = listed_cores(cluster, task);
            const bool lends = standby[index(task)] != 0;
            if (!listed || !(lends || cluster.may_borrow(task)) || !stays(task)) continue;
            if (std::find(listed->begin(), listed->end(), core) != listed->end())
                ++(lends ? lenders : borrowers);
        }
        both_by_list += 1000 * std::min(lenders, borrowers);
    }
    return firm + std::max({lent, borrowed, lent_by_list + borrowed_by_list - both_by_list});
}

template <class Set>
auto NodeProblem<Set>::free_on_node(Argument leaving) const -> Free {
    Free free{cpu_lendable_, cpu_firm_, memory_};
    for_each_victim(leaving, [&](int i) {
        const auto& v = victim(i);
        free.memory_mib += v.memory_mib;
        free.lendable_milli += v.cpu_milli;
        if (v.claims) free.firm_milli += v.cpu_milli;
    });
    return free;
}

template <class Set>
auto NodeProblem<Set>::free_on_gpu(int g, Argument leaving) const -> Free {
    Free free{lendable_[g], firm_[g], gpu_memory_[g]};
    for_each_victim(holders_[g] & leaving, [&](int i) {
        const auto& v = victim(i);
        free.memory_mib += v.gpu_memory_mib;
        free.lendable_milli += v.share_milli;
        if (v.claims) free.firm_milli += v.share_milli;
    });
    return free;
}

template <class Set>
bool NodeProblem<Set>::enough_cpu_and_memory(Argument leaving) const {
    if (enough_without_) return true;
    const auto [lendable, firm, memory] = free_on_node(leaving);
    return memory >= request_->memory_mib && lendable >= request_->cpu_milli &&
           (request_->borrows || firm >= request_->cpu_milli) &&
           (extras_ == nullptr || extras_obstacle(leaving) == Obstacle::none);
}

template <class Set>
GpuMask NodeProblem<Set>::free_devices(Argument leaving) const {
    auto free = devices_;
    for_each_victim(leaving, [&](int i) { free |= victim(i).devices; });
    return free & ~cluster_->inventory().nodes.failed_gpus[index(node_)];
}

template <class Set>
std::optional<Extras::Amount> NodeProblem<Set>::missing_resource(Argument leaving) const {
    const auto& inv = cluster_->inventory();
    for (std::size_t r = 0; r < resources_.size(); ++r) {
        auto free = resources_[r];
        for_each_victim(leaving, [&](int i) {
            for (const auto& [resource, amount] :
                 inv.extras[inv.tasks.extras[index(victim(i).task)]].resources)
                if (resource == extras_->resources[r].resource) free += amount;
        });
        const auto& [resource, amount] = extras_->resources[r];
        if (free < amount) return Extras::Amount{resource, amount - free};
    }
    return std::nullopt;
}

template <class Set>
Obstacle NodeProblem<Set>::extras_obstacle(Argument leaving) const {
    if (missing_resource(leaving)) return Obstacle::resource;
    const auto& inv = cluster_->inventory();
    if (extras_->device_count == 0) return Obstacle::none;
    return gpusched::detail::choose_devices(inv, *extras_, node_, free_devices(leaving)) == 0
               ? Obstacle::device
               : Obstacle::none;
}

template <class Set>
GpuMask NodeProblem<Set>::free_gpus(Argument leaving) const {
    if (request_->gpus == 0) return 0;
    if (!request_->fraction) {
        GpuMask free = idle_;
        for_each_gpu(contested_, [&](int g) {
            if (within(holders_[g], leaving)) free |= gpu_bit(g);
        });
        return free;
    }
    GpuMask free = 0;
    for_each_gpu(usable_, [&](int g) {
        const auto [lendable, firm, memory] = free_on_gpu(g, leaving);
        if (lendable >= request_->share_milli && (request_->borrows || firm >= request_->share_milli) &&
            memory >= request_->gpu_memory_mib)
            free |= gpu_bit(g);
    });
    return free;
}

template <class Set>
std::uint8_t NodeProblem<Set>::locality(Argument leaving) const {
    if (!enough_cpu_and_memory(leaving)) return infeasible;
    const auto free = free_gpus(leaving);
    const auto found = request_->cpu_local ? local_cores(leaving, free, nullptr)
                       : table_ != nullptr ? table_[free]
                                           : request_->locality(hardware_, free);
    if (found == infeasible || !request_->grouped) return found;
    return group_obstacle(leaving) == Obstacle::none ? found : infeasible;
}

// The best locality with GPUs near enough free cores. Writes such GPUs to `chosen` unless it is nullptr.
template <class Set>
std::uint8_t NodeProblem<Set>::local_cores(Argument leaving, GpuMask free, GpuMask* chosen) const {
    if (hardware_ == nullptr) return infeasible;
    const auto& nodes = hardware_->description.numa_nodes;
    const auto requested = request_->gpus;
    struct Numa {
        int gpus;
        std::int64_t cores;
        GpuMask free;
        int socket;
    };
    std::array<Numa, most_gpu_localities> numa{};  // NUMA nodes with free GPUs
    std::size_t size = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        const auto here = static_cast<GpuMask>(nodes[n].gpus & free);
        if (here == 0) continue;
        const auto kept = cores_kept(*cluster_, *hardware_, node_, n, request_->borrows, [&](TaskId task) {
            bool stays = true;
            for_each_victim(leaving, [&](int i) { stays = stays && victim(i).task != task; });
            return stays;
        });
        const auto cores = std::int64_t{nodes[n].cores} * 1000 - kept;
        numa[size++] = {gpu_count(here), std::max<std::int64_t>(cores, 0), here, nodes[n].socket};
    }
    std::uint8_t best = infeasible;
    int fewest = max_gpus_per_node + 1;
    for (std::uint32_t set = 1; set < (1u << size); ++set) {
        const int used = bits_of(set);
        if (used > requested) continue;
        int gpus = 0, sockets = 0;
        std::int64_t cores = 0;
        GpuMask here = 0;
        int socket = -1;
        for (auto rest = set; rest != 0; rest &= rest - 1) {
            const auto& one = numa[std::countr_zero(rest)];
            gpus += one.gpus;
            cores += one.cores;
            here |= one.free;
            if (socket != one.socket) ++sockets, socket = one.socket;
        }
        if (gpus < requested || cores < request_->cpu_milli) continue;
        const std::uint8_t found = used == 1 ? 0 : sockets == 1 ? 1 : 2;
        if (!request_->admits(found) || found > best || (found == best && used >= fewest)) continue;
        best = found;
        fewest = used;
        if (chosen == nullptr) continue;
        // One GPU of each NUMA node, then the lowest numbers.
        *chosen = 0;
        for (auto rest = set; rest != 0; rest &= rest - 1)
            *chosen |= lowest_gpus(numa[std::countr_zero(rest)].free, 1);
        *chosen |= lowest_gpus(static_cast<GpuMask>(here & ~*chosen), requested - used);
    }
    return best;
}

template <class Set>
Obstacle NodeProblem<Set>::group_obstacle(Argument leaving) const {
    const auto before = scratch_->checkpoint();
    for_each_victim(leaving, [&](int i) { scratch_->remove(victim(i).task); });
    for_each_elsewhere(leaving, [&](TaskId task) { scratch_->remove(task); });
    const auto found = find_group_obstacle(*scratch_, request_->task, node_);
    scratch_->rollback(before);
    return found;
}

template <class Set>
Sums NodeProblem<Set>::sums(Argument set) const {
    // 64 costs cannot overflow; larger sums saturate.
    const auto add = [](std::int64_t a, std::int64_t b) {
        if constexpr (std::is_same_v<Set, VictimSet>) return a + b;
        return std::min(a, INT64_MAX - b) + b;
    };
    Sums s;
    for_each_victim(set, [&](int i) {
        const auto& v = victim(i);
        ++s.count;
        s.priority += v.priority;
        s.max_priority = std::max(s.max_priority, v.priority);
        s.cost = add(s.cost, v.cost);
    });
    if (has_low_)
        for_each_victim(set, [&](int i) { s.weight.add(PriorityWeight(victim(i).priority)); });
    else
        s.weight.whole = s.priority;
    if (!is_bound()) return s;
    for (int g = 0; g < gang_count_; ++g) {
        if (!breaks(set, g)) continue;
        const auto& others = gangs_[g].elsewhere;
        s.count += others.count;
        s.priority += others.priority;
        s.max_priority = std::max(s.max_priority, others.max_priority);
        s.weight.add(others.weight);
        s.cost = add(s.cost, others.cost);
    }
    s.over_budget = over_budget(set);
    return s;
}

template <class Set>
std::int64_t NodeProblem<Set>::first_cost(int i) const noexcept {
    const auto& v = victim(i);
    if (v.gang < 0) return v.cost;
    const auto& gang = gangs_[v.gang];
    bool may_leave = true;
    for_each_surplus(gang, [&](const Set& members, std::int64_t surplus) {
        may_leave = may_leave && (surplus > 0 || !contains(members, i));
    });
    return may_leave ? v.cost : gang.cost;
}

template <class Set>
GpuMask NodeProblem<Set>::choose_gpus(Argument leaving) const {
    const auto whole = choose_whole_gpus(leaving);
    if (extras_ == nullptr) return whole;
    return whole |
           gpusched::detail::choose_devices(cluster_->inventory(), *extras_, node_, free_devices(leaving));
}

template <class Set>
GpuMask NodeProblem<Set>::choose_whole_gpus(Argument leaving) const {
    const auto free = free_gpus(leaving);
    const int requested = request_->gpus;
    if (requested == 0) return 0;
    if (request_->cpu_local) {
        GpuMask chosen = 0;
        (void)local_cores(leaving, free, &chosen);
        return chosen;
    }
    if (request_->fraction) {  // the GPU with the least left
        GpuMask best = 0;
        std::int64_t least = INT64_MAX;
        for_each_gpu(free, [&](int g) {
            const auto free_here = free_on_gpu(g, leaving);
            const auto left = request_->borrows ? free_here.lendable_milli
                                                : std::min(free_here.lendable_milli, free_here.firm_milli);
            if (left < least) best = gpu_bit(g), least = left;
        });
        return best;
    }
    const auto found = request_->locality(hardware_, free);
    if (hardware_ == nullptr || requested < 2) return lowest_gpus(free, requested);
    // The NUMA node or socket with the fewest free GPUs that suffice; then the fewest NUMA nodes.
    GpuMask place = free;
    if (found < 2)
        for (const auto mask : found == 0 ? hardware_->numa : hardware_->socket) {
            const auto here = static_cast<GpuMask>(mask & free);
            if (gpu_count(here) >= requested && (place == free || gpu_count(here) < gpu_count(place)))
                place = here;
        }
    GpuMask chosen = 0;
    while (gpu_count(chosen) < requested) {
        GpuMask most = 0;
        for (const auto mask : hardware_->numa) {
            const auto here = static_cast<GpuMask>(mask & place & ~chosen);
            if (gpu_count(here) > gpu_count(most)) most = here;
        }
        if (most == 0) most = static_cast<GpuMask>(place & ~chosen);  // GPUs without a NUMA node
        chosen |= lowest_gpus(most, std::min(gpu_count(most), requested - gpu_count(chosen)));
    }
    return chosen;
}

template <class Set>
bool NodeProblem<Set>::names_before(Argument a, Argument b) const {
    // Compares the first names among the tasks that only one of the sets contains.
    const auto visit = [&](Argument mine, Argument theirs, const auto& see) {
        for_each_victim(minus(mine, theirs), [&](int i) { see(victim(i).task); });
        for (int g = 0; g < gang_count_; ++g)
            if (breaks(mine, g) && !breaks(theirs, g))
                table_of_gangs_->for_each(gangs_[g].job, [&](TaskId task) {
                    if (cluster_->node_of(task) != node_) see(task);
                });
    };
    if (const auto* const rank = request_->name_rank; rank != nullptr) {
        bool all_ranked = true;
        const auto lowest = [&](Argument mine, Argument theirs) {
            auto least = UINT32_MAX;
            visit(mine, theirs, [&](TaskId task) {
                all_ranked = all_ranked && rank[index(task)] != UINT32_MAX;
                least = std::min(least, rank[index(task)]);
            });
            return least;
        };
        const auto mine = lowest(a, b), theirs = lowest(b, a);
        if (all_ranked) return mine < theirs;
    }
    const auto first = [&](Argument mine, Argument theirs) {
        const std::string* name = nullptr;
        visit(mine, theirs, [&](TaskId task) {
            const auto& other = cluster_->name(task);
            if (name == nullptr || comes_before(other, *name)) name = &other;
        });
        return name;
    };
    const auto* const mine = first(a, b);
    const auto* const theirs = first(b, a);
    if (mine == nullptr || theirs == nullptr) return theirs != nullptr;
    return comes_before(*mine, *theirs);
}

template <class Set>
bool NodeProblem<Set>::alike(int a, int b) const noexcept {
    const auto& v = victim(a);
    const auto& w = victim(b);
    if (v.priority != w.priority || v.share_milli != w.share_milli || v.cpu_milli != w.cpu_milli ||
        v.memory_mib != w.memory_mib || v.gpu_memory_mib != w.gpu_memory_mib || v.claims != w.claims ||
        v.gang >= 0 || w.gang >= 0 || request_->grouped)
        return false;
    if (budget_count_ > 0) {
        const auto& lists = cluster_->inventory().tasks.budgets;
        if (lists[index(v.task)] != lists[index(w.task)]) return false;
    }
    if (extras_ != nullptr) {
        const auto& extras = cluster_->inventory().tasks.extras;
        if (extras[index(v.task)] != extras[index(w.task)] || v.devices != w.devices) return false;
    }
    if (request_->cpu_local) {
        const auto& inv = cluster_->inventory();
        const auto lists_cores = [&](const Victim& x) {
            return inv.task_affinities[inv.tasks.affinities[index(x.task)]].cores.has_value();
        };
        if (lists_cores(v) || lists_cores(w)) return false;
    }
    if (v.gpus == w.gpus) return true;
    if (request_->fraction || gpu_count(v.gpus) != gpu_count(w.gpus)) return false;
    // Different GPUs are interchangeable if no other victim uses them and each NUMA node and socket
    // holds equally many.
    const auto alone = [&](int i) {
        bool yes = true;
        for_each_gpu(victim(i).gpus, [&](int g) { yes = yes && count_of(holders_[g]) == 1; });
        return yes && (victim(i).gpus & ~contested_) == 0;
    };
    if (!alone(a) || !alone(b)) return false;
    if (hardware_ == nullptr) return !request_->cpu_local;
    // NUMA nodes and sockets too small for the preemptor do not matter, unless their cores do.
    const auto possible = static_cast<GpuMask>(idle_ | contested_);
    for (const auto* const level : {&hardware_->numa, &hardware_->socket})
        for (const auto mask : *level)
            if ((request_->cpu_local || gpu_count(mask & possible) >= request_->gpus) &&
                gpu_count(mask & v.gpus) != gpu_count(mask & w.gpus))
                return false;
    return true;
}

template <class Set>
bool NodeProblem<Set>::helps(int i) const noexcept {
    const auto& r = *request_;
    const auto& v = victim(i);
    if (r.cpu_local || r.grouped) return true;
    if (r.gpus > 0 && (v.gpus & (r.fraction ? usable_ : contested_)) != 0) return true;
    if (memory_ < r.memory_mib && v.memory_mib > 0) return true;
    if (extras_ != nullptr && cluster_->inventory().tasks.extras[index(v.task)] != 0 &&
        extras_obstacle(Set{}) != Obstacle::none)
        return true;
    if (v.cpu_milli == 0) return false;
    return cpu_lendable_ < r.cpu_milli || (!r.borrows && v.claims && cpu_firm_ < r.cpu_milli);
}

template <class Set>
Shortage NodeProblem<Set>::shortage(Argument leaving) const {
    Shortage missing;
    const auto [lendable, firm, memory] = free_on_node(leaving);
    const auto cpu = request_->borrows ? lendable : std::min(lendable, firm);
    missing.cpu_milli = std::max<std::int64_t>(0, request_->cpu_milli - cpu);
    missing.memory_mib = std::max<std::int64_t>(0, request_->memory_mib - memory);
    const auto free = free_gpus(leaving);
    missing.gpus = std::max(0, request_->gpus - gpu_count(free));
    if (extras_ != nullptr) {
        missing.extras = extras_obstacle(leaving);
        missing.resource = missing_resource(leaving);
    }
    if (missing.gpus == 0 && missing.cpu_milli == 0 && missing.memory_mib == 0 &&
        missing.extras == Obstacle::none) {
        missing.locality = (request_->cpu_local ? local_cores(leaving, free, nullptr)
                                                : request_->locality(hardware_, free)) == infeasible;
        if (!missing.locality && request_->grouped) missing.group = group_obstacle(leaving);
    }
    return missing;
}

template <class Set>
void NodeProblem<Set>::bind(const CostFunction& cost) {
    if (table_of_gangs_ != nullptr && table_of_gangs_->any()) bind_gangs(cost);
    if (!cluster_->inventory().tasks.budgets.empty()) bind_budgets();
}

template <class Set>
void NodeProblem<Set>::bind_gangs(const CostFunction& cost) {
    const auto& inv = cluster_->inventory();
    const auto& t = inv.tasks;
    const auto& table = *table_of_gangs_;
    for (int i = 0; i < count_; ++i) {
        auto& v = victims_[i];
        const auto job = t.job[index(v.task)];
        if (job == none<JobId> || !table.is_gang(job)) continue;
        const auto begin = gangs_.begin(), end = begin + gang_count_;
        const auto known = std::find_if(begin, end, [&](const auto& gang) { return gang.job == job; });
        v.gang = static_cast<std::int16_t>(known - begin);
        if (known == end) {
            if (gangs_.size() == static_cast<std::size_t>(gang_count_)) gangs_.emplace_back();
            auto& added = gangs_[gang_count_++];
            added.job = job;
            clear(added.members);
        }
        insert(gangs_[v.gang].members, i);
    }
    // Gangs with enough surplus for all their potential victims on the node do not restrict sets.
    int kept = 0;
    subgroups_.clear();
    for (int g = 0; g < gang_count_; ++g) {
        auto& gang = gangs_[g];
        gang.surplus = table.surplus(inv, gang.job);
        find_tight_subgroups(gang);
        const bool tight = exceeds(gang.members, gang);
        for_each_victim(gang.members,
                        [&](int i) { victims_[i].gang = static_cast<std::int16_t>(tight ? kept : -1); });
        if (tight) std::swap(gang, gangs_[kept++]);
    }
    gang_count_ = kept;
    for (int g = 0; g < gang_count_; ++g) {
        auto& gang = gangs_[g];
        gang.elsewhere = {};
        gang.cost = 0;
        gang.breakable = !request_->never_breaks(gang.job);
        const auto lose = [](std::int64_t& sum, std::int64_t more) {
            sum = std::min(sum, largest_cost - more) + more;
        };
        for_each_victim(gang.members, [&](int i) { lose(gang.cost, victim(i).cost); });
        table.for_each(gang.job, [&](TaskId task) {
            if (!gang.breakable) return;
            if (!is_potential_victim(*cluster_, *request_, task)) {
                gang.breakable = false;
                return;
            }
            if (cluster_->node_of(task) == node_) return;
            // If the preemptor spreads over tasks elsewhere, evicting them could make its node infeasible.
            if (request_->grouped && shares_selection(*cluster_, request_->task, task, GroupKind::spread)) {
                gang.breakable = false;
                return;
            }
            const auto lost = cost_of(*cluster_, task, request_->now, cost);
            auto& sums = gang.elsewhere;
            ++sums.count;
            sums.priority += t.priority[index(task)];
            sums.max_priority = std::max(sums.max_priority, t.priority[index(task)]);
            sums.weight.add(PriorityWeight(t.priority[index(task)]));
            lose(sums.cost, lost);
            lose(gang.cost, lost);
        });
    }
}

template <class Set>
void NodeProblem<Set>::find_tight_subgroups(Gang<Set>& gang) {
    const auto& inv = cluster_->inventory();
    const auto first = subgroups_.size();
    for (const auto subgroup : inv.subgroups_of(gang.job)) {
        TightSubgroup<Set> one{subgroup, {}, table_of_gangs_->surplus(inv, subgroup)};
        for_each_victim(gang.members, [&](int i) {
            if (inv.subgroup_of(victim(i).task) == subgroup) insert(one.members, i);
        });
        if (count_of(one.members) > one.surplus) subgroups_.push_back(std::move(one));
    }
    gang.first_subgroup = static_cast<int>(first);
    gang.end_subgroup = static_cast<int>(subgroups_.size());
}

template <class Set>
void NodeProblem<Set>::bind_budgets() {
    const auto& inv = cluster_->inventory();
    const auto entry = [&](std::uint32_t budget) -> TightBudget<Set>& {
        for (int b = 0; b < budget_count_; ++b)
            if (budgets_[b].budget == budget) return budgets_[b];
        if (budgets_.size() == static_cast<std::size_t>(budget_count_)) budgets_.emplace_back();
        auto& added = budgets_[budget_count_++];
        added.budget = budget;
        clear(added.members);
        added.allowed = request_->allowed_down(inv, budget);
        added.elsewhere.clear();
        return added;
    };
    for (int i = 0; i < count_; ++i)
        for (const auto budget : inv.budgets_of(victim(i).task)) insert(entry(budget).members, i);
    for (int g = 0; g < gang_count_; ++g) {
        if (!gangs_[g].breakable) continue;
        table_of_gangs_->for_each(gangs_[g].job, [&](TaskId task) {
            if (cluster_->node_of(task) == node_) return;
            for (const auto budget : inv.budgets_of(task)) {
                auto& others = entry(budget).elsewhere;
                if (others.empty() || others.back().first != g) others.emplace_back(g, 0);
                ++others.back().second;
            }
        });
    }
    int kept = 0;
    for (int b = 0; b < budget_count_; ++b) {
        auto& one = budgets_[b];
        std::int64_t all = count_of(one.members);
        for (const auto& [gang, members] : one.elsewhere) all += members;
        if (all > one.allowed) std::swap(one, budgets_[kept++]);
    }
    budget_count_ = kept;
}

template <class Set>
Set NodeProblem<Set>::close(Argument set) const {
    auto all = set;
    for (int g = 0; g < gang_count_; ++g)
        if (breaks(set, g)) all = all | gangs_[g].members;
    return all;
}

template <class Set>
bool NodeProblem<Set>::breaks_only_breakable(Argument set) const {
    for (int g = 0; g < gang_count_; ++g) {
        const auto& gang = gangs_[g];
        if (!gang.breakable && exceeds(set, gang)) return false;
    }
    return true;
}

template <class Set>
std::int64_t NodeProblem<Set>::over_budget(Argument set) const {
    std::int64_t over = 0;
    for_each_broken_budget(set, [&](std::uint32_t, std::int64_t more) { over += more; });
    return over;
}

template <class Set>
Set NodeProblem<Set>::beyond_budgets(const int* order, int count) const {
    Set beyond{};
    for (int b = 0; b < budget_count_; ++b) {
        const auto& one = budgets_[b];
        auto left = one.allowed;
        for (int i = 0; i < count; ++i)
            if (contains(one.members, order[i]) && --left < 0) insert(beyond, order[i]);
    }
    return beyond;
}

template <class Set>
Set NodeProblem<Set>::all_that_may(const int* order, int count) const {
    auto may = all();
    for (int g = 0; g < gang_count_; ++g) {
        const auto& gang = gangs_[g];
        if (gang.breakable) continue;
        for_each_surplus(gang, [&](const Set& members, std::int64_t surplus) {
            auto excess = count_of(may & members) - surplus;
            for (int i = 0; i < count && excess > 0; ++i)
                if (contains(Set(may & members), order[i])) may = minus(may, only<Set>(order[i])), --excess;
        });
    }
    return may;
}

template class NodeProblem<VictimSet>;
template class NodeProblem<ManyVictims>;

}  // namespace gpusched::preemption::detail

// SPDX-License-Identifier: Apache-2.0
#include "preemption/node_problem.hpp"
#include "preemption/cores.hpp"
#include "preemption/node_bind.hpp"
#include "preemption/node_read.hpp"

#include <gpusched/core/order.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::preemption::detail {

template <class Set>
bool NodeProblem<Set>::enough_cpu_and_memory(Argument leaving) const {
    if (enough_without_) return true;
    auto memory = memory_, lendable = cpu_lendable_, firm = cpu_firm_;
    for_each_victim(leaving, [&](int i) {
        const auto& v = victim(i);
        memory += v.memory_mib;
        lendable += v.cpu_milli;
        if (v.claims) firm += v.cpu_milli;
    });
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
            if (within(holders_[static_cast<std::size_t>(g)], leaving)) free |= gpu_bit(g);
        });
        return free;
    }
    GpuMask free = 0;
    for_each_gpu(usable_, [&](int g) {
        const auto k = static_cast<std::size_t>(g);
        std::int64_t lendable = lendable_[k], firm = firm_[k], memory = gpu_memory_[k];
        for_each_victim(holders_[k] & leaving, [&](int i) {
            const auto& v = victim(i);
            lendable += v.share_milli;
            if (v.claims) firm += v.share_milli;
            memory += v.gpu_memory_mib;
        });
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

// The best locality with GPUs whose NUMA nodes have enough free cores, and such GPUs.
template <class Set>
std::uint8_t NodeProblem<Set>::local_cores(Argument leaving, GpuMask free, GpuMask* chosen) const {
    if (hardware_ == nullptr) return infeasible;
    const auto& nodes = hardware_->description.numa_nodes;
    const auto wanted = request_->gpus;
    struct Numa {
        int gpus;
        std::int64_t cores;
        GpuMask free;
        int socket;
    };
    std::array<Numa, most_gpu_localities> numa{};  // only those with free GPUs: GPUs are on one each
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
        if (used > wanted) continue;
        int gpus = 0, sockets = 0;
        std::int64_t cores = 0;
        GpuMask here = 0;
        int socket = -1;
        for (auto rest = set; rest != 0; rest &= rest - 1) {
            const auto& one = numa[static_cast<std::size_t>(std::countr_zero(rest))];
            gpus += one.gpus;
            cores += one.cores;
            here |= one.free;
            if (socket != one.socket) ++sockets, socket = one.socket;
        }
        if (gpus < wanted || cores < request_->cpu_milli) continue;
        const std::uint8_t found = used == 1 ? 0 : sockets == 1 ? 1 : 2;
        if (!request_->admits(found) || found > best || (found == best && used >= fewest)) continue;
        best = found;
        fewest = used;
        if (chosen == nullptr) continue;
        // One GPU of each, then whatever is lowest.
        *chosen = 0;
        for (auto rest = set; rest != 0; rest &= rest - 1)
            *chosen |= lowest_gpus(numa[static_cast<std::size_t>(std::countr_zero(rest))].free, 1);
        *chosen |= lowest_gpus(static_cast<GpuMask>(here & ~*chosen), wanted - used);
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
    // The costs of 64 fit; beyond them sums stop at the largest number.
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
        const auto& others = gangs_[static_cast<std::size_t>(g)].elsewhere;
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
    const auto& gang = gangs_[static_cast<std::size_t>(v.gang)];
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
    const int wanted = request_->gpus;
    if (wanted == 0) return 0;
    if (request_->cpu_local) {
        GpuMask chosen = 0;
        (void)local_cores(leaving, free, &chosen);
        return chosen;
    }
    if (request_->fraction) {  // the tightest
        GpuMask best = 0;
        std::int64_t least = INT64_MAX;
        for_each_gpu(free, [&](int g) {
            const auto k = static_cast<std::size_t>(g);
            std::int64_t lendable = lendable_[k], firm = firm_[k];
            for_each_victim(holders_[k] & leaving, [&](int i) {
                lendable += victim(i).share_milli;
                if (victim(i).claims) firm += victim(i).share_milli;
            });
            const auto left = request_->borrows ? lendable : std::min(lendable, firm);
            if (left < least) best = gpu_bit(g), least = left;
        });
        return best;
    }
    const auto found = request_->locality(hardware_, free);
    if (hardware_ == nullptr || wanted < 2) return lowest_gpus(free, wanted);
    // The tightest place of that locality; in it, GPUs of as few NUMA nodes as possible.
    GpuMask place = free;
    if (found < 2)
        for (const auto mask : found == 0 ? hardware_->numa : hardware_->socket) {
            const auto here = static_cast<GpuMask>(mask & free);
            if (gpu_count(here) >= wanted && (place == free || gpu_count(here) < gpu_count(place)))
                place = here;
        }
    GpuMask chosen = 0;
    while (gpu_count(chosen) < wanted) {
        GpuMask most = 0;
        for (const auto mask : hardware_->numa) {
            const auto here = static_cast<GpuMask>(mask & place & ~chosen);
            if (gpu_count(here) > gpu_count(most)) most = here;
        }
        if (most == 0) most = static_cast<GpuMask>(place & ~chosen);  // GPUs near no NUMA node
        chosen |= lowest_gpus(most, std::min(gpu_count(most), wanted - gpu_count(chosen)));
    }
    return chosen;
}

template <class Set>
bool NodeProblem<Set>::names_before(Argument a, Argument b) const {
    // Of two different sets of one size, the one that has the first name of those that only one has comes first.
    const auto visit = [&](Argument mine, Argument theirs, const auto& see) {
        for_each_victim(minus(mine, theirs), [&](int i) { see(victim(i).task); });
        for (int g = 0; g < gang_count_; ++g)
            if (breaks(mine, g) && !breaks(theirs, g))
                table_of_gangs_->for_each(gangs_[static_cast<std::size_t>(g)].job, [&](TaskId task) {
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
    // Different GPUs are interchangeable where nobody else holds them and as many lie in each place.
    const auto alone = [&](int i) {
        bool yes = true;
        for_each_gpu(victim(i).gpus,
                     [&](int g) { yes = yes && count_of(holders_[static_cast<std::size_t>(g)]) == 1; });
        return yes && (victim(i).gpus & ~contested_) == 0;
    };
    if (!alone(a) || !alone(b)) return false;
    if (hardware_ == nullptr) return !request_->cpu_local;
    // Places too small for the preemptor tell nobody apart, unless their cores matter.
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
    auto memory = memory_, lendable = cpu_lendable_, firm = cpu_firm_;
    for_each_victim(leaving, [&](int i) {
        const auto& v = victim(i);
        memory += v.memory_mib;
        lendable += v.cpu_milli;
        if (v.claims) firm += v.cpu_milli;
    });
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

template class NodeProblem<VictimSet>;
template class NodeProblem<ManyVictims>;

}  // namespace gpusched::preemption::detail

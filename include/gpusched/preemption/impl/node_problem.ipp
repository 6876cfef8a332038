#pragma once

#include <gpusched/model/feasibility.hpp>
#include <gpusched/preemption/detail/cores.hpp>
#include <gpusched/preemption/detail/cost.hpp>
#include <gpusched/preemption/detail/node_problem.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace gpusched::preemption::detail {

GPUSCHED_INLINE void NodeProblem::read(const Cluster& cluster, const Request& request,
                                       const CostFunction& cost, NodeId node, const GangTable* gangs,
                                       GpuMask failed) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto& n = inv.nodes;
    const auto at = index(node);
    cluster_ = &cluster;
    request_ = &request;
    node_ = node;
    count_ = gang_count_ = 0;
    truncated_ = false;
    gpu_count_ = cluster.gpu_count(node);
    hardware_ = n.hardware[at] == NodeTable::no_hardware ? nullptr : &inv.hardware[n.hardware[at]];
    table_ = hardware_ != nullptr && gpu_count_ <= 8 && !request.table.empty()
                 ? request.table[n.hardware[at]].data()
                 : nullptr;
    const auto healthy = static_cast<GpuMask>(cluster.healthy_gpus(node) & ~failed);
    cpu_lendable_ = cpu_firm_ = n.cpu_milli[at];
    memory_ = n.memory_mib[at];
    GpuMask taken = 0, held = 0, shared = 0;  // by tasks that stay, by victims, by several victims
    for (int g = 0; g < gpu_count_; ++g) {
        const auto i = static_cast<std::size_t>(g);
        holders_[i] = 0;
        lendable_[i] = firm_[i] = whole_gpu_milli;
        gpu_memory_[i] = n.gpu_memory_mib[at] < 0 ? INT64_MAX / 2 : n.gpu_memory_mib[at];
    }
    for (const auto task : cluster.tasks_on(node)) {
        const auto i = index(task);
        const bool consumes = !t.standby[i];
        const bool claims = t.standby[i] || t.priority_class[i] != PriorityClass::lp;
        const auto gpus = cluster.gpus_of(task);
        if (consumes) cpu_lendable_ -= t.cpu_milli[i];
        if (claims) cpu_firm_ -= t.cpu_milli[i];
        memory_ -= t.memory_mib[i];
        const bool victim = is_potential_victim(cluster, request, task);
        if (victim && count_ == most_victims) truncated_ = true;
        const bool stays = !victim || count_ == most_victims;
        for_each_gpu(gpus, [&](int g) {
            const auto k = static_cast<std::size_t>(g);
            if (consumes) lendable_[k] -= t.gpu_share_milli[i];
            if (claims) firm_[k] -= t.gpu_share_milli[i];
            gpu_memory_[k] -= t.gpu_memory_mib[i];
            if (!stays) holders_[k] |= VictimSet{1} << count_;
        });
        if (stays) {
            if (consumes || !request.borrows) taken |= gpus;
            continue;
        }
        shared |= held & gpus;
        held |= gpus;
        auto& v = victims_[static_cast<std::size_t>(count_++)];
        v = {task,
             gpus,
             claims,
             -1,
             t.gpu_share_milli[i],
             t.cpu_milli[i],
             t.memory_mib[i],
             gpus == 0 ? 0 : t.gpu_memory_mib[i],
             t.priority[i],
             cost_of(cluster, task, request.now, cost)};
        const auto job = t.job[i];
        if (gangs == nullptr || job == none<JobId>) continue;
        const auto known = std::find_if(gangs_.begin(), gangs_.begin() + gang_count_,
                                        [&](const Gang& gang) { return gang.job == job; });
        if (gangs->of_job[index(job)].lost) {
            v.cost = 0;
            continue;
        }
        v.gang = static_cast<std::int16_t>(known - gangs_.begin());
        if (v.gang == gang_count_)
            gangs_[static_cast<std::size_t>(gang_count_++)] = gangs->of_job[index(job)];
    }
    usable_ = healthy;
    if (!request.fraction && request.gpus > 0)
        for_each_gpu(healthy, [&](int g) {
            // A GPU that is free of all victims may still lack memory, because Standby tasks keep theirs.
            auto memory = gpu_memory_[static_cast<std::size_t>(g)];
            for_each_victim(holders_[static_cast<std::size_t>(g)],
                            [&](int i) { memory += victim(i).gpu_memory_mib; });
            if (memory < request.gpu_memory_mib) usable_ = static_cast<GpuMask>(usable_ & ~gpu_bit(g));
        });
    idle_ = static_cast<GpuMask>(usable_ & ~taken & ~held);
    contested_ = static_cast<GpuMask>(usable_ & ~taken & held);
    enough_without_ = memory_ >= request.memory_mib && cpu_lendable_ >= request.cpu_milli &&
                      (request.borrows || cpu_firm_ >= request.cpu_milli);
    only_gpus_ = !request.fraction && !request.cpu_local && !request.grouped && (shared & contested_) == 0;
    if (request.grouped && scratch_of_ != &cluster) {
        scratch_ = std::make_unique<Cluster>(cluster);
        scratch_->forget_history();
        scratch_of_ = &cluster;
    }
}

GPUSCHED_INLINE bool NodeProblem::vacated_by(VictimSet leaving) const noexcept {
    return leaving != 0 && cluster_->inventory().tasks.daemon[index(request_->task)] != 0 &&
           cluster_->occupants(node_) == std::popcount(leaving);  // victims are never daemons
}

GPUSCHED_INLINE bool NodeProblem::enough_cpu_and_memory(VictimSet leaving) const noexcept {
    if (enough_without_) return true;
    auto memory = memory_, lendable = cpu_lendable_, firm = cpu_firm_;
    for_each_victim(leaving, [&](int i) {
        const auto& v = victim(i);
        memory += v.memory_mib;
        lendable += v.cpu_milli;
        if (v.claims) firm += v.cpu_milli;
    });
    return memory >= request_->memory_mib && lendable >= request_->cpu_milli &&
           (request_->borrows || firm >= request_->cpu_milli);
}

GPUSCHED_INLINE GpuMask NodeProblem::free_gpus(VictimSet leaving) const noexcept {
    if (request_->gpus == 0) return 0;
    if (!request_->fraction) {
        GpuMask free = idle_;
        for_each_gpu(contested_, [&](int g) {
            if ((holders_[static_cast<std::size_t>(g)] & ~leaving) == 0) free |= gpu_bit(g);
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

GPUSCHED_INLINE std::uint8_t NodeProblem::locality(VictimSet leaving) const noexcept {
    if (!enough_cpu_and_memory(leaving)) return infeasible;
    const auto free = free_gpus(leaving);
    const auto found = request_->cpu_local ? local_cores(leaving, free, nullptr)
                       : table_ != nullptr ? table_[free]
                                           : request_->locality(hardware_, free);
    if (found == infeasible || !request_->grouped) return found;
    return group_obstacle(leaving) == Obstacle::none ? found : infeasible;
}

// The best locality with GPUs whose NUMA nodes have enough free cores, and such GPUs.
GPUSCHED_INLINE std::uint8_t NodeProblem::local_cores(VictimSet leaving, GpuMask free,
                                                      GpuMask* chosen) const {
    if (hardware_ == nullptr) return infeasible;
    const auto& nodes = hardware_->description.numa_nodes;
    const auto wanted = request_->gpus;
    struct Numa {
        int gpus;
        std::int64_t cores;
        GpuMask free;
        int socket;
    };
    std::array<Numa, max_gpus_per_node> numa{};  // only those with free GPUs: GPUs are on one each
    std::size_t size = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
        const auto here = static_cast<GpuMask>(nodes[n].gpus & free);
        if (here == 0) continue;
        std::int64_t cores = std::int64_t{nodes[n].cores} * 1000;
        for (const auto task : cluster_->tasks_on(node_)) {
            if (cluster_->inventory().tasks.standby[index(task)] && request_->borrows) continue;
            bool leaves = false;
            for_each_victim(leaving, [&](int i) { leaves = leaves || victim(i).task == task; });
            if (!leaves) cores -= cores_used(*cluster_, *hardware_, task, cluster_->gpus_of(task), n);
        }
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

GPUSCHED_INLINE Obstacle NodeProblem::group_obstacle(VictimSet leaving) const {
    const auto before = scratch_->checkpoint();
    for_each_victim(leaving, [&](int i) { scratch_->remove(victim(i).task); });
    const auto found = find_group_obstacle(*scratch_, request_->task, node_);
    scratch_->rollback(before);
    return found;
}

GPUSCHED_INLINE Sums NodeProblem::sums(VictimSet set) const noexcept {
    Sums s;
    for_each_victim(set, [&](int i) {
        const auto& v = victim(i);
        ++s.count;
        s.priority += v.priority;
        s.max_priority = std::max(s.max_priority, v.priority);
        s.cost += v.cost;
    });
    for (int g = 0; g < gang_count_; ++g) {
        const auto& gang = gangs_[static_cast<std::size_t>(g)];
        std::int64_t leaving = 0, own = 0;
        for_each_victim(set, [&](int i) {
            if (victim(i).gang != g) return;
            ++leaving;
            own += victim(i).cost;
        });
        if (leaving > gang.surplus) s.cost += gang.cost - own;
    }
    return s;
}

GPUSCHED_INLINE std::int64_t NodeProblem::first_cost(int i) const noexcept {
    const auto& v = victim(i);
    if (v.gang < 0) return v.cost;
    const auto& gang = gangs_[static_cast<std::size_t>(v.gang)];
    return gang.surplus > 0 ? v.cost : gang.cost;
}

GPUSCHED_INLINE GpuMask NodeProblem::choose_gpus(VictimSet leaving) const {
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

GPUSCHED_INLINE bool NodeProblem::names_before(VictimSet a, VictimSet b) const noexcept {
    // Of two different sets of one size, the one that has the first name of those that only one has comes first.
    if (const auto* const rank = request_->name_rank; rank != nullptr) {
        const auto lowest = [&](VictimSet set) {
            auto least = UINT32_MAX;
            for_each_victim(set, [&](int i) { least = std::min(least, rank[index(victim(i).task)]); });
            return least;
        };
        return lowest(a & ~b) < lowest(b & ~a);
    }
    const auto first = [&](VictimSet set) {
        const std::string* name = nullptr;
        for_each_victim(set, [&](int i) {
            const auto& other = cluster_->name(victim(i).task);
            if (name == nullptr || other < *name) name = &other;
        });
        return name;
    };
    const auto* const mine = first(a & ~b);
    const auto* const theirs = first(b & ~a);
    if (mine == nullptr || theirs == nullptr) return theirs != nullptr;
    return *mine < *theirs;
}

GPUSCHED_INLINE bool NodeProblem::alike(int a, int b) const noexcept {
    const auto& v = victim(a);
    const auto& w = victim(b);
    if (v.priority != w.priority || v.share_milli != w.share_milli || v.cpu_milli != w.cpu_milli ||
        v.memory_mib != w.memory_mib || v.gpu_memory_mib != w.gpu_memory_mib || v.claims != w.claims ||
        v.gang >= 0 || w.gang >= 0 || request_->grouped)
        return false;
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
                     [&](int g) { yes = yes && holders_[static_cast<std::size_t>(g)] == VictimSet{1} << i; });
        return yes && (victim(i).gpus & ~contested_) == 0;
    };
    if (!alone(a) || !alone(b)) return false;
    if (hardware_ == nullptr) return !request_->cpu_local;
    // Places too small for the preemptor tell nobody apart, unless their cores matter.
    const auto possible = static_cast<GpuMask>(idle_ | contested_);
    for (const auto* const level : {&hardware_->numa, &hardware_->socket})
        for (const auto mask : *level)
            if ((request_->cpu_local ||
                 bits_of(static_cast<std::uint32_t>(mask & possible)) >= request_->gpus) &&
                bits_of(static_cast<std::uint32_t>(mask & v.gpus)) !=
                    bits_of(static_cast<std::uint32_t>(mask & w.gpus)))
                return false;
    return true;
}

GPUSCHED_INLINE NodeProblem::Shortage NodeProblem::shortage(VictimSet leaving) const {
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
    if (missing.gpus == 0 && missing.cpu_milli == 0 && missing.memory_mib == 0) {
        missing.locality = (request_->cpu_local ? local_cores(leaving, free, nullptr)
                                                : request_->locality(hardware_, free)) == infeasible;
        if (!missing.locality && request_->grouped) missing.group = group_obstacle(leaving);
    }
    return missing;
}

}  // namespace gpusched::preemption::detail

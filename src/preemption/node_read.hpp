// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "preemption/cost.hpp"
#include "preemption/node_problem.hpp"

#include <algorithm>
#include <memory>
#include <type_traits>

namespace gpusched::preemption::detail {

template <class Set>
bool NodeProblem<Set>::read(const Cluster& cluster, const Request& request, const CostFunction& cost,
                            NodeId node, const GangTable* gangs, GpuMask healthy) {
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
    gpu_count_ = cluster.gpu_count(node);
    hardware_ = n.hardware[at] == NodeTable::no_hardware ? nullptr : &inv.hardware[n.hardware[at]];
    table_ = hardware_ != nullptr && gpu_count_ <= 8 && request.table != nullptr
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
    GpuMask taken = 0, held = 0, shared = 0;  // by tasks that stay, by victims, by several victims
    const auto memory_of_a_gpu = n.gpu_memory_mib[at] < 0 ? INT64_MAX / 2 : n.gpu_memory_mib[at];
    for (int g = 0; g < gpu_count_; ++g) {
        const auto i = static_cast<std::size_t>(g);
        clear(holders_[i]);
        lendable_[i] = firm_[i] = whole_gpu_milli;
        gpu_memory_[i] = memory_of_a_gpu;
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
            const auto k = static_cast<std::size_t>(g);
            if (consumes) lendable_[k] -= share_milli;
            if (claims) firm_[k] -= share_milli;
            gpu_memory_[k] -= gpu_memory_mib;
            if (victim) insert(holders_[k], count_);
        });
        if (!victim) {
            if (consumes || !request.borrows) taken |= gpus;
            continue;
        }
        shared |= held & gpus;
        held |= gpus;
        make_places(victims_, count_ + 1);
        auto& v = victims_[static_cast<std::size_t>(count_++)];
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

}  // namespace gpusched::preemption::detail

// SPDX-License-Identifier: Apache-2.0
// Refusals: how often a search could not make a move that it looked at, by what was in the way.
#pragma once

#include <gpusched/model/feasibility.hpp>

#include <cstdint>
#include <type_traits>

namespace gpusched::consolidation {

/// How often a search could not make a move that it looked at, by the first thing in the way. Constraints are counted where a
/// task was offered a destination; destinations that the ranking leaves out, such as nodes with too few idle GPUs, are not offered.
struct Refusals {
    std::int64_t refused_by_gpu = 0;  ///< too few idle GPUs, or no GPU with enough left for the fraction
    std::int64_t refused_by_gpu_memory = 0;  ///< GPUs with too little memory left
    std::int64_t refused_by_cpu = 0;
    std::int64_t refused_by_memory = 0;
    std::int64_t refused_by_resource = 0;     ///< a named resource, or devices beside the whole GPUs
    std::int64_t refused_by_eligibility = 0;  ///< GPU model, node selector, node affinity, taint or cordon
    std::int64_t refused_by_hardware = 0;     ///< no set of GPUs within the guaranteed NUMA node or socket
    std::int64_t refused_by_anti_affinity = 0;
    std::int64_t refused_by_affinity = 0;
    std::int64_t refused_by_network = 0;  ///< the job must stay within another domain
    std::int64_t refused_by_avoid = 0;
    std::int64_t refused_by_near = 0;
    std::int64_t refused_by_spread = 0;
    std::int64_t refused_by_rule = 0;     ///< the caller's `rule`
    std::int64_t refused_by_victims = 0;  ///< the node is full, and tasks that may leave it do not make room
    std::int64_t refused_by_chain = 0;    ///< the chain under construction runs through the node already
    std::int64_t refused_by_price =
        0;  ///< vacating the node would not be worth the moves: `price`, `max_others`, `open_price`
    std::int64_t refused_by_budget = 0;  ///< chains found that `max_moves` or `max_move_cost` keeps out

    /// Counts a move that a constraint refuses; `Obstacle::none` is none.
    void count(Obstacle obstacle) noexcept {
        switch (obstacle) {
        case Obstacle::none:
            break;
        case Obstacle::cordoned:
        case Obstacle::not_eligible:
        case Obstacle::gpu_model:
        case Obstacle::node_selector:
        case Obstacle::node_affinity:
        case Obstacle::taint:
            ++refused_by_eligibility;
            break;
        case Obstacle::cpu:
            ++refused_by_cpu;
            break;
        case Obstacle::memory:
            ++refused_by_memory;
            break;
        case Obstacle::resource:
        case Obstacle::device:
            ++refused_by_resource;
            break;
        case Obstacle::gpu:
            ++refused_by_gpu;
            break;
        case Obstacle::gpu_memory:
            ++refused_by_gpu_memory;
            break;
        case Obstacle::hardware:
            ++refused_by_hardware;
            break;
        case Obstacle::anti_affinity:
            ++refused_by_anti_affinity;
            break;
        case Obstacle::affinity:
            ++refused_by_affinity;
            break;
        case Obstacle::network:
            ++refused_by_network;
            break;
        case Obstacle::avoid:
            ++refused_by_avoid;
            break;
        case Obstacle::near:
            ++refused_by_near;
            break;
        case Obstacle::spread:
            ++refused_by_spread;
            break;
        case Obstacle::gang:
        case Obstacle::disruption_budget:
            break;  // of evictions
        }
    }
    bool operator==(const Refusals&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Refusals>, F&& field) {
    field("refused_by_gpu", &Refusals::refused_by_gpu);
    field("refused_by_gpu_memory", &Refusals::refused_by_gpu_memory);
    field("refused_by_cpu", &Refusals::refused_by_cpu);
    field("refused_by_memory", &Refusals::refused_by_memory);
    field("refused_by_resource", &Refusals::refused_by_resource);
    field("refused_by_eligibility", &Refusals::refused_by_eligibility);
    field("refused_by_hardware", &Refusals::refused_by_hardware);
    field("refused_by_anti_affinity", &Refusals::refused_by_anti_affinity);
    field("refused_by_affinity", &Refusals::refused_by_affinity);
    field("refused_by_network", &Refusals::refused_by_network);
    field("refused_by_avoid", &Refusals::refused_by_avoid);
    field("refused_by_near", &Refusals::refused_by_near);
    field("refused_by_spread", &Refusals::refused_by_spread);
    field("refused_by_rule", &Refusals::refused_by_rule);
    field("refused_by_victims", &Refusals::refused_by_victims);
    field("refused_by_chain", &Refusals::refused_by_chain);
    field("refused_by_price", &Refusals::refused_by_price);
    field("refused_by_budget", &Refusals::refused_by_budget);
}

}  // namespace gpusched::consolidation

// How much of a goal is there, by the checker's own books.
#pragma once

#include <gpusched/model/goal.hpp>
#include <gpusched/verify/detail/books.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace GPUSCHED_NAMESPACE::verify::detail {

/// What keeps a goal from meaning anything; empty for a good one.
[[nodiscard]] inline std::string bad_goal(const Books& books, const Goal& goal) {
    if (!goal.gpu_model.empty() &&
        std::none_of(books.machines.begin(), books.machines.end(),
                     [&](const auto& machine) { return machine.spec->gpu_model == goal.gpu_model; }))
        return "no node has GPU model " + gpusched::quoted(goal.gpu_model);
    if (goal.empty_nodes.has_value() == goal.slots.has_value())
        return "it must ask for either empty_nodes or slots";
    if (goal.empty_nodes) {
        if (goal.count) return "count stands beside empty_nodes";
        return *goal.empty_nodes < 1 ? "empty_nodes is less than 1" : "";
    }
    const auto& s = *goal.slots;
    if (s.gpu_count < 0 || s.cpu_milli < 0 || s.memory_mib < 0) return "the slots ask for less than nothing";
    if (s.gpu_count == 0 && s.cpu_milli == 0 && s.memory_mib == 0) return "the slots ask for nothing";
    return goal.count.value_or(1) < 1 ? "count is less than 1" : "";
}

/// How many empty nodes, or slots, the books have for a good goal.
[[nodiscard]] inline std::int64_t available(const Books& books, const Goal& goal) {
    const auto unused = [](std::int64_t capacity, const InUse& use) {
        return std::max<std::int64_t>(0, capacity - std::max(use.consumed, use.claimed));
    };
    std::int64_t sum = 0;
    for (const auto& machine : books.machines) {
        const auto& spec = *machine.spec;
        if (!spec.schedulable || (!goal.gpu_model.empty() && spec.gpu_model != goal.gpu_model)) continue;
        if (goal.empty_nodes) {
            sum += machine.occupants == 0 ? 1 : 0;
            continue;
        }
        const auto& shape = *goal.slots;
        const auto idle = std::count_if(machine.cards.begin(), machine.cards.end(), [](const Card& card) {
            return !card.failed && card.milli.consumed == 0 && card.milli.claimed == 0;
        });
        std::int64_t slots = -1;  // nothing limits them yet
        const auto limit = [&](std::int64_t free, std::int64_t each) {
            if (each == 0) return;
            const auto fit = free / each;
            slots = slots < 0 ? fit : std::min(slots, fit);
        };
        limit(idle, shape.gpu_count);
        limit(unused(spec.cpu_milli, machine.cpu), shape.cpu_milli);
        limit(std::max<std::int64_t>(0, spec.memory_mib - machine.memory_mib), shape.memory_mib);
        sum += slots;
    }
    return sum;
}

}  // namespace GPUSCHED_NAMESPACE::verify::detail

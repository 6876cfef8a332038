// SPDX-License-Identifier: Apache-2.0
// RandomVictims: any tasks that make room on a destination, in random order, for searches that try many.
#pragma once

#include <gpusched/consolidation/ejection_rules.hpp>
#include <gpusched/core/rng.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace gpusched::consolidation::detail {

/// No more tasks than make room, which need not be easier to place than the task itself; the cheapest to move first where the
/// rule is `frugal`, equal ones in random order. For the one thread that the random numbers belong to.
struct RandomVictims {
    Rng* rng = nullptr;
    bool frugal = false;

    [[nodiscard]] bool takes_cheapest_first() const noexcept { return frugal; }
    bool operator()(const Cluster& cluster, TaskId task, NodeId node, std::span<const Victim> movable,
                    std::vector<Victim>& victims) const {
        const RoomAfter before(cluster, task, node);
        victims.assign(movable.begin(), movable.end());
        rng->shuffle(std::span(victims));
        const auto cost = [&](const Victim& victim) {
            return victim.moved ? 0 : cluster.inventory().tasks.move_cost[index(victim.task)];
        };
        if (frugal)
            put_in_order(victims, [&](const Victim& a, const Victim& b) { return cost(a) < cost(b); });
        auto room = before;
        std::size_t count = 0;
        while (count < victims.size() && !room.fits()) room.leave(victims[count++].task);
        if (!room.fits()) return false;
        victims.resize(count);
        // Those that the others do not need stay, the last to be chosen excepted.
        for (std::size_t left_out = 0; left_out + 1 < victims.size();) {
            auto without = before;
            for (std::size_t i = 0; i < victims.size(); ++i)
                if (i != left_out) without.leave(victims[i].task);
            if (without.fits())
                victims.erase(victims.begin() + static_cast<std::ptrdiff_t>(left_out));
            else
                ++left_out;
        }
        return true;
    }

  private:
    // By insertion, for there are few: equal ones stay as they are.
    template <class Before>
    static void put_in_order(std::vector<Victim>& victims, Before before) {
        for (auto next = victims.begin(); next != victims.end(); ++next)
            std::rotate(std::upper_bound(victims.begin(), next, *next, before), next, next + 1);
    }
};

}  // namespace gpusched::consolidation::detail

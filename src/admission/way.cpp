// SPDX-License-Identifier: Apache-2.0
// A complete placement as a way: evictions, moves one after the other, placements.
#include "admission/search.hpp"
#include "model/placement_order.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>

namespace gpusched::admission::detail {

void Search::finish() {
    ++stats_.plans_found;
    if (state_.cost >= best_) return;
    Way way{.cost = state_.cost, .evictions = state_.evictions, .moves = {}, .placements = {}};
    // Whoever was displaced last had its place found last, and moves first.
    for (auto put = state_.puts.rbegin(); put != state_.puts.rend(); ++put)
        if (state_.fate[index(put->task)] == moved)
            way.moves.push_back({put->task, snapshot_.node_of(put->task), put->node, put->gpus, 0});
    for (const auto& put : state_.puts)
        if (state_.fate[index(put.task)] != moved) way.placements.push_back(put);
    state_.work.rollback(0);
    const bool possible = restarts_keep_budgets(way) && make_possible(way);
    state_.work.rollback(0);
    for (const auto& c : state_.changes) state_.work.assign(c.task, c.to, c.gpus);
    if (!possible || way.cost >= best_) {
        ++stats_.unorderable;
        cut_ = true;
        return;
    }
    if (way.cost > state_.cost) cut_ = true;
    best_ = way.cost;
    std::sort(way.evictions.begin(), way.evictions.end());
    ways_.push_back(std::move(way));
}

/// While the evicted tasks are down, as they are during all moves, every task that restarts may be down, too.
bool Search::restarts_keep_budgets(const Way& way) const {
    if (options_.budget_price_s) return true;
    return std::all_of(way.moves.begin(), way.moves.end(), [&](const auto& move) {
        return inv_.tasks.how(move.task) == Mobility::copy || state_.may_be_down(move.task);
    });
}

/// Puts the moves into an order in which each is possible while its source is held. Where they wait for each other in a circle, the task
/// for which that costs least is evicted instead and placed again.
bool Search::make_possible(Way& way) {
    const auto fit = [&](TaskId task, NodeId to, GpuMask& gpus, bool others) {
        if (find_obstacle(state_.work, task, to) != Obstacle::none) return false;
        if (gpus_fit(state_.work, task, to, gpus)) return true;
        if (!others) return false;
        gpus = allocation::pick_gpus(allocation::ByWish{}, state_.work, task, to);
        return true;
    };
    for (const auto task : way.evictions) state_.work.remove(task);
    auto waiting = std::move(way.moves);
    way.moves.clear();
    while (!waiting.empty()) {
        bool found = false;
        for (const bool others : {false, true}) {
            for (auto step = waiting.begin(); step != waiting.end() && !found; ++step) {
                if (!fit(step->task, step->to, step->gpus, others)) continue;
                state_.work.assign(step->task, step->to, step->gpus);
                way.moves.push_back(*step);
                waiting.erase(step);
                found = true;
                break;
            }
            if (found) break;
        }
        if (found) continue;
        auto cheapest = waiting.end();
        std::int64_t extra = never;
        for (auto step = waiting.begin(); step != waiting.end(); ++step) {
            const auto& price = prices_[step->task];
            if (price.replace >= never || inv_.tasks.job[index(step->task)] != none<JobId> ||
                !inv_.budgets_of(step->task).empty() || price.replace - price.move >= extra)
                continue;
            extra = price.replace - price.move;
            cheapest = step;
        }
        if (cheapest == waiting.end()) return false;
        if (options_.max_evictions &&
            static_cast<std::int64_t>(way.evictions.size()) >= *options_.max_evictions)
            return false;
        way.cost += extra;
        if (way.cost >= best_) return false;
        way.evictions.push_back(cheapest->task);
        way.placements.push_back({cheapest->task, cheapest->to, cheapest->gpus});
        state_.work.remove(cheapest->task);
        waiting.erase(cheapest);
    }
    return gpusched::detail::place_in_some_order(way.placements.size(),
                                                 [&](std::size_t i) {
                                                     auto& p = way.placements[i];
                                                     if (!fit(p.task, p.node, p.gpus, true)) return false;
                                                     state_.work.assign(p.task, p.node, p.gpus);
                                                     return true;
                                                 })
        .empty();
}

}  // namespace gpusched::admission::detail

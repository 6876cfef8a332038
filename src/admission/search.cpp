// SPDX-License-Identifier: Apache-2.0
#include "admission/search.hpp"
#include "model/placement_order.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/destination_rankings.hpp>
#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>

namespace gpusched::admission::detail {

/// Thousandths of a GPU that the pods ask for beyond what is free.
[[nodiscard]] inline std::int64_t lacking_milli(const Cluster& snapshot, std::span<const TaskId> pods,
                                                const NodeBounds& bounds) {
    auto milli = -bounds.free_milli();
    for (const auto pod : pods) milli += snapshot.gpu_milli(pod);
    return milli;
}

Search::Search(const Cluster& snapshot, Cluster copy, std::span<const TaskId> pods, const Options& options,
               const FilterAnswers& passes, const consolidation::Scope& scope, const Prices& prices,
               const preemption::detail::GangTable& gangs, NodeBounds& bounds, Budget& budget,
               Statistics& stats)
    : snapshot_(snapshot), inv_(snapshot.inventory()), pods_(pods), options_(options), passes_(passes),
      scope_(scope), prices_(prices), bounds_(bounds), budget_(budget), stats_(stats),
      state_(snapshot, std::move(copy), options, prices, gangs),
      covers_(snapshot, state_, passes, prices, bounds, stats),
      needed_milli_(lacking_milli(snapshot, pods, bounds)),
      pod_bounds_(snapshot, pods, bounds, needed_milli_) {
    if (!options.exempt.empty()) exempt_.assign(snapshot.node_slots(), 0);
    for (const auto node : options.exempt) exempt_[index(node)] = 1;
    if (options.max_cost_s && *options.max_cost_s < never / 1000) best_ = *options.max_cost_s * 1000 + 1;
    lends_ =
        std::any_of(inv_.tasks.standby.begin(), inv_.tasks.standby.end(), [](auto is) { return is != 0; });
    const auto count = static_cast<std::int64_t>(pods.size());
    limit_ = options.search_limit < INT64_MAX / count ? options.search_limit * count : INT64_MAX;
    left_for_losses_ = limit_;
}

void Search::offer(Way way) {
    if (way.cost >= best_) return;
    best_ = way.cost;
    ways_.push_back(std::move(way));
}

void Search::lose(const Item& item) {
    const auto& price = prices_[item.task];
    if (price.lose >= never) return;
    if (const auto job = inv_.tasks.job[index(item.task)];
        job != none<JobId> && state_.broken[index(job)] == 1)
        return;
    const auto before = state_.mark();
    if (state_.evict(item.task, false, cut_)) {
        state_.set(state_.fate[index(item.task)], lost);
        state_.set(state_.cost, state_.cost + price.lose - price.least);
        state_.set(state_.lost_milli, state_.lost_milli + snapshot_.gpu_milli(item.task));
        descend();
    }
    state_.undo(before);
}

// Placing ----------------------------------------------------------------------------------------------------
bool Search::out() {
    if (stats_.steps >= stop_at_ || stats_.steps >= limit_) {
        cut_ = stopped_ = true;
        return true;
    }
    if (stats_.steps % 16 == 0 ? budget_.exhausted() : budget_.reason() != StopReason::completed) {
        cut_ = true;
        return true;
    }
    return false;
}

/// No way that goes on from here costs less.
std::int64_t Search::bound() const {
    auto least =
        state_.cost +
        (state_.lost_milli < needed_milli_ ? bounds_.loss_of_at_least(needed_milli_ - state_.lost_milli) : 0);
    if (pod_bounds_.known())
        least = std::max(least, state_.pods_cost + pod_bounds_.cheapest(state_.pods_left));
    return least;
}

bool Search::may_go(const Item& item, NodeId node) const {
    if (item.depth == 0)
        return (!by_region_ || in_region_[index(node)]) && (banned_.empty() || !banned_[index(node)]) &&
               passes_(item.task, node);
    if (!exempt_.empty() && exempt_[index(node)]) return false;
    const auto& price = prices_[item.task];
    const bool may_move = price.move < never && state_.fate[index(item.task)] == lifted &&
                          node != snapshot_.node_of(item.task) && scope_.may_receive[index(node)];
    return (may_move || price.replace < never) && passes_(item.task, node);
}

void Search::descend() {
    if (bound() >= best_ || out()) return;
    ++stats_.steps;
    if (lends_) cut_ = true;  // which GPUs are borrowed is not varied
    // Members of gangs that are lost have left the list.
    const auto size = state_.todo.size();
    boost::container::small_vector<Item, 8> skipped;
    while (!state_.todo.empty() && state_.fate[index(state_.todo.back().task)] == lost) {
        skipped.push_back(state_.todo.back());
        state_.todo.pop_back();
    }
    if (state_.todo.empty()) {
        finish();
    } else {
        const auto item = state_.todo.back();
        state_.todo.pop_back();
        place(item);
        state_.todo.push_back(item);
    }
    while (!skipped.empty()) {
        state_.todo.push_back(skipped.back());
        skipped.pop_back();
    }
    GPUSCHED_ASSERT(state_.todo.size() == size);
    static_cast<void>(size);
}

/// Some constraint of the task may depend on tasks of other nodes, who could leave, or come, for its sake: that is not tried.
bool Search::looks_beyond_its_node(TaskId task) const {
    const auto groups = inv_.memberships(task);
    return std::any_of(groups.begin(), groups.end(), [&](const Membership& m) {
        const auto& set = inv_.group_sets[m.set];
        return set.level != node_level || set.kind == GroupKind::near || set.kind == GroupKind::spread;
    });
}

void Search::place(const Item& item) {
    if (looks_beyond_its_node(item.task)) {
        cut_ = true;
        if (item.depth == 0) lower_bound_ = 0;
    }
    const bool may_lose = item.depth > 0 && state_.fate[index(item.task)] == lifted;
    if (loses_at_once_ && may_lose) lose(item);
    place_directly(item);
    if (item.depth == 0) return place_by_displacing(item);
    if (loses_at_once_) return;
    const auto& price = prices_[item.task];
    // The cheaper of the two first. Where somebody must be lost anyway, a place costs what others lose.
    const bool estimated = state_.lost_milli < needed_milli_ && !loses_early_;
    const auto scarce = estimated ? bounds_.place_estimate(snapshot_, item.task) : 0;
    const auto chain =
        std::min(price.move, price.replace) + std::max(bounds_.elsewhere(snapshot_, item.task), scarce);
    const bool early = loses_early_ &&
                       (ways_.empty() || state_.lost_milli + snapshot_.gpu_milli(item.task) <= needed_milli_);
    const bool first = may_lose && (price.lose <= chain || early);
    if (first) lose(item);
    place_by_displacing(item);
    if (may_lose && !first) lose(item);
}

void Search::place_directly(const Item& item) {
    constexpr std::size_t most = 12;
    boost::container::small_vector<NodeId, most> nodes;
    bool more = false;
    consolidation::TightestFit{}.visit(state_.work, state_.free, item.task, [&](NodeId node) {
        if (!may_go(item, node) || find_obstacle(state_.work, item.task, node) != Obstacle::none ||
            std::find(nodes.begin(), nodes.end(), node) != nodes.end())
            return false;
        if (nodes.size() == most) return more = true;
        nodes.push_back(node);
        return false;
    });
    const bool root = item.depth == 0 && pods_.size() == 1;
    const bool cut_before = cut_;
    if (root) cut_ = false;
    for (const auto node : nodes) put(item, node);
    if (more && bound() < best_) cut_ = true;
    if (root && cut_) lower_bound_ = 0;
    cut_ = cut_ || cut_before;
}

/// The task takes its place on the node, where it fits now, by the cheapest means; then the search goes on.
void Search::put(const Item& item, NodeId node) {
    if (bound() >= best_ || out()) return;
    const auto task = item.task;
    const auto i = index(task);
    GpuMask gpus = 0;
    if (inv_.tasks.gpu_count[i] > 0) {
        gpus = allocation::ByWish{}(state_.work, task, node);
        // What nobody lends comes first.
        if (state_.work.may_borrow(task) && !state_.work.is_fraction(task)) {
            GpuMask firm = state_.work.idle_gpus(node);
            while (gpu_count(firm) > inv_.tasks.gpu_count[i]) firm &= firm - 1;
            if (gpus_fit(state_.work, task, node, firm)) gpus = firm;
        }
        if (state_.work.is_fraction(task) || inv_.nodes.hardware[index(node)] != NodeTable::no_hardware ||
            inv_.tasks.gpu_memory_mib[i] > 0)
            cut_ = true;  // other GPUs of the node
    }
    if (!inv_.selection_memberships(task).empty()) cut_ = true;  // depends on the order of placing
    gpus |= free_devices_for(state_.work, task, node);
    const auto borrowed = Prices::borrowed_milli(state_.work, task, node, gpus);
    if (borrowed > 0 && !options_.standby) return;
    const auto recall = borrowed * options_.recall_price_s;

    const auto try_as = [&](SearchState::Fate how) {
        const auto before = state_.mark();
        bool possible = true;
        auto cost = state_.cost + recall;
        if (how == moved) {
            possible = !options_.max_moves || state_.moves < *options_.max_moves;
            state_.set(state_.moves, state_.moves + 1);
            cost += prices_[task].move - prices_[task].least;
        } else if (how == replaced && state_.fate[i] == lifted) {
            possible = state_.evict(task, true, cut_);
            cost = state_.cost + recall + prices_[task].replace - prices_[task].least;
        } else if (how == placed) {
            state_.set(state_.pods_left, state_.pods_left - 1);
            if (pod_bounds_.known()) state_.set(state_.pods_cost, state_.pods_cost + pod_bounds_.at(node));
        }
        if (possible) {
            state_.set(state_.cost, cost);
            state_.set(state_.fate[i], how);
            state_.change(task, node, gpus);
            state_.puts.push_back({task, node, gpus});
            descend();
        }
        state_.undo(before);
        return possible;
    };
    if (item.depth == 0) {
        try_as(placed);
        return;
    }
    const auto& price = prices_[task];
    const auto job = inv_.tasks.job[i];
    const bool may_move = price.move < never && state_.fate[i] == lifted && node != snapshot_.node_of(task) &&
                          scope_.may_receive[index(node)];
    const bool may_return = price.replace < never && (job == none<JobId> || state_.broken[index(job)] != 2);
    const bool move_first = may_move && (!may_return || price.move <= price.replace);
    // The dearer of the two may be the better one where the other uses up what somebody else needs.
    const bool either =
        options_.max_moves || options_.max_evictions || job != none<JobId> || !inv_.budgets_of(task).empty();
    if (move_first && try_as(moved) && !either) return;
    if (may_return && try_as(replaced) && !either) return;
    if (may_move && !move_first) try_as(moved);
}

void Search::place_by_displacing(const Item& item) {
    auto& ranking = bounds_.ranking(snapshot_, item.task);
    const bool deepest = item.depth >= depth_;
    if (deepest) {
        // Depth ends the search here, but not the question whether there is a way.
        if (bound() < best_) cut_ = true;
        return;
    }
    const auto home = item.depth == 0 ? none<NodeId> : snapshot_.node_of(item.task);
    const auto usable = [&](NodeId node) { return node != home && may_go(item, node); };
    // Where something has changed the bounds of the snapshot do not hold.
    boost::container::small_vector<NodeId, 16> touched;
    for (const auto& c : state_.changes)
        for (const auto node : {c.from, c.to})
            if (node != none<NodeId> && std::find(touched.begin(), touched.end(), node) == touched.end())
                touched.push_back(node);
    const bool root = item.depth == 0 && pods_.size() == 1;
    constexpr std::size_t most_nodes = 24;  // for displaced tasks; pods look at all
    std::size_t tried = 0;
    for (std::size_t r = 0; r < ranking.size(); ++r) {
        const auto least = ranking.least_from(r);
        if (state_.cost + least >= best_ || bound() >= best_) break;
        const auto entry = ranking[r];
        if (!usable(entry.node)) continue;
        if (std::find(touched.begin(), touched.end(), entry.node) != touched.end()) continue;
        // By estimate nothing better is left: some more, since it may be wrong.
        const bool few = !root && (item.depth > 0 || state_.cost + entry.estimate >= best_);
        if (out() || (few && ++tried > most_nodes)) {
            cut_ = true;
            if (root)
                lower_bound_ = std::min(
                    lower_bound_, least + (needed_milli_ > 0 ? bounds_.loss_of_at_least(needed_milli_) : 0));
            break;
        }
        if (state_.cost + entry.bound < best_) displace_on(item, entry.node, entry.bound);
    }
    for (const auto node : touched)
        if (usable(node) && inv_.nodes.receives(node) && inv_.eligible(item.task, node))
            displace_on(item, node, 0);
}

/// Every set of tasks that makes room for the task on the node, the cheapest first.
void Search::displace_on(const Item& item, NodeId node, std::int64_t node_bound) {
    if (bound() >= best_) return;
    ++stats_.steps;
    const bool root = item.depth == 0 && pods_.size() == 1;
    bool was_cut = cut_;
    cut_ = false;
    std::vector<Cover> covers;
    if (!covers_.find(item.task, node, best_ - 1 - state_.cost, covers)) cut_ = true;
    const auto loss = needed_milli_ > 0 ? bounds_.loss_of_at_least(needed_milli_) : 0;
    if (root && cut_) lower_bound_ = std::min(lower_bound_, node_bound + loss);
    was_cut = was_cut || cut_;
    const auto outer = stop_at_;
    for (const auto& cover : covers) {
        if (state_.cost + cover.least >= best_) continue;
        // One pod: what the hardest of the displaced tasks needs elsewhere is not counted yet.
        const auto least = cover.least + std::max(cover.most, loss);
        if (root && least >= best_) continue;
        cut_ = stats_.steps >= outer || stats_.steps >= limit_;
        stopped_ = stopped_ || cut_;
        if (!cut_) {
            if (item.depth == 0)
                stop_at_ =
                    std::min(outer, stats_.steps + share_ * std::max<std::int64_t>(1, state_.pods_left) +
                                        static_cast<std::int64_t>(cover.tasks.size()));
            const auto before = state_.mark();
            auto order = cover.tasks;  // the hardest to place comes last, and so goes first
            std::stable_sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
                return std::pair(snapshot_.gpu_milli(a), inv_.tasks.cpu_milli[index(a)]) <
                       std::pair(snapshot_.gpu_milli(b), inv_.tasks.cpu_milli[index(b)]);
            });
            for (const auto task : order) state_.lift(task, item.depth + 1);
            put(item, node);
            state_.undo(before);
            stop_at_ = outer;
        }
        if (root && cut_) lower_bound_ = std::min(lower_bound_, least);
        was_cut = was_cut || cut_;
    }
    cut_ = was_cut;
}

// The whole --------------------------------------------------------------------------------------------------
void Search::run(std::span<const NodeId> region) {
    const auto least = pod_bounds_.of_region(region);
    if (least >= best_) return;  // also where there is no way at all
    ++stats_.domains_considered;
    by_region_ = !region.empty();
    if (by_region_) {
        in_region_.assign(snapshot_.node_slots(), 0);
        for (const auto node : region) in_region_[index(node)] = 1;
    }
    const auto known = lower_bound_;
    const auto limit = limit_;
    auto total = limit;
    std::int64_t found_bound = never;
    state_.pods_left = static_cast<std::int64_t>(pods_.size());
    const auto pass = [&](std::int64_t share) {
        share_ = share;
        limit_ = total;
        // Passes over gangs are short, so that there are several.
        stop_at_ = pods_.size() == 1 ? total : std::min(total, stats_.steps + 8 * share * state_.pods_left);
        cut_ = stopped_ = false;
        lower_bound_ = never;
        state_.todo.clear();
        // The largest first: they come last into the list.
        for (const auto pod : pods_) state_.todo.push_back({pod, 0});
        std::stable_sort(state_.todo.begin(), state_.todo.end(), [&](const Item& a, const Item& b) {
            return std::pair(snapshot_.gpu_milli(a.task), inv_.tasks.cpu_milli[index(a.task)]) <
                   std::pair(snapshot_.gpu_milli(b.task), inv_.tasks.cpu_milli[index(b.task)]);
        });
        const auto before = state_.mark();
        descend();
        state_.undo(before);
        state_.todo.clear();
        // Of what was left out nothing costs less than this.
        if (!cut_) return never;
        return pods_.size() == 1 && lower_bound_ < never ? std::max(lower_bound_, least) : least;
    };
    loses_early_ = false;
    // Gangs have several passes, which nest less at first, or until the second has found something.
    const bool one = pods_.size() == 1;
    depth_ = one ? options_.depth : std::min(options_.depth, 2);
    for (std::int64_t share = 32;; share *= one ? 8 : 3) {
        const auto bound = pass(share);
        const bool whole = !stopped_ && depth_ == options_.depth;  // a longer pass would find nothing else
        found_bound = found_bound == never ? bound : bound == never ? never : std::max(found_bound, bound);
        if (bound >= best_ || !cut_) {
            found_bound = bound;
            break;
        }
        // One of its nodes left out at a time.
        for (bool better = pods_.size() > 1 && !ways_.empty(); better && best_ > least;) {
            better = false;
            std::vector<NodeId> used;
            for (const auto& p : ways_.back().placements)
                if (std::find(pods_.begin(), pods_.end(), p.task) != pods_.end()) used.push_back(p.node);
            for (const auto node : used) {
                const auto found = best_;
                banned_.assign(snapshot_.node_slots(), 0);
                banned_[index(node)] = 1;
                static_cast<void>(pass(share));
                better = better || best_ < found;
                if (better || stats_.steps >= total) break;
            }
            banned_.clear();
            better = better && stats_.steps < total;
        }
        if (whole || best_ <= least || stats_.steps >= total || budget_.reason() != StopReason::completed)
            break;
        if (!ways_.empty() || loses_early_) depth_ = options_.depth;
        loses_early_ = !loses_early_;  // the estimates may have led astray
    }
    // Nothing was found, perhaps because displaced tasks took the places of the next pods.
    if (ways_.empty() && cut_ && options_.evictions && budget_.reason() == StopReason::completed) {
        constexpr std::int64_t most_of_pod = 256;
        const auto before = stats_.steps;
        const auto most = std::min(left_for_losses_, most_of_pod * state_.pods_left);
        total = before + most;
        loses_at_once_ = true;
        static_cast<void>(pass(most));
        loses_at_once_ = false;
        left_for_losses_ -= std::min(left_for_losses_, stats_.steps - before);
        limit_ = limit;
    }
    lower_bound_ = std::min(known, found_bound);
}

bool Search::match(std::span<const NodeId> region, std::int64_t most_steps) {
    const auto cost = best_, known = lower_bound_, limit = limit_;
    const auto found = ways_.size();
    best_ = cost + 1;
    limit_ = stats_.steps + most_steps;
    run(region);
    limit_ = limit;
    lower_bound_ = known;
    if (ways_.size() > found) return true;
    best_ = cost;
    return false;
}

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

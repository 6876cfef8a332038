// SPDX-License-Identifier: Apache-2.0
// The branch-and-bound search of admission, and the order of moves of its solutions.
#include "admission/search.hpp"
#include "model/placement_order.hpp"

#include <gpusched/allocation/concepts.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/config.hpp>
#include <gpusched/consolidation/policies.hpp>
#include <gpusched/core/detail/small_vector.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <utility>

namespace gpusched::admission::detail {

/// The pods' requests beyond free capacity, in thousandths of a GPU.
[[nodiscard]] inline std::int64_t lacking_milli(const Cluster& snapshot, std::span<const TaskId> pods,
                                                const NodeBounds& bounds) {
    auto milli = -bounds.free_milli();
    for (const auto pod : pods) milli += snapshot.gpu_milli(pod);
    return milli;
}

Search::Search(const Cluster& snapshot, Cluster copy, std::span<const TaskId> pods, const Options& options,
               const FilterAnswers& passes, const consolidation::Scope& scope, const PriceTable& prices,
               const preemption::detail::GangTable& gangs, NodeBounds& bounds, Budget& budget,
               Statistics& stats)
    : snapshot_(snapshot), inv_(snapshot.inventory()), pods_(pods), options_(options), passes_(passes),
      scope_(scope), prices_(prices), bounds_(bounds), budget_(budget), stats_(stats),
      state_(snapshot, std::move(copy), options, prices, gangs),
      covers_(snapshot, state_, passes, prices, bounds, stats),
      must_lose_milli_(lacking_milli(snapshot, pods, bounds)),
      pod_bounds_(snapshot, pods, bounds, must_lose_milli_) {
    if (!options.exempt.empty()) exempt_.assign(snapshot.node_slots(), 0);
    for (const auto node : options.exempt) exempt_[index(node)] = 1;
    if (options.max_cost_s && *options.max_cost_s < never / 1000) best_ = *options.max_cost_s * 1000 + 1;
    lends_ =
        std::any_of(inv_.tasks.standby.begin(), inv_.tasks.standby.end(), [](auto is) { return is != 0; });
    local_ = std::any_of(pods.begin(), pods.end(), [&](TaskId pod) {
        return inv_.task_affinities[inv_.tasks.affinities[index(pod)]].guaranteed_level().has_value();
    });
    const auto count = static_cast<std::int64_t>(pods.size());
    limit_ =
        options.search.search_limit < INT64_MAX / count ? options.search.search_limit * count : INT64_MAX;
    // A step of the further passes asks all nodes.
    constexpr std::int64_t most_visits = 10'000'000;
    left_for_others_ = left_for_largest_first_ =
        std::min({limit_, INT64_MAX / 2,
                  most_visits / std::max<std::int64_t>(1, static_cast<std::int64_t>(snapshot.node_count()))});
}

void Search::offer(Solution solution) {
    if (solution.cost >= best_) return;
    best_ = solution.cost;
    solutions_.push_back(std::move(solution));
}

void Search::lose(const Item& item) {
    const auto& price = prices_[item.task];
    if (price.lose >= never || !item.leaving_helps) return;
    if (const auto job = inv_.tasks.job[index(item.task)];
        job != none<JobId> && state_.broken[index(job)] == 1)
        return;
    const auto before = state_.mark();
    if (state_.evict(item.task, false, incomplete_)) {
        state_.set(state_.fate[index(item.task)], lost);
        state_.set(state_.cost, state_.cost + price.lose - price.least);
        state_.set(state_.lost_milli, state_.lost_milli + snapshot_.gpu_milli(item.task));
        descend();
    }
    state_.undo(before);
}

bool Search::must_stop() {
    if (stats_.steps >= stop_at_ || stats_.steps >= limit_) {
        incomplete_ = hit_step_limit_ = true;
        return true;
    }
    if (stats_.steps % 16 == 0 ? budget_.exhausted() : budget_.reason() != StopReason::completed) {
        incomplete_ = true;
        return true;
    }
    return false;
}

/// Lower bound on the cost of all solutions below the current state.
std::int64_t Search::bound() const {
    auto least = state_.cost + (state_.lost_milli < must_lose_milli_
                                    ? bounds_.loss_of_at_least(must_lose_milli_ - state_.lost_milli)
                                    : 0);
    if (pod_bounds_.known())
        least = std::max(least, state_.pods_cost + pod_bounds_.cheapest(state_.pods_left));
    return least;
}

/// Returns whether the task helps on the node: in the domain that lacks members, outside of the one that has too
/// many, or in one that has the fewest.
bool Search::helps_on(const Item& item, NodeId node) const {
    if (item.domain == none<DomainId>) return true;
    const auto& set = inv_.group_sets[item.set];
    const auto to = inv_.domain_at(set.level, node);
    if (set.kind == GroupKind::near) return to == item.domain;
    if (item.leaving_helps) return to != item.domain;
    return inv_.spread_rules[set.rule].eligible[index(node)] &&
           state_.work.group_count(item.set, to) == state_.work.fewest_members(item.set);
}

bool Search::may_go(const Item& item, NodeId node) const {
    if (item.on != none<NodeId> && item.on != node) return false;
    if (item.depth == 0)
        return (!by_region_ || in_region_[index(node)]) && (banned_.empty() || !banned_[index(node)]) &&
               passes_(item.task, node);
    if ((!exempt_.empty() && exempt_[index(node)]) || !helps_on(item, node)) return false;
    const auto& price = prices_[item.task];
    const bool may_move = price.move < never && state_.fate[index(item.task)] == lifted &&
                          node != snapshot_.node_of(item.task) && scope_.receives(node);
    return (may_move || price.replace < never) && passes_(item.task, node);
}

void Search::descend() {
    if (bound() >= best_ || must_stop()) return;
    ++stats_.steps;
    if (lends_) incomplete_ = true;  // the choice of borrowed GPUs is not varied
    // Skips members of gangs that were evicted for good.
    const auto size = state_.todo.size();
    Items skipped;
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

/// Returns whether displacing other tasks from the task's own node can make place for it there. Not if it
/// takes whole GPUs of which one is like the other: what the others free then fits the arrivals, too, and the
/// task could have stayed.
bool Search::displaces_at_home(const Item& item) const {
    if (item.depth == 0 || prices_[item.task].replace >= never) return false;
    const auto home = snapshot_.node_of(item.task);
    return state_.work.is_fraction(item.task) || (lends_ && state_.work.may_borrow(item.task)) ||
           (local_ && inv_.nodes.hardware[index(home)] != NodeTable::no_hardware);
}

void Search::place(const Item& item) {
    if (gpusched::detail::needs_others(inv_, item.task)) {
        needs_others_ = incomplete_ = true;
        if (item.depth == 0) lower_bound_ = 0;
    }
    const bool may_lose = item.depth > 0 && state_.fate[index(item.task)] == lifted;
    place_directly(item);
    if (item.depth == 0) return place_by_displacing(item);
    const auto& price = prices_[item.task];
    // The cheaper alternative first. If GPUs are short, a place costs the eviction of other tasks.
    const bool estimated = state_.lost_milli < must_lose_milli_ && !loses_needed_early_;
    const auto scarce = estimated ? bounds_.place_estimate(snapshot_, item.task) : 0;
    const auto chain =
        std::min(price.move, price.replace) + std::max(bounds_.elsewhere(snapshot_, item.task), scarce);
    const bool early =
        loses_needed_early_ &&
        (solutions_.empty() || state_.lost_milli + snapshot_.gpu_milli(item.task) <= must_lose_milli_);
    const bool first = may_lose && (price.lose <= chain || early);
    if (first) lose(item);
    place_by_displacing(item);
    if (may_lose && !first) lose(item);
}

void Search::place_directly(const Item& item) {
    constexpr std::size_t most = 12;
    boost::container::small_vector<NodeId, most> nodes;
    bool more = false;
    for (const bool later : {false, true}) {
        if (later && (!defers_ || more)) break;
        consolidation::TightestFit{}.visit(state_.work, state_.free, item.task, [&](NodeId node) {
            if (!may_go(item, node)) return false;
            const auto obstacle = find_obstacle(state_.work, item.task, node);
            if ((later ? !gpusched::detail::may_pass(obstacle) : obstacle != Obstacle::none) ||
                std::find(nodes.begin(), nodes.end(), node) != nodes.end())
                return false;
            if (nodes.size() == most) return more = true;
            nodes.push_back(node);
            return false;
        });
    }
    const bool root = item.depth == 0 && pods_.size() == 1;
    // For a single pod, the bound of this part drops to 0 only if this part was incomplete.
    const bool cut_before = incomplete_;
    if (root) incomplete_ = false;
    for (const auto node : nodes) put(item, node);
    if (more && bound() < best_) incomplete_ = true;
    if (root && incomplete_) lower_bound_ = 0;
    incomplete_ = incomplete_ || cut_before;
}

/// Returns whether other GPUs of the node than `gpus`, free ones or ones that other tasks can leave, can be a
/// better choice for the task. Idle GPUs of a node without hardware are alike.
bool Search::has_other_gpus(TaskId task, NodeId node, GpuMask gpus) const {
    const bool alike = inv_.nodes.hardware[index(node)] == NodeTable::no_hardware &&
                       inv_.tasks.gpu_memory_mib[index(task)] == 0;
    if (alike && !state_.work.is_fraction(task)) return false;
    auto others = candidate_gpus(state_.work, task, node);
    for (const auto other : state_.work.tasks_on(node))
        if (prices_[other].least < never && state_.fate[index(other)] == untouched)
            others |= state_.work.gpus_of(other);
    const auto idle = state_.work.idle_gpus(node);
    if (alike && (gpus & idle) == gpus) gpus |= idle;
    return (others & state_.work.healthy_gpus(node) & ~gpus) != 0;
}

/// Places the task on a node on which it fits now, by each useful means, and continues the search.
void Search::put(const Item& item, NodeId node) {
    if (bound() >= best_ || must_stop()) return;
    const auto task = item.task;
    const auto i = index(task);
    GpuMask gpus = 0;
    if (inv_.tasks.gpu_count[i] > 0) {
        gpus = allocation::ByWish{}(state_.work, task, node);
        // Prefers GPUs that are not lent.
        if (state_.work.may_borrow(task) && !state_.work.is_fraction(task)) {
            GpuMask firm = state_.work.idle_gpus(node);
            while (gpu_count(firm) > inv_.tasks.gpu_count[i]) firm &= firm - 1;
            if (gpus_fit(state_.work, task, node, firm)) gpus = firm;
        }
        if (!incomplete_ && has_other_gpus(task, node, gpus)) incomplete_ = true;  // they are not tried
    }
    if (!inv_.selection_memberships(task).empty()) incomplete_ = true;  // depends on the order of placements
    gpus |= free_devices_for(state_.work, task, node);
    const auto borrowed = PriceTable::borrowed_milli(state_.work, task, node, gpus);
    if (borrowed > 0) incomplete_ = true;  // other GPUs can be cheaper
    if (borrowed > 0 && !options_.standby) return;
    const auto recall = borrowed * options_.prices.recall_price_s;

    const auto try_as = [&](SearchState::Fate how) {
        const auto before = state_.mark();
        bool possible = true;
        auto cost = state_.cost + recall;
        if (how == moved) {
            possible = !options_.max_moves || state_.moves < *options_.max_moves;
            state_.set(state_.moves, state_.moves + 1);
            cost += prices_[task].move - prices_[task].least;
        } else if (how == replaced && state_.fate[i] == lifted) {
            possible = state_.evict(task, true, incomplete_);
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
                          scope_.receives(node);
    const bool may_return = price.replace < never && (job == none<JobId> || state_.broken[index(job)] != 2);
    const bool move_first = may_move && (!may_return || price.move <= price.replace);
    // The more expensive means can be better if the other uses a limit, gang or budget that others need.
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
        // The depth limit is no proof that there is no solution.
        if (bound() < best_) incomplete_ = true;
        return;
    }
    const auto home = item.depth == 0 ? none<NodeId> : snapshot_.node_of(item.task);
    const auto usable = [&](NodeId node) { return node != home && may_go(item, node); };
    // The bounds come from the snapshot and do not hold on changed nodes.
    boost::container::small_vector<NodeId, 16> touched;
    for (const auto& c : state_.changes)
        for (const auto node : {c.from, c.to})
            if (node != none<NodeId> && std::find(touched.begin(), touched.end(), node) == touched.end())
                touched.push_back(node);
    const bool root = item.depth == 0 && pods_.size() == 1;
    constexpr std::size_t most_nodes = 24;  // for displaced tasks; pods try all nodes
    std::size_t tried = 0;
    for (std::size_t r = 0; r < ranking.size(); ++r) {
        const auto least = ranking.least_from(r);
        if (state_.cost + least >= best_ || bound() >= best_) break;
        const auto entry = ranking[r];
        if (!usable(entry.node)) continue;
        if (std::find(touched.begin(), touched.end(), entry.node) != touched.end()) continue;
        // By estimate no better node is left. Estimates can be wrong, so some more are tried.
        const bool few = !root && (item.depth > 0 || state_.cost + entry.estimate >= best_);
        if (must_stop() || (few && ++tried > most_nodes)) {
            incomplete_ = true;
            if (root)
                lower_bound_ =
                    std::min(lower_bound_,
                             least + (must_lose_milli_ > 0 ? bounds_.loss_of_at_least(must_lose_milli_) : 0));
            break;
        }
        if (state_.cost + entry.bound < best_) displace_on(item, entry.node, entry.bound);
    }
    const auto can_host = [&](NodeId node) {
        return may_go(item, node) && inv_.nodes.receives(node) && inv_.eligible(item.task, node);
    };
    for (const auto node : touched)
        if (node != home && can_host(node)) displace_on(item, node, 0);
    if (displaces_at_home(item) && can_host(home)) displace_on(item, home, 0);
}

/// Tries every set of tasks that can be displaced from the node for the task, the cheapest first.
void Search::displace_on(const Item& item, NodeId node, std::int64_t node_bound) {
    if (bound() >= best_) return;
    ++stats_.steps;
    const bool root = item.depth == 0 && pods_.size() == 1;
    bool was_cut = incomplete_;
    incomplete_ = false;
    std::vector<Cover> covers;
    if (!covers_.find(item.task, node, best_ - 1 - state_.cost, defers_, covers)) incomplete_ = true;
    const auto loss = must_lose_milli_ > 0 ? bounds_.loss_of_at_least(must_lose_milli_) : 0;
    if (root && incomplete_) lower_bound_ = std::min(lower_bound_, node_bound + loss);
    was_cut = was_cut || incomplete_;
    const auto outer = stop_at_;
    for (const auto& cover : covers) {
        if (state_.cost + cover.least >= best_) continue;
        // For one pod, adds the cost of the most expensive place among the displaced tasks.
        const auto least = cover.least + std::max(cover.most, loss);
        if (root && least >= best_) continue;
        incomplete_ = stats_.steps >= outer || stats_.steps >= limit_;
        hit_step_limit_ = hit_step_limit_ || incomplete_;
        if (!incomplete_) {
            if (item.depth == 0)
                stop_at_ =
                    std::min(outer, stats_.steps + share_ * std::max<std::int64_t>(1, state_.pods_left) +
                                        static_cast<std::int64_t>(cover.tasks.size()));
            const auto before = state_.mark();
            auto order = cover.tasks;  // the largest comes last and is placed first
            std::stable_sort(order.begin(), order.end(),
                             [&](TaskId a, TaskId b) { return size_of(a) < size_of(b); });
            const auto todo = largest_first_ ? state_.todo : std::vector<Item>{};
            for (const auto task : order) state_.lift({task, item.depth + 1});
            if (largest_first_) {
                state_.todo.push_back(item);
                state_.todo.back().on = node;
                sort_todo();
                descend();
                state_.todo = todo;
            } else {
                put(item, node);
            }
            state_.undo(before);
            stop_at_ = outer;
        }
        if (root && incomplete_) lower_bound_ = std::min(lower_bound_, least);
        was_cut = was_cut || incomplete_;
    }
    incomplete_ = was_cut;
}

std::pair<std::int64_t, std::int64_t> Search::size_of(TaskId task) const {
    return {snapshot_.gpu_milli(task), inv_.tasks.cpu_milli[index(task)]};
}

/// Sorts the tasks that remain to be placed: the largest comes last and is placed first; of equal ones, a pod.
void Search::sort_todo() {
    std::stable_sort(state_.todo.begin(), state_.todo.end(), [&](const Item& a, const Item& b) {
        return std::pair(size_of(a.task), -a.depth) < std::pair(size_of(b.task), -b.depth);
    });
}

void Search::run(std::span<const NodeId> region, PassKind kind) {
    const auto least = pod_bounds_.of_region(region);
    if (least >= best_) return;  // also if there is no solution
    defers_ = kind == PassKind::deferred;
    largest_first_ = kind == PassKind::largest_first;
    if ((defers_ && !needs_others_) || (largest_first_ && (!solutions_.empty() || lower_bound_ >= best_)))
        return;
    ++stats_.domains_considered;
    by_region_ = !region.empty();
    if (by_region_) {
        in_region_.assign(snapshot_.node_slots(), 0);
        for (const auto node : region) in_region_[index(node)] = 1;
    }
    constexpr std::int64_t most_of_pod = 256;
    const auto known = lower_bound_;
    const auto limit = limit_;
    auto total = limit;
    std::int64_t found_bound = never;
    state_.pods_left = static_cast<std::int64_t>(pods_.size());
    const auto pass = [&](std::int64_t share) {
        share_ = share;
        limit_ = total;
        // Passes for several pods are short, so that there are several passes.
        stop_at_ = pods_.size() == 1 ? total : std::min(total, stats_.steps + 8 * share * state_.pods_left);
        incomplete_ = hit_step_limit_ = false;
        lower_bound_ = never;
        state_.todo.clear();
        for (const auto pod : pods_) state_.todo.push_back({pod, 0});
        sort_todo();
        const auto before = state_.mark();
        descend();
        state_.undo(before);
        state_.todo.clear();
        // The omitted parts cost at least the returned bound.
        if (!incomplete_) return never;
        return pods_.size() == 1 && lower_bound_ < never ? std::max(lower_bound_, least) : least;
    };
    loses_needed_early_ = false;
    if (kind != PassKind::usual) {
        const int depth = options_.search.depth, deeper = 2 * depth - 1;
        auto& left = defers_ ? left_for_others_ : left_for_largest_first_;
        const auto before = stats_.steps;
        auto most = by_region_ ? (left + 1) / 2 : left;
        const auto has_plan = [&] { return solutions_.size() > makeshift_; };
        if (has_plan()) most = std::min(most, most_of_pod * state_.pods_left);
        total = before + most;
        // If other tasks are displaced for near and spread, simple plans first.
        for (depth_ = defers_ ? 0 : deeper;
             depth_ <= (has_plan() ? depth : deeper) && best_ > least && stats_.steps < total; ++depth_)
            for (std::int64_t share = 32;; share *= 4) {
                static_cast<void>(pass(share));
                if (!hit_step_limit_ || best_ <= least || stats_.steps >= total) break;
            }
        left -= stats_.steps - before;
        if (largest_first_) makeshift_ = solutions_.size();
        lower_bound_ = known;
        limit_ = limit;
        return;
    }
    // Several pods have several passes, of depth 2 until a solution is found or the second pass ends.
    const bool one = pods_.size() == 1;
    depth_ = one ? options_.search.depth : std::min(options_.search.depth, 2);
    for (std::int64_t share = 32;; share *= one ? 8 : 3) {
        const auto bound = pass(share);
        const bool complete =
            !hit_step_limit_ && depth_ == options_.search.depth;  // a longer pass finds nothing new
        found_bound = found_bound == never ? bound : bound == never ? never : std::max(found_bound, bound);
        if (bound >= best_ || !incomplete_) {
            found_bound = bound;
            break;
        }
        // Improves the solution by excluding one of its nodes at a time.
        for (bool better = pods_.size() > 1 && !solutions_.empty(); better && best_ > least;) {
            better = false;
            std::vector<NodeId> used;
            for (const auto& p : solutions_.back().placements)
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
        if (complete || best_ <= least || stats_.steps >= total || budget_.reason() != StopReason::completed)
            break;
        if (!solutions_.empty() || loses_needed_early_) depth_ = options_.search.depth;
        loses_needed_early_ = !loses_needed_early_;  // the estimates may have been wrong
    }
    lower_bound_ = std::min(known, found_bound);
}

bool Search::match(std::span<const NodeId> region, std::int64_t most_steps) {
    const auto cost = best_, known = lower_bound_, limit = limit_;
    const auto found = solutions_.size();
    best_ = cost + 1;
    limit_ = stats_.steps + most_steps;
    run(region, PassKind::usual);
    limit_ = limit;
    lower_bound_ = known;
    if (solutions_.size() > found) return true;
    best_ = cost;
    return false;
}

void Search::finish() {
    ++stats_.plans_found;
    if (state_.cost >= best_) return;
    Solution solution{.cost = state_.cost, .evictions = state_.evictions, .moves = {}, .placements = {}};
    // The task that was placed last moves first.
    for (auto put = state_.puts.rbegin(); put != state_.puts.rend(); ++put)
        if (state_.fate[index(put->task)] == moved)
            solution.moves.push_back({put->task, snapshot_.node_of(put->task), put->node, put->gpus, 0});
    for (const auto& put : state_.puts)
        if (state_.fate[index(put.task)] != moved) solution.placements.push_back(put);
    state_.work.rollback(0);
    const bool possible = restarts_keep_budgets(solution) && order_moves(solution);
    const auto helpers = defers_ && !possible ? find_helpers() : Items{};
    state_.work.rollback(0);
    for (const auto& c : state_.changes) state_.work.assign(c.task, c.to, c.gpus);
    if (!possible || solution.cost >= best_) {
        ++stats_.unorderable;
        incomplete_ = true;
        // Displaces one more task, which can help.
        for (const auto& helper : helpers) {
            if (bound() >= best_ || must_stop()) break;
            const auto before = state_.mark();
            state_.lift(helper);
            descend();
            state_.undo(before);
        }
        return;
    }
    if (solution.cost > state_.cost) incomplete_ = true;
    best_ = solution.cost;
    std::sort(solution.evictions.begin(), solution.evictions.end());
    solutions_.push_back(std::move(solution));
}

/// The members of groups that can help the tasks that `order_moves` could not place, the cheapest first.
Search::Items Search::find_helpers() {
    Items helpers;
    const auto is_in = [&](TaskId task, std::uint32_t set) {
        const auto of = inv_.selection_memberships(task);
        return std::any_of(of.begin(), of.end(),
                           [&](const Membership& m) { return m.set == set && m.is_member(); });
    };
    boost::container::small_vector<std::pair<std::uint32_t, DomainId>, 8> known;
    for (const auto& put : state_.puts) {
        if (state_.work.node_of(put.task) == put.node) continue;
        for (const auto& [obstacle, set, members, limit] :
             gpusched::detail::list_group_conflicts(state_.work, put.task, put.node)) {
            const auto domain = inv_.domain_at(inv_.group_sets[set].level, put.node);
            if (!gpusched::detail::may_pass(obstacle) || domain == none<DomainId> ||
                std::find(known.begin(), known.end(), std::pair(set, domain)) != known.end())
                continue;
            known.emplace_back(set, domain);
            const bool near = obstacle == Obstacle::near;
            // The first task of a set needs no other near it, if it is a member itself.
            const bool is_first = near && is_in(put.task, set);
            for (const auto& [from, tasks] : covers_.members_of(set))
                for (const auto task : tasks)
                    if ((!near || from != domain) && is_in(task, set) &&
                        state_.fate[index(task)] == untouched && state_.cost + prices_[task].least < best_)
                        helpers.push_back({task, 1, near ? is_first : from == domain, set, domain});
        }
    }
    std::stable_sort(helpers.begin(), helpers.end(), [&](const Item& a, const Item& b) {
        return prices_[a.task].least < prices_[b.task].least;
    });
    return helpers;
}

/// Returns whether the budgets allow each restarting task to be down together with the evicted tasks, which
/// are down during all moves. Only evictions may exceed budgets at a price.
bool Search::restarts_keep_budgets(const Solution& solution) const {
    return std::all_of(solution.moves.begin(), solution.moves.end(), [&](const auto& move) {
        return inv_.tasks.how(move.task) == Mobility::copy || state_.may_be_down(move.task);
    });
}

/// Returns whether the task fits on the node now: on `gpus`, or with `others` on GPUs that replace them.
bool Search::fits(TaskId task, NodeId to, GpuMask& gpus, bool others) const {
    if (find_obstacle(state_.work, task, to) != Obstacle::none) return false;
    if (gpus_fit(state_.work, task, to, gpus)) return true;
    if (!others) return false;
    gpus = allocation::pick_gpus(allocation::ByWish{}, state_.work, task, to);
    return true;
}

/// Appends the waiting moves to `ordered` in the first order in which each is possible, and makes them.
/// @return false if `tries` of them do not find one; nothing has changed then
bool Search::try_orders(std::vector<consolidation::Step>& waiting, std::vector<consolidation::Step>& ordered,
                        int& tries) {
    for (std::size_t i = 0; i < waiting.size() && --tries >= 0; ++i) {
        auto step = waiting[i];
        if (!fits(step.task, step.to, step.gpus, true)) continue;
        const auto before = state_.work.checkpoint();
        state_.work.assign(step.task, step.to, step.gpus);
        ordered.push_back(step);
        const auto at = waiting.begin() + static_cast<std::ptrdiff_t>(i);
        const auto planned = *at;
        waiting.erase(at);
        if (try_orders(waiting, ordered, tries)) return true;
        waiting.insert(waiting.begin() + static_cast<std::ptrdiff_t>(i), planned);
        ordered.pop_back();
        state_.work.rollback(before);
    }
    return waiting.empty();
}

/// Orders the moves so that each is possible while its source is still occupied (make before break). If moves
/// wait for each other in a cycle, instead evicts the task with the lowest additional cost and
/// places it again.
bool Search::order_moves(Solution& solution) {
    for (const auto task : solution.evictions) state_.work.remove(task);
    auto waiting = std::move(solution.moves);
    solution.moves.clear();
    const auto before_moves = state_.work.checkpoint();
    int tries_left = 128;
    while (!waiting.empty()) {
        bool found = false;
        // First tasks that need others, which may still leave.
        for (const int stage : {0, 1, 2}) {
            for (auto step = waiting.begin(); step != waiting.end() && !found; ++step) {
                if (stage == 0 && (!needs_others_ || !gpusched::detail::needs_others(inv_, step->task)))
                    continue;
                if (!fits(step->task, step->to, step->gpus, stage == 2)) continue;
                state_.work.assign(step->task, step->to, step->gpus);
                solution.moves.push_back(*step);
                waiting.erase(step);
                found = true;
                break;
            }
            if (found) break;
        }
        if (found) continue;
        // Earlier moves can take away what a task needs (near, spread): tries other orders, that task first.
        const auto late = std::find_if(waiting.begin(), waiting.end(), [&](const auto& step) {
            return gpusched::detail::may_pass(find_obstacle(state_.work, step.task, step.to));
        });
        if (late != waiting.end() && tries_left > 0) {
            std::vector<consolidation::Step> all{*late}, ordered;
            for (const auto& step : waiting)
                if (step.task != late->task) all.push_back(step);
            all.insert(all.end(), solution.moves.begin(), solution.moves.end());
            state_.work.rollback(before_moves);
            if (try_orders(all, ordered, tries_left)) {
                solution.moves = std::move(ordered);
                break;
            }
            for (const auto& step : solution.moves) state_.work.assign(step.task, step.to, step.gpus);
        }
        tries_left = 0;
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
            static_cast<std::int64_t>(solution.evictions.size()) >= *options_.max_evictions)
            return false;
        solution.cost += extra;
        if (solution.cost >= best_) return false;
        solution.evictions.push_back(cheapest->task);
        solution.placements.push_back({cheapest->task, cheapest->to, cheapest->gpus});
        state_.work.remove(cheapest->task);
        waiting.erase(cheapest);
    }
    return gpusched::detail::place_in_some_order(solution.placements.size(),
                                                 [&](std::size_t i) {
                                                     auto& p = solution.placements[i];
                                                     if (!fits(p.task, p.node, p.gpus, true)) return false;
                                                     state_.work.assign(p.task, p.node, p.gpus);
                                                     return true;
                                                 })
        .empty();
}

}  // namespace gpusched::admission::detail

#pragma once

#include <gpusched/admission/detail/search.hpp>
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/destination_rankings.hpp>
#include <gpusched/model/feasibility.hpp>

#include <boost/container/small_vector.hpp>

#include <algorithm>

namespace GPUSCHED_NAMESPACE::admission::detail {

GPUSCHED_INTERNAL Search::Search(const Cluster& snapshot, Cluster work, std::span<const TaskId> pods,
                                 const Options& options, const consolidation::Scope& scope,
                                 const Prices& prices, const preemption::detail::GangTable& gangs,
                                 NodeBounds& bounds, Budget& budget, Statistics& stats)
    : snapshot_(snapshot), inv_(snapshot.inventory()), pods_(pods), options_(options), scope_(scope),
      prices_(prices), gangs_(gangs), bounds_(bounds), budget_(budget), stats_(stats), work_(std::move(work)),
      state_(snapshot.task_slots()), gone_(inv_.job_names.size()), broken_(inv_.job_names.size()),
      down_(inv_.budgets.size()) {
    index_.rebuild(work_);
    if (!options.exempt.empty()) exempt_.assign(snapshot.node_slots(), 0);
    for (const auto node : options.exempt) exempt_[index(node)] = 1;
    for (const auto pod : pods) needed_milli_ += snapshot.gpu_milli(pod);
    needed_milli_ -= bounds.free_milli();
    if (needed_milli_ > 0) bounds.prepare_losses(needed_milli_);
    if (options.max_cost_s && *options.max_cost_s < never / 1000) best_ = *options.max_cost_s * 1000 + 1;
    lends_ =
        std::any_of(inv_.tasks.standby.begin(), inv_.tasks.standby.end(), [](auto is) { return is != 0; });
    const auto count = static_cast<std::int64_t>(pods.size());
    limit_ = options.search_limit < INT64_MAX / count ? options.search_limit * count : INT64_MAX;
}

GPUSCHED_INTERNAL void Search::offer(Way way) {
    if (way.cost >= best_) return;
    best_ = way.cost;
    ways_.push_back(std::move(way));
}

// Changes that can be undone ---------------------------------------------------------------------------------
GPUSCHED_INTERNAL Search::Mark Search::mark() const noexcept {
    return {changes_.size(), journal_.size(), puts_.size(), todo_.size(), evictions_.size()};
}

GPUSCHED_INTERNAL void Search::undo(const Mark& to) {
    work_.rollback(to.changes);
    for (auto i = to.changes; i < changes_.size(); ++i)
        for (const auto node : {changes_[i].from, changes_[i].to})
            if (node != none<NodeId>) index_.usage_changed(work_, node);
    changes_.resize(to.changes);
    for (; journal_.size() > to.journal; journal_.pop_back()) *journal_.back().first = journal_.back().second;
    puts_.resize(to.puts);
    todo_.resize(to.todo);
    evictions_.resize(to.evictions);
}

GPUSCHED_INTERNAL void Search::set(std::int64_t& value, std::int64_t to) {
    journal_.emplace_back(&value, value);
    value = to;
}

GPUSCHED_INTERNAL void Search::change(TaskId task, NodeId node, GpuMask gpus) {
    const auto from = work_.node_of(task);
    work_.assign(task, node, gpus);
    changes_.push_back({task, from, node, gpus});
    for (const auto at : {from, node})
        if (at != none<NodeId>) index_.usage_changed(work_, at);
}

// Displacing -------------------------------------------------------------------------------------------------
GPUSCHED_INTERNAL void Search::lift(TaskId task, int depth) {
    set(state_[index(task)], lifted);
    set(cost_, cost_ + prices_[task].least);
    change(task, none<NodeId>, 0);
    todo_.push_back({task, depth});
}

/// Takes the victim into the books, and with it its gang where that falls below `min_members`.
GPUSCHED_INTERNAL bool Search::evict(TaskId task, bool again) {
    if (options_.max_evictions && static_cast<std::int64_t>(evictions_.size()) >= *options_.max_evictions)
        return false;
    evictions_.push_back(task);
    for (const auto b : inv_.budgets_of(task)) {
        set(down_[b], down_[b] + 1);
        if (down_[b] <= inv_.budgets[b].allows()) continue;
        if (!options_.budget_price_s) return false;
        set(cost_, std::min(never, cost_ + *options_.budget_price_s * 1000));
    }
    const auto job = inv_.tasks.job[index(task)];
    if (job == none<JobId> || broken_[index(job)] != 0) return true;
    set(gone_[index(job)], gone_[index(job)] + 1);
    if (gone_[index(job)] <= gangs_.surplus(inv_, job)) return true;
    return evict_gang(job, task, again);
}

GPUSCHED_INTERNAL bool Search::evict_gang(JobId job, TaskId first, bool again) {
    if (prices_.unbroken[index(job)]) return false;
    cut_ = true;  // further splits of the gang into those that run again and those that do not
    set(broken_[index(job)], again ? 1 : 2);
    boost::container::small_vector<TaskId, 16> members;
    gangs_.for_each(job, [&](TaskId member) { members.push_back(member); });
    std::sort(members.begin(), members.end());
    for (const auto member : members) {
        const auto state = state_[index(member)];
        if (member == first || state == replaced || state == lost) {
            if (member != first && state == (again ? lost : replaced)) return false;
            continue;
        }
        const auto& price = prices_[member];
        const auto own = again ? price.replace : price.lose;
        if (own >= never || (state != untouched && state != lifted)) return false;
        if (!evict(member, again)) return false;
        set(cost_, cost_ + own - (state == lifted ? price.least : 0));
        if (state == untouched) {
            change(member, none<NodeId>, 0);
            if (again) todo_.push_back({member, 1});
        }
        // A lifted one is in the list already; it finds its state there.
        set(state_[index(member)], again ? evicted : lost);
        if (!again) set(lost_milli_, lost_milli_ + snapshot_.gpu_milli(member));
    }
    return true;
}

GPUSCHED_INTERNAL void Search::lose(const Item& item) {
    const auto& price = prices_[item.task];
    if (price.lose >= never) return;
    if (const auto job = inv_.tasks.job[index(item.task)]; job != none<JobId> && broken_[index(job)] == 1)
        return;
    const auto before = mark();
    if (evict(item.task, false)) {
        set(state_[index(item.task)], lost);
        set(cost_, cost_ + price.lose - price.least);
        set(lost_milli_, lost_milli_ + snapshot_.gpu_milli(item.task));
        descend();
    }
    undo(before);
}

// Placing ----------------------------------------------------------------------------------------------------
GPUSCHED_INTERNAL bool Search::out() {
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
GPUSCHED_INTERNAL std::int64_t Search::bound() const {
    auto least =
        cost_ + (lost_milli_ < needed_milli_ ? bounds_.loss_of_at_least(needed_milli_ - lost_milli_) : 0);
    if (!cheapest_pods_.empty())
        least = std::max(least, pods_cost_ + cheapest_pods_[static_cast<std::size_t>(pods_left_)]);
    return least;
}

GPUSCHED_INTERNAL bool Search::may_go(const Item& item, NodeId node) const {
    if (item.depth == 0)
        return (!by_region_ || in_region_[index(node)]) && (banned_.empty() || !banned_[index(node)]);
    if (!exempt_.empty() && exempt_[index(node)]) return false;
    const auto& price = prices_[item.task];
    const bool may_move = price.move < never && state_[index(item.task)] == lifted &&
                          node != snapshot_.node_of(item.task) && scope_.may_receive[index(node)];
    return may_move || price.replace < never;
}

GPUSCHED_INTERNAL void Search::descend() {
    if (bound() >= best_ || out()) return;
    ++stats_.steps;
    if (lends_) cut_ = true;  // which GPUs are borrowed is not varied
    // Members of gangs that are lost have left the list.
    const auto size = todo_.size();
    boost::container::small_vector<Item, 8> skipped;
    while (!todo_.empty() && state_[index(todo_.back().task)] == lost) {
        skipped.push_back(todo_.back());
        todo_.pop_back();
    }
    if (todo_.empty()) {
        finish();
    } else {
        const auto item = todo_.back();
        todo_.pop_back();
        place(item);
        todo_.push_back(item);
    }
    while (!skipped.empty()) {
        todo_.push_back(skipped.back());
        skipped.pop_back();
    }
    GPUSCHED_ASSERT(todo_.size() == size);
    static_cast<void>(size);
}

/// Some constraint of the task may depend on tasks of other nodes, who could leave, or come, for its sake: that is not tried.
GPUSCHED_INTERNAL bool Search::looks_beyond_its_node(TaskId task) const {
    const auto groups = inv_.memberships(task);
    return std::any_of(groups.begin(), groups.end(), [&](const Membership& m) {
        const auto& set = inv_.group_sets[m.set];
        return set.level != node_level || set.kind == GroupKind::near || set.kind == GroupKind::spread;
    });
}

GPUSCHED_INTERNAL void Search::place(const Item& item) {
    if (looks_beyond_its_node(item.task)) {
        cut_ = true;
        if (item.depth == 0) lower_bound_ = 0;
    }
    place_directly(item);
    if (item.depth == 0) return place_by_displacing(item);
    const auto& price = prices_[item.task];
    const bool may_lose = state_[index(item.task)] == lifted;
    // The cheaper of the two first, by what each costs at least; and where somebody must be lost anyway, that is nothing more.
    const auto chain = std::min(price.move, price.replace) - price.least + elsewhere(item.task);
    const bool first = may_lose && (lost_milli_ + snapshot_.gpu_milli(item.task) <= needed_milli_ ||
                                    price.lose - price.least < chain);
    if (first) lose(item);
    place_by_displacing(item);
    if (may_lose && !first) lose(item);
}

GPUSCHED_INTERNAL void Search::place_directly(const Item& item) {
    constexpr std::size_t most = 12;
    boost::container::small_vector<NodeId, most> nodes;
    bool more = false;
    consolidation::TightestFit{}.visit(work_, index_, item.task, [&](NodeId node) {
        if (!may_go(item, node) || find_obstacle(work_, item.task, node) != Obstacle::none ||
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
GPUSCHED_INTERNAL void Search::put(const Item& item, NodeId node, std::int64_t node_bound) {
    if (bound() >= best_ || out()) return;
    const auto task = item.task;
    const auto i = index(task);
    GpuMask gpus = 0;
    if (inv_.tasks.gpu_count[i] > 0) {
        gpus = allocation::ByWish{}(work_, task, node);
        // What nobody lends comes first.
        if (work_.may_borrow(task) && !work_.is_fraction(task)) {
            GpuMask firm = work_.idle_gpus(node);
            while (gpu_count(firm) > inv_.tasks.gpu_count[i]) firm &= firm - 1;
            if (gpus_fit(work_, task, node, firm)) gpus = firm;
        }
        if (work_.is_fraction(task) || inv_.nodes.hardware[index(node)] != NodeTable::no_hardware ||
            inv_.tasks.gpu_memory_mib[i] > 0)
            cut_ = true;  // other GPUs of the node
    }
    if (!inv_.selection_memberships(task).empty()) cut_ = true;  // depends on the order of placing
    gpus |= free_devices_for(work_, task, node);
    const auto borrowed = Prices::borrowed_milli(work_, task, node, gpus);
    if (borrowed > 0 && !options_.borrow) return;
    const auto recall = borrowed * options_.recall_price_s;

    const auto try_as = [&](State how) {
        const auto before = mark();
        bool possible = true;
        auto cost = cost_ + recall;
        if (how == moved) {
            possible = !options_.max_moves || moves_ < *options_.max_moves;
            set(moves_, moves_ + 1);
            cost += prices_[task].move - prices_[task].least;
        } else if (how == replaced && state_[i] == lifted) {
            possible = evict(task, true);
            cost = cost_ + recall + prices_[task].replace - prices_[task].least;
        } else if (how == placed) {
            set(pods_left_, pods_left_ - 1);
            set(pods_cost_, pods_cost_ + node_bound);
        }
        if (possible) {
            set(cost_, cost);
            set(state_[i], how);
            change(task, node, gpus);
            puts_.push_back({task, node, gpus});
            descend();
        }
        undo(before);
        return possible;
    };
    if (item.depth == 0) {
        try_as(placed);
        return;
    }
    const auto& price = prices_[task];
    const auto job = inv_.tasks.job[i];
    const bool may_move = price.move < never && state_[i] == lifted && node != snapshot_.node_of(task) &&
                          scope_.may_receive[index(node)];
    const bool may_return = price.replace < never && (job == none<JobId> || broken_[index(job)] != 2);
    const bool move_first = may_move && (!may_return || price.move <= price.replace);
    // The dearer of the two may be the better one where the other uses up what somebody else needs.
    const bool either =
        options_.max_moves || options_.max_evictions || job != none<JobId> || !inv_.budgets_of(task).empty();
    if (move_first && try_as(moved) && !either) return;
    if (may_return && try_as(replaced) && !either) return;
    if (may_move && !move_first) try_as(moved);
}

GPUSCHED_INTERNAL std::int64_t Search::elsewhere(TaskId task) {
    auto& ranking = bounds_.ranking(snapshot_, task);
    for (std::size_t r = 0; r < std::min<std::size_t>(2, ranking.size()); ++r)
        if (ranking[r].node != snapshot_.node_of(task)) return ranking[r].bound;
    return never;
}

GPUSCHED_INTERNAL std::int64_t Search::hardness(TaskId task) {
    const auto& price = prices_[task];
    const auto place = price.move < never ? elsewhere(task) : never;
    return std::min({place < never ? price.move + place : never, price.replace, price.lose}) - price.least;
}

GPUSCHED_INTERNAL void Search::place_by_displacing(const Item& item) {
    auto& ranking = bounds_.ranking(snapshot_, item.task);
    const bool deepest = item.depth >= options_.depth;
    if (deepest) {
        // Depth ends the search here, but not the question whether there is a way.
        if (bound() < best_) cut_ = true;
        return;
    }
    const auto home = item.depth == 0 ? none<NodeId> : snapshot_.node_of(item.task);
    const auto usable = [&](NodeId node) { return node != home && may_go(item, node); };
    // Where something has changed the bounds of the snapshot do not hold.
    boost::container::small_vector<NodeId, 16> touched;
    for (const auto& c : changes_)
        for (const auto node : {c.from, c.to})
            if (node != none<NodeId> && std::find(touched.begin(), touched.end(), node) == touched.end())
                touched.push_back(node);
    constexpr std::size_t most_nodes = 24;  // for displaced tasks; pods look at all
    std::size_t tried = 0;
    for (std::size_t r = 0; r < ranking.size(); ++r) {
        const auto entry = ranking[r];
        if (cost_ + entry.bound >= best_ || bound() >= best_) break;
        if (!usable(entry.node)) continue;
        if (std::find(touched.begin(), touched.end(), entry.node) != touched.end()) continue;
        if (out() || (item.depth > 0 && ++tried > most_nodes)) {
            cut_ = true;
            if (item.depth == 0 && pods_.size() == 1)
                lower_bound_ =
                    std::min(lower_bound_,
                             entry.bound + (needed_milli_ > 0 ? bounds_.loss_of_at_least(needed_milli_) : 0));
            break;
        }
        displace_on(item, entry.node, entry.bound);
    }
    for (const auto node : touched)
        if (usable(node) && inv_.nodes.receives(node) && inv_.eligible(item.task, node))
            displace_on(item, node, 0);
}

/// Every set of tasks that makes room for the task on the node, the cheapest first.
GPUSCHED_INTERNAL void Search::displace_on(const Item& item, NodeId node, std::int64_t node_bound) {
    if (bound() >= best_) return;
    ++stats_.steps;
    const bool root = item.depth == 0 && pods_.size() == 1;
    bool was_cut = cut_;
    cut_ = false;
    std::vector<Cover> covers;
    find_covers(item.task, node, best_ - 1 - cost_, covers);
    const auto loss = needed_milli_ > 0 ? bounds_.loss_of_at_least(needed_milli_) : 0;
    if (root && cut_) lower_bound_ = std::min(lower_bound_, node_bound + loss);
    was_cut = was_cut || cut_;
    const auto outer = stop_at_;
    for (const auto& cover : covers) {
        if (cost_ + cover.least >= best_) continue;
        // One pod: what the hardest of the displaced tasks needs elsewhere is not counted yet.
        const auto least = cover.least + std::max(cover.most, loss);
        if (root && least >= best_) continue;
        cut_ = stats_.steps >= outer || stats_.steps >= limit_;
        stopped_ = stopped_ || cut_;
        if (!cut_) {
            if (item.depth == 0)
                stop_at_ = std::min(outer, stats_.steps + share_ * std::max<std::int64_t>(1, pods_left_) +
                                               static_cast<std::int64_t>(cover.tasks.size()));
            const auto before = mark();
            auto order = cover.tasks;  // the hardest to place comes last, and so goes first
            std::stable_sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
                return std::pair(snapshot_.gpu_milli(a), inv_.tasks.cpu_milli[index(a)]) <
                       std::pair(snapshot_.gpu_milli(b), inv_.tasks.cpu_milli[index(b)]);
            });
            for (const auto task : order) lift(task, item.depth + 1);
            put(item, node, node_bound);
            undo(before);
            stop_at_ = outer;
        }
        if (root && cut_) lower_bound_ = std::min(lower_bound_, least);
        was_cut = was_cut || cut_;
    }
    cut_ = was_cut;
}

// The whole --------------------------------------------------------------------------------------------------
GPUSCHED_INTERNAL std::int64_t Search::bound_of(std::span<const NodeId> region) {
    std::vector<std::uint8_t> inside;
    if (!region.empty()) {
        inside.assign(snapshot_.node_slots(), 0);
        for (const auto node : region) inside[index(node)] = 1;
    }
    // One shape that fits only once on every node: each pod needs a node of its own, and what it displaces there is its own.
    const auto key = request_key(snapshot_, pods_.front());
    bool alone = inv_.tasks.gpu_count[index(pods_.front())] > 0 && !snapshot_.is_fraction(pods_.front());
    std::int64_t least = 0;
    for (const auto pod : pods_) alone = alone && request_key(snapshot_, pod) == key;
    std::vector<std::int64_t> smallest;
    TaskId last = none<TaskId>;
    for (const auto pod : pods_) {
        if (last != none<TaskId> && request_key(snapshot_, pod) == request_key(snapshot_, last)) continue;
        last = pod;
        auto& ranking = bounds_.ranking(snapshot_, pod);
        std::vector<std::int64_t> found;
        if (inside.empty() && !alone) {
            if (ranking.size() > 0) found.push_back(ranking[0].bound);
        } else {
            for (const auto& entry : ranking.unsorted())
                if (inside.empty() || inside[index(entry.node)]) {
                    found.push_back(entry.bound);
                    alone = alone && snapshot_.gpu_count(entry.node) < 2 * inv_.tasks.gpu_count[index(pod)];
                }
        }
        if (found.empty()) return never;
        if (alone) smallest = found;
        least = std::max(least, *std::min_element(found.begin(), found.end()));
    }
    cheapest_pods_.clear();
    if (alone) {
        if (smallest.size() < pods_.size()) return never;
        std::partial_sort(smallest.begin(), smallest.begin() + static_cast<std::ptrdiff_t>(pods_.size()),
                          smallest.end());
        cheapest_pods_.assign(1, 0);
        for (std::size_t p = 0; p < pods_.size(); ++p)
            cheapest_pods_.push_back(std::min(never, cheapest_pods_.back() + smallest[p]));
        least = cheapest_pods_.back();
    }
    if (needed_milli_ > 0) {
        const auto loss = bounds_.loss_of_at_least(needed_milli_);
        if (loss >= never) return never;
        least += loss;
    }
    return least;
}

GPUSCHED_INTERNAL void Search::run(std::span<const NodeId> region) {
    const auto least = bound_of(region);
    if (least >= best_) return;  // also where there is no way at all
    ++stats_.domains_considered;
    by_region_ = !region.empty();
    if (by_region_) {
        in_region_.assign(snapshot_.node_slots(), 0);
        for (const auto node : region) in_region_[index(node)] = 1;
    }
    const auto known = lower_bound_;
    const auto total = limit_;
    std::int64_t found_bound = never;
    pods_left_ = static_cast<std::int64_t>(pods_.size());
    const auto pass = [&](std::int64_t share) {
        share_ = share;
        limit_ = total;
        // Passes over gangs are short, so that there are several.
        stop_at_ = pods_.size() == 1 ? total : std::min(total, stats_.steps + 8 * share * pods_left_);
        cut_ = stopped_ = false;
        lower_bound_ = never;
        todo_.clear();
        // The largest first: they come last into the list.
        for (const auto pod : pods_) todo_.push_back({pod, 0});
        std::stable_sort(todo_.begin(), todo_.end(), [&](const Item& a, const Item& b) {
            return std::pair(snapshot_.gpu_milli(a.task), inv_.tasks.cpu_milli[index(a.task)]) <
                   std::pair(snapshot_.gpu_milli(b.task), inv_.tasks.cpu_milli[index(b.task)]);
        });
        const auto before = mark();
        descend();
        undo(before);
        todo_.clear();
        // Of what was left out nothing costs less than this.
        auto bound = cut_
                         ? (pods_.size() == 1 && lower_bound_ < never ? std::max(lower_bound_, least) : least)
                         : never;
        if (cut_ && pods_.size() > 1) bound = least;
        return bound;
    };
    for (std::int64_t share = 32;; share *= 8) {
        const auto bound = pass(share);
        const bool whole = !stopped_;  // a longer pass would find nothing else
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
    }
    lower_bound_ = std::min(known, found_bound);
}

}  // namespace GPUSCHED_NAMESPACE::admission::detail

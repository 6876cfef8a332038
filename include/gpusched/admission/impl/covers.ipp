// Which sets of tasks would have to leave a node for another: all minimal ones, cheapest first.
#pragma once

#include <gpusched/admission/detail/search.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <tuple>

namespace GPUSCHED_NAMESPACE::admission::detail {

GPUSCHED_INTERNAL bool Search::alike(TaskId a, TaskId b, NodeId node) const {
    if (inv_.nodes.hardware[index(node)] != NodeTable::no_hardware) return false;
    const auto& t = inv_.tasks;
    const auto& x = prices_[a];
    const auto& y = prices_[b];
    return t.job[index(a)] == none<JobId> && t.job[index(b)] == none<JobId> && !snapshot_.is_fraction(a) &&
           request_key(snapshot_, a) == request_key(snapshot_, b) &&
           t.traits[index(a)] == t.traits[index(b)] && t.profile[index(a)] == t.profile[index(b)] &&
           t.gpu_memory_mib[index(a)] == t.gpu_memory_mib[index(b)] && inv_.budgets_of(a).empty() &&
           inv_.budgets_of(b).empty() && x.move == y.move && x.replace == y.replace && x.lose == y.lose;
}

GPUSCHED_INTERNAL void Search::find_covers(TaskId task, NodeId node, std::int64_t most_cost,
                                           std::vector<Cover>& covers) {
    constexpr std::int64_t most_sets = 2000;
    for_ = task;
    on_ = node;
    most_cost_ = most_cost;
    sets_left_ = most_sets;
    covers_ = &covers;
    covers.clear();
    candidates_.clear();
    chosen_.clear();
    for (const auto other : work_.tasks_on(node))
        if (state_[index(other)] == untouched && prices_[other].least <= most_cost)
            candidates_.push_back(other);
    const auto& t = inv_.tasks;
    const auto key = [&](TaskId x) {
        return std::tuple(-snapshot_.gpu_milli(x), prices_[x].least, -t.cpu_milli[index(x)],
                          -t.memory_mib[index(x)], prices_[x].lose, x);
    };
    std::sort(candidates_.begin(), candidates_.end(), [&](TaskId a, TaskId b) { return key(a) < key(b); });
    rest_.assign(candidates_.size() + 1, {0, 0, 0});
    for (auto i = candidates_.size(); i-- > 0;) {
        const auto x = candidates_[i];
        rest_[i] = rest_[i + 1];
        rest_[i].gpus += gpu_count(work_.gpus_of(x) & ~work_.devices(node));
        rest_[i].cpu += t.cpu_milli[index(x)];
        rest_[i].memory += t.memory_mib[index(x)];
    }
    find_covers(0, 0);
    if (sets_left_ <= 0) {
        cut_ = true;
        find_one_cover();
    }
    for (auto& cover : covers) {
        cover.hard = cover.least;
        for (const auto x : cover.tasks) {
            const auto more = hardness(x);
            cover.hard = std::min(never, cover.hard + more);
            cover.most = std::max(cover.most, more);
        }
    }
    std::stable_sort(covers.begin(), covers.end(), [](const Cover& a, const Cover& b) {
        return std::tuple(a.hard, a.least, a.tasks.size()) < std::tuple(b.hard, b.least, b.tasks.size());
    });
}

/// All leave, and then come back, the dearest first, as long as the task still fits.
GPUSCHED_INTERNAL void Search::find_one_cover() {
    const auto before = work_.checkpoint();
    for (const auto x : candidates_) work_.remove(x);
    if (find_obstacle(work_, for_, on_) == Obstacle::none) {
        auto order = candidates_;
        std::sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
            return std::pair(-prices_[a].least, a) < std::pair(-prices_[b].least, b);
        });
        Cover cover;
        for (const auto x : order) {
            work_.assign(x, on_, snapshot_.gpus_of(x));
            if (find_obstacle(work_, for_, on_) == Obstacle::none) continue;
            work_.remove(x);
            cover.tasks.push_back(x);
            cover.least = std::min(never, cover.least + prices_[x].least);
        }
        if (!cover.tasks.empty() && cover.least <= most_cost_) covers_->push_back(std::move(cover));
    }
    work_.rollback(before);
}

GPUSCHED_INTERNAL void Search::find_covers(std::size_t next, std::int64_t cost) {
    if (--sets_left_ <= 0) return;
    ++stats_.sets_checked;
    const auto& t = inv_.tasks;
    const auto i = index(for_);
    const auto lent = work_.lent_to(for_);
    const bool whole = t.gpu_count[i] > 0 && !work_.is_fraction(for_);
    const auto idle = whole ? gpu_count(work_.idle_gpus(on_, lent)) : 0;
    if ((!whole || idle >= t.gpu_count[i]) && !chosen_.empty() &&
        find_obstacle(work_, for_, on_) == Obstacle::none) {
        // Minimal: without any one of them it does not fit.
        for (const auto x : chosen_) {
            if (chosen_.size() == 1) break;
            const auto before = work_.checkpoint();
            work_.assign(x, on_, snapshot_.gpus_of(x));
            const bool fits = find_obstacle(work_, for_, on_) == Obstacle::none;
            work_.rollback(before);
            if (fits) return;
        }
        covers_->push_back({cost, cost, 0, chosen_});
        return;
    }
    if (next == candidates_.size()) return;
    if (whole && idle + rest_[next].gpus < t.gpu_count[i]) return;
    if (work_.cpu_free_milli(on_, Lent::yes) + rest_[next].cpu < t.cpu_milli[i]) return;
    if (work_.memory_free_mib(on_) + rest_[next].memory < t.memory_mib[i]) return;
    const auto x = candidates_[next];
    if (cost + prices_[x].least <= most_cost_) {
        const auto before = work_.checkpoint();
        work_.remove(x);
        chosen_.push_back(x);
        find_covers(next + 1, cost + prices_[x].least);
        chosen_.pop_back();
        work_.rollback(before);
    }
    do ++next;
    while (next < candidates_.size() && alike(x, candidates_[next], on_));
    find_covers(next, cost);
}

}  // namespace GPUSCHED_NAMESPACE::admission::detail

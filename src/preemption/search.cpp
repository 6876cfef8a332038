// SPDX-License-Identifier: Apache-2.0
// The searches for the victims on one node.
#include "preemption/search.hpp"

#include <gpusched/core/budget.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::preemption::detail {

int compare(const Candidate& a, const Candidate& b, Objective objective, bool across) noexcept {
    const auto order = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
    const auto fewer = order(a.count, b.count);
    const auto lower = order(a.max_priority, b.max_priority);
    const auto cheaper = order(a.cost, b.cost);
    const auto first_of = [](std::initializer_list<int> keys) {
        for (const int key : keys)
            if (key != 0) return key;
        return 0;
    };
    if (a.over_budget != b.over_budget) return a.over_budget < b.over_budget ? -1 : 1;
    if (objective == Objective::cost) return first_of({cheaper, fewer, lower});
    const auto higher = order(b.score, a.score);
    if (objective == Objective::fewest && !across) return first_of({fewer, higher, lower, cheaper});
    return first_of({higher, fewer, lower, cheaper});
}

template <class Set>
Choice<Set> Search<Set>::make(const Node& node, const Request& request, Argument victims,
                              std::uint8_t locality) {
    const auto sums = node.sums(victims);
    return {{locality, sums.count, request.score_of(sums.priority, sums.weight, locality), sums.priority,
             sums.max_priority, sums.cost, sums.over_budget},
            victims};
}

template <class Set>
void Search<Set>::offer(Argument set, std::uint8_t locality) {
    const auto candidate = make(*node_, *request_, set, locality);
    if (best_.found()) {
        const int order = compare(candidate, best_, objective_);
        if (order > 0 || (order == 0 && !node_->names_before(set, best_.victims))) return;
    }
    best_ = candidate;
}

// Counts a step; true if none is left.
template <class Set>
bool Search<Set>::out_of_steps() {
    if (budget_ != nullptr && steps_ % 256 == 255 && budget_->exhausted()) limit_ = steps_;
    if (steps_ >= limit_) {
        proven_ = false;
        return true;
    }
    ++steps_;
    return false;
}

// Enumerates all sets of at most 10 victims with whole GPUs, each from the set without its lowest member.
// `Ordinary`: all priorities are 1 to 100,000 and count in the score. Then, of two sets with the same
// locality, the one with the lower sum of priorities has the higher score.
template <class Set>
template <bool Ordinary>
Choice<Set> Search<Set>::scan(const Node& node, const Request& request, Objective objective) {
    std::array<GpuMask, std::size_t{1} << most_scanned> freed;
    std::array<std::int64_t, std::size_t{1} << most_scanned> priority;
    struct Entry {
        GpuMask gpus;
        int which;
        std::int64_t priority;
    };
    std::array<Entry, most_scanned> entries;
    std::size_t size = 0;
    const bool enough = node.enough_cpu_and_memory(Set{});
    for (int i = 0; i < node.size(); ++i) {
        const auto& v = node.victim(i);
        const auto here = static_cast<GpuMask>(v.gpus & node.contested());
        // A victim that frees nothing helps only if its negative priority raises the score.
        if (here == 0 && enough && (!request.paper || objective != Objective::score || v.priority >= 0))
            continue;
        entries[size++] = {here, i, v.priority};
    }
    const auto spread = [&](std::uint32_t set) {
        Set victims{};
        for (; set != 0; set &= set - 1) insert(victims, entries[std::countr_zero(set)].which);
        return victims;
    };
    const auto before = [&](const Choice<Set>& a, const Choice<Set>& b) {
        const int order = compare(a, b, objective);
        return order < 0 || (order == 0 && node.names_before(a.victims, b.victims));
    };
    const auto* const table = node.table();
    std::array<Choice<Set>, 3> best{};  // by locality
    std::array<std::int64_t, 3> least{INT64_MAX, INT64_MAX, INT64_MAX};
    int fewest = most_scanned + 1;
    freed[0] = node.idle();
    priority[0] = 0;
    const auto end = std::uint32_t{1} << size;
    steps_ += end - 1;
    for (std::uint32_t set = 1; set < end; ++set) {
        const auto low = std::countr_zero(set);
        const auto others = set & (set - 1);
        freed[set] = static_cast<GpuMask>(freed[others] | entries[low].gpus);
        priority[set] = priority[others] + entries[low].priority;
        const auto locality =
            table != nullptr ? table[freed[set]] : request.locality(node.hardware(), freed[set]);
        if (locality == infeasible) continue;
        const int count = objective == Objective::fewest ? bits_of(set) : fewest;
        if (count > fewest) continue;
        if constexpr (Ordinary) {
            if (count == fewest && priority[set] > least[locality]) continue;
        }
        if (!enough && !node.enough_cpu_and_memory(spread(set))) continue;
        if (count < fewest) {
            fewest = count;
            best = {};
            least.fill(INT64_MAX);
        }
        const auto candidate = make(node, request, spread(set), locality);
        auto& known = best[locality];
        if (known.found() && !(Ordinary && priority[set] < least[locality]) && !before(candidate, known))
            continue;
        known = candidate;
        least[locality] = priority[set];
    }
    auto winner = best[0];
    for (const auto& other : {best[1], best[2]})
        if (other.found() && (!winner.found() || before(other, winner))) winner = other;
    return winner;
}

template <class Set>
Choice<Set> Search<Set>::best(const Node& node, const Request& request, Objective objective) {
    if constexpr (std::is_same_v<Set, VictimSet>) {
        if (node.only_gpus() && node.size() <= most_scanned && !node.is_bound()) {
            bool ordinary = objective != Objective::cost && request.alpha >= 0.001;
            for (int i = 0; i < node.size(); ++i)
                ordinary = ordinary && node.victim(i).priority >= 1 && node.victim(i).priority <= 100'000;
            return ordinary ? scan<true>(node, request, objective) : scan<false>(node, request, objective);
        }
    }
    prepare(node, request, objective);
    if (size_ > 0 && node.locality(reach(Set{}, rest_[0])) != infeasible)
        descend(0, Set{}, false, request.fraction ? node.usable() : node.contested());
    return best_;
}

template <class Set>
void Search<Set>::start(const Node& node, const Request& request, Objective objective) {
    node_ = &node;
    request_ = &request;
    objective_ = objective;
    best_ = {};
    limit_ = steps_ + request.search_limit;
    prunes_ = request.gpus > 0 && node.only_gpus_lack() && !node.has_gangs();
    size_ = 0;
    clear(staying_);
    reserve_entries(order_, node.size() + 1);
    reserve_entries(sorted_, node.size() + 1);
}

// Returns whether the victim must free a resource to be useful. Otherwise its negative priority, or that of
// its gang, can raise the score.
template <class Set>
bool Search<Set>::must_free(int i) const noexcept {
    const auto& v = node_->victim(i);
    return !request_->paper || objective_ != Objective::score || (v.priority >= 0 && v.gang < 0);
}

template <class Set>
void Search<Set>::prepare(const Node& node, const Request& request, Objective objective) {
    start(node, request, objective);
    reserve_entries(as_previous_, node.size() + 1);
    reserve_entries(rest_, node.size() + 1);
    reserve_entries(gain_, node.size() + 1);
    most_gpus_ = 0;
    for (int i = 0; i < node.size(); ++i) {
        if (must_free(i) && !node.helps(i)) continue;
        if (node.is_bound() && !node.allows(node.closed(only<Set>(i)))) continue;
        order_[size_++] = i;
        most_gpus_ = std::max(most_gpus_, gpu_count(node.victim(i).gpus));
    }
    // The first descent reaches a feasible set within size_ + 1 steps: the limit never prevents that.
    limit_ = steps_ + std::max<std::int64_t>(request.search_limit, size_ + 1);
    // Order of decisions: victims in gangs or budgets first, because the decisions on the other victims do
    // not depend on them; then costly victims, which are mostly excluded. Below, interchangeable victims
    // become neighbours, the costlier first: if one is chosen, all that follow it are chosen, too.
    const auto weight = [&](int i) {
        const auto& v = node.victim(i);
        return objective == Objective::cost ? node.first_cost(i) : v.priority;
    };
    std::sort(order_.begin(), order_.begin() + size_, [&](int a, int b) {
        const auto& v = node.victim(a);
        const auto& w = node.victim(b);
        if (node.is_bound() && node.is_bound(a) != node.is_bound(b)) return node.is_bound(a);
        if (weight(a) != weight(b)) return weight(a) > weight(b);
        return std::tuple(gpu_count(w.gpus), v.cpu_milli, v.memory_mib, v.task) <
               std::tuple(gpu_count(v.gpus), w.cpu_milli, w.memory_mib, w.task);
    });
    auto& sorted = sorted_;
    int filled = 0;
    Set done{};
    for (int i = 0; i < size_; ++i) {
        const int first = order_[i];
        if (contains(done, first)) continue;
        const int begin = filled;
        for (int j = i; j < size_; ++j) {
            const int other = order_[j];
            if (contains(done, other) || (other != first && !node.alike(first, other))) continue;
            sorted[filled++] = other;
            insert(done, other);
        }
        std::sort(sorted.begin() + begin, sorted.begin() + filled, [&](int a, int b) {
            if (node.victim(a).cost != node.victim(b).cost) return node.victim(a).cost > node.victim(b).cost;
            return node.names_before(only<Set>(b), only<Set>(a));
        });
        for (int j = begin; j < filled; ++j) as_previous_[j] = j > begin;
    }
    std::swap(order_, sorted_);
    clear(rest_[size_]);
    gain_[size_] = 0;
    for (int i = size_; i-- > 0;) {
        rest_[i] = with(rest_[i + 1], order_[i]);
        gain_[i] =
            gain_[i + 1] + (request.paper ? std::min<std::int64_t>(0, node.victim(order_[i]).priority) : 0);
    }
    if (request.paper && node.has_gangs()) {
        // Excluded victims can still leave with their gangs, including members elsewhere.
        const auto most = gain_[0] + node.least_priority_elsewhere();
        std::fill(gain_.begin(), gain_.begin() + size_ + 1, most);
    }
}

// Returns whether no set with the closed `chosen` and further victims from position `at` on can be better
// than the best so far.
template <class Set>
bool Search<Set>::cannot_improve(int at, Argument chosen, std::uint8_t here, std::uint8_t reachable) const {
    if (!best_.found()) return false;
    Candidate bound;  // at least as good as all these sets
    const auto sums = node_->sums(chosen);
    bound.over_budget = sums.over_budget;
    bound.locality = reachable;
    bound.count = sums.count;
    if (here == infeasible) {
        int more = 1;
        if (!request_->fraction && most_gpus_ > 0) {
            const int missing = request_->gpus - gpu_count(node_->free_gpus(chosen));
            more = std::max(1, (missing + most_gpus_ - 1) / most_gpus_);
        }
        bound.count += more;
    }
    bound.priority_sum = sums.priority + gain_[at];
    bound.score = request_->score_of(bound.priority_sum, sums.weight, reachable);
    bound.max_priority = sums.max_priority;
    bound.cost = sums.cost;
    return compare(bound, best_, objective_) > 0;
}

// A superset of all allowed sets that contain `chosen`: tests each further victim alone.
template <class Set>
Set Search<Set>::reach(Argument chosen, Argument rest) const {
    if (!node_->is_bound()) return chosen | rest;
    auto all = chosen;
    for_each_victim(rest, [&](int i) {
        const auto with_it = node_->closed(with<Set>(chosen, i));
        if (node_->allows(with_it) && is_empty(with_it & staying_)) all = all | with_it;
    });
    return node_->closed(all);
}

// `open` has the GPUs that the rest of a branch can still free, and is used only if GPUs alone are missing.
// Whole GPUs: a GPU is free after all its victims have left, so excluding a victim removes its GPUs from
// `open`. Fractions: one GPU suffices, so choosing a victim removes all GPUs that it does not use.
template <class Set>
GpuMask Search<Set>::open_without(int staying, GpuMask open) const noexcept {
    return request_->fraction ? open : static_cast<GpuMask>(open & ~node_->victim(staying).gpus);
}
template <class Set>
GpuMask Search<Set>::open_with(int leaving, GpuMask open) const noexcept {
    if (!request_->fraction || !must_free(leaving)) return open;
    return static_cast<GpuMask>(open & node_->victim(leaving).gpus);
}
template <class Set>
bool Search<Set>::all_free_something(Argument chosen, GpuMask open) const {
    if (!prunes_ || request_->fraction) return true;
    bool yes = true;
    for_each_victim(chosen,
                    [&](int i) { yes = yes && (!must_free(i) || (node_->victim(i).gpus & open) != 0); });
    return yes;
}
template <class Set>
bool Search<Set>::can_reach(Argument leaving, GpuMask open) const {
    if (!prunes_ || !request_->fraction) return node_->locality(leaving) != infeasible;
    const auto free = static_cast<GpuMask>(node_->free_gpus(leaving) & open);
    return request_->locality(node_->hardware(), free) != infeasible;
}

template <class Set>
void Search<Set>::descend(int at, Argument chosen, bool previous_chosen, GpuMask open) {
    if (out_of_steps()) return;
    Set with_gangs{};
    if (node_->has_gangs()) with_gangs = node_->closed(chosen);
    const auto& leaving = node_->has_gangs() ? with_gangs : chosen;
    // A set that violates gangs or budgets has no allowed superset.
    if (node_->is_bound() && (!is_empty(leaving & staying_) || !node_->allows(leaving))) return;
    const auto here = node_->locality(leaving);
    if (here != infeasible && !is_empty(chosen)) {
        offer(leaving, here);
        // More victims can only improve the score, by a better locality or by a negative priority.
        if (objective_ != Objective::score) return;
        if (gain_[at] == 0 && here == node_->locality(reach(chosen, rest_[at]))) return;
    }
    if (at == size_) return;
    const auto reachable = node_->locality(reach(chosen, rest_[at]));
    if (reachable == infeasible) return;
    if (cannot_improve(at, leaving, here, reachable)) return;
    const int next = order_[at];
    const bool forced = as_previous_[at] && previous_chosen;
    if (!forced) {
        const auto left = open_without(next, open);
        if (node_->has_gangs()) insert(staying_, next);
        if (all_free_something(chosen, left) && can_reach(reach(chosen, rest_[at + 1]), left))
            descend(at + 1, chosen, false, left);
        if (node_->has_gangs()) staying_ = minus(staying_, only<Set>(next));
    }
    if (prunes_ && must_free(next) && (node_->victim(next).gpus & open) == 0) return;
    const auto left = open_with(next, open);
    if (left == open || can_reach(reach(chosen, rest_[at]), left))
        descend(at + 1, with<Set>(chosen, next), true, left);
}

template <class Set>
Choice<Set> Search<Set>::plain(const Node& node, const Request& request, Objective objective) {
    start(node, request, objective);
    if (node.size() == 0 || node.locality(node.all()) == infeasible) return best_;
    const auto fewest_found = [&](int size) {
        if (!best_.found() || objective != Objective::fewest) return false;
        // Members elsewhere count as well, and a larger set may exceed fewer budgets.
        return !node.is_bound() || (best_.over_budget == 0 && size >= best_.count);
    };
    for (int i = 0; i < node.size(); ++i) order_[size_++] = i;
    order_by_task();
    auto& member = sorted_;  // positions in the order, ascending
    for (int size = 1; size <= size_; ++size) {
        for (int k = 0; k < size; ++k) member[k] = k;
        for (;;) {
            if (out_of_steps()) return best_;
            Set set{};
            for (int k = 0; k < size; ++k) insert(set, order_[member[k]]);
            if (const auto leaving = node.closed(set); node.allows(leaving))
                if (const auto found = node.locality(leaving); found != infeasible) offer(leaving, found);
            // The next set: advances the first member that can, and resets the members before it.
            std::size_t k = 0;
            const auto last = static_cast<std::size_t>(size) - 1;
            for (; k < last && member[k] + 1 == member[k + 1]; ++k) member[k] = static_cast<int>(k);
            if (k == last && member[k] + 1 == size_) break;
            ++member[k];
        }
        if (fewest_found(size)) break;
    }
    return best_;
}

template <class Set>
void Search<Set>::order_by_task() {
    std::sort(order_.begin(), order_.begin() + size_,
              [&](int a, int b) { return node_->victim(a).task < node_->victim(b).task; });
}

template <class Set>
void Search<Set>::minimal_sets(const Node& node, const Request& request, std::vector<Set>& sets) {
    sets.clear();
    if (node.locality(Set{}) != infeasible) {
        sets.push_back(Set{});
        return;
    }
    const auto found = best(node, request, Objective::fewest);
    if (!found.found()) return;
    // Lists all sets of that size, without symmetry; prunes if the rest cannot suffice.
    start(node, request, Objective::fewest);
    reserve_entries(rest_, node.size() + 1);
    for (int i = 0; i < node.size(); ++i)
        if (node.helps(i)) order_[size_++] = i;
    order_by_task();
    clear(rest_[size_]);
    for (int i = size_; i-- > 0;) rest_[i] = with(rest_[i + 1], order_[i]);
    list(0, Set{}, request.fraction ? node.usable() : node.contested(), found, sets);
}

// Appends the closed sets that contain `chosen` and are as good as `as`.
template <class Set>
void Search<Set>::list(int at, Argument chosen, GpuMask open, const Candidate& as, std::vector<Set>& sets) {
    if (out_of_steps()) return;
    const auto leaving = node_->closed(chosen);
    if (!is_empty(leaving & staying_) || !node_->allows(leaving)) return;
    const auto sums = node_->sums(leaving);
    if (sums.count > as.count || sums.over_budget > as.over_budget) return;
    if (sums.count == as.count) {
        // The set is complete: further victims belong to it only through gangs.
        if (sums.over_budget != as.over_budget || node_->locality(leaving) == infeasible) return;
        if (static_cast<std::int64_t>(sets.size() + 1) * as.count <= request_->search_limit)
            sets.push_back(leaving);
        else
            limit_ = steps_, proven_ = false;
        return;
    }
    if (at == size_ || !can_reach(reach(chosen, rest_[at]), open)) return;
    const int next = order_[at];
    if (!prunes_ || (node_->victim(next).gpus & open) != 0)
        list(at + 1, with<Set>(chosen, next), open_with(next, open), as, sets);
    const auto without = open_without(next, open);
    if (!all_free_something(chosen, without)) return;
    const auto before = staying_;
    if (node_->is_bound()) insert(staying_, next);
    list(at + 1, chosen, without, as, sets);
    staying_ = before;
}

// Sorts all victims in `order_` by `before`, then by name.
template <class Set>
template <class Before>
void Search<Set>::sort_victims(const Node& node, Before&& before) {
    reserve_entries(order_, node.size());
    reserve_entries(sorted_, node.size());
    std::iota(order_.begin(), order_.begin() + node.size(), 0);
    std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
        if (before(a, b) != before(b, a)) return before(a, b);
        return a != b && node.names_before(only<Set>(a), only<Set>(b));
    });
}

// Writes the position of each victim in `order_` to `sorted_`.
template <class Set>
void Search<Set>::number_positions(const Node& node) {
    for (int i = 0; i < node.size(); ++i) sorted_[order_[i]] = i;
}

template <class Set>
Choice<Set> Search<Set>::prefix(const Node& node, const Request& request,
                                const std::vector<std::int64_t>& keys) {
    sort_victims(node, [&](int a, int b) { return keys[a] < keys[b]; });
    Set chosen{};
    for (int i = 0; i < node.size(); ++i) {
        if (!node.is_bound()) {
            insert(chosen, order_[i]);
        } else {
            if (contains(chosen, order_[i])) continue;
            const auto extended = node.closed(with<Set>(chosen, order_[i]));
            if (!node.allows(extended) || node.over_budget(extended) > 0) continue;
            chosen = extended;
        }
        ++steps_;
        if (const auto found = node.locality(chosen); found != infeasible)
            return make(node, request, chosen, found);
    }
    return {};
}

template <class Set>
Choice<Set> Search<Set>::or_exact(const Node& node, const Request& request, Choice<Set> found,
                                  Objective objective) {
    if (!node.is_bound() || (found.found() && found.over_budget == 0)) return found;
    auto exact = best(node, request, objective);
    if (found.found() && (!exact.found() || found.over_budget <= exact.over_budget)) return found;
    return exact;
}

template <class Set>
Choice<Set> Search<Set>::first_that_suffice(const Node& node, const Request& request,
                                            const std::vector<std::int64_t>& keys, Objective objective) {
    return or_exact(node, request, prefix(node, request, keys), objective);
}

template <class Set>
Choice<Set> Search<Set>::first_needed(const Node& node, const Request& request,
                                      const std::vector<std::int64_t>& keys, Objective objective) {
    const auto enough = prefix(node, request, keys);
    if (!enough.found()) return or_exact(node, request, enough, objective);
    auto leaving = enough.victims;
    if (node.is_bound()) {
        number_positions(node);
        const auto& position = sorted_;
        const auto later = [&](int a, int b) { return position[a] > position[b]; };
        for (int i = node.size(); i-- > 0;) {
            const int victim = order_[i];
            if (!contains(leaving, victim)) continue;
            const auto kept = node.with_back(leaving, victim, later);
            ++steps_;
            if (node.locality(kept) != infeasible) leaving = kept;
        }
        return make(node, request, leaving, node.locality(leaving));
    }
    for (int i = enough.count - 2; i >= 0; --i) {  // the last victim is necessary
        const auto kept = minus(leaving, only<Set>(order_[i]));
        ++steps_;
        if (node.locality(kept) != infeasible) leaving = kept;
    }
    return make(node, request, leaving, node.locality(leaving));
}

template <class Set>
Choice<Set> Search<Set>::reprieve(const Cluster& cluster, const Node& node, const Request& request) {
    if (node.size() == 0 || node.locality(node.all()) == infeasible) return {};
    const auto& t = cluster.inventory().tasks;
    sort_victims(node, [&](int a, int b) {
        const auto& v = node.victim(a);
        const auto& w = node.victim(b);
        if (v.priority != w.priority) return v.priority > w.priority;
        return t.start_time[index(v.task)] < t.start_time[index(w.task)];
    });
    auto leaving = node.all_that_may(order_.data(), node.size());
    if (node.locality(leaving) == infeasible) return or_exact(node, request, {}, Objective::fewest);
    // Victims that exceed a budget come back first.
    const auto& position = sorted_;
    const auto earlier = [&](int a, int b) { return position[a] < position[b]; };
    if (node.is_bound()) {
        number_positions(node);
        const auto beyond = node.beyond_budgets(order_.data(), node.size());
        std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
            if (contains(beyond, a) != contains(beyond, b)) return contains(beyond, a);
            return earlier(a, b);
        });
        number_positions(node);
    }
    for (int i = 0; i < node.size(); ++i) {
        const int victim = order_[i];
        if (!contains(leaving, victim)) continue;
        const auto kept = node.with_back(leaving, victim, earlier);
        ++steps_;
        if (node.locality(kept) != infeasible) leaving = kept;
    }
    if (is_empty(leaving)) return {};
    auto found = make(node, request, leaving, node.locality(leaving));
    if (!node.allows(leaving)) found = {};
    return or_exact(node, request, std::move(found), Objective::fewest);
}

template class Search<VictimSet>;
template class Search<ManyVictims>;

}  // namespace gpusched::preemption::detail

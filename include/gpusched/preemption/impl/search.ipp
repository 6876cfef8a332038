#pragma once

#include <gpusched/preemption/detail/search.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

namespace gpusched::preemption::detail {

GPUSCHED_INLINE int compare(const Candidate& a, const Candidate& b, Objective objective,
                            bool across) noexcept {
    const auto order = [](auto x, auto y) { return x < y ? -1 : x > y ? 1 : 0; };
    const auto fewer = order(a.count, b.count);
    const auto lower = order(a.max_priority, b.max_priority);
    const auto cheaper = order(a.cost, b.cost);
    const auto first_of = [](std::initializer_list<int> keys) {
        for (const int key : keys)
            if (key != 0) return key;
        return 0;
    };
    if (objective == Objective::cost) return first_of({cheaper, fewer, lower});
    const auto higher = order(b.score, a.score);
    if (objective == Objective::fewest && !across) return first_of({fewer, higher, lower, cheaper});
    return first_of({higher, fewer, lower, cheaper});
}

GPUSCHED_INLINE Candidate Search::make(const NodeProblem& node, const Request& request, VictimSet victims,
                                       std::uint8_t locality) {
    const auto sums = node.sums(victims);
    return {victims,       locality,          sums.count, request.score_of(sums.priority, locality),
            sums.priority, sums.max_priority, sums.cost};
}

GPUSCHED_INLINE void Search::offer(VictimSet set, std::uint8_t locality) {
    const auto candidate = make(*node_, *request_, set, locality);
    if (best_.found()) {
        const int order = compare(candidate, best_, objective_);
        if (order > 0 || (order == 0 && !node_->names_before(set, best_.victims))) return;
    }
    best_ = candidate;
}

// All sets of a few victims on whole GPUs, each from the one without its lowest member. `Ordinary`: priorities are
// 1 .. 100,000 and count for something, so that within a locality a lower sum is a higher score, without asking for it.
template <bool Ordinary>
Candidate Search::scan(const NodeProblem& node, const Request& request, Objective objective) {
    std::array<GpuMask, std::size_t{1} << most_scanned> freed;
    std::array<std::int64_t, std::size_t{1} << most_scanned> priority;
    struct One {
        GpuMask gpus;
        int which;
        std::int64_t priority;
    };
    std::array<One, most_scanned> ones;
    std::size_t size = 0;
    const bool enough = node.enough_cpu_and_memory(0);
    for (int i = 0; i < node.size(); ++i) {
        const auto& v = node.victim(i);
        const auto here = static_cast<GpuMask>(v.gpus & node.contested());
        // Who frees nothing is worth it only where a negative priority raises the score.
        if (here == 0 && enough && (objective != Objective::score || v.priority >= 0)) continue;
        ones[size++] = {here, i, v.priority};
    }
    const auto spread = [&](std::uint32_t set) {
        VictimSet victims = 0;
        for (; set != 0; set &= set - 1)
            victims |= VictimSet{1} << ones[static_cast<std::size_t>(std::countr_zero(set))].which;
        return victims;
    };
    const auto before = [&](const Candidate& a, const Candidate& b) {
        const int order = compare(a, b, objective);
        return order < 0 || (order == 0 && node.names_before(a.victims, b.victims));
    };
    const auto* const table = node.table();
    std::array<Candidate, 3> best{};  // by locality
    std::array<std::int64_t, 3> least{INT64_MAX, INT64_MAX, INT64_MAX};
    int fewest = most_scanned + 1;
    freed[0] = node.idle();
    priority[0] = 0;
    const auto end = std::uint32_t{1} << size;
    steps_ += end - 1;
    for (std::uint32_t set = 1; set < end; ++set) {
        const auto low = static_cast<std::size_t>(std::countr_zero(set));
        const auto others = set & (set - 1);
        freed[set] = static_cast<GpuMask>(freed[others] | ones[low].gpus);
        priority[set] = priority[others] + ones[low].priority;
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
    Candidate winner = best[0];
    for (const auto& other : {best[1], best[2]})
        if (other.found() && (!winner.found() || before(other, winner))) winner = other;
    return winner;
}

GPUSCHED_INLINE Candidate Search::best(const NodeProblem& node, const Request& request, Objective objective) {
    if (node.truncated()) proven_ = false;
    if (node.only_gpus() && node.size() <= most_scanned) {
        bool ordinary = objective != Objective::cost && request.alpha >= 0.001;
        for (int i = 0; i < node.size(); ++i)
            ordinary = ordinary && node.victim(i).priority >= 1 && node.victim(i).priority <= 100'000;
        return ordinary ? scan<true>(node, request, objective) : scan<false>(node, request, objective);
    }
    prepare(node, request, objective);
    if (size_ > 0 && node.locality(rest_[0]) != infeasible) descend(0, 0, false);
    return best_;
}

GPUSCHED_INLINE void Search::prepare(const NodeProblem& node, const Request& request, Objective objective) {
    node_ = &node;
    request_ = &request;
    objective_ = objective;
    best_ = {};
    limit_ = steps_ + request.search_limit;
    size_ = node.size();
    most_gpus_ = 0;
    // Who is dear is decided on first, and excluded first; alike ones stand side by side, the dearer ones first, so
    // that taking one of them means taking all that follow.
    for (int i = 0; i < size_; ++i) {
        order_[static_cast<std::size_t>(i)] = i;
        most_gpus_ = std::max(most_gpus_, gpu_count(node.victim(i).gpus));
    }
    const auto dear = [&](int i) {
        const auto& v = node.victim(i);
        return objective == Objective::cost ? node.first_cost(i) : v.priority;
    };
    std::sort(order_.begin(), order_.begin() + size_, [&](int a, int b) {
        const auto& v = node.victim(a);
        const auto& w = node.victim(b);
        if (dear(a) != dear(b)) return dear(a) > dear(b);
        return std::tuple(gpu_count(w.gpus), v.cpu_milli, v.memory_mib, a) <
               std::tuple(gpu_count(v.gpus), w.cpu_milli, w.memory_mib, b);
    });
    std::array<int, most_victims> sorted{};
    int filled = 0;
    VictimSet done = 0;
    for (int i = 0; i < size_; ++i) {
        const int first = order_[static_cast<std::size_t>(i)];
        if ((done >> first & 1) != 0) continue;
        const int begin = filled;
        for (int j = i; j < size_; ++j) {
            const int other = order_[static_cast<std::size_t>(j)];
            if ((done >> other & 1) != 0 || (other != first && !node.alike(first, other))) continue;
            sorted[static_cast<std::size_t>(filled++)] = other;
            done |= VictimSet{1} << other;
        }
        std::sort(sorted.begin() + begin, sorted.begin() + filled, [&](int a, int b) {
            if (node.victim(a).cost != node.victim(b).cost) return node.victim(a).cost > node.victim(b).cost;
            return node.names_before(VictimSet{1} << b, VictimSet{1} << a);
        });
        for (int j = begin; j < filled; ++j) as_previous_[static_cast<std::size_t>(j)] = j > begin;
    }
    order_ = sorted;
    rest_[static_cast<std::size_t>(size_)] = 0;
    gain_[static_cast<std::size_t>(size_)] = 0;
    for (int i = size_; i-- > 0;) {
        const auto at = static_cast<std::size_t>(i);
        rest_[at] = rest_[at + 1] | VictimSet{1} << order_[at];
        gain_[at] = gain_[at + 1] + std::min<std::int64_t>(0, node.victim(order_[at]).priority);
    }
}

// Can no set that contains `chosen` and takes the rest from position `at` on be better than the best so far?
GPUSCHED_INLINE bool Search::hopeless(int at, VictimSet chosen, std::uint8_t here,
                                      std::uint8_t reachable) const {
    if (!best_.found()) return false;
    Candidate bound;  // at least as good as all of them
    const auto sums = node_->sums(chosen);
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
    bound.priority_sum = sums.priority + gain_[static_cast<std::size_t>(at)];
    bound.score = request_->score_of(bound.priority_sum, reachable);
    bound.max_priority = sums.max_priority;
    bound.cost = sums.cost;
    return compare(bound, best_, objective_) > 0;
}

GPUSCHED_INLINE void Search::descend(int at, VictimSet chosen, bool previous_chosen) {
    if (steps_ >= limit_) {
        proven_ = false;
        return;
    }
    ++steps_;
    const auto i = static_cast<std::size_t>(at);
    const auto here = node_->locality(chosen);
    if (here != infeasible && chosen != 0) {
        offer(chosen, here);
        // More victims can only help the score, and only by a better locality or a negative priority.
        if (objective_ != Objective::score) return;
        if (gain_[i] == 0 && here == node_->locality(chosen | rest_[i])) return;
    }
    if (at == size_) return;
    const auto reachable = node_->locality(chosen | rest_[i]);
    if (hopeless(at, chosen, here, reachable)) return;
    const auto next = VictimSet{1} << order_[i];
    const bool forced = as_previous_[i] && previous_chosen;
    if (!forced && node_->locality(chosen | rest_[i + 1]) != infeasible) descend(at + 1, chosen, false);
    descend(at + 1, chosen | next, true);
}

GPUSCHED_INLINE Candidate Search::plain(const NodeProblem& node, const Request& request,
                                        Objective objective) {
    prepare(node, request, objective);
    if (node.truncated()) proven_ = false;
    if (size_ == 0 || node.locality(node.all()) == infeasible) return best_;
    for (int size = 1; size <= size_; ++size) {
        const auto last = node.all() & ~(node.all() >> size);
        for (auto set = (VictimSet{1} << (size - 1) << 1) - 1;;) {
            if (steps_ >= limit_) {
                proven_ = false;
                return best_;
            }
            ++steps_;
            if (const auto found = node.locality(set); found != infeasible) offer(set, found);
            if (set == last) break;
            const auto low = set & (0 - set), carried = set + low;  // the next number with as many ones
            set = carried | (((set ^ carried) >> 2) / low);
        }
        if (best_.found() && objective == Objective::fewest) break;
    }
    return best_;
}

GPUSCHED_INLINE void Search::minimal_sets(const NodeProblem& node, const Request& request,
                                          std::vector<VictimSet>& sets) {
    sets.clear();
    if (node.locality(0) != infeasible) {
        sets.push_back(0);
        return;
    }
    const auto found = best(node, request, Objective::fewest);
    if (!found.found()) return;
    // With the size known, all sets of that size: a search without symmetry, cut where the rest cannot help.
    struct List {
        Search& search;
        const NodeProblem& node;
        std::vector<VictimSet>& sets;
        std::int64_t limit;
        int size;
        void descend(int at, VictimSet chosen, int left) {
            if (search.steps_ >= limit) {
                search.proven_ = false;
                return;
            }
            ++search.steps_;
            if (left == 0) {
                if (node.locality(chosen) != infeasible) sets.push_back(chosen);
                return;
            }
            if (node.size() - at < left) return;
            const auto rest = node.all() & ~((VictimSet{1} << at) - 1);
            if (node.locality(chosen | rest) == infeasible) return;
            descend(at + 1, chosen | VictimSet{1} << at, left - 1);
            descend(at + 1, chosen, left);
        }
    };
    List{*this, node, sets, steps_ + request.search_limit, found.count}.descend(0, 0, found.count);
    std::sort(sets.begin(), sets.end());
}

template <class Before>
Candidate Search::prefix(const NodeProblem& node, const Request& request, Before&& before) {
    for (int i = 0; i < node.size(); ++i) order_[static_cast<std::size_t>(i)] = i;
    std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
        if (before(a, b) != before(b, a)) return before(a, b);
        return a != b && node.names_before(VictimSet{1} << a, VictimSet{1} << b);
    });
    if (node.truncated()) proven_ = false;
    VictimSet chosen = 0;
    for (int i = 0; i < node.size(); ++i) {
        chosen |= VictimSet{1} << order_[static_cast<std::size_t>(i)];
        ++steps_;
        if (const auto found = node.locality(chosen); found != infeasible)
            return make(node, request, chosen, found);
    }
    return {};
}

GPUSCHED_INLINE Candidate Search::cheapest_prefix(const NodeProblem& node, const Request& request) {
    return prefix(node, request, [&](int a, int b) { return node.first_cost(a) < node.first_cost(b); });
}

GPUSCHED_INLINE Candidate Search::first_fit(const NodeProblem& node, const Request& request) {
    return prefix(node, request,
                  [&](int a, int b) { return node.victim(a).priority < node.victim(b).priority; });
}

GPUSCHED_INLINE Candidate Search::reprieve(const Cluster& cluster, const NodeProblem& node,
                                           const Request& request) {
    if (node.truncated()) proven_ = false;
    auto leaving = node.all();
    if (leaving == 0 || node.locality(leaving) == infeasible) return {};
    const auto& t = cluster.inventory().tasks;
    for (int i = 0; i < node.size(); ++i) order_[static_cast<std::size_t>(i)] = i;
    std::sort(order_.begin(), order_.begin() + node.size(), [&](int a, int b) {
        const auto& v = node.victim(a);
        const auto& w = node.victim(b);
        const auto since = [&](const Victim& x) { return t.start_time[index(x.task)]; };
        if (v.priority != w.priority) return v.priority > w.priority;
        if (since(v) != since(w)) return since(v) < since(w);
        return a != b && node.names_before(VictimSet{1} << a, VictimSet{1} << b);
    });
    for (int i = 0; i < node.size(); ++i) {
        const auto kept = leaving & ~(VictimSet{1} << order_[static_cast<std::size_t>(i)]);
        ++steps_;
        if (node.locality(kept) != infeasible) leaving = kept;
    }
    if (leaving == 0) return {};
    return make(node, request, leaving, node.locality(leaving));
}

}  // namespace gpusched::preemption::detail

// SPDX-License-Identifier: Apache-2.0
// Computes the lower bounds of nodes and pods.
#include "admission/bounds.hpp"

#include <gpusched/config.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <array>

namespace gpusched::admission::detail {

RequestKey request_key(const Cluster& cluster, TaskId task) {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    return {t.requirement[i], t.extras[i],     t.gpu_count[i],          t.gpu_share_milli[i],
            t.cpu_milli[i],   t.memory_mib[i], cluster.may_borrow(task)};
}

Ranking::Ranking(std::vector<Entry> entries)
    : entries_(std::move(entries)), first_{never, never, 0, none<NodeId>}, second_(first_) {
    for (const auto& entry : entries_) {
        if (entry.bound < first_.bound) {
            second_ = first_;
            first_ = entry;
        } else if (entry.bound < second_.bound) {
            second_ = entry;
        }
    }
}

GPUSCHED_EXPORT const Ranking::Entry& Ranking::operator[](std::size_t i) {
    const auto sorted = least_from_.size();
    if (i >= sorted) {
        const auto to = std::min(entries_.size(), std::max<std::size_t>(32, 4 * (i + 1)));
        const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(sorted);
        const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(to);
        if (to < entries_.size()) std::nth_element(from, end, entries_.end());
        std::sort(from, end);
        auto least = never;
        for (auto entry = end; entry != entries_.end(); ++entry) least = std::min(least, entry->bound);
        least_from_.resize(to);
        for (auto at = to; at-- > sorted;) least_from_[at] = least = std::min(least, entries_[at].bound);
    }
    return entries_[i];
}

std::int64_t Ranking::least_from(std::size_t i) {
    static_cast<void>((*this)[i]);
    return least_from_[i];
}

std::int64_t Ranking::least_without(NodeId node) const noexcept {
    return first_.node == node ? second_.bound : first_.bound;
}

/// Writes the least prices at which 0, 1, ... GPUs of the node become idle: a knapsack over its tasks, with
/// each shared GPU as one item. Returns the price of the cheapest task.
template <class PriceOf>
std::int64_t NodeBounds::find_least(const Cluster& cluster, NodeId node, PriceOf&& price_of,
                                    std::span<std::int64_t> best) const {
    const int most = static_cast<int>(best.size()) - 1;
    std::fill(best.begin(), best.end(), never);
    best[0] = 0;
    auto cheapest = never;
    // Adds an item that frees `gpus` for `cost`.
    const auto take = [&](int gpus, std::int64_t cost) {
        for (int g = most; g > 0; --g) {
            const auto before = best[std::max(0, g - gpus)];
            auto& now = best[g];
            if (before < never) now = std::min(now, before + cost);
        }
    };
    std::array<std::int64_t, max_gpus_per_node> of_gpu;
    GpuMask shared = 0;
    for (const auto task : cluster.tasks_on(node)) {
        const auto price = price_of(task);
        const auto gpus = cluster.gpus_of(task) & ~cluster.devices(node);
        // A Standby task lends its share: the GPU can be idle for an LP task while it stays.
        if (cluster.is_fraction(task) && !cluster.inventory().tasks.standby[index(task)])
            for_each_gpu(gpus, [&](int g) {
                auto& sum = of_gpu[g];
                if ((shared & gpu_bit(g)) == 0) sum = 0;
                shared |= gpu_bit(g);
                sum = std::min(never, sum + price);
            });
        if (price >= never) continue;
        cheapest = std::min(cheapest, price);
        if (!cluster.is_fraction(task) && gpus != 0) take(gpu_count(gpus), price);
    }
    for_each_gpu(shared, [&](int g) {
        if (of_gpu[g] < never) take(1, of_gpu[g]);
    });
    return cheapest;
}

GPUSCHED_EXPORT NodeBounds::NodeBounds(const Cluster& cluster, const PriceTable& prices,
                                       std::int64_t needed_milli)
    : prices_(prices) {
    const auto& inv = cluster.inventory();
    constexpr int widest = 16;  // for more GPUs the bound of 16 holds
    width_ = static_cast<std::size_t>(std::min(widest, largest_gpu_count(inv))) + 1;
    to_free_.resize(cluster.node_slots() * width_);
    has_size_.assign(width_, 0);
    cheapest_.assign(cluster.node_slots(), never);
    const auto row = [&](std::vector<std::int64_t>& table, NodeId node) {
        return std::span(table).subspan(index(node) * width_, width_);
    };
    for (const auto node : cluster.nodes()) {
        cheapest_[index(node)] = find_least(
            cluster, node, [&](TaskId task) { return prices[task].least; }, row(to_free_, node));
        for (const auto task : cluster.tasks_on(node))
            if (const auto& price = prices[task]; price.lose < never && cluster.gpu_milli(task) > 0)
                of_tasks_.push_back({cluster.gpu_milli(task), price.lose - price.least});
        for (const auto task : cluster.tasks_on(node))
            if (prices[task].least < never && !cluster.is_fraction(task))
                has_size_[std::min<std::size_t>(inv.tasks.gpu_count[index(task)], width_ - 1)] = 1;
        if (inv.nodes.receives(node)) {
            const auto idle = cluster.idle_gpus(node, Lent::yes);
            free_milli_ += std::int64_t{whole_gpu_milli} * gpu_count(idle);
            for_each_gpu(cluster.healthy_gpus(node) & ~idle,
                         [&](int g) { free_milli_ += cluster.gpu_free_milli(node, g, Lent::yes); });
        }
    }
    find_places(cluster, needed_milli);
    if (needed_milli > free_milli_) find_losses(needed_milli - free_milli_);
    of_tasks_.clear();
    const bool free_places = std::all_of(usual_place_of_size_.begin(), usual_place_of_size_.end(),
                                         [](std::int64_t price) { return price == 0; });
    if (free_places && last_loss_.extra == 0) return;
    estimates_.resize(to_free_.size());
    cheapest_estimates_.assign(cluster.node_slots(), never);
    for (const auto node : cluster.nodes())
        cheapest_estimates_[index(node)] = find_least(
            cluster, node, [&](TaskId task) { return estimate(cluster, task); }, row(estimates_, node));
}

/// Computes the cost of a place for a task with g GPUs. m places on a node take m g GPUs; freeing those that
/// are not idle costs at least 1/m per place. The usual cost is that of the n-th cheapest place, if the pods
/// request as many GPUs as n such places.
void NodeBounds::find_places(const Cluster& cluster, std::int64_t needed_milli) {
    const auto& inv = cluster.inventory();
    place_of_size_.assign(width_, 0);
    usual_place_of_size_.assign(width_, 0);
    std::vector<std::int64_t> places;
    for (int g = 1; g < static_cast<int>(width_); ++g) {
        if (!has_size(g)) continue;
        const auto needed =
            static_cast<std::size_t>(std::max<std::int64_t>(1, needed_milli / (whole_gpu_milli * g)));
        std::size_t free = 0;
        auto least = never;
        places.clear();
        for (const auto node : cluster.nodes()) {
            if (free >= needed) break;
            if (!inv.nodes.receives(node)) continue;
            const auto idle = gpu_count(cluster.idle_gpus(node, Lent::yes));
            const auto total = gpu_count(cluster.healthy_gpus(node));
            std::int64_t before = 0;
            for (int m = 1; m * g <= total; ++m) {
                const auto more = std::clamp(m * g - idle, 0, static_cast<int>(width_) - 1);
                const auto cost = to_free_[index(node) * width_ + static_cast<std::size_t>(more)];
                if (cost >= never) break;
                least = std::min(least, cost / m);
                free += cost == 0;
                places.push_back(cost - before);
                before = cost;
            }
        }
        place_of_size_[g] = least;
        auto& usual = usual_place_of_size_[g];
        if (free >= needed) continue;
        if (places.empty()) {
            usual = never;
            continue;
        }
        const auto at = places.begin() + static_cast<std::ptrdiff_t>(std::min(needed, places.size()) - 1);
        std::nth_element(places.begin(), at, places.end());
        usual = *at;
    }
}

std::int64_t NodeBounds::place_of_size(int gpus) const noexcept {
    return place_of_size_[std::min(static_cast<std::size_t>(gpus), width_ - 1)];
}

std::int64_t NodeBounds::place_estimate(const Cluster& snapshot, TaskId task) const noexcept {
    const auto size = snapshot.gpu_milli(task);
    // Rounded up, so that the costliest task that must be evicted for good reaches its price.
    const auto scarce = product((last_loss_.extra + last_loss_.gpu_milli - 1) / last_loss_.gpu_milli, size);
    if (snapshot.is_fraction(task)) return scarce;
    const auto gpus = static_cast<std::size_t>(snapshot.inventory().tasks.gpu_count[index(task)]);
    return std::max(scarce, usual_place_of_size_[std::min(gpus, width_ - 1)]);
}

std::int64_t NodeBounds::estimate(const Cluster& snapshot, TaskId task) const noexcept {
    const auto& price = prices_[task];
    if (price.least >= never) return never;
    return std::min(
        {never, price.lose, std::min(price.move, price.replace) + place_estimate(snapshot, task)});
}

std::int64_t NodeBounds::bound_with_places(const Cluster& snapshot, TaskId task, NodeId node,
                                           int gpus) const {
    std::array<std::int64_t, max_gpus_per_node + 1> best;
    const auto extra = place_of_size(gpus);
    const auto row = std::span(best).first(width_);
    const auto cheapest = find_least(
        snapshot, node,
        [&](TaskId other) {
            const auto& price = prices_[other];
            const bool large =
                !snapshot.is_fraction(other) && snapshot.inventory().tasks.gpu_count[index(other)] >= gpus;
            if (price.least >= never || !large) return price.least;
            return std::min({never, price.lose, std::min(price.move, price.replace) + extra});
        },
        row);
    return bound(snapshot, task, node, gpu_count(snapshot.idle_gpus(node, snapshot.lent_to(task))), row,
                 cheapest);
}

void NodeBounds::find_losses(std::int64_t most) {
    // A heap, because only the few cheapest are needed.
    const auto costlier = [](const Loss& a, const Loss& b) {
        // extra / GPUs, compared without division: below 2^46 times 2^16
        const auto x = a.extra * b.gpu_milli, y = b.extra * a.gpu_milli;
        return x != y ? x > y : a.gpu_milli > b.gpu_milli;
    };
    std::make_heap(of_tasks_.begin(), of_tasks_.end(), costlier);
    Loss sum{0, 0};
    while (sum.gpu_milli < most && !of_tasks_.empty()) {
        std::pop_heap(of_tasks_.begin(), of_tasks_.end(), costlier);
        last_loss_ = of_tasks_.back();
        sum.gpu_milli += of_tasks_.back().gpu_milli;
        sum.extra = std::min(never, sum.extra + of_tasks_.back().extra);
        of_tasks_.pop_back();
        losses_.push_back(sum);
    }
}

std::int64_t NodeBounds::loss_of_at_least(std::int64_t gpu_milli) const noexcept {
    if (gpu_milli <= 0) return 0;
    const auto at =
        std::lower_bound(losses_.begin(), losses_.end(), gpu_milli,
                         [](const Loss& loss, std::int64_t milli) { return loss.gpu_milli < milli; });
    if (at == losses_.end()) return never;
    const auto before = at == losses_.begin() ? Loss{0, 0} : *(at - 1);
    // A fraction of the last task, rounded down.
    const auto part = gpu_milli - before.gpu_milli, whole = at->gpu_milli - before.gpu_milli;
    const auto extra = at->extra - before.extra;
    return before.extra + extra / whole * part + extra % whole * part / whole;
}

bool NodeBounds::lacks_others(const Cluster& snapshot, TaskId task, NodeId node) const {
    const auto& t = snapshot.inventory().tasks;
    const auto lent = snapshot.lent_to(task);
    if (t.cpu_milli[index(task)] > snapshot.cpu_free_milli(node, lent) ||
        t.memory_mib[index(task)] > snapshot.memory_free_mib(node))
        return true;
    if (!snapshot.is_fraction(task)) return false;
    for (int g = 0; g < snapshot.gpu_count(node); ++g)
        if (snapshot.gpu_free_milli(node, g, lent) >= t.gpu_share_milli[index(task)]) return false;
    return true;
}

std::int64_t NodeBounds::bound(const Cluster& snapshot, TaskId task, NodeId node, int idle,
                               std::span<const std::int64_t> to_free, std::int64_t cheapest) const {
    const auto requested = snapshot.inventory().tasks.gpu_count[index(task)];
    std::int64_t least = 0;
    if (const int more = requested - idle; !snapshot.is_fraction(task) && more > 0) {
        if (snapshot.gpu_count(node) < requested) return never;
        least = to_free[std::min<std::size_t>(static_cast<std::size_t>(more), width_ - 1)];
    }
    return lacks_others(snapshot, task, node) ? std::max(least, cheapest) : least;
}

GPUSCHED_EXPORT Ranking& NodeBounds::ranking(const Cluster& snapshot, TaskId task) {
    const auto key = request_key(snapshot, task);
    if (const auto known = rankings_.find(key); known != rankings_.end()) return known->second;
    const auto& inv = snapshot.inventory();
    std::vector<Ranking::Entry> entries;
    entries.reserve(snapshot.node_count());
    for (const auto node : snapshot.nodes()) {
        if (!inv.nodes.receives(node) || !inv.eligible(task, node)) continue;
        const auto idle = gpu_count(snapshot.idle_gpus(node, snapshot.lent_to(task)));
        const auto by = [&](const std::vector<std::int64_t>& table,
                            const std::vector<std::int64_t>& cheapest) {
            return bound(snapshot, task, node, idle, std::span(table).subspan(index(node) * width_, width_),
                         cheapest[index(node)]);
        };
        const auto least = by(to_free_, cheapest_);
        if (least >= never) continue;
        const auto estimated = estimates_.empty() ? least : by(estimates_, cheapest_estimates_);
        entries.push_back({least, estimated, idle, node});
    }
    return rankings_.emplace(key, Ranking(std::move(entries))).first->second;
}

GPUSCHED_EXPORT std::int64_t PodBounds::of_region(std::span<const NodeId> region) {
    std::vector<std::uint8_t> inside;
    if (!region.empty()) {
        inside.assign(snapshot_.node_slots(), 0);
        for (const auto node : region) inside[index(node)] = 1;
    }
    // Equal pods that fit only once on each node: each pod needs its own node and displaces its own tasks.
    const auto key = request_key(snapshot_, pods_.front());
    bool alone = inv_.tasks.gpu_count[index(pods_.front())] > 0 && !snapshot_.is_fraction(pods_.front());
    std::int64_t least = 0;
    for (const auto pod : pods_) alone = alone && request_key(snapshot_, pod) == key;
    TaskId last = none<TaskId>;
    for (const auto pod : pods_) {
        if (last != none<TaskId> && request_key(snapshot_, pod) == request_key(snapshot_, last)) continue;
        last = pod;
        auto& ranking = bounds_.ranking(snapshot_, pod);
        std::vector<std::int64_t> found;
        if (inside.empty() && !alone) {
            if (ranking.size() > 0) found.push_back(ranking.least_without(none<NodeId>));
        } else {
            for (const auto& entry : ranking.unsorted())
                if (inside.empty() || inside[index(entry.node)]) {
                    found.push_back(entry.bound);
                    alone = alone && snapshot_.gpu_count(entry.node) < 2 * inv_.tasks.gpu_count[index(pod)];
                }
        }
        if (found.empty()) return never;
        least = std::max(least, *std::min_element(found.begin(), found.end()));
    }
    cheapest_.clear();
    at_.clear();
    if (alone) {
        if (!find(inside)) return never;
        least = cheapest_.back();
    }
    if (needed_milli_ > 0) {
        const auto loss = bounds_.loss_of_at_least(needed_milli_);
        if (loss >= never) return never;
        least += loss;
    }
    return least;
}

/// Bounds for equal pods on a node each. A displaced task with more GPUs than remain next to a pod needs a
/// node without pods. The cost of that place is added, unless GPUs must be evicted for good anyway.
bool PodBounds::find(std::span<const std::uint8_t> inside) {
    const auto pod = pods_.front();
    const auto requested = inv_.tasks.gpu_count[index(pod)];
    std::vector<Ranking::Entry> nodes;
    int left = 0;  // most GPUs on a node next to a pod
    for (const auto& entry : bounds_.ranking(snapshot_, pod).unsorted())
        if (inside.empty() || inside[index(entry.node)]) {
            nodes.push_back(entry);
            left = std::max(left, snapshot_.gpu_count(entry.node) - requested);
        }
    if (nodes.size() < pods_.size()) return false;
    const auto last = nodes.begin() + static_cast<std::ptrdiff_t>(pods_.size());
    // The sum of the cheapest; they come first.
    const auto total = [&] {
        std::nth_element(nodes.begin(), last - 1, nodes.end(),
                         [](const auto& a, const auto& b) { return a.bound < b.bound; });
        std::int64_t sum = 0;
        for (auto entry = nodes.begin(); entry != last; ++entry) sum = std::min(never, sum + entry->bound);
        return sum;
    };
    auto least = total();
    if (needed_milli_ <= 0) {
        // Adds the places of one size only: the same tasks can make place for displaced tasks of several
        // sizes.
        const auto without = nodes;
        for (int size = left + 1; size <= requested; ++size) {
            if (!bounds_.has_size(size) || bounds_.place_of_size(size) == 0) continue;
            const auto known = nodes;
            std::copy(without.begin(), without.end(), nodes.begin());
            // A node whose bound exceeds the highest of the first ones cannot be among the cheapest.
            std::int64_t most = 0;
            for (auto entry = nodes.begin(); entry != nodes.end(); ++entry)
                if (entry < last || entry->bound < most) {
                    entry->bound =
                        std::max(entry->bound, bounds_.bound_with_places(snapshot_, pod, entry->node, size));
                    if (entry < last) most = std::max(most, entry->bound);
                }
            if (const auto sum = total(); sum > least)
                least = sum;
            else
                std::copy(known.begin(), known.end(), nodes.begin());
        }
    }
    at_.assign(snapshot_.node_slots(), 0);
    for (const auto& entry : nodes) at_[index(entry.node)] = entry.bound;
    std::sort(nodes.begin(), last, [](const auto& a, const auto& b) { return a.bound < b.bound; });
    cheapest_.assign(1, 0);
    for (auto entry = nodes.begin(); entry != last; ++entry)
        cheapest_.push_back(std::min(never, cheapest_.back() + entry->bound));
    return true;
}

}  // namespace gpusched::admission::detail

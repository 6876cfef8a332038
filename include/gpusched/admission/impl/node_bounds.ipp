#pragma once

#include <gpusched/admission/detail/node_bounds.hpp>
#include <gpusched/model/largest_gpu_count.hpp>

#include <algorithm>
#include <array>

namespace GPUSCHED_NAMESPACE::admission::detail {

GPUSCHED_INTERNAL RequestKey request_key(const Cluster& cluster, TaskId task) {
    const auto& t = cluster.inventory().tasks;
    const auto i = index(task);
    return {t.requirement[i], t.extras[i],     t.gpu_count[i],          t.gpu_share_milli[i],
            t.cpu_milli[i],   t.memory_mib[i], cluster.may_borrow(task)};
}

GPUSCHED_INTERNAL const Ranking::Entry& Ranking::operator[](std::size_t i) {
    if (i >= sorted_) {
        const auto to = std::min(entries_.size(), std::max<std::size_t>(32, 4 * (i + 1)));
        const auto from = entries_.begin() + static_cast<std::ptrdiff_t>(sorted_);
        const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(to);
        if (to < entries_.size()) std::nth_element(from, end, entries_.end());
        std::sort(from, end);
        sorted_ = to;
    }
    return entries_[i];
}

GPUSCHED_INTERNAL NodeBounds::NodeBounds(const Cluster& cluster, const Prices& prices) {
    const auto& inv = cluster.inventory();
    constexpr int widest = 16;  // beyond so many GPUs the bound is that of so many
    const auto most = std::min(widest, largest_gpu_count(inv));
    width_ = static_cast<std::size_t>(most) + 1;
    to_free_.assign(cluster.node_slots() * width_, never);
    cheapest_.assign(cluster.node_slots(), never);
    std::array<std::int64_t, max_gpus_per_node> of_gpu{};
    for (const auto node : cluster.nodes()) {
        auto* const best = to_free_.data() + index(node) * width_;
        best[0] = 0;
        auto& cheapest = cheapest_[index(node)];
        // Freeing `gpus` more for `cost`, once.
        const auto take = [&](int gpus, std::int64_t cost) {
            for (int g = most; g > 0; --g) {
                const auto before = best[std::max(0, g - gpus)];
                if (before < never) best[g] = std::min(best[g], before + cost);
            }
        };
        GpuMask shared = 0;
        for (const auto task : cluster.tasks_on(node)) {
            const auto& price = prices[task];
            const auto gpus = cluster.gpus_of(task) & ~cluster.devices(node);
            if (cluster.is_fraction(task)) {
                for_each_gpu(gpus, [&](int g) {
                    if ((shared & gpu_bit(g)) == 0) of_gpu[static_cast<std::size_t>(g)] = 0;
                    shared |= gpu_bit(g);
                    auto& sum = of_gpu[static_cast<std::size_t>(g)];
                    sum = std::min(never, sum + price.least);
                });
            }
            if (price.least >= never) continue;
            cheapest = std::min(cheapest, price.least);
            if (!cluster.is_fraction(task) && gpus != 0) take(gpu_count(gpus), price.least);
            if (price.lose < never && gpus != 0)
                of_tasks_.push_back({cluster.gpu_milli(task), price.lose - price.least});
        }
        for_each_gpu(shared, [&](int g) {
            if (of_gpu[static_cast<std::size_t>(g)] < never) take(1, of_gpu[static_cast<std::size_t>(g)]);
        });
        if (inv.nodes.receives(node)) {
            const auto idle = cluster.idle_gpus(node, Lent::yes);
            free_milli_ += std::int64_t{whole_gpu_milli} * gpu_count(idle);
            for_each_gpu(cluster.healthy_gpus(node) & ~idle,
                         [&](int g) { free_milli_ += cluster.gpu_free_milli(node, g, Lent::yes); });
        }
    }
}

GPUSCHED_INTERNAL void NodeBounds::prepare_losses(std::int64_t most) {
    // A heap: only the cheapest few are needed.
    const auto dearer = [](const Loss& a, const Loss& b) {
        // extra / GPUs, compared without division: below 2^46 times 2^16
        const auto x = a.extra * b.gpu_milli, y = b.extra * a.gpu_milli;
        return x != y ? x > y : a.gpu_milli > b.gpu_milli;
    };
    std::make_heap(of_tasks_.begin(), of_tasks_.end(), dearer);
    Loss sum{0, 0};
    while (sum.gpu_milli < most && !of_tasks_.empty()) {
        std::pop_heap(of_tasks_.begin(), of_tasks_.end(), dearer);
        sum.gpu_milli += of_tasks_.back().gpu_milli;
        sum.extra = std::min(never, sum.extra + of_tasks_.back().extra);
        of_tasks_.pop_back();
        losses_.push_back(sum);
    }
}

GPUSCHED_INTERNAL std::int64_t NodeBounds::loss_of_at_least(std::int64_t gpu_milli) const noexcept {
    if (gpu_milli <= 0) return 0;
    const auto at =
        std::lower_bound(losses_.begin(), losses_.end(), gpu_milli,
                         [](const Loss& loss, std::int64_t wanted) { return loss.gpu_milli < wanted; });
    if (at == losses_.end()) return never;
    const auto before = at == losses_.begin() ? Loss{0, 0} : *(at - 1);
    // A part of the last one, rounded down.
    const auto part = gpu_milli - before.gpu_milli, whole = at->gpu_milli - before.gpu_milli;
    const auto extra = at->extra - before.extra;
    return before.extra + extra / whole * part + extra % whole * part / whole;
}

GPUSCHED_INTERNAL std::int64_t NodeBounds::bound(const Cluster& snapshot, TaskId task, NodeId node,
                                                 int idle) const {
    const auto& t = snapshot.inventory().tasks;
    const auto i = index(task);
    const auto lent = snapshot.lent_to(task);
    std::int64_t least = 0;
    bool lacks = t.cpu_milli[i] > snapshot.cpu_free_milli(node, lent) ||
                 t.memory_mib[i] > snapshot.memory_free_mib(node);
    if (snapshot.is_fraction(task)) {
        bool room = idle > 0;
        for (int g = 0; g < snapshot.gpu_count(node) && !room; ++g)
            room = snapshot.gpu_free_milli(node, g, lent) >= t.gpu_share_milli[i];
        lacks = lacks || !room;
    } else if (const int more = t.gpu_count[i] - idle; more > 0) {
        if (snapshot.gpu_count(node) < t.gpu_count[i]) return never;
        least = to_free_[index(node) * width_ +
                         std::min<std::size_t>(static_cast<std::size_t>(more), width_ - 1)];
    }
    return lacks ? std::max(least, cheapest_[index(node)]) : least;
}

GPUSCHED_INTERNAL Ranking& NodeBounds::ranking(const Cluster& snapshot, TaskId task) {
    const auto key = request_key(snapshot, task);
    if (const auto known = rankings_.find(key); known != rankings_.end()) return known->second;
    const auto& inv = snapshot.inventory();
    std::vector<Ranking::Entry> entries;
    entries.reserve(snapshot.node_count());
    for (const auto node : snapshot.nodes()) {
        if (!inv.nodes.receives(node) || !inv.eligible(task, node)) continue;
        const auto idle = gpu_count(snapshot.idle_gpus(node, snapshot.lent_to(task)));
        const auto least = bound(snapshot, task, node, idle);
        if (least < never) entries.push_back({least, idle, node});
    }
    return rankings_.emplace(key, Ranking(std::move(entries))).first->second;
}

}  // namespace GPUSCHED_NAMESPACE::admission::detail

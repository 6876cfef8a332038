// SPDX-License-Identifier: Apache-2.0
#include "consolidation/bin_packing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

namespace gpusched::consolidation::detail {

BinPacking make_bin_packing(const Cluster& cluster, const Scope& scope, std::span<const NodeId> component,
                            bool with_costs) {
    const auto& inv = cluster.inventory();
    const auto& t = inv.tasks;
    const auto item_key = [](const Item& i) {
        return std::tuple(i.requirement, i.gpu_milli, i.fraction, i.cpu_milli, i.memory_mib);
    };
    const auto bin_key = [](const Bin& b) {
        return std::tuple(b.node_class, b.may_vacate, b.may_open, b.weight, b.gpu_milli, b.whole_gpus,
                          b.cpu_milli, b.memory_mib, b.cost);
    };
    BinPacking packing;
    for (const auto node : component) {
        const auto n = index(node);
        if (cluster.occupants(node) == 0 && !scope.opens(node)) continue;  // it stays empty
        Bin bin{inv.nodes.node_class[n],
                scope.may_vacate[n] != 0,
                scope.opens(node),
                gpu_count(cluster.healthy_gpus(node)),
                0,
                0,
                inv.nodes.cpu_milli[n],
                inv.nodes.memory_mib[n],
                1};
        std::array<std::int64_t, max_gpus_per_node> free{};
        for_each_gpu(cluster.healthy_gpus(node),
                     [&](int g) { free[static_cast<std::size_t>(g)] = whole_gpu_milli; });
        for (const auto task : cluster.tasks_on(node)) {
            const auto i = index(task);
            if (scope.movable[i]) {
                if (with_costs) bin.cost += t.move_cost[i];
                packing.items.push_back({t.requirement[i], cluster.gpu_milli(task), cluster.is_fraction(task),
                                         t.cpu_milli[i], t.memory_mib[i], 1});
                if (!inv.eligible(t.requirement[i], bin.node_class))
                    packing.misplaced.emplace_back(t.requirement[i], bin.node_class);
                // It may stay even on a failed GPU.
                for_each_gpu(cluster.gpus_of(task) & ~cluster.healthy_gpus(node) & ~cluster.devices(node),
                             [&](int g) { free[static_cast<std::size_t>(g)] += t.gpu_share_milli[i]; });
                continue;
            }
            bin.memory_mib -= t.memory_mib[i];
            if (t.standby[i]) continue;
            bin.cpu_milli -= t.cpu_milli[i];
            for_each_gpu(cluster.gpus_of(task) & cluster.healthy_gpus(node),
                         [&](int g) { free[static_cast<std::size_t>(g)] -= t.gpu_share_milli[i]; });
        }
        for (const auto milli : std::span(free).first(static_cast<std::size_t>(cluster.gpu_count(node)))) {
            bin.gpu_milli += milli;
            bin.whole_gpus += milli >= whole_gpu_milli;
        }
        packing.bins.push_back(bin);
    }
    const auto merge = [](auto& all, auto key) {
        std::sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
        std::size_t kept = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (kept > 0 && key(all[kept - 1]) == key(all[i]))
                all[kept - 1].count += all[i].count;
            else
                all[kept++] = all[i];
        }
        all.resize(kept);
    };
    merge(packing.items, item_key);
    merge(packing.bins, bin_key);
    std::sort(packing.misplaced.begin(), packing.misplaced.end());
    return packing;
}

// A bin that stays holds at most its capacity by any dual feasible weighing; what the items weigh beyond the bins that
// stay anyway must lie in others.
std::vector<std::int64_t> least_stay(const BinPacking& packing, std::span<const Stakes> stakes) {
    std::vector<std::int64_t> best(stakes.size()), unit(stakes.size());
    std::int64_t most_gpus = 0, most_cpu = 1, most_memory = 1;
    for (const auto& bin : packing.bins) {
        most_gpus = std::max(most_gpus, bin.gpu_milli);
        most_cpu = std::max(most_cpu, bin.cpu_milli);
        most_memory = std::max(most_memory, bin.memory_mib);
    }
    for (std::size_t s = 0; s < stakes.size(); ++s)
        for (const auto stake : stakes[s]) unit[s] = std::gcd(unit[s], stake);
    if (packing.items.empty()) return best;
    // Cores and memory that no set of tasks with so few GPUs could use.
    double cpu_per_gpu = 0, memory_per_gpu = 0;
    for (const auto& item : packing.items) {
        const auto gpus = static_cast<double>(item.gpu_milli);
        cpu_per_gpu = std::max(cpu_per_gpu, static_cast<double>(item.cpu_milli) / gpus);
        memory_per_gpu = std::max(memory_per_gpu, static_cast<double>(item.memory_mib) / gpus);
    }
    const auto usable = [](std::int64_t free, double per_gpu, std::int64_t gpu_milli) {
        const auto most =
            per_gpu * static_cast<double>(gpu_milli) * (1 + 1e-12);  // NaN for 0 x infinity: no limit
        return most < static_cast<double>(free) ? most : static_cast<double>(free);
    };
    struct Class {
        double capacity;
        std::int64_t count;
        std::size_t bin;
    };
    for (const int alpha : {0, 1, 2, 4, 8, 16}) {  // 0: by volume
        const auto steps = [&](std::int64_t milli, std::int64_t whole) {
            return alpha == 0 ? static_cast<double>(milli) : static_cast<double>(whole / alpha);
        };
        const auto gpu_scale = steps(std::max<std::int64_t>(most_gpus, 1),
                                     std::max<std::int64_t>(most_gpus / whole_gpu_milli, 1));
        if (gpu_scale <= 0) continue;
        for (int part = 0; part <= 8; ++part)
            for (const bool memory : {false, true}) {
                if (part == 8 && memory) continue;
                const double gpu_part = part / 8.0, other_part = 1 - gpu_part;
                const auto weigh = [&](double gpus, double cpu, double mib) {
                    return gpu_part * gpus / gpu_scale +
                           other_part * (memory ? mib / static_cast<double>(most_memory)
                                                : cpu / static_cast<double>(most_cpu));
                };
                double shortage = 0, total = 0;
                for (const auto& item : packing.items)
                    total +=
                        static_cast<double>(item.count) *
                        weigh(steps(item.gpu_milli, item.fraction ? 0 : item.gpu_milli / whole_gpu_milli),
                              static_cast<double>(item.cpu_milli), static_cast<double>(item.memory_mib));
                shortage = total * (1 - 1e-12);
                std::vector<Class> open;
                for (std::size_t b = 0; b < packing.bins.size(); ++b) {
                    const auto& bin = packing.bins[b];
                    const auto capacity = weigh(steps(bin.gpu_milli, bin.whole_gpus),
                                                usable(bin.cpu_milli, cpu_per_gpu, bin.gpu_milli),
                                                usable(bin.memory_mib, memory_per_gpu, bin.gpu_milli));
                    if (!bin.may_vacate && !bin.may_open)
                        shortage -= capacity * static_cast<double>(bin.count);
                    else if (capacity > 0)
                        open.push_back({capacity, bin.count, b});
                }
                shortage -= 1e-9 * (1 + total);
                // What covers most for its stake first, the last class in part.
                const auto cover = [&](const Stakes& stake) {
                    const auto worth = [&](const Class& c) {
                        return c.capacity / static_cast<double>(stake[c.bin]);
                    };  // may be infinite
                    std::sort(open.begin(), open.end(),
                              [&](const Class& a, const Class& b) { return worth(a) > worth(b); });
                    double left = shortage, paid = 0;
                    for (const auto& c : open) {
                        if (left <= 0) break;
                        const auto used = std::min(static_cast<double>(c.count), left / c.capacity);
                        paid += used * static_cast<double>(stake[c.bin]);
                        left -= used * c.capacity;
                    }
                    return paid;
                };
                for (std::size_t s = 0; s < stakes.size(); ++s) {
                    if (unit[s] == 0) continue;
                    const auto least = cover(stakes[s]) / static_cast<double>(unit[s]);
                    best[s] = std::max(best[s], unit[s] * static_cast<std::int64_t>(std::ceil(least - 1e-6)));
                }
            }
    }
    return best;
}

MustStay counting_bound(const BinPacking& packing) {
    std::array<Stakes, 2> stakes;
    for (const auto& bin : packing.bins) {
        const bool at_stake = bin.may_vacate || bin.may_open;
        stakes[0].push_back(at_stake ? 1 : 0);
        stakes[1].push_back(at_stake ? bin.weight : 0);
    }
    const auto least = least_stay(packing, stakes);
    return {least[0], least[1]};
}

}  // namespace gpusched::consolidation::detail

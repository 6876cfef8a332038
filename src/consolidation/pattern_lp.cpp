// SPDX-License-Identifier: Apache-2.0
// Bin packing bounds: dual feasible functions, and column generation over patterns.
#include "consolidation/pattern_lp.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
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
        if (cluster.occupants(node) == 0 && !scope.opens(node)) continue;  // stays empty
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
                // A task may stay even on a failed GPU.
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

// By any dual feasible function, the items in a bin weigh at most its capacity. The weight of the items
// beyond the bins that stay in any case must lie in others.
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
    // Limits cores and memory by the highest request per GPU.
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
    for (const int alpha : {0, 1, 2, 4, 8, 16}) {  // 0: f(x) = x
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
                // Covers the shortage by the bins with the highest capacity per stake; the last class in
                // part.
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

// The stakes of a bound on nodes, and of one on GPUs.
static std::array<Stakes, 2> stakes_of(const BinPacking& packing) {
    std::array<Stakes, 2> stakes;
    for (const auto& bin : packing.bins) {
        const bool at_stake = bin.may_vacate || bin.may_open;
        stakes[0].push_back(at_stake ? 1 : 0);
        stakes[1].push_back(at_stake ? bin.weight : 0);
    }
    return stakes;
}

MustStay counting_bound(const BinPacking& packing) {
    const auto least = least_stay(packing, stakes_of(packing));
    return {least[0], least[1]};
}

class PatternLp {
  public:
    /// @param stakes by bin of the packing
    PatternLp(const BinPacking& packing, const Inventory& inventory, const Stakes& stakes)
        : inventory_(inventory), misplaced_(packing.misplaced) {
        choose_grid(packing);
        for (const auto& item : packing.items) {
            Item on_grid = item;
            on_grid.gpu_milli = item.gpu_milli / gpu_unit_;
            on_grid.cpu_milli = item.cpu_milli / cpu_unit_;
            on_grid.memory_mib = 0;
            if (on_grid.gpu_milli > 0 || on_grid.cpu_milli > 0)
                add(items_, on_grid,
                    [](const Item& i) { return std::tuple(i.requirement, i.gpu_milli, i.cpu_milli); });
        }
        for (std::size_t i = 0; i < packing.bins.size(); ++i) {
            const auto& bin = packing.bins[i];
            Bin on_grid = bin;
            on_grid.gpu_milli = std::max<std::int64_t>(
                0, gpu_unit_ == whole_gpu_milli ? bin.whole_gpus : bin.gpu_milli / gpu_unit_);
            const auto usable = cpu_per_gpu_ * static_cast<double>(on_grid.gpu_milli);
            on_grid.cpu_milli = std::max<std::int64_t>(0, bin.cpu_milli) / cpu_unit_;
            if (usable < static_cast<double>(on_grid.cpu_milli))
                on_grid.cpu_milli = static_cast<std::int64_t>(usable + 1e-6);
            on_grid.weight = stakes[i];
            on_grid.memory_mib = on_grid.whole_gpus = 0;
            if (on_grid.gpu_milli > 0 || on_grid.cpu_milli > 0)
                add(bins_, on_grid, [](const Bin& b) {
                    return std::tuple(b.node_class, b.may_vacate, b.may_open, b.weight, b.gpu_milli,
                                      b.cpu_milli);
                });
            unit_ = std::gcd(unit_, on_grid.weight);
        }
    }

    std::int64_t run(const LpSolver& lp, Budget& budget) {
        if (items_.empty() || unit_ == 0) return 0;
        start();
        double best = 0;
        LpBasis basis;
        std::vector<double> price(items_.size());
        for (int iteration = 0; iteration < 300 && !budget.exhausted(); ++iteration) {
            const auto master = lp.solve(problem_, basis);
            if (master.status != LpStatus::optimal) break;
            basis = master.basis;
            for (std::size_t k = 0; k < items_.size(); ++k) price[k] = std::max(0.0, master.row_dual[k]);
            const auto added = price_patterns(price, master.row_dual);
            best = std::max(best, lagrangian(price));
            if (added == 0 || whole_units(best) >= whole_units(master.objective)) break;
            if (added > 0) extend(basis);
        }
        return unit_ * whole_units(best);
    }

  private:
    template <class T, class Key>
    static void add(std::vector<T>& all, const T& value, Key key) {
        const auto at =
            std::find_if(all.begin(), all.end(), [&](const T& other) { return key(other) == key(value); });
        if (at != all.end())
            at->count += value.count;
        else
            all.push_back(value);
    }

    void choose_grid(const BinPacking& packing) {
        std::int64_t shares = whole_gpu_milli, cores = 0, most_cpu = 1;
        for (const auto& item : packing.items) {
            if (item.fraction) shares = std::gcd(shares, item.gpu_milli);
            cores = std::gcd(cores, item.cpu_milli);
        }
        for (const auto& bin : packing.bins) most_cpu = std::max(most_cpu, bin.cpu_milli);
        gpu_unit_ = std::max<std::int64_t>(shares, 50);
        cpu_unit_ = std::max(std::max<std::int64_t>(cores, 1), (most_cpu + 199) / 200);
        for (const auto& item : packing.items) {
            const auto gpus = item.gpu_milli / gpu_unit_;
            cpu_per_gpu_ = gpus == 0
                               ? std::numeric_limits<double>::infinity()
                               : std::max(cpu_per_gpu_, static_cast<double>(item.cpu_milli / cpu_unit_) /
                                                            static_cast<double>(gpus));
        }
    }

    [[nodiscard]] std::int64_t whole_units(double value) const {
        return std::max<std::int64_t>(
            0, static_cast<std::int64_t>(std::ceil(value / static_cast<double>(unit_) - 1e-6)));
    }

    // Rows: one per item (at least its count), one per bin (at most its count). First columns: every item on
    // a bin of its own, too costly to be used in an optimum.
    void start() {
        const auto infinity = std::numeric_limits<double>::infinity();
        std::int64_t highest = 1;
        for (const auto& bin : bins_) highest = std::max(highest, bin.weight);
        for (const auto& item : items_) {
            problem_.row_lower.push_back(static_cast<double>(item.count));
            problem_.row_upper.push_back(infinity);
        }
        for (const auto& bin : bins_) {
            problem_.row_lower.push_back(-infinity);
            problem_.row_upper.push_back(static_cast<double>(bin.count));
        }
        for (std::size_t k = 0; k < items_.size(); ++k) {
            problem_.row_index.push_back(static_cast<int>(k));
            problem_.value.push_back(1);
            end_column(static_cast<double>(4 * highest));
        }
    }
    void end_column(double cost) {
        problem_.column_start.push_back(static_cast<std::int64_t>(problem_.row_index.size()));
        problem_.objective.push_back(cost);
        problem_.column_lower.push_back(0);
        problem_.column_upper.push_back(std::numeric_limits<double>::infinity());
    }
    // Extends the basis by the columns that were just added.
    void extend(LpBasis& basis) const {
        const auto rows = static_cast<std::ptrdiff_t>(problem_.row_lower.size());
        const LpBasis row_part(basis.end() - rows, basis.end());
        basis.resize(basis.size() - row_part.size());
        basis.resize(problem_.objective.size(), LpPosition::at_lower_bound);
        basis.insert(basis.end(), row_part.begin(), row_part.end());
    }

    // Computes the best value of every bin, per class of nodes. Adds a column for every bin whose value beats
    // the master's prices.
    int price_patterns(const std::vector<double>& price, const std::vector<double>& dual) {
        int added = 0;
        value_.assign(bins_.size(), 0);
        std::map<std::uint32_t, std::vector<std::size_t>> by_class;
        for (std::size_t b = 0; b < bins_.size(); ++b) by_class[bins_[b].node_class].push_back(b);
        for (const auto& [node_class, members] : by_class) {
            std::size_t gpus = 0, cores = 0;
            for (const auto b : members) {
                gpus = std::max(gpus, static_cast<std::size_t>(bins_[b].gpu_milli));
                cores = std::max(cores, static_cast<std::size_t>(bins_[b].cpu_milli));
            }
            find_allowed(node_class, price);
            knapsack(gpus, cores, price);
            for (const auto b : members) {
                const auto& bin = bins_[b];
                value_[b] = best_[static_cast<std::size_t>(bin.gpu_milli) * (cores + 1) +
                                  static_cast<std::size_t>(bin.cpu_milli)];
                const auto bin_price = std::min(0.0, dual[items_.size() + b]);
                if (static_cast<double>(bin.weight) - value_[b] - bin_price > -1e-7) continue;
                add_pattern(b, cores, price);
                ++added;
            }
        }
        return added;
    }
    [[nodiscard]] bool accepts(std::uint32_t node_class, const Item& item) const {
        return inventory_.eligible(item.requirement, node_class) ||
               std::binary_search(misplaced_.begin(), misplaced_.end(),
                                  std::pair(item.requirement, node_class));
    }

    // Lists the items that a class of nodes accepts, except those dominated by an item with no higher request
    // and no lower price.
    void find_allowed(std::uint32_t node_class, const std::vector<double>& price) {
        allowed_.clear();
        for (std::size_t k = 0; k < items_.size(); ++k)
            if (price[k] > 1e-9 && accepts(node_class, items_[k])) allowed_.push_back(k);
        std::sort(allowed_.begin(), allowed_.end(), [&](std::size_t a, std::size_t b) {
            return std::tuple(items_[a].gpu_milli, items_[a].cpu_milli, -price[a], a) <
                   std::tuple(items_[b].gpu_milli, items_[b].cpu_milli, -price[b], b);
        });
        std::size_t kept = 0;
        for (const auto k : allowed_)
            if (std::none_of(allowed_.begin(), allowed_.begin() + static_cast<std::ptrdiff_t>(kept),
                             [&](std::size_t other) {
                                 return items_[other].cpu_milli <= items_[k].cpu_milli &&
                                        price[other] >= price[k];
                             }))
                allowed_[kept++] = k;
        allowed_.resize(kept);
    }

    // Computes the best value of every capacity, with any number of each item.
    void knapsack(std::size_t gpus, std::size_t cores, const std::vector<double>& price) {
        const auto width = cores + 1;
        best_.assign((gpus + 1) * width, 0.0);
        for (const auto k : allowed_) {
            const auto dg = static_cast<std::size_t>(items_[k].gpu_milli),
                       dc = static_cast<std::size_t>(items_[k].cpu_milli);
            if (dc > cores) continue;
            for (auto g = dg; g <= gpus; ++g) {
                auto* const to = best_.data() + g * width + dc;
                const auto* const from = best_.data() + (g - dg) * width;
                for (std::size_t c = 0; c <= cores - dc; ++c) to[c] = std::max(to[c], from[c] + price[k]);
            }
        }
    }
    void add_pattern(std::size_t b, std::size_t cores, const std::vector<double>& price) {
        std::map<std::size_t, int> copies;
        const auto width = cores + 1;
        auto gpus = static_cast<std::size_t>(bins_[b].gpu_milli),
             left = static_cast<std::size_t>(bins_[b].cpu_milli);
        for (;;) {  // takes the last item of a best set, as long as there is one
            auto which = items_.size();
            double most = 0;
            for (const auto k : allowed_) {
                const auto dg = static_cast<std::size_t>(items_[k].gpu_milli),
                           dc = static_cast<std::size_t>(items_[k].cpu_milli);
                if (dg > gpus || dc > left) continue;
                const auto value = best_[(gpus - dg) * width + left - dc] + price[k];
                if (value > most) most = value, which = k;
            }
            if (which == items_.size()) break;
            ++copies[which];
            gpus -= static_cast<std::size_t>(items_[which].gpu_milli);
            left -= static_cast<std::size_t>(items_[which].cpu_milli);
        }
        for (const auto& [k, n] : copies) {
            problem_.row_index.push_back(static_cast<int>(k));
            problem_.value.push_back(n);
        }
        problem_.row_index.push_back(static_cast<int>(items_.size() + b));
        problem_.value.push_back(1);
        end_column(static_cast<double>(bins_[b].weight));
    }

    // Valid for any prices. The last term covers the rounding of the sums and of the knapsack's comparisons.
    [[nodiscard]] double lagrangian(const std::vector<double>& price) const {
        double sum = 0, size = 0;
        for (std::size_t k = 0; k < items_.size(); ++k) {
            sum += price[k] * static_cast<double>(items_[k].count);
            size += price[k] * static_cast<double>(items_[k].count);
        }
        for (std::size_t b = 0; b < bins_.size(); ++b) {
            const auto gain = std::min(0.0, static_cast<double>(bins_[b].weight) - value_[b] - 1e-9);
            sum += gain * static_cast<double>(bins_[b].count);
            size -= gain * static_cast<double>(bins_[b].count);
        }
        return sum - 1e-11 * size;
    }

    const Inventory& inventory_;
    std::span<const std::pair<std::uint32_t, std::uint32_t>> misplaced_;
    std::int64_t gpu_unit_ = 1, cpu_unit_ = 1, unit_ = 0;
    double cpu_per_gpu_ = 0;  // in grid units; infinite if some item requests no GPU
    std::vector<Item> items_;
    std::vector<Bin> bins_;
    LpProblem problem_;
    std::vector<double> best_, value_;
    std::vector<std::size_t> allowed_;  // items of the current class, by GPUs, then cores
};

std::int64_t least_stay(const BinPacking& packing, const Stakes& stakes, const Inventory& inventory,
                        const LpSolver& lp, Budget& budget) {
    return PatternLp(packing, inventory, stakes).run(lp, budget);
}

MustStay pattern_bound(const BinPacking& packing, MustStay bound, const Inventory& inventory,
                       const LpSolver& lp, Budget& budget) {
    std::int64_t weight = -1;
    bool alike = true;
    const auto [nodes, gpus] = stakes_of(packing);
    for (const auto& bin : packing.bins) {
        if (!bin.may_vacate && !bin.may_open) continue;
        alike = alike && (weight < 0 || weight == bin.weight);
        weight = bin.weight;
    }
    bound.nodes = std::max(bound.nodes, least_stay(packing, nodes, inventory, lp, budget));
    bound.gpus =
        std::max(bound.gpus, alike && weight >= 0 ? bound.nodes * weight
                                                  : least_stay(packing, gpus, inventory, lp, budget));
    return bound;
}

}  // namespace gpusched::consolidation::detail

// SPDX-License-Identifier: Apache-2.0
#include "consolidation/pattern_lp.hpp"

#include <gpusched/core/lp.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace gpusched::consolidation::detail {

class PatternLp {
  public:
    /// @param stakes what is lost where one bin of a kind stays
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

    // Rows: one per item (at least its count), one per bin (at most its count). First columns: every item on a bin of
    // its own that is too dear to be used in the end.
    void start() {
        const auto infinity = std::numeric_limits<double>::infinity();
        std::int64_t dearest = 1;
        for (const auto& bin : bins_) dearest = std::max(dearest, bin.weight);
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
            end_column(static_cast<double>(4 * dearest));
        }
    }
    void end_column(double cost) {
        problem_.column_start.push_back(static_cast<std::int64_t>(problem_.row_index.size()));
        problem_.objective.push_back(cost);
        problem_.column_lower.push_back(0);
        problem_.column_upper.push_back(std::numeric_limits<double>::infinity());
    }
    // The basis of the problem with the columns that were just added.
    void extend(LpBasis& basis) const {
        const auto rows = static_cast<std::ptrdiff_t>(problem_.row_lower.size());
        const LpBasis row_part(basis.end() - rows, basis.end());
        basis.resize(basis.size() - row_part.size());
        basis.resize(problem_.objective.size(), LpPosition::at_lower_bound);
        basis.insert(basis.end(), row_part.begin(), row_part.end());
    }

    // Best value of every capacity, per class of nodes; adds a column for every bin where it beats the master's prices.
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

    // The items that a class of nodes accepts, but those for which another asks for no more and is worth no less.
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

    // The most that fits every capacity: item by item, any number of each.
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
        for (;;) {  // the last item of a best set, as often as there is one
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

    // Valid for any prices; the last term covers the rounding of the sums and of the knapsack's comparisons.
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
    double cpu_per_gpu_ = 0;  // in grid units; infinite where some item asks for no GPU
    std::vector<Item> items_;
    std::vector<Bin> bins_;
    LpProblem problem_;
    std::vector<double> best_, value_;
    std::vector<std::size_t> allowed_;  // items of the class at hand, by GPUs, then cores
};

std::int64_t least_stay(const BinPacking& packing, const Stakes& stakes, const Inventory& inventory,
                        const LpSolver& lp, Budget& budget) {
    return PatternLp(packing, inventory, stakes).run(lp, budget);
}

MustStay pattern_bound(const BinPacking& packing, MustStay bound, const Inventory& inventory,
                       const LpSolver& lp, Budget& budget) {
    std::int64_t weight = -1;
    bool alike = true;
    Stakes nodes, gpus;
    for (const auto& bin : packing.bins) {
        const bool at_stake = bin.may_vacate || bin.may_open;
        nodes.push_back(at_stake ? 1 : 0);
        gpus.push_back(at_stake ? bin.weight : 0);
        if (!at_stake) continue;
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

// SPDX-License-Identifier: Apache-2.0
// The model of one step of priority packing.
#pragma once

#include "milp/extra_capacities.hpp"

#include <gpusched/milp/priority_packing.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::milp::detail {

/// The priorities of pending tasks, highest first.
inline std::vector<std::int64_t> pending_priorities(const Cluster& cluster) {
    std::set<std::int64_t, std::greater<>> found;
    for (const auto task : cluster.tasks())
        if (!cluster.is_placed(task)) found.insert(cluster.inventory().tasks.priority[index(task)]);
    return {found.begin(), found.end()};
}

/// Builds `packing_model`.
class PackingBuilder {
  public:
    PackingBuilder(const Cluster& cluster, const PackingOptions& options)
        : cluster_(cluster), inventory_(cluster.inventory()), max_gpus_(largest_gpu_count(inventory_)),
          rest_(cluster), model_("priority packing") {
        for (const auto task : cluster.tasks()) {
            const bool moves = options.allow_moves && cluster.is_movable(task) && !cluster.is_fraction(task);
            if (cluster.is_placed(task) && !moves) continue;
            if (inventory_.tasks.daemon[index(task)] != 0) continue;
            if (!inventory_.selection_memberships(task).empty())
                throw InvalidInput(
                    "task " + gpusched::quoted(cluster.name(task)) +
                    ": groups that tasks avoid, want near or spread are no rows of this model");
            result_.tasks.push_back(task);
            if (moves) rest_.remove(task);
        }
    }

    PackingModel build(std::int64_t priority, const std::vector<std::int64_t>& placed) {
        columns(priority);
        rows(placed);
        static_cast<Model&>(result_) = model_.finish();
        return std::move(result_);
    }

  private:
    [[nodiscard]] TaskId task(int i) const { return result_.tasks[static_cast<std::size_t>(i)]; }
    [[nodiscard]] bool pending(int i) const { return !cluster_.is_placed(task(i)); }
    [[nodiscard]] NodeId node(int n) const { return make_id<NodeId>(static_cast<std::size_t>(n)); }
    /// Cards that nobody who stays uses or claims.
    [[nodiscard]] GpuMask untouched(NodeId n) const {
        return static_cast<GpuMask>(rest_.idle_gpus(n, Lent::no) & rest_.idle_gpus(n, Lent::yes));
    }
    [[nodiscard]] int free_share(NodeId n, int gpu) const { return rest_.gpu_free_milli(n, gpu, Lent::no); }

    [[nodiscard]] bool allowed(TaskId t, NodeId n) const {
        if (cluster_.node_of(t) == n) return true;
        const auto i = index(t);
        if (!inventory_.nodes.receives(n)) return false;
        if (find_eligibility_obstacle(cluster_, t, n) != Obstacle::none) return false;
        if (inventory_.tasks.cpu_milli[i] > rest_.cpu_free_milli(n) ||
            inventory_.tasks.memory_mib[i] > rest_.memory_free_mib(n))
            return false;
        if (cluster_.is_fraction(t)) return true;  // per card
        return inventory_.tasks.gpu_count[i] <= gpu_count(untouched(n));
    }

    void columns(std::int64_t priority) {
        const auto I = static_cast<int>(result_.tasks.size()), N = static_cast<int>(cluster_.node_slots());
        x_ = IndexMap("x", {I, N});
        card_ = IndexMap("card", {I, N, max_gpus_});
        used_ = IndexMap("used", {N, max_gpus_});
        for (int i = 0; i < I; ++i) {
            const auto t = task(i);
            const double worth = pending(i) && inventory_.tasks.priority[index(t)] == priority ? 1 : 0;
            for (int n = 0; n < N; ++n) {
                if (!allowed(t, node(n))) continue;
                const auto label = "(" + cluster_.name(t) + "," + cluster_.name(node(n));
                if (!cluster_.is_fraction(t)) {
                    x_(i, n) = model_.binary("x" + label + ")", worth);
                    continue;
                }
                for (int g = 0; g < cluster_.gpu_count(node(n)); ++g) {
                    if (inventory_.tasks.gpu_share_milli[index(t)] > free_share(node(n), g)) continue;
                    card_(i, n, g) = model_.binary("card" + label + "," + std::to_string(g) + ")", worth);
                    if (used_(n, g) < 0 && (untouched(node(n)) & gpu_bit(g)) != 0)
                        used_(n, g) =
                            model_.binary("used(" + cluster_.name(node(n)) + "," + std::to_string(g) + ")");
                }
            }
        }
        model_.set_sense(Sense::maximise);
    }

    /// The columns that say whether task i runs on node n.
    void each_place(int i, int n, const std::function<void(int)>& visit) const {
        if (x_(i, n) >= 0) visit(x_(i, n));
        for (int g = 0; g < max_gpus_; ++g)
            if (card_(i, n, g) >= 0) visit(card_(i, n, g));
    }

    void rows(const std::vector<std::int64_t>& placed) {
        const auto I = static_cast<int>(result_.tasks.size()), N = static_cast<int>(cluster_.node_slots());
        std::vector<Entry> e;
        const auto collect = [&](int i, int n, double value) {
            each_place(i, n, [&](int column) { e.push_back({column, value}); });
        };
        for (int i = 0; i < I; ++i) {
            e.clear();
            for (int n = 0; n < N; ++n) collect(i, n, 1);
            model_.row("place", "place(" + cluster_.name(task(i)) + ")", pending(i) ? 0 : 1, e, 1);
        }
        for (int n = 0; n < N; ++n) {
            const auto& name = cluster_.name(node(n));
            e.clear();
            for (int i = 0; i < I; ++i)
                if (x_(i, n) >= 0)
                    e.push_back({x_(i, n), static_cast<double>(inventory_.tasks.gpu_count[index(task(i))])});
            for (int g = 0; g < max_gpus_; ++g)
                if (used_(n, g) >= 0) e.push_back({used_(n, g), 1});
            // Who holds a failed card may stay on it.
            int failed = 0;
            for (int i = 0; i < I; ++i)
                if (cluster_.node_of(task(i)) == node(n))
                    failed += gpu_count(cluster_.gpus_of(task(i)) & ~cluster_.healthy_gpus(node(n)) &
                                        ~cluster_.devices(node(n)));
            result_.untouched.push_back(gpu_count(untouched(node(n))) + failed);
            model_.at_most("gpu", "gpu(" + name + ")", e, result_.untouched.back());
            auto& milli = result_.card_milli.emplace_back();
            for (int g = 0; g < cluster_.gpu_count(node(n)); ++g) milli.push_back(free_share(node(n), g));
            for (int g = 0; g < max_gpus_; ++g) cards(n, g);
            e.clear();
            for (int i = 0; i < I; ++i)
                collect(i, n, static_cast<double>(inventory_.tasks.cpu_milli[index(task(i))]));
            model_.at_most("cpu", "cpu(" + name + ")", e, static_cast<double>(rest_.cpu_free_milli(node(n))));
            e.clear();
            for (int i = 0; i < I; ++i)
                collect(i, n, static_cast<double>(inventory_.tasks.memory_mib[index(task(i))]));
            model_.at_most("memory", "memory(" + name + ")", e,
                           static_cast<double>(rest_.memory_free_mib(node(n))));
        }
        extras();
        anti_affinity();
        const auto priorities = pending_priorities(cluster_);
        for (std::size_t k = 0; k < placed.size() && k < priorities.size(); ++k) {
            e.clear();
            for (int i = 0; i < I; ++i)
                if (pending(i) && inventory_.tasks.priority[index(task(i))] == priorities[k])
                    for (int n = 0; n < N; ++n) collect(i, n, 1);
            model_.at_least("above", "above(" + std::to_string(priorities[k]) + ")", e,
                            static_cast<double>(placed[k]));
        }
        model_.add_index(std::move(x_));
        model_.add_index(std::move(card_));
        model_.add_index(std::move(used_));
    }

    void cards(int n, int g) {
        std::vector<Entry> e;
        const auto I = static_cast<int>(result_.tasks.size());
        for (int i = 0; i < I; ++i)
            if (card_(i, n, g) >= 0)
                e.push_back(
                    {card_(i, n, g), static_cast<double>(inventory_.tasks.gpu_share_milli[index(task(i))])});
        if (e.empty()) return;
        const auto label = "(" + cluster_.name(node(n)) + "," + std::to_string(g) + ")";
        const double share = free_share(node(n), g);
        if (used_(n, g) >= 0) e.push_back({used_(n, g), -share});
        model_.at_most("card", "card" + label, e, used_(n, g) >= 0 ? 0 : share);
        if (used_(n, g) < 0) return;
        // A task that may move and stays holds its cards.
        for (int i = 0; i < I; ++i)
            if (cluster_.node_of(task(i)) == node(n) && (cluster_.gpus_of(task(i)) & gpu_bit(g)) != 0) {
                e = {{used_(n, g), 1}, {x_(i, n), 1}};
                model_.at_most("hold", "hold" + label, e, 1);
            }
    }

    /// Named resources and devices. Tasks that may move may stay on failed devices.
    void extras() {
        for (const auto& kind : ExtraCapacity::all(cluster_, result_.tasks))
            for (int n = 0; n < static_cast<int>(cluster_.node_slots()); ++n) {
                std::vector<Entry> e;
                std::int64_t home = 0;
                for (int i = 0; i < static_cast<int>(result_.tasks.size()); ++i) {
                    const auto each = kind.demand(task(i));
                    if (each == 0) continue;
                    if (cluster_.node_of(task(i)) == node(n)) home += each;
                    each_place(i, n, [&](int column) { e.push_back({column, static_cast<double>(each)}); });
                }
                if (e.empty()) continue;
                model_.at_most("extras", "extras(" + kind.name() + "," + cluster_.name(node(n)) + ")", e,
                               static_cast<double>(std::max(home, kind.free(rest_, node(n)))));
            }
    }

    void anti_affinity() {
        for (std::uint32_t set = 0; set < inventory_.group_sets.size(); ++set) {
            const auto& group = inventory_.group_sets[set];
            if (group.kind != GroupKind::anti_affinity || group.level != node_level || !group.uniform ||
                group.limits.empty())
                continue;
            for (int n = 0; n < static_cast<int>(cluster_.node_slots()); ++n) {
                std::vector<Entry> e;
                std::int64_t home = 0;
                for (int i = 0; i < static_cast<int>(result_.tasks.size()); ++i) {
                    const auto memberships = inventory_.anti_affinity_memberships(task(i));
                    if (std::none_of(memberships.begin(), memberships.end(),
                                     [&](const Membership& m) { return m.set == set; }))
                        continue;
                    home += cluster_.node_of(task(i)) == node(n);
                    each_place(i, n, [&](int column) { e.push_back({column, 1}); });
                }
                if (e.empty()) continue;
                const auto stay =
                    static_cast<std::int64_t>(rest_.group_count(set, inventory_.domain(node_level, node(n))));
                model_.at_most("anti_affinity",
                               "anti_affinity(" + group.group + "," + cluster_.name(node(n)) + ")", e,
                               static_cast<double>(
                                   std::max(home, std::max<std::int64_t>(0, group.limits.front() - stay))));
            }
        }
    }

    const Cluster& cluster_;
    const Inventory& inventory_;
    int max_gpus_;  // of any node
    Cluster rest_;  // without the tasks that may move
    ModelBuilder model_;
    PackingModel result_;
    IndexMap x_, card_, used_;
};

}  // namespace gpusched::milp::detail

// SPDX-License-Identifier: Apache-2.0
// Priority packing: the model of one priority, fractions on cards, and the sequence of models.
#include "milp/extra_capacities.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/priority_packing.hpp>
#include <gpusched/model/feasibility.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
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

/// Builds the model of one priority.
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
    [[nodiscard]] TaskId task(std::size_t i) const { return result_.tasks[i]; }
    [[nodiscard]] bool pending(std::size_t i) const { return !cluster_.is_placed(task(i)); }
    [[nodiscard]] NodeId node(std::size_t n) const { return make_id<NodeId>(n); }
    /// Cards that no staying task uses or claims.
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
        if (cluster_.is_fraction(t)) return true;  // decided per card
        return inventory_.tasks.gpu_count[i] <= gpu_count(untouched(n));
    }

    void columns(std::int64_t priority) {
        const auto I = result_.tasks.size(), N = cluster_.node_slots();
        x_ = IndexMap("x", I, N);
        card_ = IndexMap("card", I, N, max_gpus_);
        used_ = IndexMap("used", N, max_gpus_);
        for (std::size_t i = 0; i < I; ++i) {
            const auto t = task(i);
            const double worth = pending(i) && inventory_.tasks.priority[index(t)] == priority ? 1 : 0;
            for (std::size_t n = 0; n < N; ++n) {
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

    /// Adds the columns that place task i on node n to a row.
    void add_places(std::size_t i, std::size_t n, double value, std::vector<Entry>& row) const {
        if (x_(i, n) >= 0) row.push_back({x_(i, n), value});
        for (int g = 0; g < max_gpus_; ++g)
            if (card_(i, n, g) >= 0) row.push_back({card_(i, n, g), value});
    }

    void rows(const std::vector<std::int64_t>& placed) {
        const auto I = result_.tasks.size(), N = cluster_.node_slots();
        std::vector<Entry> e;
        for (std::size_t i = 0; i < I; ++i) {
            e.clear();
            for (std::size_t n = 0; n < N; ++n) add_places(i, n, 1, e);
            model_.row("place", "place(" + cluster_.name(task(i)) + ")", pending(i) ? 0 : 1, e, 1);
        }
        for (std::size_t n = 0; n < N; ++n) {
            const auto& name = cluster_.name(node(n));
            e.clear();
            for (std::size_t i = 0; i < I; ++i)
                if (x_(i, n) >= 0)
                    e.push_back({x_(i, n), static_cast<double>(inventory_.tasks.gpu_count[index(task(i))])});
            for (int g = 0; g < max_gpus_; ++g)
                if (used_(n, g) >= 0) e.push_back({used_(n, g), 1});
            // Tasks can stay on failed cards that they hold.
            int failed = 0;
            for (std::size_t i = 0; i < I; ++i)
                if (cluster_.node_of(task(i)) == node(n))
                    failed += gpu_count(cluster_.gpus_of(task(i)) & ~cluster_.healthy_gpus(node(n)) &
                                        ~cluster_.devices(node(n)));
            result_.untouched.push_back(gpu_count(untouched(node(n))) + failed);
            model_.at_most("gpu", "gpu(" + name + ")", e, result_.untouched.back());
            auto& milli = result_.card_milli.emplace_back();
            for (int g = 0; g < cluster_.gpu_count(node(n)); ++g) milli.push_back(free_share(node(n), g));
            for (int g = 0; g < max_gpus_; ++g) cards(n, g);
            const auto limit = [&](const char* group, const auto& demand, std::int64_t free) {
                e.clear();
                for (std::size_t i = 0; i < I; ++i)
                    add_places(i, n, static_cast<double>(demand[index(task(i))]), e);
                model_.at_most(group, std::string(group) + "(" + name + ")", e, static_cast<double>(free));
            };
            limit("cpu", inventory_.tasks.cpu_milli, rest_.cpu_free_milli(node(n)));
            limit("memory", inventory_.tasks.memory_mib, rest_.memory_free_mib(node(n)));
        }
        extras();
        anti_affinity();
        const auto priorities = pending_priorities(cluster_);
        for (std::size_t k = 0; k < placed.size() && k < priorities.size(); ++k) {
            e.clear();
            for (std::size_t i = 0; i < I; ++i)
                if (pending(i) && inventory_.tasks.priority[index(task(i))] == priorities[k])
                    for (std::size_t n = 0; n < N; ++n) add_places(i, n, 1, e);
            model_.at_least("above", "above(" + std::to_string(priorities[k]) + ")", e,
                            static_cast<double>(placed[k]));
        }
        model_.add_index(std::move(x_));
        model_.add_index(std::move(card_));
        model_.add_index(std::move(used_));
    }

    void cards(std::size_t n, int g) {
        std::vector<Entry> e;
        const auto I = result_.tasks.size();
        for (std::size_t i = 0; i < I; ++i)
            if (card_(i, n, g) >= 0)
                e.push_back(
                    {card_(i, n, g), static_cast<double>(inventory_.tasks.gpu_share_milli[index(task(i))])});
        if (e.empty()) return;
        const auto label = "(" + cluster_.name(node(n)) + "," + std::to_string(g) + ")";
        const double share = free_share(node(n), g);
        if (used_(n, g) >= 0) e.push_back({used_(n, g), -share});
        model_.at_most("card", "card" + label, e, used_(n, g) >= 0 ? 0 : share);
        if (used_(n, g) < 0) return;
        // A movable task that stays holds its cards.
        for (std::size_t i = 0; i < I; ++i)
            if (cluster_.node_of(task(i)) == node(n) && (cluster_.gpus_of(task(i)) & gpu_bit(g)) != 0) {
                e = {{used_(n, g), 1}, {x_(i, n), 1}};
                model_.at_most("hold", "hold" + label, e, 1);
            }
    }

    /// Named resources and devices. Movable tasks can stay on failed devices.
    void extras() {
        for (const auto& kind : ExtraCapacity::all(cluster_, result_.tasks))
            for (std::size_t n = 0; n < cluster_.node_slots(); ++n) {
                std::vector<Entry> e;
                std::int64_t home = 0;
                for (std::size_t i = 0; i < result_.tasks.size(); ++i) {
                    const auto each = kind.demand(task(i));
                    if (each == 0) continue;
                    if (cluster_.node_of(task(i)) == node(n)) home += each;
                    add_places(i, n, static_cast<double>(each), e);
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
            for (std::size_t n = 0; n < cluster_.node_slots(); ++n) {
                std::vector<Entry> e;
                std::int64_t home = 0;
                for (std::size_t i = 0; i < result_.tasks.size(); ++i) {
                    const auto memberships = inventory_.anti_affinity_memberships(task(i));
                    if (std::none_of(memberships.begin(), memberships.end(),
                                     [&](const Membership& m) { return m.set == set; }))
                        continue;
                    home += cluster_.node_of(task(i)) == node(n);
                    add_places(i, n, 1, e);
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
    int max_gpus_;  // largest number of GPUs of a node
    Cluster rest_;  // the cluster without movable tasks
    ModelBuilder model_;
    PackingModel result_;
    IndexMap x_, card_, used_;
};

/// A card for fractions, in thousandths.
struct PackingCard {
    std::int64_t share = 0;  ///< largest fraction with a column for this card
    std::int64_t free = 0;   ///< available to fractions; 0 if a task holds the card
    bool fresh = false;      ///< unused: it counts as a whole card once a fraction is on it
};

/// Distributes fractions over the cards of one node. Exact within a limit of steps.
class PackingCards {
  public:
    /// @param shares the size of each fraction; each has a column for some card
    /// @param most_fresh the most fresh cards to use
    PackingCards(std::vector<std::int64_t> shares, std::vector<PackingCard> cards, int most_fresh)
        : shares_(std::move(shares)), cards_(std::move(cards)), users_(cards_.size(), 0),
          order_(shares_.size()), card_(shares_.size(), 0), left_(most_fresh) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return shares_[a] != shares_[b] ? shares_[a] > shares_[b] : a < b;
        });
    }

    /// The card of each fraction. Without a packing, each goes to the card with the most room among its
    /// columns, even if it does not fit.
    std::vector<std::size_t> pack() {
        if (place(0)) return card_;
        for (const auto i : order_) {
            std::size_t best = cards_.size();
            for (std::size_t g = 0; g < cards_.size(); ++g)
                if (cards_[g].share >= shares_[i] &&
                    (best == cards_.size() || cards_[g].free > cards_[best].free))
                    best = g;
            card_[i] = best;
            cards_[best].free -= shares_[i];
        }
        return card_;
    }

  private:
    static constexpr int most_steps = 100'000;

    [[nodiscard]] bool opens(std::size_t g) const { return cards_[g].fresh && users_[g] == 0; }

    bool place(std::size_t at) {
        if (at == order_.size()) return true;
        if (++steps_ > most_steps) return false;
        const auto i = order_[at];
        std::vector<std::size_t> choices;
        for (std::size_t g = 0; g < cards_.size(); ++g) {
            if (cards_[g].free < shares_[i] || (opens(g) && left_ <= 0)) continue;
            // Equal cards give equal packings.
            if (std::none_of(choices.begin(), choices.end(), [&](std::size_t other) {
                    return cards_[other].free == cards_[g].free && opens(other) == opens(g);
                }))
                choices.push_back(g);
        }
        std::sort(choices.begin(), choices.end(), [&](std::size_t a, std::size_t b) {
            if (opens(a) != opens(b)) return opens(b);
            return cards_[a].free != cards_[b].free ? cards_[a].free < cards_[b].free : a < b;
        });
        for (const auto g : choices) {
            const int opened = opens(g) ? 1 : 0;
            left_ -= opened;
            ++users_[g];
            cards_[g].free -= shares_[i];
            card_[i] = g;
            if (place(at + 1)) return true;
            cards_[g].free += shares_[i];
            --users_[g];
            left_ += opened;
        }
        return false;
    }

    std::vector<std::int64_t> shares_;
    std::vector<PackingCard> cards_;
    std::vector<int> users_;  // fractions on each card
    std::vector<std::size_t> order_, card_;
    int left_;  // fresh cards that can still be used
    int steps_ = 0;
};

}  // namespace gpusched::milp::detail

namespace gpusched::milp {

namespace detail {

/// @throws InvalidInput for a cluster with other nodes, tasks or cards than the model
static void require_cluster(const PackingModel& model, const Cluster& cluster) {
    const auto nodes = cluster.node_slots();
    const auto extents = [&](const char* name) { return model.index(name).extents; };
    const auto I = static_cast<int>(model.tasks.size()), N = static_cast<int>(nodes);
    const auto card = extents("card");
    bool same = model.untouched.size() == nodes && model.card_milli.size() == nodes &&
                extents("x") == std::vector<int>{I, N} && card.size() == 3 && card[0] == I && card[1] == N &&
                extents("used") == std::vector<int>{N, card[2]};
    for (const auto task : model.tasks) same = same && gpusched::index(task) < cluster.task_slots();
    for (std::size_t n = 0; same && n < nodes; ++n)
        same = static_cast<int>(model.card_milli[n].size()) == cluster.gpu_count(make_id<NodeId>(n)) &&
               cluster.gpu_count(make_id<NodeId>(n)) <= card[2];
    if (!same)
        throw InvalidInput(
            bad_value("cluster",
                      std::to_string(nodes) + " nodes and " + std::to_string(cluster.task_slots()) + " tasks",
                      "the one that the model was made of"));
}

}  // namespace detail

GPUSCHED_EXPORT void validate(const PackingOptions& options) { require_fields(options); }

GPUSCHED_EXPORT PackingModel packing_model(const Cluster& cluster, std::int64_t priority,
                                           const std::vector<std::int64_t>& placed,
                                           const PackingOptions& options) {
    validate(options);
    const auto priorities = detail::pending_priorities(cluster);
    const auto above = static_cast<std::size_t>(
        std::find_if(priorities.begin(), priorities.end(), [&](auto other) { return other <= priority; }) -
        priorities.begin());
    Problems problems;
    if (placed.size() > above)
        problems.add(bad_value("entries of placed", std::to_string(placed.size()),
                               "at most " + std::to_string(above) + ", one per priority above " +
                                   std::to_string(priority) + " that pending tasks have"));
    for (const auto count : placed) check_at_least(problems, "placed", count, std::int64_t{0});
    problems.throw_if_any();
    return detail::PackingBuilder(cluster, options).build(priority, placed);
}

GPUSCHED_EXPORT std::vector<NodeId> PackingModel::decode(const Cluster& cluster,
                                                         std::span<const double> values) const {
    detail::require_cluster(*this, cluster);
    require_values(*this, values);
    std::vector<NodeId> placement(cluster.task_slots(), none<NodeId>);
    for (const auto task : cluster.tasks()) placement[gpusched::index(task)] = cluster.node_of(task);
    const auto& x = index("x");
    const auto& card = index("card");
    const auto on = [&](int column) { return column >= 0 && values[static_cast<std::size_t>(column)] > 0.5; };
    for (int i = 0; i < x.extents[0]; ++i)
        for (int n = 0; n < x.extents[1]; ++n) {
            bool here = on(x(i, n));
            for (int g = 0; g < card.extents[2]; ++g) here = here || on(card(i, n, g));
            if (here)
                placement[gpusched::index(tasks[static_cast<std::size_t>(i)])] =
                    make_id<NodeId>(static_cast<std::size_t>(n));
        }
    return placement;
}

GPUSCHED_EXPORT std::vector<double> PackingModel::encode(const Cluster& cluster,
                                                         const std::vector<NodeId>& placement) const {
    detail::require_cluster(*this, cluster);
    require_size("placement", placement.size(), cluster.task_slots());
    const auto& x = index("x");
    const auto& card = index("card");
    const auto& used = index("used");
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    const auto set = [&](int column) { values[static_cast<std::size_t>(column)] = 1; };
    const auto at = [&](TaskId task) { return placement[gpusched::index(task)]; };
    Problems problems;
    const auto expect = [&](TaskId task, const std::string& expectation) {
        const auto n = gpusched::index(at(task));
        const auto place = at(task) == none<NodeId>   ? "no node"
                           : n < cluster.node_slots() ? gpusched::quoted(cluster.name(at(task)))
                                                      : "node " + std::to_string(n);
        problems.add(
            bad_value("placement", place, expectation, "task " + gpusched::quoted(cluster.name(task))));
    };
    std::vector<std::vector<int>> fractions(cluster.node_slots());  // tasks i by node
    auto left = untouched;                                          // whole cards left by node
    std::vector<GpuMask> held(cluster.node_slots(), 0);
    std::vector<bool> known(cluster.task_slots(), false);
    for (int i = 0; i < static_cast<int>(tasks.size()); ++i) {
        const auto task = tasks[static_cast<std::size_t>(i)];
        const auto n = gpusched::index(at(task));
        known[gpusched::index(task)] = true;
        if (at(task) == none<NodeId>) {
            if (cluster.is_placed(task)) expect(task, "a node, since it runs");
            continue;
        }
        bool column = n < cluster.node_slots() && x(i, n) >= 0;
        if (column) {
            set(x(i, n));
            left[n] -= static_cast<int>(cluster.inventory().tasks.gpu_count[gpusched::index(task)]);
            if (cluster.node_of(task) == at(task)) held[n] |= cluster.gpus_of(task);
            continue;
        }
        for (int g = 0; n < cluster.node_slots() && g < card.extents[2]; ++g)
            column = column || card(i, n, g) >= 0;
        if (column)
            fractions[n].push_back(i);
        else
            expect(task, "a node that the model has a column for");
    }
    for (const auto task : cluster.tasks())
        if (!known[gpusched::index(task)] && at(task) != cluster.node_of(task))
            expect(task, cluster.is_placed(task)
                             ? gpusched::quoted(cluster.name(cluster.node_of(task))) + ", where it stays"
                             : "none, since it is not in the model");
    problems.throw_if_any();
    for (std::size_t n = 0; n < fractions.size(); ++n) {
        std::vector<std::int64_t> shares;
        for (const int i : fractions[n])
            shares.push_back(cluster.inventory()
                                 .tasks.gpu_share_milli[gpusched::index(tasks[static_cast<std::size_t>(i)])]);
        std::vector<detail::PackingCard> cards;
        for (std::size_t g = 0; g < card_milli[n].size(); ++g) {
            const bool fresh = used(n, g) >= 0;
            const bool taken = fresh && (held[n] & gpu_bit(static_cast<int>(g))) != 0;
            cards.push_back({card_milli[n][g], taken ? 0 : card_milli[n][g], fresh});
        }
        const auto onto = detail::PackingCards(shares, cards, left[n]).pack();
        for (std::size_t k = 0; k < onto.size(); ++k) {
            set(card(fractions[n][k], n, onto[k]));
            if (used(n, onto[k]) >= 0) set(used(n, onto[k]));
        }
    }
    return values;
}

GPUSCHED_EXPORT PackingResult priority_packing(const Cluster& cluster, const PackingOptions& options,
                                               const AnySolver& solver, const Context& context) {
    validate(options);
    PackingResult result;
    result.placement.assign(cluster.task_slots(), none<NodeId>);
    for (const auto task : cluster.tasks()) result.placement[index(task)] = cluster.node_of(task);
    result.optimal = true;
    std::vector<std::int64_t> placed;
    std::vector<double> last;
    Budget budget(context, options.solve.time_limit);
    for (const auto priority : detail::pending_priorities(cluster)) {
        const auto model = packing_model(cluster, priority, placed, options);
        auto solve_options = options.solve;
        solve_options.time_limit = budget.remaining_s();
        // The last solution is feasible in the next model; only the objective and one row differ.
        solve_options.start = last;
        const auto solution = solve(model, solve_options, solver, context);
        PackingStep step{.priority = priority, .status = solution.status};
        for (const auto task : cluster.tasks())
            step.pending += !cluster.is_placed(task) &&
                            cluster.inventory().tasks.priority[index(task)] == priority &&
                            cluster.inventory().tasks.daemon[index(task)] == 0;
        if (solution.has_solution()) {
            last = solution.x;
            result.placement = model.decode(cluster, solution.x);
            step.placed = std::llround(solution.objective);
        } else if (!last.empty()) {
            // The last solution remains, and can place some tasks of this priority.
            for (const auto task : cluster.tasks())
                step.placed += !cluster.is_placed(task) && result.placement[index(task)] != none<NodeId> &&
                               cluster.inventory().tasks.priority[index(task)] == priority;
        }
        step.bound =
            std::isfinite(solution.bound)
                ? std::min(step.pending, static_cast<std::int64_t>(std::floor(solution.bound + 1e-6)))
                : step.pending;
        result.optimal = result.optimal && solution.status == Status::optimal && options.solve.mip_gap == 0 &&
                         step.placed == step.bound;
        placed.push_back(step.placed);
        result.steps.push_back(step);
    }
    for (const auto task : cluster.tasks())
        result.moves += cluster.is_placed(task) && result.placement[index(task)] != cluster.node_of(task);
    return result;
}

}  // namespace gpusched::milp

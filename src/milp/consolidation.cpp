// SPDX-License-Identifier: Apache-2.0
// Consolidation as a mixed-integer program: builds the model, and converts between placements and vectors.
#include "milp/extra_capacities.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/consolidation.hpp>
#include <gpusched/model/feasibility.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

namespace gpusched::milp::detail {

/// Builds the consolidation model of a cluster.
class ConsolidationBuilder {
  public:
    ConsolidationBuilder(const Cluster& cluster, const ConsolidationOptions& options)
        : cluster_(cluster), options_(options), inventory_(cluster.inventory()), model_("consolidation") {
        result_.form = options.form;
        result_.task_count = cluster.task_slots();
        result_.home.assign(cluster.task_slots(), none<NodeId>);
        for (const auto task : cluster.tasks()) result_.home[index(task)] = cluster.node_of(task);
        position_.assign(cluster.node_slots(), -1);
        for (const auto node : cluster.nodes())
            if (cluster.occupants(node) > 0) {
                position_[index(node)] = static_cast<int>(result_.nodes.size());
                result_.nodes.push_back(node);
            }
        for (const auto task : cluster.tasks()) {
            if (!cluster.is_placed(task) || inventory_.tasks.daemon[index(task)] != 0) continue;
            placed_.push_back(task);
            any_memory_ = any_memory_ || inventory_.tasks.memory_mib[index(task)] > 0;
        }
        capacities();
    }

    ConsolidationModel build() {
        columns();
        rows();
        static_cast<Model&>(result_) = model_.finish();
        return std::move(result_);
    }

  private:
    static constexpr std::size_t resources = 3;  // GPU in thousandths, cores in thousandths, memory
    using Amounts = std::array<std::int64_t, resources>;

    [[nodiscard]] std::int64_t demand(TaskId task, std::size_t r) const {
        const auto i = index(task);
        return r == 0   ? cluster_.gpu_milli(task)
               : r == 1 ? inventory_.tasks.cpu_milli[i]
                        : inventory_.tasks.memory_mib[i];
    }
    [[nodiscard]] bool standby(TaskId task) const { return inventory_.tasks.standby[index(task)] != 0; }
    /// Whether a task counts in the consumed amount, or in the claimed amount. Memory is never lent.
    [[nodiscard]] bool counts(TaskId task, std::size_t r, bool claims) const {
        return r == 2 ? !claims : claims ? standby(task) || !cluster_.may_borrow(task) : !standby(task);
    }
    [[nodiscard]] std::size_t nodes() const { return result_.nodes.size(); }
    [[nodiscard]] std::size_t home(TaskId task) const {
        return static_cast<std::size_t>(position_[index(cluster_.node_of(task))]);
    }

    void capacities() {
        standby_.assign(nodes(), false);
        for (auto& by_claim : capacity_) by_claim.assign(nodes(), {});
        for (std::size_t j = 0; j < nodes(); ++j) {
            const auto node = result_.nodes[j];
            const auto at = index(node);
            for (std::size_t claims = 0; claims < 2; ++claims) {
                Amounts have{std::int64_t{gpu_count(cluster_.healthy_gpus(node))} * 1000,
                             inventory_.nodes.cpu_milli[at], inventory_.nodes.memory_mib[at]};
                Amounts used{};
                for (const auto task : cluster_.tasks_on(node)) {
                    standby_[j] = standby_[j] || standby(task);
                    const bool daemon = inventory_.tasks.daemon[index(task)] != 0;
                    for (std::size_t r = 0; r < resources; ++r)
                        if (counts(task, r, claims != 0))
                            (daemon ? have[r] : used[r]) += (daemon ? -1 : 1) * demand(task, r);
                    // GPUs that a task holds although they failed do not reduce the healthy ones.
                    const auto failed =
                        cluster_.gpus_of(task) & ~cluster_.healthy_gpus(node) & ~cluster_.devices(node);
                    if (counts(task, 0, claims != 0))
                        have[0] +=
                            std::int64_t{gpu_count(failed)} * inventory_.tasks.gpu_share_milli[index(task)];
                }
                for (std::size_t r = 0; r < resources; ++r)
                    capacity_[claims][j][r] = std::max(have[r], used[r]);
            }
        }
    }

    /// Whether a task can move to a node, or stay there.
    [[nodiscard]] bool allowed(TaskId task, std::size_t j) const {
        if (home(task) == j) return true;
        const auto node = result_.nodes[j];
        if (!inventory_.nodes.receives(node)) return false;
        for (std::size_t r = 0; r < resources; ++r) {
            const std::size_t claims = r == 2 || cluster_.may_borrow(task) ? 0 : 1;
            if ((r < 2 || options_.memory) && demand(task, r) > capacity_[claims][j][r]) return false;
        }
        return find_eligibility_obstacle(cluster_, task, node) == Obstacle::none;
    }

    /// Tasks with equal keys are in one class.
    using Key = std::pair<std::vector<std::int64_t>, std::vector<std::pair<std::uint32_t, std::uint32_t>>>;
    [[nodiscard]] Key key(TaskId task) const {
        Key k;
        k.first = {demand(task, 0),
                   demand(task, 1),
                   demand(task, 2),
                   inventory_.tasks.gpu_share_milli[index(task)],
                   inventory_.tasks.requirement[index(task)],
                   inventory_.tasks.extras[index(task)],
                   cluster_.may_borrow(task) ? 1 : 0};
        for (const auto& m : inventory_.anti_affinity_memberships(task))
            if (inventory_.group_sets[m.set].level == node_level) k.second.emplace_back(m.set, m.limit);
        return k;
    }

    void columns() {
        const bool plain = options_.form == ConsolidationForm::plain;
        if (plain) {
            for (const auto task : placed_) result_.classes.push_back({task});
        } else {
            std::map<Key, std::size_t> known;
            for (const auto task : placed_) {
                if (!cluster_.is_movable(task)) {
                    result_.fixed.push_back(task);
                    continue;
                }
                const auto [at, fresh] = known.try_emplace(key(task), result_.classes.size());
                if (fresh) result_.classes.emplace_back();
                result_.classes[at->second].push_back(task);
            }
        }
        const auto K = result_.classes.size(), N = nodes();
        y_ = IndexMap("y", N);
        x_ = IndexMap("x", K, N);
        moved_ = IndexMap("moved", K, N);
        here_.assign(K, std::vector<int>(nodes(), 0));
        weight_ = options_.goal == ConsolidationGoal::nodes_then_moves
                      ? 1.0 / (static_cast<double>(placed_.size()) + 1)
                  : options_.goal == ConsolidationGoal::moves ? 1.0
                                                              : 0.0;
        const double occupied = options_.goal == ConsolidationGoal::moves ? 0 : 1;
        std::vector<bool> open(nodes(), false);
        for (const auto task : placed_)
            if (!cluster_.is_movable(task)) open[home(task)] = true;
        const bool fix = !plain || options_.locks == LockForm::bounds;
        for (std::size_t j = 0; j < N; ++j)
            y_(j) = model_.column("y(" + node_name(j) + ")", fix && open[j] ? 1 : 0, 1, occupied, true);
        double stay = 0;
        for (std::size_t k = 0; k < K; ++k) {
            const auto& members = result_.classes[k];
            const auto task = members.front();
            auto& here = here_[k];
            for (const auto member : members) ++here[home(member)];
            for (std::size_t j = 0; j < N; ++j) {
                const bool home_here = here[j] > 0;
                // `allowed` decides for nodes other than the task's own.
                const auto* stranger = std::find_if(members.data(), members.data() + members.size(),
                                                    [&](TaskId member) { return home(member) != j; });
                const bool receives = stranger != members.data() + members.size() && allowed(*stranger, j);
                if (!home_here && !receives) continue;
                int most = receives ? static_cast<int>(members.size()) : here[j];
                if (!plain && receives)
                    for (std::size_t r = 0; r < resources; ++r)
                        if (demand(task, r) > 0 && (r < 2 || options_.memory))
                            most = std::max(here[j], static_cast<int>(std::min<std::int64_t>(
                                                         most, capacity_[0][j][r] / demand(task, r))));
                const bool movable = cluster_.is_movable(task);
                x_(k, j) = model_.column("x(" + class_name(k) + "," + node_name(j) + ")",
                                         fix && !movable && home_here ? 1 : 0, most,
                                         plain && movable && home_here ? -weight_ : 0, true);
                if (plain && movable && home_here) stay += weight_;
                if (!plain && home_here && (weight_ > 0 || options_.max_moves))
                    moved_(k, j) = model_.column("moved(" + class_name(k) + "," + node_name(j) + ")", 0,
                                                 here[j], weight_);
            }
        }
        model_.set_sense(Sense::minimise, stay);
    }

    void rows() {
        const auto K = result_.classes.size(), N = nodes();
        const bool plain = options_.form == ConsolidationForm::plain;
        std::vector<Entry> e;
        for (std::size_t k = 0; k < K; ++k) {
            e.clear();
            for (std::size_t j = 0; j < N; ++j)
                if (x_(k, j) >= 0) e.push_back({x_(k, j), 1});
            model_.equal("assign", "assign(" + class_name(k) + ")", e,
                         static_cast<double>(result_.classes[k].size()));
        }
        constexpr std::array<const char*, resources> names{"gpu", "cpu", "memory"};
        for (std::size_t r = 0; r < resources; ++r)
            for (std::size_t j = 0; j < N; ++j)
                for (const bool claims : {false, true}) {
                    // Without Standby tasks nothing is lent, and claims are at most the consumed amount.
                    if (claims && (!standby_[j] || r == 2)) continue;
                    if (r == 2 && !(options_.memory && any_memory_)) continue;
                    capacity_row(names[r], r, j, claims);
                }
        if (plain && options_.locks == LockForm::rows)
            for (std::size_t k = 0; k < K; ++k) {
                const auto task = result_.classes[k].front();
                if (cluster_.is_movable(task)) continue;
                e = {{x_(k, home(task)), 1}};
                model_.equal("lock", "lock(" + class_name(k) + ")", e, 1);
            }
        extras();
        anti_affinity();
        for (std::size_t k = 0; k < K; ++k)
            for (std::size_t j = 0; j < N; ++j) {
                if (x_(k, j) < 0) continue;
                const auto& here = here_[k];
                const auto task = result_.classes[k].front();
                // Tasks without GPUs and cores are not in the capacity rows.
                const bool nothing = demand(task, 0) == 0 && demand(task, 1) == 0;
                if (!plain || nothing) {
                    const double most = model_.upper(x_(k, j));
                    e = {{x_(k, j), 1}, {y_(j), -most}};
                    model_.at_most("link", "link(" + class_name(k) + "," + node_name(j) + ")", e, 0);
                }
                if (moved_(k, j) < 0) continue;
                e = {{moved_(k, j), 1}, {x_(k, j), 1}};
                model_.at_least("moved", "moved(" + class_name(k) + "," + node_name(j) + ")", e, here[j]);
            }
        if (options_.max_moves) {
            e.clear();
            std::int64_t movable = 0;
            for (std::size_t k = 0; k < K; ++k)
                for (std::size_t j = 0; j < N; ++j) {
                    const auto count = here_[k][j];
                    if (count == 0) continue;
                    movable += count;
                    e.push_back({plain ? x_(k, j) : moved_(k, j), 1});
                }
            if (plain)
                model_.at_least("budget", "budget", e, static_cast<double>(movable - *options_.max_moves));
            else
                model_.at_most("budget", "budget", e, static_cast<double>(*options_.max_moves));
        }
        if (options_.occupied_at_least) {
            e.clear();
            for (std::size_t j = 0; j < N; ++j) e.push_back({y_(j), 1});
            model_.at_least("bound", "bound", e, static_cast<double>(*options_.occupied_at_least));
        }
        if (options_.vacated_gpus_at_least) {
            e.clear();
            std::int64_t all = 0;
            for (std::size_t j = 0; j < N; ++j) {
                const auto gpus = gpu_count(cluster_.healthy_gpus(result_.nodes[j]));
                all += gpus;
                if (gpus > 0) e.push_back({y_(j), static_cast<double>(gpus)});
            }
            model_.at_most("vacated", "vacated", e,
                           static_cast<double>(all - *options_.vacated_gpus_at_least));
        }
        model_.add_index(std::move(x_));
        model_.add_index(std::move(y_));
        if (!plain) model_.add_index(std::move(moved_));
    }

    void capacity_row(const char* group, std::size_t r, std::size_t j, bool claims) {
        std::vector<Entry> e;
        auto left = capacity_[claims ? 1 : 0][j][r];
        for (const auto task : result_.fixed)
            if (home(task) == j && counts(task, r, claims)) left -= demand(task, r);
        e.push_back({y_(j), -static_cast<double>(left)});
        for (std::size_t k = 0; k < result_.classes.size(); ++k) {
            const auto task = result_.classes[k].front();
            if (x_(k, j) >= 0 && counts(task, r, claims))
                e.push_back({x_(k, j), static_cast<double>(demand(task, r))});
        }
        model_.at_most(group, std::string(group) + (claims ? " claim(" : "(") + node_name(j) + ")", e, 0);
    }

    /// Named resources and devices. Daemons reduce the capacity; a larger present use is allowed.
    void extras() {
        for (const auto& kind : ExtraCapacity::all(cluster_, placed_))
            for (std::size_t j = 0; j < nodes(); ++j) {
                const auto node = result_.nodes[j];
                auto left = kind.capacity(node);
                std::int64_t used = 0;
                for (const auto task : cluster_.tasks_on(node))
                    if (inventory_.tasks.daemon[index(task)] != 0)
                        left -= kind.demand(task);
                    else
                        used += kind.demand(task);
                left = std::max(left, used);
                for (const auto task : result_.fixed)
                    if (home(task) == j) left -= kind.demand(task);
                std::vector<Entry> e{{y_(j), -static_cast<double>(left)}};
                for (std::size_t k = 0; k < result_.classes.size(); ++k)
                    if (const auto each = kind.demand(result_.classes[k].front()); x_(k, j) >= 0 && each > 0)
                        e.push_back({x_(k, j), static_cast<double>(each)});
                model_.at_most("extras", "extras(" + kind.name() + "," + node_name(j) + ")", e, 0);
            }
    }

    void anti_affinity() {
        const auto N = nodes();
        for (std::uint32_t set = 0; set < inventory_.group_sets.size(); ++set) {
            const auto& group = inventory_.group_sets[set];
            if (group.kind != GroupKind::anti_affinity || group.level != node_level) continue;
            // The smallest limit of the tasks on a node counts, which is not linear; the largest limit
            // relaxes it.
            bool limited = true;
            std::vector<std::size_t> classes;
            std::vector<std::int64_t> fixed(nodes(), 0), daemons(nodes(), 0), now(nodes(), 0);
            const auto look = [&](TaskId task) {
                for (const auto& m : inventory_.anti_affinity_memberships(task)) {
                    if (m.set != set) continue;
                    limited = limited && m.limit != Membership::no_limit;
                    return true;
                }
                return false;
            };
            for (std::size_t k = 0; k < result_.classes.size(); ++k)
                if (look(result_.classes[k].front())) {
                    classes.push_back(k);
                    for (std::size_t j = 0; j < nodes(); ++j) now[j] += here_[k][j];
                }
            for (const auto task : result_.fixed)
                if (look(task)) ++fixed[home(task)];
            for (const auto task : cluster_.tasks())
                if (inventory_.tasks.daemon[index(task)] != 0 && cluster_.is_placed(task) &&
                    position_[index(cluster_.node_of(task))] >= 0 && look(task))
                    ++daemons[home(task)];
            if (!limited || classes.empty() || group.limits.empty()) continue;
            for (std::size_t j = 0; j < N; ++j) {
                std::vector<Entry> e;
                for (const auto k : classes)
                    if (x_(k, j) >= 0) e.push_back({x_(k, j), 1});
                if (e.empty()) continue;
                const auto left = std::max<std::int64_t>(
                    now[j], static_cast<std::int64_t>(group.limits.back()) - fixed[j] - daemons[j]);
                e.push_back({y_(j), -static_cast<double>(left)});
                model_.at_most("anti_affinity", "anti_affinity(" + group.group + "," + node_name(j) + ")", e,
                               0);
            }
        }
    }

    [[nodiscard]] std::string node_name(std::size_t j) const { return cluster_.name(result_.nodes[j]); }
    [[nodiscard]] std::string class_name(std::size_t k) const {
        return cluster_.name(result_.classes[k].front());
    }

    const Cluster& cluster_;
    const ConsolidationOptions& options_;
    const Inventory& inventory_;
    ModelBuilder model_;
    ConsolidationModel result_;
    std::vector<TaskId> placed_;  // placed tasks without daemons
    std::vector<int> position_;   // per node of the cluster: its j, or -1
    std::vector<bool> standby_;
    std::array<std::vector<Amounts>, 2> capacity_;  // [claims][j]
    std::vector<std::vector<int>> here_;            // [k][j]
    IndexMap x_, y_, moved_;
    double weight_ = 0;
    bool any_memory_ = false;
};

}  // namespace gpusched::milp::detail

namespace gpusched::milp {

GPUSCHED_EXPORT ConsolidationModel consolidation(const Cluster& cluster,
                                                 const ConsolidationOptions& options) {
    Problems problems;
    check_fields(problems, options);
    if (options.occupied_at_least)
        check_range(problems, "occupied_at_least", *options.occupied_at_least, std::int64_t{0},
                    static_cast<std::int64_t>(cluster.node_slots()));
    if (options.vacated_gpus_at_least) {
        std::int64_t gpus = 0;
        for (const auto node : cluster.nodes())
            if (cluster.occupants(node) > 0) gpus += gpu_count(cluster.healthy_gpus(node));
        check_range(problems, "vacated_gpus_at_least", *options.vacated_gpus_at_least, std::int64_t{0}, gpus);
    }
    problems.throw_if_any();
    return detail::ConsolidationBuilder(cluster, options).build();
}

GPUSCHED_EXPORT std::vector<NodeId> ConsolidationModel::decode(std::span<const double> values) const {
    require_values(*this, values);
    auto placement = home;
    const auto& x = index("x");
    for (std::size_t k = 0; k < classes.size(); ++k) {
        std::vector<long> room(nodes.size(), 0);
        for (std::size_t j = 0; j < nodes.size(); ++j)
            if (x(k, j) >= 0) room[j] = std::lround(values[static_cast<std::size_t>(x(k, j))]);
        std::vector<TaskId> leaving;
        // Members stay on their nodes if possible.
        for (const auto task : classes[k]) {
            const auto at = static_cast<std::size_t>(
                std::find(nodes.begin(), nodes.end(), home[gpusched::index(task)]) - nodes.begin());
            if (room[at] > 0)
                --room[at];
            else
                leaving.push_back(task);
        }
        std::size_t j = 0;
        for (const auto task : leaving) {
            while (j < room.size() && room[j] <= 0) ++j;
            if (j == room.size()) break;  // the vector is no solution; the others stay
            --room[j];
            placement[gpusched::index(task)] = nodes[j];
        }
    }
    return placement;
}

GPUSCHED_EXPORT std::vector<double> ConsolidationModel::encode(const std::vector<NodeId>& placement) const {
    require_size("placement", placement.size(), task_count);
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    const auto& x = index("x");
    const auto& y = index("y");
    const auto refuse = [](TaskId task) {
        throw InvalidInput("placement: task " + std::to_string(gpusched::index(task)) +
                           ": expected a node that the model has a column for");
    };
    const auto position = [&](TaskId task) {
        const auto at = std::find(nodes.begin(), nodes.end(), placement[gpusched::index(task)]);
        if (at == nodes.end()) refuse(task);
        return static_cast<std::size_t>(at - nodes.begin());
    };
    for (std::size_t k = 0; k < classes.size(); ++k) {
        for (const auto task : classes[k]) {
            const auto j = position(task);
            if (x(k, j) < 0) refuse(task);
            values[static_cast<std::size_t>(x(k, j))] += 1;
            values[static_cast<std::size_t>(y(j))] = 1;
        }
        if (form == ConsolidationForm::plain) continue;
        const auto& moved = index("moved");
        for (std::size_t j = 0; j < nodes.size(); ++j) {
            if (moved(k, j) < 0) continue;
            double here = 0;
            for (const auto task : classes[k]) here += home[gpusched::index(task)] == nodes[j] ? 1 : 0;
            values[static_cast<std::size_t>(moved(k, j))] =
                std::max(0.0, here - values[static_cast<std::size_t>(x(k, j))]);
        }
    }
    for (const auto task : fixed) {
        if (placement[gpusched::index(task)] != home[gpusched::index(task)]) refuse(task);
        values[static_cast<std::size_t>(y(position(task)))] = 1;
    }
    return values;
}

GPUSCHED_EXPORT std::int64_t ConsolidationModel::occupied(const std::vector<NodeId>& placement) const {
    std::vector<NodeId> used;
    for (const auto& members : classes)
        for (const auto task : members) used.push_back(placement.at(gpusched::index(task)));
    for (const auto task : fixed) used.push_back(placement.at(gpusched::index(task)));
    std::sort(used.begin(), used.end());
    return std::unique(used.begin(), used.end()) - used.begin();
}

GPUSCHED_EXPORT std::int64_t ConsolidationModel::moves(const std::vector<NodeId>& placement) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < task_count; ++i) count += placement.at(i) != home[i] ? 1 : 0;
    return count;
}

}  // namespace gpusched::milp

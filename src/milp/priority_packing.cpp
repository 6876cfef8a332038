// SPDX-License-Identifier: Apache-2.0
#include "milp/packing_builder.hpp"
#include "milp/packing_cards.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/priority_packing.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::milp {

namespace detail {

/// Other clusters may have fewer nodes, tasks or cards than the model speaks of.
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
    if (placement.size() != cluster.task_slots())
        throw InvalidInput(bad_value("entries of placement", std::to_string(placement.size()),
                                     std::to_string(cluster.task_slots())));
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
    std::vector<std::vector<int>> fractions(cluster.node_slots());  // which i, by node
    auto left = untouched;                                          // cards, by node
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
        if (solve_options.time_limit)
            solve_options.time_limit = std::max(0.0, *solve_options.time_limit - budget.elapsed_s());
        // The last solution satisfies the next model as well; only the objective and one row differ.
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
            // The last solution stands, and may place some of this priority.
            for (const auto task : cluster.tasks())
                step.placed += !cluster.is_placed(task) && result.placement[index(task)] != none<NodeId> &&
                               cluster.inventory().tasks.priority[index(task)] == priority;
        }
        step.bound =
            std::isfinite(solution.bound)
                ? std::min(step.pending, static_cast<std::int64_t>(std::floor(solution.bound + 1e-6)))
                : step.pending;
        result.optimal = result.optimal && solution.status == Status::optimal && options.solve.mip_gap == 0;
        placed.push_back(step.placed);
        result.steps.push_back(step);
    }
    for (const auto task : cluster.tasks())
        result.moves += cluster.is_placed(task) && result.placement[index(task)] != cluster.node_of(task);
    return result;
}

GPUSCHED_EXPORT PackingResult priority_packing(const Cluster& cluster, const PackingOptions& options,
                                               const std::string& solver, const Context& context) {
    return priority_packing(cluster, options, find_solver(solver), context);
}

}  // namespace gpusched::milp

// SPDX-License-Identifier: Apache-2.0
#include "milp/spot_builder.hpp"

#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/spot_schedule.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace gpusched::milp {

GPUSCHED_EXPORT void validate(const SpotProblem& problem) {
    Problems problems;
    // What the model's sizes allow for.
    constexpr int most = 1'000'000;
    check_range(problems, "horizon", problem.horizon, 1, most);
    check_range(problems, "alpha", problem.alpha, 0.0, std::numeric_limits<double>::max());
    for (std::size_t j = 0; j < problem.nodes.size(); ++j)
        check_range(problems, "nodes[" + std::to_string(j) + "]", problem.nodes[j], 0, most);
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        const auto& task = problem.tasks[i];
        const auto owner = "task " + gpusched::quoted(task.name.empty() ? std::to_string(i) : task.name);
        check_range(problems, "arrival", task.arrival, 0, std::max(0, problem.horizon - 1), owner);
        check_range(problems, "pods", task.pods, 1, most, owner);
        check_range(problems, "gpus", task.gpus, 1, most, owner);
        check_range(problems, "max_delay", task.max_delay, 0, most, owner);
        if (task.max_delay > 0 && !task.hp) problems.add(owner + ": max_delay: expected with hp only");
        if (task.checkpoints.empty()) problems.add(owner + ": checkpoints: none; expected at least one");
        for (std::size_t f = 0; f < task.checkpoints.size(); ++f) {
            const int before = f == 0 ? 0 : task.checkpoints[f - 1];
            check_range(problems, "checkpoints[" + std::to_string(f) + "]", task.checkpoints[f], before + 1,
                        most, owner);
        }
    }
    problems.throw_if_any();
}

GPUSCHED_EXPORT SpotValue spot_value(const SpotProblem& problem, const SpotSchedule& schedule,
                                     SpotMode mode) {
    validate(problem);
    const auto histories = detail::spot_histories(problem, schedule);
    SpotValue value;
    for (std::size_t i = 0; i < histories.size(); ++i) {
        const auto& task = problem.tasks[i];
        const auto& h = histories[i];
        const double gpus = static_cast<double>(task.pods) * task.gpus;
        const double weight = mode == SpotMode::literal ? h.pod_slots : gpus;
        const int kept = detail::spot_checkpoint(task, h.reached);
        value.runs.push_back(h.runs);
        value.committed.push_back(kept);
        value.restarts += h.runs > 0 ? weight * (h.runs - 1) : 0;
        value.starts += weight * h.runs;
        value.useful += gpus * kept * (mode == SpotMode::literal ? h.pod_slots : 1);
    }
    const double have = detail::spot_capacity(problem) * problem.horizon;
    value.objective = (value.starts > 0 ? value.restarts / value.starts : 0) -
                      (have > 0 ? problem.alpha * value.useful / have : 0);
    return value;
}

GPUSCHED_EXPORT SpotModel spot_schedule(const SpotProblem& problem, SpotMode mode) {
    validate(problem);
    return {detail::SpotBuilder(problem, mode).build(), problem, mode};
}

GPUSCHED_EXPORT SpotSchedule SpotModel::decode(std::span<const double> values) const {
    require_values(*this, values);
    const auto& x = index("x");
    SpotSchedule result;
    for (int i = 0; i < x.extents[0]; ++i) {
        auto& task = result.pods.emplace_back(static_cast<std::size_t>(x.extents[2]),
                                              std::vector<int>(static_cast<std::size_t>(x.extents[3]), 0));
        for (int k = 0; k < x.extents[1]; ++k)
            for (int t = 0; t < x.extents[2]; ++t)
                for (int j = 0; j < x.extents[3]; ++j)
                    if (x(i, k, t, j) >= 0)
                        task[static_cast<std::size_t>(t)][static_cast<std::size_t>(j)] +=
                            static_cast<int>(std::lround(values[static_cast<std::size_t>(x(i, k, t, j))]));
    }
    return result;
}

GPUSCHED_EXPORT std::vector<double> SpotModel::encode(const SpotSchedule& schedule) const {
    const auto histories = detail::spot_histories(problem, schedule);
    const auto total = spot_value(problem, schedule, mode);
    std::vector<double> values(static_cast<std::size_t>(columns()), 0.0);
    const auto set = [&](int column, double number) { values[static_cast<std::size_t>(column)] = number; };
    for (int i = 0; i < static_cast<int>(histories.size()); ++i) {
        const auto& task = problem.tasks[static_cast<std::size_t>(i)];
        const auto& h = histories[static_cast<std::size_t>(i)];
        int k = 0;
        if (mode == SpotMode::literal) {
            if (h.runs == 0) continue;  // no copy is chosen
            k = (h.runs - 1) * (static_cast<int>(task.checkpoints.size()) + 1) + h.reached;
            set(index("choice")(i, k), 1);
        }
        int level = 0;  // idle at this level; -1 = runs, or has ended
        for (int t = task.arrival; t < problem.horizon; ++t) {
            const auto slot = static_cast<std::size_t>(t);
            if (h.start[slot] >= 0) {
                set(index("start")(i, k, t, h.start[slot]), 1);
                level = -1;
            }
            if (h.stop[slot] >= 0) {
                set(index("stop")(i, k, t, h.stop[slot]), 1);
                level = detail::spot_reached(task, h.stop[slot]) + 1;
            }
            if (h.progress[slot] >= 0) set(index("run")(i, k, t, h.progress[slot]), 1);
            if (level >= 0) set(index("idle")(i, k, t, level), 1);
            for (int j = 0; j < static_cast<int>(problem.nodes.size()); ++j)
                set(index("x")(i, k, t, j),
                    schedule.pods[static_cast<std::size_t>(i)][slot][static_cast<std::size_t>(j)]);
        }
    }
    // The ratio's columns come last: ratio, then digit and product in turn.
    const double rho = total.starts > 0 ? total.restarts / total.starts : 0;
    const auto starts = static_cast<std::uint64_t>(std::llround(total.starts));
    int first = columns() - 1;
    while (column_names[static_cast<std::size_t>(first)] != "ratio") --first;
    set(first, rho);
    for (int b = 0; first + 1 + 2 * b < columns(); ++b) {
        const bool on = ((starts >> b) & 1u) != 0;
        set(first + 1 + 2 * b, on ? 1 : 0);
        set(first + 2 + 2 * b, on ? rho : 0);
    }
    return values;
}

}  // namespace gpusched::milp

// SPDX-License-Identifier: Apache-2.0
// Spot scheduling as a mixed-integer program: the history of a task, the value of a schedule, the model.
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

namespace gpusched::milp::detail {

/// Levels of a task: 0 = never started, f + 1 = its progress is checkpoint f (0 = the start).
inline int spot_levels(const SpotTask& task) {
    return task.hp ? 1 : static_cast<int>(task.checkpoints.size()) + 1;
}
inline int spot_length(const SpotTask& task) { return task.checkpoints.back(); }
/// Slots of run time at checkpoint f; f = 0 is the start.
inline int spot_checkpoint(const SpotTask& task, int f) {
    return f <= 0 ? 0 : task.checkpoints[static_cast<std::size_t>(f - 1)];
}
/// The last checkpoint within `progress` slots.
inline int spot_reached(const SpotTask& task, int progress) {
    int f = 0;
    while (f < static_cast<int>(task.checkpoints.size()) && spot_checkpoint(task, f + 1) <= progress) ++f;
    return f;
}
inline int spot_most_runs(const SpotTask& task, int horizon) { return task.hp ? 1 : (horizon + 1) / 2; }
inline double spot_capacity(const SpotProblem& problem) {
    return std::accumulate(problem.nodes.begin(), problem.nodes.end(), 0.0);
}

/// The states of one task, slot by slot.
struct SpotHistory {
    std::vector<int> progress;                 // per slot: run time so far at its start; -1 = does not run
    std::vector<int> start;                    // per slot: the level it starts from; -1 = does not start
    std::vector<int> stop;                     // run time at an eviction at its start; -1 = no eviction
    int runs = 0, pod_slots = 0, reached = 0;  // reached: the last checkpoint
};

inline SpotHistory spot_history(const SpotProblem& problem, std::size_t i,
                                const std::vector<std::vector<int>>& pods) {
    const auto& task = problem.tasks[i];
    const auto owner = "task " + gpusched::quoted(task.name);
    const auto refuse = [&](int t, const char* why) {
        throw InvalidInput(owner + ": slot " + std::to_string(t) + ": " + why);
    };
    const auto H = static_cast<std::size_t>(problem.horizon);
    SpotHistory h{std::vector<int>(H, -1), std::vector<int>(H, -1), std::vector<int>(H, -1)};
    int level = 0, done = 0;  // run time so far, reset to the last checkpoint by an eviction
    bool running = false;
    for (int t = 0; t < problem.horizon; ++t) {
        const auto& now = pods[static_cast<std::size_t>(t)];
        const int total = std::accumulate(now.begin(), now.end(), 0);
        if (std::any_of(now.begin(), now.end(), [](int count) { return count < 0; }))
            refuse(t, "fewer than 0 pods");
        if (total != 0 && total != task.pods) refuse(t, "only a part of the gang runs");
        const bool runs = total > 0;
        if (runs && t < task.arrival) refuse(t, "runs before it arrives");
        if (running && done == spot_length(task)) running = false;
        if (runs && !running) {
            if (done == spot_length(task)) refuse(t, "runs after its end");
            if (t > 0 && h.stop[static_cast<std::size_t>(t)] >= 0)
                refuse(t, "starts in the slot of its eviction");
            if (task.hp && t > task.arrival + task.max_delay) refuse(t, "starts too late");
            h.start[static_cast<std::size_t>(t)] = level;
            ++h.runs;
            running = true;
        } else if (!runs && running) {
            if (task.hp) refuse(t, "a high priority task is evicted");
            h.stop[static_cast<std::size_t>(t)] = done;
            level = spot_reached(task, done) + 1;
            done = spot_checkpoint(task, level - 1);
            running = false;
        } else if (runs && now != pods[static_cast<std::size_t>(t - 1)]) {
            refuse(t, "moves within a run");
        }
        if (!runs) continue;
        h.progress[static_cast<std::size_t>(t)] = done++;
        h.pod_slots += total;
        h.reached = std::max(h.reached, spot_reached(task, done));
    }
    if (task.hp && h.runs == 0) refuse(problem.horizon, "a high priority task never starts");
    return h;
}

inline std::vector<SpotHistory> spot_histories(const SpotProblem& problem, const SpotSchedule& schedule) {
    require_size("pods", schedule.pods.size(), problem.tasks.size());
    for (const auto& task : schedule.pods) {
        require_size("pods[task]", task.size(), static_cast<std::size_t>(problem.horizon));
        for (const auto& slot : task) require_size("pods[task][slot]", slot.size(), problem.nodes.size());
    }
    for (int t = 0; t < problem.horizon; ++t)
        for (std::size_t j = 0; j < problem.nodes.size(); ++j) {
            int used = 0;
            for (std::size_t i = 0; i < problem.tasks.size(); ++i)
                used += problem.tasks[i].gpus * schedule.pods[i][static_cast<std::size_t>(t)][j];
            if (used > problem.nodes[j])
                throw InvalidInput(bad_value("GPUs used on node " + std::to_string(j), std::to_string(used),
                                             "at most " + std::to_string(problem.nodes[j]),
                                             "slot " + std::to_string(t)));
        }
    std::vector<SpotHistory> all;
    for (std::size_t i = 0; i < problem.tasks.size(); ++i)
        all.push_back(spot_history(problem, i, schedule.pods[i]));
    return all;
}

/// Builds the columns and rows of one network: a task, or one copy of it with a fixed number of runs and
/// final checkpoint.
class SpotBuilder {
  public:
    SpotBuilder(const SpotProblem& problem, SpotMode mode)
        : problem_(problem), mode_(mode), model_("spot schedule"), H_(problem.horizon),
          M_(static_cast<int>(problem.nodes.size())), capacity_(static_cast<std::size_t>(H_ * M_)) {}

    Model build() {
        int most = 0;  // networks of a task
        for (const auto& task : problem_.tasks) most = std::max(most, networks(task));
        const int T = static_cast<int>(problem_.tasks.size());
        // All tasks share the largest extents; missing columns are absent.
        int length = 0, levels = 0;
        for (const auto& task : problem_.tasks) {
            length = std::max(length, spot_length(task));
            levels = std::max(levels, spot_levels(task));
        }
        run_ = IndexMap("run", {T, most, H_, length});
        stop_ = IndexMap("stop", {T, most, H_, length});
        idle_ = IndexMap("idle", {T, most, H_, levels});
        start_ = IndexMap("start", {T, most, H_, levels});
        x_ = IndexMap("x", {T, most, H_, M_});
        choice_ = IndexMap("choice", {T, most});
        for (int i = 0; i < T; ++i) {
            const auto& task = problem_.tasks[static_cast<std::size_t>(i)];
            choices_.clear();
            for (int k = 0; k < networks(task); ++k) network(i, k);
            if (mode_ == SpotMode::literal)
                model_.row("choice", "choice(" + task.name + ")", task.hp ? 1 : 0, choices_, 1);
        }
        for (int t = 0; t < H_; ++t)
            for (int j = 0; j < M_; ++j) {
                const auto& entries = capacity_[static_cast<std::size_t>(t * M_ + j)];
                if (!entries.empty())
                    model_.at_most("capacity", name("capacity", t, j), entries,
                                   problem_.nodes[static_cast<std::size_t>(j)]);
            }
        ratio();
        for (auto* map : {&run_, &stop_, &idle_, &start_, &x_}) model_.add_index(std::move(*map));
        if (mode_ == SpotMode::literal) model_.add_index(std::move(choice_));
        return model_.finish();
    }

    /// The networks of a task: one, or one for each number of runs and final checkpoint.
    [[nodiscard]] int networks(const SpotTask& task) const {
        if (mode_ == SpotMode::meaning) return 1;
        return spot_most_runs(task, H_) * (static_cast<int>(task.checkpoints.size()) + 1);
    }

  private:
    template <class... I>
    [[nodiscard]] static std::string name(const char* what, I... i) {
        std::string text = std::string(what) + "(";
        ((text += std::to_string(i) + ","), ...);
        text.back() = ')';
        return text;
    }
    template <class... I>
    [[nodiscard]] std::string named(const char* what, int i, int k, I... more) const {
        return mode_ == SpotMode::meaning ? name(what, i, more...) : name(what, i, k, more...);
    }

    void network(int i, int k) {
        const auto& task = problem_.tasks[static_cast<std::size_t>(i)];
        const int a = task.arrival, C = spot_length(task), L = spot_levels(task);
        const int last = static_cast<int>(task.checkpoints.size());
        const bool literal = mode_ == SpotMode::literal;
        const int runs = literal ? k / (last + 1) + 1 : 0, final_level = literal ? k % (last + 1) : 0;
        // The switch of the network; 1 if it is the only one.
        int theta = -1;
        if (literal) {
            theta = model_.binary(name("choice", i, runs, final_level));
            choice_(i, k) = theta;
            choices_.push_back({theta, 1});
        }
        for (int t = a; t < H_; ++t) {
            for (int q = 0; q < C; ++q) run_(i, k, t, q) = model_.binary(named("run", i, k, t, q));
            for (int f = 0; f < L; ++f) {
                idle_(i, k, t, f) = model_.binary(named("idle", i, k, t, f - 1));
                start_(i, k, t, f) = model_.binary(named("start", i, k, t, f - 1));
                if (task.hp && t > a + task.max_delay) model_.fix(start_(i, k, t, f), 0, 0);
            }
            if (!task.hp && t > a)
                for (int q = 1; q < C; ++q) stop_(i, k, t, q) = model_.binary(named("stop", i, k, t, q));
            for (int j = 0; j < M_; ++j) {
                x_(i, k, t, j) = model_.column(named("x", i, k, t, j), 0, task.pods, 0, true);
                capacity_[static_cast<std::size_t>(t * M_ + j)].push_back(
                    {x_(i, k, t, j), static_cast<double>(task.gpus)});
            }
        }
        std::vector<Entry> e;
        const auto at = [&](const IndexMap& map, int t, int n) {
            return t < a || n < 0 || n >= map.extents[3] ? IndexMap::absent : map(i, k, t, n);
        };
        const auto add = [&](int column, double value) {
            if (column >= 0) e.push_back({column, value});
        };
        for (int t = a; t < H_; ++t) {
            for (int q = 0; q < C; ++q) {
                e.clear();
                add(at(run_, t, q), 1);
                add(at(run_, t - 1, q - 1), -1);
                add(at(stop_, t, q), 1);
                for (int f = 0; f < L; ++f)
                    if (spot_checkpoint(task, f - 1) == q) add(start_(i, k, t, f), -1);
                model_.equal("progress", named("progress", i, k, t, q), e, 0);
                if (at(stop_, t, q) < 0) continue;
                e.clear();
                add(at(stop_, t, q), 1);
                add(at(run_, t - 1, q - 1), -1);
                model_.at_most("stop", named("may stop", i, k, t, q), e, 0);
            }
            for (int f = 0; f < L; ++f) {
                const bool fresh = t == a && f == 0;  // it arrives idle
                e.clear();
                add(idle_(i, k, t, f), 1);
                add(at(idle_, t - 1, f), -1);
                add(start_(i, k, t, f), 1);
                for (int q = 1; q < C; ++q)
                    if (f > 0 && spot_reached(task, q) == f - 1) add(at(stop_, t, q), -1);
                if (fresh && literal) add(theta, -1);
                model_.equal("idle", named("idle", i, k, t, f - 1), e, fresh && !literal ? 1 : 0);
                e.clear();
                add(start_(i, k, t, f), 1);
                add(at(idle_, t - 1, f), -1);
                if (fresh && literal) add(theta, -1);
                model_.at_most("start", named("may start", i, k, t, f - 1), e, fresh && !literal ? 1 : 0);
            }
            e.clear();
            for (int j = 0; j < M_; ++j) add(x_(i, k, t, j), 1);
            for (int q = 0; q < C; ++q) add(run_(i, k, t, q), -task.pods);
            model_.equal("gang", named("gang", i, k, t), e, 0);
            if (t == a) continue;
            for (int j = 0; j < M_; ++j) {
                e.clear();
                add(x_(i, k, t, j), 1);
                add(x_(i, k, t - 1, j), -1);
                for (int f = 0; f < L; ++f) add(start_(i, k, t, f), -task.pods);
                model_.at_most("stay", named("stay", i, k, t, j), e, 0);
            }
        }
        const auto each_start = [&](auto&& visit) {
            for (int t = a; t < H_; ++t)
                for (int f = 0; f < L; ++f) visit(start_(i, k, t, f), f);
        };
        const auto each_checkpoint = [&](auto&& visit) {
            for (int t = a; t < H_; ++t)
                for (int f = 1; f <= last; ++f) visit(run_(i, k, t, spot_checkpoint(task, f) - 1), f);
        };
        if (literal) {
            e.clear();
            each_start([&](int column, int) { add(column, 1); });
            add(theta, -runs);
            model_.equal("choice", named("runs", i, k), e, 0);
            e.clear();
            each_checkpoint([&](int column, int) { add(column, 1); });
            add(theta, -final_level);
            model_.equal("choice", named("final checkpoint", i, k), e, 0);
            const double kept = task.pods * task.gpus * spot_checkpoint(task, final_level);
            for (int t = a; t < H_; ++t)
                for (int j = 0; j < M_; ++j) {
                    numerator_.push_back({x_(i, k, t, j), runs - 1.0});
                    denominator_.push_back({x_(i, k, t, j), static_cast<double>(runs)});
                    useful_.push_back({x_(i, k, t, j), kept});
                }
            largest_ += k == networks(task) - 1
                            ? static_cast<std::int64_t>(task.pods) * std::min(H_ - a, C * runs) * runs
                            : 0;
            return;
        }
        if (task.hp) {
            e.clear();
            each_start([&](int column, int) { add(column, 1); });
            model_.equal("must start", named("must start", i, k), e, 1);
        }
        const double weight = static_cast<double>(task.pods) * task.gpus;
        each_start([&](int column, int f) {
            denominator_.push_back({column, weight});
            if (f > 0) numerator_.push_back({column, weight});
        });
        each_checkpoint([&](int column, int f) {
            useful_.push_back({column, weight * (spot_checkpoint(task, f) - spot_checkpoint(task, f - 1))});
        });
        largest_ += static_cast<std::int64_t>(task.pods) * task.gpus * spot_most_runs(task, H_);
    }

    /// rho >= numerator / denominator, exactly: the denominator in binary, and a product rho * digit for each
    /// digit.
    void ratio() {
        const int digits = std::bit_width(static_cast<std::uint64_t>(largest_));
        const int rho = model_.column("ratio", 0, 1, 1);
        std::vector<Entry> binary, product = {};
        std::vector<std::pair<int, int>> pairs;
        for (int b = 0; b < digits; ++b) {
            const int beta = model_.binary(name("digit", b)), m = model_.column(name("product", b), 0, 1);
            const double worth = std::ldexp(1.0, b);
            binary.push_back({beta, -worth});
            product.push_back({m, worth});
            pairs.emplace_back(beta, m);
        }
        binary.insert(binary.end(), denominator_.begin(), denominator_.end());
        model_.equal("ratio", "denominator", binary, 0);
        for (const auto& [beta, m] : pairs) {
            const Entry below_digit[] = {{m, 1}, {beta, -1}}, below_ratio[] = {{m, 1}, {rho, -1}};
            model_.at_most("ratio", name("product digit", beta), below_digit, 0);
            model_.at_most("ratio", name("product ratio", beta), below_ratio, 0);
        }
        for (const auto& n : numerator_) product.push_back({n.column, -n.value});
        model_.at_least("ratio", "numerator", product, 0);
        const double have = spot_capacity(problem_) * H_;
        for (const auto& u : useful_)
            if (have > 0) model_.add_objective(u.column, -problem_.alpha * u.value / have);
    }

    const SpotProblem& problem_;
    SpotMode mode_;
    ModelBuilder model_;
    int H_, M_;
    IndexMap run_, stop_, idle_, start_, x_, choice_;
    std::vector<std::vector<Entry>> capacity_;  // [slot * M + node]
    std::vector<Entry> choices_, numerator_, denominator_, useful_;
    std::int64_t largest_ = 0;  // upper limit of the denominator
};

}  // namespace gpusched::milp::detail

namespace gpusched::milp {

GPUSCHED_EXPORT void validate(const SpotProblem& problem) {
    Problems problems;
    // The limits of the size of the model.
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

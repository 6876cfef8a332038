// SPDX-License-Identifier: Apache-2.0
// Spot scheduling against brute force: all patterns of running and waiting, and all placements, counted by code of its own.
#include "support/instances.hpp"
#include "support/solvers.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::milp;

namespace {

/// One way for one task, and what it adds up to.
struct Way {
    std::vector<std::vector<int>> pods;  // [slot][node]
    double restarts = 0, starts = 0, useful = 0;
};

/// All ways to spread the pods over nodes.
void spreads(int pods, std::size_t node, std::vector<int>& now, const SpotProblem& p, const SpotTask& task,
             std::vector<std::vector<int>>& out) {
    if (node == p.nodes.size()) {
        if (pods == 0) out.push_back(now);
        return;
    }
    for (int count = 0; count <= pods && count * task.gpus <= p.nodes[node]; ++count) {
        now[node] = count;
        spreads(pods - count, node + 1, now, p, task, out);
    }
    now[node] = 0;
}

std::vector<Way> ways(const SpotProblem& p, const SpotTask& task, SpotMode mode) {
    std::vector<Way> all;
    std::vector<std::vector<int>> places;
    std::vector<int> scratch(p.nodes.size(), 0);
    spreads(task.pods, 0, scratch, p, task, places);
    const int length = task.checkpoints.back();
    for (unsigned pattern = 0; pattern < (1u << p.horizon); ++pattern) {
        // Runs as [first, last] slots, and progress on the way.
        std::vector<std::pair<int, int>> runs;
        int kept = 0, slots = 0;
        bool legal = true;
        for (int t = 0; t < p.horizon;) {
            if ((pattern >> t & 1u) == 0) {
                ++t;
                continue;
            }
            int end = t;
            while (end + 1 < p.horizon && (pattern >> (end + 1) & 1u) != 0) ++end;
            runs.emplace_back(t, end);
            const int reached = kept + end - t + 1;
            slots += end - t + 1;
            if (kept == length || reached > length || t < task.arrival) legal = false;
            if (task.hp && (runs.size() > 1 || t > task.arrival + task.max_delay ||
                            (reached < length && end + 1 < p.horizon)))
                legal = false;
            for (const int c : task.checkpoints)
                if (c <= reached) kept = std::max(kept, c);
            t = end + 1;
        }
        if (task.hp && runs.empty()) legal = false;
        if (!legal) continue;
        Way way;
        const double gpus = task.pods * task.gpus;
        const double weight = mode == SpotMode::literal ? task.pods * slots : gpus;
        const double count = static_cast<double>(runs.size());
        way.starts = weight * count;
        way.restarts = runs.empty() ? 0 : weight * (count - 1);
        way.useful = gpus * kept * (mode == SpotMode::literal ? task.pods * slots : 1);
        way.pods.assign(static_cast<std::size_t>(p.horizon), std::vector<int>(p.nodes.size(), 0));
        std::function<void(std::size_t)> place = [&](std::size_t r) {
            if (r == runs.size()) {
                all.push_back(way);
                return;
            }
            for (const auto& spread : places) {
                for (int t = runs[r].first; t <= runs[r].second; ++t)
                    way.pods[static_cast<std::size_t>(t)] = spread;
                place(r + 1);
            }
        };
        place(0);
    }
    return all;
}

struct Best {
    double objective = std::numeric_limits<double>::infinity();
    SpotSchedule schedule;
};

Best brute_force(const SpotProblem& p, SpotMode mode) {
    std::vector<std::vector<Way>> choices;
    for (const auto& task : p.tasks) choices.push_back(ways(p, task, mode));
    double capacity = 0;
    for (const int gpus : p.nodes) capacity += gpus * p.horizon;
    std::vector<std::vector<int>> used(static_cast<std::size_t>(p.horizon),
                                       std::vector<int>(p.nodes.size(), 0));
    Best best;
    SpotSchedule now;
    std::function<void(std::size_t, double, double, double)> visit = [&](std::size_t i, double restarts,
                                                                         double starts, double useful) {
        if (i == p.tasks.size()) {
            const double objective = (starts > 0 ? restarts / starts : 0) - p.alpha * useful / capacity;
            if (objective < best.objective) best = {objective, now};
            return;
        }
        for (const auto& way : choices[i]) {
            bool fits = true;
            for (std::size_t t = 0; t < used.size(); ++t)
                for (std::size_t j = 0; j < p.nodes.size(); ++j) {
                    used[t][j] += way.pods[t][j] * p.tasks[i].gpus;
                    fits = fits && used[t][j] <= p.nodes[j];
                }
            if (fits) {
                now.pods.push_back(way.pods);
                visit(i + 1, restarts + way.restarts, starts + way.starts, useful + way.useful);
                now.pods.pop_back();
            }
            for (std::size_t t = 0; t < used.size(); ++t)
                for (std::size_t j = 0; j < p.nodes.size(); ++j)
                    used[t][j] -= way.pods[t][j] * p.tasks[i].gpus;
        }
    };
    visit(0, 0, 0, 0);
    return best;
}

SpotProblem random_problem(Rng& rng) {
    SpotProblem p;
    p.horizon = static_cast<int>(rng.between(3, 5));
    for (int j = 0, count = static_cast<int>(rng.between(1, 2)); j < count; ++j)
        p.nodes.push_back(static_cast<int>(rng.between(1, 3)));
    p.alpha = 0.2 * static_cast<double>(rng.between(0, 15));
    for (int i = 0, count = static_cast<int>(rng.between(1, 3)); i < count; ++i) {
        SpotTask task{.name = "t" + std::to_string(i)};
        task.hp = rng.chance(0.35);
        task.arrival = static_cast<int>(rng.between(0, 2));
        task.pods = static_cast<int>(rng.between(1, 2));
        task.gpus = static_cast<int>(rng.between(1, 2));
        for (int c = 0; c < 2 && (c == 0 || rng.chance(0.5)); ++c)
            task.checkpoints.push_back((c == 0 ? 0 : task.checkpoints.back()) +
                                       static_cast<int>(rng.between(1, 2)));
        if (task.hp) task.max_delay = static_cast<int>(rng.between(0, 1));
        p.tasks.push_back(task);
    }
    return p;
}

void check_size(const SpotModel& m) {
    const auto& p = m.problem;
    const int M = static_cast<int>(p.nodes.size()), H = p.horizon;
    int columns = 1, rows = 2, most = 0, first = H;
    for (const auto& t : p.tasks) {
        const int h = H - t.arrival, C = t.checkpoints.back();
        const int L = t.hp ? 1 : static_cast<int>(t.checkpoints.size()) + 1, lp = t.hp ? 0 : 1;
        columns += h * C + 2 * h * L + lp * (h - 1) * (C - 1) + M * h;
        rows += h * C + 2 * h * L + lp * (h - 1) * (C - 1) + h + M * (h - 1) + (t.hp ? 1 : 0);
        most += t.pods * t.gpus * (t.hp ? 1 : (H + 1) / 2);
        first = std::min(first, t.arrival);
    }
    const int digits = std::bit_width(static_cast<unsigned>(most));
    CHECK(m.columns() == columns + 2 * digits);
    CHECK(m.rows() == rows + 2 * digits + M * (H - first));
}

}  // namespace

TEST_CASE("spot schedules of 150 random problems equal brute force, in both modes") {
    if (testing_support::lacks_solver()) return;
    Rng rng(7);
    int infeasible = 0, with_restarts = 0;
    for (int i = 0; i < testing_support::instances(150); ++i) {
        const auto p = random_problem(rng);
        for (const auto mode : {SpotMode::meaning, SpotMode::literal}) {
            CAPTURE(i, enum_name(mode));
            const auto best = brute_force(p, mode);
            const auto m = spot_schedule(p, mode);
            if (mode == SpotMode::meaning) check_size(m);
            const auto s = solve(m);
            if (std::isinf(best.objective)) {
                CHECK(s.status == Status::infeasible);
                ++infeasible;
                continue;
            }
            REQUIRE(s.status == Status::optimal);
            CHECK(s.objective == Catch::Approx(best.objective).margin(1e-6));
            const auto value = spot_value(p, m.decode(s.x), mode);
            CHECK(value.objective == Catch::Approx(best.objective).margin(1e-6));
            // The brute-force optimum as a vector satisfies the model, and is worth the same there.
            CHECK(spot_value(p, best.schedule, mode).objective == Catch::Approx(best.objective).margin(1e-9));
            const auto x = m.encode(best.schedule);
            const auto e = evaluate(m, x);
            CAPTURE(e.violated);
            CHECK(e.feasible(1e-9));
            CHECK(e.objective == Catch::Approx(best.objective).margin(1e-9));
            CHECK(m.decode(x) == best.schedule);
            with_restarts += value.restarts > 0;
        }
    }
    CHECK(infeasible > testing_support::instances(5));
    CHECK(infeasible < testing_support::instances(150));
    CHECK(with_restarts > testing_support::instances(3));
}

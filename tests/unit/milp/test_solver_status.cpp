// SPDX-License-Identifier: Apache-2.0
// Infeasible, unbounded, or given up: what solvers mix up.
#include "small_models.hpp"
#include "unit/serving/examples.hpp"

#include <atomic>
#include <thread>

using namespace gpusched;
using namespace gpusched::milp;
using namespace gpusched::serving;

namespace {

/// Columns and rows as given; each row's entries are one per column.
struct Small {
    std::vector<double> cost, lower, upper;
    std::vector<bool> whole;
    std::vector<std::vector<double>> rows;
    std::vector<double> row_lower, row_upper;
    Sense sense = Sense::minimise;

    [[nodiscard]] Model model() const {
        ModelBuilder b("small");
        for (std::size_t j = 0; j < cost.size(); ++j)
            b.column("x" + std::to_string(j), lower[j], upper[j], cost[j], whole[j]);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::vector<Entry> e;
            for (std::size_t j = 0; j < cost.size(); ++j) e.push_back({static_cast<int>(j), rows[i][j]});
            b.row("rows", "r" + std::to_string(i), row_lower[i], e, row_upper[i]);
        }
        b.set_sense(sense);
        return b.finish();
    }
};

constexpr double inf = infinity;

}  // namespace

TEST_CASE("every solver distinguishes infeasible from unbounded") {
    const std::vector<std::pair<Small, Status>> cases{
        // min -x0, x0 - x1 <= 1.5
        {{{-1, 0}, {0, 0}, {inf, inf}, {true, false}, {{1, -1}}, {-inf}, {1.5}}, Status::unbounded},
        {{{-1, 0}, {0, 0}, {inf, inf}, {false, false}, {{1, -1}}, {-inf}, {1.5}}, Status::unbounded},
        {{{1, 0}, {0, 0}, {inf, inf}, {true, false}, {{1, -1}}, {-inf}, {1.5}, Sense::maximise},
         Status::unbounded},
        {{{-1}, {0}, {inf}, {true}, {}, {}, {}}, Status::unbounded},
        {{{-1}, {0}, {inf}, {false}, {}, {}, {}}, Status::unbounded},
        {{{5, 1}, {-inf, 0}, {4, 1}, {false, true}, {{1, 1}}, {-inf}, {9}}, Status::unbounded},
        // The relaxation is unbounded, whole numbers there are none: 2 x1 = 1.
        {{{-1, 0}, {0, 0}, {inf, 1}, {true, true}, {{1, -1}, {0, 2}}, {0, 1}, {inf, 1}}, Status::infeasible},
        {{{-1, -1}, {0, 0}, {inf, inf}, {false, false}, {{1, -1}, {-1, 1}}, {1, 1}, {inf, inf}},
         Status::infeasible},
        // An unbounded column that no row holds, next to one in a row.
        {{{-1, 0}, {0, -inf}, {inf, 7}, {true, true}, {{0, 3}}, {-4}, {-3}}, Status::unbounded},
        {{{-1, -1}, {0, 0}, {inf, 7}, {true, true}, {{0, 1}}, {0}, {1}}, Status::unbounded},
        // A row without columns.
        {{{1}, {0}, {1}, {false}, {{0}}, {3}, {4}}, Status::infeasible},
        {{{}, {}, {}, {}, {{}}, {1}, {2}}, Status::infeasible},
        {{{}, {}, {}, {}, {{}}, {-1}, {2}}, Status::optimal},
        {{{1}, {0.2}, {0.8}, {true}, {{1}}, {-inf}, {5}}, Status::infeasible},
        {{{1}, {-inf}, {inf}, {true}, {{3}}, {-7}, {inf}}, Status::optimal},
    };
    for (const auto& name : available_solvers())
        for (std::size_t i = 0; i < cases.size(); ++i) {
            const auto s = solve(cases[i].first.model(), {}, name);
            CAPTURE(name, i, enum_name(s.status), s.message);
            CHECK(s.status == cases[i].second);
            CHECK(s.has_solution() == (s.status == Status::optimal && !cases[i].first.cost.empty()));
        }
}

TEST_CASE("a solver's wrong word about infeasible and unbounded is looked into") {
    if (available_solvers().empty()) return;
    // Claims something of the model itself; the questions about it are answered.
    const auto claim = [](const Model& model, Status status) {
        return solve(model, {},
                     AnySolver("liar", [&, status](const Model& m, const SolveOptions& o, const Context& c) {
                         return m == model ? Solution{.status = status} : find_solver()(m, o, c);
                     }));
    };
    const auto unbounded =
        Small{{-1, 0}, {0, 0}, {inf, inf}, {true, false}, {{1, -1}}, {-inf}, {1.5}}.model();
    for (const auto status : {Status::infeasible, Status::unbounded, Status::failed, Status::time_limit}) {
        CAPTURE(enum_name(status));
        CHECK(claim(unbounded, status).status == Status::unbounded);
        CHECK(claim(unbounded, status).bound == -inf);
    }
    // min x0 + x1: bounded below, so that nothing is asked about `infeasible`, and `unbounded` is wrong.
    const auto bounded = Small{{1, 1}, {0, 0}, {inf, inf}, {true, false}, {{1, 1}}, {1}, {inf}}.model();
    CHECK(claim(bounded, Status::infeasible).status == Status::infeasible);
    CHECK(claim(bounded, Status::unbounded).status == Status::failed);
    CHECK_THAT(claim(bounded, Status::unbounded).message, Mentions("unbounded not"));
    // x0 <= 3 bounds it, by a row.
    const auto held = Small{{-1}, {0}, {inf}, {true}, {{1}}, {-inf}, {3}}.model();
    CHECK(claim(held, Status::infeasible).status == Status::failed);
    CHECK(claim(held, Status::failed).status == Status::failed);
    auto none = bounded;
    none.row_upper[0] = 0.5;
    none.row_lower[0] = 0.25;
    none.integer = {1, 1};
    CHECK(claim(none, Status::unbounded).status == Status::infeasible);
}

TEST_CASE("a claim of optimality without a bound means within the gap") {
    const auto m = test::knapsack();
    const AnySolver silent("silent", [](const Model&, const SolveOptions&, const Context&) {
        return Solution{.status = Status::optimal, .bound = infinity, .x = {1, 0, 0}};
    });
    CHECK(solve(m, {}, silent).bound == 14);
    CHECK(solve(m, {.mip_gap = 0.5}, silent).bound == 21);
}

TEST_CASE("a claim of optimality that the bound does not support is a solution without proof") {
    ModelBuilder b("one");
    b.column("x", 0, 10, 1, true);
    const auto model = b.finish();
    struct Case {
        double x, bound, gap;
        Status status;
    };
    for (const auto& c : {Case{4, 4, 0, Status::optimal},
                          {4, 3.9999999, 0, Status::optimal},
                          {4, 3, 0, Status::feasible},
                          {4, 3.9, 0.1, Status::optimal},
                          {10, 0.4, 0.5, Status::feasible}}) {
        CAPTURE(c.x, c.bound, c.gap);
        const AnySolver claims("claims", [&](const Model&, const SolveOptions&, const Context&) {
            return Solution{.status = Status::optimal, .bound = c.bound, .x = {c.x}};
        });
        const auto found = solve(model, {.mip_gap = c.gap}, claims);
        CHECK(found.status == c.status);
        CHECK(found.has_solution());
        CHECK(found.message.empty() == (c.status == Status::optimal));
    }
}

TEST_CASE("without columns, rows still count") {
    const auto none = Small{{}, {}, {}, {}, {{}}, {1}, {2}}.model();
    const auto s = checked(none, {.status = Status::optimal});
    CHECK(s.status == Status::failed);
    CHECK_THAT(s.message, Mentions("row 'r0' no columns 0"));
}

TEST_CASE("a conflict within the bounds of a column is named") {
    if (available_solvers().empty()) return;
    const auto m = Small{{1}, {0.2}, {0.8}, {true}, {{1}}, {-inf}, {5}}.model();
    CHECK(conflicting_groups(m, find_solver()) == std::vector<std::string>{"bounds"});
    // However wide the gap asked for: it is not about the elastic form.
    auto tight = test::knapsack();
    tight.row_lower[1] = 2;
    tight.row_upper[1] = 3;
    CHECK(conflicting_groups(tight, find_solver(), {.mip_gap = 1e9}) == std::vector<std::string>{"alone"});
}

TEST_CASE("the largest seed is one like all others") {
    const auto m = test::knapsack();
    for (const auto& name : available_solvers())
        CHECK(solve(m, {.seed = std::numeric_limits<int>::max()}, name).status == Status::optimal);
}

TEST_CASE("a solver without time keeps the start, and an invalid start does no harm") {
    const auto k = test::knapsack();
    for (const auto& name : available_solvers()) {
        CAPTURE(name);
        // No time: what is known already comes back, or something better.
        const auto s = solve(k, {.time_limit = 0.0, .start = {0, 1, 0.5}}, name);
        CAPTURE(enum_name(s.status), s.message);
        REQUIRE(s.has_solution());
        CHECK(s.objective >= 15.5);
        for (const auto& start :
             std::vector<std::vector<double>>{{0, 1, 0.5}, {1, 1, 0.25}, {1, 1, 2}, {0.5, 7, -9}})
            CHECK(solve(k, {.start = start}, name).objective == Catch::Approx(19.25));
        for (const bool presolve : {true, false})
            CHECK(solve(k, {.presolve = presolve, .start = {1, 1, 0.25}}, name).objective ==
                  Catch::Approx(19.25));
    }
}

TEST_CASE("the returned values of an optimum are the optimum") {
    // CBC's presolve returned x0 = 3.5 here, worth 11.5.
    const auto m = Small{{3, 0, 3},
                         {-3, -inf, 0},
                         {4, inf, 2},
                         {false, true, true},
                         {{2, 0.5, 0.5}, {0.5, 1, -1}, {-1, 0, 3}},
                         {-inf, -inf, -inf},
                         {1, 3, 0},
                         Sense::maximise}
                       .model();
    for (const auto& name : available_solvers()) {
        const auto s = solve(m, {}, name);
        CAPTURE(name);
        CHECK(s.status == Status::optimal);
        CHECK(s.objective == Catch::Approx(15));
        CHECK(s.bound == Catch::Approx(15));
    }
}

TEST_CASE("solvers report their number of nodes, and end if the hook requests it") {
    const auto m = test::hard_knapsack(60);
    for (const auto& name : available_solvers()) {
        std::stop_source stop;
        std::vector<std::int64_t> done;
        const auto thread = std::this_thread::get_id();
        const auto s = solve(m, {.time_limit = 120.0}, name,
                             {.stop = stop.get_token(), .progress = [&](const Progress& p) {
                                  CHECK(std::string(p.phase) == "solving");
                                  CHECK(p.total == 0);
                                  CHECK((std::this_thread::get_id() == thread));
                                  done.push_back(p.done);
                                  if (p.done > 0) stop.request_stop();
                              }});
        CAPTURE(name, enum_name(s.status), s.message);
        REQUIRE(!done.empty());
        CHECK(done.back() > 0);
        CHECK(std::is_sorted(done.begin(), done.end()));
        CHECK(s.status == Status::cancelled);
    }
}

TEST_CASE("linear programs report progress and can be cancelled, too") {
    const auto m = lp_relaxation(test::hard_knapsack(60));
    for (const auto& name : available_solvers()) {
        int events = 0;
        const auto s = solve(m, {.presolve = false}, name, {.progress = [&](const Progress&) { ++events; }});
        CAPTURE(name, enum_name(s.status), s.message);
        CHECK(s.status == Status::optimal);
        CHECK(events > 0);
        std::stop_source stop;
        stop.request_stop();
        const auto stopped = solve(m, {.presolve = false}, name, {.stop = stop.get_token()});
        CHECK(stopped.status == Status::cancelled);
    }
}

TEST_CASE("calls with different counts of threads, from several threads and from within each other") {
    const auto m = test::knapsack();
    for (const auto& name : available_solvers()) {
        CAPTURE(name);
        const auto with = [&](int threads) { return solve(m, {.threads = threads}, name).status; };
        CHECK(with(3) == Status::optimal);
        auto other = Status::failed;
        std::thread([&] { other = with(1); }).join();
        CHECK(other == Status::optimal);
        CHECK(with(1) == Status::optimal);
        CHECK(with(2) == Status::optimal);
        auto within = Status::failed;
        const auto outer = solve(m, {.threads = 1}, name, {.progress = [&](const Progress&) {
                                     if (within == Status::failed) within = with(2);
                                 }});
        CHECK(outer.status == Status::optimal);
        CHECK(within == Status::optimal);
    }
}

TEST_CASE("several threads search at once") {
    const auto m = serving_milp(test::worked_example(), {.form = ServingForm::copies});
    for (const auto& name : available_solvers()) {
        CAPTURE(name);
        std::atomic<int> solved{0};
        std::vector<std::thread> threads;
        for (int k = 0; k < 6; ++k)
            threads.emplace_back([&] {
                for (int i = 0; i < 20; ++i) {
                    const auto s = solve(m, {}, name);
                    solved += s.status == Status::optimal && std::abs(s.objective - 1450.0 / 51) < 1e-6;
                }
            });
        for (auto& thread : threads) thread.join();
        CHECK(solved == 6 * 20);
    }
}

TEST_CASE("a call that waits for another one's search heeds its limit, its stop token and its start") {
    const auto hard = test::hard_knapsack(60);
    const auto easy = serving_milp(test::worked_example(), {.form = ServingForm::copies});
    const auto best = solve(easy).x;
    for (const auto& name : available_solvers()) {
        CAPTURE(name);
        std::stop_source stop;
        std::atomic<bool> searching{false};
        std::thread other([&] {
            (void)solve(hard, {.time_limit = 60.0}, name,
                        {.stop = stop.get_token(),
                         .progress = [&](const Progress& p) { searching = searching || p.done > 0; }});
        });
        while (!searching) std::this_thread::yield();
        const auto limited = solve(easy, {.time_limit = 0.1, .start = best}, name);
        CHECK((limited.status == Status::time_limit || limited.status == Status::optimal));
        CHECK(limited.has_solution());
        std::stop_source now;
        now.request_stop();
        CHECK(solve(hard, {}, name, {.stop = now.get_token()}).status == Status::cancelled);
        stop.request_stop();
        other.join();
    }
}

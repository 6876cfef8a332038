// SPDX-License-Identifier: Apache-2.0
#include "small_models.hpp"

using namespace gpusched;
using namespace gpusched::milp;
using test::knapsack;

TEST_CASE("a model's matrix is compressed by columns, repeated entries add up") {
    const auto m = knapsack();
    REQUIRE(m.rows() == 2);
    REQUIRE(m.columns() == 3);
    CHECK(m.column_start == std::vector<int>{0, 2, 3, 4});
    CHECK(m.row_index == std::vector<int>{0, 1, 0, 0});
    CHECK(m.value == std::vector<double>{2, 1, 3, 4});
    const auto matrix = A(m);
    CHECK(matrix.rows() == 2);
    CHECK(matrix.cols() == 3);
    CHECK(matrix.coeff(0, 1) == 3);
    CHECK(matrix.coeff(1, 2) == 0);
    CHECK((matrix * Eigen::Vector3d(1, 1, 0)).isApprox(Eigen::Vector2d(5, 1)));
    CHECK(row_activity(m, std::vector<double>{1, 1, 0}) == Eigen::Vector2d(5, 1));
    CHECK(by_rows(m).coeff(0, 2) == 4);
    CHECK(m.integer_columns() == 2);
    CHECK(m.rows_in("weight") == 1);
    CHECK(m.rows_in("nothing") == 0);
    CHECK(m.index("x")(1) == 1);
    REQUIRE_THROWS_MESSAGE(m.index("z"), InvalidInput, "no index map 'z' 'knapsack'");
}

TEST_CASE("an index map marks absent columns") {
    IndexMap map("x", {2, 3});
    CHECK(map(1, 2) == IndexMap::absent);
    map(1, 0) = 7;
    CHECK(map.columns == std::vector<int>{-1, -1, -1, 7, -1, -1});
}

TEST_CASE("evaluate names the worst row or column") {
    const auto m = knapsack();
    auto e = evaluate(m, std::vector<double>{1, 1, 0});
    CHECK(e.objective == 10 + 4 + 5);
    CHECK(e.feasible());
    CHECK(e.violation == 0);
    CHECK(e.violated.empty());
    e = evaluate(m, std::vector<double>{1, 1, 1});
    CHECK(e.violation == 3);
    CHECK(e.violated == "weight limit");
    CHECK_FALSE(e.feasible());
    e = evaluate(m, std::vector<double>{0.25, 0, -5});
    CHECK(e.violation == 5);
    CHECK(e.violated == "x c");
    CHECK(e.fractionality == 0.25);
    CHECK(e.fractional == "x a");
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(std::isinf(evaluate(m, std::vector<double>{nan, 0, 0}).violation));
    REQUIRE_THROWS_MESSAGE(evaluate(m, std::vector<double>{1}), InvalidInput, "entries x 1 3");
}

TEST_CASE("malformed models are reported row by row") {
    auto m = knapsack();
    m.row_lower[0] = 10;
    m.column_lower[1] = std::numeric_limits<double>::quiet_NaN();
    m.value[0] = infinity;
    m.objective[2] = infinity;
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { validate(m); }),
               MentionsEach({"column 'x a' value inf finite", "column 'x b' bounds nan to 1",
                             "column 'x c' objective inf finite", "row 'weight limit' sides 10 to 6"}));
    m = knapsack();
    m.row_index[1] = 5;
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "row_index 5 ascending 2");
    m = knapsack();
    m.integer.pop_back();
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "entries integer 2 3");
}

TEST_CASE("a model is not read through starts that lead out of it") {
    auto m = knapsack();
    m.column_start = {0, 50'000'000, 3, 4};
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "column_start[2] 3 ascending 0");
    m.column_start = {1, 2, 3, 4};
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "column_start[0] 1 ascending 0");
    m = knapsack();
    m.indices[0].columns[1] = 3;
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "index map 'x' column 3; -1 below 3");
    m = knapsack();
    m.indices[0].columns.pop_back();
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "index map 'x' entries 2");
    m = knapsack();
    m.row_lower[0] = m.row_upper[0] = infinity;
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "row 'weight limit' sides: inf to inf");
    m = knapsack();
    m.column_lower[2] = m.column_upper[2] = -infinity;
    REQUIRE_THROWS_MESSAGE(validate(m), InvalidInput, "column 'x c' bounds: -inf to -inf");
}

TEST_CASE("the relaxation as data for an LP solver") {
    const auto relaxed = lp_relaxation(knapsack());
    CHECK(relaxed.integer_columns() == 0);
    const auto lp = lp_problem(relaxed);
    CHECK(lp.objective == std::vector<double>{-4, -5, -1});  // a maximisation, turned round
    if (clp() != nullptr) CHECK(-clp()->solve(lp).objective == Catch::Approx(9.25));
    auto wrong = lp;
    wrong.row_upper.pop_back();
    if (clp() != nullptr) REQUIRE_THROWS_MESSAGE(clp()->solve(wrong), InvalidInput, "entries row_upper 1 2");
}

TEST_CASE("an infeasible model's elastic form shows the rows to relax, and conflicting groups are named") {
    ModelBuilder b("contradiction");
    const int x = b.column("x", 0, 10, 1), y = b.column("y", 0, 10, 1);
    const Entry only_x[] = {{x, 1}}, only_y[] = {{y, 1}}, both[] = {{x, 1}, {y, 1}};
    b.at_least("demand", "at least 8", both, 8);
    b.at_most("limit", "x at most 2", only_x, 2);
    b.at_most("limit", "y at most 3", only_y, 3);
    b.at_least("other", "x at least 1", only_x, 1);
    const auto m = b.finish();
    const auto soft = elastic(m);
    CHECK(soft.columns() == 2 + 4);
    CHECK(soft.original_columns == 2);
    const std::vector<double> v{2, 3, 3, 0, 0, 0};
    CHECK(evaluate(soft, v).feasible());
    CHECK(evaluate(soft, v).objective == 3);
    const auto violated = violated_groups(soft, v);
    REQUIRE(violated.size() == 1);
    CHECK(violated[0].group == "demand");
    CHECK(violated[0].amount == 3);
    CHECK(violated[0].worst == "at least 8");
    REQUIRE_THROWS_MESSAGE(elastic(m, {"nothing"}), InvalidInput, "no group 'nothing'");
    if (!available_solvers().empty()) {
        CHECK(solve(m).status == Status::infeasible);
        CHECK(solve(soft).objective == Catch::Approx(3));
        CHECK(conflicting_groups(m, find_solver()) == std::vector<std::string>{"demand", "limit"});
        CHECK(conflicting_groups(knapsack(), find_solver()).empty());
    }
}

TEST_CASE("every solver that is built in solves, bounds and distinguishes infeasible from unbounded") {
    for (const auto& name : available_solvers()) {
        CAPTURE(name);
        const auto m = knapsack();
        const auto s = solve(m, {}, name);
        CHECK(s.status == Status::optimal);
        CHECK(s.objective == Catch::Approx(19.25));
        CHECK(s.bound == Catch::Approx(s.objective));
        CHECK(s.solver == name);
        CHECK(s.x[0] == 1);
        CHECK(solve(lp_relaxation(m), {}, name).objective == Catch::Approx(19.25));
        // From a start, and without presolve.
        CHECK(solve(m, {.presolve = false, .start = {1, 0, 0}}, name).objective ==
              Catch::Approx(s.objective));

        auto none = m;
        none.row_lower[1] = 2;
        none.row_upper[1] = 3;
        CHECK(solve(none, {}, name).status == Status::infeasible);
        CHECK_FALSE(solve(none, {}, name).has_solution());
        CHECK(std::isnan(solve(none, {}, name).objective));
        auto endless = m;
        endless.column_upper[2] = infinity;
        endless.row_upper[0] = infinity;
        CHECK(solve(endless, {}, name).status == Status::unbounded);
        CHECK(solve(lp_relaxation(endless), {}, name).status == Status::unbounded);
    }
}

TEST_CASE("a solver's result is compared with the model") {
    const auto m = knapsack();
    const auto claim = [&](std::vector<double> x) {
        return checked(m, {.status = Status::optimal, .objective = 1e9, .x = std::move(x)});
    };
    CHECK(claim({1, 0, 0}).status == Status::optimal);
    CHECK(claim({1, 0, 0}).objective == 14);
    CHECK(claim({1 - 1e-9, 1e-9, 0}).x == std::vector<double>{1, 0, 0});
    CHECK_THAT(claim({1, 1, 1}).message, Mentions("row 'weight limit' violated 3"));
    CHECK_THAT(claim({0.5, 0, 0}).message, Mentions("integer column 'x a' 0.5"));
    CHECK_THAT(claim({0, 0, 9}).message, Mentions("column 'x c' out of bounds"));
    CHECK_THAT(claim({0, 0}).message, Mentions("2 entries instead 3"));
    CHECK(claim({}).status == Status::failed);
    CHECK_FALSE(claim({1, 1, 1}).has_solution());
}

TEST_CASE("solve options out of range are refused") {
    const auto m = knapsack();
    const auto refused = [&](SolveOptions options, const char* part) {
        REQUIRE_THROWS_MESSAGE(validate(options, m), InvalidInput, part);
    };
    refused({.time_limit = -1.0}, "time_limit -1 0");
    refused({.mip_gap = std::numeric_limits<double>::quiet_NaN()}, "mip_gap nan");
    refused({.mip_gap = infinity}, "mip_gap inf 0 1e+09");
    refused({.threads = 0}, "threads 0 1 1024");
    refused({.threads = std::numeric_limits<int>::max()}, "threads 2147483647 1 1024");
    refused({.seed = -1}, "seed -1");
    refused({.start = {1.0}}, "entries start 1 3");
    refused({.start = {1, 1, infinity}}, "start inf finite");
    REQUIRE_THROWS_MESSAGE(find_solver("gurobi"), InvalidInput, "solver 'gurobi' 'auto' 'highs' 'cbc'");
    const auto solvers = available_solvers();
    if (std::find(solvers.begin(), solvers.end(), "highs") == solvers.end()) {
        REQUIRE_THROWS_MESSAGE(solve(m, {}, "highs"), BackendError, "HiGHS");
    }
}

TEST_CASE("a cancelled solve ends as such") {
    for (const auto& name : available_solvers()) {
        std::stop_source stop;
        stop.request_stop();
        const auto m = test::hard_knapsack(60);
        const auto s = solve(m, {.time_limit = 20.0}, name, {.stop = stop.get_token()});
        CAPTURE(name, enum_name(s.status));
        CHECK((s.status == Status::cancelled || s.status == Status::optimal));
    }
}

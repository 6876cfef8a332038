// SPDX-License-Identifier: Apache-2.0
#include "examples.hpp"

using namespace gpusched;
using namespace gpusched::milp;
using namespace gpusched::serving;
using test::worked_example;

namespace {

constexpr double best = 1450.0 / 51;

const ServingAllocation optimum{{1, 0, 0, 1}, {{5.0 / 34, 1}, {0, 0}, {0, 0}, {29.0 / 34, 0}}};

void check_optimum(const ServingSolution& plan, double tolerance = 1e-9) {
    CHECK(plan.status == Status::optimal);
    CHECK(plan.optimal);
    CHECK(plan.makespan == Catch::Approx(best).epsilon(tolerance));
    CHECK(plan.cost == 8);
    CHECK(plan.allocation.replicas == std::vector<int>{1, 0, 0, 1});
    REQUIRE(plan.allocation.share.size() == 4);
    CHECK(plan.allocation.share[0][0] == Catch::Approx(5.0 / 34));
    CHECK(plan.allocation.share[0][1] == Catch::Approx(1));
    CHECK(plan.allocation.share[3][0] == Catch::Approx(29.0 / 34));
    CHECK(plan.bound <= plan.makespan);
}

/// Says "infeasible" at one call, and the truth at all others.
struct Liar {
    int lie_at;
    int* calls;
    Solution operator()(const Model& model, const SolveOptions& options, const Context& context) const {
        if ((*calls)++ == lie_at || lie_at < 0) return {.status = Status::infeasible, .bound = -infinity};
        return find_solver()(model, options, context);
    }
};

}  // namespace

TEST_CASE("sizes of the worked example's models") {
    const auto p = worked_example();
    const auto e1 = serving_milp(p);
    CHECK(e1.rows() == 34);
    CHECK(e1.columns() == 22);
    CHECK(e1.integer_columns() == 7);
    CHECK(e1.rows_in("coverage") == 2);
    CHECK(e1.rows_in("time") == 7);
    CHECK(e1.rows_in("active") == 14);
    CHECK(e1.rows_in("symmetry") == 3);
    CHECK(e1.rows_in("budget") == 1);
    CHECK(e1.rows_in("availability") == 3);
    CHECK(e1.rows_in("surrogate") == 4);
    CHECK(serving_milp(p, {.surrogate_rows = false}).rows() == 30);
    const auto e2 = serving_milp(p, {.form = ServingForm::fixed_makespan, .makespan = 30.0});
    CHECK(e2.rows() == 18);
    CHECK(e2.columns() == 12);
    CHECK(e2.integer_columns() == 4);
    const auto e3 = serving_milp(p, {.form = ServingForm::mccormick});
    CHECK(e3.columns() == 1 + 8 + 2 * 7);
    CHECK(e3.rows() == 2 + 4 + 8 + 2 * 7 + 3 + 1 + 3);
    const auto e4 = serving_milp(p, {.form = ServingForm::rates});
    CHECK(e4.columns() == 1 + 4 + 8);
    CHECK(e4.rows() == 2 + 4 + 8 + 1 + 3);
    CHECK(e4.integer_columns() == 4);
    CHECK(e4.unit == closed_form_bound(p));
    CHECK(e4.makespan_of(0.5) == 2 * e4.unit);
    CHECK(std::isinf(e4.makespan_of(0)));
    CHECK(e3.makespan_of(7) == 7);
    const auto bound = serving_bound(p);
    CHECK(bound.columns() == 1 + 8 + 4);
    CHECK(bound.rows() == 2 + 2 * 4 + 1 + 3);
    const auto routing = serving_routing(p, {1, 0, 0, 1});
    CHECK(routing.columns() == 1 + 4);
    CHECK(routing.rows() == 2 + 2);
}

TEST_CASE("unservable and unrequested workloads have no columns") {
    auto p = worked_example();
    p.configurations[0].throughput[1] = 0;  // 2 copies
    const auto e1 = serving_milp(p);
    CHECK(e1.columns() == 22 - 2);
    CHECK(e1.rows() == 34 - 2);
    CHECK(e1.x(0, 1) == IndexMap::absent);
    p = worked_example();
    p.workloads[1].requests = 0;
    CHECK(serving_milp(p).rows_in("coverage") == 1);
    CHECK(serving_milp(p).columns() == 1 + 7 * 2);
    CHECK(serving_milp(p, {.form = ServingForm::rates}).columns() == 1 + 4 + 4);
}

TEST_CASE("the known optimum is feasible in every form, and comes back from it") {
    const auto p = worked_example();
    for (const auto form :
         {ServingForm::copies, ServingForm::fixed_makespan, ServingForm::mccormick, ServingForm::rates}) {
        CAPTURE(enum_name(form));
        ServingMilpOptions options{.form = form};
        if (form == ServingForm::fixed_makespan) options.makespan = best;
        const auto m = serving_milp(p, options);
        const auto x = m.encode(optimum);
        const auto e = evaluate(m, x);
        CAPTURE(e.violated);
        CHECK(e.feasible(1e-9));
        CHECK(m.makespan_of(e.objective) == Catch::Approx(form == ServingForm::fixed_makespan ? 8 : best));
        const auto back = m.decode(x);
        CHECK(back.replicas == optimum.replicas);
        for (std::size_t c = 0; c < 4; ++c)
            for (std::size_t w = 0; w < 2; ++w)
                CHECK(back.share[c][w] == Catch::Approx(optimum.share[c][w]).margin(1e-12));
    }
    const auto routing = serving_routing(p, optimum.replicas);
    CHECK(evaluate(routing, routing.encode(optimum)).feasible(1e-9));
    CHECK(routing.decode(routing.encode(optimum)).replicas == optimum.replicas);
}

TEST_CASE("an allocation that the model cannot hold is refused") {
    const auto m = serving_milp(worked_example());
    auto a = optimum;
    a.replicas[3] = 2;
    REQUIRE_THROWS_MESSAGE(m.encode(a), InvalidInput, "replicas 2 0 1");
    a = optimum;
    a.replicas[0] = 0;
    REQUIRE_THROWS_MESSAGE(m.encode(a), InvalidInput, "share 0 no replica");
    a = optimum;
    a.share.pop_back();
    REQUIRE_THROWS_MESSAGE(m.encode(a), InvalidInput, "entries share 3 4");
    REQUIRE_THROWS_MESSAGE(m.decode(std::vector<double>{1}), InvalidInput, "entries values 1 22");
}

TEST_CASE("options of a form that do not belong to it are refused") {
    const auto p = worked_example();
    const auto refused = [&](ServingMilpOptions options, const char* part) {
        REQUIRE_THROWS_MESSAGE(serving_milp(p, options), InvalidInput, part);
    };
    refused({.form = ServingForm::fixed_makespan}, "makespan missing");
    refused({.form = ServingForm::fixed_makespan, .makespan = 0.0}, "makespan 0; above 0");
    refused({.form = ServingForm::fixed_makespan, .makespan = std::nan("")}, "makespan nan");
    refused({.makespan = 3.0}, "makespan 'fixed_makespan' only");
    refused({.form = ServingForm::copies, .makespan_upper = 3.0}, "makespan_upper 'mccormick' only");
    refused({.form = ServingForm::mccormick, .makespan_upper = -1.0}, "makespan_upper -1");
    ServingSearchOptions options{.form = ServingForm::fixed_makespan};
    REQUIRE_THROWS_MESSAGE(solve_serving_plan(p, options, AnySolver("none", Liar{-1, nullptr})), InvalidInput,
                           "form:");
    options = {.tolerance = 0};
    REQUIRE_THROWS_MESSAGE(solve_serving_plan(p, options, AnySolver("none", Liar{-1, nullptr})), InvalidInput,
                           "tolerance 0");
}

TEST_CASE("bounds and the greedy plan of the worked example") {
    const auto p = worked_example();
    CHECK(closed_form_bound(p) <= best);
    CHECK(closed_form_bound(p) > 0.5 * best);
    CHECK(slowest_makespan(p) == Catch::Approx(80 / 0.3 + 20 / 0.5));
    const auto greedy = greedy_plan(p);
    REQUIRE(greedy);
    CHECK(violations(p, *greedy).empty());
    CHECK(makespan(p, *greedy) >= best - 1e-9);
    CHECK(makespan(p, *greedy) < 1.1 * best);
    CHECK_FALSE(greedy_plan(p, best - 0.01));
}

TEST_CASE("the worked example's optimum, by every form, method and solver") {
    const auto p = worked_example();
    for (const auto& solver : available_solvers()) {
        CAPTURE(solver);
        CHECK(solve(serving_bound(p), {}, solver).objective ==
              Catch::Approx(best));  // it equals the optimum here
        for (const auto form : {ServingForm::copies, ServingForm::mccormick, ServingForm::rates}) {
            const auto m = serving_milp(p, {.form = form});
            CHECK(m.makespan_of(solve(m, {}, solver).objective) == Catch::Approx(best));
            check_optimum(solve_serving_plan(p, {.form = form}, solver));
        }
        for (const bool greedy : {true, false})
            check_optimum(solve_serving_plan(
                              p, {.method = ServingMethod::binary_search, .greedy_first = greedy}, solver),
                          1e-4);
        const auto at = [&](double T) { return cheapest_serving_plan(p, T, {}, find_solver(solver)); };
        CHECK(at(30).cost == 8);
        CHECK(at(30).status == Status::optimal);
        CHECK(at(60).cost == 4);
        CHECK(at(28).status == Status::infeasible);
        CHECK_FALSE(at(28).has_plan());
    }
}

TEST_CASE("a search survives a solver that wrongly reports infeasible, at each call in turn") {
    if (available_solvers().empty()) return;
    const auto p = worked_example();
    for (const auto method : {ServingMethod::milp, ServingMethod::binary_search})
        for (const bool greedy : {true, false}) {
            int calls = 0;
            const ServingSearchOptions options{.method = method, .greedy_first = greedy};
            check_optimum(solve_serving_plan(p, options, AnySolver("honest", Liar{1 << 30, &calls})), 1e-4);
            const int honest = calls;
            REQUIRE(honest >= 2);
            for (int lie = 0; lie < honest; ++lie) {
                CAPTURE(enum_name(method), greedy, lie, honest);
                calls = 0;
                check_optimum(solve_serving_plan(p, options, AnySolver("liar", Liar{lie, &calls})), 1e-4);
            }
        }
}

TEST_CASE("the cheapest plan survives a solver that wrongly reports infeasible, at each call in turn") {
    if (available_solvers().empty()) return;
    const auto p = worked_example();
    for (const double deadline : {30.0, 60.0, 100.0, 200.0, 400.0}) {
        int calls = 0;
        const auto with = [&](int lie) {
            calls = 0;
            return cheapest_serving_plan(p, deadline, {}, AnySolver("liar", Liar{lie, &calls}));
        };
        const auto truth = with(1 << 30);
        CHECK(truth.optimal);
        const int honest = calls;
        for (int lie = 0; lie < honest; ++lie) {
            const auto plan = with(lie);
            CAPTURE(deadline, lie, plan.message);
            CHECK(plan.status == Status::optimal);
            CHECK(plan.optimal);
            CHECK(plan.cost == truth.cost);
            CHECK(plan.makespan <= deadline * (1 + 1e-6));
        }
        // Twice in a row: what is left is a plan, and no claim about it.
        int count = 0;
        const AnySolver twice(
            "liar", [&](const Model& model, const SolveOptions& options, const Context& context) {
                return ++count == 1 || count == 4 ? Solution{.status = Status::infeasible, .bound = -infinity}
                                                  : find_solver()(model, options, context);
            });
        const auto plan = cheapest_serving_plan(p, deadline, {}, twice);
        CAPTURE(deadline, plan.message, plan.cost, count);
        REQUIRE(plan.has_plan());
        CHECK(plan.cost >= truth.cost);
        CHECK(plan.optimal == (plan.status == Status::optimal));
        if (plan.optimal) CHECK(plan.cost == truth.cost);
    }
}

TEST_CASE("a plan counts as proven only if the bound is within the requested gap") {
    if (available_solvers().empty()) return;
    // Takes the budget for a part larger than it is, as tolerances do.
    const auto generous = [](double part) {
        return AnySolver("generous",
                         [part](const Model& model, const SolveOptions& options, const Context& context) {
                             auto m = model;
                             for (std::size_t i = 0; i < m.row_names.size(); ++i)
                                 if (m.group_names[static_cast<std::size_t>(m.row_group[i])] == "budget")
                                     m.row_upper[i] *= 1 + part;
                             return find_solver()(m, options, context);
                         });
    };
    auto p = worked_example();
    for (const double missing : {3e-7, 5e-6}) {
        p.budget = 8 * (1 - missing);  // the optimum of 8 is not affordable
        const auto truth = solve_serving_plan(
            p, {}, AnySolver("poor", [](const Model& m, const SolveOptions& o, const Context& c) {
                auto less = m;
                for (std::size_t i = 0; i < m.row_names.size(); ++i)
                    if (m.group_names[static_cast<std::size_t>(m.row_group[i])] == "budget")
                        less.row_upper[i] *= 1 - 1e-4;
                return find_solver()(less, o, c);
            }));
        REQUIRE(truth.has_plan());
        for (const auto method : {ServingMethod::milp, ServingMethod::binary_search})
            for (const bool greedy : {true, false}) {
                const auto plan =
                    solve_serving_plan(p, {.method = method, .greedy_first = greedy}, generous(6e-6));
                CAPTURE(missing, enum_name(method), greedy, plan.message, plan.bound, plan.makespan);
                REQUIRE(plan.has_plan());
                CHECK(plan.cost <= p.budget);
                CHECK(plan.makespan == Catch::Approx(truth.makespan).epsilon(1e-3));
                CHECK(plan.optimal == (plan.makespan - plan.bound <= 1e-4 * plan.makespan));
                CHECK(plan.optimal == (plan.status == Status::optimal));
                CHECK(plan.optimal == plan.message.empty());
            }
    }
    // The gap asked for decides, not whether it is smaller than the tolerance.
    CHECK(solve_serving_plan(worked_example(), {.solve = {.mip_gap = 1e-3}}).optimal);
}

TEST_CASE("a solution within a solver's tolerance that is no plan is none") {
    if (available_solvers().empty()) return;
    // Says that the smallest rate is reached without any replica.
    const AnySolver sloppy("sloppy",
                           [](const Model& model, const SolveOptions& options, const Context& context) {
                               if (model.integer_columns() == 0 || model.sense == Sense::minimise)
                                   return find_solver()(model, options, context);
                               Solution s{.status = Status::optimal, .bound = 1};
                               s.x.assign(static_cast<std::size_t>(model.columns()), 0.0);
                               s.x[0] = model.column_lower[0];
                               return s;
                           });
    auto p = worked_example();
    p.workloads = {{"w1", 1, ""}};
    p.configurations = {{"slow", {1, 0, 0}, {1e-6}, ""}, {"fast", {0, 1, 0}, {1.0}, ""}};
    p.budget = 1;  // nothing is affordable
    CHECK(solve_serving_plan(p, {}, sloppy).status == Status::infeasible);
    p.budget = 8;
    const auto plan = solve_serving_plan(p, {}, sloppy);
    CHECK(plan.has_plan());  // the greedy one
    CHECK(plan.bound <= plan.makespan);
}

TEST_CASE("a solver that always reports infeasible proves nothing") {
    for (const auto method : {ServingMethod::milp, ServingMethod::binary_search}) {
        int calls = 0;
        const auto p = worked_example();
        const auto plan = solve_serving_plan(p, {.method = method}, AnySolver("liar", Liar{-1, &calls}));
        CHECK(plan.status == Status::failed);
        CHECK_FALSE(plan.optimal);
        REQUIRE(plan.has_plan());  // the greedy one
        CHECK(violations(p, plan.allocation).empty());
        CHECK(plan.bound <= best);
        CHECK(!plan.message.empty());
    }
}

TEST_CASE("well-formed problems without a plan are infeasible") {
    if (available_solvers().empty()) return;
    const auto infeasible = [](auto change) {
        for (const auto method : {ServingMethod::milp, ServingMethod::binary_search}) {
            auto p = worked_example();
            change(p);
            const auto plan = solve_serving_plan(p, {.method = method});
            CAPTURE(enum_name(method), plan.message);
            CHECK(plan.status == Status::infeasible);
            CHECK_FALSE(plan.has_plan());
            CHECK(std::isnan(plan.makespan));
        }
    };
    infeasible([](auto& p) { p.budget = 1; });
    infeasible([](auto& p) {
        p.workloads.push_back({"nobody", 5, ""});
        for (auto& c : p.configurations) c.throughput.push_back(0);
    });
    infeasible([](auto& p) {
        for (auto& g : p.gpus) g.available = 0;
    });
    infeasible([](auto& p) { p.configurations.clear(); });
    // Two workloads, each served by one configuration only, and money for one of them.
    infeasible([](auto& p) {
        p.configurations = {{"a", {1, 0, 0}, {1, 0}, ""}, {"b", {0, 2, 0}, {0, 1}, ""}};
        p.budget = 7;
    });
}

TEST_CASE("nothing to serve takes no time and no money") {
    if (available_solvers().empty()) return;
    auto p = worked_example();
    for (auto& w : p.workloads) w.requests = 0;
    for (const auto method : {ServingMethod::milp, ServingMethod::binary_search}) {
        const auto plan = solve_serving_plan(p, {.method = method});
        CHECK(plan.status == Status::optimal);
        CHECK(plan.makespan == 0);
    }
}

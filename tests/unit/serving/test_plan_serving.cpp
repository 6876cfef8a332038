#include "support/catch.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One kind of requests per model, so that the best routing has a closed form: a model is done after f / sum y h.
struct Oracle {
    struct Option {
        std::size_t model;
        Deployment deployment;
        std::vector<int> gpus;
        double rate, cost;
    };
    std::vector<Option> options;
    const ServingRequest& request;
    std::vector<int> available;

    Oracle(const ServingRequest& r, const PlannerOptions& o, std::vector<int> there)
        : request(r), available(there) {
        for (std::size_t m = 0; m < r.models.size(); ++m)
            for (const auto& d : enumerate_deployments(r.models[m].model, r.gpus, there, o.deployments)) {
                Option option{m, d, std::vector<int>(r.gpus.size(), 0), 0, 0};
                for (const auto& stage : d.stages) {
                    option.gpus[static_cast<std::size_t>(stage.gpu)] += stage.degree;
                    option.cost += stage.degree * *r.gpus[static_cast<std::size_t>(stage.gpu)].price;
                }
                option.rate = estimate_throughput(r.models[m].model, r.gpus, d, r.models[m].demands[0].shape,
                                                  o.estimate)
                                  .requests_per_s;
                options.push_back(option);
            }
    }

    /// Calls back with every choice of replicas that availability and budget allow, its makespan and its cost.
    void each(const std::function<void(const std::vector<int>&, double, double)>& visit) const {
        std::vector<int> counts(options.size(), 0), left = available;
        std::vector<double> rate(request.models.size(), 0.0);
        const auto go = [&](const auto& self, std::size_t c, double cost) -> void {
            if (c == options.size()) {
                double makespan = 0;
                for (std::size_t m = 0; m < rate.size(); ++m) {
                    const double f = request.models[m].demands[0].requests;
                    if (f > 0) makespan = std::max(makespan, rate[m] > 0 ? f / rate[m] : infinity);
                }
                visit(counts, makespan, cost);
                return;
            }
            const auto before = left;
            const auto rates = rate;
            for (int count = 0;; ++count) {
                counts[c] = count;
                self(self, c + 1, cost + count * options[c].cost);
                bool fits = cost + (count + 1) * options[c].cost <= request.budget + 1e-9;
                for (std::size_t g = 0; g < left.size(); ++g)
                    fits = fits && (left[g] -= options[c].gpus[g]) >= 0;
                rate[options[c].model] += options[c].rate;
                if (!fits) break;
            }
            counts[c] = 0;
            left = before;
            rate = rates;
        };
        go(go, 0, 0);
    }
    double best() const {
        double found = infinity;
        each([&](const auto&, double makespan, double) { found = std::min(found, makespan); });
        return found;
    }
};

PlannerOptions exact() {
    PlannerOptions options{.deployments = {.degrees = {1, 2}, .max_stages = 2, .max_gpus = 2}};
    options.max_deployments = 0;
    options.solve = {.method = milp::ServingMethod::milp};
    return options;
}

ServingRequest random_request(Rng& rng, int models) {
    const auto pick = [&](int low, int high) {
        return low + static_cast<int>(rng.below(static_cast<unsigned>(high - low + 1)));
    };
    ServingRequest r;
    const auto all = paper_gpus_dense();
    for (const auto g : {pick(0, 2), pick(3, 5)}) r.gpus.push_back(all[static_cast<std::size_t>(g)]);
    for (std::size_t g = 0; g < r.gpus.size(); ++g) r.available.push_back(pick(0, 3));
    r.budget = 0.5 * pick(1, 14);
    for (int m = 0; m < models; ++m) {
        auto model = llama3_8b();
        model.name += std::to_string(m);
        r.models.push_back({model, {{"w", {pick(100, 3000), pick(1, 600)}, double(pick(0, 1000))}}});
    }
    return r;
}

}  // namespace

TEST_CASE("plans equal a brute force over replicas, and so do the ablations", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(3);
    int feasible = 0, homogeneous = 0;
    for (int i = 0; i < 60; ++i) {
        const auto r = random_request(rng, 1 + i % 2);
        auto options = exact();
        CAPTURE(i);
        const auto check = [&](double expected) {
            const auto plan = plan_serving(r, options);
            CHECK(plan.has_plan() == std::isfinite(expected));
            CHECK(plan.status ==
                  (std::isfinite(expected) ? milp::Status::optimal : milp::Status::infeasible));
            if (!plan.has_plan()) return;
            CHECK(plan.makespan == Catch::Approx(expected).epsilon(1e-6).margin(1e-9));
            CHECK(plan.bound <= plan.makespan * (1 + 1e-6));
            CHECK(plan.optimal);
            double cost = 0;
            for (const auto& replicas : plan.replicas) cost += replicas.cost;
            CHECK(cost == Catch::Approx(plan.cost));
            CHECK(cost <= r.budget + 1e-6);
            CHECK(plan.cost_per_request * plan.requests_per_s * 3600 ==
                  Catch::Approx(plan.requests_per_s > 0 ? cost : 0));
        };
        const Oracle oracle(r, options, r.available);
        check(oracle.best());
        feasible += std::isfinite(oracle.best());

        options.composition = Composition::homogeneous;
        double best = infinity;
        for (std::size_t g = 0; g < r.gpus.size(); ++g) {
            std::vector<int> only(r.gpus.size(), 0);
            only[g] = static_cast<int>(r.budget / *r.gpus[g].price + 1e-9);
            best = std::min(best, Oracle(r, options, only).best());
        }
        check(best);
        homogeneous += best < oracle.best();

        options.composition = Composition::uniform;
        double prices = 0;
        for (std::size_t g = 0; g < r.gpus.size(); ++g) prices += r.available[g] > 0 ? *r.gpus[g].price : 0;
        auto even = r.available;
        for (auto& count : even)
            count = std::min(count, static_cast<int>(r.budget / std::max(prices, 0.1) + 1e-9));
        check(Oracle(r, options, even).best());

        options = exact();
        options.uniform_tp = true;
        best = infinity;
        for (const int degree : {1, 2}) {
            auto one = options;
            one.deployments.degrees = {degree};
            one.deployments.max_stages = 1;
            best = std::min(best, Oracle(r, one, r.available).best());
        }
        check(best);
    }
    CHECK(feasible > 20);
    CHECK(homogeneous > 5);
}

TEST_CASE("cheapest plans within a deadline, and round robin", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(5);
    int found = 0;
    for (int i = 0; i < 40; ++i) {
        const auto r = random_request(rng, 1 + i % 2);
        auto options = exact();
        const Oracle oracle(r, options, r.available);
        const double fastest = oracle.best();
        if (!std::isfinite(fastest) || fastest == 0) continue;
        CAPTURE(i);
        options.deadline = 1.47 * fastest;  // not a ratio of small numbers of replicas
        double cheapest = infinity;
        oracle.each([&](const auto&, double makespan, double cost) {
            if (makespan <= *options.deadline) cheapest = std::min(cheapest, cost);
        });
        const auto plan = plan_serving(r, options);
        REQUIRE(plan.has_plan());
        CHECK(plan.cost == Catch::Approx(cheapest));
        CHECK(plan.makespan <= *options.deadline * (1 + 1e-6));

        options.deadline.reset();
        options.routing = Routing::round_robin;
        const auto turns = plan_serving(r, options);
        double slowest = 0;
        for (std::size_t m = 0; m < r.models.size(); ++m) {
            int replicas = 0;
            for (const auto& p : turns.replicas)
                if (p.model == r.models[m].model.name) replicas += p.count;
            for (const auto& p : turns.replicas)
                if (p.model == r.models[m].model.name)
                    slowest =
                        std::max(slowest, r.models[m].demands[0].requests / replicas / p.requests_per_s[0]);
        }
        CHECK(turns.makespan == Catch::Approx(slowest));
        CHECK(turns.makespan >= fastest * (1 - 1e-9));
        CHECK_FALSE(turns.optimal);
        ++found;
    }
    CHECK(found > 15);
}

TEST_CASE("a search that is stopped is no worse than one type alone", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(21);
    const auto real = milp::find_solver();
    int compared = 0;
    for (int i = 0; i < 60; ++i) {
        const auto r = random_request(rng, 2);
        auto options = exact();
        options.solve.solve.time_limit = 1000;
        options.solve.prune = false;
        const auto size = serving_instance(r, options).problem.configurations.size();
        std::size_t largest = 0;
        for (std::size_t g = 0; g < r.gpus.size(); ++g) {
            auto one = r;
            one.available[1 - g] = 0;
            largest = std::max(largest, serving_instance(one, options).problem.configurations.size());
        }
        if (largest == size || size == 0) continue;
        // Gives up on the problem of all types, which has more columns per workload row than any of one type.
        const milp::AnySolver lazy("lazy",
                                   [&](const milp::Model& m, const milp::SolveOptions& o, const Context& c) {
                                       std::set<std::string> distinct;
                                       for (const auto& column : m.column_names)
                                           if (column.starts_with("y("))
                                               distinct.insert(column.substr(0, column.find(',')));
                                       if (distinct.size() > largest)
                                           return milp::Solution{.status = milp::Status::time_limit};
                                       return real(m, o, c);
                                   });
        double best = infinity;
        for (std::size_t g = 0; g < r.gpus.size(); ++g) {
            auto only = r.available;
            only[1 - g] = 0;
            best = std::min(best, Oracle(r, options, only).best());
        }
        const auto plan = plan_serving(r, options, lazy);
        CAPTURE(i);
        if (std::isfinite(best)) {
            REQUIRE(plan.has_plan());
            CHECK(plan.makespan <= best * (1 + 1e-6));
            CHECK(plan.bound <= plan.makespan * (1 + 1e-6));
        }
        compared += plan.has_plan();
    }
    CHECK(compared > 0);
}

TEST_CASE("a plan of all types is no worse than one of one type, however few deployments are kept",
          "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(31);
    int compared = 0, tight = 0;
    for (int i = 0; i < 40; ++i) {
        const auto r = random_request(rng, 1 + i % 2);
        auto options = exact();
        options.max_deployments = 1 + i % 2;
        const auto plan = plan_serving(r, options);
        CAPTURE(i);
        for (std::size_t g = 0; g < r.gpus.size(); ++g) {
            auto one = r;
            one.available[1 - g] = 0;
            const auto alone = plan_serving(one, options);
            if (!alone.has_plan()) continue;
            REQUIRE(plan.has_plan());
            CHECK(plan.makespan <= alone.makespan * (1 + 1e-6));
            CHECK(plan.bound <= alone.makespan * (1 + 1e-6));
            ++compared;
            tight += plan.left_out > 0;
        }
        CHECK(plan.left_out >= 0);
    }
    CHECK(compared > 20);
    CHECK(tight > 10);
}

TEST_CASE("replanning starts as few replicas as a brute force", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(9);
    const auto solver = milp::find_solver();
    int smaller = 0, compared = 0, longer = 0;
    for (int i = 0; i < 40; ++i) {
        auto r = random_request(rng, 1);
        ReplanOptions options{.planner = exact(), .slack = 0.2};
        const auto before = plan_serving(r, options.planner, solver);
        if (!before.has_plan()) continue;
        // Requests become longer, a card goes, or there is more money.
        r.models[0].demands[0].shape.output += 400;
        if (i % 3 == 1) r.available[0] = std::max(0, r.available[0] - 1);
        if (i % 3 == 2) r.budget += 1;
        if (i % 4 == 3) options.max_starts = 1;
        const Oracle oracle(r, options.planner, r.available);
        const auto starts = [&](const std::vector<int>& counts) {
            int sum = 0;
            for (std::size_t c = 0; c < counts.size(); ++c) {
                int runs = 0;
                for (const auto& p : before.replicas)
                    if (p.deployment == oracle.options[c].deployment) runs += p.count;
                sum += std::max(0, counts[c] - runs);
            }
            return sum;
        };
        const int most = options.max_starts.value_or(1000);
        double free = infinity, kept = infinity;
        oracle.each([&](const auto& counts, double makespan, double) {
            if (starts(counts) <= most) free = std::min(free, makespan);
            if (starts(counts) == 0) kept = std::min(kept, makespan);
        });
        int fewest = 1000;
        oracle.each([&](const auto& counts, double makespan, double) {
            if (makespan <= 1.2 * free * (1 + 1e-9)) fewest = std::min(fewest, starts(counts));
        });
        CAPTURE(i);
        const auto after = replan(r, before.replicas, options, solver);
        REQUIRE(after.plan.has_plan() == std::isfinite(free));
        if (!std::isfinite(free) || r.models[0].demands[0].requests == 0) continue;
        CHECK(after.makespan_free == Catch::Approx(free).epsilon(1e-6));
        CHECK((std::isfinite(kept) ? after.makespan_kept == Catch::Approx(kept).epsilon(1e-6)
                                   : std::isnan(after.makespan_kept)));
        CHECK(after.starts == fewest);
        CHECK(after.plan.makespan <= 1.2 * free * (1 + 1e-6));
        // What is proved is about the best plan, not about the one that starts fewest.
        CHECK(after.plan.bound <= free * (1 + 1e-6));
        CHECK(after.plan.bound >= free * (1 - 2e-3));
        CHECK(after.plan.optimal == (after.plan.makespan <= free * (1 + 1e-3)));
        CHECK(after.plan.message == (after.plan.optimal ? "" : "fewest starts within slack"));
        longer += !after.plan.optimal;
        int now = 0, then = 0;
        for (const auto& p : after.plan.replicas) now += p.count;
        for (const auto& p : before.replicas) then += p.count;
        CHECK(now - after.starts == then - after.stops);
        ++compared;
        smaller += after.starts > 0;
    }
    CHECK(compared > 15);
    CHECK(smaller > 3);
    CHECK(longer > 3);
}

TEST_CASE("more GPUs than an int counts are no trouble for replanning", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(9);
    auto r = random_request(rng, 1);
    const auto before = plan_serving(r);
    for (auto& count : r.available) count = std::numeric_limits<int>::max();
    r.budget = 3;
    const auto after = replan(r, before.replicas, {.planner = exact()}, milp::find_solver());
    CHECK(after.plan.status == milp::Status::optimal);
    CHECK(after.starts >= 0);
}

TEST_CASE("one fraction of the memory, and a request without GPUs", "[serving]") {
    ServingRequest r{{}, {}, 10, {{llama3_8b(), {{"w", {500, 200}, 1000}}}}, {}};
    const milp::AnySolver none("none", [](const auto&, const auto&, const auto&) {
        return milp::Solution{.status = milp::Status::infeasible};
    });
    for (const auto composition : {Composition::optimized, Composition::homogeneous, Composition::uniform})
        CHECK(plan_serving(r, {.composition = composition}, none).message ==
              plan_serving(r, {}, none).message);
    CHECK(!plan_serving(r, {.composition = Composition::homogeneous}, none).message.empty());
    PlannerOptions options{.estimate = {.memory_fraction = 0.3}};
    REQUIRE_THROWS_MESSAGE(plan_serving(r, options, none), InvalidInput,
                           "estimate.memory_fraction: 0.3; expected the memory_fraction 0.9");
    options.deployments.memory_fraction = 0.3;
    CHECK_NOTHROW(plan_serving(r, options, none));
}

TEST_CASE("the planner on the paper's types", "[serving]") {
    ServingRequest r{paper_gpus_dense(),
                     {8, 12, 12, 6, 8, 16},
                     15,
                     {{llama3_70b(), {{"w1", {2455, 18}, 330}, {"w9", {496, 510}, 30}}}},
                     {}};
    const auto instance = serving_instance(r);
    CHECK(instance.deployments.size() == 40);
    CHECK(instance.left_out > 0);
    for (int g = 0; g < 6; ++g)  // every type that can hold the model is represented by itself
        CHECK(std::any_of(instance.deployments.begin(), instance.deployments.end(), [&](const Deployment& d) {
            return std::all_of(d.stages.begin(), d.stages.end(), [&](const Stage& s) { return s.gpu == g; });
        }));
    // A measured throughput goes before the estimate.
    r.measured = {{"Llama-3-70B", "H100 1x4", "w1", 123.0}};
    const auto measured = serving_instance(r).problem;
    CHECK(std::any_of(measured.configurations.begin(), measured.configurations.end(),
                      [](const auto& c) { return c.throughput[0] == 123.0; }));
    auto broken = r;
    broken.gpus[0].price.reset();
    broken.available[1] = -1;
    broken.budget = -1;
    broken.models.push_back(broken.models[0]);
    broken.models[0].demands[0].requests = std::nan("");
    broken.measured[0].demand = "w2";
    try {
        (void)plan_serving(broken, {}, milp::AnySolver("none", [](const auto&, const auto&, const auto&) {
                               return milp::Solution{};
                           }));
        FAIL("accepted");
    } catch (const InvalidInput& error) {
        CHECK(error.problems().size() >= 6);
    }
    CHECK_THROWS_AS(serving_instance(r, {.max_deployments = -1}), InvalidInput);
    CHECK_THROWS_AS(serving_instance(r, {.routing = Routing::round_robin, .deadline = 3}), InvalidInput);
}

// SPDX-License-Identifier: Apache-2.0
#include "oracle.hpp"
#include "support/instances.hpp"

#include "serving/instance.hpp"

#include <chrono>
#include <thread>

using namespace gpusched;
using namespace gpusched::serving;
using namespace testing_support;

TEST_CASE("plans equal a brute force over replicas, and so do the ablations", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(3);
    int feasible = 0, homogeneous = 0;
    for (int i = 0; i < instances(60); ++i) {
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
    CHECK(feasible > instances(20));
    CHECK(homogeneous > instances(5));
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
                        std::max(slowest, r.models[m].workloads[0].requests / replicas / p.requests_per_s[0]);
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
        options.search.solve.time_limit = 1000;
        options.search.prune = false;
        const auto size = serving_instance(r, options).problem.configurations.size();
        std::size_t largest = 0;
        for (std::size_t g = 0; g < r.gpus.size(); ++g) {
            auto one = r;
            one.available[1 - g] = 0;
            largest = std::max(largest, serving_instance(one, options).problem.configurations.size());
        }
        if (largest == size || size == 0) continue;
        // Gives up on the problem of all types, which has more columns per workload row than any of one type.
        const double claimed = i % 2 == 0 ? 0 : 1e9;  // a bound above the plan of the smaller space
        const milp::AnySolver lazy(
            "lazy", [&](const milp::Model& m, const milp::SolveOptions& o, const Context& c) {
                std::set<std::string> distinct;
                for (const auto& column : m.column_names)
                    if (column.starts_with("y(")) distinct.insert(column.substr(0, column.find(',')));
                if (distinct.size() > largest)
                    return milp::Solution{.status = milp::Status::time_limit, .bound = claimed};
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
    for (int i = 0; i < instances(40); ++i) {
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
        // Neither is a plan with deployments of two types, nor does any plan beat the bound.
        auto narrow = options;
        narrow.deployments.max_types = 1;
        const auto single = plan_serving(r, narrow);
        CHECK((!single.has_plan() || plan.makespan <= single.makespan * (1 + 1e-6)));
        const double best = Oracle(r, options, r.available).best();
        CHECK(plan.has_plan() == std::isfinite(best));
        if (!plan.has_plan()) continue;
        CHECK(plan.bound <= best * (1 + 1e-6));
        CHECK(plan.optimal == (plan.status == milp::Status::optimal));
        if (plan.optimal) CHECK(plan.makespan <= best * (1 + 2e-3));
    }
    CHECK(compared > instances(20));
    CHECK(tight > instances(10));
}

TEST_CASE("bounds on cost and makespan hold for deployments that were left out", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(37);
    int left_out = 0;
    for (int i = 0; i < instances(30); ++i) {
        const auto r = random_request(rng, 1 + i % 2);
        auto options = exact();
        const auto fastest = plan_serving(r, options);
        if (!fastest.has_plan() || fastest.makespan <= 0) continue;
        options.deadline = (1.05 + rng.uniform()) * fastest.makespan;
        options.max_deployments = 1;
        const auto plan = plan_serving(r, options);
        CAPTURE(i);
        CHECK(plan.bound <= fastest.makespan * (1 + 1e-6));
        left_out += plan.left_out > 0;
    }
    CHECK(left_out > 0);
}

TEST_CASE("smaller spaces leave a quarter of the time limit", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(39);
    for (int i = 0; i < 3; ++i) {
        auto r = random_request(rng, 1);
        const auto types = paper_gpus_dense();
        r.gpus = {types[0], types[2], types[4]};
        r.available = {3, 3, 3};
        r.budget = 14;
        r.models[0].workloads[0].requests = 100;
        auto options = exact();
        options.max_deployments = 1;
        options.deployments.max_stages = options.deployments.max_gpus = 3;
        const double limit = 0.4;
        options.search.solve.time_limit = limit;
        using Seconds = std::chrono::duration<double>;
        const auto start = std::chrono::steady_clock::now();
        double whole = 0;  // the longest time limit that leaves nothing
        const milp::AnySolver slow("slow",
                                   [&](const milp::Model& m, const milp::SolveOptions& o, const Context& c) {
                                       const Seconds passed = std::chrono::steady_clock::now() - start;
                                       const double asked = o.time_limit.value_or(0);
                                       if (asked > 0.95 * (limit - passed.count()))
                                           whole = std::max(whole, asked);
                                       std::this_thread::sleep_for(Seconds(asked));
                                       if (m.integer_columns() == 0) return milp::find_solver()(m, {}, c);
                                       return milp::Solution{.status = milp::Status::time_limit};
                                   });
        static_cast<void>(plan_serving(r, options, slow));
        CAPTURE(i);
        CHECK(whole > 0.2 * limit);
    }
}

TEST_CASE("a search that was stopped is not called complete", "[serving]") {
    if (milp::available_solvers().empty()) return;
    Rng rng(40);
    const auto real = milp::find_solver();
    int stopped = 0;
    for (int i = 0; i < instances(10); ++i) {
        auto r = random_request(rng, 1);
        r.models[0].workloads.push_back({"other", {1 + static_cast<int>(rng.below(200)), 400}, 200});
        auto options = exact();
        options.max_deployments = 1 + i % 3;
        int calls = 0, last = std::numeric_limits<int>::max();
        std::stop_source source;
        const milp::AnySolver limited(
            "limited", [&](const milp::Model& m, const milp::SolveOptions& o, const Context& c) {
                if (++calls > last) source.request_stop();
                if (calls > last) return milp::Solution{.status = milp::Status::cancelled};
                return real(m, o, c);
            });
        const auto run = [&] {
            source = {};
            calls = 0;
            Context context;
            context.stop = source.get_token();
            return plan_serving(r, options, limited, context);
        };
        last = std::numeric_limits<int>::max();
        static_cast<void>(run());
        const int all = calls;
        for (last = 0; last + 1 < all; ++last) {
            const auto plan = run();
            CAPTURE(i, all, last, plan.message);
            CHECK(plan.status != milp::Status::feasible);
            stopped += plan.status == milp::Status::cancelled;
        }
    }
    CHECK(stopped > instances(10));
}

TEST_CASE("deployments are left out if they could have been chosen", "[serving]") {
    Rng rng(38);
    int dominated = 0;
    for (int i = 0; i < 20; ++i) {
        const auto r = random_request(rng, 1 + i % 2);
        const auto all = serving::detail::all_deployments(r, exact());
        const auto best = undominated_configurations(all.problem);
        for (int c = 0; c < static_cast<int>(all.deployments.size()); ++c) {
            const auto some = serving::detail::selected(all, 1, {c});
            std::set<std::string> names;
            for (const auto& one : some.problem.configurations) names.insert(one.name);
            const auto dropped = std::count_if(best.begin(), best.end(), [&](int b) {
                return !names.contains(all.problem.configurations[static_cast<std::size_t>(b)].name);
            });
            CHECK(some.left_out == dropped);
            dominated += !std::binary_search(best.begin(), best.end(), c);
        }
    }
    CHECK(dominated > 20);
}

TEST_CASE("a replica spans regions only if told", "[serving]") {
    if (milp::available_solvers().empty()) return;
    auto east = gpu_type("H100"), west = east;
    east.name = "east";
    west.name = "west";
    east.price = west.price = 3;
    east.region = "eu-east";
    west.region = "eu-west";
    // The model needs two GPUs, and each region has one.
    ServingRequest request{{east, west}, {1, 1}, 10, {{llama3_70b(), {{"w", {500, 200}, 1000}}}}, {}};
    const auto none = plan_serving(request);
    CHECK(none.status == milp::Status::infeasible);
    CHECK(std::any_of(none.binding.begin(), none.binding.end(),
                      [](const std::string& text) { return text.starts_with("across_regions"); }));
    PlannerOptions told;
    told.deployments.across_regions = true;
    const auto both = plan_serving(request, told);
    REQUIRE(both.has_plan());
    CHECK(both.replicas.front().deployment.stages.size() == 2);
    // A measurement does not override it; a region's own replicas need nothing.
    request.measured = {{llama3_70b().name, both.replicas.front().deployment.name, "w", 1.0}};
    CHECK_FALSE(plan_serving(request).has_plan());
    request.available = {2, 2};
    for (const auto& replicas : plan_serving(request).replicas)
        CHECK(in_one_region(request.gpus, replicas.deployment));
}

TEST_CASE("a request without GPUs", "[serving]") {
    ServingRequest r{{}, {}, 10, {{llama3_8b(), {{"w", {500, 200}, 1000}}}}, {}};
    const milp::AnySolver none("none", [](const auto&, const auto&, const auto&) {
        return milp::Solution{.status = milp::Status::infeasible};
    });
    for (const auto composition : {Composition::optimized, Composition::homogeneous, Composition::uniform})
        CHECK(plan_serving(r, {.composition = composition}, none).message ==
              plan_serving(r, {}, none).message);
    CHECK(!plan_serving(r, {.composition = Composition::homogeneous}, none).message.empty());
}

TEST_CASE("the estimate's fraction of the memory is that of the deployments", "[serving]") {
    auto gpu = gpu_type("H100");
    gpu.price = 3;
    const ServingRequest r{{gpu}, {4}, 100, {{llama3_70b(), {{"w", {500, 200}, 1000}}}}, {}};
    const auto there = [&](double fraction, const std::string& name) {
        const auto instance = serving_instance(
            r,
            {.estimate = {.memory_fraction = fraction}, .max_deployments = 0, .unmeasured_pipelines = true});
        return std::any_of(instance.deployments.begin(), instance.deployments.end(),
                           [&](const auto& deployment) { return deployment.name == name; });
    };
    // 141 GB of weights: nine tenths of two GPUs of 80 GB hold them, half of them does not.
    CHECK(there(0.9, "H100 1x2"));
    CHECK(!there(0.5, "H100 1x2"));
    CHECK(there(0.5, "H100 1x4"));
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
    broken.models[0].workloads[0].requests = std::nan("");
    broken.measured[0].workload = "w2";
    CHECK(testing_support::problems_in<InvalidInput>([&] {
              (void)plan_serving(broken, {},
                                 milp::AnySolver("none", [](const auto&, const auto&, const auto&) {
                                     return milp::Solution{};
                                 }));
          }).size() >= 6);
    CHECK_THROWS_AS(serving_instance(r, {.max_deployments = -1}), InvalidInput);
    CHECK_THROWS_AS(serving_instance(r, {.routing = Routing::round_robin, .deadline = 3}), InvalidInput);
}

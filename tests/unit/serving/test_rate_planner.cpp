// SPDX-License-Identifier: Apache-2.0
#include "serving/instance.hpp"
#include "serving/rental_instance.hpp"
#include "support/catch.hpp"
#include "support/instances.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/milp/solver.hpp>
#include <gpusched/serving/catalogue.hpp>
#include <gpusched/serving/plan_serving.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

bool no_solver() { return milp::available_solvers().empty(); }

GpuType priced(const char* name, double price) {
    auto gpu = gpu_type(name);
    gpu.price = price;
    return gpu;
}

/// Llama-3-70B for kinds of requests on GPUs of one type.
ServingRequest asked(std::vector<ServingWorkload> kinds, int available = 256) {
    return {{priced("H100", 3)},
            {available},
            std::numeric_limits<double>::infinity(),
            {{llama3_70b(), std::move(kinds)}}};
}

ServingWorkload kind(const char* name, RequestShape shape, double rate, LatencyTargets targets = {}) {
    return {name, shape, 0, rate, targets};
}

int gpus_of(const ServingPlan& plan) {
    int count = 0;
    for (const auto rented : plan.rented) count += rented;
    return count;
}

/// The number behind a text.
double number_after(const std::string& text, std::string_view before) {
    const auto at = text.find(before);
    REQUIRE(at != text.npos);
    double value = 0;
    std::from_chars(text.data() + at + before.size(), text.data() + text.size(), value);
    return value;
}

}  // namespace

TEST_CASE("a plan is found if GPUs or money just suffice", "[serving]") {
    if (no_solver()) return;
    auto request = asked({kind("a", {500, 250}, 3.26), kind("b", {1500, 30}, 3.23)});
    PlannerOptions options;
    options.targets = {.ttft_p90_s = 0.18, .ttft_p99_s = 0.25, .tpot_p90_s = 0.03};
    const auto plenty = plan_serving(request, options);
    REQUIRE(plenty.has_plan());
    CHECK(plenty.capacity < 1);  // replicas as full as the program takes them miss a target
    request.available = {gpus_of(plenty)};
    CHECK(plan_serving(request, options).cost == Catch::Approx(plenty.cost));
    request.available = {256};
    request.budget = plenty.cost;
    CHECK(plan_serving(request, options).cost == Catch::Approx(plenty.cost));
}

TEST_CASE("replicas that serve several kinds are filled as far as their simulation keeps the targets",
          "[serving]") {
    if (no_solver()) return;
    const auto request = asked({kind("a", {3000, 100}, 3.8), kind("b", {500, 250}, 0.50)});
    PlannerOptions options;
    options.targets = {.ttft_p90_s = 0.41, .ttft_p99_s = 1.09, .tpot_p90_s = 0.1};
    const auto plan = plan_serving(request, options);
    CHECK(gpus_of(plan) == 8);  // two replicas on four; the program alone takes more
    CHECK(plan.capacity > 1);
    for (const auto& latency : plan.latencies) CHECK(latency.met);
    // What replicas serve at all is the limit however long the targets are.
    CHECK(plan.makespan <= options.utilization * (1 + 1e-6));
}

TEST_CASE("a kind that waits little does not make the others' replicas many", "[serving]") {
    if (no_solver()) return;
    // An idle replica serves the long prompts just in time. With Poisson arrivals it keeps the target at a
    // twentieth of its throughput, but five that take turns serve four times as many.
    PlannerOptions options{.deployments = {.max_types = 1}, .machines = true};
    options.targets = {.ttft_p90_s = 0.195, .tpot_p90_s = 0.05};
    for (const int machines : {40, 8}) {
        const auto request =
            asked({kind("long", {3037, 69}, 1.69), kind("chat", {1087, 426}, 2.36)}, 8 * machines);
        const auto plan = plan_serving(request, options);
        REQUIRE(plan.has_plan());
        CHECK(plan.cost <= 6 * 24);
        for (const auto& latency : plan.latencies) CHECK(latency.met);
        CHECK_FALSE(plan.optimal);
        CHECK(plan.status == milp::Status::feasible);
        CHECK(plan.cost_bound < plan.cost);
    }
}

TEST_CASE("a search for rates ends at the time limit", "[serving]") {
    if (no_solver()) return;
    /// Jumps behind every time limit at a moment of its own.
    struct Jumping : Clock {
        explicit Jumping(int reads) : last(reads) {}
        [[nodiscard]] std::int64_t now_ns() const noexcept override {
            if (++reads <= last) return 0;
            if (reads == last + 1) jumped = std::chrono::steady_clock::now();
            return 1'000'000'000'000;
        }
        int last;
        mutable int reads = 0;
        mutable std::chrono::steady_clock::time_point jumped{};
    };
    using Seconds = std::chrono::duration<double>;
    PlannerOptions options{.deployments = {.max_types = 1}, .machines = true, .simulated_requests = 20'000};
    options.targets = {.ttft_p90_s = 0.15, .tpot_p90_s = 0.05};
    options.search.solve.time_limit = 100;
    const auto request = asked({kind("long", {3037, 69}, 1.69), kind("chat", {1087, 426}, 2.36)}, 320);
    const auto after = [&](int last) {
        const Jumping clock(last);
        Context context;
        context.clock = &clock;
        static_cast<void>(plan_serving(request, options, milp::find_solver(), context));
        const Seconds rest = std::chrono::steady_clock::now() - clock.jumped;
        return std::pair(clock.reads, rest.count());
    };
    const auto begin = std::chrono::steady_clock::now();
    const int reads = after(std::numeric_limits<int>::max()).first;
    const Seconds whole = std::chrono::steady_clock::now() - begin;
    for (const double part : {0.3, 0.5, 0.7, 0.9}) {
        CAPTURE(part, whole.count());
        CHECK(after(static_cast<int>(part * reads)).second < 0.1 * whole.count() + 0.05);
    }
}

TEST_CASE("a plan of the highest rate is proved by a bound alone", "[serving]") {
    if (no_solver()) return;
    auto request = asked({kind("a", {500, 250}, 1), kind("b", {2000, 50}, 1)}, 16);
    request.gpus.push_back(priced("A100-80GB", 1.8));
    request.available.push_back(16);
    for (const bool fails : {false, true})
        for (const int most : {0, 1}) {
            PlannerOptions options{.max_deployments = most, .goal = serving::Goal::most_rate};
            int calls = 0;
            const milp::AnySolver open(
                "open", [&](const milp::Model& model, const milp::SolveOptions& o, const Context& context) {
                    auto found = milp::find_solver()(model, o, context);
                    found.status = milp::Status::time_limit;
                    found.bound = milp::infinity;
                    if (fails && ++calls == 1) return milp::Solution{.status = milp::Status::time_limit};
                    return found;
                });
            const auto plan = plan_serving(request, options, open);
            CAPTURE(fails, most);
            REQUIRE(plan.has_plan());
            CHECK(plan.rate_bound == milp::infinity);
            CHECK_FALSE(plan.optimal);
        }
}

TEST_CASE("running replicas do not count as left out", "[serving]") {
    if (no_solver()) return;
    const auto solver = milp::find_solver();
    auto request = asked({kind("a", {3000, 100}, 1)}, 16);
    request.gpus.push_back(priced("A100-80GB", 1.8));
    request.available.push_back(16);
    PlannerOptions options;
    options.targets = {.ttft_p90_s = 0.25, .tpot_p90_s = 0.03};
    const auto all = serving::detail::all_deployments(request, options);
    options.max_deployments = 0;
    const Context context;
    const serving::detail::RentalInstance whole(request, options, solver, context);
    options.max_deployments = 1;
    int slow = 0;
    for (const auto& deployment : all.deployments) {
        PlannedReplicas running{request.models[0].model.name, deployment, 1};
        const serving::detail::RentalInstance some(request, options, solver, context, {running});
        int usable = 0;
        for (const auto& one : some.considered().problem.configurations) usable += one.throughput[0] > 0;
        CHECK(some.considered().left_out == static_cast<int>(whole.considered().deployments.size()) - usable);
        slow += usable < static_cast<int>(some.considered().deployments.size());
    }
    CHECK(slow > 0);
}

TEST_CASE("a plan is called optimal only if the bound agrees", "[serving]") {
    if (no_solver()) return;
    Rng rng(5);
    int proved = 0, open = 0;
    for (int i = 0; i < 4; ++i) {
        auto request = asked(
            {kind("a", {500, 250}, 0.5 + 4 * rng.uniform()), kind("b", {2000, 50}, 0.2 + 2 * rng.uniform())});
        request.gpus.push_back(priced("A100-80GB", 1.8));
        request.available.push_back(64);
        PlannerOptions options;
        options.max_deployments = i % 3 == 0 ? 2 : 40;
        options.machines = i % 2 == 1;
        if (i % 4 < 2) options.targets = {.ttft_p90_s = 0.3 + rng.uniform(), .tpot_p90_s = 0.05};
        const auto plan = plan_serving(request, options);
        REQUIRE(plan.has_plan());
        CAPTURE(i, plan.cost, plan.cost_bound);
        CHECK(plan.optimal == (plan.status == milp::Status::optimal));
        CHECK(plan.optimal == (plan.cost - plan.cost_bound <= 1e-3 * plan.cost));
        CHECK(plan.message.empty() == plan.optimal);
        (plan.optimal ? proved : open) += 1;
        // The bound holds for the deployments that were left out, too.
        options.max_deployments = 0;
        const auto whole = plan_serving(request, options);
        CHECK(plan.cost_bound <= whole.cost * (1 + 1e-6));
        CHECK(whole.cost <= plan.cost * (1 + 1e-6));
    }
    CHECK(proved > 0);
    CHECK(open > 0);
}

TEST_CASE("idle GPUs of rented machines serve before there is no plan", "[serving]") {
    if (no_solver()) return;
    const auto request =
        asked({kind("a", {500, 250}, 3.25), kind("b", {500, 250}, 2.09), kind("c", {3000, 100}, 5.20)}, 16);
    PlannerOptions options;
    options.machines = true;
    options.targets = {.ttft_p90_s = 0.44, .tpot_p90_s = 0.096};
    const auto plan = plan_serving(request, options);
    REQUIRE(plan.has_plan());
    CHECK(gpus_of(plan) == 16);
    for (const auto& latency : plan.latencies) CHECK(latency.met);
}

TEST_CASE("replanning keeps kinds apart if the cheapest plan does", "[serving]") {
    if (no_solver()) return;
    auto request = asked({kind("a", {200, 600}, 14.19, {.ttft_p90_s = 0.5, .tpot_p99_s = 0.039}),
                          kind("b", {8000, 50}, 8.7, {.ttft_p90_s = 3.09})});
    const auto plan = plan_serving(request);
    REQUIRE(plan.separate);
    const auto same = replan(request, plan.replicas, {}, milp::find_solver());
    CHECK(same.plan.cost == Catch::Approx(plan.cost));
    CHECK((same.starts == 0 && same.stops == 0));
    CHECK(same.cost_free == Catch::Approx(plan.cost));
    // A replica that served one kind serves the other one without a start.
    std::swap(request.models[0].workloads[0].rate, request.models[0].workloads[1].rate);
    const auto swapped = replan(request, plan.replicas, {}, milp::find_solver());
    REQUIRE(swapped.plan.has_plan());
    int now = 0, then = 0;
    for (const auto& replicas : swapped.plan.replicas) now += replicas.count;
    for (const auto& replicas : plan.replicas) then += replicas.count;
    CHECK(now - swapped.starts == then - swapped.stops);
    CHECK(swapped.starts < now);
}

TEST_CASE("a limit that would do is one that was planned with", "[serving]") {
    if (no_solver()) return;
    struct Case {
        std::vector<int> available;
        double budget;
        std::vector<ServingWorkload> kinds;
        LatencyTargets targets;
    };
    const double any = std::numeric_limits<double>::infinity();
    const std::vector<Case> cases{
        {{7, 11}, 51, {kind("a", {1500, 30}, 8.34), kind("b", {500, 250}, 12.55)}, {.ttft_p90_s = 0.94}},
        {{12, 15},
         any,
         {kind("a", {3000, 100}, 4.00), kind("b", {500, 250}, 16.74)},
         {.ttft_p90_s = 1.41, .tpot_p90_s = 0.06}},
        {{4, 12},
         any,
         {kind("a", {500, 250}, 9.37), kind("b", {3000, 100}, 13.58)},
         {.ttft_p90_s = 1.15, .tpot_p90_s = 0.06}},
        {{2, 3}, any, {kind("a", {500, 250}, 9.37)}, {.ttft_p90_s = 1.15}},
    };
    int claims = 0;
    // With sanitizers only the first and the last.
    const std::size_t step = testing_support::stride == 1 ? 1 : cases.size() - 1;
    for (std::size_t i = 0; i < cases.size(); i += step) {
        const auto& c = cases[i];
        CAPTURE(i);
        ServingRequest request{
            {priced("H100", 3), priced("A100-80GB", 1.8)}, c.available, c.budget, {{llama3_70b(), c.kinds}}};
        PlannerOptions options;
        options.targets = c.targets;
        const auto plan = plan_serving(request, options);
        for (const auto& text : plan.binding) {
            CAPTURE(text);
            if (text.find("would do") == text.npos || text.starts_with("no single limit")) continue;
            ++claims;
            const double enough = number_after(text, "; ");
            auto changed = request;
            if (text.starts_with("budget")) {
                changed.budget = enough;
                CHECK(enough > request.budget);
                CHECK(plan_serving(changed, options).has_plan());
                continue;
            }
            const std::size_t g = text.find("'H100'") != text.npos ? 0 : 1;
            changed.available[g] = static_cast<int>(enough);
            CHECK(plan_serving(changed, options).has_plan());
            changed.available[g] -= 1;
            CHECK_FALSE(plan_serving(changed, options).has_plan());
        }
    }
    CHECK(claims > 0);
}

TEST_CASE("a batch on machines is proved to be the fastest", "[serving]") {
    if (no_solver()) return;
    auto request = asked({{"chat", {496, 510}, 300}}, 8);
    request.budget = 30;
    PlannerOptions options;
    options.machines = true;
    const auto plan = plan_serving(request, options);
    REQUIRE(plan.has_plan());
    CHECK(plan.makespan == Catch::Approx(plan.bound));
    CHECK((plan.optimal && plan.message.empty()));
}

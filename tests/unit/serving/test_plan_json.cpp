// SPDX-License-Identifier: Apache-2.0
// Documents of serving plans: what they say, and replicas read from them.
#include "support/catch.hpp"

#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;
using Catch::Matchers::ContainsSubstring;

namespace {

ServingRequest request() {
    return request_from_json(R"({"budget": 30, "gpus": {"H100": {"available": 8}, "A40": {"available": 8}},
        "models": {"Llama-3-8B": {"workloads": {"chat": {"input": 496, "output": 510, "requests": 300},
                                                "code": {"input": 9, "output": 9, "requests": 1}}}}})");
}

ServingPlan plan() {
    ServingPlan plan;
    plan.status = milp::Status::optimal;
    plan.makespan = 10;
    plan.bound = std::numeric_limits<double>::infinity();
    plan.cost = 5;
    plan.rented = {4, 0};
    plan.solver = "none";
    plan.replicas.push_back({.model = "Llama-3-8B",
                             .deployment = {"H100 2x2", {{0, 2, 16}, {0, 2, 16}}},
                             .count = 1,
                             .cost = 5,
                             .share = {1, 0},
                             .requests_per_s = {30.25, 2},
                             .source = {Source::measured, Source::estimated}});
    plan.rentals.push_back({"H100", 4, 0, 4, 1, 5});
    return plan;
}

std::vector<std::string> problems_of(const std::string& text) {
    return testing_support::problems_in<InvalidInput>(
        [&] { static_cast<void>(replicas_from_json(text, request(), "p")); });
}

std::vector<std::string> problems_of_served(const std::string& text) {
    return testing_support::problems_in<InvalidInput>(
        [&] { static_cast<void>(served_replicas_from_json(text, request(), {}, "p")); });
}

}  // namespace

TEST_CASE("a plan of a batch, by name", "[serving]") {
    CHECK(plan_to_json(plan(), request(), {}, 0) ==
          R"({"format":"gpusched.serving-plan","version":2,"status":"optimal","makespan":10.0,"bound":null,)"
          R"("optimal":false,"requests_per_s":0.0,"cost":5.0,"cost_per_request":0.0,"rented":{"H100":4},)"
          R"("replicas":[)"
          R"({"model":"Llama-3-8B","deployment":"H100 2x2","count":1,"cost":5.0,"gpus":{"H100":4},"stages":[)"
          R"({"gpu":"H100","degree":2,"layers":16},{"gpu":"H100","degree":2,"layers":16}],)"
          R"("share":{"chat":1.0},)"
          R"("requests_per_s":{"chat":30.25,"code":2.0},"means":"a pipeline of 2 stages (16 + 16 layers), )"
          R"(each a )"
          R"(tensor-parallel group of 2 H100; 4 GPUs","source":{"chat":"measured","code":"estimated"}}],)"
          R"("deployments":0,"left_out":0,"solver":"none","message":"","rentals":[{"gpu":"H100","count":4,)"
          R"("spot":0,)"
          R"("used":4,"per_rental":1,"cost":5.0}],"calibration":{"factors":[],"residuals":[]}})");
    ServingPlan none;
    CHECK_THAT(plan_to_json(none, request(), {}, 0),
               ContainsSubstring(R"("status":"failed","makespan":null,"bound":0.0,)"));
    none.binding = {"budget: 1 $/h; 6 $/h would do"};  // why there is none
    CHECK_THAT(plan_to_json(none, request(), {}, 0),
               Catch::Matchers::EndsWith(R"("latencies":[],"binding":["budget: 1 $/h; 6 $/h would do"]})"));
}

TEST_CASE("plans for rates and replannings have more fields", "[serving]") {
    auto rates = plan();
    rates.rate = 3;
    rates.cost_bound = 4.5;
    rates.replicas[0].within_targets = {2.5, 1};
    rates.replicas[0].latency_source = {Source::measured, Source::estimated};
    rates.latencies.push_back({.model = "Llama-3-8B", .workload = "chat", .rate = 3, .ttft_p90_s = 0.5});
    const auto text =
        plan_to_json(rates, request(),
                     {.price_ranges = std::vector<PriceRange>{{.gpu = "H100", .price = 2, .low = 1}}}, 0);
    CHECK_THAT(text, ContainsSubstring(R"("within_targets":{"chat":2.5,"code":1.0},"latency_source":{"chat":)"
                                       R"("measured","code":"estimated"}}])"));
    CHECK_THAT(
        text,
        ContainsSubstring(
            R"("rate":3.0,"cost_bound":4.5,"rate_bound":0.0,"capacity":1.0,"separate":false,)"
            R"("latencies":[{"model":"Llama-3-8B","workload":"chat","rate":3.0,"ttft_p50_s":null,)"
            R"("ttft_p90_s":0.5,"ttft_p99_s":null,"ttft_source":"estimated","tpot_p50_s":null,)"
            R"("tpot_p90_s":null,"tpot_p99_s":null,"tpot_source":"estimated","met":true}],"binding":[],)"
            R"("price_ranges":[{"gpu":"H100","spot":false,"price":2.0,"low":1.0,"high":null,)"
            R"("proven":true}]})"));
    auto open = rates;  // no bound is known
    open.rate_bound = std::numeric_limits<double>::infinity();
    CHECK_THAT(plan_to_json(open, request(), {}, 0), ContainsSubstring(R"("rate_bound":null,)"));
    const ReplanResult change{.plan = rates, .starts = 1, .stops = 2, .cost_free = 4};
    CHECK_THAT(plan_to_json(rates, request(), {.change = &change}, 0),
               Catch::Matchers::EndsWith(
                   R"("binding":[],"starts":1,"stops":2,"makespan_kept":null,"makespan_free":null,)"
                   R"("cost_free":4.0})"));
    CHECK_THAT(plan_to_json(plan(), request(), {.change = &change}, 0),
               Catch::Matchers::EndsWith(R"("makespan_kept":null,"makespan_free":null})"));
}

TEST_CASE("curves and sweeps hold whole plans", "[serving]") {
    CHECK_THAT(
        curve_to_json({{3, {.ttft_p90_s = 0.5}, plan()}}, request(), 0),
        Catch::Matchers::StartsWith(
            R"({"format":"gpusched.serving-curve","version":1,"points":[{"rate":3.0,"targets":{"ttft_p90_s":)"
            R"(0.5},"plan":{"format":"gpusched.serving-plan","version":2,"status":"optimal",)"));
    CHECK_THAT(
        sweep_to_json({{6, plan()}, {7, {}}}, request(), 0),
        Catch::Matchers::StartsWith(
            R"({"format":"gpusched.serving-sweep","version":2,"plans":[{"budget":6.0,"plan":{"format":)"));
    CHECK(sweep_to_json({}, request(), 0) == R"({"format":"gpusched.serving-sweep","version":2,"plans":[]})");
}

TEST_CASE("a plan of another request has no document", "[serving]") {
    auto other = request();
    other.gpus.pop_back();
    CHECK_THROWS_MESSAGE(plan_to_json(plan(), other), InvalidInput,
                         "plan.rented 2 elements one per GPU type 1");
    auto strange = plan();
    strange.replicas[0].deployment.stages[0].gpu = 2;
    CHECK_THROWS_MESSAGE(plan_to_json(strange, request()), InvalidInput, "plan.replicas[0] stage.gpu 2");
    strange = plan();
    strange.replicas[0].share.pop_back();
    CHECK_THROWS_MESSAGE(plan_to_json(strange, request()), InvalidInput,
                         "plan.replicas[0] number each 2 workloads 'Llama-3-8B'");
    strange = plan();
    strange.rate = 1;  // but nothing within targets
    CHECK_THROWS_AS(plan_to_json(strange, request()), InvalidInput);
}

TEST_CASE("written replicas are read for the types of another request", "[serving]") {
    const auto text = plan_to_json(plan(), request());
    const auto running = replicas_from_json(text, request());
    REQUIRE(running.size() == 1);
    CHECK(running[0].model == "Llama-3-8B");
    CHECK(running[0].count == 1);
    CHECK(running[0].deployment.stages == plan().replicas[0].deployment.stages);
    auto turned = request();
    std::swap(turned.gpus[0], turned.gpus[1]);
    CHECK(replicas_from_json(text, turned)[0].deployment.stages ==
          std::vector<Stage>{{1, 2, 16}, {1, 2, 16}});
    turned.gpus.pop_back();
    CHECK(replicas_from_json(text, turned)[0].deployment.stages.empty());
    CHECK(replicas_from_json(R"([{"model": "m", "count": 2, "stages": [], "means": "any"}])", request())[0]
              .count == 2);
}

TEST_CASE("every mistake in a running plan is reported with its place", "[serving]") {
    CHECK_THAT(
        problems_of(
            R"({"replicas": [{"model": 3, "count": -1, "stages": [{"gpu": "A40", "degree": "x"}]}, "none",
                          {"stages": {}}], "status": 7})"),
        MentionsEach({"p /replicas/0/model string 3", "p /replicas/0/count 0 2147483647 -1",
                      "p /replicas/0/stages/0/degree integer \"x\"",
                      "p /replicas/0/stages/0 'layers' missing", "p /replicas/1 object \"none\"",
                      "p /replicas/2/stages array object", "p /replicas/2 'model' missing",
                      "p /replicas/2 'count' missing"}));
    CHECK_THAT(problems_of("{}"), MentionsEach({"p 'replicas' missing"}));
    CHECK_THAT(problems_of(R"({"format": "gpusched.serving-sweep", "version": 1, "plans": []})"),
               MentionsEach({R"(p /format "gpusched.serving-plan" "gpusched.serving-sweep")"}));
    CHECK_THAT(problems_of(R"({"version": 3, "replicas": []})"), MentionsEach({"p /version 1 2 3"}));
    CHECK_THAT(problems_of(R"("H100")"), MentionsEach({"p serving plan list replicas \"H100\""}));
    const std::string many = R"({"model": "m", "count": 2147483647, "stages": []})";
    CHECK_THAT(problems_of("[" + many + "," + many + "]"), MentionsEach({"p count 4294967294 0 1000000000"}));
}

TEST_CASE("serving replicas are read as written, and by names", "[serving]") {
    auto given = plan();
    given.replicas[0].share = {1, 1};
    const auto served = served_replicas_from_json(plan_to_json(given, request()), request());
    REQUIRE(served.size() == 1);
    CHECK(served[0].model == "Llama-3-8B");
    CHECK(served[0].deployment == given.replicas[0].deployment);
    CHECK(served[0].count == 1);
    CHECK(served[0].share == given.replicas[0].share);
    CHECK(served[0].requests_per_s == given.replicas[0].requests_per_s);
    CHECK(served[0].source == given.replicas[0].source);
    // What is not said is what the planner would believe.
    const std::string mine = R"([{"model": "Llama-3-8B", "deployment": "H100 1x2", "count": 2, "means": "any",
                                 "share": {"code": 0.5}, "requests_per_s": {"chat": 7}}])";
    auto asked = request();
    asked.measured = {{"Llama-3-8B", "H100 1x2", "code", 40}};
    const auto own = served_replicas_from_json(mine, asked).at(0);
    CHECK(own.deployment == parse_deployment("H100 1x2", llama3_8b(), asked.gpus));
    CHECK(own.share == std::vector{0.0, 0.5});
    CHECK(own.requests_per_s == std::vector{7.0, 40.0});
    CHECK(own.source == std::vector{Source::calibrated, Source::measured});
    EstimateOptions slow;
    slow.error = EstimateError::p90;
    CHECK(served_replicas_from_json(mine, request(), slow)[0].requests_per_s[1] <
          served_replicas_from_json(mine, request())[0].requests_per_s[1]);
}

TEST_CASE("every mistake in serving replicas is reported with its place", "[serving]") {
    CHECK_THAT(
        problems_of_served(R"([{"model": "Llama-3-8B", "count": -1, "share": {"chat": "x"}}, {"count": 1}])"),
        MentionsEach({"p /0/count 0 2147483647 -1", "p /0/share/chat number \"x\"", "p /1 'model' missing",
                      "p /1 'share' missing"}));
    CHECK_THAT(
        problems_of_served(
            R"({"replicas": [{"model": "Llama-3-8C", "count": 1, "share": {}},
                  {"model": "Llama-3-8B", "count": 1, "share": {"chatt": 1}, "source": {"x": "measured"}},
                  {"model": "Llama-3-8B", "count": 1, "deployment": "H1OO 1x1", "share": {}},
                  {"model": "Llama-3-8B", "count": 1, "share": {},
                   "stages": [{"gpu": "L4", "degree": 1, "layers": 32}]},
                  {"model": "Llama-3-8B", "count": 1, "share": {}, "stages": []}]})"),
        MentionsEach({"p /replicas/0/model Llama-3-8B, found 'Llama-3-8C' mean 'Llama-3-8B'",
                      "p /replicas/1/share/chatt chat code found 'chatt' mean 'chat'",
                      "p /replicas/1 'deployment' 'stages' missing", "p /replicas/1/source/x chat code 'x'",
                      "p /replicas/2/deployment 'H1OO 1x1' 'TYPE SxD' S stages D H100 A40 'H100 2x1' 3x1'",
                      "p /replicas/3/stages/0/gpu H100 A40 'L4'",
                      "p /replicas/4 deployment '' stages none least one"}));
}

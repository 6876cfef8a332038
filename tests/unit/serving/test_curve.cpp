// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;

namespace {

/// Two models with a kind of the same name, on H100.
ServingRequest two_models() {
    auto gpu = gpu_type("H100");
    gpu.price = 3;
    return {{gpu},
            {64},
            std::numeric_limits<double>::infinity(),
            {{llama3_70b(), {{"chat", {500, 250}, 0, 3}, {"code", {500, 250}, 0, 1, {.tpot_p90_s = 0.6}}}},
             {llama3_8b(), {{"chat", {500, 250}, 0, 5, {.tpot_p90_s = 0.9}}}}}};
}

/// What is wrong with rates.
std::vector<std::string> refused(const std::map<std::string, double>& rates) {
    return testing_support::problems_in<InvalidInput>(
        [&] { static_cast<void>(with_rates(two_models(), {.by_kind = rates})); });
}

}  // namespace

TEST_CASE("rates by kind, with the model if several have the kind", "[serving]") {
    const auto asked = with_rates(two_models(), {.by_kind = {{"Llama-3-70B/chat", 2}, {"code", 4}}});
    CHECK(asked.models[0].workloads[0].rate == 2);
    CHECK(asked.models[0].workloads[1].rate == 4);
    CHECK(asked.models[1].workloads[0].rate == 0);
    CHECK_THAT(refused({{"chat", 1}}), MentionsEach({"rate 'chat' 'Llama-3-70B/chat' 'Llama-3-8B/chat'"}));
    CHECK_THAT(refused({{"code", 1}, {"Llama-3-70B/code", 1}}),
               MentionsEach({"rate 'Llama-3-70B/code' 'code' same kind"}));
    CHECK(refused({{"Llama-3-8B/code", 1}, {"chatt", 1}}).size() == 2);
    // A kind whose name reads like a model's and another's: the full name goes first, and both can be named.
    auto odd = two_models();
    odd.models[0].workloads[1].name = "Llama-3-8B/chat";
    odd = with_rates(odd, {.by_kind = {{"Llama-3-8B/chat", 7}, {"Llama-3-70B/Llama-3-8B/chat", 8}}});
    CHECK(odd.models[0].workloads[1].rate == 8);
    CHECK(odd.models[1].workloads[0].rate == 7);
}

TEST_CASE("targets of a curve: its sets, those of the options, the shortest of the kinds' own", "[serving]") {
    if (milp::available_solvers().empty()) return;
    PlannerOptions options;
    options.targets.ttft_p90_s = 4;
    options.targets.ttft_p99_s = 5;
    const auto solver = milp::find_solver("auto");
    const auto points = curve(two_models(), {}, {{}, {.ttft_p90_s = 3, .tpot_p90_s = 0.8}}, options, solver);
    REQUIRE(points.size() == 2);
    CHECK(points[0].targets == LatencyTargets{.ttft_p90_s = 4, .ttft_p99_s = 5, .tpot_p90_s = 0.6});
    CHECK(points[1].targets == LatencyTargets{.ttft_p90_s = 3, .ttft_p99_s = 5, .tpot_p90_s = 0.8});
    for (const auto& point : points) {
        REQUIRE(point.plan.has_plan());
        for (const auto& kind : point.plan.latencies) {
            CHECK(kind.met);
            CHECK(*kind.ttft_p99_s <= 5);
        }
    }
    // A target of the options that no replica keeps counts for every set.
    options.targets.ttft_p99_s = 1e-4;
    for (const auto& point : curve(two_models(), {5}, {{.ttft_p90_s = 3}}, options, solver))
        CHECK_FALSE(point.plan.has_plan());
}

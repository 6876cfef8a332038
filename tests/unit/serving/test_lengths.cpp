// SPDX-License-Identifier: Apache-2.0
// Workloads whose requests have different lengths: a distribution, or a trace.
#include "support/real_data.hpp"

#include <gpusched/core/core.hpp>
#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;

namespace lengths_tests {

bool no_solver() { return milp::available_solvers().empty(); }

/// Llama-3-70B on H100 at 3 $/h.
ServingRequest asked(std::vector<ServingWorkload> kinds, int available = 256) {
    auto gpu = gpu_type("H100");
    gpu.price = 3;
    return {{gpu}, {available}, std::numeric_limits<double>::infinity(), {{llama3_70b(), std::move(kinds)}}};
}

/// Requests with a long tail of prompts and answers.
std::vector<WeightedShape> long_tail(std::size_t count) {
    Rng rng(5);
    std::vector<WeightedShape> lengths;
    const auto tail = [&](double median) {
        const double u = std::max(1e-6, 1 - rng.uniform());
        return static_cast<int>(std::clamp(median / 2 / std::sqrt(u), 10.0, 6 * median));
    };
    for (std::size_t i = 0; i < count; ++i) {
        const int input = tail(1000);
        lengths.push_back({{input, tail(200)}, 1});
    }
    return lengths;
}

double percentile_of(std::vector<double> values, double percent) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(std::ceil(percent / 100 * static_cast<double>(values.size()))) -
                  1];
}

/// A folder with a trace and a request that names it.
struct Files {
    std::filesystem::path folder = std::filesystem::temp_directory_path() / "gpusched_lengths";
    explicit Files(const std::string& trace, const std::string& workload, const std::string& name = "t.csv") {
        std::filesystem::create_directories(folder);
        if (!trace.empty()) write_file((folder / name).string(), trace);
        write_file(request(), R"({"gpus": {"H100": {"available": 8}}, "models": {"Llama-3-8B": {"workloads":
                                 {"w": )" +
                                  workload + "}}}}");
    }
    Files(const Files&) = delete;
    Files& operator=(const Files&) = delete;
    ~Files() { std::filesystem::remove_all(folder); }
    [[nodiscard]] std::string request() const { return (folder / "r.json").string(); }
};

const std::string burst = "Timestamp,Request tokens,Response tokens\n";

TEST_CASE("a distribution equals workloads of its lengths that are routed together", "[serving]") {
    // The same requests as two workloads; half of each, so the pooled percentiles are those of all requests.
    const RequestShape chat{500, 250}, code{3000, 50};
    auto mixed = asked({{.name = "all", .rate = 4, .lengths = {{chat, 1}, {code, 1}}}});
    auto apart = asked({{"chat", chat, 0, 2}, {"code", code, 0, 2}});
    const auto problem = serving_instance(mixed).problem, of_kinds = serving_instance(apart).problem;
    REQUIRE_FALSE(problem.configurations.empty());
    for (const auto& c : problem.configurations)
        for (const auto& other : of_kinds.configurations)
            if (c.name == other.name)
                CHECK(c.throughput[0] ==
                      Catch::Approx(2 / (1 / other.throughput[0] + 1 / other.throughput[1])));
    const auto deployment = parse_deployment("H100 1x4", llama3_70b(), mixed.gpus);
    const auto rate = [&](const ServingProblem& of, std::size_t w) {
        for (const auto& c : of.configurations)
            if (c.name == "Llama-3-70B: H100 1x4") return c.throughput[w];
        FAIL("no such deployment");
        return 0.0;
    };
    const LatencyOptions options{.requests = 40'000, .seed = 3, .warm_up = 0.1};
    const auto one =
        simulate_latency(mixed, {{"Llama-3-70B", deployment, 2, 0, {1.0}, {rate(problem, 0)}}}, options);
    const auto two = simulate_latency(
        apart, {{"Llama-3-70B", deployment, 2, 0, {1.0, 1.0}, {rate(of_kinds, 0), rate(of_kinds, 1)}}},
        options);
    REQUIRE(one.kinds.size() == 1);
    std::vector<double> ttft, tpot;
    for (const auto& kind : two.kinds) {
        ttft.insert(ttft.end(), kind.ttft.begin(), kind.ttft.end());
        tpot.insert(tpot.end(), kind.tpot.begin(), kind.tpot.end());
    }
    for (const double percent : {50.0, 90.0, 95.0, 99.0}) {
        INFO(percent);
        CHECK(one.kinds[0].ttft_percentile(percent) ==
              Catch::Approx(percentile_of(ttft, percent)).epsilon(0.1));
        CHECK(one.kinds[0].tpot_percentile(percent) ==
              Catch::Approx(percentile_of(tpot, percent)).epsilon(0.05));
        // Half of the answers are short, so the median lies in a gap.
        if (percent > 50)
            CHECK(one.percentile(percent) == Catch::Approx(two.percentile(percent)).epsilon(0.05));
    }
}

TEST_CASE("the throughput of many lengths is that of all of them", "[serving]") {
    const auto lengths = long_tail(2000);
    const auto request = asked({{.name = "w", .rate = 5, .lengths = lengths}});
    const auto instance = serving_instance(request);
    REQUIRE_FALSE(instance.deployments.empty());
    for (std::size_t c = 0; c < instance.deployments.size(); ++c) {
        double seconds = 0;
        for (const auto& each : lengths)
            seconds +=
                1 / estimate_throughput(llama3_70b(), request.gpus, instance.deployments[c], each.shape)
                        .requests_per_s;
        INFO(instance.deployments[c].name);
        CHECK(instance.problem.configurations[c].throughput[0] ==
              Catch::Approx(static_cast<double>(lengths.size()) / seconds).epsilon(0.05));
    }
}

TEST_CASE("targets bound percentiles over all requests of a workload", "[serving]") {
    if (no_solver()) return;
    // One request in fifty has a prompt that no deployment reads in time.
    const RequestShape usual{500, 200}, rare{60'000, 200};
    PlannerOptions options{.deployments = {.max_types = 1}};
    options.targets = {.ttft_p90_s = 0.6, .tpot_p90_s = 0.1};
    const auto apart = plan_serving(asked({{"usual", usual, 0, 4.9}, {"rare", rare, 0, 0.1}}), options);
    CHECK_FALSE(apart.has_plan());
    const auto pooled =
        plan_serving(asked({{.name = "w", .rate = 5, .lengths = {{usual, 49}, {rare, 1}}}}), options);
    REQUIRE(pooled.has_plan());
    REQUIRE(pooled.latencies.size() == 1);
    CHECK(pooled.latencies[0].met);
    CHECK(*pooled.latencies[0].ttft_p90_s <= 0.6);
    CHECK(*pooled.latencies[0].ttft_p99_s > 1);
    // The 99th percentile is one of the rare requests, which no deployment can serve in time.
    options.targets = {.ttft_p99_s = 0.6};
    const auto none =
        plan_serving(asked({{.name = "w", .rate = 5, .lengths = {{usual, 49}, {rare, 1}}}}), options);
    REQUIRE_FALSE(none.has_plan());
    REQUIRE_FALSE(none.binding.empty());
    CHECK_THAT(none.binding[0], Mentions("workload 'w' ttft_p99_s 0.6 less than"));
}

TEST_CASE("a plan for a distribution keeps its targets in other simulations; one for means does not",
          "[serving]") {
    if (no_solver()) return;
    auto lengths = long_tail(3000);
    for (std::size_t i = 0; i < lengths.size(); i += 7) lengths[i].shape.input *= 5;  // documents
    const auto request = asked({{.name = "w", .rate = 5, .lengths = lengths}});
    double input = 0, output = 0;
    for (const auto& each : request.models[0].workloads[0].lengths)
        input += each.shape.input / 3000.0, output += each.shape.output / 3000.0;
    const auto means = asked({{"w", {static_cast<int>(input), static_cast<int>(output)}, 0, 5}});
    PlannerOptions options{.deployments = {.max_types = 1}};
    options.targets = {.ttft_p90_s = 0.28, .tpot_p95_s = 0.06, .latency_p90_s = 25};
    const auto plan = plan_serving(request, options), of_means = plan_serving(means, options);
    REQUIRE(plan.has_plan());
    REQUIRE(of_means.has_plan());
    // The percentile that real lengths get, over the one that the plan promises.
    const auto late = [&](const ServingPlan& of) {
        auto replicas = of.replicas;
        for (auto& r : replicas)  // the throughput for the real lengths
            for (const auto& c : serving_instance(request).problem.configurations)
                if (c.name == "Llama-3-70B: " + r.deployment.name) r.requests_per_s = c.throughput;
        double worst = 0;
        for (const std::uint64_t seed : {11, 12, 13}) {
            const auto found = simulate_latency(
                request, replicas, {.rate = 5, .requests = 20'000, .seed = seed, .warm_up = 0.1});
            worst = std::max(worst, found.kinds[0].ttft_percentile(90) / *of.latencies[0].ttft_p90_s);
        }
        return worst;
    };
    CHECK(late(plan) <= 1.1);
    CHECK(late(of_means) > 1.5);
    CHECK(*plan.latencies[0].latency_p90_s <= 25);
    REQUIRE(plan.latencies.size() == 1);
    CHECK(plan.latencies[0].tpot_p95_s);
    CHECK(plan.latencies[0].latency_p90_s);
    CHECK_FALSE(plan.latencies[0].latency_p99_s);  // has no target
}

TEST_CASE("a target of the time to the last token", "[serving]") {
    if (no_solver()) return;
    PlannerOptions options;
    options.targets = {.latency_p99_s = 30};
    const auto request = asked({{"w", {500, 250}, 0, 4}});
    const auto plan = plan_serving(request, options);
    REQUIRE(plan.has_plan());
    CHECK(*plan.latencies[0].latency_p99_s <= 30);
    const auto found =
        simulate_latency(request, plan.replicas, {.requests = 20'000, .seed = 7, .warm_up = 0.1});
    CHECK(found.percentile(99) <= 30 * 1.1);
    options.targets = {.latency_p50_s = 0.1};
    const auto none = plan_serving(request, options);
    REQUIRE_FALSE(none.has_plan());
    REQUIRE_FALSE(none.binding.empty());
    CHECK_THAT(none.binding[0], Mentions("latency_p50_s 0.1 less than idle"));
}

TEST_CASE("deployments must hold the longest request", "[serving]") {
    const std::vector<WeightedShape> lengths{{{500, 200}, 1e6}, {{400'000, 1000}, 1}};
    const auto instance = serving_instance(asked({{.name = "w", .rate = 1, .lengths = lengths}}));
    const auto gpus = asked({}).gpus;
    CHECK_FALSE(instance.deployments.empty());
    for (std::size_t c = 0; c < instance.deployments.size(); ++c) {
        const auto& deployment = instance.deployments[c];
        INFO(deployment.name);
        CHECK((estimate_throughput(llama3_70b(), gpus, deployment, lengths.back().shape).batch >= 1) ==
              (instance.problem.configurations[c].throughput[0] > 0));
    }
    if (no_solver()) return;
    const auto none =
        plan_serving(asked({{.name = "w", .rate = 1, .lengths = {{{5, 2}, 9}, {{9'000'000, 7}, 1}}}}));
    REQUIRE_FALSE(none.has_plan());
    REQUIRE_FALSE(none.binding.empty());
    CHECK_THAT(none.binding[0], Mentions("workload 'w' no deployment longest request 9000000 7"));
}

TEST_CASE("no unmeasured pipelines if a group of one machine holds the longest request", "[serving]") {
    for (const auto& workload : {ServingWorkload{.name = "w", .shape = {500, 250}, .rate = 8},
                                 ServingWorkload{.name = "w", .rate = 8, .lengths = long_tail(500)}}) {
        const auto instance = serving_instance(asked({workload}));
        CHECK_FALSE(instance.deployments.empty());
        for (const auto& deployment : instance.deployments) CHECK(deployment.stages.size() == 1);
    }
}

TEST_CASE("hits of the prefix cache shorten the prompt, not the answer", "[serving]") {
    auto request = asked({{.name = "w", .shape = {4000, 100}, .rate = 1}});
    request.models[0].workloads[0].prefix_hits = 0.5;
    const auto instance = serving_instance(request);
    CHECK_FALSE(instance.deployments.empty());
    for (std::size_t c = 0; c < instance.deployments.size(); ++c) {
        const auto& deployment = instance.deployments[c];
        INFO(deployment.name);
        const auto full = estimate_throughput(llama3_70b(), request.gpus, deployment, {4000, 100});
        const auto rest = estimate_throughput(llama3_70b(), request.gpus, deployment, {2000, 100});
        CHECK(instance.problem.configurations[c].throughput[0] ==
              Catch::Approx(1 / (rest.prefill_s + 99 * full.step_s / full.batch)));
    }
}

TEST_CASE("a trace is read beside its request, with its own rate", "[serving]") {
    const Files files(burst + "10,100,20\n11,300,5\n13,100,20\n14,9,0\n15,0,9\n16,80,1\n",
                      R"({"trace": "t.csv"})");
    const auto request = read_request(files.request());
    REQUIRE(request.models.size() == 1);
    const auto& workload = request.models[0].workloads.at(0);
    CHECK(workload.lengths == std::vector<WeightedShape>{{{80, 1}, 1}, {{100, 20}, 2}, {{300, 5}, 1}});
    CHECK(workload.shape == RequestShape{});
    CHECK(workload.left_out == 2);
    CHECK(workload.rate == Catch::Approx(3 / 6.0));
    CHECK(request_from_json(request_to_json(request)) == request);
    CHECK(read_request(files.request(), {.all = 7}).models[0].workloads[0].rate == 7);
    if (no_solver()) return;
    CHECK_THAT(plan_serving(request).message, Mentions("left out trace 'w' 2"));
}

TEST_CASE("requests arrive as in their trace, at the rate of the workload", "[serving]") {
    const Files files(burst +
                          "10,100,1\n10,100,1\n10,100,1\n10,100,1\n50,100,1\n50,100,1\n50,100,1\n50,100,1\n",
                      R"({"trace": "t.csv", "own_arrivals": true, "rate": 0.04})");
    auto request = read_request(files.request());
    auto& workload = request.models[0].workloads.at(0);
    CHECK(workload.lengths == std::vector<WeightedShape>(8, {{100, 1}, 1}));
    CHECK(workload.arrivals == std::vector<double>{0, 0, 0, 0, 40, 40, 40, 40});
    CHECK(request_from_json(request_to_json(request)) == request);
    // Four at a time on one replica, which reads one prompt after the other.
    const auto deployment = parse_deployment("H100 1x1", llama3_8b(), request.gpus);
    const auto one = estimate_throughput(llama3_8b(), request.gpus, deployment, {100, 1});
    const std::vector<PlannedReplicas> plan{{"Llama-3-8B", deployment, 1, 0, {1.0}, {one.requests_per_s}}};
    const LatencyOptions options{.requests = 800, .seed = 4};
    const auto own = simulate_latency(request, plan, options);
    const auto& ttft = own.kinds.at(0).ttft;
    for (const int place : {1, 2, 3, 4})
        CHECK(own.kinds[0].ttft_percentile(25 * place) ==
              Catch::Approx(one.first_token_s + (place - 1) * one.prefill_s).epsilon(0.01));
    CHECK(ttft.size() == 800);
    CHECK(own.makespan == Catch::Approx(800 / 0.04).epsilon(0.1));
    // Beside a Poisson process, each has its rate.
    request.models[0].workloads.push_back({"other", {100, 1}, 0, 0.12});
    const std::vector<PlannedReplicas> both{
        {"Llama-3-8B", deployment, 1, 0, {1.0, 1.0}, {one.requests_per_s, one.requests_per_s}}};
    const auto mixed = simulate_latency(request, both, options);
    CHECK(static_cast<double>(mixed.kinds.at(0).ttft.size()) == Catch::Approx(200).epsilon(0.2));
    CHECK(mixed.makespan == Catch::Approx(800 / 0.16).epsilon(0.2));
    CHECK(mixed.kinds[1].ttft_percentile(50) == Catch::Approx(one.first_token_s).epsilon(0.01));
    request.models[0].workloads.resize(1);
    request.models[0].workloads[0].arrivals.clear();
    CHECK(simulate_latency(request, plan, options).kinds.at(0).ttft_percentile(90) < 1.1 * one.first_token_s);
    if (no_solver()) return;
    // A plan has room for the bursts.
    auto bursts =
        asked({{.name = "w", .rate = 40, .lengths = std::vector<WeightedShape>(80, {{500, 100}, 1})}});
    PlannerOptions planner{.deployments = {.max_types = 1}};
    planner.targets = {.ttft_p90_s = 0.5};
    const auto smooth = plan_serving(bursts, planner);
    for (int i = 0; i < 80; ++i) bursts.models[0].workloads[0].arrivals.push_back(i < 40 ? 0 : 1);
    const auto room = plan_serving(bursts, planner);
    REQUIRE(smooth.has_plan());
    REQUIRE(room.has_plan());
    CHECK(room.cost > smooth.cost);
    const auto again =
        simulate_latency(bursts, room.replicas, {.requests = 20'000, .seed = 9, .warm_up = 0.1});
    CHECK(again.kinds[0].ttft_percentile(90) <= 0.5 * 1.1);
}

TEST_CASE("traces in other formats", "[serving]") {
    const Files azure("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,48,10\n",
                      R"({"trace": "t.csv", "rate": 2, "prefix_hits": 0.25})");
    const auto first = read_request(azure.request()).models.at(0).workloads.at(0);
    CHECK(first.lengths == std::vector<WeightedShape>{{{48, 10}, 1}});
    CHECK(first.rate == 2);
    CHECK(first.prefix_hits == 0.25);
    const Files mooncake(R"({"timestamp": 500, "input_length": 67, "output_length": 5, "hash_ids": [0, 1]}

{"timestamp": 2500, "output_length": 4, "input_length": 73})",
                         R"({"trace": "t.jsonl"})", "t.jsonl");
    const auto second = read_request(mooncake.request()).models.at(0).workloads.at(0);
    CHECK(second.lengths == std::vector<WeightedShape>{{{67, 5}, 1}, {{73, 4}, 1}});
    CHECK(second.rate == Catch::Approx(0.5));
}

TEST_CASE("mistakes in the lengths of a workload", "[serving]") {
    struct Case {
        const char* trace;
        const char* workload;
        const char* problem;
    };
    const std::string failed = burst + "1,5,0\n", same = burst + "1,5,5\n1,6,6\n", cell = burst + "1,x,5\n";
    const auto at = std::string("r.json /models/Llama-3-8B/workloads/w");
    const Case cases[] = {
        {"", R"({"trace": "none.csv", "rate": 1})", "/trace none.csv"},
        {"", R"({"trace": 3, "rate": 1})", "/trace string 3"},
        {"time,tokens\n", R"({"trace": "t.csv", "rate": 1})", "/trace t.csv:1 column TIMESTAMP missing"},
        {cell.c_str(), R"({"trace": "t.csv", "rate": 1})", "/trace t.csv:2 Request tokens 'x'"},
        {"{\"timestamp\": 1, \"input_length\": 5}", R"({"trace": "t.csv", "rate": 1})",
         "/trace t.csv:1 output_length missing"},
        {"{\"timestamp\": 1,", R"({"trace": "t.csv", "rate": 1})", "/trace t.csv:1"},
        {failed.c_str(), R"({"trace": "t.csv", "rate": 1})", "/trace t.csv no requests"},
        {same.c_str(), R"({"trace": "t.csv"})", "rate missing at once"},
        {"", R"({"lengths": [], "rate": 1})", "/lengths empty"},
        {"", R"({"lengths": 5, "rate": 1})", "/lengths array 5"},
        {"", R"({"lengths": [5], "rate": 1})", "/lengths/0 array input output weight 5"},
        {"", R"({"lengths": [[5]], "rate": 1})", "/lengths/0 array input output weight"},
        {"", R"({"lengths": [[5, 6, 7, 8]], "rate": 1})", "/lengths/0 array input output weight"},
        {"", R"({"lengths": [[0, 6]], "rate": 1})", "/lengths/0/0 integer 1 0"},
        {"", R"({"lengths": [[5, 1.5]], "rate": 1})", "/lengths/0/1 integer 1.5"},
        {"", R"({"lengths": [[5, 6, 0]], "rate": 1})", "/lengths/0/2 above 0 0"},
        {"", R"({"lengths": [[5, 6]]})", "'rate' 'requests' missing"},
        {"", R"({"lengths": [[5, 6]], "input": 3, "rate": 1})", "/input not with lengths"},
        {"", R"({"lengths": [[5, 6]], "trace": "none.csv", "rate": 1})", "/lengths not with trace"},
        {same.c_str(), R"({"trace": "t.csv", "output": 3, "rate": 1})", "/output not with trace"},
        {"", R"({"input": 3, "rate": 1})", "'output' missing"},
        {"", R"({"input": 3, "output": 3, "rate": 1, "prefix_hits": 1})", "/prefix_hits 0 0.99 1"},
        {"", R"({"input": 3, "output": 3, "rate": 1, "left_out": -1})", "/left_out 0 -1"},
        {same.c_str(), R"({"trace": "t.csv", "rate": 1, "own_arrivals": true})", "/own_arrivals at once"},
        {"", R"({"lengths": [[5, 6]], "rate": 1, "own_arrivals": true})", "/own_arrivals needs trace"},
        {"", R"({"input": 5, "output": 6, "rate": 1, "arrivals": [0, 1]})", "/arrivals needs lengths"},
        {"", R"({"lengths": [[5, 6]], "rate": 1, "arrivals": [0, 1]})", "/arrivals 2 1 each lengths"},
        {"", R"({"lengths": [[5, 6], [5, 6]], "rate": 1, "arrivals": [2, 1]})", "/arrivals ascending"},
        {"", R"({"lengths": [[5, 6], [5, 6]], "rate": 1, "arrivals": [2, 2]})", "/arrivals not all equal"},
    };
    for (const auto& each : cases) {
        INFO(each.workload << " with " << each.trace);
        const Files files(each.trace, each.workload);
        const auto problems = testing_support::problems_in<InvalidInput>(
            [&] { static_cast<void>(read_request(files.request())); });
        CHECK(std::any_of(problems.begin(), problems.end(), [&](const std::string& problem) {
            return Mentions(at + each.problem).match(problem) ||
                   Mentions(at + " " + each.problem).match(problem);
        }));
    }
    // A text has no folder.
    const auto problems = testing_support::problems_in<InvalidInput>([] {
        static_cast<void>(request_from_json(
            R"({"gpus": {"H100": {"available": 8}}, "models": {"Llama-3-8B": {"workloads":
                {"w": {"trace": "t.csv", "rate": 1}}}}})"));
    });
    CHECK_THAT(problems, MentionsEach({"request /models/Llama-3-8B/workloads/w/trace lengths"}));
    auto request =
        asked({{.name = "w", .shape = {5, 5}, .rate = 1, .lengths = {{{5, 5}, -1}}, .prefix_hits = 2}});
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { validate(request); }),
               MentionsEach({"workload 'w' input output not with lengths", "'w' lengths weight -1",
                             "'w' prefix_hits 2"}));
}

TEST_CASE("real traces are read as workloads", "[serving][data]") {
    struct Case {
        const char* folder;
        const char* file;
        std::size_t requests;
    };
    for (const auto& each : {Case{"azure-llm-2023", "AzureLLMInferenceTrace_code.csv", 8819},
                             Case{"mooncake", "conversation_trace.jsonl", 12031}}) {
        const auto path = testing_support::real_data(each.folder) / each.file;
        if (!testing_support::is_here(path)) continue;
        const auto text = read_file(path.string());
        CHECK(read_llm_trace(text, each.file).size() == each.requests);
    }
}

}  // namespace lengths_tests

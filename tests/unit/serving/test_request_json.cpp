// SPDX-License-Identifier: Apache-2.0
// Documents of serving requests: read from C++ as from Python, and every mistake told with its place.
#include "support/catch.hpp"

#include <gpusched/core/file.hpp>
#include <gpusched/serving/serving.hpp>

using namespace gpusched;
using namespace gpusched::serving;

namespace request_json_tests {

std::vector<std::string> problems_of(const std::string& text, const RequestRates& rates = {}) {
    return testing_support::problems_in<InvalidInput>(
        [&] { static_cast<void>(request_from_json(text, "r", rates)); });
}

const std::string batch = R"({"budget": 30,
    "gpus": {"H100": {"available": 8}, "mine": {"type": "L40S", "machines": 2, "per_machine": 4,
     "price": 1.5}},
    "models": {"Llama-3-8B": {"workloads": {"chat": {"input": 496, "output": 510, "requests": 300}}}}})";

const std::string arrivals = R"({"format": "gpusched.serving-request", "version": 2,
    "gpus": {"A40": {"available": 16, "minimum": 4, "spot_price": 0.3, "spot_available": 32}},
    "models": {"ours": {"type": "Llama-3-70B", "bytes_per_weight": 1, "workloads": {
        "chat": {"input": 496, "output": 510, "rate": 6.5, "targets": {"tpot_p99_s": 0.1}},
        "code": {"input": 1500, "output": 30, "rate": 2, "x-note": "any"}}}},
    "targets": {"ttft_p90_s": 1, "tpot_p99_s": 0.5},
    "measured": [{"model": "ours", "deployment": "A40 1x4", "workload": "chat", "requests_per_s": 2,
     "ttft_s": 0.5}]})";

/// One workload, GPUs and a budget.
std::string one(const std::string& gpu, const std::string& model, const std::string& workload) {
    return R"({"budget": 1, "gpus": {"g": )" + gpu + R"(}, "models": {"m": )" + model +
           R"("workloads": {"w": )" + workload + "}}}}";
}
const std::string a_gpu = R"({"type": "H100", "available": 1})", a_model = R"({"type": "Llama-3-8B", )",
                  a_load = R"({"input": 1, "output": 1, "requests": 1})";

TEST_CASE("a batch is read with the catalogue and Table 1", "[serving]") {
    const auto request = request_from_json(batch);
    REQUIRE(request.gpus.size() == 2);
    CHECK(request.gpus[0].name == "H100");
    CHECK(request.gpus[0].price == 2.99);
    CHECK(request.gpus[0].tflops == gpu_type("H100").tflops);
    CHECK(request.gpus[1].name == "mine");
    CHECK(request.gpus[1].bandwidth_gb_s == gpu_type("L40S").bandwidth_gb_s);
    CHECK(request.gpus[1].per_machine == 4);
    CHECK(request.available == std::vector{8, 8});
    CHECK(request.budget == 30);
    REQUIRE(request.models.size() == 1);
    CHECK(request.models[0].model == llama3_8b());
    CHECK(request.models[0].workloads == std::vector<ServingWorkload>{{"chat", {496, 510}, 300}});
    CHECK_FALSE(request.has_rates());
}

TEST_CASE("arrivals are read with terms, targets and measurements", "[serving]") {
    const auto request = request_from_json(arrivals);
    CHECK(request.terms == std::vector<RentalTerms>{{4, 0.3, 32}});
    CHECK(std::isinf(request.budget));
    auto model = llama3_70b();
    model.name = "ours";
    model.bytes_per_weight = 1;
    model.bytes_per_kv = 1;  // as the weights have fewer than 16 bits
    REQUIRE(request.models.size() == 1);
    CHECK(request.models[0].model == model);
    CHECK(request.models[0].workloads ==
          std::vector<ServingWorkload>{{"chat", {496, 510}, 0, 6.5, {.ttft_p90_s = 1, .tpot_p99_s = 0.1}},
                                       {"code", {1500, 30}, 0, 2, {.ttft_p90_s = 1, .tpot_p99_s = 0.5}}});
    CHECK(request.measured ==
          std::vector<MeasuredThroughput>{{"ours", "A40 1x4", "chat", 2, 0.5, std::nullopt}});
}

TEST_CASE("a written request is read as the same request", "[serving]") {
    for (const auto& text : {batch, arrivals}) {
        const auto request = request_from_json(text);
        for (const int indent : {0, 2}) {
            const auto written = request_to_json(request, indent);
            CHECK(request_from_json(written) == request);
            CHECK(request_to_json(request_from_json(written), indent) == written);
        }
    }
    CHECK_THAT(
        request_to_json(request_from_json(batch), 0),
        Catch::Matchers::StartsWith(R"({"format":"gpusched.serving-request","version":2,"budget":30.0,)"
                                    R"("gpus":{"H100":{"tflops":)"));
    CHECK_THAT(request_to_json(request_from_json(arrivals), 0),
               Catch::Matchers::ContainsSubstring(
                   R"("available":16,"minimum":4,"spot_price":0.3,"spot_available":32}})"));
    CHECK_THROWS_MESSAGE(request_to_json({.budget = -1}), InvalidInput, "budget");
    CHECK(request_from_json(R"({"budget": 1, "gpus": {}, "models": {}})").gpus.empty());
}

TEST_CASE("a request is read from a file, and written to one", "[serving]") {
    const auto folder = std::filesystem::temp_directory_path() / "gpusched_request_json";
    std::filesystem::create_directories(folder);
    const auto json = (folder / "request.json").string(), yaml = (folder / "request.yaml").string();
    const auto request = request_from_json(arrivals);
    write_request(request, json);
    CHECK(read_request(json) == request);
    CHECK(read_request(json, {.all = 17}).models[0].workloads[0].rate == Catch::Approx(13));
    if (json::reads_yaml()) {
        write_file(yaml, "budget: 2\ngpus: {4090: {available: 3}}\nmodels:\n  Llama-3-8B:\n    workloads:\n"
                         "      chat: {input: 9, output: 9, requests: 1}\n");
        CHECK(read_request(yaml).gpus.at(0).price == 0.53);
        write_file(yaml, "budget: x\n");
        CHECK_THROWS_MESSAGE(read_request(yaml), InvalidInput, yaml + " /budget number \"x\"");
        write_file(yaml, "");
        CHECK_THROWS_MESSAGE(read_request(yaml), InvalidInput, yaml + " one document 0");
    }
    std::filesystem::remove_all(folder);
    CHECK_THROWS_AS(read_request(json), BackendError);
}

TEST_CASE("every mistake in a request is reported with its place, all at once", "[serving]") {
    CHECK_THAT(
        problems_of(R"({"budget": -1, "gpus": {
            "H100": {"available": 1.5, "price": -2, "machine": 3},
            "A40": {"machines": -1}, "L40S": {"available": 1}, "T4": {"price": 1},
            "A100": {"available": 1, "machines": 1},
            "L4": {"available": 1, "price": 1, "spot_price": 0.1},
            "nobody's": {"available": 1}, "described": {"available": 1, "tflops": 3, "price": 1}, "list": []},
          "models": {
            "Llama-3-8B": {"kv_heads": 64, "workloads": {"a": {"input": 0, "output": "x"}, "b": 3}},
            "Llama-3-70B": {"workloads": []}, "mine": {"workloads": {}},
             "other": {"layers": 3, "workloads": {}}},
          "measured": [{"model": "m", "deployment": "A40 1x1", "workload": "a", "requests_per_s": -1}, {}],
          "targets": {"ttft_p90_s": 0}, "typo": 1})"),
        MentionsEach(
            {"r /budget 0 -1",
             "r /gpus/H100/available integer 1.5",
             "r /gpus/H100/price 0 -2",
             "r /gpus/H100/machine unknown type tflops bandwidth_gb_s memory_gb link_gb_s network_gb_s "
             "per_machine price source available machines minimum spot_price spot_available 'machines' "
             "'per_machine'",
             "r /gpus/A40/machines 0 2147483647 -1",
             "r /gpus/L40S 'price' missing",
             "r /gpus/T4 'available' 'machines' missing",
             "r /gpus/A100/machines not with available GPUs",
             "r /gpus/L4 spot_available 0 1 with spot_price",
             "r /gpus/nobody's described bandwidth_gb_s V100 T4 L4 A40 A6000 L40 L40S RTX4090 A100-40GB "
             "A100-80GB "
             "H100 H200 B200 MI300X 'nobody's'",
             "r /gpus/described 'bandwidth_gb_s' missing",
             "r /gpus/described 'memory_gb' missing",
             "r /gpus/list object array",
             "r /models/Llama-3-8B/workloads/a/input integer 1 2147483647 0",
             "r /models/Llama-3-8B/workloads/a/output integer \"x\"",
             "r /models/Llama-3-8B/workloads/b object 3",
             "r /models/Llama-3-8B/kv_heads 64 1 32",
             "r /models/Llama-3-70B/workloads object by name array",
             "r /models/mine described layers Llama-3-8B Llama-3-70B Llama-2-70B 'mine'",
             "r /models/other 'hidden' missing",
             "r /models/other 'heads' missing",
             "r /models/other 'head_size' missing",

             "r /models/other 'vocabulary' missing",
             "r /models/other 'kv_heads' missing",
             "r /models/other 'intermediate' missing",
             "r /measured/0/requests_per_s 0 -1",
             "r /measured/1 'model' missing",
             "r /measured/1 'deployment' missing",
             "r /measured/1 'workload' missing",
             "r /measured/1 'requests_per_s' missing",
             "r /targets/ttft_p90_s above 0, found",
             "r /typo unknown format version budget targets gpus models measured",
             "r /models/Llama-3-8B/workloads/a 'rate' 'requests' missing",
             "r /measured/0 no model 'm'"}));
}

TEST_CASE("parts that are right by themselves must fit together", "[serving]") {
    CHECK(problems_of(one(a_gpu, a_model, a_load)).empty());
    CHECK_THAT(problems_of(one(R"({"type": 3, "available": 1})", a_model, a_load)),
               MentionsEach({"r /gpus/g/type string 3"}));
    CHECK(problems_of(one(R"({"type": "H1O0", "available": 1})", a_model, a_load))
              .at(0)
              .ends_with("found 'H1O0'; did you mean 'H100'?"));
    CHECK_THAT(problems_of(one(a_gpu, R"({"type": "Llama-3-8B", "kv_heads": 64, )", a_load)),
               MentionsEach({"r /models/m/kv_heads 64 1 32"}));
    CHECK_THAT(problems_of(one(a_gpu,
                               R"({"layers": 1, "hidden": 1, "heads": 1, "head_size": 1, "intermediate": 1,
                              "vocabulary": 1, )",
                               a_load)),
               MentionsEach({"r /models/m 'kv_heads' missing"}));
    CHECK_THAT(problems_of(one(R"({"type": "H100", "machines": 1000000000})", a_model, a_load)),
               MentionsEach({"r /gpus/g/machines 125000000 8 GPUs 1000000000"}));
    CHECK_THAT(problems_of(one(R"({"type": "H100", "available": 1, "spot_available": 3})", a_model, a_load)),
               MentionsEach({"r /gpus/g 'spot_price' missing"}));
    CHECK_THAT(problems_of(R"({"budget": 1, "gpus": {"": {"type": "H100", "available": 1}}, "models": {}})"),
               MentionsEach({"r GPU type name '' expected"}));
    const auto measured = [](const std::string& row) {
        auto text = one(a_gpu, a_model, a_load);
        text.pop_back();
        return problems_of(text + R"(, "measured": [)" + row + "]}");
    };
    const auto row = [](const std::string& deployment, const std::string& workload = "w") {
        return R"({"model": "m", "deployment": ")" + deployment + R"(", "workload": ")" + workload +
               R"(", "requests_per_s": 1})";
    };
    CHECK(measured(row("g 1x1")).empty());
    CHECK_THAT(measured(row("g 1x1") + "," + row("g 1x1")), MentionsEach({"r /measured/1 twice 'w' 'm'"}));
    CHECK_THAT(measured(row("g 1x1", "v")), MentionsEach({"r /measured/0 no workload 'v' 'm'"}));
    CHECK_THAT(measured(row("g 33x1")),
               MentionsEach({"r /measured/0/deployment 'g 33x1' at most 32 stages 'm'"}));
    CHECK_THAT(
        problems_of(R"({"gpus": {}, "models": {"Llama-3-8B": {"workloads": {"w": {"input": 1, "output": 1,
                          "rate": 1}}}},
                           "measured": [{"model": "Llama-3-8B", "deployment": "A40 1x1", "workload": "w",
                          "requests_per_s": 1}]})"),
        MentionsEach({"r /gpus none GPU types"}));
}

TEST_CASE("versions: fields that the first one lacks or requires", "[serving]") {
    CHECK_THAT(
        problems_of(R"({"version": 1, "gpus": {"H100": {"machines": 1, "minimum": 2}},
          "models": {"Llama-3-8B": {"workloads": {"w": {"input": 1, "output": 1, "rate": 3, "targets": {}}}}},
          "targets": {}, "measured": [{"model": "Llama-3-8B", "deployment": "H100 1x1", "workload": "w",
          "requests_per_s": 1, "tpot_s": 1}]})"),
        MentionsEach({"r /gpus/H100/machines field version 2 1", "r /gpus/H100/minimum field version 2 1",
                      "r /models/Llama-3-8B/workloads/w/rate field version 2 1",
                      "r /models/Llama-3-8B/workloads/w/targets field version 2 1",
                      "r /targets field version 2 1", "r /measured/0/tpot_s field version 2 1",
                      "r /models/Llama-3-8B/workloads/w 'requests' missing", "r 'budget' missing"}));
    CHECK_THAT(problems_of(R"({"version": 3})"), MentionsEach({"r /version 1 2 3"}));
    CHECK_THAT(problems_of(R"({"format": "gpusched.cluster", "x": 1})"),
               MentionsEach({R"(r /format "gpusched.serving-request" "gpusched.cluster")"}));
}

TEST_CASE("rates of the call take the place of those of the document", "[serving]") {
    const auto silent = one(a_gpu, a_model, R"({"input": 1, "output": 1})");
    CHECK_THAT(problems_of(silent), MentionsEach({"r /models/m/workloads/w 'rate' 'requests' missing"}));
    CHECK(request_from_json(silent, "r", {.all = 5}).models[0].workloads[0].rate == 5);
    CHECK(request_from_json(silent, "r", {.by_kind = {{"w", 2}}}).models[0].workloads[0].rate == 2);
    CHECK_THAT(problems_of(silent, {.by_kind = {{"v", 2}}}), MentionsEach({"rate 'v' one of w"}));
    CHECK_THAT(problems_of(arrivals, {.by_kind = {{"chat", -1}, {"code", 1}}}),
               MentionsEach({"rate['chat'] -1 0"}));
    CHECK_THAT(problems_of(arrivals, {.by_kind = {{"chat", 0}}}), MentionsEach({"rate above 0 some kind"}));
    CHECK_THAT(problems_of(arrivals, {.all = 0}), MentionsEach({"rate 0; finite number above 0"}));
    // A total rate can only be shared out if there is one kind.
    auto two = arrivals;
    for (const std::string rate : {R"(, "rate": 6.5)", R"(, "rate": 2)"})
        two.erase(two.find(rate), rate.size());
    CHECK(problems_of(two, {.all = 5}).size() == 2);
    CHECK(request_from_json(two, "r", {.by_kind = {{"chat", 5}}}).models[0].workloads[0].rate == 5);
}

TEST_CASE("a batch has a budget and no targets; requests with rates need no budget", "[serving]") {
    const auto kinds = [](const std::string& first, const std::string& more = "") {
        return R"({"gpus": {"H100": {"available": 8}}, "models": {"Llama-3-8B": {"workloads": {
                   "w": {"input": 1, "output": 1, )" +
               first + R"(}, "v": {"input": 1, "output": 1, "requests": 1}}}})" + more + "}";
    };
    CHECK_THAT(problems_of(kinds(R"("requests": 1)")), MentionsEach({"r 'budget' missing"}));
    CHECK_THAT(problems_of(kinds(R"("requests": 1, "rate": 0)")), MentionsEach({"r 'budget' missing"}));
    CHECK_THAT(problems_of(kinds(R"("requests": 1)", R"(, "budget": 1, "targets": {"ttft_p90_s": 1})")),
               MentionsEach({"r /targets need rates batch"}));
    CHECK_THAT(problems_of(kinds(R"("requests": 1, "targets": {"ttft_p90_s": 1})", R"(, "budget": 1)")),
               MentionsEach({"r /models/Llama-3-8B/workloads/w/targets need rate batch"}));
    CHECK_THAT(problems_of(kinds(R"("rate": 1)")),
               MentionsEach({"r /models/Llama-3-8B/workloads/v/requests 1 rate batch not together"}));
    CHECK_THAT(problems_of(kinds(R"("rate": "8")")),
               MentionsEach({"r /models/Llama-3-8B/workloads/w/rate number \"8\""}));
    CHECK_THAT(problems_of(R"({"gpus": {}, "models": {}})"), MentionsEach({"r /models no workloads budget"}));
    CHECK_THAT(
        problems_of(R"({"gpus": {}, "models": {"Llama-3-8B": {"workloads": {"w": {"input": 1, "output": 1,
                          "rate": 0}}}}})"),
        MentionsEach({"r /models every rate 0"}));
}

}  // namespace request_json_tests

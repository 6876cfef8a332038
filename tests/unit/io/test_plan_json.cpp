// SPDX-License-Identifier: Apache-2.0
#include "document_cases.hpp"

using namespace gpusched;
using testing_support::document_cases;

TEST_CASE("Valid plan documents are read and written again", "[io]") {
    for (const auto& c : document_cases("plan_valid.txt")) {
        INFO(c.name);
        const auto plan = io::plan_from_json(c.text);
        const auto written = io::plan_to_json(plan);
        CHECK(io::plan_from_json(written) == plan);
        CHECK(io::plan_to_json(io::plan_from_json(written)) == written);
        CHECK(io::plan_from_json(io::plan_to_json(plan, 0)) == plan);
        Problems problems;
        CHECK(io::plan_from_json(json::Document::parse(c.text, "f", problems)) == plan);
    }
}

TEST_CASE("Malformed plan documents are rejected with pointer and expectation", "[io]") {
    for (const auto& c : document_cases("plan_malformed.txt")) {
        INFO(c.name);
        REQUIRE(!c.expected.empty());
        CHECK_THROWS_MESSAGE(io::plan_from_json(c.text, "plan.json"), InvalidInput, c.expected);
        CHECK_THROWS_MESSAGE(io::plan_from_json(c.text, "plan.json"), InvalidInput, "plan.json:");
    }
}

TEST_CASE("A plan's text", "[io]") {
    PlanSpec plan{.waves = 2,
                  .moves = {{"t0", "n0", "n5", {2, 3}, 0}, {"t1", "n0", "n6", {}, 1}},
                  .vacated_nodes = {"n0"},
                  .evictions = {"t9"},
                  .placements = {{"t8", "n5", {0}}},
                  .stats = {{"moves", 2.0}, {"seconds", 0.1}},
                  .bound = {10, 3, 24, "counting"}};
    CHECK(io::plan_to_json(plan) == R"({
 "format": "gpusched.plan",
 "version": 1,
 "waves": 2,
 "moves": [
  {"task": "t0", "from": "n0", "to": "n5", "gpus": [2, 3], "wave": 0},
  {"task": "t1", "from": "n0", "to": "n6", "gpus": [], "wave": 1}
 ],
 "vacated_nodes": ["n0"],
 "evictions": ["t9"],
 "placements": [
  {"task": "t8", "node": "n5", "gpus": [0]}
 ],
 "stats": {"moves": 2, "seconds": 0.1},
 "bound": {"occupied_nodes_at_least": 10, "vacated_nodes_at_most": 3, "vacated_gpus_at_most": 24, )"
                                    R"("method": "counting"}
}
)");
    plan.stats["gap"] = std::numeric_limits<double>::quiet_NaN();
    CHECK_THROWS_MESSAGE(io::plan_to_json(plan), InvalidInput, "JSON no number nan");
}

TEST_CASE("Plan files are read and written", "[io]") {
    const auto path = (std::filesystem::temp_directory_path() / "gpusched_test_plan_json.json").string();
    const auto plan = io::plan_from_json(document_cases("plan_valid.txt").at(0).text);
    io::write_plan(plan, path);
    CHECK(io::read_plan(path) == plan);
    std::filesystem::remove(path);
    CHECK_THROWS_MESSAGE(io::read_plan(path), BackendError, path + " cannot opened");
}

// SPDX-License-Identifier: Apache-2.0
#include "examples.hpp"

using namespace gpusched;
using namespace gpusched::serving;
using test::worked_example;

TEST_CASE("costs and replicas of the worked example") {
    const auto p = worked_example();
    validate(p);
    CHECK(configuration_costs(p) == std::vector<double>{4, 2, 2, 4});
    CHECK(most_replicas(p) == std::vector<int>{2, 2, 2, 1});
}

TEST_CASE("a free configuration is limited by availability alone") {
    auto p = worked_example();
    for (auto& gpu : p.gpus) gpu.price = 0;
    p.budget = 0;
    CHECK(most_replicas(p) == std::vector<int>{2, 2, 2, 1});
    p.gpus[0].available = 0;
    CHECK(most_replicas(p) == std::vector<int>{0, 2, 2, 1});
}

TEST_CASE("a budget that is a whole number of replicas counts them all") {
    ServingProblem p{.gpus = {{"g", 0.1, 100}},
                     .workloads = {{"w", 1, ""}},
                     .configurations = {{"c", {1}, {1.0}, ""}},
                     .budget = 0.3};
    CHECK(most_replicas(p) == std::vector<int>{3});
}

TEST_CASE("the paper's four steps") {
    auto p = worked_example();
    // Even rates: requests go in proportion to the configurations' throughput.
    const auto proportional = [&](std::vector<int> replicas) {
        ServingAllocation a{replicas, std::vector<std::vector<double>>(4, std::vector<double>(2))};
        for (std::size_t w = 0; w < 2; ++w) {
            double total = 0;
            for (std::size_t c = 0; c < 4; ++c) total += replicas[c] * p.configurations[c].throughput[w];
            for (std::size_t c = 0; c < 4; ++c)
                a.share[c][w] = replicas[c] * p.configurations[c].throughput[w] / total;
        }
        CHECK(violations(p, a).empty());
        return makespan(p, a);
    };
    CHECK(proportional({1, 1, 1, 0}) == Catch::Approx(44.0559).margin(5e-5));
    CHECK(proportional({1, 2, 0, 0}) == Catch::Approx(35.2381).margin(5e-5));
    CHECK(proportional({1, 0, 0, 1}) == Catch::Approx(30.9368).margin(5e-5));
    const ServingAllocation third{{1, 0, 0, 1}, {{0.15, 1}, {0, 0}, {0, 0}, {0.85, 0}}};
    CHECK(makespan(p, third) == Catch::Approx(28.6667).margin(5e-5));
    CHECK(cost(p, third) == 8);
    CHECK(rented(p, third) == std::vector<int>{1, 2, 0});
}

TEST_CASE("violations of an allocation are named") {
    auto p = worked_example();
    ServingAllocation a{{3, 0, 0, 0}, {{0.5, 1}, {0, 0}, {0, 0}, {0, 0}}};
    const auto found = violations(p, a);
    REQUIRE(found.size() == 3);
    CHECK_THAT(found[0], Mentions("rented 't1' 3 2"));
    CHECK_THAT(found[1], Mentions("cost 12 8"));
    CHECK_THAT(found[2], Mentions("served share 'w1' 0.5 1"));
    a = {{1, 0, 0, 0}, {{1, 0}, {0, 1}, {0, 0}, {0, 0}}};
    CHECK_THAT(violations(p, a), MentionsEach({"share requests configuration cannot serve"}));
}

TEST_CASE("dominated configurations are found, of equal ones the first stays") {
    auto p = worked_example();
    CHECK(undominated_configurations(p) == std::vector<int>{0, 1, 2, 3});
    p.configurations.push_back({"worse", {1, 0, 0}, {0.9, 1.2}, ""});
    p.configurations.push_back({"equal", {0, 1, 0}, {0.9, 0.9}, ""});
    p.configurations.push_back({"other model", {1, 1, 1}, {0, 0}, "m"});
    CHECK(undominated_configurations(p) == std::vector<int>{0, 1, 2, 3, 6});
    CHECK(with_configurations(p, {3, 6}).configurations[0].name == "TP(2xt2)");
}

TEST_CASE("malformed serving problems are reported field by field") {
    const auto nan = std::numeric_limits<double>::quiet_NaN();
    const auto refused = [](const char* part, auto change) {
        auto p = worked_example();
        change(p);
        REQUIRE_THROWS_MESSAGE(validate(p), InvalidInput, part);
    };
    refused("GPU 't1' price -1", [](auto& p) { p.gpus[0].price = -1; });
    refused("GPU 't1' price nan", [&](auto& p) { p.gpus[0].price = nan; });
    refused("GPU 't2' available -3 0", [](auto& p) { p.gpus[1].available = -3; });
    refused("GPU type 't1' twice", [](auto& p) { p.gpus[1].name = "t1"; });
    refused("workload 'w1' requests -80", [](auto& p) { p.workloads[0].requests = -80; });
    refused("workload 'w1' twice", [](auto& p) { p.workloads[1].name = "w1"; });
    refused("configuration 't1' gpus none least one GPU", [](auto& p) {
        p.configurations[0].gpus = {0, 0, 0};
    });
    refused("configuration 't1' gpus 2 entries 3", [](auto& p) { p.configurations[0].gpus = {1, 1}; });
    refused("configuration 't1' throughput 'w2' nan",
            [&](auto& p) { p.configurations[0].throughput[1] = nan; });
    refused("configuration 't1' throughput 1 entries 2",
            [](auto& p) { p.configurations[0].throughput = {1}; });
    refused("throughput 0 workload model ''", [](auto& p) { p.configurations[0].model = "other"; });
    refused("budget: inf", [](auto& p) { p.budget = std::numeric_limits<double>::infinity(); });
}

// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/milp/milp.hpp>

using namespace gpusched;
using namespace gpusched::milp;

TEST_CASE("a constraint of the caller's own is a row of the consolidation model") {
    // At most one task comes to a node from elsewhere.
    ClusterSpec spec;
    for (const auto* name : {"a", "b", "c"})
        spec.nodes.push_back({.name = name, .gpu_model = "A", .gpu_count = 8, .cpu_milli = 64'000});
    for (const auto* name : {"a", "b", "c"}) {
        spec.tasks.push_back({.name = std::string("on ") + name, .cpu_milli = 4000, .gpu_count = 2});
        spec.tasks.back().node = name;
        spec.tasks.back().gpus = {0, 1};
    }
    const auto cluster = Cluster::build(spec);
    auto model = consolidation(cluster);
    const auto rows = model.rows();
    const std::vector<NodeId> all_on_c(3, cluster.find_node("c"));
    const std::vector<NodeId> one_on_c{cluster.find_node("a"), cluster.find_node("c"),
                                       cluster.find_node("c")};
    CHECK(evaluate(model, model.encode(all_on_c)).feasible());
    const auto x = model.index("x");
    for (std::size_t j = 0; j < model.nodes.size(); ++j) {
        std::vector<Entry> arrivals;
        for (std::size_t k = 0; k < model.classes.size(); ++k)
            if (x(k, j) >= 0 && model.home[index(model.classes[k][0])] != model.nodes[j])
                arrivals.push_back({x(k, j), 1});
        CHECK(add_row(model, "arrivals", "arrivals:" + std::to_string(j), -infinity, arrivals, 1) ==
              rows + static_cast<int>(j));
    }
    CHECK(model.rows_in("arrivals") == 3);
    CHECK_NOTHROW(validate(model));
    CHECK_FALSE(evaluate(model, model.encode(all_on_c)).feasible());
    CHECK(evaluate(model, model.encode(one_on_c)).feasible());
}

TEST_CASE("a row that is wrong leaves the model as it was") {
    auto model = consolidation(Cluster::build({}));
    const auto before = model;
    REQUIRE_THROWS_MESSAGE(add_row(model, "g", "r", 0, std::vector<Entry>{{7, 1}}, 1), InvalidInput,
                           "row 'r' column 7 below 0");
    REQUIRE_THROWS_MESSAGE(add_row(model, "g", "r", 2, {}, 1), InvalidInput, "2 to 1");
    CHECK(model == before);
}

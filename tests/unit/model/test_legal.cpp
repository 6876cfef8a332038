// SPDX-License-Identifier: Apache-2.0
// Odd but legal snapshots, and their limits.
#include "valid_cluster.hpp"

using namespace testing_support;

TEST_CASE("Cores that are not wholly used may be shared, and so may those that a Standby task lends",
          "[model]") {
    auto spec = valid();
    for (auto& t : spec.tasks) t.cpu_local = true;
    spec.tasks[0].cores = spec.tasks[1].cores = {5};
    spec.tasks[1].cpu_milli = 999;
    CHECK(problems_of(spec).empty());
    spec.tasks[1].cpu_milli = 1'000;
    CHECK(problems_of(spec).size() == 1);
    spec.tasks[0].standby = true;
    spec.tasks[0].priority_class = PriorityClass::hp;
    CHECK(problems_of(spec).size() == 1);
    spec.tasks[1].priority_class = PriorityClass::lp;
    CHECK(problems_of(spec).empty());
    // Others may move, so what they list says nothing about the node.
    spec.tasks[0] = valid().tasks[0];
    spec.tasks[0].cores = {5};
    spec.tasks[1].priority_class = PriorityClass::hp;
    CHECK(problems_of(spec).empty());
}

TEST_CASE("Levels that no node has are legal, and among the warnings", "[model]") {
    auto spec = valid();
    CHECK(Cluster::build(spec).warnings().empty());
    spec.tasks[0].anti_affinity = {{"g", 1, 1}};
    CHECK(Cluster::build(spec).warnings().empty());
    spec.tasks[0].anti_affinity = {{"g", 2, 1}, {"h", 2, 1}};
    spec.tasks[1].network_affinity = NetworkAffinity{2, NetworkMode::preferred};
    spec.tasks[1].affinity = {{"g", 3}};
    CHECK_THAT(Cluster::build(spec).warnings(),
               MentionsEach({"network level 2 task 't0' and 1 more deep domain of its own",
                             "network level 3 task 't1' deep domain of its own"}));
}

TEST_CASE("A checkpoint from before the start is legal: the task started again", "[model]") {
    auto spec = valid();
    spec.tasks[0].start_time = 100;
    spec.tasks[0].last_checkpoint_time = 50;
    CHECK(problems_of(spec).empty());
}

// SPDX-License-Identifier: Apache-2.0
// Alibaba's spot-GPU lists of nodes and jobs as spot traces.
#include "support/real_data.hpp"

#include <gpusched/sim/sim.hpp>

#include <fstream>

using namespace gpusched;
using sim::spot_trace_from_csv;

namespace {
const std::string nodes = "node_name,gpu_model,gpu_capacity_num,cpu_num\n"
                          "0,A10,1,128\n"
                          "3,A100-SXM4-80GB,8,128\n";
const std::string job_columns =
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n";
}  // namespace

TEST_CASE("spot-GPU lists become gangs on nodes without memory and position") {
    const auto trace = spot_trace_from_csv(nodes,
                                           job_columns + "7,13,A10,20.5,0.25,1,90,0,HP\n"
                                                         "8,57,A100-SXM4-80GB,15,2,16,30,41060,Spot\n"
                                                         "9,57,,0.0001,0,1,30,5,HP\n",
                                           {.checkpoint_interval = 1800});
    REQUIRE(trace.nodes.size() == 2);
    CHECK(trace.nodes[1] == NodeSpec{.name = "3",
                                     .gpu_model = "A100-SXM4-80GB",
                                     .gpu_count = 8,
                                     .cpu_milli = 128'000,
                                     .memory_mib = 0});
    REQUIRE(trace.jobs.size() == 3);  // by time, then as the list has them
    const auto &spot = trace.jobs[0], &plain = trace.jobs[1], &part = trace.jobs[2];
    CHECK(spot.pod.name == "8");
    CHECK(spot.pods == 16);
    CHECK(spot.work_s == 41'060);
    CHECK(spot.pod.gpu_count == 2);
    CHECK(spot.pod.cpu_milli == 15'000);
    CHECK(spot.pod.gpu_models == std::vector<std::string>{"A100-SXM4-80GB"});
    CHECK(spot.pod.priority_class == PriorityClass::lp);
    CHECK(spot.pod.checkpoint_interval == 1800);
    CHECK(plain.pod.gpu_count == 0);
    CHECK(plain.pod.cpu_milli == 1);
    CHECK(plain.pod.gpu_models.empty());
    CHECK(plain.pod.checkpoint_interval == 0);
    CHECK(part.pod.priority_class == PriorityClass::hp);
    CHECK(part.pod.priority > spot.pod.priority);
    CHECK(part.pod.gpu_count == 1);
    CHECK(part.pod.gpu_share_milli == 250);
    CHECK(part.pod.cpu_milli == 20'500);
    CHECK(part.work_s == 1);  // the list says 0
}

TEST_CASE("spot-GPU lists: a read trace is replayed") {
    const auto trace = spot_trace_from_csv(nodes, job_columns + "a,1,A10,20,1,1,0,100,HP\n"
                                                                "b,1,A100-SXM4-80GB,15,4,2,0,50,Spot\n"
                                                                "c,1,A100-SXM4-80GB,15,8,1,10,20,HP\n");
    const auto result = sim::replay_spot(trace);
    CHECK(result.hp_unfinished == 0);
    CHECK(result.lp_unfinished == 0);
    CHECK(result.lp_evictions == 1);  // one pod of b makes room for c, and the other stops with it
    CHECK(result.preemptions == 1);
}

TEST_CASE("spot-GPU lists: every cell that is wrong is named") {
    CHECK_THROWS_MESSAGE(spot_trace_from_csv("node_name,gpu_model,cpu_num\n", job_columns), InvalidInput,
                         "<nodes>:1 column 'gpu_capacity_num' missing");
    const auto read = [] {
        (void)spot_trace_from_csv(nodes + "3,A10,65,-1\n",
                                  job_columns + ",1,A10,x,1.5,0,-1,z,LP\n"
                                                "a,1,A10,1,65,10001,1,1,HP\n"
                                                "a,1,A10,1,1,1,1,1,HP\n",
                                  {.checkpoint_interval = -1});
    };
    const auto problems = testing_support::problems_in<InvalidInput>(read);
    CHECK_THAT(problems, MentionsEach({
                             "checkpoint_interval -1 0 1000000000",
                             "<nodes>:4 node_name '3' twice",
                             "<nodes>:4 gpu_capacity_num 0 64 '65'",
                             "<nodes>:4 cpu_num >= 0 '-1'",
                             "<jobs>:2 job_name name nothing",
                             "<jobs>:2 cpu_request >= 0 'x'",
                             "<jobs>:2 gpu_request whole number part one GPU '1.5'",
                             "<jobs>:2 worker_num 1 10000 '0'",
                             "<jobs>:2 submit_time 0 1000000000 '-1'",
                             "<jobs>:2 duration 0 1000000000 'z'",
                             "<jobs>:2 job_type HP Spot 'LP'",
                             "<jobs>:3 gpu_request at most 64 '65'",
                             "<jobs>:3 worker_num 1 10000 '10001'",
                             "<jobs>:4 job_name 'a' twice",
                         }));
}

TEST_CASE("spot-GPU lists: the published list of nodes") {
    const auto path = testing_support::real_data("alibaba-spot-gpu-v2026") / "node_info_df.csv";
    if (!testing_support::is_here(path)) return;
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto trace = spot_trace_from_csv(text, job_columns);
    CHECK(trace.nodes.size() == 4278);
    CHECK(std::accumulate(trace.nodes.begin(), trace.nodes.end(), std::int64_t{0},
                          [](std::int64_t sum, const NodeSpec& node) { return sum + node.gpu_count; }) ==
          2493 + 2 + 901 + 4 * 10 + 8 * (454 + 418));
}

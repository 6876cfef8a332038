// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;

namespace {

const std::string nodes = "sn,cpu_milli,memory_mib,gpu,model\n"
                          "n0,32000,262144,0,\n"
                          "n1,64000,262144,2,P100\n";
const std::string pod_header =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n";

std::vector<std::string> problems_of(const std::string& node_csv, const std::string& pod_csv) {
    return testing_support::problems_in<InvalidInput>([&] { (void)io::openb_from_csv(node_csv, pod_csv); });
}

/// The folder of the real lists, or nothing.
std::filesystem::path real_lists() {
    const auto* given = std::getenv("GPUSCHED_DATA");
    const auto root = given != nullptr
                          ? std::filesystem::path(given)
                          : std::filesystem::path(GPUSCHED_SOURCE_DIR) / ".." / "shared" / "data";
    return root / "alibaba-gpu-v2023";
}

}  // namespace

TEST_CASE("openb lists become a trace", "[io]") {
    const auto trace = io::openb_from_csv(
        nodes, pod_header + "p0,12000,16384,1,460,V100M16|V100M32|V100M16,LS,Running,427061,12902960,427062\n"
                            "p1,1000,2048,8,1000,,BE,Pending,5,99,\n"
                            "p2,1000,2048,0,0,,Burstable,Failed,7,,\n");
    CHECK(trace.nodes ==
          std::vector{NodeSpec{
              .name = "n1", .gpu_model = "P100", .gpu_count = 2, .cpu_milli = 64000, .memory_mib = 262144}});
    const std::vector<TraceTask> expected{
        {.task = {.name = "p0",
                  .cpu_milli = 12000,
                  .memory_mib = 16384,
                  .gpu_count = 1,
                  .gpu_share_milli = 460,
                  .gpu_models = {"V100M16", "V100M32"},
                  .priority_class = PriorityClass::hp},
         .creation_time = 427061,
         .deletion_time = 12902960,
         .scheduled_time = 427062},
        {.task = {.name = "p1",
                  .cpu_milli = 1000,
                  .memory_mib = 2048,
                  .gpu_count = 8,
                  .priority_class = PriorityClass::lp},
         .creation_time = 5,
         .deletion_time = 99},
        {.task = {.name = "p2", .cpu_milli = 1000, .memory_mib = 2048}, .creation_time = 7},
    };
    CHECK(trace.tasks == expected);  // in the order of the list, whatever the times, fitting or not
}

TEST_CASE("openb nodes without GPUs are kept on demand", "[io]") {
    const auto trace = io::openb_from_csv(nodes, pod_header, {.gpu_nodes_only = false});
    REQUIRE(trace.nodes.size() == 2);
    CHECK(trace.nodes[0] == NodeSpec{.name = "n0", .cpu_milli = 32000, .memory_mib = 262144});
}

TEST_CASE("openb pod lists may have five columns, in any order", "[io]") {
    const auto trace = io::openb_from_csv(
        nodes, "gpu_milli,num_gpu,memory_mib,cpu_milli,name\r\n500,1,3,2,\" p,0\"\r\n\r\n 700 ,0,1,1,q");
    const std::vector<TraceTask> expected{
        {.task = {.name = " p,0", .cpu_milli = 2, .memory_mib = 3, .gpu_count = 1, .gpu_share_milli = 500}},
        {.task = {.name = "q", .cpu_milli = 1, .memory_mib = 1}},  // no GPU, whatever gpu_milli says
    };
    CHECK(trace.tasks == expected);
}

TEST_CASE("openb quality of service gives the priority class", "[io]") {
    const std::map<std::string, PriorityClass> expected{
        {"LS", PriorityClass::hp},         {"LSR", PriorityClass::hp},          {"LSE", PriorityClass::hp},
        {"SYSTEM", PriorityClass::hp},     {"Guaranteed", PriorityClass::hp},   {"BE", PriorityClass::lp},
        {"BestEffort", PriorityClass::lp}, {"Burstable", PriorityClass::other}, {"", PriorityClass::other}};
    for (const auto& [qos, priority_class] : expected) {
        INFO(qos);
        const auto trace = io::openb_from_csv(nodes, pod_header + "p,1,1,0,0,," + qos + ",,0,,\n");
        CHECK(trace.tasks.at(0).task.priority_class == priority_class);
    }
}

TEST_CASE("openb problems name file, line and column, all at once", "[io]") {
    CHECK_THAT(problems_of("sn,cpu_milli,memory_mib,gpu,model\n"
                           "a,1,1,65,\n"
                           "a,-1,,0,\n"
                           "b,1,1,0\n"
                           "c,1,1,0,,\n"
                           ",1e3,99999999999999999999,0,\n",
                           pod_header + "p,1.0,1,2,500,,XX,,,,\n"
                                        "\n"
                                        "\"q,1,1,0,0,,,,,,\n"
                                        "r,1,1,1,0,,LS,,10,9,8\n"
                                        "s,1,1,1,500,,LS,,5,99999999999999,\n"
                                        "t,1,1,1,500,,LS,,x,-5,\n"),
               MentionsEach({
                   "<nodes>:2 gpu 0 64 '65'",
                   "<nodes>:3 sn 'a' twice",
                   "<nodes>:3 cpu_milli 0 1000000000000 '-1'",
                   "<nodes>:3 memory_mib 0 1000000000000 ''",
                   "<nodes>:4 few cells",
                   "<nodes>:5 many cells",
                   "<nodes>:6 sn name nothing",
                   "<nodes>:6 cpu_milli 0 1000000000000 '1e3'",
                   "<nodes>:6 memory_mib 0 1000000000000 '99999999999999999999'",
                   "<pods>:2 cpu_milli 0 1000000000000 '1.0'",
                   "<pods>:2 gpu_milli 1000 '500'",
                   "<pods>:2 qos LS LSR LSE SYSTEM Guaranteed BE BestEffort Burstable 'XX'",
                   "<pods>:4 quote end",
                   "<pods>:5 gpu_milli 1 1000 '0'",
                   "<pods>:5 deletion_time 9 before creation_time 10",
                   "<pods>:5 scheduled_time 8 before creation_time 10",
                   // A time that cannot be read is before or after none.
                   "<pods>:6 deletion_time -1000000000000 1000000000000 '99999999999999'",
                   "<pods>:7 creation_time -1000000000000 1000000000000 'x'",
               }));
}

TEST_CASE("openb headers are checked", "[io]") {
    CHECK(problems_of("sn,cpu_milli,gpu\nx", pod_header) ==
          std::vector<std::string>{"<nodes>:1: column 'memory_mib' is missing",
                                   "<nodes>:1: column 'model' is missing"});
    const auto extra = problems_of(nodes, "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_specs\n");
    REQUIRE(extra.size() == 1);
    CHECK_THAT(extra[0], Mentions("<pods>:1 first line columns name cpu_milli"));
    CHECK_THAT(extra[0], Mentions("gpu_specs"));
    CHECK_THAT(problems_of("", pod_header).at(0), Mentions("<nodes>:1 first line columns"));
    CHECK_THAT(problems_of("sn,sn,cpu_milli,memory_mib,gpu,model\n", pod_header).at(0),
               Mentions("<nodes>:1 first line columns"));
}

TEST_CASE("openb text is clean UTF-8", "[io]") {
    CHECK(problems_of(nodes + "n\xff,1,1,0,\n", pod_header) ==
          std::vector<std::string>{"<nodes>:4: is not UTF-8"});
    CHECK(problems_of(nodes + std::string("n2,1,1,0,\0hidden\n", 17), pod_header) ==
          std::vector<std::string>{"<nodes>:4: holds a NUL byte"});
    CHECK(problems_of("\xEF\xBB\xBF" + nodes, pod_header).empty());
}

TEST_CASE("openb files that cannot be read are the environment's failure", "[io]") {
    CHECK_THROWS_MESSAGE(io::read_openb("does-not-exist.csv", "nor-this.csv"), BackendError,
                         "does-not-exist.csv cannot opened");
}

TEST_CASE("A line too long for the parser is reported once", "[io]") {
    const auto found =
        problems_of(nodes + std::string(std::size_t{1} << 24, 'x') + "\nn2,1,1,0,\n", pod_header);
    CHECK(found == std::vector<std::string>{"<nodes>:4: longer than 2^24 bytes"});
}

TEST_CASE("Lists larger than the parser's buffer are read in full", "[io]") {
    std::string large = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
    const std::string padding(200, 'p');
    std::size_t count = 0;
    for (; large.size() < (std::size_t{1} << 25) + 1000; ++count)
        large += padding + std::to_string(count) + ",1000,1000,1,1000\n";
    const auto trace = io::openb_from_csv(nodes, large);
    REQUIRE(trace.tasks.size() == count);
    CHECK(trace.tasks.back().task.name == padding + std::to_string(count - 1));
}

TEST_CASE("The real openb lists are read", "[io]") {
    const auto folder = real_lists();
    if (!testing_support::is_here(folder)) return;
    const std::map<std::string, std::size_t> pods{{"cpu250", 9420},
                                                  {"default", 8152},
                                                  {"gpushare100", 8152},
                                                  {"gpuspec33", 8152},
                                                  {"multigpu50", 9061}};
    const auto node_csv = (folder / "openb_node_list_all_node.csv").string();
    for (const auto& [name, count] : pods) {
        INFO(name);
        const auto trace = io::read_openb(node_csv, (folder / ("openb_pod_list_" + name + ".csv")).string());
        CHECK(trace.nodes.size() == 1213);
        std::int64_t gpus = 0;
        for (const auto& node : trace.nodes) {
            CHECK(!node.gpu_model.empty());
            gpus += node.gpu_count;
        }
        CHECK(gpus == 6212);
        CHECK(trace.tasks.size() == count);
        const auto never_scheduled = std::count_if(trace.tasks.begin(), trace.tasks.end(),
                                                   [](const TraceTask& t) { return !t.scheduled_time; });
        if (name == "default") CHECK(never_scheduled == 897);
        if (name == "multigpu50") CHECK(never_scheduled == 9061);
    }
    const auto all = io::read_openb(node_csv, (folder / "openb_pod_list_gpuspec33.csv").string(),
                                    {.gpu_nodes_only = false});
    CHECK(all.nodes.size() == 1523);
    CHECK(std::count_if(all.tasks.begin(), all.tasks.end(),
                        [](const TraceTask& t) { return !t.task.gpu_models.empty(); }) == 2388);
}

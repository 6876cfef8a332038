// SPDX-License-Identifier: Apache-2.0
#include "document_cases.hpp"

#include <gpusched/model/cluster.hpp>

#include <cstdio>

using namespace gpusched;
using testing_support::document_cases;

TEST_CASE("Valid cluster documents are read, built and written again", "[io]") {
    for (const auto& c : document_cases("cluster_valid.txt")) {
        INFO(c.name);
        const auto spec = io::cluster_from_json(c.text);
        CHECK_NOTHROW(Cluster::build(spec));
        const auto written = io::cluster_to_json(spec);
        CHECK(io::cluster_from_json(written) == spec);
        CHECK(io::cluster_to_json(io::cluster_from_json(written)) == written);
    }
}

TEST_CASE("Malformed cluster documents are rejected with pointer and expectation", "[io]") {
    for (const auto& c : document_cases("cluster_malformed.txt")) {
        INFO(c.name);
        REQUIRE(!c.expected.empty());
        CHECK_THROWS_MESSAGE(io::cluster_from_json(c.text, "snapshot.json"), InvalidInput, c.expected);
        CHECK_THROWS_MESSAGE(io::cluster_from_json(c.text, "snapshot.json"), InvalidInput, "snapshot.json:");
    }
}

TEST_CASE("Text after a NUL byte is not dropped", "[io]") {
    using namespace std::string_literals;
    CHECK_THROWS_MESSAGE(
        io::cluster_from_json(
            "{\"format\": \"gpusched.cluster\", \"version\": 1,\n\"nodes\": [], \"tasks\": []}\0x"s,
            "s.json"),
        InvalidInput, "s.json line 2 NUL");
}

TEST_CASE("Inconsistent documents are rejected, single values by the reader and the rest by the model",
          "[io]") {
    for (const auto* file : {"cluster_illegal.txt", "cluster_inconsistent.txt"})
        for (const auto& c : document_cases(file)) {
            INFO(file << ": " << c.name);
            REQUIRE(!c.expected.empty());
            CHECK_THROWS_MESSAGE(Cluster::build(io::cluster_from_json(c.text)), InvalidInput, c.expected);
        }
}

TEST_CASE("Defaults are those of the model", "[io]") {
    const auto spec = io::cluster_from_json(R"({"format": "gpusched.cluster", "version": 1,
        "nodes": [{"name": "n", "gpu_count": 1, "cpu_milli": 2, "memory_mib": 3}],
        "tasks": [{"name": "t", "gpu_count": 1, "cpu_milli": 2, "memory_mib": 3}],
        "jobs": [{"name": "j"}]})");
    CHECK(spec.nodes.at(0) == NodeSpec{.name = "n", .gpu_count = 1, .cpu_milli = 2, .memory_mib = 3});
    CHECK(spec.tasks.at(0) == TaskSpec{.name = "t", .cpu_milli = 2, .memory_mib = 3, .gpu_count = 1});
    CHECK(spec.jobs.at(0) == JobSpec{.name = "j"});
    CHECK(spec.now == 0);
}

TEST_CASE("Every field arrives", "[io]") {
    const auto spec = io::cluster_from_json(document_cases("cluster_valid.txt").at(0).text);
    NodeSpec node{.name = "n0",
                  .gpu_model = "A100",
                  .gpu_count = 8,
                  .cpu_milli = 128000,
                  .memory_mib = 1048576,
                  .gpu_memory_mib = 81920,
                  .network = {"cluster-0", "agg-0", "asw-3"},
                  .hardware = hardware_preset("a100x8")};
    TaskSpec task{.name = "t0",
                  .job = "j0",
                  .cpu_milli = 16000,
                  .memory_mib = 65536,
                  .gpu_count = 2,
                  .gpu_models = {"A100"},
                  .priority = 100,
                  .priority_class = PriorityClass::hp,
                  .preemptible = false,
                  .anti_affinity = {{"j0", node_level, 1}},
                  .network_affinity = NetworkAffinity{2, NetworkMode::required},
                  .hardware_affinity = {{HardwareLevel::numa, HardwareQos::guaranteed}},
                  .last_checkpoint_time = 0,
                  .checkpoint_interval = 3600,
                  .node = "n0",
                  .gpus = {0, 1}};
    CHECK(spec.nodes == std::vector{node});
    CHECK(spec.tasks == std::vector{task});
    CHECK(spec.jobs == std::vector{JobSpec{"j0", 1, 1}});
}

TEST_CASE("The documented example is written as it is documented", "[io]") {
    const auto text = document_cases("cluster_valid.txt").at(0).text;
    auto written = io::cluster_to_json(io::cluster_from_json(text));
    // The example is on one line: a line break and what indents the next line stand for a space, or for nothing
    // inside the outermost brackets.
    std::string flat;
    for (std::size_t i = 0; i < written.size(); ++i) {
        if (written[i] != '\n') {
            flat += written[i];
            continue;
        }
        if (flat.back() == ',') flat += ' ';
        while (i + 1 < written.size() && written[i + 1] == ' ') ++i;
    }
    CHECK(flat == text);
}

TEST_CASE("Layout follows the indent", "[io]") {
    ClusterSpec spec;
    spec.nodes.push_back({.name = "n", .gpu_count = 0, .cpu_milli = 0, .memory_mib = 0});
    spec.jobs = {{"a"}, {"b"}};
    const auto two = io::cluster_to_json(spec, 2);
    CHECK_THAT(two,
               Catch::Matchers::StartsWith("{\n  \"format\": \"gpusched.cluster\",\n  \"version\": 1,\n"));
    CHECK_THAT(two, Catch::Matchers::ContainsSubstring(
                        "\n  \"jobs\": [\n    {\"name\": \"a\", \"min_members\": 0},\n"
                        "    {\"name\": \"b\", \"min_members\": 0}\n  ]\n}\n"));
    CHECK_THAT(two, Catch::Matchers::ContainsSubstring("\n  \"tasks\": [],\n"));
    const auto none = io::cluster_to_json(spec, 0);
    CHECK(none.find_first_of(" \n") == std::string::npos);
    CHECK(io::cluster_from_json(none) == spec);
    CHECK_THROWS_MESSAGE(io::cluster_to_json(spec, -1), InvalidInput, "indent -1 0 16");
    CHECK_THROWS_MESSAGE(io::cluster_to_json(spec, 17), InvalidInput, "indent 17");
}

TEST_CASE("All problems of a document come at once", "[io]") {
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] {
                   (void)io::cluster_from_json(R"({"format": "gpusched.cluster", "version": 1, "now": null,
            "nodes": [{"name": 1, "gpu_count": 1.5, "cpu_milli": [], "cores": 1}], "tasks": 7,
             "jobs": [{}]})");
               }),
               MentionsEach({
                   "<text> /now integer null",
                   "<text> /nodes/0/name string 1",
                   "<text> /nodes/0/gpu_count integer 1.5",
                   "<text> /nodes/0/cpu_milli integer array",
                   "<text> /nodes/0/cores unknown name gpu_model gpu_count cpu_milli memory_mib network "
                   "labels taints schedulable hardware gpu_memory_mib failed_gpus or",
                   "<text> /nodes/0 'memory_mib' missing",
                   "<text> /tasks array 7",
                   "<text> /jobs/0 'name' missing",
               }));
}

TEST_CASE("The first hundred problems are listed, the others counted", "[io]") {
    std::string text = R"({"format": "gpusched.cluster", "version": 1, "nodes": [)";
    for (int i = 0; i < 1000; ++i) text += i == 0 ? "1" : ",1";
    const auto problems =
        testing_support::problems_in<InvalidInput>([&] { (void)io::cluster_from_json(text + "]}"); });
    REQUIRE(problems.size() == 101);
    CHECK_THAT(problems[99], Mentions("<text> /nodes/99 object 1"));
    CHECK(problems[100] == "... and 900 more");
}

TEST_CASE("Text that JSON cannot hold is not written", "[io]") {
    ClusterSpec spec;
    spec.jobs = {{"caf\xe9"}};
    CHECK_THROWS_MESSAGE(io::cluster_to_json(spec), InvalidInput, "JSON 'caf\\xe9' not UTF-8");
    using namespace std::string_literals;
    spec.jobs = {{"quote\" back\\ tab\t nul\0 del\x7f \u00e9 \U0001F600"s}};
    const auto written = io::cluster_to_json(spec);
    CHECK_THAT(written, Catch::Matchers::ContainsSubstring(
                            "quote\\\" back\\\\ tab\\t nul\\u0000 del\\u007f \u00e9 \U0001F600\""));
    CHECK(io::cluster_from_json(written) == spec);
}

TEST_CASE("Cluster files are read and written", "[io]") {
    const auto path = std::filesystem::temp_directory_path() / "gpusched_test_cluster_json.json";
    const auto spec = io::cluster_from_json(document_cases("cluster_valid.txt").at(0).text);
    io::write_cluster(spec, path.string());
    CHECK(io::read_cluster(path.string()) == spec);
    std::filesystem::resize_file(path, 300);
    CHECK_THROWS_MESSAGE(io::read_cluster(path.string()), InvalidInput, "gpusched_test_cluster_json.json:6");
    std::filesystem::remove(path);
    CHECK_THROWS_MESSAGE(io::read_cluster(path.string()), BackendError,
                         "gpusched_test_cluster_json.json cannot opened");
    CHECK_THROWS_MESSAGE(io::write_cluster(spec, (path / "x").string()), BackendError,
                         "gpusched_test_cluster_json.json/x cannot created");
}

TEST_CASE("Mistakes of form and of content come together, and none follows from another", "[io]") {
    const auto problems = [](const std::string& text) {
        return testing_support::problems_in<InvalidInput>(
            [&] { (void)Cluster::build(io::cluster_from_json(text)); });
    };
    const std::string head = R"({"format": "gpusched.cluster", "version": 1, "nodes": [)";
    const std::string good = R"({"name": "n0", "gpu_count": 1, "cpu_milli": 2, "memory_mib": 3})";
    CHECK(problems(head + good + "]}").empty());
    CHECK(Cluster::build(io::cluster_from_json(head + good + "]}")).node_count() == 1);
    // The second node has a wrong count, so what its task asks of it is not judged; the unknown node is not either,
    // because its name might be the one of a node that could not be read.
    CHECK_THAT(problems(head + good +
                        R"(, {"name": "n1", "gpu_count": "2", "cpu_milli": 2, "memory_mib": 3}, )" + good +
                        R"(], "tasks": [
        {"name": "t0", "gpu_count": 1, "cpu_milli": 0, "memory_mib": 0, "node": "n1", "gpus": [0]},
        {"name": "t1", "gpu_count": 0, "cpu_milli": 0, "memory_mib": 0, "node": "nowhere"},
        {"name": "t2", "gpu_count": 0, "cpu_milli": -1, "memory_mib": 0},
        {"name": "t3", "gpu_count": 0, "memory_mib": 0, "node": "n0", "gpus": [0]}]})"),
               MentionsEach({"<text> /nodes/1/gpu_count integer \"2\"",
                             "<text> /tasks/2/cpu_milli 0 1000000000000 -1",
                             "<text> /tasks/3 'cpu_milli' missing", "node 'n0' duplicate"}));
    // If all nodes could be read, an unknown one is reported.
    CHECK_THAT(problems(head + good + R"(], "tasks": [
        {"name": "t1", "gpu_count": 0, "cpu_milli": 0, "memory_mib": 0, "node": "nowhere"},
        {"name": "t3", "gpu_count": 0, "memory_mib": 0}]})"),
               MentionsEach({"<text> /tasks/1 'cpu_milli' missing", "task 't1' unknown node 'nowhere'"}));
    // Subgroups of a job that could not be read are not judged either.
    const std::string head2 = R"({"format": "gpusched.cluster", "version": 2, "nodes": [)";
    const std::string in_s =
        R"("tasks": [{"name": "t", "job": "j", "subgroup": "s", "gpu_count": 0, "cpu_milli": 0, )"
        R"("memory_mib": 0}])";
    CHECK_THAT(problems(head2 + good + R"(], "jobs": [{"name": "j", "subgroups": [{"min_members": 1}]}], )" +
                        in_s + "}"),
               MentionsEach({"<text> /jobs/0/subgroups/0 'name' missing"}));
    CHECK_THAT(problems(head2 + good + "], " + in_s + "}"),
               MentionsEach({"task 't' subgroup 's' job 'j' lists"}));
    // Another format: nothing was read, so nothing is judged.
    CHECK(problems(R"({"format": "gpusched.plan", "version": 1})").size() == 1);
    CHECK_THROWS_AS(io::read_cluster("/no/such/file"), BackendError);
}

TEST_CASE("Version 2 is written only if version 1 cannot hold the content", "[io]") {
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .gpu_count = 2, .cpu_milli = 1, .memory_mib = 1}};
    spec.tasks = {{.name = "t", .gpu_count = 1}};
    spec.tasks[0].node = "n";
    spec.tasks[0].gpus = {0};
    const auto written_version = [&] {
        const auto text = io::cluster_to_json(spec, 0);
        CHECK(io::cluster_from_json(text) == spec);
        for (const char* key : {"resources", "devices", "device_count", "device_classes", "node_affinity",
                                "label_levels", "groups", "avoid", "near", "spread", "subgroup"}) {
            INFO(text);
            if (text.find("\"version\":1") != std::string::npos) CHECK(text.find(key) == std::string::npos);
        }
        return text.find("\"version\":2") != std::string::npos ? 2 : 1;
    };
    CHECK(written_version() == 1);
    const auto plain = spec;
    const auto changed = [&](auto&& change) {
        spec = plain;
        change();
        return written_version();
    };
    CHECK(changed([&] { spec.nodes[0].gpu_count = 16; }) == 1);
    CHECK(changed([&] { spec.nodes[0].gpu_count = 17; }) == 2);
    CHECK(changed([&] { spec.tasks[0].gpu_count = 17; }) == 2);
    CHECK(changed([&] { spec.nodes[0].hardware = Hardware{"", {{0, 1, gpu_bit(16)}}}; }) == 2);
    CHECK(changed([&] { spec.nodes[0].resources["pods"] = 1; }) == 2);
    CHECK(changed([&] { spec.nodes[0].devices = {{"a", 1, {}, 0}}; }) == 2);
    CHECK(changed([&] { spec.tasks[0].resources["pods"] = 1; }) == 2);
    CHECK(changed([&] { spec.tasks[0].device_count = 1; }) == 2);
    CHECK(changed([&] { spec.tasks[0].device_classes = {"a"}; }) == 2);
    CHECK(changed([&] { spec.tasks[0].node_affinity = {{}}; }) == 2);
    CHECK(changed([&] { spec.label_levels = {"zone"}; }) == 2);
    CHECK(changed([&] { spec.tasks[0].subgroup = "s"; }) == 2);
    CHECK(changed([&] { spec.jobs = {{"j", 1, 2}}; }) == 1);
    CHECK(changed([&] { spec.jobs = {{"j", 3, 2, {{"s", 2}, {"t", 0}}}}; }) == 2);
    CHECK(io::cluster_to_json(spec, 0).find(
              R"("subgroups":[{"name":"s","min_members":2},{"name":"t","min_members":0}])") !=
          std::string::npos);
    CHECK(changed([&] { spec.tasks[0].groups = {"g"}; }) == 2);
    CHECK(changed([&] { spec.tasks[0].avoid = {{"g", node_level}}; }) == 2);
    CHECK(changed([&] { spec.tasks[0].near = {{"g", 15}}; }) == 2);
    CHECK(changed([&] { spec.tasks[0].spread = {{.group = "g", .min_domains = 2}}; }) == 2);
    CHECK(changed([&] {
              spec.label_levels = {"zone", "rack"};
              spec.tasks[0].avoid = {{"g", first_label_level + 1}, {"g", first_label_level}};
              spec.tasks[0].anti_affinity = {{"g", first_label_level, 2}};
              spec.tasks[0].affinity = {{"g", first_label_level + 1}};
          }) == 2);
    CHECK(io::cluster_to_json(spec, 0).find(R"("avoid":[{"group":"g","level":"rack"})") != std::string::npos);
    CHECK(io::cluster_to_json(spec, 0).find(R"("level":"zone","limit":2)") != std::string::npos);
    CHECK(changed([&] { spec.tasks[0].gpus = {}, spec.tasks[0].assign_gpus = true; }) == 2);
    CHECK(io::cluster_to_json(spec, 0).find("\"gpus\"") == std::string::npos);
}

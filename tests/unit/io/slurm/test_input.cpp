// SPDX-License-Identifier: Apache-2.0
// Input of Slurm that is broken, odd or something else: refused with a reason, or read and reported.
#include "records.hpp"

using namespace slurm_text;

namespace {

std::string nodes_json(const std::string& nodes, const std::string& more = {}) {
    return R"({"nodes": [)" + nodes + R"(], "meta": {"plugin": {"data_parser": "data_parser/v0.0.43"}})" +
           more + "}";
}
const std::string a_node =
    R"({"name": "n0", "cpus": 4, "real_memory": 1000, "state": ["IDLE"], "gres": "gpu:2"})";

}  // namespace

TEST_CASE("Messages for rejected texts name their content", "[io][slurm]") {
    const auto says = [](const std::vector<std::string>& texts, const std::string& part) {
        const auto said = refusal(texts);
        INFO(said);
        CHECK_THAT(said, Mentions(part));
    };
    says({}, "least one text scontrol");
    says({""}, "t `scontrol nodes` `jobs` `partitions` found nothing");
    says({"hello\nworld"}, "begins 'hello'");
    says({"ClusterName=hpc\nNodeName=n0\n"}, "begins 'ClusterName=hpc'");
    says({"{"}, "not JSON document");
    says({"{\"a\": 1}"}, "object without nodes, jobs partitions");
    says({"[1, 2]"}, "found array");
    says({R"({"apiVersion": "v1", "kind": "List", "items": []})"},
         "`gpusched import kubernetes` io::read_kubernetes");
    says({R"({"format": "gpusched.cluster", "version": 1, "nodes": []})"},
         "'gpusched.cluster' needs no import");
    says({nodes_json("")}, "least one node scontrol found none");
    says({"No jobs in the system\n"}, "least one node scontrol found none");
    says({pending("1", "NumNodes=1")}, "least one node found none 1 job");
    says({"NodeName=n0 CPUTot=x State=IDLE\n"}, "none read t:1 CPUTot number 'x'");
    says({nodes_json("3")}, "least one node none read");
    says({node("n0"), "SwitchName=a Switches=a\n"}, "t:1 at most 16 levels above itself");
    says({"NodeName=n0 State=IDLE+FUTURE\n"}, "least one node none read n0");
}

TEST_CASE("Records that are broken are left out or clipped, and reported", "[io][slurm]") {
    struct Case {
        std::string text, kind, what, example;
    };
    const auto odd = [](const std::string& id, const std::string& nodes, const std::string& detail) {
        return running(id, nodes, detail);
    };
    for (const auto& one : std::vector<Case>{
             {"JobId=x JobState=RUNNING\n", "Job", "objects", "t:1 JobId number 'x'"},
             {"JobId=1\n", "Job", "objects", "1 state unknown"},
             {"JobId=1 JobState=RUNNING NodeList=(null)\n", "Job", "objects", "1 nodes gpu[01-04] none"},
             {"JobId=1 JobState=RUNNING NodeList=n[\n", "Job", "objects", "1 nodes gpu[01-04] 'n['"},
             {odd("1", "n0", "Nodes=n0 CPU_IDs=x Mem=1 GRES="), "Job", "objects",
              "t:1 Nodes=n0 CPU_IDs 0-15 Mem"},
             {odd("1", "n0", "Nodes=n0 CPU_IDs=0 Mem=1 GRES=gpu:=x"), "Job", "objects",
              "1 resources gpu:h100:8 'gpu:=x'"},
             {pending("1", "NumNodes=many"), "Job", "objects", "t:1 NumNodes number 'many'"},
             {pending("1", "NumNodes=9"), "Job", "more nodes than there are", "1"},
             {pending("1", "NumNodes=1-4"), "Job", "number of nodes", "1"},
             {pending("1", "NumNodes=1") + pending("1", "NumNodes=1"), "Job", "objects", "1"},
             {node("n0"), "Node", "objects", "n0"},
             {"NodeName= State=IDLE\n", "Node", "objects", ""},
             {"NodeName=n1 CPUTot=4\n", "Node", "state", "n1"},
             {node("n1", "", "gpu:=x"), "Node", "Gres", "n1 gpu:=x"},
             {partition("", "Nodes=n0"), "Partition", "objects", ""},
             {partition("p", "Nodes=n[ State=UP"), "Partition", "nodes", "p"},
             {partition("p", "Nodes=n0 State=DOWN"), "Partition", "state", "p"},
             {"ReservationName=maint StartTime=2026-11-20T08:00:00\n   Nodes=n0\n", "Reservation", "objects",
              "maint"},
             {"LicenseName=matlab Total=4\n", "LicenseName", "objects", "matlab"},
             {node("n1") + "Odd text\n", "(none)", "lines", "t:7 Odd text"},
             {R"({"jobs": [{"job_id": {"set": false}}]})", "Job", "objects", "t /jobs/0 job_id number"},
             {R"({"jobs": [{"job_id": 1, "job_state": ["RUNNING"], "nodes": "n0", "cpus": "many"}]})", "Job",
              "objects", "t /jobs/0/cpus number \"many\""},
             {nodes_json("", R"(, "errors": [{"error": "access denied"}])"), "(all)",
              "errors that Slurm reports", "access denied"},
         }) {
        INFO(one.text);
        const auto reading = read({node("n0"), one.text});
        auto found = rows(reading, one.kind, one.what);
        std::erase_if(found, [](const auto& candidate) { return candidate.fidelity == io::Fidelity::exact; });
        INFO(io::reading_report_to_text(reading.report));
        REQUIRE(found.size() == 1);
        CHECK(found[0].count == 1);
        if (!one.example.empty()) CHECK_THAT(found[0].examples, MentionsEach({one.example}));
    }
}

TEST_CASE("Values with blanks do not become fields", "[io][slurm]") {
    const auto reading = read({"NodeName=n0 CPUTot=4\n   OS=Linux 5.15 State=DOWN #1\n   RealMemory=100\n   "
                               "State=IDLE\n   Comment=Gres=gpu:8 State=DOWN\n"
                               "   Reason=disk State=DOWN\n          RealMemory=7 [root@now]\n",
                               "JobId=1 JobName=a JobState=RUNNING b\n   JobState=PENDING Reason=None\n   "
                               "Command=x NumNodes=5 y\n   NumNodes=1\n"});
    CHECK(reading.cluster.nodes[0].schedulable);
    CHECK(reading.cluster.nodes[0].memory_mib == 100);
    CHECK(reading.cluster.nodes[0].gpu_count == 0);
    CHECK(reading.cluster.tasks.size() == 1);
    CHECK_FALSE(reading.cluster.tasks[0].node.has_value());
}

TEST_CASE("Numbers of JSON: as such, as text, as objects", "[io][slurm]") {
    const auto with = [](const std::string& priority) {
        return read({nodes_json(a_node),
                     R"({"jobs": [{"job_id": 7, "job_state": "PENDING", "priority": )" + priority + "}]}"})
            .cluster.tasks[0]
            .priority;
    };
    CHECK(with("12") == 12);
    CHECK(with("\"12\"") == 12);
    CHECK(with(R"({"set": true, "infinite": false, "number": 4294967295})") == 4294967295);
    CHECK(with(R"({"set": false, "infinite": false, "number": 5})") == 0);
    CHECK(with(R"({"set": true, "infinite": true, "number": 5})") == 0);
    CHECK(with("1e300") == 4294967295);
}

TEST_CASE("GPUs by node of JSON without the resources of the job", "[io][slurm]") {
    const auto reading =
        read({nodes_json(a_node), R"_({"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "nodes": "n0",
        "gres_detail": ["gpu:1(IDX:1)"], "tres_alloc_str": "cpu=2,mem=10M,gres/gpu=1",
        "job_resources": {"nodes": "n0", "allocated_nodes": null}}]})_"});
    CHECK(task(reading, "7/0").gpus == std::vector<int>{1});
    CHECK(task(reading, "7/0").cpu_milli == 2000);
}

TEST_CASE("A data parser that is not known is read and reported", "[io][slurm]") {
    auto text = nodes_json(a_node);
    text.replace(text.find("v0.0.43"), 7, "v0.0.99");
    CHECK(row(read({text}), "(all)", "data parser v0.0.99").errs == io::Errs::either);
}

TEST_CASE("Bytes that are not UTF-8 are shown, not kept", "[io][slurm]") {
    const auto reading = read({"NodeName=n\xff State=IDLE\n"});
    CHECK(reading.cluster.nodes[0].name == "n\\xff");
}

TEST_CASE("Files are read by name", "[io][slurm]") {
    const auto folder = std::string(GPUSCHED_TEST_DATA_DIR) + "/io/slurm/";
    const std::vector<std::string> paths{folder + "nodes.txt", folder + "jobs.txt"};
    CHECK(io::read_slurm(paths).cluster == read({sample("nodes.txt"), sample("jobs.txt")}).cluster);
    const std::vector<std::string> missing{folder + "missing"};
    CHECK_THROWS_AS(io::read_slurm(missing), BackendError);
}

TEST_CASE("A text that stands for far more than it holds is refused", "[io][slurm]") {
    std::string nodes, running, pending;
    for (int i = 0; i < 1'000; ++i) {
        const auto number = std::to_string(i);
        nodes += "NodeName=a" + number + "\n";
        running += "JobId=" + number + " JobState=RUNNING NodeList=a[0-999]\n";
        pending += "JobId=" + number + " JobState=PENDING NumNodes=1000\n";
    }
    const auto partition = "PartitionName=" + std::string(200'000, 'p') + " Nodes=a[0-999]\n";
    const std::string excluded = "JobId=1 JobState=PENDING NumNodes=1000 ExcNodeList=a[0-998]\n";
    const std::string array = "JobId=1 ArrayJobId=1 ArrayTaskId=0-99 JobState=PENDING NumNodes=1000\n";
    const std::string outside = "JobId=1 JobState=PENDING NumNodes=1 ExcNodeList=x[0-9999999]\n";
    for (const auto& text : {running, pending, partition, outside, excluded + excluded + array + array}) {
        INFO(text.substr(0, 100));
        const auto said = refusal({nodes + text});
        CHECK_THAT(said, Mentions("stands more than 96 MiB"));
    }
    CHECK(refusal({nodes + "JobId=1 JobState=RUNNING NodeList=a[0-999]\n"}) == "");
}

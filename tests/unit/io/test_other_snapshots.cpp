// SPDX-License-Identifier: Apache-2.0
// Every reader of clusters names the import that reads what it was given instead.
#include "support/catch.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;

namespace {

std::string golden(const std::string& file) { return read_file(GPUSCHED_TEST_DATA_DIR "/io/" + file); }

struct Input {
    std::string system, text, found;
};
std::vector<Input> inputs() {
    const std::string list = R"({"apiVersion": "v1", "kind": "List", "items": []})";
    return {{"kubernetes", list, "Kubernetes 'List'"},
            {"kubernetes", "# nodes\napiVersion: v1\nkind: List\n", "Kubernetes YAML"},
            {"kai", golden("kai/snapshot.json"), "KAI-Scheduler"},
            {"slurm", golden("slurm/nodes.txt"), "Slurm text"},
            {"slurm", golden("slurm/jobs.txt"), "Slurm text"},
            {"slurm", golden("slurm/partitions.txt"), "Slurm text"},
            {"slurm", golden("slurm/cluster-v0.0.43.json"), "Slurm JSON"}};
}

struct Reader {
    std::string system;
    std::function<void(const std::string&)> read;
};
std::vector<Reader> readers() {
    return {{"gpusched", [](const auto& text) { (void)io::cluster_from_json(text, "it"); }},
            {"kubernetes", [](const auto& text) { (void)io::kubernetes_from_text(text, {}, "it"); }},
            {"kai", [](const auto& text) { (void)io::kai_snapshot_from_text(text, {}, "it"); }},
            {"slurm", [](const auto& text) {
                 const io::NamedText named{text, "it"};
                 (void)io::slurm_from_texts({&named, 1}, {});
             }}};
}

}  // namespace

TEST_CASE("A reader of clusters names the import that reads another system's", "[io]") {
    for (const auto& reader : readers())
        for (const auto& input : inputs()) {
            if (input.system == reader.system) continue;
            INFO(reader.system << " reads " << input.text.substr(0, 40));
            std::string said;
            try {
                reader.read(input.text);
            } catch (const InvalidInput& error) {
                said = error.what();
                CHECK(error.problems().size() == 1);
            }
            const auto reads = "read_" + input.system + (input.system == "kai" ? "_snapshot" : "");
            const std::string expected = reader.system == "gpusched" ? "it 'gpusched.cluster' " : "it ";
            CHECK_THAT(said, Mentions(expected + input.found + " `gpusched import " + input.system +
                                      "` io::" + reads + " gs.io." + reads));
        }
}

TEST_CASE("A reader of clusters explains how to unpack gzip files", "[io]") {
    for (const auto& reader : readers()) {
        INFO(reader.system);
        CHECK_THROWS_MESSAGE(reader.read("\x1f\x8b\x08 and so on"), InvalidInput, "it gzip unpack gunzip");
    }
}

TEST_CASE("The reader of machines names the import of a cluster", "[io]") {
    CHECK_THROWS_MESSAGE(
        io::hardware_from_text(golden("slurm/nodes.txt")), InvalidInput,
        "machine 'nvidia-smi topo -m' XML NCCL hwloc FlexTopo Slurm text `gpusched import slurm`");
}

TEST_CASE("A zip archive is recognised", "[io]") {
    for (const auto& reader : readers()) {
        if (reader.system == "kai")
            continue;  // takes snapshot.json; read_kai_snapshot of Python takes archives
        CHECK_THROWS_MESSAGE(reader.read("PK\x03\x04rest"), InvalidInput, "zip `gpusched import kai`");
    }
}

TEST_CASE("Texts that only resemble another system's snapshot are not taken for one", "[io]") {
    // A node whose name begins like a record of Slurm, in YAML; and a document without the mark of Slurm's.
    const std::string yaml = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n0\n"
                             "  annotations:\n    note: |\n      \n"
                             "NodeName=n0: x\nstatus: {allocatable: {cpu: 1, memory: 1Gi}}\n";
    CHECK(io::kubernetes_from_text(yaml).cluster.nodes.size() == 1);
    for (const auto& [text, words] : {std::pair(R"({"nodes": []})", "'format'"),
                                      {"{}", "it 'format' missing"},
                                      {"x: 1", "it not JSON document"}})
        CHECK_THROWS_MESSAGE(io::cluster_from_json(text, "it"), InvalidInput, words);
}

// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include "io/slurm/values.hpp"
#include <gpusched/io/io.hpp>
#include <gpusched/model/cluster.hpp>

using namespace gpusched;
using io::NetworkReading;

namespace {

const std::string tree = "# a comment\n"
                         "SwitchName=top Switches=leaf[1-2] LinkSpeed=100\r\n"
                         "switchname=leaf1 \\\n  NODES=n[08-10],x  # the rest of the line\n"
                         "SwitchName=leaf2 Nodes=r[1-2]c[0,2]\n\n"
                         "SwitchName=alone Nodes=y\n";

/// The snapshot with these nodes and nothing in them; the model's own checks apply.
Cluster cluster_of(const NetworkReading& reading) {
    ClusterSpec spec;
    for (const auto& node : reading.nodes) spec.nodes.push_back({.name = node.name});
    CHECK(io::set_network(spec, reading) == reading.nodes.size());
    return Cluster::build(spec);
}

}  // namespace

TEST_CASE("a topology.conf of switches becomes a network", "[io]") {
    const auto reading = io::slurm_topology_from_conf(tree);
    CHECK(reading.nodes == std::vector<NetworkReading::Node>{{"n08", {"top", "leaf1"}},
                                                             {"n09", {"top", "leaf1"}},
                                                             {"n10", {"top", "leaf1"}},
                                                             {"x", {"top", "leaf1"}},
                                                             {"r1c0", {"top", "leaf2"}},
                                                             {"r1c2", {"top", "leaf2"}},
                                                             {"r2c0", {"top", "leaf2"}},
                                                             {"r2c2", {"top", "leaf2"}},
                                                             {"y", {"alone"}}});
    const auto network = io::network_tree(reading);
    const auto at = [&](std::size_t n) { return network.vertex(make_id<NodeId>(n)); };
    CHECK(network.levels() == 2);
    CHECK(network.distance(at(0), at(3)) == 2);
    CHECK(network.distance(at(0), at(4)) == 4);
    CHECK(network.distance(at(0), at(8)) == std::nullopt);
    CHECK(cluster_of(reading).node_count() == 9);
}

TEST_CASE("a topology.conf of blocks becomes a network", "[io]") {
    const auto reading = io::slurm_topology_from_conf("BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4]\n"
                                                      "BlockName=c Nodes=n5\nBlockSizes=2,4,8,16\n");
    CHECK(reading.nodes[0].network == std::vector<std::string>{"a..c/8", "a..b/4", "a"});
    CHECK(reading.nodes[2].network == std::vector<std::string>{"a..c/8", "a..b/4", "b"});
    CHECK(reading.nodes[4].network == std::vector<std::string>{"a..c/8", "c..c/4", "c"});
    CHECK(cluster_of(reading).node_count() == 5);
}

TEST_CASE("texts that are no topology.conf are refused", "[io]") {
    const auto refused = [](const std::string& text, const std::string& words) {
        INFO(text);
        CHECK_THROWS_MESSAGE(io::slurm_topology_from_conf(text, "t"), InvalidInput, words);
    };
    refused("", "t switches blocks none");
    refused("\nName=gpu File=/dev/a\n", "t:2 SwitchName= ");
    refused("SwitchName=a Switches=b\n", "t:1 switch 'b' no line");
    refused("SwitchName=a SwitchName=b\n", "'SwitchName' twice");
    refused("SwitchName=a BlockName=b\n", "either SwitchName BlockName");
    refused("Nodes=a\n", "either SwitchName BlockName");
    refused("SwitchName= Nodes=a\n", "expected name");
    refused("SwitchName=a Nodes=n\nSwitchName=a Nodes=m\n", "t:2 'a' twice");
    refused("SwitchName=a Nodes=n\nSwitchName=b Nodes=n\n", "t:2 node 'n' below 'a' already");
    refused("SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c Nodes=n\n",
            "switch 'c' below 'a' already");
    refused("SwitchName=a Switches=b\nSwitchName=b Switches=a Nodes=n\n", "switch above itself");
    refused("SwitchName=a Nodes=n\nBlockName=b Nodes=m\n", "t:2 both");
    refused("BlockName=b Nodes=m\nBlockSizes=2,3\n", "ascending multiples '3'");
    refused("SwitchName=a\nSwitchName=b Nodes=\xff\n", "t:2 UTF-8");
    for (const auto* list : {"n[1-", "n]", "n[2-1]", "n[a]", "n,,m", "n[]", ","})
        refused(std::string("SwitchName=a Nodes=") + list + "\n", "t:1 Nodes expected names");
    refused("SwitchName=a Nodes=n[2-1]\n", "t:1 Nodes node[01-04,7] 'n[2-1]'");
    // A few bytes stand for a million names.
    refused("SwitchName=a Nodes=n[0-999]m[0-999]o[0-999]\n", "t:1 Nodes 'n[0-999]m[0-999]o[0-999]' 96 MiB");
    refused("SwitchName=d Nodes=n[0-99999][0-9]\n", "t:1 Nodes 'n[0-99999][0-9]' 96 MiB");
    refused("SwitchName=a Nodes=x[0-99999]\nSwitchName=b Nodes=y[0-999999]\n",
            "t:2 Nodes 'y[0-999999]' 96 MiB");
    refused("SwitchName=" + std::string(10'000, 's') + " Nodes=n[0-99999]\n", "t:1 with its nodes 96 MiB");
    // Beyond the limit the lists of later lines are not to blame; what else is wrong there is still told.
    CHECK_THAT(testing_support::problems_in<InvalidInput>([] {
                   (void)io::slurm_topology_from_conf(
                       "SwitchName=a Nodes=x[0-99999]\nSwitchName=b Nodes=y[0-999999]\nSwitchName=c Nodes=z\n"
                       "SwitchName=d Nodes=w[1-4]\nSwitchName=a Nodes=v\n",
                       "t");
               }),
               MentionsEach({"t:2 Nodes 'y[0-999999]' 96 MiB", "t:5 'a' twice"}));
}

TEST_CASE("a topology is recognised by its text, not by the name of its file", "[io]") {
    const std::string conf = "SwitchName=a Nodes=n[1-2],\\\nn3\n";
    const std::string yaml =
        "---\n# cluster\n- topology: t\n  tree:\n    switches:\n      - switch: a\n        nodes: n[1-3]\n";
    const std::string json =
        R"([{"topology": "t", "tree": {"switches": [{"switch": "a", "nodes": "n[1-3]"}]}}])";
    CHECK(io::detail::slurm::is_list("\xef\xbb\xbf%YAML 1.2\n---\n# a\n- topology: t\n"));
    CHECK(!io::detail::slurm::is_list("topology: t\n"));
    for (const auto* name : {"topology.conf", "topology.yaml", "topology"})
        for (const auto& text : {conf, yaml, json}) {
            if (text == yaml && !json::reads_yaml()) continue;
            INFO(name << ": " << text);
            const auto folder = std::filesystem::temp_directory_path() / "gpusched_slurm_topology";
            std::filesystem::create_directories(folder);
            const auto path = (folder / name).string();
            write_file(path, text);
            const auto reading = io::read_slurm_topology(path);
            CHECK(reading.nodes.size() == 3);
            CHECK(reading.nodes.back() == io::NetworkReading::Node{"n3", {"a"}});
        }
}

TEST_CASE("lists of hosts cost no more than their remaining limit", "[io]") {
    using io::detail::Expansion;
    using io::detail::slurm::host_list;
    Expansion left(0);
    CHECK(host_list("a,n[01-03,7]x[0-1]", left) == std::vector<std::string>{"a", "n01x0", "n01x1", "n02x0",
                                                                            "n02x1", "n03x0", "n03x1", "n7x0",
                                                                            "n7x1"});
    CHECK(left.left < Expansion::of_any_text);
    // Too many are refused by their number, before any is written.
    for (const auto* list : {"[0-999]", "[0-999999]", "[0-9,0-9][0-9,0-9]", "[0-4294967]"}) {
        left.left = 10'000;
        CHECK_THROWS_AS(host_list(list, left), InvalidInput);
    }
    // What turns out wrong at the end was work, too: the same again and again uses up what there is.
    left = Expansion(0);
    int written = 0;
    try {
        for (; written < 1000; ++written) static_cast<void>(host_list("n[0-99999]]", left));
    } catch (const InvalidInput&) {
    }
    CHECK(written < 50);
}

TEST_CASE("real files of Slurm", "[io]") {
    if (!testing_support::is_here(testing_support::real_data("slurm"))) return;
    struct Truth {
        std::size_t nodes = 0;
        int levels = 0;
        std::size_t leaves = 0, roots = 0;  // domains of the deepest and of the first level
    };
    const std::map<std::string, Truth> truth{
        {"slurm/testcase1/topology.conf", {10000, 4, 500, 1}},
        {"slurm/testcase3/topology.conf", {400, 3, 20, 1}},
        {"slurm/testcase6/topology.conf", {40, 2, 4, 3}},
        {"slurm/check/topology.conf", {32, 4, 8, 1}},
        {"topograph/slurm-tree.topology.conf", {96, 3, 12, 1}},
        {"topograph/slurm-block.topology.conf", {96, 3, 12, 3}},
    };
    for (const auto& [name, expected] : truth) {
        INFO(name);
        const auto reading = io::read_slurm_topology(testing_support::real_data(name).string());
        const auto network = io::network_tree(reading);
        CHECK(network.node_count() == expected.nodes);
        CHECK(network.levels() == expected.levels);
        CHECK(network.domains(network.levels() - 1).size() == expected.leaves);
        CHECK(network.domains(0).size() == expected.roots);
        CHECK(cluster_of(reading).node_count() == expected.nodes);
    }
    for (const auto* name : {"test7.17.1", "test7.17.3", "test7.17.6"})
        CHECK_THROWS_WITH(
            io::read_slurm_topology((testing_support::real_data("slurm") / name / "gres.conf").string()),
            Mentions("SwitchName="));
    if (!json::reads_yaml()) return;
    const auto yaml = testing_support::real_data("slurm/topology.yaml").string();
    CHECK(io::network_tree(io::read_slurm_topology(yaml)).domains(1).size() == 2);  // topo1, the default
    const auto blocks = io::read_slurm_topology(yaml, {.topology = "topo2"});
    CHECK(blocks.nodes.front().network == std::vector<std::string>{"b1..b4/16", "b1"});
    CHECK(io::read_slurm_topology(yaml, {.topology = "topo4"}).notes.size() == 1);
    CHECK(io::read_slurm_topology(yaml, {.topology = "topo5"}).nodes.size() == 32);
    CHECK_THROWS_WITH(io::read_slurm_topology(yaml, {.topology = "topo3"}), Mentions("flat"));
    CHECK_THROWS_WITH(io::read_slurm_topology(yaml, {.topology = "nowhere"}),
                      Mentions("one of topo1 topo2 topo3"));
    for (const auto& file : testing_support::real_files("topograph/models", ".yaml"))
        CHECK_THROWS_WITH(io::read_slurm_topology(file.string()), Mentions("list topologies"));
}

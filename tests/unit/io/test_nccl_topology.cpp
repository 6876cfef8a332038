// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;
using Catch::Approx;

namespace {

/// Two GPUs below one switch, one alone, one on the other NUMA node; a direct link and an NVSwitch.
const std::string machine = R"(<system version="1">
  <cpu numaid="0" affinity="00000f0f" arch="x86_64">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="8">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80"><nvlink target="0000:03:00.0" count="2" tclass="0x030200"/>
          <nvlink target="0000:77:00.0" count="6" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80"><nvlink target="0000:02:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <nic><net name="mlx5_0"/></nic>
    </pci>
    <pci busid="0000:04:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="2"/></pci>
  </cpu>
  <cpu numaid="1" affinity="0000f0f0">
    <pci busid="0000:81:00.0" class="0x030200" link_speed="5 GT/s" link_width="4">
      <gpu dev="3"><nvlink target="0000:77:00.0" count="4" tclass="0x068000"/></gpu>
    </pci>
    <pci busid="0000:82:00.0" class="0x020700"/>
  </cpu>
</system>)";

}  // namespace

TEST_CASE("a topology of NCCL becomes a machine", "[io]") {
    if (!io::reads_xml()) return;
    const auto [graph, notes] = io::nccl_topology_from_xml(machine);
    CHECK(graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 4, 0b0111}, {1, 4, 0b1000}});
    CHECK(graph.pcie_root_of(0b0011) == 0);
    CHECK(graph.pcie_root_of(0b0101) == std::nullopt);
    CHECK(graph.bandwidth(0, 1) == 50);
    CHECK(graph.bandwidth(0, 3) == 100);  // what GPU 3 has to the switch
    CHECK(graph.distance(0, 1) == 1);
    // The other way from 2 to 0 is its own link of unknown speed, then the switch's uplink.
    CHECK(graph.bandwidth(0, 2) == Approx(16.0 * 8 / 8 * 128 / 130));
    CHECK(notes.size() == 2);  // threads, sockets
}

TEST_CASE("a topology of NCCL without gpu elements", "[io]") {
    if (!io::reads_xml()) return;
    const auto reading = io::nccl_topology_from_xml(R"(<system version="1"><cpu numaid="0">
        <pci busid="000b:00:00.0" class="0x030200"/></cpu><cpu numaid="2">
        <pci busid="0003:00:00.0" class="0x120000" link_speed="5 GT/s" link_width="4"/></cpu></system>)");
    CHECK(reading.graph.masks().numa == std::vector<GpuMask>{0b10, 0, 0b01});  // by bus id, not by place
    CHECK(reading.graph.bandwidth(0, 1) == Approx(2.0));                       // 8 of 10 bits carry data
    CHECK_THAT(reading.notes.front(), Mentions("GPUs PCI class"));
}

TEST_CASE("a topology of NCCL that does not know the NUMA node", "[io]") {
    if (!io::reads_xml()) return;
    const std::string gpus =
        R"(<pci busid="0000:05:00.0"><gpu dev="0"/></pci><pci busid="0000:06:00.0"><gpu dev="1"/></pci>)";
    // As virtual machines dump it.
    const auto sole = io::nccl_topology_from_xml(
        R"(<system version="1"><cpu host_hash="0x1" numaid="-1" affinity="ff">)" + gpus + "</cpu></system>");
    CHECK(sole.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 8, 0b11}});
    CHECK(sole.graph.bandwidth(0, 1) == 31.5);
    REQUIRE(!sole.notes.empty());
    CHECK_THAT(sole.notes.front(), Mentions("NUMA nodes not known -1 one"));
    // Beside others it is none of them.
    const auto beside = io::nccl_topology_from_xml(
        R"(<system version="1"><cpu numaid="0" affinity="0f"><pci busid="a"><gpu dev="2"/></pci></cpu>
           <cpu numaid="-1" affinity="ff">)" +
        gpus + "</cpu></system>");
    CHECK(beside.graph.masks().numa == std::vector<GpuMask>{0b100});
    CHECK(beside.graph.masks().healthy == 0b111);
    CHECK(beside.graph.distance(0, 1) == std::nullopt);
    CHECK_THAT(beside.notes.front(), Mentions("NUMA nodes some GPUs not known"));
}

TEST_CASE("texts without a topology of NCCL are refused", "[io]") {
    if (!io::reads_xml()) return;
    const auto refused = [](const std::string& text, const std::string& words) {
        INFO(text);
        CHECK_THROWS_MESSAGE(io::nccl_topology_from_xml(text, {}, "t"), InvalidInput, words);
    };
    refused("", "t:1 not XML document");
    refused("<system>\n<cpu>", "t:2 not XML document");
    refused("<topology/>", "t:1 <topology> <system>");
    refused("<graphs version=\"1\"/>", "file graphs");
    refused("<system/>", "cpu elements");
    refused("<system><cpu/></system>", "numaid integer -1 1023 nothing");
    refused("<system><cpu numaid=\"-2\"/></system>", "numaid -1 1023 '-2'");
    refused("<system><cpu numaid=\"-1\"/><cpu numaid=\"-1\"/></system>", "NUMA node -1 twice");
    refused("<system>\n<cpu numaid=\"0\" affinity=\"xyz\"/></system>", "t:2 <cpu> affinity words");
    refused("<system><cpu numaid=\"0\"/><cpu numaid=\"0\"/></system>", "NUMA node 0 twice");
    refused("<system><cpu numaid=\"0\" affinity=\"3\"/><cpu numaid=\"1\" affinity=\"2\"/></system>",
            "CPU 1 near");
    refused("<system><cpu numaid=\"0\"><pci busid=\"a\"/></cpu></system>", "no device class or gpu element");
    refused("<system><cpu numaid=\"0\"><pci class=\"0x030200\"/></cpu></system>", "busid: expected");
    refused("<system><cpu numaid=\"0\"><pci busid=\"a\"><gpu dev=\"64\"/></pci></cpu></system>",
            "dev: expected");
    refused("<system><cpu numaid=\"0\"><pci busid=\"a\"><gpu dev=\"1\"/></pci><pci busid=\"b\"><gpu "
            "dev=\"1\"/></pci></cpu></system>",
            "GPU 1 twice");
    refused("<system><cpu numaid=\"0\"><pci busid=\"a\"><gpu dev=\"1\"/></pci><pci busid=\"a\"><gpu "
            "dev=\"2\"/></pci></cpu></system>",
            "two GPUs");
    refused("<system><cpu numaid=\"0\"><pci busid=\"a\"><gpu dev=\"1\"><nvlink "
            "count=\"none\"/></gpu></pci></cpu></system>",
            "count: expected");
    std::string deep, close;
    for (int i = 0; i < 200; ++i) deep += "<pci busid=\"a\">", close += "</pci>";
    refused("<system><cpu numaid=\"0\">" + deep + close + "</cpu></system>", "nested deeper");
}

TEST_CASE("real topologies of NCCL and RCCL", "[io]") {
    if (!io::reads_xml()) return;
    if (!testing_support::is_here(testing_support::real_data("nccl-topo"))) return;
    const auto files = testing_support::real_files("nccl-topo", ".xml");
    struct Truth {
        std::map<int, GpuMask> numa{};
        int cores = 0;
        double widest_0_1 = 0;
    };
    const double gen4 = 16.0 * 16 / 8 * 128 / 130, gen3 = gen4 / 2;
    const std::map<std::string, Truth> truth{
        {"aws_p4d-24xl-topo", {{{0, 0x0f}, {1, 0xf0}}, 48, gen3}},
        {"azure_ncv4-topo", {{{0, 0x1}, {1, 0x2}, {2, 0x4}, {3, 0x8}}, 96, 31.5}},
        {"azure_ndv2-topo", {{{0, 0x0f}, {1, 0xf0}}, 40, gen4}},
        {"azure_ndv4-topo", {{{0, 0x0c}, {1, 0x03}, {2, 0xc0}, {3, 0x30}}, 96, gen4}},
        {"azure_ndv5-topo", {{{0, 0x0f}, {1, 0xf0}}, 96, 2 * gen4}},
        {"oci_H100-topology", {{{0, 0x0f}, {1, 0xf0}}, 112, 450}},
        {"rccl_topo_16p1h", {{{0, 0x000f}, {1, 0x00f0}, {2, 0x0f00}, {3, 0xf000}}, 128, 100}},
        {"rccl_topo_4p4h", {{{1, 0xffff}}, 32, gen3}},  // 0 has no link to 1, and theirs meet nowhere
        {"rccl_topo_8p_940", {{{0, 0x0f}, {1, 0xf0}}, 112, 2 * gen4}},
        {"rccl_topo_8p_pcie", {{{0, 0xff}}, 8, gen3}},
        {"rccl_topo_8p_rome_4n_1", {{{1, 0x03}, {3, 0x0c}, {5, 0x30}, {7, 0xc0}}, 64, gen4}},
    };
    std::size_t read = 0;
    for (const auto& file : files) {
        INFO(file.string());
        const auto name = file.stem().string();
        if (name == "aws_g5.48xl-topo") {
            CHECK_THROWS_WITH(io::read_nccl_topology(file.string()),
                              Mentions("no device class or gpu element"));
            continue;
        }
        if (name == "azure_ncv4-graph") {
            CHECK_THROWS_WITH(io::read_nccl_topology(file.string()), Mentions("file graphs"));
            continue;
        }
        REQUIRE(truth.contains(name));
        const auto& expected = truth.at(name);
        const auto reading = io::read_nccl_topology(file.string());
        std::map<int, GpuMask> numa;
        for (std::size_t n = 0; n < reading.graph.masks().numa.size(); ++n)
            if (reading.graph.masks().numa[n] != 0) numa[static_cast<int>(n)] = reading.graph.masks().numa[n];
        CHECK(numa == expected.numa);
        CHECK(reading.graph.hardware().cores() == expected.cores);
        CHECK(reading.graph.bandwidth(0, 1) == Approx(expected.widest_0_1));
        ++read;
    }
    CHECK(read == truth.size());
}

TEST_CASE("without pugixml the readers of XML report it", "[io]") {
    if (io::reads_xml()) return;
    CHECK_THROWS_WITH(io::nccl_topology_from_xml(machine), Mentions("libpugixml-dev"));
    CHECK_THROWS_AS(io::nccl_topology_from_xml(machine), BackendError);
}

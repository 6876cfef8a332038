// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;
using Catch::Approx;

namespace hwloc_tests {

/// Version 2: two packages with a NUMA node each (and one without CPUs); two GPUs below one host bridge.
const std::string version_2 = R"(<?xml version="1.0"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x000000ff" gp_index="1">
    <object type="Package" os_index="0" cpuset="0x0000000f" gp_index="2">
      <object type="NUMANode" os_index="0" cpuset="0x0000000f" gp_index="3"/>
      <object type="NUMANode" os_index="252" cpuset="0x0" gp_index="4"/>
      <object type="Core" os_index="0" cpuset="0x00000005">
       <object type="PU" os_index="0" cpuset="0x1"/></object>
      <object type="Core" os_index="1" cpuset="0x0000000a">
       <object type="PU" os_index="1" cpuset="0x2"/></object>
      <object type="Bridge" bridge_type="0-1">
        <object type="Bridge" bridge_type="1-1" pci_link_speed="8">
          <object type="PCIDev" pci_busid="0000:02:00.0" pci_type="0302 [10de:1db1] [10de:1212] a1"
           pci_link_speed="16" gp_index="20">
            <object type="OSDev" gp_index="21" name="nvml1" osdev_type="1">
              <info name="GPUModel" value="Some GPU"/><info name="NVIDIAUUID" value="GPU-1"/></object>
            <object type="OSDev" gp_index="22" name="cuda0" osdev_type="5">
             <info name="CUDAGlobalMemorySize" value="2048"/></object>
          </object>
          <object type="PCIDev" pci_busid="0000:03:00.0" pci_type="0302 [10de:1db1] [10de:1212] a1"
           pci_link_speed="0" gp_index="30">
            <object type="OSDev" gp_index="31" name="nvml0" osdev_type="1"/>
          </object>
          <object type="PCIDev" pci_busid="0000:04:00.0" pci_type="0300 [102b:0536] [0000:0000] 04"/>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" cpuset="0x000000f0" gp_index="5">
      <object type="NUMANode" os_index="1" cpuset="0x000000f0" gp_index="6"/>
      <object type="Core" os_index="0" cpuset="0x00000050"/>
      <object type="Core" os_index="1" cpuset="0x000000a0"/>
    </object>
    <object type="Bridge" bridge_type="0-1">
      <object type="PCIDev" pci_busid="0001:00:00.0" pci_type="1200 [10de:2330] [10de:0000] a1" gp_index="40">
        <object type="OSDev" gp_index="41" name="nvml2"/></object>
    </object>
  </object>
  <distances2hetero nbobjs="3" kind="25" name="NVLinkBandwidth">
    <indexes length="30">OSDev:21 OSDev:31 Package:2 </indexes>
    <u64values length="9">0 50000 60000 50000 0 0 60000 </u64values><u64values length="4">0 0 </u64values>
  </distances2hetero>
</topology>)";

/// Version 1: NUMA nodes are parents; the only socket is inside the only one.
const std::string version_1 = R"(<topology><object type="Machine" cpuset="0x00000003">
  <object type="NUMANode" os_index="0" cpuset="0x00000003">
   <object type="Socket" os_index="0" cpuset="0x00000003">
    <object type="Core" os_index="0" cpuset="0x1"/><object type="Core" os_index="1" cpuset="0x2"/></object>
    <object type="Bridge" bridge_type="0-1">
     <object type="PCIDev" pci_busid="0000:09:00.0" pci_type="0300 [1002:6860] [1002:0c35] 01">
      <object type="OSDev" name="card1" osdev_type="1"/>
       <object type="OSDev" name="opencl0d0" osdev_type="5"/></object></object>
  </object></object></topology>)";

std::vector<std::string> problems_of(const std::string& text) {
    return testing_support::problems_in<InvalidInput>([&] { (void)io::hwloc_from_xml(text, {}, "t"); });
}

const topology::HardwareVertex& gpu(const topology::HardwareGraph& graph, int id) {
    for (const auto v : graph.vertices())
        if (graph.vertex(v).kind == topology::HardwareKind::gpu && graph.vertex(v).id == id)
            return graph.vertex(v);
    throw std::out_of_range("gpu");
}

TEST_CASE("a topology of hwloc becomes a machine", "[io]") {
    if (!io::reads_xml()) return;
    const auto [graph, notes] = io::hwloc_from_xml(version_2);
    // GPU 2 hangs from the whole machine, so that it is near no NUMA node.
    CHECK(graph.masks().numa == std::vector<GpuMask>{0b011, 0});
    CHECK_THROWS_WITH(graph.hardware(), Mentions("gpu 2 near no NUMA"));
    CHECK(graph.masks().pcie_root == std::vector<GpuMask>{0b011, 0b100});
    CHECK(graph.masks().socket == std::vector<GpuMask>{0b011, 0});
    CHECK(gpu(graph, 1).uuid == "GPU-1");
    CHECK(gpu(graph, 1).model == "Some GPU");
    CHECK(gpu(graph, 1).memory_mib == 2);
    CHECK(graph.bandwidth(0, 1) == 50);
    CHECK(graph.distance(0, 1) == 1);
    CHECK(graph.distance(0, 2) == std::nullopt);
    int cores = 0;
    for (const auto v : graph.vertices()) {
        if (graph.vertex(v).kind != topology::HardwareKind::core) continue;
        ++cores;
        CHECK((graph.vertex(v).id == 0 || graph.vertex(v).id == 1 || graph.vertex(v).id == 4 ||
               graph.vertex(v).id == 5));
    }
    CHECK(cores == 4);
    CHECK_THAT(notes,
               MentionsEach({"NUMA nodes without CPUs left out", "NUMA nodes some GPUs several near none"}));

    const auto old = io::hwloc_from_xml(version_1);
    CHECK(old.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 2, 0b1}});
    CHECK(old.graph.pcie_root_of(0b1) == 0);
    CHECK(old.notes.empty());

    // Neither packages nor NUMA nodes nor cores.
    const auto bare =
        io::hwloc_from_xml("<topology version=\"3.0\"><object type=\"Machine\" cpuset=\"0x3\">"
                           "<object type=\"PU\" cpuset=\"0x1\"/><object type=\"PU\" cpuset=\"0x2\"/>"
                           "<object type=\"OSDev\" name=\"cuda0\"/><object type=\"OSDev\" name=\"nvml0\"/>"
                           "</object></topology>");
    CHECK(bare.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 2, 0b1}});  // one GPU, known twice
    CHECK(bare.notes.size() == 3);
}

TEST_CASE("display adapters are GPUs by default", "[io]") {
    if (!io::reads_xml()) return;
    const auto machine = [](const std::string& first, const std::string& speed,
                            const std::string& second = "") {
        const auto device = [](const std::string& bus, const std::string& type, const std::string& link) {
            return R"(<object type="PCIDev" pci_busid="0000:0)" + bus + R"(:00.0" pci_type=")" + type +
                   R"(" pci_link_speed=")" + link + R"("><object type="OSDev" name="card)" + bus +
                   R"(" osdev_type="1"/></object>)";
        };
        return io::hwloc_from_xml(
            R"(<topology version="2.0"><object type="Machine" cpuset="0x3">
             <object type="Package" cpuset="0x3">
               <object type="NUMANode" os_index="0" cpuset="0x3"/><object type="Core" cpuset="0x3"/>
               <object type="Bridge" bridge_type="0-1">)" +
            device("1", first, speed) + (second.empty() ? "" : device("2", second, "16")) +
            "</object></object></object></topology>");
    };
    const auto noted = [](const io::HardwareReading& reading) {
        return std::count_if(reading.notes.begin(), reading.notes.end(), [](const std::string& note) {
            return testing_support::mentions(note, "GPUs: display adapters NVIDIA");
        });
    };
    for (const auto* type : {"0300 [10de:2684] [1043:88a7] a1", "0300 [1002:744c] [1da2:471e] c8"}) {
        const auto one = machine(type, "31.5");
        CHECK(one.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 1, 0b1}});
        CHECK(noted(one) == 1);
    }
    const auto two = machine("0300 [10de:2684] [1043:88a7] a1", "0", "0300 [10de:2684] [1043:88a7] a1");
    CHECK(two.graph.masks().healthy == 0b11);
    CHECK(noted(two) == 1);
    // Next to a GPU of another class, also without its library.
    CHECK(machine("0300 [10de:2684] [1043:88a7] a1", "0", "0302 [10de:1eb8] [10de:12a2] a1")
              .graph.masks()
              .healthy == 0b11);
    // On servers' boards: of other makers, also with NVIDIA's name on them, and AMD's old ones.
    for (const auto* type : {"0300 [1a03:2000] [10de:1000] 41", "0300 [102b:0536] [0000:0000] 04",
                             "0300 [1002:515e] [0014:0019] 02"}) {
        const auto none = machine(type, "0.000000");
        CHECK(none.graph.masks().healthy == 0);
        CHECK(noted(none) == 0);
    }
}

TEST_CASE("several kinds of memory for the same CPUs are one NUMA node", "[io]") {
    if (!io::reads_xml()) return;
    const auto machine = [](const std::string& numa_nodes) {
        return R"(<topology version="2.0"><object type="Machine" cpuset="0xf">
         <object type="Package" cpuset="0xf">)" +
               numa_nodes + R"(<object type="Core" cpuset="0x3"/><object type="Core" cpuset="0xc"/>
               </object></object></topology>)";
    };
    const auto numa = [](int id, const std::string& cpus, const std::string& subtype = "") {
        return R"(<object type="NUMANode" os_index=")" + std::to_string(id) + R"(" cpuset=")" + cpus + "\"" +
               (subtype.empty() ? "" : " subtype=\"" + subtype + "\"") + "/>";
    };
    const auto noted = [](const io::HardwareReading& reading) {
        return std::count_if(reading.notes.begin(), reading.notes.end(), [](const std::string& note) {
            return testing_support::mentions(note, "NUMA same CPUs DRAM HBM one kept");
        });
    };
    const std::vector<NumaNode> one{{0, 2, 0}};
    for (const auto& text :
         {numa(0, "0xf") + numa(1, "0xf", "HBM"), numa(0, "0xf", "DRAM") + numa(1, "0xf", "HBM"),
          numa(0, "0xf") + numa(1, "0xf"), numa(0, "0xf", "HBM") + numa(1, "0xf", "NVM")}) {
        const auto reading = io::hwloc_from_xml(machine(text));
        CHECK(reading.graph.hardware().numa_nodes == one);
        CHECK(noted(reading) == 1);
    }
    // The ordinary one is kept, wherever it stands.
    const auto late = io::hwloc_from_xml(machine(numa(0, "0xf", "HBM") + numa(1, "0xf")));
    CHECK(late.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 2, 0}});
    // More memory for the package, which has CPUs in two nodes.
    const auto wide = io::hwloc_from_xml(machine(numa(0, "0x3") + numa(1, "0xc") + numa(2, "0xf", "CXL")));
    CHECK(wide.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 1, 0}, {0, 1, 0}});
    CHECK(noted(wide) == 1);
    // What is not told apart by kind still may not overlap, and an id occurs once.
    CHECK(!problems_of(machine(numa(0, "0x3") + numa(1, "0xf"))).empty());
    CHECK(!problems_of(machine(numa(0, "0xf") + numa(0, "0xf"))).empty());
    std::string many;
    for (int i = 0; i < 1025; ++i) many += numa(i, "0xf");
    CHECK_THAT(problems_of(machine(many)), MentionsEach({"t 1025 NUMA 1024"}));
}

TEST_CASE("real topologies of hwloc", "[io]") {
    if (!io::reads_xml()) return;
    struct Truth {
        GpuMask gpus = 0;
        std::map<int, GpuMask> numa{};
        std::vector<GpuMask> sockets{};
        std::vector<GpuMask> roots{};
        int cores = 0;
    };
    const std::map<std::string, Truth> truth{
        {"96em64t-4n4d3ca2co-pci", {0, {}, std::vector<GpuMask>(13), {}, 96}},
        {"nvidia-dgx-gb10", {0, {}, {0}, {}, 20}},
        {"nvidiaDGX2",
         {0xffff, {{0, 0x00ff}, {1, 0xff00}}, {0x00ff, 0xff00}, {0x000f, 0x00f0, 0x0f00, 0xf000}, 4}},
        {"power8gpudistances", {0xf, {{0, 0x3}, {1, 0xc}}, {0x3, 0xc}, {1, 2, 4, 8}, 8}},
        {"chimera", {0x3, {{0, 1}, {2, 2}}, {0x3}, {1, 2}, 32}},
        {"corona11", {0xf, {{1, 1}, {2, 2}, {5, 4}, {7, 8}}, {0x3, 0xc}, {1, 2, 4, 8}, 48}},
        {"sierra2_0", {0xf, {{0, 0x3}, {8, 0xc}}, {0x3, 0xc}, {0x3, 0xc}, 44}},
        {"coral-lassen", {0xf, {{0, 0x3}, {8, 0xc}}, {0x3, 0xc}, {0x3, 0xc}, 40}},
        {"eas-tioga",
         {0xff,
          {{0, 0x30}, {1, 0x0c}, {2, 0xc0}, {3, 0x03}},
          {0xff},
          {0x10, 0x20, 0x04, 0x08, 0x40, 0x80, 0x01, 0x02},
          64}},
        {"g4dnmetal", {0xff, {{0, 0x0f}, {1, 0xf0}}, {0x0f, 0xf0}, {0x03, 0x0c, 0x30, 0xc0}, 48}},
    };
    std::size_t read = 0;
    for (const auto* folder : {"hwloc", "flux/hwloc", "mpibind"}) {
        if (!testing_support::is_here(testing_support::real_data(folder))) continue;
        const auto files = testing_support::real_files(folder, ".xml");
        for (const auto& file : files) {
            INFO(file.string());
            REQUIRE(truth.contains(file.stem().string()));
            const auto& expected = truth.at(file.stem().string());
            const auto graph = io::read_hwloc(file.string()).graph;
            CHECK(graph.masks().healthy == expected.gpus);
            std::map<int, GpuMask> numa;
            for (std::size_t n = 0; n < graph.masks().numa.size(); ++n)
                if (graph.masks().numa[n] != 0) numa[static_cast<int>(n)] = graph.masks().numa[n];
            CHECK(numa == expected.numa);
            CHECK(graph.masks().socket == expected.sockets);
            auto roots = graph.masks().pcie_root, roots_expected = expected.roots;
            std::sort(roots.begin(), roots.end());
            std::sort(roots_expected.begin(), roots_expected.end());
            CHECK(roots == roots_expected);
            CHECK(graph.hardware().cores() == expected.cores);
            if (file.stem() == "nvidiaDGX2") {
                CHECK(graph.bandwidth(0, 1) == 150);  // six links through switches
                CHECK(graph.bandwidth(0, 8) ==
                      Approx(15.753846));  // the file has no links between the two halves
                CHECK(gpu(graph, 0).model == "Tesla V100-SXM3-32GB-H");
            }
            if (file.stem() == "power8gpudistances") CHECK(graph.bandwidth(0, 1) == 40);
            if (file.stem() == "eas-tioga") {
                CHECK(graph.bottleneck_bandwidth(0xff) == 100);
                CHECK(gpu(graph, 4).uuid == "e850aef0615db971");
                CHECK(gpu(graph, 4).memory_mib == 65520);
            }
            ++read;
        }
    }
    if (read > 0) CHECK(read == truth.size());
}

TEST_CASE("texts without a topology of hwloc are refused", "[io]") {
    if (!io::reads_xml()) {
        CHECK_THROWS_AS(io::hwloc_from_xml(version_1), BackendError);
        return;
    }
    const auto refused = [](const std::string& text, const std::string& words) {
        INFO(text);
        CHECK_THROWS_MESSAGE(io::hwloc_from_xml(text, {}, "t"), InvalidInput, words);
    };
    const auto inside = [](const std::string& text) {
        return "<topology version=\"2.0\">" + text + "</topology>";
    };
    refused("<topology version=\"2.0\">\n<object type=\"Machine\" name=\"\xe9\"/></topology>", "t:2 UTF-8");
    refused(std::string("<topology>\n\0</topology>", 23), "t:2 NUL");
    refused("<system/>", "<topology>");
    refused("<topology/>", "object elements");
    refused("<topology version=\"9\"><object type=\"Machine\"/></topology>", "version 1 3");
    refused(inside("<object/>"), "type: expected");
    refused(inside("<object type=\"Machine\" cpuset=\"zz\"/>"), "cpuset words");
    refused(inside("<object type=\"NUMANode\" cpuset=\"1\"/>"), "os_index integer");
    refused(inside("<object type=\"NUMANode\" os_index=\"0\"/>"), "cpuset: expected");
    refused(inside("<object type=\"NUMANode\" os_index=\"0\" cpuset=\"1\"/><object type=\"NUMANode\" "
                   "os_index=\"0\" cpuset=\"2\"/>"),
            "NUMA node 0 twice");
    refused(inside("<object type=\"NUMANode\" os_index=\"0\" cpuset=\"1\"/><object type=\"NUMANode\" "
                   "os_index=\"1\" cpuset=\"3\"/>"),
            "CPU 0 near NUMA 1");
    refused(inside("<object type=\"Core\" cpuset=\"1\"/><object type=\"Core\" cpuset=\"1\"/>"
                   "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"1\"/>"),
            "core 0 exists twice");
    std::string many;
    for (int i = 0; i < 65; ++i)
        many +=
            "<object type=\"PCIDev\" pci_type=\"0302 [10de:1]\" pci_busid=\"" + std::to_string(i) + "\"/>";
    refused(inside(many), "65 GPUs 64");
    refused(
        inside(
            "<object type=\"Machine\"/><distances2 nbobjs=\"2\" name=\"XGMIBandwidth\"><indexes>1 2</indexes>"
            "<u64values>0 1 2</u64values></distances2>"),
        "2 indexes 4 values");
}

}  // namespace hwloc_tests

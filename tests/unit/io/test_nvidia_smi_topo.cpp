// SPDX-License-Identifier: Apache-2.0
#include "support/real_data.hpp"

#include <gpusched/io/io.hpp>

using namespace gpusched;
using topology::GpuLocality;

namespace nvidia_smi_topo_tests {

/// Two sockets with a switch each; tabs, a short row, and an empty cell before N/A.
const std::string two_by_two =
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\r\n"
    "GPU0\t X \tPIX\tSYS\tNV2\tPXB\t0-3,8-11\t0\t\tN/A\r\n"
    "GPU1\tPIX\t X \tSYS\tSYS\tPXB\t0-3,8-11\t0\t\tN/A\r\n"
    "GPU2\tSYS\tSYS\t X \tPHB\tSYS\t4-7,12-15\t1\t\tN/A\r\n"
    "GPU3\tNV2\tSYS\tPHB\t X \tSYS\t4-7,12-15\t1\t\tN/A\r\n"
    "mlx5_0\tPXB\tPXB\tSYS\tSYS\t X \r\n"
    "\r\nLegend:\r\n  X = Self\r\n  GPU9 anything\r\n";

std::vector<std::string> problems_of(const std::string& text, const io::HardwareReadOptions& options = {}) {
    return testing_support::problems_in<InvalidInput>(
        [&] { (void)io::nvidia_smi_topo_from_text(text, options, "t"); });
}

int count(const topology::HardwareGraph& graph, topology::HardwareKind kind) {
    int found = 0;
    for (const auto v : graph.vertices()) found += graph.vertex(v).kind == kind;
    return found;
}

TEST_CASE("a matrix of nvidia-smi becomes a machine", "[io]") {
    const auto [graph, notes] = io::nvidia_smi_topo_from_text(two_by_two);
    const auto hardware = graph.hardware();
    CHECK(hardware.numa_nodes == std::vector<NumaNode>{{0, 4, 0b0011}, {1, 4, 0b1100}});
    CHECK(graph.pcie_root_of(0b0011) == 0);
    CHECK(graph.pcie_root_of(0b1100) == 1);
    CHECK(graph.pcie_root_of(0b0110) == std::nullopt);
    // 0 and 1 below one switch; 2 and 3 below a host bridge, one hop further apart or equal, with NVLink across.
    CHECK(graph.distance(0, 1) == 2);
    CHECK(graph.distance(2, 3) == 2);
    CHECK(graph.distance(0, 3) == 1);
    CHECK(graph.bandwidth(0, 3) == 50);
    CHECK(graph.bandwidth(2, 3) == 31.5);
    CHECK(graph.bandwidth(1, 2) == 31.5);  // PCIe to the sockets; NVLink of 0 and 3 is theirs
    CHECK(graph.locality(0b0011) == GpuLocality::numa);
    CHECK(graph.locality(0b0110) == GpuLocality::cross);
    // The switch of GPUs 0 and 1 hangs below the wider one that the network card shares.
    CHECK(count(graph, topology::HardwareKind::pcie_switch) == 2);
    REQUIRE(notes.size() == 3);
    CHECK(notes[0].find("2 threads per core") != std::string::npos);
    CHECK(notes[1].find("sockets") == 0);
    CHECK(notes[2].find("PCIe roots") == 0);
}

TEST_CASE("spaces, missing columns and options", "[io]") {
    const std::string spaced = "something before\n"
                               "        GPU0    GPU1    CPU Affinity\n"
                               "GPU0     X      SOC     0-1\n"
                               "GPU1    SOC      X      2-3\n";
    const auto split = io::nvidia_smi_topo_from_text(spaced);
    CHECK(split.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 2, 0b01}, {1, 2, 0b10}});
    CHECK(split.notes.size() == 2);  // NUMA nodes and sockets are inferred
    CHECK(split.graph.bandwidth(0, 1) == 31.5);
    const auto one_socket = io::nvidia_smi_topo_from_text(
        spaced, {.core_group_size = 1, .threads_per_core = 2, .numa_nodes_per_socket = 2, .pcie_gb_s = 63});
    CHECK(one_socket.graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 1, 0b01}, {0, 1, 0b10}});
    CHECK(one_socket.graph.locality(0b11) == GpuLocality::socket);
    CHECK(one_socket.graph.bandwidth(0, 1) == 63);

    // Without any affinity, the matrix connects GPUs over PCIe alone.
    const auto bare = io::nvidia_smi_topo_from_text(
        "\tGPU0\tGPU1\tGPU2\nGPU0\tX\tPIX\tNODE\nGPU1\tPIX\tX\tNODE\nGPU2\tNODE\tNODE\tX\n");
    CHECK(bare.graph.distance(0, 1) == 2);
    CHECK(bare.graph.distance(0, 2) == std::nullopt);
    CHECK(bare.graph.numa_node_of(0b1) == std::nullopt);
    // Near two NUMA nodes is near none; it gets no third one either.
    const auto spread = io::nvidia_smi_topo_from_text(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tSYS\t0-3\t0-1\nGPU1\tSYS\tX\t0-1\t0\n");
    CHECK(spread.graph.numa_node_of(0b01) == std::nullopt);
    CHECK(spread.graph.numa_node_of(0b10) == 0);
    CHECK(spread.graph.masks().numa.size() == 1);
}

TEST_CASE("matrices that make no sense are refused with reasons", "[io]") {
    const auto refused = [](const std::string& text, const std::string& words) {
        INFO(text);
        CHECK_THROWS_MESSAGE(io::nvidia_smi_topo_from_text(text, {}, "t"), InvalidInput, words);
    };
    refused("\tGPU0\nGPU0\tX\xff\n", "t:2 UTF-8");
    refused("", "t matrix 'nvidia-smi topo -m'");
    refused("Legend:\nGPU0\n", "expected matrix");
    refused("\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n", "topo -p2p");
    refused("\tGPU0\tGPU1\nGPU0\tX\tPIX\n", "t GPU1 row missing");
    refused("\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPIX\n", "t:3 2 entries found 1");
    refused("\tGPU0\tGPU1\nGPU0\tX\tPIX\nGPU1\tPXB\tX\n", "t:3 GPU0 differs");
    refused("\tGPU0\tGPU1\nGPU0\tX\tNV0\nGPU1\tNV0\tX\n", "t:2 GPU1 X PIX");
    refused("\tGPU0\tGPU1\nGPU0\tX\tX\nGPU1\tX\tX\n", "X only for device itself");
    refused("\tGPU0\tGPU1\nGPU0\tX\tSYS\nGPU1\tSYS\tX\nGPU1\tSYS\tX\n", "GPU1 second row");
    refused("\tGPU0\nGPU0\tX\nwhat\tX\n", "t:3 columns 'what'");
    refused("\tGPU0\tGPU0\nGPU0\tX\tX\n", "X only for device itself");
    refused("\tGPU64\nGPU64\tX\n", "GPU64 GPU0 GPU63");
    refused("\tGPU0\tCPU Affinity\nGPU0\tX\t7-3\n", "CPU Affinity numbers ranges");
    refused("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\tX\t0-3\tfar\n", "NUMA Affinity number");
    refused("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tSYS\t0-3\t0\nGPU1\tSYS\tX\t3-4\t1\n",
            "CPU 3 near NUMA 0 1");
    refused("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tPIX\t0-3\t0\nGPU1\tPIX\tX\t4-7\t1\n",
            "share PCIe host bridge not NUMA");
    const auto cards = [](int count) {
        std::string head = "\tGPU0", row = "GPU0\tX";
        for (int i = 0; i < count; ++i) head += "\tNIC" + std::to_string(i), row += "\tPIX";
        return head + "\n" + row + "\n";
    };
    CHECK(problems_of(cards(255)).empty());
    CHECK_THAT(problems_of(cards(256)), MentionsEach({"t:1 at most 256 columns devices"}));
    CHECK(problems_of(two_by_two, {.core_group_size = 0,
                                   .threads_per_core = -1,
                                   .numa_nodes_per_socket = 0,
                                   .pcie_gb_s = 0,
                                   .interconnect_gb_s = -1,
                                   .nvlink_gb_s_per_link = 0})
              .size() == 6);
    CHECK_THROWS_AS(io::read_nvidia_smi_topo("/nowhere/at/all"), BackendError);
}

TEST_CASE("real matrices of nvidia-smi", "[io]") {
    if (!testing_support::is_here(testing_support::real_data("nvidia-smi-topo"))) return;
    const auto files = testing_support::real_files("nvidia-smi-topo", ".txt");
    // GPUs; masks per NUMA node that has GPUs; cores near GPUs: told by looking at the files.
    struct Truth {
        int gpus = 0;
        std::map<int, GpuMask> numa{};
        int cores = 0;
        double widest_0_1 = 0;
    };
    const std::map<std::string, Truth> truth{
        {"2gpu_nvlink_pair", {2, {{0, 0b11}}, 24, 50}},
        {"2gpu_phb", {2, {{0, 0b11}}, 12, 31.5}},
        {"a100_4gpu_numa_1plus3", {4, {{0, 0b1}, {1, 0b1110}}, 64, 300}},
        {"a100_8gpu", {8, {{0, 0x0f}, {1, 0xf0}}, 48, 300}},
        {"a100_8gpu_nps4_1nic", {8, {{3, 0x03}, {1, 0x0c}, {7, 0x30}, {5, 0xc0}}, 64, 300}},
        {"a100_pcie_4gpu_sys", {4, {{0, 0b0011}, {1, 0b1100}}, 20, 31.5}},
        {"gb10_1gpu_4nic", {1, {{0, 0b1}}, 20, 0}},
        {"h100_8gpu", {8, {{0, 0x0f}, {1, 0xf0}}, 104, 450}},
        {"h100_8gpu_smt", {8, {{0, 0x0f}, {1, 0xf0}}, 104, 450}},
        {"pcie_6gpu_4plus2", {6, {{0, 0x0f}, {1, 0x30}}, 48, 31.5}},
        {"rtx4090_8gpu_2nic", {8, {{0, 0x0f}, {1, 0xf0}}, 112, 31.5}},
        {"slurm_cgroup_1gpu_6nic", {1, {{0, 0b1}}, 1, 0}},
        {"v100_8gpu_cloud_vm", {8, {{0, 0xff}}, 20, 50}},
        {"v100_dgx1_4nic", {8, {{0, 0x0f}, {1, 0xf0}}, 40, 31.5}},  // PCIe; one NVLink has 25
    };
    std::size_t read = 0, refused = 0;
    for (const auto& file : files) {
        INFO(file.string());
        const auto found = truth.find(file.stem().string());
        if (found == truth.end()) {
            REQUIRE(file.stem().string().starts_with("p2p_"));
            CHECK_THROWS_WITH(io::read_nvidia_smi_topo(file.string()), Mentions("'nvidia-smi topo -p2p'"));
            ++refused;
            continue;
        }
        const auto reading = io::read_nvidia_smi_topo(file.string());
        const auto& expected = found->second;
        CHECK(gpu_count(reading.graph.masks().healthy) == expected.gpus);
        std::map<int, GpuMask> numa;
        for (std::size_t n = 0; n < reading.graph.masks().numa.size(); ++n)
            if (reading.graph.masks().numa[n] != 0) numa[static_cast<int>(n)] = reading.graph.masks().numa[n];
        CHECK(numa == expected.numa);
        CHECK(count(reading.graph, topology::HardwareKind::core) == expected.cores);
        CHECK(reading.graph.hardware().gpus() == reading.graph.masks().healthy);
        if (expected.gpus > 1) CHECK(reading.graph.bandwidth(0, 1) == expected.widest_0_1);
        ++read;
    }
    CHECK(read == truth.size());
    CHECK(refused == 2);
    const auto dgx1 = io::read_nvidia_smi_topo(
        (testing_support::real_data("nvidia-smi-topo") / "v100_dgx1_4nic.txt").string());
    CHECK(dgx1.graph.pcie_root_of(0b0011).has_value());  // told by mlx5_0, behind NVLink
    CHECK(dgx1.graph.masks().socket == std::vector<GpuMask>{0x0f, 0xf0});
    // Two links lead from 0 to 3 and from 1 to 2, one from 0 to 1: nothing passes through a third GPU.
    CHECK(dgx1.graph.bandwidth(0, 3) == 50);
    CHECK(dgx1.graph.best_gpus(2) == GpuMask{0b0110});
    CHECK(dgx1.graph.best_gpus(2, 0b1001) == GpuMask{0b1001});
    const auto nps4 = io::read_nvidia_smi_topo(
        (testing_support::real_data("nvidia-smi-topo") / "a100_8gpu_nps4_1nic.txt").string());
    CHECK(nps4.graph.pcie_root_of(0b1100).has_value());
    CHECK(!nps4.graph.pcie_root_of(0b0011).has_value());
}

}  // namespace nvidia_smi_topo_tests

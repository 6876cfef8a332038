// SPDX-License-Identifier: Apache-2.0
// The graph of a machine: what it answers, how it changes, and what it refuses.
#include "support/catch.hpp"

#include <gpusched/core/errors.hpp>
#include <gpusched/core/rng.hpp>
#include <gpusched/topology/boost_hardware.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <algorithm>
#include <vector>

using namespace gpusched;
using namespace gpusched::topology;

static_assert(HardwareTopology<HardwareGraph>);
static_assert(HardwareTopology<BoostHardwareView<BoostHardware>>);

TEST_CASE("presets answer where GPUs are and how far apart") {
    const auto rtx = HardwareGraph::preset("rtx4090x8").value();
    CHECK(rtx.hardware().numa_nodes == hardware_preset("rtx4090x8")->numa_nodes);
    CHECK(rtx.numa_node_of(0b100) == 2);
    CHECK(!rtx.numa_node_of(0b110));
    CHECK(rtx.socket_of(0b1111) == 0);
    CHECK(rtx.socket_of(0b1110000) == 1);
    CHECK(!rtx.socket_of(0b11000));
    CHECK(!rtx.socket_of(0));
    CHECK(rtx.locality(0b1) == GpuLocality::numa);
    CHECK(rtx.locality(0b11) == GpuLocality::socket);
    CHECK(rtx.locality(0b11000) == GpuLocality::cross);
    // GPU, NUMA node, core group, socket and back; one more edge between sockets.
    CHECK(rtx.distance(0, 1) == 6);
    CHECK(rtx.distance(0, 4) == 7);
    CHECK(rtx.distance(3, 3) == 0);
    CHECK(rtx.bandwidth(0, 4) == 31.5);

    const auto a100 = HardwareGraph::preset("a100x8").value();
    CHECK(a100.distance(0, 7) == 1);
    CHECK(a100.bottleneck_bandwidth(0xFF) == 300);
    CHECK(a100.pcie_root_of(0b11) == 0);
    CHECK(!a100.pcie_root_of(0b110));
    CHECK(HardwareGraph::preset("h100x8")->bandwidth(0, 7) == 450);
    CHECK(!HardwareGraph::preset("h101x8"));
}

TEST_CASE("the interconnect is the bottleneck between sockets where it is the narrowest") {
    const HardwareGraph graph(*hardware_preset("a100x8"), {.interconnect_gb_s = 20});
    CHECK(graph.bandwidth(0, 3) == 31.5);
    CHECK(graph.bandwidth(0, 4) == 20);
    CHECK(graph.bottleneck_bandwidth(0b10011) == 20);
    CHECK(graph.bottleneck_bandwidth(0b1) > 1e300);
}

TEST_CASE("cores come in groups of the asked size") {
    const HardwareGraph graph({"", {{0, 10, 0b1}, {0, 0, 0b10}}}, {.core_group_size = 4});
    std::vector<int> count(8);
    for (const auto v : graph.vertices()) ++count[static_cast<std::size_t>(graph.vertex(v).kind)];
    CHECK(count[static_cast<std::size_t>(HardwareKind::core)] == 10);
    CHECK(count[static_cast<std::size_t>(HardwareKind::core_group)] == 3);
    CHECK(graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 10, 0b1}, {0, 0, 0b10}});
    CHECK(graph.socket_of(0b11) == 0);
}

TEST_CASE("a foreign Boost graph is read") {
    boost::adjacency_list<boost::listS, boost::vecS, boost::undirectedS, HardwareVertex, HardwareEdge> g;
    const auto socket = add_vertex({.kind = HardwareKind::socket, .id = 3}, g);
    const auto numa = add_vertex({.kind = HardwareKind::numa_node, .id = 1}, g);
    const auto gpu = add_vertex({.kind = HardwareKind::gpu, .id = 5, .uuid = "GPU-5"}, g);
    add_edge(socket, numa, {HardwareRelation::hosts}, g);
    add_edge(gpu, numa, {HardwareRelation::nearby, 10}, g);
    const auto graph = HardwareGraph::from_graph(BoostHardwareView(g));
    CHECK(graph.socket_of(gpu_bit(5)) == 3);
    CHECK(graph.numa_node_of(gpu_bit(5)) == 1);
    CHECK(graph.masks().healthy == gpu_bit(5));
    // And a graph of the library's own comes through unchanged.
    const auto a100 = HardwareGraph::preset("a100x8").value();
    const auto again = HardwareGraph::from_graph(a100);
    CHECK(again.masks() == a100.masks());
    CHECK(again.vertices().size() == a100.vertices().size());
    CHECK(again.bottleneck_bandwidth(0xFF) == 300);
}

TEST_CASE("wrong graphs are refused with all reasons") {
    BoostHardware g;
    const auto gpu = add_vertex({.kind = HardwareKind::gpu, .id = 16}, g);
    add_vertex({.kind = HardwareKind::gpu, .id = 16}, g);
    const auto numa = add_vertex({.kind = HardwareKind::numa_node, .id = 0}, g);
    const auto other = add_vertex({.kind = HardwareKind::numa_node, .id = 1}, g);
    add_edge(gpu, numa, {HardwareRelation::nearby, -1}, g);
    add_edge(gpu, other, {HardwareRelation::nearby}, g);
    add_edge(numa, other, {HardwareRelation::nvlink}, g);
    try {
        (void)HardwareGraph::from_graph(BoostHardwareView(g));
        FAIL("accepted");
    } catch (const InvalidInput& error) {
        const std::string text = error.what();
        using Catch::Matchers::ContainsSubstring;
        CHECK_THAT(text, ContainsSubstring("gpu id: 16; expected 0 to 15"));
        CHECK_THAT(text, ContainsSubstring("gpu 16: exists twice"));
        CHECK_THAT(text, ContainsSubstring("gpu 16: has a second edge 'nearby', to numa_node 1"));
        CHECK_THAT(text, ContainsSubstring("bandwidth_gb_s: -1; expected more than 0"));
        CHECK_THAT(text, ContainsSubstring("edge 'nvlink' between numa_node 0 and numa_node 1"));
    }
    CHECK_THROWS_MESSAGE(HardwareGraph(Hardware{}, {.core_group_size = 0}), InvalidInput,
                         "core_group_size: 0");
    CHECK_THROWS_MESSAGE(HardwareGraph(Hardware{}, {.pcie_gb_s = 0}), InvalidInput, "pcie_gb_s: 0");
    CHECK_THROWS_MESSAGE(HardwareGraph::preset("a100x8")->best_gpus(17), InvalidInput, "count: 17");
    CHECK_THROWS_MESSAGE(HardwareGraph::preset("a100x8")->distance(0, 8), InvalidInput, "gpu: 8");
}

TEST_CASE("masks follow failures, allocations and releases") {
    auto graph = HardwareGraph::preset("a100x8").value();
    graph.allocate(0b11, "job");
    CHECK(graph.masks().free == 0b11111100);
    graph.set_failed(1);
    CHECK(graph.masks().healthy == 0b11111101);
    CHECK_THROWS_MESSAGE(graph.allocate(0b10, "other"), InvalidInput, "gpus: 1; expected free, healthy GPUs");
    graph.set_failed(1, false);
    CHECK(graph.masks().free == 0b11111100);  // still held
    CHECK(graph.release("job") == 0b11);
    CHECK(graph.masks().free == 0xFF);
    CHECK(graph.release("job") == 0);
    graph.set_failed(2);
    CHECK(graph.best_gpus(4).value() == 0b11110000);  // socket 0 has only three left
    CHECK(!graph.best_gpus(8));
}

TEST_CASE("reconcile takes over what a fresh reading shows") {
    auto graph = HardwareGraph::preset("rtx4090x8").value();
    graph.allocate(0b1, "a");
    auto reading = *hardware_preset("rtx4090x8");
    reading.numa_nodes[3].gpus = 0;  // GPU 3 vanished
    std::swap(reading.numa_nodes[4].gpus, reading.numa_nodes[5].gpus);
    using Kind = HardwareChange::Kind;
    CHECK(graph.reconcile(HardwareGraph(reading)) ==
          std::vector<HardwareChange>{{Kind::gpu_failed, 3},
                                      {Kind::gpu_moved, 4},
                                      {Kind::gpu_moved, 5},
                                      {Kind::gpu_moved, 6},
                                      {Kind::gpu_moved, 7}});  // roots were renumbered as well
    CHECK(graph.masks().healthy == 0b11110111);
    CHECK(graph.masks().free == 0b11110110);
    CHECK(graph.numa_node_of(gpu_bit(4)) == 5);
    CHECK(graph.socket_of(gpu_bit(3)) == 0);  // it is still known where it was
    const auto back = graph.reconcile(HardwareGraph(*hardware_preset("rtx4090x8")));
    CHECK(std::count(back.begin(), back.end(), HardwareChange{Kind::gpu_recovered, 3}) == 1);
    CHECK(graph.masks().healthy == 0xFF);
    CHECK(graph.reconcile(HardwareGraph(*hardware_preset("rtx4090x8"))).empty());
}

TEST_CASE("the best set of GPUs is the best of all sets, on random machines") {
    Rng rng(7);
    for (int round = 0; round < 300; ++round) {
        Hardware hardware;
        const int gpus = static_cast<int>(rng.between(1, 8)), numa = static_cast<int>(rng.between(1, 4));
        for (int n = 0; n < numa; ++n) hardware.numa_nodes.push_back({static_cast<int>(rng.below(2)), 4, 0});
        for (int g = 0; g < gpus; ++g)
            hardware.numa_nodes[rng.below(static_cast<std::uint64_t>(numa))].gpus |= gpu_bit(g);
        HardwareGraph graph(hardware, {.interconnect_gb_s = rng.chance(0.5) ? 10.0 : 40.0});
        if (rng.chance(0.3)) graph.set_failed(static_cast<int>(rng.below(static_cast<std::uint64_t>(gpus))));
        const auto from = static_cast<GpuMask>(rng.below(256));
        const int count = static_cast<int>(rng.between(0, gpus));
        const auto found = graph.best_gpus(count, from);
        bool any = false;
        for (unsigned set = 0; set < 256; ++set) {
            if ((set & ~from) != 0 || (set & ~graph.masks().healthy) != 0) continue;
            const auto mask = static_cast<GpuMask>(set);
            if (gpu_count(mask) != count) continue;
            any = true;
            REQUIRE(found);
            CHECK(graph.locality(*found) <= graph.locality(mask));
            if (graph.locality(*found) == graph.locality(mask))
                CHECK(graph.bottleneck_bandwidth(*found) >= graph.bottleneck_bandwidth(mask));
        }
        CHECK(any == found.has_value());
    }
}

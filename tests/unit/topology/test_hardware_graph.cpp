// SPDX-License-Identifier: Apache-2.0
// The graph of a machine: what it answers, how it changes, and what it refuses.
#include "support/catch.hpp"

#include <gpusched/core/rng.hpp>
#include <gpusched/topology/boost_graph.hpp>
#include <gpusched/topology/topology.hpp>

using namespace gpusched;
using namespace gpusched::topology;

static_assert(HardwareTopology<HardwareGraph>);
static_assert(HardwareTopology<BoostHardwareView<BoostHardware>>);

TEST_CASE("presets answer where GPUs are and their distances") {
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

TEST_CASE("the narrowest link between sockets is the bottleneck") {
    const HardwareGraph graph(*hardware_preset("a100x8"), {.interconnect_gb_s = 20});
    CHECK(graph.bandwidth(0, 3) == 31.5);
    CHECK(graph.bandwidth(0, 4) == 20);
    CHECK(graph.bottleneck_bandwidth(0b10011) == 20);
    CHECK(graph.bottleneck_bandwidth(0b1) > 1e300);
}

TEST_CASE("cores come in groups of the requested size") {
    const HardwareGraph graph({"", {{0, 10, 0b1}, {0, 0, 0b10}}}, {.core_group_size = 4});
    std::vector<int> count(8);
    for (const auto v : graph.vertices()) ++count[static_cast<std::size_t>(graph.vertex(v).kind)];
    CHECK(count[static_cast<std::size_t>(HardwareKind::core)] == 10);
    CHECK(count[static_cast<std::size_t>(HardwareKind::core_group)] == 3);
    CHECK(graph.hardware().numa_nodes == std::vector<NumaNode>{{0, 10, 0b1}, {0, 0, 0b10}});
    CHECK(graph.socket_of(0b11) == 0);
}

TEST_CASE("ids of NUMA nodes may have gaps") {
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, HardwareVertex, HardwareEdge> g;
    const auto socket = add_vertex({.kind = HardwareKind::socket, .id = 7}, g);
    for (const int id : {8, 2}) {
        const auto numa = add_vertex({.kind = HardwareKind::numa_node, .id = id}, g);
        const auto gpu = add_vertex({.kind = HardwareKind::gpu, .id = id}, g);
        add_edge(socket, numa, {HardwareRelation::hosts}, g);
        add_edge(numa, gpu, {HardwareRelation::nearby}, g);
    }
    const auto graph = HardwareGraph::from_graph(BoostHardwareView(g));
    CHECK(graph.masks().numa.size() == 9);
    CHECK(graph.hardware().numa_nodes == std::vector<NumaNode>{{7, 0, 0b100}, {7, 0, 0b1'0000'0000}});
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
    const auto gpu = add_vertex({.kind = HardwareKind::gpu, .id = 64}, g);
    add_vertex({.kind = HardwareKind::gpu, .id = 64}, g);
    const auto numa = add_vertex({.kind = HardwareKind::numa_node, .id = 0}, g);
    const auto other = add_vertex({.kind = HardwareKind::numa_node, .id = 1}, g);
    add_edge(gpu, numa, {HardwareRelation::nearby, -1}, g);
    add_edge(gpu, other, {HardwareRelation::nearby}, g);
    add_edge(numa, other, {HardwareRelation::nvlink}, g);
    CHECK_THAT(testing_support::problems_in<InvalidInput>(
                   [&] { (void)HardwareGraph::from_graph(BoostHardwareView(g)); }),
               MentionsEach({"gpu id 64 0 63", "gpu id 64 0 63", "gpu 64 exists twice",
                             "gpu 64 to numa_node 0 bandwidth_gb_s -1 more than 0",
                             "gpu 64 second edge 'nearby' numa_node 1",
                             "edge 'nvlink' between numa_node 0 and numa_node 1"}));
    CHECK_THROWS_MESSAGE(HardwareGraph(Hardware{}, {.core_group_size = 0}), InvalidInput,
                         "core_group_size 0");
    CHECK_THROWS_MESSAGE(HardwareGraph(Hardware{}, {.pcie_gb_s = 0}), InvalidInput, "pcie_gb_s 0");
    CHECK_THROWS_MESSAGE(HardwareGraph::preset("a100x8")->best_gpus(65), InvalidInput, "count 65");
    CHECK_THROWS_MESSAGE(HardwareGraph::preset("a100x8")->distance(0, 8), InvalidInput, "gpu 8");
}

TEST_CASE("masks follow failures, allocations and releases") {
    auto graph = HardwareGraph::preset("a100x8").value();
    graph.allocate(0b11, "job");
    CHECK(graph.masks().free == 0b11111100);
    graph.set_failed(1);
    CHECK(graph.masks().healthy == 0b11111101);
    CHECK_THROWS_MESSAGE(graph.allocate(0b10, "other"), InvalidInput, "gpus 1 free healthy");
    graph.set_failed(1, false);
    CHECK(graph.masks().free == 0b11111100);  // still held
    CHECK(graph.release("job") == 0b11);
    CHECK(graph.masks().free == 0xFF);
    CHECK(graph.release("job") == 0);
    graph.set_failed(2);
    CHECK(graph.best_gpus(4).value() == 0b11110000);  // socket 0 has only three left
    CHECK(!graph.best_gpus(8));
}

TEST_CASE("reconcile adopts a fresh reading") {
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
    CHECK(graph.socket_of(gpu_bit(3)) == 0);  // its place is still known
    const auto back = graph.reconcile(HardwareGraph(*hardware_preset("rtx4090x8")));
    CHECK(std::count(back.begin(), back.end(), HardwareChange{Kind::gpu_recovered, 3}) == 1);
    CHECK(graph.masks().healthy == 0xFF);
    CHECK(graph.reconcile(HardwareGraph(*hardware_preset("rtx4090x8"))).empty());
}

namespace {

// The widest path between two GPUs and the edges of the shortest, by other means than the graph's own: rounds over the list
// of edges until nothing changes, with all third GPUs left out.
struct Pair {
    double gb_s = 0;
    int edges = 1 << 20;
};
Pair pair_by_rounds(const HardwareGraph& graph, int a, int b) {
    constexpr double unlimited = std::numeric_limits<double>::infinity();
    std::vector<Pair> reached(graph.vertices().size());
    const auto left_out = [&](HardwareGraph::Vertex v) {
        const auto& vertex = graph.vertex(v);
        return vertex.kind == HardwareKind::gpu && vertex.id != a && vertex.id != b;
    };
    HardwareGraph::Vertex to = 0;
    for (const auto v : graph.vertices()) {
        if (graph.vertex(v).kind != HardwareKind::gpu) continue;
        if (graph.vertex(v).id == a) reached[v] = {unlimited, 0};
        if (graph.vertex(v).id == b) to = v;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto e : graph.edges()) {
            const auto s = graph.source(e), t = graph.target(e);
            if (left_out(s) || left_out(t)) continue;
            for (const auto& [from, next] : {std::pair(s, t), std::pair(t, s)}) {
                const auto width = std::min(reached[from].gb_s, graph.edge(e).bandwidth_gb_s);
                const auto edges = reached[from].edges + 1;
                changed = changed || width > reached[next].gb_s || edges < reached[next].edges;
                reached[next] = {std::max(reached[next].gb_s, width), std::min(reached[next].edges, edges)};
            }
        }
    }
    return reached[to];
}

}  // namespace

TEST_CASE("reconcile keeps the holders of cores, core groups and GPUs") {
    // Two NUMA nodes of two groups of four cores; held by name, and by an unnamed holder.
    auto known =
        HardwareGraph(Hardware{"", {{0, 8, 0b01}, {1, 8, 0b10}}}, {.core_group_size = 4}).boost_graph();
    const auto at = [](const auto& graph, HardwareKind kind, int id) {
        for (const auto v : boost::make_iterator_range(vertices(graph)))
            if (graph[v].kind == kind && graph[v].id == id) return v;
        throw std::out_of_range("vertex");
    };
    const auto hold = [&](HardwareKind kind, int id, const char* user) {
        known[at(known, kind, id)].status = HardwareStatus::allocated;
        known[at(known, kind, id)].used_by = user;
    };
    hold(HardwareKind::core, 2, "pod");
    hold(HardwareKind::core, 15, "other");
    hold(HardwareKind::core_group, 1, "pod");
    hold(HardwareKind::core_group, 3, "");
    hold(HardwareKind::gpu, 1, "");
    const auto state = [&](const HardwareGraph& graph, HardwareKind kind, int id) {
        const auto& v = graph.boost_graph()[at(graph.boost_graph(), kind, id)];
        return std::pair(v.status, v.used_by);
    };
    const auto held = [](const char* user) {
        return std::pair(HardwareStatus::allocated, std::string(user));
    };
    const std::pair<HardwareStatus, std::string> idle{HardwareStatus::free, ""};
    // NUMA node 1 has lost its last four cores, hence group 3.
    const auto reading = HardwareGraph(Hardware{"", {{0, 8, 0b01}, {1, 4, 0b10}}}, {.core_group_size = 4});
    auto graph = HardwareGraph::from_graph(BoostHardwareView(known));
    CHECK(graph.reconcile(reading).empty());
    CHECK(state(graph, HardwareKind::core, 2) == held("pod"));
    CHECK(state(graph, HardwareKind::core, 3) == idle);
    CHECK(state(graph, HardwareKind::core_group, 1) == held("pod"));
    CHECK(state(graph, HardwareKind::core_group, 0) == idle);
    CHECK(state(graph, HardwareKind::gpu, 1) == held(""));
    CHECK(graph.masks().free == 0b01);
    CHECK(graph.reconcile(reading).empty());
    CHECK(state(graph, HardwareKind::core, 2) == held("pod"));
    // Groups of other cores under the same ids are not those that are held; cores are.
    graph = HardwareGraph::from_graph(BoostHardwareView(known));
    CHECK(graph.reconcile(HardwareGraph(Hardware{"", {{0, 8, 0b01}, {1, 8, 0b10}}}, {.core_group_size = 3}))
              .empty());
    CHECK(state(graph, HardwareKind::core_group, 1) == idle);
    CHECK(state(graph, HardwareKind::core, 15) == held("other"));
}

TEST_CASE("paths pass through no other GPU") {
    // A chain of NVLinks: 0 - 1 - 2, and nothing else.
    BoostHardware g;
    for (int i = 0; i < 3; ++i) add_vertex({.kind = HardwareKind::gpu, .id = i}, g);
    add_edge(0, 1, {HardwareRelation::nvlink, 100}, g);
    add_edge(1, 2, {HardwareRelation::nvlink, 100}, g);
    const auto chain = HardwareGraph::from_graph(BoostHardwareView(g));
    CHECK(chain.bandwidth(0, 1) == 100);
    CHECK(chain.bandwidth(0, 2) == 0);
    CHECK(chain.distance(0, 2) == std::nullopt);
    CHECK(chain.bottleneck_bandwidth(0b111) == 0);

    // The four GPUs of one socket of a DGX-1: one link between 0 and 1 and between 2 and 3, two between 0 and 3, 1 and 2.
    auto socket = HardwareGraph(Hardware{"", {{0, 8, 0b1111}}}, {.pcie_gb_s = 15.75}).boost_graph();
    const auto gpu = [&](int id) {
        for (const auto v : boost::make_iterator_range(vertices(socket)))
            if (socket[v].kind == HardwareKind::gpu && socket[v].id == id) return v;
        throw std::out_of_range("gpu");
    };
    for (const auto& [a, b, gb_s] :
         {std::tuple(0, 1, 25), {0, 2, 25}, {0, 3, 50}, {1, 2, 50}, {1, 3, 25}, {2, 3, 50}})
        add_edge(gpu(a), gpu(b), {HardwareRelation::nvlink, static_cast<double>(gb_s)}, socket);
    auto dgx1 = HardwareGraph::from_graph(BoostHardwareView(socket));
    CHECK(dgx1.bandwidth(0, 1) == 25);
    CHECK(dgx1.bandwidth(0, 3) == 50);
    CHECK(dgx1.best_gpus(2) == GpuMask{0b0110});
    CHECK(dgx1.best_gpus(2, 0b1101) == GpuMask{0b1001});
    dgx1.set_failed(3);
    CHECK(dgx1.bandwidth(0, 2) == 25);
}

TEST_CASE("the best set of GPUs is the best of all sets, on random machines") {
    Rng rng(7);
    int narrower = 0;  // pairs to which a third GPU has more
    for (int round = 0; round < 300; ++round) {
        Hardware hardware;
        const int gpus = static_cast<int>(rng.between(1, 8)), numa = static_cast<int>(rng.between(1, 4));
        for (int n = 0; n < numa; ++n) hardware.numa_nodes.push_back({static_cast<int>(rng.below(2)), 4, 0});
        for (int g = 0; g < gpus; ++g)
            hardware.numa_nodes[rng.below(static_cast<std::uint64_t>(numa))].gpus |= gpu_bit(g);
        auto drawn =
            HardwareGraph(hardware, {.interconnect_gb_s = rng.chance(0.5) ? 10.0 : 40.0}).boost_graph();
        std::vector<BoostHardware::vertex_descriptor> gpu_vertices;
        for (const auto v : boost::make_iterator_range(vertices(drawn)))
            if (drawn[v].kind == HardwareKind::gpu) gpu_vertices.push_back(v);
        for (const auto a : gpu_vertices)
            for (const auto b : gpu_vertices)
                if (a < b && rng.chance(0.4))
                    add_edge(a, b, {HardwareRelation::nvlink, 25.0 * static_cast<double>(rng.between(1, 4))},
                             drawn);
        auto graph = HardwareGraph::from_graph(BoostHardwareView(drawn));
        if (rng.chance(0.3)) graph.set_failed(static_cast<int>(rng.below(static_cast<std::uint64_t>(gpus))));

        Pair pairs[8][8];
        for (int a = 0; a < gpus; ++a)
            for (int b = 0; b < gpus; ++b) {
                pairs[a][b] = pair_by_rounds(graph, a, b);
                REQUIRE(graph.bandwidth(a, b) == pairs[a][b].gb_s);
                REQUIRE(graph.distance(a, b).value_or(1 << 20) == pairs[a][b].edges);
            }
        for (int a = 0; a < gpus; ++a)
            for (int b = 0; b < gpus; ++b)
                for (int c = 0; c < gpus; ++c)
                    narrower += a != b && b != c && c != a &&
                                std::min(pairs[a][c].gb_s, pairs[c][b].gb_s) > pairs[a][b].gb_s;
        // 0 = one NUMA node, 1 = one socket, 2 = neither.
        const auto spread = [&](unsigned set) {
            if (std::popcount(set) < 2) return 0;
            GpuMask socket[2] = {0, 0};
            for (const auto& n : hardware.numa_nodes) {
                if ((set & ~n.gpus) == 0) return 0;
                socket[n.socket] |= n.gpus;
            }
            return (set & ~socket[0]) == 0 || (set & ~socket[1]) == 0 ? 1 : 2;
        };
        const auto worth = [&](unsigned set) {
            double worst = std::numeric_limits<double>::infinity();
            int edges = 0;
            for (int a = 0; a < gpus; ++a)
                for (int b = a + 1; b < gpus; ++b)
                    if ((set >> a & set >> b & 1u) != 0) {
                        worst = std::min(worst, pairs[a][b].gb_s);
                        edges += pairs[a][b].edges;
                    }
            return std::tuple(spread(set), -worst, edges, set);
        };
        const auto from = static_cast<GpuMask>(rng.below(256));
        const int count = static_cast<int>(rng.between(0, gpus));
        std::optional<std::tuple<int, double, int, unsigned>> best;
        for (unsigned set = 0; set < 256; ++set) {
            if ((set & ~from) != 0 || (set & ~graph.masks().healthy) != 0 || std::popcount(set) != count)
                continue;
            if (!best || worth(set) < *best) best = worth(set);
        }
        const auto found = graph.best_gpus(count, from);
        REQUIRE(found.has_value() == best.has_value());
        if (found) CHECK(*found == std::get<3>(*best));
    }
    CHECK(narrower > 1000);  // the test is about something
}

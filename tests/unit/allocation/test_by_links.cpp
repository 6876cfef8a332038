// SPDX-License-Identifier: Apache-2.0
// ByLinks: GPUs of a node by their links, by hand and against enumeration with recomputed bandwidths.
#include "support/catch.hpp"

#include <gpusched/allocation/allocation.hpp>
#include <gpusched/io/hardware_files.hpp>

#include <fstream>

using namespace gpusched;
using namespace gpusched::allocation;
using topology::HardwareGraph;
using topology::HardwareKind;
using topology::HardwareRelation;
using topology::HardwareVertex;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// GPUs spread over NUMA nodes and these over sockets, with NVLink between some and PCIe below NUMA nodes.
struct Machine {
    using Vertex = std::size_t;
    using Edge = std::size_t;
    struct Link {
        Vertex a, b;
        topology::HardwareEdge edge;
    };
    std::vector<HardwareVertex> infos{};
    std::vector<Link> links{};
    [[nodiscard]] std::vector<Vertex> vertices() const { return first(infos.size()); }
    [[nodiscard]] std::vector<Edge> edges() const { return first(links.size()); }
    [[nodiscard]] const HardwareVertex& vertex(Vertex v) const { return infos[v]; }
    [[nodiscard]] const topology::HardwareEdge& edge(Edge e) const { return links[e].edge; }
    [[nodiscard]] Vertex source(Edge e) const { return links[e].a; }
    [[nodiscard]] Vertex target(Edge e) const { return links[e].b; }

    [[nodiscard]] static std::vector<std::size_t> first(std::size_t count) {
        std::vector<std::size_t> all(count);
        std::iota(all.begin(), all.end(), std::size_t{0});
        return all;
    }

    Vertex add(HardwareKind kind, int id) {
        infos.push_back({.kind = kind, .id = id});
        return infos.size() - 1;
    }
    void join(Vertex a, Vertex b, HardwareRelation relation, double gb_s = infinity) {
        links.push_back({a, b, {relation, gb_s}});
    }

    /// GPU g near NUMA node numa[g], which is in socket socket[numa[g]] and has a PCIe root.
    static Machine of(const std::vector<int>& numa, const std::vector<int>& socket, double pcie,
                      double interconnect) {
        Machine m;
        for (std::size_t g = 0; g < numa.size(); ++g) m.add(HardwareKind::gpu, static_cast<int>(g));
        const int sockets = *std::max_element(socket.begin(), socket.end()) + 1;
        std::vector<Vertex> socket_at;
        for (int s = 0; s < sockets; ++s) socket_at.push_back(m.add(HardwareKind::socket, s));
        for (int s = 0; s < sockets; ++s)
            for (int t = 0; t < s; ++t)
                m.join(socket_at[static_cast<std::size_t>(s)], socket_at[static_cast<std::size_t>(t)],
                       HardwareRelation::interconnect, interconnect);
        for (std::size_t n = 0; n < socket.size(); ++n) {
            const auto at = m.add(HardwareKind::numa_node, static_cast<int>(n));
            const auto root = m.add(HardwareKind::pcie_root, static_cast<int>(n));
            m.join(socket_at[static_cast<std::size_t>(socket[n])], at, HardwareRelation::hosts);
            m.join(at, root, HardwareRelation::pcie);
            for (std::size_t g = 0; g < numa.size(); ++g)
                if (numa[g] == static_cast<int>(n)) {
                    m.join(g, at, HardwareRelation::nearby, pcie);
                    m.join(root, g, HardwareRelation::pcie, pcie);
                }
        }
        return m;
    }
    void nvlink(Vertex a, Vertex b, double gb_s) { join(a, b, HardwareRelation::nvlink, gb_s); }
    [[nodiscard]] HardwareGraph graph() const { return HardwareGraph::from_graph(*this); }
};

TaskSpec task(std::string name, std::int64_t gpus, std::vector<int> held = {}) {
    TaskSpec t{.name = std::move(name)};
    t.gpu_count = gpus;
    if (!held.empty()) t.node = "n";
    t.gpus = std::move(held);
    return t;
}

NodeSpec node(std::string name, int gpus, std::string model = "M") {
    NodeSpec n{.name = std::move(name),
               .gpu_model = std::move(model),
               .gpu_count = gpus,
               .cpu_milli = 64'000,
               .memory_mib = 1024};
    return n;
}

Cluster one_node(int gpus, std::vector<TaskSpec> tasks) {
    return Cluster::build({.nodes = {node("n", gpus)}, .tasks = std::move(tasks)});
}

GpuMask pick(const HardwareGraph& graph, const Cluster& cluster, const char* name) {
    const ByLinks picker(cluster.inventory(), {.by_gpu_model = {{"M", graph}}});
    return picker(cluster, cluster.find_task(name), make_id<NodeId>(0));
}

/// DGX-1: two sockets of four GPUs, a cube of NVLinks of one (25 GB/s) or two (50).
HardwareGraph dgx1() {
    auto m = Machine::of({0, 0, 0, 0, 1, 1, 1, 1}, {0, 1}, 12, 20);
    for (const auto& [a, b, count] : std::vector<std::tuple<std::size_t, std::size_t, int>>{{0, 1, 1},
                                                                                            {0, 2, 1},
                                                                                            {0, 3, 2},
                                                                                            {0, 4, 2},
                                                                                            {1, 2, 2},
                                                                                            {1, 3, 1},
                                                                                            {1, 5, 2},
                                                                                            {2, 3, 2},
                                                                                            {2, 6, 1},
                                                                                            {3, 7, 1},
                                                                                            {4, 5, 1},
                                                                                            {4, 6, 1},
                                                                                            {4, 7, 2},
                                                                                            {5, 6, 2},
                                                                                            {5, 7, 1},
                                                                                            {6, 7, 2}})
        m.nvlink(a, b, 25.0 * count);
    return m.graph();
}

GpuMask set(std::initializer_list<int> gpus) {
    GpuMask mask = 0;
    for (const int g : gpus) mask |= gpu_bit(g);
    return mask;
}

}  // namespace

static_assert(GpuPicker<ByLinks>);

TEST_CASE("two GPUs of a cube of NVLinks are two with two links") {
    const auto graph = dgx1();
    CHECK(pick(graph, one_node(8, {task("two", 2)}), "two") == set({1, 2}));
    CHECK(pick(graph, one_node(8, {task("a", 1, {2}), task("two", 2)}), "two") == set({0, 3}));
    // Sockets go first: 0 and 4 have two links, 0 and 1 one.
    CHECK(pick(graph, one_node(8, {task("a", 5, {2, 3, 5, 6, 7}), task("two", 2)}), "two") == set({0, 1}));
    // The choice without links.
    const auto cluster = one_node(8, {task("a", 1, {2}), task("two", 2)});
    CHECK(FewestCrossings{}(cluster, cluster.find_task("two"), make_id<NodeId>(0)) == set({0, 1}));
}

TEST_CASE("a single GPU leaves bridged pairs whole") {
    // Four GPUs of one NUMA node, bridged in pairs 0-2 and 1-3; 1 is taken.
    auto machine = Machine::of({0, 0, 0, 0}, {0}, 31.5, 32);
    machine.nvlink(0, 2, 300), machine.nvlink(1, 3, 300);
    const auto cluster = one_node(4, {task("a", 1, {1}), task("one", 1), task("two", 2)});
    CHECK(pick(machine.graph(), cluster, "one") == set({3}));
    CHECK(pick(machine.graph(), cluster, "two") == set({0, 2}));
}

TEST_CASE("ties in bandwidth are broken by the length of paths") {
    // Two switches of two GPUs below one root, everything as wide as a GPU's own link.
    Machine m;
    for (int g = 0; g < 4; ++g) m.add(HardwareKind::gpu, g);
    const auto root = m.add(HardwareKind::pcie_root, 0);
    for (std::size_t s = 0; s < 2; ++s) {
        const auto at = m.add(HardwareKind::pcie_switch, static_cast<int>(s));
        m.join(root, at, HardwareRelation::pcie, 31.5);
        for (const std::size_t g : {s, s + 2}) m.join(at, g, HardwareRelation::pcie, 31.5);
    }
    CHECK(pick(m.graph(), one_node(4, {task("two", 2)}), "two") == set({0, 2}));
    CHECK(pick(m.graph(), one_node(4, {task("a", 1, {2}), task("two", 2)}), "two") == set({1, 3}));
}

TEST_CASE("a node's own graph goes before its model's, and without one crossings decide") {
    auto bridged = Machine::of({0, 0, 0, 0}, {0}, 31.5, 32);
    auto other = bridged;
    bridged.nvlink(0, 2, 300), other.nvlink(1, 3, 300);
    auto two = task("two", 2);
    const auto cluster = Cluster::build(
        {.nodes = {node("n", 4), node("own", 4), node("plain", 4, "X"), {.name = "none"}}, .tasks = {two}},
        IdOrder::as_listed);
    const ByLinks picker(cluster.inventory(),
                         {.by_gpu_model = {{"M", bridged.graph()}}, .by_node = {{"own", other.graph()}}});
    const auto ask = [&](std::size_t n) { return picker(cluster, make_id<TaskId>(0), make_id<NodeId>(n)); };
    CHECK(ask(0) == set({0, 2}));
    CHECK(ask(1) == set({1, 3}));
    CHECK(ask(2) == set({0, 1}));
    // As a policy among others, behind one type too.
    Rng rng(1);
    CHECK(place(
              cluster, make_id<TaskId>(0), [](const Cluster&, TaskId, NodeId n) { return n == NodeId{1}; },
              AnyGpuPicker(picker), rng) == Destination{make_id<NodeId>(1), set({1, 3})});
}

TEST_CASE("graphs that do not fit the cluster are refused, all at once") {
    auto broken = node("broken", 8);
    broken.failed_gpus = {6, 7};
    const auto cluster = Cluster::build(
        {.nodes = {node("n", 8), broken, node("m", 2)}, .tasks = {task("t", 2)}}, IdOrder::as_listed);
    const auto small = Machine::of({0, 0, 0, 0, 0, 0}, {0}, 31.5, 32).graph();
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] {
                   ByLinks(cluster.inventory(), {.by_gpu_model = {{"M", small}, {"abacus", small}},
                                                 .by_node = {{"nowhere", small}}});
               }),
               MentionsEach({"by_gpu_model: 'abacus'; expected GPU model",
                             "by_node: 'nowhere'; expected node", "node 'n': lacks GPU 6"}));
    // Made for another cluster.
    const auto narrow = one_node(4, {task("t", 2)});
    const ByLinks picker(narrow.inventory(), {.by_gpu_model = {{"M", small}}});
    REQUIRE_THROWS_MESSAGE(picker(cluster, make_id<TaskId>(0), make_id<NodeId>(0)), InvalidInput,
                           "node 'n': lacks GPU 6");
    CHECK(picker(cluster, make_id<TaskId>(0), make_id<NodeId>(1)) == set({0, 1}));
}

TEST_CASE("by links equals a comparison of all sets with recomputed bandwidths and distances") {
    Rng rng(41);
    const auto below = [&](int n) { return static_cast<int>(rng.below(static_cast<std::uint64_t>(n))); };
    int differs = 0;
    for (int i = 0; i < 2000; ++i) {
        const int gpus = 1 + below(9), sockets = 1 + below(2), numas = sockets * (1 + below(2));
        std::vector<int> numa, socket;
        for (int n = 0; n < numas; ++n) socket.push_back(n % sockets);
        for (int g = 0; g < gpus; ++g) numa.push_back(below(numas));
        const double pcie = 16.0 * (1 + below(3)), across = 10.0 * (1 + below(4));
        auto machine = Machine::of(numa, socket, pcie, across);
        std::vector<std::vector<double>> nvlink(static_cast<std::size_t>(gpus),
                                                std::vector<double>(static_cast<std::size_t>(gpus), 0));
        for (std::size_t a = 0; a < nvlink.size(); ++a)
            for (std::size_t b = a + 1; b < nvlink.size(); ++b)
                if (below(3) == 0) {
                    nvlink[a][b] = nvlink[b][a] = 22.5 * (1 + below(3));
                    machine.nvlink(a, b, nvlink[a][b]);
                }
        const auto same_socket = [&](std::size_t a, std::size_t b) {
            return socket[static_cast<std::size_t>(numa[a])] == socket[static_cast<std::size_t>(numa[b])];
        };
        const auto bandwidth = [&](std::size_t a, std::size_t b) {
            return std::max(nvlink[a][b], same_socket(a, b) ? pcie : std::min(pcie, across));
        };
        const auto distance = [&](std::size_t a, std::size_t b) {
            return nvlink[a][b] > 0 ? 1 : numa[a] == numa[b] ? 2 : same_socket(a, b) ? 4 : 5;
        };
        std::vector<TaskSpec> tasks;
        std::vector<int> taken;
        for (int g = 0; g < gpus; ++g)
            if (below(4) == 0) taken.push_back(g);
        if (!taken.empty()) tasks.push_back(task("running", static_cast<std::int64_t>(taken.size()), taken));
        const int free = gpus - static_cast<int>(taken.size());
        if (free == 0) continue;
        const int wanted = 1 + below(free);
        tasks.push_back(task("new", wanted));
        const auto cluster = one_node(gpus, tasks);
        const auto idle = cluster.idle_gpus(make_id<NodeId>(0));

        std::optional<std::tuple<int, int, double, int, int, int, double, GpuMask>> best;
        for (unsigned chosen = 0; chosen < (1u << gpus); ++chosen) {
            if (std::popcount(chosen) != wanted || (chosen & ~idle) != 0) continue;
            const auto left = static_cast<unsigned>(idle & ~chosen);
            const auto in = [](unsigned mask, std::size_t g) { return (mask >> g & 1u) != 0; };
            std::array<int, 4> of_numa{}, of_socket{}, left_numa{}, left_socket{};
            double worst = infinity, kept = 0;
            int hops = 0;
            for (std::size_t a = 0; a < nvlink.size(); ++a) {
                const auto n = static_cast<std::size_t>(numa[a]), s = static_cast<std::size_t>(socket[n]);
                of_numa[n] += in(chosen, a), of_socket[s] += in(chosen, a);
                left_numa[n] += in(left, a), left_socket[s] += in(left, a);
                for (std::size_t b = a + 1; b < nvlink.size(); ++b) {
                    if (in(chosen, a) && in(chosen, b))
                        worst = std::min(worst, bandwidth(a, b)), hops += distance(a, b);
                    if (in(left, a) && in(left, b)) kept += bandwidth(a, b);
                }
            }
            const auto used = [](const auto& counts) {
                return static_cast<int>(
                    std::count_if(counts.begin(), counts.end(), [](int c) { return c > 0; }));
            };
            const auto blocks = [](const auto& counts) {
                int sum = 0;
                for (const int c : counts) sum -= c * c;
                return sum;
            };
            const std::tuple now(used(of_socket), used(of_numa), -worst, hops, blocks(left_socket),
                                 blocks(left_numa), -kept, static_cast<GpuMask>(chosen));
            if (!best || now < *best) best = now;
        }
        CAPTURE(i);
        const auto picked = pick(machine.graph(), cluster, "new");
        REQUIRE(picked == std::get<7>(*best));
        REQUIRE(gpus_fit(cluster, cluster.find_task("new"), make_id<NodeId>(0), picked));
        differs += picked != lowest_gpus(idle, wanted);
    }
    CHECK(differs > 300);
}

TEST_CASE("the example of docs/allocation.md") {
    const auto path = (std::filesystem::temp_directory_path() / "gpusched-by-links-topo.txt").string();
    std::ofstream(path) << "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
                           "GPU0\t X \tPHB\tNV2\t0-7\t0\n"
                           "GPU1\tPHB\t X \tPHB\t0-7\t0\n"
                           "GPU2\tNV2\tPHB\t X \t0-7\t0\n";
    ClusterSpec spec;
    spec.nodes = {{.name = "n", .gpu_model = "V100", .gpu_count = 3}};
    spec.tasks = {{.name = "t", .gpu_count = 2}};
    const auto cluster = Cluster::build(spec);
    const auto task = cluster.find_task("t");
    Rng rng(0);
    // The same code except for the name of the file.
    std::map<std::string, topology::HardwareGraph> graphs;
    graphs.emplace("V100", io::read_nvidia_smi_topo(path).graph);
    const ByLinks picker(cluster.inventory(), {.by_gpu_model = std::move(graphs)});
    const auto where = place(cluster, task, Packing{}, picker, rng);
    std::filesystem::remove(path);
    REQUIRE(where);
    CHECK(where->gpus == 0b101);
}

// SPDX-License-Identifier: Apache-2.0
// HardwareGraph: one machine as a graph, and constant-time questions about sets of its GPUs.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/hardware.hpp>
#include <gpusched/topology/hardware_concepts.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::topology {

struct BoostHardware;  // boost_hardware.hpp

/// How a graph is drawn from a machine that is only known by its NUMA nodes.
struct HardwareGraphOptions {
    int core_group_size = 8;     ///< cores per core group, >= 1; the last group of a NUMA node may be smaller
    int gpus_per_pcie_root = 0;  ///< 0 = all GPUs of a NUMA node share one root; >= 0
    double pcie_gb_s = 31.5;     ///< of each GPU's PCIe link (4.0 x16), > 0
    double interconnect_gb_s = 32;        ///< between each two sockets, > 0
    std::optional<double> nvlink_gb_s{};  ///< between each two GPUs, > 0; absent = no NVLink
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareGraphOptions>, F&& field) {
    field("core_group_size", &HardwareGraphOptions::core_group_size, at_least(1));
    field("gpus_per_pcie_root", &HardwareGraphOptions::gpus_per_pcie_root, at_least(0));
    field("pcie_gb_s", &HardwareGraphOptions::pcie_gb_s, more_than(0));
    field("interconnect_gb_s", &HardwareGraphOptions::interconnect_gb_s, more_than(0));
    field("nvlink_gb_s", &HardwareGraphOptions::nvlink_gb_s, more_than(0));
}

/// Which GPUs are alike in place and state, as bit masks. Sorted by id; ids without GPUs have empty masks.
struct AffinityMasks {
    GpuMask healthy = 0;  ///< GPUs that have not failed
    GpuMask free = 0;     ///< healthy ones that nobody holds
    std::vector<GpuMask> numa{}, socket{}, pcie_root{};
    bool operator==(const AffinityMasks&) const = default;
};

/// One difference that `HardwareGraph::reconcile` found and took over.
struct HardwareChange {
    enum class Kind : std::uint8_t { gpu_failed, gpu_recovered, gpu_added, gpu_replaced, gpu_moved };
    Kind kind = Kind::gpu_failed;
    int gpu = 0;
    bool operator==(const HardwareChange&) const = default;
};
constexpr auto enum_names(HardwareChange::Kind) {
    return name_table<HardwareChange::Kind>({
        {HardwareChange::Kind::gpu_failed, "gpu_failed"},
        {HardwareChange::Kind::gpu_recovered, "gpu_recovered"},
        {HardwareChange::Kind::gpu_added, "gpu_added"},
        {HardwareChange::Kind::gpu_replaced, "gpu_replaced"},
        {HardwareChange::Kind::gpu_moved, "gpu_moved"},
    });
}

/// How close the GPUs of a set are.
enum class GpuLocality : std::uint8_t { numa, socket, cross };
constexpr auto enum_names(GpuLocality) {
    return name_table<GpuLocality>({
        {GpuLocality::numa, "numa"},
        {GpuLocality::socket, "socket"},
        {GpuLocality::cross, "cross"},
    });
}

/// One machine (FlexTopo): sockets, core groups, cores, NUMA nodes, PCIe roots and switches, GPUs, and how they hang
/// together.
///
/// Held as a Boost.Graph (see boost_hardware.hpp for access to it), with bit masks and tables over pairs of GPUs that
/// are computed once and kept in step whenever a GPU fails, is taken or given back. So that searches can ask: questions
/// about sets of GPUs cost O(GPUs of the set) or less and allocate nothing. Models HardwareTopology. Copies are deep.
class HardwareGraph {
  public:
    using Vertex = std::size_t;
    /// Number in the list of edges.
    using Edge = std::size_t;

    /// The machine that NUMA nodes describe: PCIe roots hang from NUMA nodes, sockets are all connected.
    /// @throws InvalidInput for options out of range
    explicit HardwareGraph(const Hardware& hardware, const HardwareGraphOptions& options = {});

    /// A preset of `hardware_preset` with the links that such machines have: rtx4090x8 one PCIe 4.0 root per GPU;
    /// a100x8 (h100x8) one PCIe 4.0 (5.0) root per two GPUs and NVLink with 300 (450) GB/s between all. Nominal values
    /// in one direction.
    [[nodiscard]] static std::optional<HardwareGraph> preset(std::string_view name);

    /// The machine that a graph of any other type describes.
    /// @throws InvalidInput with every problem: ids that are negative, too large or used twice; GPUs near several NUMA
    ///     nodes, core groups localized to or hosted by several; NUMA nodes in several sockets; bandwidths <= 0
    template <HardwareTopology G>
    [[nodiscard]] static HardwareGraph from_graph(const G& graph);

    HardwareGraph(const HardwareGraph& other);
    HardwareGraph(HardwareGraph&&) noexcept;
    HardwareGraph& operator=(HardwareGraph other) noexcept;
    ~HardwareGraph();

    // As a graph -------------------------------------------------------------------------------------------
    [[nodiscard]] std::vector<Vertex> vertices() const;
    [[nodiscard]] std::vector<Edge> edges() const;
    [[nodiscard]] const HardwareVertex& vertex(Vertex v) const;
    [[nodiscard]] const HardwareEdge& edge(Edge e) const;
    [[nodiscard]] Vertex source(Edge e) const;
    [[nodiscard]] Vertex target(Edge e) const;
    [[nodiscard]] const BoostHardware& boost_graph() const noexcept { return *graph_; }
    /// Its GPUs, failed ones among them.
    [[nodiscard]] GpuMask gpus() const noexcept;
    /// The machine in the model's words, for NodeSpec::hardware: its NUMA nodes by ascending id, without the gaps that
    /// ids may have. Failed GPUs are among its GPUs.
    /// @throws InvalidInput when a NUMA node with GPUs is in no socket, or a GPU near no NUMA node
    [[nodiscard]] Hardware hardware() const;

    // Questions --------------------------------------------------------------------------------------------
    [[nodiscard]] const AffinityMasks& masks() const noexcept { return masks_; }
    /// Edges on the shortest path between two GPUs that passes through no other GPU; none when there is none. O(1).
    [[nodiscard]] std::optional<int> distance(int a, int b) const;
    /// GB/s on the widest path between two GPUs that passes through no other GPU (whose links are its own, and which may
    /// be somebody else's or have failed); 0 when there is none, infinite for a == b. O(1).
    [[nodiscard]] double bandwidth(int a, int b) const;
    /// `bandwidth` of the worst connected pair of the set; infinite with fewer than two GPUs. O(square of the set).
    [[nodiscard]] double bottleneck_bandwidth(GpuMask gpus) const;
    /// The NUMA node (socket, PCIe root) that all GPUs of a set share; none when they share none or the set is empty.
    [[nodiscard]] std::optional<int> numa_node_of(GpuMask gpus) const;
    [[nodiscard]] std::optional<int> socket_of(GpuMask gpus) const;
    [[nodiscard]] std::optional<int> pcie_root_of(GpuMask gpus) const;
    /// The best of these that the set has. One GPU is local to itself.
    [[nodiscard]] GpuLocality locality(GpuMask gpus) const;
    /// The best set of `count` GPUs among `from`: the closest locality, then the greatest bottleneck bandwidth, then the
    /// least sum of distances, then the lowest GPUs. Exact among at most 16 GPUs (12,870 sets at most, 8 of 16); of more, the
    /// best of one set per GPU, grown from it GPU by GPU.
    /// @return nothing when fewer healthy GPUs are in `from`; an empty set for count 0
    /// @throws InvalidInput when count is not 0 .. 64
    [[nodiscard]] std::optional<GpuMask> best_gpus(int count, GpuMask from) const;
    /// The same among the free GPUs.
    [[nodiscard]] std::optional<GpuMask> best_gpus(int count) const { return best_gpus(count, masks_.free); }

    // Changes: graph and masks together --------------------------------------------------------------------
    /// Marks a GPU as failed, or as repaired. A holder stays noted.
    /// @throws InvalidInput when the machine has no such GPU
    void set_failed(int gpu, bool failed = true);
    /// Notes who holds GPUs (free and healthy ones).
    /// @throws InvalidInput when one of them is not free, or `user` is empty; nothing is changed then
    void allocate(GpuMask gpus, const std::string& user);
    /// Gives back all GPUs of a user. @return which
    GpuMask release(std::string_view user);
    /// Compares a fresh reading of the machine with this graph and takes over what is different (FlexTopo, section 3.3).
    ///
    /// GPUs are told apart by index. One that the reading lacks has failed; one with another UUID was replaced; who
    /// holds what stays as it is here, since readings of the hardware do not know: of GPUs, of cores by id, of core groups
    /// by id as long as they have the same cores. Cores that the reading lacks are gone.
    /// @return what changed, by kind, then by GPU
    std::vector<HardwareChange> reconcile(const HardwareGraph& observed);

  private:
    struct Link {
        Vertex a, b;
        HardwareEdge edge;
    };
    HardwareGraph(std::vector<HardwareVertex> vertices, std::vector<Link> links);
    void index_graph();                              // places, masks, pairs
    void refresh_state();                            // healthy and free
    [[nodiscard]] Vertex gpu_vertex(int gpu) const;  // throws for unknown ones
    [[nodiscard]] std::size_t pair(int a, int b) const noexcept {
        return static_cast<std::size_t>(a) * row_ + static_cast<std::size_t>(b);
    }

    std::unique_ptr<BoostHardware> graph_;
    std::array<std::int64_t, max_gpus_per_node> gpu_vertex_{};  // -1 = no such GPU
    AffinityMasks masks_;
    // By pair of GPUs.
    std::vector<int> distance_{};  // -1 = no path
    std::vector<double> bandwidth_{};
    std::size_t row_ = 0;  // length of a row of these: one more than the highest index of a GPU
};

// Template bodies --------------------------------------------------------------------------------------------

template <HardwareTopology G>
HardwareGraph HardwareGraph::from_graph(const G& graph) {
    std::vector<HardwareVertex> vertices;
    std::vector<Link> links;
    // Vertices of foreign graphs need not be hashable or ordered; those that are are found faster.
    constexpr bool ordered = std::totally_ordered<typename G::Vertex>;
    std::conditional_t<ordered, std::map<typename G::Vertex, Vertex>,
                       std::vector<std::pair<typename G::Vertex, Vertex>>>
        numbers;
    for (const auto& v : graph.vertices()) {
        numbers.insert(numbers.end(), typename decltype(numbers)::value_type(v, vertices.size()));
        vertices.push_back(graph.vertex(v));
    }
    const auto number = [&](const typename G::Vertex& v) {
        if constexpr (ordered) {
            const auto found = numbers.find(v);
            if (found != numbers.end()) return found->second;
        } else {
            for (const auto& [theirs, ours] : numbers)
                if (theirs == v) return ours;
        }
        return vertices.size();
    };
    for (const auto& e : graph.edges())
        links.push_back({number(graph.source(e)), number(graph.target(e)), graph.edge(e)});
    return HardwareGraph(std::move(vertices), std::move(links));
}

}  // namespace gpusched::topology

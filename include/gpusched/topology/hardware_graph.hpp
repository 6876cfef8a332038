// SPDX-License-Identifier: Apache-2.0
// HardwareGraph: one machine as a graph, with constant-time queries about sets of its GPUs.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/core/gpu_mask.hpp>
#include <gpusched/model/hardware.hpp>
#include <gpusched/topology/concepts.hpp>

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

struct BoostHardware;  // boost_graph.hpp

/// Options for building a graph from a machine that is described only by its NUMA nodes.
struct HardwareGraphOptions {
    int core_group_size = 8;     ///< cores per core group, >= 1; the last group of a NUMA node may be smaller
    int gpus_per_pcie_root = 0;  ///< >= 0; 0 = all GPUs of a NUMA node share one root
    double pcie_gb_s = 31.5;     ///< bandwidth of each GPU's PCIe link (4.0 x16), > 0
    double interconnect_gb_s = 32;        ///< bandwidth between every two sockets, > 0
    std::optional<double> nvlink_gb_s{};  ///< bandwidth between every two GPUs, > 0; absent = no NVLink
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareGraphOptions>, F&& field) {
    field("core_group_size", &HardwareGraphOptions::core_group_size, at_least(1));
    field("gpus_per_pcie_root", &HardwareGraphOptions::gpus_per_pcie_root, at_least(0));
    field("pcie_gb_s", &HardwareGraphOptions::pcie_gb_s, more_than(0));
    field("interconnect_gb_s", &HardwareGraphOptions::interconnect_gb_s, more_than(0));
    field("nvlink_gb_s", &HardwareGraphOptions::nvlink_gb_s, more_than(0));
}

/// The GPUs that share a state or a place, as bit masks. The lists are sorted by id; ids without GPUs have
/// empty masks.
struct AffinityMasks {
    GpuMask healthy = 0;  ///< GPUs that have not failed
    GpuMask free = 0;     ///< healthy GPUs that no task holds
    std::vector<GpuMask> numa{}, socket{}, pcie_root{};
    bool operator==(const AffinityMasks&) const = default;
};

/// One difference that `HardwareGraph::reconcile` found and applied.
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

/// The locality of a set of GPUs: all in one NUMA node, all in one socket, or neither.
enum class GpuLocality : std::uint8_t { numa, socket, cross };

/// One machine (FlexTopo): sockets, core groups, cores, NUMA nodes, PCIe roots and switches, GPUs, and their
/// connections.
///
/// The representation is a Boost.Graph (boost_graph.hpp gives access to it) with bit masks and tables over
/// pairs of GPUs. The masks and tables are computed once. They are updated when a GPU fails, is allocated or
/// is released. Queries about sets of GPUs are fast enough for searches: they cost O(GPUs of the set) or less
/// and allocate no memory. Models HardwareTopology. Copies are deep.
class HardwareGraph {
  public:
    using Vertex = std::size_t;
    /// The index of an edge in the list of edges.
    using Edge = std::size_t;

    /// Builds the machine that NUMA nodes describe: PCIe roots are connected to NUMA nodes, and all sockets
    /// are connected.
    /// @throws InvalidInput if an option is out of range
    explicit HardwareGraph(const Hardware& hardware, const HardwareGraphOptions& options = {});

    /// Returns a preset of `hardware_preset` with the usual links of such machines; nothing if the name is
    /// unknown. rtx4090x8 has one PCIe 4.0 root per GPU. a100x8 (h100x8) has one PCIe 4.0 (5.0) root per two
    /// GPUs, and NVLink with 300 (450) GB/s between all GPUs. These are nominal values in one direction.
    [[nodiscard]] static std::optional<HardwareGraph> preset(std::string_view name);

    /// Builds the machine that a graph of another type describes.
    /// @throws InvalidInput with every problem: ids that are negative, too large or used twice; GPUs near
    ///     several NUMA nodes; core groups localized to several NUMA nodes or hosted by several sockets; NUMA
    ///     nodes in several sockets; bandwidths <= 0
    template <HardwareTopology G>
    [[nodiscard]] static HardwareGraph from_graph(const G& graph);

    HardwareGraph(const HardwareGraph& other);
    HardwareGraph(HardwareGraph&&) noexcept;
    HardwareGraph& operator=(const HardwareGraph& other);
    HardwareGraph& operator=(HardwareGraph&&) noexcept;
    ~HardwareGraph();

    // As a graph -------------------------------------------------------------------------------------------
    [[nodiscard]] std::vector<Vertex> vertices() const;
    [[nodiscard]] std::vector<Edge> edges() const;
    [[nodiscard]] const HardwareVertex& vertex(Vertex v) const;
    [[nodiscard]] const HardwareEdge& edge(Edge e) const;
    [[nodiscard]] Vertex source(Edge e) const;
    [[nodiscard]] Vertex target(Edge e) const;
    [[nodiscard]] const BoostHardware& boost_graph() const noexcept { return *graph_; }
    /// Returns all GPUs, including failed ones.
    [[nodiscard]] GpuMask gpus() const noexcept { return gpus_; }
    /// Returns the machine for NodeSpec::hardware: its NUMA nodes by ascending id, without gaps in the ids.
    /// Failed GPUs are included.
    /// @throws InvalidInput if a NUMA node with GPUs is in no socket, or a GPU is near no NUMA node
    [[nodiscard]] Hardware hardware() const;

    // Questions --------------------------------------------------------------------------------------------
    [[nodiscard]] const AffinityMasks& masks() const noexcept { return masks_; }
    /// Returns the number of edges on the shortest path between two GPUs that passes through no other GPU;
    /// none if there is no path. O(1).
    [[nodiscard]] std::optional<int> distance(int a, int b) const;
    /// Returns the GB/s on the widest path between two GPUs that passes through no other GPU; 0 if there is
    /// no path, infinite if a == b. Other GPUs are excluded because another task may hold them or they may
    /// have failed. O(1).
    [[nodiscard]] double bandwidth(int a, int b) const;
    /// Returns the smallest `bandwidth` between two GPUs of the set; infinite for fewer than two GPUs.
    /// O(square of the set).
    [[nodiscard]] double bottleneck_bandwidth(GpuMask gpus) const;
    /// Returns the NUMA node (socket, PCIe root) that all GPUs of a set share; none if there is no such node
    /// or the set is empty.
    [[nodiscard]] std::optional<int> numa_node_of(GpuMask gpus) const;
    [[nodiscard]] std::optional<int> socket_of(GpuMask gpus) const;
    [[nodiscard]] std::optional<int> pcie_root_of(GpuMask gpus) const;
    /// Returns the closest locality of the set. The locality of one GPU is numa.
    [[nodiscard]] GpuLocality locality(GpuMask gpus) const;
    /// Returns the best set of `count` GPUs in `from`: the closest locality, then the greatest bottleneck
    /// bandwidth, then the least sum of distances, then the lowest GPUs. The result is exact for at most 16
    /// GPUs (at most 12,870 sets, 8 of 16). For more GPUs, one set is grown from each GPU, GPU by GPU, and
    /// the best of these is returned.
    /// @return nothing if `from` has fewer healthy GPUs; an empty set for count 0
    /// @throws InvalidInput if count is not 0 to 64
    [[nodiscard]] std::optional<GpuMask> best_gpus(int count, GpuMask from) const;
    /// Returns the best set of free GPUs.
    [[nodiscard]] std::optional<GpuMask> best_gpus(int count) const { return best_gpus(count, masks_.free); }

    // Changes: graph and masks together --------------------------------------------------------------------
    /// Marks a GPU as failed, or as repaired. Its holder is kept.
    /// @throws InvalidInput if the machine has no such GPU
    void set_failed(int gpu, bool failed = true);
    /// Assigns GPUs, which must be free and healthy, to `user`.
    /// @throws InvalidInput if a GPU is not free, or `user` is empty; the graph is unchanged in this case
    void allocate(GpuMask gpus, const std::string& user);
    /// Releases all GPUs of a user. @return the released GPUs
    GpuMask release(std::string_view user);
    /// Compares a new reading of the machine with this graph and applies the differences (FlexTopo, section
    /// 3.3).
    ///
    /// GPUs are identified by index. A GPU that is missing from the reading has failed. A GPU with another
    /// UUID was replaced. Holders are kept, because a hardware reading does not contain them: holders of
    /// GPUs, of cores by id, and of core groups by id if they have the same cores. Cores that are missing
    /// from the reading are removed.
    /// @return the changes, by kind, then by GPU
    std::vector<HardwareChange> reconcile(const HardwareGraph& observed);

  private:
    struct Link {
        Vertex a, b;
        HardwareEdge edge;
    };
    HardwareGraph(std::vector<HardwareVertex> vertices, std::vector<Link> links);
    void index_graph();                              // computes places, masks and pairs
    void refresh_state();                            // computes healthy and free
    [[nodiscard]] Vertex gpu_vertex(int gpu) const;  // throws if there is no such GPU
    [[nodiscard]] std::size_t pair(int a, int b) const noexcept {
        return static_cast<std::size_t>(a) * row_ + static_cast<std::size_t>(b);
    }

    std::unique_ptr<BoostHardware> graph_;
    GpuMask gpus_ = 0;
    std::array<Vertex, max_gpus_per_node> gpu_vertex_{};
    AffinityMasks masks_;
    // By pair of GPUs.
    std::vector<int> distance_{};  // -1 = no path
    std::vector<double> bandwidth_{};
    std::size_t row_ = 0;  // row length of both: the highest GPU index plus one
};

// Template bodies -------------------------------------------------------------------------------------------

template <HardwareTopology G>
HardwareGraph HardwareGraph::from_graph(const G& graph) {
    std::vector<HardwareVertex> vertices;
    std::vector<Link> links;
    // Vertices of other graph types need not be hashable or ordered. Look-ups of ordered vertices are faster.
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

// SPDX-License-Identifier: Apache-2.0
// A machine while it is read: vertices, edges and GPU links that become a HardwareGraph.
#pragma once

#include <gpusched/core/cpu_ranges.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/io/hardware_files.hpp>
#include <gpusched/topology/concepts.hpp>

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace gpusched::io::detail {

/// A NUMA node as a text describes it.
struct NumaReading {
    CpuRanges cpus{};
    std::optional<int> socket{};
    std::optional<std::vector<int>> cores{};  ///< ids; absent = to be inferred from the CPUs
};

/// Collects vertices and edges. Models topology::HardwareTopology.
class HardwareParts {
  public:
    using Vertex = std::size_t;
    using Edge = std::size_t;
    using Kind = topology::HardwareKind;
    using Relation = topology::HardwareRelation;
    /// Every socket is connected to every other.
    static constexpr std::size_t most_sockets = 256;

    Vertex add(Kind kind, int id);
    void join(Vertex a, Vertex b, Relation relation, double gb_s = std::numeric_limits<double>::infinity());

    /// Adds the cores of a NUMA node in groups; without cores, the edge from its socket to it.
    void add_cores(Vertex socket, Vertex numa, const std::vector<int>& core_ids, int group_size);
    /// Adds sockets, all connected, NUMA nodes and cores; `notes` receives everything that was inferred.
    /// Problems: CPUs that are near two NUMA nodes.
    /// @return the vertices of the NUMA nodes, by id
    std::map<int, Vertex> add_processors(const std::map<int, NumaReading>& numa_nodes,
                                         const HardwareReadOptions& options, const std::string& source,
                                         Problems& problems, std::vector<std::string>& notes);

    [[nodiscard]] topology::HardwareVertex& at(Vertex v) { return vertices_[v]; }

    // HardwareTopology
    [[nodiscard]] auto vertices() const { return std::views::iota(Vertex{0}, vertices_.size()); }
    [[nodiscard]] auto edges() const { return std::views::iota(Edge{0}, links_.size()); }
    [[nodiscard]] const topology::HardwareVertex& vertex(Vertex v) const { return vertices_[v]; }
    [[nodiscard]] const topology::HardwareEdge& edge(Edge e) const { return links_[e].edge; }
    [[nodiscard]] Vertex source(Edge e) const { return links_[e].a; }
    [[nodiscard]] Vertex target(Edge e) const { return links_[e].b; }

  private:
    struct Link {
        Vertex a, b;
        topology::HardwareEdge edge;
    };
    std::vector<topology::HardwareVertex> vertices_;
    std::vector<Link> links_;
    int next_group_ = 0;
};

/// The finished graph. @throws InvalidInput with the source before each contradiction
[[nodiscard]] topology::HardwareGraph finish(const HardwareParts& parts, const std::string& source);

/// Collects links, GB/s in one direction.
class GpuLinks {
  public:
    void between(int gpu, int other, double gb_s);  ///< as one end reports it; both may
    void to_switch(int gpu, const std::string& name, double gb_s);
    void switches(const std::string& a, const std::string& b);  ///< linked to each other

    /// Adds an edge for every pair with links. Through switches two GPUs reach each other with all links of
    /// the one that has fewer: the switches are no bottleneck.
    void join(HardwareParts& parts, const std::map<int, HardwareParts::Vertex>& gpus) const;

  private:
    std::map<std::pair<int, int>, std::pair<double, double>>
        direct_;  // by (lower, higher): as each end reports it
    std::map<std::string, std::map<int, double>> through_;
    std::map<std::string, std::string>
        above_;  // of switches: the next one towards the representative of their fabric
    [[nodiscard]] std::string fabric(std::string name) const;
};

}  // namespace gpusched::io::detail

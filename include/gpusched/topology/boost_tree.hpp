// The network tree as a Boost.Graph, for callers who want to run its algorithms. Heavy to compile: include on demand.
#pragma once

#include <gpusched/core/ids.hpp>

#include <boost/graph/adjacency_list.hpp>

#include <string>

namespace gpusched::topology {

/// Bundled with every vertex.
struct BoostTreeVertex {
    std::string name{};          ///< of a domain; empty for the root and for nodes
    NodeId node = none<NodeId>;  ///< at a leaf
};

/// Edges lead from the root downwards. Vertex descriptors are the indices of `NetworkTree::Vertex`; 0 is the root.
struct BoostTree : boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, BoostTreeVertex> {
    using adjacency_list::adjacency_list;
};

}  // namespace gpusched::topology

// Everything in topology/ that does not need Boost.Graph: see also boost_tree.hpp and boost_network.hpp.
#pragma once

#include <gpusched/topology/concepts.hpp>
#include <gpusched/topology/dot.hpp>
#include <gpusched/topology/network_tree.hpp>

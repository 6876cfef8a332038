// SPDX-License-Identifier: Apache-2.0
// Includes all of topology/ that does not need Boost.Graph; see also boost_graph.hpp.
#pragma once

#include <gpusched/topology/concepts.hpp>
#include <gpusched/topology/dot.hpp>
#include <gpusched/topology/hardware_graph.hpp>
#include <gpusched/topology/network_tree.hpp>
#include <gpusched/topology/racks.hpp>

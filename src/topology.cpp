// SPDX-License-Identifier: Apache-2.0
// The compiled bodies of topology/: every file of include/gpusched/topology/impl.
#include <gpusched/topology/impl/dot.ipp>
#include <gpusched/topology/impl/hardware_build.ipp>
#include <gpusched/topology/impl/hardware_dot.ipp>
#include <gpusched/topology/impl/hardware_graph.ipp>
#include <gpusched/topology/impl/network_tree.ipp>
#include <gpusched/topology/impl/racks.ipp>

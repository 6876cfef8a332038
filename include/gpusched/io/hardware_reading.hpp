// SPDX-License-Identifier: Apache-2.0
// What the readers of machines' topologies give, and what they are told beside the text.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/topology/hardware_graph.hpp>

#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::io {

/// What a description of a machine leaves open. Bandwidths are nominal, in GB/s and one direction.
struct HardwareReadOptions {
    int core_group_size = 8;        ///< cores per core group, >= 1; where the text has no groups of its own
    int threads_per_core = 0;       ///< logical CPUs per core, >= 1; 0 = told from how they are numbered
    int numa_nodes_per_socket = 1;  ///< >= 1; where the text does not say which socket has which NUMA node
    double pcie_gb_s = 31.5;        ///< of a PCIe link whose speed is not given (4.0 x16), > 0
    double interconnect_gb_s = 32;  ///< between each two sockets, > 0
    double nvlink_gb_s_per_link = 25;  ///< of each NVLink or xGMI link, > 0 (NVLink 2 to 4: 25, 5: 50)
};
template <class F>
constexpr void visit_fields(std::type_identity<HardwareReadOptions>, F&& field) {
    field("core_group_size", &HardwareReadOptions::core_group_size, at_least(1));
    field("threads_per_core", &HardwareReadOptions::threads_per_core, at_least(0));
    field("numa_nodes_per_socket", &HardwareReadOptions::numa_nodes_per_socket, at_least(1));
    field("pcie_gb_s", &HardwareReadOptions::pcie_gb_s, more_than(0));
    field("interconnect_gb_s", &HardwareReadOptions::interconnect_gb_s, more_than(0));
    field("nvlink_gb_s_per_link", &HardwareReadOptions::nvlink_gb_s_per_link, more_than(0));
}

/// A machine as it was read.
struct HardwareReading {
    topology::HardwareGraph graph;
    std::vector<std::string> notes;  ///< what was inferred because the text does not say it; in a fixed order
};

}  // namespace gpusched::io

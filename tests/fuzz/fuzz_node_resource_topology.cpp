// SPDX-License-Identifier: Apache-2.0
// Any bytes are either NodeResourceTopology objects, of which machines can be made or refused, or an InvalidInput.
#include "hardware_checks.hpp"

#include <gpusched/io/node_resource_topology.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<gpusched::io::NodeResources> nodes;
    try {
        nodes = gpusched::io::node_resource_topology_from_text(fuzzing::text_of(data, size));
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
        return 0;
    } catch (const gpusched::BackendError&) {  // a build without the parser
        return 0;
    }
    for (const auto& node : nodes) {
        for (const auto& numa : node.numa_nodes)
            for (const auto& [name, amount] : numa.resources)
                if (amount.capacity_milli < 0 || amount.available_milli < 0) std::abort();
        fuzzing::machine_or_problems([&] { return gpusched::io::machine_of(node); });
    }
    return 0;
}

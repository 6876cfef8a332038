// SPDX-License-Identifier: Apache-2.0
// Any bytes, a Topology object beside nodes, are either a network that is a tree, or an InvalidInput.
#include "network_checks.hpp"

#include <gpusched/io/network_files.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzzing::text_of(data, size);
    return fuzzing::network_or_problems([&] {
        return gpusched::io::network_from_labels(gpusched::io::topology_levels_from_text(text),
                                                 gpusched::io::labelled_nodes_from_text(text));
    });
}

// SPDX-License-Identifier: Apache-2.0
// Any bytes, topology.conf or topology.yaml, are either a network that is a tree, or an InvalidInput.
#include "network_checks.hpp"

#include <gpusched/io/network_files.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzzing::text_of(data, size);
    fuzzing::network_or_problems([&] { return gpusched::io::slurm_topology_from_conf(text); });
    fuzzing::network_or_problems([&] { return gpusched::io::slurm_topology_from_yaml(text); });
    return fuzzing::network_or_problems(
        [&] { return gpusched::io::slurm_topology_from_yaml(text, {.topology = "b"}); });
}

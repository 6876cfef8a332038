// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a machine, whose masks agree with its graph, or an InvalidInput.
#include "hardware_checks.hpp"

#include <gpusched/io/hardware_files.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzzing::machine_or_problems([&] {
        return gpusched::io::nvidia_smi_topo_from_text(fuzzing::text_of(data, size),
                                                       {.threads_per_core = static_cast<int>(size % 3)});
    });
}

// SPDX-License-Identifier: Apache-2.0
// Any bytes, YAML or JSON, are either a machine, whose masks agree with its graph, or an InvalidInput.
#include "hardware_checks.hpp"

#include <gpusched/io/hardware_files.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzzing::machine_or_problems(
        [&] { return gpusched::io::flextopo_from_text(fuzzing::text_of(data, size)); });
}

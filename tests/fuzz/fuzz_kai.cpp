// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a snapshot of KAI-Scheduler, which can be built, written and read again, or an
// InvalidInput.
#include "cluster_checks.hpp"

#include <gpusched/io/kubernetes.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzzing::cluster_or_problems(
        [&] { return gpusched::io::kai_snapshot_from_text(fuzzing::text_of(data, size)); });
}

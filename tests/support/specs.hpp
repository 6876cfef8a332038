// SPDX-License-Identifier: Apache-2.0
// Nodes and tasks by their cores and GiB of memory.
#pragma once

#include "support/catch.hpp"

#include <gpusched/model/spec.hpp>

namespace testing_support {

inline gpusched::NodeSpec node(std::string name, std::int64_t gpus, std::int64_t cores,
                               std::int64_t memory_gib = 1024) {
    return {.name = std::move(name),
            .gpu_model = "M",
            .gpu_count = gpus,
            .cpu_milli = cores * 1000,
            .memory_mib = memory_gib * 1024};
}

inline gpusched::TaskSpec task(std::string name, std::int64_t gpus, std::int64_t share, std::int64_t cores,
                               std::int64_t memory_gib = 0) {
    return {.name = std::move(name),
            .cpu_milli = cores * 1000,
            .memory_mib = memory_gib * 1024,
            .gpu_count = gpus,
            .gpu_share_milli = share};
}

}  // namespace testing_support

// SPDX-License-Identifier: Apache-2.0
// Any bytes, node list and pod list with a line "==" between them, are either a trace or an InvalidInput.
#include <gpusched/core/errors.hpp>
#include <gpusched/io/openb.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto cut = std::min(text.find("\n==\n"), text.size());
    const auto nodes = text.substr(0, cut);
    const auto pods = text.substr(std::min(cut + 4, text.size()));
    try {
        const auto trace = gpusched::io::openb_from_csv(nodes, pods, {.gpu_nodes_only = size % 2 == 0});
        for (const auto& [task, created, deleted, scheduled] : trace.tasks) {
            if (task.gpu_share_milli < 1 || task.gpu_share_milli > 1000 || task.node) std::abort();
            if (task.gpu_share_milli < 1000 && task.gpu_count != 1) std::abort();
            if (deleted && *deleted < created) std::abort();
            if (scheduled && *scheduled < created) std::abort();
        }
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
    }
    return 0;
}

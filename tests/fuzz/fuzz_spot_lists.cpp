// SPDX-License-Identifier: Apache-2.0
// Any bytes, node list and job list with a line "==" between them, are either a spot trace or an InvalidInput.
#include <gpusched/core/errors.hpp>
#include <gpusched/sim/spot_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto cut = std::min(text.find("\n==\n"), text.size());
    const auto nodes = text.substr(0, cut);
    const auto jobs = text.substr(std::min(cut + 4, text.size()));
    try {
        const auto trace = gpusched::sim::spot_trace_from_csv(nodes, jobs);
        for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
            const auto& job = trace.jobs[i];
            const auto& pod = job.pod;
            if (pod.gpu_share_milli < 1 || pod.gpu_share_milli > 1000 || pod.node) std::abort();
            if (pod.gpu_share_milli < 1000 && pod.gpu_count != 1) std::abort();
            if (job.pods < 1 || job.work_s < 1 || job.arrival_s < 0) std::abort();
            if (i > 0 && trace.jobs[i - 1].arrival_s > job.arrival_s) std::abort();
        }
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
    }
    return 0;
}

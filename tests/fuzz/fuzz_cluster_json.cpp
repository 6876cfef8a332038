// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a snapshot, which survives writing and reading, or an InvalidInput.
#include <gpusched/core/errors.hpp>
#include <gpusched/io/anonymize.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    gpusched::ClusterSpec spec;
    try {
        spec = gpusched::io::cluster_from_json(text);
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
        return 0;
    }
    const auto written = gpusched::io::cluster_to_json(spec);
    if (gpusched::io::cluster_from_json(written) != spec) std::abort();
    bool built = false;
    try {
        const auto cluster = gpusched::Cluster::build(spec);
        built = true;
        if (cluster.task_count() != spec.tasks.size()) std::abort();
    } catch (const gpusched::InvalidInput&) {
    }
    if (built) (void)gpusched::Cluster::build(gpusched::io::anonymize(spec, size));  // poses the same problem
    return 0;
}

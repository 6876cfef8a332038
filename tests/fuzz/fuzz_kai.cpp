// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a snapshot of KAI-Scheduler, whose reading can be built, written and read again, or an InvalidInput.
#include <gpusched/core/errors.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/kubernetes.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gpusched::io::ClusterReading reading;
    try {
        reading = gpusched::io::kai_snapshot_from_text({reinterpret_cast<const char*>(data), size});
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
        return 0;
    }
    const auto cluster = gpusched::Cluster::build(reading.cluster);
    if (cluster.task_count() != reading.cluster.tasks.size()) std::abort();
    if (gpusched::io::cluster_from_json(gpusched::io::cluster_to_json(reading.cluster)) != reading.cluster)
        std::abort();
    for (const auto& row : reading.report.rows)
        if (row.count < 1 || row.kind.empty() || row.what.empty()) std::abort();
    if (gpusched::io::reading_report_to_text(reading.report).empty()) std::abort();
    return 0;
}

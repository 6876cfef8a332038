// SPDX-License-Identifier: Apache-2.0
// Any bytes, YAML or JSON, are either a snapshot, which can be built, written and read again, or an InvalidInput.
#include <gpusched/core/errors.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/kubernetes.hpp>
#include <gpusched/json/document.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    gpusched::io::ClusterReading reading;
    try {
        reading = gpusched::io::kubernetes_from_text(text);
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
        return 0;
    } catch (const gpusched::BackendError&) {
        if (gpusched::json::reads_yaml()) std::abort();
        return 0;
    }
    const auto cluster = gpusched::Cluster::build(reading.cluster);
    if (cluster.task_count() != reading.cluster.tasks.size()) std::abort();
    if (gpusched::io::cluster_from_json(gpusched::io::cluster_to_json(reading.cluster)) != reading.cluster)
        std::abort();
    for (const auto& row : reading.report.rows)
        if (row.count < 1 || row.kind.empty() || row.what.empty()) std::abort();
    if (gpusched::io::reading_report_to_text(reading.report).empty()) std::abort();
    static_cast<void>(gpusched::io::reading_report_to_json(reading.report));
    return 0;
}

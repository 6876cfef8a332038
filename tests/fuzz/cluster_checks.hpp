// SPDX-License-Identifier: Apache-2.0
// What must hold for every cluster that a reader of another system's snapshots gives.
#pragma once

#include <gpusched/core/errors.hpp>
#include <gpusched/io/cluster_json.hpp>
#include <gpusched/io/cluster_reading.hpp>
#include <gpusched/json/document.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace fuzzing {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// The snapshot can be built, written and read again.
inline void check_cluster(const gpusched::io::ClusterReading& reading) {
    using namespace gpusched;
    if (Cluster::build(reading.cluster).task_count() != reading.cluster.tasks.size()) std::abort();
    if (io::cluster_from_json(io::cluster_to_json(reading.cluster)) != reading.cluster) std::abort();
    for (const auto& row : reading.report.rows)
        if (row.count < 1 || row.kind.empty() || row.what.empty()) std::abort();
    if (io::reading_report_to_text(reading.report).empty()) std::abort();
    static_cast<void>(io::reading_report_to_json(reading.report));
}

/// Calls a reader and checks what it gives.
template <class Read>
int cluster_or_problems(Read&& read) {
    gpusched::io::ClusterReading reading;
    try {
        reading = read();
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
        return 0;
    } catch (const gpusched::BackendError&) {
        if (gpusched::json::reads_yaml()) std::abort();
        return 0;
    }
    check_cluster(reading);
    return 0;
}

}  // namespace fuzzing

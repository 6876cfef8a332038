// SPDX-License-Identifier: Apache-2.0
// ClusterReading: a cluster that a reader of another system's objects made of them, and how it read them.
#pragma once

#include <gpusched/io/reading_report.hpp>
#include <gpusched/model/spec.hpp>

namespace gpusched::io {

/// A cluster as it was read; `Cluster::build` takes it without complaint, whatever the input.
struct ClusterReading {
    ClusterSpec cluster{};
    ReadingReport report{};
};

}  // namespace gpusched::io

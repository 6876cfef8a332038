// ClusterReading: a cluster that a reader of another system's objects made of them, and how it read them.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/io/reading_report.hpp>
#include <gpusched/model/spec.hpp>

namespace GPUSCHED_NAMESPACE::io {

/// A cluster as it was read; `Cluster::build` takes it without complaint, whatever the input.
struct ClusterReading {
    ClusterSpec cluster{};
    ReadingReport report{};
};

}  // namespace GPUSCHED_NAMESPACE::io

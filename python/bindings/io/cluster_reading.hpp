// A cluster from another system, with its reading report.
#pragma once

#include "model/cluster_views.hpp"
#include "support/arguments.hpp"

#include <gpusched/io/cluster_reading.hpp>

#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

/// A cluster from another system, with a report on how it was read.
struct ClusterReading {
    ClusterPtr cluster{};
    io::ReadingReport report{};

    /// From the result of a reader of the library.
    template <class Reading>
    static ClusterReading of(Reading read) {
        return {std::make_shared<Cluster>(Cluster::build(read.cluster)), std::move(read.report)};
    }
};

/// Texts and their names in messages.
struct Sources {
    std::vector<std::string> contents{}, names{};
    [[nodiscard]] std::vector<io::NamedText> texts() const {
        std::vector<io::NamedText> out;
        for (std::size_t i = 0; i < contents.size(); ++i) out.push_back({contents[i], names[i]});
        return out;
    }
};

}  // namespace gpusched::python

// A cluster that was read from elsewhere, and where it was read from.
#pragma once

#include "model/cluster_views.hpp"
#include "support/arguments.hpp"

#include <gpusched/io/cluster_reading.hpp>

#include <string>
#include <utility>
#include <vector>

namespace gpusched::python {

/// A cluster that was read from elsewhere, and how.
struct ClusterReading {
    ClusterPtr cluster{};
    io::ReadingReport report{};

    /// Of what a reader of the library gives.
    template <class Reading>
    static ClusterReading of(Reading read) {
        return {std::make_shared<Cluster>(Cluster::build(read.cluster)), std::move(read.report)};
    }
};

/// Texts and what messages call them.
struct Sources {
    std::vector<std::string> contents{}, names{};
    [[nodiscard]] std::vector<io::NamedText> texts() const {
        std::vector<io::NamedText> out;
        for (std::size_t i = 0; i < contents.size(); ++i) out.push_back({contents[i], names[i]});
        return out;
    }
};

}  // namespace gpusched::python

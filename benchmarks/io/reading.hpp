// SPDX-License-Identifier: Apache-2.0
// How fast a reader is: one JSON line with seconds, the fastest of the rounds each, and the most memory that the program held,
// the text included.
#pragma once

#include "../support/command_line.hpp"
#include "../support/memory.hpp"
#include "../support/rows.hpp"
#include "../support/timing.hpp"

#include <gpusched/model/cluster.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>

namespace gpusched::bench {

/// What is read.
struct ReadingSize {
    int nodes, tasks, rounds;
};

inline ReadingSize reading_size(const char* what, int argc, char** argv) {
    CommandLine line(what, argc, argv);
    line.read();
    return line.smoke() ? ReadingSize{50, 250, 1} : ReadingSize{1000, 5000, 5};
}

/// @param bytes of the text
/// @param read gives a reading with a `cluster`
/// @return the exit status, 1 where the cluster is of another size
template <class Read>
int report_reading(const ReadingSize& size, std::size_t bytes, const Read& read) {
    double read_s = std::numeric_limits<double>::infinity(), build_s = read_s;
    decltype(read()) reading;
    for (int round = 0; round < size.rounds; ++round)
        read_s = std::min(read_s, seconds([&] { reading = read(); }));
    const double memory = peak_memory_kib();
    const auto& cluster = reading.cluster;
    for (int round = 0; round < size.rounds; ++round)
        build_s = std::min(build_s, seconds([&] { static_cast<void>(Cluster::build(cluster)); }));
    print({{"nodes", cluster.nodes.size()},
           {"tasks", cluster.tasks.size()},
           {"budgets", cluster.budgets.size()},
           {"bytes", bytes},
           {"read_s", rounded(read_s, 3)},
           {"build_s", rounded(build_s, 3)},
           {"peak_memory_mib", static_cast<int>(memory / 1024)}});
    return cluster.nodes.size() == static_cast<std::size_t>(size.nodes) &&
                   cluster.tasks.size() == static_cast<std::size_t>(size.tasks)
               ? 0
               : 1;
}

}  // namespace gpusched::bench

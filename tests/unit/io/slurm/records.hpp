// SPDX-License-Identifier: Apache-2.0
// Records of Slurm as text, and what a reading says of them.
#pragma once

#include "../reading_rows.hpp"

#include <gpusched/io/io.hpp>
#include <gpusched/model/feasibility.hpp>

namespace slurm_text {

using namespace gpusched;
using testing_support::row;
using testing_support::rows;

inline std::string node(const std::string& name, const std::string& fields = {},
                        const std::string& gres = "gpu:h100:8", const std::string& state = "IDLE") {
    return "NodeName=" + name + " Arch=x86_64\n   CPUAlloc=0 CPUEfctv=64 CPUTot=64\n   Gres=" + gres +
           "\n   RealMemory=100000 AllocMem=0\n   State=" + state + " ThreadsPerCore=1\n" +
           (fields.empty() ? "" : "   " + fields + "\n") + "\n";
}
/// A job that runs there.
inline std::string running(const std::string& id, const std::string& nodes, const std::string& details,
                           const std::string& fields = {}) {
    return "JobId=" + id +
           " JobName=j\n   JobState=RUNNING Reason=None\n   Requeue=1 BatchFlag=1\n   NodeList=" + nodes +
           "\n" + (details.empty() ? "" : "     " + details + "\n") +
           (fields.empty() ? "" : "   " + fields + "\n") + "\n";
}
inline std::string pending(const std::string& id, const std::string& fields) {
    return "JobId=" + id + " JobName=j\n   JobState=PENDING Reason=Priority\n   Requeue=1 BatchFlag=1\n   " +
           fields + "\n\n";
}
inline std::string partition(const std::string& name, const std::string& fields) {
    return "PartitionName=" + name + "\n   " + fields + "\n\n";
}

/// Reads texts; whatever they are, the snapshot can be built, and written and read again.
inline io::ClusterReading read(const std::vector<std::string>& texts,
                               const io::SlurmReadOptions& options = {}) {
    std::vector<io::NamedText> named;
    for (const auto& text : texts) named.push_back({text, "t"});
    auto reading = io::slurm_from_texts(named, options);
    static_cast<void>(Cluster::build(reading.cluster));
    CHECK(io::cluster_from_json(io::cluster_to_json(reading.cluster)) == reading.cluster);
    return reading;
}

inline const TaskSpec& task(const io::ClusterReading& reading, const std::string& name) {
    for (const auto& found : reading.cluster.tasks)
        if (found.name == name) return found;
    FAIL("no task " + name);
    return reading.cluster.tasks.front();
}
inline const NodeSpec& node_of(const io::ClusterReading& reading, const std::string& name) {
    for (const auto& found : reading.cluster.nodes)
        if (found.name == name) return found;
    FAIL("no node " + name);
    return reading.cluster.nodes.front();
}

/// Whether the task may be placed on, or moved to, the node.
inline bool fits(const Cluster& cluster, const std::string& task, const std::string& node) {
    return find_obstacle(cluster, cluster.find_task(task), cluster.find_node(node)) == Obstacle::none;
}

/// What the reader says of texts that it refuses.
inline std::string refusal(const std::vector<std::string>& texts, const io::SlurmReadOptions& options = {}) {
    try {
        static_cast<void>(read(texts, options));
    } catch (const InvalidInput& error) {
        return error.what();
    }
    return "";
}

/// A sample of this project.
inline std::string sample(const std::string& name) {
    return read_file(GPUSCHED_TEST_DATA_DIR "/io/slurm/" + name);
}

}  // namespace slurm_text

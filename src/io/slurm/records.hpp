// SPDX-License-Identifier: Apache-2.0
// Nodes, jobs and partitions as Slurm describes them, whatever the form in which it prints them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched::io::detail::slurm {

/// A record, or a part of one, that cannot be read; it is left out and reported.
struct Unreadable {
    std::string why;
};

/// Words in capitals: `IDLE`, `DRAIN`.
using Words = std::vector<std::string>;
inline bool has(const Words& words, std::string_view word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}
template <class... Names>
bool has_any(const Words& words, Names... names) {
    return (has(words, names) || ...);
}

struct NodeRecord {
    std::string name{};
    std::optional<std::int64_t> cpus{}, effective_cpus{}, allocated_cpus{};
    std::optional<std::int64_t> memory_mib{}, allocated_mib{}, specialized_mib{}, disk_mib{};
    std::string gres{}, gres_used{}, gres_drained{};
    Words state{};
    std::vector<std::string> features{}, partitions{};
    std::string reservation{}, reason{};
};

/// What a job holds on some of its nodes.
struct JobPart {
    std::string nodes{};  ///< a list of hosts; empty = the one at its place among the job's nodes
    std::int64_t cpus = 0, memory_mib = 0;
    std::string gres{};
};

struct JobRecord {
    std::string id{};           ///< as people write it: `17`, `20_4`, `30+1`
    std::string job{};          ///< the gang: `id`, or that of the first component of a heterogeneous job
    std::string array_tasks{};  ///< of a pending array: `5-100%4`
    Words state{};
    std::string reason{}, dependency{}, partition{}, qos{};
    std::optional<std::int64_t> priority{}, submitted{}, started{}, run_time_s{}, requeues{};
    std::optional<bool> requeue{}, batch{};
    std::string nodes{}, wanted_nodes{}, excluded_nodes{};
    std::optional<std::int64_t> node_count{}, most_nodes{}, cpus{}, tasks{}, cpus_per_node{};
    std::optional<std::int64_t> mib_per_node{}, mib_per_cpu{}, disk_mib{};
    std::string cpus_per_gpu{}, mib_per_gpu{};  ///< `gres/gpu:11`
    std::string asked{}, allocated{};           ///< trackable resources: `cpu=4,mem=16G,gres/gpu=2`
    std::string per_node{}, per_task{}, per_job{}, per_socket{};
    std::string features{}, licenses{}, reservation{};
    Words sharing{};  ///< `NO` = alone on its nodes, `USER`, `MCS`, `TOPO`; else it may share
    std::vector<JobPart> parts{};
    std::vector<std::string>
        unread{};            ///< what it asks for besides, that bears on where it runs: `Contiguous=1`
    bool throttled = false;  ///< only some tasks of the array may run at once
};

struct PartitionRecord {
    std::string name{}, nodes{};
    std::int64_t tier = 1;
    std::optional<Words> preempt_mode{};
    Words state{};
    bool exclusive = false;
    std::vector<std::string> limits{};  ///< on what its jobs may be: `MaxNodes=1`
    std::string job_defaults{};         ///< `DefCpuPerGPU=11,DefMemPerGPU=200000`
};

struct Records {
    std::vector<NodeRecord> nodes{};
    std::vector<JobRecord> jobs{};
    std::vector<PartitionRecord> partitions{};
    bool any_jobs = false, any_partitions = false;  ///< whether the input says which there are, be it none
    std::optional<std::int64_t> now{};
};

}  // namespace gpusched::io::detail::slurm

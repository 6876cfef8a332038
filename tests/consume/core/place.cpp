// SPDX-License-Identifier: Apache-2.0
// Hello, scheduler: one pending task on a cluster of two nodes.
#include <gpusched/allocation/named.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdio>

int main() {
    const auto cluster = gpusched::Cluster::build(
        {.nodes = {{.name = "a", .gpu_count = 8, .cpu_milli = 64'000, .memory_mib = 512'000},
                   {.name = "b", .gpu_count = 8, .cpu_milli = 64'000, .memory_mib = 512'000}},
         .tasks = {{.name = "running", .gpu_count = 2, .node = "b", .gpus = {0, 1}},
                   {.name = "new", .cpu_milli = 8'000, .gpu_count = 4}}});
    const auto where = gpusched::allocation::place(cluster, cluster.find_task("new"));
    if (!where) return 1;
    std::printf("new goes to node %s\n", cluster.name(where->node).data());
    return where->node == cluster.find_node("b") ? 0 : 1;
}

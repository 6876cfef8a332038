// SPDX-License-Identifier: Apache-2.0
// Calls of the algorithms, compiled from the headers alone with optimisation and warnings as errors, as a user's program may be:
// some warnings come from the optimiser, and only in functions that are used.
#include <gpusched/allocation/gpu_pickers.hpp>
#include <gpusched/consolidation/consolidate.hpp>
#include <gpusched/preemption/preemption.hpp>

#include <vector>

namespace gpusched_header_test {

using namespace gpusched;

bool decides(const Cluster& cluster, TaskId task) { return preemption::preempt(cluster, task).proven; }
bool decides(const Cluster& cluster, const std::vector<TaskId>& pods) {
    return preemption::preempt_gang(cluster, pods).proven;
}
bool decides(const Cluster& cluster, TaskId task, std::size_t shapes) {
    return preemption::PreemptionIndex({}, shapes).decide(cluster, task) != nullptr;
}
auto sets(const Cluster& cluster, TaskId task, NodeId node) {
    return preemption::minimal_victim_sets(cluster, task, node);
}
auto plan(const Cluster& cluster) { return consolidation::consolidate(cluster); }

}  // namespace gpusched_header_test

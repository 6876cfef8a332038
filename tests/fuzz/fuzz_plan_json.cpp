// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a plan, which survives writing and reading, or an InvalidInput.
#include <gpusched/core/errors.hpp>
#include <gpusched/io/plan_export.hpp>
#include <gpusched/io/plan_json.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    gpusched::PlanSpec plan;
    try {
        plan = gpusched::io::plan_from_json(text);
    } catch (const gpusched::InvalidInput& error) {
        if (error.problems().empty()) std::abort();
        return 0;
    }
    const auto written = gpusched::io::plan_to_json(plan);
    if (gpusched::io::plan_from_json(written) != plan) std::abort();
    (void)gpusched::io::plan_to_csv(plan);
    gpusched::ClusterSpec cluster;
    for (const auto& move : plan.moves) {
        gpusched::TaskSpec task;
        task.name = move.task;
        cluster.tasks.push_back(task);
    }
    try {
        (void)gpusched::io::plan_to_kubernetes_steps(plan);
        (void)gpusched::io::plan_to_pod_migration_jobs(plan, cluster);
    } catch (const gpusched::InvalidInput&) {
    }
    try {
        (void)gpusched::io::plan_to_slurm_steps(plan, cluster);
    } catch (const gpusched::InvalidInput&) {
    }
    try {
        (void)gpusched::resolve(plan, gpusched::Cluster());
    } catch (const gpusched::InvalidInput&) {
    }
    return 0;
}

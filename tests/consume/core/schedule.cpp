// SPDX-License-Identifier: Apache-2.0
// What an embedding scheduler does: place with policies of its own, allocate a gang, preempt, consolidate, check; and it
// catches the library's exceptions.
#include "policies.hpp"

#include <gpusched/allocation/allocation.hpp>
#include <gpusched/consolidation/consolidation.hpp>
#include <gpusched/fragmentation/fragmentation.hpp>
#include <gpusched/model/model.hpp>
#include <gpusched/preemption/preemption.hpp>
#include <gpusched/topology/topology.hpp>
#include <gpusched/verify/verify.hpp>

#include <cstdio>
#include <string>

using namespace gpusched;

namespace {

struct MostGpusInUse {
    static constexpr bool node_local = true;
    std::int64_t operator()(const Cluster& cluster, TaskId, NodeId node) const {
        return -cluster.gpu_free_total_milli(node);
    }
};

/// A solver of linear programs that always gives up: the bound is then that of counting.
class GivesUp final : public LpSolver {
    [[nodiscard]] LpSolution solve_valid(const LpProblem&, const LpBasis&,
                                         std::optional<double>) const override {
        return {.status = LpStatus::failed};
    }
};

ClusterSpec snapshot() {
    ClusterSpec spec;
    for (int i = 0; i < 6; ++i) {
        const auto name = std::to_string(i);
        spec.nodes.push_back({.name = "n" + name,
                              .gpu_model = "A",
                              .gpu_count = 8,
                              .cpu_milli = 64'000,
                              .memory_mib = 512'000,
                              .network = {"root", "switch" + std::to_string(i / 2)}});
        if (i < 4)
            spec.tasks.push_back({.name = "t" + name,
                                  .cpu_milli = 1'000,
                                  .memory_mib = 1'000,
                                  .gpu_count = 2,
                                  .node = "n" + name,
                                  .gpus = {0, 1}});
    }
    spec.tasks.push_back({.name = "new", .cpu_milli = 1'000, .gpu_count = 4});
    return spec;
}

int fail(const char* what) {
    std::printf("failed: %s\n", what);
    return 1;
}

}  // namespace

int main() {
    const auto spec = snapshot();
    const auto cluster = Cluster::build(spec);
    Rng rng(1);
    const auto task = cluster.find_task("new");
    allocation::RankedPlacement<MostGpusInUse, allocation::TightestGpu> kept;
    const auto where = allocation::place(cluster, task, MostGpusInUse{}, allocation::TightestGpu{}, rng);
    if (!where || where != kept(cluster, task, rng)) return fail("place");

    const auto own = vacate(cluster);
    if (own.plan.vacated_nodes.empty() || !verify::plan(spec, to_spec(own.plan, cluster)).ok)
        return fail("consolidation with policies of one's own");
    const GivesUp solver;
    const auto best = consolidation::consolidate(
        cluster, {.search = {.bound_method = consolidation::BoundMethod::lp}}, {.lp = &solver});
    if (!verify::plan(spec, to_spec(best.plan, cluster)).ok) return fail("consolidate");
    if (!preemption::preempt(cluster, task).decision) return fail("preempt");
    const fragmentation::Incremental slots(fragmentation::SwitchSlotMetric(cluster.inventory()), cluster);
    if (slots.result().empty()) return fail("slots under switches");

    // Exceptions are caught by type on this side of a shared library, too.
    try {
        (void)cluster.find_node("nowhere");
        return fail("an unknown node");
    } catch (const InvalidInput& error) {
        if (error.problems().size() != 1) return fail("problems");
    }
    try {
        (void)consolidation::bound(cluster, consolidation::BoundMethod::lp);
        return fail("the LP bound without a solver");
    } catch (const BackendError&) {
    }
    std::printf("placed on %s, %zu nodes vacated\n", cluster.name(where->node).data(),
                best.plan.vacated_nodes.size());
    return 0;
}

// Value report: what a plan disturbs and what it frees, before anything moves.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gpusched::consolidation {

/// What happens to one kind of GPU.
struct ModelValue {
    std::string gpu_model;  ///< empty for nodes without a model
    std::int64_t vacated_nodes = 0;
    std::int64_t vacated_gpus = 0;
    std::int64_t pods_moved = 0;  ///< pods that leave nodes of this model
    bool operator==(const ModelValue&) const = default;
};

/// Costs and gains of a plan.
struct ValueReport {
    // Cost
    std::int64_t pods_moved = 0;          ///< distinct tasks
    std::int64_t moves = 0;               ///< hops included
    std::int64_t move_cost = 0;           ///< sum of `move_cost` over all moves
    std::int64_t jobs_disturbed = 0;      ///< a task without a job counts as one
    std::int64_t most_moved_at_once = 0;  ///< moves in the largest wave
    std::int64_t waves = 0;
    // Gain
    std::int64_t nodes_freed = 0;
    std::int64_t gpus_freed = 0;  ///< healthy GPUs of the freed nodes
    std::int64_t domains_freed =
        0;  ///< deepest network domains (racks, access switches) that end up without tasks
    double gpus_per_move = 0;
    double nodes_per_move = 0;
    std::vector<ModelValue> models;  ///< in the order of the snapshot's model names; only those with a change
    bool operator==(const ValueReport&) const = default;
};

/// Weighs `plan` against `cluster`. O(nodes + moves). @throws InvalidInput for a plan that does not fit the snapshot
[[nodiscard]] ValueReport value_report(const Cluster& cluster, const Plan& plan);

/// The report as a few lines of text.
[[nodiscard]] std::string to_text(const ValueReport& report);

}  // namespace gpusched::consolidation

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/consolidation/impl/value_report.ipp>
#endif

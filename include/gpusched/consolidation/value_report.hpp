// SPDX-License-Identifier: Apache-2.0
// Value report: what a plan disturbs and what it frees, before anything moves.
#pragma once

#include <gpusched/consolidation/plan_statistics.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::consolidation {

/// What happens to one kind of GPU.
struct ModelValue {
    std::string gpu_model;  ///< empty for nodes without a model
    /// How many nodes become empty.
    std::int64_t vacated_nodes = 0;
    /// How many GPUs they have.
    std::int64_t vacated_gpus = 0;
    std::int64_t moved_tasks = 0;  ///< tasks that leave nodes of this model
    bool operator==(const ModelValue&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ModelValue>, F&& field) {
    field("gpu_model", &ModelValue::gpu_model);
    field("vacated_nodes", &ModelValue::vacated_nodes);
    field("vacated_gpus", &ModelValue::vacated_gpus);
    field("moved_tasks", &ModelValue::moved_tasks);
}

/// Costs and gains of a plan, in all and per GPU model.
struct ValueReport : PlanStatistics {
    std::vector<ModelValue> models;  ///< in the order of the snapshot's model names; only those with a change
    bool operator==(const ValueReport&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<ValueReport>, F&& field) {
    visit_fields(std::type_identity<PlanStatistics>{}, field);
    field("models", &ValueReport::models);
}

/// Weighs `plan` against `cluster`. O(nodes + moves). @throws InvalidInput for a plan that does not fit the snapshot
[[nodiscard]] ValueReport value_report(const Cluster& cluster, const Plan& plan);

/// The report as a few lines of text.
[[nodiscard]] std::string to_text(const ValueReport& report);

}  // namespace gpusched::consolidation

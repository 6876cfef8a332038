// SPDX-License-Identifier: Apache-2.0
// Workload: the expected task shapes and their frequencies, the reference for expected fragmentation.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/spec.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::fragmentation {

/// The request of one kind of task, and the number of tasks of this kind in the list.
struct WorkloadShape {
    std::int64_t cpu_milli = 0;           ///< thousandths of a core, >= 0
    std::int64_t gpu_count = 0;           ///< whole GPUs (0 to 64), or 1 with a share below 1000
    std::int64_t gpu_share_milli = 1000;  ///< thousandths of one GPU, 1 to 1000
    std::vector<std::string>
        gpu_models{};             ///< acceptable models, also by short names such as "h100"; empty = any
    std::int64_t weight = 1;      ///< >= 1; its popularity is weight / sum of weights
    std::int64_t memory_mib = 0;  ///< mean of its tasks; FGD ignores it
    bool operator==(const WorkloadShape&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<WorkloadShape>, F&& field) {
    field("cpu_milli", &WorkloadShape::cpu_milli);
    field("gpu_count", &WorkloadShape::gpu_count);
    field("gpu_share_milli", &WorkloadShape::gpu_share_milli);
    field("gpu_models", &WorkloadShape::gpu_models);
    field("weight", &WorkloadShape::weight);
    field("memory_mib", &WorkloadShape::memory_mib);
}

/// A distribution over task shapes. The weights are integers, so that every sum over nodes is exact.
struct Workload {
    /// The kinds of tasks, most frequent first.
    std::vector<WorkloadShape> shapes{};
    bool operator==(const Workload&) const = default;

    [[nodiscard]] std::int64_t total_weight() const noexcept {
        std::int64_t sum = 0;
        for (const auto& shape : shapes) sum += shape.weight;
        return sum;
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<Workload>, F&& field) {
    field("shapes", &Workload::shapes);
}

/// Checks that there is at least one shape, and that all shapes and the sum of their weights are in range.
/// @throws InvalidInput with every problem
void validate(const Workload& workload);

/// Options of typical_workload().
struct WorkloadOptions {
    int coverage_percent =
        95;  ///< percentage of tasks, 1 to 100; rarer shapes are dropped once it is covered
    bool include_cpu_only = true;  ///< include tasks without GPUs, as in the published numbers
};
template <class F>
constexpr void visit_fields(std::type_identity<WorkloadOptions>, F&& field) {
    field("coverage_percent", &WorkloadOptions::coverage_percent, within(1, 100));
    field("include_cpu_only", &WorkloadOptions::include_cpu_only);
}

/// Returns the most frequent shapes of a task list, with their frequencies.
///
/// Weng et al. (USENIX ATC '23) measure fragmentation for the typical tasks of a cluster: the distinct shapes
/// (CPU, GPUs, share, accepted models) by falling frequency until `coverage_percent` of the list is covered.
/// Shapes of equal frequency are in ascending order (CPU, GPUs, share, models), so the result does not depend
/// on the order of the list. Models are sorted and listed once each. Shapes that differ only in memory are
/// the same shape; its memory is the mean.
///
/// @throws InvalidInput if an option is out of range
///
/// O(n log n) in the number of tasks.
[[nodiscard]] Workload typical_workload(std::span<const TaskSpec> tasks, const WorkloadOptions& options = {});
[[nodiscard]] Workload typical_workload(const Trace& trace, const WorkloadOptions& options = {});
/// Returns the typical workload of all running and pending tasks of a cluster.
[[nodiscard]] Workload typical_workload(const Cluster& cluster, const WorkloadOptions& options = {});

}  // namespace gpusched::fragmentation

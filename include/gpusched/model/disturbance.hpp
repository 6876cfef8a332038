// SPDX-License-Identifier: Apache-2.0
// Disturbance: the running pods that a plan moves or evicts, by owner and namespace.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/model/cluster.hpp>
#include <gpusched/model/plan.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace gpusched {

/// The running pods that a plan disturbs, each counted once.
struct Disturbance {
    /// Number of pods.
    std::int64_t pods = 0;
    /// Number of different owners: the jobs of the pods. None for a plan without facts about its tasks, as
    /// read from a document.
    std::optional<std::int64_t> owners{};
    /// GPUs of the pods, with shares as fractions. None if `owners` is.
    std::optional<double> gpus{};
    /// Pods that stop and start again, on another node or after an eviction.
    std::int64_t restarted = 0;
    /// Pods that only move by copies.
    std::int64_t copied = 0;
    /// Pods that are evicted and do not start again under the plan.
    std::int64_t evicted = 0;
    /// Number of pods by kind of owner, such as "Deployment". "none" = without an owner, "unknown" = the
    /// snapshot does not know the kind.
    std::map<std::string, std::int64_t> by_owner_kind{};
    /// Number of pods by namespace; "" = without one. Empty if `owners` is None, like `by_owner_kind`.
    std::map<std::string, std::int64_t> by_namespace{};
    bool operator==(const Disturbance&) const = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<Disturbance>, F&& field) {
    field("pods", &Disturbance::pods);
    field("owners", &Disturbance::owners);
    field("gpus", &Disturbance::gpus);
    field("restarted", &Disturbance::restarted);
    field("copied", &Disturbance::copied);
    field("evicted", &Disturbance::evicted);
    field("by_owner_kind", &Disturbance::by_owner_kind);
    field("by_namespace", &Disturbance::by_namespace);
}

/// Counts the pods that a plan disturbs. O(steps x log(steps))
[[nodiscard]] Disturbance disturbance(const PlanSpec& plan);

/// The counts as a sentence: "disturbs 25 pods (18 of Jobs, 3 without an owner) of 21 owners in 5 namespaces,
/// 93 GPUs: 22 restarted, 3 copied."
[[nodiscard]] std::string to_text(const Disturbance& disturbance);

/// How a plan treats a task.
enum class Treatment : std::uint8_t {
    copy,     ///< it moves by copies only
    restart,  ///< it stops and starts again
    evict,    ///< it stops for good
    start,    ///< it was pending and starts
};
constexpr auto enum_names(Treatment) {
    return name_table<Treatment>({{Treatment::copy, "copy"},
                                  {Treatment::restart, "restart"},
                                  {Treatment::evict, "evict"},
                                  {Treatment::start, "start"}});
}

/// Returns how a plan treats each task that it names, in any order of its steps.
[[nodiscard]] std::map<std::string_view, Treatment> treatments(const PlanSpec& plan);

/// Returns the namespace of a task read from Kubernetes: the part of its name before the first slash, if the
/// name of its job, too, begins with it. Empty = none.
[[nodiscard]] std::string_view namespace_of(const PlanSpec::Task& task);

/// Writes what `cluster` knows of the tasks that the plan names into the plan. Ignores unknown tasks.
/// O(steps x log(steps))
void describe_tasks(PlanSpec& plan, const Cluster& cluster);

}  // namespace gpusched

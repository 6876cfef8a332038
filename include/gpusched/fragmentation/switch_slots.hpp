// SPDX-License-Identifier: Apache-2.0
// SwitchSlots: the number of large jobs that could start now, with and without the requirement of a single
// switch.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/accounting.hpp>
#include <gpusched/fragmentation/detail/slot_sums.hpp>
#include <gpusched/model/cluster.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace gpusched::fragmentation {

/// Options of switch_slots().
struct SwitchSlotOptions {
    int gpus = 128;                           ///< GPUs of one job, >= 1
    int cores_per_gpu = 12;                   ///< >= 0; 0 ignores CPU
    std::optional<Level> level{};             ///< level of the switches; none = the deepest known level
    std::optional<int> gpus_per_pod{};        ///< 1 to 64, a divisor of `gpus`; none = the paper's estimate
    std::optional<int> max_gpus_per_node{};   ///< ignore nodes with more GPUs; none = all
    bool include_cordoned = false;            ///< count GPUs of cordoned nodes as idle, too
    Accounting accounting = Accounting::all;  ///< tasks that hold capacity; `hp` as in the paper's figure
};
template <class F>
constexpr void visit_fields(std::type_identity<SwitchSlotOptions>, F&& field) {
    field("gpus", &SwitchSlotOptions::gpus, within(1, 100'000'000));
    field("cores_per_gpu", &SwitchSlotOptions::cores_per_gpu, within(0, 1'000'000));
    field("level", &SwitchSlotOptions::level, IsLevel{});
    field("gpus_per_pod", &SwitchSlotOptions::gpus_per_pod, within(1, gpusched::max_gpus_per_node));
    field("max_gpus_per_node", &SwitchSlotOptions::max_gpus_per_node, within(1, gpusched::max_gpus_per_node));
    field("include_cordoned", &SwitchSlotOptions::include_cordoned);
    field("accounting", &SwitchSlotOptions::accounting);
}

/// Numbers of jobs that could run on the idle GPUs of one model.
struct SwitchSlotRow {
    std::string gpu_model{};  ///< "*" = all models together; empty = nodes without a model name
    std::int64_t across = 0;  ///< jobs that may use a whole cluster (top network domain)
    std::int64_t within = 0;  ///< jobs that must stay under one switch
    bool operator==(const SwitchSlotRow&) const = default;

    /// Returns the number of jobs lost to the network topology.
    [[nodiscard]] std::int64_t loss() const noexcept { return across - within; }
};

/// Measures the fourth cause of fragmentation, network topology (ASI paper, section 4.1 and Fig. 14).
///
/// A node offers slots: GPUs that a pod of the job could use. A cluster or a switch can run floor(slots /
/// `gpus`) jobs; each row is the sum of these. Without `gpus_per_pod`, slots are the paper's estimate,
///   min(max(GPUs - floor(GPUs requested on the node), 0), max(floor(idle cores / cores_per_gpu), 0)),
/// in which a partly used GPU counts as a whole one. With `gpus_per_pod` = g, slots are exact: g times the
/// number of pods that fit on the node, each with g fully idle GPUs and g x cores_per_gpu cores.
///
/// Capacity is idle if a task without spot (LP) rights could take it now: failed GPUs, Standby claims and
/// cordoned nodes are not idle. A node of unknown position is its own domain. With accounting `hp`, as in the
/// paper's figure, requested GPUs and cores are the requests of HP tasks, including Standby tasks. Only nodes
/// with an HP task and a known switch count then. `gpus_per_pod` cannot be combined with accounting `hp`.
///
/// @return one row per GPU model in order of first appearance, then "*"
/// @throws InvalidInput if an option is out of range
///
/// O(nodes log nodes).
[[nodiscard]] std::vector<SwitchSlotRow> switch_slots(const Cluster& cluster,
                                                      const SwitchSlotOptions& options = {});

/// Switch slots as a node metric for `Incremental` (incremental.hpp). O(1) per changed node, O(switches) per
/// result.
class SwitchSlotMetric {
  public:
    explicit SwitchSlotMetric(const Inventory& inventory, const SwitchSlotOptions& options = {});

    using State = detail::SlotSums::State;
    using Total = detail::SlotSums::Total;
    [[nodiscard]] State state(const Cluster& cluster, NodeId node) const noexcept {
        return sums_.state(cluster, node);
    }
    [[nodiscard]] Total zero() const { return sums_.zero(); }
    void add(Total& total, NodeId node, State slots, int sign) const noexcept {
        sums_.add(total, node, slots, sign);
    }
    void renew(const Inventory& inventory);
    bool renew(const Inventory& inventory, NodeId node);
    [[nodiscard]] std::vector<SwitchSlotRow> result(const Total& total) const;

  private:
    SwitchSlotOptions options_;
    detail::SlotSums sums_;
};

}  // namespace gpusched::fragmentation

// SPDX-License-Identifier: Apache-2.0
// How many large jobs could start now, with and without the wish to stay under one switch.
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

struct SwitchSlotOptions {
    int gpus = 128;                           ///< GPUs of one job, >= 1
    int cores_per_gpu = 12;                   ///< >= 0; 0 = CPU does not matter
    std::optional<Level> level{};             ///< level of the switches; none = the deepest that is known
    std::optional<int> gpus_per_pod{};        ///< 1 .. 64, a divisor of `gpus`; none = the paper's estimate
    std::optional<int> max_gpus_per_node{};   ///< leave out nodes with more GPUs; none = all
    bool include_cordoned = false;            ///< GPUs of cordoned nodes count as idle too
    Accounting accounting = Accounting::all;  ///< who holds capacity; `hp` is the paper's figure
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

/// Jobs that could be fulfilled on the idle GPUs of one model.
struct SwitchSlotRow {
    std::string gpu_model{};  ///< "*" = all models together; empty = nodes that name no model
    std::int64_t across = 0;  ///< a job may use all of a cluster (top network domain)
    std::int64_t within = 0;  ///< a job must stay under one switch
    bool operator==(const SwitchSlotRow&) const = default;

    /// Jobs lost to the network topology.
    [[nodiscard]] std::int64_t loss() const noexcept { return across - within; }
};

/// The fourth cause of fragmentation, network topology (ASI paper, section 4.1 and Fig. 14).
///
/// A node offers slots: GPUs that a pod of the job could use. A cluster, or a switch, fulfils floor(slots / `gpus`)
/// jobs; each row adds them up. Without `gpus_per_pod` slots are the paper's estimate,
///   min(max(GPUs - floor(GPUs requested on the node), 0), max(floor(idle cores / cores_per_gpu), 0)),
/// where a GPU of which a part is left counts as a whole one. With `gpus_per_pod` = g they are exact: g times the
/// number of pods of g entirely idle GPUs and g x cores_per_gpu cores that fit on the node.
/// Idle is what a task without spot (LP) rights could take now: failed GPUs, Standby claims and cordoned nodes are
/// not idle. A node of unknown position is a domain of its own. With accounting `hp` GPUs and cores requested are those of HP
/// tasks, Standby included, and only nodes with an HP task and a known switch count, as in the paper's figure; `gpus_per_pod`
/// does not go with it.
///
/// @return one row per GPU model in order of first appearance, then "*"
/// @throws InvalidInput when an option is out of range
/// Complexity: O(nodes log nodes).
[[nodiscard]] std::vector<SwitchSlotRow> switch_slots(const Cluster& cluster,
                                                      const SwitchSlotOptions& options = {});

/// The same as a node metric, to be kept up to date by `Incremental` (incremental.hpp). O(1) per changed node, O(switches)
/// per result.
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

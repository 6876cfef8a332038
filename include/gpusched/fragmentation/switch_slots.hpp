// SPDX-License-Identifier: Apache-2.0
// Switch slots and the largest job: the jobs that could start now, with and without the requirement of a
// single switch.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/fragmentation/allocation_ratio.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstddef>
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

namespace detail {

/// The common part of metrics on slots. There is one cell per pair of model and domain with GPUs. Models are
/// each model and all models together. Domains are at the top level ("across" switches) and at the level of
/// the switches ("within" one).
class SlotSums {
  public:
    using State = std::int64_t;               // slots of the node
    using Total = std::vector<std::int64_t>;  // slots by cell

    [[nodiscard]] State state(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] Total zero() const { return Total(cells_.size()); }
    void add(Total& total, NodeId node, State slots, int sign) const noexcept {
        if (slots == 0) return;
        for (const auto cell : cells_of_node_[index(node)]) total[cell] += sign * slots;
    }

  protected:
    struct Cell {
        std::size_t row = 0;  // index into `rows_`
        bool within = false;
        DomainId domain = none<DomainId>;
    };
    // The properties of a node that decide its cells and the list of models.
    struct NodeFacts {
        bool shown = false, counted = false;
        std::size_t model = 0;
        DomainId cluster = none<DomainId>, domain = none<DomainId>;
        bool operator==(const NodeFacts&) const = default;
    };
    /// @throws InvalidInput if an option is out of range
    SlotSums(const Inventory& inventory, const SwitchSlotOptions& options);

    [[nodiscard]] NodeFacts facts_of(const Inventory& inventory, NodeId node) const;
    /// Returns false if the cells changed because the node was added, changed or removed. Domains are
    /// compared by id.
    [[nodiscard]] bool holds(const Inventory& inventory, NodeId node) const;

    SwitchSlotOptions options_;
    Level cluster_level_ = node_level, switch_level_ = node_level;
    int network_levels_;
    std::uint64_t serial_;           // of the inventory
    std::vector<std::string> rows_;  // GPU models in order of first appearance, then "*" for all together
    std::vector<Cell> cells_;
    std::vector<NodeFacts> facts_;  // by node
    // The cells of a node that counts: across and within for its model, then for all models.
    std::vector<std::array<std::uint32_t, 4>> cells_of_node_;
};

}  // namespace detail

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
/// `gpus`) jobs; each row is the sum of these. Without `gpus_per_pod`, slots are the paper's estimate, in which a
/// partly used GPU counts as a whole one:
///   min(max(GPUs - floor(GPUs requested on the node), 0), max(floor(idle cores / cores_per_gpu), 0))
/// With it, slots are exact: `gpus_per_pod` times the pods that fit on the node.
///
/// Failed GPUs, Standby claims and cordoned nodes are not idle. A node of unknown position is its own domain. With
/// accounting `hp`, as in the figure, only the requests of HP tasks and nodes with an HP task and a known switch
/// count; `gpus_per_pod` must be absent then.
///
/// @return one row per GPU model in order of first appearance, then "*"
/// @throws InvalidInput if an option is out of range
/// O(nodes log nodes).
[[nodiscard]] std::vector<SwitchSlotRow> switch_slots(const Cluster& cluster,
                                                      const SwitchSlotOptions& options = {});

/// Switch slots as a node metric for `Incremental` (incremental.hpp). O(1) per changed node, O(switches) per
/// result.
class SwitchSlotMetric : public detail::SlotSums {
  public:
    explicit SwitchSlotMetric(const Inventory& inventory, const SwitchSlotOptions& options = {});

    void renew(const Inventory& inventory);
    bool renew(const Inventory& inventory, NodeId node);
    [[nodiscard]] std::vector<SwitchSlotRow> result(const Total& total) const;
};

/// Options of largest_job().
struct LargestJobOptions {
    int gpus_per_pod = 1;           ///< whole GPUs of each pod of the job, 1 to 64
    int cores_per_gpu = 12;         ///< >= 0; 0 ignores CPU
    std::optional<Level> level{};   ///< level of the switches; none = the deepest known level
    bool include_cordoned = false;  ///< count GPUs of cordoned nodes as idle, too
};
template <class F>
constexpr void visit_fields(std::type_identity<LargestJobOptions>, F&& field) {
    field("gpus_per_pod", &LargestJobOptions::gpus_per_pod, within(1, gpusched::max_gpus_per_node));
    field("cores_per_gpu", &LargestJobOptions::cores_per_gpu, within(0, 1'000'000));
    field("level", &LargestJobOptions::level, IsLevel{});
    field("include_cordoned", &LargestJobOptions::include_cordoned);
}

/// The largest job on the idle GPUs of one model, and the domains that it fits.
struct LargestJobRow {
    std::string gpu_model{};  ///< "*" = all models together; empty = nodes without a model name
    std::int64_t across = 0;  ///< GPUs of the largest job that may use a whole cluster (top network domain)
    std::int64_t within = 0;  ///< GPUs of the largest job under one switch
    std::string cluster{};    ///< the cluster of `across`; empty if `across` is 0
    std::string domain{};     ///< the switch of `within`; empty if `within` is 0
    bool operator==(const LargestJobRow&) const = default;
};

/// Returns the most GPUs that one job of equal pods could get now, per GPU model.
///
/// A pod needs `gpus_per_pod` fully idle GPUs of one node, and `cores_per_gpu` cores per GPU. Capacity is
/// idle if a task without spot (LP) rights could take it now: failed GPUs, Standby claims and cordoned nodes
/// are not idle. A node of unknown position is its own domain. Among equally good domains, the result names
/// the domain of the first node.
///
/// @return one row per GPU model in order of first appearance, then "*"
/// @throws InvalidInput if an option is out of range
///
/// O(nodes log nodes).
[[nodiscard]] std::vector<LargestJobRow> largest_job(const Cluster& cluster,
                                                     const LargestJobOptions& options = {});

/// The largest job as a node metric for `Incremental` (incremental.hpp). O(1) per changed node, O(switches)
/// per result.
class LargestJobMetric : public detail::SlotSums {
  public:
    explicit LargestJobMetric(const Inventory& inventory, const LargestJobOptions& options = {});

    void renew(const Inventory& inventory);
    bool renew(const Inventory& inventory, NodeId node);
    [[nodiscard]] std::vector<LargestJobRow> result(const Total& total) const;

  private:
    [[nodiscard]] const std::string& domain_name(const Inventory& inventory, const Cell& cell) const;

    LargestJobOptions job_;
    std::vector<std::string> names_;  // domain names, by cell
};

}  // namespace gpusched::fragmentation

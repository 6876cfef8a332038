// SPDX-License-Identifier: Apache-2.0
// SlotSums: sums of slots (GPUs that a large job could use) per GPU model, over clusters and over switches.
#pragma once

#include <gpusched/fragmentation/accounting.hpp>
#include <gpusched/model/cluster.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::fragmentation::detail {

/// The common part of metrics on slots. There is one cell per pair of model and domain with GPUs. Models are
/// each model and all models together. Domains are at the top level ("across" switches) and at the level of
/// the switches ("within" one).
class SlotSums {
  public:
    struct Cell {
        std::size_t row = 0;  ///< index into `rows()`
        bool within = false;
        DomainId domain = none<DomainId>;
    };
    using State = std::int64_t;               // slots of the node
    using Total = std::vector<std::int64_t>;  // slots by cell

    SlotSums(const Inventory& inventory, Level level, bool include_cordoned,
             std::optional<int> max_gpus_per_node, std::optional<int> gpus_per_pod, int cores_per_gpu,
             Accounting accounting = Accounting::all);

    [[nodiscard]] State state(const Cluster& cluster, NodeId node) const noexcept;
    [[nodiscard]] Total zero() const { return Total(cells_.size()); }
    void add(Total& total, NodeId node, State slots, int sign) const noexcept {
        if (slots == 0) return;
        for (const auto cell : cells_of_node_[index(node)]) total[cell] += sign * slots;
    }

    /// Returns false if the cells changed because the node was added, changed or removed. Domains are
    /// compared by id.
    [[nodiscard]] bool holds(const Inventory& inventory, NodeId node) const;
    /// Returns true if the inventory has not changed at all.
    [[nodiscard]] bool holds(const Inventory& inventory) const noexcept {
        return inventory.serial == serial_;
    }
    /// Returns the cells of a node that counts: across and within for its model, then for all models.
    [[nodiscard]] const std::array<std::uint32_t, 4>& cells_of(NodeId node) const noexcept {
        return cells_of_node_[index(node)];
    }
    [[nodiscard]] bool counts(NodeId node) const noexcept { return where_[index(node)].counted; }

    /// Returns the GPU models in order of first appearance, then "*" for all models together.
    [[nodiscard]] const std::vector<std::string>& rows() const noexcept { return rows_; }
    [[nodiscard]] const std::vector<Cell>& cells() const noexcept { return cells_; }
    [[nodiscard]] Level cluster_level() const noexcept { return cluster_level_; }
    [[nodiscard]] Level switch_level() const noexcept { return switch_level_; }

  private:
    // The properties of a node that decide its cells and the list of models.
    struct Where {
        bool shown = false, counted = false;
        std::size_t model = 0;
        DomainId cluster = none<DomainId>, domain = none<DomainId>;
        bool operator==(const Where&) const = default;
    };
    [[nodiscard]] Where where(const Inventory& inventory, NodeId node) const;

    Level cluster_level_, switch_level_;
    bool include_cordoned_;
    std::optional<int> max_gpus_per_node_, gpus_per_pod_;
    Accounting accounting_;
    int network_levels_;
    std::uint64_t serial_;
    std::int64_t cpu_milli_per_gpu_;
    std::vector<std::string> rows_;
    std::vector<Cell> cells_;
    std::vector<Where> where_;  // by node
    std::vector<std::array<std::uint32_t, 4>> cells_of_node_;
};

}  // namespace gpusched::fragmentation::detail

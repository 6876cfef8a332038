// SPDX-License-Identifier: Apache-2.0
// Slots (GPUs that a large job could use) added up per GPU model, over clusters and over switches.
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

/// The common part of metrics on slots: one cell per (model, domain) that has GPUs, models alone and together,
/// domains at the top level ("across" switches) and at the switches' level ("within" one).
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

    /// False where the node, which came, changed or left, makes the cells others. Domains go by number.
    [[nodiscard]] bool holds(const Inventory& inventory, NodeId node) const;
    /// Whether nothing at all has changed since.
    [[nodiscard]] bool holds(const Inventory& inventory) const noexcept {
        return inventory.serial == serial_;
    }
    /// The cells of a node that counts: its model across switches and within its own, then all models.
    [[nodiscard]] const std::array<std::uint32_t, 4>& cells_of(NodeId node) const noexcept {
        return cells_of_node_[index(node)];
    }
    [[nodiscard]] bool counts(NodeId node) const noexcept { return where_[index(node)].counted; }

    /// GPU models by first appearance, then "*" for all together.
    [[nodiscard]] const std::vector<std::string>& rows() const noexcept { return rows_; }
    [[nodiscard]] const std::vector<Cell>& cells() const noexcept { return cells_; }
    [[nodiscard]] Level cluster_level() const noexcept { return cluster_level_; }
    [[nodiscard]] Level switch_level() const noexcept { return switch_level_; }

  private:
    // What of a node decides on its cells, and on which models there are.
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

// SPDX-License-Identifier: Apache-2.0
// DomainCounts: how many members each group constraint has in each domain, in one flat, copyable array.
#pragma once

#include <gpusched/core/ids.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::detail {

/// One small open-addressing table (domain -> count) per set, all in one array. A table holds as many domains as three
/// copies of every member can touch. O(1) expected per call; room that is given back is used again.
class DomainCounts {
  public:
    /// Appends a table for a set of `members` and returns its number.
    std::uint32_t add_table(std::uint32_t members);
    /// Makes room in the table for a set of `members`; amortised O(1) where sets grow by single members.
    void grow_table(std::uint32_t table, std::uint32_t members);
    /// Gives back a table that counts nothing. Its number may be what `add_table` returns next.
    void remove_table(std::uint32_t table);

    [[nodiscard]] std::uint32_t count(std::uint32_t table, DomainId domain) const noexcept {
        const auto& t = tables_[table];
        for (auto i = slot(t, domain);; i = (i + 1) & t.mask) {
            const auto& cell = cells_[t.first + i];
            if (cell.count == 0) return 0;
            if (cell.domain == domain) return cell.count;
        }
    }

    /// How many domains have a member.
    [[nodiscard]] std::uint32_t domains(std::uint32_t table) const noexcept { return tables_[table].used; }

    void increment(std::uint32_t table, DomainId domain) noexcept;

    void decrement(std::uint32_t table, DomainId domain) noexcept;

  private:
    struct Table {
        std::uint32_t first, mask, used;
    };
    struct Cell {
        DomainId domain = none<DomainId>;
        std::uint32_t count = 0;
    };
    [[nodiscard]] static std::uint32_t slot(const Table& t, DomainId domain) noexcept {
        return (static_cast<std::uint32_t>(domain) * 0x9E3779B1u >> 7) & t.mask;
    }
    [[nodiscard]] static std::uint32_t capacity_for(std::uint32_t members) noexcept;
    [[nodiscard]] std::uint32_t take_cells(std::uint32_t capacity);
    void give_cells(const Table& table);
    [[nodiscard]] Cell& cell_of(const Table& table, DomainId domain) noexcept;
    std::vector<Table> tables_;
    std::vector<Cell> cells_;
    std::vector<std::uint32_t> free_tables_;
    std::vector<std::vector<std::uint32_t>>
        free_cells_;  // by the logarithm of their number: where they begin
};

}  // namespace gpusched::detail

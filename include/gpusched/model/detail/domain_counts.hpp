// DomainCounts: how many members each group constraint has in each domain, in one flat, copyable array.
#pragma once

#include <gpusched/config.hpp>
#include <gpusched/core/ids.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::detail {

/// One small open-addressing table (domain -> count) per set, all in one array, sized when the sets are known.
/// A table holds as many domains as three copies of every member can touch. O(1) expected per call.
class DomainCounts {
  public:
    /// Appends a table for a set of `members` and returns its number.
    std::uint32_t add_table(std::uint32_t members) {
        const auto capacity = std::bit_ceil(std::uint32_t{4} * (members + 1));
        tables_.push_back({static_cast<std::uint32_t>(cells_.size()), capacity - 1, 0});
        cells_.resize(cells_.size() + capacity);
        return static_cast<std::uint32_t>(tables_.size() - 1);
    }

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

    void increment(std::uint32_t table, DomainId domain) noexcept {
        auto& t = tables_[table];
        for (auto i = slot(t, domain);; i = (i + 1) & t.mask) {
            auto& cell = cells_[t.first + i];
            if (cell.count != 0 && cell.domain != domain) continue;
            if (cell.count++ == 0) {
                cell.domain = domain;
                ++t.used;
                GPUSCHED_ASSERT(t.used < t.mask);
            }
            return;
        }
    }

    void decrement(std::uint32_t table, DomainId domain) noexcept {
        auto& t = tables_[table];
        auto i = slot(t, domain);
        while (cells_[t.first + i].domain != domain) i = (i + 1) & t.mask;
        GPUSCHED_ASSERT(cells_[t.first + i].count > 0);
        if (--cells_[t.first + i].count > 0) return;
        --t.used;
        // Backward shift: pull later cells of the run into the hole, so that no tombstones build up.
        for (auto j = (i + 1) & t.mask; cells_[t.first + j].count != 0; j = (j + 1) & t.mask) {
            const auto home = slot(t, cells_[t.first + j].domain);
            if (((j - home) & t.mask) < ((j - i) & t.mask)) continue;
            cells_[t.first + i] = cells_[t.first + j];
            cells_[t.first + j].count = 0;
            i = j;
        }
    }

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
    std::vector<Table> tables_;
    std::vector<Cell> cells_;
};

}  // namespace gpusched::detail

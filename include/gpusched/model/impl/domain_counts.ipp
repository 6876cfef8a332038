// The parts of DomainCounts that only the cluster's own code needs, out of its header to keep that quick to compile.
#pragma once

#include <gpusched/model/detail/domain_counts.hpp>

#include <bit>

namespace GPUSCHED_NAMESPACE::detail {

inline std::uint32_t DomainCounts::capacity_for(std::uint32_t members) noexcept {
    return std::bit_ceil(std::uint32_t{4} * (members + 1));
}

// Where `capacity` empty cells begin.
inline std::uint32_t DomainCounts::take_cells(std::uint32_t capacity) {
    const auto size = static_cast<std::size_t>(std::countr_zero(capacity));
    if (size < free_cells_.size() && !free_cells_[size].empty()) {
        const auto first = free_cells_[size].back();
        free_cells_[size].pop_back();
        return first;
    }
    cells_.resize(cells_.size() + capacity);
    return static_cast<std::uint32_t>(cells_.size() - capacity);
}

inline std::uint32_t DomainCounts::add_table(std::uint32_t members) {
    const auto capacity = capacity_for(members);
    const Table table{take_cells(capacity), capacity - 1, 0};
    if (free_tables_.empty()) {
        tables_.push_back(table);
        return static_cast<std::uint32_t>(tables_.size() - 1);
    }
    const auto number = free_tables_.back();
    free_tables_.pop_back();
    tables_[number] = table;
    return number;
}

inline void DomainCounts::remove_table(std::uint32_t table) {
    auto& t = tables_[table];
    GPUSCHED_ASSERT(t.used == 0);
    const auto size = static_cast<std::size_t>(std::countr_zero(t.mask + 1));
    if (free_cells_.size() <= size) free_cells_.resize(size + 1);
    free_cells_[size].push_back(t.first);
    free_tables_.push_back(table);
}

inline void DomainCounts::grow_table(std::uint32_t table, std::uint32_t members) {
    const auto capacity = capacity_for(members);
    const auto old = tables_[table];
    if (capacity <= old.mask + 1) return;
    const auto first = take_cells(capacity);
    tables_[table] = {first, capacity - 1, 0};
    for (auto i = old.first; i <= old.first + old.mask; ++i) {
        auto& cell = cells_[i];
        if (cell.count == 0) continue;
        increment(table, cell.domain);
        for (auto at = slot(tables_[table], cell.domain);; at = (at + 1) & tables_[table].mask)
            if (auto& to = cells_[first + at]; to.domain == cell.domain && to.count > 0) {
                to.count = cell.count;
                break;
            }
        cell.count = 0;
    }
    const auto size = static_cast<std::size_t>(std::countr_zero(old.mask + 1));
    if (free_cells_.size() <= size) free_cells_.resize(size + 1);
    free_cells_[size].push_back(old.first);
}

inline void DomainCounts::increment(std::uint32_t table, DomainId domain) noexcept {
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

inline void DomainCounts::decrement(std::uint32_t table, DomainId domain) noexcept {
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

}  // namespace GPUSCHED_NAMESPACE::detail

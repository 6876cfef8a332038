// SPDX-License-Identifier: Apache-2.0
// How the cluster counts the members of groups by domain. Only its own sources need this, so public headers
// stay quick to compile.
#pragma once

#include <gpusched/model/cluster.hpp>

#include <bit>

namespace gpusched::detail {

inline std::uint32_t DomainCounts::capacity_for(std::uint32_t members) noexcept {
    return std::bit_ceil(std::uint32_t{4} * (members + 1));
}

// The first of `capacity` empty cells.
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

// Releases the cells of a table, which are all empty.
inline void DomainCounts::give_cells(const Table& table) {
    const auto size = static_cast<std::size_t>(std::countr_zero(table.mask + 1));
    if (free_cells_.size() <= size) free_cells_.resize(size + 1);
    free_cells_[size].push_back(table.first);
}

inline void DomainCounts::remove_table(std::uint32_t table) {
    GPUSCHED_ASSERT(tables_[table].used == 0);
    give_cells(tables_[table]);
    free_tables_.push_back(table);
}

// The cell of the domain, or the empty cell for it.
inline DomainCounts::Cell& DomainCounts::cell_of(const Table& table, DomainId domain) noexcept {
    auto i = slot(table, domain);
    while (cells_[table.first + i].count != 0 && cells_[table.first + i].domain != domain)
        i = (i + 1) & table.mask;
    return cells_[table.first + i];
}

inline void DomainCounts::grow_table(std::uint32_t table, std::uint32_t members) {
    const auto capacity = capacity_for(members);
    const auto old = tables_[table];
    if (capacity <= old.mask + 1) return;
    const Table grown{take_cells(capacity), capacity - 1, old.used};
    for (auto i = old.first; i <= old.first + old.mask; ++i) {
        auto& cell = cells_[i];
        if (cell.count == 0) continue;
        cell_of(grown, cell.domain) = cell;
        cell.count = 0;
    }
    tables_[table] = grown;
    give_cells(old);
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

}  // namespace gpusched::detail

namespace gpusched {

inline void Cluster::count_groups(TaskId task, NodeId node, int sign) {
    const auto count = [&](std::uint32_t table, DomainId domain) __attribute__((always_inline)) {
        sign > 0 ? groups_.increment(table, domain) : groups_.decrement(table, domain);
    };
    if (inventory_->memberships(task).empty()) return;
    for (const auto& m : inventory_->limit_memberships(task)) {
        const auto& set = inventory_->group_sets[m.set];
        auto domain = none<DomainId>;
        if (set.level < first_label_level) [[likely]]
            domain = inventory_->domain(set.level, node);
        else if (domain = inventory_->domain_at(set.level, node); domain == none<DomainId>)
            continue;
        count(group_tables_[m.set], domain);
        if (!set.uniform && m.limit != Membership::no_limit) {
            const auto which =
                std::lower_bound(set.limits.begin(), set.limits.end(), m.limit) - set.limits.begin();
            count(group_tables_[m.set] + 1 + static_cast<std::uint32_t>(which), domain);
        }
    }
    if (!inventory_->selection_memberships(task).empty()) count_selection(task, node, sign);
}

}  // namespace gpusched

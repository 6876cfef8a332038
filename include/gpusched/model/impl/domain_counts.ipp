// The parts of DomainCounts that only the cluster's own code needs, out of its header to keep that quick to compile.
#pragma once

#include <gpusched/model/detail/domain_counts.hpp>

#include <bit>

namespace GPUSCHED_NAMESPACE::detail {

inline std::uint32_t DomainCounts::add_table(std::uint32_t members) {
    const auto capacity = std::bit_ceil(std::uint32_t{4} * (members + 1));
    tables_.push_back({static_cast<std::uint32_t>(cells_.size()), capacity - 1, 0});
    cells_.resize(cells_.size() + capacity);
    return static_cast<std::uint32_t>(tables_.size() - 1);
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

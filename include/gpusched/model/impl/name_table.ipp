#pragma once

#include <gpusched/model/name_table.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace GPUSCHED_NAMESPACE {

// Where the search for `name` begins.
GPUSCHED_INLINE std::size_t NameTable::home(std::string_view name) const noexcept {
    return std::hash<std::string_view>{}(name) & (slots_.size() - 1);
}

// The slot that holds `name`, or the empty one where it belongs.
GPUSCHED_INLINE std::size_t NameTable::slot(std::string_view name) const noexcept {
    const auto mask = slots_.size() - 1;
    auto at = home(name);
    while (slots_[at] != empty && names_[slots_[at]] != name) at = (at + 1) & mask;
    return at;
}

GPUSCHED_INLINE std::pair<std::uint32_t, bool> NameTable::intern(std::string_view name) {
    if (slots_.size() < 2 * (names_.size() + 1)) {
        const auto old = std::exchange(
            slots_, std::vector(std::max<std::size_t>(16, 2 * slots_.size()), std::uint32_t{empty}));
        for (const auto id : old)
            if (id != empty) slots_[slot(names_[id])] = id;
    }
    auto& id = slots_[slot(name)];
    if (id != empty) return {id, false};
    id = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(name);
    return {id, true};
}

GPUSCHED_INLINE void NameTable::erase(std::size_t id) {
    const auto mask = slots_.size() - 1;
    auto hole = slot(names_[id]);
    names_[id].clear();
    slots_[hole] = empty;
    // Later names of the run move up, so that a search never stops before them.
    for (auto at = (hole + 1) & mask; slots_[at] != empty; at = (at + 1) & mask) {
        if (((at - home(names_[slots_[at]])) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = std::exchange(slots_[at], empty);
        hole = at;
    }
}

GPUSCHED_INLINE void NameTable::assign(std::size_t id, std::string_view name) {
    slots_[slot(name)] = static_cast<std::uint32_t>(id);
    names_[id] = name;
}

GPUSCHED_INLINE std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
    if (slots_.empty()) return std::nullopt;
    const auto id = slots_[slot(name)];
    return id != empty ? std::optional(id) : std::nullopt;
}

}  // namespace GPUSCHED_NAMESPACE

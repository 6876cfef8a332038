#pragma once

#include <gpusched/model/name_table.hpp>

#include <algorithm>
#include <functional>
#include <utility>

namespace GPUSCHED_NAMESPACE {

namespace detail {

inline std::uint32_t hash_of(std::string_view name) noexcept {
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
}

}  // namespace detail

// The slot that holds `name`, or the empty one where it belongs.
GPUSCHED_INLINE std::size_t NameTable::find_slot(std::string_view name, std::uint32_t hash) const noexcept {
    const auto mask = slots_.size() - 1;
    auto at = home(hash);
    while (slots_[at].id != empty && (slots_[at].hash != hash || names_[slots_[at].id] != name))
        at = (at + 1) & mask;
    return at;
}

GPUSCHED_INLINE std::pair<std::uint32_t, bool> NameTable::intern(std::string_view name) {
    if (4 * slots_.size() < 5 * (names_.size() + 1)) {
        const auto old =
            std::exchange(slots_, std::vector<Slot>(std::max<std::size_t>(16, 2 * slots_.size())));
        for (const auto& slot : old) {
            if (slot.id == empty) continue;
            auto at = home(slot.hash);
            while (slots_[at].id != empty) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = slot;
        }
    }
    const auto hash = detail::hash_of(name);
    auto& slot = slots_[find_slot(name, hash)];
    if (slot.id != empty) return {slot.id, false};
    slot = {static_cast<std::uint32_t>(names_.size()), hash};
    names_.emplace_back(name);
    return {slot.id, true};
}

GPUSCHED_INLINE void NameTable::erase(std::size_t id) {
    const auto mask = slots_.size() - 1;
    auto hole = home(detail::hash_of(names_[id]));
    while (slots_[hole].id != id) hole = (hole + 1) & mask;
    names_[id].clear();
    slots_[hole] = {};
    // Later names of the run move up, so that a search never stops before them.
    for (auto at = (hole + 1) & mask; slots_[at].id != empty; at = (at + 1) & mask) {
        if (((at - home(slots_[at].hash)) & mask) < ((at - hole) & mask)) continue;
        slots_[hole] = std::exchange(slots_[at], {});
        hole = at;
    }
}

GPUSCHED_INLINE void NameTable::assign(std::size_t id, std::string_view name) {
    const auto hash = detail::hash_of(name);
    slots_[find_slot(name, hash)] = {static_cast<std::uint32_t>(id), hash};
    names_[id] = name;
}

GPUSCHED_INLINE std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
    if (slots_.empty()) return std::nullopt;
    const auto id = slots_[find_slot(name, detail::hash_of(name))].id;
    return id != empty ? std::optional(id) : std::nullopt;
}

}  // namespace GPUSCHED_NAMESPACE

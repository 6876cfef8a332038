#pragma once

#include <gpusched/model/name_table.hpp>

#include <algorithm>
#include <functional>

namespace GPUSCHED_NAMESPACE {

// The slot that holds `name`, or the empty one where it belongs.
GPUSCHED_INLINE std::size_t NameTable::slot(std::string_view name) const noexcept {
    const auto mask = slots_.size() - 1;
    auto at = std::hash<std::string_view>{}(name)&mask;
    while (slots_[at] != empty && names_[slots_[at]] != name) at = (at + 1) & mask;
    return at;
}

GPUSCHED_INLINE std::pair<std::uint32_t, bool> NameTable::intern(std::string_view name) {
    if (slots_.size() < 2 * (names_.size() + 1)) {
        slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), empty);
        for (std::size_t i = 0; i < names_.size(); ++i)
            slots_[slot(names_[i])] = static_cast<std::uint32_t>(i);
    }
    auto& id = slots_[slot(name)];
    if (id != empty) return {id, false};
    id = static_cast<std::uint32_t>(names_.size());
    names_.emplace_back(name);
    return {id, true};
}

GPUSCHED_INLINE std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
    if (slots_.empty()) return std::nullopt;
    const auto id = slots_[slot(name)];
    return id != empty ? std::optional(id) : std::nullopt;
}

}  // namespace GPUSCHED_NAMESPACE

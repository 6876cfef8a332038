// SPDX-License-Identifier: Apache-2.0
// NameTable: interned names.
#include <gpusched/config.hpp>
#include <gpusched/core/name_table.hpp>

#include <functional>

namespace gpusched {

namespace detail {

static std::uint32_t hash_of(std::string_view name) noexcept {
    return static_cast<std::uint32_t>(std::hash<std::string_view>{}(name));
}

}  // namespace detail

GPUSCHED_EXPORT std::uint32_t NameTable::find(std::string_view name, std::uint32_t hash) const {
    return ids_.find(hash, [&](std::uint32_t id) { return names_[id] == name; });
}

GPUSCHED_EXPORT std::pair<std::uint32_t, bool> NameTable::intern(std::string_view name) {
    const auto hash = detail::hash_of(name);
    if (const auto id = find(name, hash); id != detail::HashIndex::nothing) return {id, false};
    const auto id = static_cast<std::uint32_t>(names_.size());
    ids_.insert(hash, id);
    names_.emplace_back(name);
    return {id, true};
}

GPUSCHED_EXPORT void NameTable::erase(std::size_t id) {
    ids_.erase(detail::hash_of(names_[id]), static_cast<std::uint32_t>(id));
    names_[id].clear();
}

GPUSCHED_EXPORT void NameTable::assign(std::size_t id, std::string_view name) {
    ids_.insert(detail::hash_of(name), static_cast<std::uint32_t>(id));
    names_[id] = name;
}

GPUSCHED_EXPORT std::optional<std::uint32_t> NameTable::find(std::string_view name) const {
    const auto id = find(name, detail::hash_of(name));
    return id != detail::HashIndex::nothing ? std::optional(id) : std::nullopt;
}

}  // namespace gpusched

// SPDX-License-Identifier: Apache-2.0
// NameTable: interned names, dense ids by name and names by id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// A hash table of ids with linear probing. The values are stored elsewhere; slots also hold their hashes, so
/// that few values are read. Allocates nothing while the number of ids does not grow.
class HashIndex {
  public:
    static constexpr std::uint32_t nothing = 0xFFFFFFFFu;

    /// The id with that hash for which `is(id)` is true, or `nothing`.
    template <class Is>
    [[nodiscard]] std::uint32_t find(std::uint32_t hash, Is&& is) const {
        if (slots_.empty()) return nothing;
        auto at = home(hash);
        while (slots_[at].id != nothing && (slots_[at].hash != hash || !is(slots_[at].id))) at = next(at);
        return slots_[at].id;
    }

    /// Adds an id that is not there.
    void insert(std::uint32_t hash, std::uint32_t id) {
        if (4 * slots_.size() < 5 * (used_ + 1)) grow();
        put({id, hash});
        ++used_;
    }

    /// Removes an id that is there.
    void erase(std::uint32_t hash, std::uint32_t id) {
        auto hole = home(hash);
        while (slots_[hole].id != id) hole = next(hole);
        slots_[hole] = {};
        --used_;
        // Moves later ids of the run up, so that a search does not stop before them.
        const auto mask = slots_.size() - 1;
        for (auto at = next(hole); slots_[at].id != nothing; at = next(at)) {
            if (((at - home(slots_[at].hash)) & mask) < ((at - hole) & mask)) continue;
            slots_[hole] = std::exchange(slots_[at], {});
            hole = at;
        }
    }

  private:
    struct Slot {
        std::uint32_t id = nothing, hash = 0;
    };
    [[nodiscard]] std::size_t home(std::uint32_t hash) const noexcept { return hash & (slots_.size() - 1); }
    [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }
    void put(Slot slot) {
        auto at = home(slot.hash);
        while (slots_[at].id != nothing) at = next(at);
        slots_[at] = slot;
    }
    void grow() {
        const auto old = std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 16 : 2 * slots_.size()));
        for (const auto& slot : old)
            if (slot.id != nothing) put(slot);
    }
    std::vector<Slot> slots_;  // their number is a power of two, and at most four fifths are used
    std::size_t used_ = 0;
};

}  // namespace gpusched::detail

namespace gpusched {

/// Names in id order with look-up by name. An id without a name has the empty text.
class NameTable {
  public:
    /// The id of `name`, which is added if it is new; `second` is true in that case.
    std::pair<std::uint32_t, bool> intern(std::string_view name);
    /// Removes the name of an id.
    void erase(std::size_t id);
    /// Gives a name to an id without one. No other id may have that name.
    void assign(std::size_t id, std::string_view name);
    [[nodiscard]] std::optional<std::uint32_t> find(std::string_view name) const;
    [[nodiscard]] const std::string& operator[](std::size_t i) const noexcept { return names_[i]; }
    [[nodiscard]] std::size_t size() const noexcept { return names_.size(); }

  private:
    [[nodiscard]] std::uint32_t find(std::string_view name, std::uint32_t hash) const;
    std::vector<std::string> names_;
    detail::HashIndex ids_;
};

}  // namespace gpusched

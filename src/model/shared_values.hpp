// SPDX-License-Identifier: Apache-2.0
// SharedValues: equal values share one index, which is used again when nobody refers to it any more.
#pragma once

#include "model/structural_hash.hpp"

#include <gpusched/core/detail/hash_index.hpp>
#include <gpusched/model/detail/free_slots.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace gpusched::detail {

/// Looks up and counts references to the values of a table that lives elsewhere. The table only grows; what nobody refers
/// to is emptied and its index given away again, first in, first out. O(size of the value) expected per call; values that come and go
/// at a steady number allocate nothing but what they hold themselves.
/// @tparam keeps_storage values that nobody refers to stay, and the next one is assigned to them: where nobody looks at such indices
template <class T, bool keeps_storage = false>
class SharedValues {
  public:
    static constexpr std::uint32_t nothing = HashIndex::nothing;

    explicit SharedValues(std::vector<T>& values) : values_(&values) {}
    SharedValues(const SharedValues&) = delete;
    SharedValues& operator=(const SharedValues&) = delete;

    /// Takes over a table that exists, with the references that its users hold.
    /// @param users one index per user; `nothing` for a user that refers to none
    void adopt(const std::vector<std::uint32_t>& users) {
        uses_.assign(values_->size(), {});
        for (const auto id : users)
            if (id != nothing) ++uses_[id].references;
        for (std::uint32_t id = 0; id < uses_.size(); ++id)
            if (uses_[id].references > 0)
                ids_.insert(uses_[id].hash = hash_of((*values_)[id]), id);
            else
                free_.give(id);
    }

    /// The index of `value`, one reference more; `second` tells whether it was new.
    template <class Value = T>
    std::pair<std::uint32_t, bool> acquire(Value&& value) {
        const auto hash = hash_of(value);
        if (const auto id = ids_.find(hash, [&](std::uint32_t at) { return same<T>((*values_)[at], value); });
            id != nothing) {
            ++uses_[id].references;
            return {id, false};
        }
        if (free_.empty()) {
            free_.give(values_->size());
            values_->emplace_back();
            uses_.emplace_back();
        }
        const auto id = static_cast<std::uint32_t>(free_.take());
        (*values_)[id] = std::forward<Value>(value);
        uses_[id] = {1, hash};
        ids_.insert(hash, id);
        return {id, true};
    }

    /// One reference more to a value that has some.
    std::uint32_t share(std::uint32_t id) {
        ++uses_[id].references;
        return id;
    }

    [[nodiscard]] bool is_shared(std::uint32_t id) const { return uses_[id].references > 1; }

    /// One reference less; true if that was the last, and the value is gone.
    bool release(std::uint32_t id) {
        if (--uses_[id].references > 0) return false;
        ids_.erase(uses_[id].hash, id);
        if constexpr (!keeps_storage) (*values_)[id] = T{};
        free_.give(id);
        return true;
    }

  private:
    struct Use {
        std::uint32_t references = 0, hash = 0;
    };
    [[nodiscard]] static std::uint32_t hash_of(const T& value) { return StructuralHash()(value).value(); }
    std::vector<T>* values_;
    HashIndex ids_;
    std::vector<Use> uses_;  // by index
    FreeSlots free_;
};

}  // namespace gpusched::detail

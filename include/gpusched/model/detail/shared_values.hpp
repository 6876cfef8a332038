// SharedValues: equal values share one index, which is used again when nobody refers to it any more.
#pragma once

#include <gpusched/model/detail/free_slots.hpp>
#include <gpusched/model/detail/structural_order.hpp>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace GPUSCHED_NAMESPACE::detail {

/// Looks up and counts references to the values of a table that lives elsewhere. The table only grows; what nobody refers
/// to is emptied and its index given away again, first in, first out. O(log values) comparisons per call; values that come and go
/// at a steady number allocate nothing but what they hold themselves.
/// @tparam keeps_storage values that nobody refers to stay, and the next one is assigned to them: where nobody looks at such indices
template <class T, bool keeps_storage = false>
class SharedValues {
  public:
    static constexpr std::uint32_t nothing = 0xFFFFFFFFu;

    explicit SharedValues(std::vector<T>& values) : values_(&values), ids_(Less{&values}) {}
    SharedValues(const SharedValues&) = delete;
    SharedValues& operator=(const SharedValues&) = delete;

    /// Takes over a table that exists, with the references that its users hold.
    /// @param users one index per user; `nothing` for a user that refers to none
    void adopt(const std::vector<std::uint32_t>& users) {
        references_.assign(values_->size(), 0);
        for (const auto id : users)
            if (id != nothing) ++references_[id];
        for (std::uint32_t id = 0; id < references_.size(); ++id)
            if (references_[id] > 0)
                ids_.insert(id);
            else
                free_.give(id);
    }

    /// The index of `value`, one reference more; `second` tells whether it was new.
    template <class Value = T>
    std::pair<std::uint32_t, bool> acquire(Value&& value) {
        if (const auto found = ids_.find(std::as_const(value)); found != ids_.end()) {
            ++references_[*found];
            return {*found, false};
        }
        std::uint32_t id = 0;
        if (free_.empty()) {
            id = static_cast<std::uint32_t>(values_->size());
            values_->push_back(std::forward<Value>(value));
            references_.push_back(1);
        } else {
            id = static_cast<std::uint32_t>(free_.take());
            (*values_)[id] = std::forward<Value>(value);
            references_[id] = 1;
        }
        if (spare_.empty()) {
            ids_.insert(id);
        } else {
            spare_.back().value() = id;
            ids_.insert(std::move(spare_.back()));
            spare_.pop_back();
        }
        return {id, true};
    }

    /// One reference more to a value that has some.
    std::uint32_t share(std::uint32_t id) {
        ++references_[id];
        return id;
    }

    [[nodiscard]] bool is_shared(std::uint32_t id) const { return references_[id] > 1; }

    /// One reference less; true if that was the last, and the value is gone.
    bool release(std::uint32_t id) {
        if (--references_[id] > 0) return false;
        spare_.push_back(ids_.extract(ids_.find(id)));
        if constexpr (!keeps_storage) (*values_)[id] = T{};
        free_.give(id);
        return true;
    }

  private:
    struct Less {
        using is_transparent = void;
        const std::vector<T>* values;
        bool operator()(std::uint32_t a, std::uint32_t b) const { return (*values)[a] < (*values)[b]; }
        bool operator()(std::uint32_t a, const T& b) const { return (*values)[a] < b; }
        bool operator()(const T& a, std::uint32_t b) const { return a < (*values)[b]; }
    };
    std::vector<T>* values_;
    using Ids = std::set<std::uint32_t, Less>;
    Ids ids_;
    std::vector<typename Ids::node_type> spare_;  // of values that have gone
    std::vector<std::uint32_t> references_;
    FreeSlots free_;
};

}  // namespace GPUSCHED_NAMESPACE::detail

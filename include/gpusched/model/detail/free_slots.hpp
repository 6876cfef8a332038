// SPDX-License-Identifier: Apache-2.0
// FreeSlots: the slots of a table that nobody has, first in, first out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpusched::detail {

/// A queue in one array; amortised O(1) per call.
class FreeSlots {
  public:
    [[nodiscard]] bool empty() const noexcept { return first_ == slots_.size(); }
    [[nodiscard]] std::size_t size() const noexcept { return slots_.size() - first_; }
    void give(std::size_t slot) { slots_.push_back(static_cast<std::uint32_t>(slot)); }
    /// Takes the slot that has been free longest; there must be one.
    std::size_t take() {
        const std::size_t slot = slots_[first_++];
        if (2 * first_ > slots_.size()) {
            slots_.erase(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        return slot;
    }

  private:
    std::vector<std::uint32_t> slots_;
    std::size_t first_ = 0;
};

}  // namespace gpusched::detail

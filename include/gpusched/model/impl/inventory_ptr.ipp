#pragma once

#include <gpusched/model/detail/inventory_ptr.hpp>
#include <gpusched/model/inventory.hpp>

#include <atomic>
#include <cstddef>
#include <utility>

namespace gpusched::detail {

struct InventoryPtr::Shared {
    Inventory inventory;
    std::atomic<std::size_t> holders{1};
};

GPUSCHED_INLINE InventoryPtr::InventoryPtr(Inventory&& inventory)
    : shared_(new Shared{std::move(inventory)}), inventory_(&shared_->inventory) {}

GPUSCHED_INLINE InventoryPtr::InventoryPtr(const InventoryPtr& other) noexcept
    : shared_(other.shared_), inventory_(other.inventory_) {
    if (shared_ != nullptr) shared_->holders.fetch_add(1, std::memory_order_relaxed);
}

GPUSCHED_INLINE InventoryPtr& InventoryPtr::operator=(InventoryPtr&& other) noexcept {
    std::swap(shared_, other.shared_);
    std::swap(inventory_, other.inventory_);
    return *this;
}

GPUSCHED_INLINE InventoryPtr::~InventoryPtr() {
    // Whoever leaves last must see what the others did with it.
    if (shared_ != nullptr && shared_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared_;
}

}  // namespace gpusched::detail

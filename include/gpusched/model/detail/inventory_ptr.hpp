// What all copies of a cluster share.
#pragma once

#include <gpusched/config.hpp>

namespace gpusched {

class Inventory;

namespace detail {

// An inventory that several threads' snapshots hold together; the last one frees it. std::shared_ptr would do, but <memory>
// alone costs two fifths of the time that including the model may take.
class InventoryPtr {
  public:
    InventoryPtr() noexcept = default;
    explicit InventoryPtr(Inventory&& inventory);
    InventoryPtr(const InventoryPtr& other) noexcept;
    InventoryPtr(InventoryPtr&& other) noexcept : shared_(other.shared_), inventory_(other.inventory_) {
        other.shared_ = nullptr;
        other.inventory_ = nullptr;
    }
    InventoryPtr& operator=(const InventoryPtr& other) noexcept { return *this = InventoryPtr(other); }
    InventoryPtr& operator=(InventoryPtr&& other) noexcept;
    ~InventoryPtr();

    const Inventory& operator*() const noexcept { return *inventory_; }
    const Inventory* operator->() const noexcept { return inventory_; }
    bool operator==(const InventoryPtr& other) const noexcept { return inventory_ == other.inventory_; }

  private:
    struct Shared;
    Shared* shared_ = nullptr;  // the inventory and the number of its holders
    const Inventory* inventory_ = nullptr;
};

}  // namespace detail
}  // namespace gpusched

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/model/impl/inventory_ptr.ipp>
#endif

#pragma once

#include <gpusched/model/detail/eligibility.hpp>
#include <gpusched/model/detail/inventory_builder.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace GPUSCHED_NAMESPACE {

GPUSCHED_INLINE std::optional<HardwareLevel> TaskAffinities::guaranteed_level() const {
    std::optional<HardwareLevel> strictest;
    for (const auto& wish : hardware_affinity)
        if (wish.qos == HardwareQos::guaranteed && (!strictest || wish.level == HardwareLevel::numa))
            strictest = wish.level;
    return strictest;
}

GPUSCHED_INLINE bool Inventory::tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
    return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
        if (!t.effect.empty() && t.effect != taint.effect) return false;
        if (t.op == "Exists") return t.key.empty() || t.key == taint.key;
        return t.key == taint.key && t.value == taint.value;
    });
}

GPUSCHED_INLINE bool Inventory::matches(const Requirement& requirement, const NodeClass& node_class) {
    return detail::accepts_model(requirement, node_class) && detail::finds_labels(requirement, node_class) &&
           detail::tolerates_taints(requirement, node_class);
}

GPUSCHED_INLINE void EligibilityTable::build(const Inventory& inventory) {
    stride_ = inventory.node_classes.size();
    bits_.clear();
    if (stride_ * inventory.requirements.size() > largest) return;
    bits_.resize(stride_ * inventory.requirements.size());
    for (std::size_t r = 0; r < inventory.requirements.size(); ++r)
        for (std::size_t c = 0; c < stride_; ++c)
            bits_[r * stride_ + c] = Inventory::matches(inventory.requirements[r], inventory.node_classes[c]);
}

GPUSCHED_INLINE void EligibilityTable::update_requirement(const Inventory& inventory,
                                                          std::uint32_t requirement) {
    if (inventory.requirements.size() * stride_ > largest) return bits_.clear();
    bits_.resize(std::max(bits_.size(), inventory.requirements.size() * stride_));
    for (std::size_t c = 0; c < inventory.node_classes.size(); ++c)
        bits_[requirement * stride_ + c] =
            Inventory::matches(inventory.requirements[requirement], inventory.node_classes[c]);
}

GPUSCHED_INLINE void EligibilityTable::update_class(const Inventory& inventory, std::uint32_t node_class) {
    if (node_class >= stride_) {
        const auto old = stride_;
        stride_ = std::max<std::size_t>(8, 2 * inventory.node_classes.size());
        const bool fits = inventory.requirements.size() * stride_ <= largest;
        std::vector<bool> wider(fits ? inventory.requirements.size() * stride_ : 0);
        for (std::size_t r = 0; fits && old > 0 && r < bits_.size() / old; ++r)
            std::copy_n(bits_.begin() + static_cast<std::ptrdiff_t>(r * old), old,
                        wider.begin() + static_cast<std::ptrdiff_t>(r * stride_));
        bits_ = std::move(wider);
    }
    if (inventory.requirements.size() * stride_ > largest) return bits_.clear();
    for (std::size_t r = 0; r < inventory.requirements.size(); ++r)
        bits_[r * stride_ + node_class] =
            Inventory::matches(inventory.requirements[r], inventory.node_classes[node_class]);
}

GPUSCHED_INLINE std::uint64_t Inventory::next_serial() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

GPUSCHED_INLINE std::shared_ptr<Inventory> Inventory::build(const ClusterSpec& spec, Problems& problems) {
    auto inventory = std::make_shared<Inventory>();
    detail::InventoryBuilder{spec, problems, *inventory}.build();
    inventory->serial = next_serial();
    return inventory;
}

}  // namespace GPUSCHED_NAMESPACE

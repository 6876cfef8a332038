#pragma once

#include <gpusched/model/detail/eligibility.hpp>
#include <gpusched/model/detail/inventory_builder.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <utility>

namespace gpusched {

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

GPUSCHED_INLINE std::shared_ptr<const Inventory> Inventory::build(const ClusterSpec& spec,
                                                                  Problems& problems) {
    Inventory inventory;
    detail::InventoryBuilder{spec, problems, inventory}.build();
    return std::make_shared<const Inventory>(std::move(inventory));
}

}  // namespace gpusched

// SPDX-License-Identifier: Apache-2.0
#include "model/eligibility.hpp"
#include "model/inventory_builder.hpp"
#include "model/node_match.hpp"

#include <gpusched/config.hpp>
#include <gpusched/model/inventory.hpp>

#include <algorithm>
#include <atomic>
#include <utility>

namespace gpusched {

GPUSCHED_EXPORT std::optional<HardwareLevel> TaskAffinities::guaranteed_level() const {
    std::optional<HardwareLevel> strictest;
    for (const auto& wish : hardware_affinity)
        if (wish.qos == HardwareQos::guaranteed && (!strictest || wish.level == HardwareLevel::numa))
            strictest = wish.level;
    return strictest;
}

GPUSCHED_EXPORT bool Inventory::tolerates(const std::vector<Toleration>& tolerations, const Taint& taint) {
    return std::any_of(tolerations.begin(), tolerations.end(), [&](const Toleration& t) {
        if (!t.effect.empty() && t.effect != taint.effect) return false;
        if (t.op == "Exists") return t.key.empty() || t.key == taint.key;
        return t.key == taint.key && t.value == taint.value;
    });
}

GPUSCHED_EXPORT bool Inventory::matches(const Requirement& requirement, const NodeClass& node_class) {
    return detail::accepts_model(requirement, node_class) && detail::finds_labels(requirement, node_class) &&
           detail::holds(requirement.node_affinity, node_class.labels, {}) &&
           detail::tolerates_taints(requirement, node_class);
}

GPUSCHED_EXPORT bool Inventory::in_node_set(std::uint32_t which, NodeId node) const {
    if (extras[which].node_set == Extras::no_node_set) return true;
    const auto& set = node_sets[extras[which].node_set];
    const auto at = std::lower_bound(set.named.begin(), set.named.end(), node,
                                     [](const NodeSet::Named& named, NodeId id) { return named.node < id; });
    if (at != set.named.end() && at->node == node) return at->allowed;
    return set.others != NodeSet::no_node && eligible(set.others, nodes.node_class[index(node)]);
}

GPUSCHED_EXPORT void EligibilityTable::resize(std::size_t requirements) {
    words_.resize(requirements * row_ <= most_words ? std::max(words_.size(), requirements * row_) : 0);
}

GPUSCHED_EXPORT void EligibilityTable::write(const Inventory& inventory, std::size_t requirement,
                                             std::size_t node_class) {
    auto& word = words_[requirement * row_ + node_class / 64];
    const auto bit = std::uint64_t{1} << (node_class % 64);
    const bool may =
        Inventory::matches(inventory.requirements[requirement], inventory.node_classes[node_class]);
    word = may ? word | bit : word & ~bit;
}

GPUSCHED_EXPORT void EligibilityTable::build(const Inventory& inventory) {
    row_ = (inventory.node_classes.size() + 63) / 64;
    words_.clear();
    resize(inventory.requirements.size());
    if (empty()) return;
    for (std::uint32_t r = 0; r < inventory.requirements.size(); ++r) update_requirement(inventory, r);
}

GPUSCHED_EXPORT void EligibilityTable::update_requirement(const Inventory& inventory,
                                                          std::uint32_t requirement) {
    resize(inventory.requirements.size());
    if (empty()) return;
    for (std::size_t c = 0; c < inventory.node_classes.size(); ++c) write(inventory, requirement, c);
}

GPUSCHED_EXPORT void EligibilityTable::update_class(const Inventory& inventory, std::uint32_t node_class) {
    const auto requirements = inventory.requirements.size();
    if (const auto old = row_; node_class / 64 >= old) {
        row_ = std::max<std::size_t>(1, 2 * old);
        const auto narrow = std::exchange(words_, {});
        resize(requirements);
        for (std::size_t r = 0; !empty() && old > 0 && r < narrow.size() / old; ++r)
            std::copy_n(narrow.begin() + static_cast<std::ptrdiff_t>(r * old), old,
                        words_.begin() + static_cast<std::ptrdiff_t>(r * row_));
    }
    resize(requirements);
    for (std::size_t r = 0; !empty() && r < requirements; ++r) write(inventory, r, node_class);
}

GPUSCHED_EXPORT std::uint64_t Inventory::next_serial() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
}

GPUSCHED_EXPORT std::shared_ptr<Inventory> Inventory::build(const ClusterSpec& spec, Problems& problems) {
    auto inventory = std::make_shared<Inventory>();
    detail::InventoryBuilder{spec, problems, *inventory}.build();
    inventory->serial = next_serial();
    return inventory;
}

}  // namespace gpusched

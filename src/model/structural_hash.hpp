// SPDX-License-Identifier: Apache-2.0
// What makes two parts of specs the same one, and a hash of it, for interning. Here rather than beside the types, which everybody
// includes.
#pragma once

#include <gpusched/model/inventory.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpusched::detail {

// The members that count. Of `NodeDevices`, `NodeSet` and `SpreadRule` the others are derived from them.
inline auto identity(const Taint& x) { return std::tie(x.key, x.value, x.effect); }
inline auto identity(const Toleration& x) { return std::tie(x.key, x.op, x.value, x.effect); }
inline auto identity(const NodeMatch& x) { return std::tie(x.key, x.op, x.values); }
inline auto identity(const NodeTerm& x) { return std::tie(x.match_expressions, x.match_fields); }
inline auto identity(const DeviceSpec& x) {
    return std::tie(x.device_class, x.count, x.parents, x.memory_mib);
}
inline auto identity(const AntiAffinity& x) { return std::tie(x.group, x.level, x.limit); }
inline auto identity(const Affinity& x) { return std::tie(x.group, x.level); }
inline auto identity(const NetworkAffinity& x) { return std::tie(x.level, x.mode); }
inline auto identity(const HardwareAffinity& x) { return std::tie(x.level, x.qos); }
inline auto identity(const Avoid& x) { return std::tie(x.group, x.level); }
inline auto identity(const Near& x) { return std::tie(x.group, x.level); }
inline auto identity(const Spread& x) {
    return std::tie(x.group, x.level, x.max_skew, x.min_domains, x.honor_node_affinity, x.honor_taints);
}
inline auto identity(const GroupTerms& x) { return std::tie(x.groups, x.avoid, x.near, x.spread); }
inline auto identity(const NearRule& x) { return std::tie(x.groups); }
inline auto identity(const SpreadRule& x) {
    return std::tie(x.level, x.max_skew, x.min_domains, x.label_levels, x.node_selector, x.node_affinity,
                    x.honors_taints, x.tolerations);
}
inline auto identity(const NodeAttributes& x) { return std::tie(x.labels, x.taints); }
inline auto identity(const NodeClass& x) { return std::tie(x.gpu_model, x.labels, x.taints); }
inline auto identity(const Requirement& x) {
    return std::tie(x.gpu_models, x.node_selector, x.tolerations, x.node_affinity);
}
inline auto identity(const NodeDevices& x) { return std::tie(x.first, x.written); }
inline auto identity(const NodeSet& x) { return std::tie(x.requirement, x.node_selector, x.node_affinity); }
inline auto identity(const Extras::Amount& x) { return std::tie(x.resource, x.amount); }
inline auto identity(const Extras& x) {
    return std::tie(x.resources, x.device_count, x.device_classes, x.node_set);
}
inline auto identity(const TaskAffinities& x) {
    return std::tie(x.anti_affinity, x.affinity, x.network_affinity, x.hardware_affinity, x.cpu_local,
                    x.cores, x.group_terms);
}
inline auto identity(const std::vector<std::uint32_t>& x) { return std::tie(x); }

/// Are they one and the same when values are interned?
template <class T>
[[nodiscard]] bool same(const T& a, const T& b) {
    return identity(a) == identity(b);
}

/// Takes in one value after another.
class StructuralHash {
  public:
    template <class T>
    StructuralHash& operator()(const T& value) {
        if constexpr (std::integral<T> || std::is_enum_v<T>)
            mix(static_cast<std::uint64_t>(value));
        else
            std::apply([this](const auto&... member) { ((*this)(member), ...); }, identity(value));
        return *this;
    }
    StructuralHash& operator()(const std::string& text) {
        mix(std::hash<std::string>{}(text));
        return *this;
    }
    template <class T>
    StructuralHash& operator()(const std::optional<T>& value) {
        mix(value.has_value());
        return value ? (*this)(*value) : *this;
    }
    template <class T>
    StructuralHash& operator()(const std::vector<T>& values) {
        mix(values.size());
        for (const auto& value : values) (*this)(value);
        return *this;
    }
    StructuralHash& operator()(const Labels& labels) {
        mix(labels.size());
        for (const auto& [key, value] : labels) (*this)(key)(value);
        return *this;
    }
    [[nodiscard]] std::uint32_t value() const noexcept { return static_cast<std::uint32_t>(state_ >> 32); }

  private:
    void mix(std::uint64_t word) noexcept {
        state_ = (state_ ^ word) * 0x9E3779B97F4A7C15u;
        state_ ^= state_ >> 29;
    }
    std::uint64_t state_ = 0x2545F4914F6CDD1Du;
};

}  // namespace gpusched::detail

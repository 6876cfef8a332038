// SPDX-License-Identifier: Apache-2.0
// SharedValues: equal values share one index, which is reused once nothing refers to it.
#pragma once

#include <gpusched/core/name_table.hpp>
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

// The members that make a value equal to another one, for values without a table of fields. Those of
// `NodeDevices`, `NodeSet` and `SpreadRule` that are left out are derived from the others.
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

/// Returns whether the values are equal when they are interned.
template <class T>
[[nodiscard]] bool same(const T& a, const T& b) {
    return identity(a) == identity(b);
}

/// A hash of a sequence of values.
class StructuralHash {
  public:
    template <class T>
    StructuralHash& operator()(const T& value) {
        if constexpr (std::integral<T> || std::is_enum_v<T>)
            mix(static_cast<std::uint64_t>(value));
        else if constexpr (Described<T>)
            visit_fields(std::type_identity<T>{},
                         [&](const char*, auto member, const auto&...) { (*this)(value.*member); });
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

/// Looks up values in a table and counts the references to them. The table belongs to the caller and never
/// shrinks. A value without references is emptied, and its index is reused, the oldest first. O(size of the
/// value) expected per call. While the number of values is steady, only the values themselves allocate
/// memory.
/// @tparam keeps_storage does not empty values without references, so that the next value reuses their
///     storage
template <class T, bool keeps_storage = false>
class SharedValues {
  public:
    static constexpr std::uint32_t nothing = HashIndex::nothing;

    explicit SharedValues(std::vector<T>& values) : values_(&values) {}
    SharedValues(const SharedValues&) = delete;
    SharedValues& operator=(const SharedValues&) = delete;

    /// Takes over a table with the references of its users.
    /// @param users one index per user; `nothing` for a user without a reference
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

    /// Adds a reference to `value` and returns its index; `second` is true if the value is new.
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

    /// Adds a reference to a value that has some.
    std::uint32_t share(std::uint32_t id) {
        ++uses_[id].references;
        return id;
    }

    [[nodiscard]] bool is_shared(std::uint32_t id) const { return uses_[id].references > 1; }

    /// Removes a reference; true if it was the last, and the value is removed.
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

// SPDX-License-Identifier: Apache-2.0
// Strong ids: dense 32-bit indices that cannot be mixed up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpusched {

/// Index of a node in its snapshot (0 .. node_count - 1, in the order of names).
enum class NodeId : std::uint32_t {};
/// Index of a task (pod) in its snapshot.
enum class TaskId : std::uint32_t {};
/// Index of a job (workload) in its snapshot.
enum class JobId : std::uint32_t {};
/// Index of a subgroup of a job in its snapshot.
enum class SubgroupId : std::uint32_t {};
/// Interned GPU model name.
enum class GpuModelId : std::uint32_t {};
/// A network domain (switch, rack, ...) or a node that is its own domain; dense within its level.
enum class DomainId : std::uint32_t {};

/// The slot of a node, task or job, and how often that slot was freed before. A handle of an object that has
/// left differs from the handle of the object that has the slot now.
template <class Id>
struct Handle {
    Id id = static_cast<Id>(0xFFFFFFFFu);
    std::uint32_t generation = 0;
    bool operator==(const Handle&) const = default;
};
using NodeHandle = Handle<NodeId>;
using TaskHandle = Handle<TaskId>;
using JobHandle = Handle<JobId>;

/// The invalid id of every id type.
template <class Id>
inline constexpr Id none = static_cast<Id>(0xFFFFFFFFu);

/// The plain array index behind an id.
template <class Id>
[[nodiscard]] constexpr std::size_t index(Id id) noexcept {
    return static_cast<std::size_t>(id);
}

/// The id behind a plain array index.
template <class Id>
[[nodiscard]] constexpr Id make_id(std::size_t i) noexcept {
    return static_cast<Id>(static_cast<std::uint32_t>(i));
}

/// The ids of the occupied slots of a table, ascending, usable in range-for.
template <class Id>
class LiveIds {
  public:
    class iterator {
      public:
        using value_type = Id;
        using difference_type = std::ptrdiff_t;
        constexpr iterator() = default;
        constexpr iterator(const std::uint8_t* dead, std::uint32_t i, std::uint32_t end)
            : dead_(dead), i_(i), end_(end) {
            skip();
        }
        constexpr Id operator*() const noexcept { return static_cast<Id>(i_); }
        constexpr iterator& operator++() noexcept {
            ++i_;
            skip();
            return *this;
        }
        constexpr iterator operator++(int) noexcept {
            auto old = *this;
            ++*this;
            return old;
        }
        constexpr bool operator==(const iterator& other) const noexcept { return i_ == other.i_; }

      private:
        constexpr void skip() noexcept {
            if (dead_ != nullptr)
                while (i_ < end_ && dead_[i_] != 0) ++i_;
        }
        const std::uint8_t* dead_ = nullptr;
        std::uint32_t i_ = 0, end_ = 0;
    };
    /// @param dead by slot, 1 = free; null = all slots are occupied
    constexpr LiveIds(const std::uint8_t* dead, std::size_t slots, std::size_t living)
        : dead_(dead), slots_(static_cast<std::uint32_t>(slots)), living_(living) {}
    [[nodiscard]] constexpr iterator begin() const noexcept { return {dead_, 0, slots_}; }
    [[nodiscard]] constexpr iterator end() const noexcept { return {nullptr, slots_, slots_}; }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return living_; }

  private:
    const std::uint8_t* dead_;
    std::uint32_t slots_;
    std::size_t living_;
};

}  // namespace gpusched

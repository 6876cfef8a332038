// SPDX-License-Identifier: Apache-2.0
// MIG layouts: which sets of GPU instances a part can hold, what fits beside them, and how to get from one to another.
#pragma once

#include <gpusched/control/mig_tables.hpp>
#include <gpusched/core/fields.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace gpusched::control {

/// A GPU instance: an index into the device's profiles, and its first memory slice.
struct MigInstance {
    std::uint8_t profile = 0;
    std::uint8_t start = 0;
    friend constexpr auto operator<=>(const MigInstance&, const MigInstance&) = default;
};
template <class F>
constexpr void visit_fields(std::type_identity<MigInstance>, F&& field) {
    field("profile", &MigInstance::profile);
    field("start", &MigInstance::start);
}

/// The instances of one GPU, in no particular order. At most eight fit on any part, so nothing is allocated.
class MigLayout {
  public:
    static constexpr std::size_t capacity = 8;

    constexpr MigLayout() = default;
    /// @throws InvalidInput when there are more than eight
    explicit MigLayout(std::span<const MigInstance> instances);

    [[nodiscard]] constexpr std::span<const MigInstance> instances() const noexcept {
        return {instances_.data(), count_};
    }
    [[nodiscard]] constexpr std::size_t size() const noexcept { return count_; }
    [[nodiscard]] constexpr bool contains(MigInstance instance) const noexcept {
        for (const auto& other : instances())
            if (other == instance) return true;
        return false;
    }
    /// Requires size() < capacity; whether the result is valid is for `is_valid` to say.
    constexpr void add(MigInstance instance) noexcept { instances_[count_++] = instance; }
    /// @return false if there is none like it
    constexpr bool remove(MigInstance instance) noexcept {
        for (std::size_t i = 0; i < count_; ++i)
            if (instances_[i] == instance) {
                instances_[i] = instances_[--count_];
                instances_[count_] = {};
                return true;
            }
        return false;
    }
    /// The same instances, whatever their order.
    friend bool operator==(const MigLayout& a, const MigLayout& b) noexcept;

  private:
    std::array<MigInstance, capacity> instances_{};
    std::size_t count_ = 0;
};

/// Whether the part can hold these instances at once: every start is one of the profile's, no memory slice is used
/// twice, no profile more often than its maximum, and at most one instance has media engines. Compute slices need no
/// check of their own: over all layouts of all tables at most seven are used.
[[nodiscard]] bool is_valid(const MigDevice& device, const MigLayout& layout) noexcept;

/// The memory slices in use, bit per slice.
[[nodiscard]] std::uint8_t occupied_slices(const MigDevice& device, const MigLayout& layout) noexcept;

/// The longest run of free memory slices.
[[nodiscard]] int largest_free_block(const MigDevice& device, const MigLayout& layout) noexcept;

/// Whether `instance` can be created beside those of a valid layout.
[[nodiscard]] bool can_create(const MigDevice& device, const MigLayout& layout,
                              MigInstance instance) noexcept;

/// Where an instance of this profile costs the least: the start that leaves the largest free block, then the one that
/// leaves most placements of all profiles, then the lowest. Nothing when it does not fit.
[[nodiscard]] std::optional<MigInstance> least_fragmenting(const MigDevice& device, const MigLayout& layout,
                                                           int profile) noexcept;

/// What `own` can be enlarged to while every other instance stays: placements without media engines and with more SMs,
/// sorted by (SM count, memory slices, whether it overlaps `own`, largest block left, start). `own` itself is released first, so placements
/// may overlap it; those that do not can exist before it goes. Empty when nothing fits, or `own` is not part of the layout.
///
/// @param largest_first falling SM counts and memory slices, each size in the same order as otherwise
/// @return how many were written to `out`; at most 16 are
std::size_t enlargements(const MigDevice& device, const MigLayout& layout, MigInstance own,
                         std::span<MigInstance, 16> out, bool largest_first = false) noexcept;

/// A step of a transition: an instance is destroyed, or created at an explicit start (the driver's own choice depends
/// on the order of creation).
struct MigStep {
    enum class Kind : std::uint8_t { create, destroy };
    Kind kind = Kind::create;
    MigInstance instance{};
    friend constexpr bool operator==(const MigStep&, const MigStep&) = default;
};

/// An ordered transition; a value without allocations.
struct MigTransition {
    std::array<MigStep, 2 * MigLayout::capacity> steps{};
    std::size_t count = 0;
    bool make_before_break = false;  ///< everything is created before anything is destroyed
    [[nodiscard]] std::span<const MigStep> span() const noexcept { return {steps.data(), count}; }
};

/// The steps from one valid layout to another. Instances in both are left alone; each new one is created as soon as it
/// fits, and something is destroyed only when none fits any more. Every layout on the way is valid.
/// @throws InvalidInput when either layout is invalid
[[nodiscard]] MigTransition transition(const MigDevice& device, const MigLayout& from, const MigLayout& to);

/// How layouts are counted.
struct LayoutCountOptions {
    std::vector<std::string_view> profiles{};  ///< keys of the profiles to use; all of the part's when empty
    bool maximal = false;    ///< only layouts to which no instance of these profiles can be added
    bool multisets = false;  ///< layouts that differ in starts only count once
};

/// The number of valid layouts, the empty one included.
/// @throws InvalidInput for a key the part has not
/// Complexity: proportional to the number of layouts (2319 for all profiles of a seven-slice part).
[[nodiscard]] std::size_t count_layouts(const MigDevice& device, const LayoutCountOptions& options = {});

/// All valid layouts of these profiles, each once, in the order of a depth-first search by (profile, start).
/// @throws InvalidInput for a key the part has not
[[nodiscard]] std::vector<MigLayout> all_layouts(const MigDevice& device,
                                                 std::span<const std::string_view> profiles = {});

}  // namespace gpusched::control

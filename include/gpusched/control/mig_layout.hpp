// SPDX-License-Identifier: Apache-2.0
// MIG layouts: valid sets of GPU instances on a part, free placements, and transitions between layouts.
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
    /// @throws InvalidInput if there are more than eight
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
    /// Requires size() < capacity. Does not check the result; see `is_valid`.
    constexpr void add(MigInstance instance) noexcept { instances_[count_++] = instance; }
    /// @return false if the layout has no such instance
    constexpr bool remove(MigInstance instance) noexcept {
        for (std::size_t i = 0; i < count_; ++i)
            if (instances_[i] == instance) {
                instances_[i] = instances_[--count_];
                instances_[count_] = {};
                return true;
            }
        return false;
    }
    /// Returns whether both have the same instances, in any order.
    friend bool operator==(const MigLayout& a, const MigLayout& b) noexcept;

  private:
    std::array<MigInstance, capacity> instances_{};
    std::size_t count_ = 0;
};

/// Returns whether the part can hold these instances at once. Every start must be one of the profile's, no
/// memory slice may be used twice, no profile may exceed its maximum, and at most one instance may have media
/// engines. Compute slices need no check: no layout of any table uses more than seven.
[[nodiscard]] bool is_valid(const MigDevice& device, const MigLayout& layout) noexcept;

/// Returns the memory slices in use, one bit per slice.
[[nodiscard]] std::uint8_t occupied_slices(const MigDevice& device, const MigLayout& layout) noexcept;

/// Returns the length of the longest run of free memory slices.
[[nodiscard]] int largest_free_block(const MigDevice& device, const MigLayout& layout) noexcept;

/// Returns whether `instance` can be created in addition to those of a valid layout.
[[nodiscard]] bool can_create(const MigDevice& device, const MigLayout& layout,
                              MigInstance instance) noexcept;

/// Returns the placement of a profile that fragments the GPU least: the start that leaves the largest free
/// block, then the one that leaves the most placements of all profiles, then the lowest. Empty if the profile
/// does not fit.
[[nodiscard]] std::optional<MigInstance> least_fragmenting(const MigDevice& device, const MigLayout& layout,
                                                           int profile) noexcept;

/// Lists the placements to which `own` can be enlarged while all other instances stay. They have more SMs and
/// no media engines. They are sorted by SM count, memory slices, overlap with `own`, largest free block left,
/// and start.
///
/// `own` is released first, so a placement may overlap it; one that does not overlap can exist before `own`
/// is released. Empty if nothing fits, or if `own` is not part of the layout.
///
/// @param largest_first sort by falling SM counts and memory slices; the order within a size stays the same
/// @return number of placements written to `out`, at most 16
std::size_t enlargements(const MigDevice& device, const MigLayout& layout, MigInstance own,
                         std::span<MigInstance, 16> out, bool largest_first = false) noexcept;

/// A step of a transition: destroys an instance, or creates one at an explicit start. The driver's own choice
/// of the start would depend on the order of creation.
struct MigStep {
    enum class Kind : std::uint8_t { create, destroy };
    Kind kind = Kind::create;
    MigInstance instance{};
    friend constexpr bool operator==(const MigStep&, const MigStep&) = default;
};

/// The ordered steps of a transition. A value type without allocations.
struct MigTransition {
    std::array<MigStep, 2 * MigLayout::capacity> steps{};
    std::size_t count = 0;
    bool make_before_break = false;  ///< all instances are created before any is destroyed
    [[nodiscard]] std::span<const MigStep> span() const noexcept { return {steps.data(), count}; }
};

/// Returns the steps from one valid layout to another. Instances in both layouts stay. Each new instance is
/// created as soon as it fits; an instance is destroyed only if no new one fits. Every intermediate layout is
/// valid.
/// @throws InvalidInput if either layout is invalid
[[nodiscard]] MigTransition transition(const MigDevice& device, const MigLayout& from, const MigLayout& to);

/// Options of `count_layouts`.
struct LayoutCountOptions {
    std::vector<std::string_view> profiles{};  ///< keys of the profiles to use; empty: all profiles
    bool maximal = false;    ///< only layouts to which no instance of these profiles can be added
    bool multisets = false;  ///< count layouts that differ only in starts once
};

/// Returns the number of valid layouts, including the empty one.
/// @throws InvalidInput for a key that the part does not have
/// Complexity: proportional to the number of layouts (2319 for all profiles of a seven-slice part).
[[nodiscard]] std::size_t count_layouts(const MigDevice& device, const LayoutCountOptions& options = {});

/// Returns each valid layout of these profiles once, in the order of a depth-first search by (profile,
/// start).
/// @throws InvalidInput for a key that the part does not have
[[nodiscard]] std::vector<MigLayout> all_layouts(const MigDevice& device,
                                                 std::span<const std::string_view> profiles = {});

}  // namespace gpusched::control

// SPDX-License-Identifier: Apache-2.0
// MIG parts with their profiles, and layouts: valid sets of GPU instances on a part, free placements, and
// transitions between layouts.
#pragma once

#include <gpusched/core/fields.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace gpusched::control {

/// A GPU instance profile of one part. Names are not unique across parts: `1g.10gb` has one memory slice on
/// the A100-80GB and two on the A100-40GB. Keys are the same on all parts.
struct MigProfile {
    std::string_view key{};   ///< `1g`, `1g+me`, `1g.2mem`, `2g`, `2g+me`, `3g`, `4g`, `7g`
    std::string_view name{};  ///< the vendor's name, for example `3g.20gb`
    int id = 0;               ///< profile id of `nvidia-smi mig -lgip`
    int nvml_index = 0;       ///< argument of nvmlDeviceGetGpuInstanceProfileInfo
    int compute_slices = 0;
    int memory_slices = 0;  ///< instances occupy [start, start + memory_slices) of the device's memory slices
    int memory_mib = 0;     ///< 0 if no published value is known
    int max_count = 0;      ///< maximum number of instances at a time
    int sm_count = 0;       ///< streaming multiprocessors; not proportional to slices on Hopper
    std::uint8_t starts = 0;  ///< bit s: may start at memory slice s
    bool media = false;       ///< with media engines (`+me`): at most one such instance per GPU

    /// Returns the memory slices of an instance that starts at `start`.
    [[nodiscard]] constexpr std::uint8_t slices(int start) const noexcept {
        return static_cast<std::uint8_t>(((1u << memory_slices) - 1u) << start);
    }
};

/// A part: its memory slices and profiles, sorted by SM count, then memory slices.
///
/// The tables serve simulation and hosts without access to the driver. Memory and SM counts differ between
/// boards and driver versions, so a running system should read them from the driver.
struct MigDevice {
    std::string_view name{};        ///< for example `A100-40GB`
    std::string_view provenance{};  ///< source of the numbers, or their derivation
    int memory_slices = 0;          ///< width of the axis: 8, or 4 for the A30
    std::span<const MigProfile> profiles{};

    [[nodiscard]] constexpr std::uint8_t all_slices() const noexcept {
        return static_cast<std::uint8_t>((1u << memory_slices) - 1u);
    }
    /// Returns the index of the profile with this key, or -1.
    [[nodiscard]] constexpr int find(std::string_view key) const noexcept {
        for (std::size_t i = 0; i < profiles.size(); ++i)
            if (profiles[i].key == key) return static_cast<int>(i);
        return -1;
    }
};

/// Returns all parts with a table.
/// Source: the vendor's MIG user guide and transcripts of `nvidia-smi mig -lgip` and `-lgipp`.
[[nodiscard]] std::span<const MigDevice> mig_devices() noexcept;

/// Returns the part with this name.
/// @throws InvalidInput if there is no table for it; the message lists the names
[[nodiscard]] const MigDevice& mig_device(std::string_view name);

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

/// Calls `visit(instance)` for each placement of a profile that can be created, by ascending start.
template <class Visit>
void for_each_free_placement(const MigDevice& device, const MigLayout& layout, std::size_t profile,
                             const Visit& visit) {
    for (int start = 0; start < device.memory_slices; ++start) {
        const MigInstance at{static_cast<std::uint8_t>(profile), static_cast<std::uint8_t>(start)};
        if (can_create(device, layout, at)) visit(at);
    }
}

/// Returns the placement of a profile that fragments the GPU least: the start that leaves the largest free
/// block, then the one that leaves the most placements of all profiles, then the lowest. Empty if the profile
/// does not fit.
[[nodiscard]] std::optional<MigInstance> least_fragmenting(const MigDevice& device, const MigLayout& layout,
                                                           int profile) noexcept;

/// Lists the placements to which `own` can be enlarged while all other instances stay. They have more SMs, or
/// as many SMs and more memory slices, and no media engines. They are sorted by SM count, memory slices,
/// overlap with `own`, largest free block left, and start.
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

// SPDX-License-Identifier: Apache-2.0
// MIG devices: the GPU instance profiles of each part and their allowed start slices.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

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
    /// Returns the index of the profile with this vendor id, or -1.
    [[nodiscard]] constexpr int find_id(int id) const noexcept {
        for (std::size_t i = 0; i < profiles.size(); ++i)
            if (profiles[i].id == id) return static_cast<int>(i);
        return -1;
    }
};

/// Returns all parts with a table.
/// Source: the vendor's MIG user guide and transcripts of `nvidia-smi mig -lgip` and `-lgipp`.
[[nodiscard]] std::span<const MigDevice> mig_devices() noexcept;

/// Returns the part with this name.
/// @throws InvalidInput if there is no table for it; the message lists the names
[[nodiscard]] const MigDevice& mig_device(std::string_view name);

}  // namespace gpusched::control

// SPDX-License-Identifier: Apache-2.0
// Tables of the MIG profiles of each part.
#include <gpusched/config.hpp>
#include <gpusched/control/mig_layout.hpp>
#include <gpusched/core/checks.hpp>

#include <string_view>
#include <vector>

namespace gpusched::control {

namespace mig_table {

constexpr std::uint8_t everywhere7 = 0b0111'1111;

/// The numbers in which seven-slice parts differ. They share ids, placements and counts.
struct Figures {
    std::array<std::string_view, 7> names{};  // 1g, 1g+me, 1g.2mem, 2g, 3g, 4g, 7g
    std::array<int, 7> mib{};
    std::array<int, 7> sm{};
};

constexpr std::array<MigProfile, 7> seven_slices(const Figures& f) {
    return {MigProfile{"1g", f.names[0], 19, 0, 1, 1, f.mib[0], 7, f.sm[0], everywhere7, false},
            MigProfile{"1g+me", f.names[1], 20, 7, 1, 1, f.mib[1], 1, f.sm[1], everywhere7, true},
            MigProfile{"1g.2mem", f.names[2], 15, 9, 1, 2, f.mib[2], 4, f.sm[2], 0b0101'0101, false},
            MigProfile{"2g", f.names[3], 14, 1, 2, 2, f.mib[3], 3, f.sm[3], 0b0001'0101, false},
            MigProfile{"3g", f.names[4], 9, 2, 3, 4, f.mib[4], 2, f.sm[4], 0b0001'0001, false},
            MigProfile{"4g", f.names[5], 5, 3, 4, 4, f.mib[5], 1, f.sm[5], 0b0000'0001, false},
            MigProfile{"7g", f.names[6], 0, 4, 7, 8, f.mib[6], 1, f.sm[6], 0b0000'0001, false}};
}

constexpr std::array<int, 7> ampere{14, 14, 14, 28, 42, 56, 98};
constexpr std::array<int, 7> hopper{16, 16, 26, 32, 60, 64, 132};

constexpr auto a100_40 =
    seven_slices({{"1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"},
                  {4864, 4864, 9856, 9856, 19968, 19968, 40192},
                  ampere});
constexpr auto a100_80 =
    seven_slices({{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
                  {9856, 9856, 19968, 19968, 40192, 40192, 80384},
                  ampere});
constexpr auto h100_80 =
    seven_slices({{"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"},
                  {9984, 9984, 20096, 20096, 40448, 40448, 81152},
                  hopper});
constexpr auto h100_94 =
    seven_slices({{"1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.47gb", "4g.47gb", "7g.94gb"},
                  {11008, 11008, 22144, 22144, 47488, 47488, 95360},
                  hopper});
constexpr auto h200 =
    seven_slices({{"1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"},
                  {16384, 16384, 33024, 33280, 71168, 71168, 143104},
                  hopper});
constexpr auto b200 =
    seven_slices({{"1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"},
                  {20992, 20992, 45312, 45312, 0, 0, 0},
                  {18, 18, 30, 36, 70, 72, 148}});

constexpr std::array<MigProfile, 5> a30{
    MigProfile{"1g", "1g.6gb", 14, 0, 1, 1, 5952, 4, 14, 0b1111, false},
    MigProfile{"1g+me", "1g.6gb+me", 21, 7, 1, 1, 5952, 1, 14, 0b1111, true},
    MigProfile{"2g", "2g.12gb", 5, 1, 2, 2, 11968, 2, 28, 0b0101, false},
    MigProfile{"2g+me", "2g.12gb+me", 6, 8, 2, 2, 11968, 1, 28, 0b0101, true},
    MigProfile{"4g", "4g.24gb", 0, 3, 4, 4, 24000, 1, 56, 0b0001, false}};

constexpr std::array<MigDevice, 7> devices{
    MigDevice{"A100-40GB", "the vendor's MIG guide", 8, a100_40},
    MigDevice{"A100-80GB", "the vendor's MIG guide", 8, a100_80},
    MigDevice{"A30-24GB", "output of nvidia-smi mig -lgip and -lgipp", 4, a30},
    MigDevice{"H100-80GB", "output of nvidia-smi mig -lgip and -lgipp", 8, h100_80},
    MigDevice{"H100-94GB", "output of nvidia-smi mig -lgip; SM counts as on the H100-80GB", 8, h100_94},
    MigDevice{"H200-141GB", "output of nvidia-smi mig -lgip", 8, h200},
    MigDevice{
        "B200-180GB",
        "output of nvidia-smi mig -lgip; placements, the SM counts of 3g, 4g and 7g and the order of sizes "
        "derived, memory of the three largest unknown",
        8, b200}};

}  // namespace mig_table

GPUSCHED_EXPORT std::span<const MigDevice> mig_devices() noexcept { return mig_table::devices; }

GPUSCHED_EXPORT const MigDevice& mig_device(std::string_view name) {
    for (const auto& device : mig_table::devices)
        if (device.name == name) return device;
    std::vector<std::string_view> names;
    for (const auto& device : mig_table::devices) names.emplace_back(device.name);
    throw InvalidInput(bad_name("mig", name, names));
}

}  // namespace gpusched::control

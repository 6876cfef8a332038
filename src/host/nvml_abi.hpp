// SPDX-License-Identifier: Apache-2.0
// The part of NVML's binary interface that is used: facts of its public documentation, declared anew, so that neither
// CUDA nor a driver is needed to build.
#pragma once

namespace gpusched::host::nvml_abi {

using Return = int;
using Device = struct DeviceOpaque*;
using GpuInstance = struct GpuInstanceOpaque*;
using ComputeInstance = struct ComputeInstanceOpaque*;
using GpmSample = struct GpmSampleOpaque*;

struct Placement {
    unsigned start, size;
};
struct GpuInstanceProfileInfo {
    unsigned id, is_p2p_supported, slice_count, instance_count, multiprocessor_count, copy_engine_count,
        decoder_count, encoder_count, jpeg_count, ofa_count;
    unsigned long long memory_mib;
};
struct GpuInstanceInfo {
    Device device;
    unsigned id, profile_id;
    Placement placement;
};
struct ComputeInstanceProfileInfo {
    unsigned id, slice_count, instance_count, multiprocessor_count, shared_copy_engine_count,
        shared_decoder_count, shared_encoder_count, shared_jpeg_count, shared_ofa_count;
};
union Value {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
};
struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type;  // of the value: 0 double, 1 unsigned, 2 unsigned long, 3 unsigned long long, 4 long long, 5 int
    Return result;
    Value value;
};
// What is not free may be the driver's own; `used` counts that in the older structure, not in the newer one.
struct Memory {
    unsigned long long total, free, used;
};
struct MemoryV2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
struct GpmSupport {
    unsigned version, is_supported;
};
struct GpmMetric {
    unsigned id;
    Return result;
    double value;
    struct {
        char *short_name, *long_name, *unit;
    } info;
};
struct GpmMetricsGet {
    unsigned version, count;
    GpmSample first, second;
    // The library looks at `count` of them; how many there may be differs between versions.
    GpmMetric metrics[8];
};

inline constexpr unsigned gpm_version = 1;
inline constexpr unsigned memory_v2_version = static_cast<unsigned>(sizeof(MemoryV2)) | 2u << 24;
inline constexpr unsigned pcie_tx_bytes_field = 197, pcie_rx_bytes_field = 198;
inline constexpr unsigned gpm_sm_util = 2, gpm_dram_util = 10;
inline constexpr unsigned gpu_instance_profiles = 18;

}  // namespace gpusched::host::nvml_abi

// A libnvidia-ml for tests: the functions that are looked up, with the behaviour that their documentation describes.
// With FAKE_NVML_OLD only those of a driver that knows neither MIG nor GPM.
#include <support/fake_nvml.hpp>

#include "host/nvml_abi.hpp"

#include <cstdlib>
#include <cstring>

namespace abi = gpusched::host::nvml_abi;
using gpusched::test::FakeNvml;

namespace {

FakeNvml state{};

template <class F>
abi::Return call(const F& effect) {
    const int k = state.calls++;
    const bool fails = state.fault_at >= 0 && (k == state.fault_at || (state.for_good && k > state.fault_at));
    if (fails && (!state.after_effect || k > state.fault_at)) return state.fault_code;
    const auto result = effect();
    return fails ? state.fault_code : result;
}
FakeNvml::Gpu* gpu_of(abi::Device device) { return reinterpret_cast<FakeNvml::Gpu*>(device); }
FakeNvml::Gi* gi_of(abi::GpuInstance instance) { return reinterpret_cast<FakeNvml::Gi*>(instance); }
const FakeNvml::Profile* by_id(unsigned id) {
    for (unsigned k = 0; k < state.profile_count; ++k)
        if (state.profiles[k].id == id) return &state.profiles[k];
    return nullptr;
}
void touch(const FakeNvml::Gi& gi) { state.forbidden |= !gi.mine; }
// Profiles of compute instances, by index: their slices.
constexpr unsigned ci_slices[] = {1, 2, 3, 4, 7, 8, 6, 1};

}  // namespace

extern "C" {

FakeNvml* fake_nvml_state() { return &state; }

abi::Return nvmlInit_v2() {
    if (state.init_code != 0) return state.init_code;
    ++state.initialised;
    return 0;
}
abi::Return nvmlShutdown() {
    --state.initialised;
    return 0;
}
abi::Return nvmlDeviceGetHandleByIndex_v2(unsigned index, abi::Device* device) {
    return call([&] {
        if (index >= state.gpu_count) return 2;
        *device = reinterpret_cast<abi::Device>(&state.gpus[index]);
        return 0;
    });
}
abi::Return nvmlDeviceSetMigMode(abi::Device, unsigned, abi::Return*) {
    state.forbidden = true;
    return 0;
}

#ifndef FAKE_NVML_OLD
abi::Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, abi::Device* device) {
    return call([&] {
        const int index = std::strcmp(id, "0000:3b:00.0") == 0   ? 0
                          : std::strcmp(id, "0000:af:00.0") == 0 ? 1
                                                                 : -1;
        if (index < 0) return 6;
        *device = reinterpret_cast<abi::Device>(&state.gpus[index]);
        return 0;
    });
}
abi::Return nvmlDeviceGetMigMode(abi::Device device, unsigned* now, unsigned* pending) {
    return call([&] {
        *now = *pending = gpu_of(device)->mig;
        return 0;
    });
}
abi::Return nvmlDeviceGetGpuInstanceProfileInfo(abi::Device, unsigned index,
                                                abi::GpuInstanceProfileInfo* info) {
    return call([&] {
        for (unsigned k = 0; k < state.profile_count; ++k) {
            const auto& p = state.profiles[k];
            if (p.index != index) continue;
            *info = {p.id, 0, p.slices, p.max_count, p.sm_count, 1, 0, 0, 0, 0, p.memory_mib};
            return 0;
        }
        return index < 10 ? 3 : 2;  // a number that this driver has not heard of
    });
}
abi::Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(abi::Device, unsigned id, abi::Placement* out,
                                                          unsigned* count) {
    return call([&] {
        const auto* const p = by_id(id);
        if (p == nullptr) return 2;
        *count = 0;
        for (unsigned s = 0; s < 8; ++s)
            if (p->starts >> s & 1) {
                if (out != nullptr) out[*count] = {s, p->memory_slices};
                ++*count;
            }
        return 0;
    });
}
abi::Return nvmlDeviceGetGpuInstances(abi::Device device, unsigned id, abi::GpuInstance* out,
                                      unsigned* count) {
    return call([&] {
        if (!gpu_of(device)->mig) return 3;
        *count = 0;
        for (auto& gi : gpu_of(device)->instances)
            if (gi.used && gi.profile == id) out[(*count)++] = reinterpret_cast<abi::GpuInstance>(&gi);
        return 0;
    });
}
abi::Return nvmlGpuInstanceGetInfo(abi::GpuInstance instance, abi::GpuInstanceInfo* info) {
    return call([&] {
        const auto& gi = *gi_of(instance);
        *info = {reinterpret_cast<abi::Device>(&state.gpus[gi.gpu]), gi.id, gi.profile, {gi.start, gi.size}};
        return 0;
    });
}
abi::Return nvmlDeviceGetGpuInstanceById(abi::Device device, unsigned id, abi::GpuInstance* out) {
    return call([&] {
        for (auto& gi : gpu_of(device)->instances)
            if (gi.used && gi.id == id) {
                *out = reinterpret_cast<abi::GpuInstance>(&gi);
                return 0;
            }
        return 6;
    });
}
abi::Return nvmlDeviceCreateGpuInstanceWithPlacement(abi::Device device, unsigned id,
                                                     const abi::Placement* at, abi::GpuInstance* out) {
    // INSUFFICIENT_RESOURCES says that nothing was made.
    if (state.calls == state.fault_at && state.fault_code == 23) state.after_effect = false;
    return call([&] {
        const auto* const p = by_id(id);
        if (p == nullptr || at->start > 7 || at->size != p->memory_slices || !(p->starts >> at->start & 1))
            return 2;
        FakeNvml::Gi* free = nullptr;
        if (state.intrude) {
            auto& other = gpu_of(device)->instances[7];
            other = {static_cast<unsigned>(gpu_of(device) - state.gpus),
                     state.next_id++,
                     id,
                     at->start,
                     at->size,
                     true,
                     false,
                     false,
                     2};
            state.intrude = false;
        }
        for (auto& gi : gpu_of(device)->instances) {
            if (!gi.used) free = &gi;
            if (gi.used && at->start < gi.start + gi.size && gi.start < at->start + at->size) return 23;
        }
        if (free == nullptr) return 23;
        *free = {static_cast<unsigned>(gpu_of(device) - state.gpus),
                 state.next_id++,
                 id,
                 at->start,
                 at->size,
                 true,
                 true,
                 false,
                 0};
        *out = reinterpret_cast<abi::GpuInstance>(free);
        return 0;
    });
}
abi::Return nvmlGpuInstanceDestroy(abi::GpuInstance instance) {
    return call([&] {
        auto& gi = *gi_of(instance);
        touch(gi);
        if (gi.compute != 0) return 19;
        gi.used = false;
        return 0;
    });
}
abi::Return nvmlGpuInstanceGetComputeInstanceProfileInfo(abi::GpuInstance instance, unsigned profile,
                                                         unsigned, abi::ComputeInstanceProfileInfo* info) {
    return call([&] {
        const auto* const p = by_id(gi_of(instance)->profile);
        if (profile >= 8) return 2;  // a number that this driver has not heard of
        if (p == nullptr || ci_slices[profile] > p->slices || profile == 7) return 3;
        *info = {profile, ci_slices[profile], p->slices / ci_slices[profile], 0, 0, 0, 0, 0, 0};
        return 0;
    });
}
abi::Return nvmlGpuInstanceGetComputeInstances(abi::GpuInstance instance, unsigned profile,
                                               abi::ComputeInstance* out, unsigned* count) {
    return call([&] {
        auto& gi = *gi_of(instance);
        *count = gi.compute == profile + 1;
        if (*count == 1) *out = reinterpret_cast<abi::ComputeInstance>(&gi);
        return 0;
    });
}
abi::Return nvmlGpuInstanceCreateComputeInstance(abi::GpuInstance instance, unsigned profile,
                                                 abi::ComputeInstance* out) {
    return call([&] {
        auto& gi = *gi_of(instance);
        touch(gi);
        if (gi.compute != 0) return 23;
        gi.compute = profile + 1;
        *out = reinterpret_cast<abi::ComputeInstance>(&gi);
        return 0;
    });
}
abi::Return nvmlComputeInstanceDestroy(abi::ComputeInstance instance) {
    return call([&] {
        auto& gi = *reinterpret_cast<FakeNvml::Gi*>(instance);
        touch(gi);
        if (gi.client) return 19;
        gi.compute = 0;
        return 0;
    });
}
abi::Return nvmlDeviceGetFieldValues(abi::Device device, int count, abi::FieldValue* values) {
    return call([&] {
        for (int k = 0; k < count; ++k) {
            const bool known = state.has_counters && (values[k].field == 197 || values[k].field == 198);
            values[k].result = known ? 0 : 3;
            values[k].type = 3;
            values[k].value.ull = values[k].field == 197 ? gpu_of(device)->tx : gpu_of(device)->rx;
        }
        return 0;
    });
}
abi::Return nvmlDeviceGetPcieThroughput(abi::Device device, unsigned counter, unsigned* kb) {
    return call([&] {
        *kb = counter == 0 ? gpu_of(device)->tx_kb : gpu_of(device)->rx_kb;
        return 0;
    });
}
abi::Return nvmlDeviceGetPcieReplayCounter(abi::Device device, unsigned* value) {
    return call([&] {
        *value = gpu_of(device)->replays;
        return 0;
    });
}
abi::Return nvmlDeviceGetMaxMigDeviceCount(abi::Device device, unsigned* count) {
    return call([&] {
        *count = gpu_of(device)->mig ? 7 : 0;
        return 0;
    });
}
// The indices of MIG devices have gaps: here one per place in the list of instances, from the last one.
abi::Return nvmlDeviceGetMigDeviceHandleByIndex(abi::Device device, unsigned index, abi::Device* out) {
    return call([&] {
        auto& gi = gpu_of(device)->instances[6 - index];
        if (!gi.used || gi.compute == 0) return 6;
        *out = reinterpret_cast<abi::Device>(&gi);
        return 0;
    });
}
abi::Return nvmlDeviceGetGpuInstanceId(abi::Device device, unsigned* id) {
    return call([&] {
        *id = reinterpret_cast<FakeNvml::Gi*>(device)->id;
        return 0;
    });
}
abi::Return nvmlDeviceGetMemoryInfo(abi::Device device, abi::Memory* memory) {
    return call([&] {
        if (state.no_memory) return 3;
        const auto& gi = *reinterpret_cast<FakeNvml::Gi*>(device);
        const auto total = by_id(gi.profile)->memory_mib;
        const auto free = static_cast<unsigned long long>(total) - gi.used_mib;
        *memory = {1048576ull * total, 1048576ull * free, 1048576ull * gi.used_mib};
        return 0;
    });
}
abi::Return nvmlDeviceGetMemoryInfo_v2(abi::Device device, abi::MemoryV2* memory) {
    abi::Memory old{};
    if (memory->version != (sizeof(abi::MemoryV2) | 2u << 24) || state.old_memory)
        return call([] { return 25; });
    if (const auto code = nvmlDeviceGetMemoryInfo(device, &old); code != 0) return code;
    // `used` leaves out what the driver has reserved.
    *memory = {memory->version, old.total, old.used / 4, old.free, old.used - old.used / 4};
    return 0;
}
abi::Return nvmlGpmQueryDeviceSupport(abi::Device, abi::GpmSupport* support) {
    return call([&] {
        if (support->version != 1) return 25;
        support->is_supported = state.has_gpm;
        return 0;
    });
}
abi::Return nvmlGpmSampleAlloc(abi::GpmSample* sample) {
    return call([&] {
        *sample = static_cast<abi::GpmSample>(std::malloc(sizeof(double[2])));
        ++state.samples;
        return 0;
    });
}
abi::Return nvmlGpmSampleFree(abi::GpmSample sample) {
    std::free(static_cast<void*>(sample));
    --state.samples;
    return 0;
}
abi::Return nvmlGpmMigSampleGet(abi::Device device, unsigned, abi::GpmSample sample) {
    return call([&] {
        const double now[2] = {gpu_of(device)->sm, gpu_of(device)->dram};
        std::memcpy(static_cast<void*>(sample), now, sizeof now);
        return 0;
    });
}
abi::Return nvmlGpmMetricsGet(abi::GpmMetricsGet* get) {
    return call([&] {
        if (get->version != 1 || get->first == nullptr || get->second == nullptr) return 2;
        double now[2];
        std::memcpy(now, static_cast<void*>(get->second), sizeof now);
        for (unsigned k = 0; k < get->count; ++k) {
            get->metrics[k].result = get->metrics[k].id == 2 || get->metrics[k].id == 10 ? 0 : 3;
            get->metrics[k].value = now[get->metrics[k].id == 10];
        }
        return 0;
    });
}
#endif
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/nvml_abi.hpp"

#include <gpusched/host/nvml.hpp>

#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlfcn.h>

namespace gpusched::host {

namespace abi = nvml_abi;

struct Nvml::Impl {
    void* library = nullptr;
    bool initialised = false;
    std::vector<abi::Device> devices{};
    std::map<std::pair<int, int>, abi::GpmSample> samples{};  // the last ones, by GPU and instance

    abi::Return (*init)() = nullptr;
    abi::Return (*shutdown)() = nullptr;
    abi::Return (*by_index)(unsigned, abi::Device*) = nullptr;
    abi::Return (*by_pci)(const char*, abi::Device*) = nullptr;
    abi::Return (*mig_mode)(abi::Device, unsigned*, unsigned*) = nullptr;
    abi::Return (*profile_info)(abi::Device, unsigned, abi::GpuInstanceProfileInfo*) = nullptr;
    abi::Return (*placements)(abi::Device, unsigned, abi::Placement*, unsigned*) = nullptr;
    abi::Return (*gpu_instances)(abi::Device, unsigned, abi::GpuInstance*, unsigned*) = nullptr;
    abi::Return (*gpu_instance_info)(abi::GpuInstance, abi::GpuInstanceInfo*) = nullptr;
    abi::Return (*gpu_instance_by_id)(abi::Device, unsigned, abi::GpuInstance*) = nullptr;
    abi::Return (*create_gi)(abi::Device, unsigned, const abi::Placement*, abi::GpuInstance*) = nullptr;
    abi::Return (*destroy_gi)(abi::GpuInstance) = nullptr;
    abi::Return (*ci_profile)(abi::GpuInstance, unsigned, unsigned,
                              abi::ComputeInstanceProfileInfo*) = nullptr;
    abi::Return (*compute_instances)(abi::GpuInstance, unsigned, abi::ComputeInstance*, unsigned*) = nullptr;
    abi::Return (*create_ci)(abi::GpuInstance, unsigned, abi::ComputeInstance*) = nullptr;
    abi::Return (*destroy_ci)(abi::ComputeInstance) = nullptr;
    abi::Return (*field_values)(abi::Device, int, abi::FieldValue*) = nullptr;
    abi::Return (*throughput)(abi::Device, unsigned, unsigned*) = nullptr;
    abi::Return (*replays)(abi::Device, unsigned*) = nullptr;
    abi::Return (*mig_device_count)(abi::Device, unsigned*) = nullptr;
    abi::Return (*mig_device)(abi::Device, unsigned, abi::Device*) = nullptr;
    abi::Return (*gpu_instance_of)(abi::Device, unsigned*) = nullptr;
    abi::Return (*memory)(abi::Device, abi::Memory*) = nullptr;
    abi::Return (*memory_v2)(abi::Device, abi::MemoryV2*) = nullptr;
    abi::Return (*gpm_support)(abi::Device, abi::GpmSupport*) = nullptr;
    abi::Return (*gpm_alloc)(abi::GpmSample*) = nullptr;
    abi::Return (*gpm_free)(abi::GpmSample) = nullptr;
    abi::Return (*gpm_get)(abi::Device, unsigned, abi::GpmSample) = nullptr;
    abi::Return (*gpm_metrics)(abi::GpmMetricsGet*) = nullptr;

    template <class F>
    void look_up(F& function, const char* name) {
        function = reinterpret_cast<F>(::dlsym(library, name));
    }
    void look_up_all() {
        look_up(init, "nvmlInit_v2");
        look_up(shutdown, "nvmlShutdown");
        look_up(by_index, "nvmlDeviceGetHandleByIndex_v2");
        look_up(by_pci, "nvmlDeviceGetHandleByPciBusId_v2");
        look_up(mig_mode, "nvmlDeviceGetMigMode");
        look_up(profile_info, "nvmlDeviceGetGpuInstanceProfileInfo");
        look_up(placements, "nvmlDeviceGetGpuInstancePossiblePlacements_v2");
        look_up(gpu_instances, "nvmlDeviceGetGpuInstances");
        look_up(gpu_instance_info, "nvmlGpuInstanceGetInfo");
        look_up(gpu_instance_by_id, "nvmlDeviceGetGpuInstanceById");
        look_up(create_gi, "nvmlDeviceCreateGpuInstanceWithPlacement");
        look_up(destroy_gi, "nvmlGpuInstanceDestroy");
        look_up(ci_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo");
        look_up(compute_instances, "nvmlGpuInstanceGetComputeInstances");
        look_up(create_ci, "nvmlGpuInstanceCreateComputeInstance");
        look_up(destroy_ci, "nvmlComputeInstanceDestroy");
        look_up(field_values, "nvmlDeviceGetFieldValues");
        look_up(throughput, "nvmlDeviceGetPcieThroughput");
        look_up(replays, "nvmlDeviceGetPcieReplayCounter");
        look_up(mig_device_count, "nvmlDeviceGetMaxMigDeviceCount");
        look_up(mig_device, "nvmlDeviceGetMigDeviceHandleByIndex");
        look_up(gpu_instance_of, "nvmlDeviceGetGpuInstanceId");
        look_up(memory, "nvmlDeviceGetMemoryInfo");
        look_up(memory_v2, "nvmlDeviceGetMemoryInfo_v2");
        look_up(gpm_support, "nvmlGpmQueryDeviceSupport");
        look_up(gpm_alloc, "nvmlGpmSampleAlloc");
        look_up(gpm_free, "nvmlGpmSampleFree");
        look_up(gpm_get, "nvmlGpmMigSampleGet");
        look_up(gpm_metrics, "nvmlGpmMetricsGet");
    }
    ~Impl() {
        if (gpm_free != nullptr)
            for (const auto& [key, sample] : samples) gpm_free(sample);
        if (initialised && shutdown != nullptr) shutdown();
        if (library != nullptr) ::dlclose(library);
    }
    /// A function that the driver does not have is a thing it does not support.
    template <class F, class First, class... Args>
    static BackendStatus call(F function, First first, Args... arguments) {
        if (function == nullptr) return BackendStatus::not_supported;
        if constexpr (std::is_same_v<First, abi::Device>)
            if (first == nullptr) return BackendStatus::not_found;  // no GPU of that number was found
        return nvml_status(function(first, arguments...));
    }
    /// A call that asks for a profile by its number in the header: drivers older than that number call it invalid.
    template <class F, class First, class... Args>
    static BackendStatus ask_profile(F function, First first, Args... arguments) {
        constexpr int invalid_argument = 2;
        if (function != nullptr && first != nullptr) {
            const int code = function(first, arguments...);
            return code == invalid_argument ? BackendStatus::not_found : nvml_status(code);
        }
        return call(function, first, arguments...);
    }
    [[nodiscard]] abi::Device device(int gpu) const {
        return gpu >= 0 && static_cast<std::size_t>(gpu) < devices.size()
                   ? devices[static_cast<std::size_t>(gpu)]
                   : nullptr;
    }
    BackendStatus add(BackendStatus status, abi::Device device, int& gpu) {
        if (status != BackendStatus::ok) return status;
        gpu = static_cast<int>(devices.size());
        devices.push_back(device);
        return status;
    }
    BackendStatus instance(int gpu, int id, abi::GpuInstance& out) const {
        return call(gpu_instance_by_id, device(gpu), static_cast<unsigned>(id), &out);
    }
    /// Of the GPU instance in which a MIG device is (nvml_signals.cpp).
    BackendStatus memory_used(abi::Device in, double& mib) const;
    /// Calls `each(instance)` for the compute instances of a GPU instance, whatever their profiles.
    template <class F>
    BackendStatus each_compute(abi::GpuInstance gi, const F& each) const {
        using enum BackendStatus;
        for (unsigned profile = 0; profile < 10; ++profile) {
            abi::ComputeInstanceProfileInfo info{};
            auto status = ask_profile(ci_profile, gi, profile, 0u, &info);
            if (status == not_supported || status == not_found) continue;
            if (status != ok) return status;
            abi::ComputeInstance found[16]{};
            unsigned count = 0;
            if (info.instance_count > 16) return invalid_state;
            status = call(compute_instances, gi, info.id, found, &count);
            if (status == not_supported || status == not_found) continue;
            if (status != ok) return status;
            for (unsigned k = 0; k < count && k < 16; ++k)
                if (status = each(found[k]); status != ok) return status;
        }
        return ok;
    }
};

}  // namespace gpusched::host

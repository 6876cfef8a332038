// SPDX-License-Identifier: Apache-2.0
#include "host/nvml_library.hpp"

#include <gpusched/config.hpp>

#include <dlfcn.h>

namespace gpusched::host {

GPUSCHED_EXPORT BackendStatus nvml_status(int code) noexcept {
    using enum BackendStatus;
    switch (code) {
    case 0:
        return ok;
    case 3:   // NOT_SUPPORTED
    case 13:  // FUNCTION_NOT_FOUND
    case 25:  // ARGUMENT_VERSION_MISMATCH
    case 26:  // DEPRECATED
        return not_supported;
    case 4:   // NO_PERMISSION
    case 17:  // OPERATING_SYSTEM: the device is blocked, as by a cgroup
        return no_permission;
    case 6:   // NOT_FOUND
    case 28:  // GPU_NOT_FOUND
        return not_found;
    case 10:
        return timeout;
    case 15:
        return gpu_is_lost;
    case 16:
        return reset_required;
    case 19:
        return in_use;
    case 20:  // MEMORY
    case 23:
        return insufficient_resources;
    case 1:  // UNINITIALIZED
    case 29:
        return invalid_state;
    default:
        return unknown;
    }
}

GPUSCHED_EXPORT Nvml::Nvml(const std::string& library) : impl_(std::make_unique<Impl>()) {
    impl_->library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (impl_->library == nullptr) {
        const char* const why = ::dlerror();
        throw BackendError("NVML: cannot be loaded: " +
                           std::string(why != nullptr ? why : "no reason given"));
    }
    impl_->look_up_all();
    if (impl_->init == nullptr) throw BackendError(library + ": no nvmlInit_v2: not NVML, or too old");
    const int code = impl_->init();
    if (code != 0)
        throw BackendError("NVML: nvmlInit_v2 failed: " + std::to_string(code) + " (" +
                           enum_name(nvml_status(code)) + ")");
    impl_->initialised = true;
}

GPUSCHED_EXPORT Nvml::~Nvml() = default;

GPUSCHED_EXPORT BackendStatus Nvml::find(int index, int& gpu) {
    abi::Device device = nullptr;
    const auto status = Impl::call(impl_->by_index, static_cast<unsigned>(index), &device);
    return impl_->add(status, device, gpu);
}

GPUSCHED_EXPORT BackendStatus Nvml::find(const std::string& pci_bus_id, int& gpu) {
    abi::Device device = nullptr;
    const auto status = Impl::call(impl_->by_pci, pci_bus_id.c_str(), &device);
    return impl_->add(status, device, gpu);
}

GPUSCHED_EXPORT BackendStatus Nvml::mig_enabled(int gpu, bool& enabled, bool& pending) {
    unsigned now = 0, later = 0;
    const auto status = Impl::call(impl_->mig_mode, impl_->device(gpu), &now, &later);
    enabled = now == 1;
    pending = later != now;
    return status;
}

GPUSCHED_EXPORT BackendStatus Nvml::profiles(int gpu, std::vector<NvmlProfile>& out) {
    using enum BackendStatus;
    out.clear();
    for (unsigned k = 0; k < abi::gpu_instance_profiles; ++k) {
        abi::GpuInstanceProfileInfo info{};
        auto status = Impl::ask_profile(impl_->profile_info, impl_->device(gpu), k, &info);
        if (status == not_supported || status == not_found) continue;
        if (status != ok) return status;
        abi::Placement places[32]{};
        unsigned count = 0;
        status = Impl::call(impl_->placements, impl_->device(gpu), info.id, nullptr, &count);
        if (status == ok && count <= 32)
            status = Impl::call(impl_->placements, impl_->device(gpu), info.id, &places[0], &count);
        if (status != ok) return status;
        if (count > 32) return invalid_state;
        NvmlProfile p;
        p.id = static_cast<std::int32_t>(info.id);
        p.index = static_cast<std::int32_t>(k);
        p.max_count = static_cast<std::int32_t>(info.instance_count);
        p.sm_count = static_cast<std::int32_t>(info.multiprocessor_count);
        p.memory_mib = static_cast<std::int32_t>(info.memory_mib);
        for (unsigned i = 0; i < count; ++i) {
            if (places[i].start > 7) return invalid_state;
            p.starts = static_cast<std::uint8_t>(p.starts | 1u << places[i].start);
            p.memory_slices = static_cast<std::int32_t>(places[i].size);
        }
        out.push_back(p);
    }
    return ok;
}

GPUSCHED_EXPORT BackendStatus Nvml::instances(int gpu, std::vector<NvmlInstance>& out) {
    using enum BackendStatus;
    out.clear();
    bool any = false;
    for (unsigned k = 0; k < abi::gpu_instance_profiles; ++k) {
        abi::GpuInstanceProfileInfo info{};
        auto status = Impl::ask_profile(impl_->profile_info, impl_->device(gpu), k, &info);
        if (status == not_supported || status == not_found) continue;
        if (status != ok) return status;
        any = true;
        abi::GpuInstance found[32]{};
        unsigned count = 0;
        if (info.instance_count > 32) return invalid_state;
        status = Impl::call(impl_->gpu_instances, impl_->device(gpu), info.id, &found[0], &count);
        if (status != ok) return status;
        if (count > 32) return invalid_state;
        for (unsigned i = 0; i < count; ++i) {
            abi::GpuInstanceInfo one{};
            status = Impl::call(impl_->gpu_instance_info, found[i], &one);
            if (status != ok) return status;
            out.push_back({static_cast<std::int32_t>(one.id), static_cast<std::int32_t>(one.profile_id),
                           static_cast<std::int32_t>(one.placement.start),
                           static_cast<std::int32_t>(one.placement.size)});
        }
    }
    return any ? ok : not_supported;
}

GPUSCHED_EXPORT BackendStatus Nvml::create_gpu_instance(int gpu, int profile_id, int start, int size,
                                                        int& id) {
    const abi::Placement place{static_cast<unsigned>(start), static_cast<unsigned>(size)};
    abi::GpuInstance made = nullptr;
    id = -1;
    const auto status =
        Impl::call(impl_->create_gi, impl_->device(gpu), static_cast<unsigned>(profile_id), &place, &made);
    abi::GpuInstanceInfo info{};
    if (status == BackendStatus::ok && made != nullptr &&
        Impl::call(impl_->gpu_instance_info, made, &info) == BackendStatus::ok)
        id = static_cast<int>(info.id);
    return status;
}

GPUSCHED_EXPORT BackendStatus Nvml::destroy_gpu_instance(int gpu, int id) {
    abi::GpuInstance gi = nullptr;
    const auto status = impl_->instance(gpu, id, gi);
    return status == BackendStatus::ok ? Impl::call(impl_->destroy_gi, gi) : status;
}

GPUSCHED_EXPORT BackendStatus Nvml::compute_instances(int gpu, int id, int& count) {
    count = 0;
    abi::GpuInstance gi = nullptr;
    const auto status = impl_->instance(gpu, id, gi);
    if (status != BackendStatus::ok) return status;
    return impl_->each_compute(gi, [&](abi::ComputeInstance) {
        ++count;
        return BackendStatus::ok;
    });
}

GPUSCHED_EXPORT BackendStatus Nvml::create_compute_instance(int gpu, int id, int slices, bool media) {
    using enum BackendStatus;
    abi::GpuInstance gi = nullptr;
    auto status = impl_->instance(gpu, id, gi);
    if (status != ok) return status;
    // Profiles of compute instances by slices: 1, 2, 3, 4, 7, 8, 6, and one slice with media engines.
    constexpr int by_slices[] = {-1, 0, 1, 2, 3, -1, 6, 4, 5};
    const int plain = slices >= 0 && slices <= 8 ? by_slices[slices] : -1;
    for (const int profile : {media && slices == 1 ? 7 : -1, plain}) {
        if (profile < 0) continue;
        abi::ComputeInstanceProfileInfo info{};
        status = Impl::ask_profile(impl_->ci_profile, gi, static_cast<unsigned>(profile), 0u, &info);
        if (status == not_supported || status == not_found) continue;
        if (status != ok) return status;
        abi::ComputeInstance made = nullptr;
        return Impl::call(impl_->create_ci, gi, info.id, &made);
    }
    return not_supported;
}

GPUSCHED_EXPORT BackendStatus Nvml::destroy_compute_instances(int gpu, int id) {
    abi::GpuInstance gi = nullptr;
    const auto status = impl_->instance(gpu, id, gi);
    if (status != BackendStatus::ok) return status;
    return impl_->each_compute(gi,
                               [&](abi::ComputeInstance ci) { return Impl::call(impl_->destroy_ci, ci); });
}

}  // namespace gpusched::host

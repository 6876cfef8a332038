#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/detail/nvml_abi.hpp>
#include <gpusched/control/nvml.hpp>

#include <map>
#include <type_traits>
#include <utility>

#include <dlfcn.h>

namespace gpusched::control {

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

GPUSCHED_INLINE BackendStatus nvml_status(int code) noexcept {
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

GPUSCHED_INLINE Nvml::Nvml(const std::string& library) : impl_(std::make_unique<Impl>()) {
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

GPUSCHED_INLINE Nvml::~Nvml() = default;

GPUSCHED_INLINE BackendStatus Nvml::find(int index, int& gpu) {
    abi::Device device = nullptr;
    const auto status = Impl::call(impl_->by_index, static_cast<unsigned>(index), &device);
    return impl_->add(status, device, gpu);
}

GPUSCHED_INLINE BackendStatus Nvml::find(const std::string& pci_bus_id, int& gpu) {
    abi::Device device = nullptr;
    const auto status = Impl::call(impl_->by_pci, pci_bus_id.c_str(), &device);
    return impl_->add(status, device, gpu);
}

GPUSCHED_INLINE BackendStatus Nvml::mig_enabled(int gpu, bool& enabled, bool& pending) {
    unsigned now = 0, later = 0;
    const auto status = Impl::call(impl_->mig_mode, impl_->device(gpu), &now, &later);
    enabled = now == 1;
    pending = later != now;
    return status;
}

GPUSCHED_INLINE BackendStatus Nvml::profiles(int gpu, std::vector<NvmlProfile>& out) {
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

GPUSCHED_INLINE BackendStatus Nvml::instances(int gpu, std::vector<NvmlInstance>& out) {
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

GPUSCHED_INLINE BackendStatus Nvml::create_gpu_instance(int gpu, int profile_id, int start, int size,
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

GPUSCHED_INLINE BackendStatus Nvml::destroy_gpu_instance(int gpu, int id) {
    abi::GpuInstance gi = nullptr;
    const auto status = impl_->instance(gpu, id, gi);
    return status == BackendStatus::ok ? Impl::call(impl_->destroy_gi, gi) : status;
}

GPUSCHED_INLINE BackendStatus Nvml::compute_instances(int gpu, int id, int& count) {
    count = 0;
    abi::GpuInstance gi = nullptr;
    const auto status = impl_->instance(gpu, id, gi);
    if (status != BackendStatus::ok) return status;
    return impl_->each_compute(gi, [&](abi::ComputeInstance) {
        ++count;
        return BackendStatus::ok;
    });
}

GPUSCHED_INLINE BackendStatus Nvml::create_compute_instance(int gpu, int id, int slices, bool media) {
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

GPUSCHED_INLINE BackendStatus Nvml::destroy_compute_instances(int gpu, int id) {
    abi::GpuInstance gi = nullptr;
    const auto status = impl_->instance(gpu, id, gi);
    if (status != BackendStatus::ok) return status;
    return impl_->each_compute(gi,
                               [&](abi::ComputeInstance ci) { return Impl::call(impl_->destroy_ci, ci); });
}

GPUSCHED_INLINE BackendStatus Nvml::pcie_bytes(int gpu, double& bytes) {
    abi::FieldValue values[2]{};
    values[0].field = abi::pcie_tx_bytes_field;
    values[1].field = abi::pcie_rx_bytes_field;
    const auto status = Impl::call(impl_->field_values, impl_->device(gpu), 2, &values[0]);
    if (status != BackendStatus::ok) return status;
    bytes = 0;
    for (const auto& v : values) {
        // Each has its own result, also when the call as a whole is fine.
        if (v.result != 0) return nvml_status(v.result);
        if (v.type != 2 && v.type != 3) return BackendStatus::not_supported;
        bytes += static_cast<double>(v.type == 2 ? v.value.ul : v.value.ull);
    }
    return status;
}

GPUSCHED_INLINE BackendStatus Nvml::pcie_rate(int gpu, double& bytes_per_s) {
    bytes_per_s = 0;
    for (const unsigned counter : {0u, 1u}) {
        unsigned kb = 0;
        const auto status = Impl::call(impl_->throughput, impl_->device(gpu), counter, &kb);
        if (status != BackendStatus::ok) return status;
        bytes_per_s += 1000.0 * kb;
    }
    return BackendStatus::ok;
}

GPUSCHED_INLINE BackendStatus Nvml::pcie_replays(int gpu, double& count) {
    unsigned value = 0;
    const auto status = Impl::call(impl_->replays, impl_->device(gpu), &value);
    count = value;
    return status;
}

GPUSCHED_INLINE BackendStatus Nvml::activity(int gpu, int id, double& sm, double& dram) {
    using enum BackendStatus;
    abi::GpmSupport support{abi::gpm_version, 0};
    auto status = Impl::call(impl_->gpm_support, impl_->device(gpu), &support);
    if (status != ok) return status;
    if (support.is_supported == 0 || impl_->gpm_metrics == nullptr || impl_->gpm_free == nullptr)
        return not_supported;
    abi::GpmSample now = nullptr;
    if (status = Impl::call(impl_->gpm_alloc, &now); status != ok) return status;
    auto& last = impl_->samples[{gpu, id}];
    status = Impl::call(impl_->gpm_get, impl_->device(gpu), static_cast<unsigned>(id), now);
    if (status != ok) {
        impl_->gpm_free(now);
        return status;
    }
    const auto before = std::exchange(last, now);
    if (before == nullptr) return not_found;
    abi::GpmMetricsGet get{};
    get.version = abi::gpm_version;
    get.count = 2;
    get.first = before;
    get.second = now;
    get.metrics[0].id = abi::gpm_sm_util;
    get.metrics[1].id = abi::gpm_dram_util;
    status = Impl::call(impl_->gpm_metrics, &get);
    impl_->gpm_free(before);
    if (status != ok) return status;
    for (const auto& m : {get.metrics[0], get.metrics[1]})
        if (m.result != 0) return nvml_status(m.result);
    sm = get.metrics[0].value / 100;
    dram = get.metrics[1].value / 100;
    return ok;
}

}  // namespace gpusched::control

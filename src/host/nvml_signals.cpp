// SPDX-License-Identifier: Apache-2.0
#include "host/nvml_library.hpp"

#include <gpusched/config.hpp>

#include <utility>

namespace gpusched::host {

GPUSCHED_EXPORT BackendStatus Nvml::pcie_bytes(int gpu, double& bytes) {
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

GPUSCHED_EXPORT BackendStatus Nvml::pcie_rate(int gpu, double& bytes_per_s) {
    bytes_per_s = 0;
    for (const unsigned counter : {0u, 1u}) {
        unsigned kb = 0;
        const auto status = Impl::call(impl_->throughput, impl_->device(gpu), counter, &kb);
        if (status != BackendStatus::ok) return status;
        bytes_per_s += 1000.0 * kb;
    }
    return BackendStatus::ok;
}

GPUSCHED_EXPORT BackendStatus Nvml::pcie_replays(int gpu, double& count) {
    unsigned value = 0;
    const auto status = Impl::call(impl_->replays, impl_->device(gpu), &value);
    count = value;
    return status;
}

GPUSCHED_EXPORT BackendStatus Nvml::Impl::memory_used(abi::Device in, double& mib) const {
    using enum BackendStatus;
    abi::MemoryV2 m{};
    m.version = abi::memory_v2_version;
    auto status = call(memory_v2, in, &m);
    if (status == not_supported) {
        abi::Memory old{};
        status = call(memory, in, &old);
        m.total = old.total, m.free = old.free;
    }
    if (status != ok) return status;
    if (m.total == 0 || m.free > m.total) return invalid_state;
    mib = static_cast<double>(m.total - m.free) / (1024.0 * 1024.0);
    return ok;
}

GPUSCHED_EXPORT BackendStatus Nvml::memory_used(int gpu, std::vector<NvmlMemory>& out) {
    using enum BackendStatus;
    out.clear();
    const auto device = impl_->device(gpu);
    unsigned count = 0;
    auto status = Impl::call(impl_->mig_device_count, device, &count);
    if (status != ok) return status;
    for (unsigned k = 0; k < count; ++k) {
        abi::Device one = nullptr;
        status = Impl::call(impl_->mig_device, device, k, &one);
        if (status == not_found || (status == ok && one == nullptr)) continue;  // indices have gaps
        if (status != ok) return status;
        unsigned id = 0;
        if (status = Impl::call(impl_->gpu_instance_of, one, &id); status != ok) return status;
        abi::GpuInstance instance = nullptr;
        abi::GpuInstanceInfo info{};
        status = impl_->instance(gpu, static_cast<int>(id), instance);
        if (status == ok) status = Impl::call(impl_->gpu_instance_info, instance, &info);
        if (status != ok) return status;
        NvmlMemory used{static_cast<std::int32_t>(info.profile_id),
                        static_cast<std::int32_t>(info.placement.start)};
        used.status = impl_->memory_used(one, used.mib);
        out.push_back(used);
    }
    return ok;
}

GPUSCHED_EXPORT BackendStatus Nvml::activity(int gpu, int id, double& sm, double& dram) {
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

}  // namespace gpusched::host

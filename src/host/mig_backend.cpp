#pragma once

#include <gpusched/config.hpp>
#include <gpusched/host/mig_backend.hpp>

#include <algorithm>
#include <utility>

namespace GPUSCHED_NAMESPACE::host {

GPUSCHED_INLINE BackendStatus memory_in_use(MigInstance instance, std::span<const InstanceMemory> all,
                                            double& mib) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const InstanceMemory& one) { return one.instance == instance; });
    if (at == all.end()) return BackendStatus::not_found;
    if (at->status == BackendStatus::ok) mib = at->mib;
    return at->status;
}

GPUSCHED_INLINE BackendStatus MigBackend::complete(int, MigInstance) { return BackendStatus::ok; }

GPUSCHED_INLINE void MigBackend::adopt(int, MigInstance) {}

GPUSCHED_INLINE void MigBackend::disown(int, MigInstance) {}

GPUSCHED_INLINE BackendStatus MigBackend::memory_used(int, std::vector<InstanceMemory>&) {
    return BackendStatus::not_supported;
}

GPUSCHED_INLINE BackendStatus MigBackend::memory_shortfall(int, double&) {
    return BackendStatus::not_supported;
}

// ---- owned instances ----

GPUSCHED_INLINE OwningMig::OwningMig(std::vector<HostGpu> gpus, std::vector<OwnedInstance> owned)
    : gpus_(std::move(gpus)), owned_(std::move(owned)) {}

GPUSCHED_INLINE void OwningMig::adopt(int gpu, MigInstance instance) {
    if (!owns(gpu, instance)) owned_.push_back({gpu, instance});
}

GPUSCHED_INLINE void OwningMig::disown(int gpu, MigInstance instance) {
    std::erase(owned_, OwnedInstance{gpu, instance});
}

GPUSCHED_INLINE bool OwningMig::owns(int gpu, MigInstance instance) const {
    return std::find(owned_.begin(), owned_.end(), OwnedInstance{gpu, instance}) != owned_.end();
}

GPUSCHED_INLINE const MigDevice& OwningMig::device(int gpu) const {
    return mig_device(gpus_[static_cast<std::size_t>(gpu)].device);
}

// ---- without a driver ----

GPUSCHED_INLINE NoMig::NoMig(const Host& host) : host_(host) {}

GPUSCHED_INLINE BackendStatus NoMig::read(int gpu, MigLayout& layout) {
    layout = {};
    for (const auto& t : host_.tenants)
        if (t.is_protected && t.start.gpu == gpu && !layout.contains(t.start.instance) &&
            layout.size() < MigLayout::capacity)
            layout.add(t.start.instance);
    return BackendStatus::ok;
}

GPUSCHED_INLINE BackendStatus NoMig::create(int, MigInstance) { return BackendStatus::not_supported; }

GPUSCHED_INLINE BackendStatus NoMig::destroy(int, MigInstance) { return BackendStatus::not_supported; }

GPUSCHED_INLINE BackendStatus NoMig::complete(int, MigInstance) { return BackendStatus::not_supported; }

}  // namespace GPUSCHED_NAMESPACE::host

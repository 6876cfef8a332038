// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/host/mig_backend.hpp>

#include <algorithm>
#include <utility>

namespace gpusched::host {

GPUSCHED_EXPORT BackendStatus memory_in_use(MigInstance instance, std::span<const InstanceMemory> all,
                                            double& mib) {
    const auto at = std::find_if(all.begin(), all.end(),
                                 [&](const InstanceMemory& one) { return one.instance == instance; });
    if (at == all.end()) return BackendStatus::not_found;
    if (at->status == BackendStatus::ok) mib = at->mib;
    return at->status;
}

GPUSCHED_EXPORT BackendStatus MigBackend::complete(int, MigInstance) { return BackendStatus::ok; }

GPUSCHED_EXPORT void MigBackend::adopt(int, MigInstance) {}

GPUSCHED_EXPORT void MigBackend::disown(int, MigInstance) {}

GPUSCHED_EXPORT BackendStatus MigBackend::memory_used(int, std::vector<InstanceMemory>&) {
    return BackendStatus::not_supported;
}

GPUSCHED_EXPORT BackendStatus MigBackend::memory_shortfall(int, double&) {
    return BackendStatus::not_supported;
}

// ---- owned instances ----

GPUSCHED_EXPORT OwningMig::OwningMig(std::vector<HostGpu> gpus, std::vector<OwnedInstance> owned)
    : gpus_(std::move(gpus)), owned_(std::move(owned)) {}

GPUSCHED_EXPORT void OwningMig::adopt(int gpu, MigInstance instance) {
    if (!owns(gpu, instance)) owned_.push_back({gpu, instance});
}

GPUSCHED_EXPORT void OwningMig::disown(int gpu, MigInstance instance) {
    std::erase(owned_, OwnedInstance{gpu, instance});
}

GPUSCHED_EXPORT bool OwningMig::owns(int gpu, MigInstance instance) const {
    return std::find(owned_.begin(), owned_.end(), OwnedInstance{gpu, instance}) != owned_.end();
}

GPUSCHED_EXPORT const MigDevice& OwningMig::device(int gpu) const {
    return mig_device(gpus_[static_cast<std::size_t>(gpu)].device);
}

// ---- without a driver ----

GPUSCHED_EXPORT NoMig::NoMig(const Host& host) : host_(host) {}

GPUSCHED_EXPORT BackendStatus NoMig::read(int gpu, MigLayout& layout) {
    layout = {};
    for (const auto& t : host_.tenants)
        if (t.is_protected && t.start.gpu == gpu && !layout.contains(t.start.instance) &&
            layout.size() < MigLayout::capacity)
            layout.add(t.start.instance);
    return BackendStatus::ok;
}

GPUSCHED_EXPORT BackendStatus NoMig::create(int, MigInstance) { return BackendStatus::not_supported; }

GPUSCHED_EXPORT BackendStatus NoMig::destroy(int, MigInstance) { return BackendStatus::not_supported; }

GPUSCHED_EXPORT BackendStatus NoMig::complete(int, MigInstance) { return BackendStatus::not_supported; }

}  // namespace gpusched::host

// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/host/nvml.hpp>

#include <algorithm>
#include <utility>

namespace gpusched::host {

GPUSCHED_EXPORT NvmlMig::NvmlMig(Nvml& nvml, std::vector<HostGpu> gpus, std::vector<int> handles,
                                 std::vector<OwnedInstance> owned)
    : OwningMig(std::move(gpus), std::move(owned)), nvml_(nvml), handles_(std::move(handles)) {}

GPUSCHED_EXPORT BackendStatus NvmlMig::read(int gpu, MigLayout& layout) {
    std::vector<NvmlInstance> found;
    const auto status = nvml_.instances(handles_[static_cast<std::size_t>(gpu)], found);
    if (status != BackendStatus::ok) return status;
    layout = {};
    for (const auto& row : found) {
        const int p = device(gpu).find_id(row.profile_id);
        if (p < 0 || row.start < 0 || row.start > 7 || layout.size() == MigLayout::capacity ||
            device(gpu).profiles[static_cast<std::size_t>(p)].memory_slices != row.size)
            return BackendStatus::not_supported;
        layout.add({static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(row.start)});
    }
    return status;
}

GPUSCHED_EXPORT BackendStatus NvmlMig::find(int gpu, MigInstance instance, int& id) {
    std::vector<NvmlInstance> found;
    const auto status = nvml_.instances(handles_[static_cast<std::size_t>(gpu)], found);
    if (status != BackendStatus::ok) return status;
    const auto& profile = device(gpu).profiles[instance.profile];
    for (const auto& row : found)
        if (row.profile_id == profile.id && row.start == instance.start) {
            id = row.id;
            return status;
        }
    return BackendStatus::not_found;
}

GPUSCHED_EXPORT BackendStatus NvmlMig::give_compute(int gpu, MigInstance instance, int id) {
    const int handle = handles_[static_cast<std::size_t>(gpu)];
    int count = 0;
    const auto status = nvml_.compute_instances(handle, id, count);
    if (status != BackendStatus::ok || count > 0) return status;
    const auto& profile = device(gpu).profiles[instance.profile];
    return nvml_.create_compute_instance(handle, id, profile.compute_slices, profile.media);
}

GPUSCHED_EXPORT BackendStatus NvmlMig::create(int gpu, MigInstance instance) {
    using enum BackendStatus;
    MigLayout there;
    if (const auto status = read(gpu, there); status != ok) return status;
    // The driver says so too, but also when just this instance exists: then it is not ours to use.
    if (!can_create(device(gpu), there, instance)) return insufficient_resources;
    const auto& profile = device(gpu).profiles[instance.profile];
    int made = -1, id = 0;
    auto status = nvml_.create_gpu_instance(handles_[static_cast<std::size_t>(gpu)], profile.id,
                                            instance.start, profile.memory_slices, made);
    const auto seen = find(gpu, instance, id);
    // The call may fail, and an instance stand there all the same: then it is not known whose it is, and not ours.
    if (status != ok) return seen == ok || seen == not_found || freezes(status) ? status : invalid_state;
    if (seen != ok || made != id) return invalid_state;
    adopt(gpu, instance);
    status = give_compute(gpu, instance, id);
    // Whatever the call said, the instance is whole or it is not.
    if (status != ok && !freezes(status)) {
        const auto again = nvml_.destroy_gpu_instance(handles_[static_cast<std::size_t>(gpu)], id);
        if (again == ok && find(gpu, instance, id) == not_found)
            disown(gpu, instance);
        else if (status == insufficient_resources)
            status = invalid_state;  // that one says that nothing was made
    }
    return status;
}

GPUSCHED_EXPORT BackendStatus NvmlMig::complete(int gpu, MigInstance instance) {
    if (!owns(gpu, instance)) return BackendStatus::no_permission;
    int id = 0;
    const auto status = find(gpu, instance, id);
    return status == BackendStatus::ok ? give_compute(gpu, instance, id) : status;
}

GPUSCHED_EXPORT BackendStatus NvmlMig::destroy(int gpu, MigInstance instance) {
    using enum BackendStatus;
    if (!owns(gpu, instance)) return no_permission;
    int id = 0;
    auto status = find(gpu, instance, id);
    if (status == not_found) disown(gpu, instance);
    if (status != ok) return status;
    const int handle = handles_[static_cast<std::size_t>(gpu)];
    status = nvml_.destroy_compute_instances(handle, id);
    if (status == ok) status = nvml_.destroy_gpu_instance(handle, id);
    if (status != ok && !freezes(status)) {
        // A call may have an effect and fail. If the instance stands, the tenant needs its compute instance.
        const auto left = complete(gpu, instance);
        if (left == not_found)
            status = ok;
        else if (left != ok)
            status = invalid_state;
    }
    if (status != ok) return status;
    // Success is believed when the listing says so too.
    if (find(gpu, instance, id) != not_found) return invalid_state;
    disown(gpu, instance);
    return status;
}

GPUSCHED_EXPORT BackendStatus NvmlMig::memory_used(int gpu, std::vector<InstanceMemory>& out) {
    out.clear();
    std::vector<NvmlMemory> found;
    const auto status = nvml_.memory_used(handles_[static_cast<std::size_t>(gpu)], found);
    if (status != BackendStatus::ok) return status;
    for (const auto& one : found)
        if (const int p = device(gpu).find_id(one.profile_id); p >= 0 && one.start >= 0 && one.start <= 7)
            out.push_back(
                {{static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(one.start)}, one.status, one.mib});
    return status;
}

GPUSCHED_EXPORT BackendStatus NvmlMig::memory_shortfall(int gpu, double& mib) {
    std::vector<NvmlProfile> found;
    const auto status = nvml_.profiles(handles_[static_cast<std::size_t>(gpu)], found);
    if (status != BackendStatus::ok) return status;
    mib = 0;
    for (const auto& p : device(gpu).profiles)
        for (const auto& f : found)
            if (f.id == p.id) mib = std::max(mib, static_cast<double>(p.memory_mib - f.memory_mib));
    return found.empty() ? BackendStatus::not_supported : status;
}

}  // namespace gpusched::host

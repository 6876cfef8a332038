// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/host/replace_instance.hpp>

namespace gpusched::host {

GPUSCHED_EXPORT Feedback replace_instance(MigBackend& backend, const Host& host, const Configuration& before,
                                          const Configuration& after, const TenantMove& switch_over,
                                          const std::function<void(int)>& wait) {
    using enum BackendStatus;
    const auto& device = mig_device(host.gpus[static_cast<std::size_t>(after.gpu)].device);
    const auto failed = [](BackendStatus status, bool restored) { return Feedback{true, status, restored}; };
    MigLayout there, here;
    if (const auto status = backend.read(after.gpu, there); status != ok) return failed(status, true);
    if (const auto status = backend.read(before.gpu, here); status != ok) return failed(status, true);
    if (!here.contains(before.instance)) return failed(not_found, false);
    const auto destroy = [&](int gpu, MigInstance instance) {
        auto status = backend.destroy(gpu, instance);
        for (int k = 0; k < 3 && status == in_use; ++k) {
            wait(k);
            status = backend.destroy(gpu, instance);
        }
        return status;
    };
    bool foreign = false;  ///< what stands in the new place is somebody else's
    const auto create = [&] {
        const auto status = backend.create(after.gpu, after.instance);
        foreign = status == insufficient_resources;
        return status;
    };
    /// Whether the old instance stands alone again: read back, because a failed call says little of what it did.
    const auto undo = [&](BackendStatus why) {
        if (freezes(why)) {
            MigLayout now;
            return failed(why, backend.read(before.gpu, now) == ok && now.contains(before.instance));
        }
        MigLayout now;
        if (!foreign && backend.read(after.gpu, now) == ok && now.contains(after.instance) &&
            !(after.gpu == before.gpu && after.instance == before.instance) &&
            destroy(after.gpu, after.instance) != ok)
            return failed(why, false);
        if (backend.read(before.gpu, now) != ok) return failed(why, false);
        if (now.contains(before.instance)) return failed(why, true);
        return failed(why, backend.create(before.gpu, before.instance) == ok);
    };
    if (can_create(device, there, after.instance)) {
        if (const auto status = create(); status != ok) return undo(status);
        if (const auto status = switch_over(after); status != ok) {
            // Nothing is destroyed under a tenant that went and says that it did not.
            if (!freezes(status) && switch_over(before) != ok) return failed(status, false);
            return undo(status);
        }
        const auto status = destroy(before.gpu, before.instance);
        return status == ok ? Feedback{true, ok, true} : failed(status, false);
    }
    auto rest = there;
    if (after.gpu != before.gpu || !rest.remove(before.instance) || !can_create(device, rest, after.instance))
        return failed(insufficient_resources, true);
    if (const auto status = destroy(before.gpu, before.instance); status != ok) return undo(status);
    if (const auto status = create(); status != ok) return undo(status);
    if (const auto status = switch_over(after); status != ok) return undo(status);
    return {true, ok, true};
}

GPUSCHED_EXPORT BackendStatus recover_change(MigBackend& backend, const Configuration& before,
                                             const Configuration& after, bool switched,
                                             const TenantMove& switch_over,
                                             const std::function<void(int)>& wait, Configuration& stands) {
    using enum BackendStatus;
    MigLayout old_gpu, new_gpu;
    if (const auto status = backend.read(before.gpu, old_gpu); status != ok) return status;
    if (const auto status = backend.read(after.gpu, new_gpu); status != ok) return status;
    const bool old_there = old_gpu.contains(before.instance), new_there = new_gpu.contains(after.instance);
    const bool same = before.gpu == after.gpu && before.instance == after.instance;
    const bool forward = new_there && !same && (switched || !old_there);
    stands = forward ? after : before;
    const auto& other = forward ? before : after;
    if (!old_there && !new_there)
        if (const auto status = backend.create(before.gpu, before.instance); status != ok) return status;
    if (const auto status = backend.complete(stands.gpu, stands.instance); status != ok) return status;
    if (const auto status = switch_over(stands); status != ok) return status;
    if (same) return ok;
    auto status = ok;
    if (forward ? old_there : new_there) {
        status = backend.destroy(other.gpu, other.instance);
        for (int k = 0; k < 3 && status == in_use; ++k) {
            wait(k);
            status = backend.destroy(other.gpu, other.instance);
        }
    }
    // An instance that appears there later is somebody else's.
    if (status == ok) backend.disown(other.gpu, other.instance);
    return status;
}

}  // namespace gpusched::host

// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/host/resume.hpp>

namespace gpusched::host {

GPUSCHED_EXPORT std::string resume_obstacle(MigBackend& mig, const Host& host, const JournalTenant& entry) {
    const auto whose = gpusched::quoted(entry.name) + ": ";
    MigLayout layout;
    const auto read = [&](const Configuration& c) {
        const auto status = mig.read(c.gpu, layout);
        return status == BackendStatus::ok
                   ? std::string()
                   : whose + "GPU " + number_text(c.gpu) + " cannot be read: " + enum_name(status);
    };
    if (auto why = read(entry.now); !why.empty()) return why;
    if (!layout.contains(entry.now.instance))
        return whose + "its instance, " + describe(host, entry.now) + ", does not stand";
    if (!entry.pending ||
        (entry.pending->gpu == entry.now.gpu && entry.pending->instance == entry.now.instance))
        return {};
    if (auto why = read(*entry.pending); !why.empty()) return why;
    if (layout.contains(entry.pending->instance))
        return whose + describe(host, *entry.pending) +
               ", where it was to go, stands as well: remove it, or start the controller again, which does";
    return {};
}

GPUSCHED_EXPORT std::string resume_settle(MigBackend& mig, JournalTenant& entry,
                                          const TenantMove& switch_over) {
    using enum BackendStatus;
    const auto& now = entry.now;
    const auto whose = gpusched::quoted(entry.name) + ": ";
    mig.adopt(now.gpu, now.instance);
    if (const auto status = mig.complete(now.gpu, now.instance); status != ok)
        return whose + "its compute instance: " + enum_name(status);
    if (!entry.pending) return {};
    const auto other = *entry.pending;
    if (other.gpu != now.gpu || other.instance != now.instance) {
        if (const auto status = switch_over(now); status != ok)
            return whose + "cannot be told to run where it was: " + enum_name(status);
        // An instance that appears there later is somebody else's.
        mig.disown(other.gpu, other.instance);
    }
    entry.pending.reset();
    entry.switched = entry.drained = false;
    return {};
}

}  // namespace gpusched::host

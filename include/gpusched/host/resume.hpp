// An operator has come to a frozen controller: whether it may go on, and what it takes.
#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/host/journal.hpp>
#include <gpusched/host/runner.hpp>

#include <string>

namespace gpusched::host {

/// What is in the way of going on with a tenant whose change came to an unknown end, or whose instance or GPU was gone;
/// empty where nothing is: its instance stands where the journal has it, and nothing is left of a change. Looks only.
template <MigBackend Mig>
[[nodiscard]] std::string resume_obstacle(Mig& mig, const Host& host, const JournalTenant& entry) {
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

/// Brings such a tenant back to where the journal has it: the instance gets the compute instance that it may lack, and
/// is the controller's again; the tenant is told to run there where a change had begun; the change is forgotten. What a
/// process that dies here leaves behind is what `recover_host` expects.
/// @param switch_to as for `recover_change`
/// @return why that failed; empty where it did not
template <MigBackend Mig, class Switch>
[[nodiscard]] std::string resume_settle(Mig& mig, JournalTenant& entry, const Switch& switch_to) {
    using enum BackendStatus;
    const auto& now = entry.now;
    const auto whose = gpusched::quoted(entry.name) + ": ";
    if constexpr (requires { mig.adopt(now.gpu, now.instance); }) mig.adopt(now.gpu, now.instance);
    if constexpr (requires { mig.complete(now.gpu, now.instance); })
        if (const auto status = mig.complete(now.gpu, now.instance); status != ok)
            return whose + "its compute instance: " + enum_name(status);
    if (!entry.pending) return {};
    const auto other = *entry.pending;
    if (other.gpu != now.gpu || other.instance != now.instance) {
        if (const auto status = switch_to(now); status != ok)
            return whose + "cannot be told to run where it was: " + enum_name(status);
        // An instance that appears there later is somebody else's.
        if constexpr (requires { mig.disown(other.gpu, other.instance); })
            mig.disown(other.gpu, other.instance);
    }
    entry.pending.reset();
    entry.switched = entry.drained = false;
    return {};
}

}  // namespace gpusched::host

// After a start: from what the journal says and what the hardware shows to a state that is known.
#pragma once

#include <gpusched/host/actuator.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gpusched::host {

/// What was found of a protected tenant.
enum class RecoveryVerdict : std::uint8_t {
    as_configured,  ///< no journal: the instance of the configuration stands
    as_recorded,    ///< the instance of the journal stands
    restored,       ///< a change was cut off; the tenant is where it was
    completed,      ///< a change was cut off; the tenant is where it was to go
    restarted,      ///< the machine was started anew, and the instance of the configuration stands
    missing,        ///< nothing that is known stands; nothing was touched
    failed          ///< a call failed on the way; the journal still says what was meant
};
constexpr auto enum_names(RecoveryVerdict) {
    return name_table<RecoveryVerdict>({
        {RecoveryVerdict::as_configured, "as_configured"},
        {RecoveryVerdict::as_recorded, "as_recorded"},
        {RecoveryVerdict::restored, "restored"},
        {RecoveryVerdict::completed, "completed"},
        {RecoveryVerdict::restarted, "restarted"},
        {RecoveryVerdict::missing, "missing"},
        {RecoveryVerdict::failed, "failed"},
    });
}

struct RecoveredTenant {
    std::string name{};
    RecoveryVerdict verdict = RecoveryVerdict::missing;
    BackendStatus status = BackendStatus::ok;
    Configuration now{};
};

struct Recovery {
    std::vector<RecoveredTenant> tenants{};  ///< the protected ones, in the host's order
    std::int32_t leases_ended = 0;
    std::vector<std::string> problems{};  ///< what an operator has to see to
    Journal journal{};                    ///< what stands now; saved
    /// Whether everything is in a known state, so that control may start.
    [[nodiscard]] bool known() const noexcept { return problems.empty(); }
};

/// The controller's own instances: those that the journal has, cut-off changes included, or, where it has none of this
/// boot, those of the configuration. GPU instances do not outlive a boot: what an older journal says is no claim.
[[nodiscard]] std::vector<OwnedInstance>
owned_instances(const Host& host, const std::optional<Journal>& journal, const std::string& boot);

/// The identity of the running kernel; empty where it cannot be read, which is no boot that a journal is of.
template <FileAccess Files>
[[nodiscard]] std::string boot_id(Files& files, const std::string& proc = "/proc") {
    std::string text;
    if (files.read(proc + "/sys/kernel/random/boot_id", text) != 0) return {};
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

/// Whether a path is that of an io.max below a folder, without steps upwards.
[[nodiscard]] bool is_limit_file(std::string_view path, std::string_view folder);

/// Brings a change from `before` to `after` that was cut off to one of the two: to the new one if the tenant was told
/// to run there, else to the old one where it stands, else to the new one, else the old one is made again. The tenant
/// is told by `switch_to(configuration)` before the other instance goes, so that nothing is destroyed under it.
/// @param backend owns both; `complete`, where it has that, gives an instance the compute
///     instance it lacks; `disown` gives up the claim to the other placement
template <MigBackend B, class Switch, class Wait>
[[nodiscard]] BackendStatus recover_change(B& backend, const Configuration& before,
                                           const Configuration& after, bool switched, const Switch& switch_to,
                                           const Wait& wait, Configuration& stands) {
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
    if constexpr (requires { backend.complete(stands.gpu, stands.instance); })
        if (const auto status = backend.complete(stands.gpu, stands.instance); status != ok) return status;
    if (const auto status = switch_to(stands); status != ok) return status;
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
    if constexpr (requires { backend.disown(other.gpu, other.instance); })
        if (status == ok) backend.disown(other.gpu, other.instance);
    return status;
}

/// To be called before anything else at a start. Ends limits that the journal still has, brings cut-off changes to an
/// end, adopts what stands, restores cores, and saves the journal. After a restart of the machine (another boot id)
/// limits and cut-off changes are gone with it. An instance that is not the journal's or the configuration's is not
/// touched, whatever it looks like; where none of them stands nothing is done and `problems` says so. Without `boot`
/// nothing is done at all.
/// @param structural whether instances are looked at at all; false without a MIG backend: then a cut-off change stays in
///     the journal, and is a problem
/// @param cgroups folder; a limit elsewhere is not written, whatever the journal says. Empty: anywhere
/// @throws BackendError when the journal cannot be read
template <MigBackend Mig, FileAccess Files, CommandRunner Run>
[[nodiscard]] Recovery recover_host(Mig& mig, Files& files, Run& run, const Host& host,
                                    const std::vector<TenantAccess>& access, JournalFile<Files>& file,
                                    const std::string& boot, bool structural, double backoff_s = 0.5,
                                    std::string_view cgroups = {}) {
    using enum BackendStatus;
    using enum RecoveryVerdict;
    Recovery out;
    const auto found = file.load(host);
    if (boot.empty()) {
        out.problems.push_back("the identity of the running kernel (boot_id) cannot be read: whether " +
                               file.path() + " is of this boot is not known");
        return out;
    }
    const bool same_boot = found && found->boot == boot;
    out.journal = believed(found, boot);
    std::erase_if(out.journal.leases, [&](const JournalLease& lease) {
        if (!cgroups.empty() && !is_limit_file(lease.file, cgroups)) {
            out.problems.push_back(gpusched::quoted(lease.file) + ": named by " + file.path() +
                                   ", but no io.max below " + std::string(cgroups) + ": nothing is written");
            return false;
        }
        const auto status = end_lease(files, lease);
        if (status == ok) {
            ++out.leases_ended;
            return true;
        }
        out.problems.push_back(lease.file + ": limit of " + gpusched::quoted(lease.tenant) +
                               " cannot be ended: " + enum_name(status));
        return false;
    });
    for (std::size_t i = 0; i < host.tenants.size(); ++i) {
        const auto& tenant = host.tenants[i];
        if (!tenant.is_protected) continue;
        auto& r = out.tenants.emplace_back();
        r.name = tenant.name;
        bool recorded = false;
        for (const auto& t : out.journal.tenants) recorded |= t.name == tenant.name;
        auto& entry = out.journal.of(tenant.name);
        if (!recorded) entry.now = tenant.start;
        const auto at_start = recorded ? as_recorded : found && !same_boot ? restarted : as_configured;
        const auto stands = [&](const Configuration& c) {
            MigLayout layout;
            if (r.status = mig.read(c.gpu, layout); r.status != ok || !layout.contains(c.instance))
                return false;
            if constexpr (requires { mig.complete(c.gpu, c.instance); }) {
                r.status = mig.complete(c.gpu, c.instance);
                return r.status == ok;
            }
            return true;
        };
        const auto settle = [&](const Configuration& c, RecoveryVerdict verdict) {
            r.verdict = verdict;
            const auto kept = std::pair(entry.now.cpus, entry.now.quota_percent);
            entry.now = c;
            std::tie(entry.now.cpus, entry.now.quota_percent) = kept;
            entry.pending.reset();
            entry.switched = entry.drained = false;
        };
        if (!structural && entry.pending) {
            // Where the tenant is only a backend can tell: the change stays in the journal.
            r.verdict = failed;
            r.status = not_supported;
            out.problems.push_back(gpusched::quoted(tenant.name) +
                                   ": a change of its instance was cut off, and there is no MIG backend to "
                                   "look: start once with one");
        } else if (!structural) {
            settle(entry.now, at_start);
        } else if (entry.pending) {
            const auto before = entry.now, after = *entry.pending;
            Configuration now;
            const auto& program = access[i].switch_over;
            r.status = recover_change(
                mig, before, after, entry.switched,
                [&](const Configuration& c) {
                    if (program.empty()) return not_supported;
                    const auto arguments = hook_arguments(program, host, c);
                    const auto result = run.run(std::span<const std::string>(arguments));
                    if (result.timed_out || result.code != 0)
                        out.problems.push_back(gpusched::quoted(tenant.name) + ": " +
                                               hook_failure(arguments, result));
                    return result.timed_out ? timeout : result.code == 0 ? ok : not_supported;
                },
                [&](int k) { pause_for(backoff_s * (1 << k)); }, now);
            if (r.status == ok)
                settle(now, now.gpu == before.gpu && now.instance == before.instance ? restored : completed);
            else
                r.verdict = failed;
        } else if (stands(entry.now)) {
            settle(entry.now, at_start);
        } else {
            r.verdict = r.status == ok ? missing : failed;
        }
        if (r.verdict == failed || r.verdict == missing)
            out.problems.push_back(gpusched::quoted(tenant.name) + ": " + enum_name(r.verdict) +
                                   (r.status == ok ? "" : std::string(" (") + enum_name(r.status) + ")") +
                                   ": its GPU instance must be seen to by hand" +
                                   (recorded ? "; where it should be is what " + file.path() + " says" : ""));
        // A pin may have been cut off before or after it was written.
        if (entry.cpuset && !access[i].cgroup.empty()) {
            const bool pinned = !(entry.now.cpus == CpuSet{});
            const auto status = set_cores(files, access[i].cgroup, entry.now.cpus, *entry.cpuset);
            if (status == ok && !pinned) entry.cpuset.reset();
            if (status != ok && status != not_found)
                out.problems.push_back(gpusched::quoted(tenant.name) +
                                       ": its cores cannot be set: " + enum_name(status));
        }
        r.now = entry.now;
    }
    if (const auto status = file.save(out.journal, host); status != ok)
        out.problems.push_back(file.path() + ": cannot be written: " + enum_name(status));
    return out;
}

}  // namespace gpusched::host

#ifdef GPUSCHED_HEADER_ONLY
#include <gpusched/host/impl/recovery.ipp>
#endif

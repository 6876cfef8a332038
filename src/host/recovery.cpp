// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/host/recovery.hpp>
#include <gpusched/host/replace_instance.hpp>

#include <algorithm>
#include <tuple>

namespace gpusched::host {

GPUSCHED_EXPORT std::vector<OwnedInstance>
owned_instances(const Host& host, const std::optional<Journal>& journal, const std::string& boot) {
    std::vector<OwnedInstance> owned;
    const auto add = [&](const Configuration& c) {
        const OwnedInstance one{c.gpu, c.instance};
        if (std::find(owned.begin(), owned.end(), one) == owned.end()) owned.push_back(one);
    };
    for (const auto& tenant : host.tenants) {
        if (!tenant.is_protected) continue;
        bool recorded = false;
        if (journal && !boot.empty() && journal->boot == boot)
            for (const auto& t : journal->tenants) {
                if (t.name != tenant.name) continue;
                recorded = true;
                add(t.now);
                if (t.pending) add(*t.pending);
            }
        // A tenant that has moved away has no claim to where it started: somebody else may be there now.
        if (!recorded) add(tenant.start);
    }
    return owned;
}

GPUSCHED_EXPORT bool is_limit_file(std::string_view path, std::string_view folder) {
    return path.starts_with(folder) && path.substr(folder.size()).starts_with('/') &&
           path.ends_with("/io.max") && path.find("/../") == std::string_view::npos;
}

GPUSCHED_EXPORT std::string boot_id(Files& files, const std::string& proc) {
    std::string text;
    if (files.read(proc + "/sys/kernel/random/boot_id", text) != 0) return {};
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
}

GPUSCHED_EXPORT Recovery recover_host(MigBackend& mig, Files& files, Programs& programs, const Host& host,
                                      const std::vector<TenantAccess>& access, JournalFile& file,
                                      const std::string& boot, bool structural, double backoff_s,
                                      std::string_view cgroups) {
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
            r.status = mig.complete(c.gpu, c.instance);
            return r.status == ok;
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
                    const auto result = programs.run(arguments);
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
                                   ": its GPU instance requires manual repair" +
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

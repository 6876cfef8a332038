// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/host/actuator.hpp>
#include <gpusched/host/cgroup.hpp>
#include <gpusched/host/mps.hpp>
#include <gpusched/host/replace_instance.hpp>
#include <gpusched/host/resume.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace gpusched::host {

/// Stops the tenant before the only instance it could run in is destroyed.
class HostActuator::DrainingMig final : public MigBackend {
  public:
    bool created = false;  ///< the new instance
    bool refused = false;  ///< what stands in the new place is somebody else's
    bool tried = false;    ///< to move the tenant there
    bool back = false;     ///< and back since

    DrainingMig(HostActuator& self, const Action& action, JournalTenant& entry)
        : self_(self), action_(action), entry_(entry) {}
    BackendStatus read(int gpu, MigLayout& layout) override { return self_.mig_.read(gpu, layout); }
    BackendStatus create(int gpu, MigInstance instance) override {
        const auto status = self_.mig_.create(gpu, instance);
        const bool is_new = gpu == action_.after.gpu && instance == action_.after.instance;
        created |= is_new && status == ok;
        refused |= is_new && status == insufficient_resources;
        return status;
    }
    BackendStatus destroy(int gpu, MigInstance instance) override {
        const auto& drain = self_.access(action_.tenant).drain;
        const bool own = gpu == action_.before.gpu && instance == action_.before.instance;
        if (own && !created && !entry_.drained && !drain.empty()) {
            entry_.drained = true;
            if (const auto status = self_.save(); status != ok) return status;
            if (const auto status = self_.hook(drain, action_.before); status != ok) return status;
        }
        // A program that failed to move the tenant may have moved it.
        const bool gone_to = gpu == action_.after.gpu && instance == action_.after.instance;
        if (gone_to && entry_.drained && tried && !drain.empty())
            if (const auto status = self_.hook(drain, action_.after); status != ok) return status;
        return self_.mig_.destroy(gpu, instance);
    }

  private:
    HostActuator& self_;
    const Action& action_;
    JournalTenant& entry_;
};

GPUSCHED_EXPORT HostActuator::HostActuator(MigBackend& mig, Files& files, Programs& programs,
                                           const Host& host, std::vector<TenantAccess> access,
                                           JournalFile file, Journal journal, double backoff_s)
    : mig_(mig), files_(files), programs_(programs), host_(host), access_(std::move(access)),
      file_(std::move(file)), journal_(std::move(journal)), backoff_s_(backoff_s) {}

GPUSCHED_EXPORT ActionReport HostActuator::act(const Decision& decision) {
    retry_releases();
    remember(decision);
    for (const auto& action : decision.actions) carry_out(action);
    return std::exchange(report_, {});
}

GPUSCHED_EXPORT ActionReport HostActuator::act(const Action& action) {
    carry_out(action);
    return std::exchange(report_, {});
}

GPUSCHED_EXPORT bool HostActuator::retry_releases() {
    for (const auto target : std::exchange(ending_, {})) static_cast<void>(release(target));
    return ending_.empty();
}

GPUSCHED_EXPORT HostActuator::Resumption HostActuator::resume(const std::vector<std::int32_t>& tenants,
                                                              bool looks_only) {
    Resumption out;
    auto& reasons = out.reasons;
    const auto all = [&](const auto& each) {
        for (const auto t : tenants)
            if (auto why = each(t, journal_.of(name(t))); !why.empty()) reasons.push_back(std::move(why));
    };
    all([&](std::int32_t, const JournalTenant& entry) { return resume_obstacle(mig_, host_, entry); });
    if (!reasons.empty() || looks_only) return out;
    const auto before = journal_;
    try {
        all([&](std::int32_t t, JournalTenant& entry) {
            return resume_settle(mig_, entry,
                                 [&](const auto& to) { return hook(access(t).switch_over, to); });
        });
        if (const auto status = reasons.empty() ? save() : ok; status != ok)
            reasons.push_back(file_.path() + ": cannot be written: " + enum_name(status));
    } catch (const BackendError& e) {
        reasons.emplace_back(e.what());  // a program that cannot be started
    }
    if (!reasons.empty()) journal_ = before;
    out.notes = std::exchange(report_.notes, {});
    return out;
}

GPUSCHED_EXPORT void HostActuator::carry_out(const Action& action) {
    ActionOutcome out{action.kind, action.tenant, action.target, BackendStatus::unknown, true};
    const bool guard = action.kind == ActionKind::throttle_io || action.kind == ActionKind::set_quota ||
                       action.kind == ActionKind::pin;
    // A program that cannot be started, or memory that is out, is a failure of this action only.
    try {
        perform(action, out);
        for (int k = 0; k < 3 && guard && out.status == in_use; ++k) {
            pause_for(backoff_s_ * (1 << k));
            perform(action, out);
        }
    } catch (const std::exception&) {
        out.restored = false;
    }
    report_.outcomes.push_back(out);
}

GPUSCHED_EXPORT void HostActuator::remember(const Decision& decision) {
    const auto& state = decision.state;
    if (decision.options.flags.dry_run || state.deeds == deeds_) return;
    const auto carryover = carryover_of(state, decision.options);
    journal_.carryover.clear();
    for (std::size_t i = 0; i < carryover.size(); ++i)
        if (host_.tenants[i].is_protected)
            journal_.carryover.push_back({host_.tenants[i].name, carryover[i]});
    journal_.carryover_s = decision.time_s;
    const auto status = save();
    if (status == ok) deeds_ = state.deeds;
    if (status != ok && !forgetful_)
        report_.notes.push_back(file_.path() +
                                ": what must outlive the controller cannot be written: " + enum_name(status));
    forgetful_ = status != ok;
}

GPUSCHED_EXPORT const TenantAccess& HostActuator::access(std::int32_t tenant) const {
    return access_[static_cast<std::size_t>(tenant)];
}

GPUSCHED_EXPORT const std::string& HostActuator::name(std::int32_t tenant) const {
    return host_.tenants[static_cast<std::size_t>(tenant)].name;
}

GPUSCHED_EXPORT void HostActuator::perform(const Action& action, ActionOutcome& out) {
    switch (action.kind) {
    case ActionKind::throttle_io:
        out.status = throttle(action);
        break;
    case ActionKind::release_io:
        out.status = release(action.target);
        break;
    case ActionKind::set_quota:
        out.status = quota(action);
        break;
    case ActionKind::pin:
        out.status = pin(action.tenant, action.after.cpus);
        break;
    case ActionKind::reconfigure:
        const auto end = reconfigure(action);
        out.status = end.status, out.restored = end.restored;
        break;
    }
}

GPUSCHED_EXPORT BackendStatus HostActuator::throttle(const Action& action) {
    const auto& to = access(action.target);
    if (to.cgroup.empty() || to.disks.empty()) return not_supported;
    // A limit that could not be ended would be taken for what was there before.
    if (is_limited(action.target))
        if (const auto status = release(action.target); status != ok) return status;
    Cgroup group(files_, to.cgroup);
    const auto limit = static_cast<std::uint64_t>(action.value) * 1'000'000;
    std::vector<IoMax> wanted;
    const auto leases = journal_.leases.size();
    auto status = ok;
    for (const auto& disk : to.disks) {
        IoMax before;
        if (status = group.io_max(disk, before); status != ok) break;
        journal_.leases.push_back({name(action.target), group.file("io.max"), io_max_text(before)});
        auto& after = wanted.emplace_back(before);
        after.read_bytes_per_s = std::min(before.read_bytes_per_s, limit);
        after.write_bytes_per_s = std::min(before.write_bytes_per_s, limit);
    }
    if (status == ok) status = save();
    if (status != ok) {
        journal_.leases.resize(leases);
        return status;
    }
    for (const auto& limits : wanted)
        if (status = group.set_io_max(limits); status != ok) break;
    if (status != ok) static_cast<void>(release(action.target));
    return status;
}

GPUSCHED_EXPORT bool HostActuator::is_limited(std::int32_t target) const {
    return std::any_of(journal_.leases.begin(), journal_.leases.end(),
                       [&](const JournalLease& lease) { return lease.tenant == name(target); });
}

GPUSCHED_EXPORT BackendStatus HostActuator::release(std::int32_t target) {
    auto status = ok;
    std::erase_if(journal_.leases, [&](const JournalLease& lease) {
        if (lease.tenant != name(target)) return false;
        const auto ended = end_lease(files_, lease);
        if (ended != ok) status = ended;
        return ended == ok;
    });
    const auto saved = save();
    std::erase(ending_, target);
    if (status != ok) ending_.push_back(target);
    return status != ok ? status : saved;
}

GPUSCHED_EXPORT BackendStatus HostActuator::quota(const Action& action) {
    const auto& to = access(action.target);
    if (to.mps_pipe.empty()) return not_supported;
    auto& entry = journal_.of(name(action.tenant));
    const auto before = std::exchange(entry.now.quota_percent, action.value);
    auto status = save();
    if (status != ok) {
        entry.now.quota_percent = before;
        return status;
    }
    MpsControl mps(programs_, to.mps_pipe);
    status = mps.set_default_percentage(action.value);
    if (status == ok && !to.restart.empty()) status = hook(to.restart, action.before);
    if (status != ok) {
        // Some of it may have been done: what the journal says is to be true of the daemon too.
        static_cast<void>(mps.set_default_percentage(before));
        entry.now.quota_percent = before;
        static_cast<void>(save());
    }
    return status;
}

GPUSCHED_EXPORT BackendStatus HostActuator::pin(std::int32_t tenant, const CpuSet& cpus) {
    auto& entry = journal_.of(name(tenant));
    if (cpus == entry.now.cpus) return ok;
    if (access(tenant).cgroup.empty()) return not_supported;
    const auto& folder = access(tenant).cgroup;
    if (!entry.cpuset) {
        std::string text;
        Cgroup group(files_, folder);
        auto status = group.read("cpuset.cpus", text);
        if (status == not_found && group.read("cgroup.threads", text) == ok) {
            // A group without the cpuset controller.
            text = "threads";
            status = ok;
        }
        if (status != ok) return status;
        while (!text.empty() && text.back() == '\n') text.pop_back();
        entry.cpuset = text;
    }
    const auto before = std::exchange(entry.now.cpus, cpus);
    auto status = save();
    const auto original = *entry.cpuset;
    if (status == ok) status = set_cores(files_, folder, cpus, original);
    if (status == ok && cpus == CpuSet{}) {
        entry.cpuset.reset();
        return save();
    }
    if (status != ok) {
        entry.now.cpus = before;
        if (set_cores(files_, folder, before, original) == ok && before == CpuSet{}) entry.cpuset.reset();
        static_cast<void>(save());
    }
    return status;
}

GPUSCHED_EXPORT BackendStatus HostActuator::hook(const std::vector<std::string>& program,
                                                 const Configuration& at) {
    if (program.empty()) return not_supported;
    const auto arguments = hook_arguments(program, host_, at);
    const auto result = programs_.run(arguments);
    if (result.timed_out || result.code != 0) report_.notes.push_back(hook_failure(arguments, result));
    return result.timed_out ? timeout : result.code == 0 ? ok : not_supported;
}

GPUSCHED_EXPORT Feedback HostActuator::reconfigure(const Action& action) {
    auto& entry = journal_.of(name(action.tenant));
    const auto& to = access(action.tenant);
    const bool same =
        action.before.gpu == action.after.gpu && action.before.instance == action.after.instance;
    if (to.switch_over.empty() && !same) return {true, not_supported, true};
    entry.pending = action.after;
    entry.switched = entry.drained = false;
    if (const auto status = save(); status != ok) {
        entry.pending.reset();
        return {true, status, true};
    }
    Feedback end{true, ok, true};
    if (!same) end = replace(action, entry);
    const bool settled = end.status == ok || (end.restored && !freezes(end.status));
    if (end.status == ok) {
        // Cores and a quota are a help, not a condition: where one cannot be set the change stands without both.
        if (const auto status = join_guards(action, entry); status != ok)
            report_.outcomes.push_back({ActionKind::pin, action.tenant, action.tenant, status});
        entry.now.gpu = action.after.gpu;
        entry.now.instance = action.after.instance;
    }
    if (settled) {
        entry.pending.reset();
        entry.switched = entry.drained = false;
    }
    // What stands is true whether or not it can be written down; a restart then finds the instances as they are.
    static_cast<void>(save());
    return end;
}

/// The quota and the cores that come with a change of instance: both, or neither.
GPUSCHED_EXPORT BackendStatus HostActuator::join_guards(const Action& action, JournalTenant& entry) {
    const auto before = entry.now.quota_percent;
    const auto set_quota = [&](std::int32_t percent) {
        auto status = not_supported;
        for (std::size_t j = 0; j < host_.tenants.size(); ++j)
            if (host_.tenants[j].client_of == action.tenant)
                status = quota({.kind = ActionKind::set_quota,
                                .tenant = action.tenant,
                                .target = static_cast<std::int32_t>(j),
                                .value = percent,
                                .before = action.after});
        return status;
    };
    auto status = action.after.quota_percent != before ? set_quota(action.after.quota_percent) : ok;
    if (status == ok && action.after.cpus != entry.now.cpus) {
        status = pin(action.tenant, action.after.cpus);
        if (status != ok && entry.now.quota_percent != before) static_cast<void>(set_quota(before));
    }
    return status;
}

GPUSCHED_EXPORT Feedback HostActuator::replace(const Action& action, JournalTenant& entry) {
    DrainingMig backend(*this, action, entry);
    const auto& program = access(action.tenant).switch_over;
    auto end = replace_instance(
        backend, host_, action.before, action.after,
        [&](const Configuration& to) {
            backend.back = to == action.before;
            backend.tried |= !backend.back;
            if (const auto status = hook(program, to); status != ok) return status;
            entry.switched = !backend.back;
            return save();
        },
        [&](int k) { pause_for(backoff_s_ * (1 << k)); });
    // Stopped, or sent to an instance that is gone: the tenant is put back where it was.
    if (end.status != ok && end.restored && !freezes(end.status) &&
        (entry.drained || entry.switched || (backend.created && !backend.back)))
        end.restored = hook(program, action.before) == ok;
    // What stands in the new place is somebody else's: a restart must not take it for the tenant's.
    if (backend.refused) entry.pending.reset();
    return end;
}

}  // namespace gpusched::host

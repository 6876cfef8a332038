// Actions on a real host: GPU instances, limits of block I/O, cores, quotas; each written into the journal before.
#pragma once

#include <gpusched/host/cgroup.hpp>
#include <gpusched/host/journal.hpp>
#include <gpusched/host/mps.hpp>
#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/resume.hpp>
#include <gpusched/host/tenant_access.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched::host {

/// How an action ended, for the log.
struct ActionOutcome {
    ActionKind kind = ActionKind::throttle_io;
    std::int32_t target = -1;
    BackendStatus status = BackendStatus::ok;
};

/// The `Actuator` of a real host. Actions are done when `act` returns; how a change of instance ended is kept for
/// `give_feedback`. A change that the journal cannot take is not begun.
template <MigBackend Mig, FileAccess Files, CommandRunner Run>
class HostActuator {
  public:
    /// @param access by tenant, as long as the host's
    /// @param journal what stands, as `recover_host` left it
    /// @param backoff_s wait before something in use is tried again; doubled each time
    HostActuator(Mig& mig, Files& files, Run& run, const Host& host, std::vector<TenantAccess> access,
                 JournalFile<Files> file, Journal journal, double backoff_s = 0.5)
        : mig_(mig), files_(files), run_(run), host_(host), access_(std::move(access)),
          file_(std::move(file)), journal_(std::move(journal)), backoff_s_(backoff_s),
          feedback_(host.tenants.size()), guards_(host.tenants.size(), ok) {}

    void act(const Action& action) {
        auto status = BackendStatus::unknown;
        const bool guard = action.kind == ActionKind::throttle_io || action.kind == ActionKind::set_quota ||
                           action.kind == ActionKind::pin;
        // A program that cannot be started, or memory that is out, is a failure of this action only.
        try {
            status = perform(action);
            for (int k = 0; k < 3 && guard && status == in_use; ++k) {
                pause_for(backoff_s_ * (1 << k));
                status = perform(action);
            }
        } catch (const std::exception&) {
            if (action.kind == ActionKind::reconfigure) answer(action.tenant, {true, status, false});
        }
        if (guard) guards_[static_cast<std::size_t>(action.tenant)] = status;
        outcomes_.push_back({action.kind, action.target, status});
    }
    /// Brings what must outlive the controller into the journal, whenever it is more than the same grown older. Not in a dry
    /// run. What cannot be written is tried again in the next window; actions that cannot be written are not begun.
    void remember(const ControllerState& state, const ControllerOptions& options, double time_s) {
        if (options.flags.dry_run || state.deeds == deeds_) return;
        const auto memory = memory_of(state, options);
        journal_.memory.clear();
        for (std::size_t i = 0; i < memory.size(); ++i)
            if (host_.tenants[i].is_protected) journal_.memory.push_back({host_.tenants[i].name, memory[i]});
        journal_.memory_s = time_s;
        const auto status = save();
        if (status == ok) deeds_ = state.deeds;
        if (status != ok && !forgetful_)
            notes_.push_back(file_.path() +
                             ": what must outlive the controller cannot be written: " + enum_name(status));
        forgetful_ = status != ok;
    }
    /// The ends of changes since the last call, and which guards are not in place. Also tries again to end limits that could not be ended.
    void give_feedback(Observation& seen) {
        for (std::size_t i = 0; i < feedback_.size(); ++i) seen.feedback[i] = std::exchange(feedback_[i], {});
        seen.guards = guards_;
        std::fill(guards_.begin(), guards_.end(), ok);
        retry_releases();
    }
    /// An operator has looked: lets frozen tenants go on, all of them or none.
    /// @param looks_only nothing is done, as in a dry run
    /// @return what is in the way; empty: nothing is
    [[nodiscard]] std::vector<std::string> resume(const std::vector<std::int32_t>& tenants, bool looks_only) {
        std::vector<std::string> reasons;
        const auto all = [&](const auto& each) {
            for (const auto t : tenants)
                if (auto why = each(t, journal_.of(name(t))); !why.empty()) reasons.push_back(std::move(why));
        };
        all([&](std::int32_t, const JournalTenant& entry) { return resume_obstacle(mig_, host_, entry); });
        if (!reasons.empty() || looks_only) return reasons;
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
        return reasons;
    }
    [[nodiscard]] std::vector<ActionOutcome> take_outcomes() { return std::exchange(outcomes_, {}); }
    /// Lines on programs that failed, since the last call.
    [[nodiscard]] std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }
    [[nodiscard]] const Journal& journal() const noexcept { return journal_; }
    /// Limits that should have ended and did not.
    [[nodiscard]] bool releases_left() const noexcept { return !ending_.empty(); }
    void retry_releases() {
        for (const auto target : std::exchange(ending_, {})) static_cast<void>(release(target));
    }

  private:
    using enum BackendStatus;

    BackendStatus save() { return file_.save(journal_, host_); }
    const TenantAccess& access(std::int32_t tenant) const {
        return access_[static_cast<std::size_t>(tenant)];
    }
    const std::string& name(std::int32_t tenant) const {
        return host_.tenants[static_cast<std::size_t>(tenant)].name;
    }
    void answer(std::int32_t tenant, Feedback feedback) {
        feedback_[static_cast<std::size_t>(tenant)] = feedback;
    }

    BackendStatus perform(const Action& action) {
        switch (action.kind) {
        case ActionKind::throttle_io:
            return throttle(action);
        case ActionKind::release_io:
            return release(action.target);
        case ActionKind::set_quota:
            return quota(action);
        case ActionKind::pin:
            return pin(action.tenant, action.after.cpus);
        case ActionKind::reconfigure:
            return reconfigure(action);
        }
        return not_supported;
    }

    BackendStatus throttle(const Action& action) {
        const auto& to = access(action.target);
        if (to.cgroup.empty() || to.disks.empty()) return not_supported;
        // A limit that could not be ended would be taken for what was there before.
        if (is_limited(action.target))
            if (const auto status = release(action.target); status != ok) return status;
        Cgroup<Files> group(files_, to.cgroup);
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

    bool is_limited(std::int32_t target) const {
        return std::any_of(journal_.leases.begin(), journal_.leases.end(),
                           [&](const JournalLease& lease) { return lease.tenant == name(target); });
    }

    BackendStatus release(std::int32_t target) {
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

    BackendStatus quota(const Action& action) {
        const auto& to = access(action.target);
        if (to.mps_pipe.empty()) return not_supported;
        auto& entry = journal_.of(name(action.tenant));
        const auto before = std::exchange(entry.now.quota_percent, action.value);
        auto status = save();
        if (status != ok) {
            entry.now.quota_percent = before;
            return status;
        }
        MpsControl<Run> mps(run_, to.mps_pipe);
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

    BackendStatus pin(std::int32_t tenant, const CpuSet& cpus) {
        auto& entry = journal_.of(name(tenant));
        if (cpus == entry.now.cpus) return ok;
        if (access(tenant).cgroup.empty()) return not_supported;
        const auto& folder = access(tenant).cgroup;
        if (!entry.cpuset) {
            std::string text;
            Cgroup<Files> group(files_, folder);
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

    BackendStatus hook(const std::vector<std::string>& program, const Configuration& at) {
        if (program.empty()) return not_supported;
        const auto arguments = hook_arguments(program, host_, at);
        const auto result = run_.run(std::span<const std::string>(arguments));
        if (result.timed_out || result.code != 0) notes_.push_back(hook_failure(arguments, result));
        return result.timed_out ? timeout : result.code == 0 ? ok : not_supported;
    }

    /// Stops the tenant before the only instance it could run in is destroyed.
    struct Draining {
        HostActuator& self;
        const Action& action;
        JournalTenant& entry;
        bool created = false, refused = false, tried = false, back = false;

        BackendStatus read(int gpu, MigLayout& layout) { return self.mig_.read(gpu, layout); }
        BackendStatus create(int gpu, MigInstance instance) {
            const auto status = self.mig_.create(gpu, instance);
            const bool is_new = gpu == action.after.gpu && instance == action.after.instance;
            created |= is_new && status == ok;
            refused |= is_new && status == insufficient_resources;
            return status;
        }
        BackendStatus destroy(int gpu, MigInstance instance) {
            const auto& drain = self.access(action.tenant).drain;
            const bool own = gpu == action.before.gpu && instance == action.before.instance;
            if (own && !created && !entry.drained && !drain.empty()) {
                entry.drained = true;
                if (const auto status = self.save(); status != ok) return status;
                if (const auto status = self.hook(drain, action.before); status != ok) return status;
            }
            // A program that failed to move the tenant may have moved it.
            const bool gone_to = gpu == action.after.gpu && instance == action.after.instance;
            if (gone_to && entry.drained && tried && !drain.empty())
                if (const auto status = self.hook(drain, action.after); status != ok) return status;
            return self.mig_.destroy(gpu, instance);
        }
    };

    BackendStatus reconfigure(const Action& action) {
        auto& entry = journal_.of(name(action.tenant));
        const auto& to = access(action.tenant);
        const bool same =
            action.before.gpu == action.after.gpu && action.before.instance == action.after.instance;
        if (to.switch_over.empty() && !same) {
            answer(action.tenant, {true, not_supported, true});
            return not_supported;
        }
        entry.pending = action.after;
        entry.switched = entry.drained = false;
        if (const auto status = save(); status != ok) {
            entry.pending.reset();
            answer(action.tenant, {true, status, true});
            return status;
        }
        Feedback end{true, ok, true};
        if (!same) end = replace(action, entry);
        if (end.status == ok && action.after.cpus != entry.now.cpus) {
            // Cores are a help, not a condition: where they cannot be set the change stands without.
            if (const auto status = pin(action.tenant, action.after.cpus); status != ok) {
                outcomes_.push_back({ActionKind::pin, action.tenant, status});
                guards_[static_cast<std::size_t>(action.tenant)] = status;
            }
        }
        const bool settled = end.status == ok || (end.restored && !freezes(end.status));
        if (end.status == ok) {
            const auto cpus = entry.now.cpus;
            entry.now = action.after;
            entry.now.cpus = cpus;
        }
        if (settled) {
            entry.pending.reset();
            entry.switched = entry.drained = false;
        }
        // What stands is true whether or not it can be written down; a restart then finds the instances as they are.
        static_cast<void>(save());
        answer(action.tenant, end);
        return end.status;
    }

    Feedback replace(const Action& action, JournalTenant& entry) {
        Draining backend{*this, action, entry};
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

    Mig& mig_;
    Files& files_;
    Run& run_;
    const Host& host_;
    std::vector<TenantAccess> access_;
    JournalFile<Files> file_;
    Journal journal_;
    double backoff_s_;
    std::vector<Feedback> feedback_;
    std::vector<BackendStatus> guards_;  ///< by the tenant for whose sake
    std::vector<ActionOutcome> outcomes_{};
    std::vector<std::string> notes_{};
    std::vector<std::int32_t> ending_{};
    std::int64_t deeds_ = 0;  ///< of the state that the journal has
    bool forgetful_ = false;  ///< the journal could not take it
};

}  // namespace gpusched::host

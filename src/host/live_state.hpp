// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/live_files.hpp"
#include "host/memory_meter.hpp"

#include <gpusched/control/audit.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/host/actuator.hpp>
#include <gpusched/host/live.hpp>
#include <gpusched/host/mps.hpp>
#include <gpusched/host/names.hpp>
#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/recovery.hpp>
#include <gpusched/host/signals.hpp>
#include <gpusched/host/system_command.hpp>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace gpusched::host {

struct LiveController::Impl {
    struct Source {
        Impl& self;
        void read(Observation& seen) const {
            self.signals->read(seen, live_detail::clock_s(CLOCK_MONOTONIC));
            self.measure(seen);
            self.vouch(seen);
        }
    };
    struct Clock {
        double monotonic_s() const { return live_detail::clock_s(CLOCK_MONOTONIC); }
        double wall_s() const { return live_detail::clock_s(CLOCK_REALTIME); }
    };
    using Run = control::Runner<Source, HostActuator, Clock, live_detail::AuditFile>;

    ControllerOptions options;
    LiveOptions live;
    SystemFiles files{};
    SystemCommand commands;
    std::optional<SystemCommand> driver{};  ///< its programs keep the lock: a restart waits for what they do
    std::vector<TenantAccess> access{};
    std::optional<Nvml> nvml{};
    std::vector<int> handles{};
    std::unique_ptr<MigBackend> mig{}, by_nvml{};  ///< the second reads only, where `mig` starts programs
    MigBackend* eyes = nullptr;                    ///< the one of them that windows look with
    detail::MemoryMeter meter{};
    detail::Descriptor lock{}, groups{};
    live_detail::AuditFile audit{};
    std::unique_ptr<HostSignals> signals{};
    std::unique_ptr<HostActuator> actuator{};
    Source source{*this};
    Clock clock{};
    std::unique_ptr<Run> runner{};
    std::vector<std::string> lines{};
    AdmissionQueue queue;
    std::vector<AdmissionAnswer> answers{};  ///< that nobody has taken yet
    bool known = true;
    bool released = false;         ///< disabled since
    bool resume_accepted = false;  ///< the next window tells the decision core

    Impl(ControllerOptions o, LiveOptions l)
        : options((validate(o), std::move(o))), live((validate(l, options), std::move(l))),
          commands(live.command_limit_s, -1, options.flags.dry_run ? std::string() : program()),
          queue(static_cast<std::size_t>(live.admission.capacity)) {
        for (const auto& t : live.tenants) {
            access.push_back(t.access);
            if (!t.access.cgroup.empty()) access.back().cgroup = live.cgroups + "/" + t.access.cgroup;
        }
    }

    [[nodiscard]] std::string program() const { return live.journal + ".program"; }
    /// Tries until it is done or the time is over.
    template <class F>
    void wait_for(const F& done, const std::string& why) const {
        for (int tries = 0; !done(); ++tries) {
            if (tries * 0.1 >= live.lock_wait_s) throw BackendError(why);
            pause_for(0.1);
        }
    }
    void take_host() {
        const auto name = live.journal + ".lock";
        lock = live_detail::open_or_throw(name, O_RDWR | O_CREAT | O_NOFOLLOW);
        // A command that a killed controller left behind may still be at work; it ends soon.
        wait_for([&] { return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0; },
                 name + ": another controller has this journal, or a command of one is at work");
        // One with another journal would limit and restore the same groups.
        groups = detail::Descriptor(live.cgroups, O_RDONLY | O_DIRECTORY);
        if (groups)
            wait_for([&] { return ::flock(groups.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; },
                     live.cgroups + ": another controller has these control groups");
        wait_for([&] { return program_at_work(program()) == 0; },
                 program() +
                     ": a tenant's program, started by a controller that is gone, is at work (process " +
                     number_text(program_at_work(program())) + ")");
        driver.emplace(live.command_limit_s, lock.get());
    }
    void say(const std::string& line) { lines.push_back(line); }
    void off(bool& flag, const char* name, const std::string& why) {
        if (flag) say(std::string(name) + " is off: " + why);
        flag = false;
    }
    [[nodiscard]] const std::string& name(std::size_t i) const { return options.host.tenants[i].name; }

    /// What a dry run starts from: as recorded, nothing mended.
    Journal look(const std::optional<Journal>& found, const std::string& boot) {
        auto journal = believed(found, boot);
        for (std::size_t i = 0; i < access.size(); ++i) {
            if (!options.host.tenants[i].is_protected) continue;
            bool recorded = false;
            for (const auto& t : journal.tenants) recorded |= t.name == name(i);
            auto& t = journal.of(name(i));
            if (!recorded) t.now = options.host.tenants[i].start;
            if (t.pending) say(name(i) + ": a change was cut off; a dry run leaves it so");
        }
        return journal;
    }
    Journal mend(JournalFile& file, const std::string& boot) {
        auto r = recover_host(*mig, files, commands, options.host, access, file, boot,
                              live.mig != MigControl::none, live.backoff_s, live.cgroups);
        if (r.leases_ended > 0)
            say(number_text(r.leases_ended) + " limits of a controller that is gone ended");
        for (const auto& t : r.tenants)
            say(t.name + ": " + enum_name(t.verdict) + ", " + describe(options.host, t.now));
        if (!r.known()) {
            known = false;
            std::string text = "the host's state is not known:";
            for (const auto& problem : r.problems) text += "\n  - " + problem;
            throw BackendError(text);
        }
        return r.journal;
    }
    [[nodiscard]] Configuration at(std::size_t tenant) const {
        for (const auto& t : actuator->journal().tenants)
            if (t.name == name(tenant)) return t.now;
        return options.host.tenants[tenant].start;
    }
    void measure(Observation& seen) {
        if (!signals->looked()) return;
        const auto line = meter.read(options.host, seen, [&](std::size_t i) { return at(i); });
        if (!line.empty()) say(line);
    }
    std::unique_ptr<LatencySource> source_of(std::size_t i) const {
        const auto& l = live.tenants[i].latency;
        const double tau = options.host.tenants[i].tau_ms;
        switch (l.kind) {
        case LatencyKind::none:
            break;
        case LatencyKind::file:
            return std::make_unique<LatencyFile>(l.path, tau);
        case LatencyKind::socket:
            return std::make_unique<LatencySocket>(l.path, tau);
        case LatencyKind::prometheus:
            return std::make_unique<LatencyHistogram>(l.path, l.metric, l.labels, l.ms_per_unit, tau);
        }
        return nullptr;
    }
    void start() {
        if (runner) throw InvalidInput("start: called twice");
        require_ends_of_programs();
        load_nvml();
        JournalFile file(files, live.journal);
        std::optional<Journal> found;
        try {
            found = file.load(options.host);
        } catch (const BackendError&) {
            known = false;
            throw;
        }
        const auto boot = boot_id(files, live.proc);
        auto owned = owned_instances(options.host, found, boot);
        if (live.mig == MigControl::nvml)
            mig = std::make_unique<NvmlMig>(*nvml, options.host.gpus, handles, owned);
        else if (live.mig == MigControl::nvidia_smi)
            mig = std::make_unique<SmiMig>(*driver, options.host.gpus, owned, live.pci);
        else
            mig = std::make_unique<NoMig>(options.host);
        check_tables();
        probe_mig();
        probe_guards();
        auto journal = options.flags.dry_run ? look(found, boot) : mend(file, boot);
        // Before what stands takes the place of what is configured.
        const auto carryover =
            remembered(journal, options.host, live_detail::clock_s(CLOCK_MONOTONIC), options.window_s);
        for (auto& tenant : options.host.tenants)
            if (tenant.is_protected) tenant.start = journal.of(tenant.name).now;
        probe_memory();
        std::vector<TenantSource> sources(access.size());
        for (std::size_t i = 0; i < access.size(); ++i)
            sources[i] = {source_of(i), access[i].cgroup, access[i].disks};
        tell_carryover(carryover);
        actuator = std::make_unique<HostActuator>(*mig, files, commands, options.host, access, file,
                                                  std::move(journal), live.backoff_s);
        signals = std::make_unique<HostSignals>(options.host, files, *eyes,
                                                SignalSources{.tenants = std::move(sources),
                                                              .proc = live.proc,
                                                              .numa_disks = live.numa_disks,
                                                              .root_nics = live.root_nics,
                                                              .nvml = nvml ? &*nvml : nullptr,
                                                              .handles = handles,
                                                              .layout_every = live.layout_every,
                                                              .window_s = options.window_s});
        runner = std::make_unique<Run>(options, source, *actuator, clock, audit, WeightedScore{}, carryover);
        std::string record;
        append_start_record(record, options, carryover);
        audit.write(record);
    }
    void tell_carryover(const ControllerCarryover& carryover) {
        for (std::size_t i = 0; i < carryover.size(); ++i) {
            const auto& m = carryover[i];
            if (m.structural.empty() && m.blocked.empty() && m.cooldown_windows == 0) continue;
            say(name(i) + ": remembered: " + number_text(m.structural.size()) + " structural actions, " +
                number_text(m.blocked.size()) + " changes not to be repeated, " +
                number_text(m.cooldown_windows) + " windows of cool-down");
        }
    }
    void tell(const StepResult& result) {
        for (const auto& e : result.events) say(describe(options, e));
        for (const auto& c : result.wished)
            if (options.flags.dry_run) say("would " + describe(options, c));
        for (const auto& c : result.actions) say(describe(options, c));
        tell_outcomes();
    }
    void tell_outcomes() {
        const auto report = runner->take_report();
        for (const auto& note : report.notes) say(note);
        for (const auto& o : report.outcomes) {
            if (o.kind == ActionKind::reconfigure) signals->look_again();
            const auto& whom = name(static_cast<std::size_t>(o.target));
            say(std::string(enum_name(o.kind)) + " of " + whom + ": " + enum_name(o.status));
            std::string record;
            control::append_outcome_record(record, o.kind, whom, o.status);
            audit.write(record);
        }
    }
    // What there is (live_probe.cpp).
    void load_nvml();
    void check_tables();
    void probe_mig();
    void probe_guards();
    void probe_memory();
    // An operator has come (live_resume.cpp).
    [[nodiscard]] std::vector<std::int32_t> frozen() const;
    void tell_resume(ResumeVerdict verdict, const std::vector<std::string>& texts);
    void resume();
    void vouch(Observation& seen);
    // Newcomers (live_admission.cpp).
    [[nodiscard]] ControllerState state_for_newcomers() const;
    void start_newcomer(AdmissionAnswer& answer);
    void admit_next();
    void need_start() const {
        if (!runner) throw InvalidInput("start: not called yet");
    }
};

}  // namespace gpusched::host

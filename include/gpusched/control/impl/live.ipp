#pragma once

#include <gpusched/config.hpp>
#include <gpusched/control/audit.hpp>
#include <gpusched/control/detail/live_files.hpp>
#include <gpusched/control/detail/mig_port.hpp>
#include <gpusched/control/host_signals.hpp>
#include <gpusched/control/live.hpp>
#include <gpusched/control/recovery.hpp>
#include <gpusched/control/system_command.hpp>
#include <gpusched/core/checks.hpp>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace gpusched::control {

struct LiveController::Impl {
    using Mig = detail::MigPort;
    using Act = HostActuator<Mig, SystemFiles, SystemCommand>;
    using Signals = HostSignals<Mig, SystemFiles>;
    struct Source {
        Impl& self;
        void read(Observation& seen) const {
            self.signals->read(seen, live_detail::clock_s(CLOCK_MONOTONIC));
            self.actuator->give_feedback(seen);
        }
    };
    struct Clock {
        double monotonic_s() const { return live_detail::clock_s(CLOCK_MONOTONIC); }
        double wall_s() const { return live_detail::clock_s(CLOCK_REALTIME); }
    };
    using Run = Runner<Source, Act, Clock, live_detail::AuditFile>;

    ControllerOptions options;
    LiveOptions live;
    SystemFiles files{};
    SystemCommand commands;
    std::optional<SystemCommand> driver{};  ///< its programs keep the lock: a restart waits for what they do
    std::vector<TenantAccess> access{};
    std::optional<Nvml> nvml{};
    std::vector<int> handles{};
    std::unique_ptr<Mig> mig{};
    live_detail::Descriptor lock{}, groups{};
    live_detail::AuditFile audit{};
    std::unique_ptr<Signals> signals{};
    std::unique_ptr<Act> actuator{};
    Source source{*this};
    Clock clock{};
    std::unique_ptr<Run> runner{};
    std::vector<std::string> lines{};
    bool known = true;

    Impl(ControllerOptions o, LiveOptions l)
        : options(std::move(o)), live(std::move(l)),
          commands(live.command_limit_s, -1, options.flags.dry_run ? std::string() : program()) {
        validate(options);
        if (live.tenants.size() != options.host.tenants.size())
            throw InvalidInput("live.tenants: expected one per tenant of the host");
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
        lock.open(name, O_RDWR | O_CREAT | O_NOFOLLOW);
        // A command that a killed controller left behind may still be at work; it ends soon.
        wait_for([&] { return ::flock(lock.fd, LOCK_EX | LOCK_NB) == 0; },
                 name + ": another controller has this journal, or a command of one is at work");
        // One with another journal would limit and restore the same groups.
        groups.fd = ::open(live.cgroups.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (groups.fd >= 0)
            wait_for([&] { return ::flock(groups.fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; },
                     live.cgroups + ": another controller has these control groups");
        wait_for([&] { return program_at_work(program()) == 0; },
                 program() +
                     ": a tenant's program, started by a controller that is gone, is at work (process " +
                     number_text(program_at_work(program())) + ")");
        driver.emplace(live.command_limit_s, lock.fd);
    }
    void say(const std::string& line) { lines.push_back(line); }
    void off(bool& flag, const char* name, const std::string& why) {
        if (flag) say(std::string(name) + " is off: " + why);
        flag = false;
    }
    [[nodiscard]] const std::string& name(std::size_t i) const { return options.host.tenants[i].name; }

    void load_nvml() {
        if (live.nvml_library.empty()) return say("NVML: not asked for; PCIe traffic is unknown");
        try {
            nvml.emplace(live.nvml_library);
            for (std::size_t g = 0; g < options.host.gpus.size(); ++g) {
                int handle = 0;
                const auto status = live.pci.empty() ? nvml->find(static_cast<int>(g), handle)
                                                     : nvml->find(live.pci[g], handle);
                if (status != BackendStatus::ok)
                    throw BackendError("NVML: GPU " + number_text(g) + ": " + enum_name(status));
                handles.push_back(handle);
            }
            say("NVML: " + live.nvml_library + ", " + number_text(handles.size()) + " GPUs");
        } catch (const BackendError& e) {
            nvml.reset();
            if (live.mig == "nvml") throw;
            say(std::string(e.what()) + "; PCIe traffic is unknown");
        }
    }
    void check_tables() {
        for (std::size_t g = 0; nvml && g < handles.size(); ++g) {
            std::vector<NvmlProfile> found;
            double x = 0;
            const auto pcie = nvml->pcie_bytes(handles[g], x);
            say("GPU " + number_text(g) + ": PCIe bytes " +
                (pcie == BackendStatus::ok ? "counted"
                                           : std::string("not counted (") + enum_name(pcie) + ")"));
            if (nvml->profiles(handles[g], found) != BackendStatus::ok) continue;
            for (const auto& p : mig_device(options.host.gpus[g].device).profiles)
                for (const auto& f : found)
                    if (f.id == p.id && (f.starts != p.starts || f.sm_count != p.sm_count))
                        say("GPU " + number_text(g) + ": the driver has " + number_text(f.sm_count) +
                            " SMs for " + std::string(p.key) + ", the table of " +
                            options.host.gpus[g].device + " " + number_text(p.sm_count) +
                            (f.starts != p.starts ? ", and other starts" : ""));
        }
    }
    void probe_mig() {
        auto& f = options.flags;
        bool readable = live.mig != "none", programs = false;
        for (std::size_t g = 0; readable && g < options.host.gpus.size(); ++g) {
            MigLayout layout;
            const auto status = mig->read(static_cast<int>(g), layout);
            readable = status == BackendStatus::ok;
            say("GPU " + number_text(g) + ": " +
                (readable
                     ? number_text(layout.size()) + " instances by " + live.mig
                     : std::string("instances cannot be read by ") + live.mig + ": " + enum_name(status)));
        }
        for (std::size_t i = 0; i < access.size(); ++i)
            programs |= options.host.tenants[i].is_protected && !access[i].switch_over.empty();
        const auto why = live.mig == "none" ? "no MIG backend"
                         : !readable        ? "instances cannot be read"
                         : !programs        ? "no tenant has a switch_over program"
                                            : "";
        if (*why != '\0') {
            off(f.place, "place", why);
            off(f.mig, "mig", why);
        }
    }
    static bool writable(const std::string& path) { return ::access(path.c_str(), R_OK | W_OK) == 0; }
    void probe_guards() {
        auto& f = options.flags;
        bool io = false, pin = false, mps = false;
        for (std::size_t i = 0; i < access.size(); ++i) {
            const auto& a = access[i];
            const auto& tenant = options.host.tenants[i];
            if (!tenant.is_protected && !a.cgroup.empty() && !a.disks.empty()) {
                const bool good = writable(a.cgroup + "/io.max");
                say(name(i) + ": io.max " + (good ? "can be written" : "cannot be written"));
                io |= good;
            }
            if (tenant.is_protected && !a.cgroup.empty()) {
                const bool cpuset = writable(a.cgroup + "/cpuset.cpus");
                const bool threads = !cpuset && writable(a.cgroup + "/cgroup.threads") &&
                                     ::access((a.cgroup + "/cpuset.cpus").c_str(), F_OK) != 0;
                say(name(i) + ": " +
                    (cpuset    ? "cpuset.cpus can be written"
                     : threads ? "no cpuset.cpus; the cores of its threads are set"
                               : "neither cpuset.cpus nor cgroup.threads can be written"));
                pin |= cpuset || threads;
            }
            if (tenant.client_of >= 0 && !a.mps_pipe.empty()) {
                const auto status = MpsControl<SystemCommand>(commands, a.mps_pipe).probe();
                say(name(i) + ": MPS daemon " +
                    (status == BackendStatus::ok ? "answers"
                                                 : std::string("does not answer: ") + enum_name(status)) +
                    (a.restart.empty() ? "; without a restart program quotas reach new clients only" : ""));
                mps |= status == BackendStatus::ok;
            }
        }
        if (!io) off(f.guard_io, "guard_io", "no other tenant's io.max can be written");
        if (!pin) off(f.pin, "pin", "no protected tenant's cores can be set");
        if (!mps) off(f.guard_mps, "guard_mps", "no MPS daemon answers");
    }
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
    Journal mend(JournalFile<SystemFiles>& file, const std::string& boot) {
        auto r = recover_host(*mig, files, commands, options.host, access, file, boot, live.mig != "none",
                              live.backoff_s, live.cgroups);
        if (r.leases_ended > 0)
            say(number_text(r.leases_ended) + " limits of a controller that is gone ended");
        for (const auto& t : r.tenants)
            say(t.name + ": " + enum_name(t.verdict) + ", GPU " + number_text(t.now.gpu) + " " +
                std::string(mig_device(options.host.gpus[static_cast<std::size_t>(t.now.gpu)].device)
                                .profiles[t.now.instance.profile]
                                .key) +
                " at " + number_text(int{t.now.instance.start}));
        if (!r.known()) {
            known = false;
            std::string text = "the host's state is not known:";
            for (const auto& problem : r.problems) text += "\n  - " + problem;
            throw BackendError(text);
        }
        return r.journal;
    }
    std::unique_ptr<LatencySource> source_of(std::size_t i) const {
        const auto& l = live.tenants[i].latency;
        const double tau = options.host.tenants[i].tau_ms;
        if (l.kind == "file") return std::make_unique<LatencyFile>(l.path, tau);
        if (l.kind == "socket") return std::make_unique<LatencySocket>(l.path, tau);
        if (l.kind == "prometheus")
            return std::make_unique<LatencyHistogram>(l.path, l.metric, l.labels, l.ms_per_unit, tau);
        return nullptr;
    }
    void start() {
        if (runner) throw InvalidInput("start: called twice");
        require_ends_of_programs();
        load_nvml();
        JournalFile<SystemFiles> file(files, live.journal);
        std::optional<Journal> found;
        try {
            found = file.load(options.host);
        } catch (const BackendError&) {
            known = false;
            throw;
        }
        const auto boot = boot_id(files, live.proc);
        auto owned = owned_instances(options.host, found, boot);
        if (live.mig == "nvml")
            mig = std::make_unique<detail::MigPortOf<NvmlMig>>(*nvml, options.host.gpus, handles, owned);
        else if (live.mig == "nvidia-smi")
            mig = std::make_unique<detail::MigPortOf<SmiMig<SystemCommand>>>(*driver, options.host.gpus,
                                                                             owned, live.pci);
        else
            mig = std::make_unique<detail::MigPortOf<detail::NoMig>>(detail::NoMig{options.host});
        check_tables();
        probe_mig();
        probe_guards();
        auto journal = options.flags.dry_run ? look(found, boot) : mend(file, boot);
        // Before what stands takes the place of what is configured.
        const auto memory =
            remembered(journal, options.host, live_detail::clock_s(CLOCK_MONOTONIC), options.window_s);
        for (auto& tenant : options.host.tenants)
            if (tenant.is_protected) tenant.start = journal.of(tenant.name).now;
        std::vector<TenantSource> sources(access.size());
        for (std::size_t i = 0; i < access.size(); ++i)
            sources[i] = {source_of(i), access[i].cgroup, access[i].disks};
        tell_memory(memory);
        actuator = std::make_unique<Act>(*mig, files, commands, options.host, access, file,
                                         std::move(journal), live.backoff_s);
        signals = std::make_unique<Signals>(options.host, files, *mig, nvml ? &*nvml : nullptr, handles,
                                            std::move(sources), live.proc, live.numa_disks, live.layout_every,
                                            options.window_s);
        runner = std::make_unique<Run>(options, source, *actuator, clock, audit, WeightedScore{}, memory);
        std::string record;
        append_start_record(record, options, memory);
        audit.write(record);
    }
    void tell_memory(const ControllerMemory& memory) {
        for (std::size_t i = 0; i < memory.size(); ++i) {
            const auto& m = memory[i];
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
        for (const auto& note : actuator->take_notes()) say(note);
        for (const auto& o : actuator->take_outcomes()) {
            if (o.kind == ActionKind::reconfigure) signals->look_again();
            const auto& whom = name(static_cast<std::size_t>(o.target));
            say(std::string(enum_name(o.kind)) + " of " + whom + ": " + enum_name(o.status));
            const nlohmann::ordered_json record{{"record", "outcome"},
                                                {"kind", enum_name(o.kind)},
                                                {"target", whom},
                                                {"status", enum_name(o.status)}};
            audit.write(record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
        }
    }
    void need_start() const {
        if (!runner) throw InvalidInput("start: not called yet");
    }
};

GPUSCHED_INLINE LiveController::LiveController(ControllerOptions options, LiveOptions live, std::string audit)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(live))) {
    if (impl_->options.flags.dry_run)
        impl_->driver.emplace(impl_->live.command_limit_s);  // it looks only
    else
        impl_->take_host();
    if (!audit.empty()) impl_->audit.open(audit);
}

GPUSCHED_INLINE LiveController::~LiveController() = default;

GPUSCHED_INLINE std::vector<std::string> LiveController::start() {
    impl_->start();
    return std::exchange(impl_->lines, {});
}

GPUSCHED_INLINE std::vector<std::string> LiveController::window() {
    impl_->need_start();
    impl_->tell(impl_->runner->window());
    if (const auto n = impl_->signals->take_ignored(); n > 0)
        impl_->say(number_text(n) + " lines of latencies could not be read");
    return std::exchange(impl_->lines, {});
}

GPUSCHED_INLINE std::vector<std::string> LiveController::release() {
    impl_->need_start();
    impl_->audit.must = false;
    impl_->runner->release();
    impl_->actuator->retry_releases();
    impl_->tell_outcomes();
    if (impl_->actuator->releases_left()) impl_->say("a limit is left; the next start tries again");
    return std::exchange(impl_->lines, {});
}

GPUSCHED_INLINE bool LiveController::state_known() const noexcept { return impl_->known; }

GPUSCHED_INLINE const ControllerOptions& LiveController::options() const noexcept { return impl_->options; }

}  // namespace gpusched::control

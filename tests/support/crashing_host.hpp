// A host that outlives the process which works on it: GPU instances in shared memory, control groups and the journal in
// files. The process can be killed (SIGKILL) at any point: before and after every command and every use of a file, and
// in the middle of a creation or of writing a file.
#pragma once

#include <gpusched/core/text.hpp>
#include <gpusched/host/actuator.hpp>
#include <gpusched/host/nvidia_smi.hpp>
#include <gpusched/host/recovery.hpp>

#include <support/control_host.hpp>
#include <support/fake_smi.hpp>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpusched::test {

struct SharedHost {
    std::array<std::array<FakeSmi::Gi, 8>, 2> instances{};
    std::array<std::size_t, 2> count{};
    int next_id = 1;
    bool forbidden = false;
    bool flag = false;  ///< for a process to say something before it ends
    int points = 0, kill_at = -1;

    void point() {
        if (points++ == kill_at) ::kill(::getpid(), SIGKILL);
    }
    static SharedHost& make() {
        void* const memory =
            ::mmap(nullptr, sizeof(SharedHost), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        return *new (memory) SharedHost;
    }
};

/// `nvidia-smi mig` and the tenant's programs on that host.
struct SharedRun final : host::Programs {
    SharedHost& host;
    FakeSmi smi{};             ///< with its faults
    int failing_switches = 0;  ///< so many of the tenant's programs do their work and end with 1

    explicit SharedRun(SharedHost& on) : host(on) {}
    using Programs::run;
    host::CommandResult run(std::span<const std::string> arguments, std::string_view) override {
        load();
        host.point();
        host::CommandResult result;
        if (arguments[0] == "nvidia-smi") {
            const bool creates = std::find(arguments.begin(), arguments.end(), "-cgi") != arguments.end();
            const auto before = smi.next_id;
            result = smi.run(arguments);
            if (creates && smi.next_id != before && smi.fault == FakeSmi::Fault::none) {
                // The GPU instance comes first, its compute instance a little later.
                auto& made = smi.gpus[static_cast<std::size_t>(std::stoi(arguments.back()))].back();
                made.compute = false;
                store();
                host.point();
                made.compute = true;
            }
        } else {
            result.code = hook(arguments);
            if (arguments[0] == "switch" && failing_switches > 0 && failing_switches-- > 0)
                result = {1, false, "moving\nwarm-up failed\n"};
        }
        store();
        host.point();
        return result;
    }

  private:
    /// `switch GPU PROFILE SLICE` and `drain`.
    int hook(std::span<const std::string> arguments) {
        int code = arguments[0] == "drain" ? 0 : 1;
        const auto& device = control::mig_device("A100-40GB");
        for (std::size_t g = 0; g < 2; ++g)
            for (auto& i : smi.gpus[g]) {
                if (!i.mine) continue;
                i.client =
                    arguments[0] == "switch" && std::stoul(arguments[1]) == g && i.compute &&
                    std::stoi(arguments[3]) == i.start &&
                    device.profiles[static_cast<std::size_t>(device.find(arguments[2]))].id == i.profile;
                if (i.client) code = 0;
            }
        return code;
    }
    void load() {
        for (std::size_t g = 0; g < 2; ++g)
            smi.gpus[g].assign(host.instances[g].begin(),
                               host.instances[g].begin() + static_cast<std::ptrdiff_t>(host.count[g]));
        smi.next_id = host.next_id;
    }
    void store() {
        for (std::size_t g = 0; g < 2; ++g) {
            host.count[g] = smi.gpus[g].size();
            std::copy(smi.gpus[g].begin(), smi.gpus[g].end(), host.instances[g].begin());
        }
        host.next_id = smi.next_id;
        host.forbidden |= smi.forbidden;
    }
};

/// Real files, with points at which the process may die and a fault at a call of one's choice.
struct CrashingFiles final : host::Files {
    SharedHost& host;
    gpusched::host::SystemFiles files{};
    int calls = 0, fault_at = -1, error = EIO;

    explicit CrashingFiles(SharedHost& on) : host(on) {}
    bool faulty() { return calls++ == fault_at; }
    int read(const std::string& path, std::string& text) override {
        if (faulty()) return error;
        host.point();
        return files.read(path, text);
    }
    int write(const std::string& path, std::string_view text) override {
        if (faulty()) return error;
        host.point();
        const int result = path.ends_with("/io.max") ? limit(path, text) : files.write(path, text);
        // The kernel says what a group really has.
        if (path.ends_with("/cpuset.cpus") && result == 0)
            static_cast<void>(files.create(path + ".effective", text == "\n" ? "0-7\n" : text));
        host.point();
        return result;
    }
    /// io.max keeps a line per disk that has a limit.
    int limit(const std::string& path, std::string_view text) {
        std::string now;
        const int error_of = files.read(path, now);
        if (error_of != 0) return error_of;
        const auto disk = text.substr(0, text.find(' '));
        std::string next;
        for (std::string_view rest = now; !rest.empty();) {
            const auto line = take_line(rest);
            if (!line.starts_with(disk)) next += std::string(line) + "\n";
        }
        if (host::parse_io_max(text, disk) != host::parse_io_max("", disk)) next += std::string(text) + "\n";
        return files.write(path, next);
    }
    int create(const std::string& path, std::string_view text) override {
        if (faulty()) return error;
        host.point();
        static_cast<void>(files.create(path, text.substr(0, text.size() / 2)));
        host.point();
        return files.create(path, text);
    }
    int rename(const std::string& from, const std::string& to) override {
        if (faulty()) return error;
        host.point();
        const int result = files.rename(from, to);
        host.point();
        return result;
    }
};

/// The host with T1 in 2g at 0 of GPU 0, instances of others around it, and control groups for T1 and T2.
struct CrashWorld {
    control::ControllerOptions options = control_options();
    SharedHost& shared = SharedHost::make();
    std::filesystem::path folder{};
    control::Configuration before{}, after{};
    std::vector<host::TenantAccess> access{};

    explicit CrashWorld(bool disjoint) {
        options.host.tenants[3].is_protected = false;
        auto pattern = (std::filesystem::exists("/dev/shm") ? std::string("/dev/shm") : std::string("/tmp")) +
                       "/gpusched-test-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) std::abort();
        folder = pattern;
        before = {.gpu = 0, .instance = at("2g", 0)};
        after = disjoint ? control::Configuration{.gpu = 1, .instance = at("2g", 4)}
                         : control::Configuration{.gpu = 0, .instance = at("4g", 0)};
        after.cpus = control::parse_cpus("4-5");
        put(0, at("2g", 0), true);
        put(0, at("1g", 6), false);
        if (!disjoint) put(0, at("2g", 4), false);
        put(1, at("3g", 0), false);
        access.resize(4);
        access[0].cgroup = (folder / "t1").string();
        access[0].switch_over = {"switch", "{gpu}", "{profile}", "{slice}"};
        access[0].drain = {"drain"};
        access[1].cgroup = (folder / "t2").string();
        access[1].disks = {"259:0", "259:1"};
        for (const char* name : {"t1", "t2"}) std::filesystem::create_directory(folder / name);
        put_text("t1/cpuset.cpus", "\n");
        put_text("t1/cpuset.cpus.effective", "0-7\n");
        put_text("t2/io.max", "259:0 rbps=max wbps=2000000 riops=max wiops=max\n");
    }
    ~CrashWorld() {
        std::filesystem::remove_all(folder);
        ::munmap(&shared, sizeof shared);
    }
    CrashWorld(const CrashWorld&) = delete;
    CrashWorld& operator=(const CrashWorld&) = delete;

    static control::MigInstance at(const char* key, int start) {
        return {static_cast<std::uint8_t>(control::mig_device("A100-40GB").find(key)),
                static_cast<std::uint8_t>(start)};
    }
    void put(std::size_t gpu, control::MigInstance i, bool mine) {
        const auto& p = control::mig_device("A100-40GB").profiles[i.profile];
        shared.instances[gpu][shared.count[gpu]++] = {
            p.id, shared.next_id++, i.start, p.memory_slices, true, mine, mine};
    }
    void put_text(const char* name, const char* text) const { std::ofstream(folder / name) << text; }
    std::string text(const char* name) const {
        std::ostringstream out;
        out << std::ifstream(folder / name).rdbuf();
        return out.str();
    }
    std::string journal() const { return (folder / "journal.json").string(); }

    /// A start: recovery alone.
    host::Recovery recover(SharedRun& run, CrashingFiles& files, const std::string& boot = "b1",
                           bool structural = true) const {
        host::JournalFile file(files, journal());
        host::SmiMig mig(run, options.host.gpus,
                         owned_instances(options.host, file.load(options.host), boot));
        return host::recover_host(mig, files, run, options.host, access, file, boot, structural, 0,
                                  folder.string());
    }
    /// What a controller may do: limits T2, moves or enlarges T1, ends the limit, pins and unpins.
    std::vector<control::Feedback> work(SharedRun& run, CrashingFiles& files) const {
        using namespace control;
        using namespace host;
        const auto found = recover(run, files);
        JournalFile file(files, journal());
        SmiMig mig(run, options.host.gpus, owned_instances(options.host, found.journal, "b1"));
        HostActuator actuator(mig, files, run, options.host, access, file, found.journal, 0);
        std::vector<Feedback> ends;
        const auto act = [&](const Action& action) {
            for (const auto& end : actuator.act(action).outcomes)
                if (end.kind == ActionKind::reconfigure) ends.push_back({true, end.status, end.restored});
            actuator.retry_releases();
        };
        act({.kind = ActionKind::throttle_io, .tenant = 0, .target = 1, .value = 500});
        // As the runner does: what has been decided is remembered before it is begun.
        auto state = initial_state(options);
        state.now = 7;
        state.clock_s = 14;
        state.tenants[0].past.ever_structural = true;
        state.tenants[0].past.last_structural = 7;
        state.tenants[0].past.structural_s[0] = 14;
        state.tenants[0].past.pause_s[0] = options.pause_s;
        state.tenants[0].past.structural_count = 1;
        state.deeds = 1;
        static_cast<void>(actuator.act(Decision{state, options, 1000}));
        act({.kind = ActionKind::reconfigure, .tenant = 0, .target = 0, .before = before, .after = after});
        act({.kind = ActionKind::release_io, .tenant = 0, .target = 1});
        if (!ends.empty() && ends[0].status == BackendStatus::ok) {
            auto unpinned = after;
            unpinned.cpus = {};
            act({.kind = ActionKind::pin, .tenant = 0, .target = 0, .before = after, .after = unpinned});
        }
        return ends;
    }
    /// Runs it in a process of its own that dies at `kill_at`. @return whether it died
    template <class F>
    bool killed(int kill_at, const F& what) const {
        shared.points = 0;
        shared.kill_at = kill_at;
        const auto child = ::fork();
        if (child == 0) {
            try {
                SharedRun run{shared};
                CrashingFiles files{shared};
                what(run, files);
            } catch (...) {
                ::_exit(3);
            }
            ::_exit(0);
        }
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        shared.kill_at = -1;
        if (WIFEXITED(status) && WEXITSTATUS(status) != 0) std::abort();
        return WIFSIGNALED(status);
    }

    std::vector<FakeSmi::Gi> list(bool mine) const {
        std::vector<FakeSmi::Gi> out;
        for (std::size_t g = 0; g < 2; ++g)
            for (std::size_t k = 0; k < shared.count[g]; ++k)
                if (shared.instances[g][k].mine == mine) out.push_back(shared.instances[g][k]);
        return out;
    }
    /// Whether the tenant runs there, in a whole instance, and nowhere else is anything of ours.
    bool runs_only_in(const control::Configuration& c) const {
        const auto& p = control::mig_device("A100-40GB").profiles[c.instance.profile];
        const auto mine = list(true);
        if (mine.size() != 1) return false;
        for (std::size_t k = 0; k < shared.count[static_cast<std::size_t>(c.gpu)]; ++k) {
            const auto& i = shared.instances[static_cast<std::size_t>(c.gpu)][k];
            if (i.mine) return i.profile == p.id && i.start == c.instance.start && i.compute && i.client;
        }
        return false;
    }
};

}  // namespace gpusched::test

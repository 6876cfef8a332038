// Actions on a host whose programs fail: what the journal says stays true.
#include <gpusched/host/actuator.hpp>

#include <support/catch.hpp>
#include <support/control_host.hpp>

#include <cerrno>
#include <map>
#include <new>
#include <string>
#include <vector>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;

namespace {

struct NoInstances final : MigBackend {
    BackendStatus read(int, MigLayout&) override { return BackendStatus::ok; }
    BackendStatus create(int, MigInstance) override { return BackendStatus::ok; }
    BackendStatus destroy(int, MigInstance) override { return BackendStatus::ok; }
};

struct Memory final : Files {
    std::map<std::string, std::string> texts{};
    bool out = false;  ///< no memory is left
    int read(const std::string& path, std::string& text) override {
        if (out) throw std::bad_alloc();
        const auto at = texts.find(path);
        if (at == texts.end()) return ENOENT;
        text = at->second;
        return 0;
    }
    int busy = 0;         ///< so many writes of limits find them in use
    bool broken = false;  ///< limits cannot be written
    int write(const std::string& path, std::string_view text) override {
        if (path.ends_with("/io.max") && broken) return EIO;
        if (path.ends_with("/io.max") && busy > 0 && busy-- > 0) return EBUSY;
        texts[path] = text;
        return 0;
    }
    int create(const std::string& path, std::string_view text) override { return write(path, text); }
    int rename(const std::string& from, const std::string& to) override {
        texts[to] = texts[from];
        return 0;
    }
};

/// The MPS daemon, and a program that restarts its client.
struct Daemon final : Programs {
    std::string percentage = "100";
    int restart_code = 0, restarts = 0;
    CommandResult run(std::span<const std::string> arguments, std::string_view input) override {
        if (arguments[0] == "restart-t3") {
            ++restarts;
            return {restart_code, false, "no such unit\n"};
        }
        constexpr std::string_view set = "set_default_active_thread_percentage ";
        if (input.starts_with(set)) percentage = input.substr(set.size(), input.size() - set.size() - 1);
        return {0, false, input.starts_with("get_server_list") ? "" : percentage + ".0\n"};
    }
};

struct World {
    ControllerOptions options = test::control_options();
    NoInstances mig{};
    Memory files{};
    Daemon programs{};
    HostActuator actuator;
    ActionReport report{};  ///< of the last action

    World()
        : actuator(mig, files, programs, options.host, access(), JournalFile(files, "/j"), journal(options),
                   0) {}
    static std::vector<TenantAccess> access() {
        std::vector<TenantAccess> out(4);
        out[1].cgroup = "/g/t2", out[1].disks = {"259:0"};
        out[2].mps_pipe = "/run/mps", out[2].restart = {"restart-t3"};
        return out;
    }
    static Journal journal(const ControllerOptions& options) {
        Journal out;
        out.of("T1").now = options.host.tenants[0].start;
        return out;
    }
    BackendStatus act(ActionKind kind, std::int32_t target, std::int32_t value) {
        const auto& at = options.host.tenants[0].start;
        report = actuator.act(
            Action{.kind = kind, .tenant = 0, .target = target, .value = value, .before = at, .after = at});
        return report.outcomes.at(0).status;
    }
};

}  // namespace

TEST_CASE("a quota whose client does not restart is taken back, in the journal and in the daemon") {
    World w;
    CHECK(w.act(ActionKind::set_quota, 2, 75) == BackendStatus::ok);
    CHECK(w.programs.percentage == "75");
    w.programs.restart_code = 5;
    CHECK(w.act(ActionKind::set_quota, 2, 50) == BackendStatus::not_supported);
    CHECK(w.programs.percentage == "75");
    CHECK(w.actuator.journal().tenants[0].now.quota_percent == 75);
    CHECK(parse_journal(w.files.texts["/j"], w.options.host).tenants[0].now.quota_percent == 75);
    CHECK(w.report.notes == std::vector<std::string>{"program 'restart-t3' ended with code 5: no such unit"});
}

TEST_CASE("what a program says is cut between characters") {
    const auto said = [](const std::string& output) {
        return hook_failure({"p"}, {.code = 1, .output = output});
    };
    const std::string start = "program 'p' ended with code 1: ";
    CHECK(said("first\nlast\n") == start + "last");
    const std::string almost(198, 'x'), full(199, 'x');
    CHECK(said(full + "\u00e9") == start + full);
    CHECK(said(almost + "\u00e9y") == start + almost + "\u00e9");
    CHECK(said(std::string(300, '\x80')) == "program 'p' ended with code 1");
}

TEST_CASE("memory that is out is a failure of that action only") {
    World w;
    w.files.texts["/g/t2/io.max"] = "";
    w.files.out = true;
    CHECK(w.act(ActionKind::throttle_io, 1, 500) == BackendStatus::unknown);
    w.files.out = false;
    CHECK(w.act(ActionKind::throttle_io, 1, 500) == BackendStatus::ok);
}

TEST_CASE("a guard that is not in place is reported for the tenant for whose sake it was") {
    World w;
    CHECK(w.act(ActionKind::throttle_io, 1, 500) == BackendStatus::not_found);  // no io.max
    REQUIRE(w.report.outcomes.size() == 1);
    CHECK(w.report.outcomes[0].kind == ActionKind::throttle_io);
    CHECK(w.report.outcomes[0].tenant == 0);
    CHECK(w.report.outcomes[0].target == 1);
    w.files.texts["/g/t2/io.max"] = "";
    CHECK(w.act(ActionKind::throttle_io, 1, 500) == BackendStatus::ok);
    CHECK(w.report.outcomes.size() == 1);
    w.programs.restart_code = 5;
    CHECK(w.act(ActionKind::set_quota, 2, 50) == BackendStatus::not_supported);
    CHECK(w.report.outcomes[0].tenant == 0);
    CHECK(w.act(ActionKind::pin, 0, 0) == BackendStatus::ok);  // on the cores that it has
    CHECK(w.report.outcomes.size() == 1);
}

TEST_CASE("a limit that could not be ended is tried again in the act phase, with or without actions") {
    World w;
    w.files.texts["/g/t2/io.max"] = "";
    REQUIRE(w.act(ActionKind::throttle_io, 1, 500) == BackendStatus::ok);
    w.files.broken = true;
    CHECK(w.act(ActionKind::release_io, 1, 0) != BackendStatus::ok);
    const auto state = initial_state(w.options);
    CHECK(w.actuator.act(Decision{state, w.options, 1}).outcomes.empty());
    CHECK(w.actuator.journal().leases.size() == 1);
    w.files.broken = false;
    CHECK(w.actuator.act(Decision{state, w.options, 2}).outcomes.empty());
    CHECK(w.actuator.journal().leases.empty());
}

TEST_CASE("what is in use is tried three more times") {
    // The first try writes the limit and takes it back; each of the next begins with taking it back.
    for (const int busy : {1, 4, 5}) {
        World w;
        auto& limit = w.files.texts["/g/t2/io.max"];
        w.files.busy = busy;
        const bool good = busy < 5;
        CHECK(w.act(ActionKind::throttle_io, 1, 500) == (good ? BackendStatus::ok : BackendStatus::in_use));
        CHECK((limit.find("rbps=500000000") != std::string::npos) == good);
        CHECK(w.actuator.journal().leases.size() == 1);
        w.actuator.retry_releases();
        CHECK(w.actuator.journal().leases.size() == (good ? 1u : 0u));
    }
}

TEST_CASE("a limit that cannot be ended is not taken for what was there before") {
    World w;
    auto& limit = w.files.texts["/g/t2/io.max"];
    const std::string before = "259:0 rbps=max wbps=2000000 riops=max wiops=max";
    limit = before;
    REQUIRE(w.act(ActionKind::throttle_io, 1, 500) == BackendStatus::ok);
    w.files.broken = true;
    CHECK(w.act(ActionKind::release_io, 1, 0) != BackendStatus::ok);
    CHECK(w.act(ActionKind::throttle_io, 1, 250) != BackendStatus::ok);
    CHECK(w.actuator.journal().leases.size() == 1);
    CHECK(!w.actuator.retry_releases());
    w.files.broken = false;
    CHECK(w.act(ActionKind::throttle_io, 1, 250) == BackendStatus::ok);
    CHECK(w.act(ActionKind::release_io, 1, 0) == BackendStatus::ok);
    CHECK(limit == before);
    CHECK(w.actuator.journal().leases.empty());
}

TEST_CASE("a quota and cores that come with a change of instance: both, or neither") {
    struct Layouts final : MigBackend {
        std::vector<MigLayout> at{2};
        BackendStatus read(int gpu, MigLayout& layout) override {
            layout = at[static_cast<std::size_t>(gpu)];
            return BackendStatus::ok;
        }
        BackendStatus create(int gpu, MigInstance instance) override {
            at[static_cast<std::size_t>(gpu)].add(instance);
            return BackendStatus::ok;
        }
        BackendStatus destroy(int gpu, MigInstance instance) override {
            at[static_cast<std::size_t>(gpu)].remove(instance);
            return BackendStatus::ok;
        }
    };
    const auto options = test::control_options();
    const auto& start = options.host.tenants[0].start;
    auto after = start;
    after.instance.start = 4;
    after.quota_percent = 75;
    after.cpus.add(1);
    const auto run = [&](int restart_code, bool cores) {
        Layouts mig;
        mig.at[0].add(start.instance);
        Memory files;
        if (cores) files.texts = {{"/g/t1/cpuset.cpus", ""}, {"/g/t1/cpuset.cpus.effective", "1"}};
        Daemon programs;
        programs.restart_code = restart_code;
        auto access = World::access();
        access[0].cgroup = "/g/t1";
        access[0].switch_over = {"move-t1"};
        HostActuator actuator(mig, files, programs, options.host, access, JournalFile(files, "/j"),
                              World::journal(options), 0);
        const auto report = actuator.act(Action{
            .kind = ActionKind::reconfigure, .tenant = 0, .target = 0, .before = start, .after = after});
        REQUIRE(!report.outcomes.empty());
        CHECK(report.outcomes.back().kind == ActionKind::reconfigure);
        CHECK(report.outcomes.back().status == BackendStatus::ok);
        const auto now = actuator.journal().tenants[0].now;
        CHECK(now.instance == after.instance);
        CHECK(parse_journal(files.texts["/j"], options.host).tenants[0].now == now);
        CHECK(programs.percentage == std::to_string(now.quota_percent));
        return std::pair(report.outcomes.size(), now);
    };
    const auto done = run(0, true);
    CHECK(done.first == 1);
    CHECK(done.second == after);
    auto bare = after;
    bare.quota_percent = 100;
    bare.cpus = {};
    for (const auto& failed : {run(5, true), run(0, false)}) {
        CHECK(failed.first == 2);  // told as a guard that is not in place
        CHECK(failed.second == bare);
    }
}

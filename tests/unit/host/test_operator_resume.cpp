// An operator comes to a frozen controller: on a host over NVML, and at any point of it SIGKILL.
#include <gpusched/control/audit.hpp>
#include <gpusched/host/resume.hpp>
#include <gpusched/host/system_command.hpp>

#include <support/catch.hpp>
#include <support/crashing_host.hpp>
#include <support/instances.hpp>
#include <support/live_host.hpp>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <spawn.h>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Matchers::ContainsSubstring;
using test::any;
using test::LiveHost;

namespace {

/// T1 is told where to run by a program that writes it down.
struct Frozen : LiveHost {
    std::unique_ptr<LiveController> controller{};

    Frozen() {
        live.tenants[0].access.switch_over = {"sh",    "-c",        "echo $0 $1 $2 >> " + moves(),
                                              "{gpu}", "{profile}", "{slice}"};
        options.dwell = 4;
        options.cool_down = 2;
    }
    std::string moves() const { return (folder / "moves").string(); }
    static std::string text(const std::string& path) {
        std::ostringstream out;
        out << std::ifstream(path).rdbuf();
        return out.str();
    }
    std::string last_move() const {
        const auto all = text(moves());
        const auto end = all.rfind('\n');
        if (end == all.npos) return "";
        const auto begin = all.rfind('\n', end - 1);
        return all.substr(begin == all.npos ? 0 : begin + 1, end - (begin == all.npos ? 0 : begin + 1));
    }
    void start() {
        controller.reset();
        controller = std::make_unique<LiveController>(options, live, audit());
        controller->start();
    }
    std::vector<std::string> window() {
        slow();
        return controller->window();
    }
    /// @return what was told in so many windows
    std::vector<std::string> windows(int n) {
        std::vector<std::string> out;
        for (int k = 0; k < n; ++k)
            for (auto& line : window()) out.push_back(std::move(line));
        return out;
    }
    /// One fails so that nobody knows how it ended, at a call so many after now.
    void fail(int calls, int code, bool after_effect, bool for_good = false) const {
        auto& state = test::fake_nvml();
        state.fault_at = state.calls + calls;
        state.fault_code = code;
        state.after_effect = after_effect;
        state.for_good = for_good;
    }
    static void heal() { test::fake_nvml().fault_at = -1; }
    static bool stands(bool where_it_was) {
        for (std::size_t g = 0; g < 2; ++g)
            for (const auto& gi : test::fake_nvml().gpus[g].instances)
                if (gi.used && gi.mine && gi.id != 3 &&  // T4's
                    where_it_was == (g == 0 && gi.start == 0 && gi.profile == 14))
                    return true;
        return false;
    }
    Journal journal() const { return parse_journal(text(live.journal), options.host); }
    bool pending() const {
        for (const auto& t : journal().tenants)
            if (t.pending) return true;
        return false;
    }
    void require_replay() const {
        const auto replay = replay_audit(text(audit()), options);
        INFO(replay.expected << replay.found);
        REQUIRE(replay.first_difference == -1);
        REQUIRE(replay.windows > 0);
    }
};

/// When a process was started: field 22 of its stat.
std::string start_ticks(pid_t process) {
    auto rest = Frozen::text("/proc/" + std::to_string(process) + "/stat");
    std::istringstream fields(rest.substr(rest.rfind(')') + 1));
    std::string field;
    for (int k = 3; k <= 22; ++k) fields >> field;
    return field;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t n = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
    return n;
}

}  // namespace

TEST_CASE("an operator for whom nobody waits: a line, a record, and no window knows of it") {
    Frozen f;
    f.controller = std::make_unique<LiveController>(f.options, f.live, f.audit());
    CHECK_THROWS_AS(f.controller->resume(), InvalidInput);
    CHECK(!f.controller->waits_for_operator());
    f.controller->start();
    CHECK(f.controller->resume() ==
          std::vector<std::string>{"resume not needed: nothing waits for an operator"});
    f.windows(3);
    const auto log = f.text(f.audit());
    CHECK(count(log, R"({"record":"resume","verdict":"not needed","reasons":["nothing waits)") == 1);
    CHECK(count(log, R"("operator_resume":true)") == 0);
    f.require_replay();
}

TEST_CASE("a GPU that was lost and is back: refused before, HOLD ends after ten windows, as the log says") {
    Frozen f;
    f.start();
    f.windows(1);
    f.fail(0, 15, false, true);
    CHECK(any(f.windows(1), "(row 20, cause unknown): GPU lost"));
    REQUIRE(f.controller->waits_for_operator());
    const auto refused = f.controller->resume();
    CHECK(any(refused, "resume refused: 'T1': GPU 0 cannot be read: gpu_is_lost"));
    CHECK(any(refused, "resume refused: 'T4': GPU 1 cannot be read: gpu_is_lost"));
    f.heal();
    CHECK(!any(f.windows(30), "telemetry is back"));
    REQUIRE(f.controller->waits_for_operator());
    // The operator made the instance again: it is T1's, and the controller's to change.
    CHECK(f.controller->resume() ==
          std::vector<std::string>{"resume accepted: T1 goes on after ten fresh windows in GPU 0 2g at 0",
                                   "resume accepted: T4 goes on after ten fresh windows in GPU 1 1g at 0"});
    CHECK(f.text(f.moves()).empty());  // no change had begun
    CHECK(!any(f.windows(9), "hold -> "));
    CHECK(!f.controller->waits_for_operator());
    CHECK(any(f.windows(3), "T1: hold -> cooldown (row 23"));
    CHECK(any(f.windows(12), "reconfigure of T1: ok"));
    CHECK(!test::fake_nvml().forbidden);
    CHECK(count(f.text(f.audit()), R"("operator_resume":true)") == 1);
    f.require_replay();
}

TEST_CASE("what was true when the operator came has to be true of the next window too") {
    Frozen f;
    f.start();
    f.windows(1);
    f.fail(0, 15, false, true);
    f.windows(1);
    f.heal();
    CHECK(any(f.controller->resume(), "resume accepted"));
    test::fake_nvml().gpus[1].instances[0].used = false;
    CHECK(any(f.windows(1), "resume refused: 'T4': GPU 1 1g at 0 stands no more"));
    CHECK(f.controller->waits_for_operator());
    CHECK(any(f.controller->resume(), "resume refused: 'T4': its instance, GPU 1 1g at 0, does not stand"));
    // Another id, as after every creation.
    test::fake_nvml().gpus[1].instances[0].used = true;
    test::fake_nvml().gpus[1].instances[0].id = test::fake_nvml().next_id++;
    CHECK(any(f.controller->resume(), "resume accepted"));
    CHECK(any(f.windows(12), "T4: hold -> cooldown (row 23"));
    CHECK(count(f.text(f.audit()), R"("operator_resume":true)") == 1);
    CHECK(count(f.text(f.audit()), R"("verdict":"refused")") == 2);
    f.require_replay();
}

TEST_CASE("the window after it looks at the instances, however seldom others do") {
    Frozen f;
    f.options.flags.place = f.options.flags.mig = false;
    f.live.layout_every = 3;
    f.start();
    f.windows(1);
    auto& own = test::fake_nvml().gpus[0].instances[0];
    own.used = false;
    CHECK(any(f.windows(3), "own instance missing"));
    own.used = true;
    own.id = test::fake_nvml().next_id++;
    CHECK(any(f.controller->resume(), "resume accepted: T1"));
    CHECK(!any(f.windows(1), "resume refused"));
    CHECK(!f.controller->waits_for_operator());
}

TEST_CASE("a change with an unknown end, at any call of it: the operator, then a restart") {
    int when = 0;
    {
        Frozen f;
        f.start();
        while (!any(f.window(), "reconfigure of T1")) ++when;
    }
    int accepted = 0, refused = 0;
    for (const bool after_effect : {false, true})
        for (int call = 0;; call += testing_support::stride) {
            Frozen f;
            f.start();
            f.windows(when);
            f.fail(call, 999, after_effect);
            const int target = test::fake_nvml().fault_at;
            f.windows(1);
            const bool over = test::fake_nvml().calls <= target;
            f.heal();
            if (over) break;
            f.windows(1);
            INFO(after_effect << " call " << call);
            REQUIRE(!test::fake_nvml().forbidden);
            if (!f.controller->waits_for_operator()) continue;
            const bool begun = f.pending(), old_stands = f.stands(true), new_stands = f.stands(false);
            const auto told = f.controller->resume();
            for (const auto& line : told) UNSCOPED_INFO(line);
            if (old_stands && !new_stands) {
                ++accepted;
                REQUIRE(any(told, "resume accepted: T1"));
                REQUIRE(!f.pending());
                if (begun) REQUIRE(f.last_move() == "0 2g 0");
                const auto later = f.windows(40);
                REQUIRE(any(later, "T1: hold -> cooldown (row 23"));
                REQUIRE(any(later, "reconfigure of T1: ok"));
                REQUIRE(!test::fake_nvml().forbidden);
                REQUIRE(!f.pending());
            } else {
                ++refused;
                REQUIRE(any(told, old_stands ? "stands as well" : "does not stand"));
                REQUIRE(f.pending() == begun);
                REQUIRE(!any(f.windows(15), "T1: hold ->"));
            }
            f.controller->release();
            f.require_replay();
            f.start();
            REQUIRE(!f.controller->waits_for_operator());
            REQUIRE(!f.pending());
            REQUIRE(f.stands(true) != f.stands(false));
            REQUIRE(!test::fake_nvml().forbidden);
        }
    CHECK(accepted > testing_support::instances(10));
    CHECK(refused > testing_support::instances(10));
}

TEST_CASE("a program that is still at work, or cannot say where T1 runs, or a journal that takes nothing") {
    Frozen f;
    f.start();
    f.windows(1);
    f.fail(0, 15, false, true);
    f.windows(1);
    f.heal();
    pid_t child = 0;
    std::string sleep = "sleep", long_time = "600";
    char* const arguments[] = {sleep.data(), long_time.data(), nullptr};
    REQUIRE(::posix_spawnp(&child, "sleep", nullptr, nullptr, arguments, environ) == 0);
    std::ofstream(f.live.journal + ".program") << child << " " << start_ticks(child) << "\n";
    CHECK(any(f.controller->resume(),
              "resume refused: a program that was started for a change is at work: process " +
                  std::to_string(child)));
    CHECK(f.controller->waits_for_operator());
    ::kill(child, SIGKILL);
    int status = 0;
    CHECK(::waitpid(child, &status, 0) == child);
    // The file beside the journal cannot be made: a folder is in its place.
    std::filesystem::create_directory(f.live.journal + ".new");
    CHECK(any(f.controller->resume(), "resume refused: " + f.live.journal + ": cannot be written"));
    CHECK(!any(f.windows(15), "hold -> "));
    std::filesystem::remove(f.live.journal + ".new");
    CHECK(any(f.controller->resume(), "resume accepted"));
    CHECK(any(f.windows(12), "T1: hold -> cooldown"));
    f.require_replay();
}

TEST_CASE("a program that could not be killed is still at work when the operator comes") {
    Frozen f;
    f.live.command_limit_s = 1.5;
    // It leaves the group that is killed, and notes its number, long before the limit: perl starts in milliseconds.
    const auto pid = (f.folder / "pid").string();
    f.live.tenants[0].access.switch_over = {"perl", "-e",
                                            "setpgrp(0, getpgrp(getppid())); open(my $note, '>', '" + pid +
                                                "') or die; print $note $$; close($note); sleep(600)",
                                            "{gpu}"};
    f.start();
    while (!f.controller->waits_for_operator()) f.windows(1);
    // Whatever else has been run since.
    const auto process = f.text(pid);
    REQUIRE(!process.empty());
    CHECK(any(f.controller->resume(), "is at work: process " + process));
    ::kill(std::stoi(process), SIGKILL);
    auto lines = f.controller->resume();
    for (int k = 0; k < 200 && any(lines, "is at work"); ++k) {
        pause_for(0.01);
        lines = f.controller->resume();
    }
    CHECK(any(lines, f.stands(true) && f.stands(false) ? "stands as well" : "does not stand"));
}

TEST_CASE("after a release the controller is DISABLED until an operator resumes") {
    Frozen f;
    f.start();
    f.windows(1);
    f.controller->release();
    CHECK(any(f.windows(1), "-> disabled (row 1"));
    CHECK(!any(f.windows(20), "reconfigure"));
    CHECK(f.controller->resume() == std::vector<std::string>{"resume accepted: enabled again"});
    CHECK(any(f.windows(1), "disabled -> observe (row 24"));
    CHECK(any(f.windows(12), "reconfigure of T1: ok"));
    f.require_replay();
}

TEST_CASE("a dry run looks and touches nothing") {
    Frozen f;
    f.options.flags.dry_run = true;
    f.start();
    f.windows(1);
    f.fail(0, 15, false, true);
    f.windows(1);
    CHECK(any(f.controller->resume(), "resume refused: 'T1': GPU 0 cannot be read"));
    f.heal();
    CHECK(any(f.controller->resume(), "resume accepted: T1"));
    CHECK(any(f.windows(12), "T1: hold -> cooldown"));
    CHECK(!std::filesystem::exists(f.live.journal));
}

TEST_CASE("SIGKILL at any point of a resumption: a restart finds a known state, others untouched") {
    using namespace test;
    int died = 0, done = 0;
    for (const bool disjoint : {false, true})
        for (int fault = 0; fault < 12; ++fault)
            for (int point = 0;; ++point) {
                CrashWorld w(disjoint);
                const auto foreign = w.list(false).size();
                INFO(disjoint << " hang of command " << fault << ", point " << point);
                bool& resumed = w.shared.flag;
                const bool dead = w.killed(point, [&](SharedRun& run, CrashingFiles& files) {
                    const int kill_at = std::exchange(w.shared.kill_at, -1);
                    JournalFile file(files, w.journal());
                    const auto found = w.recover(run, files);
                    SmiMig mig(run, w.options.host.gpus,
                               owned_instances(w.options.host, found.journal, "b1"));
                    HostActuator actuator(mig, files, run, w.options.host, w.access, file, found.journal, 0);
                    run.smi.fault = FakeSmi::Fault::hang;
                    run.smi.fault_at = run.smi.calls + fault;
                    static_cast<void>(actuator.act(Action{.kind = ActionKind::reconfigure,
                                                          .tenant = 0,
                                                          .target = 0,
                                                          .before = w.before,
                                                          .after = w.after}));
                    run.smi.fault_at = -1;
                    w.shared.points = 0;
                    w.shared.kill_at = kill_at;
                    const bool pending = actuator.journal().tenants[0].pending.has_value();
                    resumed = pending && actuator.resume({0}, false).reasons.empty();
                });
                SharedRun run{w.shared};
                CrashingFiles files{w.shared};
                if (!dead && resumed) {
                    ++done;
                    REQUIRE(w.runs_only_in(w.before));
                    REQUIRE(parse_journal(w.text("journal.json"), w.options.host).tenants[0].pending ==
                            std::nullopt);
                }
                const auto r = w.recover(run, files);
                for (const auto& problem : r.problems) UNSCOPED_INFO(problem);
                REQUIRE(r.known());
                REQUIRE((w.runs_only_in(w.before) || w.runs_only_in(w.after)));
                REQUIRE(!w.shared.forbidden);
                REQUIRE(w.list(false).size() == foreign);
                if (!dead) break;
                ++died;
            }
    CHECK(died > 40);
    CHECK(done >= 4);
}

// The journal, the actuator of a real host, and what a restart makes of a process that was killed.
#include <gpusched/host/recovery.hpp>

#include <support/catch.hpp>
#include <support/crashing_host.hpp>
#include <support/instances.hpp>

using namespace gpusched;
using namespace gpusched::control;
using namespace gpusched::host;
using Catch::Matchers::ContainsSubstring;
using test::CrashingFiles;
using test::CrashWorld;
using test::FakeSmi;
using test::SharedRun;

namespace {

/// Nobody else's instance was touched, and T2's limits are as they were.
void require_others_untouched(const CrashWorld& w, std::size_t foreign) {
    REQUIRE(!w.shared.forbidden);
    const auto others = w.list(false);
    REQUIRE(others.size() == foreign);
    for (const auto& i : others) REQUIRE(i.compute);
}

void require_known(const CrashWorld& w, std::size_t foreign) {
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    const auto r = w.recover(run, files);
    for (const auto& problem : r.problems) UNSCOPED_INFO(problem);
    REQUIRE(r.known());
    REQUIRE(r.tenants.size() == 1);
    const auto& now = r.tenants[0].now;
    const auto same = [&](const Configuration& c) { return now.gpu == c.gpu && now.instance == c.instance; };
    REQUIRE((same(w.before) || same(w.after)));
    REQUIRE(w.runs_only_in(now));
    require_others_untouched(w, foreign);
    REQUIRE(w.text("t2/io.max") == "259:0 rbps=max wbps=2000000 riops=max wiops=max\n");
    REQUIRE(parse_cpus(w.text("t1/cpuset.cpus")) == now.cpus);
    REQUIRE(r.journal.leases.empty());
    for (const auto& t : r.journal.tenants) REQUIRE(!t.pending);
    // Once more changes nothing.
    const auto again = w.recover(run, files);
    REQUIRE(again.known());
    REQUIRE(again.journal == r.journal);
    REQUIRE(again.tenants[0].verdict == RecoveryVerdict::as_recorded);
}

}  // namespace

TEST_CASE(
    "I18 SIGKILL at any point of the controller's work: a restart finds a known state, others untouched") {
    int died = 0, moved = 0;
    for (const bool disjoint : {false, true})
        for (int point = 0;; ++point) {
            CrashWorld w(disjoint);
            const auto foreign = w.list(false).size();
            INFO(disjoint << " point " << point);
            if (!w.killed(point, [&](SharedRun& run, CrashingFiles& files) { w.work(run, files); })) break;
            ++died;
            require_others_untouched(w, foreign);
            require_known(w, foreign);
            moved += w.runs_only_in(w.after);
        }
    CHECK(died > 100);
    CHECK(moved > 10);
    CHECK(moved < died - 10);
}

TEST_CASE("I18 SIGKILL in the recovery from a SIGKILL") {
    int died = 0;
    for (const bool disjoint : {false, true})
        for (int point = 0;; point += 5 * testing_support::stride) {
            bool more = true;
            for (int second = 0; more; second += 3) {
                CrashWorld w(disjoint);
                const auto foreign = w.list(false).size();
                INFO(disjoint << " points " << point << " and " << second);
                if (!w.killed(point, [&](SharedRun& run, CrashingFiles& files) { w.work(run, files); }))
                    break;
                more = w.killed(second, [&](SharedRun& run, CrashingFiles& files) {
                    static_cast<void>(w.recover(run, files));
                });
                require_known(w, foreign);
                died += more;
            }
            if (more) break;
        }
    CHECK(died > testing_support::instances(80));
}

TEST_CASE("a change that goes well: programs of the tenant, cores, limits and journal") {
    for (const bool disjoint : {false, true}) {
        CrashWorld w(disjoint);
        SharedRun run{w.shared};
        CrashingFiles files{w.shared};
        const auto ends = w.work(run, files);
        REQUIRE(ends.size() == 1);
        CHECK(ends[0].status == BackendStatus::ok);
        CHECK(w.runs_only_in(w.after));
        CHECK(w.text("t1/cpuset.cpus") == "\n");
        require_known(w, w.list(false).size());
        const auto journal = parse_journal(w.text("journal.json"), w.options.host);
        CHECK(journal.tenants[0].now.instance == w.after.instance);
    }
}

TEST_CASE(
    "a failure of any file at any call: others untouched, what is reported is true, a restart mends it") {
    int runs = 0;
    for (const bool disjoint : {false, true})
        for (const int error : {EIO, EACCES, ENOSPC, ENOENT, EBUSY})
            for (int call = 0;; ++call) {
                CrashWorld w(disjoint);
                const auto foreign = w.list(false).size();
                SharedRun run{w.shared};
                CrashingFiles files{w.shared};
                files.fault_at = call;
                files.error = error;
                INFO(disjoint << " error " << error << " call " << call);
                std::vector<Feedback> ends;
                try {
                    ends = w.work(run, files);
                } catch (const BackendError&) {
                    // The journal could not be read: nothing is begun then.
                    REQUIRE(w.runs_only_in(w.before));
                }
                if (files.calls <= call) break;
                ++runs;
                for (const auto& end : ends) {
                    if (end.status == BackendStatus::ok) REQUIRE(w.runs_only_in(w.after));
                    if (end.status != BackendStatus::ok && end.restored && !freezes(end.status))
                        REQUIRE(w.runs_only_in(w.before));
                }
                require_known(w, foreign);
            }
    CHECK(runs > 200);
}

TEST_CASE("a failure of nvidia-smi at any call of the work: others untouched, what is reported is true") {
    int runs = 0, known = 0;
    using Fault = FakeSmi::Fault;
    for (const bool disjoint : {false, true})
        for (const auto fault :
             {Fault::code, Fault::code_after_effect, Fault::hang, Fault::garbage, Fault::partial})
            for (const int code : {3, 4, 6, 15, 19, 23, 29, 999})
                for (int call = 0;; ++call) {
                    CrashWorld w(disjoint);
                    const auto foreign = w.list(false).size();
                    SharedRun run{w.shared};
                    CrashingFiles files{w.shared};
                    run.smi.fault = fault;
                    run.smi.code = code;
                    run.smi.fault_at = call;
                    INFO(disjoint << " fault " << static_cast<int>(fault) << " code " << code << " call "
                                  << call);
                    const auto ends = w.work(run, files);
                    if (run.smi.calls <= call) break;
                    ++runs;
                    for (const auto& end : ends) {
                        if (end.status == BackendStatus::ok) REQUIRE(w.runs_only_in(w.after));
                        if (end.status != BackendStatus::ok && end.restored && !freezes(end.status))
                            REQUIRE(w.runs_only_in(w.before));
                    }
                    require_others_untouched(w, foreign);
                    // The fault is over: a restart finds its way, or says that somebody has to look.
                    SharedRun later{w.shared};
                    CrashingFiles fine{w.shared};
                    const auto r = w.recover(later, fine);
                    known += r.known();
                    if (r.known()) REQUIRE(w.runs_only_in(r.tenants[0].now));
                    require_others_untouched(w, foreign);
                    REQUIRE(r.journal.leases.empty());
                }
    CHECK(runs > 400);
    CHECK(known == runs);
}

TEST_CASE("a placement that a cut-off change was to use is nobody's claim once recovery is over") {
    for (const bool disjoint : {false, true}) {
        CrashWorld w(disjoint);
        SharedRun run{w.shared};
        CrashingFiles files{w.shared};
        Journal journal;
        journal.boot = "b1";
        auto& t = journal.of("T1");
        t.now = w.before;
        t.pending = w.after;
        JournalFile file(files, w.journal());
        REQUIRE(file.save(journal, w.options.host) == BackendStatus::ok);
        SmiMig mig(run, w.options.host.gpus, owned_instances(w.options.host, journal, "b1"));
        REQUIRE(mig.owned().size() == 2);
        const auto r = recover_host(mig, files, run, w.options.host, w.access, file, "b1", true, 0);
        REQUIRE(r.known());
        REQUIRE(r.tenants[0].verdict == RecoveryVerdict::restored);
        CHECK(mig.owned().size() == 1);
        CHECK(mig.destroy(w.after.gpu, w.after.instance) == BackendStatus::no_permission);
    }
}

TEST_CASE("journals are read back, and what is none is refused") {
    CrashWorld w(true);
    Journal journal;
    journal.boot = "b1";
    auto& t = journal.of("T1");
    t.now = w.before;
    t.pending = w.after;
    t.switched = t.drained = true;
    t.cpuset = "0-3";
    journal.leases = {{"T2", "/x/io.max", "259:0 rbps=max"}};
    journal.carryover_s = 12.5;
    journal.carryover = {{"T1",
                          {.structural_windows = 3,
                           .guard_windows = 0,
                           .cooldown_windows = 17,
                           .disjoint_pause_s = 0.1,
                           .structural = {{.ago_s = 1.0 / 3, .pause_s = 18}},
                           .blocked = {{.from = w.before, .to = w.after, .windows = 9}},
                           .floor = w.after}}};
    CHECK(parse_journal(write_journal(journal, w.options.host), w.options.host) == journal);
    CHECK_THROWS_WITH(parse_journal("{", w.options.host), ContainsSubstring("journal"));
    CHECK_THROWS_WITH(parse_journal("{}", w.options.host),
                      ContainsSubstring("journal: fields 'format' and 'version' are missing"));
    CHECK_THROWS_WITH(
        parse_journal(R"({"format": "gpusched.control-journal", "version": 1, "tenants": [{"name": "T9"}]})",
                      w.options.host),
        ContainsSubstring("'T9'") || ContainsSubstring("/tenants/0/name"));
    CHECK_THROWS_WITH(parse_journal(R"({"format": "gpusched.control-journal", "version": 1,
                          "tenants": [{"name": "T1", "now": {"gpu": 7, "profile": "2g"}}]})",
                                    w.options.host),
                      ContainsSubstring("/tenants/0/now/gpu"));
    CHECK_THROWS_WITH(
        parse_journal(R"({"format": "gpusched.control-journal", "version": 3,
                          "tenants": [{"name": "T1", "now": {"profile": "2g", "quota_percent": 1}}]})",
                      w.options.host),
        ContainsSubstring("/tenants/0/now/quota_percent: expected an integer from 50 to 100, found 1"));
    // One of before there was a carryover; and memories that cannot be.
    CHECK(
        parse_journal(R"({"format": "gpusched.control-journal", "version": 1, "boot": "b1"})", w.options.host)
            .carryover.empty());
    const auto carryover = [&](const std::string& text) {
        return R"({"format": "gpusched.control-journal", "version": 3, "memory": [{"name": "T1", )" + text +
               "}]}";
    };
    CHECK_THROWS_WITH(
        parse_journal(carryover(R"("structural_windows": -2, "guard_windows": 1.5, "x": 1,
                          "structural": [{"ago_s": -1}, {"ago_s": null}],
                          "floor": {"gpu": 0, "profile": "2g", "quota_percent": 40},
                          "blocked": [{"to": {"gpu": 7, "profile": "2g"}}])"),
                      w.options.host),
        ContainsSubstring("/memory/0/structural_windows") && ContainsSubstring("/memory/0/guard_windows") &&
            ContainsSubstring("/memory/0/structural/0/ago_s") &&
            ContainsSubstring("/memory/0/structural/1/ago_s") &&
            ContainsSubstring("/memory/0/blocked/0: field 'from' is missing") &&
            ContainsSubstring("/memory/0/blocked/0/to/gpu") &&
            ContainsSubstring(
                "/memory/0/floor/quota_percent: expected an integer from 50 to 100, found 40") &&
            ContainsSubstring("/memory/0/x: unknown field"));
    CHECK_THROWS_WITH(parse_journal(R"({"format": "gpusched.control-journal", "version": 2, "memory_s": -1,
                          "memory": [{"name": "T2"}]})",
                                    w.options.host),
                      ContainsSubstring("/memory_s") && ContainsSubstring("/memory/0/name"));
}

TEST_CASE("after a start of the machine the journal is no claim to anything") {
    CrashWorld w(true);
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    static_cast<void>(w.work(run, files));  // T1 is on GPU 1 now
    REQUIRE(w.runs_only_in(w.after));
    // The machine starts anew; whoever sets it up puts T1 where it was, and somebody else where it had moved to.
    w.shared.count = {0, 0};
    w.put(0, w.before.instance, true);
    w.put(1, w.after.instance, false);
    const auto r = w.recover(run, files, "b2");
    CHECK(r.known());
    CHECK(r.tenants[0].verdict == RecoveryVerdict::restarted);
    CHECK(r.tenants[0].now.instance == w.before.instance);
    CHECK(w.list(false).size() == 1);
    CHECK(!w.shared.forbidden);
}

TEST_CASE("a tenant that was moved and then fails is called back, and the operator is told why") {
    for (const bool disjoint : {false, true}) {
        CrashWorld w(disjoint);
        const auto foreign = w.list(false).size();
        SharedRun run{w.shared};
        CrashingFiles files{w.shared};
        static_cast<void>(w.recover(run, files));
        JournalFile file(files, w.journal());
        SmiMig mig(run, w.options.host.gpus, {{0, w.before.instance}});
        HostActuator actuator(mig, files, run, w.options.host, w.access, file, *file.load(w.options.host), 0);
        run.failing_switches = 1;
        const auto report = actuator.act(Action{
            .kind = ActionKind::reconfigure, .tenant = 0, .target = 0, .before = w.before, .after = w.after});
        REQUIRE(report.outcomes.size() == 1);
        CHECK(report.outcomes[0].status == BackendStatus::not_supported);
        CHECK(report.outcomes[0].restored);
        CHECK(w.runs_only_in(w.before));
        CHECK(report.notes == std::vector<std::string>{"program 'switch' ended with code 1: warm-up failed"});
        CHECK(!actuator.journal().tenants[0].pending);
        require_known(w, foreign);
    }
}

TEST_CASE("somebody else who takes the place of the tenant's only instance keeps it over restarts") {
    CrashWorld w(false);
    const auto foreign = w.list(false).size();
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    static_cast<void>(w.recover(run, files));
    run.smi.intrude = true;
    const auto ends = w.work(run, files);
    REQUIRE(ends.size() == 1);
    CHECK(ends[0].status == BackendStatus::insufficient_resources);
    CHECK(!ends[0].restored);
    const auto r = w.recover(run, files);
    CHECK(!r.known());
    CHECK(r.tenants[0].verdict == RecoveryVerdict::missing);
    require_others_untouched(w, foreign + 1);
    CHECK(w.list(true).empty());
}

TEST_CASE("without the identity of the boot nothing is believed and nothing is done") {
    CrashWorld w(true);
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    Journal journal;  // of a controller that could not read it either
    auto& t = journal.of("T1");
    t.now = w.before;
    t.pending = Configuration{.gpu = 0, .instance = CrashWorld::at("1g", 6)};
    journal.leases = {{"T2", (w.folder / "t2/io.max").string(), "259:0 rbps=1 wbps=1 riops=1 wiops=1"}};
    JournalFile file(files, w.journal());
    REQUIRE(file.save(journal, w.options.host) == BackendStatus::ok);
    CHECK(owned_instances(w.options.host, journal, "") ==
          std::vector<OwnedInstance>{{w.before.gpu, w.before.instance}});
    const auto limits = w.text("t2/io.max");
    const auto r = w.recover(run, files, "");
    CHECK(!r.known());
    CHECK_THAT(r.problems.at(0), ContainsSubstring("boot_id"));
    CHECK(run.smi.log.empty());
    CHECK(w.text("t2/io.max") == limits);
    CHECK(*file.load(w.options.host) == journal);
}

TEST_CASE("a cut-off change is not forgotten by a start without a MIG backend") {
    CrashWorld w(true);
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    Journal journal;
    journal.boot = "b1";
    auto& t = journal.of("T1");
    t.now = w.before;
    t.pending = w.after;
    t.switched = true;
    w.put(1, w.after.instance, true);
    JournalFile file(files, w.journal());
    REQUIRE(file.save(journal, w.options.host) == BackendStatus::ok);
    const auto r = w.recover(run, files, "b1", false);
    CHECK(!r.known());
    CHECK_THAT(r.problems.at(0), ContainsSubstring("no MIG backend"));
    CHECK(*file.load(w.options.host) == journal);
    CHECK(w.recover(run, files).tenants[0].verdict == RecoveryVerdict::completed);
    CHECK(w.runs_only_in(w.after));
}

TEST_CASE("where nothing that is known stands, nothing is done") {
    CrashWorld w(true);
    w.shared.count[0] = 0;
    SharedRun run{w.shared};
    CrashingFiles files{w.shared};
    const auto r = w.recover(run, files);
    CHECK(!r.known());
    CHECK(r.tenants[0].verdict == RecoveryVerdict::missing);
    CHECK_THAT(r.problems[0], ContainsSubstring("'T1': missing"));
    for (const auto& line : run.smi.log) CHECK_THAT(line, ContainsSubstring("-lgi"));
}

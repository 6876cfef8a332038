// SPDX-License-Identifier: Apache-2.0
// How the controller takes time: a caller that waits for a change, late windows, the clock that is set; and what it does
// with flags that do not stand still, frozen devices and traffic of its own.
#include "support/control_host.hpp"

using namespace gpusched;
using namespace gpusched::control;
using test::control_options;
using test::control_window;

namespace {

/// A host whose windows come when the test says so; changes are answered in the window after.
struct Timed : test::ControlRun {
    double time_s = 100;

    explicit Timed(ControllerOptions options) : ControlRun(std::move(options)) { reconfigure_windows = 1; }
    /// `n` windows, each `span_s` after the last.
    void go(int n, double span_s, const std::function<void(Observation&)>& change = {}) {
        ControlRun::go(n, [&](Observation& seen) {
            seen.time_s = time_s += span_s;
            if (change) change(seen);
        });
    }
    [[nodiscard]] auto lines(Row row) const {
        return std::count_if(events.begin(), events.end(), [row](const auto& e) { return e.row == row; });
    }
};

ControllerOptions with(std::initializer_list<bool ControllerFlags::*> flags) {
    auto o = control_options();
    o.flags = variant_flags(Variant::static_configuration);
    for (const auto flag : flags) o.flags.*flag = true;
    return o;
}
using F = ControllerFlags;

void slow(Observation& seen) { seen.tenants[0].p99_ms = 30; }
void busy_disk(Observation& seen) {
    slow(seen);
    seen.numa_io_bytes_per_s[0] = 2e9;
    seen.tenants[1].io_bytes_per_s = 2e9;
    seen.tenants[1].io_attribution = Attribution::measured;
}
void held_up(Observation& seen) { seen.tenants[0].p99_ms = 12'000; }

}  // namespace

TEST_CASE("requests held up by a waiting caller do not enter validation") {
    for (const double pause_s : {0.5, 12.0, 40.0}) {
        INFO(pause_s);
        Timed run(with({&F::mig, &F::rollback}));
        run.go(3, 2, slow);
        REQUIRE(run.actions.size() == 1);
        // One window for all of the pause, with requests; those that waited are in the p99 of three windows.
        run.go(1, 2 + pause_s, held_up);
        CHECK(run.t1().phase == Phase::validate);
        run.go(2, 2, held_up);
        run.go(40, 2);
        CHECK(run.t1().phase == Phase::cooldown);
        CHECK(run.t1().place.good == run.t1().place.current);
        CHECK(run.actions.size() == 1);
    }
}

TEST_CASE("an unexpected pause is measured by waiting requests, not by the waiting caller") {
    const auto o = with({&F::place, &F::rollback, &F::predict});
    struct Case {
        double caller_s, p99_ms, offered, completed, least, most;
    };
    const Case cases[] = {{12, 12'000, 50, 50, 10, 12},  // they queued
                          {12, 20, 50, 25, 5, 8},        // they were sent away
                          {12, 20, 50, 50, 0, 0.1},      // the old instance served them
                          {60, 20, 50, 50, 0, 0.1},      // more than ten windows
                          {0, 20, 50, 50, 0, 0}};
    for (const auto& c : cases) {
        INFO(c.caller_s << " s, p99 " << c.p99_ms << " ms, completed " << c.completed);
        Timed run(o);
        run.go(3, 2, [](Observation& seen) {
            slow(seen);
            seen.roots[0].bytes_per_s = 18e9;
        });
        REQUIRE(run.actions.size() == 1);
        REQUIRE(run.actions[0].make_before_break);
        run.go(1, 2 + c.caller_s, [&](Observation& seen) {
            auto& x = seen.tenants[0];
            x.p99_ms = c.p99_ms, x.offered_per_s = c.offered, x.completed_per_s = c.completed;
        });
        CHECK(run.t1().phase == Phase::validate);
        CHECK(run.t1().past.disjoint_pause_s >= c.least);
        CHECK(run.t1().past.disjoint_pause_s <= c.most);
    }
}

TEST_CASE("a lease lasts seconds, however late the windows come") {
    for (const double span_s : {2.0, 3.0, 5.0, 7.0, 15.0, 19.0, 25.0, 100.0}) {
        INFO(span_s);
        Timed run(with({&F::guard_io}));
        run.go(3, 2, busy_disk);
        REQUIRE(run.actions.size() == 1);
        run.go(120, span_s, busy_disk);
        REQUIRE(run.actions.size() >= 2);
        CHECK(run.actions[1].kind == ActionKind::release_io);
        const double lasted = run.action_times[1] - run.action_times[0];
        CHECK(lasted >= std::min(30.0, 2 * run.o.window_s));
        CHECK(lasted < 30 + std::max(1.0, span_s));
    }
    auto o = with({&F::guard_io});
    o.window_s = 4;  // the lease is no multiple of it: never longer
    Timed run(o);
    run.go(30, 4, busy_disk);
    REQUIRE(run.actions.size() >= 2);
    CHECK(run.action_times[1] - run.action_times[0] == 28);
    o.window_s = 60;
    CHECK_THROWS_WITH(initial_state(o), Mentions("lease_s 30 at least window_s"));
}

TEST_CASE("a clock that is set back and forth counts no second twice, and none is lost") {
    Timed run(with({}));
    run.go(1, 2);
    const double before = run.state.clock_s;
    run.go(1, -100);
    run.go(1, 104);
    CHECK(run.state.clock_s - before == 4);
    const auto windows = run.state.now;
    run.go(1, -100);
    run.go(60, 2);  // it stays set back until it is where it was, and goes on
    CHECK(run.state.clock_s - before >= 4 + 60 * 2);
    CHECK(run.state.clock_s - before <= 4 + 61 * 2);
    CHECK(run.state.now - windows == 61);
    run.go(1, 300);
    CHECK(run.state.now - windows == 61 + 150);
}

TEST_CASE("leases end while the controller is disabled, early only if they shall") {
    for (const bool early : {false, true}) {
        auto o = with({&F::guard_io});
        o.release_on_disable = early;
        Timed run(o);
        run.go(3, 2, busy_disk);
        REQUIRE(run.actions.size() == 1);
        run.go(40, 2, [](Observation& seen) {
            busy_disk(seen);
            seen.enabled = false;
        });
        REQUIRE(run.actions.size() == 2);
        CHECK(run.actions[1].kind == ActionKind::release_io);
        CHECK(run.action_times[1] - run.action_times[0] == (early ? 2 : 30));
    }
}

TEST_CASE("flags that never stay the same delay a diagnosis, they do not prevent it") {
    for (const bool predict : {false, true}) {
        auto o = control_options();
        o.flags.predict = predict;
        Timed run(o);
        run.go(40, 2, [&](Observation& seen) {
            slow(seen);
            seen.roots[0].bytes_per_s = run.window / 2 % 2 == 1 ? 20e9 : 0;
        });
        REQUIRE(!run.actions.empty());
        CHECK(run.action_times[0] <= 100 + 2 * 4 * o.persistence);
        CHECK(run.lines(Row::suppressed) == 1);
    }
    // If no gate is open, that is reported too, once each.
    Timed fixed(with({}));
    fixed.go(40, 2, [&](Observation& seen) {
        slow(seen);
        seen.roots[0].bytes_per_s = fixed.window / 2 % 2 == 1 ? 20e9 : 0;
    });
    CHECK(fixed.lines(Row::suppressed) == 2);
    CHECK(fixed.t1().phase == Phase::suspect);
}

TEST_CASE("an intermittent offender is limited: all recent flags count") {
    Timed run(with({&F::guard_io}));
    // PCIe for two windows, then the disk for two; never three windows alike.
    run.go(40, 2, [&](Observation& seen) {
        slow(seen);
        const bool first = run.window / 2 % 2 == 1;
        seen.roots[0].bytes_per_s = first ? 20e9 : 0;
        seen.tenants[1].io_bytes_per_s = 2e9;
        seen.tenants[1].pcie_bytes_per_s = 8e9;
        seen.tenants[1].pcie_attribution = seen.tenants[1].io_attribution = Attribution::measured;
        seen.numa_io_bytes_per_s[0] = first ? 0 : 2e9;
    });
    REQUIRE(!run.actions.empty());
    CHECK(run.actions[0].kind == ActionKind::throttle_io);
}

TEST_CASE("after a change with an unknown end no instance of any tenant is touched") {
    auto o = with({&F::mig, &F::rollback});
    const auto frozen = [&](Timed& run) {
        // T4 on the other GPU: its change ends in an unknown state.
        run.outcome = {.finished = true, .status = BackendStatus::invalid_state, .restored = false};
        run.go(5, 2, [](Observation& seen) { seen.tenants[3].p99_ms = 40; });
        REQUIRE(run.state.tenants[3].phase == Phase::hold);
        run.outcome = {.finished = true};
    };
    SECTION("no change begins") {
        Timed run(o);
        frozen(run);
        run.go(50, 2, slow);
        CHECK(run.actions.size() == 1);
        CHECK(run.t1().phase == Phase::suspect);
        CHECK(run.lines(Row::suppressed) == 1);
        // Disabled and enabled, the one that waits for the operator still does.
        run.go(1, 2, [](Observation& seen) { seen.enabled = false; });
        run.go(50, 2, slow);
        CHECK(run.actions.size() == 1);
        CHECK(run.state.tenants[3].phase == Phase::hold);
        run.go(1, 2, [](Observation& seen) { seen.operator_resume = true; });
        run.go(10, 2, slow);
        REQUIRE(run.actions.size() == 2);
        CHECK(run.actions[1].tenant == 0);
    }
    SECTION("no action is undone until the operator resumes; one line reports it") {
        Timed run(o);
        run.go(4, 2, slow);
        REQUIRE(run.t1().phase == Phase::validate);
        const auto worse = [](Observation& seen) { seen.tenants[0].p99_ms = 200; };
        frozen(run);
        run.go(60, 2, worse);
        CHECK(run.actions.size() == 2);
        CHECK(run.t1().phase == Phase::validate);
        CHECK(run.lines(Row::worse) == 1);
        run.go(1, 2, [&](Observation& seen) {
            worse(seen);
            seen.operator_resume = true;
        });
        run.go(1, 2, worse);
        REQUIRE(run.actions.size() == 3);
        CHECK(run.actions[2].lever == Lever::rollback);
    }
}

TEST_CASE("a tenant's own traffic is not others', known or not") {
    const auto root = [](double own, double other, Attribution how) {
        return [=](Observation& seen) {
            slow(seen);
            seen.roots[0].bytes_per_s = 14e9;
            seen.tenants[0].pcie_bytes_per_s = own;
            seen.tenants[1].pcie_bytes_per_s = other;
            seen.tenants[1].pcie_attribution = how;
            seen.tenants[1].io_bytes_per_s = 2e9;
        };
    };
    const auto flag = [&](double own, double other, Attribution how) {
        Timed run(with({}));
        run.go(3, 2, root(own, other, how));
        return run.t1().flags.now.pcie.on;
    };
    CHECK(flag(0, 1e6, Attribution::inferred));
    CHECK_FALSE(flag(13e9, 1e6, Attribution::inferred));
    CHECK_FALSE(flag(unknown_signal, 1e6, Attribution::inferred));
    CHECK(flag(unknown_signal, 12e9, Attribution::inferred));
    CHECK_FALSE(flag(unknown_signal, 12e9, Attribution::unknown));

    // Without any observation the outlook stays, and the score counts the middle.
    Timed run(with({}));
    const auto unknown = root(unknown_signal, 0, Attribution::unknown);
    run.go(5, 2, unknown);
    CHECK(run.state.roots[0].expected() == initial_state(run.o).roots[0].expected());
    auto seen = control_window(run.o, 0);
    unknown(seen);
    const auto& c = run.t1().place.current;
    CHECK(placement_terms(run.o.host, seen, run.state, 0, 0, c.instance, {}, c.cpus).pcie == 0.5);
    CHECK(placement_terms(run.o.host, seen, run.state, 0, 1, c.instance, {}, c.cpus).pcie < 0.1);
}

TEST_CASE("no limit exceeds a tenant's traffic") {
    const auto limit = [](double io, double pcie) {
        Timed run(with({&F::guard_io}));
        run.go(3, 2, [&](Observation& seen) {
            slow(seen);
            seen.roots[0].bytes_per_s = 16e9;
            seen.tenants[1].pcie_bytes_per_s = pcie;
            seen.tenants[1].pcie_attribution = Attribution::measured;
            seen.tenants[1].io_bytes_per_s = io;
        });
        return run.actions.empty() ? 0 : run.actions[0].value;
    };
    CHECK(limit(2e9, 12e9) == 500);
    CHECK(limit(400e6, 12e9) == 250);
    CHECK(limit(99e6, 12e9) == 0);
    CHECK(limit(0, 12e9) == 0);  // transfers from memory: no limit of block I/O touches them
    CHECK(limit(unknown_signal, 12e9) == 500);
    CHECK(limit(unknown_signal, 90e6) == 0);

    // In the window in which a limit ends it still does no more than that: this is no reason to give up.
    auto o = with({&F::guard_io, &F::admission});
    o.guard_dwell = 10;
    Timed run(o);
    int limited = 0;
    run.go(400, 2, [&](Observation& seen) {
        slow(seen);
        seen.roots[0].bytes_per_s = 16e9;
        seen.tenants[1].pcie_bytes_per_s = 12e9;
        seen.tenants[1].pcie_attribution = Attribution::measured;
        limited = run.t1().lease.offender < 0 ? 0 : run.actions.back().value;
        seen.tenants[1].io_bytes_per_s = limited == 0 ? 3e9 : 1e6 * limited;
    });
    CHECK(run.state.admission_open);
    CHECK(run.actions.size() > 30);
}

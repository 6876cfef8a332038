// SPDX-License-Identifier: Apache-2.0
// What a restart must not forget: dwell, cool-down, the budget of an hour, changes not to be repeated.
#include "support/control_host.hpp"

#include <gpusched/control/control.hpp>

using namespace gpusched;
using namespace gpusched::control;

namespace carryover_tests {

struct Run : test::ControlRun {
    explicit Run(ControllerOptions options, const ControllerCarryover& carryover = {})
        : ControlRun(std::move(options), carryover) {
        reconfigure_windows = 1;
    }
    /// One window with T1's tail at that, and the first root as busy as asked.
    void step(double p99_ms, double root0 = 1e9) {
        go(1, [&](Observation& seen) {
            seen.tenants[0].p99_ms = p99_ms;
            seen.roots[0].bytes_per_s = root0;
        });
    }
    /// Windows until something structural is requested; -1: nothing is.
    std::int64_t until_change(double p99_ms, std::int64_t most) {
        for (std::int64_t k = 0; k < most; ++k) {
            step(p99_ms);
            for (const auto& a : out.actions)
                if (a.kind == ActionKind::reconfigure) return k;
        }
        return -1;
    }
};

ControllerOptions structural_only() {
    auto o = test::control_options();
    o.flags.guard_io = o.flags.guard_mps = o.flags.pin = o.flags.relax = false;
    return o;
}

TEST_CASE("a restart respects the dwell, and the time that it took") {
    for (const double down_s : {0.0, 1.9, 100.0}) {
        Run first(structural_only());
        REQUIRE(first.until_change(20, 10) == 2);
        for (int k = 0; k < 5; ++k) first.step(10);
        auto carryover = carryover_of(first.state, first.o);
        CHECK(carryover[0].structural_windows == 5);
        CHECK(carryover[0].structural == std::vector<PastChange>{{.ago_s = 10, .pause_s = 0}});
        CHECK(carryover[0].cooldown_windows == first.o.cool_down);  // it was being validated
        CHECK(carryover[1] == TenantCarryover{});
        CHECK(carryover[3] == TenantCarryover{.floor = first.o.host.tenants[3].start});
        for (auto& m : carryover) m = aged(m, down_s, first.o.window_s);
        Run second(first.found(), carryover);
        CHECK(second.state.tenants[0].phase == Phase::cooldown);
        // The window of the change itself counts as none: the next one comes when the dwell is over, not before.
        const auto waited = second.until_change(20, 300);
        CHECK(waited == first.o.dwell - 5 - static_cast<std::int64_t>(down_s / 2));
        CHECK(Run(first.found()).until_change(20, 300) == 2);  // without a carryover it would be at once
    }
}

TEST_CASE("the structural actions of an hour are those of all the controllers in it") {
    auto o = structural_only();
    o.dwell = o.cool_down = o.validation = 1;
    o.hour_s = 1000;
    o.loss_budget = 1;
    o.structural_per_hour = 3;
    ControllerCarryover carryover;
    std::int64_t changes = 0, windows = 0;
    for (int restart = 0; restart < 10; ++restart) {
        Run run(o, carryover);
        changes += run.until_change(20, 10) >= 0;
        run.step(20);
        run.step(10);
        windows += run.window;
        carryover = carryover_of(run.state, run.o);
        o = run.found();
    }
    CHECK(windows * o.window_s < 1000);
    CHECK(changes == 2);  // the third is kept for a rollback
    CHECK(carryover[0].structural.size() == 2);
    for (auto& m : carryover) m = aged(m, 1000, o.window_s);
    CHECK(initial_state(o, carryover).tenants[0].past.structural_count == 2);
    CHECK(carryover_of(initial_state(o, carryover), o)[0].structural.empty());  // an hour ago
}

TEST_CASE("a change that was rolled back is not made again after a restart") {
    auto o = structural_only();
    o.flags.place = false;
    o.dwell = 60;
    o.cool_down = 5;
    Run first(o);
    REQUIRE(first.until_change(20, 10) >= 0);
    const auto wanted = first.out.actions[0].after;
    for (int k = 0; k < 60 && first.state.tenants[0].change.lever != Lever::rollback; ++k) first.step(60);
    REQUIRE(first.state.tenants[0].change.lever == Lever::rollback);
    first.step(60);
    first.step(60);
    REQUIRE(first.state.tenants[0].place.current == o.host.tenants[0].start);
    const auto carryover = carryover_of(first.state, first.o);
    REQUIRE(carryover[0].blocked.size() == 1);
    CHECK(carryover[0].blocked[0].from == o.host.tenants[0].start);
    CHECK(carryover[0].blocked[0].to == wanted);
    Run second(first.found(), carryover);
    const auto end = carryover[0].blocked[0].windows;
    bool repeated = false;
    for (std::int64_t k = 0; k < end; ++k) {
        second.step(20);
        for (const auto& a : second.out.actions)
            repeated |= a.after.instance.profile == wanted.instance.profile;
    }
    CHECK(!repeated);
    // Aged beyond its end it is gone.
    CHECK(aged(carryover[0], static_cast<double>(end) * o.window_s, o.window_s).blocked.empty());
    CHECK(aged(carryover[0], static_cast<double>(end) * o.window_s - 0.1, o.window_s).blocked.size() == 1);
}

TEST_CASE("a log over a restart replays with the memory of its record") {
    Run first(structural_only());
    REQUIRE(first.until_change(20, 10) >= 0);
    for (int k = 0; k < 40; ++k) first.step(20 + 0.1 * k);
    auto carryover = carryover_of(first.state, first.o);
    carryover[0] = aged(carryover[0], 1.0 / 3, first.o.window_s);
    Run second(first.found(), carryover);
    for (int k = 0; k < 300; ++k) second.step(20 + 0.1 * (k % 7));
    const auto log = first.log + second.log;
    const auto replay = replay_audit(log, test::control_options());
    CHECK(replay.first_difference == -1);
    CHECK(replay.windows == first.window + second.window);
    // The carryover is part of what decides.
    const auto at = second.log.find(",\"memory\":");
    REQUIRE(at != std::string::npos);
    auto forgotten = second.log;
    forgotten.erase(at, forgotten.find('\n') - 1 - at);
    CHECK(replay_audit(forgotten, test::control_options()).first_difference == 1);
    CHECK_THROWS_WITH(replay_audit(first.log + R"({"record":"start","memory":[{"name":"T9"}]})"
                                               "\n",
                                   test::control_options()),
                      Mentions("/memory/0/name protected tenant 'T9'"));
    CHECK_THROWS_WITH(initial_state(first.o, ControllerCarryover(3)),
                      Mentions("memory: one entry per tenant"));
}

TEST_CASE("the runner lets the actuator remember before it acts") {
    struct Source {
        ControllerOptions o = structural_only();
        std::int64_t window = 0;
        void read(Observation& seen) {
            seen = test::control_window(o, window++);
            seen.tenants[0].p99_ms = 20;
        }
    } source;
    struct Act {
        std::vector<std::string> calls{};
        std::int64_t deeds = 0;
        ActionReport act(const Decision& d) {
            if (d.state.deeds != deeds)
                calls.push_back("remember " +
                                std::to_string(carryover_of(d.state, d.options)[0].structural.size()));
            deeds = d.state.deeds;
            for (const auto& a : d.actions) calls.emplace_back(enum_name(a.kind));
            return {};
        }
    } act;
    struct Clock {
        double now = 0;
        double monotonic_s() { return now += 2; }
        double wall_s() const { return 0; }
    } clock;
    struct Sink {
        void write(std::string_view) const {}
    } sink;
    Runner<Source, Act, Clock, Sink> runner(structural_only(), source, act, clock, sink);
    for (int k = 0; k < 4; ++k) runner.window();
    CHECK(act.calls == std::vector<std::string>{"remember 1", "reconfigure"});
}

TEST_CASE("a carryover is read back from its document, and other documents are refused") {
    const auto host = test::control_options().host;
    const auto read = [&](const std::string& text) {
        Problems problems;
        const auto document = json::Document::parse(text, "carryover", problems);
        problems.throw_if_any();
        return parse_carryover(document, host);
    };
    ControllerCarryover carryover(host.tenants.size());
    carryover[0] = {.structural_windows = 3,
                    .guard_windows = 0,
                    .cooldown_windows = 17,
                    .disjoint_pause_s = 0.1,
                    .structural = {{.ago_s = 1.0 / 3, .pause_s = 18}},
                    .blocked = {{.from = host.tenants[0].start, .to = host.tenants[3].start, .windows = 9}},
                    .floor = host.tenants[0].start};
    CHECK(read(write_carryover(carryover, host)) == carryover);
    CHECK(write_carryover(ControllerCarryover(host.tenants.size()), host) == "{}");
    CHECK(read("{}") == ControllerCarryover(host.tenants.size()));
    CHECK_THROWS_WITH(read("[]"), Mentions("carryover object array"));
    CHECK_THROWS_WITH(read(R"({"T9": {}})"), Mentions("/T9 name of a tenant"));
    CHECK_THROWS_WITH(read(R"({"T2": {}})"), Mentions("/T2 protected tenant"));  // not protected
    const auto bad = R"({"T1": {"structural_windows": -2, "guard_windows": 1.5, "x": 1,
                        "structural": [{"ago_s": -1}, {"ago_s": null}],
                        "floor": {"gpu": 0, "profile": "2g", "quota_percent": 40},
                        "blocked": [{"to": {"gpu": 7, "profile": "2g"}}]}})";
    CHECK_THAT(
        testing_support::problems_in<InvalidInput>([&] { (void)read(bad); }),
        MentionsEach({"/T1/structural_windows integer -1 1000000000000 -2", "/T1/guard_windows integer 1.5",
                      "/T1/x unknown field", "/T1/structural/0/ago_s number 0 -1",
                      "/T1/structural/1/ago_s number null", "/T1/floor/quota_percent 50 100 40",
                      "/T1/blocked/0/to/gpu index gpus 7", "/T1/blocked/0 'from' missing"}));
}

}  // namespace carryover_tests

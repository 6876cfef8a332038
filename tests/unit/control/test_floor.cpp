// SPDX-License-Identifier: Apache-2.0
// Giving back ends at what the tenant had when control of it began, over restarts too.
#include "support/control_host.hpp"

using namespace gpusched;
using namespace gpusched::control;

namespace floor_tests {

struct Run : test::ControlRun {
    explicit Run(ControllerOptions options, const ControllerCarryover& carryover = {})
        : ControlRun(std::move(options), carryover) {
        reconfigure_windows = 1;
    }
    void go(int windows, double p99_ms, double client = 0) {
        ControlRun::go(windows, [&](Observation& seen) {
            seen.tenants[0].p99_ms = p99_ms;
            seen.tenants[2].sm_active = client;
        });
    }
    void until_larger() {
        for (int k = 0; k < 100 && key() == "2g"; ++k) go(1, 20);
        REQUIRE(key() != "2g");
    }
    [[nodiscard]] std::string_view key() const { return test::profile_of(o, state.tenants[0].place.current); }
};

ControllerOptions quick(bool predict) {
    auto o = test::control_options();
    o.flags.predict = predict;
    o.flags.place = false;
    o.dwell = 20;
    o.cool_down = o.guard_dwell = 5;
    o.hour_s = 60;
    o.loss_budget = 1;
    return o;
}

TEST_CASE("a tenant far below its target keeps its start configuration") {
    for (const bool predict : {false, true}) {
        Run run(quick(predict));
        run.go(2000, 2);
        CHECK(run.actions.empty());
        CHECK(run.key() == "2g");
        // What the controller took it gives back, down to the start.
        run.go(40, 20);
        REQUIRE(run.key() != "2g");
        run.go(2000, 2);
        CHECK(run.key() == "2g");
        CHECK(run.actions.back().lever == Lever::relax);
    }
}

TEST_CASE("media engines are given back with the instance that had them, and no other is taken for it") {
    for (const bool predict : {false, true}) {
        auto o = quick(predict);
        o.host.tenants[0].start.instance.profile =
            static_cast<std::uint8_t>(mig_device("A100-40GB").find("1g+me"));
        Run run(o);
        run.go(200, 20);
        REQUIRE(
            mig_device("A100-40GB").profiles[run.state.tenants[0].place.current.instance.profile].sm_count >
            28);
        run.go(3000, 2);
        CHECK(run.key() == "1g+me");
        for (const auto& a : run.actions)
            CHECK((a.kind != ActionKind::reconfigure || a.after.instance.profile != 0));
    }
}

TEST_CASE("its client's quota is not raised above that of the start either") {
    for (const auto& [start, steps] : {std::pair(80, std::vector<int>{75, 80}), {60, {60}}}) {
        auto o = quick(false);
        o.flags.mig = false;
        o.host.tenants[0].start.quota_percent = start;
        Run run(o);
        run.go(500, 2);
        CHECK(run.actions.empty());
        run.go(200, 20, 0.9);
        REQUIRE(run.state.tenants[0].place.current.quota_percent == 50);
        run.go(500, 2);
        CHECK(run.state.tenants[0].place.current.quota_percent == start);
        std::vector<int> raised;
        for (const auto& a : run.actions)
            if (a.lever == Lever::relax) raised.push_back(a.after.quota_percent);
        CHECK(raised == steps);
    }
}

TEST_CASE("after a restart the start is still the first one, in memory, documents and the log") {
    for (const bool predict : {false, true}) {
        Run first(quick(predict));
        first.go(10, 20);
        REQUIRE(first.key() != "2g");
        const auto carryover = carryover_of(first.state, first.o);
        CHECK(carryover[0].floor == first.o.host.tenants[0].start);
        const auto& host = first.o.host;
        Problems problems;
        auto read = parse_carryover(
            json::Document::parse(write_carryover(carryover, host), "carryover", problems), host);
        CHECK(read == carryover);
        for (auto& one : read) one = aged(one, 1, first.o.window_s);
        Run second(first.found(), read);
        CHECK(second.state.tenants[0].place.floor == first.o.host.tenants[0].start);
        second.go(2000, 2);
        CHECK(second.key() == "2g");
        const auto replay = replay_audit(first.log + second.log, test::control_options());
        CHECK(replay.first_difference == -1);
        CHECK(replay.windows == first.window + second.window);

        // A carryover without a floor takes the configuration's.
        read[0].floor.reset();
        CHECK(initial_state(first.o, read).tenants[0].place.floor == first.o.host.tenants[0].start);
        // Without a carryover what is found is the start.
        Run fresh(first.found());
        fresh.go(2000, 2);
        CHECK(fresh.actions.empty());
    }
}

TEST_CASE("floors that cannot be are refused") {
    const auto o = test::control_options();
    ControllerCarryover carryover(4);
    carryover[0].floor = Configuration{.gpu = 2};
    carryover[3].floor = Configuration{.instance = {77, 0}, .quota_percent = 101};
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { (void)initial_state(o, carryover); }),
               MentionsEach({"'T1' floor.gpu 2 0 1", "'T4' floor.quota_percent 101 50 100",
                             "'T4' floor.instance.profile 77 0 6"}));
}

TEST_CASE("ours gives back what the last half hour did not need, the paper's policy what the last windows "
          "did not") {
    for (const bool predict : {false, true})
        // At its target, or at its target in the smaller instance.
        for (const double busy_ms : {14.5, 11.9}) {
            auto o = quick(predict);
            o.hour_s = 3600;
            Run run(o);
            run.until_larger();
            // Every few minutes it is busy for some windows, within the target.
            bool gave_back = false;
            for (int k = 0; k < 4; ++k) {
                run.go(20, busy_ms);
                run.go(80, 5);
                gave_back |= run.actions.back().lever == Lever::relax;
            }
            CHECK(gave_back == !predict);
            run.go(5000, 2);
            CHECK(run.key() == "2g");
        }
}

TEST_CASE("the tail in the smaller instance keeps no tenant in the larger one") {
    auto o = quick(true);
    o.hour_s = 3600;
    o.dwell = 60;
    ControllerCarryover carryover(4);
    carryover[0].structural_windows = 0;  // above the target until the dwell is over
    Run run(o, carryover);
    run.until_larger();
    CHECK(run.window > 50);
    const auto large = run.key();
    run.go(150, 2);
    CHECK(run.key() != large);
    CHECK(run.actions.back().lever == Lever::relax);
}

TEST_CASE("so it does with a quota") {
    for (const bool predict : {false, true}) {
        auto o = quick(predict);
        o.hour_s = 3600;
        o.flags.mig = false;
        Run run(o);
        run.go(200, 20, 0.9);
        REQUIRE(run.state.tenants[0].place.current.quota_percent == 50);
        for (int k = 0; k < 4; ++k) {
            run.go(12, 14.5);
            run.go(80, 5);
        }
        CHECK((run.state.tenants[0].place.current.quota_percent == 50) == predict);
        run.go(5000, 2);
        CHECK(run.state.tenants[0].place.current.quota_percent == 100);
    }
}

}  // namespace floor_tests

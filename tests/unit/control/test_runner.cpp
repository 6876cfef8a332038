// SPDX-License-Identifier: Apache-2.0
// The runner with its policies: what it writes, when it acts, and what the decision core learns of the ends.
#include "support/control_host.hpp"

#include <gpusched/control/control.hpp>

using namespace gpusched;
using namespace gpusched::control;

namespace {

struct BusySource {
    const ControllerOptions& o;
    std::int64_t window = 0;
    void read(Observation& seen) {
        auto next = test::control_window(o, window++);
        next.tenants[0].p99_ms = 20;
        next.roots[0].bytes_per_s = 16e9;
        next.tenants[1].pcie_bytes_per_s = 12e9;
        next.tenants[1].io_bytes_per_s = 3e9;
        next.tenants[1].pcie_attribution = Attribution::measured;
        next.feedback = seen.feedback;
        next.guards = seen.guards;
        seen = next;
    }
};
struct Recorder {
    std::vector<Action> actions{};
    BackendStatus end = BackendStatus::ok;  ///< of all that is done
    ActionReport act(const Decision& decision) {
        ActionReport out;
        for (const auto& a : decision.actions) {
            actions.push_back(a);
            out.outcomes.push_back({a.kind, a.tenant, a.target, end});
            if (end != BackendStatus::ok) out.notes.emplace_back("it failed");
        }
        return out;
    }
};
struct StepClock {
    double now = 0;
    double monotonic_s() { return now += 2; }
    double wall_s() const { return 1.7e9 + now; }
};
struct Log {
    std::string text{};
    void write(std::string_view line) { text += line; }
};

}  // namespace

TEST_CASE("the runner writes a line before it acts, the log replays, and leases end with it") {
    for (const bool outlive : {false, true}) {  // a disabled controller
        auto o = test::control_options();
        o.flags = variant_flags(Variant::guards);
        o.release_on_disable = !outlive;
        BusySource source{o};
        Recorder actuator;
        StepClock clock;
        Log log;
        Runner runner(o, source, actuator, clock, log);
        for (int k = 0; k < 5; ++k) runner.window();
        REQUIRE(actuator.actions.size() == 1);
        CHECK(actuator.actions[0].kind == ActionKind::throttle_io);
        runner.release();
        REQUIRE(actuator.actions.size() == 2);
        CHECK(actuator.actions[1].kind == ActionKind::release_io);
        runner.release();
        CHECK(actuator.actions.size() == 2);
        const auto replay = replay_audit(log.text, o);
        CHECK(replay.first_difference == -1);
        CHECK(replay.windows == 6);
        CHECK(replay.actions == 2);
    }
}

TEST_CASE("how an action ended reaches the decision core with the next window, and people once") {
    auto o = test::control_options();
    o.flags = variant_flags(Variant::guards);
    BusySource source{o};
    Recorder actuator{.end = BackendStatus::no_permission};
    StepClock clock;
    Log log;
    Runner runner(o, source, actuator, clock, log);
    while (actuator.actions.empty()) runner.window();
    const auto report = runner.take_report();
    REQUIRE(report.outcomes.size() == 1);
    CHECK(report.outcomes[0].status == BackendStatus::no_permission);
    CHECK(report.notes.size() == 1);
    CHECK(runner.take_report().outcomes.empty());
    CHECK(runner.state().tenants[0].phase == Phase::guarded);
    bool told = false;
    for (const auto& event : runner.window().events) told |= event.row == Row::failed;
    CHECK(told);
    CHECK(runner.state().tenants[0].phase == Phase::suspect);
    CHECK(replay_audit(log.text, o).first_difference == -1);
}

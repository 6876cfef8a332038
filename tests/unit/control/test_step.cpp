// SPDX-License-Identifier: Apache-2.0
// The decision core by hand: rows of the transition table, one scenario each.
#include "support/control_host.hpp"

using namespace gpusched;
using namespace gpusched::control;
using test::control_options;
using test::control_window;
using test::profile_of;
using Run = test::ControlRun;

namespace step_tests {

void slow(Observation& seen) { seen.tenants[0].p99_ms = 20; }
void busy_root(Observation& seen) {
    slow(seen);
    seen.roots[0].bytes_per_s = 16e9;
    seen.tenants[1].pcie_bytes_per_s = 12e9;
    seen.tenants[1].io_bytes_per_s = 3e9;
    seen.tenants[1].pcie_attribution = Attribution::measured;
}
void busy_client(Observation& seen) {
    slow(seen);
    seen.tenants[2].sm_active = 0.9;
}

ControllerOptions only(Variant variant) {
    auto o = control_options();
    o.flags = variant_flags(variant);
    return o;
}

TEST_CASE("nothing happens without a high tail or under static flags") {
    Run quiet(control_options());
    quiet.go(500);
    CHECK(quiet.actions.empty());
    CHECK(quiet.t1().phase == Phase::observe);
    Run fixed(only(Variant::static_configuration));
    fixed.go(500, busy_root);
    CHECK(fixed.actions.empty());
    CHECK(fixed.t1().phase == Phase::suspect);
}

TEST_CASE("a PCIe hog is throttled after three windows, for the length of the lease") {
    Run run(only(Variant::guards));
    run.go(2, busy_root);
    CHECK(run.actions.empty());
    CHECK(run.t1().phase == Phase::suspect);
    run.go(1, busy_root);
    REQUIRE(run.actions.size() == 1);
    CHECK(run.actions[0].kind == ActionKind::throttle_io);
    CHECK(run.actions[0].target == 1);
    CHECK(run.actions[0].value == 500);
    CHECK(run.t1().phase == Phase::guarded);
    run.go(14);
    CHECK(run.actions.size() == 1);
    run.go(1);
    REQUIRE(run.actions.size() == 2);
    CHECK(run.actions[1].kind == ActionKind::release_io);
    CHECK(run.t1().phase == Phase::observe);
}

TEST_CASE("no tenant is throttled for unattributed traffic") {
    Run run(only(Variant::guards));
    run.go(300, [](Observation& seen) {
        busy_root(seen);
        seen.tenants[1].pcie_attribution = Attribution::unknown;
    });
    CHECK(run.actions.empty());
    CHECK(run.t1().phase == Phase::exhausted);
    CHECK_FALSE(run.state.admission_open);  // the other tenant is content
    run.go(20);
    CHECK(run.state.admission_open);
    CHECK(run.t1().phase == Phase::observe);
}

TEST_CASE("a busy client's quota falls, and is restored if that did not help") {
    Run kept(only(Variant::guards));
    kept.go(3, busy_client);
    REQUIRE(kept.actions.size() == 1);
    CHECK(kept.actions[0].kind == ActionKind::set_quota);
    CHECK(kept.actions[0].target == 2);
    CHECK(kept.actions[0].value == 75);
    CHECK(kept.t1().place.good.quota_percent == 100);
    // With the quota the client shows less activity, but is as busy as it may be: windows stay comparable.
    kept.go(16, [](Observation& seen) {
        busy_client(seen);
        seen.tenants[2].sm_active = 0.68;
    });
    CHECK(kept.t1().phase == Phase::cooldown);
    CHECK(kept.t1().place.good.quota_percent == 75);

    Run worse(only(Variant::guards));
    worse.go(3, busy_client);
    worse.go(16, [](Observation& seen) {
        busy_client(seen);
        seen.tenants[0].p99_ms = 30;
    });
    REQUIRE(worse.actions.size() == 2);
    CHECK(worse.actions[1].lever == Lever::rollback);
    CHECK(worse.actions[1].kind == ActionKind::set_quota);
    CHECK(worse.actions[1].value == 100);
    CHECK(worse.t1().place.current == worse.t1().place.good);
}

TEST_CASE("a tenant moves off a busy root, and only validated changes stay") {
    Run run(only(Variant::placement));
    run.go(3, busy_root);
    REQUIRE(run.actions.size() == 1);
    CHECK(run.actions[0].kind == ActionKind::reconfigure);
    CHECK(run.actions[0].lever == Lever::move);
    CHECK(run.actions[0].after.gpu == 1);
    CHECK(run.actions[0].make_before_break);
    CHECK(run.t1().phase == Phase::reconfig);
    const auto found = run.o.host.tenants[0].start;
    CHECK(run.t1().place.good == found);
    run.go(6, busy_root);
    CHECK(run.t1().phase == Phase::validate);
    CHECK(run.t1().place.current.gpu == 1);
    CHECK(run.t1().place.good == found);  // not yet
    SECTION("kept") {
        run.go(17, busy_root);
        CHECK(run.t1().phase == Phase::cooldown);
        CHECK(run.t1().place.good.gpu == 1);
    }
    SECTION("rolled back to the state before") {
        run.go(17, [](Observation& seen) {
            busy_root(seen);
            seen.tenants[0].p99_ms = 40;
        });
        REQUIRE(run.actions.size() == 2);
        CHECK(run.actions[1].lever == Lever::rollback);
        CHECK(run.actions[1].after == found);
        run.go(6, busy_root);
        CHECK(run.t1().phase == Phase::cooldown);
        CHECK(run.t1().place.current == found);
        // The same change is blocked for four dwells.
        run.go(900, busy_root);
        CHECK(run.actions.size() == 2);
    }
    SECTION("windows under other pressure do not count, and in the end nothing is concluded") {
        run.go(61, slow);
        CHECK(run.t1().phase == Phase::validate);
        run.go(1, slow);
        CHECK(run.t1().phase == Phase::cooldown);
        CHECK(run.t1().place.current.gpu == 1);
        CHECK(run.t1().place.good == found);
    }
}

TEST_CASE("instances are enlarged step by step, a dwell apart, and never above the budget of an hour") {
    Run run(only(Variant::mig));
    run.go(1800, slow);
    REQUIRE(run.actions.size() == 3);
    const char* keys[] = {"3g", "4g", "7g"};
    for (std::size_t k = 0; k < 3; ++k) {
        CHECK(profile_of(run.o, run.actions[k].after) == keys[k]);
        CHECK(run.actions[k].lever == Lever::enlarge);
    }
    CHECK(run.actions[0].make_before_break);
    CHECK_FALSE(run.actions[2].make_before_break);
    CHECK(run.t1().phase == Phase::exhausted);
}

TEST_CASE("an instance gets more memory if no profile with more SMs fits, and gives it back") {
    auto o = only(Variant::mig);
    const auto& device = mig_device("A100-40GB");
    const auto at = [&](const char* key, std::uint8_t start) {
        return MigInstance{static_cast<std::uint8_t>(device.find(key)), start};
    };
    o.host.tenants[0].start.instance = at("1g", 6);
    o.flags.relax = true;
    Run full(o);
    for (const auto other : {at("3g", 0), at("2g", 4)}) full.host.layouts[0].add(other);
    full.go(600, slow);
    REQUIRE(full.actions.size() == 1);
    CHECK(full.actions[0].lever == Lever::enlarge);
    CHECK(full.actions[0].after.instance == at("1g.2mem", 6));
    full.go(1200, [](Observation& seen) { seen.tenants[0].p99_ms = 2; });
    REQUIRE(full.actions.size() == 2);
    CHECK(full.actions[1].lever == Lever::relax);
    CHECK(profile_of(full.o, full.actions[1].after) == "1g");

    Run room(o);  // more SMs are possible, and as much memory with them
    room.go(100, slow);
    REQUIRE(room.actions.size() == 1);
    CHECK(profile_of(room.o, room.actions[0].after) == "2g");
}

TEST_CASE("an instance with a client that does not move is left alone") {
    auto o = only(Variant::mig);
    o.host.tenants[2].follows = false;
    Run run(o);
    run.go(600, slow);
    CHECK(run.actions.empty());
}

TEST_CASE("failures: undone ones cool down, lost devices freeze until the operator comes") {
    Run undone(only(Variant::mig));
    undone.outcome = {.finished = true, .status = BackendStatus::insufficient_resources};
    undone.go(9, slow);
    CHECK(undone.t1().phase == Phase::cooldown);
    CHECK(undone.t1().place.current == undone.o.host.tenants[0].start);

    Run lost(only(Variant::mig));
    lost.outcome = {.finished = true, .status = BackendStatus::gpu_is_lost, .restored = false};
    lost.go(400, slow);
    CHECK(lost.t1().phase == Phase::hold);
    CHECK(lost.actions.size() == 1);
    lost.go(1, [](Observation& seen) { seen.operator_resume = true; });
    lost.go(10);
    CHECK(lost.t1().phase == Phase::cooldown);
}

TEST_CASE("an outcome that arrives after the operator resumed still sets the tenant's place") {
    Run run(only(Variant::mig));
    while (run.actions.empty() && run.window < 20) run.go(1, slow);
    REQUIRE(run.actions.size() == 1);
    const auto change = run.actions[0];
    run.go(1, [](Observation& seen) { seen.gpus[0].lost = true; });
    REQUIRE(run.t1().phase == Phase::hold);
    run.go(1, [](Observation& seen) { seen.operator_resume = true; });
    CHECK(run.t1().place.current == change.before);
    run.go(5);
    CHECK(run.t1().place.current == change.after);
    // Such an answer counts once.
    run.go(3, [](Observation& seen) { seen.feedback[0] = {.finished = true}; });
    CHECK(run.t1().place.current == change.after);
    CHECK(!run.t1().change.abandoned);
}

TEST_CASE("stale telemetry holds, and an interrupted validation starts again") {
    Run run(only(Variant::placement));
    run.go(9, busy_root);
    REQUIRE(run.t1().phase == Phase::validate);
    const auto silent = [](Observation& seen) { seen.tenants[0].count = 3; };
    run.go(9, silent);
    CHECK(run.t1().phase == Phase::validate);
    run.go(1, silent);
    CHECK(run.t1().phase == Phase::hold);
    run.go(9, busy_root);
    CHECK(run.t1().phase == Phase::hold);
    run.go(1, busy_root);
    CHECK(run.t1().phase == Phase::validate);
    CHECK(run.t1().counter == 0);
}

TEST_CASE("unneeded resources are given back: quota first, then a smaller profile") {
    auto o = control_options();
    o.host.tenants[0].start.quota_percent = 50;
    Run run(o);
    // A controller before this one took that much; the tenant began with less.
    const auto& device = mig_device("A100-40GB");
    ControllerCarryover memory(o.host.tenants.size());
    memory[0].floor = {.instance = {static_cast<std::uint8_t>(device.find("1g")), 0}};
    run.state = initial_state(o, memory);
    const auto fast = [](Observation& seen) { seen.tenants[0].p99_ms = 5; };
    run.go(60, fast);
    REQUIRE(run.actions.size() == 1);
    CHECK(run.actions[0].kind == ActionKind::set_quota);
    CHECK(run.actions[0].value == 75);
    run.go(800, fast);
    REQUIRE(run.actions.size() >= 3);
    CHECK(run.actions[1].value == 100);
    CHECK(run.actions[2].kind == ActionKind::reconfigure);
    CHECK(run.actions[2].lever == Lever::relax);
    CHECK(device.profiles[run.actions[2].after.instance.profile].sm_count == 14);

    Run unknown_memory(o);
    unknown_memory.o.host.tenants[0].start.quota_percent = 100;
    unknown_memory.state = initial_state(unknown_memory.o, memory);
    unknown_memory.go(800, [](Observation& seen) {
        seen.tenants[0].p99_ms = 5;
        seen.tenants[0].memory_used_mib = unknown_signal;
    });
    CHECK(unknown_memory.actions.empty());
}

TEST_CASE("a dry run decides and does nothing; disabling ends leases") {
    auto o = control_options();
    o.flags.dry_run = true;
    Run dry(o);
    dry.go(3, busy_root);
    CHECK(dry.actions.empty());
    REQUIRE(dry.out.wished.size() == 1);
    CHECK(dry.t1().place.current == o.host.tenants[0].start);

    Run run(only(Variant::guards));
    run.go(3, busy_root);
    run.go(1, [](Observation& seen) { seen.enabled = false; });
    REQUIRE(run.actions.size() == 2);
    CHECK(run.actions[1].kind == ActionKind::release_io);
    CHECK(run.t1().phase == Phase::disabled);
    run.go(1);
    CHECK(run.t1().phase == Phase::observe);
}

TEST_CASE("time that goes back or stands still ends persistence, and leases end all the same") {
    Run run(only(Variant::guards));
    run.go(2, busy_root);
    run.go(1, [](Observation& seen) {
        busy_root(seen);
        seen.time_s = 0;
    });
    CHECK(run.t1().phase == Phase::observe);
    CHECK(run.actions.empty());
    run.go(1, busy_root);
    run.go(2, busy_root);
    CHECK(run.actions.size() == 1);
    run.window += 50;
    run.go(1);
    REQUIRE(run.actions.size() == 2);
    CHECK(run.actions[1].kind == ActionKind::release_io);
}

TEST_CASE("options out of range are named, all at once") {
    auto o = control_options();
    o.window_s = 0;
    o.persistence = 0;
    o.quota_levels = {40};
    o.host.gpus[0].root = 7;
    CHECK_THAT(testing_support::problems_in<InvalidInput>([&] { validate(o); }),
               MentionsEach({"gpu root 7 0 1", "window_s 0; 0.1 60", "persistence 0 1 1000",
                             "quota_levels 40 50 100"}));
    auto state = initial_state(control_options());
    Observation empty;
    StepResult out;
    CHECK_THROWS_WITH(step(state, empty, control_options(), out), Mentions("observation expected vectors"));
}

TEST_CASE(
    "a limit that could not be set is no limit: other levers at once, the same when the dwell is over") {
    auto o = only(Variant::guards);
    o.host.tenants[2].client_of = -1;
    Run run(o);
    const auto fails = [](Observation& seen) {
        busy_root(seen);
        seen.guards.assign(4, BackendStatus::ok);
        seen.guards[0] = BackendStatus::in_use;
    };
    run.go(3, busy_root);
    REQUIRE(run.actions.size() == 1);
    REQUIRE(run.t1().lease.offender == 1);
    run.go(1, fails);
    CHECK(run.t1().lease.offender == -1);
    CHECK(run.t1().phase == Phase::suspect);
    REQUIRE(!run.out.events.empty());
    CHECK(run.out.events[0].row == Row::failed);
    CHECK(std::string_view(run.out.events[0].reason) == "in_use");
    run.go(o.guard_dwell - 2, busy_root);
    CHECK(run.actions.size() == 1);  // no release of what was never there, and no second try yet
    run.go(1, busy_root);
    REQUIRE(run.actions.size() == 2);
    CHECK(run.actions[1].kind == ActionKind::throttle_io);
    CHECK(run.actions[1].value == run.actions[0].value);
    // With other levers there is no wait.
    auto more = only(Variant::full);
    more.host.tenants[2].client_of = -1;
    Run full(more);
    full.go(3, busy_root);
    REQUIRE(full.actions.back().kind == ActionKind::throttle_io);
    full.go(1, fails);
    CHECK(full.actions.back().kind == ActionKind::reconfigure);
}

TEST_CASE("a quota that could not be set is not validated") {
    Run run(only(Variant::guards));
    run.go(3, busy_client);
    REQUIRE(run.t1().phase == Phase::validate);
    REQUIRE(run.t1().place.current.quota_percent == 75);
    run.go(1, [](Observation& seen) {
        busy_client(seen);
        seen.guards.assign(4, BackendStatus::ok);
        seen.guards[0] = BackendStatus::timeout;
    });
    CHECK(run.t1().place.current.quota_percent == 100);
    CHECK(run.t1().phase == Phase::suspect);
    CHECK(!run.t1().frozen);
    // What is said of a guard that was never set changes nothing.
    Run quiet(control_options());
    quiet.go(5, [](Observation& seen) { seen.guards.assign(4, BackendStatus::in_use); });
    CHECK(quiet.t1().phase == Phase::observe);
    CHECK(quiet.t1().place.current == quiet.o.host.tenants[0].start);
    CHECK_THROWS_AS(quiet.go(1, [](Observation& seen) { seen.guards.resize(1); }), InvalidInput);
}

TEST_CASE(
    "the paper's order: cores and a stricter quota come with an upgrade, and by themselves without one") {
    Run run(only(Variant::paper));
    run.go(3, busy_client);
    REQUIRE(run.actions.size() == 1);
    const auto a = run.actions[0];
    CHECK(a.kind == ActionKind::reconfigure);
    CHECK(a.lever == Lever::enlarge);
    CHECK(a.after.quota_percent == 75);
    CHECK(a.after.cpus != CpuSet{});
    // The table of this library lowers the quota first, by itself.
    Run full(only(Variant::full));
    full.go(3, busy_client);
    REQUIRE(full.actions.size() == 1);
    CHECK(full.actions[0].kind == ActionKind::set_quota);

    SECTION("worse: all of it is undone, and not done again") {
        const auto worse = [](Observation& seen) {
            busy_client(seen);
            seen.tenants[0].p99_ms = 40;
        };
        run.go(24, worse);
        REQUIRE(run.actions.size() == 2);
        CHECK(run.actions[1].lever == Lever::rollback);
        CHECK(run.actions[1].after == run.o.host.tenants[0].start);
        run.go(600, busy_client);
        for (std::size_t k = 2; k < run.actions.size(); ++k) CHECK(run.actions[k].after != a.after);
    }
    SECTION("a quota that could not be set is not in place, the change of instance is") {
        run.go(6, busy_client);
        REQUIRE(run.t1().phase == Phase::validate);
        run.go(1, [](Observation& seen) {
            busy_client(seen);
            seen.guards.assign(4, BackendStatus::ok);
            seen.guards[0] = BackendStatus::not_supported;
        });
        CHECK(run.t1().phase == Phase::validate);
        CHECK(run.t1().place.current.instance == a.after.instance);
        CHECK(run.t1().place.current.quota_percent == 100);
        CHECK(run.t1().place.current.cpus == CpuSet{});
    }
    SECTION("a tenant without a larger instance gets the guards alone") {
        auto o = only(Variant::paper);
        o.flags.place = o.flags.mig = false;
        Run guards(o);
        guards.go(3, busy_client);
        REQUIRE(guards.actions.size() == 1);
        CHECK(guards.actions[0].kind == ActionKind::set_quota);
    }
    SECTION("only with a client, and within the loss budget") {
        const auto gone = [](Observation& seen) {
            slow(seen);
            seen.tenants[2].present = false;
        };
        Run alone(only(Variant::paper));
        alone.go(3, gone);
        REQUIRE(alone.actions.size() == 1);
        CHECK(alone.actions[0].after.quota_percent == 100);
        auto o = only(Variant::paper);
        o.system_loss_budget = 0.05;
        Run poor(o);
        poor.go(3, busy_client);
        REQUIRE(poor.actions.size() == 1);
        CHECK(poor.actions[0].lever == Lever::enlarge);
        CHECK(poor.actions[0].after.quota_percent == 100);
    }
}

TEST_CASE("own_gpu_first takes a better place on the own GPU before the best one") {
    auto o = only(Variant::placement);
    o.better_by = 0.01;  // starts of one GPU differ by what they leave of its largest free block
    o.host.tenants[0].start.instance.start = 2;
    const MigInstance small{static_cast<std::uint8_t>(mig_device("A100-40GB").find("1g")), 6};
    for (const bool own : {false, true}) {
        o.flags.own_gpu_first = own;
        Run run(o);
        run.host.layouts[0].add(small);
        run.go(3, busy_root);
        REQUIRE(run.actions.size() == 1);
        CHECK(run.actions[0].lever == Lever::move);
        CHECK(run.actions[0].after.gpu == (own ? 0 : 1));
    }
    // If no start of the own GPU is better, another GPU is tried as well.
    o.better_by = 0.1;
    Run run(o);
    run.host.layouts[0].add(small);
    run.go(3, busy_root);
    REQUIRE(run.actions.size() == 1);
    CHECK(run.actions[0].after.gpu == 1);
}

TEST_CASE("the smallest larger profile comes first, or with largest_first the largest one") {
    const auto& d = mig_device("A100-40GB");
    for (const bool largest : {false, true}) {
        auto o = only(Variant::mig);
        o.flags.largest_first = largest;
        Run run(o);
        run.go(3, busy_client);
        REQUIRE(run.actions.size() == 1);
        CHECK(run.actions[0].lever == Lever::enlarge);
        CHECK(profile_of(o, run.actions[0].after) == (largest ? "7g" : "3g"));
        // Others leave room for half of the GPU: the largest that fits.
        Run tight(o);
        tight.host.layouts[0].add({static_cast<std::uint8_t>(d.find("3g")), 4});
        tight.go(3, busy_client);
        REQUIRE(tight.actions.size() == 1);
        CHECK(profile_of(o, tight.actions[0].after) == (largest ? "4g" : "3g"));
    }
}

TEST_CASE("variants: each has the levers of its name") {
    const auto of = [](Variant v) {
        const auto f = variant_flags(v);
        return std::vector<bool>{f.guard_io, f.guard_mps, f.place, f.mig, f.pin, f.relax, f.predict};
    };
    CHECK(of(Variant::static_configuration) ==
          std::vector<bool>{false, false, false, false, false, false, false});
    CHECK(of(Variant::guards) == std::vector<bool>{true, true, false, false, false, true, false});
    CHECK(of(Variant::placement) == std::vector<bool>{false, false, true, false, true, true, false});
    CHECK(of(Variant::mig) == std::vector<bool>{false, false, false, true, true, true, false});
    CHECK(of(Variant::full) == std::vector<bool>{true, true, true, true, true, true, false});
    CHECK(of(Variant::ours) == std::vector<bool>{true, true, true, true, true, true, true});
    CHECK(of(Variant::paper) == of(Variant::full));
    CHECK(of(Variant::no_guards) == std::vector<bool>{false, false, true, true, true, true, false});
    CHECK(of(Variant::no_placement) == std::vector<bool>{true, true, false, true, true, true, false});
    CHECK(of(Variant::no_mig) == std::vector<bool>{true, true, true, false, true, true, false});
    CHECK(variant_flags(Variant::paper).join_guards);
    CHECK(variant_flags(Variant::paper).own_gpu_first);
    CHECK_FALSE(variant_flags(Variant::paper).largest_first);
    CHECK(of(Variant::paper_largest) == of(Variant::paper));
    CHECK(variant_flags(Variant::paper_largest).largest_first);
    CHECK(variant_flags(Variant::paper_largest).join_guards);
    CHECK_FALSE(variant_flags(Variant::full).join_guards);
}

TEST_CASE("a p999 above its own threshold, if there is one, is a tail above the target") {
    const auto long_tail = [](Observation& seen) { seen.tenants[0].p999_ms = 50; };
    Run without(only(Variant::mig));
    without.go(5, long_tail);
    CHECK(without.actions.empty());
    auto o = only(Variant::mig);
    o.host.tenants[0].tau_p999_ms = 40;
    Run run(o);
    run.go(3, long_tail);
    REQUIRE(run.actions.size() == 1);
    // What follows is judged by it, too.
    run.go(24, [](Observation& seen) { seen.tenants[0].p999_ms = 80; });
    REQUIRE(run.actions.size() == 2);
    CHECK(run.actions[1].lever == Lever::rollback);
    Run unknown(o);
    unknown.go(5, [](Observation& seen) { seen.tenants[0].p999_ms = unknown_signal; });
    CHECK(unknown.actions.empty());
    o.host.tenants[0].tau_p999_ms = -1;
    CHECK_THROWS_WITH(validate(o), Mentions("tau_p999_ms -1 0 1e+07"));
}

TEST_CASE("replays of a PCIe root are pressure if their number is given") {
    const auto replaying = [](Observation& seen) {
        slow(seen);
        seen.roots[0].replays = 62;  // 31 per second
        seen.tenants[1].pcie_bytes_per_s = 12e9;
        seen.tenants[1].io_bytes_per_s = 3e9;
        seen.tenants[1].pcie_attribution = Attribution::measured;
    };
    auto o = only(Variant::guards);
    o.host.tenants[2].client_of = -1;
    Run without(o);
    without.go(5, replaying);
    CHECK(without.actions.empty());
    o.replays_high_per_s = 30;
    Run run(o);
    run.go(3, replaying);
    REQUIRE(run.actions.size() == 1);
    CHECK(run.actions[0].kind == ActionKind::throttle_io);
    o.replays_high_per_s = 31;
    Run few(o);
    few.go(5, replaying);
    CHECK(few.actions.empty());
    // Traffic that is not known leaves replays alone to tell.
    o.replays_high_per_s = 30;
    Run blind(o);
    blind.go(3, [&](Observation& seen) {
        replaying(seen);
        seen.roots[0].bytes_per_s = unknown_signal;
    });
    CHECK(blind.actions.size() == 1);
}

TEST_CASE("traffic of network interfaces counts as others' on its root, and its log replays") {
    const auto receiving = [](Observation& seen) {
        slow(seen);
        seen.nic_bytes_per_s = {12e9, 0};
    };
    Run run(only(Variant::placement));
    run.go(3, receiving);
    REQUIRE(run.actions.size() == 1);
    CHECK(run.actions[0].after.gpu == 1);
    Run quiet(only(Variant::placement));
    quiet.go(5, slow);
    CHECK(quiet.actions.empty());
    // No root is left for one that cannot have that much.
    Run absurd(only(Variant::placement));
    absurd.go(5, [](Observation& seen) {
        slow(seen);
        seen.nic_bytes_per_s = {1e15, unknown_signal};
    });
    CHECK(absurd.actions.empty());
    CHECK_THROWS_AS(quiet.go(1, [](Observation& seen) { seen.nic_bytes_per_s = {1.0}; }), InvalidInput);

    auto o = only(Variant::ours);
    auto state = initial_state(o);
    StepResult out;
    std::string log;
    for (std::int64_t w = 0; w < 30; ++w) {
        auto seen = control_window(o, w);
        receiving(seen);
        step(state, seen, o, out);
        append_audit_line(log, seen, state, out, options_hash(o));
    }
    CHECK(log.find(R"("nic":[1.2e+10,0])") != std::string::npos);
    CHECK(replay_audit(log, o).first_difference < 0);
}

}  // namespace step_tests

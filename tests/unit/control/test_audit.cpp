// SPDX-License-Identifier: Apache-2.0
// Audit lines: they replay to the same bytes, and a line that was changed is found.
#include "support/control_host.hpp"

#include <cstdio>

using namespace gpusched;
using namespace gpusched::control;

namespace {

std::string record(const ControllerOptions& o, std::uint64_t seed, int windows) {
    Rng rng(seed);
    test::ControlHost host(o);
    auto state = initial_state(o);
    StepResult out;
    std::string log;
    bool busy = false;
    for (std::int64_t w = 0; w < windows; ++w) {
        if (rng.chance(0.02)) busy = !busy;
        auto seen = test::control_window(o, w);
        seen.wall_time_s = 1.7e9 + rng.uniform();
        seen.tenants[0].p99_ms = (busy ? 20 : 8) + rng.uniform();
        seen.tenants[0].p50_ms = std::nextafter(rng.uniform(), 2);
        seen.tenants[2].sm_active = rng.uniform();
        seen.roots[0].bytes_per_s = busy ? 17e9 * (0.9 + 0.1 * rng.uniform()) : 1e9 / 3;
        seen.roots[1].replays = std::numeric_limits<double>::infinity();
        seen.tenants[1].pcie_bytes_per_s = 1e10 * rng.uniform();
        seen.tenants[1].io_bytes_per_s = 2e9;
        seen.tenants[1].pcie_attribution = Attribution::inferred;
        host.fill(seen);
        step(state, seen, o, out);
        append_audit_line(log, seen, state, out, options_hash(o));
        for (const auto& a : out.actions)
            if (a.kind == ActionKind::reconfigure)
                host.start(a, w, 4,
                           {.finished = true,
                            .status = rng.chance(0.3) ? BackendStatus::in_use : BackendStatus::ok});
    }
    return log;
}

}  // namespace

TEST_CASE("a log replays to the same bytes") {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        auto o = test::control_options();
        o.dwell = 40;
        o.cool_down = o.guard_dwell = 10;
        const auto log = record(o, seed, 1500);
        const auto replay = replay_audit(log, o);
        CHECK(replay.first_difference == -1);
        CHECK(replay.windows == 1500);
        CHECK(replay.actions > 3);
        // A torn last line is left out.
        CHECK(replay_audit(std::string_view(log).substr(0, log.size() - 10), o).windows == 1499);
    }
}

TEST_CASE("a changed line, other options and nonsense are found") {
    const auto o = test::control_options();
    auto log = record(o, 9, 300);
    auto other = o;
    other.persistence = 4;
    CHECK(options_hash(other) != options_hash(o));
    CHECK(replay_audit(log, other).first_difference == 0);

    REQUIRE(log.find("throttle_io") != std::string::npos);
    auto forged = log;
    forged.replace(forged.find("throttle_io"), 11, "release_io_");
    const auto replay = replay_audit(forged, o);
    CHECK(replay.first_difference >= 2);
    CHECK_THAT(replay.found, Mentions("throttle_io"));

    CHECK_THROWS_WITH(replay_audit("{}\n", o), Mentions("line 0: audit line"));
    CHECK_THROWS_WITH(replay_audit("nonsense\n", o), Mentions("line 0: audit line"));
    CHECK(replay_audit("", o).windows == 0);
}

TEST_CASE("a log with its options replays for any hash of its version") {
    const auto o = test::control_options();
    std::string log;
    append_start_record(log, o);
    log += record(o, 3, 50);
    char ours[20];
    std::snprintf(ours, sizeof ours, "%016llx", static_cast<unsigned long long>(options_hash(o)));
    const std::string_view theirs = "0123456789abcdef";
    for (auto at = log.find(ours); at != std::string::npos; at = log.find(ours, at))
        log.replace(at, theirs.size(), theirs);
    auto other = o;
    other.persistence = 4;
    CHECK(replay_audit(log, other).windows == 50);
    // It is the same in all lines.
    log.replace(log.rfind(theirs), theirs.size(), "0123456789abcdee");
    CHECK(replay_audit(log, other).first_difference == 50);
}

TEST_CASE("cores of a configuration are written in four words, or as many as hold cores") {
    auto o = test::control_options();
    o.host.core_numa.assign(most_cores, 0);
    validate(o);
    StepResult result;
    Action action;
    action.before.cpus.add(255);
    action.after.cpus.add(383);
    result.wished = {action};
    std::string line;
    append_audit_line(line, Observation{}, initial_state(o), result, 0);
    CHECK(line.find(R"("before":[0,0,0,100,0,0,0,-9223372036854775808])") != std::string::npos);
    CHECK(line.find(R"("after":[0,0,0,100,0,0,0,0,0,-9223372036854775808])") != std::string::npos);
    o.host.core_numa.push_back(0);
    CHECK_THROWS_MESSAGE(validate(o), InvalidInput, "core_numa 1025 0 1024");
}

TEST_CASE("verdicts on placements are written by their names") {
    const auto o = test::control_options();
    StepResult result;
    for (const auto& [verdict, name] : enumerators<CandidateVerdict>())
        result.candidates.push_back({.tenant = 0, .gpu = 1, .score = 0.5, .verdict = verdict});
    std::string line;
    append_audit_line(line, Observation{}, initial_state(o), result, 0);
    CHECK(line.find(R"("candidates":[[0,1,0,0,0.5,"no score"],[0,1,0,0,0.5,"entered before"],)"
                    R"([0,1,0,0,0.5,"blocked"],[0,1,0,0,0.5,"less memory"],[0,1,0,0,0.5,"worse"],)"
                    R"([0,1,0,0,0.5,"better"],[0,1,0,0,0.5,"larger"]])") != std::string::npos);
}

TEST_CASE("a log that several starts have written replays, a torn line between them included") {
    auto first = test::control_options(), second = first;
    second.persistence = 4;
    std::string log;
    append_start_record(log, first);
    log += record(first, 3, 200);
    log += record(first, 4, 1).substr(0, 70) + "\n";  // the process died here; the next one begins a line
    append_start_record(log, second);
    log += R"({"record":"outcome","kind":"throttle_io","target":"T2","status":"no_permission"})"
           "\n";
    log += R"({"record":"resume","verdict":"refused","reasons":["a \"program\" is at work"]})"
           "\n";
    log += record(second, 5, 200);
    const auto replay = replay_audit(log, test::control_options());
    CHECK(replay.first_difference == -1);
    CHECK(replay.windows == 400);
    // What the reader gave counts up to the first start with options.
    CHECK(replay_audit(log, second).first_difference == -1);
    CHECK(replay_audit("{\"record\":\"start\"}\n" + record(first, 3, 20), second).first_difference == 1);
    // Without the start the broken line is reported, and windows that begin again are found.
    const auto at = log.find("{\"record\"", 1), end = log.find('\n', at) + 1;
    CHECK_THROWS_WITH(replay_audit(log.substr(0, at) + log.substr(end), first),
                      Mentions("line 201: audit line"));
    CHECK_THROWS_WITH(
        replay_audit("{\"record\":\"x\"}\n", first),
        Mentions(R"(line 0: audit record: /record "start" "release" "outcome" "resume" "admission" "x")"));
}

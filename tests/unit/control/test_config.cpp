// SPDX-License-Identifier: Apache-2.0
#include "support/control_host.hpp"

#include <gpusched/control/control.hpp>

using namespace gpusched;
using namespace gpusched::control;

namespace {

/// A complete document with one part replaced.
std::string document(const std::string& host, const std::string& more = "") {
    return R"({"format": "gpusched.control", "version": 1, "host": {)" + host + "}" + more + "}";
}

const std::string plain =
    R"("roots": [{}], "gpus": [{"device": "A100-80GB"}], "core_numa": [0, 0],
       "tenants": [{"name": "T1", "protected": true, "start": {"profile": "2g", "slice": 2, "cpus": "0-1"}},
                   {"name": "T3", "gpu": 0, "client_of": "T1"}])";

std::vector<MigLayout> layouts_of(const ControllerOptions& o) { return initial_state(o).layouts; }

}  // namespace

TEST_CASE("a configuration is read; missing fields keep their defaults") {
    const auto o = parse_config(document(plain, R"(, "flags": {"mig": false}, "options": {"dwell": 64})"));
    CHECK(o.host.gpus[0].device == "A100-80GB");
    CHECK(o.host.tenants[0].start.instance.start == 2);
    CHECK(mig_device("A100-80GB").profiles[o.host.tenants[0].start.instance.profile].key == "2g");
    CHECK(cpus_text(o.host.tenants[0].start.cpus) == "0-1");
    CHECK(o.host.tenants[1].client_of == 0);
    CHECK(!o.flags.mig);
    CHECK(o.flags.place);
    CHECK(o.dwell == 64);
    CHECK(o.guard_dwell == ControllerOptions{}.guard_dwell);
}

TEST_CASE("all written options read back to the same hash") {
    Rng rng(21);
    for (int round = 0; round < 200; ++round) {
        auto o = test::control_options();
        for (bool* flag : {&o.flags.guard_io, &o.flags.guard_mps, &o.flags.place, &o.flags.mig, &o.flags.pin,
                           &o.flags.relax, &o.flags.rollback, &o.flags.admission, &o.flags.dry_run,
                           &o.flags.predict, &o.release_on_disable, &o.host.tenants[2].follows})
            *flag = rng.chance(0.5);
        for (std::int32_t* n : {&o.least_samples, &o.stale_after, &o.persistence, &o.dwell, &o.guard_dwell,
                                &o.cool_down, &o.validation, &o.relax_after, &o.reconfigure_timeout})
            *n = static_cast<std::int32_t>(1 + rng.below(900));
        for (double* x : {&o.low_factor, &o.relax_below, &o.relax_limit, &o.ema_weight, &o.better_by,
                          &o.relax_score, &o.loss_budget, &o.system_loss_budget})
            *x = 0.02 + 0.9 * rng.uniform();
        o.window_s = 0.1 + rng.uniform();
        o.lease_s = o.window_s + rng.uniform();
        o.worse_factor = 1 + rng.uniform();
        o.pause_s = 10 * rng.uniform();
        o.hour_s = 1 + 1000 * rng.uniform();
        for (double* high : {&o.pcie_high, &o.io_high, &o.irq_high, &o.sm_high}) *high *= 1 + rng.uniform();
        for (double* low : {&o.pcie_low, &o.io_low, &o.irq_low, &o.sm_low}) *low *= rng.uniform() + 1e-9;
        o.structural_per_hour = static_cast<std::int32_t>(rng.below(9));
        o.io_levels_mb_s = {static_cast<std::int32_t>(300 + rng.below(200)), 120};
        o.quota_levels.resize(rng.below(3));
        for (std::size_t c = 0; c < 256; ++c)
            if (rng.chance(0.3)) o.host.tenants[0].start.cpus.add(c);
        o.host.tenants[0].tau_ms = 1 + 100 * rng.uniform();
        o.host.roots[1].capacity_bytes_per_s *= rng.uniform() + 0.01;
        const auto text = write_config(o);
        const auto again = parse_config(text);
        REQUIRE(options_hash(again) == options_hash(o));
        REQUIRE(write_config(again) == text);
    }
}

TEST_CASE("every mistake in a configuration is reported with its place") {
    const auto fails = [](const std::string& text, const char* message) {
        INFO(text);
        CHECK_THROWS_WITH(parse_config(text), Mentions(message));
    };
    fails("nonsense", "configuration:");
    fails("[]", "an object");
    for (const char* host : {"[0]", "[[]]", "[{}, {}]", "\"x\"", "3", "null"})
        fails(R"({"format": "gpusched.control", "version": 1, "host": )" + std::string(host) + "}",
              "/host an object");
    fails(R"({"format": "gpusched.control", "version": 1, "gpus": [{}, {}, {}]})", "'host' missing");
    fails("{}", "configuration 'format' 'version' missing");
    fails(R"({"format": "gpusched.control", "version": 1})", "configuration 'host' missing");
    fails(R"({"format": "other", "version": 1})", R"(configuration /format "gpusched.control" "other")");
    fails(R"({"format": "gpusched.control", "version": 2})", "configuration /version 1 2");
    fails(document(plain, R"(, "extra": 1)"), "/extra unknown");
    fails(document(plain, R"(, "options": {"dwel": 1})"), "/options/dwel unknown");
    fails(document(plain, R"(, "options": {"dwell": 1.5})"), "/options/dwell integer 1.5");
    fails(document(plain, R"(, "options": {"dwell": 18446744073709551615})"),
          "/options/dwell 1 10000000 1.8446744073709552e+19");
    fails(document(plain, R"(, "options": {"dwell": 0})"), "/options/dwell 1 10000000 0");
    fails(document(plain, R"(, "options": {"window_s": null})"), "/options/window_s number null");
    fails(document(plain, R"(, "options": {"ema_weight": 0, "lease_s": 400})"),
          "/options/lease_s above 0 300 400");
    fails(document(plain, R"(, "flags": {"mig": 1})"), "/flags/mig true false 1");
    fails(document(R"("gpus": [{"device": "X"}])"), "/host/gpus/0/device 'X' one of A100-40GB");
    fails(document(R"("gpus": 3)"), "/host/gpus array 3");
    fails(document(R"("roots": [{}], "gpus": [{}], "tenants": [{"name": "a", "protected": true}])"),
          "/host/tenants/0 'start' missing");
    fails(document(R"("roots": [{}], "gpus": [{}], "tenants": [{"name": "a"}, {"name": "a"}])"),
          "/host/tenants/1/name no other tenant \"a\"");
    fails(document(R"("roots": [{}], "gpus": [{}], "tenants": [{"name": "a", "client_of": "b"}])"),
          "/host/tenants/0/client_of name of tenant \"b\"");
    fails(document(R"("roots": [{}], "gpus": [{}], "tenants": [
                      {"name": "a", "protected": true, "start": {"profile": "2g", "slice": 0}},
                      {"name": "b", "protected": true, "start": {"profile": "1g", "slice": 1}}])"),
          "tenant 'b' start.instance: 0 at 1; placement tenants' leave free");
    fails(document(plain) + std::string(1, '\0') + "x", "holds NUL");
    for (const char* start :
         {R"({"profile": "9g"})", R"({"profile": "2g", "slice": 8})", R"({"profile": "2g", "gpu": 1})",
          R"({"profile": "2g", "cpus": "4-"})", R"({"profile": "2g", "slice": 1})",
          R"({"profile": "2g", "quota_percent": 49})"}) {
        INFO(start);
        const auto tenant = R"("tenants": [{"name": "a", "protected": true, "start": )" + std::string(start);
        const auto text = document(R"("roots": [{}], "gpus": [{}], )" + tenant + "}]");
        CHECK_THROWS_AS(parse_config(text), InvalidInput);
    }
    CHECK(testing_support::problems_in<InvalidInput>([&] {
              static_cast<void>(
                  parse_config(document(plain, R"(, "options": {"dwell": "x", "window_s": []})")));
          }).size() == 2);
}

TEST_CASE("a key that appears twice in an object is refused by every reader") {
    const auto o = test::control_options();
    const auto twice = [](const std::string& what) { return Mentions(what + "key 'x' more once"); };
    const std::string x = R"({"x": {"y": 1}, "x": 2})";
    CHECK_THROWS_WITH(parse_config(x), twice("configuration "));
    CHECK_THROWS_WITH(parse_signals(R"({"tenants": [{"z": 1}, )" + x + "]}", o, 0, layouts_of(o)),
                      twice("signals /tenants/1 "));
    CHECK_THROWS_WITH(replay_audit(R"({"record":)" + x + "}\n", o), twice("record /record "));
    // In objects of their own keys may repeat, one after the other and one in the other.
    CHECK_THROWS_WITH(parse_config(R"({"x": {"x": [{"x": 1}, {"x": 2}]}, "y": {"x": 3}, "x": 4})"),
                      twice("configuration "));
    CHECK_THROWS_WITH(parse_config(R"({"x": {"x": [{"x": 1}, {"x": 2}]}, "y": {"x": 3}})"),
                      !Catch::Matchers::ContainsSubstring("more than once"));
}

TEST_CASE("nesting without end is refused by every reader, not followed") {
    const auto o = test::control_options();
    const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
    const auto refused = [](const std::string& where, auto&& read) {
        CHECK_THROWS_WITH(read(), Catch::Matchers::StartsWith(where) && Mentions("nested deeper 64 levels"));
    };
    const auto layouts = layouts_of(o);
    refused("configuration: /0/0", [&] { static_cast<void>(parse_config(deep)); });
    refused("signals: /tenants/T1/p99_ms/0", [&] {
        static_cast<void>(parse_signals(R"({"tenants": {"T1": {"p99_ms": )" + deep + "}}}", o, 0, layouts));
    });
    refused("line 0: audit record: /config/host/0", [&] {
        static_cast<void>(replay_audit(R"({"record":"start","config":{"host":)" + deep + "}}\n", o));
    });
    refused("line 0: audit line: /config/0",
            [&] { static_cast<void>(replay_audit(R"({"config":)" + deep + "}\n", o)); });
}

TEST_CASE("lists of cores") {
    CHECK(cpus_text(parse_cpus("0-3,8")) == "0-3,8");
    CHECK(cpus_text(parse_cpus("8,0-2,3\n")) == "0-3,8");
    CHECK(cpus_text(parse_cpus("")).empty());
    CHECK(cpus_text(parse_cpus("0-383,1023")) == "0-383,1023");
    CHECK(cpus_text(CpuSet::all()) == "0-1023");
    CHECK_THROWS_MESSAGE(parse_cpus("1024"), InvalidInput, "cpus '1024' cores 0 1023 0-3,8");
    for (const char* bad : {"65536", "a", "1-", "-1", "3-1", "1,", "1,,2", "1;2", "1 2"}) {
        INFO(bad);
        CHECK_THROWS_AS(parse_cpus(bad), InvalidInput);
    }
}

TEST_CASE("signals: names, defaults and mistakes") {
    const auto o = parse_config(document(plain));
    const auto layouts = layouts_of(o);
    const auto seen = parse_signals(
        R"({"tenants": {"T1": {"p99_ms": 12.5, "count": 40}, "T3": {"sm_active": null,
            "io_attribution": "measured"}}, "roots": [{"bytes_per_s": 1e9}], "irq_per_s": [1, null],
            "feedback": {"T1": {"finished": true, "status": "in_use"}}})",
        o, 7, layouts);
    CHECK(seen.window == 7);
    CHECK(seen.time_s == 16);
    CHECK(seen.tenants[0].p99_ms == 12.5);
    CHECK(seen.tenants[1].sm_active != seen.tenants[1].sm_active);
    CHECK(seen.tenants[1].io_attribution == Attribution::measured);
    CHECK(seen.feedback[0].status == BackendStatus::in_use);
    CHECK(seen.gpus[0].layout == layouts[0]);
    CHECK(parse_signals(R"({"gpus": [{"instances": [["1g", 6]]}]})", o, 0, layouts).gpus[0].layout.size() ==
          1);

    for (const auto& [text, message] : std::initializer_list<std::pair<const char*, const char*>>{
             {"3", "an object"},
             {R"({"nonsense": 1})", "/nonsense: unknown field"},
             {R"({"tenants": {"T9": {}}})", "/tenants/T9 name of a tenant"},
             {R"({"tenants": [{}]})", "/tenants 2 elements found 1"},
             {R"({"tenants": {"T1": {"p99": 1}}})", "/tenants/T1/p99: unknown field"},
             {R"({"tenants": {"T1": {"count": "x"}}})", "/tenants/T1/count integer \"x\""},
             {R"({"roots": [{}, {}]})", "/roots fewer roots"},
             {R"({"gpus": [{}, {}]})", "/gpus fewer GPUs"},
             {R"({"gpus": [{"instances": [["2g", 1]]}]})", "/gpus/0/instances layout part hold"},
             {R"({"gpus": [{"instances": [["2g", 0], ["2g", 0]]}]})", "/gpus/0/instances layout part hold"},
             {R"({"irq_per_s": [1]})", "/irq_per_s 2 elements found 1"},
             {R"({"feedback": {"T1": {"status": "fine"}}})",
              "/feedback/T1/status \"in_use\" \"fine\" mean 'in_use'"}}) {
        INFO(text);
        CHECK_THROWS_WITH(parse_signals(text, o, 0, layouts), Mentions(message));
    }
    CHECK_THROWS_AS(parse_signals("{}", o, 0, {}), InvalidInput);
}

TEST_CASE("an audit line is taken as signals, and decides the same") {
    const auto o = test::control_options();
    auto state = initial_state(o), twin = state;
    StepResult out, again;
    for (std::int64_t w = 0; w < 30; ++w) {
        auto seen = test::control_window(o, w);
        seen.tenants[0].p99_ms = 20;
        step(state, seen, o, out);
        std::string line, other;
        append_audit_line(line, seen, state, out, options_hash(o));
        const auto read = parse_signals(line, o, 0, twin.layouts);
        step(twin, read, o, again);
        append_audit_line(other, read, twin, again, options_hash(o));
        REQUIRE(line == other);
    }
}

TEST_CASE("decisions in words") {
    const auto o = test::control_options();
    const auto& start = o.host.tenants[0].start;
    Action a{
        .kind = ActionKind::throttle_io, .lever = Lever::throttle, .tenant = 0, .target = 1, .value = 250};
    a.before = a.after = start;
    CHECK(describe(o, a) == "T1: limit block I/O of T2 to 250 MB/s for 30 s");
    a.kind = ActionKind::release_io;
    CHECK(describe(o, a) == "T1: end the limit of T2's block I/O");
    a.kind = ActionKind::set_quota;
    a.target = 2;
    a.after.quota_percent = 50;
    CHECK(describe(o, a) == "T1: quota of T3 from 100 to 50 % of the instance");
    a.kind = ActionKind::reconfigure;
    a.lever = Lever::move;
    a.after.gpu = 1;
    a.after.cpus = parse_cpus("4-7");
    a.make_before_break = true;
    CHECK(describe(o, a) == "T1: move from GPU 0 2g at 0 to GPU 1 2g at 0, cores 4-7, quota 50 % "
                            "(no pause: both exist for a while)");
    a.kind = ActionKind::pin;
    CHECK(describe(o, a) == "T1: pin to cores 4-7");
    const AuditEvent e{.tenant = 0,
                       .row = Row::move,
                       .from = Phase::suspect,
                       .to = Phase::reconfig,
                       .cause = Cause::pcie,
                       .reason = "move",
                       .loss = 0.005};
    CHECK(describe(o, e) ==
          "T1: suspect -> reconfig (row 11, cause pcie): move, at most 0.5 % of the hour lost");
}

// SPDX-License-Identifier: Apache-2.0
// The model of the tail, what it makes of exposures, and what the predictive policy decides with it.
#include "support/control_host.hpp"

using namespace gpusched;
using namespace gpusched::control;
using test::control_options;
using test::profile_of;
using Run = test::ControlRun;

namespace {

Exposure random_exposure(Rng& rng) {
    const double size = rng.chance(0.5) ? 1 : 0.5;
    return {rng.uniform(), rng.uniform(), size, size * rng.uniform()};
}
double line(const Exposure& x) { return 2 + 6 * x.pcie + 1 * x.io + 3 * x.size + 4 * x.client; }

ControllerOptions ours() {
    auto o = control_options();
    o.flags = variant_flags(Variant::ours);
    o.host.tenants[3].is_protected = false;  // GPU 1 is free
    o.host.tenants[3].gpu = -1;
    return o;
}
void slow_everywhere(Observation& seen) {
    seen.tenants[0].p99_ms = 22;
    seen.tenants[2].sm_active = 0.9;
    seen.roots[0].bytes_per_s = 16e9;
    seen.tenants[1].pcie_bytes_per_s = 14e9;
    seen.tenants[1].io_bytes_per_s = 3e9;
    seen.tenants[1].pcie_attribution = Attribution::measured;
}

}  // namespace

TEST_CASE("the model finds the line that windows lie on") {
    Rng rng(3);
    TailModel model;
    CHECK_FALSE(model.known());
    for (int k = 0; k < 3000; ++k) {
        const auto x = random_exposure(rng);
        model.update(x, 1, line(x), 15);
    }
    CHECK(model.known());
    const std::vector<double> expected{2, 6, 1, 3, 4};
    for (std::size_t k = 0; k < expected.size(); ++k)
        CHECK(model.coefficients()[k] == Catch::Approx(expected[k]).margin(0.15));
    const Exposure last{0.3, 0.2, 1, 0.5}, there{0.1, 0, 0.5, 0.1};
    model.update(last, 1, line(last), 15);
    CHECK(model.predict(there, line(last)) == Catch::Approx(line(there)).margin(0.2));
}

TEST_CASE("averages of both sides lie on the same line") {
    Rng rng(4);
    TailModel model;
    Ema tail;
    for (int k = 0; k < 6000; ++k) {
        const auto x = random_exposure(rng);
        tail.update(line(x));
        model.update(x, tail.weight, tail.value, 15);
    }
    CHECK(model.coefficients()[1] == Catch::Approx(6).margin(0.4));
    CHECK(model.coefficients()[4] == Catch::Approx(4).margin(0.5));
}

TEST_CASE(
    "after any learning, more interference or a smaller instance never helps, and no tail is negative") {
    Rng rng(5);
    for (int round = 0; round < 200; ++round) {
        TailModel model;
        double tail = 1;
        for (int k = 0; k < 50; ++k) {
            tail = 1e3 * rng.uniform();
            model.update(random_exposure(rng), 0.3, tail, 0.1 + 30 * rng.uniform());
        }
        const auto from = random_exposure(rng);
        auto to = from;
        to.pcie = std::min(1.0, to.pcie + rng.uniform());
        to.io = std::min(1.0, to.io + rng.uniform());
        to.size += rng.uniform();
        to.client += rng.uniform();
        CHECK(model.predict(from, tail) <= model.predict(to, tail));
        CHECK(model.predict({0, 0, 0, 0}, tail) >= 0);
        for (const double c : model.coefficients()) CHECK(std::isfinite(c));
    }
}

TEST_CASE("expected misses: 1 % at the target, rising, with no step at the knee") {
    CHECK(expected_misses(1) == Catch::Approx(0.01));
    CHECK(expected_misses(-1) == 0);
    CHECK(expected_misses(unknown_signal) == 0);
    double last = -1;
    for (double r = 0.3; r < 3; r += 0.001) {
        CHECK(expected_misses(r) >= last);
        CHECK(expected_misses(r) - std::max(last, 0.0) < 0.01);
        last = expected_misses(r);
    }
}

TEST_CASE("an outlook rises within windows and falls at the given rate") {
    Outlook x;
    for (int k = 0; k < 30; ++k) x.update(0.8, 0.003);
    CHECK(x.expected() > 0.75);
    for (int k = 0; k < 30; ++k) x.update(0.1, 0.003);
    CHECK(x.now < 0.12);
    CHECK(x.expected() > 0.7);
    for (int k = 0; k < 1500; ++k) x.update(0.1, 0.003);
    CHECK(x.expected() < 0.15);
}

TEST_CASE("ours moves off a busy root and enlarges in one change, after the same three windows") {
    Run run(ours());
    run.go(2, slow_everywhere);
    CHECK(run.actions.empty());
    run.go(2, slow_everywhere);
    REQUIRE(run.actions.size() == 1);
    const auto& a = run.actions[0];
    CHECK(a.kind == ActionKind::reconfigure);
    CHECK(a.lever == Lever::enlarge);
    CHECK(a.after.gpu == 1);
    CHECK(a.make_before_break);
    const auto& d = mig_device("A100-40GB");
    CHECK(d.profiles[a.after.instance.profile].sm_count >
          42);  // far above the target: the next size would not do

    auto paper = ours();
    paper.flags.predict = false;
    Run first(paper);
    first.go(4, slow_everywhere);
    REQUIRE(first.actions.size() == 1);
    CHECK(first.actions[0].kind == ActionKind::throttle_io);
}

TEST_CASE("ours uses only enabled levers: places without sizes, sizes without other GPUs, guards alone") {
    auto o = ours();
    o.flags.mig = false;
    Run placed(o);
    placed.go(4, slow_everywhere);
    REQUIRE(placed.actions.size() == 1);
    CHECK(placed.actions[0].lever == Lever::move);
    CHECK(profile_of(o, placed.actions[0].after) == "2g");
    CHECK(placed.actions[0].after.gpu == 1);

    o = ours();
    o.flags.place = false;
    Run sized(o);
    sized.go(4, slow_everywhere);
    REQUIRE(sized.actions.size() == 1);
    CHECK(sized.actions[0].lever == Lever::enlarge);
    CHECK(sized.actions[0].after.gpu == 0);

    o = ours();
    o.flags.place = o.flags.mig = false;
    Run guarded(o);
    guarded.go(4, slow_everywhere);
    REQUIRE(guarded.actions.size() == 1);
    CHECK(guarded.actions[0].kind == ActionKind::throttle_io);
}

TEST_CASE("a little above the target, ours takes the smallest instance that will do") {
    auto o = ours();
    const auto a_little = [](Observation& seen) { seen.tenants[0].p99_ms = 15.4; };
    o.host.tenants[1].gpu = o.host.tenants[2].client_of = -1;  // no tenant is known to come back
    Run run(o);
    run.go(4, a_little);
    REQUIRE(run.actions.size() == 1);
    CHECK(profile_of(o, run.actions[0].after) != "7g");
}

TEST_CASE("if keeping both instances does not save the pause, ours learns and weighs it") {
    Run run(ours());
    run.go(4, slow_everywhere);
    REQUIRE(run.actions.size() == 1);
    // No requests are served until the change is done.
    run.go(5, [](Observation& seen) {
        slow_everywhere(seen);
        seen.tenants[0].count = 0;
    });
    run.go(1, slow_everywhere);
    CHECK(run.state.tenants[0].phase == Phase::validate);
    CHECK(run.state.tenants[0].past.disjoint_pause_s >= 4 * run.o.window_s);
}

TEST_CASE("rank never falls in a change that ours makes while the tail is high") {
    for (const double tail : {15.5, 18.0, 25.0, 60.0}) {
        Run run(ours());
        run.go(900, [&](Observation& seen) {
            slow_everywhere(seen);
            seen.tenants[0].p99_ms = tail;
        });
        REQUIRE(!run.actions.empty());
        for (const auto& a : run.actions) {
            if (a.lever != Lever::enlarge && a.lever != Lever::move) continue;
            const auto& d = mig_device("A100-40GB");
            const auto &from = d.profiles[a.before.instance.profile],
                       &to = d.profiles[a.after.instance.profile];
            CHECK(to.sm_count >= from.sm_count);
            CHECK(to.memory_slices >= from.memory_slices);
        }
    }
}

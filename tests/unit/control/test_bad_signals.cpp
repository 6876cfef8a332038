// SPDX-License-Identifier: Apache-2.0
// Signals that cannot be right: wrapped counters, nonsense, and layouts that no part can have.
#include "support/control_host.hpp"

using namespace gpusched;
using namespace gpusched::control;
using test::control_options;
using test::control_window;

namespace {

constexpr double wrapped = 9.2e18;

/// Actions of `n` windows in which `change` edits the signals.
template <class F>
std::vector<Action> run(const ControllerOptions& o, int n, const F& change) {
    auto state = initial_state(o);
    StepResult out;
    std::vector<Action> all;
    for (int w = 0; w < n; ++w) {
        auto seen = control_window(o, w);
        change(seen, w);
        step(state, seen, o, out);
        all.insert(all.end(), out.actions.begin(), out.actions.end());
    }
    return all;
}

}  // namespace

TEST_CASE("a latency beyond the measurable range is missing for every policy") {
    for (const auto variant : {Variant::full, Variant::ours}) {
        auto o = control_options();
        o.flags = variant_flags(variant);
        CHECK(run(o, 400, [](Observation& seen, int) { seen.tenants[0].p99_ms = wrapped; }).empty());
        // One such window leaves no mark on the average either.
        CHECK(run(o, 400, [](Observation& seen, int w) {
                  if (w == 5) seen.tenants[0].p99_ms = wrapped;
              }).empty());
    }
}

TEST_CASE("a wrapped counter of PCIe or block I/O is attributed to no tenant") {
    auto o = control_options();
    o.flags = variant_flags(Variant::guards);
    const auto actions = run(o, 400, [](Observation& seen, int) {
        seen.tenants[0].p99_ms = 20;
        seen.roots[0].bytes_per_s = wrapped;
        seen.numa_io_bytes_per_s[0] = wrapped;
        seen.irq_per_s[0] = wrapped;
        seen.tenants[1].pcie_bytes_per_s = seen.tenants[1].io_bytes_per_s = wrapped;
        seen.tenants[1].pcie_attribution = seen.tenants[1].io_attribution = Attribution::measured;
    });
    CHECK(actions.empty());
    // A tenant with such a counter is not throttled in place of one with a valid counter.
    const auto throttled = run(o, 10, [](Observation& seen, int) {
        seen.tenants[0].p99_ms = 20;
        seen.roots[0].bytes_per_s = 16e9;
        seen.tenants[1].pcie_bytes_per_s = wrapped;
        seen.tenants[1].pcie_attribution = Attribution::measured;
    });
    CHECK(throttled.empty());
}

TEST_CASE("a wrapped rate of requests undoes no change") {
    auto o = control_options();
    o.flags = variant_flags(Variant::guards);
    const auto actions = run(o, 60, [](Observation& seen, int w) {
        seen.tenants[0].p99_ms = w < 4 ? 20 : 14.5;
        seen.tenants[2].sm_active = 0.9;
        if (w == 10) seen.tenants[0].offered_per_s = wrapped;
        if (w == 11) seen.tenants[0].completed_per_s = wrapped;
    });
    REQUIRE(actions.size() == 1);
    CHECK(actions[0].kind == ActionKind::set_quota);
}

TEST_CASE("instances that the part does not have are refused before anything is read from its tables") {
    const auto o = control_options();
    auto state = initial_state(o);
    StepResult out;
    auto seen = control_window(o, 0);
    seen.gpus[1].layout.add({200, 0});
    CHECK_THROWS_WITH(step(state, seen, o, out), Mentions("GPU 1 expected instances"));
    CHECK_FALSE(state.started);
    seen = control_window(o, 0);
    seen.gpus[0].layout.add({0, 77});
    CHECK_THROWS_AS(step(state, seen, o, out), InvalidInput);
}

TEST_CASE("estimators: quantiles of nonsense, and correlations that one huge value does not spoil") {
    WindowQuantiles q;
    for (int k = 1; k <= 100; ++k) q.record(k);
    CHECK(q.quantile_ms(unknown_signal) == q.quantile_ms(0));
    CHECK(q.quantile_ms(7) == q.quantile_ms(1));
    ActivityCorrelation c;
    for (int k = 0; k < 50; ++k) c.update(k % 2, 10 * (k % 2));
    CHECK(c.attribution() == Attribution::inferred);
    c.update(1e300, 1e300);
    c.update(1e-320, 1e300);
    for (int k = 0; k < 50; ++k) c.update(k % 2, 10 * (k % 2));
    CHECK(c.attribution() == Attribution::inferred);
    const auto& device = mig_device("A100-40GB");
    CHECK_FALSE(least_fragmenting(device, {}, 256));
    CHECK_FALSE(least_fragmenting(device, {}, std::numeric_limits<int>::max()));
}

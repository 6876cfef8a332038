// SPDX-License-Identifier: Apache-2.0
// Estimators: quantiles against sorting, averages and triggers by hand, and what bad values do to them.
#include "support/catch.hpp"

#include <gpusched/control/control.hpp>
#include <gpusched/core/rng.hpp>

#include <deque>

using namespace gpusched;
using namespace gpusched::control;

namespace {
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
}  // namespace

TEST_CASE("window quantiles agree with sorting the samples of the last windows") {
    Rng rng(3);
    for (const int windows : {1, 3, 5}) {
        WindowQuantiles sketch(windows);
        std::deque<std::vector<double>> kept(1);
        for (int w = 0; w < 60; ++w) {
            for (auto n = rng.below(200); n > 0; --n) {
                const double ms = std::exp(14 * rng.uniform() - 6);  // 2.5 us to 3 s
                sketch.record(ms);
                kept.back().push_back(ms);
            }
            std::vector<double> all;
            for (const auto& window : kept) all.insert(all.end(), window.begin(), window.end());
            std::sort(all.begin(), all.end());
            REQUIRE(sketch.count() == static_cast<std::int64_t>(all.size()));
            for (const double q : {0.0, 0.5, 0.9, 0.99, 0.999, 1.0}) {
                if (all.empty()) {
                    CHECK(std::isnan(sketch.quantile_ms(q)));
                    continue;
                }
                const auto rank = std::max<std::size_t>(
                    1, static_cast<std::size_t>(std::ceil(q * static_cast<double>(all.size()))));
                const double exact = all[rank - 1];
                if (std::abs(sketch.quantile_ms(q) - exact) > 0.002 * exact + 0.0005 + 1e-9) {
                    CAPTURE(q, exact, sketch.quantile_ms(q));
                    FAIL("a quantile is off");
                }
            }
            sketch.advance();
            kept.emplace_back();
            if (kept.size() > static_cast<std::size_t>(windows)) kept.pop_front();
        }
        sketch.clear();
        CHECK(sketch.count() == 0);
        CHECK(std::isnan(sketch.quantile_ms(0.5)));
    }
}

TEST_CASE("samples that are no latencies are ignored, huge ones are capped") {
    WindowQuantiles sketch;
    for (const double bad : {not_a_number, infinity, -infinity, -1.0}) sketch.record(bad);
    CHECK(sketch.count() == 0);
    sketch.record(1e300);
    sketch.record(0);
    CHECK(sketch.count() == 2);
    CHECK(sketch.quantile_ms(0) == 0);
    CHECK(sketch.quantile_ms(1) == Catch::Approx(4'294'967).epsilon(0.002));
    CHECK_THROWS_WITH(WindowQuantiles(0), Mentions("windows 0 1 64"));
}

TEST_CASE("averages start at the first value and skip bad ones") {
    Ema ema{.weight = 0.3};
    ema.update(not_a_number);
    CHECK_FALSE(ema.known);
    ema.update(10);
    CHECK(ema.value == 10);
    ema.update(infinity);
    ema.update(-5);
    CHECK(ema.value == 10);
    ema.update(20);
    CHECK(ema.value == Catch::Approx(13));
}

TEST_CASE("triggers keep their state between the thresholds") {
    SchmittTrigger trigger{.high = 0.45, .low = 0.30};
    CHECK_FALSE(trigger.update(0.45));
    CHECK(trigger.update(0.46));
    CHECK(trigger.update(0.30));
    CHECK(trigger.update(not_a_number));
    CHECK(trigger.update(-1));
    CHECK_FALSE(trigger.update(0.29));
    CHECK_FALSE(trigger.update(0.40));
}

TEST_CASE("ten missing windows in a row are stale") {
    Freshness signal;
    for (int i = 0; i < 9; ++i) signal.update(false);
    CHECK_FALSE(signal.stale());
    signal.update(false);
    CHECK(signal.stale());
    signal.update(true);
    CHECK_FALSE(signal.stale());
    CHECK(signal.fresh == 1);
}

TEST_CASE("a tenant is held to be the cause when the pressure follows its activity") {
    Rng rng(4);
    ActivityCorrelation cause, bystander, constant;
    for (int w = 0; w < 200; ++w) {
        const double on = (w / 20) % 2, other = rng.chance(0.5);
        const double pressure = 2 + 10 * on + rng.uniform();
        cause.update(on, pressure);
        bystander.update(other, pressure);
        constant.update(1, pressure);
        if (w == 28) CHECK(cause.attribution() == Attribution::unknown);
    }
    CHECK(cause.attribution() == Attribution::inferred);
    CHECK(bystander.attribution() == Attribution::unknown);
    CHECK(constant.correlation() == 0);
    const auto before = cause.correlation();
    cause.update(not_a_number, 3);
    CHECK(cause.correlation() == before);
}

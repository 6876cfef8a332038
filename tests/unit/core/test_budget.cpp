// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

#include <thread>

using namespace gpusched;

namespace {
constexpr std::int64_t second = 1'000'000'000;
}

TEST_CASE("without limits a budget never ends") {
    ManualClock clock;
    Context context;
    context.clock = &clock;
    Budget budget(context);
    clock.advance(1'000'000 * second);
    REQUIRE_FALSE(budget.exhausted());
    REQUIRE(budget.reason() == StopReason::completed);
    REQUIRE(budget.elapsed_s() == Catch::Approx(1e6));
}

TEST_CASE("a budget ends at its deadline and stays ended") {
    ManualClock clock;
    clock.advance(17 * second);
    Context context;
    context.clock = &clock;
    Budget budget(context, 2.0);
    REQUIRE_FALSE(budget.exhausted());
    clock.advance(2 * second - 1);
    REQUIRE_FALSE(budget.exhausted());
    REQUIRE(budget.reason() == StopReason::completed);
    clock.advance(1);
    REQUIRE(budget.exhausted());
    REQUIRE(budget.reason() == StopReason::time_limit);
    REQUIRE(budget.exhausted());
}

TEST_CASE("a time limit of nothing ends at once, an endless one never") {
    ManualClock clock;
    Context context;
    context.clock = &clock;
    REQUIRE(Budget(context, 0.0).exhausted());
    Budget endless(context, std::numeric_limits<double>::infinity());
    clock.advance(1'000'000'000 * second);
    REQUIRE_FALSE(endless.exhausted());
}

TEST_CASE("time reserved for the end moves the deadline forward until it is given back") {
    ManualClock clock;
    Context context;
    context.clock = &clock;
    Budget budget(context, 2.0);
    budget.reserve(0.5);
    budget.reserve(0.25);
    clock.advance(second);
    REQUIRE_FALSE(budget.exhausted());
    budget.release_reserve();
    clock.advance(second / 2);
    REQUIRE_FALSE(budget.exhausted());
    budget.reserve(0.5);
    REQUIRE(budget.exhausted());
    REQUIRE(budget.reason() == StopReason::time_limit);
}

TEST_CASE("an impossible time limit is refused") {
    const Context context;
    REQUIRE_THROWS_MESSAGE(Budget(context, -1.0), InvalidInput, "time_limit");
    REQUIRE_THROWS_MESSAGE(Budget(context, std::numeric_limits<double>::quiet_NaN()), InvalidInput,
                           "time_limit nan 0");
}

TEST_CASE("a stop request ends a budget, and the first reason wins") {
    ManualClock clock;
    std::stop_source source;
    Context context;
    context.clock = &clock;
    context.stop = source.get_token();
    Budget budget(context, 5.0), late(context, 1.0);
    REQUIRE_FALSE(budget.exhausted());
    clock.advance(2 * second);
    REQUIRE(late.exhausted());
    source.request_stop();
    REQUIRE(budget.exhausted());
    REQUIRE(budget.reason() == StopReason::cancelled);
    clock.advance(10 * second);
    REQUIRE(budget.reason() == StopReason::cancelled);
    REQUIRE(late.exhausted());
    REQUIRE(late.reason() == StopReason::time_limit);
}

TEST_CASE("progress is shown on the calling thread, at once and then about every 50 ms") {
    ManualClock clock;
    std::vector<std::string> seen;
    std::stop_source source;
    Context context;
    context.clock = &clock;
    context.stop = source.get_token();
    context.progress = [&](const Progress& p) {
        seen.push_back(std::string(p.phase) + " " + std::to_string(p.done) + "/" + std::to_string(p.total));
        if (p.done == 3) source.request_stop();
    };
    Budget budget(context);
    REQUIRE_FALSE(budget.exhausted());
    REQUIRE(seen.empty());  // nothing to show yet
    budget.report("search", 1, 10);
    REQUIRE_FALSE(budget.exhausted());
    REQUIRE(seen == std::vector<std::string>{"search 1/10"});
    for (int ms = 0; ms < 100; ++ms) {
        clock.advance(second / 1000);
        REQUIRE_FALSE(budget.exhausted());
    }
    REQUIRE(seen == std::vector<std::string>{"search 1/10", "search 1/10", "search 1/10"});

    // Other threads may ask, but do not report.
    clock.advance(second);
    std::thread([&] { REQUIRE_FALSE(budget.exhausted()); }).join();
    REQUIRE(seen.size() == 3);

    // The hook may ask for a stop, which takes effect at once.
    budget.report("order", 3, 4);
    REQUIRE(budget.exhausted());
    REQUIRE(seen.back() == "order 3/4");
    REQUIRE(budget.reason() == StopReason::cancelled);
}

TEST_CASE("a manual clock that steps moves at every reading") {
    ManualClock clock(5);
    REQUIRE(clock.now_ns() == 0);
    REQUIRE(clock.now_ns() == 5);
    clock.advance(90);
    REQUIRE(clock.now_ns() == 100);
}

TEST_CASE("the machine's clock moves forward") {
    const auto& clock = SteadyClock::instance();
    const auto before = clock.now_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    REQUIRE(clock.now_ns() - before >= 2'000'000);
}

TEST_CASE("reasons have their Python names") {
    REQUIRE(std::string(enum_name(StopReason::completed)) == "completed");
    REQUIRE(std::string(enum_name(StopReason::time_limit)) == "time_limit");
    REQUIRE(std::string(enum_name(StopReason::cancelled)) == "cancelled");
    REQUIRE(std::string(enum_name(StopReason::move_budget)) == "move_budget");
}

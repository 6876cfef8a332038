// SPDX-License-Identifier: Apache-2.0
// Leases of Standby tasks: permitted borrowers, and the time until the owner has its GPUs back.
#include "support/catch.hpp"

#include <gpusched/preemption/preemption.hpp>

using namespace gpusched;
using namespace gpusched::preemption;

TEST_CASE("evictions take as long as published") {
    const EvictionModel model;
    Rng rng(1);
    std::vector<double> seconds;
    int killed = 0;
    double sum = 0;
    for (int i = 0; i < 200'000; ++i) {
        const auto t = model.draw(1000, rng);
        REQUIRE(t.term_ms == 1000);
        REQUIRE(t.exit_ms - t.term_ms <= 60'000);
        REQUIRE(t.killed == (t.exit_ms - t.term_ms == 60'000));
        seconds.push_back(static_cast<double>(t.exit_ms - t.term_ms) / 1000);
        sum += seconds.back();
        killed += t.killed ? 1 : 0;
    }
    std::sort(seconds.begin(), seconds.end());
    CHECK(sum / 200'000 == Catch::Approx(13).margin(0.3));
    CHECK(seconds[190'000] == Catch::Approx(48).margin(1));
    CHECK(killed < 10'000);
    CHECK(killed > 1000);
}

TEST_CASE("a lease lends, is borrowed from, and comes back whole") {
    StandbyLease lease(TaskId{0}, NodeId{0}, 0b1111);
    Rng rng(2);
    CHECK(!lease.borrow(TaskId{1}, PriorityClass::lp, 0b1, 0));  // still active
    CHECK_THROWS_MESSAGE(lease.resume(0, rng), InvalidInput, "state: active; expected standby");
    lease.lend(10);
    CHECK(lease.lent() == 0b1111);
    CHECK(!lease.borrow(TaskId{1}, PriorityClass::hp, 0b1, 11));      // not spot
    CHECK(!lease.borrow(TaskId{1}, PriorityClass::lp, 0b10001, 11));  // not lent
    CHECK_THROWS_MESSAGE(lease.borrow(TaskId{0}, PriorityClass::lp, 0b1, 11), InvalidInput,
                         "task: owner; expected another task");
    CHECK(lease.lent() == 0b1111);
    CHECK(lease.borrow(TaskId{1}, PriorityClass::lp, 0b11, 11));
    CHECK(!lease.borrow(TaskId{2}, PriorityClass::lp, 0b110, 12));  // taken
    CHECK(lease.borrow(TaskId{2}, PriorityClass::lp, 0b100, 12));
    CHECK(lease.lent() == 0b1000);
    lease.give_back(TaskId{1}, 20);
    CHECK(lease.lent() == 0b1011);
    CHECK_THROWS_MESSAGE(lease.give_back(TaskId{2}, 19), InvalidInput, "now_ms: 19; expected 20");
    const auto ready = lease.resume(30, rng);
    CHECK(ready > 30);
    CHECK(ready <= 30 + 60'000);
    CHECK(lease.state() == StandbyState::resuming);
    CHECK(lease.lent() == 0);
    CHECK(!lease.borrow(TaskId{3}, PriorityClass::lp, 0b1, 31));
    CHECK(lease.advance(ready - 1).empty());
    const auto gone = lease.advance(ready);
    REQUIRE(gone.size() == 1);
    CHECK(gone[0].task == TaskId{2});
    CHECK(lease.state() == StandbyState::active);
    CHECK(lease.gpus() == 0b1111);
    lease.lend(ready + 1);
    CHECK(lease.resume(ready + 2, rng) == ready + 2);  // no borrower to wait for
    CHECK(lease.state() == StandbyState::active);
}

TEST_CASE("random lives of a lease keep its invariants") {
    Rng rng(9);
    for (int round = 0; round < 300; ++round) {
        EvictionModel model;
        model.grace_ms = rng.between(0, 60'000);
        model.reclaim_ms = rng.between(0, 500);
        StandbyLease lease(TaskId{0}, NodeId{0}, static_cast<GpuMask>(rng.between(1, 255)), model);
        std::int64_t now = 0, asked = 0;
        std::uint32_t next = 1;
        for (int step = 0; step < 100; ++step) {
            now += rng.between(0, 20'000);
            (void)lease.advance(now);
            switch (rng.below(4)) {
            case 0:
                if (lease.state() == StandbyState::active) lease.lend(now);
                break;
            case 1:
                (void)lease.borrow(TaskId{next++}, PriorityClass::lp, static_cast<GpuMask>(rng.below(256)),
                                   now);
                break;
            case 2:
                if (lease.state() == StandbyState::standby) {
                    asked = now;
                    (void)lease.resume(now, rng);
                }
                break;
            default:
                if (!lease.borrowers().empty() && rng.chance(0.5))
                    lease.give_back(lease.borrowers()[0].task, now);
            }
            GpuMask borrowed = 0;
            for (const auto& b : lease.borrowers()) {
                REQUIRE((borrowed & b.gpus) == 0);
                REQUIRE((b.gpus & ~lease.gpus()) == 0);
                borrowed |= b.gpus;
            }
            if (lease.state() == StandbyState::active) REQUIRE(borrowed == 0);
            if (lease.state() == StandbyState::resuming)
                REQUIRE(now < asked + model.grace_ms + model.reclaim_ms);
        }
    }
}

TEST_CASE("models out of range are refused") {
    EvictionModel model;
    model.shutdown_ms[3] = 0;
    model.grace_ms = 60'001;
    CHECK_THROWS_MESSAGE(validate(model), InvalidInput, "shutdown_ms[3]: 0; expected 1920");
    CHECK_THROWS_MESSAGE(validate(model), InvalidInput, "grace_ms: 60001; expected 0 60000");
    CHECK_THROWS_MESSAGE(StandbyLease(TaskId{0}, NodeId{0}, 0), InvalidInput, "gpus: none");
    StandbyLease lease(TaskId{0}, NodeId{0}, 1);
    CHECK_THROWS_MESSAGE(lease.lend(INT64_MAX), InvalidInput, "now_ms 9223372036854775807");
    CHECK(lease.state() == StandbyState::active);
    model = {};
    model.reclaim_ms = INT64_MAX;
    CHECK_THROWS_MESSAGE(validate(model), InvalidInput, "reclaim_ms 9223372036854775807");
}

// SPDX-License-Identifier: Apache-2.0
// The driver of a Standby lease, on containers that take their time, and on an actuator that fails.
#include "support/catch.hpp"

#include <gpusched/preemption/preemption.hpp>

using namespace gpusched;
using namespace gpusched::preemption;

namespace {

constexpr TaskId owner{0};

/// A node with the owner's container and those of borrowers, which end some time after SIGTERM, or at once at SIGKILL.
struct Containers {
    std::int64_t now_ms = 0;
    bool labelled = false, serving = true, asleep = false;
    std::map<TaskId, std::int64_t> shutdown_ms{};  ///< of borrowers that run
    std::map<TaskId, std::int64_t> exits_ms{};
    int killed = 0;
    std::vector<std::string> calls{};
    double fails = 0;  ///< probability that a call fails, half of these after it was done
    Rng rng{1};

    template <class F>
    bool call(const char* name, F&& done) {
        const bool failed = rng.chance(fails);
        if (!failed || rng.chance(0.5)) {
            calls.emplace_back(name);
            done();
        }
        return !failed;
    }
    bool label(TaskId, bool on) {
        return call(on ? "label" : "unlabel", [&] { labelled = on; });
    }
    bool traffic(TaskId, bool on) {
        return call(on ? "attach" : "detach", [&] { serving = on; });
    }
    bool sleep(TaskId) {
        return call("sleep", [&] { asleep = true; });
    }
    bool wake(TaskId) {
        return call("wake", [&] { asleep = false; });
    }
    bool terminate(TaskId task) {
        return call("term", [&] { exits_ms.emplace(task, now_ms + shutdown_ms.at(task)); });
    }
    bool kill(TaskId task) {
        return call("kill", [&] {
            ++killed;
            exits_ms[task] = std::min(now_ms, exits_ms.contains(task) ? exits_ms[task] : now_ms);
        });
    }
    [[nodiscard]] bool has_exited(TaskId task) const {
        const auto at = exits_ms.find(task);
        return at != exits_ms.end() && at->second <= now_ms;
    }
    [[nodiscard]] bool any_running() const {
        return std::any_of(shutdown_ms.begin(), shutdown_ms.end(),
                           [&](const auto& entry) { return !has_exited(entry.first); });
    }
};
static_assert(StandbyActuator<Containers>);

}  // namespace

TEST_CASE("a Standby task sleeps, lends, and has its GPUs back when the last borrower has gone") {
    Containers node;
    StandbyDriver driver(node, owner, NodeId{0}, 0b1111);
    CHECK_FALSE(driver.borrow(TaskId{1}, PriorityClass::lp, 0b1, 0));
    CHECK(driver.lend(0));
    CHECK(node.calls == std::vector<std::string>{"detach", "sleep", "label"});
    CHECK(driver.state() == StandbyState::standby);
    CHECK_THROWS_MESSAGE(driver.lend(1), InvalidInput, "state: standby; expected active");
    node.shutdown_ms = {{TaskId{1}, 13'000}, {TaskId{2}, 90'000}};
    CHECK(driver.borrow(TaskId{1}, PriorityClass::lp, 0b11, 1));
    CHECK(driver.borrow(TaskId{2}, PriorityClass::lp, 0b100, 1));
    node.calls.clear();
    node.now_ms = 1000;
    CHECK(driver.resume(1000).empty());
    CHECK(node.calls == std::vector<std::string>{"unlabel", "term", "term"});
    CHECK(driver.state() == StandbyState::resuming);
    CHECK_FALSE(driver.borrow(TaskId{3}, PriorityClass::lp, 0b1000, 1001));
    node.now_ms = 14'000;
    CHECK(driver.advance(14'000) == std::vector<TaskId>{TaskId{1}});
    node.now_ms = 60'999;
    CHECK(driver.advance(60'999).empty());
    CHECK(node.killed == 0);
    node.now_ms = 61'000;  // the grace period is over
    CHECK(driver.advance(61'000).empty());
    CHECK(node.killed == 1);
    CHECK(node.asleep);
    CHECK(driver.advance(61'001) == std::vector<TaskId>{TaskId{2}});
    CHECK(driver.state() == StandbyState::active);
    CHECK_FALSE(node.asleep);
    CHECK(node.serving);
    CHECK_FALSE(node.labelled);
    // No borrower to wait for.
    CHECK(driver.lend(70'000));
    CHECK(driver.resume(70'001).empty());
    CHECK(driver.state() == StandbyState::active);
}

TEST_CASE("a failed loan is undone") {
    Containers node;
    StandbyDriver driver(node, owner, NodeId{0}, 0b1);
    node.fails = 1;
    CHECK_FALSE(driver.lend(0));
    CHECK(driver.state() == StandbyState::resuming);
    CHECK_FALSE(driver.borrow(TaskId{1}, PriorityClass::lp, 0b1, 0));
    CHECK_THROWS_MESSAGE(driver.lend(1), InvalidInput, "state: resuming; expected active");
    node.fails = 0;
    CHECK(driver.advance(2).empty());
    CHECK(driver.state() == StandbyState::active);
    CHECK(node.serving);
    CHECK_FALSE(node.asleep);
    CHECK_THROWS_MESSAGE(StandbyDriver(node, owner, NodeId{0}, 0b1, 60'001), InvalidInput,
                         "grace_ms: 60001; expected 0 60000");
    CHECK_THROWS_MESSAGE(StandbyDriver(node, owner, NodeId{0}, 0), InvalidInput, "gpus: none");
}

TEST_CASE("evictions by the driver take as long as the published ones") {
    const EvictionModel model;
    Rng rng(3);
    std::vector<double> seconds;
    int killed = 0;
    for (int round = 0; round < 4000; ++round) {
        Containers node;
        StandbyDriver driver(node, owner, NodeId{0}, 0b1);
        REQUIRE(driver.lend(0));
        // What the container would take without a SIGKILL.
        const auto drawn = model.draw(0, rng);
        node.shutdown_ms = {{TaskId{1}, drawn.killed ? 80'000 : drawn.exit_ms}};
        REQUIRE(driver.borrow(TaskId{1}, PriorityClass::lp, 0b1, 0));
        static_cast<void>(driver.resume(0));
        while (driver.state() != StandbyState::active) {
            node.now_ms += 100;
            static_cast<void>(driver.advance(node.now_ms));
            REQUIRE(node.now_ms <= 60'200);
        }
        seconds.push_back(static_cast<double>(node.now_ms) / 1000);
        killed += node.killed > 0;
    }
    std::sort(seconds.begin(), seconds.end());
    double sum = 0;
    for (const auto s : seconds) sum += s;
    CHECK(sum / 4000 == Catch::Approx(13).margin(1));
    CHECK(seconds[3800] == Catch::Approx(48).margin(5));
    CHECK(killed < 200);
}

TEST_CASE("an actuator that fails now and then breaks no promise") {
    for (std::uint64_t round = 0; round < 300; ++round) {
        Rng rng = Rng(7).split(round);
        Containers node;
        node.rng = rng.split(1);
        node.fails = 0.3;
        StandbyDriver driver(node, owner, NodeId{0}, 0b1111);
        std::uint32_t next = 1;
        std::int64_t asked_ms = 0;
        for (int step = 0; step < 200; ++step) {
            node.now_ms += rng.between(0, 5000);
            static_cast<void>(driver.advance(node.now_ms));
            if (driver.state() == StandbyState::active && rng.chance(0.5)) {
                static_cast<void>(driver.lend(node.now_ms));
            } else if (driver.state() == StandbyState::standby && rng.chance(0.3)) {
                asked_ms = node.now_ms;
                static_cast<void>(driver.resume(node.now_ms));
            } else if (const TaskId task{next}; rng.chance(0.7)) {
                if (driver.borrow(task, PriorityClass::lp, static_cast<GpuMask>(1u << rng.below(4)),
                                  node.now_ms)) {
                    ++next;
                    node.shutdown_ms[task] = rng.between(0, 100'000);
                    REQUIRE(node.asleep);
                    REQUIRE_FALSE(node.serving);
                }
            }
            // While a borrower holds its GPUs the owner sleeps; once it is Active it serves.
            if (node.any_running()) REQUIRE(node.asleep);
            if (driver.state() == StandbyState::active) {
                REQUIRE(node.serving);
                REQUIRE_FALSE(node.asleep);
                REQUIRE_FALSE(node.labelled);
                REQUIRE_FALSE(node.any_running());
            }
            if (driver.state() == StandbyState::resuming && node.now_ms > asked_ms + 200'000)
                REQUIRE(driver.lease().borrowers().empty());
        }
        node.fails = 0;
        if (driver.state() == StandbyState::standby) driver.resume(node.now_ms);
        for (int step = 0; step < 3; ++step) static_cast<void>(driver.advance(node.now_ms += 60'001));
        CHECK(driver.state() == StandbyState::active);
    }
}

TEST_CASE("a borrower that has exited before the return is reported by it, and one that was given back gets "
          "no signal") {
    Containers node;
    StandbyDriver driver(node, owner, NodeId{0}, 0b1111);
    REQUIRE(driver.lend(0));
    for (const std::uint32_t task : {1, 2, 3})
        REQUIRE(driver.borrow(TaskId{task}, PriorityClass::lp, GpuMask{1} << task, 1));
    node.shutdown_ms = {{TaskId{1}, 5}, {TaskId{2}, 5}, {TaskId{3}, 5}};
    node.exits_ms = {{TaskId{1}, 2}};
    node.now_ms = 10;
    node.calls.clear();
    CHECK(driver.resume(10) == std::vector<TaskId>{TaskId{1}});
    CHECK(node.calls == std::vector<std::string>{"unlabel", "term", "term"});
    driver.give_back(TaskId{2}, 11);
    node.now_ms = 70'000;
    CHECK(driver.advance(70'000) == std::vector<TaskId>{TaskId{3}});
    CHECK(driver.state() == StandbyState::active);
}

// SPDX-License-Identifier: Apache-2.0
#include "support/catch.hpp"

#include <gpusched/core/core.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace gpusched;

namespace {

// Counts how often each index ran.
template <Executor E>
std::vector<int> run_counts(E& executor, std::size_t count) {
    std::vector<std::atomic<int>> ran(count);
    auto body = [&](std::size_t i) { ++ran[i]; };
    executor.run(count, body);
    return {ran.begin(), ran.end()};
}

// What a caller may bring along: runs backwards, has no copy.
struct BackwardExecutor {
    BackwardExecutor() = default;
    BackwardExecutor(const BackwardExecutor&) = delete;
    void run(std::size_t count, IndexTask task) {
        while (count-- > 0) task(count);
    }
};
struct NoTask {
    void run(std::size_t) {}
};
static_assert(Executor<SerialExecutor>);
static_assert(Executor<ThreadPool>);
static_assert(Executor<BackwardExecutor>);
static_assert(WaitingExecutor<ThreadPool>);
static_assert(!WaitingExecutor<BackwardExecutor>);
static_assert(!Executor<NoTask>);
static_assert(!Executor<int>);

}  // namespace

TEST_CASE("every executor runs each index exactly once") {
    for (const std::size_t count : {0u, 1u, 2u, 7u, 1000u}) {
        const std::vector<int> once(count, 1);
        SerialExecutor serial;
        BackwardExecutor backward;
        REQUIRE(run_counts(serial, count) == once);
        REQUIRE(run_counts(backward, count) == once);
        for (std::size_t threads = 1; threads <= 8; ++threads) {
            ThreadPool pool(threads);
            REQUIRE(pool.concurrency() == threads);
            for (int again = 0; again < 3; ++again) REQUIRE(run_counts(pool, count) == once);
        }
    }
}

TEST_CASE("the serial executor keeps the order") {
    std::vector<std::size_t> order;
    auto body = [&](std::size_t i) { order.push_back(i); };
    SerialExecutor{}.run(4, body);
    ExecutorRef{}.run(2, body);
    REQUIRE(order == std::vector<std::size_t>{0, 1, 2, 3, 0, 1});
}

TEST_CASE("an executor reference runs on its executor") {
    BackwardExecutor backward;
    const ExecutorRef ref(backward);
    std::vector<std::size_t> order;
    auto body = [&](std::size_t i) { order.push_back(i); };
    ref.run(3, body);
    REQUIRE(order == std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("a pool uses its threads") {
    // Two indices that wait for each other can end only if they run at once.
    ThreadPool pool(2);
    std::atomic<int> arrived{0};
    auto body = [&](std::size_t) {
        ++arrived;
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    };
    pool.run(2, body);
    REQUIRE(arrived == 2);
    REQUIRE(ThreadPool(0).concurrency() >= 1);
}

TEST_CASE("a pool starts no more threads than it has work for") {
    ThreadPool pool(10'000'000);  // more than any machine can start
    for (int again = 0; again < 3; ++again) REQUIRE(run_counts(pool, 4) == std::vector<int>(4, 1));
}

TEST_CASE("a pool of many threads ends at once") {
    // Every worker is woken once: the time to end grows with the threads, not with their square.
    ThreadPool pool(500);
    REQUIRE(run_counts(pool, 500) == std::vector<int>(500, 1));
}

TEST_CASE("an exception reaches the caller, and the executor stays usable") {
    for (std::size_t threads = 1; threads <= 8; threads *= 2) {
        ThreadPool pool(threads);
        for (int again = 0; again < 20; ++again) {
            std::atomic<int> ran{0};
            auto body = [&](std::size_t i) {
                ++ran;
                if (i == 5) throw std::runtime_error("index 5");
            };
            REQUIRE_THROWS_MESSAGE(pool.run(1000, body), std::runtime_error, "index 5");
            REQUIRE(ran >= 6);
            // What had not begun does not run; other threads may have begun everything before the exception is seen.
            if (threads == 1) REQUIRE(ran == 6);
            REQUIRE(run_counts(pool, 50) == std::vector<int>(50, 1));
        }
        auto all_fail = [](std::size_t i) { throw i; };
        REQUIRE_THROWS_AS(pool.run(100, all_fail), std::size_t);
    }
    auto body = [](std::size_t i) {
        if (i == 1) throw std::logic_error("serial");
    };
    REQUIRE_THROWS_AS(ExecutorRef{}.run(2, body), std::logic_error);
}

TEST_CASE("a run within a run ends, whichever executor it uses") {
    for (std::size_t threads = 1; threads <= 8; ++threads) {
        ThreadPool pool(threads);
        std::atomic<int> ran{0};
        auto inner = [&](std::size_t) { ++ran; };
        auto same_pool = [&](std::size_t) { pool.run(10, inner); };
        pool.run(20, same_pool);
        REQUIRE(ran == 200);

        auto other_pool = [&](std::size_t) {
            ThreadPool mine(2);
            mine.run(10, inner);
        };
        pool.run(4, other_pool);
        REQUIRE(ran == 240);

        auto failing = [](std::size_t) { throw std::runtime_error("inner"); };
        auto passes_on = [&](std::size_t) { pool.run(2, failing); };
        REQUIRE_THROWS_MESSAGE(pool.run(3, passes_on), std::runtime_error, "inner");
        REQUIRE(run_counts(pool, 9) == std::vector<int>(9, 1));
    }
}

TEST_CASE("a pool can be moved while idle") {
    ThreadPool pool(3);
    ThreadPool moved(std::move(pool));
    REQUIRE(run_counts(moved, 100) == std::vector<int>(100, 1));
    moved = ThreadPool(2);
    REQUIRE(moved.concurrency() == 2);
    REQUIRE(run_counts(moved, 100) == std::vector<int>(100, 1));
}

TEST_CASE("many short runs in a row leave no state") {
    ThreadPool pool(4);
    std::uint64_t sum = 0;
    for (int run = 0; run < 2000; ++run) {
        std::atomic<std::uint64_t> part{0};
        auto body = [&](std::size_t i) { part += i; };
        pool.run(5, body);
        sum += part;
    }
    REQUIRE(sum == 2000 * 10);
}

TEST_CASE("a pool's calling thread has something to do while it waits") {
    const auto caller = std::this_thread::get_id();
    std::atomic<int> started{0}, asked{0};
    auto body = [&](std::size_t) {
        ++started;
        while (started < 2) std::this_thread::yield();  // each of the two threads has one index
        while (std::this_thread::get_id() != caller && asked < 3) std::this_thread::yield();
    };
    auto waiting = [&] {
        CHECK(std::this_thread::get_id() == caller);
        ++asked;
    };
    ThreadPool pool(2);
    ExecutorRef(pool).run(2, body, WaitTask(waiting));
    CHECK(asked >= 3);

    // An executor without this hook works as before.
    BackwardExecutor own;
    std::vector<int> order;
    auto note = [&](std::size_t i) { order.push_back(static_cast<int>(i)); };
    ExecutorRef(own).run(2, note, WaitTask(waiting));
    ExecutorRef().run(2, note, WaitTask(waiting));
    CHECK(order == std::vector{1, 0, 0, 1});
}

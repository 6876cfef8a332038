// SPDX-License-Identifier: Apache-2.0
// ThreadPool: its threads and their work.
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/core/executor.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace gpusched {

struct ThreadPool::State {
    // The pool for which this thread is working: a nested run of the same pool must not wait for itself.
    static inline thread_local const State* inside = nullptr;

    std::mutex mutex;
    std::condition_variable wake, idle;
    const IndexTask* task = nullptr;  // the current job; workers recognise a new one by its number
    std::uint64_t job = 0;
    std::size_t count = 0;
    std::atomic<std::size_t> next{0};
    std::size_t working = 0;
    std::exception_ptr error;
    std::size_t concurrency = 1;
    bool ending = false;
    std::vector<std::jthread> threads;  // last member: joined before the others are destroyed

    ~State() {
        {
            const std::lock_guard lock(mutex);
            ending = true;
        }
        wake.notify_all();
    }

    // Starts the missing threads for a job of `indices` indices.
    void start_threads(std::size_t indices) {
        const auto needed = std::min(concurrency, indices);
        try {
            while (threads.size() + 1 < needed) threads.emplace_back([this] { work(); });
        } catch (const std::system_error& failure) {
            throw BackendError("threads: " + std::to_string(needed) +
                               " at once; the machine starts no more than " +
                               std::to_string(threads.size() + 1) + " (" + failure.code().message() + ")");
        }
    }

    void drain() {
        const auto* outer = std::exchange(inside, this);
        for (;;) {
            const auto i = next.fetch_add(1);
            if (i >= count) break;
            try {
                (*task)(i);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (!error) error = std::current_exception();
                next = count;
            }
        }
        inside = outer;
    }

    void work() {
        std::uint64_t seen = 0;
        std::unique_lock lock(mutex);
        for (;;) {
            wake.wait(lock, [&] { return ending || (job != seen && task != nullptr); });
            if (ending) return;
            seen = job;
            ++working;
            lock.unlock();
            drain();
            lock.lock();
            if (--working == 0) idle.notify_all();
        }
    }
};

GPUSCHED_EXPORT ThreadPool::ThreadPool(std::size_t threads) : state_(std::make_unique<State>()) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    state_->concurrency = threads;
}

GPUSCHED_EXPORT ThreadPool::~ThreadPool() = default;
GPUSCHED_EXPORT ThreadPool::ThreadPool(ThreadPool&&) noexcept = default;
GPUSCHED_EXPORT ThreadPool& ThreadPool::operator=(ThreadPool&&) noexcept = default;

GPUSCHED_EXPORT std::size_t ThreadPool::concurrency() const noexcept { return state_->concurrency; }

GPUSCHED_EXPORT void ThreadPool::run(std::size_t count, IndexTask task) {
    auto nothing = [] {};
    run(count, task, WaitTask(nothing));
}

GPUSCHED_EXPORT void ThreadPool::run(std::size_t count, IndexTask task, WaitTask waiting) {
    auto& s = *state_;
    if (State::inside == &s) return SerialExecutor{}.run(count, task);
    s.start_threads(count);
    {
        const std::lock_guard lock(s.mutex);
        s.task = &task;
        s.count = count;
        s.next = 0;
        s.error = nullptr;
        ++s.job;
    }
    s.wake.notify_all();
    s.drain();
    std::unique_lock lock(s.mutex);
    while (!s.idle.wait_for(lock, std::chrono::milliseconds(20), [&] { return s.working == 0; })) {
        lock.unlock();
        waiting();
        lock.lock();
    }
    s.task = nullptr;  // threads that wake late find no work
    if (s.error) std::rethrow_exception(s.error);
}

}  // namespace gpusched

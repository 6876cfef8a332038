// SPDX-License-Identifier: Apache-2.0
// Executors: run the independent parts of an algorithm.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

namespace gpusched {

template <class Signature>
class FunctionRef;

/// A non-owning reference to a callable of the given signature, like `std::function_ref` of C++26. The
/// callable must outlive it.
template <class Result, class... Arguments>
class FunctionRef<Result(Arguments...)> {
  public:
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef> &&
                 std::is_invocable_r_v<Result, F&, Arguments...>)
    FunctionRef(F& f) noexcept  // NOLINT(google-explicit-constructor): a view, like std::span
        : object_(std::addressof(f)), call_([](const void* object, Arguments... arguments) -> Result {
              // F has the original constness.
              return std::invoke(*static_cast<F*>(const_cast<void*>(object)), arguments...);
          }) {}
    Result operator()(Arguments... arguments) const { return call_(object_, arguments...); }

  private:
    const void* object_;
    Result (*call_)(const void*, Arguments...);
};

/// The work of one index.
using IndexTask = FunctionRef<void(std::size_t)>;
/// Work of the calling thread while it waits.
using WaitTask = FunctionRef<void()>;

/// Runs `task(0)` to `task(count - 1)`, each exactly once, in any order, and returns when all are done. The
/// first exception is rethrown on the calling thread.
///
/// If the calling thread may wait for others, `run` should also accept a `WaitTask` as its third argument. It
/// then calls that task on the calling thread a few times per 100 ms, without locks, so that progress and
/// Ctrl-C are handled.
template <class E>
concept Executor = requires(E& executor, std::size_t count, IndexTask task) { executor.run(count, task); };

/// An executor that accepts a `WaitTask`.
template <class E>
concept WaitingExecutor = Executor<E> && requires(E& executor, std::size_t count, IndexTask task,
                                                  WaitTask waiting) { executor.run(count, task, waiting); };

/// Runs everything on the calling thread, in order.
class SerialExecutor {
  public:
    void run(std::size_t count, IndexTask task) {
        for (std::size_t i = 0; i < count; ++i) task(i);
    }
};

/// A pool of threads. The calling thread works too, so a pool of n starts at most n - 1 threads. They start
/// when a run needs them, and never more than it has indices.
///
/// The parallel algorithms of the standard library are not used: with g++ they require TBB, and they do not
/// let a waiting thread report progress. Any other pool can be used through the concept `Executor`.
///
/// Indices are started one by one, in order, and none after an exception. Only one thread at a time may call
/// `run`. A call from inside a task of the same pool runs on that thread alone.
class ThreadPool {
  public:
    /// @param threads how many indices may run at once; 0 means one per hardware thread.
    explicit ThreadPool(std::size_t threads = 0);
    ~ThreadPool();
    ThreadPool(ThreadPool&&) noexcept;
    ThreadPool& operator=(ThreadPool&&) noexcept;

    /// @throws BackendError if the machine cannot start enough threads; no index has run then
    void run(std::size_t count, IndexTask task);
    /// The same; while the calling thread waits, `waiting` is called about every 20 ms.
    void run(std::size_t count, IndexTask task, WaitTask waiting);
    /// How many indices may run at once.
    [[nodiscard]] std::size_t concurrency() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A reference to any executor, which must outlive it. Default: the calling thread.
class ExecutorRef {
  public:
    ExecutorRef() = default;
    template <class E>
        requires(!std::same_as<std::remove_cvref_t<E>, ExecutorRef>)
    ExecutorRef(E& executor) noexcept  // NOLINT(google-explicit-constructor): a view, like std::span
        : object_(std::addressof(executor)),
          run_([](void* object, std::size_t count, IndexTask task, const WaitTask* waiting) {
              static_assert(Executor<E>,
                            "an executor has `run(std::size_t count, gpusched::IndexTask task)`");
              if constexpr (WaitingExecutor<E>)
                  if (waiting != nullptr) return static_cast<E*>(object)->run(count, task, *waiting);
              static_cast<E*>(object)->run(count, task);
          }) {}

    void run(std::size_t count, IndexTask task) const { run_on(count, task, nullptr); }
    /// The same; `waiting` is passed to an executor that accepts it.
    void run(std::size_t count, IndexTask task, WaitTask waiting) const { run_on(count, task, &waiting); }
    /// True if it refers to an executor, false if it is the default.
    [[nodiscard]] bool is_set() const noexcept { return object_ != nullptr; }

  private:
    void run_on(std::size_t count, IndexTask task, const WaitTask* waiting) const {
        if (object_ != nullptr) return run_(object_, count, task, waiting);
        SerialExecutor{}.run(count, task);
    }

    void* object_ = nullptr;
    void (*run_)(void*, std::size_t, IndexTask, const WaitTask*) = nullptr;
};

}  // namespace gpusched

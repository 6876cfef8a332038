// SPDX-License-Identifier: Apache-2.0
// Threads: the executor on which the parts of a call run.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/executor.hpp>

#include <cstddef>
#include <optional>

namespace gpusched::consolidation::detail {

/// The context's executor, or a pool of `Options::threads` for the duration of the call.
class Threads {
  public:
    Threads(const Options& options, const Context& context) : executor_(context.executor) {
        if (!executor_.is_set() && options.threads != 1) executor_ = own_.emplace(options.threads);
    }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    [[nodiscard]] ExecutorRef executor() const noexcept { return executor_; }

  private:
    std::optional<ThreadPool> own_;
    ExecutorRef executor_;
};

/// Runs `part(0) .. part(count - 1)` on the executor. The calling thread checks the budget while it waits.
template <class Part>
void run_parts(ExecutorRef executor, Budget& budget, std::size_t count, Part&& part) {
    auto watch = [&] { (void)budget.exhausted(); };
    executor.run(count, IndexTask(part), WaitTask(watch));
}

}  // namespace gpusched::consolidation::detail

// SPDX-License-Identifier: Apache-2.0
// Threads: the executor of a call.
#pragma once

#include <gpusched/consolidation/options.hpp>
#include <gpusched/core/context.hpp>
#include <gpusched/core/executor.hpp>

#include <optional>

namespace gpusched::consolidation::detail {

/// The context's executor; without one, a pool of `Options::threads` that lives as long as the call.
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

}  // namespace gpusched::consolidation::detail

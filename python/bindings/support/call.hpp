// SPDX-License-Identifier: Apache-2.0
// Call: runs an algorithm without the interpreter lock, with progress reports, and stops it on Ctrl-C.
#pragma once

#include "support/arguments.hpp"

#include <gpusched/core/context.hpp>
#include <gpusched/milp/solver.hpp>

#include <exception>
#include <stop_token>

namespace gpusched::python {

/// Documentation of every `progress` keyword.
inline constexpr const char* progress_text = "Progress reports: True for a progress bar, or a callable "
                                             "(phase, done, total), called about every 50 ms.";

/// Options of an algorithm, and the keyword `progress`.
template <class Options>
struct WithProgress : Options {
    ProgressLike progress = py::none();
};
template <Described Options>
Keywords<WithProgress<Options>> keywords_with_progress() {
    return Keywords<WithProgress<Options>>().template fields<Options>().field(
        "progress", &WithProgress<Options>::progress, progress_text);
}

/// A Python object for code without the interpreter lock. Its references are counted only while the lock is
/// held.
inline std::shared_ptr<py::object> shared_object(py::object object) {
    return {new py::object(std::move(object)), [](py::object* held) {
                const WithLock lock;
                delete held;
            }};
}

/// Runs an algorithm with the interpreter lock released. Its progress hook, called on this thread about every
/// 50 ms, lets Python handle signals. If a handler raises (Ctrl-C raises KeyboardInterrupt), or the caller's
/// progress function raises, the algorithm is stopped and the exception is raised here.
class Call {
  public:
    /// @param progress None or False: silent; True: a progress bar; else a callable (phase, done, total)
    explicit Call(py::object progress = py::none(), ExecutorRef executor = {})
        : progress_(std::move(progress)), executor_(executor) {
        if (progress_.is(py::bool_(false))) progress_ = py::none();
        if (progress_.is(py::bool_(true)))
            progress_ = py::module_::import("gpusched._progress").attr("ProgressBar")();
        if (!progress_.is_none() && PyCallable_Check(progress_.ptr()) == 0)
            bad_type("progress", progress_, "True, False, None or a callable (phase, done, total)");
    }

    /// @param algorithm a callable taking a `const Context&`; it must not touch Python objects
    template <class F>
    auto run(F&& algorithm) {
        std::stop_source stop;
        std::exception_ptr raised;
        Context context{.stop = stop.get_token(),
                        .clock = nullptr,
                        .executor = executor_,
                        .progress =
                            [&](const Progress& p) {
                                const WithLock lock;
                                if (raised) return;
                                try {
                                    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                                    if (!progress_.is_none())
                                        call_python(progress_, p.phase, p.done, p.total);
                                } catch (py::error_already_set&) {
                                    raised = std::current_exception();
                                    stop.request_stop();
                                }
                            },
                        .lp = milp::clp()};
        struct Close {
            py::object& progress;
            ~Close() {
                if (!progress.is_none() && py::hasattr(progress, "close")) {
                    const py::error_scope keep;
                    try {
                        call_python(progress.attr("close"));
                    } catch (py::error_already_set& error) {
                        error.discard_as_unraisable("progress.close");
                    }
                }
            }
        } close{progress_};
        auto result = [&] {
            const WithoutLock unlocked;
            try {
                return std::forward<F>(algorithm)(std::as_const(context));
            } catch (...) {
                if (!raised) throw;
                std::rethrow_exception(raised);
            }
        }();
        if (raised) std::rethrow_exception(raised);
        return result;
    }

  private:
    py::object progress_;
    ExecutorRef executor_;
};

}  // namespace gpusched::python

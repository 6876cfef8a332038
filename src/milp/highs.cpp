// SPDX-License-Identifier: Apache-2.0
// The adapter of HiGHS.
#include <gpusched/core/budget.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/milp/solver.hpp>

#ifdef GPUSCHED_HAS_HIGHS
#include <Highs.h>
#endif

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

namespace gpusched::milp::detail {

#ifdef GPUSCHED_HAS_HIGHS
/// HiGHS keeps threads for every calling thread, and fails if asked for another number. So each call resets
/// them; a call within another, from its progress hook, uses the existing ones.
class HighsThreads {
  public:
    HighsThreads() {
        if (depth()++ == 0) Highs::resetGlobalScheduler(true);
    }
    ~HighsThreads() { --depth(); }
    HighsThreads(const HighsThreads&) = delete;
    HighsThreads& operator=(const HighsThreads&) = delete;

    /// The value of the option; 0 = the existing threads.
    [[nodiscard]] int count(int threads) const { return depth() > 1 ? 0 : threads; }

  private:
    static int& depth() {
        thread_local int calls = 0;
        return calls;
    }
};
#endif

bool highs_built_in() noexcept {
#ifdef GPUSCHED_HAS_HIGHS
    return true;
#else
    return false;
#endif
}

Solution solve_with_highs([[maybe_unused]] const Model& model, [[maybe_unused]] const SolveOptions& options,
                          [[maybe_unused]] const Context& context) {
#ifdef GPUSCHED_HAS_HIGHS
    Solution result{.solver = "highs"};
    const double sign = model.sense == Sense::maximise ? -1 : 1;
    result.bound = -sign * infinity;
    Budget budget(context, options.time_limit);
    budget.report("solving", 0, 0);
    static_cast<void>(budget.exhausted());  // shows progress even if the solver is done at once
    HighsLp lp;
    lp.num_col_ = model.columns();
    lp.num_row_ = model.rows();
    lp.sense_ = sign < 0 ? ObjSense::kMaximize : ObjSense::kMinimize;
    lp.offset_ = model.offset;
    lp.col_cost_ = model.objective;
    lp.col_lower_ = model.column_lower;
    lp.col_upper_ = model.column_upper;
    lp.row_lower_ = model.row_lower;
    lp.row_upper_ = model.row_upper;
    lp.a_matrix_.format_ = MatrixFormat::kColwise;
    lp.a_matrix_.num_col_ = model.columns();
    lp.a_matrix_.num_row_ = model.rows();
    lp.a_matrix_.start_.assign(model.column_start.begin(), model.column_start.end());
    lp.a_matrix_.index_.assign(model.row_index.begin(), model.row_index.end());
    lp.a_matrix_.value_ = model.value;
    const bool mip = model.integer_columns() > 0;
    if (mip) {
        lp.integrality_.assign(static_cast<std::size_t>(model.columns()), HighsVarType::kContinuous);
        for (std::size_t j = 0; j < model.integer.size(); ++j)
            if (model.integer[j] != 0) lp.integrality_[j] = HighsVarType::kInteger;
    }
    const HighsThreads threads;
    Highs highs;
    highs.setOptionValue("output_flag", false);
    highs.setOptionValue("mip_rel_gap", options.mip_gap);
    highs.setOptionValue("mip_abs_gap", 0.0);
    highs.setOptionValue("threads", threads.count(options.threads));
    highs.setOptionValue("parallel", std::string(options.threads > 1 ? "on" : "off"));
    highs.setOptionValue("random_seed", options.seed);
    highs.setOptionValue("presolve", std::string(options.presolve ? "on" : "off"));
    if (options.time_limit) highs.setOptionValue("time_limit", *options.time_limit);
    if (highs.passModel(std::move(lp)) == HighsStatus::kError) {
        result.message = "HiGHS rejects the model";
        return result;
    }
    if (!options.start.empty()) {
        HighsSolution start;
        start.col_value = options.start;
        highs.setSolution(start);
    }
    highs.setCallback(
        [&budget, mip](int, const std::string&, const HighsCallbackOutput* out, HighsCallbackInput* in,
                       void*) {
            if (out != nullptr) {
                const std::int64_t done = mip ? out->mip_node_count : out->simplex_iteration_count;
                if (done > 0) budget.report("solving", done, 0);
            }
            if (in != nullptr && budget.exhausted()) in->user_interrupt = true;
        },
        nullptr);
    highs.startCallback(HighsCallbackType::kCallbackMipInterrupt);
    highs.startCallback(HighsCallbackType::kCallbackSimplexInterrupt);
    highs.run();
    auto status = highs.getModelStatus();
    if (status == HighsModelStatus::kUnboundedOrInfeasible) {
        // Presolve could not decide; the solver can.
        highs.setOptionValue("presolve", std::string("off"));
        highs.run();
        status = highs.getModelStatus();
    }
    const auto& info = highs.getInfo();
    if (info.primal_solution_status == kSolutionStatusFeasible) result.x = highs.getSolution().col_value;
    // It is 0, which is no bound, if the search did not begin.
    if (mip && std::isfinite(info.mip_dual_bound) &&
        (status == HighsModelStatus::kOptimal || status == HighsModelStatus::kTimeLimit ||
         status == HighsModelStatus::kInterrupt))
        result.bound = info.mip_dual_bound;
    switch (status) {
    case HighsModelStatus::kOptimal:
    case HighsModelStatus::kModelEmpty:
        result.status = Status::optimal;
        if (!mip) result.bound = info.objective_function_value;
        break;
    case HighsModelStatus::kInfeasible:
        result.status = Status::infeasible;
        result.x.clear();
        break;
    case HighsModelStatus::kUnbounded:
    case HighsModelStatus::kUnboundedOrInfeasible:
        result.status = status == HighsModelStatus::kUnbounded ? Status::unbounded : Status::failed;
        result.x.clear();
        break;
    case HighsModelStatus::kTimeLimit:
        result.status = Status::time_limit;
        break;
    case HighsModelStatus::kInterrupt:
        result.status = budget.reason() == StopReason::cancelled ? Status::cancelled : Status::time_limit;
        break;
    default:
        result.message = "HiGHS stopped: " + highs.modelStatusToString(status);
    }
    return result;
#else
    throw BackendError(
        "the HiGHS solver was not compiled in; install HiGHS with its CMake package `highs` and "
        "configure gpusched again");
#endif
}

}  // namespace gpusched::milp::detail

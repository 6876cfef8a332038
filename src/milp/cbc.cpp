// SPDX-License-Identifier: Apache-2.0
// The adapter of CBC: mixed-integer programs by CBC, linear programs by its Clp.
#include <gpusched/core/budget.hpp>
#include <gpusched/core/errors.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/milp/solver.hpp>

#ifdef GPUSCHED_HAS_CBC
// CBC's headers include each other without their folder.
#include <CbcEventHandler.hpp>
#include <CbcModel.hpp>
#include <CbcSolver.hpp>
#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinError.hpp>
#include <CoinTime.hpp>
#include <OsiClpSolverInterface.hpp>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace gpusched::milp::detail {

bool cbc_built_in() noexcept {
#ifdef GPUSCHED_HAS_CBC
    return true;
#else
    return false;
#endif
}

#ifdef GPUSCHED_HAS_CBC
/// The progress of a search with integer columns.
struct CbcProgress {
    std::atomic<int> nodes{0};       ///< explored so far
    std::atomic<bool> began{false};  ///< preprocessing is over
};

/// Reports the iterations of Clp, and stops it when the budget ends. Within a search it acts only before the
/// search begins, because the search takes an interrupted linear program for an infeasible node.
class ClpWatch : public ClpEventHandler {
  public:
    explicit ClpWatch(Budget* budget, const CbcProgress* search = nullptr)
        : budget_(budget), search_(search) {}
    int event(Event) override {
        constexpr int go_on = -1, stop = 0;
        if (search_ != nullptr && search_->began) return go_on;
        if (model_ != nullptr)
            budget_->report("solving", search_ == nullptr ? model_->numberIterations() : 0, 0);
        return budget_->exhausted() ? stop : go_on;
    }
    ClpEventHandler* clone() const override { return new ClpWatch(*this); }

  private:
    Budget* budget_;
    const CbcProgress* search_;
};

/// Reports the nodes of a search, and stops it when the budget ends. CBC copies it, also for the sub-searches
/// of its heuristics, so the reported count only grows.
class CbcWatch : public CbcEventHandler {
  public:
    CbcWatch(Budget* budget, CbcProgress* progress) : budget_(budget), progress_(progress) {}
    CbcAction event(CbcEvent) override {
        if (const auto* search = getModel(); search != nullptr) {
            auto& nodes = progress_->nodes;
            int known = nodes.load();
            const int seen = search->getNodeCount();
            while (known < seen && !nodes.compare_exchange_weak(known, seen)) {
            }
            budget_->report("solving", nodes.load(), 0);
        }
        return budget_->exhausted() ? stop : noAction;
    }
    CbcEventHandler* clone() const override { return new CbcWatch(*this); }

    /// CBC calls this between its stages; a result other than 0 ends it. CBC gets the time limit only when
    /// its search begins: a limit that strikes during preprocessing leaves models unset that are read later,
    /// or looks like infeasibility.
    static int stage(CbcModel* search, int at) {
        constexpr int preprocessed = 2, search_begins = 3;
        auto* const watch = dynamic_cast<CbcWatch*>(search->getEventHandler());
        if (watch == nullptr || (at != preprocessed && at != search_begins)) return 0;
        if (watch->budget_->exhausted()) return 1;
        if (at == preprocessed) return 0;
        watch->progress_->began = true;
        if (const auto left = watch->budget_->remaining_s()) {
            search->setDblParam(CbcModel::CbcStartSeconds, CoinGetTimeOfDay());
            search->setMaximumSeconds(*left);
        }
        return 0;
    }

  private:
    Budget* budget_;
    CbcProgress* progress_;
};

/// CBC's command reader uses global variables, so searches take turns: two at once would read each other's
/// arguments, or commands from the standard input. A search within another, from its progress hook, starts at
/// once.
class CbcTurn {
  public:
    explicit CbcTurn(Budget& budget) : within_(depth()++ > 0) {
        while (!within_ && !(first_ = mutex().try_lock_for(std::chrono::milliseconds(20))) &&
               !budget.exhausted()) {
        }
    }
    ~CbcTurn() {
        --depth();
        if (first_) mutex().unlock();
    }
    CbcTurn(const CbcTurn&) = delete;
    CbcTurn& operator=(const CbcTurn&) = delete;

    /// Whether this search can run; false if the budget ended first.
    [[nodiscard]] bool ours() const { return within_ || first_; }

  private:
    static std::timed_mutex& mutex() {
        static std::timed_mutex one;
        return one;
    }
    static int& depth() {
        thread_local int searches = 0;
        return searches;
    }
    bool within_, first_ = false;
};

static Solution cbc_attempt(const Model& model, const SolveOptions& options, const Context& context) {
    Solution result{.solver = "cbc"};
    const double sign = model.sense == Sense::maximise ? -1 : 1;
    Budget budget(context, options.time_limit);
    budget.report("solving", 0, 0);
    static_cast<void>(budget.exhausted());  // shows progress even if the solver is done at once
    OsiClpSolverInterface lp;
    lp.messageHandler()->setLogLevel(0);
    auto objective = model.objective;
    for (auto& c : objective) c *= sign;
    const auto sides = [](std::vector<double> values) {
        for (auto& v : values)
            if (std::isinf(v)) v = v < 0 ? -COIN_DBL_MAX : COIN_DBL_MAX;
        return values;
    };
    const auto column_lower = sides(model.column_lower), column_upper = sides(model.column_upper);
    const auto row_lower = sides(model.row_lower), row_upper = sides(model.row_upper);
    const std::vector<CoinBigIndex> start(model.column_start.begin(), model.column_start.end());
    lp.loadProblem(model.columns(), model.rows(), start.data(), model.row_index.data(), model.value.data(),
                   column_lower.data(), column_upper.data(), objective.data(), row_lower.data(),
                   row_upper.data());
    for (int j = 0; j < model.columns(); ++j)
        if (model.integer[static_cast<std::size_t>(j)] != 0) lp.setInteger(j);
    const auto bound_of = [&](double value) {
        return std::abs(value) < 1e49 ? sign * value + model.offset : -sign * infinity;
    };
    result.bound = -sign * infinity;

    if (model.integer_columns() == 0) {  // a linear program for Clp alone
        if (options.time_limit) lp.getModelPtr()->setMaximumWallSeconds(*options.time_limit);
        const ClpWatch watch(&budget);
        lp.getModelPtr()->passInEventHandler(&watch);
        lp.initialSolve();
        if (lp.isProvenOptimal()) {
            result.status = Status::optimal;
            result.x.assign(lp.getColSolution(), lp.getColSolution() + model.columns());
            result.bound = bound_of(lp.getObjValue());
        } else if (lp.isProvenPrimalInfeasible()) {
            result.status = Status::infeasible;
        } else if (lp.isProvenDualInfeasible()) {
            result.status = Status::unbounded;
        } else {
            result.status = budget.reason() == StopReason::cancelled ? Status::cancelled
                            : budget.exhausted()                     ? Status::time_limit
                                                                     : Status::failed;
            result.message = "Clp stopped";
        }
        return result;
    }

    // The start is the best solution if the search stopped before it read it.
    const auto keep_start = [&] {
        if (!options.start.empty() && evaluate(model, options.start).feasible()) result.x = options.start;
    };
    const CbcTurn turn(budget);
    if (!turn.ours()) {
        result.status = budget.reason() == StopReason::cancelled ? Status::cancelled : Status::time_limit;
        result.message = "CBC was busy with another search";
        keep_start();
        return result;
    }
    std::vector<std::string> names;
    if (!options.start.empty()) {  // a start is given by names, and presolve needs all names or none
        lp.setIntParam(OsiNameDiscipline, 1);
        for (int j = 0; j < model.columns(); ++j) {
            names.push_back("C" + std::to_string(j));
            lp.setColName(j, names.back());
        }
        for (int i = 0; i < model.rows(); ++i) lp.setRowName(i, "R" + std::to_string(i));
    }
    CbcProgress progress;
    const ClpWatch lp_watch(&budget, &progress);
    lp.getModelPtr()->passInEventHandler(&lp_watch);
    CbcModel cbc(lp);
    cbc.setKeepNamesPreproc(!options.start.empty());
    cbc.setLogLevel(0);
    cbc.messageHandler()->setLogLevel(0);
    CbcWatch watch(&budget, &progress);
    cbc.passInEventHandler(&watch);
    CbcSolverUsefulData data;
    data.noPrinting_ = true;
    data.useSignalHandler_ = false;
    CbcMain0(cbc, data);
    cbc.setLogLevel(0);
    std::vector<std::string> arguments{"gpusched"};
    const auto add = [&](const char* name, const std::string& value) {
        arguments.emplace_back(name);
        arguments.push_back(value);
    };
    add("-log", "0");
    add("-randomCbcSeed", std::to_string(options.seed % std::numeric_limits<int>::max() + 1));
    add("-ratioGap", std::to_string(options.mip_gap));
    add("-allowableGap", "0");
    if (options.threads > 1) add("-threads", std::to_string(options.threads));
    if (!options.presolve) {
        add("-presolve", "off");
        add("-preprocess", "off");
    }
    // The linear programs of this heuristic can fail an assertion of Clp (1.17.7), which ends the process.
    add("-Rins", "off");
    add("-timeMode", "elapsed");  // the default is CPU time
    arguments.emplace_back("-solve");
    arguments.emplace_back("-quit");
    // The integer columns of the start; a linear program finds the others.
    std::vector<const char*> start_names;
    std::vector<double> start_values;
    for (std::size_t j = 0; j < names.size(); ++j) {
        if (model.integer[j] == 0) continue;
        start_names.push_back(names[j].c_str());
        start_values.push_back(options.start[j]);
    }
    if (!start_names.empty())
        cbc.setMIPStart(static_cast<int>(start_names.size()), start_names.data(), start_values.data());
    std::vector<const char*> argv;
    for (const auto& a : arguments) argv.push_back(a.c_str());
    CbcMain1(static_cast<int>(argv.size()), argv.data(), cbc, CbcWatch::stage, data);

    // An interrupted linear program looks infeasible.
    const bool cut_off = !progress.began && budget.exhausted();
    const double* best = cut_off ? nullptr : cbc.bestSolution();
    if (best != nullptr) result.x.assign(best, best + model.columns());
    if (cut_off) {
        result.status = budget.reason() == StopReason::cancelled ? Status::cancelled : Status::time_limit;
        result.message = "CBC stopped before its search";
        keep_start();
    } else if (cbc.isProvenOptimal() && best != nullptr) {
        result.status = Status::optimal;
        result.bound = bound_of(cbc.getBestPossibleObjValue());
    } else if (cbc.isContinuousUnbounded()) {
        result.status = Status::unbounded;
    } else if (cbc.isProvenInfeasible() && best == nullptr) {
        result.status = Status::infeasible;
    } else {
        result.status = budget.reason() == StopReason::cancelled || context.stop.stop_requested()
                            ? Status::cancelled
                        : budget.exhausted() || cbc.isSecondsLimitReached() ? Status::time_limit
                                                                            : Status::failed;
        if (best == nullptr) keep_start();
        result.message = "CBC stopped early";
        result.bound = bound_of(cbc.getBestPossibleObjValue());
    }
    return result;
}
#endif

Solution solve_with_cbc([[maybe_unused]] const Model& model, [[maybe_unused]] const SolveOptions& options,
                        [[maybe_unused]] const Context& context) {
#ifdef GPUSCHED_HAS_CBC
    Budget budget(context, options.time_limit);
    auto attempt = options;
    std::optional<double> with_presolve;  // the objective of an answer that is checked without presolve
    for (;;) {
        try {
            auto result = cbc_attempt(model, attempt, context);
            if (result.status != Status::optimal || !result.has_solution()) return result;
            const double value = evaluate(model, result.x).objective;
            const double size = std::max({1.0, std::abs(value), std::abs(result.bound)});
            if (with_presolve) {  // the answer without presolve
                if ((model.sense == Sense::minimise ? value - *with_presolve : *with_presolve - value) >
                    (1.01 * options.mip_gap + 1e-6) * size) {
                    result.status = Status::failed;
                    result.message = "CBC calls a solution optimal that is worse than an earlier one";
                }
                return result;
            }
            const double off = std::abs(value - result.bound) - 1.01 * options.mip_gap * size;
            if (off <= 1e-4 * size || !attempt.presolve) return result;
            // Either there is no value between the solution and the bound, or (seen with presolve) the
            // solution is not the one with which the search ended.
            with_presolve = value;
            attempt.presolve = false;
            attempt.time_limit = budget.remaining_s();
        } catch (const CoinError& error) {
            // Seen with a start: presolve removes columns whose names are needed later.
            if (attempt.start.empty())
                return {.status = Status::failed,
                        .bound = model.sense == Sense::maximise ? infinity : -infinity,
                        .solver = "cbc",
                        .message = "CBC stopped: " + error.message()};
            attempt.start.clear();
            attempt.time_limit = budget.remaining_s();
        }
    }
#else
    throw BackendError("the CBC solver was not compiled in; install it (Debian, Ubuntu: apt-get install "
                       "coinor-libcbc-dev) and configure gpusched with -DGPUSCHED_WITH_CBC=ON");
#endif
}

}  // namespace gpusched::milp::detail

#pragma once

#include <gpusched/core/checks.hpp>
#include <gpusched/milp/solver.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpusched::milp {

GPUSCHED_INLINE void validate(const SolveOptions& options, const Model& model) {
    Problems problems;
    if (options.time_limit) check_at_least(problems, "time_limit", *options.time_limit, 0.0);
    check_at_least(problems, "mip_gap", options.mip_gap, 0.0);
    check_at_least(problems, "threads", options.threads, 1);
    check_at_least(problems, "seed", options.seed, 0);
    if (!options.start.empty() && options.start.size() != static_cast<std::size_t>(model.columns()))
        problems.add(bad_value("entries of start", std::to_string(options.start.size()),
                               std::to_string(model.columns()) + ", or none"));
    for (const double value : options.start)
        if (!std::isfinite(value)) {
            problems.add(bad_value("start", number_text(value), "finite numbers"));
            break;
        }
    problems.throw_if_any();
}

GPUSCHED_INLINE std::vector<std::string> available_solvers() {
    std::vector<std::string> names;
    if (detail::highs_built_in()) names.emplace_back("highs");
    if (detail::cbc_built_in()) names.emplace_back("cbc");
    return names;
}

GPUSCHED_INLINE AnySolver find_solver(const std::string& name) {
    const auto cbc = [] { return AnySolver("cbc", &detail::solve_with_cbc); };
    const auto highs = [] { return AnySolver("highs", &detail::solve_with_highs); };
    if (name == "cbc") return cbc();
    if (name == "highs") return highs();
    if (name != "auto")
        throw InvalidInput(bad_value("solver", gpusched::quoted(name), "'auto', 'highs' or 'cbc'"));
    if (detail::highs_built_in()) return highs();
    if (detail::cbc_built_in()) return cbc();
    throw BackendError("no MILP solver was compiled in; install CBC (Debian, Ubuntu: apt-get install "
                       "coinor-libcbc-dev) or HiGHS with its CMake package, and configure gpusched again");
}

GPUSCHED_INLINE Solution checked(const Model& model, Solution solution, double tolerance) {
    const auto fail = [&](std::string why) {
        solution.status = Status::failed;
        solution.message = std::move(why);
        solution.x.clear();
        solution.objective = std::numeric_limits<double>::quiet_NaN();
    };
    if (!solution.has_solution()) {
        solution.objective = std::numeric_limits<double>::quiet_NaN();
        if (solution.status == Status::optimal && model.columns() > 0)
            fail("said to be optimal, but there is no solution");
        if (solution.status == Status::optimal) solution.objective = solution.bound = model.offset;
        return solution;
    }
    const auto columns = static_cast<std::size_t>(model.columns());
    if (solution.x.size() != columns) {
        fail("the solution has " + std::to_string(solution.x.size()) + " entries instead of " +
             std::to_string(columns));
        return solution;
    }
    for (std::size_t j = 0; j < columns; ++j) {
        auto& x = solution.x[j];
        if (!std::isfinite(x)) {
            fail("column " + gpusched::quoted(model.column_names[j]) + " is not finite");
            return solution;
        }
        if (model.integer[j] != 0) {
            if (std::abs(x - std::round(x)) > tolerance) {
                fail("integer column " + gpusched::quoted(model.column_names[j]) + " is " + number_text(x));
                return solution;
            }
            x = std::round(x);
        }
        // Solvers overstep bounds by their own tolerance.
        if (x < model.column_lower[j] - tolerance || x > model.column_upper[j] + tolerance) {
            fail("column " + gpusched::quoted(model.column_names[j]) + " is out of its bounds");
            return solution;
        }
        x = std::clamp(x, model.column_lower[j], model.column_upper[j]);
    }
    std::vector<double> activity(model.row_lower.size(), 0.0), size(activity.size(), 1.0);
    for (std::size_t j = 0; j < columns; ++j)
        for (int k = model.column_start[j]; k < model.column_start[j + 1]; ++k) {
            const auto row = static_cast<std::size_t>(model.row_index[static_cast<std::size_t>(k)]);
            const double part = model.value[static_cast<std::size_t>(k)] * solution.x[j];
            activity[row] += part;
            size[row] =
                std::max({size[row], std::abs(part), std::abs(model.value[static_cast<std::size_t>(k)])});
        }
    for (std::size_t i = 0; i < activity.size(); ++i) {
        const double by = std::max(model.row_lower[i] - activity[i], activity[i] - model.row_upper[i]);
        if (by > tolerance * size[i]) {
            fail("row " + gpusched::quoted(model.row_names[i]) + " is violated by " + number_text(by));
            return solution;
        }
    }
    solution.objective = evaluate(model, solution.x).objective;
    // A bound beyond the solution is rounding; say no more than the solution shows.
    const bool down = model.sense == Sense::minimise;
    if (std::isfinite(solution.bound))
        solution.bound = down ? std::min(solution.bound, solution.objective)
                              : std::max(solution.bound, solution.objective);
    return solution;
}

GPUSCHED_INLINE Solution solve(const Model& model, const SolveOptions& options, const AnySolver& solver,
                               const Context& context) {
    validate(model);
    validate(options, model);
    auto solution = solver(model, options, context);
    if (solution.solver.empty()) solution.solver = solver.name();
    return checked(model, std::move(solution));
}

GPUSCHED_INLINE Solution solve(const Model& model, const SolveOptions& options, const std::string& solver,
                               const Context& context) {
    return solve(model, options, find_solver(solver), context);
}

GPUSCHED_INLINE std::vector<std::string> conflicting_groups(const Model& model, const AnySolver& solver,
                                                            const SolveOptions& options,
                                                            const Context& context) {
    auto kept = model.group_names;
    SolveOptions elastic_options = options;
    elastic_options.start.clear();
    // The rows of the groups not in `hard` cost nothing, so they are as good as absent.
    const auto feasible = [&](const std::vector<std::string>& hard) {
        auto form = elastic(model);
        for (std::size_t i = 0; i < form.shortfall.size(); ++i) {
            const auto& group = form.group_names[static_cast<std::size_t>(form.row_group[i])];
            if (std::find(hard.begin(), hard.end(), group) != hard.end()) continue;
            for (const int column : {form.shortfall[i], form.excess[i]})
                if (column >= 0) form.objective[static_cast<std::size_t>(column)] = 0;
        }
        const auto solution = solve(form, elastic_options, solver, context);
        if (solution.has_solution() && solution.objective <= 1e-6) return true;
        if (solution.status != Status::optimal)
            throw BackendError(solver.name() +
                               " gave no answer about an elastic model: " + to_string(solution.status));
        return false;
    };
    if (feasible(kept)) return {};
    for (std::size_t i = 0; i < kept.size();) {
        auto without = kept;
        without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
        if (feasible(without))
            ++i;
        else
            kept = std::move(without);
    }
    return kept;
}

}  // namespace gpusched::milp

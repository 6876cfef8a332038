// SPDX-License-Identifier: Apache-2.0
// Solving models: the choice of the solver, contradictions, checks of solutions, conflicting groups.
#include <gpusched/config.hpp>
#include <gpusched/core/budget.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/matrix.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/milp/solver.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gpusched::milp {

GPUSCHED_EXPORT void validate(const SolveOptions& options) { require_fields(options); }

GPUSCHED_EXPORT void validate(const SolveOptions& options, const Model& model) {
    Problems problems;
    check_fields(problems, options);
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

GPUSCHED_EXPORT std::vector<std::string> available_solvers() {
    std::vector<std::string> names;
    if (detail::highs_built_in()) names.emplace_back("highs");
    if (detail::cbc_built_in()) names.emplace_back("cbc");
    return names;
}

GPUSCHED_EXPORT AnySolver find_solver(const std::string& name) {
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

GPUSCHED_EXPORT AnySolver::AnySolver(const std::string& name) : AnySolver(find_solver(name)) {}

namespace detail {

std::string contradiction(const Model& model) {
    for (std::size_t j = 0; j < model.integer.size(); ++j)
        if (model.integer[j] != 0 &&
            std::floor(model.column_upper[j] + 1e-9) < std::ceil(model.column_lower[j] - 1e-9))
            return "integer column " + gpusched::quoted(model.column_names[j]) +
                   " has no whole number within its bounds";
    std::vector<bool> empty(model.row_lower.size(), true);
    for (std::size_t k = 0; k < model.value.size(); ++k)
        if (model.value[k] != 0) empty[static_cast<std::size_t>(model.row_index[k])] = false;
    for (std::size_t i = 0; i < empty.size(); ++i)
        if (empty[i] && (model.row_lower[i] > 1e-9 || model.row_upper[i] < -1e-9))
            return "row " + gpusched::quoted(model.row_names[i]) +
                   " has no columns, and 0 is not within its sides";
    return {};
}

/// Whether the objective improves along a column without a bound.
static bool endless(const Model& model, std::size_t j) {
    const double c = model.sense == Sense::minimise ? -model.objective[j] : model.objective[j];
    return (c > 0 && model.column_upper[j] == infinity) || (c < 0 && model.column_lower[j] == -infinity);
}

/// The unbounded directions of the relaxation in which the objective improves by 1. A feasible model with
/// rational numbers is unbounded if and only if there is one.
static Model ray(const Model& model) {
    auto result = model;
    result.name += " (ray)";
    result.offset = 0;
    std::fill(result.integer.begin(), result.integer.end(), std::uint8_t{0});
    std::fill(result.objective.begin(), result.objective.end(), 0.0);
    const auto sides = [](std::vector<double>& lower, std::vector<double>& upper) {
        for (auto& side : lower) side = std::isfinite(side) ? 0 : side;
        for (auto& side : upper) side = std::isfinite(side) ? 0 : side;
    };
    sides(result.row_lower, result.row_upper);
    sides(result.column_lower, result.column_upper);
    double largest = 0;
    for (const double c : model.objective) largest = std::max(largest, std::abs(c));
    const double sign = model.sense == Sense::minimise ? -1 : 1;
    std::vector<Entry> better;
    for (int j = 0; j < model.columns(); ++j)
        if (const double c = model.objective[static_cast<std::size_t>(j)]; c != 0)
            better.push_back({j, sign * c / largest});
    add_row(result, "better", "better", 1, better, 1);
    return result;
}

/// Decides between infeasible and unbounded, which solvers confuse, by two models without objective: is there
/// a solution, and is there an unbounded direction?
static Solution disambiguated(const Model& model, Solution solution, const SolveOptions& options,
                              const AnySolver& solver, const Context& context, Budget& budget) {
    const bool stopped =
        solution.status == Status::failed || (solution.status == Status::time_limit && !options.time_limit);
    const bool asked =
        solution.status == Status::unbounded || stopped || solution.status == Status::infeasible;
    if (solution.has_solution() || !asked) return solution;
    bool may = false;  // the model can be unbounded
    for (std::size_t j = 0; j < model.objective.size() && !may; ++j) may = endless(model, j);
    if (!may && solution.status != Status::unbounded) return solution;
    const auto ask = [&](const Model& question) {
        auto o = options;
        o.start.clear();
        o.time_limit = budget.remaining_s();
        return checked(question, solver(question, o, context));
    };
    auto feasible = model;
    std::fill(feasible.objective.begin(), feasible.objective.end(), 0.0);
    const auto any = ask(feasible);
    const double worst = model.sense == Sense::minimise ? infinity : -infinity;
    if (any.status == Status::infeasible) {
        solution.status = Status::infeasible;
        solution.message.clear();
        return solution;
    }
    if (!any.has_solution()) return solution;
    const auto direction = may ? ask(ray(model)) : Solution{.status = Status::infeasible};
    if (direction.has_solution()) {
        solution.status = Status::unbounded;
        solution.bound = -worst;
        solution.message.clear();
    } else if (direction.status == Status::infeasible && !stopped) {
        solution.message = std::string("said to be ") + enum_name(solution.status) + ", which it is not";
        solution.status = Status::failed;
        solution.bound = -worst;
    }
    return solution;
}

/// The bound of a solution, rounded to a value that the objective can have if it is always a whole number.
static double reachable_bound(const Model& model, const Solution& solution) {
    for (std::size_t j = 0; j < model.objective.size(); ++j)
        if (const double c = model.objective[j]; c != 0 && (!model.integer[j] || c != std::round(c)))
            return solution.bound;
    const double part = solution.bound - model.offset;
    return model.offset + (model.sense == Sense::minimise ? std::ceil(part - 1e-6) : std::floor(part + 1e-6));
}

/// Whether the bound of a solution proves it optimal within the gap, or 1e-6 if that is larger.
static bool bound_agrees(const Model& model, const Solution& solution, double gap) {
    if (!solution.has_solution()) return true;
    const double bound = reachable_bound(model, solution);
    // Solvers differ in whether a gap is relative to the objective without its offset, or to the bound.
    const double size = std::max(
        {std::abs(solution.objective), std::abs(solution.objective - model.offset), std::abs(bound)});
    return std::abs(solution.objective - bound) <= std::max(gap, 1e-6) * (1 + 1e-9) * size + 1e-6;
}

}  // namespace detail

GPUSCHED_EXPORT Solution checked(const Model& model, Solution solution, double tolerance) {
    const auto fail = [&](std::string why) {
        solution.status = Status::failed;
        solution.message = std::move(why);
        solution.x.clear();
        solution.objective = std::numeric_limits<double>::quiet_NaN();
        return solution;
    };
    if (!solution.has_solution()) {
        solution.objective = std::numeric_limits<double>::quiet_NaN();
        if (solution.status != Status::optimal) return solution;
        if (model.columns() > 0) return fail("the solver claims an optimum, but returned no solution");
        if (const auto why = detail::contradiction(model); !why.empty()) return fail(why);
        solution.objective = solution.bound = model.offset;
        return solution;
    }
    const auto columns = static_cast<std::size_t>(model.columns());
    if (solution.x.size() != columns)
        return fail("the solution has " + std::to_string(solution.x.size()) + " entries instead of " +
                    std::to_string(columns));
    for (std::size_t j = 0; j < columns; ++j) {
        auto& x = solution.x[j];
        if (!std::isfinite(x))
            return fail("column " + gpusched::quoted(model.column_names[j]) + " is not finite");
        if (model.integer[j] != 0) {
            if (std::abs(x - std::round(x)) > tolerance)
                return fail("integer column " + gpusched::quoted(model.column_names[j]) + " is " +
                            number_text(x));
            x = std::round(x);
        }
        // Solvers violate bounds within their own tolerance.
        if (x < model.column_lower[j] - tolerance || x > model.column_upper[j] + tolerance)
            return fail("column " + gpusched::quoted(model.column_names[j]) + " is out of its bounds");
        x = std::clamp(x, model.column_lower[j], model.column_upper[j]);
    }
    const auto activity = row_activity(model, solution.x);
    std::vector<double> size(model.row_lower.size(), 1.0);  // largest term of each row
    const auto matrix = A(model);
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
        const double factor = std::max(1.0, std::abs(solution.x[static_cast<std::size_t>(j)]));
        for (decltype(matrix)::InnerIterator entry(matrix, j); entry; ++entry) {
            auto& largest = size[static_cast<std::size_t>(entry.row())];
            largest = std::max(largest, std::abs(entry.value()) * factor);
        }
    }
    for (std::size_t i = 0; i < size.size(); ++i) {
        const double row = activity[static_cast<Eigen::Index>(i)];
        const double by = std::max(model.row_lower[i] - row, row - model.row_upper[i]);
        if (by > tolerance * size[i])
            return fail("row " + gpusched::quoted(model.row_names[i]) + " is violated by " + number_text(by));
    }
    solution.objective = objective_value(model, solution.x);
    // A bound better than the solution is a rounding error.
    const bool down = model.sense == Sense::minimise;
    if (std::isfinite(solution.bound))
        solution.bound = down ? std::min(solution.bound, solution.objective)
                              : std::max(solution.bound, solution.objective);
    return solution;
}

GPUSCHED_EXPORT Solution solve(const Model& model, const SolveOptions& options, const AnySolver& solver,
                               const Context& context) {
    validate(model);
    validate(options, model);
    const double nothing = model.sense == Sense::minimise ? -infinity : infinity;
    if (auto why = detail::contradiction(model); !why.empty())
        return {.status = Status::infeasible,
                .objective = std::numeric_limits<double>::quiet_NaN(),
                .bound = nothing,
                .solver = solver.name(),
                .message = std::move(why)};
    Budget budget(context, options.time_limit);
    auto solution = checked(model, solver(model, options, context));
    const auto name = solution.solver.empty() ? solver.name() : solution.solver;
    solution = detail::disambiguated(model, std::move(solution), options, solver, context, budget);
    solution.solver = name;
    // A solver without bounds that returns an optimal solution claims the gap.
    if (solution.status == Status::optimal && solution.bound == nothing)
        solution.bound = solution.objective + (model.sense == Sense::minimise ? -1 : 1) * options.mip_gap *
                                                  std::abs(solution.objective);
    if (solution.status == Status::optimal && !detail::bound_agrees(model, solution, options.mip_gap)) {
        solution.status = Status::feasible;
        solution.message = "called optimal by the solver, but its bound is " + number_text(solution.bound) +
                           " and the objective " + number_text(solution.objective);
    }
    return solution;
}

GPUSCHED_EXPORT std::vector<std::string> conflicting_groups(const Model& model, const AnySolver& solver,
                                                            const SolveOptions& options,
                                                            const Context& context) {
    validate(options);
    validate(model);
    Model bounds;  // the columns without their rows
    bounds.integer = model.integer;
    bounds.column_lower = model.column_lower;
    bounds.column_upper = model.column_upper;
    bounds.column_names = model.column_names;
    if (!detail::contradiction(bounds).empty()) return {"bounds"};
    auto kept = model.group_names;
    SolveOptions elastic_options = options;
    elastic_options.start.clear();
    elastic_options.mip_gap = 0;  // only a zero optimum matters
    // Rows of other groups cost nothing, which relaxes them completely.
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
                               " gave no answer about an elastic model: " + enum_name(solution.status));
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

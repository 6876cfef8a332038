// SPDX-License-Identifier: Apache-2.0
// Models of the serving problem: four linear forms of the paper's problem (1) to (7), the bound, and the
// routing.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/model.hpp>
#include <gpusched/serving/serving_problem.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace gpusched::serving {

/// How the constraint x / y <= T, which is not linear, is made linear.
enum class ServingForm : std::uint8_t {
    copies,          ///< E1: a binary per copy of a configuration; exact
    fixed_makespan,  ///< E2: the makespan is given; minimises the cost, or finds any plan
    mccormick,       ///< E3: a binary per number of copies, and a column for each product T * binary
    rates,           ///< E4: shares per second and 1 / T instead of shares and T; exact and smallest
};

/// How a serving model is built.
struct ServingMilpOptions {
    ServingForm form = ServingForm::copies;  ///< the linear form
    std::optional<double> makespan{};  ///< seconds, > 0; required by `fixed_makespan`, which alone uses it
    /// `mccormick`: upper limit of the optimum, > 0; absent = `slowest_makespan`.
    std::optional<double> makespan_upper{};
    /// `copies`: N + 1 rows that lift the relaxation to the bound of `serving_bound`.
    bool surrogate_rows = true;
    bool minimise_cost = true;  ///< `fixed_makespan`: minimise the cost; off = find any plan
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingMilpOptions>, F&& field) {
    field("form", &ServingMilpOptions::form);
    field("makespan", &ServingMilpOptions::makespan);
    field("makespan_upper", &ServingMilpOptions::makespan_upper);
    field("surrogate_rows", &ServingMilpOptions::surrogate_rows);
    field("minimise_cost", &ServingMilpOptions::minimise_cost);
}

/// A serving model and the meaning of its columns; docs/serving-milp.md has the rows of each form.
///
/// Let C, W, N be the numbers of configurations, workloads with requests and GPU types, K_c the most replicas
/// of c, P their sum, X the number of pairs (c, w) with a throughput (at most C W), and S the sum of K_c over
/// these pairs.
///
/// | form | columns | rows |
/// |---|---|---|
/// | copies | 1 + P + S | W + P + S + sum of max(0, K_c - 1) + N + 1, and N + 1 surrogate rows |
/// | fixed_makespan | C + X | W + C + X + 1 + N |
/// | mccormick | 1 + X + 2 P | W + C + X + 2 P + sum of max(0, K_c - 1) + 1 + N |
/// | rates | 1 + C + X | W + C + X + 1 + N |
struct ServingMilp : milp::Model {
    ServingForm form = ServingForm::copies;  ///< the linear form
    int makespan_column = -1;                ///< column of T; -1 for `fixed_makespan` and `rates`
    /// `copies`, `mccormick`: c has the copies first_copy[c] .. first_copy[c + 1] - 1.
    std::vector<int> first_copy{};
    /// [c][w]: seconds of one replica for all requests; 0 = cannot serve.
    std::vector<std::vector<double>> seconds{};
    std::vector<double> upper{};  ///< per configuration: K_c
    int rate_column = -1;         ///< `rates`: column of r = unit / T; -1 in all other forms
    double unit = 1;              ///< `rates`: the unit, in seconds

    /// Converts a value of the objective, or a bound on it, to seconds.
    ///
    /// This is unit / value for `rates` (infinite for 0), else the value itself; for `fixed_makespan` that is
    /// no time.
    [[nodiscard]] double makespan_of(double reached) const noexcept;
    /// Returns the column of x(c, w), for `rates` of z(c, w), for `copies` of copy k; -1 if c cannot serve w.
    [[nodiscard]] int x(int c, int w, int k = 0) const;
    /// Returns the column of y(c), for `copies` and `mccormick` of its k-th binary.
    [[nodiscard]] int y(int c, int k = 0) const;

    /// Returns the vector of an allocation. Replicas of a configuration share its load evenly.
    /// @throws InvalidInput for lists of the wrong size, more replicas than columns, and shares of a
    ///     configuration that has no replicas or cannot serve the workload
    [[nodiscard]] std::vector<double> encode(const ServingAllocation& allocation) const;
    /// Returns the allocation of a vector: whole numbers of replicas, 0 to K_c, and shares that add up to 1.
    /// @throws InvalidInput unless `values` has one finite entry per column
    [[nodiscard]] ServingAllocation decode(std::span<const double> values) const;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingMilp>, F&& field) {
    visit_fields(std::type_identity<milp::Model>{}, field);
    field("form", &ServingMilp::form);
    field("makespan_column", &ServingMilp::makespan_column);
    field("first_copy", &ServingMilp::first_copy);
    field("seconds", &ServingMilp::seconds);
    field("upper", &ServingMilp::upper);
    field("rate_column", &ServingMilp::rate_column);
    field("unit", &ServingMilp::unit);
}

/// Builds the model of a serving problem; see ServingMilp for its size.
///
/// Rows by group: `coverage` (2), `time` (3), `active` (4), `budget` (5), `availability` (6) of the paper,
/// and depending on the form `symmetry` (a copy requires the copy before), `product` (T * binary) and
/// `surrogate`. A workload without requests has no rows and no columns; a pair without throughput has no
/// column.
///
/// @throws InvalidInput for a malformed problem, a makespan that is missing, unused or not positive, and more
///     than 10 million replicas in a form with columns for each
[[nodiscard]] ServingMilp serving_milp(const ServingProblem& problem, const ServingMilpOptions& options = {});

/// Builds a linear program whose optimum no plan beats. The busy time v_c = T y_c of each configuration is a
/// column.
///
/// It has 1 + X + C columns and W + 2 C + 1 + N rows.
[[nodiscard]] milp::Model serving_bound(const ServingProblem& problem);

/// Builds the linear program of the best routing to given replicas. Its optimum is the makespan.
///
/// It has 1 + (pairs served by configurations with replicas) columns and W + (configurations with replicas)
/// rows.
/// @throws InvalidInput unless there is one number >= 0 per configuration
[[nodiscard]] ServingMilp serving_routing(const ServingProblem& problem, const std::vector<int>& replicas);

/// Returns the seconds that the slowest single replica needs for each workload, summed over workloads; 0
/// without requests.
///
/// No sensible plan takes longer. A problem without a plan for this makespan has no plan at all.
[[nodiscard]] double slowest_makespan(const ServingProblem& problem);

/// Returns seconds that no plan beats, without a solver; infinite if some workload with requests cannot be
/// served.
///
/// It is the largest of several bounds. For several prices of GPUs and money: the cheapest work of all
/// requests, divided by the value of all GPUs and the budget. For each workload: its time on all replicas
/// that could serve it.
[[nodiscard]] double closed_form_bound(const ServingProblem& problem);

}  // namespace gpusched::serving

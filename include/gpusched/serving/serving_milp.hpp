// SPDX-License-Identifier: Apache-2.0
// Models of the serving problem: four linear forms of the paper's problem (1) to (7), its bound and its routing.
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

/// How x / y <= T, which is not linear, is written down.
enum class ServingForm : std::uint8_t {
    copies,          ///< E1: one binary per copy of a configuration; exact
    fixed_makespan,  ///< E2: the makespan is given; minimises the cost, or looks for any plan
    mccormick,       ///< E3: a binary per number of copies, T * binary as a column of its own
    rates,           ///< E4: shares per second and 1 / T instead of shares and T; exact, and the smallest
};
constexpr auto enum_names(ServingForm) {
    return name_table<ServingForm>({
        {ServingForm::copies, "copies"},
        {ServingForm::fixed_makespan, "fixed_makespan"},
        {ServingForm::mccormick, "mccormick"},
        {ServingForm::rates, "rates"},
    });
}

/// How a serving model is built.
struct ServingMilpOptions {
    ServingForm form = ServingForm::copies;  ///< how x / y <= T is written down
    /// `fixed_makespan` only, which needs it: seconds, > 0.
    std::optional<double> makespan{};
    /// `mccormick` only: seconds that the optimum does not exceed, > 0; absent = `slowest_makespan`.
    std::optional<double> makespan_upper{};
    /// `copies` only: the N + 1 rows that lift the relaxation to the bound of `serving_bound`.
    bool surrogate_rows = true;
    /// `fixed_makespan` only: minimise the cost; off = any plan will do.
    bool minimise_cost = true;
};
template <class F>
constexpr void visit_fields(std::type_identity<ServingMilpOptions>, F&& field) {
    field("form", &ServingMilpOptions::form);
    field("makespan", &ServingMilpOptions::makespan);
    field("makespan_upper", &ServingMilpOptions::makespan_upper);
    field("surrogate_rows", &ServingMilpOptions::surrogate_rows);
    field("minimise_cost", &ServingMilpOptions::minimise_cost);
}

/// A serving model, with what its columns stand for. Let C, W, N be the numbers of configurations, of workloads with requests
/// and of GPU types, K_c the most replicas of c, P their sum, and X the pairs (c, w) that can be served (C W where all can).
///
/// | form | columns | rows |
/// |---|---|---|
/// | copies | 1 + P + sum of K_c over X | W + P + sum of K_c over X + sum of max(0, K_c - 1) + N + 1, and N + 1 surrogate rows |
/// | fixed_makespan | C + X | W + C + X + 1 + N |
/// | mccormick | 1 + X + 2 P | W + C + X + 2 P + sum of max(0, K_c - 1) + 1 + N |
/// | rates | 1 + C + X | W + C + X + 1 + N |
///
/// With all pairs served the first is 1 + P (1 + W) columns.
///
/// `rates` divides the problem by T: with z = x unit / T and r = unit / T, maximise r subject to sum_c z_cw = r,
/// sum_w f_w / (h_cw unit) z_cw <= y_c, z_cw <= y_c, and (5) and (6) as they are, is linear without a binary per copy. The
/// unit is `closed_form_bound`, so that r is at most 1.
struct ServingMilp : milp::Model {
    ServingForm form = ServingForm::copies;  ///< how x / y <= T is written down
    int makespan_column = -1;                ///< T; -1 where the makespan is given, and for `rates`
    std::vector<int>
        first_copy{};  ///< `copies`, `mccormick`: copies of configuration c are first_copy[c] .. first_copy[c + 1] - 1
    std::vector<std::vector<double>>
        seconds{};  ///< [configuration][workload]: seconds of one replica for all requests; 0 = cannot
    std::vector<double> upper{};  ///< per configuration: K_c
    int rate_column = -1;         ///< `rates`: r = unit / T; -1 in all other forms
    double unit = 1;              ///< `rates`: seconds

    /// The column of T.
    [[nodiscard]] int T() const noexcept { return makespan_column; }
    /// Seconds that a value of the objective (or a bound on it) stands for: unit / value for `rates`, infinite for 0; the value
    /// itself for the other forms, which for `fixed_makespan` is no time.
    [[nodiscard]] double makespan_of(double reached) const noexcept;
    /// The column of x(c, w), for `rates` of z(c, w); with copies that of copy k. -1 where the configuration cannot serve the
    /// workload.
    [[nodiscard]] int x(int c, int w, int k = 0) const;
    /// The column of y(c), or of the k-th binary of c where the form has several.
    [[nodiscard]] int y(int c, int k = 0) const;

    /// The vector of an allocation. Replicas of a configuration share its load evenly.
    /// @throws InvalidInput for lists of the wrong size, more replicas than there are columns, and shares sent to a
    ///     configuration without replicas or one that cannot serve them
    [[nodiscard]] std::vector<double> encode(const ServingAllocation& allocation) const;
    /// The allocation of a vector: whole numbers of replicas, 0 to K_c, shares that add up to 1.
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

/// The serving problem as a model; see ServingMilp for its size.
///
/// Rows, by group: `coverage` (2), `time` (3), `active` (4), `budget` (5), `availability` (6) of the paper; `symmetry`
/// (the k-th copy only after the one before), `product` (T * binary) and `surrogate` are the forms' own. A workload without
/// requests has no row and no columns; a pair that cannot be served has no column.
///
/// @throws InvalidInput for a malformed problem, a makespan that is missing, not wanted or not positive, and more than 10 million
///     replicas with a form that has columns for each
[[nodiscard]] ServingMilp serving_milp(const ServingProblem& problem, const ServingMilpOptions& options = {});

/// A linear program whose optimum no plan beats: the busy time v_c = T y_c of each configuration is a column.
/// 1 + X + C columns, W + 2 C + 1 + N rows.
[[nodiscard]] milp::Model serving_bound(const ServingProblem& problem);

/// The linear program that routes requests best to given replicas, as a form with y fixed: its optimum is the makespan.
/// 1 + (pairs served by configurations with replicas) columns, W + (configurations with replicas) rows.
/// @throws InvalidInput unless there is one number >= 0 per configuration
[[nodiscard]] ServingMilp serving_routing(const ServingProblem& problem, const std::vector<int>& replicas);

/// Seconds within which one replica that can serve a workload, the slowest one, is done with it, summed over workloads: no
/// sensible plan takes longer, and a problem without a plan for it has none at all. 0 without requests.
[[nodiscard]] double slowest_makespan(const ServingProblem& problem);

/// Seconds that no plan beats, without a solver: for several prices of GPUs and money, the cheapest work per request of every
/// workload over all there is; and each workload on all replicas that could serve it at once. Infinite where some workload
/// with requests cannot be served.
[[nodiscard]] double closed_form_bound(const ServingProblem& problem);

}  // namespace gpusched::serving

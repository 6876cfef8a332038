// SPDX-License-Identifier: Apache-2.0
// Slowdown curves: checks, and an exact least-squares fit.
#include <gpusched/allocation/slowdown.hpp>
#include <gpusched/config.hpp>
#include <gpusched/core/errors.hpp>

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <string>

namespace gpusched::allocation {

GPUSCHED_EXPORT void check_slowdown(Problems& problems, std::string_view field,
                                    const std::vector<std::int64_t>& milli) {
    const std::string name(field);
    if (milli.size() > most_slowdown_values)
        problems.add(bad_value(name, std::to_string(milli.size()) + " values",
                               "at most " + std::to_string(most_slowdown_values)));
    std::int64_t last = 0;
    for (std::size_t i = 0; i < milli.size(); ++i) {
        const auto at = name + "[" + std::to_string(i) + "]";
        if (check_range(problems, at, milli[i], 0, most_slowdown_milli) && milli[i] < last)
            problems.add(
                bad_value(at, number_text(milli[i]), "at least the value before, " + number_text(last)));
        last = std::max(last, milli[i]);
    }
}

GPUSCHED_EXPORT SlowdownCurve fit_slowdown(std::span<const SlowdownObservation> observations, int values) {
    Problems problems;
    check_range(problems, "values", values, 1, 8);
    if (observations.empty()) problems.add(bad_value("observations", "0 entries", "at least 1"));
    for (std::size_t i = 0; i < observations.size(); ++i) {
        const auto owner = "observations[" + std::to_string(i) + "]";
        const auto& seen = observations[i];
        if (!(seen.held >= 0 && seen.held <= 1))
            problems.add(bad_value("held", number_text(seen.held), "0 to 1", owner));
        if (!(seen.slowdown > -1 && std::isfinite(seen.slowdown)))
            problems.add(bad_value("slowdown", number_text(seen.slowdown), "a number above -1", owner));
    }
    problems.throw_if_any();

    // The curve is a sum of ramps, one per piece, each rising from 0 to 1 within its piece. It does not fall
    // if no weight is negative. Normal equations: (sum r r') weights = sum r slowdown.
    using Matrix = Eigen::MatrixXd;
    using Vector = Eigen::VectorXd;
    Matrix products = Matrix::Zero(values, values);
    Vector moments = Vector::Zero(values);
    for (const auto& seen : observations) {
        Vector ramps(values);
        for (int k = 0; k < values; ++k) ramps[k] = std::clamp(seen.held * values - k, 0.0, 1.0);
        products += ramps * ramps.transpose();
        moments += std::min(seen.slowdown, 1e100) * ramps;
    }
    // The best curve with exactly these weights above 0 is the unconstrained fit. If that rises too high, it
    // is the best fit that rises to the largest slowdown.
    constexpr double top = static_cast<double>(most_slowdown_milli) / 1000;
    Vector best = Vector::Zero(values);
    double most = 0;  // by how much the sum of squares falls below that of all-zero weights
    for (unsigned chosen = 1; chosen < 1U << values; ++chosen) {
        std::vector<int> pieces;
        for (int k = 0; k < values; ++k)
            if ((chosen >> k & 1U) != 0) pieces.push_back(k);
        const Matrix of = products(pieces, pieces);
        const Vector right = moments(pieces);
        const Eigen::LDLT<Matrix> solved(of);
        // No observation distinguishes these pieces, so fewer of them fit as well.
        if (solved.vectorD().minCoeff() <= 1e-12 * solved.vectorD().maxCoeff()) continue;
        Vector weights = solved.solve(right);
        if (weights.sum() > top) {
            const auto last = static_cast<Eigen::Index>(pieces.size()) - 1;
            weights.setZero();
            weights[last] = top;
            if (last > 0) {  // the last piece rises less by the amount of the others
                Matrix exchange = Matrix::Identity(last + 1, last);
                exchange.row(last).setConstant(-1);
                const Vector off = right - of * weights;
                weights += exchange * Eigen::LDLT<Matrix>(exchange.transpose() * of * exchange)
                                          .solve(exchange.transpose() * off);
            }
        }
        const double gain = weights.dot(2 * right - of * weights);
        if (!(weights.minCoeff() >= 0 && gain > most * (1 + 1e-12))) continue;
        most = gain;
        best.setZero();
        best(pieces) = weights;
    }
    SlowdownCurve curve;
    double sum = 0;
    for (int k = 0; k < values; ++k) {
        sum += best[k];
        curve.milli.push_back(static_cast<std::int64_t>(std::llround(1000 * std::min(sum, top))));
    }
    return curve;
}

}  // namespace gpusched::allocation

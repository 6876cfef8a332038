// SPDX-License-Identifier: Apache-2.0
#include <gpusched/config.hpp>
#include <gpusched/core/checks.hpp>
#include <gpusched/milp/evaluate.hpp>
#include <gpusched/milp/matrix.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace gpusched::milp {

GPUSCHED_EXPORT double objective_value(const Model& model, std::span<const double> x) {
    if (x.size() != model.objective.size())
        throw InvalidInput(
            bad_value("entries of x", std::to_string(x.size()), std::to_string(model.columns())));
    double value = model.offset;
    for (std::size_t j = 0; j < x.size(); ++j) value += model.objective[j] * x[j];
    return value;
}

GPUSCHED_EXPORT Evaluation evaluate(const Model& model, std::span<const double> x) {
    const auto columns = static_cast<std::size_t>(model.columns());
    Evaluation result;
    result.objective = objective_value(model, x);
    const auto worse = [&](double by, const std::string& name) {
        if (!(by <= result.violation)) {  // NaN counts
            result.violation = std::isnan(by) ? infinity : by;
            result.violated = name;
        }
    };
    for (std::size_t j = 0; j < columns; ++j) {
        worse(std::isfinite(x[j]) ? std::max(model.column_lower[j] - x[j], x[j] - model.column_upper[j])
                                  : infinity,
              model.column_names[j]);
        if (model.integer[j] == 0) continue;
        const double off = std::isfinite(x[j]) ? std::abs(x[j] - std::round(x[j])) : infinity;
        if (off > result.fractionality) {
            result.fractionality = off;
            result.fractional = model.column_names[j];
        }
    }
    const auto activity = row_activity(model, x);
    for (std::size_t i = 0; i < model.row_lower.size(); ++i) {
        const double row = activity[static_cast<Eigen::Index>(i)];
        worse(std::max(model.row_lower[i] - row, row - model.row_upper[i]), model.row_names[i]);
    }
    return result;
}

}  // namespace gpusched::milp

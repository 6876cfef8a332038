// SPDX-License-Identifier: Apache-2.0
// What a vector is worth in a model: objective, violated rows and bounds, integrality. Needs no solver.
#pragma once

#include <gpusched/core/fields.hpp>
#include <gpusched/milp/model.hpp>

#include <span>
#include <string>
#include <type_traits>

namespace gpusched::milp {

/// What a vector is worth in a model.
struct Evaluation {
    double objective = 0;      ///< with the model's offset
    double violation = 0;      ///< by how much the worst row or column bound is violated; 0 = none is
    std::string violated{};    ///< its name; empty = none is
    double fractionality = 0;  ///< how far the worst integer column is from a whole number
    std::string fractional{};  ///< its name; empty = none is off
    [[nodiscard]] bool feasible(double tolerance = 1e-6) const noexcept {
        return violation <= tolerance && fractionality <= tolerance;
    }
};
template <class F>
constexpr void visit_fields(std::type_identity<Evaluation>, F&& field) {
    field("objective", &Evaluation::objective);
    field("violation", &Evaluation::violation);
    field("violated", &Evaluation::violated);
    field("fractionality", &Evaluation::fractionality);
    field("fractional", &Evaluation::fractional);
}

/// What `x` is worth, with the model's offset. @throws InvalidInput unless `x` has one entry per column
[[nodiscard]] double objective_value(const Model& model, std::span<const double> x);

/// Objective, worst violation and integrality of `x`. Entries that are not finite count as infinitely wrong.
/// @throws InvalidInput unless `x` has one entry per column
[[nodiscard]] Evaluation evaluate(const Model& model, std::span<const double> x);

}  // namespace gpusched::milp

// SPDX-License-Identifier: Apache-2.0
// The constraint matrix of a model in Eigen: views and products, all inline.
#pragma once

#include <gpusched/milp/model.hpp>

#include <Eigen/SparseCore>

#include <span>

namespace gpusched::milp {

using Matrix = Eigen::SparseMatrix<double>;                      ///< by columns, as models store it
using RowMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;  ///< by rows

/// Returns a view of the constraint matrix A, rows x columns. The model must outlive it.
[[nodiscard]] inline Eigen::Map<const Matrix> A(const Model& model) {
    return {model.rows(),
            model.columns(),
            static_cast<Eigen::Index>(model.nonzeros()),
            model.column_start.data(),
            model.row_index.data(),
            model.value.data()};
}

/// Returns a copy of the constraint matrix by rows, with entries by ascending column. O(rows + columns +
/// entries).
[[nodiscard]] inline RowMatrix by_rows(const Model& model) { return A(model); }

/// Returns A x, one entry per row.
/// @param x one entry per column
[[nodiscard]] inline Eigen::VectorXd row_activity(const Model& model, std::span<const double> x) {
    return A(model) * Eigen::Map<const Eigen::VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
}

}  // namespace gpusched::milp
